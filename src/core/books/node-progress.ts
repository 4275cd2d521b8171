import { machineConfigNodeConditions as types, pinnedImageConditions as pinned } from "../../api/names.ts";
import type { Condition } from "../../api/schema/object.ts";
import { type Progress, withProgress } from "../../api/schema/progress-conditions.ts";

type Stated = Pick<Condition, "type" | "status" | "reason" | "message">;

/** Phases that an update enters, in their order, without those that the controller reports after its end. */
export const phasesOfRun: readonly string[] = [
  types.updatePrepared,
  types.imagePulledFromRegistry,
  types.cordoned,
  types.drained,
  types.appliedFiles,
  types.appliedOSImage,
  types.updatePostActionComplete,
  types.rebootedNode,
];

/** The phases of an update that have no parts, in their order. */
const phases: readonly string[] = [...phasesOfRun, types.uncordoned, types.resumed];

/** How far a machine is from its target and its pinned images, by the other conditions of its MachineConfigNode. */
function progressOfNode(conditions: readonly Stated[]): Progress {
  const of = (type: string) => conditions.find((one) => one.type === type);
  const failed = [of(types.nodeDegraded), of(pinned.degraded)].find((one) => one?.status === "True");
  if (failed !== undefined) return { verdict: "stalled", reason: failed.reason, message: failed.message };
  const updated = of(types.updated);
  if (updated?.status !== "True") {
    const { reason, message } = phases.map(of).find((one) => one?.status === "Unknown") ?? updated ?? notReported;
    return { verdict: "reconciling", reason, message };
  }
  const fetches = of(pinned.progressing);
  return fetches?.status === "True"
    ? { verdict: "reconciling", reason: fetches.reason, message: fetches.message }
    : { verdict: "current" };
}

const notReported = { reason: "Pending", message: "its daemon has not reported yet" };

/**
 * The conditions of a MachineConfigNode with `Reconciling` and `Stalled`, which follow from the others. Each writer of conditions
 * derives them from what it read together with what it changes: a write meets the version that was read, or is made again.
 *
 * @param now milliseconds since the epoch.
 * @returns the same list when nothing changed.
 */
export function withNodeProgress(conditions: readonly Condition[], now: number): readonly Condition[] {
  // A condition that changes gets its time of transition.
  const after = withProgress(conditions, progressOfNode(conditions), now) as readonly Condition[];
  const isSame = after.length === conditions.length && after.every((one, index) => one === conditions[index]);
  return isSame ? conditions : after;
}
