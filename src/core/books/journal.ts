import { utf8ToBytes } from "@noble/hashes/utils.js";
import type { JournalLine, JournalMark } from "../../api/books/journal-line.ts";
import type { MachineStateJournal } from "../../api/books/machine-state-journal.ts";
import { journals } from "../../api/names.ts";
import type { ReportLevel, JournalEntry } from "../../api/books/report-table.ts";
import { clipText } from "../text/clip-text.ts";
import { latestTimeMs } from "./order-lines.ts";
import { defined } from "../../api/schema/defined.ts";

/** A writer: one sequence of numbers for each writer and boot. */
export type WriterIdentity = JournalLine["writer"];

/** The fields that the journal adds to a line. */
export interface LineStamp {
  readonly writer: WriterIdentity;
  /** Boot id of the machine; for a pod, its uid. */
  readonly boot: string;
  readonly number: LineNumber;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Milliseconds since the boot, or since any other moment that is the same for all lines of it. */
  readonly mono: number;
}

export interface LineNumber {
  readonly seq: number;
  readonly sub?: number;
}

/**
 * The number of the next line. Boundary lines are numbered, so that a missing one is noticed; other lines attach to the
 * last boundary line.
 */
export function numberAfter(last: LineNumber, level: ReportLevel): LineNumber {
  return level === "boundary" ? { seq: last.seq + 1 } : { seq: last.seq, sub: (last.sub ?? 0) + 1 };
}

/** UTF-8 bytes of a line on disk, at most. */
export const diskLineBytes = 2048;
/** Characters of a run and of a path: machine-state-journal.ts. */
const longestName = 253;
/** UTF-8 bytes of a line in a journal object, at most. */
export const objectLineBytes = 1024;
/** Lines of a journal object, and their bytes. */
export const ringLimits = { lines: 200, bytes: 128 * 1024 - 8 * 1024 } as const;
/** Writers whose newest line a journal remembers. */
const rememberedWriters = 32;

/** UTF-8 bytes of a value as JSON. */
export const jsonBytes = (value: unknown): number => utf8ToBytes(JSON.stringify(value)).length;

/** A line as it is stored, its texts shortened to the limit. Secrets are already redacted. */
export function lineOf(line: JournalEntry, { writer, boot, number, at, mono }: LineStamp): JournalLine {
  const data = Object.entries(line.data ?? {}).map(([key, value]) => [key, clipText(String(value), 1024)] as const);
  const whole: JournalLine = {
    v: 1,
    writer,
    boot,
    ...number,
    at: Math.round(at),
    mono: Math.round(mono),
    book: line.book,
    chapter: line.chapter,
    // Both may contain what a machine writes, or its name: a journal refuses all lines because of one that is too long.
    ...(line.run === undefined ? {} : { run: clipText(line.run, longestName) }),
    path: clipText(line.path, longestName),
    mark: line.mark,
    level: line.level,
    ...defined({ outcome: line.outcome }),
    reason: line.reason,
    msg: clipText(line.message, 1024),
    ...(line.next === undefined ? {} : { next: { ...line.next, action: clipText(line.next.action, 512) } }),
    ...(data.length === 0 ? {} : { data: Object.fromEntries(data) }),
    ...(line.refs === undefined || line.refs.length === 0
      ? {}
      : { refs: line.refs.slice(0, 16).map((reference) => ({ ...reference })) }),
    via: "told",
  };
  return shortened(whole, diskLineBytes);
}

/** The same line within a byte limit: drops details first, then cuts the message. */
export function shortened(line: JournalLine, limit: number): JournalLine {
  if (jsonBytes(line) <= limit) return line;
  let short: JournalLine = {
    ...line,
    ...(line.data === undefined
      ? {}
      : { data: Object.fromEntries(Object.entries(line.data).map(([key, value]) => [key, clipText(value, 120)])) }),
  };
  if (jsonBytes(short) > limit) {
    const { refs: _refs, ...rest } = short;
    short = rest;
  }
  for (const length of [512, 256, 128, 64]) {
    if (jsonBytes(short) <= limit) return short;
    short = {
      ...short,
      msg: clipText(short.msg, length),
      ...(short.next === undefined ? {} : { next: { ...short.next, action: clipText(short.next.action, length) } }),
    };
  }
  if (jsonBytes(short) <= limit) return short;
  const { data: _data, next: _next, ...bare } = short;
  return bare;
}

/** Parses a line of a journal file; `undefined` if invalid, such as a truncated line. */
export function journalLineIn(text: string): JournalLine | undefined {
  try {
    const line = JSON.parse(text) as Partial<JournalLine> | null;
    const isWhole =
      line?.v === 1 &&
      typeof line.boot === "string" &&
      typeof line.book === "string" &&
      typeof line.seq === "number" &&
      typeof line.at === "number" &&
      typeof line.writer?.component === "string";
    return isWhole ? (line as JournalLine) : undefined;
  } catch {
    return undefined;
  }
}

const isSame = (
  a: Pick<JournalMark, "component" | "instance" | "boot">,
  b: Pick<JournalMark, "component" | "instance" | "boot">,
) => a.component === b.component && a.instance === b.instance && a.boot === b.boot;
export const markOf = ({ writer, boot, seq }: Pick<JournalLine, "writer" | "boot" | "seq">): JournalMark => ({
  component: writer.component,
  instance: writer.instance,
  boot,
  seq,
});

/** The last line of each writer and boot, the newest writer last. */
export function marksOf(
  lines: Iterable<Pick<JournalLine, "writer" | "boot" | "seq">>,
  before: readonly JournalMark[] = [],
): readonly JournalMark[] {
  const marks = [...before];
  for (const line of lines) {
    const mark = markOf(line);
    const index = marks.findIndex((each) => isSame(each, mark));
    const known = marks[index];
    if (known !== undefined && known.seq >= mark.seq) continue;
    if (index >= 0) marks.splice(index, 1);
    marks.push(mark);
  }
  return marks;
}

/** Whether a line is at or before the last known one of its writer. */
export const isKnown = (marks: readonly JournalMark[], line: Pick<JournalLine, "writer" | "boot" | "seq">): boolean =>
  marks.some((mark) => isSame(mark, markOf(line)) && mark.seq >= line.seq);

export interface Append {
  /** The journal afterwards. */
  readonly spec: MachineStateJournal["spec"];
  /** The same as a JSON patch; the sender adds the resourceVersion that was read. */
  readonly operations: readonly {
    readonly op: "add" | "remove" | "replace";
    readonly path: string;
    readonly value?: unknown;
  }[];
  /** How many lines are new in it. */
  readonly added: number;
}

/**
 * Appends boundary lines to a journal, each at most once by writer, boot and number. Drops the oldest lines above the
 * limit.
 *
 * @param lines in the order in which each writer wrote them.
 * @returns `undefined`: the journal already has them all.
 */
export function appendLines(
  before: MachineStateJournal["spec"] | undefined,
  lines: readonly JournalLine[],
): Append | undefined {
  let marks: readonly JournalMark[] = before?.last ?? [];
  const added: JournalLine[] = [];
  for (const line of lines) {
    if (line.level !== "boundary" || isKnown(marks, line)) continue;
    marks = marksOf([line], marks);
    added.push(shortened(line, objectLineBytes));
  }
  if (added.length === 0) return undefined;
  // Lines beyond the capacity of the ring are never added.
  let all = [...(before?.lines ?? []), ...added];
  let bytes = all.reduce((sum, line) => sum + jsonBytes(line) + 1, 0);
  let leave = 0;
  while (all.length - leave > ringLimits.lines || (bytes > ringLimits.bytes && all.length - leave > 1)) {
    bytes -= jsonBytes(all[leave]) + 1;
    leave += 1;
  }
  all = all.slice(leave);
  const had = before?.lines.length ?? 0;
  const removed = Math.min(leave, had);
  const entering = added.slice(Math.max(0, leave - had));
  const last = marks.slice(-rememberedWriters);
  const spec = { ...before, lines: all, last: [...last] };
  return {
    spec,
    added: added.length,
    operations: [
      ...(before === undefined ? [{ op: "add" as const, path: "/spec", value: { lines: [], last: [] } }] : []),
      ...Array.from({ length: removed }, () => ({ op: "remove" as const, path: "/spec/lines/0" })),
      ...entering.map((value) => ({ op: "add" as const, path: "/spec/lines/-", value })),
      { op: "replace" as const, path: "/spec/last", value: last },
    ],
  };
}

export const journalOfNode = (name: string): string => `${journals.nodePrefix}${name}`;

/** The only book that a journal may report to, if restricted: a machine reports about itself. */
export const bookOfJournal = (journal: string): string | undefined =>
  journal.startsWith(journals.nodePrefix) ? `node/${journal.slice(journals.nodePrefix.length)}` : undefined;

/** Whether a line is written by a component that runs on a machine, as far as it says. */
export const isOfMachine = ({ writer }: Pick<JournalLine, "writer">): boolean =>
  writer.component === "daemon" || writer.component === "first-boot";

/** Of one line of a machine; its daemon writes a few. */
const mostDetails = 32;
/** A chapter's name is the value of a label of its object. */
const chapterName = /^[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$/;

/**
 * Whether a line can be one of the machine's own. Root on a machine writes its journal as it likes: lines in the name of
 * another component, and such as no chapter can hold, are not read.
 *
 * @param node name of the machine.
 */
function isReadable(line: JournalLine, node: string): boolean {
  const { book, chapter, writer, seq, sub = 1, at, mono, data = {} } = line;
  return (
    book === `node/${node}` &&
    isOfMachine(line) &&
    writer.instance === node &&
    chapterName.test(chapter) &&
    [seq, sub, mono].every((number) => Number.isSafeInteger(number)) &&
    at >= 0 &&
    at <= latestTimeMs &&
    Object.keys(data).length <= mostDetails &&
    jsonBytes(line) <= 2 * diskLineBytes
  );
}

/**
 * Valid lines of journals, and the number of invalid ones: lines in a node's journal about another book, in the name of
 * another writer, or such as no daemon writes.
 */
export function admittedLines(journal: Pick<MachineStateJournal, "metadata" | "spec">): {
  readonly lines: readonly JournalLine[];
  readonly foreign: number;
} {
  const { name } = journal.metadata;
  const all = journal.spec.lines;
  const lines =
    bookOfJournal(name) === undefined
      ? all
      : all.filter((line) => isReadable(line, name.slice(journals.nodePrefix.length)));
  return { lines, foreign: all.length - lines.length };
}

/** Lines of one book in all journals. */
export const linesForBook = (
  all: readonly Pick<MachineStateJournal, "metadata" | "spec">[],
  book: string,
): readonly JournalLine[] =>
  all.flatMap((journal) => admittedLines(journal).lines.filter((line) => line.book === book));
