import type { EventSubject } from "../api/books/reports.ts";
import { type JournalEntryIn, type SectionOutcome, bookSections } from "../api/books/report-table.ts";
import type { Clock } from "../ports/clock.ts";
import type { NodeJournal, UpdateSection } from "./node-journal-types.ts";
import { type ReportedMemory, begun, textOfNote } from "./reported-memory.ts";

/** Sections that a daemon can be interrupted in. */
const interruptible = new Set<string>(
  Object.entries(bookSections.node.Update).flatMap(([path, reasons]) =>
    (reasons as readonly string[]).includes("Interrupted") ? [path] : [],
  ),
);

/** How to handle a line of a machine's journal. */
export interface LineForms {
  /** The subject of its Event, if one is due. */
  readonly about?: EventSubject | undefined;
  /** The journal has the line already, or has no place for it: only its Event is made. */
  readonly isWritten?: boolean;
}

/** What the parts of a machine's journal report with. */
export interface SectionWriter {
  readonly report: (line: JournalEntryIn<"node">, forms?: LineForms) => void;
  readonly clock: Pick<Clock, "now">;
  readonly memory: ReportedMemory;
}

type Sections = Pick<
  NodeJournal,
  "seen" | "goOn" | "begin" | "note" | "end" | "skip" | "fail" | "isOpen" | "since" | "spanOf" | "finish"
>;
type More = Partial<Pick<JournalEntryIn<"node">, "data" | "next">> &
  LineForms & {
    readonly level?: "progress";
    readonly outcome?: SectionOutcome;
  };

/** Reports a line of the update that is under way; without one, the journal has no place for it. */
function write(
  { report, memory: { run } }: SectionWriter,
  path: UpdateSection,
  mark: JournalEntryIn<"node">["mark"],
  reason: string,
  message: string,
  { about, isWritten = false, ...more }: More = {},
): void {
  const line = { chapter: "Update", path, mark, level: "boundary", reason, message, ...more };
  // The callers' types tie the reason to its section; only this place ties both to the union of all lines.
  report((run === undefined ? line : { ...line, run: run.name }) as JournalEntryIn<"node">, {
    about,
    isWritten: isWritten || run === undefined,
  });
}

/** The sections of an update, each reported once. */
export function updateSections(pen: SectionWriter): Sections {
  const { memory, clock } = pen;
  const sections: Sections = {
    ...sectionMarks(pen),
    seen(target, { from, reached }) {
      if (memory.run?.name === target) return;
      // The daemon ended, or lost the API server's answer, after it had reported this configuration on the Node.
      if (memory.run !== undefined && memory.run.name === reached)
        sections.finish("Succeeded", `the machine has ${reached}; the next target came before this line`);
      memory.run = { name: target, sections: new Map(), notes: new Set(), began: clock.now(), isInherited: false };
      write(pen, "Requested", "end", "TargetSeen", `the daemon has seen its target ${target}`, {
        data: { to: target, ...(from === undefined ? {} : { from }) },
      });
      memory.run.sections.set("Requested", { state: "ended", boot: memory.boot, at: clock.now() });
      sections.begin("Prepared", "Checking", "the machine is compared with it");
    },
    goOn(target, { isOver } = { isOver: false }) {
      const { run } = memory;
      if (run?.name !== target || !run.isInherited) return;
      run.isInherited = false;
      if (isOver && run.sections.get("Resumed")?.state === "ended") return;
      const open = openSections(memory).at(-1);
      const isBehind = run.sections.has("PostAction/Rebooted") || run.sections.has("PostAction/Service");
      const path = (isOver ? "Resumed" : (open ?? (isBehind ? "Resumed" : "Prepared"))) as UpdateSection;
      write(pen, path, "retry", "Interrupted", "the daemon ended here and continues", { outcome: "Interrupted" });
      run.sections.delete(path);
      if (path === "Prepared") sections.begin("Prepared", "Checking", "the machine is compared with its target again");
    },
    finish(how, message, about) {
      write(pen, "Updated", how === "WentBack" ? "fail" : "end", how, message, {
        about,
        outcome: how === "WentBack" ? "RolledBack" : how,
        data: { totalMs: Math.max(0, clock.now() - (memory.run?.began ?? clock.now())) },
      });
      memory.run = undefined;
    },
  };
  return sections;
}

/** Sections of the update that are open and that a daemon can be interrupted in, in their order. */
export const openSections = ({ run }: ReportedMemory): readonly string[] =>
  [...(run?.sections ?? [])].flatMap(([path, { state }]) =>
    state === "open" && interruptible.has(path) ? [path] : [],
  );

/** Events within one section. */
function sectionMarks(
  pen: SectionWriter,
): Pick<Sections, "begin" | "note" | "end" | "skip" | "fail" | "isOpen" | "since" | "spanOf"> {
  const { memory, clock } = pen;
  const sectionOf = (path: UpdateSection) => memory.run?.sections.get(path);
  return {
    begin(path, reason, message, more) {
      const section = sectionOf(path);
      if (section?.state === "open") return write(pen, path, "begin", reason, message, { ...more, isWritten: true });
      const level = section?.state === "failed" ? ({ level: "progress" } as const) : {};
      write(pen, path, "begin", reason, message, { ...more, ...level });
      memory.run?.sections.set(path, begun(section, memory.boot, clock.now()));
    },
    note(path, reason, message, more) {
      const text = textOfNote(path, reason, message);
      const isWritten = memory.run?.notes.has(text) === true;
      write(pen, path, "note", reason, message, isWritten ? { ...more, isWritten } : more);
      memory.run?.notes.add(text);
    },
    end(path, reason, message, more) {
      const section = sectionOf(path);
      if (section?.state === "ended") return write(pen, path, "end", reason, message, { ...more, isWritten: true });
      write(pen, path, "end", reason, message, more);
      const until = clock.now();
      memory.run?.sections.set(path, { state: "ended", boot: memory.boot, at: section?.at ?? until, until });
    },
    skip(path, reason, message) {
      if (sectionOf(path) !== undefined) return;
      write(pen, path, "skip", reason, message, { outcome: "NotRequired" });
      memory.run?.sections.set(path, { state: "ended", boot: memory.boot, at: clock.now() });
    },
    fail(path, reason, message, forms) {
      const section = sectionOf(path);
      const isKnown = section?.failure === message;
      if (isKnown && section.state === "failed")
        return write(pen, path, "fail", reason, message, { ...forms, isWritten: true });
      // A repeated failure is for readers of the file on the machine.
      write(pen, path, "fail", reason, message, { ...forms, ...(isKnown ? { level: "progress" } : {}) });
      if (forms?.isWritten === true) return;
      const at = section?.at ?? clock.now();
      memory.run?.sections.set(path, { state: "failed", boot: memory.boot, at, failure: message });
    },
    isOpen: (path) => sectionOf(path)?.state === "open",
    spanOf(path) {
      const section = sectionOf(path);
      return { from: section?.at, until: section?.until };
    },
    since(path) {
      const at = sectionOf(path)?.at;
      return at === undefined ? undefined : Math.max(0, clock.now() - at);
    },
  };
}
