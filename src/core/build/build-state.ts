import { machineOSBuildConditions as types } from "../../api/names.ts";
import { withTransition } from "../../api/schema/conditions.ts";
import { type Condition, conditionOf, timestampOf } from "../../api/schema/object.ts";
import { progressTypes, withProgress } from "../../api/schema/progress-conditions.ts";
import { progressOfBuild } from "./image-progress.ts";
import { type BuildPhase, type BuildState, hasEnded, phases } from "../config/build-phase.ts";

/** The permitted transitions of a build: an ended build never changes, and Preparing never follows Building. */
export function mayFollow(from: BuildPhase, to: BuildPhase): boolean {
  if (from === to) return !hasEnded({ phase: from });
  if (hasEnded({ phase: from }) || to === "Initial") return false;
  return !(from === "Building" && to === "Prepared");
}

/**
 * Conditions of a build that is in a state. Of those of its phases exactly one is True, or none at the beginning; behind them
 * follow those by which others judge objects that they do not know.
 */
export function conditionsOfBuild(
  state: BuildState,
  before: readonly Condition[] | undefined,
  now: number,
): readonly Condition[] {
  const ofPhases = phases.map((phase) => {
    const type = types[phase.toLowerCase() as keyof typeof types];
    const status = state.phase === phase ? ("True" as const) : ("False" as const);
    const old = conditionOf(before, type);
    const reason = status === "True" ? state.reason : phase;
    const message = status === "True" ? state.message : "";
    return withTransition(old, { type, status, reason, message }, now);
  });
  const judging = Object.values(progressTypes).flatMap((type) => conditionOf(before, type) ?? []);
  return withProgress<Condition>([...ofPhases, ...judging], progressOfBuild(state), now) as readonly Condition[];
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

/** Steps close to the end of a build: such a run may finish. */
const lateSteps: ReadonlySet<string> = new Set(["config-layer", "push", "verify"].map(stepReason));
export const isNearlyDone = (state: BuildState): boolean => state.phase === "Building" && lateSteps.has(state.reason);

/**
 * The start and end of a build for its status: whole seconds, the end never before the start. A time after `now`, or
 * none, counts as `now`: a node may report one that no object can hold.
 */
export function timesOf(
  startedAt: string | undefined,
  endedAt: string | undefined,
  now: number,
): { readonly buildStart: string; readonly buildEnd: string } {
  const secondsOf = (text: string | undefined) => {
    const at = Date.parse(text ?? "");
    return Math.floor((at > 0 && at <= now ? at : now) / 1000);
  };
  const start = secondsOf(startedAt);
  const end = secondsOf(endedAt);
  return { buildStart: timestampOf(start * 1000), buildEnd: timestampOf(Math.max(end, start + 1) * 1000) };
}
