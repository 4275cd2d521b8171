import { machineOSBuildConditions as types } from "../../api/names.ts";
import { type Condition, conditionOf } from "../../api/schema/object.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";

/** The state of a build. `Initial`: created, without a condition yet. */
export type BuildPhase = "Initial" | "Prepared" | "Building" | "Succeeded" | "Failed" | "Interrupted";

export interface BuildState {
  readonly phase: BuildPhase;
  /** Empty for `Initial`. */
  readonly reason: string;
  readonly message: string;
}

/** Phases with a condition of the same name, in the order of a build's status. */
export const phases = ["Prepared", "Building", "Succeeded", "Failed", "Interrupted"] as const;

/** Phases that a build never leaves. */
export const terminal = ["Succeeded", "Failed", "Interrupted"] as const;
const ends: ReadonlySet<BuildPhase> = new Set(terminal);

/** Whether a build has ended: with an image, without one, or interrupted. */
export const hasEnded = ({ phase }: Pick<BuildState, "phase">): boolean => ends.has(phase);

/** The state from a build's conditions. A final phase outweighs a condition that a partial write left True. */
export function stateOfBuild(build: Pick<MachineOSBuild, "status">): BuildState {
  const conditions = build.status?.conditions as readonly Condition[] | undefined;
  for (const phase of [...terminal, ...phases]) {
    const condition = conditionOf(conditions, types[phase.toLowerCase() as keyof typeof types]);
    if (condition?.status === "True") return { phase, reason: condition.reason, message: condition.message };
  }
  return { phase: "Initial", reason: "", message: "" };
}
