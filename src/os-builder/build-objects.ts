import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import type { ConfigMap, Job, Pod, Secret } from "../api/foreign/kubernetes.ts";
import { annotations, buildNamespace, labels, objects } from "../api/names.ts";
import { type KubeObject, controlledBy } from "../api/schema/object.ts";
import { buildCapabilities } from "../core/build/build-pod.ts";
import type { BuildIsolation } from "../core/build/build-settings.ts";
import { restrictedContainer } from "../core/operator/pod-security.ts";
import {
  type BuildFile,
  type BuildPart,
  type BuildProxy,
  buildFiles,
  buildPaths,
  pieceName,
  printBuildFile,
} from "../core/build/image-build.ts";
import type { BuildRequest, HostContent, RunRef } from "./backend.ts";
import { defined } from "../api/schema/defined.ts";

/** A ConfigMap holds 1 MiB with all its keys, in base64 (k8s.io/kubernetes pkg/apis/core/validation, master). */
export const pieceBytes = 640 * 1024;
/** More is no configuration, but a data store: the API server would have to carry it for each attempt. */
export const maxContentBytes = 32 * 1024 * 1024;

const maxNameLength = 63;
const shortened = (text: string, rest = ""): string => {
  if (text.length + rest.length <= maxNameLength) return `${text}${rest}`;
  const hash = bytesToHex(sha256(utf8ToBytes(text))).slice(0, 10);
  return `${text.slice(0, maxNameLength - hash.length - 1 - rest.length).replace(/[^a-z0-9]+$/, "")}-${hash}${rest}`;
};

/**
 * Name of a run's Job. A pool's name may be longer than the space left for it; pods carry the Job's name as a label.
 */
export const jobNameOf = ({ build, attempt }: Pick<RunRef, "build" | "attempt">): string =>
  shortened(`build-${build}`, `-${attempt}`);

/** Value of the label by which everything of a build is found. */
export const buildLabelOf = (build: string): string => shortened(build);

/** Its full name; the label may be too short for it. */
export const buildAnnotation = labels.machineOSBuild;

/** The containers of a build by what they do. */
export const containerNames: Readonly<Record<BuildPart, string>> = {
  pull: "image-pull",
  steps: "image-build",
  push: "image-push",
};

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

export interface BuildObjects {
  readonly configMaps: readonly ConfigMap[];
  readonly secrets: readonly Secret[];
  readonly job: Job;
}

/** The inputs of a build from the suite's namespace: copies in the namespace of its Job. */
export interface Given {
  /** Texts of auth files. */
  readonly pull: string;
  readonly push: string;
  /** The objects that its steps see, if the cluster has them. */
  readonly mounts: readonly { readonly kind: HostContent["kind"]; readonly source: Secret | ConfigMap }[];
}

/** Everything that one attempt needs in the API server. The same request gives the same objects. */
export function buildObjects(request: BuildRequest, given: Given, options: BuildObjectOptions): BuildObjects {
  const name = request.build.metadata.name;
  const common = {
    namespace: buildNamespace,
    labels: labelsOf(request),
    annotations: { [buildAnnotation]: name },
    ownerReferences: [
      {
        ...controlledBy({
          apiVersion: MachineOSBuild.apiVersion,
          kind: MachineOSBuild.kind,
          metadata: request.build.metadata,
        }),
        blockOwnerDeletion: false,
      },
    ],
  };
  const configMap = (of: string, content: Partial<ConfigMap>): ConfigMap => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: of, ...common },
    ...content,
  });
  const secret = (of: string, type: string, key: string, text: string): Secret => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: of, ...common },
    type,
    data: { [key]: encode(utf8ToBytes(text)) },
  });
  const auth = (of: string, text: string) => secret(of, "kubernetes.io/dockerconfigjson", buildFiles.auth, text);
  const copiesOf = (wanted: "Secret" | "ConfigMap") =>
    given.mounts
      .filter(({ kind }) => request.mounts.some((mount) => mount.kind === kind && mount.source.kind === wanted))
      .map(({ kind, source: { data, ...source } }) => ({
        apiVersion: "v1",
        kind: wanted,
        metadata: { name: mountName(kind, name), ...common },
        ...("type" in source ? { type: source.type } : {}),
        ...("binaryData" in source ? { binaryData: source.binaryData } : {}),
        data,
      }));
  const pieces = contentPieces(request);
  const job = jobOf(request, options, pieces.length);
  return {
    configMaps: [
      configMap(`containerfile-${name}`, {
        data: {
          ...(request.containerfile === undefined ? {} : { [buildFiles.containerfile]: request.containerfile }),
          [buildFiles.request]: printBuildFile(buildFileOf(request)),
        },
        binaryData: Object.fromEntries(request.context.map(({ contents }, i) => [contextKey(i), encode(contents)])),
      }),
      ...pieces.map((binaryData, i) => configMap(contentName(name, i, pieces.length), { binaryData })),
      ...(request.trust.length === 0
        ? []
        : [
            configMap(`additionaltrustbundle-${name}`, {
              binaryData: { [buildFiles.trust]: encode(utf8ToBytes(request.trust.join("\n"))) },
            }),
          ]),
      ...(request.policy === undefined
        ? []
        : [configMap(`etc-policy-${name}`, { data: { [buildFiles.policy]: request.policy } })]),
      ...(request.registries === undefined
        ? []
        : [configMap(`etc-registries-${name}`, { data: { [buildFiles.registries]: request.registries } })]),
      ...(copiesOf("ConfigMap") as ConfigMap[]),
    ],
    secrets: [
      auth(`base-${name}`, given.pull),
      auth(`final-${name}`, given.push),
      ...(request.proxy === undefined
        ? []
        : [secret(`proxy-${name}`, "Opaque", buildFiles.proxy, JSON.stringify(request.proxy satisfies BuildProxy))]),
      ...(copiesOf("Secret") as Secret[]),
    ],
    job: { ...job, metadata: { ...common, ...job.metadata } },
  };
}

export function labelsOf({ build, pool }: Pick<BuildRequest, "build" | "pool">): Record<string, string> {
  return {
    [labels.ephemeralBuildObject]: "",
    [labels.onClusterLayering]: "",
    [labels.machineOSBuild]: buildLabelOf(build.metadata.name),
    [labels.machineOSConfig]: shortened(build.spec.machineOSConfig.name),
    [labels.targetPool]: shortened(pool),
    [labels.renderedConfig]: shortened(build.spec.machineConfig.name),
  };
}

const encode = (bytes: Uint8Array): string => {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
};

const contextKey = (index: number): string => `context-${index}`;
const contentName = (build: string, index: number, count: number): string =>
  count === 1 ? `mc-${build}` : `mc-${build}-${index}`;
const contentPath = (index: number, count: number): string =>
  count === 1 ? buildPaths.content : `${buildPaths.content}-${index}`;

const countOf = (bytes: Uint8Array | undefined): number =>
  bytes === undefined ? 0 : Math.max(1, Math.ceil(bytes.length / pieceBytes));

/** Keys of the ConfigMaps that carry the content: one while it fits, else one for each piece. */
function contentPieces({ configLayer, buildVisible }: BuildRequest): readonly Readonly<Record<string, string>>[] {
  const files = [
    { name: buildFiles.configLayer, bytes: configLayer?.bytes },
    { name: buildFiles.buildVisible, bytes: buildVisible },
  ];
  if (files.every(({ bytes }) => bytes === undefined)) return [];
  const cut = files.flatMap(({ name, bytes }) =>
    Array.from(
      { length: countOf(bytes) },
      (_, i) =>
        [
          pieceName(name, i, countOf(bytes)),
          bytes?.subarray(i * pieceBytes, (i + 1) * pieceBytes) ?? new Uint8Array(),
        ] as const,
    ),
  );
  const total = cut.reduce((sum, [, bytes]) => sum + bytes.length, 0);
  if (total <= pieceBytes) return [Object.fromEntries(cut.map(([name, bytes]) => [name, encode(bytes)]))];
  return cut.map(([name, bytes]) => ({ [name]: encode(bytes) }));
}

function buildFileOf(request: BuildRequest): BuildFile {
  const {
    id,
    attempt,
    mode,
    architecture,
    base,
    extensions,
    configLayer,
    buildVisible,
    context,
    mounts,
    registryCertificates,
    target,
    epoch,
    noCache,
    limits,
  } = request;
  return {
    v: 1,
    id,
    attempt,
    mode,
    architecture,
    base,
    ...defined({ extensions }),
    ...(configLayer === undefined ? {} : { configLayer: { digest: configLayer.digest, diffId: configLayer.diffId } }),
    pieces: { configLayer: countOf(configLayer?.bytes), buildVisible: countOf(buildVisible) },
    files: context.map(({ path, mode: fileMode }, i) => ({ path, key: contextKey(i), mode: fileMode })),
    mounts: mounts.map(({ kind }) => kind),
    certificates: registryCertificates,
    target,
    epoch,
    noCache,
    pushSeconds: limits.pushSeconds,
    labels: request.labels,
  };
}

/** Name of the copy of what steps see. */
const mountName = (kind: HostContent["kind"], build: string): string => `${kind.toLowerCase()}-${build}`;

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

function jobOf(request: BuildRequest, options: BuildObjectOptions, pieces: number): KubeObject & Job {
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
