import { utf8ToBytes } from "@noble/hashes/utils.js";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import type { ConfigMap, Job, Secret } from "../api/foreign/kubernetes.ts";
import { buildNamespace } from "../api/names.ts";
import { defined } from "../api/schema/defined.ts";
import { controlledBy } from "../api/schema/object.ts";
import { type BuildFile, type BuildProxy, buildFiles, pieceName, printBuildFile } from "../core/build/image-build.ts";
import type { BuildRequest, HostContent } from "./backend.ts";
import { type BuildObjectOptions, jobOf } from "./build-job.ts";
import { buildAnnotation, contentName, labelsOf, mountName } from "./build-names.ts";

/** A ConfigMap holds 1 MiB with all its keys, in base64 (k8s.io/kubernetes pkg/apis/core/validation, master). */
export const pieceBytes = 640 * 1024;
/** More is no configuration, but a data store: the API server would have to carry it for each attempt. */
export const maxContentBytes = 32 * 1024 * 1024;

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

const encode = (bytes: Uint8Array): string => {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
};

const contextKey = (index: number): string => `context-${index}`;

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
