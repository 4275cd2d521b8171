/**
 * Everything that the daemon reports of the steps of an update, as a function for each happening: lines of the machine's book, conditions
 * of its MachineConfigNode, Events and all of their texts. Callers give the facts, and pass the result to `report`: happenings
 * to that of the machine's journal, notices to that of the context.
 */
import type { Node } from "../api/foreign/kubernetes.ts";
import type { EventSubject } from "../api/books/reports.ts";
import { machineConfigNodeConditions as types } from "../api/names.ts";
import type { PhaseReport } from "../core/books/update-conditions.ts";
import { describeChange } from "../core/config/change.ts";
import {
  type ChangePlan,
  describeActions,
  describeBecause,
  isAction,
  isSystemChange,
  isWrite,
  reasonOfActions,
  writtenBy,
} from "../core/machine/describe-plan.ts";
import type { ObservedDeployment } from "../core/machine/observed-node.ts";
import { listText } from "../core/text/list-text.ts";
import { type Happening, noticed } from "../kube/report.ts";
import type { MachineHappening } from "./node-journal-types.ts";
import type { LocalStep } from "./perform-step.ts";
import { phasesFailing } from "./phase-reports.ts";
import { inUpdate, withPhase } from "./section-forms.ts";

/** How many units a line names, and how many paths. */
const [mostNamedUnits, mostNamedPaths] = [5, 20];

type About = EventSubject | undefined;

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

/** @param written what the update has written before it. */
export const rebootRequested = (node: Node, because: string, written: readonly PhaseReport[]): MachineHappening => ({
  about: node,
  ...inReboot,
  mark: "begin",
  reason: "RebootRequested",
  message: because,
  phases: [
    ...written,
    ...[types.updatePostActionComplete, types.rebootedNode].map(
      (type) => ({ type, status: "Unknown", reason: "Rebooting", message: because }) as const,
    ),
  ],
});

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
  ...(about === undefined
    ? {}
    : {
        phases: [{ type: types.rebootedNode, status: "True", reason: "Rebooted", message: "the machine has rebooted" }],
      }),
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

/**
 * All actions after the writes are done. Actions that are left for the time after a reboot are no reason of that reboot.
 */
export const actionsComplete = (plan: ChangePlan, hasRebooted: boolean): PhaseReport => ({
  type: types.updatePostActionComplete,
  status: "True",
  reason: hasRebooted ? "Rebooted" : reasonOfActions(plan),
  message: hasRebooted ? "" : describeBecause(plan.because),
});

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
  const failed = { mark: "fail", message: problem, phases: phasesFailing(step, problem) } as const;
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
