import type { Chapter } from "../api/books/machine-state-chapter.ts";
import { jsonBytes } from "../core/books/journal.ts";
import {
  type BookIndex,
  type BookStore,
  type ChapterFilter,
  type StoreChange,
  byPlace,
  countChapters,
  matchesFilter,
  mayStore,
} from "./book-store.ts";
import { StoreListeners } from "./store-listeners.ts";

const keyOf = (book: string, number: number) => `${book}#${number}`;

/** Keeps books in memory: tests, the simulation, and what another store has read. */
export class MemoryBookStore implements BookStore {
  readonly #indexes = new Map<string, BookIndex>();
  readonly #chapters = new Map<string, Chapter>();
  readonly #listeners = new StoreListeners();

  append(entries: Parameters<BookStore["append"]>[0]): Promise<void> {
    return done(() => {
      for (const entry of entries) this.store(entry);
    });
  }

  /** @returns whether it changed anything. */
  store(entry: Parameters<BookStore["append"]>[0][number]): boolean {
    if (entry.write === "index") {
      this.#indexes.set(entry.index.book, entry.index);
      return true;
    }
    const { chapter } = entry;
    const key = keyOf(chapter.book, chapter.number);
    if (!mayStore(this.#chapters.get(key), chapter)) return false;
    this.#chapters.set(key, chapter);
    this.#listeners.notify({ is: "written", chapter }, chapter);
    return true;
  }

  get(book: string, number: number): Promise<Chapter | undefined> {
    return Promise.resolve(this.#chapters.get(keyOf(book, number)));
  }

  list(filter: ChapterFilter): Promise<readonly Chapter[]> {
    return Promise.resolve(
      [...this.#chapters.values()].filter((chapter) => matchesFilter(chapter, filter)).sort(byPlace),
    );
  }

  books(kind?: BookIndex["kind"]): Promise<readonly BookIndex[]> {
    return Promise.resolve(
      [...this.#indexes.values()]
        .filter((index) => kind === undefined || index.kind === kind)
        .sort((a, b) => (a.book < b.book ? -1 : 1)),
    );
  }

  watch(filter: ChapterFilter, signal: AbortSignal): AsyncIterable<StoreChange> {
    return this.#listeners.follow(filter, signal);
  }

  prune(book: string, numbers: readonly number[] | "all"): Promise<void> {
    for (const [key, chapter] of this.#chapters) {
      if (chapter.book !== book || (numbers !== "all" && !numbers.includes(chapter.number))) continue;
      this.#chapters.delete(key);
      this.#listeners.notify({ is: "pruned", book, number: chapter.number }, chapter);
    }
    if (numbers === "all") this.#indexes.delete(book);
    return Promise.resolve();
  }

  stats(): ReturnType<BookStore["stats"]> {
    return Promise.resolve(
      countChapters([...this.#chapters.values()].map((chapter) => ({ chapter, bytes: jsonBytes(chapter) }))),
    );
  }
}

/** Turns a thrown error into a rejection. */
async function done(work: () => void): Promise<void> {
  await Promise.resolve();
  work();
}
