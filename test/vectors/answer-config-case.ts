import type { ImagePolicySpec, RegistrySources } from "../../src/api/foreign/openshift.ts";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";
import type { ContainerRuntimeConfig } from "../../src/api/kinds/container-runtime-config.ts";
import type { KubeletConfig } from "../../src/api/kinds/kubelet-config.ts";
import type { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { annotations, labels } from "../../src/api/names.ts";
import type { KubeObject, LabelSelector } from "../../src/api/schema/object.ts";
import { kubeletTlsOf, type TlsSecurityProfile } from "../../src/core/certificates/tls-profile.ts";
import { cgroupArguments } from "../../src/core/kubelet/cgroup-arguments.ts";
import { type GeneratedKind, generatedName } from "../../src/core/kubelet/generated-names.ts";
import { type KnownGates, kubeletBase } from "../../src/core/kubelet/kubelet-base.ts";
import { kubeletConfPath, kubeletConfText, kubeletFiles } from "../../src/core/kubelet/kubelet-config.ts";
import type { GeneratedFile } from "../../src/core/render/generated-config.ts";
import { selectPools } from "../../src/core/kubelet/select-pools.ts";
import { judgeKubeletConfiguration } from "../../src/core/kubelet/validate-kubelet.ts";
import { runtimeFiles } from "../../src/core/runtime/container-runtime-config.ts";
import type { MirrorRule, SourcePolicy } from "../../src/core/runtime/merge-mirrors.ts";
import {
  type RegistriesInputs,
  ignoredBlocks,
  policyConflicts,
  registriesConfig,
} from "../../src/core/runtime/registries-config.ts";
import { lenientKubernetesYaml } from "../../src/core/text/kubernetes-yaml.ts";

type Selecting = KubeObject & { readonly spec: { readonly machineConfigPoolSelector?: LabelSelector } };

interface Names<T> {
  readonly pools: readonly MachineConfigPool[];
  readonly others?: readonly Selecting[];
  readonly existing?: readonly string[];
  readonly config?: T;
}

export interface KubeletCase extends Names<KubeletConfig> {
  readonly id: string;
  readonly op: "kubelet";
  readonly from: "kubelet" | "features" | "node";
  readonly base: string;
  readonly features: KnownGates;
  readonly node?: { readonly spec?: { readonly workerLatencyProfile?: string; readonly cgroupMode?: string } };
  readonly apiServer?: { readonly spec?: { readonly tlsSecurityProfile?: TlsSecurityProfile } };
}

export interface RuntimeCase extends Names<ContainerRuntimeConfig> {
  readonly id: string;
  readonly op: "crio";
  readonly storage: string;
  readonly features: KnownGates;
}

interface Rule {
  readonly source: string;
  readonly mirrors?: readonly string[];
  readonly mirrorSourcePolicy?: string;
}
type MirrorSet = KubeObject & { readonly spec: Readonly<Record<string, readonly Rule[]>> };
type Policy = KubeObject & { readonly spec: ImagePolicySpec };

export interface RegistriesCase {
  readonly id: string;
  readonly op: "registries";
  readonly pools: readonly MachineConfigPool[];
  readonly registries: string;
  readonly policy: string;
  readonly image?: { readonly spec?: { readonly registrySources?: RegistrySources } };
  readonly releaseImage: string;
  readonly idms?: readonly MirrorSet[];
  readonly itms?: readonly MirrorSet[];
  readonly icsp?: readonly MirrorSet[];
  readonly clusterImagePolicies?: readonly Policy[];
  readonly imagePolicies?: readonly Policy[];
  readonly bootstrap?: boolean;
}

export type ValidationCase = { readonly id: string; readonly op: "validate-kubelet" } & (
  | { readonly config: unknown }
  | { readonly text: string }
);

export type ConfigCase = KubeletCase | RuntimeCase | RegistriesCase | ValidationCase;

interface AnsweredConfig {
  readonly Name: string;
  readonly Role: string;
  readonly KernelArguments?: readonly string[];
  readonly Files: readonly object[];
}

/** One line of config-expected.jsonl. */
export interface ConfigAnswer {
  readonly ID: string;
  readonly Op: string;
  readonly Error?: string;
  readonly MachineConfigs?: readonly AnsweredConfig[];
  readonly Suffix?: string;
  readonly Finalizers?: readonly string[];
  readonly Free?: boolean;
  readonly Ignored?: readonly string[];
  readonly Conflicts?: Readonly<Record<string, readonly string[]>>;
  readonly Unknown?: readonly string[];
}

/** This suite's answer to a configuration case. */
export function answerConfigCase(one: ConfigCase): ConfigAnswer {
  const head = { ID: one.id, Op: one.op };
  try {
    switch (one.op) {
      case "validate-kubelet":
        return { ...head, ...validated(one) };
      case "kubelet":
        return { ...head, ...(one.from === "kubelet" ? kubeletConfigs(one) : ofEveryPool(one)) };
      case "crio":
        return { ...head, ...runtimeConfigs(one) };
      case "registries":
        return { ...head, ...registries(one) };
    }
  } catch (error) {
    if (error instanceof Refused) return { ...head, Error: error.message };
    throw error;
  }
}

class Refused extends Error {}
const refuse = (problems: readonly { readonly path: string; readonly reason: string }[]): never => {
  throw new Refused(problems.map(({ path, reason }) => `${path} ${reason}`).join("; "));
};

function validated(one: ValidationCase): Partial<ConfigAnswer> {
  const read = "text" in one ? lenientKubernetesYaml(one.text) : { value: one.config };
  if (read === undefined) return refuse([{ path: "", reason: "is no YAML that Kubernetes reads" }]);
  const { problems, unknown } = judgeKubeletConfiguration(read.value);
  if (problems.length > 0) return refuse(problems);
  return unknown.length === 0 ? {} : { Unknown: unknown };
}

function baseOf({ base, apiServer, features, node }: KubeletCase, pool: string) {
  const reading = kubeletBase({
    text: base,
    tls: kubeletTlsOf(apiServer?.spec?.tlsSecurityProfile),
    gates: features,
    latencyProfile: node?.spec?.workerLatencyProfile,
    pool,
  });
  return reading.verdict === "read" ? reading.config : refuse([{ path: "base", reason: reason(reading) }]);
}
const reason = (refused: { readonly reason: string }) => refused.reason;

const nameOf = ({ metadata }: KubeObject) => metadata.name;

function ofEveryPool(one: KubeletCase): Partial<ConfigAnswer> {
  const made = one.pools.map(nameOf).map((pool): AnsweredConfig => {
    const text = kubeletConfText(baseOf(one, pool));
    const files = [answered({ path: kubeletConfPath, mode: 0o644, text })];
    if (one.from === "features") return { Name: `98-${pool}-generated-kubelet`, Role: pool, Files: files };
    const cgroups = cgroupArguments(one.node?.spec?.cgroupMode, pool);
    if (cgroups.verdict === "refused") return refuse([cgroups.problem]);
    const { kernelArguments } = cgroups;
    return {
      Name: `97-${pool}-generated-kubelet`,
      Role: pool,
      ...(kernelArguments.length === 0 ? {} : { KernelArguments: kernelArguments }),
      Files: files,
    };
  });
  return { MachineConfigs: byName(made) };
}

function kubeletConfigs(one: KubeletCase): Partial<ConfigAnswer> {
  const { config } = one;
  if (config === undefined) throw new Error(`${one.id} has no KubeletConfig`);
  const pools = selectedBy(config, one.pools);
  const all = pools.map(nameOf);
  return generated(one, config, "kubelet", pools, (pool) => {
    const result = kubeletFiles(config, baseOf(one, pool), all);
    return result.verdict === "files" ? result.files : refuse(result.problems);
  });
}

function runtimeConfigs(one: RuntimeCase): Partial<ConfigAnswer> {
  const { config, storage, features } = one;
  if (config === undefined) throw new Error(`${one.id} has no ContainerRuntimeConfig`);
  const hasStores = features.enabled?.includes("AdditionalStorageConfig") === true;
  const result = runtimeFiles(config, { storage, hasStores });
  const files = result.verdict === "files" ? result.files : refuse(result.problems);
  return generated(one, config, "containerruntime", selectedBy(config, one.pools), () => files);
}

function selectedBy({ spec }: Selecting, all: readonly MachineConfigPool[]): readonly MachineConfigPool[] {
  const selection = selectPools(spec.machineConfigPoolSelector, all);
  return selection.verdict === "selected" ? selection.pools : refuse([selection.problem]);
}

function generated(
  { others = [], existing = [] }: Names<unknown>,
  config: Selecting,
  kind: GeneratedKind,
  pools: readonly MachineConfigPool[],
  filesOf: (pool: string) => readonly GeneratedFile[],
): Partial<ConfigAnswer> {
  const made = pools.map((pool): AnsweredConfig => {
    const selecting = others.filter(({ spec }) => {
      const selection = selectPools(spec.machineConfigPoolSelector, [pool]);
      return selection.verdict === "selected";
    });
    const name = nameOf(pool);
    const Name = generatedName({
      kind,
      pool: name,
      config,
      others: selecting,
      exists: (one) => existing.includes(one),
    });
    return { Name, Role: name, Files: filesOf(name).map(answered) };
  });
  const plain = `99-${made.at(-1)?.Role ?? ""}-generated-${kind}`;
  const suffix =
    config.metadata.annotations?.[annotations.configNameSuffix] ?? made.at(-1)?.Name.slice(plain.length + 1);
  return {
    MachineConfigs: byName(made),
    Suffix: suffix ?? "",
    Finalizers: [...new Set([...(config.metadata.finalizers ?? []), ...made.map(({ Name }) => Name)])],
  };
}

function registries(one: RegistriesCase): Partial<ConfigAnswer> {
  const isBuiltIn = ({ metadata }: MachineConfigPool) => metadata.labels?.[labels.builtInPool] !== undefined;
  const pools = one.bootstrap === true ? one.pools : one.pools.filter(isBuiltIn);
  if (one.image === undefined && one.bootstrap !== true) return { MachineConfigs: [], Ignored: [], Conflicts: {} };
  const inputs: RegistriesInputs = {
    registries: one.registries,
    policy: one.policy,
    sources: one.image?.spec?.registrySources ?? {},
    releaseImage: one.releaseImage,
    rules: [
      ...rulesOf(one.idms, "ImageDigestMirrorSet", "imageDigestMirrors", "digest"),
      ...rulesOf(one.icsp, "ImageContentSourcePolicy", "repositoryDigestMirrors", "digest"),
      ...rulesOf(one.itms, "ImageTagMirrorSet", "imageTagMirrors", "tag"),
    ],
    policies: [...(one.clusterImagePolicies ?? []), ...(one.imagePolicies ?? [])].map(({ metadata, spec }) => ({
      object:
        metadata.namespace === undefined
          ? `ClusterImagePolicy/${metadata.name}`
          : `ImagePolicy/${metadata.namespace}/${metadata.name}`,
      namespace: metadata.namespace ?? "",
      spec,
    })),
  };
  const result = pools.length === 0 ? { verdict: "files" as const, files: [] } : registriesConfig(inputs);
  if (result.verdict === "refused") return refuse(result.problems);
  const made = pools.map(nameOf).map((pool) => ({
    Name: `99-${pool}-generated-registries`,
    Role: pool,
    Files: result.files.map(answered),
  }));
  return {
    MachineConfigs: byName(made),
    Ignored: ignoredBlocks(inputs),
    Conflicts: one.bootstrap === true ? {} : Object.fromEntries(policyConflicts(inputs.policies)),
  };
}

function rulesOf(
  sets: readonly MirrorSet[] | undefined,
  kind: string,
  field: string,
  of: MirrorRule["of"],
): readonly MirrorRule[] {
  return (sets ?? []).flatMap(({ metadata, spec }) =>
    (spec[field] ?? []).map(({ source, mirrors = [], mirrorSourcePolicy }, i) => ({
      object: `${kind}/${metadata.name}`,
      path: `spec.${field}[${i}]`,
      of,
      source,
      mirrors,
      policy: mirrorSourcePolicy === "" ? undefined : (mirrorSourcePolicy as SourcePolicy | undefined),
    })),
  );
}

const byName = (made: readonly AnsweredConfig[]) => made.toSorted((one, other) => (one.Name < other.Name ? -1 : 1));

const isToml = (path: string) => path.startsWith("/etc/containers/") || path.startsWith("/etc/crio/crio.conf.d/");

function answered({ path, mode, text }: GeneratedFile): object {
  const head = { Path: path, Mode: mode, Overwrite: true };
  if (path.endsWith(".json")) return { ...head, Value: JSON.parse(text) as unknown };
  if (path.endsWith(".yaml")) return { ...head, Value: parseYaml(text) as unknown };
  if (path === kubeletConfPath) return { ...head, Value: lenientKubernetesYaml(text)?.value };
  return isToml(path) ? { ...head, Value: parseToml(text) } : { ...head, Text: text };
}

/** Durations that the kubelet does not take for absent when they are 0. */
const realDurations = new Set(["cpuCFSQuotaPeriod", "containerLogMonitorInterval", "maxContainerRestartPeriod"]);

/** Rewrites an answer so that answers with the same meaning are equal: see the comparison rules in README.md. */
export function comparableConfig(answer: ConfigAnswer, isFree: boolean): unknown {
  const {
    ID,
    Op,
    Error: error,
    MachineConfigs = [],
    Suffix,
    Finalizers,
    Ignored = [],
    Conflicts = {},
    Unknown,
  } = answer;
  if (error !== undefined) return { ID, Op, Error: "refused" };
  const configs = MachineConfigs.map(({ Name, Role, KernelArguments, Files }) => ({
    Name: isFree ? Name.replace(/^(99-.*-generated-(?:kubelet|containerruntime)).*$/, "$1") : Name,
    Role,
    KernelArguments: KernelArguments ?? [],
    Files: (Files as readonly AnsweredFile[])
      .map((file) => ({ ...file, ...(file.Value === undefined ? {} : { Value: meaning(file.Path, file.Value) }) }))
      .toSorted((one, other) => (one.Path < other.Path ? -1 : 1)),
  }));
  return {
    ID,
    Op,
    MachineConfigs: configs.toSorted((one, other) => (one.Name < other.Name ? -1 : 1)),
    ...(isFree ? {} : { Suffix, Finalizers: Finalizers?.toSorted() }),
    Ignored: Ignored.toSorted(),
    Conflicts,
    Unknown,
  };
}

interface AnsweredFile {
  readonly Path: string;
  readonly Value?: unknown;
}

/** A file's value without what nobody has set. */
function meaning(path: string, value: unknown): unknown {
  const isKubelet = path === kubeletConfPath;
  const isStorage = path.endsWith("/storage.conf");
  const isPolicy = path.endsWith(".json");
  const isRegistries = path.includes("registries.conf");
  const isUnset = (name: string, one: unknown, parent: string): boolean => {
    if (one === null || (isObject(one) && Object.keys(one).length === 0)) return !isPolicy || name === "transports";
    if (isKubelet && one === "0s") return !realDurations.has(name);
    if (isKubelet && name === "containerRuntimeEndpoint") return one === "";
    if (isKubelet && (parent === "logging" || name === "infoBufferSize")) return one === 0 || one === "0";
    if (isStorage || isRegistries) return one === "" || one === false || (isStorage && one === 0);
    return false;
  };
  const without = (one: unknown, parent: string, depth: number): unknown => {
    if (Array.isArray(one)) {
      const items = one.map((item) => without(item, parent, depth + 1));
      return isPolicy && depth === 3
        ? items.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
        : items;
    }
    if (!isObject(one)) return one;
    return Object.fromEntries(
      Object.entries(one)
        .map(([name, item]) => [name, without(item, name, depth + 1)] as const)
        .filter(([name, item]) => !isUnset(name, item, parent))
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    );
  };
  return without(value, "", 0);
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
