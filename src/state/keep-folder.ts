import { completeLine } from "../api/books/short-lines.ts";
import type { JournalLine } from "../api/books/journal-line.ts";
import { bookKinds } from "../api/books/report-table.ts";
import { defaultRetention } from "../core/books/book-retention.ts";
import { journalLineIn, lineOf } from "../core/books/journal.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/logger.ts";
import { FileBookStore } from "./file-book-store.ts";
import { BookIndexes } from "./book-indexes.ts";
import { linesLost } from "./reports.ts";

export interface KeepFolderOptions {
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Logger;
  /** Folder with files of journal lines, `*.jsonl`, as the bootstrap's programs write them. */
  readonly from: string;
  /** Folder that the books are kept in. */
  readonly to: string;
  readonly version: string;
  /** How often files are read, in milliseconds; `undefined`: once. */
  readonly everyMs?: number;
}

/**
 * Keeps books without an API server: folds the journal lines of a folder. Books can be rebuilt from the lines, so
 * nothing depends on this.
 *
 * @returns the number of lines read.
 */
export async function keepFolder(
  { files, clock, log, from, to, version, everyMs }: KeepFolderOptions,
  signal: AbortSignal,
): Promise<number> {
  const store = await FileBookStore.open(files, to);
  let seq = 0;
  const waiting: JournalLine[] = [];
  const began = clock.now();
  const bookIndexes = await BookIndexes.open(
    {
      store,
      kinds: bookKinds,
      clock,
      retention: () => defaultRetention,
      report: (news) => {
        if (news.is === "gap")
          waiting.push(
            lineOf(completeLine(linesLost(news)), {
              writer: { component: "state", instance: "bootstrap", version },
              boot: String(began),
              number: { seq: (seq += 1) },
              at: clock.now(),
              mono: clock.monotonic(),
            }),
          );
      },
    },
    signal,
  );
  /** Characters of each file that were read. */
  const read = new Map<string, number>();
  let count = 0;
  for (;;) {
    const fresh: JournalLine[] = waiting.splice(0);
    for (const name of (await files.list(from)).filter((file) => file.endsWith(".jsonl"))) {
      const text = (await files.readText(`${from}/${name}`)) ?? "";
      // A line that is still being written is read when it is whole.
      const whole = text.slice(0, text.lastIndexOf("\n") + 1);
      for (const line of whole.slice(read.get(name) ?? 0).split("\n")) {
        const parsed = journalLineIn(line);
        if (parsed !== undefined) fresh.push(parsed);
        else if (line !== "") log.warn({ file: name }, "a line that cannot be read is left out");
      }
      read.set(name, whole.length);
    }
    count += fresh.length;
    for (const book of new Set([...fresh.map((line) => line.book), ...bookIndexes.books])) {
      bookIndexes.take(
        book,
        fresh.filter((line) => line.book === book),
      );
      await bookIndexes.persist(book, undefined, signal);
    }
    if (everyMs === undefined || signal.aborted) return count;
    await clock.sleep(everyMs, signal).catch(() => undefined);
    if (signal.aborted) return count;
  }
}
