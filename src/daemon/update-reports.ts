/**
 * Everything that the daemon reports of an update besides its steps (`step-reports.ts`), as a function for each happening: lines of the machine's book, conditions
 * of its MachineConfigNode, Events and all of their texts. Callers give the facts, and pass the result to `report`: happenings
 * to that of the machine's journal, notices to that of the context.
 */
import type { Node } from "../api/foreign/kubernetes.ts";
import type { BookSections } from "../api/books/report-table.ts";
import type { EventSubject } from "../api/books/reports.ts";
import { machineConfigNodeConditions as types } from "../api/names.ts";
import { defined } from "../api/schema/defined.ts";
import { type PhaseReport, phasesAtStart } from "../core/books/update-conditions.ts";
import { describeBecause, machineForecast } from "../core/machine/describe-plan.ts";
import type { UpdatePlan } from "../core/machine/pass-plan.ts";
import { countText } from "../core/text/count-text.ts";
import { type Happening, noticed } from "../kube/report.ts";
import type { MachineHappening, UpdateSection } from "./node-journal-types.ts";
import { inUpdate, notDegraded, withPhase } from "./section-forms.ts";

type About = EventSubject | undefined;

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

/** @param isFirst the wait has only begun. */
export const policiesAwaited = (message: string, isFirst: boolean): MachineHappening =>
  withPhase({ ...inUpdate("Prepared"), mark: "note", reason: "PoliciesNotMerged", message, isWritten: !isFirst });

/** A resumed update is not announced again, and a machine whose update failed stays degraded until a later attempt succeeds. */
export const updatePlanned = ({
  plan,
  observed: { booted },
  target: { config },
  announcement,
  isRetry,
}: UpdatePlan): MachineHappening => ({
  mark: "end",
  reason: "Planned",
  message: `${countText(plan.changes.length, "change")}; ${describeBecause(plan.because) || "nothing has to be done"}`,
  data: machineForecast(plan, booted, config),
  phases: [
    ...(announcement === undefined ? [] : phasesAnnounced(config.name, announcement.message)),
    ...(isRetry ? [] : [notDegraded]),
  ],
});

const phasesAnnounced = (target: string, message: string): readonly PhaseReport[] => [
  ...phasesAtStart(target),
  { type: types.updatePrepared, status: "True", reason: types.updatePrepared, message },
];

export const bootResynced = (node: Node, target: string): Happening =>
  noticed(
    node,
    "BootResync",
    `${node.metadata.name} has booted with something else than ${target}, which it should have`,
  );

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

// Its end

/** @param isNews the conditions do not have it yet. */
export const operationResumed = (config: string, isNews: boolean): MachineHappening => ({
  mark: "end",
  reason: "Resumed",
  message: `in normal operation with ${config}`,
  phases: [
    { type: types.updated, status: "True", reason: "Updated", message: `the machine has ${config}` },
    ...(isNews
      ? [
          {
            type: types.resumed,
            status: "True",
            reason: types.resumed,
            message: `in normal operation with ${config}`,
          } as const,
        ]
      : []),
  ],
});

export const updateDone = (node: Node, config: string): Happening =>
  noticed(node, "NodeDone", `${node.metadata.name} now has ${config}`);

const succeeded = { mark: "end", reason: "Succeeded", outcome: "Succeeded" } as const;

export const updateSucceeded = (config: string): MachineHappening => ({
  ...succeeded,
  message: `the machine has ${config}`,
});

/** The machine has it whole, which no line reported before the next target came. */
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
