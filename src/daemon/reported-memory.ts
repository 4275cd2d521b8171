import type { JournalLine } from "../api/books/journal-line.ts";

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

export const textOfNote = (path: string, reason: string, message: string): string => `${path} ${reason} ${message}`;

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
  for (const line of past) remember(line, memory);
  return memory;
}

function remember(line: JournalLine, memory: ReportedMemory): void {
  const { chapter, path, mark } = line;
  switch (chapter) {
    case "Update":
      return rememberUpdate(line, memory);
    case "Degraded":
      memory.trouble = path === "Ended" ? undefined : `${line.reason}: ${line.msg}`;
      return;
    case "Drift":
      memory.drift = path === "Ended" ? undefined : line.msg;
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
      if (path === "Adopted") memory.join.isAdopted = true;
      if (path === "Validated") memory.join.isOver = true;
      return;
    default:
  }
}

function rememberUpdate(
  { path, mark, run: name = "", reason, msg, at, boot }: JournalLine,
  memory: ReportedMemory,
): void {
  if (path === "Updated" && mark !== "retry") {
    memory.run = undefined;
    return;
  }
  if (memory.run?.name !== name)
    memory.run = { name, sections: new Map(), notes: new Set(), began: at, isInherited: true };
  const { sections, notes } = memory.run;
  const known = sections.get(path) ?? { boot, at };
  if (mark === "begin") sections.set(path, begun(sections.get(path), boot, at));
  else if (mark === "end" || mark === "skip") sections.set(path, { ...known, state: "ended", until: at });
  else if (mark === "fail") sections.set(path, { ...known, state: "failed", failure: msg });
  else if (mark === "retry") sections.delete(path);
  else if (mark === "note") notes.add(textOfNote(path, reason, msg));
}

/** Begun, maybe again: the last failure stays known, so that the same failure is not reported again. */
export const begun = (before: Section | undefined, boot: string, at: number): Section => ({
  state: "open",
  boot,
  at,
  ...(before?.failure === undefined ? {} : { failure: before.failure }),
});
