import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, machineConfigNodeConditions as types, objects } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { healthReasons } from "../../api/books/stories.ts";
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
  /** What it does, or why it waits; empty when there is nothing to say. */
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

/** How a part of the suite is, as the state process says. */
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

/** Everything that a person wants to see of a cluster at one look, from live objects. */
export function clusterStatus(facts: ClusterFacts): ClusterStatus {
  const byName = new Map(facts.machineConfigNodes.map((object) => [object.metadata.name, object]));
  const nodes = [...facts.nodes]
    .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name, "en", { numeric: true }))
    .map((node): NodeStatus => {
      const has = node.metadata.annotations ?? {};
      const machineConfigNode = byName.get(node.metadata.name);
      const member = poolOfNode(node, facts.pools);
      const target =
        member.verdict === "member"
          ? facts.pools.find(({ metadata }) => metadata.name === member.pool)?.spec.configuration?.name
          : undefined;
      const own = phaseOf(node, machineConfigNode);
      // A machine that has what it was told to have may still have to wait for its turn.
      const phase =
        own === "Updated" && target !== undefined && target !== has[annotations.currentConfig] ? "NeedsUpdate" : own;
      const conditions = machineConfigNode?.status?.conditions ?? [];
      const drained = conditionOf(conditions, types.drained);
      const reasonOf: Partial<Record<Phase, string>> = {
        Lost: node.status?.conditions?.find(({ type }) => type === "Ready")?.message ?? "the kubelet does not report",
        Degraded: has[annotations.reason] ?? "",
        Unreconcilable: has[annotations.reason] ?? "",
        Draining: drained?.message ?? "",
        Rebooting: conditionOf(conditions, types.rebootedNode)?.message ?? "",
        Joining: "no configuration applied yet",
      };
      return {
        name: node.metadata.name,
        pool: member.verdict === "member" ? member.pool : "",
        phase,
        current: has[annotations.currentConfig] ?? "",
        desired: has[annotations.desiredConfig] ?? "",
        ready: isReady(node),
        cordoned: node.spec?.unschedulable === true,
        reason:
          member.verdict === "ambiguous"
            ? `selected by several pools (${member.pools.join(", ")}): it belongs to none`
            : (reasonOf[phase] ?? ""),
        since:
          conditions
            .map(({ lastTransitionTime }) => lastTransitionTime)
            .sort()
            .at(-1) ?? "",
      };
    });
  const pools = [...facts.pools]
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .map((pool): PoolStatus => {
      const { status, spec } = pool;
      const is = (type: string) =>
        conditionOf(status?.conditions as { type: string; status?: string; message?: string }[] | undefined, type);
      const speaking = ["Degraded", "Updating", "Updated"]
        .map(is)
        .find((condition) => condition?.status === "True" && condition.message !== "");
      return {
        name: pool.metadata.name,
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
    });
  const operator = facts.clusterOperators.find(({ metadata }) => metadata.name === objects.clusterOperator);
  const operatorIs = (type: string) => operator?.status?.conditions?.find((condition) => condition.type === type);
  return {
    configServer: configServerOf(facts),
    parts: partsOf(facts.machineConfigurations ?? []),
    operator:
      operator === undefined
        ? undefined
        : {
            version: operator.status?.versions?.find(({ name }) => name === "operator")?.version ?? "",
            available: operatorIs("Available")?.status === "True",
            progressing: operatorIs("Progressing")?.status === "True",
            degraded: operatorIs("Degraded")?.status === "True",
            message:
              operatorIs("Degraded")?.status === "True"
                ? (operatorIs("Degraded")?.message ?? "")
                : (operatorIs("Progressing")?.message ?? ""),
          },
    pools,
    nodes,
  };
}

/** Whether every pool has what it should have, and every one of `expected` machines is in one, ready. */
export function isSettled(status: ClusterStatus, expected: number): boolean {
  return (
    status.operator?.available === true &&
    status.pools.length > 0 &&
    // A pool counts its machines a moment after the last of them has told that it is done.
    status.pools.every(
      (pool) =>
        pool.updated &&
        pool.target !== "" &&
        pool.updatedMachines === pool.machines &&
        pool.readyMachines === pool.machines,
    ) &&
    status.nodes.length >= expected &&
    status.nodes.every(
      (node) =>
        node.phase === "Updated" &&
        node.ready &&
        !node.cordoned &&
        status.pools.some((pool) => pool.name === node.pool && pool.target === node.current),
    )
  );
}
