import { machineConfigNodeConditions as types } from "../api/names.ts";
import { type PhaseReport, childReason, notRequired } from "../core/books/update-conditions.ts";
import type { NodeConfig } from "../core/config/node-config.ts";
import { isAction, isWrite } from "../core/machine/describe-plan.ts";
import type { LocalStep } from "./perform-step.ts";

const filesReason = childReason(types.appliedFilesAndOS, types.appliedFiles);
const osReason = childReason(types.appliedFilesAndOS, types.appliedOSImage);

/** The daemon does not write content that the image provides. */
const filesOfImage = {
  type: types.appliedFiles,
  status: "False",
  reason: notRequired,
  message: "the image brings files and units",
} as const;

const systemStays = {
  type: types.appliedOSImage,
  status: "False",
  reason: notRequired,
  message: "the system does not change",
} as const;

const filesStay = {
  type: types.appliedFiles,
  status: "False",
  reason: notRequired,
  message: "no file and no unit changes",
} as const;

/** What an update changes of its machine. */
export interface WhatChanges {
  readonly files: boolean;
  readonly os: boolean;
}

/** Files and system are about to be changed. */
export const phasesApplying = ({ imageContent, name }: NodeConfig, changes: WhatChanges): readonly PhaseReport[] => [
  imageContent === "full"
    ? filesOfImage
    : changes.files
      ? { type: types.appliedFiles, status: "Unknown", reason: filesReason, message: `writing ${name}` }
      : filesStay,
  changes.os
    ? { type: types.appliedOSImage, status: "Unknown", reason: osReason, message: "staging the system" }
    : systemStays,
];

/** Files and system are changed. */
export const phasesApplied = ({ imageContent, name }: NodeConfig, changes: WhatChanges): readonly PhaseReport[] => [
  imageContent === "full"
    ? filesOfImage
    : changes.files
      ? { type: types.appliedFiles, status: "True", reason: filesReason, message: `${name} is on the disk` }
      : filesStay,
  changes.os
    ? { type: types.appliedOSImage, status: "True", reason: osReason, message: "the system is staged or runs" }
    : systemStays,
];

/** The phase that a step failed in: it stays under way, and reports the obstacle. */
export function phasesFailing(step: LocalStep, problem: string): readonly PhaseReport[] {
  if (step.do === "prefetch")
    return [{ type: types.imagePulledFromRegistry, status: "False", reason: "PullFailed", message: problem }];
  const failed = (parent: string, child: string): PhaseReport => ({
    type: child,
    status: "Unknown",
    reason: `${childReason(parent, child)}Failed`,
    message: `${problem}; it is tried again with growing delays`,
  });
  if (step.do === "stageOs" || step.do === "discardStaged")
    return [failed(types.appliedFilesAndOS, types.appliedOSImage)];
  if (step.do === "reboot") return [failed("", types.rebootedNode)];
  if (isAction(step)) return [failed("", types.updatePostActionComplete)];
  return isWrite(step) || step.do === "openLedger" ? [failed(types.appliedFilesAndOS, types.appliedFiles)] : [];
}
