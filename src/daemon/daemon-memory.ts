import type { MachineConfig } from "../api/kinds/machine-config.ts";
import type { IrreconcilableChange } from "../core/config/irreconcilable-changes.ts";
import type { NodeConfig } from "../core/config/node-config.ts";
import type { MachineDocuments } from "../core/machine/machine-record.ts";
import type { PassMemory, PassPlan } from "../core/machine/pass-plan.ts";

/** What the daemon's process remembers between two passes; what must survive it lies in the documents. */
export type DaemonMemory = { -readonly [Key in keyof Omit<PassMemory, "fetchedImages">]: PassMemory[Key] } & {
  /** Emptied after a failure: an image that was thrown away while a drain took its time would be missed for ever. */
  readonly fetchedImages: Set<string>;
  /** The documents as they lie on the disk; `undefined` once a step may have changed them. */
  documents: MachineDocuments | undefined;
  /** The last two rendered configurations that were read from the API server: they never change. */
  configs: readonly MachineConfig[];
  /** The configuration whose files are watched for drift. */
  watched: { readonly of: NodeConfig; readonly stop: () => void } | undefined;
  /** Where the machine differs for good from a configuration; `changes` is absent where none was served to it. */
  compared: { readonly of: MachineConfig; readonly changes: readonly IrreconcilableChange[] | undefined } | undefined;
};

export const newDaemonMemory = (): DaemonMemory => ({
  tidiedBoot: undefined,
  resumedBoot: undefined,
  rebootAsked: undefined,
  restartAwaitedSince: undefined,
  policiesAwaitedSince: undefined,
  healedDrift: undefined,
  announced: undefined,
  failing: undefined,
  fetchedImages: new Set(),
  documents: undefined,
  configs: [],
  watched: undefined,
  compared: undefined,
});

/** Cases that are decided before the daemon has seen whether the machine is to boot once more. */
const beforeRestart: readonly PassPlan["case"][] = [
  "adopt",
  "currentConfigMissing",
  "correctAnnotations",
  "tidyAfterBoot",
  "awaitReboot",
  "reportOverdueReboot",
  "awaitRestart",
];

/** What a decision alone changes in the memory; what follows from carrying it out is changed there. */
export function remember(plan: PassPlan, memory: DaemonMemory): void {
  const asksForBoot = plan.case === "observe" && plan.what.read === "finaliseFailure";
  if (!asksForBoot && !beforeRestart.includes(plan.case)) memory.restartAwaitedSince = undefined;
}
