import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import { kubeletTlsOf } from "../certificates/tls-profile.ts";
import { kubeadmKubeletPath } from "../render/base-configs.ts";
import type { GeneratedFile } from "../render/generated-config.ts";
import { yamlForHash } from "../render/yaml-for-hash.ts";
import { type Decoded, type FieldProblem, decodeGo } from "./decode-go.ts";
import { encodeGo } from "./encode-go.ts";
import { forbiddenFields, isEmptyValue } from "./forbidden-fields.ts";
import { withTls } from "./kubelet-base.ts";
import { kubeletConfiguration } from "./kubelet-fields.ts";
import { type LostField, unknownFields } from "./lost-fields.ts";
import { hasMembers } from "./map-items.ts";
import { mergeGo } from "./merge-go.ts";
import { judgeHopelessLists, kubeletApiVersion, kubeletKind } from "./validate-kubelet.ts";

/** Where the kubelet's settings are on machines of OpenShift, and on those of this suite. */
export const kubeletConfPath = "/etc/kubernetes/kubelet.conf";
/** Where kubeadm has them; kubelet.conf is the kubelet's kubeconfig there. */
const plainKubeletConfPath = kubeadmKubeletPath;
/** Both. */
export const kubeletConfPaths: readonly string[] = [kubeletConfPath, plainKubeletConfPath];
export const nodeSizingPath = "/etc/node-sizing-enabled.env";
export const kubeletLoggingPath = "/etc/systemd/system/kubelet.service.d/20-logging.conf";

const settingsPath = "spec.kubeletConfig.";

export type KubeletFiles =
  | {
      readonly verdict: "files";
      readonly files: readonly GeneratedFile[];
      /** What kubelet.conf says. */
      readonly config: Decoded;
      /** Fields that change nothing: empty values over others, and those that a kubelet or these machines do not read. */
      readonly withoutEffect: readonly LostField[];
    }
  | { readonly verdict: "refused"; readonly problems: readonly FieldProblem[] };

/** A `spec.kubeletConfig` as the kubelet decodes it. */
export interface ReadKubeletConfig {
  /** Without feature gates, which are the cluster's, and without the lists of {@link ofLists}. */
  readonly value: Decoded;
  /** Problems of lists that are refused whatever the rest says: see {@link judgeHopelessLists}. */
  readonly ofLists: readonly FieldProblem[];
  /** Whether it sets feature gates. */
  readonly hasGates: boolean;
  readonly problems: readonly FieldProblem[];
  /** Paths below `spec.kubeletConfig` that a kubelet does not know: the first ones, sorted. */
  readonly unknown: readonly string[];
  /** How many more there are. */
  readonly moreUnknown: number;
}

/** Decodes a `spec.kubeletConfig`; kind and version may be absent. */
export function decodeKubeletConfig({ spec }: Pick<KubeletConfig, "spec">): ReadKubeletConfig {
  const settings = (spec.kubeletConfig ?? {}) as Decoded;
  const { value, problems, unknown, moreUnknown } = decodeGo(withoutGates(settings), kubeletConfiguration);
  const inObject = (problem: FieldProblem) => ({ ...problem, path: `${settingsPath}${problem.path}` });
  const { value: kept, problems: ofLists } = problems.length > 0 ? { value, problems: [] } : judgeHopelessLists(value);
  return {
    value: { apiVersion: kubeletApiVersion, kind: kubeletKind, ...kept },
    ofLists: ofLists.map(inObject),
    problems: problems.map(inObject),
    unknown,
    moreUnknown,
    hasGates: !isEmptyValue(settings["featureGates"]),
  };
}

/** An object may have a hundred thousand unknown fields, which are not copied without need. */
function withoutGates(settings: Decoded): Decoded {
  if (settings["featureGates"] === undefined) return settings;
  const { featureGates: _, ...own } = settings;
  return own;
}

/**
 * What a KubeletConfig writes on the machines of one pool.
 *
 * @param base what every generated kubelet.conf of the pool begins with; see `kubeletBase`.
 * @param pools all pools that the object selects.
 * @param path of the file on the pool's machines, one of {@link kubeletConfPaths}.
 * @param own the object's settings, where the caller has decoded them already.
 */
export function kubeletFiles(
  object: Pick<KubeletConfig, "spec">,
  base: Decoded,
  pools: readonly string[],
  path: string = kubeletConfPath,
  own: ReadKubeletConfig = decodeKubeletConfig(object),
): KubeletFiles {
  const { spec } = object;
  const problems = [...own.problems, ...forbiddenFields(object, own, pools)];
  if (problems.length > 0) return { verdict: "refused", problems };
  const tls = spec.tlsSecurityProfile === undefined ? {} : withTls(kubeletTlsOf(spec.tlsSecurityProfile));
  const merged = mergeGo({ ...base, ...tls }, own.value, kubeletConfiguration);
  // Nothing on a plain machine reads the other files.
  const isPlain = path === plainKubeletConfPath;
  const { config, sizing } = withSpecialCases(merged.value, object, isPlain);
  const textOf = (name: string) => (config[name] ?? "") as string;
  const [cgroup, system] = [textOf("systemReservedCgroup"), textOf("systemCgroups")];
  if (cgroup !== "" && system !== "" && cgroup !== system)
    return {
      verdict: "refused",
      problems: [
        {
          path: "spec.kubeletConfig.systemReservedCgroup",
          reason: `is ${cgroup} together with the base, and must equal systemCgroups, ${system}`,
        },
      ],
    };
  return {
    verdict: "files",
    config,
    withoutEffect: [
      ...unknownFields(own, kubeletConfiguration, settingsPath),
      ...merged.withoutEffect.map((field) => ({ ...field, path: `${settingsPath}${field.path}` })),
      ...(isPlain ? onlyOfUnits.filter((field) => spec[field] !== undefined).map(unreadOnPlain) : []),
    ],
    files: [
      ...(sizing === undefined ? [] : [{ path: nodeSizingPath, mode: 0o644, text: sizingText(sizing) }]),
      ...(spec.logLevel === undefined || isPlain
        ? []
        : [
            {
              path: kubeletLoggingPath,
              mode: 0o644,
              text: `[Service]\nEnvironment="KUBELET_LOG_LEVEL=${spec.logLevel}"\n`,
            },
          ]),
      {
        path,
        mode: 0o644,
        // Who only judges an object does not pay for its text.
        get text() {
          return kubeletConfText(config);
        },
      },
    ],
  };
}

/** Fields that become environment of OpenShift's kubelet.service. */
const onlyOfUnits = ["logLevel", "autoSizingReserved"] as const;

const unreadOnPlain = (field: (typeof onlyOfUnits)[number]): LostField => ({
  path: `spec.${field}`,
  reason: "changes nothing: only the kubelet.service of OpenShift's machines reads it",
  remedy:
    field === "logLevel"
      ? "take it out, and set kubeletConfig.logging.verbosity"
      : "take it out, and set kubeletConfig.systemReserved",
});

/** The file, byte for byte as the reference writes such a configuration. */
export function kubeletConfText(config: Decoded): string {
  const yaml = yamlForHash(encodeGo(config, kubeletConfiguration));
  if (yaml.verdict === "refused") throw new Error(`bug: a kubelet.conf that cannot be written: ${yaml.reason}`);
  return yaml.text;
}

interface Sizing {
  readonly isAutomatic: boolean;
  readonly memory: string;
  readonly cpu: string;
  readonly storage: string;
}
const defaults = { memory: "1Gi", cpu: "500m", storage: "1Gi" };

const sizingText = ({ isAutomatic, memory, cpu, storage }: Sizing): string =>
  `NODE_SIZING_ENABLED=${isAutomatic}\nSYSTEM_RESERVED_MEMORY=${memory}\nSYSTEM_RESERVED_CPU=${cpu}\nSYSTEM_RESERVED_ES=${storage}\n`;

/** Settings that the merge alone would lose, or that another file holds. */
function withSpecialCases(
  merged: Decoded,
  { spec }: Pick<KubeletConfig, "spec">,
  isPlain: boolean,
): { readonly config: Decoded; readonly sizing: Sizing | undefined } {
  const raw = (spec.kubeletConfig ?? {}) as Decoded;
  const config: Record<string, unknown> = { ...merged };
  if (raw["protectKernelDefaults"] === false) config["protectKernelDefaults"] = false;
  const enforced = raw["enforceNodeAllocatable"] as readonly (string | null)[] | null | undefined;
  if (
    (enforced ?? []).length > 0 &&
    !enforced?.some((one) => one?.startsWith("system-reserved")) &&
    isAbsent(raw["systemReservedCgroup"])
  )
    delete config["systemReservedCgroup"];
  if (!isAbsent(config["reservedSystemCPUs"])) {
    delete config["systemReservedCgroup"];
    const all = ((config["enforceNodeAllocatable"] ?? []) as readonly string[]).filter(
      (one) => !one.startsWith("system-reserved"),
    );
    config["enforceNodeAllocatable"] = all.includes("pods") ? all : [...all, "pods"];
  }
  if (isPlain) return { config, sizing: undefined };
  const reserved = (raw["systemReserved"] ?? {}) as Decoded;
  const sizing = sized.some((resource) => Object.hasOwn(reserved, resource)) ? takeSizing(config) : undefined;
  if (sizing !== undefined || spec.autoSizingReserved === undefined) return { config, sizing };
  return { config, sizing: { isAutomatic: spec.autoSizingReserved, ...defaults } };
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === "";

/** Resources that the machine itself reserves for the system, as the file for its sizing says. */
const sized: readonly string[] = ["memory", "cpu", "ephemeral-storage"];

/** Moves these resources out of the configuration. */
function takeSizing(config: Record<string, unknown>): Sizing {
  const reserved = (config["systemReserved"] ?? {}) as Readonly<Record<string, string>>;
  const others = { ...reserved };
  for (const resource of sized) delete others[resource];
  if (hasMembers(others)) config["systemReserved"] = others;
  else delete config["systemReserved"];
  return {
    isAutomatic: false,
    memory: reserved["memory"] || defaults.memory,
    cpu: reserved["cpu"] || defaults.cpu,
    storage: reserved["ephemeral-storage"] || defaults.storage,
  };
}
