import type { MachineStateBook } from "../api/books/machine-state-book.ts";
import type { Chapter } from "../api/books/machine-state-chapter.ts";
import { McoError } from "../api/errors.ts";
import type { BookKind } from "../api/books/report-table.ts";
import { equalValues } from "../ignition/canonical.ts";

/**
 * The content of a book's index: its newest chapters in a line each, its counters, and the last line that it includes.
 */
export type BookIndex = MachineStateBook["spec"];

/** Something to be stored, as a whole. */
export type BookEntry =
  | { readonly write: "index"; readonly index: BookIndex }
  | { readonly write: "chapter"; readonly chapter: Chapter };

/** Conditions on the requested chapters; an absent field is no condition. */
export interface ChapterFilter {
  readonly kind?: BookKind;
  readonly book?: string;
  readonly chapter?: string;
  readonly state?: Chapter["state"];
}

export type StoreChange =
  | { readonly is: "written"; readonly chapter: Chapter }
  | { readonly is: "pruned"; readonly book: string; readonly number: number };

/** How much there is of one kind of book. */
export interface StoreStats {
  readonly kind: BookKind;
  readonly state: Chapter["state"];
  readonly chapters: number;
  readonly bytes: number;
}

/** Where books are kept. One suite of tests holds for all drivers: `book-store.test.ts`. */
export interface BookStore {
  /**
   * Stores entries in their order; an index comes before the first chapter of its book. Storing the same again changes
   * nothing. A changed entry of a closed chapter rejects with `MCO_CHAPTER_CLOSED`; the entries before it are stored.
   */
  append(entries: readonly BookEntry[], signal?: AbortSignal): Promise<void>;
  /** `undefined`: there is no such chapter. */
  get(book: string, number: number, signal?: AbortSignal): Promise<Chapter | undefined>;
  /** Chapters by book and number. */
  list(filter: ChapterFilter, signal?: AbortSignal): Promise<readonly Chapter[]>;
  /** Indexes by name of the book. */
  books(kind?: BookKind, signal?: AbortSignal): Promise<readonly BookIndex[]>;
  /** Chapters as they are written or thrown away from the call on, until `signal` aborts. */
  watch(filter: ChapterFilter, signal: AbortSignal): AsyncIterable<StoreChange>;
  /** Removes chapters; `all`: the book as well. Removing a missing chapter is not an error. */
  prune(book: string, numbers: readonly number[] | "all", signal?: AbortSignal): Promise<void>;
  /** Counted, in the order of kinds and states. */
  stats(signal?: AbortSignal): Promise<readonly StoreStats[]>;
}

const bookKindOfChapter = ({ book }: Pick<Chapter, "book">): BookKind =>
  book.includes("/") ? (book.slice(0, book.indexOf("/")) as BookKind) : "cluster";

export const matchesFilter = (chapter: Chapter, { kind, book, chapter: is, state }: ChapterFilter): boolean =>
  (kind === undefined || bookKindOfChapter(chapter) === kind) &&
  (book === undefined || chapter.book === book) &&
  (is === undefined || chapter.chapter === is) &&
  (state === undefined || chapter.state === state);

export const byPlace = (a: Pick<Chapter, "book" | "number">, b: Pick<Chapter, "book" | "number">): number =>
  a.book === b.book ? a.number - b.number : a.book < b.book ? -1 : 1;

export const chapterClosed = ({ book, number }: Pick<Chapter, "book" | "number">, cause?: unknown): McoError =>
  new McoError(
    "MCO_CHAPTER_CLOSED",
    { book, number },
    { message: `chapter ${number} of ${book} is closed and never changed`, ...(cause === undefined ? {} : { cause }) },
  );

/** Whether a stored chapter stays as it is: it is closed, or of another stage. */
export const isFixed = (before: Chapter, chapter: Chapter): boolean =>
  before.state === "Closed" || before.chapter !== chapter.chapter || before.run !== chapter.run;

/** Whether a chapter has to be stored; throws when it may not be. */
export function mayStore(before: Chapter | undefined, chapter: Chapter): boolean {
  if (before === undefined) return true;
  if (equalValues(before, chapter)) return false;
  if (isFixed(before, chapter)) throw chapterClosed(chapter);
  return true;
}

/** Counts chapters with their sizes. */
export function countChapters(
  chapters: Iterable<{ readonly chapter: Pick<Chapter, "book" | "state">; readonly bytes: number }>,
): readonly StoreStats[] {
  const sums = new Map<string, { kind: BookKind; state: Chapter["state"]; chapters: number; bytes: number }>();
  for (const { chapter, bytes } of chapters) {
    const kind = bookKindOfChapter(chapter);
    const key = `${kind} ${chapter.state}`;
    const sum = sums.get(key) ?? { kind, state: chapter.state, chapters: 0, bytes: 0 };
    sum.chapters += 1;
    sum.bytes += bytes;
    sums.set(key, sum);
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
}
