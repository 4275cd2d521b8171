import { placeOfReason } from "../api/books/short-lines.ts";
import { machineConfigNodeConditions as types } from "../api/names.ts";
import { type PhaseReport, type SectionReport, phaseOfCondition } from "../core/books/update-conditions.ts";
import type { MachineHappening, UpdateSection } from "./node-journal-types.ts";

/** The section of a reason that is in several ones. */
export const inUpdate = <const P extends UpdateSection>(path: P) => ({ chapter: "Update", path }) as const;

/** The same as the condition of the section's phase. */
export const withPhase = (happening: MachineHappening): MachineHappening => {
  const phase = phaseOfCondition({ ...placeOfReason("node", happening.reason), ...happening } as SectionReport);
  return phase === undefined ? happening : { ...happening, phases: [phase] };
};

/** The condition of a machine that cannot go on as it should. */
export const degradedFor = (reason: string, message: string): PhaseReport => ({
  type: types.nodeDegraded,
  status: "True",
  reason,
  message,
});

/** The condition of a machine that has no trouble. */
export const notDegraded: PhaseReport = {
  type: types.nodeDegraded,
  status: "False",
  reason: "AsExpected",
  message: "",
};
