import type { JournalLine } from "../api/books/journal-line.ts";
import type { JournalEntry } from "../api/books/report-table.ts";
import { type JournalWriter as Writer, type LineNumber, lineOf, numberAfter } from "../core/books/journal.ts";
import { redactLine } from "../core/text/redact.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { LineStore, Journal } from "../ports/journal.ts";
import type { JournalWriter } from "./journal-writer.ts";

export interface BufferedJournalOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly writer: Writer;
  /** Boot id of the machine; a process in a pod has a new id for each start. */
  readonly boot: string;
  /** Number of the last stored line of this writer and boot; absent: there is none. */
  readonly after?: LineNumber;
  /** Where lines are stored before they are sent; absent: in memory only. */
  readonly store?: LineStore;
  readonly sender?: JournalWriter;
}

export interface BufferedJournal extends Journal {
  /** The newest lines of this process, oldest first. */
  readonly lines: readonly JournalLine[];
  /**
   * `lines`: written so far. `folded`: lines that were only counted because there were too many. `dropped`: boundary
   * lines that no journal has.
   */
  readonly counts: {
    readonly lines: number;
    readonly folded: number;
    readonly waiting: number;
    readonly dropped: number;
  };
  /** Writes and sends no more lines. */
  stop(): void;
}

/** Lines in memory. */
const ringLines = 10_000;
/**
 * Rate limit of one writer, in lines per minute. Above it only boundary lines are written one by one: first debug
 * lines, then progress lines are only counted.
 */
const minuteLines = 2000;
const minuteMs = 60_000;
/** Between attempts to write to a disk that refuses writes. */
const storeRetryMs = 5000;
/**
 * How long a machine that is about to reboot waits for the API server to accept its lines: the disk already has them.
 */
const farewellMs = 3000;

interface Count {
  readonly line: JournalEntry;
  count: number;
}

/**
 * The journal of a process: stamps lines with writer, number and both clocks, redacts secrets, stores the lines (on
 * disk first, if there is one), and passes them on. It never fails or blocks its process.
 */
export function createBufferedJournal({
  clock,
  log,
  writer,
  boot,
  after = { seq: 0 },
  store,
  sender: journal,
}: BufferedJournalOptions): BufferedJournal {
  let last = after;
  let lines: JournalLine[] = [];
  let written = 0;
  let folded = 0;
  let minute = { began: -Infinity, lines: 0 };
  const counts = new Map<string, Count>();
  /** Not stored yet. */
  let queue: JournalLine[] = [];
  let storing: Promise<void> | undefined;
  let isTroubled = false;
  let cancelRetry: (() => void) | undefined;
  let cancelMinute: (() => void) | undefined;
  const stopping = new AbortController();

  function write(line: JournalEntry): void {
    last = numberAfter(last, line.level);
    const made = lineOf(redactLine(line), { writer, boot, number: last, at: clock.now(), mono: clock.monotonic() });
    written += 1;
    lines.push(made);
    if (lines.length >= 2 * ringLines) lines = lines.slice(-ringLines);
    if (store === undefined) journal?.offer([made]);
    else {
      queue.push(made);
      // A disk that refuses writes must not fill the memory; boundary lines are dropped last.
      if (queue.length > ringLines)
        queue = [
          ...queue.filter(({ level }) => level === "boundary"),
          ...queue.filter(({ level }) => level !== "boundary").slice(-ringLines / 2),
        ].slice(-ringLines);
      void keep();
    }
  }

  /** Whether the line is written by itself; otherwise it has been counted. */
  function isTaken(line: JournalEntry): boolean {
    const now = clock.monotonic();
    if (now - minute.began >= minuteMs) {
      tellCounts();
      minute = { began: now, lines: 0 };
    }
    minute.lines += 1;
    const most = line.level === "debug" ? minuteLines : line.level === "progress" ? 2 * minuteLines : Infinity;
    if (minute.lines <= most) return true;
    folded += 1;
    const key = [line.book, line.chapter, line.run, line.path, line.reason].join(" ");
    const count = counts.get(key);
    if (count === undefined) counts.set(key, { line, count: 1 });
    else counts.set(key, { line, count: count.count + 1 });
    cancelMinute ??= clock.after(minuteMs, tellCounts);
    return false;
  }

  function tellCounts(): void {
    cancelMinute?.();
    cancelMinute = undefined;
    const told = [...counts.values()];
    counts.clear();
    for (const { line, count } of told)
      write({
        ...line,
        level: "progress",
        mark: "note",
        message: `${count} lines like this one were counted, because there were too many: ${line.message}`,
        data: { ...line.data, folded: count },
      });
  }

  /** Stores queued lines, one batch after the other. @returns after the attempt. */
  function keep(): Promise<void> {
    if (store === undefined || queue.length === 0 || stopping.signal.aborted) return storing ?? Promise.resolve();
    storing ??= (async () => {
      try {
        while (queue.length > 0 && !stopping.signal.aborted) {
          const batch = queue;
          queue = [];
          const durable = batch.some(({ level }) => level === "boundary");
          try {
            await store.append(
              boot,
              batch.map((line) => JSON.stringify(line)),
              { durable },
              stopping.signal,
            );
          } catch (error) {
            // Lines that did arrive are now stored twice under one number; readers count them once.
            queue = [...batch, ...queue];
            throw error;
          }
          isTroubled = false;
          // Send only what is on disk: otherwise a power cut could give one number to two lines.
          journal?.offer(batch);
        }
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (!isTroubled)
          log.warn({ error, waiting: queue.length }, "story lines cannot be written to the disk; they wait");
        isTroubled = true;
        cancelRetry ??= clock.after(storeRetryMs, () => {
          cancelRetry = undefined;
          void keep();
        });
      } finally {
        storing = undefined;
      }
    })();
    return storing;
  }

  return {
    line(line) {
      if (stopping.signal.aborted) return;
      try {
        if (isTaken(line)) write(line);
      } catch (error) {
        log.warn({ error, path: line.path, reason: line.reason }, "a story line could not be written");
      }
    },
    async flush(signal) {
      try {
        tellCounts();
        await keep();
        if (journal === undefined) return;
        const farewell = clock.deadline(farewellMs, signal);
        try {
          await journal.send(farewell.signal);
        } finally {
          farewell.cancel();
        }
      } catch (error) {
        log.warn({ error }, "story lines are not all sent");
      }
    },
    get lines() {
      return lines.slice(-ringLines);
    },
    get counts() {
      const { waiting, dropped } = journal?.counts ?? { waiting: 0, dropped: 0 };
      return { lines: written, folded, waiting: waiting + queue.length, dropped };
    },
    stop() {
      stopping.abort(new Error("the scribe has stopped"));
      cancelRetry?.();
      cancelMinute?.();
      journal?.stop();
    },
  };
}
