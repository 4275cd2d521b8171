/**
 * Everything that the daemon reports of an update, as a function for each happening: lines of the machine's book, conditions
 * of its MachineConfigNode, Events and all of their texts. Callers give the facts, and pass the result to `report`: happenings
 * to that of the machine's journal, notices to that of the context.
 */
import type { Node } from "../api/foreign/kubernetes.ts";
import type { BookSections } from "../api/books/report-table.ts";
import type { EventSubject } from "../api/books/reports.ts";
import { placeOfReason } from "../api/books/short-lines.ts";
import { machineConfigNodeConditions as types } from "../api/names.ts";
import { defined } from "../api/schema/defined.ts";
import { type SectionReport, phaseOfCondition } from "../core/books/update-conditions.ts";
import { describeChange } from "../core/config/change.ts";
import type { NodeConfig } from "../core/config/node-config.ts";
import {
  type ChangePlan,
  describeActions,
  describeBecause,
  isAction,
  isSystemChange,
  isWrite,
  machineForecast,
  reasonOfActions,
  writtenBy,
} from "../core/machine/describe-plan.ts";
import type { ObservedDeployment } from "../core/machine/observed-node.ts";
import { countText } from "../core/text/count-text.ts";
import { listText } from "../core/text/list-text.ts";
import { type Happening, noticed } from "../kube/report.ts";
import type { MachineHappening, UpdateSection } from "./node-journal-types.ts";
import type { LocalStep } from "./perform-step.ts";

/** How many units a line names, and how many paths. */
const [mostNamedUnits, mostNamedPaths] = [5, 20];

type About = EventSubject | undefined;

const inUpdate = <const P extends UpdateSection>(path: P) => ({ chapter: "Update", path }) as const;

/** The same as the condition of the section's phase. */
const withPhase = (happening: MachineHappening): MachineHappening => {
  const phase = phaseOfCondition({ ...placeOfReason("node", happening.reason), ...happening } as SectionReport);
  return phase === undefined ? happening : { ...happening, phases: [phase] };
};

// Its target

export const targetSeen = (target: string, from: string | undefined): MachineHappening => ({
  run: target,
  mark: "end",
  reason: "TargetSeen",
  message: `the daemon has seen its target ${target}`,
  data: { to: target, ...defined({ from }) },
});

const comparing = { mark: "begin", reason: "Checking" } as const;

export const targetCompared = (): MachineHappening => ({ ...comparing, message: "the machine is compared with it" });

export const targetComparedAgain = (): MachineHappening => ({
  ...comparing,
  message: "the machine is compared with its target again",
});

export const updateInterrupted = (path: UpdateSection): MachineHappening =>
  ({
    ...inUpdate(path),
    mark: "retry",
    reason: "Interrupted",
    outcome: "Interrupted",
    message: "the daemon ended here and continues",
    // Only sections that a daemon can be interrupted in are given.
  }) as MachineHappening;

export const targetIrreconcilable = (message: string, about: About): MachineHappening =>
  withPhase({ about, ...inUpdate("Prepared"), mark: "fail", reason: "Irreconcilable", message });

export const policiesAwaited = (message: string): MachineHappening => ({
  ...inUpdate("Prepared"),
  mark: "note",
  reason: "PoliciesNotMerged",
  message,
});

/** @param booted the system that runs. */
export const updatePlanned = (plan: ChangePlan, booted: ObservedDeployment, target: NodeConfig): MachineHappening => ({
  mark: "end",
  reason: "Planned",
  message: `${countText(plan.changes.length, "change")}; ${describeBecause(plan.because) || "nothing has to be done"}`,
  data: machineForecast(plan, booted, target),
});

export const bootResynced = (node: Node, target: string): Happening =>
  noticed(
    node,
    "BootResync",
    `${node.metadata.name} has booted with something else than ${target}, which it should have`,
  );

// Images

export const pullBegun = (images: readonly string[]): MachineHappening =>
  withPhase({ mark: "begin", reason: "Pulling", message: images.join(", ") });

export const imagesPulled = (images: readonly string[]): MachineHappening =>
  withPhase({ mark: "end", reason: "Pulled", message: images.join(", ") });

/** The image exists; the condition names its problem. */
export const imageMismatched = (message: string): MachineHappening => ({
  mark: "fail",
  reason: "PullFailed",
  message,
  phases: [{ type: types.imagePulledFromRegistry, status: "False", reason: "ImageContentMismatch", message }],
});

// Its drain

const unneeded = { mark: "skip", reason: "NotRequired", message: "no drain is required" } as const;

export const cordonUnneeded = (): MachineHappening => withPhase({ ...inUpdate("Executed/Cordoned"), ...unneeded });

export const drainUnneeded = (): MachineHappening => withPhase({ ...inUpdate("Executed/Drained"), ...unneeded });

/** @param isNews the Node does not ask for it yet. */
export const drainRequested = (node: Node, target: string, isNews: boolean): MachineHappening => ({
  about: isNews ? node : undefined,
  mark: "begin",
  reason: "DrainRequested",
  message: `Draining ${node.metadata.name} to update it to ${target}`,
});

export const uncordonRequested = (): MachineHappening => ({
  mark: "begin",
  reason: "UncordonRequested",
  message: "the daemon asked for the machine to be put back into service",
});

// Its system

export const stagingBegun = (
  node: Node,
  { changes }: ChangePlan,
  { from, to }: { readonly from: string; readonly to: string },
): MachineHappening => ({
  about: node,
  ...inUpdate("Executed/OS"),
  mark: "begin",
  reason: "Staging",
  message: changes.filter(isSystemChange).map(describeChange).join(", ") || to,
  data: { fromImage: from, toImage: to },
});

export const systemStaged = (
  node: Node,
  { image, packages, kernelArguments, kernelType }: ObservedDeployment,
): MachineHappening => ({
  about: node,
  ...inUpdate("Executed/OS"),
  mark: "end",
  reason: "Staged",
  message: `${image} is staged for the next boot`,
  data: { packages: packages.length, kernelArguments: kernelArguments.length, kernelType },
});

export const newSystemRuns = (node: Node, image: string): Happening =>
  noticed(node, "OSUpgradeApplied", `${node.metadata.name} runs ${image}`);

// Its files

export const writingBegun = (config: string): MachineHappening => ({
  mark: "begin",
  reason: "Writing",
  message: `files and units of ${config}`,
});

export const filesWritten = (config: string, plan: ChangePlan): MachineHappening => ({
  mark: "end",
  reason: "Written",
  message: `files and units of ${config} are on the disk`,
  data: writtenBy(plan),
});

export const originalsNotKept = (paths: readonly string[]): MachineHappening => ({
  mark: "note",
  reason: "OriginalNotKept",
  message: `not kept, because it is too large or cannot be read: what was here before it was managed: ${listText(paths, mostNamedPaths)}`,
});

export const unitsSkipped = (units: readonly string[]): MachineHappening => ({
  mark: "note",
  reason: "UnitSkipped",
  message: `not enabled, because the machine has no such unit: ${listText(units, mostNamedUnits)}`,
});

// Its reboot

const inReboot = inUpdate("PostAction/Rebooted");

export const rebootRequested = (node: Node, because: string): MachineHappening =>
  withPhase({ about: node, ...inReboot, mark: "begin", reason: "RebootRequested", message: because });

/** @param upAfterMs since the reboot was requested; absent: this update has requested none. */
export const machineRebooted = (
  boot: string,
  image: string,
  { about, upAfterMs }: { readonly about: About; readonly upAfterMs?: number },
): MachineHappening => ({
  about,
  ...inReboot,
  mark: "end",
  reason: "Rebooted",
  message: `boot ${boot} of ${image}`,
  ...(upAfterMs === undefined ? {} : { data: { boot, upAfterMs } }),
});

export const rebootOverdue = (node: Node, problem: string): MachineHappening => ({
  about: node,
  mark: "fail",
  reason: "RebootFailed",
  message: `the machine ${problem}`,
});

export const stagedNotFinalised = (failure: string, about: About): MachineHappening => ({
  about,
  mark: "fail",
  reason: "FinaliseFailed",
  message: `the system that was staged was not finalised at the last shutdown: ${failure}`,
});

export const rebootSkipped = (node: Node, config: string): Happening =>
  noticed(node, "SkipReboot", `${config} needed no reboot and no service action`);

// Its services

export const actionsBegun = ({ because }: ChangePlan): MachineHappening => ({
  mark: "begin",
  reason: "Acting",
  message: describeBecause(because),
});

export const actionsDone = (plan: ChangePlan): MachineHappening => ({
  mark: "end",
  reason: reasonOfActions(plan),
  message: describeActions(plan),
});

export const noActionNeeded = ({ because }: ChangePlan): MachineHappening => ({
  mark: "end",
  reason: "None",
  message: describeBecause(because) || "the changes take effect on their own",
});

/** @param sentence about an action that an unfinished update owed. */
export const debtDropped = (sentence: string): MachineHappening => ({
  mark: "note",
  reason: "DebtDropped",
  message: sentence,
});

export const unitRestarted = (node: Node, unit: string): Happening =>
  noticed(node, "ServiceRestart", `Restarted ${unit}`);

export const unitReloaded = (node: Node, unit: string): Happening => noticed(node, "ServiceReload", `Reloaded ${unit}`);

export const unitsRead = (node: Node): Happening =>
  noticed(node, "ServiceReload", "The service manager has read all units again");

export const actionFailed = (node: Node, step: LocalStep, problem: string): Happening =>
  noticed(node, step.do === "restart" ? "FailedServiceRestart" : "FailedServiceReload", problem);

// The content of its image

export const settlingBegun = (): MachineHappening => ({
  mark: "begin",
  reason: "Settling",
  message: "the image's content is not applied yet",
});

/** @param restored how many paths and units. */
export const contentSettled = (restored: number): MachineHappening => ({
  mark: "end",
  reason: "Settled",
  message: `${restored} of what the machine is to have were restored when it booted`,
});

export const contentNotApplied = (message: string): MachineHappening => ({
  ...inUpdate("PostAction/Settled"),
  mark: "fail",
  reason: "SettleFailed",
  message,
});

// Failures

/** The section of a step has failed. */
export const stepFailed = (step: LocalStep, problem: string): MachineHappening => {
  const failed = { mark: "fail", message: problem } as const;
  if (step.do === "prefetch") return { ...failed, reason: "PullFailed" };
  if (step.do === "stageOs" || step.do === "discardStaged")
    return { ...inUpdate("Executed/OS"), ...failed, reason: "StageFailed" };
  if (step.do === "reboot") return { about: undefined, ...failed, reason: "RebootFailed" };
  if (isWrite(step)) return { ...failed, reason: "WriteFailed" };
  if (isAction(step)) return { ...inUpdate("PostAction/Service"), ...failed, reason: "ServiceFailed" };
  // Either before anything was written, or after all was.
  return step.do === "openLedger"
    ? { ...inUpdate("Executed/Files"), ...failed, reason: "UpdateFailed" }
    : { ...inUpdate("Resumed"), ...failed, reason: "UpdateFailed" };
};

/** The machine does not have what every step has succeeded to give it. */
export const packagesMissing = (problem: string): MachineHappening => ({
  ...inUpdate("Resumed"),
  mark: "fail",
  reason: "UpdateFailed",
  message: problem,
});

// Its end

export const operationResumed = (config: string): MachineHappening => ({
  mark: "end",
  reason: "Resumed",
  message: `in normal operation with ${config}`,
});

export const updateDone = (node: Node, config: string): Happening =>
  noticed(node, "NodeDone", `${node.metadata.name} now has ${config}`);

const succeeded = { mark: "end", reason: "Succeeded", outcome: "Succeeded" } as const;

export const updateSucceeded = (config: string): MachineHappening => ({
  ...succeeded,
  message: `the machine has ${config}`,
});

/** The machine has it whole, and no line says so, while the next target is there. */
export const updateReached = (config: string): MachineHappening => ({
  ...succeeded,
  message: `the machine has ${config}; the next target came before this line`,
});

const superseded = { mark: "end", reason: "Superseded", outcome: "Superseded" } as const;

/** @param config that the machine has, and that was chosen again. */
export const updateSuperseded = (config: string, target: string): MachineHappening => ({
  ...superseded,
  message: `${config} was chosen again before anything was done for ${target}`,
});

const wayBackText = (to: string, because: string) => `the machine goes back to ${to}: ${because}`;

export const updateSupersededByWayBack = (to: string, because: string): MachineHappening => ({
  ...superseded,
  message: wayBackText(to, because),
});

// The way back

export const wayBackDecided = (
  target: string,
  reason: BookSections["node"]["Rollback"]["Decided"][number],
  message: string,
): MachineHappening => ({
  chapter: "Rollback",
  run: target,
  path: "Decided",
  mark: "begin",
  reason,
  message,
});

export const wentBackFromTarget = (to: string, because: string, about: About): MachineHappening => ({
  about,
  ...inUpdate("Updated"),
  mark: "fail",
  reason: "WentBack",
  outcome: "RolledBack",
  message: wayBackText(to, because),
});

const wayBackDone = {
  chapter: "Rollback",
  path: "Done",
  mark: "end",
  reason: "WentBack",
  outcome: "RolledBack",
} as const;

export const wentBackTo = (config: string): MachineHappening => ({
  ...wayBackDone,
  message: `the machine has ${config} again`,
});

/** Another target came while the machine went back from one, and the machine has it. */
export const wayBackOvertaken = (config: string): MachineHappening => ({
  ...wayBackDone,
  message: `the machine has ${config}`,
});
