import type { Job, Pod } from "../api/foreign/kubernetes.ts";
import { annotations, labels, objects } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { buildCapabilities } from "../core/build/build-pod.ts";
import type { BuildIsolation } from "../core/build/build-settings.ts";
import { type BuildPart, buildPaths } from "../core/build/image-build.ts";
import { restrictedContainer } from "../core/operator/pod-security.ts";
import type { BuildRequest } from "./backend.ts";
import { buildAnnotation, containerNames, contentName, jobNameOf, labelsOf, mountName } from "./build-names.ts";

/** How the pods of builds run. */
export interface BuildObjectOptions {
  /** Image of the suite that carries buildah. */
  readonly image: string;
  /** Folder of the node with the layers of earlier builds. Without it each build starts from scratch. */
  readonly cacheFolder?: string | undefined;
  /** Pods may run on the control plane if there are no other nodes. */
  readonly toleratesControlPlane: boolean;
  /** Node where the pool's last build ran: what it kept is of use. */
  readonly preferredNode?: string | undefined;
}

type Volume = NonNullable<NonNullable<Pod["spec"]>["volumes"]>[number];

/** Mount paths of the containers, the volumes behind them, and the containers that have them. */
type Mounted = readonly {
  readonly path: string;
  readonly volume: Omit<Volume, "name">;
  readonly parts: readonly BuildPart[];
  /** Parts that only read it. */
  readonly readOnly?: readonly BuildPart[];
}[];

const everyPart: readonly BuildPart[] = ["pull", "steps", "push"];
const withBuildah: readonly BuildPart[] = ["pull", "steps"];

const contentPath = (index: number, count: number): string =>
  count === 1 ? buildPaths.content : `${buildPaths.content}-${index}`;

function mountedIn(request: BuildRequest, cacheFolder: string | undefined, pieces: number): Mounted {
  const name = request.build.metadata.name;
  const optional = (isThere: boolean, path: string, configMap: string): Mounted =>
    isThere ? [{ path, volume: { configMap: { name: `${configMap}-${name}` } }, parts: everyPart }] : [];
  const cache: Omit<Volume, "name"> =
    // One for each pool: what a step of one pool leaves in it gets into no other pool's images.
    cacheFolder === undefined
      ? { emptyDir: {} }
      : { hostPath: { path: `${cacheFolder}/${request.pool}`, type: "DirectoryOrCreate" } };
  return [
    { path: buildPaths.context, volume: { configMap: { name: `containerfile-${name}` } }, parts: everyPart },
    ...Array.from({ length: pieces }, (_, i) => ({
      path: contentPath(i, pieces),
      volume: { configMap: { name: contentName(name, i, pieces) } },
      parts: everyPart,
    })),
    // Steps run where there is no credential.
    { path: buildPaths.pull, volume: { secret: { secretName: `base-${name}` } }, parts: ["pull", "push"] },
    { path: buildPaths.push, volume: { secret: { secretName: `final-${name}` } }, parts: ["push"] },
    // Its address may hold a password.
    ...(request.proxy === undefined
      ? []
      : [{ path: buildPaths.proxy, volume: { secret: { secretName: `proxy-${name}` } }, parts: everyPart }]),
    ...optional(request.trust.length > 0, buildPaths.trust, "additionaltrustbundle"),
    ...optional(request.policy !== undefined, buildPaths.policy, "etc-policy"),
    ...optional(request.registries !== undefined, buildPaths.registries, "etc-registries"),
    // The host's own content may change; steps that need it declare it themselves. It decides on the store, too.
    ...request.mounts.map(({ kind, source }) => ({
      path: `${buildPaths.mounts}/${kind}`,
      volume:
        source.kind === "Secret"
          ? { secret: { secretName: mountName(kind, name), optional: true } }
          : { configMap: { name: mountName(kind, name), optional: true } },
      parts: withBuildah,
    })),
    { path: buildPaths.pullWork, volume: { emptyDir: {} }, parts: ["pull"] },
    { path: buildPaths.work, volume: { emptyDir: {} }, parts: ["steps"] },
    { path: buildPaths.cache, volume: cache, parts: withBuildah },
    { path: buildPaths.result, volume: { emptyDir: {} }, parts: ["steps", "push"], readOnly: ["push"] },
  ];
}

/** The containers of a build, in their order: without steps there is nothing to pull and to run before the push. */
const partsOf = ({ containerfile }: BuildRequest): readonly BuildPart[] =>
  containerfile === undefined ? ["push"] : everyPart;

type PodSpec = NonNullable<Pod["spec"]>;

/** The node of a build: near the layers of an earlier build, and on the control plane if there is no other node. */
const placement = ({ cacheFolder, toleratesControlPlane, preferredNode }: BuildObjectOptions) => ({
  ...(preferredNode === undefined || cacheFolder === undefined
    ? {}
    : {
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              {
                weight: 100,
                preference: {
                  matchExpressions: [{ key: labels.hostname, operator: "In", values: [preferredNode] }],
                },
              },
            ],
          },
        },
      }),
  ...(toleratesControlPlane
    ? {
        tolerations: [labels.masterRole, labels.controlPlaneRole].map((key) => ({
          key,
          operator: "Exists",
          effect: "NoSchedule",
        })),
      }
    : {}),
});

/** A step may take so many times the memory that the scheduler counts for its build; then it is ended. */
const memoryHeadroom = 4;
const multiplied = (quantity: string, times: number) =>
  quantity.replace(/^[0-9.]+/, (amount) => String(Number(amount) * times));

/**
 * What buildah may do, an exception from the profile, see docs/pod-security.md.
 *
 * In a user namespace that the kubelet creates, buildah is root there and unprivileged on the machine. It mounts the
 * root of a step and sets owners of files, which needs capabilities, but only in that namespace; no process in it gains
 * privileges. With `SYS_ADMIN` in that namespace, the runtime's seccomp profile permits the mounts.
 *
 * With the users of the machine, newuidmap(1) and newgidmap(1), which are set-user-ID or hold two capabilities, give it
 * a range of users; without them every file of an image would belong to this one user. containerd's default seccomp
 * profile refuses the user namespace with mounts that they create.
 */
const buildahContexts = {
  userNamespace: {
    ...restrictedContainer,
    runAsNonRoot: false,
    runAsUser: 0,
    runAsGroup: 0,
    capabilities: {
      drop: [...restrictedContainer.capabilities.drop],
      add: [...buildCapabilities.userNamespace],
    },
  },
  hostUsers: {
    ...restrictedContainer,
    runAsUser: 1000,
    runAsGroup: 1000,
    allowPrivilegeEscalation: true,
    capabilities: { drop: [...restrictedContainer.capabilities.drop], add: [...buildCapabilities.hostUsers] },
    seccompProfile: { type: "Unconfined" },
  },
} satisfies Readonly<Record<BuildIsolation, object>>;

const pushContext = {
  ...restrictedContainer,
  capabilities: { drop: [...restrictedContainer.capabilities.drop] },
};

function containerOf(
  part: BuildPart,
  { limits, isolation }: BuildRequest,
  image: string,
  mounted: Mounted,
): NonNullable<PodSpec["containers"]>[number] {
  const work = part === "pull" ? buildPaths.pullWork : buildPaths.work;
  const environment = part === "push" ? {} : { HOME: `${work}/home`, TMPDIR: work };
  return {
    name: containerNames[part],
    image,
    args: ["build-image", "--context", buildPaths.context, "--part", part],
    env: Object.entries(environment).map(([variable, value]) => ({ name: variable, value })),
    resources: {
      requests: { cpu: limits.cpu, memory: limits.memory, "ephemeral-storage": limits.storage },
      limits: { memory: multiplied(limits.memory, memoryHeadroom) },
    },
    // The container with the push credential starts no program and reads no more than files that everybody may read.
    securityContext: { ...(part === "push" ? pushContext : buildahContexts[isolation]) },
    terminationMessagePath: buildPaths.terminationMessage,
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: mounted.flatMap(({ path, parts, readOnly }, i) =>
      parts.includes(part)
        ? [{ name: `v${i}`, mountPath: path, ...(readOnly?.includes(part) === true ? { readOnly: true } : {}) }]
        : [],
    ),
  };
}

/** The Job of an attempt. `pieces`: how many ConfigMaps carry its content. */
export function jobOf(request: BuildRequest, options: BuildObjectOptions, pieces: number): KubeObject & Job {
  const name = request.build.metadata.name;
  const parts = partsOf(request);
  const mounted = mountedIn(request, options.cacheFolder, pieces).filter((each) =>
    each.parts.some((part) => parts.includes(part)),
  );
  const containerFor = (part: BuildPart) => containerOf(part, request, options.image, mounted);
  const before = parts.filter((part) => part !== "push").map(containerFor);
  const notes = { [buildAnnotation]: name, [annotations.buildAttempt]: String(request.attempt) };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: jobNameOf({ build: name, attempt: request.attempt }), annotations: notes },
    spec: {
      backoffLimit: 0,
      completions: 1,
      parallelism: 1,
      activeDeadlineSeconds: request.limits.seconds,
      template: {
        metadata: {
          labels: labelsOf(request),
          annotations: { ...notes, "cluster-autoscaler.kubernetes.io/safe-to-evict": "false" },
        },
        spec: {
          restartPolicy: "Never",
          priorityClassName: objects.buildPriority,
          serviceAccountName: objects.buildAccount,
          automountServiceAccountToken: false,
          ...(request.isolation === "userNamespace" ? { hostUsers: false } : {}),
          terminationGracePeriodSeconds: 10,
          nodeSelector: { [labels.os]: "linux", [labels.arch]: request.architecture },
          ...placement(options),
          ...(before.length === 0 ? {} : { initContainers: before }),
          containers: [containerFor("push")],
          volumes: mounted.map(({ volume }, i): Volume => ({ name: `v${i}`, ...volume })),
        },
      },
    },
  };
}
