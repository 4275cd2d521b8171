import type { CancelTimer, Clock } from "../ports/clock.ts";
import { type Random, backedOff } from "../ports/random.ts";

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Number of concurrent workers. */
  readonly workers: number;
  /** Events of one key within this time cause a single run. */
  readonly coalesceMs?: number;
  /** First delay after a failure; doubles up to `maxRetryMs`. */
  readonly minRetryMs?: number;
  readonly maxRetryMs?: number;
  /** Processes a key. Rejecting means: retry later. */
  readonly work: (key: string) => Promise<{ readonly again?: { readonly afterMs: number } }>;
  /** The minimum wait that a failure requests, in milliseconds. */
  readonly notBeforeMs?: (error: unknown) => number;
  readonly onFailure: (key: string, error: unknown, retryInMs: number) => void;
}

interface Entry {
  /** Monotonic time of the next run; `undefined`: no run is due. */
  due: number | undefined;
  running: boolean;
  failures: number;
}

/**
 * Keys to process. Each key has one worker at a time; a key added while it runs is run once more. There is one entry
 * per distinct key, so the size of the cluster bounds the queue.
 */
export class WorkQueue {
  readonly #options: Required<WorkQueueOptions>;
  readonly #entries = new Map<string, Entry>();
  #running = 0;
  #stopped = false;
  #timer: { readonly at: number; readonly cancel: CancelTimer } | undefined;

  constructor(options: WorkQueueOptions) {
    this.#options = { coalesceMs: 250, minRetryMs: 100, maxRetryMs: 60_000, notBeforeMs: () => 0, ...options };
  }

  /** Schedules `key` after `afterMs` (absent: the coalescing time). An earlier schedule stands. */
  add(key: string, afterMs: number = this.#options.coalesceMs): void {
    if (this.#stopped) return;
    const entry = this.#entries.get(key) ?? { due: undefined, running: false, failures: 0 };
    this.#entries.set(key, entry);
    const due = this.#options.clock.monotonic() + afterMs;
    if (entry.due === undefined || due < entry.due) entry.due = due;
    // Not the earliest of all: one event may add tens of thousands of keys.
    if (!entry.running) this.#wakeAt(entry.due);
  }

  /** Keys waiting or running: for metrics. */
  get size(): number {
    let size = 0;
    for (const entry of this.#entries.values()) if (entry.due !== undefined || entry.running) size += 1;
    return size;
  }

  /** Starts no more runs; current runs continue. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Looks for the next due key. */
  #schedule(): void {
    if (this.#stopped || this.#running >= this.#options.workers) return;
    let earliest: number | undefined;
    for (const entry of this.#entries.values()) {
      if (!entry.running && entry.due !== undefined && (earliest === undefined || entry.due < earliest))
        earliest = entry.due;
    }
    if (earliest !== undefined) this.#wakeAt(earliest);
  }

  /** While a worker is free, a timer waits for the earliest due key, if there is one. */
  #wakeAt(at: number): void {
    if (this.#stopped || this.#running >= this.#options.workers) return;
    if (this.#timer !== undefined) {
      if (this.#timer.at <= at) return;
      this.#timer.cancel();
    }
    const wait = Math.max(0, at - this.#options.clock.monotonic());
    this.#timer = {
      at,
      cancel: this.#options.clock.after(wait, () => {
        this.#timer = undefined;
        this.#startDue();
      }),
    };
  }

  #startDue(): void {
    const now = this.#options.clock.monotonic();
    for (const [key, entry] of this.#entries) {
      if (this.#running >= this.#options.workers) break;
      if (entry.running || entry.due === undefined || entry.due > now + 0.5) continue;
      // Behind all others: keys that are always due again must keep no other key waiting.
      this.#entries.delete(key);
      this.#entries.set(key, entry);
      entry.due = undefined;
      entry.running = true;
      this.#running += 1;
      void this.#run(key, entry);
    }
    this.#schedule();
  }

  async #run(key: string, entry: Entry): Promise<void> {
    try {
      const { again } = await this.#options.work(key);
      entry.failures = 0;
      if (again !== undefined) this.add(key, again.afterMs);
    } catch (error) {
      entry.failures += 1;
      const { random, minRetryMs, maxRetryMs, notBeforeMs } = this.#options;
      const asked = Math.min(maxRetryMs, notBeforeMs(error));
      // Never earlier than requested, and with jitter.
      const retry = Math.round(
        Math.max(
          asked * (1 + 0.2 * random.next()),
          backedOff(random, entry.failures, { firstMs: minRetryMs, lastMs: maxRetryMs, spread: 0.1 }),
        ),
      );
      if (!this.#stopped) {
        this.#options.onFailure(key, error, retry);
        this.add(key, retry);
      }
    } finally {
      entry.running = false;
      this.#running -= 1;
      if (entry.due === undefined && entry.failures === 0) this.#entries.delete(key);
      this.#schedule();
    }
  }
}
