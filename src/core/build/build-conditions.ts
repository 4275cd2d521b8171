import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { poolConditions as types } from "../../api/names.ts";
import { withTransition } from "../../api/schema/conditions.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { BuildPhase } from "../config/build-phase.ts";

type PoolCondition = NonNullable<NonNullable<MachineConfigPool["status"]>["conditions"]>[number];

/** What the builder reports about a pool. */
export interface PoolBuildReport {
  /** Absent: unchanged. */
  readonly degraded?: { readonly is: boolean; readonly reason: string; readonly message: string } | undefined;
  /** Whether an image can be planned from the inputs; absent: unchanged. */
  readonly inputs?: { readonly areValid: boolean; readonly reason: string; readonly message: string };
  /**
   * The four conditions of the first release with builds, for pools opted in by label. Absent beside `degraded`: remove
   * them.
   */
  readonly legacy?: { readonly phase: BuildPhase | undefined; readonly message: string };
}

const legacyTypes = [types.buildPending, types.building, types.buildSuccess, types.buildFailed] as const;

/** Types of the conditions that the builder writes. */
export const reportedTypes: readonly string[] = [types.imageBuildDegraded, types.imageInputsValid, ...legacyTypes];

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
 * The pool's conditions, with the builder's merged in; `undefined`: they are unchanged. Conditions of other writers
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
  const { degraded, inputs, legacy } = report;
  if (degraded !== undefined)
    wanted.set(types.imageBuildDegraded, {
      status: degraded.is ? "True" : "False",
      reason: degraded.reason,
      message: degraded.message,
    });
  // Valid inputs are worth a word only where there were others.
  if (inputs !== undefined && (!inputs.areValid || before.some(({ type }) => type === types.imageInputsValid)))
    wanted.set(types.imageInputsValid, {
      status: inputs.areValid ? "True" : "False",
      reason: inputs.reason,
      message: inputs.message,
    });
  if (legacy !== undefined)
    for (const type of legacyTypes)
      wanted.set(
        type,
        type === legacyOf(legacy.phase)
          ? { status: "True", reason: type, message: legacy.message }
          : { status: "False", reason: "AsExpected", message: "" },
      );
  const kept = before.filter(
    ({ type }) => legacy !== undefined || degraded === undefined || !legacyTypes.some((each) => each === type),
  );
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

/** How the builder left a pool: never opted in, cleaned up after an opt-out, or managed. */
export function reportedLayering(pool: Pick<MachineConfigPool, "status">): "never" | "optedOut" | "layered" {
  const condition = conditionOf(
    pool.status?.conditions as { type: string; reason?: string }[] | undefined,
    types.imageBuildDegraded,
  );
  if (condition === undefined) return "never";
  return condition.reason === "OptedOut" ? "optedOut" : "layered";
}

/** Whether the pool's conditions report that no image can be built. */
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

/** Whether what the pool's conditions report is that its inputs are invalid. */
export function isBlamedOnInputs(pool: Pick<MachineConfigPool, "status">): boolean {
  const failing = imageBuildDegraded(pool);
  const inputs = conditionOf(
    pool.status?.conditions as { type: string; status?: string; reason?: string }[] | undefined,
    types.imageInputsValid,
  );
  return failing !== undefined && inputs?.status === "False" && inputs.reason === failing.reason;
}
