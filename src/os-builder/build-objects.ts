import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import type { ConfigMap, Job, Pod, Secret } from "../api/foreign/kubernetes.ts";
import { annotations, buildNamespace, labels, objects } from "../api/names.ts";
import { type KubeObject, controlledBy } from "../api/schema/object.ts";
import { restrictedContainer } from "../core/operator/pod-security.ts";
import { type BuildFile, buildFiles, buildPaths, pieceName, printBuildFile } from "../core/build/image-build.ts";
import type { BuildRequest, HostContent, RunRef } from "./backend.ts";

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
 * Name of a run's Job. The name of a pool may be longer than what is left for it; pods carry the Job's name as a label.
 */
export const jobNameOf = ({ build, attempt }: Pick<RunRef, "build" | "attempt">): string =>
  shortened(`build-${build}`, `-${attempt}`);

/** Value of the label by which everything of a build is found. */
export const buildLabelOf = (build: string): string => shortened(build);

/** Its full name, beside the label, which may not hold it. */
export const buildAnnotation = labels.machineOSBuild;

export const containerName = "image-build";

export interface BuildObjectOptions {
  /** Image of the suite that carries buildah. */
  readonly image: string;
  /** Folder of the node that keeps what earlier builds have made. Without it each build begins anew. */
  readonly cacheFolder?: string | undefined;
  /** Pods may run on the control plane, where there is nothing else. */
  readonly toleratesControlPlane: boolean;
  /** Node where the pool's last build ran: what it kept is of use. */
  readonly preferredNode?: string | undefined;
}

export interface BuildObjects {
  readonly configMaps: readonly ConfigMap[];
  readonly secrets: readonly Secret[];
  readonly job: Job;
}

/** What a build is given of the suite's namespace: copies of it that lie beside its Job. */
export interface Given {
  /** Texts of auth files. */
  readonly pull: string;
  readonly push: string;
  /** What its steps see, as far as the cluster has it. */
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
  const secret = (of: string, text: string): Secret => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: of, ...common },
    type: "kubernetes.io/dockerconfigjson",
    data: { [buildFiles.auth]: encode(utf8ToBytes(text)) },
  });
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
      secret(`base-${name}`, given.pull),
      secret(`final-${name}`, given.push),
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
    proxy,
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
    ...(extensions === undefined ? {} : { extensions }),
    ...(configLayer === undefined ? {} : { configLayer: { digest: configLayer.digest, diffId: configLayer.diffId } }),
    pieces: { configLayer: countOf(configLayer?.bytes), buildVisible: countOf(buildVisible) },
    files: context.map(({ path, mode: fileMode }, i) => ({ path, key: contextKey(i), mode: fileMode })),
    mounts: mounts.map(({ kind }) => kind),
    certificates: registryCertificates,
    ...(proxy === undefined ? {} : { proxy }),
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

/** Where the container finds its files, and what brings them. */
type Mounted = readonly (readonly [path: string, volume: Omit<Volume, "name">])[];

function mountedIn(request: BuildRequest, cacheFolder: string | undefined, pieces: number): Mounted {
  const name = request.build.metadata.name;
  const optional = (isThere: boolean, path: string, configMap: string): Mounted =>
    isThere ? [[path, { configMap: { name: `${configMap}-${name}` } }]] : [];
  return [
    [buildPaths.context, { configMap: { name: `containerfile-${name}` } }],
    ...Array.from(
      { length: pieces },
      (_, i) => [contentPath(i, pieces), { configMap: { name: contentName(name, i, pieces) } }] as const,
    ),
    [buildPaths.pull, { secret: { secretName: `base-${name}` } }],
    [buildPaths.push, { secret: { secretName: `final-${name}` } }],
    ...optional(request.trust.length > 0, buildPaths.trust, "additionaltrustbundle"),
    ...optional(request.policy !== undefined, buildPaths.policy, "etc-policy"),
    ...optional(request.registries !== undefined, buildPaths.registries, "etc-registries"),
    // The host's own content may change; steps that need it declare it themselves.
    ...request.mounts.map(
      ({ kind, source }) =>
        [
          `${buildPaths.mounts}/${kind}`,
          source.kind === "Secret"
            ? { secret: { secretName: mountName(kind, name), optional: true } }
            : { configMap: { name: mountName(kind, name), optional: true } },
        ] as const,
    ),
    [buildPaths.work, { emptyDir: {} }],
    [
      buildPaths.cache,
      // One for each pool: what a step of one pool leaves in it gets into no other pool's images.
      cacheFolder === undefined
        ? { emptyDir: {} }
        : { hostPath: { path: `${cacheFolder}/${shortened(request.pool)}`, type: "DirectoryOrCreate" } },
    ],
  ];
}

type PodSpec = NonNullable<Pod["spec"]>;

/** On which node a build runs: near what an earlier one left, and on the control plane where there is no other node. */
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

function containerOf(
  { proxy, limits }: BuildRequest,
  image: string,
  mounted: Mounted,
): NonNullable<PodSpec["containers"]>[number] {
  const environment = {
    HOME: `${buildPaths.work}/home`,
    TMPDIR: buildPaths.work,
    HTTP_PROXY: proxy?.httpProxy,
    HTTPS_PROXY: proxy?.httpsProxy,
    NO_PROXY: proxy?.noProxy,
  };
  return {
    name: containerName,
    image,
    args: ["build-image", "--context", buildPaths.context],
    env: Object.entries(environment).flatMap(([variable, value]) =>
      value === undefined ? [] : [{ name: variable, value }],
    ),
    resources: {
      requests: { cpu: limits.cpu, memory: limits.memory, "ephemeral-storage": limits.storage },
      limits: { memory: multiplied(limits.memory, memoryHeadroom) },
    },
    // Exceptions, see docs/pod-security.md. newuidmap(1) and newgidmap(1), which are set-user-ID or hold these two
    // capabilities, give the build its range of users; without them no file of an image could belong to anybody but
    // this one user. What they make, a user namespace with mounts, containerd's default filter of system calls refuses.
    securityContext: {
      ...restrictedContainer,
      runAsUser: 1000,
      runAsGroup: 1000,
      allowPrivilegeEscalation: true,
      capabilities: { drop: [...restrictedContainer.capabilities.drop], add: ["SETUID", "SETGID"] },
      seccompProfile: { type: "Unconfined" },
    },
    terminationMessagePath: buildPaths.terminationMessage,
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: mounted.map(([mountPath], i) => ({ name: `v${i}`, mountPath })),
  };
}

function jobOf(request: BuildRequest, options: BuildObjectOptions, pieces: number): KubeObject & Job {
  const name = request.build.metadata.name;
  const mounted = mountedIn(request, options.cacheFolder, pieces);
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
          terminationGracePeriodSeconds: 10,
          nodeSelector: { [labels.os]: "linux", [labels.arch]: request.architecture },
          ...placement(options),
          containers: [containerOf(request, options.image, mounted)],
          volumes: mounted.map(([, volume], i): Volume => ({ name: `v${i}`, ...volume })),
        },
      },
    },
  };
}
