import type { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import { canonicalQuantity, nano, parseQuantity } from "../../api/schema/quantities.ts";
import type { FieldProblem } from "../kubelet/decode-go.ts";
import type { LostField } from "../kubelet/lost-fields.ts";
import type { GeneratedFile } from "../render/generated-config.ts";
import { storageConfText } from "./storage-conf.ts";

export const storageConfPath = "/etc/containers/storage.conf";
const dropIn = (field: string) => `/etc/crio/crio.conf.d/01-ctrcfg-${field}`;

const path = (field: string) => `spec.containerRuntimeConfig.${field}`;
const logLevels = ["error", "fatal", "panic", "warn", "info", "debug", "trace"];
/** The container runtimes that CRI-O can be told to use. */
export const containerRuntimes: readonly string[] = ["crun", "runc"];
const leastPids = 20;
/** A log file holds at least this many bytes. */
const leastLogBytes = 8192n;

const stores = {
  additionalLayerStores: 5,
  additionalImageStores: 10,
  additionalArtifactStores: 10,
} as const;
type StoreField = keyof typeof stores;

/**
 * Why a ContainerRuntimeConfig is refused. Source of the rules: openshift/machine-config-operator
 * pkg/controller/container-runtime-config/helpers.go (main), and openshift/api for the paths.
 */
export function runtimeProblems({ spec }: Pick<ContainerRuntimeConfig, "spec">): readonly FieldProblem[] {
  const { pidsLimit = 0, logLevel = "", logSizeMax, overlaySize, defaultRuntime = "" } = spec.containerRuntimeConfig;
  const when = (is: boolean, field: string, reason: string): readonly FieldProblem[] =>
    is ? [{ path: path(field), reason }] : [];
  const log = quantityOf(logSizeMax);
  const overlay = quantityOf(overlaySize);
  return [
    ...when(
      pidsLimit !== 0 && pidsLimit < leastPids,
      "pidsLimit",
      `must be 0, which sets nothing, or at least ${leastPids}`,
    ),
    ...when(logLevel !== "" && !logLevels.includes(logLevel), "logLevel", `must be one of ${logLevels.join(", ")}`),
    ...when(log === undefined, "logSizeMax", 'must be a quantity of bytes, as "50Mi"'),
    ...when(
      log !== undefined && log > 0n && log <= leastLogBytes * nano,
      "logSizeMax",
      "must be more than 8192 bytes, or 0, which sets nothing",
    ),
    ...when(overlay === undefined, "overlaySize", 'must be a quantity of bytes, as "10Gi"'),
    ...when(overlay !== undefined && overlay < 0n, "overlaySize", "must not be negative"),
    ...when(
      defaultRuntime !== "" && !containerRuntimes.includes(defaultRuntime),
      "defaultRuntime",
      `must be one of ${containerRuntimes.join(", ")}`,
    ),
    ...(Object.keys(stores) as StoreField[]).flatMap((field) => storeProblems(spec, field)),
  ];
}

function storeProblems(spec: ContainerRuntimeConfig["spec"], field: StoreField): readonly FieldProblem[] {
  const paths = pathsOf(spec, field);
  const most = stores[field];
  return [
    ...(paths.length > most ? [{ path: path(field), reason: `must hold at most ${most} paths` }] : []),
    ...paths.flatMap((store, i): readonly FieldProblem[] => {
      const at = `${path(field)}[${i}].path`;
      if (store === "" || store.length > 256) return [{ path: at, reason: "must have 1 to 256 characters" }];
      if (!/^\/[a-zA-Z0-9/._-]+$/.test(store))
        return [{ path: at, reason: "must be an absolute path of letters, digits, '/', '.', '_' and '-'" }];
      if (store.includes("//")) return [{ path: at, reason: "must not hold '//'" }];
      return paths.indexOf(store) < i ? [{ path: at, reason: "stands in the list before" }] : [];
    }),
  ];
}

const pathsOf = ({ containerRuntimeConfig }: ContainerRuntimeConfig["spec"], field: StoreField): readonly string[] =>
  (containerRuntimeConfig[field] ?? []).map((store) => store.path);

/** In billionths; 0 where nothing is set. */
const quantityOf = (value: string | number | undefined): bigint | undefined =>
  value === undefined || value === "" ? 0n : parseQuantity(String(value));

/** Whole bytes of billionths, rounded away from zero as Kubernetes rounds quantities. */
function wholeBytes(billionths: bigint): bigint {
  const size = ((billionths < 0n ? -billionths : billionths) + nano - 1n) / nano;
  return billionths < 0n ? -size : size;
}

export interface RuntimeInputs {
  /** The template's storage.conf. */
  readonly storage: string;
  /** Whether the gate AdditionalStorageConfig is on: without it the additional stores have no effect. */
  readonly hasStores: boolean;
}

export type RuntimeFiles =
  | {
      readonly verdict: "files";
      readonly files: readonly GeneratedFile[];
      readonly withoutEffect: readonly LostField[];
    }
  | { readonly verdict: "refused"; readonly problems: readonly FieldProblem[] };

/** What a ContainerRuntimeConfig writes on the machines of its pools. */
export function runtimeFiles(object: Pick<ContainerRuntimeConfig, "spec">, inputs: RuntimeInputs): RuntimeFiles {
  const problems = runtimeProblems(object);
  if (problems.length > 0) return { verdict: "refused", problems };
  const {
    pidsLimit = 0,
    logLevel = "",
    logSizeMax,
    overlaySize,
    defaultRuntime = "",
  } = object.spec.containerRuntimeConfig;
  const storesOf = (field: StoreField) => (inputs.hasStores ? pathsOf(object.spec, field) : []);
  const overlay = quantityOf(overlaySize) ?? 0n;
  const [images, layers] = [storesOf("additionalImageStores"), storesOf("additionalLayerStores")];
  const files: GeneratedFile[] = [];
  const file = (where: string, text: string) => files.push({ path: where, mode: 0o644, text });
  if (overlay > 0n || images.length > 0 || layers.length > 0) {
    const written = storageConfText(inputs.storage, {
      ...(overlay > 0n ? { size: canonicalQuantity(String(overlaySize)) } : {}),
      ...(images.length > 0 ? { imageStores: images } : {}),
      ...(layers.length > 0 ? { layerStores: layers } : {}),
    });
    if (written.verdict === "refused")
      return { verdict: "refused", problems: [{ path: path("overlaySize"), reason: written.reason }] };
    file(storageConfPath, written.text);
  }
  const runtime = (field: string, key: string, value: string) =>
    file(dropIn(field), `[crio]\n[crio.runtime]\n${key} = ${value}\n`);
  const log = quantityOf(logSizeMax) ?? 0n;
  const artifacts = storesOf("additionalArtifactStores");
  if (logLevel !== "") runtime("logLevel", "log_level", JSON.stringify(logLevel));
  if (object.spec.containerRuntimeConfig.pidsLimit !== undefined) runtime("pidsLimit", "pids_limit", String(pidsLimit));
  if (log !== 0n) runtime("logSizeMax", "log_size_max", String(wholeBytes(log)));
  if (defaultRuntime !== "") runtime("defaultRuntime", "default_runtime", JSON.stringify(defaultRuntime));
  if (artifacts.length > 0)
    runtime("additionalArtifactStores", "additional_artifact_stores", JSON.stringify(artifacts));
  const ignored = (Object.keys(stores) as StoreField[]).filter(
    (field) => !inputs.hasStores && pathsOf(object.spec, field).length > 0,
  );
  const withoutEffect = ignored.map((field) => ({
    path: path(field),
    reason: "changes nothing",
    remedy: "turn the feature gate AdditionalStorageConfig of the cluster on, or take it out",
  }));
  return { verdict: "files", files, withoutEffect };
}
