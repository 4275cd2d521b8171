import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations } from "../../api/names.ts";
import { type BuildState, hasEnded, stateOfBuild } from "../config/build-phase.ts";
import { isAttached } from "./build-plan.ts";

/** Reasons of builds whose next run is still to be begun. */
const notBegun: ReadonlySet<string> = new Set(["RetryScheduled", "Attached", "InputChanged"]);

const isScheduled = ({ metadata }: MachineOSBuild) => metadata.annotations?.[annotations.nextAttemptAt] !== undefined;

/** Whether the run of the present attempt was started: later reports imply it. */
export const isStarted = (build: MachineOSBuild, state: BuildState): boolean =>
  state.phase !== "Initial" && !notBegun.has(state.reason) && !isScheduled(build);

/** A build that waits although none runs. */
export interface StuckBuild {
  readonly name: string;
  /** RFC 3339. */
  readonly since: string;
  /** What its state says; empty: nothing yet. */
  readonly message: string;
}

/**
 * The build that has waited longest, if none runs that it could wait for. One that waits for its next attempt has a time,
 * and waits for nothing.
 */
export function stuckBuild(builds: readonly MachineOSBuild[]): StuckBuild | undefined {
  const open = builds
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .filter((build) => !isAttached(build) && !hasEnded(stateOfBuild(build)));
  if (open.some((build) => isStarted(build, stateOfBuild(build)))) return undefined;
  const [oldest] = open
    .filter((build) => !isScheduled(build))
    .toSorted((a, b) => ((a.metadata.creationTimestamp ?? "") < (b.metadata.creationTimestamp ?? "") ? -1 : 1));
  return oldest === undefined
    ? undefined
    : {
        name: oldest.metadata.name,
        since: oldest.metadata.creationTimestamp ?? "",
        message: stateOfBuild(oldest).message,
      };
}
