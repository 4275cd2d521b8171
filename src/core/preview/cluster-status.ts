import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, machineConfigNodeConditions as types, objects } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { healthReasons } from "../../api/books/report-table.ts";
import { type ConfigServerAccess, configServerAccess } from "../join/config-server.ts";
import { type Phase, isReady, phaseOf } from "../books/phase.ts";
import { configServerAuthority, withPort } from "../join/pointer-config.ts";
import { poolOfNode } from "../pool/pool-of-node.ts";

export interface NodeStatus {
  readonly name: string;
  readonly pool: string;
  readonly phase: Phase;
  readonly current: string;
  readonly desired: string;
  readonly ready: boolean;
  readonly cordoned: boolean;
  /** The current action, or the reason to wait; may be empty. */
  readonly reason: string;
  /** RFC 3339 of the last change of phase, as far as the conditions tell. */
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
  /** Empty where nobody says. */
  readonly url: string;
  readonly access: ConfigServerAccess;
}

export interface ClusterStatus {
  readonly configServer: ConfigServerStatus;
  /** Empty where nobody looks after them. */
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
}

export interface ClusterFacts {
  readonly pools: readonly MachineConfigPool[];
  readonly nodes: readonly Node[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly clusterOperators: readonly ClusterOperator[];
  readonly machineConfigurations?: readonly MachineConfiguration[];
  readonly controllerConfigs?: readonly ControllerConfig[];
  /** `host` or `host:port` of the config server where the cluster's objects do not say. */
  readonly configServerAddress?: string | undefined;
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

/** The status of a cluster at a glance, from live objects. */
export function clusterStatus(facts: ClusterFacts): ClusterStatus {
  const byName = new Map(facts.machineConfigNodes.map((object) => [object.metadata.name, object]));
  return {
    configServer: configServerOf(facts),
    parts: partsOf(facts.machineConfigurations ?? []),
    operator: operatorOf(facts.clusterOperators),
    pools: [...facts.pools].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)).map(poolStatusOf),
    nodes: [...facts.nodes]
      .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name, "en", { numeric: true }))
      .map((node) => nodeStatusOf(node, byName.get(node.metadata.name), facts.pools)),
  };
}

function nodeStatusOf(
  node: Node,
  machineConfigNode: MachineConfigNode | undefined,
  pools: readonly MachineConfigPool[],
): NodeStatus {
  const has = node.metadata.annotations ?? {};
  const member = poolOfNode(node, pools);
  const pool = member.verdict === "member" ? member.pool : "";
  const target = pools.find(({ metadata }) => metadata.name === pool)?.spec.configuration?.name;
  const own = phaseOf(node, machineConfigNode);
  // A machine that has what it was told to have may still have to wait for its turn.
  const isBehind = target !== undefined && target !== has[annotations.currentConfig];
  const phase = own === "Updated" && isBehind ? "NeedsUpdate" : own;
  const conditions = machineConfigNode?.status?.conditions ?? [];
  return {
    name: node.metadata.name,
    pool,
    phase,
    current: has[annotations.currentConfig] ?? "",
    desired: has[annotations.desiredConfig] ?? "",
    ready: isReady(node),
    cordoned: node.spec?.unschedulable === true,
    reason:
      member.verdict === "ambiguous"
        ? `selected by several pools (${member.pools.join(", ")}): it belongs to none`
        : reasonOf(phase, node, machineConfigNode),
    since:
      conditions
        .map(({ lastTransitionTime }) => lastTransitionTime)
        .sort()
        .at(-1) ?? "",
  };
}

/** Why a machine is in a phase, where that needs words. */
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
    message: speaking?.message ?? is("Updating")?.message ?? "",
  };
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
