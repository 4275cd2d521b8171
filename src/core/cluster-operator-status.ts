import type { ClusterOperator } from "../api/cluster-operator.ts";
import type { MachineConfigPool } from "../api/machine-config-pool.ts";
import { poolConditions } from "../api/names.ts";

/** What one sync function of the operator found. */
export type TaskOutcome =
  | { readonly task: string; readonly kind: "done" }
  | { readonly task: string; readonly kind: "progressing"; readonly message: string }
  | { readonly task: string; readonly kind: "failed"; readonly message: string };

export interface OperatorFacts {
  readonly version: string;
  /** The version that every component was last seen running, or `undefined` before the first time. */
  readonly reached: string | undefined;
  readonly outcomes: readonly TaskOutcome[];
  readonly pools: readonly MachineConfigPool[];
}

type Conditions = NonNullable<NonNullable<ClusterOperator["status"]>["conditions"]>;
type Condition = Conditions[number];

const isTrue = (pool: MachineConfigPool, type: string) => (pool.status?.conditions ?? []).some((condition) => condition.type === type && condition.status === "True");

/**
 * The conditions of the ClusterOperator: a pure fold over what the sync functions found and how the pools are. The time
 * of a transition moves only with its status.
 *
 * @param now milliseconds since the epoch.
 */
export function clusterOperatorConditions(facts: OperatorFacts, before: Conditions, now: number): Conditions {
  const failed = facts.outcomes.filter((outcome) => outcome.kind === "failed");
  const progressing = facts.outcomes.filter((outcome) => outcome.kind === "progressing");
  const degradedPools = facts.pools.filter((pool) => isTrue(pool, poolConditions.degraded));
  const updatingPools = facts.pools.filter((pool) => isTrue(pool, poolConditions.updating));
  const upToDate = facts.reached === facts.version;
  const names = (pools: readonly MachineConfigPool[]) => pools.map(({ metadata }) => metadata.name).join(", ");
  const [firstFailed] = failed;

  const wanted: readonly Omit<Condition, "lastTransitionTime">[] = [
    facts.reached === undefined
      ? { type: "Available", status: "False", reason: "BringUp", message: `Cluster is bootstrapping ${facts.version}` }
      : { type: "Available", status: "True", reason: "AsExpected", message: `Cluster has deployed [{operator ${facts.reached}}]` },
    !upToDate
      ? { type: "Progressing", status: "True", reason: facts.reached === undefined ? "BringUp" : "Upgrading", message: progressing[0]?.message ?? firstFailed?.message ?? `Working towards ${facts.version}` }
      : progressing.length > 0
        ? { type: "Progressing", status: "True", reason: progressing[0]?.task ?? "", message: progressing.map(({ message }) => message).join("; ") }
        : { type: "Progressing", status: "False", reason: "AsExpected", message: `Cluster version is ${facts.version}${updatingPools.length === 0 ? "" : `; pools under way: ${names(updatingPools)}`}` },
    firstFailed !== undefined
      ? { type: "Degraded", status: "True", reason: `${firstFailed.task}Failed`, message: failed.map(({ task, message }) => `${task}: ${message}`).join("; ") }
      : degradedPools.length > 0
        ? { type: "Degraded", status: "True", reason: "DegradedPool", message: `degraded pools: ${names(degradedPools)}` }
        : { type: "Degraded", status: "False", reason: "AsExpected", message: "" },
    degradedPools.length > 0
      ? { type: "Upgradeable", status: "False", reason: "DegradedPool", message: `degraded pools must be repaired before an upgrade: ${names(degradedPools)}` }
      : { type: "Upgradeable", status: "True", reason: "AsExpected", message: "" },
  ];
  const stamp = `${new Date(now).toISOString().slice(0, 19)}Z`;
  return wanted.map((condition) => {
    const old = before.find(({ type }) => type === condition.type);
    return { ...condition, lastTransitionTime: old?.status === condition.status ? old.lastTransitionTime : stamp };
  });
}
