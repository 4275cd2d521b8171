import type { MachineConfig } from "../api/kinds/machine-config.ts";
import type { IrreconcilableChange } from "../core/config/irreconcilable-changes.ts";
import type { NodeConfig } from "../core/config/node-config.ts";
import type { MachineDocuments } from "../core/machine/machine-record.ts";
import type { PassMemory, PassPlan } from "../core/machine/pass-plan.ts";

/** What the daemon's process remembers between two passes; what must survive a crash is in the documents. */
export type DaemonMemory = { -readonly [Key in keyof Omit<PassMemory, "fetchedImages">]: PassMemory[Key] } & {
  /** Emptied after a failure: otherwise an image that was discarded during a long drain would be missing forever. */
  readonly fetchedImages: Set<string>;
  /** The documents as they lie on the disk; `undefined` once a step may have changed them. */
  documents: MachineDocuments | undefined;
  /** The last two rendered configurations that were read from the API server; they are immutable. */
  configs: readonly MachineConfig[];
  /** The configuration whose files are watched for drift. */
  watched: { readonly of: NodeConfig; readonly stop: () => void } | undefined;
  /** Where the machine differs permanently from a configuration; `changes` is absent where none was served to it. */
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

/** Cases that are decided before the daemon knows whether another reboot is due. */
const beforeRestart: readonly PassPlan["case"][] = [
  "adopt",
  "currentConfigMissing",
  "correctAnnotations",
  "tidyAfterBoot",
  "awaitReboot",
  "reportOverdueReboot",
  "awaitRestart",
];

/** The changes of the memory that follow from a decision alone; carrying it out makes the others. */
export function remember(plan: PassPlan, memory: DaemonMemory): void {
  const asksForBoot = plan.case === "observe" && plan.what.read === "finaliseFailure";
  if (!asksForBoot && !beforeRestart.includes(plan.case)) memory.restartAwaitedSince = undefined;
}
