import { greatestOf } from "../../api/schema/extremes.ts";
import type { JournalLine, JournalMark } from "../../api/books/journal-line.ts";
import type { MachineStateBook } from "../../api/books/machine-state-book.ts";
import type { Chapter } from "../../api/books/machine-state-chapter.ts";
import { bookKindOf } from "../../api/books/report-table.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { chapterRules } from "./chapter-rules.ts";
import {
  type ChapterDraft,
  type ChapterRecord,
  type ClosedChapter,
  addCounts,
  chapterOf,
  closedChapter,
  closedChapters,
  isIn,
  draftsOf,
  isRepetition,
  linesOfChapter,
} from "./fold-book.ts";
import { isKnown, isOfMachine, marksOf } from "./journal.ts";
import { inOrderOfBoots, lineKey } from "./order-lines.ts";
import { defined } from "../../api/schema/defined.ts";

/** A pending write to a book. */
export interface ChapterChange {
  /**
   * `open`: the chapter is new. `close`: it ended (and may be new as well). `turn`: its writer vanished, or reports
   * again. `merge`: lines that came later showed that it is no chapter of its own.
   */
  readonly do: "open" | "close" | "turn" | "merge";
  readonly chapter: Chapter;
  /** The object does not exist yet. */
  readonly isNew: boolean;
}

/** The known state of a book when a keeper starts. */
export interface KeptBook {
  readonly chapters: readonly Chapter[];
  /** The last lines in chapters that were deleted. */
  readonly through: readonly JournalMark[];
  readonly lastNumber: number;
  readonly counters: Readonly<Record<string, number>>;
}

export const newBook: KeptBook = { chapters: [], through: [], lastNumber: 0, counters: {} };

/**
 * Components send their journals every ten seconds at most: an update waits this many milliseconds after its last line
 * for the lines of other writers.
 */
export const lateLinesMs = 15_000;
/** Late lines that wait for a chapter. */
const mostWaiting = 50;
/** Remembered lines of each kind (late, left out, without a chapter): journals repeat lines while their rings hold them. */
const mostLate = 1000;

/**
 * Bounds of what is kept of a machine's book, whose lines root on it writes: lines of one chapter (more than a chapter
 * stores), lines of all chapters that are not stored as closed yet, and kinds of chapters that this version does not know.
 */
const ofMachine = { chapterLines: 512, firstLines: 64, lines: 2000, unknownKinds: 16 } as const;

type Announced = Pick<Chapter, "number" | "state" | "chapter" | "run" | "startedAt">;

/** Lines that make a chapter, and the chapter that is stored of them. */
interface Drafted {
  readonly draft: ChapterDraft;
  readonly known: Announced | undefined;
}

/**
 * Keeps one book: accepts lines in any order and any number of times, and returns the pending writes. A chapter is
 * written when it opens and when it closes, never in between.
 */
export class BookKeeper {
  readonly book: string;
  #lines: JournalLine[] = [];
  readonly #keys = new Set<string>();
  readonly #closed: ClosedChapter[] = [];
  readonly #through: readonly JournalMark[];
  /** Chapters that have an object and are not closed, by kind and run, oldest first. */
  readonly #announced = new Map<string, Announced[]>();
  readonly #counters: Record<string, number>;
  #lastNumber: number;
  /** Late lines that are stored in another chapter, and lines that were left out. */
  readonly #late = new Set<string>();
  /** Lines that belong to no chapter yet: later lines may open one, but a journal that repeats them tells no news. */
  readonly #unplaced = new Set<string>();
  /** Of chapters that are not closed, how many of their lines are stored or known and not in memory. */
  readonly #leftOut = new Map<string, number>();
  /** Kinds of chapters that this version does not know. */
  readonly #unknownKinds = new Set<string>();
  readonly #isOfMachine: boolean;
  #heardAt = 0;
  #missed = 0;

  constructor(book: string, kept: KeptBook = newBook) {
    this.book = book;
    this.#isOfMachine = bookKindOf(book) === "node";
    for (const counter of Object.keys(kept.counters))
      if (counter.includes("/")) this.#isKind(counter.split("/")[0] ?? "");
    this.#through = kept.through;
    this.#counters = { ...kept.counters };
    this.#lastNumber = greatestOf(
      kept.chapters.map(({ number }) => number),
      Math.max(kept.lastNumber, 0),
    );
    const stored = kept.chapters.toSorted((a, b) => a.number - b.number);
    this.#leaveOut(stored.filter(({ state }) => state === "Closed").flatMap(lateEntries));
    for (const closed of closedChapters(stored)) this.#remember(closed);
    for (const chapter of stored) {
      if (chapter.state === "Closed") continue;
      this.#announce(chapter);
      this.#leftOut.set(keyOf(chapter), chapter.dropped);
      this.#add(linesOfChapter(chapter));
      this.#missed = Math.max(this.#missed, chapter.missed ?? 0);
    }
  }

  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** Whether all lines are in closed chapters. */
  get isAtRest(): boolean {
    return this.#lines.length === 0;
  }

  /**
   * @param lines with the boots of a writer in their order. @param now milliseconds since the epoch.
   * @returns whether any of the lines was new.
   */
  take(lines: readonly JournalLine[], now: number): boolean {
    if (!this.#add(lines)) return false;
    this.#heardAt = now;
    this.#lines = [...inOrderOfBoots(this.#lines, lines)];
    if (this.#lines.length > ofMachine.chapterLines) this.#shorten(draftsOf(this.book, this.#lines, this.#closed));
    return true;
  }

  /** Records that lines are known to be lost: open chapters say so, or else the next one. */
  miss(count: number): void {
    this.#missed = addCounts(this.#missed, count);
  }

  /** Whether chapters of this kind are kept; each unknown one takes one of a few places. */
  #isKind(chapter: string): boolean {
    if (!this.#isOfMachine || Object.hasOwn(chapterRules.node, chapter) || this.#unknownKinds.has(chapter)) return true;
    if (this.#unknownKinds.size >= ofMachine.unknownKinds) return false;
    this.#unknownKinds.add(chapter);
    return true;
  }

  /** @returns whether one of the lines was not known. */
  #add(lines: readonly JournalLine[]): boolean {
    let isNews = false;
    for (const line of lines) {
      if (line.book !== this.book) continue;
      const key = lineKey(line);
      if (
        this.#keys.has(key) ||
        this.#late.has(key) ||
        isKnown(this.#through, line) ||
        this.#isClosed(line) ||
        !this.#isKind(line.chapter)
      )
        continue;
      // The journal has it for a while yet. What others report of the machine is kept in any case.
      if (this.#isOfMachine && isOfMachine(line) && this.#lines.length >= ofMachine.lines) continue;
      this.#keys.add(key);
      this.#lines.push(line);
      isNews ||= !this.#unplaced.has(key);
    }
    return isNews;
  }

  /** Whether a line is at or before the last one of its writer in a closed chapter. */
  #isClosed(line: JournalLine): boolean {
    return this.#closed.some((closed) => isIn(closed, line));
  }

  /** Leaves out the middle of chapters of which a machine reports more lines than are stored. */
  #shorten(drafts: readonly ChapterDraft[]): void {
    if (!this.#isOfMachine) return;
    const { chapterLines, firstLines } = ofMachine;
    for (const draft of drafts) {
      const { lines } = draft;
      if (lines.length <= chapterLines) continue;
      // More than the excess, so that not every line has the whole looked at again.
      const left = lines.slice(firstLines, lines.length - chapterLines / 2).map(({ line }) => line);
      this.#forget(left);
      this.#leaveOut(left);
      this.#leftOut.set(keyOf(draft), addCounts(this.#leftOut.get(keyOf(draft)) ?? 0, left.length));
    }
  }

  #leaveOut(lines: readonly Parameters<typeof lineKey>[0][]): void {
    addKeys(this.#late, lines);
  }

  /** The pending writes; unchanged until `written` is called. */
  dueWrites(now: number, pool?: string): readonly ChapterChange[] {
    let number = this.#lastNumber;
    const next = () => (number += 1);
    // The last lines of a closed chapter stand for all before them: of one kind the oldest closes first.
    const waiting = new Set<string>();
    const drafts = this.#drafts();
    const changes = drafts.flatMap(({ draft, known }): readonly ChapterChange[] => {
      const record = this.#record(draft, now, pool);
      if (record.state === "Closed" && !this.#hasLateLines(draft, now)) waiting.add(draft.chapter);
      if (record.state === "Closed")
        return !waiting.has(draft.chapter)
          ? [{ do: "close", chapter: { ...record, number: known?.number ?? next() }, isNew: known === undefined }]
          : known === undefined
            ? [{ do: "open", chapter: { ...asOpen(record), number: next() }, isNew: true }]
            : [];
      if (known === undefined) return [{ do: "open", chapter: { ...record, number: next() }, isNew: true }];
      return known.state === record.state
        ? []
        : [{ do: "turn", chapter: { ...record, number: known.number }, isNew: false }];
    });
    if (now - this.#heardAt < lateLinesMs) return changes;
    return [...changes, ...this.#merged(drafts).map((one) => this.#mergedInto(one, now))];
  }

  /** Chapters with an object whose lines turned out to be of another one. */
  #merged(drafts: readonly Drafted[]): readonly Announced[] {
    const numbers = new Set(drafts.flatMap(({ known }) => (known === undefined ? [] : [known.number])));
    return [...this.#announced.values()].flat().filter(({ number }) => !numbers.has(number));
  }

  #mergedInto(announced: Announced, now: number): ChapterChange {
    const chapter: Chapter = {
      ...announced,
      book: this.book,
      endedAt: timestampOf(Math.max(now, Date.parse(announced.startedAt))),
      state: "Closed",
      outcome: "NotRequired",
      message: "Lines that came later show that this is no chapter of its own: what was in it is in the others.",
      confidence: "Observed",
      sections: [],
      entries: [],
      dropped: 0,
      through: [],
    };
    return { do: "merge", chapter, isNew: false };
  }

  /** Milliseconds until a write may be due without new lines; `undefined`: none is scheduled. */
  nextWriteInMs(now: number): number | undefined {
    const drafts = this.#drafts();
    const waits = drafts.some(({ draft }) => draft.end !== undefined && !this.#hasLateLines(draft, now));
    if (waits || this.#merged(drafts).length > 0) return Math.max(100, this.#heardAt + lateLinesMs - now);
    return drafts.length > 0 ? 600_000 : undefined;
  }

  /** A change is stored. */
  written({ do: what, chapter }: ChapterChange): void {
    this.#lastNumber = Math.max(this.#lastNumber, chapter.number);
    const key = keyOf(chapter);
    const others = (this.#announced.get(key) ?? []).filter(({ number }) => number !== chapter.number);
    if (others.length === 0) this.#announced.delete(key);
    else this.#announced.set(key, others);
    if (chapter.state !== "Closed") return this.#announce(chapter);
    if (what === "merge") return;
    this.#leftOut.delete(key);
    const draft = this.#drafts().find(
      ({ draft: { chapter: kind, run, end } }) => kind === chapter.chapter && run === chapter.run && end !== undefined,
    )?.draft;
    this.#forget((draft?.lines ?? []).map(({ line }) => line));
    // The chapter also has late lines of other chapters.
    this.#leaveOut(
      draft?.lines.flatMap(({ line, late }) => (late === undefined ? [] : [line])) ?? lateEntries(chapter),
    );
    this.#remember(closedChapter(chapter, draft));
    this.#missed = 0;
    for (const counter of ["chapters", `${chapter.chapter}/${chapter.outcome ?? "Unknown"}`])
      this.#counters[counter] = (this.#counters[counter] ?? 0) + 1;
  }

  /** The counters of the book; they never decrease. */
  get counters(): Readonly<Record<string, number>> {
    return this.#counters;
  }

  #forget(lines: readonly JournalLine[]): void {
    if (lines.length === 0) return;
    const gone = new Set(lines);
    this.#lines = this.#lines.filter((line) => !gone.has(line));
    for (const line of gone) this.#keys.delete(lineKey(line));
  }

  #drafts(): readonly Drafted[] {
    const drafts = draftsOf(this.book, this.#lines, this.#closed);
    // Observations of an ended chapter that its participants reported, repeated reports of its end, and what it contains.
    const placed = new Set(drafts.flatMap(({ lines }) => lines.map(({ line }) => line)));
    const unplaced = this.#lines.filter(
      (line) => !placed.has(line) && (line.via === "seen" || isRepetition(line) || this.#isClosed(line)),
    );
    this.#forget(unplaced);
    addKeys(this.#unplaced, unplaced);
    if (drafts.length === 0 && this.#lines.length > mostWaiting) {
      this.#forget(this.#lines.slice(0, this.#lines.length - mostWaiting));
    }
    const taken = new Map<string, number>();
    return drafts.map((draft) => {
      const key = keyOf(draft);
      const index = taken.get(key) ?? 0;
      taken.set(key, index + 1);
      return { draft, known: this.#announced.get(key)?.[index] };
    });
  }

  #record(draft: ChapterDraft, now: number, pool: string | undefined): ChapterRecord {
    const folded = chapterOf(this.book, draft, { now, ...(pool === undefined || pool === "" ? {} : { pool }) });
    const record = { ...folded, dropped: addCounts(folded.dropped, this.#leftOut.get(keyOf(draft)) ?? 0) };
    return this.#missed === 0 ? record : { ...record, missed: addCounts(record.missed ?? 0, this.#missed) };
  }

  #hasLateLines(draft: ChapterDraft, now: number): boolean {
    if (bookKindOf(this.book) !== "node" || draft.chapter !== "Update") return true;
    if (now - this.#heardAt >= lateLinesMs) return true;
    const has = (path: string, ...marks: readonly string[]) =>
      draft.lines.some(({ line }) => line.via === "told" && line.path === path && marks.includes(line.mark));
    const wasCordoned = has("Executed/Cordoned", "begin", "end");
    if (draft.end?.outcome === "Superseded") return has("Updated", "end");
    // An observer may report the end before the participants do.
    return (
      has("Updated", "end", "fail", "skip") &&
      has("Requested", "begin") &&
      (!wasCordoned || (has("Executed/Cordoned", "end", "skip") && has("Complete/Uncordoned", "end", "skip")))
    );
  }

  #announce({ number, state, chapter, run, startedAt }: Announced): void {
    const key = keyOf({ chapter, run });
    const all = [...(this.#announced.get(key) ?? []), { number, state, chapter, run, startedAt }];
    this.#announced.set(
      key,
      all.sort((a, b) => a.number - b.number),
    );
  }

  #remember(closed: ClosedChapter): void {
    this.#closed.push(closed);
    // The newest few of each kind are those that something may still come for.
    const same = this.#closed.filter((each) => each.chapter === closed.chapter);
    if (same.length > 20 && same[0] !== undefined && same[1] !== undefined) {
      const [oldest, second] = same;
      this.#closed.splice(this.#closed.indexOf(second), 1, {
        ...second,
        through: merged(oldest.through, second.through),
      });
      this.#closed.splice(this.#closed.indexOf(oldest), 1);
    }
  }
}

/** Lines of other chapters that a chapter has. */
const lateEntries = ({ entries }: Chapter) => entries.filter(({ late }) => late !== undefined);

const keyOf = ({ chapter, run }: Pick<Chapter, "chapter" | "run">) => `${chapter}\n${run}`;

/** Remembers lines, the newest {@link mostLate} of all. */
function addKeys(keys: Set<string>, lines: readonly Parameters<typeof lineKey>[0][]): void {
  for (const line of lines) keys.add(lineKey(line));
  for (const oldest of keys) {
    if (keys.size <= mostLate) break;
    keys.delete(oldest);
  }
}

/** Of each writer and boot the farther mark, 64 of them at most. */
export function merged(a: readonly JournalMark[], b: readonly JournalMark[]): readonly JournalMark[] {
  return marksOf(
    b.map(({ component, instance, boot, seq }) => ({ writer: { component, instance }, boot, seq })),
    a,
  ).slice(-64);
}

/** Readers see a chapter that ended but waits for more lines as open. */
function asOpen(record: ChapterRecord): ChapterRecord {
  const {
    endedAt: _endedAt,
    durationMs: _durationMs,
    duration: _duration,
    outcome: _outcome,
    outOfServiceMs: _out,
    ...rest
  } = record;
  return { ...rest, state: "Open" };
}

/** One line on a chapter, as the index of its book has it. */
export function oneLiner({
  number,
  chapter,
  startedAt,
  endedAt,
  outcome,
  reason,
}: Chapter): MachineStateBook["spec"]["chapters"][number] {
  return {
    number,
    chapter,
    startedAt,
    ...defined({ endedAt, outcome, reason }),
  };
}

const troubles: ReadonlySet<string> = new Set(["Degraded", "Lost", "Drift", "Blocked", "Rollback"]);

/**
 * The state of a book's subject in one word: its current chapter, the worst first; otherwise the result of the last
 * chapter if it failed.
 */
export function healthWord(chapters: readonly Pick<Chapter, "chapter" | "state" | "outcome" | "number">[]): string {
  const open = chapters.filter(({ state }) => state !== "Closed");
  const worst = open.findLast(({ chapter }) => troubles.has(chapter)) ?? open.at(-1);
  if (worst !== undefined) return worst.state === "Abandoned" ? "Abandoned" : worst.chapter;
  const last = chapters.at(-1);
  return last?.outcome === undefined || last.outcome === "Succeeded" || last.outcome === "Superseded"
    ? "Idle"
    : `${last.chapter}${last.outcome}`;
}

/** `node/worker-0` → `node.worker-0`: the name of a book's object, shortened where it is longer than names may be. */
export function bookObjectName(book: string): string {
  const name = book.replace("/", ".").toLowerCase();
  // The number of a chapter comes behind it.
  const most = 253 - 11;
  if (name.length <= most) return name;
  let hash = 0xcbf29ce484222325n;
  for (const char of name) hash = BigInt.asUintN(64, (hash ^ BigInt(char.codePointAt(0) ?? 0)) * 0x100000001b3n);
  return `${name.slice(0, most - 17)}-${hash.toString(16).padStart(16, "0")}`;
}

/**
 * Characters that the value of a label may have:
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
 */
const labelLength = 63;

/** The value of the label by which the chapters of a book are found: of a long name its end. */
export const bookLabelOf = (book: string): string =>
  bookObjectName(book)
    .slice(-labelLength)
    .replace(/^[^a-z0-9A-Z]+/, "");

/** `node.worker-0.000042`. */
export const chapterObjectName = (book: string, number: number): string =>
  `${bookObjectName(book)}.${String(number).padStart(6, "0")}`;
