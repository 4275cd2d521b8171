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

/** A pending write to a book. */
export interface ChapterChange {
  /**
   * `open`: the chapter is new. `close`: it ended (and may be new as well). `turn`: whoever wrote it vanished, or
   * speaks again.
   */
  readonly do: "open" | "close" | "turn";
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
export const settleMs = 15_000;
/** Late lines that wait for a chapter. */
const mostWaiting = 50;
/** Late lines that are remembered: journals repeat them while their rings hold them. */
const mostLate = 1000;

interface Announced {
  readonly number: number;
  readonly state: Chapter["state"];
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
  /** Late lines that are stored in another chapter. */
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

  /** Whether all lines are in closed chapters. */
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

  /** Records that lines are known to be lost: open chapters say so, or else the next one. */
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

  /** The pending writes; unchanged until `written` is called. */
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

  /** Milliseconds until a write may be due without new lines; `undefined`: none is scheduled. */
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
    // An observer may report the end before the participants do.
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
    // The chapter also has late lines of other chapters.
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
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(reason === undefined ? {} : { reason }),
  };
}

const troubles: ReadonlySet<string> = new Set(["Degraded", "Lost", "Drift", "Blocked", "Rollback", "Revert"]);

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
