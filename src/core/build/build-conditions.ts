import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { poolConditions as types } from "../../api/names.ts";
import { withTransition } from "../../api/schema/conditions.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { BuildPhase } from "../config/build-phase.ts";

type PoolCondition = NonNullable<NonNullable<MachineConfigPool["status"]>["conditions"]>[number];

/** What the builder says about a pool. */
export interface PoolBuildReport {
  readonly degraded: { readonly is: boolean; readonly reason: string; readonly message: string };
  /**
   * The four conditions of the first release with builds, for pools that were opted in by their label; absent: they go.
   */
  readonly legacy?: { readonly phase: BuildPhase | undefined; readonly message: string };
}

const legacyTypes = [types.buildPending, types.building, types.buildSuccess, types.buildFailed] as const;

const legacyOf = (phase: BuildPhase | undefined): string | undefined => {
  switch (phase) {
    case "Initial":
    case "Prepared":
      return types.buildPending;
    case "Building":
      return types.building;
    case "Succeeded":
      return types.buildSuccess;
    case "Failed":
    case "Interrupted":
      return types.buildFailed;
    case undefined:
      return undefined;
  }
};

/**
 * Conditions of a pool with what the builder says among them; `undefined`: they say so already. Conditions of others
 * stay.
 */
export function withBuildReport(
  pool: MachineConfigPool,
  report: PoolBuildReport,
  now: number,
): readonly PoolCondition[] | undefined {
  const before: readonly PoolCondition[] = pool.status?.conditions ?? [];
  const wanted = new Map<
    string,
    { readonly status: "True" | "False"; readonly reason: string; readonly message: string }
  >();
  const { degraded, legacy } = report;
  wanted.set(types.imageBuildDegraded, {
    status: degraded.is ? "True" : "False",
    reason: degraded.reason,
    message: degraded.message,
  });
  if (legacy !== undefined)
    for (const type of legacyTypes)
      wanted.set(
        type,
        type === legacyOf(legacy.phase)
          ? { status: "True", reason: type, message: legacy.message }
          : { status: "False", reason: "AsExpected", message: "" },
      );
  const kept = before.filter(({ type }) => legacy !== undefined || !legacyTypes.some((each) => each === type));
  let changed = kept.length !== before.length;
  const next = kept.map((condition): PoolCondition => {
    const want = wanted.get(condition.type ?? "");
    wanted.delete(condition.type ?? "");
    if (
      want === undefined ||
      (want.status === condition.status && want.reason === condition.reason && want.message === condition.message)
    )
      return condition;
    changed = true;
    return withTransition(condition, { ...condition, ...want }, now);
  });
  for (const [type, want] of wanted) {
    changed = true;
    next.push(withTransition<PoolCondition>(undefined, { type, ...want }, now));
  }
  return changed ? next : undefined;
}

/**
 * Where the builder left a pool: it was never opted in, has been put in order after it was opted out, or is looked
 * after.
 */
export function layeringTold(pool: Pick<MachineConfigPool, "status">): "never" | "optedOut" | "layered" {
  const condition = conditionOf(
    pool.status?.conditions as { type: string; reason?: string }[] | undefined,
    types.imageBuildDegraded,
  );
  if (condition === undefined) return "never";
  return condition.reason === "OptedOut" ? "optedOut" : "layered";
}

/** Whether a pool is told to have no image that could be built. */
export function imageBuildDegraded(
  pool: Pick<MachineConfigPool, "status">,
): { readonly reason: string; readonly message: string } | undefined {
  const condition = conditionOf(
    pool.status?.conditions as { type: string; status?: string; reason?: string; message?: string }[] | undefined,
    types.imageBuildDegraded,
  );
  return condition?.status === "True"
    ? { reason: condition.reason ?? "", message: condition.message ?? "" }
    : undefined;
}
