import { pushAll } from "../../api/schema/push-all.ts";
import { greatestOf } from "../../api/schema/extremes.ts";
import type { JournalLine } from "../../api/books/journal-line.ts";
import type { Chapter, ChapterEntry, ChapterSection } from "../../api/books/machine-state-chapter.ts";
import { type SectionOutcome, reasonText } from "../../api/books/report-table.ts";
import { durationText, isMereNote } from "./fold-book.ts";
import { type Paint, paintOf } from "../text/paint.ts";
import { clockText, timeText } from "../text/time-text.ts";
import { andMore } from "../text/list-text.ts";

/** A chapter for readers: from the book, or folded from journals beyond the stored chapters. */
export type ReadChapter = Chapter & {
  /** Whether a MachineStateChapter holds exactly this content. */
  readonly kept: boolean;
};

/** Everything known of one book. */
export interface ReadBook {
  readonly book: string;
  /** Oldest first. */
  readonly chapters: readonly ReadChapter[];
  /** Number of the newest deleted chapter; 0: none was deleted. */
  readonly prunedThrough: number;
  /** Lines in this node's journal about another book; they are ignored. */
  readonly foreign: number;
}

export interface BookTextOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Only the chapter of this number, with every line and detail. */
  readonly chapter?: number;
  readonly colours?: boolean | Paint;
  /** Columns at which lines are cut; absent: lines are not cut. */
  readonly width?: number;
}

const colourOf = { green: "32", red: "31", yellow: "33", dim: "2", bold: "1" } as const;
type Colour = keyof typeof colourOf;

const marks: Readonly<Record<SectionOutcome, readonly [mark: string, colour: Colour]>> = {
  Succeeded: ["✓", "green"],
  Failed: ["✗", "red"],
  Skipped: ["–", "dim"],
  NotRequired: ["–", "dim"],
  Superseded: ["»", "yellow"],
  Interrupted: ["!", "yellow"],
  RolledBack: ["↩", "red"],
  Unknown: ["?", "yellow"],
};
const running: readonly [string, Colour] = ["…", "yellow"];
const noted: readonly [string, Colour] = ["·", "dim"];

/** Chapters shown with their sections by default; earlier ones get one line each. */
const shownInFull = 5;
/** Sections of one kind (`Node/…`) that are shown in a row. */
const shownInARow = 20;

/** Milliseconds since the epoch. */
const timeOf = (time: string) => Date.parse(time);
const endOf = ({ endedAt }: { readonly endedAt?: string | undefined }, now: number) =>
  endedAt === undefined ? now : timeOf(endedAt);
const tookMs = (part: Chapter | ChapterSection, now: number) =>
  part.durationMs ?? Math.max(0, endOf(part, now) - timeOf(part.startedAt));
const messageText = (reason: string, message: string | undefined) =>
  message !== undefined && message !== "" ? message : reasonText(reason).means;

/** A book, newest chapter last, as text: what happened, how long each step took, how it ended, why, and what to do. */
export function bookText(read: ReadBook, options: BookTextOptions): string {
  const inColour = paintOf(options.colours);
  const paint = (text: string, colour: Colour) => (text === "" ? "" : inColour(text, colourOf[colour]));
  const clip = (line: string) =>
    options.width === undefined || line.length <= options.width
      ? line
      : `${line.slice(0, Math.max(1, options.width - 1))}…`;
  const { now } = options;
  const chosen =
    options.chapter === undefined ? read.chapters : read.chapters.filter(({ number }) => number === options.chapter);
  const brief = options.chapter === undefined ? chosen.slice(0, -shownInFull) : [];
  const full = chosen.slice(brief.length);
  const lines: string[] = [];
  if (options.chapter === undefined) lines.push(clip(heading(read, now)));
  if (brief.length > 0) pushAll(lines, ["", ...brief.map((chapter) => clip(title(chapter, now).text))]);
  for (const chapter of full) pushAll(lines, [...(lines.length === 0 ? [] : [""]), ...whole(chapter)]);
  return `${lines.join("\n")}\n`;

  function whole(chapter: ReadChapter): readonly string[] {
    const { text, colour } = title(chapter, now);
    const began = timeOf(chapter.startedAt);
    const facts = [
      ...factLines(chapter),
      ...(chapter.kept || !read.chapters.some(({ kept }) => kept) ? [] : ["from the journals: not in the book yet"]),
    ];
    const steps =
      options.chapter === undefined ? foldRows(chapter.sections) : chapter.sections.map((section) => ({ section }));
    const widest = greatestOf(
      chapter.sections.map(({ path }) => path.length),
      0,
    );
    const body = steps.flatMap((step) =>
      "more" in step
        ? [`   ${" ".repeat(8)}  ${" ".repeat(7)}    ${andMore(step.more)}`]
        : sectionLines(step.section, chapter, began, Math.min(widest, 40)),
    );
    const folded = (chapter.folded ?? []).map(
      ({ path, count, lastMessage }) => `   ${count} lines of ${path} are folded away, the last: ${lastMessage}`,
    );
    const missed =
      chapter.missed === undefined || chapter.missed === 0
        ? []
        : [`   ${chapter.missed} ${chapter.missed === 1 ? "line is" : "lines are"} known to be missing here`];
    const late = chapter.entries.flatMap((entry) =>
      entry.late === undefined ? [] : [`   came late, for ${entry.late}: ${lineOf(entry, began)}`],
    );
    return [
      paint(clip(text), colour),
      ...facts.map((line) => clip(`   ${line}`)),
      ...(body.length === 0 ? [] : ["", ...body]),
      ...[...folded, ...missed, ...late].map(clip),
      ...(chapter.next === undefined || chapter.next === "" ? [] : ["", clip(`   What to do: ${chapter.next}`)]),
    ];
  }

  function sectionLines(section: ChapterSection, chapter: Chapter, began: number, widest: number): readonly string[] {
    const isNote = isMereNote(section);
    const [mark, colour] = section.outcome !== undefined ? marks[section.outcome] : isNote ? noted : running;
    const ms = isNote ? 0 : tookMs(section, now);
    const took = section.outcome === "NotRequired" || section.outcome === "Skipped" || ms === 0 ? "" : durationText(ms);
    const notes = [
      ...(section.attempts > 1 ? [`${section.attempts} attempts`] : []),
      ...(section.inferred === true ? ["its end was not reported"] : []),
      ...(section.outcome === undefined && !isNote ? ["under way"] : []),
    ];
    const reason = section.reason ?? "";
    const words = reason === "" ? "" : `${reason}: ${messageText(reason, section.message)}`;
    const head = `   ${clockText(timeOf(section.startedAt), began)}  ${took.padStart(7)}  `;
    const rest = ` ${section.path.padEnd(widest)}  ${words}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`;
    const line = clip(`${head}${mark}${rest.trimEnd()}`);
    const painted = line.replace(mark, () => paint(mark, colour));
    const inside = chapter.entries.filter(
      (entry) =>
        entry.path === section.path &&
        entry.late === undefined &&
        (options.chapter !== undefined || isNotable(entry, section)),
    );
    const details =
      options.chapter === undefined
        ? []
        : Object.entries(section.details ?? {}).map(([name, value]) => `${" ".repeat(24)}${name}: ${value}`);
    return [painted, ...inside.map((entry) => clip(`${" ".repeat(22)}${lineOf(entry, began)}`)), ...details.map(clip)];
  }
}

/** The details of a section besides its start and end: failures, retries and notes. */
const isNotable = (entry: ChapterEntry, section: ChapterSection) =>
  (entry.mark === "fail" || entry.mark === "retry" || (entry.mark === "note" && entry.level === "boundary")) &&
  !(entry.reason === section.reason && entry.msg === section.message);

const lineOf = (entry: Pick<ChapterEntry, "at" | "reason" | "msg"> & { readonly skew?: boolean }, began: number) =>
  `${clockText(entry.at, began)}  ${entry.reason}: ${messageText(entry.reason, entry.msg)}${entry.skew === true ? " (its clock does not fit)" : ""}`;

function heading({ book, chapters, prunedThrough, foreign }: ReadBook, now: number): string {
  const last = chapters.at(-1);
  const open = chapters.filter(({ state }) => state === "Open").map(({ chapter }) => chapter);
  const count =
    chapters.length === 0 ? "no chapter yet" : chapters.length === 1 ? "one chapter" : `${chapters.length} chapters`;
  const state =
    last === undefined
      ? ""
      : open.length > 0
        ? `; under way: ${[...new Set(open)].join(", ")}`
        : `; idle for ${durationText(now - endOf(last, now))}`;
  const gone =
    prunedThrough === 0
      ? ""
      : `; ${prunedThrough === 1 ? "chapter 1 is" : `chapters 1 to ${prunedThrough} are`} no longer kept`;
  const source =
    chapters.length === 0 || chapters.some(({ kept }) => kept) ? "" : "; not kept in a book: read from the journals";
  const strange =
    foreign === 0
      ? ""
      : `; ${foreign} ${foreign === 1 ? "line" : "lines"} of its journal about something else ${foreign === 1 ? "does" : "do"} not count`;
  return `Book ${book}: ${count}${state}${gone}${source}${strange}`;
}

function title(chapter: ReadChapter, now: number): { readonly text: string; readonly colour: Colour } {
  const { number, chapter: kind, run, startedAt, state, outcome } = chapter;
  const began = timeOf(startedAt);
  const span =
    chapter.endedAt === undefined
      ? `since ${timeText(began)}, ${durationText(tookMs(chapter, now))} so far`
      : `${timeText(began)} to ${clockText(timeOf(chapter.endedAt), began)}Z, ${durationText(tookMs(chapter, now))}`;
  const end =
    state === "Abandoned"
      ? "Abandoned: its writer has not reported for more than an hour"
      : state === "Open"
        ? "under way"
        : (outcome ?? "Unknown");
  const target = run === "" || chapter.to?.config === run ? "" : ` ${run}`;
  return {
    text: `#${number} ${kind}${target}  ${span}: ${end}`,
    colour: outcome === "Failed" || outcome === "RolledBack" ? "red" : "bold",
  };
}

/** A chapter on one line. */
export const chapterLine = (chapter: ReadChapter, now: number): string => title(chapter, now).text;

function factLines({
  from,
  to,
  cause,
  outOfServiceMs,
  confidence,
  skew,
  reason,
  message,
  outcome,
  sections,
}: ReadChapter): readonly string[] {
  const named = (has: Chapter["from"]) =>
    [has?.config, has?.image, has?.version].filter((word) => word !== undefined && word !== "").join(", ");
  const [was, is] = [named(from), named(to)];
  return [
    ...(is === "" && was === "" ? [] : [`${was === "" ? "" : `from ${was} `}${is === "" ? "" : `to ${is}`}`.trim()]),
    ...(cause === undefined
      ? []
      : [
          `because: ${cause.text}${cause.by === undefined ? "" : `, by ${cause.by}`}${cause.parent === undefined ? "" : ` (part of ${cause.parent})`}`,
        ]),
    ...(outOfServiceMs === undefined ? [] : [`out of service for ${durationText(outOfServiceMs)}`]),
    ...(outcome === undefined || outcome === "Succeeded" || reason === undefined || reason === ""
      ? []
      : [`${reason}: ${messageText(reason, message)}`]),
    // A chapter that was withdrawn holds nothing but the message that says so.
    ...(confidence === "Observed"
      ? [sections.length === 0 && message !== undefined ? message : "not reported: it was seen from outside"]
      : []),
    ...(skew === true ? ["clocks of those who wrote it did not fit together"] : []),
  ];
}

/** Shortens long rows of sections of one kind, except for failed and current ones. */
function foldRows(
  sections: readonly ChapterSection[],
): readonly ({ readonly section: ChapterSection } | { readonly more: number })[] {
  const kindOf = ({ path }: ChapterSection) => (path.includes("/") ? path.slice(0, path.indexOf("/")) : path);
  const rows: ({ section: ChapterSection } | { more: number })[] = [];
  let [kind, count] = ["", 0];
  for (const section of sections) {
    [kind, count] = kindOf(section) === kind ? [kind, count + 1] : [kindOf(section), 1];
    const last = rows.at(-1);
    if (count <= shownInARow || (section.outcome !== "Succeeded" && section.outcome !== "NotRequired"))
      rows.push({ section });
    else if (last !== undefined && "more" in last) last.more += 1;
    else rows.push({ more: 1 });
  }
  return rows;
}

/** One line of a journal, as `mco book --follow` prints it. */
export function lineText({ at, book, chapter, path, reason, msg, mark, next }: JournalLine): string {
  const word = mark === "fail" ? " FAILED" : mark === "retry" ? " again" : "";
  return `${timeText(at)}  ${book}  ${chapter} ${path}${word}  ${reason}: ${messageText(reason, msg)}${mark === "fail" && next !== undefined ? ` What to do: ${next.action}` : ""}`;
}

/** All books with their states: the output of `mco book` without a name. */
export function booksText(
  books: readonly {
    readonly book: string;
    readonly health: string;
    readonly chapters: number;
    readonly kept: boolean;
  }[],
): string {
  if (books.length === 0) return "There is no book yet, and no journal: no component has reported anything.\n";
  const width = greatestOf(books.map(({ book }) => book.length));
  const lines = books.map(({ book, health, chapters, kept }) => {
    const count = `${chapters} ${chapters === 1 ? "chapter" : "chapters"}`;
    return `${book.padEnd(width)}  ${count}, ${health}${kept ? "" : ", only in journals"}\n`;
  });
  return lines.join("");
}
