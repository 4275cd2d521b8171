import type { JournalLine } from "../api/books/journal-line.ts";
import type { EventSubject, ReportedLine } from "../api/books/reports.ts";
import { type JournalEntry, bookSections } from "../api/books/report-table.ts";
import { completeLine } from "../api/books/short-lines.ts";
import type { PhaseReport } from "../core/books/update-conditions.ts";
import type { Report } from "../kube/report.ts";
import type { Clock } from "../ports/clock.ts";
import type { MachineHappening, NodeJournal, UpdateSection } from "./node-journal-types.ts";
import { type ReportedMemory, isNews, isRepeated, rememberLine, reportedMemory } from "./reported-memory.ts";
import {
  annotationsInitialised,
  daemonUp,
  firstBootRebooted,
  firstBootValidated,
  joinValidated,
  machineAdopted,
  machineRegistered,
} from "./reports.ts";
import { machineRebooted } from "./step-reports.ts";
import {
  targetComparedAgain,
  targetCompared,
  targetSeen,
  updateInterrupted,
  updateReached,
  updateSupersededByWayBack,
  wayBackDecided,
  wentBackFromTarget,
} from "./update-reports.ts";

/** Sections that a daemon can be interrupted in. */
const interruptible = new Set<string>(
  Object.entries(bookSections.node.Update).flatMap(([path, reasons]) =>
    (reasons as readonly string[]).includes("Interrupted") ? [path] : [],
  ),
);

/** What the parts of a machine's journal report with. */
interface Pen {
  readonly memory: ReportedMemory;
  readonly clock: Pick<Clock, "now">;
  readonly report: NodeJournal["report"];
}

/**
 * @param past lines of this machine's book that were written before, in their order.
 * @param phases sets conditions of the MachineConfigNode.
 */
export function nodeJournal({
  report,
  phases,
  clock,
  nodeName,
  past,
}: {
  readonly report: Report;
  readonly phases?: (reports: readonly PhaseReport[]) => void;
  readonly clock: Pick<Clock, "now">;
  readonly nodeName: string;
  readonly past: readonly JournalLine[];
}): NodeJournal {
  const memory = reportedMemory(past);
  /** The one place that reports a line of the machine's book. Of one that is no news, it reports only the Event. */
  const write = ({ about, phases: forms = [], isWritten: isKnown = false, ...given }: MachineHappening): void => {
    if (forms.length > 0) phases?.(forms);
    const line: JournalEntry = completeLine({ book: `node/${nodeName}`, ...given });
    const isWritten = isKnown || !isNews(line, memory);
    if (isWritten && about === undefined) return;
    const after = withMemory(line, memory, clock.now());
    const reported = { ...after, about, isWritten };
    report(reported as ReportedLine);
    if (!isWritten) rememberLine(after, { at: clock.now(), boot: memory.boot }, memory);
  };
  const pen: Pen = { memory, clock, report: write };
  return {
    get run() {
      return memory.run?.name;
    },
    report: write,
    spanOf(path) {
      const section = memory.run?.sections.get(path);
      return { from: section?.at, until: section?.until };
    },
    seen: (target, from) => beginUpdate(target, from, pen),
    goOn: (target, { isOver } = { isOver: false }) => continueUpdate(target, isOver, pen),
    booted(boot, image, about) {
      memory.boot = boot;
      endReboot(boot, image, about, pen);
      endFirstBoot(boot, image, pen);
    },
    wentBack: (target, how) => beginWayBack(target, how, pen),
    adopted(config, from) {
      pen.report(machineAdopted(config, from));
      pen.report(annotationsInitialised(config));
    },
    validated: (config, node) => endJoin(config, node, pen),
  };
}

/** The line as the journal has it: with the update that it is part of, and as what follows those before it. */
function withMemory(line: JournalEntry, memory: ReportedMemory, now: number) {
  const { chapter, path, run = chapter === "Rollback" ? memory.goingBackFrom : undefined } = line;
  if (chapter === "Drift" && memory.drift !== undefined && line.mark === "begin")
    return { ...line, mark: "note" } as const;
  if (chapter !== "Update") return run === undefined ? line : { ...line, run };
  const ofRun = run ?? memory.run?.name;
  return {
    ...line,
    ...(ofRun === undefined ? {} : { run: ofRun }),
    ...(isRepeated(line, memory) ? ({ level: "progress" } as const) : {}),
    ...(path === "Updated" ? { data: { totalMs: Math.max(0, now - (memory.run?.began ?? now)) } } : {}),
  };
}

function beginUpdate(
  target: string,
  { from, reached }: { readonly from: string | undefined; readonly reached: string | undefined },
  { memory, clock, report }: Pen,
): void {
  if (memory.run?.name === target) return;
  // The daemon ended, or lost the API server's answer, after it had reported this configuration on the Node.
  if (memory.run !== undefined && memory.run.name === reached) report(updateReached(reached));
  memory.run = { name: target, sections: new Map(), notes: new Set(), began: clock.now(), isInherited: false };
  report(targetSeen(target, from));
  report(targetCompared());
}

function continueUpdate(target: string, isOver: boolean, { memory, report }: Pen): void {
  const { run } = memory;
  if (run?.name !== target || !run.isInherited) return;
  run.isInherited = false;
  if (isOver && run.sections.get("Resumed")?.state === "ended") return;
  const open = openSections(memory).at(-1);
  const isBehind = run.sections.has("PostAction/Rebooted") || run.sections.has("PostAction/Service");
  const path = (isOver ? "Resumed" : (open ?? (isBehind ? "Resumed" : "Prepared"))) as UpdateSection;
  report(updateInterrupted(path));
  if (path === "Prepared") report(targetComparedAgain());
}

/** Sections of the update that are open and that a daemon can be interrupted in, in their order. */
const openSections = ({ run }: ReportedMemory): readonly string[] =>
  [...(run?.sections ?? [])].flatMap(([path, { state }]) =>
    state === "open" && interruptible.has(path) ? [path] : [],
  );

/** The machine was booted: ends the sections that a boot ends. */
function endReboot(boot: string, image: string, about: EventSubject | undefined, pen: Pen): void {
  const { memory, clock, report } = pen;
  const { run } = memory;
  const reboot = run?.sections.get("PostAction/Rebooted");
  if (run === undefined || reboot?.state !== "open" || reboot.boot === boot) {
    const known = { ...machineRebooted(boot, image, { about }), isWritten: true };
    return report(known);
  }
  report(machineRebooted(boot, image, { about, upAfterMs: Math.max(0, clock.now() - reboot.at) }));
  // Not an interruption: the reboot was requested here.
  if (openSections(memory).length === 0) run.isInherited = false;
}

/** The daemon is up for the first time on a machine that has just joined. */
function endFirstBoot(boot: string, image: string, { memory: { firstBoot }, report }: Pen): void {
  if (!firstBoot.isOpen || firstBoot.reported.has("DaemonUp")) return;
  report(firstBootRebooted(boot, image));
  report(machineRegistered());
  report(daemonUp());
}

function beginWayBack(
  target: string,
  { to, message, reason, about }: Parameters<NodeJournal["wentBack"]>[1],
  { memory, report }: Pen,
): void {
  report(wayBackDecided(target, reason, message));
  // The daemon had not noticed yet that a target which it refuses was chosen in place of its last one.
  if (memory.run !== undefined && memory.run.name !== target) report(updateSupersededByWayBack(to, message));
  if (memory.run !== undefined || about !== undefined) report(wentBackFromTarget(to, message, about));
}

function endJoin(
  config: string,
  { uid, isNew }: { readonly uid: string; readonly isNew: boolean },
  { memory: { join }, report }: Pen,
): void {
  report(firstBootValidated(config));
  // Its Node was deleted, and the kubelet has registered it again.
  const isAgain = isNew && join.uid !== undefined && join.uid !== uid;
  join.uid = uid;
  if ((!join.isOver || isAgain) && (join.isAdopted || isNew)) report(joinValidated(config));
}
