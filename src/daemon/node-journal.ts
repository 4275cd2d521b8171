import type { JournalLine } from "../api/books/journal-line.ts";
import type { EventSubject, ReportedLine } from "../api/books/reports.ts";
import type { JournalEntryIn } from "../api/books/report-table.ts";
import type { Report } from "../kube/report.ts";
import type { Clock } from "../ports/clock.ts";
import type { NodeJournal } from "./node-journal-types.ts";
import { reportedMemory } from "./reported-memory.ts";
import { type LineForms, type SectionWriter, openSections, updateSections } from "./update-sections.ts";

/** @param past lines of this machine's book that were written before, in their order. */
export function nodeJournal({
  report,
  clock,
  nodeName,
  past,
}: {
  readonly report: Report;
  readonly clock: Pick<Clock, "now">;
  readonly nodeName: string;
  readonly past: readonly JournalLine[];
}): NodeJournal {
  const memory = reportedMemory(past);
  const pen: SectionWriter = { report: (line, forms) => reportLine(report, nodeName, line, forms), clock, memory };
  const sections = updateSections(pen);
  return {
    get run() {
      return memory.run?.name;
    },
    ...sections,
    booted(boot, message, about) {
      memory.boot = boot;
      endReboot(boot, message, sections, pen, about);
      endFirstBoot(message, pen);
    },
    ...troubles(pen),
    wentBack(target, { to, message, reason, about }) {
      // A daemon that ends after this line finds the update open, and ends it.
      if (memory.goingBackFrom !== target)
        pen.report({
          chapter: "Rollback",
          run: target,
          path: "Decided",
          mark: "begin",
          level: "boundary",
          reason,
          message,
        });
      memory.goingBackFrom = target;
      const back = `the machine goes back to ${to}: ${message}`;
      // The daemon had not noticed yet that a target which it refuses was chosen in place of its last one.
      if (memory.run !== undefined && memory.run.name !== target) sections.finish("Superseded", back);
      if (memory.run !== undefined || about !== undefined) sections.finish("WentBack", back, about);
    },
    isBack(message) {
      const run = memory.goingBackFrom;
      if (run === undefined) return;
      memory.goingBackFrom = undefined;
      pen.report({
        chapter: "Rollback",
        run,
        path: "Done",
        mark: "end",
        level: "boundary",
        reason: "WentBack",
        outcome: "RolledBack",
        message,
      });
    },
    ...joining(pen),
  };
}

/**
 * The one place that reports a line of the machine's book. It requests no Event that is not due. For a line that is
 * already in the journal, it reports only the Event.
 */
function reportLine(
  report: Report,
  nodeName: string,
  line: JournalEntryIn<"node">,
  { about, isWritten = false }: LineForms = {},
): void {
  if (isWritten && about === undefined) return;
  report({ book: `node/${nodeName}`, ...line, about, isWritten } as ReportedLine);
}

/** The machine was booted: ends the sections that a boot ends. */
function endReboot(
  boot: string,
  message: string,
  sections: Pick<NodeJournal, "end">,
  { report, memory, clock }: SectionWriter,
  about: EventSubject | undefined,
): void {
  const { run } = memory;
  const path = "PostAction/Rebooted";
  const reboot = run?.sections.get(path);
  if (run === undefined || reboot?.state !== "open" || reboot.boot === boot) {
    const line = { chapter: "Update", path, mark: "end", level: "boundary", reason: "Rebooted", message } as const;
    report(line, { about, isWritten: true });
    return;
  }
  const upAfterMs = Math.max(0, clock.now() - reboot.at);
  sections.end(path, "Rebooted", message, { data: { boot, upAfterMs }, about });
  // Not an interruption: the reboot was requested here.
  if (openSections(memory).length === 0) run.isInherited = false;
}

/** The daemon is up for the first time on a machine that has just joined. */
function endFirstBoot(message: string, { memory: { firstBoot }, report }: SectionWriter): void {
  if (!firstBoot.isOpen || firstBoot.reported.has("DaemonUp")) return;
  const here = { chapter: "Firstboot", mark: "end", level: "boundary" } as const;
  if (firstBoot.reported.has("Reboot")) report({ ...here, path: "Reboot", reason: "Rebooted", message });
  report({ ...here, path: "Registered", reason: "Registered", message: "its Node exists" });
  report({ ...here, path: "DaemonUp", reason: "Up", message: "the daemon manages the machine" });
  firstBoot.reported.add("DaemonUp");
}

/** Reports that the machine is degraded, and that it has recovered. */
function troubles({
  memory,
  report,
}: SectionWriter): Pick<NodeJournal, "degraded" | "recovered" | "drifted" | "driftEnded"> {
  return {
    degraded(reason, message, about) {
      const known = `${reason}: ${message}`;
      const isWritten = memory.trouble === known;
      memory.trouble = known;
      const line = { chapter: "Degraded", path: "Failed", mark: "fail", level: "boundary", reason, message } as const;
      report(line, { about, isWritten });
    },
    recovered(message) {
      if (memory.trouble === undefined) return;
      memory.trouble = undefined;
      report({ chapter: "Degraded", path: "Ended", mark: "end", level: "boundary", reason: "Recovered", message });
    },
    drifted(message, about) {
      const mark = memory.drift === undefined ? "begin" : "note";
      const line = {
        chapter: "Drift",
        path: "Detected",
        mark,
        level: "boundary",
        reason: "ConfigDrift",
        message,
      } as const;
      report(line, { about, isWritten: memory.drift === message });
      memory.drift = message;
    },
    driftEnded(reason, message) {
      if (memory.drift === undefined) return;
      memory.drift = undefined;
      report({ chapter: "Drift", path: "Ended", mark: "end", level: "boundary", reason, message });
    },
  };
}

/** How the machine joined the cluster. */
function joining({ memory: { firstBoot, join }, report }: SectionWriter): Pick<NodeJournal, "adopted" | "validated"> {
  const here = { mark: "end", level: "boundary" } as const;
  return {
    adopted(config, from) {
      if (join.isAdopted && !join.isOver) return;
      join.isAdopted = true;
      join.isOver = false;
      report({
        ...here,
        chapter: "Join",
        path: "Adopted",
        reason: "Adopted",
        message: `the machine has ${config}`,
        data: { from },
      });
      if (!firstBoot.isOpen || firstBoot.reported.has("AnnotationsInitialised")) return;
      firstBoot.reported.add("AnnotationsInitialised");
      const message = `the node says that it has ${config}`;
      report({ ...here, chapter: "Firstboot", path: "AnnotationsInitialised", reason: "Applied", message });
    },
    validated(config, { uid, isNew }) {
      const validated = { reason: "Validated", message: `the machine has ${config}`, data: { config } } as const;
      if (firstBoot.isOpen) {
        firstBoot.isOpen = false;
        report({ ...here, chapter: "Firstboot", path: "Validated", ...validated });
      }
      // Its Node was deleted, and the kubelet has registered it again.
      const isAgain = isNew && join.uid !== undefined && join.uid !== uid;
      join.uid = uid;
      if ((join.isOver && !isAgain) || !(join.isAdopted || isNew)) return;
      join.isOver = true;
      report({ ...here, chapter: "Join", path: "Validated", ...validated });
    },
  };
}
