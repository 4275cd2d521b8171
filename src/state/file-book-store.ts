import { greatestOf } from "../api/schema/extremes.ts";
import type { Chapter } from "../api/books/machine-state-chapter.ts";
import type { BookKind } from "../api/books/report-table.ts";
import type { Files } from "../ports/files.ts";
import type { BookEntry, BookIndex, BookStore, ChapterFilter, StoreChange, StoreStats } from "./book-store.ts";
import { MemoryBookStore } from "./memory-book-store.ts";

/** A segment that is larger is followed by a new one. */
const segmentBytes = 1024 * 1024;
/** Number of segments above which outdated entries are dropped. */
const mostSegments = 8;

const segmentName = (number: number) => `books-${String(number).padStart(6, "0")}.jsonl`;

type Record_ =
  | BookEntry
  | { readonly write: "pruned"; readonly book: string; readonly numbers: readonly number[] | "all" };

/**
 * Books in a folder, for use without an API server: append-only segments of JSON lines, and an index that lists the
 * valid ones. A line that a crash truncated is left out, and later lines stand.
 */
export class FileBookStore implements BookStore {
  readonly #files: Files;
  readonly #folder: string;
  readonly #memory = new MemoryBookStore();
  /** Segments that count, oldest first. */
  #segments: number[] = [];
  #bytes = 0;
  /** One at a time: lines must not mix. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(files: Files, folder: string) {
    this.#files = files;
    this.#folder = folder;
  }

  /** Reads the folder, or creates it. */
  static async open(files: Files, folder: string): Promise<FileBookStore> {
    const store = new FileBookStore(files, folder);
    await files.makeDirectory(folder, { mode: 0o700 });
    await store.#load();
    return store;
  }

  async #load(): Promise<void> {
    const index = parsed(await this.#files.readText(`${this.#folder}/index.json`)) as
      | { readonly segments?: readonly number[] }
      | undefined;
    // Without the index every segment counts: a later line stands above an earlier one.
    const there = (await this.#files.list(this.#folder)).flatMap(
      (name) => Number(/^books-(\d{6})\.jsonl$/.exec(name)?.[1] ?? 0) || [],
    );
    const newest = greatestOf(index?.segments ?? [], 0);
    this.#segments =
      index?.segments === undefined
        ? there
        : there.filter((number) => index.segments?.includes(number) === true || number > newest);
    for (const number of this.#segments) {
      const text = (await this.#files.readText(`${this.#folder}/${segmentName(number)}`)) ?? "";
      this.#bytes = text.length;
      for (const line of text.split("\n")) {
        const record = parsed(line) as Record_ | undefined;
        if (record === undefined) continue;
        if (record.write === "pruned") await this.#memory.prune(record.book, record.numbers);
        else this.#memory.store(record);
      }
      // A line appended to a truncated line would be lost with it.
      if (text !== "" && !text.endsWith("\n")) await this.#files.append(`${this.#folder}/${segmentName(number)}`, "\n");
    }
  }

  append(entries: readonly BookEntry[]): Promise<void> {
    return this.#inTurn(async () => {
      for (const entry of entries) if (this.#memory.store(entry)) await this.#write(entry);
    });
  }

  prune(book: string, numbers: readonly number[] | "all"): Promise<void> {
    return this.#inTurn(async () => {
      await this.#memory.prune(book, numbers);
      await this.#write({ write: "pruned", book, numbers });
    });
  }

  async #write(record: Record_): Promise<void> {
    if (this.#segments.length === 0 || this.#bytes >= segmentBytes) await this.#rotate();
    const line = `${JSON.stringify(record)}\n`;
    await this.#files.append(`${this.#folder}/${segmentName(this.#segments.at(-1) ?? 1)}`, line, { mode: 0o600 });
    this.#bytes += line.length;
  }

  async #rotate(): Promise<void> {
    const next = (this.#segments.at(-1) ?? 0) + 1;
    if (this.#segments.length < mostSegments) {
      this.#segments = [...this.#segments, next];
      this.#bytes = 0;
      await this.#writeIndex();
      return;
    }
    // All that still counts in one segment, which the index names before the others go.
    const entries: BookEntry[] = [
      ...(await this.#memory.books()).map((index) => ({ write: "index", index }) as const),
      ...(await this.#memory.list({})).map((chapter) => ({ write: "chapter", chapter }) as const),
    ];
    const text = entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
    await this.#files.write(`${this.#folder}/${segmentName(next)}`, text, { mode: 0o600 });
    const old = this.#segments;
    this.#segments = [next, next + 1];
    this.#bytes = 0;
    await this.#writeIndex();
    for (const number of old) await this.#files.remove(`${this.#folder}/${segmentName(number)}`);
  }

  async #writeIndex(): Promise<void> {
    await this.#files.write(`${this.#folder}/index.json`, `${JSON.stringify({ v: 1, segments: this.#segments })}\n`, {
      mode: 0o600,
    });
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#last.then(work, work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  get(book: string, number: number): Promise<Chapter | undefined> {
    return this.#memory.get(book, number);
  }

  list(filter: ChapterFilter): Promise<readonly Chapter[]> {
    return this.#memory.list(filter);
  }

  books(kind?: BookKind): Promise<readonly BookIndex[]> {
    return this.#memory.books(kind);
  }

  watch(filter: ChapterFilter, signal: AbortSignal): AsyncIterable<StoreChange> {
    return this.#memory.watch(filter, signal);
  }

  stats(): Promise<readonly StoreStats[]> {
    return this.#memory.stats();
  }
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined || text === "" ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}
