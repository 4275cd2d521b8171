import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, machineConfigNodeConditions as types, objects, poolConditions } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { healthReasons } from "../../api/books/report-table.ts";
import { defaultBuildSettings } from "../build/build-settings.ts";
import { type ImageTarget, imageTargetOf, imageText, isGiven, namedImage, stockTarget } from "../config/image-pair.ts";
import { machineOSConfigOf } from "../config/opt-in.ts";
import { type ConfigServerAccess, configServerAccess } from "../join/config-server.ts";
import { type Phase, isReady, phaseOf } from "../books/phase.ts";
import { configServerAuthority, withPort } from "../join/pointer-config.ts";
import { clipText } from "../text/clip-text.ts";
import { type PoolOfNode, poolOffers, poolOfNode } from "../pool/pool-of-node.ts";

export interface NodeStatus {
  readonly name: string;
  readonly pool: string;
  /** `Unassigned`: it is in no pool, and nothing manages it. */
  readonly phase: Phase | "Unassigned";
  readonly current: string;
  readonly desired: string;
  readonly ready: boolean;
  readonly cordoned: boolean;
  /** The current action, or the reason to wait; may be empty. */
  readonly reason: string;
  /** RFC 3339 of the last change of phase, as far as the conditions show it. */
  readonly since: string;
}

export interface PoolStatus {
  readonly name: string;
  readonly target: string;
  readonly paused: boolean;
  readonly updated: boolean;
  readonly updating: boolean;
  readonly degraded: boolean;
  readonly machines: number;
  readonly updatedMachines: number;
  readonly readyMachines: number;
  readonly unavailableMachines: number;
  readonly degradedMachines: number;
  /** Machines that have the pinned images of the pool; absent: it has none. */
  readonly pinned?: { readonly have: number; readonly of: number; readonly problem: string };
  readonly message: string;
}

/** The health of a part of the suite, from the state process. */
export interface PartStatus {
  /** `Operator`, `Controller`, `Daemons`, `Server`, `Builder`, `StateKeeping`, `BootstrapComplete`. */
  readonly part: string;
  readonly is: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
}

/** Where machines join. */
export interface ConfigServerStatus {
  /** Empty if unknown. */
  readonly url: string;
  readonly access: ConfigServerAccess;
}

export interface ClusterStatus {
  readonly configServer: ConfigServerStatus;
  /** Empty if unmanaged. */
  readonly parts: readonly PartStatus[];
  readonly operator:
    | {
        readonly version: string;
        readonly available: boolean;
        readonly progressing: boolean;
        readonly degraded: boolean;
        readonly message: string;
      }
    | undefined;
  readonly pools: readonly PoolStatus[];
  readonly nodes: readonly NodeStatus[];
  /** Kinds of OpenShift that settings of machines come from, and that the cluster lacks. It needs none of them. */
  readonly absentKinds: readonly string[];
}

export interface ClusterFacts {
  readonly pools: readonly MachineConfigPool[];
  readonly nodes: readonly Node[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly clusterOperators: readonly ClusterOperator[];
  readonly machineConfigurations?: readonly MachineConfiguration[];
  readonly controllerConfigs?: readonly ControllerConfig[];
  readonly machineOSConfigs?: readonly MachineOSConfig[];
  readonly machineOSBuilds?: readonly MachineOSBuild[];
  /** Milliseconds since the epoch: machines keep their images for a while after a MachineOSConfig is deleted. */
  readonly now: number;
  /** `host` or `host:port` of the config server if the cluster's objects do not contain it. */
  readonly configServerAddress?: string | undefined;
  /** As in the status; absent: it is not known which kinds the cluster has. */
  readonly absentKinds?: readonly string[];
}

function configServerOf({
  machineConfigurations = [],
  controllerConfigs = [],
  configServerAddress,
}: ClusterFacts): ConfigServerStatus {
  const machineConfiguration = machineConfigurations.find(
    ({ metadata }) => metadata.name === objects.machineConfiguration,
  );
  const controllerConfig = controllerConfigs.find(({ metadata }) => metadata.name === objects.controllerConfig);
  const authority =
    configServerAuthority({ controllerConfig, machineConfiguration }) ??
    (configServerAddress === undefined ? undefined : withPort(configServerAddress));
  return {
    url: authority === undefined ? "" : `https://${authority}`,
    access: configServerAccess(machineConfiguration).access,
  };
}

function partsOf(machineConfigurations: readonly MachineConfiguration[]): readonly PartStatus[] {
  const conditions = (machineConfigurations.find(({ metadata }) => metadata.name === objects.machineConfiguration)
    ?.status?.conditions ?? []) as readonly {
    readonly type: string;
    readonly status: string;
    readonly reason?: string;
    readonly message?: string;
  }[];
  return Object.keys(healthReasons).flatMap((type): readonly PartStatus[] => {
    const condition = conditions.find((each) => each.type === type);
    if (condition === undefined || type === "UpdateProgressing") return [];
    const is = condition.status === "True" || condition.status === "False" ? condition.status : "Unknown";
    return [
      { part: type.replace(/Healthy$/, ""), is, reason: condition.reason ?? "", message: condition.message ?? "" },
    ];
  });
}

/** Characters of an object's name. */
const longestName = 253;

/** The status of a cluster at a glance, from live objects. */
export function clusterStatus(facts: ClusterFacts): ClusterStatus {
  const byName = new Map(facts.machineConfigNodes.map((object) => [object.metadata.name, object]));
  const images = new Map(facts.pools.map((pool) => [pool.metadata.name, imageOf(pool, facts)]));
  return {
    configServer: configServerOf(facts),
    parts: partsOf(facts.machineConfigurations ?? []),
    operator: operatorOf(facts.clusterOperators),
    absentKinds: facts.absentKinds ?? [],
    pools: [...facts.pools].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)).map(poolStatusOf),
    nodes: [...facts.nodes]
      .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name, "en", { numeric: true }))
      .map((node) => nodeStatusOf(node, byName.get(node.metadata.name), facts.pools, images)),
  };
}

/** The image that the machines of a pool are to have, as the controller works it out. */
function imageOf(
  pool: MachineConfigPool,
  { machineOSConfigs = [], machineOSBuilds = [], now }: ClusterFacts,
): ImageTarget {
  const config = machineOSConfigOf(pool.metadata.name, machineOSConfigs);
  const builds = machineOSBuilds.filter(({ spec }) => spec.machineOSConfig.name === config?.metadata.name);
  return imageTargetOf(pool, { config, builds, graceMs: defaultBuildSettings.optOutGraceMs }, now);
}

function nodeStatusOf(
  node: Node,
  machineConfigNode: MachineConfigNode | undefined,
  pools: readonly MachineConfigPool[],
  images: ReadonlyMap<string, ImageTarget>,
): NodeStatus {
  const has = node.metadata.annotations ?? {};
  const member = poolOfNode(node, pools);
  const pool = member.verdict === "member" ? member.pool : "";
  const target = pools.find(({ metadata }) => metadata.name === pool)?.spec.configuration?.name;
  const own = phaseOf(node, machineConfigNode);
  // A machine that has its requested target may still wait for its turn.
  const image = images.get(pool) ?? stockTarget;
  const given = { desired: has[annotations.desiredConfig] ?? "", desiredImage: imageText(namedImage(has, "desired")) };
  const isBehind = target !== undefined && !isGiven(given, target, image);
  const phase = member.verdict !== "member" ? "Unassigned" : own === "Updated" && isBehind ? "NeedsUpdate" : own;
  const conditions = machineConfigNode?.status?.conditions ?? [];
  return {
    name: node.metadata.name,
    pool,
    phase,
    // Its kubelet writes the annotations: no name of an object is longer.
    current: clipText(has[annotations.currentConfig] ?? "", longestName),
    desired: clipText(has[annotations.desiredConfig] ?? "", longestName),
    ready: isReady(node),
    cordoned: node.spec?.unschedulable === true,
    reason:
      member.verdict !== "member"
        ? reasonOfUnassigned(member, node, pools)
        : phase === "NeedsUpdate" && own === "Updated"
          ? (image.awaits?.message ?? "")
          : reasonOf(own, node, machineConfigNode),
    since:
      conditions
        .map(({ lastTransitionTime }) => lastTransitionTime)
        .sort()
        .at(-1) ?? "",
  };
}

function reasonOfUnassigned(
  member: Exclude<PoolOfNode, { verdict: "member" }>,
  node: Node,
  pools: readonly MachineConfigPool[],
): string {
  if (member.verdict === "ambiguous")
    return `selected by several pools (${member.pools.join(", ")}): it belongs to none`;
  const offers = poolOffers(node, pools);
  return offers.length === 0
    ? member.reason
    : `${member.reason}; what puts it into one: mco explain node/${node.metadata.name}`;
}

/** Why a machine is in a phase, if that needs an explanation. */
function reasonOf(phase: Phase, node: Node, machineConfigNode: MachineConfigNode | undefined): string {
  const conditions = machineConfigNode?.status?.conditions ?? [];
  switch (phase) {
    case "Lost":
      return conditionOf(node.status?.conditions, "Ready")?.message ?? "the kubelet does not report";
    case "Degraded":
    case "Unreconcilable":
      return node.metadata.annotations?.[annotations.reason] ?? "";
    case "Draining":
      return conditionOf(conditions, types.drained)?.message ?? "";
    case "Rebooting":
      return conditionOf(conditions, types.rebootedNode)?.message ?? "";
    case "Joining":
      return "no configuration applied yet";
    default:
      return "";
  }
}

function poolStatusOf({ metadata, status, spec }: MachineConfigPool): PoolStatus {
  const is = (type: string) =>
    conditionOf(status?.conditions as { type: string; status?: string; message?: string }[] | undefined, type);
  const speaking = ["Degraded", "Updating", "Updated"]
    .map(is)
    .find((condition) => condition?.status === "True" && condition.message !== "");
  return {
    name: metadata.name,
    target: spec.configuration?.name ?? "",
    paused: spec.paused === true,
    updated: is("Updated")?.status === "True",
    updating: is("Updating")?.status === "True",
    degraded: is("Degraded")?.status === "True",
    machines: status?.machineCount ?? 0,
    updatedMachines: status?.updatedMachineCount ?? 0,
    readyMachines: status?.readyMachineCount ?? 0,
    unavailableMachines: status?.unavailableMachineCount ?? 0,
    degradedMachines: status?.degradedMachineCount ?? 0,
    ...pinnedOf(status, is(poolConditions.pinnedImageSetsDegraded), spec.pinnedImageSets ?? []),
    message: speaking?.message ?? is("Updating")?.message ?? "",
  };
}

/** How far the machines of a pool are with its pinned images; nothing where it has none and nothing is wrong. */
function pinnedOf(
  status: MachineConfigPool["status"],
  condition: { readonly status?: string; readonly message?: string } | undefined,
  sets: readonly unknown[],
): Pick<PoolStatus, "pinned"> {
  const counts = status?.poolSynchronizersStatus?.find(({ poolSynchronizerType: type }) => type === "PinnedImageSets");
  const problem = condition?.status === "True" ? (condition.message ?? "") : "";
  if (sets.length === 0 && problem === "") return {};
  return { pinned: { have: counts?.updatedMachineCount ?? 0, of: counts?.machineCount ?? 0, problem } };
}

function operatorOf(operators: ClusterFacts["clusterOperators"]): ClusterStatus["operator"] {
  const operator = operators.find(({ metadata }) => metadata.name === objects.clusterOperator);
  if (operator === undefined) return undefined;
  const is = (type: string) => operator.status?.conditions?.find((condition) => condition.type === type);
  const degraded = is("Degraded")?.status === "True";
  return {
    version: operator.status?.versions?.find(({ name }) => name === "operator")?.version ?? "",
    available: is("Available")?.status === "True",
    progressing: is("Progressing")?.status === "True",
    degraded,
    message: is(degraded ? "Degraded" : "Progressing")?.message ?? "",
  };
}

/** Whether every pool has its target, and each of `expected` machines is in one, ready. */
export function allPoolsUpdated({ operator, pools, nodes }: ClusterStatus, expected: number): boolean {
  return (
    operator?.available === true &&
    pools.length > 0 &&
    pools.every(isUpdated) &&
    nodes.length >= expected &&
    nodes.every((node) => isInPlace(node, pools))
  );
}

/** A pool updates its counts shortly after the last of its machines has reported that it is done. */
const isUpdated = ({ updated, target, machines, updatedMachines, readyMachines }: PoolStatus) =>
  updated && target !== "" && updatedMachines === machines && readyMachines === machines;

const isInPlace = ({ phase, ready, cordoned, pool, current }: NodeStatus, pools: readonly PoolStatus[]) =>
  phase === "Updated" && ready && !cordoned && pools.some(({ name, target }) => name === pool && target === current);
