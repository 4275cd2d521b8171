import type { JournalLine } from "../api/books/journal-line.ts";
import type { JournalEntry } from "../api/books/report-table.ts";
import { type WriterIdentity as Writer, type LineNumber, lineOf, numberAfter } from "../core/books/journal.ts";
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
const flushMs = 3000;

interface Count {
  readonly line: JournalEntry;
  count: number;
}

/**
 * The journal of a process: stamps lines with writer, number and both clocks, redacts secrets, stores the lines (on
 * disk first, if there is one), and passes them on. It never fails or blocks its process.
 */
export const createBufferedJournal = (options: BufferedJournalOptions): BufferedJournal => new LineBuffer(options);

/** What the journal remembers of the lines it was given. */
interface BufferMemory {
  /** Number of the last line that was written. */
  last: LineNumber;
  /** The newest lines, up to twice {@link ringLines}. */
  lines: JournalLine[];
  /** How many lines were written one by one. */
  written: number;
  /** How many lines were only counted. */
  folded: number;
  /** The current minute of the rate limit, and how many lines it has had. */
  minute: { readonly began: number; lines: number };
  /** Lines that are not stored yet. */
  queue: JournalLine[];
  /** The write that is under way. */
  storing: Promise<void> | undefined;
  /** The last write failed, and that was logged. */
  isTroubled: boolean;
  /** Cancels the next attempt to write to the disk. */
  cancelRetry: (() => void) | undefined;
  /** Cancels the report of the counted lines at the end of the minute. */
  cancelMinute: (() => void) | undefined;
}

class LineBuffer implements BufferedJournal {
  readonly #options: BufferedJournalOptions;
  readonly #memory: BufferMemory;
  /** Lines that were only counted, by chapter, path and reason. */
  readonly #counts = new Map<string, Count>();
  readonly #stopping = new AbortController();

  constructor(options: BufferedJournalOptions) {
    this.#options = options;
    this.#memory = {
      last: options.after ?? { seq: 0 },
      lines: [],
      written: 0,
      folded: 0,
      minute: { began: -Infinity, lines: 0 },
      queue: [],
      storing: undefined,
      isTroubled: false,
      cancelRetry: undefined,
      cancelMinute: undefined,
    };
  }

  line(line: JournalEntry): void {
    if (this.#stopping.signal.aborted) return;
    try {
      if (this.#isTaken(line)) this.#write(line);
    } catch (error) {
      this.#options.log.warn({ error, path: line.path, reason: line.reason }, "a journal line could not be written");
    }
  }

  kept(): Promise<void> {
    return this.#keep();
  }

  async flush(signal: AbortSignal): Promise<void> {
    const { clock, log, sender } = this.#options;
    try {
      this.#reportCounts();
      await this.#keep();
      if (sender === undefined) return;
      const deadline = clock.deadline(flushMs, signal);
      try {
        await sender.send(deadline.signal);
      } finally {
        deadline.cancel();
      }
    } catch (error) {
      log.warn({ error }, "journal lines are not all sent");
    }
  }

  get lines(): readonly JournalLine[] {
    return this.#memory.lines.slice(-ringLines);
  }

  get counts(): BufferedJournal["counts"] {
    const { written, folded, queue } = this.#memory;
    const { waiting, dropped } = this.#options.sender?.counts ?? { waiting: 0, dropped: 0 };
    return { lines: written, folded, waiting: waiting + queue.length, dropped };
  }

  stop(): void {
    this.#stopping.abort(new Error("the journal has stopped"));
    this.#memory.cancelRetry?.();
    this.#memory.cancelMinute?.();
    this.#options.sender?.stop();
  }

  #write(line: JournalEntry): void {
    const { clock, writer, boot, store, sender } = this.#options;
    const memory = this.#memory;
    memory.last = numberAfter(memory.last, line.level);
    const number = memory.last;
    const made = lineOf(redactLine(line), { writer, boot, number, at: clock.now(), mono: clock.monotonic() });
    memory.written += 1;
    memory.lines.push(made);
    if (memory.lines.length >= 2 * ringLines) memory.lines = memory.lines.slice(-ringLines);
    if (store === undefined) sender?.offer([made]);
    else {
      memory.queue.push(made);
      // A disk that refuses writes must not fill the memory; boundary lines are dropped last.
      if (memory.queue.length > ringLines)
        memory.queue = [
          ...memory.queue.filter(({ level }) => level === "boundary"),
          ...memory.queue.filter(({ level }) => level !== "boundary").slice(-ringLines / 2),
        ].slice(-ringLines);
      void this.#keep();
    }
  }

  /** Whether the line is written by itself; otherwise it has been counted. */
  #isTaken(line: JournalEntry): boolean {
    const { clock } = this.#options;
    const memory = this.#memory;
    const now = clock.monotonic();
    if (now - memory.minute.began >= minuteMs) {
      this.#reportCounts();
      memory.minute = { began: now, lines: 0 };
    }
    memory.minute.lines += 1;
    const most = line.level === "debug" ? minuteLines : line.level === "progress" ? 2 * minuteLines : Infinity;
    if (memory.minute.lines <= most) return true;
    memory.folded += 1;
    const key = [line.book, line.chapter, line.run, line.path, line.reason].join(" ");
    const count = this.#counts.get(key);
    if (count === undefined) this.#counts.set(key, { line, count: 1 });
    else this.#counts.set(key, { line, count: count.count + 1 });
    memory.cancelMinute ??= clock.after(minuteMs, () => this.#reportCounts());
    return false;
  }

  /** Writes one line for each kind of line that was only counted. */
  #reportCounts(): void {
    this.#memory.cancelMinute?.();
    this.#memory.cancelMinute = undefined;
    const counted = [...this.#counts.values()];
    this.#counts.clear();
    for (const { line, count } of counted)
      this.#write({
        ...line,
        level: "progress",
        mark: "note",
        message: `${count} lines like this one were counted, because there were too many: ${line.message}`,
        data: { ...line.data, folded: count },
      });
  }

  /** Stores queued lines, one batch after the other. @returns after the attempt. */
  #keep(): Promise<void> {
    const memory = this.#memory;
    const { store } = this.#options;
    if (store === undefined || memory.queue.length === 0 || this.#stopping.signal.aborted)
      return memory.storing ?? Promise.resolve();
    memory.storing ??= this.#store(store);
    return memory.storing;
  }

  async #store(store: LineStore): Promise<void> {
    const { clock, log, boot, sender } = this.#options;
    const memory = this.#memory;
    try {
      while (memory.queue.length > 0 && !this.#stopping.signal.aborted) {
        const batch = memory.queue;
        memory.queue = [];
        const durable = batch.some(({ level }) => level === "boundary");
        try {
          const texts = batch.map((line) => JSON.stringify(line));
          await store.append(boot, texts, { durable }, this.#stopping.signal);
        } catch (error) {
          // Lines that did arrive are now stored twice under one number; readers count them once.
          memory.queue = [...batch, ...memory.queue];
          throw error;
        }
        memory.isTroubled = false;
        // Send only persisted lines: otherwise a power cut could give one number to two lines.
        sender?.offer(batch);
      }
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      if (!memory.isTroubled)
        log.warn({ error, waiting: memory.queue.length }, "journal lines cannot be written to the disk; they wait");
      memory.isTroubled = true;
      memory.cancelRetry ??= clock.after(storeRetryMs, () => {
        memory.cancelRetry = undefined;
        void this.#keep();
      });
    } finally {
      memory.storing = undefined;
    }
  }
}
