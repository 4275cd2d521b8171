import type { JournalLine } from "../api/books/journal-line.ts";
import type { ReportMark } from "../api/books/report-table.ts";

/** The reports of one section of the current update. */
export interface Section {
  readonly state: "open" | "ended" | "failed";
  /** Boot in which it began. */
  readonly boot: string;
  /** The last reported failure of it. */
  readonly failure?: string;
  /** When it began, in milliseconds since the epoch. */
  readonly at: number;
  /** When it ended, in milliseconds since the epoch. */
  readonly until?: number;
}

export interface Run {
  readonly name: string;
  readonly sections: Map<string, Section>;
  /** Its notes, as {@link textOfNote} gives them. */
  readonly notes: Set<string>;
  readonly began: number;
  /** Reported by a daemon before this one. */
  isInherited: boolean;
}

/** Earlier reports about a machine, so that each is made once, regardless of the number of passes. */
export interface ReportedMemory {
  /** The boot that the machine runs in. */
  boot: string;
  /** The update that is under way. */
  run: Run | undefined;
  /** Why the machine is degraded, as reason and message. */
  trouble: string | undefined;
  drift: string | undefined;
  /** The target that the machine is going back from. */
  goingBackFrom: string | undefined;
  readonly firstBoot: { isOpen: boolean; readonly reported: Set<string> };
  /** `uid`: that of the Node that its configuration was last reported for. */
  readonly join: { isAdopted: boolean; isOver: boolean; uid: string | undefined };
}

/** A line of the machine's book, as far as it matters for what is reported after it. */
export interface RememberedLine {
  readonly chapter: string;
  readonly run?: string | undefined;
  readonly path: string;
  readonly mark: ReportMark;
  readonly reason: string;
  readonly message: string;
}

/** @param past lines of this machine's book that were written before, in their order. */
export function reportedMemory(past: readonly JournalLine[]): ReportedMemory {
  const memory: ReportedMemory = {
    boot: "",
    run: undefined,
    trouble: undefined,
    drift: undefined,
    goingBackFrom: undefined,
    firstBoot: { isOpen: false, reported: new Set() },
    join: { isAdopted: false, isOver: false, uid: undefined },
  };
  for (const { msg, ...line } of past) rememberLine({ ...line, message: msg }, line, memory);
  if (memory.run !== undefined) memory.run.isInherited = true;
  return memory;
}

/** Whether a line was not reported before, and reports something that can have happened after those that were. */
export function isNews(line: RememberedLine, memory: ReportedMemory): boolean {
  const { chapter, path, reason, message } = line;
  switch (chapter) {
    case "Update":
      return isNewsOfUpdate(line, memory);
    case "Degraded":
      return path === "Ended" ? memory.trouble !== undefined : memory.trouble !== `${reason}: ${message}`;
    case "Drift":
      return path === "Ended" ? memory.drift !== undefined : memory.drift !== message;
    case "Rollback":
      // A daemon that ends after the decision finds the update open, and ends it.
      return path === "Done" ? memory.goingBackFrom !== undefined : memory.goingBackFrom !== line.run;
    case "Firstboot":
      return isNewsOfFirstBoot(path, memory);
    case "Join":
      return path === "Validated" || !memory.join.isAdopted || memory.join.isOver;
    default:
      return true;
  }
}

/** A reboot is over if the first boot asked for one; that the machine is validated ends it, however often it failed before. */
const isNewsOfFirstBoot = (path: string, { firstBoot: { isOpen, reported } }: ReportedMemory): boolean =>
  isOpen && (path === "Reboot" ? reported.has(path) : path === "Validated" || !reported.has(path));

/** Without an update under way, the journal has no place for a line about one. */
function isNewsOfUpdate({ path, mark, reason, message }: RememberedLine, { run }: ReportedMemory): boolean {
  if (run === undefined) return false;
  const section = run.sections.get(path);
  switch (mark) {
    case "begin":
      return section?.state !== "open";
    case "end":
      return section?.state !== "ended";
    case "skip":
      return section === undefined;
    case "note":
      return !run.notes.has(textOfNote(path, reason, message));
    case "fail":
      // A boot reports it of the last shutdown, which is part of the update only if the update requested that reboot.
      if (reason === "FinaliseFailed" && section?.state !== "open") return false;
      return section?.state !== "failed" || section.failure !== message;
    case "retry":
      return true;
  }
}

/** Whether a line repeats what failed before: it is for readers of the file on the machine. */
export function isRepeated({ chapter, path, mark, message }: RememberedLine, { run }: ReportedMemory): boolean {
  const section = chapter === "Update" ? run?.sections.get(path) : undefined;
  return mark === "begin" ? section?.state === "failed" : mark === "fail" && section?.failure === message;
}

/** Where and when a line was written; the time is in milliseconds since the epoch. */
interface WrittenAt {
  readonly at: number;
  readonly boot: string;
}

/** Adds a line that was reported. */
export function rememberLine(line: RememberedLine, written: WrittenAt, memory: ReportedMemory): void {
  const { chapter, path, mark } = line;
  switch (chapter) {
    case "Update":
      return rememberUpdate(line, written, memory);
    case "Degraded":
      memory.trouble = path === "Ended" ? undefined : `${line.reason}: ${line.message}`;
      return;
    case "Drift":
      memory.drift = path === "Ended" ? undefined : line.message;
      return;
    case "Rollback":
      memory.goingBackFrom = path === "Done" ? undefined : (line.run ?? "");
      return;
    case "Firstboot":
      // A first boot that was given up can be retried.
      memory.firstBoot.isOpen = path !== "Validated" || mark !== "end";
      // A reboot that was not required did not happen.
      if (path !== "Reboot" || mark === "begin") memory.firstBoot.reported.add(path);
      return;
    case "Join":
      if (path === "Adopted") {
        memory.join.isAdopted = true;
        memory.join.isOver = false;
      }
      if (path === "Validated") memory.join.isOver = true;
      return;
    default:
  }
}

function rememberUpdate(
  { path, mark, run: name = "", reason, message }: RememberedLine,
  { at, boot }: WrittenAt,
  memory: ReportedMemory,
): void {
  if (path === "Updated" && mark !== "retry") {
    memory.run = undefined;
    return;
  }
  if (memory.run?.name !== name)
    memory.run = { name, sections: new Map(), notes: new Set(), began: at, isInherited: false };
  const { sections, notes } = memory.run;
  const before = sections.get(path);
  const began = before?.at ?? at;
  if (mark === "begin") sections.set(path, begun(before, boot, at));
  else if (mark === "end") sections.set(path, { state: "ended", boot, at: began, until: at });
  else if (mark === "skip") sections.set(path, { state: "ended", boot, at: began });
  else if (mark === "fail") sections.set(path, { state: "failed", boot, at: began, failure: message });
  else if (mark === "retry") sections.delete(path);
  else notes.add(textOfNote(path, reason, message));
}

const textOfNote = (path: string, reason: string, message: string): string => `${path} ${reason} ${message}`;

/** Begun, maybe again: the last failure stays known, so that the same failure is not reported again. */
const begun = (before: Section | undefined, boot: string, at: number): Section => ({
  state: "open",
  boot,
  at,
  ...(before?.failure === undefined ? {} : { failure: before.failure }),
});
