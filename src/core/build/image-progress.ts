import { machineOSConfigConditions as types } from "../../api/names.ts";
import type { Condition } from "../../api/schema/object.ts";
import type { Progress } from "../../api/schema/progress-conditions.ts";
import type { BuildState } from "../config/build-phase.ts";

/** How far a build is. One that was interrupted has ended as it was decided: nothing is left to do for it. */
export function progressOfBuild({ phase, reason, message }: BuildState): Progress {
  switch (phase) {
    case "Succeeded":
    case "Interrupted":
      return { verdict: "current" };
    case "Failed":
      return { verdict: "stalled", reason: reason === "" ? phase : reason, message };
    case "Initial":
    case "Prepared":
    case "Building":
      return { verdict: "reconciling", reason: reason === "" ? phase : reason, message };
  }
}

/** Reasons of `UpToDate` that nothing but a change of the inputs, or a rebuild that is asked for, ends. */
const stalledReasons: ReadonlySet<string> = new Set(["BuildFailed", "InputsInvalid"]);

/** How far a MachineOSConfig is, by its own conditions. */
export function progressOfConfig(conditions: readonly Omit<Condition, "lastTransitionTime">[]): Progress {
  const of = (type: string) => conditions.find((one) => one.type === type);
  const refused = [of(types.accepted), of(types.inputsValid)].find((one) => one?.status === "False");
  if (refused !== undefined) return { verdict: "stalled", reason: refused.reason, message: refused.message };
  const upToDate = of(types.upToDate);
  if (upToDate === undefined)
    return { verdict: "reconciling", reason: "Pending", message: "no image was looked for yet" };
  if (upToDate.status === "True") return { verdict: "current" };
  const { reason, message } = upToDate;
  return { verdict: stalledReasons.has(reason) ? "stalled" : "reconciling", reason, message };
}
