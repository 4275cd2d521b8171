import { openshift } from "../../api/foreign/openshift.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, objects as names } from "../../api/names.ts";
import { type KubeObject, timestampOf } from "../../api/schema/object.ts";
import { type ObjectsOfCluster, clusterSettings, kubeletBaseOf } from "../kubelet/cluster-settings.ts";
import { decideDefaults, defaultsOwners } from "../kubelet/decide-defaults.ts";
import { isCurrent } from "../render/generated-config.ts";
import { listText } from "../text/list-text.ts";
import { type Explanation, type Remedies, section } from "./explanation.ts";

type State = Pick<Explanation, "reason" | "headline"> & Partial<Remedies>;

/** What the settings of a cluster are laid over. */
export interface AroundSettings {
  readonly pools: readonly { readonly metadata: { readonly name: string } }[];
  readonly machineConfigs: readonly MachineConfig[];
}

/** What an object makes for pools, and what keeps it from that. */
interface Made {
  /** Names of the MachineConfigs that are made of it, with whether they are as they should be. */
  readonly configs: readonly { readonly name: string; readonly isCurrent: boolean }[];
  readonly problems: readonly string[];
  /** Pools without a base configuration. */
  readonly waiting: readonly string[];
}

/**
 * What the cluster's own FeatureGate, config Node or APIServer does to kubelets, and if nothing, why.
 *
 * @param now milliseconds since the epoch.
 */
export function explainClusterSetting(
  object: KubeObject,
  cluster: ObjectsOfCluster,
  around: AroundSettings,
  now: number,
): Explanation {
  const made = madeOf(object, cluster, around);
  return {
    subject: `${subjectKind(object)}/${object.metadata.name}`,
    asOf: timestampOf(now),
    freshness: "Fresh",
    next: [],
    todo: [],
    ...stateOf(object, made),
    sections: [
      ...section("Settings of kubelets", settingsOf(object, cluster)),
      ...section(
        "MachineConfigs made of it",
        made.configs.map(({ name }) => `mc/${name}`),
      ),
      ...section("Left out", leftOut(object, cluster)),
    ],
  };
}

/** `node` alone means a machine: the config Node is named with its group, as kubectl takes it. */
const subjectKind = ({ kind }: KubeObject): string =>
  kind === openshift.ConfigNode.kind ? configNodeWords[0] : kind.toLowerCase();

/** How the config Node is named among kinds of which another one is Node. */
export const configNodeWords = ["nodes.config", "nodes.config.openshift.io"] as const;

function madeOf(object: KubeObject, cluster: ObjectsOfCluster, { pools, machineConfigs }: AroundSettings): Made {
  const byName = new Map(machineConfigs.map((config) => [config.metadata.name, config]));
  const configOf = (name: string) => byName.get(name);
  const settings = clusterSettings(cluster);
  const generatorVersion =
    byName.get("01-worker-kubelet")?.metadata.annotations?.[annotations.generatedByController] ?? "";
  const configs: Made["configs"][number][] = [];
  const problems = new Set<string>();
  const waiting: string[] = [];
  for (const { name: pool } of pools.map(({ metadata }) => metadata)) {
    const base = kubeletBaseOf(pool, settings, configOf);
    if (base === undefined) {
      waiting.push(pool);
      continue;
    }
    const decision = decideDefaults({ pool, objects: cluster, settings, base, generatorVersion });
    const owners = defaultsOwners(pool, cluster);
    for (const config of decision.configs)
      if (owners.get(config.metadata.name) === object)
        configs.push({ name: config.metadata.name, isCurrent: isCurrent(configOf(config.metadata.name), config) });
    for (const problem of decision.problems)
      if (problem.object === object) problems.add(`${problem.path} ${problem.reason}`);
  }
  return { configs, problems: [...problems], waiting };
}

function stateOf(object: KubeObject, { configs, problems, waiting }: Made): State {
  const { kind, metadata } = object;
  const name = `${kind}/${metadata.name}`;
  const edit = `kubectl edit ${subjectKind(object)} ${metadata.name}`;
  if (metadata.name !== names.clusterSingleton)
    return {
      reason: "NotRead",
      headline: `${name} is not read: the only one is named ${names.clusterSingleton}.`,
      todo: [`put its settings into ${kind}/${names.clusterSingleton}`],
    };
  if (problems.length > 0)
    return {
      reason: "Invalid",
      headline: `${name} is refused, and machines keep what they have: ${problems.join("; ")}.`,
      todo: [`correct the named field: ${edit}`],
    };
  if (waiting.length > 0)
    return {
      reason: "BaseConfigMissing",
      headline: `${name} waits for the base configuration of pool ${waiting.join(", ")}.`,
      next: ["the controller makes it; mco explain controllerconfig/machine-config-controller says how far it is"],
    };
  const behind = configs.filter((config) => !config.isCurrent).map((config) => config.name);
  if (behind.length > 0)
    return {
      reason: "NotWritten",
      headline: `${name} is not yet in ${behind.join(", ")}.`,
      next: ["the controller writes them by itself; mco explain clusteroperator says whether it works"],
    };
  if (configs.length === 0)
    return {
      reason: "NothingToWrite",
      headline:
        kind === openshift.APIServer.kind
          ? `${name} makes no MachineConfig of its own: its TLS profile is in those of the FeatureGate, the config Node and KubeletConfigs.`
          : `${name} makes no MachineConfig: the cluster has no pool.`,
    };
  return {
    reason: "AsWritten",
    headline: `${name} is in ${configs.map((config) => config.name).join(", ")}, and so on the machines once these have rolled out.`,
  };
}

const shownGates = 20;

/** What kubelets get of an object, in words. */
function settingsOf(object: KubeObject, cluster: ObjectsOfCluster): readonly string[] {
  const { gates, tls, latencyProfile, cgroupMode } = clusterSettings(cluster);
  const list = (word: string, of: readonly string[] = []) =>
    of.length === 0 ? [] : [`${word}: ${listText([...of].sort(), shownGates)}`];
  if (object === cluster.featureGate) return [...list("gates on", gates.enabled), ...list("gates off", gates.disabled)];
  if (object === cluster.apiServer)
    return [`minimum TLS version ${tls.minVersion}`, ...list("ciphers", tls.cipherSuites)];
  if (object !== cluster.configNode) return [];
  return [
    `cgroup mode ${(cgroupMode ?? "") === "" ? "v2, as none is named" : (cgroupMode ?? "")}`,
    `worker latency profile ${(latencyProfile ?? "") === "" ? "not named: kubelets keep their own" : (latencyProfile ?? "")}`,
  ];
}

const leftOut = (object: KubeObject, cluster: ObjectsOfCluster): readonly string[] =>
  object === cluster.featureGate ? clusterSettings(cluster).gateProblems : [];
