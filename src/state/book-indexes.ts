import { greatestOf } from "../api/schema/extremes.ts";
import type { JournalLine, JournalMark } from "../api/books/journal-line.ts";
import type { Chapter } from "../api/books/machine-state-chapter.ts";
import { timestampOf } from "../api/schema/object.ts";
import type { BookKind } from "../api/books/report-table.ts";
import { McoError } from "../api/errors.ts";
import { BookKeeper, type ChapterChange, healthWord, merged, oneLiner } from "../core/books/book-keeper.ts";
import { type Retention, pruneBook } from "../core/books/book-retention.ts";
import { jsonBytes } from "../core/books/journal.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type BucketLimits, SourceBuckets } from "../ports/source-buckets.ts";
import type { BookIndex, BookStore } from "./book-store.ts";

/** The index of a book that has changed is written so often at most. */
export const indexEveryMs = 600_000;
/** A book without news is checked for expired chapters after this time. */
const restMs = 6 * 3_600_000;
/** Between the news that a book goes and its going, so that the news is stored first. */
const deletionDelayMs = 5000;
/** Chapters that an index names. */
const mostNamed = 20;
/** Root on a machine reports as many chapters of its book as it likes: so many are stored at once, and one in so long. */
const newChapters: BucketLimits = { burst: 100, perSecond: 1 / 30, sources: 20_000 };
/** It also claims lines that nobody has read. The book of the cluster has better to report, and keeps its newest chapters. */
const gapsOfMachine: BucketLimits = { burst: 3, perSecond: 1 / 86_400, sources: 20_000 };

export interface Subject {
  /** `Node` */
  readonly kind: string;
  readonly name: string;
  readonly uid?: string;
}

/** The facts kept of a stored chapter. */
interface Kept {
  readonly summary: Pick<
    Chapter,
    "number" | "chapter" | "state" | "startedAt" | "endedAt" | "outcome" | "reason" | "pool"
  >;
  readonly through: Chapter["through"];
  readonly bytes: number;
}

interface BookObjects {
  readonly keeper: BookKeeper;
  readonly chapters: Map<number, Kept>;
  index: BookIndex | undefined;
  /** Monotonic milliseconds of when its index was last written; `undefined`: not by this process. */
  indexAt: number | undefined;
  subject: Subject;
  goneAt: string | undefined;
  prunedThrough: number;
  through: BookIndex["through"];
  /** Monotonic milliseconds at which the removal of the book was reported. */
  deleteAt: number | undefined;
  /** Monotonic milliseconds at which it may have another chapter; 0: now. */
  nextChapterAt: number;
}

/** Lines of a journal left it before they were read. */
export interface LostLines {
  /** The book that has the gap. */
  readonly book: string;
  readonly journal: string;
  readonly lines: number;
}

/** A book whose subject has been gone for long enough. */
export interface ExpiredBook {
  readonly book: string;
  readonly subject: Subject;
  /** RFC 3339: since when. */
  readonly goneAt: string;
  /** How many it had. */
  readonly chapters: number;
}

/** What happens to books themselves. */
export type BookIndexesNews = ({ readonly is: "gone" } & ExpiredBook) | ({ readonly is: "gap" } & LostLines);

export interface BookIndexesOptions {
  readonly store: BookStore;
  readonly kinds: readonly BookKind[];
  /** Milliseconds since the epoch, and since an arbitrary start. */
  readonly clock: { now(): number; monotonic(): number };
  readonly retention: () => Readonly<Record<BookKind, Retention>>;
  /** Events of the book indexes themselves go into the cluster's book. */
  readonly report: (news: BookIndexesNews) => void;
  readonly onClosed?: (chapter: Chapter) => void;
}

/** One reading of a book. */
export interface Persisted {
  /** When to check again without news, in milliseconds. */
  readonly againMs: number;
}

const kindOf = (book: string): BookKind =>
  book.includes("/") ? (book.slice(0, book.indexOf("/")) as BookKind) : "cluster";
const subjectKinds: Readonly<Record<BookKind, string>> = {
  node: "Node",
  pool: "MachineConfigPool",
  build: "MachineOSBuild",
  cluster: "ClusterOperator",
};
const subjectOf = (book: string): Subject => ({
  kind: subjectKinds[kindOf(book)],
  name: book.includes("/") ? book.slice(book.indexOf("/") + 1) : "machine-config",
});

/**
 * The books of some kinds: takes lines, and stores the chapters that follow from them. The book keeper in core decides
 * what to write of a chapter, and when; this part assigns numbers, keeps the index, and removes old chapters.
 */
export class BookIndexes {
  readonly #options: BookIndexesOptions;
  readonly #storedBooks = new Map<string, BookObjects>();
  /** By book. */
  readonly #newChapters = new SourceBuckets(newChapters);
  readonly #gaps = new SourceBuckets(gapsOfMachine);

  private constructor(options: BookIndexesOptions) {
    this.#options = options;
  }

  /** Reads the stored objects. */
  static async open(options: BookIndexesOptions, signal: AbortSignal): Promise<BookIndexes> {
    const bookIndexes = new BookIndexes(options);
    for (const kind of options.kinds) {
      const indexes = new Map((await options.store.books(kind, signal)).map((index) => [index.book, index]));
      const chapters = new Map<string, Chapter[]>();
      for (const chapter of await options.store.list({ kind }, signal))
        chapters.set(chapter.book, [...(chapters.get(chapter.book) ?? []), chapter]);
      for (const book of new Set([...indexes.keys(), ...chapters.keys()]))
        bookIndexes.#indexBook(book, indexes.get(book), chapters.get(book) ?? []);
    }
    return bookIndexes;
  }

  #indexBook(book: string, index: BookIndex | undefined, chapters: readonly Chapter[]): BookObjects {
    // The index may be older than the last chapters: count the missing ones now.
    const counters: Record<string, number> = { ...index?.counters };
    for (const { number, state, chapter, outcome } of chapters) {
      if (state !== "Closed" || number <= (index?.lastNumber ?? 0) - stillOpen(index, number)) continue;
      for (const counter of ["chapters", `${chapter}/${outcome ?? "Unknown"}`])
        counters[counter] = (counters[counter] ?? 0) + 1;
    }
    const through = index?.through ?? [];
    const bookObjects: BookObjects = {
      keeper: new BookKeeper(book, { chapters, through, lastNumber: index?.lastNumber ?? 0, counters }),
      chapters: new Map(chapters.map((chapter) => [chapter.number, keptOf(chapter)])),
      index,
      indexAt: undefined,
      subject: index?.subject ?? subjectOf(book),
      goneAt: index?.subjectGoneAt,
      prunedThrough: index?.prunedThrough ?? 0,
      through,
      deleteAt: undefined,
      nextChapterAt: 0,
    };
    this.#storedBooks.set(book, bookObjects);
    return bookObjects;
  }

  #bookObjectsOf(book: string): BookObjects {
    return this.#storedBooks.get(book) ?? this.#indexBook(book, undefined, []);
  }

  get books(): readonly string[] {
    return [...this.#storedBooks.keys()];
  }

  has(book: string): boolean {
    return this.#storedBooks.has(book);
  }

  /** @returns whether any of the lines was new. */
  take(book: string, lines: readonly JournalLine[]): boolean {
    if (lines.length === 0 || !this.#options.kinds.includes(kindOf(book))) return false;
    return this.#bookObjectsOf(book).keeper.take(lines, this.#options.clock.now());
  }

  /** Lines that are lost for good: the book reports it, and so does that of the cluster. */
  miss(lost: LostLines): void {
    const { book, lines } = lost;
    if (!this.#options.kinds.includes(kindOf(book))) return;
    this.#bookObjectsOf(book).keeper.miss(lines);
    if (kindOf(book) === "node" && this.#gaps.take(book, this.#options.clock.monotonic()) > 0) return;
    this.#options.report({ is: "gap", ...lost });
  }

  /** What the book is about is there. A new one of the same name makes the book its own. */
  present(book: string, uid: string | undefined): void {
    const bookObjects = this.#storedBooks.get(book);
    if (
      bookObjects === undefined ||
      (bookObjects.goneAt === undefined && (uid === undefined || bookObjects.subject.uid === uid))
    )
      return;
    bookObjects.goneAt = undefined;
    bookObjects.deleteAt = undefined;
    bookObjects.subject = { ...subjectOf(book), ...(uid === undefined ? {} : { uid }) };
  }

  /** The subject of the book was deleted. */
  gone(book: string): void {
    const bookObjects = this.#storedBooks.get(book);
    if (bookObjects !== undefined) bookObjects.goneAt ??= timestampOf(this.#options.clock.now());
  }

  /** Stores a book's pending changes. */
  async persist(book: string, pool: string | undefined, signal: AbortSignal): Promise<Persisted> {
    const bookObjects = this.#storedBooks.get(book);
    if (bookObjects === undefined) return { againMs: restMs };
    const { store, clock } = this.#options;
    const waitsMs = bookObjects.nextChapterAt - clock.monotonic();
    if (waitsMs > 0) return { againMs: waitsMs };
    try {
      for (const change of bookObjects.keeper.dueWrites(clock.now(), pool)) {
        // Chapters have the numbers of their order.
        if (change.isNew && !this.#mayHaveChapter(book, bookObjects)) break;
        await this.#write(book, bookObjects, change, signal);
      }
    } catch (error) {
      // Another writer has closed it: the stored chapter counts.
      if (error instanceof McoError && error.code === "MCO_CHAPTER_CLOSED") await this.#reread(book, signal);
      throw error;
    }
    if (bookObjects.index === undefined && bookObjects.chapters.size === 0) return { againMs: restMs };
    const pruning = pruneBook(
      [...bookObjects.chapters.values()].map(({ summary }) => summary),
      this.#options.retention()[kindOf(book)],
      clock.now(),
      bookObjects.goneAt,
    );
    if (pruning.prune === "book") return this.#deleteGoneBook(book, bookObjects, signal);
    const dueInMs = this.#dueInMs(bookObjects);
    if (pruning.numbers.length > 0 && dueInMs === 0) {
      // The index keeps their facts before they are deleted.
      for (const number of pruning.numbers)
        bookObjects.through = [...merged(bookObjects.through, bookObjects.chapters.get(number)?.through ?? [])];
      bookObjects.prunedThrough = greatestOf(pruning.numbers, bookObjects.prunedThrough);
      for (const number of pruning.numbers) bookObjects.chapters.delete(number);
      await this.#writeIndex(book, bookObjects, signal);
      await store.prune(book, pruning.numbers, signal);
    }
    const indexInMs = await this.#index(book, bookObjects, signal);
    return {
      againMs: Math.min(
        restMs,
        indexInMs,
        pruning.numbers.length > 0 && dueInMs > 0 ? dueInMs : restMs,
        Math.max(
          bookObjects.nextChapterAt - clock.monotonic(),
          bookObjects.keeper.nextWriteInMs(clock.now()) ?? restMs,
        ),
      ),
    };
  }

  /** Whether the book may have another chapter now. */
  #mayHaveChapter(book: string, bookObjects: BookObjects): boolean {
    if (kindOf(book) !== "node") return true;
    const { clock } = this.#options;
    const seconds = this.#newChapters.take(book, clock.monotonic());
    if (seconds > 0) bookObjects.nextChapterAt = clock.monotonic() + 1000 * seconds;
    return seconds === 0;
  }

  /** In how many milliseconds the book's index may be written again; removals are written with it. */
  #dueInMs({ indexAt }: BookObjects): number {
    return indexAt === undefined ? 0 : Math.max(0, indexEveryMs - (this.#options.clock.monotonic() - indexAt));
  }

  async #write(book: string, bookObjects: BookObjects, change: ChapterChange, signal: AbortSignal): Promise<void> {
    // A book exists before its chapters, which it owns; its index lists them once they are stored.
    if (bookObjects.index === undefined) {
      await this.#writeIndex(book, bookObjects, signal);
      bookObjects.indexAt = undefined;
    }
    await this.#options.store.append([{ write: "chapter", chapter: change.chapter }], signal);
    bookObjects.keeper.written(change);
    bookObjects.chapters.set(change.chapter.number, keptOf(change.chapter));
    if (change.do === "close") this.#options.onClosed?.(change.chapter);
  }

  /** Writes the index where it is due. @returns in how many milliseconds it will be. */
  async #index(book: string, bookObjects: BookObjects, signal: AbortSignal): Promise<number> {
    if (equalValues(bookObjects.index, this.#indexOf(book, bookObjects))) return restMs;
    const dueInMs = this.#dueInMs(bookObjects);
    // Chapters cannot show that the subject appeared or was deleted.
    if (dueInMs > 0 && bookObjects.index?.subjectGoneAt === bookObjects.goneAt) return dueInMs;
    await this.#writeIndex(book, bookObjects, signal);
    return restMs;
  }

  async #writeIndex(book: string, bookObjects: BookObjects, signal: AbortSignal): Promise<void> {
    const index = this.#indexOf(book, bookObjects);
    await this.#options.store.append([{ write: "index", index }], signal);
    bookObjects.index = index;
    bookObjects.indexAt = this.#options.clock.monotonic();
  }

  #indexOf(book: string, bookObjects: BookObjects): BookIndex {
    const all = [...bookObjects.chapters.values()].map(({ summary }) => summary).sort((a, b) => a.number - b.number);
    return {
      book,
      kind: kindOf(book),
      subject: { ...bookObjects.subject },
      ...(bookObjects.goneAt === undefined ? {} : { subjectGoneAt: bookObjects.goneAt }),
      chapters: all.slice(-mostNamed).map((summary) => oneLiner(summary as Chapter)),
      counters: { ...bookObjects.keeper.counters },
      health: healthWord(all),
      lastNumber: bookObjects.keeper.lastNumber,
      prunedThrough: bookObjects.prunedThrough,
      through: [...bookObjects.through],
    };
  }

  /** A book whose subject has been gone for long enough is removed, after a report to the cluster's book. */
  async #deleteGoneBook(book: string, bookObjects: BookObjects, signal: AbortSignal): Promise<Persisted> {
    const { clock, store, report } = this.#options;
    const { subject, goneAt = "", keeper } = bookObjects;
    report({ is: "gone", book, subject, goneAt, chapters: keeper.counters["chapters"] ?? 0 });
    bookObjects.deleteAt ??= clock.monotonic();
    const waitedMs = clock.monotonic() - bookObjects.deleteAt;
    if (waitedMs < deletionDelayMs) return { againMs: deletionDelayMs - waitedMs };
    await store.prune(book, "all", signal);
    this.#storedBooks.delete(book);
    return { againMs: restMs };
  }

  async #reread(book: string, signal: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const indexes = await store.books(kindOf(book), signal);
    this.#indexBook(
      book,
      indexes.find((index) => index.book === book),
      await store.list({ book }, signal),
    );
  }

  /** Up to where the lines of each writer are in books. */
  marks(): readonly JournalMark[] {
    const farthest = new Map<string, JournalMark>();
    for (const { chapters, through } of this.#storedBooks.values()) {
      for (const mark of [...through, ...[...chapters.values()].flatMap((kept) => kept.through)]) {
        const key = `${mark.component}/${mark.instance}/${mark.boot}`;
        if ((farthest.get(key)?.seq ?? -1) < mark.seq) farthest.set(key, mark);
      }
    }
    return [...farthest.values()];
  }

  /** Everything that is stored, for metrics. */
  *kept(): Iterable<{
    readonly book: string;
    readonly kind: BookKind;
    readonly summary: Kept["summary"];
    readonly bytes: number;
  }> {
    for (const [book, { chapters }] of this.#storedBooks)
      for (const { summary, bytes } of chapters.values()) yield { book, kind: kindOf(book), summary, bytes };
  }

  /** Chapters and index entries of one book, as they are stored. */
  summaries(book: string): readonly Kept["summary"][] {
    return [...(this.#storedBooks.get(book)?.chapters.values() ?? [])].map(({ summary }) => summary);
  }
}

/** A chapter below the index's last number was counted by it, unless it was open then. */
const stillOpen = (index: BookIndex | undefined, number: number): number => {
  const named = index?.chapters.find((each) => each.number === number);
  return named !== undefined && named.outcome === undefined ? (index?.lastNumber ?? 0) - number + 1 : 0;
};

function keptOf(chapter: Chapter): Kept {
  const { number, chapter: kind, state, startedAt, endedAt, outcome, reason, pool } = chapter;
  return {
    summary: {
      number,
      chapter: kind,
      state,
      startedAt,
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(outcome === undefined ? {} : { outcome }),
      ...(reason === undefined ? {} : { reason }),
      ...(pool === undefined ? {} : { pool }),
    },
    through: chapter.through,
    bytes: jsonBytes(chapter),
  };
}
