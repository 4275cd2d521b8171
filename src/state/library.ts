import type { JournalLine, JournalMark } from "../api/books/journal-line.ts";
import type { Chapter } from "../api/books/machine-state-chapter.ts";
import { timestampOf } from "../api/schema/object.ts";
import type { BookKind } from "../api/books/stories.ts";
import { McoError } from "../api/errors.ts";
import { BookKeeper, type ChapterChange, healthWord, merged, oneLiner } from "../core/books/book-keeper.ts";
import { type Retention, pruneBook } from "../core/books/book-retention.ts";
import { jsonBytes } from "../core/books/journal.ts";
import { equalValues } from "../ignition/canonical.ts";
import type { BookIndex, BookStore } from "./book-store.ts";

/** The index of a book that has changed is written so often at most. */
export const indexEveryMs = 600_000;
/** A book of which nothing is heard is looked at after this time, for what is too old. */
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

interface Shelf {
  readonly keeper: BookKeeper;
  readonly chapters: Map<number, Kept>;
  index: BookIndex | undefined;
  /** Monotonic milliseconds of when its index was last written; `undefined`: not by this process. */
  indexAt: number | undefined;
  subject: Subject;
  goneAt: string | undefined;
  prunedThrough: number;
  through: BookIndex["through"];
  /** Monotonic milliseconds of when it was told that the book goes. */
  farewellAt: number | undefined;
}

/** What happens to books themselves. */
export type LibraryNews =
  | { readonly is: "gone"; readonly book: string; readonly uid: string; readonly message: string }
  | { readonly is: "gap"; readonly book: string; readonly lines: number; readonly message: string };

export interface LibraryOptions {
  readonly store: BookStore;
  readonly kinds: readonly BookKind[];
  /** Milliseconds since the epoch, and since an arbitrary start. */
  readonly clock: { now(): number; monotonic(): number };
  readonly retention: () => Readonly<Record<BookKind, Retention>>;
  /** What happens to the library itself goes into the book of the cluster. */
  readonly tell: (news: LibraryNews) => void;
  readonly onClosed?: (chapter: Chapter) => void;
}

/** One look at a book. */
export interface Settled {
  /** When to look again though nothing is heard, in milliseconds. */
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
export class Library {
  readonly #options: LibraryOptions;
  readonly #shelves = new Map<string, Shelf>();

  private constructor(options: LibraryOptions) {
    this.#options = options;
  }

  /** Reads what is stored. */
  static async open(options: LibraryOptions, signal: AbortSignal): Promise<Library> {
    const library = new Library(options);
    for (const kind of options.kinds) {
      const indexes = new Map((await options.store.books(kind, signal)).map((index) => [index.book, index]));
      const chapters = new Map<string, Chapter[]>();
      for (const chapter of await options.store.list({ kind }, signal))
        chapters.set(chapter.book, [...(chapters.get(chapter.book) ?? []), chapter]);
      for (const book of new Set([...indexes.keys(), ...chapters.keys()]))
        library.#shelve(book, indexes.get(book), chapters.get(book) ?? []);
    }
    return library;
  }

  #shelve(book: string, index: BookIndex | undefined, chapters: readonly Chapter[]): Shelf {
    // The index may be older than the last chapters: what it does not count yet is counted now.
    const counters: Record<string, number> = { ...index?.counters };
    for (const { number, state, chapter, outcome } of chapters) {
      if (state !== "Closed" || number <= (index?.lastNumber ?? 0) - stillOpen(index, number)) continue;
      for (const counter of ["chapters", `${chapter}/${outcome ?? "Unknown"}`])
        counters[counter] = (counters[counter] ?? 0) + 1;
    }
    const through = index?.through ?? [];
    const shelf: Shelf = {
      keeper: new BookKeeper(book, { chapters, through, lastNumber: index?.lastNumber ?? 0, counters }),
      chapters: new Map(chapters.map((chapter) => [chapter.number, keptOf(chapter)])),
      index,
      indexAt: undefined,
      subject: index?.subject ?? subjectOf(book),
      goneAt: index?.subjectGoneAt,
      prunedThrough: index?.prunedThrough ?? 0,
      through,
      farewellAt: undefined,
    };
    this.#shelves.set(book, shelf);
    return shelf;
  }

  #shelfOf(book: string): Shelf {
    return this.#shelves.get(book) ?? this.#shelve(book, undefined, []);
  }

  get books(): readonly string[] {
    return [...this.#shelves.keys()];
  }

  has(book: string): boolean {
    return this.#shelves.has(book);
  }

  /** @returns whether any of the lines was new. */
  take(book: string, lines: readonly JournalLine[]): boolean {
    if (lines.length === 0 || !this.#options.kinds.includes(kindOf(book))) return false;
    return this.#shelfOf(book).keeper.take(lines, this.#options.clock.now());
  }

  /** Lines that should have come and never will: the book says so, and that of the cluster. */
  miss(book: string, lines: number, message: string): void {
    if (!this.#options.kinds.includes(kindOf(book))) return;
    this.#shelfOf(book).keeper.miss(lines);
    this.#options.tell({ is: "gap", book, lines, message });
  }

  /** What the book is about is there. A new one of the same name makes the book its own. */
  present(book: string, uid: string | undefined): void {
    const shelf = this.#shelves.get(book);
    if (shelf === undefined || (shelf.goneAt === undefined && (uid === undefined || shelf.subject.uid === uid))) return;
    shelf.goneAt = undefined;
    shelf.farewellAt = undefined;
    shelf.subject = { ...subjectOf(book), ...(uid === undefined ? {} : { uid }) };
  }

  /** What the book is about is gone. */
  gone(book: string): void {
    const shelf = this.#shelves.get(book);
    if (shelf !== undefined) shelf.goneAt ??= timestampOf(this.#options.clock.now());
  }

  /** Stores what has to be stored of a book now. */
  async settle(book: string, pool: string | undefined, signal: AbortSignal): Promise<Settled> {
    const shelf = this.#shelves.get(book);
    if (shelf === undefined) return { againMs: restMs };
    const { store, clock } = this.#options;
    try {
      for (const change of shelf.keeper.look(clock.now(), pool)) await this.#write(book, shelf, change, signal);
    } catch (error) {
      // Somebody else has closed it: what is stored counts.
      if (error instanceof McoError && error.code === "MCO_CHAPTER_CLOSED") await this.#reread(book, signal);
      throw error;
    }
    if (shelf.index === undefined && shelf.chapters.size === 0) return { againMs: restMs };
    const pruning = pruneBook(
      [...shelf.chapters.values()].map(({ summary }) => summary),
      this.#options.retention()[kindOf(book)],
      clock.now(),
      shelf.goneAt,
    );
    if (pruning.prune === "book") return this.#farewell(book, shelf, signal);
    const dueInMs = this.#dueInMs(shelf);
    if (pruning.numbers.length > 0 && dueInMs === 0) {
      // The index remembers what was in them before they go.
      for (const number of pruning.numbers)
        shelf.through = [...merged(shelf.through, shelf.chapters.get(number)?.through ?? [])];
      shelf.prunedThrough = Math.max(shelf.prunedThrough, ...pruning.numbers);
      for (const number of pruning.numbers) shelf.chapters.delete(number);
      await this.#writeIndex(book, shelf, signal);
      await store.prune(book, pruning.numbers, signal);
    }
    const indexInMs = await this.#index(book, shelf, signal);
    return {
      againMs: Math.min(
        restMs,
        indexInMs,
        pruning.numbers.length > 0 && dueInMs > 0 ? dueInMs : restMs,
        shelf.keeper.nextLook(clock.now()) ?? restMs,
      ),
    };
  }

  /** In how many milliseconds the book's index may be written again; what is thrown away goes with it. */
  #dueInMs({ indexAt }: Shelf): number {
    return indexAt === undefined ? 0 : Math.max(0, indexEveryMs - (this.#options.clock.monotonic() - indexAt));
  }

  async #write(book: string, shelf: Shelf, change: ChapterChange, signal: AbortSignal): Promise<void> {
    // A book is there before its chapters, which it owns; what it says of them comes when they are stored.
    if (shelf.index === undefined) {
      await this.#writeIndex(book, shelf, signal);
      shelf.indexAt = undefined;
    }
    await this.#options.store.append([{ write: "chapter", chapter: change.chapter }], signal);
    shelf.keeper.written(change);
    shelf.chapters.set(change.chapter.number, keptOf(change.chapter));
    if (change.chapter.state === "Closed") this.#options.onClosed?.(change.chapter);
  }

  /** Writes the index where it is due. @returns in how many milliseconds it will be. */
  async #index(book: string, shelf: Shelf, signal: AbortSignal): Promise<number> {
    if (equalValues(shelf.index, this.#indexOf(book, shelf))) return restMs;
    const dueInMs = this.#dueInMs(shelf);
    // That what it is about came or went cannot be made again from chapters.
    if (dueInMs > 0 && shelf.index?.subjectGoneAt === shelf.goneAt) return dueInMs;
    await this.#writeIndex(book, shelf, signal);
    return restMs;
  }

  async #writeIndex(book: string, shelf: Shelf, signal: AbortSignal): Promise<void> {
    const index = this.#indexOf(book, shelf);
    await this.#options.store.append([{ write: "index", index }], signal);
    shelf.index = index;
    shelf.indexAt = this.#options.clock.monotonic();
  }

  #indexOf(book: string, shelf: Shelf): BookIndex {
    const all = [...shelf.chapters.values()].map(({ summary }) => summary).sort((a, b) => a.number - b.number);
    return {
      book,
      kind: kindOf(book),
      subject: { ...shelf.subject },
      ...(shelf.goneAt === undefined ? {} : { subjectGoneAt: shelf.goneAt }),
      chapters: all.slice(-mostNamed).map((summary) => oneLiner(summary as Chapter)),
      counters: { ...shelf.keeper.counters },
      health: healthWord(all),
      lastNumber: shelf.keeper.lastNumber,
      prunedThrough: shelf.prunedThrough,
      through: [...shelf.through],
    };
  }

  /** A book whose subject has been gone for long enough goes, once the cluster's book has been told. */
  async #farewell(book: string, shelf: Shelf, signal: AbortSignal): Promise<Settled> {
    const { clock, store, tell } = this.#options;
    const { kind, name, uid } = shelf.subject;
    tell({
      is: "gone",
      book,
      uid: uid ?? "",
      message: `the ${kind} ${name} has been gone since ${shelf.goneAt ?? ""}; its book had ${shelf.keeper.counters["chapters"] ?? 0} chapters`,
    });
    shelf.farewellAt ??= clock.monotonic();
    const waitedMs = clock.monotonic() - shelf.farewellAt;
    if (waitedMs < farewellMs) return { againMs: farewellMs - waitedMs };
    await store.prune(book, "all", signal);
    this.#shelves.delete(book);
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
    for (const { chapters, through } of this.#shelves.values()) {
      for (const mark of [...through, ...[...chapters.values()].flatMap((kept) => kept.through)]) {
        const key = `${mark.component}/${mark.instance}/${mark.boot}`;
        if ((farthest.get(key)?.seq ?? -1) < mark.seq) farthest.set(key, mark);
      }
    }
    return [...farthest.values()];
  }

  /** Everything that is stored, for figures. */
  *kept(): Iterable<{
    readonly book: string;
    readonly kind: BookKind;
    readonly summary: Kept["summary"];
    readonly bytes: number;
  }> {
    for (const [book, { chapters }] of this.#shelves)
      for (const { summary, bytes } of chapters.values()) yield { book, kind: kindOf(book), summary, bytes };
  }

  /** Chapters and index entries of one book, as they are stored. */
  summaries(book: string): readonly Kept["summary"][] {
    return [...(this.#shelves.get(book)?.chapters.values() ?? [])].map(({ summary }) => summary);
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
