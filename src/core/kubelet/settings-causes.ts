import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { mostTextCharacters } from "../../ignition/held-contents.ts";
import { fileText } from "../render/config-file.ts";
import { lenientKubernetesYaml } from "../text/kubernetes-yaml.ts";
import { printable } from "../text/printable.ts";
import type { SettingsObject } from "./decide-generated.ts";
import { kubeletConfPaths, kubeletLoggingPath, nodeSizingPath } from "./kubelet-config.ts";

/** A part of a machine's file, and the field that it comes from. */
export interface SettingsCause {
  readonly file: string;
  /** What stands in the file: `maxPods: 400`. */
  readonly what: string;
  /** `KubeletConfig/name` */
  readonly object: string;
  readonly path: string;
}

/** The values of a kubelet.conf by their paths, as JSON. Values that are the same as none to a kubelet are left out; a text that is too large to be parsed has none. */
export const kubeletValues = (text: string): ReadonlyMap<string, string> =>
  text.length > mostTextCharacters ? new Map() : leaves(lenientKubernetesYaml(text)?.value);

const isZero = (value: unknown): boolean => value === null || value === 0 || ["", "0", "0s"].includes(value as string);

function leaves(value: unknown, path = "", into = new Map<string, string>()): ReadonlyMap<string, string> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    for (const [key, inner] of Object.entries(value)) leaves(inner, path === "" ? key : `${path}.${key}`, into);
  else if (path !== "" && !isZero(value)) into.set(printable(path), printable(JSON.stringify(value)));
  return into;
}

/**
 * Where the parts of a generated file come from: what is not as in the base configuration, with the object and its
 * field.
 *
 * @param made a MachineConfig that the controller made, or would make.
 * @param owner the object that it was made from; `undefined`: the cluster's own objects.
 * @param base the base configuration of its pool.
 */
export function settingsCauses(
  file: string,
  made: MachineConfig,
  owner: SettingsObject | undefined,
  base: MachineConfig | undefined,
): readonly SettingsCause[] {
  const text = fileText(made, file, mostTextCharacters);
  if (text === undefined) return [];
  if (!kubeletConfPaths.includes(file)) return owner === undefined ? [] : causesOfOthers(file, owner);
  const before = kubeletValues(fileText(base, file, mostTextCharacters) ?? "");
  return [...kubeletValues(text)].flatMap(([path, value]) => {
    const cause = before.get(path) === value ? undefined : causeOf(path, owner);
    return cause === undefined ? [] : [{ file, what: `${path}: ${value}`, ...cause }];
  });
}

type Cause = Pick<SettingsCause, "object" | "path">;

/** Which field a value of kubelet.conf comes from. */
function causeOf(path: string, owner: SettingsObject | undefined): Cause | undefined {
  const [first = ""] = path.split(".");
  if (first === "featureGates") return { object: "FeatureGate/cluster", path: path.replace("featureGates.", "gate ") };
  const spec = (owner?.spec ?? {}) as { readonly kubeletConfig?: object | null; readonly tlsSecurityProfile?: unknown };
  const own = (spec.kubeletConfig ?? {}) as Readonly<Record<string, unknown>>;
  const object = owner === undefined ? "" : `${owner.kind}/${owner.metadata.name}`;
  if (first === "tlsMinVersion" || first === "tlsCipherSuites")
    return spec.tlsSecurityProfile === undefined
      ? { object: "APIServer/cluster", path: "spec.tlsSecurityProfile" }
      : { object, path: "spec.tlsSecurityProfile" };
  if (own[first] !== undefined) return { object, path: `spec.kubeletConfig.${path}` };
  if (first === "nodeStatusUpdateFrequency") return { object: "Node/cluster", path: "spec.workerLatencyProfile" };
  if (first === "enforceNodeAllocatable" && own["reservedSystemCPUs"] !== undefined)
    return { object, path: "spec.kubeletConfig.reservedSystemCPUs" };
  return undefined;
}

/** The other files hold nothing but what their fields say. */
function causesOfOthers(file: string, { kind, metadata, spec }: SettingsObject): readonly SettingsCause[] {
  const object = `${kind}/${metadata.name}`;
  const of = (paths: readonly string[], values: Readonly<Record<string, unknown>>, below: string) =>
    paths.flatMap((path) =>
      values[path] === undefined
        ? []
        : [{ file, what: `${path}: ${printable(JSON.stringify(values[path]))}`, object, path: `${below}${path}` }],
    );
  if ("containerRuntimeConfig" in spec) {
    const fields = file.startsWith(runtimeDropIn)
      ? [file.slice(runtimeDropIn.length)]
      : ["overlaySize", "additionalImageStores", "additionalLayerStores"];
    return of(fields, spec.containerRuntimeConfig, "spec.containerRuntimeConfig.");
  }
  const own = (("kubeletConfig" in spec ? spec.kubeletConfig : undefined) ?? {}) as Readonly<Record<string, unknown>>;
  const all = spec as Readonly<Record<string, unknown>>;
  if (file === kubeletLoggingPath) return of(["logLevel"], all, "spec.");
  if (file !== nodeSizingPath) return [];
  return [...of(["systemReserved"], own, "spec.kubeletConfig."), ...of(["autoSizingReserved"], all, "spec.")];
}

const runtimeDropIn = "/etc/crio/crio.conf.d/01-ctrcfg-";
