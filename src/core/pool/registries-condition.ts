import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { poolConditions } from "../../api/names.ts";
import { setCondition } from "../../api/schema/conditions.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { clipText } from "../text/clip-text.ts";
import { withOverallDegraded } from "./pool-status.ts";

const type = poolConditions.registriesDegraded;
/** The field of a pool that the controller of registries writes. */
export const registriesConditionField = `MachineConfigPool.status.conditions.${type}`;

/** Of the message: all conditions of a pool are written together. */
const messageLimit = 8192;

/**
 * The status of a pool whose registries cannot be written, or can again. A pool that was never refused gets no condition.
 *
 * @param problem why nothing is written; `undefined`: it is.
 * @param now milliseconds since the epoch.
 * @returns `undefined`: the pool says so already.
 */
export function registriesStatus(
  { status }: MachineConfigPool,
  problem: string | undefined,
  now: number,
): MachineConfigPool["status"] | undefined {
  const conditions = status?.conditions ?? [];
  const before = conditionOf(conditions as { type: string; status?: string }[], type);
  if (problem === undefined && before?.status !== "True") return undefined;
  const own = setCondition(
    conditions,
    problem === undefined
      ? { type, status: "False", reason: "AsExpected", message: "" }
      : { type, status: "True", reason: "RegistriesRefused", message: clipText(problem, messageLimit) },
    now,
  );
  const next = [...withOverallDegraded(own, now)];
  return equalValues(next, conditions) ? undefined : { ...status, conditions: next };
}

/** Why the registries of a pool's machines cannot be written; `undefined`: they can. */
export function registriesProblem({ status }: MachineConfigPool): string | undefined {
  const condition = conditionOf(
    status?.conditions as { type: string; status?: string; message?: string }[] | undefined,
    type,
  );
  return condition?.status === "True" ? (condition.message ?? "") : undefined;
}
