import type { JournalLine, JournalMark } from "../../api/books/journal-line.ts";
import type { MachineStateBook } from "../../api/books/machine-state-book.ts";
import type { Chapter } from "../../api/books/machine-state-chapter.ts";
import { bookKindOf } from "../../api/books/report-table.ts";
import {
  type ChapterDraft,
  type ChapterRecord,
  type ClosedChapter,
  chapterOf,
  draftsOf,
  isRepetition,
  linesOfChapter,
} from "./fold-book.ts";
import { isKnown, marksOf } from "./journal.ts";
import { lineKey } from "./order-lines.ts";

/** What has to be written of a book. */
export interface ChapterChange {
  /**
   * `open`: the chapter is new. `close`: it ended (and may be new as well). `turn`: whoever wrote it vanished, or
   * speaks again.
   */
  readonly do: "open" | "close" | "turn";
  readonly chapter: Chapter;
  /** There is no object of it yet. */
  readonly isNew: boolean;
}

/** What is known of a book when somebody begins to keep it. */
export interface KeptBook {
  readonly chapters: readonly Chapter[];
  /** Up to where lines are in chapters that were thrown away. */
  readonly through: readonly JournalMark[];
  readonly lastNumber: number;
  readonly counters: Readonly<Record<string, number>>;
}

export const newBook: KeptBook = { chapters: [], through: [], lastNumber: 0, counters: {} };

/**
 * Journals of components are sent every ten seconds at most: for this long after its last line an update waits for what
 * others have to say of it, in milliseconds.
 */
export const settleMs = 15_000;
/** Late lines that wait for a chapter to stand in. */
const mostWaiting = 50;
/** Late lines that are remembered: journals offer them again for as long as their rings hold them. */
const mostLate = 1000;

interface Announced {
  readonly number: number;
  readonly state: Chapter["state"];
}

/**
 * Keeps one book: takes lines as they come, in any order and any number of times, and says what has to be written. A
 * chapter is written when it opens and when it closes, whatever happens in between.
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
  /** Lines that came late and stand in another chapter. */
  readonly #late = new Set<string>();
  #heardAt = 0;
  #missed = 0;

  constructor(book: string, kept: KeptBook = newBook) {
    this.book = book;
    this.#through = kept.through;
    this.#counters = { ...kept.counters };
    this.#lastNumber = Math.max(kept.lastNumber, ...kept.chapters.map(({ number }) => number), 0);
    for (const chapter of [...kept.chapters].sort((a, b) => a.number - b.number)) {
      if (chapter.state === "Closed") this.#remember(chapter);
      else {
        this.#announce(chapter, { number: chapter.number, state: chapter.state });
        this.#add(linesOfChapter(chapter));
        this.#missed = Math.max(this.#missed, chapter.missed ?? 0);
      }
    }
  }

  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** Whether everything that was told is in closed chapters. */
  get isAtRest(): boolean {
    return this.#lines.length === 0;
  }

  /** @param now milliseconds since the epoch. @returns whether any of the lines was new. */
  take(lines: readonly JournalLine[], now: number): boolean {
    const before = this.#lines.length;
    this.#add(lines);
    if (this.#lines.length === before) return false;
    this.#heardAt = now;
    return true;
  }

  /** So many lines are known to be lost: the chapters that are open say so, or else the next one. */
  miss(count: number): void {
    this.#missed += count;
  }

  #add(lines: readonly JournalLine[]): void {
    for (const line of lines) {
      if (line.book !== this.book) continue;
      const key = lineKey(line);
      if (
        this.#keys.has(key) ||
        this.#late.has(key) ||
        isKnown(this.#through, line) ||
        this.#closed.some(({ chapter, through }) => chapter === line.chapter && isKnown(through, line))
      )
        continue;
      this.#keys.add(key);
      this.#lines.push(line);
    }
  }

  /** What has to be written now; the same again until `written` is told. */
  look(now: number, pool?: string): readonly ChapterChange[] {
    let number = this.#lastNumber;
    const next = () => (number += 1);
    return this.#drafts().flatMap(({ draft, known }): readonly ChapterChange[] => {
      const record = this.#record(draft, now, pool);
      if (record.state === "Closed")
        return this.#allPoolsUpdated(draft, now)
          ? [{ do: "close", chapter: { ...record, number: known?.number ?? next() }, isNew: known === undefined }]
          : known === undefined
            ? [{ do: "open", chapter: { ...asOpen(record), number: next() }, isNew: true }]
            : [];
      if (known === undefined) return [{ do: "open", chapter: { ...record, number: next() }, isNew: true }];
      return known.state === record.state
        ? []
        : [{ do: "turn", chapter: { ...record, number: known.number }, isNew: false }];
    });
  }

  /**
   * In so many milliseconds a look may find something to write though nothing was heard; `undefined`: no such moment is
   * known.
   */
  nextLook(now: number): number | undefined {
    const drafts = this.#drafts();
    if (drafts.some(({ draft }) => draft.end !== undefined && !this.#allPoolsUpdated(draft, now)))
      return Math.max(100, this.#heardAt + settleMs - now);
    return drafts.length > 0 ? 600_000 : undefined;
  }

  /** A change is stored. */
  written({ chapter }: ChapterChange): void {
    this.#lastNumber = Math.max(this.#lastNumber, chapter.number);
    const key = keyOf(chapter);
    const others = (this.#announced.get(key) ?? []).filter(({ number }) => number !== chapter.number);
    if (chapter.state !== "Closed") {
      this.#announced.set(
        key,
        [...others, { number: chapter.number, state: chapter.state }].sort((a, b) => a.number - b.number),
      );
      return;
    }
    if (others.length === 0) this.#announced.delete(key);
    else this.#announced.set(key, others);
    const draft = this.#drafts().find(
      ({ draft: { chapter: kind, run, end } }) => kind === chapter.chapter && run === chapter.run && end !== undefined,
    )?.draft;
    this.#forget((draft?.lines ?? []).map(({ line }) => line));
    this.#remember(chapter, draft);
    this.#missed = 0;
    for (const counter of ["chapters", `${chapter.chapter}/${chapter.outcome ?? "Unknown"}`])
      this.#counters[counter] = (this.#counters[counter] ?? 0) + 1;
  }

  /** The counters of the book as they are now: they never fall. */
  get counters(): Readonly<Record<string, number>> {
    return this.#counters;
  }

  #forget(lines: readonly JournalLine[]): void {
    if (lines.length === 0) return;
    const gone = new Set(lines);
    this.#lines = this.#lines.filter((line) => !gone.has(line));
    for (const line of gone) this.#keys.delete(lineKey(line));
  }

  #drafts(): readonly { readonly draft: ChapterDraft; readonly known: Announced | undefined }[] {
    const drafts = draftsOf(this.book, this.#lines, this.#closed);
    // What was seen of something that is over, and told of by those who were there; and what was told of its end again.
    const placed = new Set(drafts.flatMap(({ lines }) => lines.map(({ line }) => line)));
    this.#forget(this.#lines.filter((line) => (line.via === "seen" || isRepetition(line)) && !placed.has(line)));
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
    const record = chapterOf(this.book, draft, { now, ...(pool === undefined || pool === "" ? {} : { pool }) });
    return this.#missed === 0 ? record : { ...record, missed: (record.missed ?? 0) + this.#missed };
  }

  #allPoolsUpdated(draft: ChapterDraft, now: number): boolean {
    if (bookKindOf(this.book) !== "node" || draft.chapter !== "Update" || draft.end?.outcome === "Superseded")
      return true;
    if (now - this.#heardAt >= settleMs) return true;
    const has = (path: string, ...marks: readonly string[]) =>
      draft.lines.some(({ line }) => line.via === "told" && line.path === path && marks.includes(line.mark));
    const wasCordoned = has("Executed/Cordoned", "begin", "end");
    // That it is over may be seen before those tell it who were there.
    return (
      has("Updated", "end", "fail", "skip") &&
      has("Requested", "begin") &&
      (!wasCordoned || (has("Executed/Cordoned", "end", "skip") && has("Complete/Uncordoned", "end", "skip")))
    );
  }

  #announce(chapter: Pick<Chapter, "chapter" | "run">, announced: Announced): void {
    const key = keyOf(chapter);
    this.#announced.set(key, [...(this.#announced.get(key) ?? []), announced]);
  }

  #remember(chapter: Chapter, draft?: ChapterDraft): void {
    // Times of objects are whole seconds: a line within the last one is of the chapter that closed, not of the next.
    const endedAtMs = draft?.end?.at ?? Date.parse(chapter.endedAt ?? chapter.startedAt) + 999;
    // What came late stands in it too, though it is of another.
    const late =
      draft === undefined
        ? chapter.entries.filter((entry) => entry.late !== undefined)
        : draft.lines.flatMap(({ line, late: is }) => (is === undefined ? [] : [line]));
    for (const line of late) this.#late.add(lineKey(line));
    for (const oldest of this.#late) {
      if (this.#late.size <= mostLate) break;
      this.#late.delete(oldest);
    }
    this.#closed.push({
      chapter: chapter.chapter,
      run: chapter.run,
      endedAtMs,
      name: `${chapter.chapter} ${chapter.number}`,
      through: chapter.through,
    });
    // The newest few of each kind are those that something may still come for.
    const same = this.#closed.filter((each) => each.chapter === chapter.chapter);
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

const keyOf = ({ chapter, run }: Pick<Chapter, "chapter" | "run">) => `${chapter}\n${run}`;

/** Of each writer and boot the farther mark, 64 of them at most. */
export function merged(a: readonly JournalMark[], b: readonly JournalMark[]): readonly JournalMark[] {
  return marksOf(
    b.map(({ component, instance, boot, seq }) => ({ writer: { component, instance }, boot, seq })),
    a,
  ).slice(-64);
}

/** A chapter that ended and waits for more to be told is open to those who read it. */
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
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(reason === undefined ? {} : { reason }),
  };
}

const troubles: ReadonlySet<string> = new Set(["Degraded", "Lost", "Drift", "Blocked", "Rollback", "Revert"]);

/**
 * The word for how the subject of a book is: what it is in, the worst first; else how the last chapter ended, when that
 * was not well.
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
