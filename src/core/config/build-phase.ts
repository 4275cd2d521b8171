import { machineOSBuildConditions as types } from "../../api/names.ts";
import { type Condition, conditionOf } from "../../api/schema/object.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";

/** Where a build is. `Initial`: made, and no condition is set yet. */
export type BuildPhase = "Initial" | "Prepared" | "Building" | "Succeeded" | "Failed" | "Interrupted";

export interface BuildState {
  readonly phase: BuildPhase;
  /** Empty for `Initial`. */
  readonly reason: string;
  readonly message: string;
}

/** Phases that a condition of the same name stands for, in the order in which a build's status lists them. */
export const phases = ["Prepared", "Building", "Succeeded", "Failed", "Interrupted"] as const;

/** Phases that a build never leaves. */
export const terminal = ["Succeeded", "Failed", "Interrupted"] as const;
const ends: ReadonlySet<BuildPhase> = new Set(terminal);

/** Whether nothing more comes of a build: with an image, without one, or taken back. */
export const hasEnded = ({ phase }: Pick<BuildState, "phase">): boolean => ends.has(phase);

/** What a build's conditions say. An end outweighs a condition that an unfinished write has left True beside it. */
export function stateOfBuild(build: Pick<MachineOSBuild, "status">): BuildState {
  const conditions = build.status?.conditions as readonly Condition[] | undefined;
  for (const phase of [...terminal, ...phases]) {
    const condition = conditionOf(conditions, types[phase.toLowerCase() as keyof typeof types]);
    if (condition?.status === "True") return { phase, reason: condition.reason, message: condition.message };
  }
  return { phase: "Initial", reason: "", message: "" };
}
