import { gzipSync, strToU8 } from "fflate";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, hostPaths, nodeStates } from "../../api/names.ts";
import { canonical } from "../../ignition/canonical.ts";
import { type Loss, type ServedVersion, downgradeIgnition } from "../../ignition/convert-ignition.ts";
import { encodeBase64, encodeDataUrl } from "../../ignition/data-url.ts";
import { judgeAsItIs, readIgnition } from "../../ignition/parse-ignition.ts";
import { type Problem, pathTo } from "../../ignition/problem.ts";
import { type File, type IgnitionConfig, type Resource, emptyIgnition, ignitionVersion } from "../../ignition/types.ts";
import { isDigestPullspec } from "../config/image-pair.ts";
import type { ImagePair } from "../machine/image-target.ts";
import { defined } from "../../api/schema/defined.ts";

/** The inputs of the answer to a joining machine. They are never modified. */
export interface ServedInputs {
  /** The rendered config for the machine. */
  readonly machineConfig: MachineConfig;
  readonly controllerConfig: Pick<ControllerConfig, "spec">;
  /** The image that the machine boots instead of the one that its configuration names. */
  readonly image: ImagePair | undefined;
  /** The kubeconfig of the machine's first requests to the API server, as text. */
  readonly kubeconfig: string;
  /** PEM by registry, `host` or `host:port`; before there is a cluster only. */
  readonly registryCertificates: ReadonlyMap<string, string>;
  readonly mode: "cluster" | "bootstrap";
}

/** An answer before it is converted to the requested version. */
export interface Composed {
  readonly verdict: "composed";
  /** In 3.5, normalised and judged. */
  readonly config: IgnitionConfig;
  /** The MachineConfig that the machine gets. */
  readonly machineConfig: MachineConfig;
}

interface Invalid {
  readonly verdict: "invalid";
  readonly problems: readonly Problem[];
}

export type ServedConfig =
  /** `body`: JSON. */
  | { readonly verdict: "served"; readonly body: string; /** In UTF-8. */ readonly sizeBytes: number }
  /** The version cannot express the configuration. */
  | { readonly verdict: "cannotSay"; readonly losses: readonly Pick<Loss, "path" | "reason" | "lowestVersion">[] }
  | Invalid;

/** The answer for a machine of one version. To answer several versions from the same inputs, call the two halves. */
export function servedConfig(inputs: ServedInputs, version: ServedVersion): ServedConfig {
  const composed = composeServed(inputs);
  return composed.verdict === "invalid" ? composed : inIgnitionVersion(composed, version);
}

/** Ignition has no such field below. */
const lowestWithKernelArguments: ServedVersion = "3.3.0";

/** The answer in 3.5: the rendered config, and what a machine also needs until the daemon runs. */
export function composeServed(inputs: ServedInputs): Composed | Invalid {
  const { controllerConfig, kubeconfig, registryCertificates } = inputs;
  const raw = inputs.machineConfig.spec?.config;
  const parsed = raw === undefined || raw === null ? undefined : readIgnition(raw);
  if (parsed?.verdict === "invalid")
    return {
      verdict: "invalid",
      problems: parsed.problems.map((problem) => ({
        ...problem,
        path: problem.path === "" ? "spec.config" : `spec.config.${problem.path}`,
      })),
    };

  const machineConfig = configOnDisk(inputs);
  const { kubeAPIServerServingCAData, cloudProviderCAData } = controllerConfig.spec;
  const authorities = (
    [
      [hostPaths.kubeletCa, kubeAPIServerServingCAData],
      [hostPaths.cloudCa, cloudProviderCAData ?? ""],
    ] as const
  ).flatMap(([path, base64]) => (base64 === "" ? [] : [fileOf(path, 0o644, { source: `data:;base64,${base64}` })]));
  const unfit = [...registryCertificates.keys()].filter((host) => !registryHost.test(host) || /^\.*$/.test(host));
  if (unfit.length > 0)
    return {
      verdict: "invalid",
      problems: unfit.map((host) => ({
        path: "registryCertificates",
        reason: `${JSON.stringify(host)} is not the name of a registry`,
        severity: "error",
      })),
    };
  const added = [
    ...authorities,
    fileOf(hostPaths.nodeAnnotations, 0o644, { source: encodeDataUrl(JSON.stringify(nodeAnnotations(inputs))) }),
    fileOf(hostPaths.kubeconfig, 0o600, { source: encodeDataUrl(kubeconfig) }),
    wholeFile(machineConfig),
    ...[...registryCertificates].map(([host, pem]) =>
      fileOf(`${hostPaths.registryCas}/${host}/ca.crt`, 0o644, { source: encodeDataUrl(pem) }),
    ),
    encapsulatedFile(machineConfig, ignitionVersion),
  ];
  const config = withFiles(canonical(parsed?.config ?? emptyIgnition), added);
  const problems = [...judgeAsItIs(withoutContents(config, added)), ...belowFiles(config, added)];
  return problems.length > 0 ? { verdict: "invalid", problems } : { verdict: "composed", config, machineConfig };
}

/** A composed answer, as a machine of a version reads it. */
export function inIgnitionVersion(composed: Composed, version: ServedVersion): ServedConfig {
  const { config, machineConfig } = version < lowestWithKernelArguments ? withKernelArgumentsMoved(composed) : composed;
  const retold = [
    ...(machineConfig === composed.machineConfig ? [] : [wholeFile(machineConfig)]),
    ...(version === ignitionVersion ? [] : [encapsulatedFile(machineConfig, version)]),
  ];
  const converted = downgradeIgnition(withFiles(config, retold), version);
  if (converted.verdict === "refused")
    return {
      verdict: "cannotSay",
      losses: converted.problems.map(({ path, reason, lowestVersion }) => ({
        path,
        reason,
        ...defined({ lowestVersion }),
      })),
    };
  const body = JSON.stringify(converted.config);
  return { verdict: "served", body, sizeBytes: strToU8(body).length };
}

/**
 * Kernel arguments that this Ignition version cannot express are set at the machine's first boot, which cannot express
 * arguments that should not exist.
 */
function withKernelArgumentsMoved({
  config: { kernelArguments, ...config },
  machineConfig,
}: Composed): Pick<Composed, "config" | "machineConfig"> {
  const { shouldExist = [], shouldNotExist } = kernelArguments ?? {};
  const own = machineConfig.spec?.kernelArguments ?? [];
  const known = new Set(own);
  const missing = shouldExist.filter((argument) => !known.has(argument));
  return {
    config: shouldNotExist === undefined ? config : { ...config, kernelArguments: { shouldNotExist } },
    machineConfig:
      missing.length === 0
        ? machineConfig
        : { ...machineConfig, spec: { ...machineConfig.spec, kernelArguments: [...own, ...missing] } },
  };
}

/**
 * The MachineConfig as the machine stores it: with the image that it boots, without fields that only the API server
 * needs.
 */
function configOnDisk(inputs: ServedInputs): MachineConfig {
  const {
    metadata: { managedFields: _, ...metadata },
    spec,
  } = inputs.machineConfig;
  const image = resolvedImage(inputs);
  return {
    apiVersion: MachineConfig.apiVersion,
    kind: MachineConfig.kind,
    metadata,
    spec: { ...spec, ...(image === undefined ? {} : { osImageURL: image.image }) },
  };
}

/** The annotations of the machine's Node: openshift/machine-config-operator pkg/server/server.go (main). */
function nodeAnnotations(inputs: ServedInputs): Readonly<Record<string, string>> {
  const { metadata } = inputs.machineConfig;
  const preBuilt = metadata.annotations?.[annotations.preBuiltImage] ?? "";
  const resolved = resolvedImage(inputs);
  // An image without a digest would only prevent the machine from finishing its first boot.
  const named =
    isDigestPullspec(preBuilt) && preBuilt !== resolved?.image
      ? { image: preBuilt, content: metadata.annotations?.[annotations.imageContent] === "full" ? "full" : "os-only" }
      : resolved;
  return {
    [annotations.currentConfig]: metadata.name,
    [annotations.desiredConfig]: metadata.name,
    [annotations.firstPivotConfig]: metadata.name,
    [annotations.state]: nodeStates.done,
    ...(named === undefined
      ? {}
      : {
          [annotations.currentImage]: named.image,
          [annotations.currentOSImage]: named.image,
          [annotations.desiredImage]: named.image,
          [annotations.desiredOSImage]: named.image,
          [annotations.desiredImageContent]: named.content,
        }),
  };
}

/** Before the cluster exists, no image is built on it. */
const resolvedImage = ({ image, mode }: ServedInputs): ImagePair | undefined =>
  mode === "cluster" ? image : undefined;

const registryHost = /^[A-Za-z0-9.:[\]-]{1,255}$/;

const fileOf = (path: string, mode: number, contents: Resource): File => ({
  path,
  mode,
  overwrite: true,
  user: { name: "root" },
  contents,
});

/**
 * Compressed, because it repeats the configuration. It contains no time, so that equal configurations give equal
 * answers.
 */
function wholeFile(machineConfig: MachineConfig): File {
  return fileOf(hostPaths.servedConfig, 0o600, {
    compression: "gzip",
    source: `data:;base64,${encodeBase64(gzipSync(strToU8(JSON.stringify(machineConfig)), { level: 1, mtime: 0 }))}`,
  });
}

/**
 * The input of the first boot: the MachineConfig without what Ignition applies, as a config that Ignition of that
 * version accepts.
 */
function encapsulatedFile(machineConfig: MachineConfig, version: string): File {
  return fileOf(hostPaths.encapsulated, 0o600, {
    source: encodeDataUrl(
      JSON.stringify({ ...machineConfig, spec: { ...machineConfig.spec, config: { ignition: { version } } } }),
    ),
  });
}

/** Adds files to a config. They replace existing entries at the same path. */
function withFiles(config: IgnitionConfig, added: readonly File[]): IgnitionConfig {
  const byPath = new Map(added.map((file) => [file.path, file]));
  const { directories, links, files = [], ...storage } = config.storage ?? {};
  const others = <T extends { readonly path: string }>(nodes: readonly T[] | undefined) =>
    (nodes ?? []).filter(({ path }) => !byPath.has(path));
  const replaced = files.map((file) => byPath.get(file.path) ?? file);
  const known = new Set(files.map(({ path }) => path));
  const [keptDirectories, keptLinks] = [others(directories), others(links)];
  return {
    ...config,
    storage: {
      ...storage,
      ...(keptDirectories.length === 0 ? {} : { directories: keptDirectories }),
      files: [...replaced, ...[...byPath.values()].filter(({ path }) => !known.has(path))],
      ...(keptLinks.length === 0 ? {} : { links: keptLinks }),
    },
  };
}

/** The parts of a config that added files can conflict with: its own contents were validated before. */
function withoutContents(config: IgnitionConfig, added: readonly File[]): IgnitionConfig {
  return {
    ...config,
    storage: {
      ...config.storage,
      files: (config.storage?.files ?? []).map((file) => (added.includes(file) ? file : { path: file.path })),
    },
  };
}

/** Entries of a config below a path that is a file. */
function belowFiles({ storage }: IgnitionConfig, added: readonly File[]): readonly Problem[] {
  return (["directories", "files", "links"] as const).flatMap((kind) =>
    (storage?.[kind] ?? []).flatMap(({ path }, i): Problem[] => {
      const file = added.find((one) => path.startsWith(`${one.path}/`));
      return file === undefined
        ? []
        : [
            {
              path: pathTo(`storage.${kind}`, i),
              reason: `${path} lies below ${file.path}, which is a file on every machine`,
              severity: "error",
            },
          ];
    }),
  );
}
