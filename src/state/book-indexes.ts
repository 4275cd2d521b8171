import type { JournalLine, JournalMark } from "../api/books/journal-line.ts";
import type { Chapter } from "../api/books/machine-state-chapter.ts";
import { timestampOf } from "../api/schema/object.ts";
import type { BookKind } from "../api/books/report-table.ts";
import { McoError } from "../api/errors.ts";
import { BookKeeper, type ChapterChange, healthWord, merged, oneLiner } from "../core/books/book-keeper.ts";
import { type Retention, pruneBook } from "../core/books/book-retention.ts";
import { jsonBytes } from "../core/books/journal.ts";
import { equalValues } from "../ignition/canonical.ts";
import type { BookIndex, BookStore } from "./book-store.ts";

/** The index of a book that has changed is written so often at most. */
export const indexEveryMs = 600_000;
/** A book without news is checked for expired chapters after this time. */
const restMs = 6 * 3_600_000;
/** Between the news that a book goes and its going, so that the news is stored first. */
const farewellMs = 5000;
/** Chapters that an index names. */
const mostNamed = 20;

export interface Subject {
  /** `Node` */
  readonly kind: string;
  readonly name: string;
  readonly uid?: string;
}

/** What is held of a chapter that is stored. */
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
}

/** What happens to books themselves. */
export type BookIndexesNews =
  | { readonly is: "gone"; readonly book: string; readonly uid: string; readonly message: string }
  | { readonly is: "gap"; readonly book: string; readonly lines: number; readonly message: string };

export interface BookIndexesOptions {
  readonly store: BookStore;
  readonly kinds: readonly BookKind[];
  /** Milliseconds since the epoch, and since an arbitrary start. */
  readonly clock: { now(): number; monotonic(): number };
  readonly retention: () => Readonly<Record<BookKind, Retention>>;
  /** What happens to the library itself goes into the book of the cluster. */
  readonly tell: (news: BookIndexesNews) => void;
  readonly onClosed?: (chapter: Chapter) => void;
}

/** One reading of a book. */
export interface Settled {
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
 * The books of some kinds: takes lines, and stores what follows from them. What is written of a chapter, and when, its
 * keeper in core decides; here it is given numbers, an index, and an end.
 */
export class BookIndexes {
  readonly #options: BookIndexesOptions;
  readonly #storedBooks = new Map<string, BookObjects>();

  private constructor(options: BookIndexesOptions) {
    this.#options = options;
  }

  /** Reads what is stored. */
  static async open(options: BookIndexesOptions, signal: AbortSignal): Promise<BookIndexes> {
    const bookIndexes = new BookIndexes(options);
    for (const kind of options.kinds) {
      const indexes = new Map((await options.store.books(kind, signal)).map((index) => [index.book, index]));
      const chapters = new Map<string, Chapter[]>();
      for (const chapter of await options.store.list({ kind }, signal))
        chapters.set(chapter.book, [...(chapters.get(chapter.book) ?? []), chapter]);
      for (const book of new Set([...indexes.keys(), ...chapters.keys()]))
        bookIndexes.#shelve(book, indexes.get(book), chapters.get(book) ?? []);
    }
    return bookIndexes;
  }

  #shelve(book: string, index: BookIndex | undefined, chapters: readonly Chapter[]): BookObjects {
    // The index may be older than the last chapters: what it does not count yet is counted now.
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
    };
    this.#storedBooks.set(book, bookObjects);
    return bookObjects;
  }

  #shelfOf(book: string): BookObjects {
    return this.#storedBooks.get(book) ?? this.#shelve(book, undefined, []);
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
    return this.#shelfOf(book).keeper.take(lines, this.#options.clock.now());
  }

  /** Lines that are lost for good: the book reports it, and so does that of the cluster. */
  miss(book: string, lines: number, message: string): void {
    if (!this.#options.kinds.includes(kindOf(book))) return;
    this.#shelfOf(book).keeper.miss(lines);
    this.#options.tell({ is: "gap", book, lines, message });
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

  /** What the book is about is gone. */
  gone(book: string): void {
    const bookObjects = this.#storedBooks.get(book);
    if (bookObjects !== undefined) bookObjects.goneAt ??= timestampOf(this.#options.clock.now());
  }

  /** Stores what has to be stored of a book now. */
  async settle(book: string, pool: string | undefined, signal: AbortSignal): Promise<Settled> {
    const bookObjects = this.#storedBooks.get(book);
    if (bookObjects === undefined) return { againMs: restMs };
    const { store, clock } = this.#options;
    try {
      for (const change of bookObjects.keeper.look(clock.now(), pool))
        await this.#write(book, bookObjects, change, signal);
    } catch (error) {
      // Somebody else has closed it: what is stored counts.
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
    if (pruning.prune === "book") return this.#farewell(book, bookObjects, signal);
    const dueInMs = this.#dueInMs(bookObjects);
    if (pruning.numbers.length > 0 && dueInMs === 0) {
      // The index remembers what was in them before they go.
      for (const number of pruning.numbers)
        bookObjects.through = [...merged(bookObjects.through, bookObjects.chapters.get(number)?.through ?? [])];
      bookObjects.prunedThrough = Math.max(bookObjects.prunedThrough, ...pruning.numbers);
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
        bookObjects.keeper.nextLook(clock.now()) ?? restMs,
      ),
    };
  }

  /** In how many milliseconds the book's index may be written again; what is thrown away goes with it. */
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
    if (change.chapter.state === "Closed") this.#options.onClosed?.(change.chapter);
  }

  /** Writes the index where it is due. @returns in how many milliseconds it will be. */
  async #index(book: string, bookObjects: BookObjects, signal: AbortSignal): Promise<number> {
    if (equalValues(bookObjects.index, this.#indexOf(book, bookObjects))) return restMs;
    const dueInMs = this.#dueInMs(bookObjects);
    // That what it is about came or went cannot be made again from chapters.
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
  async #farewell(book: string, bookObjects: BookObjects, signal: AbortSignal): Promise<Settled> {
    const { clock, store, tell } = this.#options;
    const { kind, name, uid } = bookObjects.subject;
    tell({
      is: "gone",
      book,
      uid: uid ?? "",
      message: `the ${kind} ${name} has been gone since ${bookObjects.goneAt ?? ""}; its book had ${bookObjects.keeper.counters["chapters"] ?? 0} chapters`,
    });
    bookObjects.deleteAt ??= clock.monotonic();
    const waitedMs = clock.monotonic() - bookObjects.deleteAt;
    if (waitedMs < farewellMs) return { againMs: farewellMs - waitedMs };
    await store.prune(book, "all", signal);
    this.#storedBooks.delete(book);
    return { againMs: restMs };
  }

  async #reread(book: string, signal: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const indexes = await store.books(kindOf(book), signal);
    this.#shelve(
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
