import { greatestOf, leastOf } from "../../api/schema/extremes.ts";
import type { BookSections, ReportMark } from "../../api/books/report-table.ts";
import { withTransition } from "../../api/schema/conditions.ts";
import { type Condition, timestampOf } from "../../api/schema/object.ts";
import { durationText } from "./fold-book.ts";
import { phasesOfRun, withNodeProgress } from "./node-progress.ts";
import { machineConfigNodeConditions as types } from "../../api/names.ts";

/** The current report of one update phase; parents are derived during a run, and given at its end. */
export interface PhaseReport {
  readonly type: string;
  readonly status: Condition["status"];
  readonly reason: string;
  readonly message: string;
  /** A newer target that came: a phase that was under way says so, until the new run enters it. */
  readonly supersededBy?: string;
}

/**
 * Parent → children, in the order of an update; one that is a child itself comes before its parent. A parent without
 * children speaks for itself.
 */
const childrenOf: Readonly<Record<string, readonly string[]>> = {
  [types.appliedFilesAndOS]: [types.appliedFiles, types.appliedOSImage],
  [types.updateExecuted]: [types.cordoned, types.drained, types.appliedFilesAndOS],
  [types.updateComplete]: [types.uncordoned],
};

/** Phases of carrying an update out: what a newer target interrupts. */
const executed: ReadonlySet<string> = new Set([
  types.cordoned,
  types.drained,
  types.appliedFiles,
  types.appliedOSImage,
]);

/** Every condition type of a MachineConfigNode that this suite keeps. */
export const allConditionTypes: readonly string[] = Object.values(types);

/** Reason of a child that this update does not need. */
export const notRequired = "NotRequired";
export const notYetOccurred = "NotYetOccurred";
/** Reason of a phase that a newer target met under way, and of its parent. */
export const supersededReason = "Superseded";

const messageLimit = 1024;
const clip = (message: string) => (message.length <= messageLimit ? message : `${message.slice(0, messageLimit - 1)}…`);

/**
 * The conditions after some phases reported: types that are missing are filled in, parents follow from their children,
 * `Reconciling` and `Stalled` from all, and the time of a transition moves only when the status does.
 *
 * @param now milliseconds since the epoch.
 * @returns the same list when nothing changed.
 */
export function withPhases(
  before: readonly Condition[],
  reports: readonly PhaseReport[],
  now: number,
): readonly Condition[] {
  const known = new Map(before.map((condition) => [condition.type, condition]));
  const next = new Map<string, PhaseReport>();
  for (const type of allConditionTypes)
    next.set(
      type,
      known.get(type) ?? {
        type,
        status: "False",
        reason: notYetOccurred,
        message: `This node has not yet entered the ${type} phase`,
      },
    );
  for (const { supersededBy, ...report } of reports) {
    const old = next.get(report.type);
    const wasUnderWay = supersededBy !== undefined && old?.status === "Unknown";
    next.set(
      report.type,
      wasUnderWay
        ? {
            type: report.type,
            status: "Unknown",
            reason: supersededReason,
            message: `${supersededBy} came in the middle of it`,
          }
        : { ...report, message: clip(report.message) },
    );
  }
  for (const [parent, children] of Object.entries(childrenOf)) {
    const reported = children.flatMap((child) => next.get(child) ?? []);
    const isBehind = reported.every(({ reason }) => reason === "Done") && next.get(parent)?.reason === "Done";
    // What a run left is reported for the parent, too: its text follows from more than the children's texts.
    if (!isBehind) next.set(parent, parentOf(parent, reported));
  }

  const merged = [...next.values()].map((phase): Condition => {
    const { type, status, reason, message } = phase;
    const old = known.get(type);
    const isSame = old?.status === status && old.reason === reason && old.message === message;
    return isSame ? old : withTransition(old, { type, status, reason, message }, now);
  });
  const foreign = before.filter(({ type }) => !next.has(type));
  const unchanged =
    merged.every((condition) => known.get(condition.type) === condition) &&
    merged.length + foreign.length === before.length;
  return withNodeProgress(unchanged ? before : [...merged, ...foreign], now);
}

function parentOf(type: string, children: readonly PhaseReport[]): PhaseReport {
  const working = children.find(({ status }) => status === "Unknown");
  if (working !== undefined)
    return {
      type,
      status: "Unknown",
      reason: working.reason === supersededReason ? supersededReason : working.type,
      message: working.message,
    };
  const entered = children.filter(({ reason }) => reason !== notYetOccurred);
  if (
    children.length > 0 &&
    entered.length === children.length &&
    entered.every(({ status, reason }) => status === "True" || reason === notRequired)
  ) {
    return {
      type,
      status: "True",
      reason: type,
      message: entered
        .map(({ message }) => message)
        .filter((message) => message !== "")
        .join("; "),
    };
  }
  const done = entered.findLast(({ status }) => status === "True");
  if (done !== undefined) return { type, status: "Unknown", reason: done.type, message: done.message };
  return children[0]?.reason === "Done"
    ? { type, status: "False", reason: "Done", message: children[0].message }
    : { type, status: "False", reason: notYetOccurred, message: `This node has not yet entered the ${type} phase` };
}

/** Child reasons repeat parent and child, as the reference writes them: `UpdateExecutedDrained`. */
export const childReason = (parent: string, child: string) => `${parent}${child}`;

type Sections = BookSections["node"]["Update"];
/** What a line of a section of an update says. */
export type SectionReport = {
  readonly [P in keyof Sections]: { readonly path: P; readonly reason: Sections[P][number] };
}[keyof Sections] & { readonly mark: ReportMark; readonly message: string };

/**
 * Sections of an update → the phase that they are, and the reasons that its condition has where they are not those of
 * the line: users and scripts know them. A section that is not here has no condition of its own, or one that several
 * sections make.
 */
const phaseOfSection: Readonly<
  Partial<Record<keyof Sections, { readonly type: string; readonly reasons?: Readonly<Record<string, string>> }>>
> = {
  Prepared: {
    type: types.updatePrepared,
    reasons: { Planned: types.updatePrepared, Irreconcilable: "UpdatePreparedFailed" },
  },
  "Executed/ImagePulled": { type: types.imagePulledFromRegistry },
  "Executed/Cordoned": {
    type: types.cordoned,
    reasons: { Cordoned: childReason(types.updateExecuted, types.cordoned) },
  },
  "Executed/Drained": {
    type: types.drained,
    reasons: { Drained: childReason(types.updateExecuted, types.drained) },
  },
  "Executed/OS": {
    type: types.appliedOSImage,
    reasons: {
      Staging: childReason(types.appliedFilesAndOS, types.appliedOSImage),
      Staged: childReason(types.appliedFilesAndOS, types.appliedOSImage),
      StageFailed: `${childReason(types.appliedFilesAndOS, types.appliedOSImage)}Failed`,
    },
  },
  "Executed/Files": {
    type: types.appliedFiles,
    reasons: {
      Writing: childReason(types.appliedFilesAndOS, types.appliedFiles),
      Written: childReason(types.appliedFilesAndOS, types.appliedFiles),
      WriteFailed: `${childReason(types.appliedFilesAndOS, types.appliedFiles)}Failed`,
    },
  },
  "PostAction/Rebooted": {
    type: types.rebootedNode,
    reasons: { RebootRequested: "Rebooting", RebootFailed: `${types.rebootedNode}Failed` },
  },
  "PostAction/Service": {
    type: types.updatePostActionComplete,
    reasons: { ServiceFailed: `${types.updatePostActionComplete}Failed` },
  },
  Resumed: { type: types.resumed },
  Updated: { type: types.updated, reasons: { Succeeded: "Updated" } },
};

/**
 * The condition that says what a line of an update's section says; `undefined` where none does. A section that is under
 * way or has failed is tried again, so that its phase is not known yet; an image that could not be fetched is not there.
 */
export function phaseOfCondition({ path, mark, reason, message }: SectionReport): PhaseReport | undefined {
  const phase = phaseOfSection[path];
  if (phase === undefined) return undefined;
  const { type, reasons = {} } = phase;
  return { type, status: statusOf(mark, type), reason: reasons[reason] ?? reason, message };
}

function statusOf(mark: ReportMark, type: string): PhaseReport["status"] {
  switch (mark) {
    case "end":
      return "True";
    case "skip":
      return "False";
    case "fail":
      return type === types.imagePulledFromRegistry ? "False" : "Unknown";
    case "begin":
    case "note":
    case "retry":
      return "Unknown";
  }
}

/** At the start of a run every phase is ahead again, and the node is not updated. */
export function phasesAtStart(target: string): readonly PhaseReport[] {
  return allConditionTypes
    .filter((type) => type !== types.nodeDegraded)
    .map((type) =>
      type === types.updated
        ? { type, status: "False", reason: "UpdateRequested", message: `an update to ${target} was asked for` }
        : {
            type,
            status: "False",
            reason: notYetOccurred,
            message: `This node has not yet entered the ${type} phase`,
            ...(executed.has(type) ? { supersededBy: target } : {}),
          },
    );
}

/** When a phase began and ended, in milliseconds since the epoch, as far as it was reported. */
export interface PhaseSpan {
  readonly from?: number | undefined;
  readonly until?: number | undefined;
}

/** What became of a phase in the run that is over. `NotReported`: it began, and its end was not reported. */
type Ending = PhaseSpan & { readonly outcome: "Succeeded" | "NotRequired" | "NotReported"; readonly detail?: string };

/** Sections of the daemon's journal whose spans are those of a condition. */
export const sectionsOfPhases: readonly { readonly path: keyof Sections; readonly type: string }[] = (
  Object.entries(phaseOfSection) as [keyof Sections, { readonly type: string }][]
).map(([path, { type }]) => ({ path, type }));

/**
 * At the end everything is behind: the last run stays readable in the messages. What a phase says follows from what was
 * reported for it in this run, and what a parent says from its children. A machine that was taken out of service is
 * put back by the controller, which reports that itself.
 *
 * @param run the conditions as the run left them. @param spans of phases, by condition type.
 * @param now milliseconds since the epoch.
 */
export function phasesAtEnd(
  target: string,
  run: readonly Condition[],
  { now, spans }: { readonly now: number; readonly spans: ReadonlyMap<string, PhaseSpan> },
): readonly PhaseReport[] {
  const left = new Map(run.map((phase) => [phase.type, phase]));
  const wasCordoned = isEntered(left.get(types.cordoned));
  const endings = new Map<string, Ending>();
  for (const type of allConditionTypes) {
    const phase = left.get(type);
    // Of an update that is reported already, or of the controller.
    if (childrenOf[type] !== undefined || phase?.reason === "Done" || type === types.updated) continue;
    if (type === types.nodeDegraded || (type === types.uncordoned && wasCordoned)) continue;
    endings.set(type, endingOf(phase, spans.get(type) ?? spanOfController(type, left)));
  }
  for (const [parent, children] of Object.entries(childrenOf)) {
    const known = children.flatMap((child) => endings.get(child) ?? []);
    if (known.length === children.length) endings.set(parent, together(known));
  }
  return [
    ...[...endings].map(([type, ending]) => ({
      type,
      status: "False" as const,
      reason: "Done",
      message: endingText(ending, target, now),
    })),
    { type: types.updated, status: "True", reason: "Updated", message: `the machine has ${target}` },
  ];
}

/**
 * Whether conditions still speak of an update that was entered. A daemon that ended between reporting to the Node that
 * the machine is done and reporting it here leaves them so.
 */
export const isRunLeft = (conditions: readonly Condition[]): boolean =>
  conditions.some(({ type, status }) => status !== "False" && phasesOfRun.includes(type));

/** The controller drains a machine as soon as it is cordoned; its journal is another. */
function spanOfController(type: string, left: ReadonlyMap<string, Condition>): PhaseSpan {
  const cordoned = left.get(types.cordoned);
  return type === types.drained && cordoned?.status === "True" ? { from: Date.parse(cordoned.lastTransitionTime) } : {};
}

const isEntered = (phase: Condition | undefined): phase is Condition =>
  phase !== undefined && ![notYetOccurred, notRequired, supersededReason, "Done"].includes(phase.reason);

function endingOf(phase: Condition | undefined, span: PhaseSpan = {}): Ending {
  if (!isEntered(phase)) return { outcome: "NotRequired" };
  const detail =
    phase.type === types.updatePostActionComplete && phase.status !== "False"
      ? { detail: `${phase.reason}${phase.message === "" ? "" : `: ${phase.message}`}` }
      : {};
  if (phase.reason === "None") return { outcome: "NotRequired", ...detail };
  const at = Date.parse(phase.lastTransitionTime);
  return phase.status === "True"
    ? { outcome: "Succeeded", from: span.from, until: span.until ?? at, ...detail }
    : { outcome: "NotReported", from: span.from ?? at, ...detail };
}

/** A parent succeeded when a child did and all ended; it began with the first, and ended with the last. */
function together(children: readonly Ending[]): Ending {
  const done = children.filter(({ outcome }) => outcome !== "NotRequired");
  if (done.length === 0) return { outcome: "NotRequired" };
  const from = done.every((child) => child.from !== undefined)
    ? leastOf(done.flatMap((child) => child.from ?? []))
    : undefined;
  return done.some(({ outcome }) => outcome === "NotReported")
    ? { outcome: "NotReported", from }
    : { outcome: "Succeeded", from, until: greatestOf(done.flatMap((child) => child.until ?? [])) };
}

const spanText = (from: number, until: number) => durationText(Math.max(0, until - from));

function endingText({ outcome, from, until, detail }: Ending, target: string, now: number): string {
  const took = from === undefined || until === undefined ? "" : `, ${spanText(from, until)}`;
  const ended = outcome === "NotReported" ? "its end was not reported" : `ended ${timestampOf(until ?? now)}`;
  return `last: ${outcome}${took}, target ${target}, ${ended}${detail === undefined ? "" : `: ${detail}`}`;
}
