import { machineOSBuildConditions as types } from "../../api/names.ts";
import { withTransition } from "../../api/schema/conditions.ts";
import { type Condition, conditionOf, timestampOf } from "../../api/schema/object.ts";
import { type BuildPhase, type BuildState, hasEnded, phases } from "../config/build-phase.ts";

/**
 * Which conditions a build may go on to from one: what has ended stays as it is, and preparing never comes after
 * building.
 */
export function mayFollow(from: BuildPhase, to: BuildPhase): boolean {
  if (from === to) return !hasEnded({ phase: from });
  if (hasEnded({ phase: from }) || to === "Initial") return false;
  return !(from === "Building" && to === "Prepared");
}

/** Conditions of a build that is in a state: exactly one is True, or none at the beginning. */
export function conditionsOfBuild(
  state: BuildState,
  before: readonly Condition[] | undefined,
  now: number,
): readonly Condition[] {
  return phases.map((phase) => {
    const type = types[phase.toLowerCase() as keyof typeof types];
    const status = state.phase === phase ? ("True" as const) : ("False" as const);
    const old = conditionOf(before, type);
    const reason = status === "True" ? state.reason : phase;
    const message = status === "True" ? state.message : "";
    return withTransition(old, { type, status, reason, message }, now);
  });
}

/** `user:3` → `StepUser`, `pull-base` → `StepPullBase`. */
export const stepReason = (step: string): string => {
  const [name = ""] = step.split(":");
  return `Step${
    name
      .split(/[^A-Za-z0-9]+/)
      .filter((word) => word !== "")
      .map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`)
      .join("") || "Unknown"
  }`;
};

/** Steps after which an image is as good as there: such a run is let finish. */
const lateSteps: ReadonlySet<string> = new Set(["config-layer", "push", "verify"].map(stepReason));
export const isNearlyDone = (state: BuildState): boolean => state.phase === "Building" && lateSteps.has(state.reason);

/** Both moments of a build as its status has them: whole seconds, the end after the start. */
export function timesOf(
  startedAt: string | undefined,
  endedAt: string | undefined,
  now: number,
): { readonly buildStart: string; readonly buildEnd: string } {
  const start = Math.floor(Date.parse(startedAt ?? "") / 1000) || Math.floor(now / 1000);
  const end = Math.floor(Date.parse(endedAt ?? "") / 1000) || Math.floor(now / 1000);
  return { buildStart: timestampOf(start * 1000), buildEnd: timestampOf(Math.max(end, start + 1) * 1000) };
}
