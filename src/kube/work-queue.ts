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
  /** The namespace of a key; absent: what stands before its first `/`. Keys without a namespace have turns of their own. */
  readonly namespaceOf?: (key: string) => string;
  /** Keys of these namespaces have every second turn while some are due. */
  readonly preferred?: ReadonlySet<string>;
}

const namespaceOfKey = (key: string): string => key.slice(0, Math.max(0, key.indexOf("/")));

interface Entry {
  readonly key: string;
  readonly namespace: string;
  /** Monotonic time of the next run; `undefined`: no run is due. */
  due: number | undefined;
  running: boolean;
  failures: number;
}

/**
 * Keys to process. Each key has one worker at a time; a key added while it runs is run once more. Namespaces take turns,
 * and so do the keys of each: thousands of keys of one namespace keep those of another waiting for one turn. There is one
 * entry per distinct key, so the size of the cluster bounds the queue.
 */
export class WorkQueue {
  readonly #options: Required<WorkQueueOptions>;
  readonly #entries = new Map<string, Entry>();
  /** The same by namespace. The namespace, and the key of it, whose last turn is the longest ago stands first. */
  readonly #namespaces = new Map<string, Map<string, Entry>>();
  #isPreferredNext = true;
  #running = 0;
  #stopped = false;
  #timer: { readonly at: number; readonly cancel: CancelTimer } | undefined;

  constructor(options: WorkQueueOptions) {
    this.#options = {
      coalesceMs: 250,
      minRetryMs: 100,
      maxRetryMs: 60_000,
      notBeforeMs: () => 0,
      namespaceOf: namespaceOfKey,
      preferred: new Set(),
      ...options,
    };
  }

  /** Schedules `key` after `afterMs` (absent: the coalescing time). An earlier schedule stands. */
  add(key: string, afterMs: number = this.#options.coalesceMs): void {
    if (this.#stopped) return;
    const entry = this.#entries.get(key) ?? this.#enter(key);
    const due = this.#options.clock.monotonic() + afterMs;
    if (entry.due === undefined || due < entry.due) entry.due = due;
    // Not the earliest of all: one event may add tens of thousands of keys.
    if (!entry.running) this.#wakeAt(entry.due);
  }

  #enter(key: string): Entry {
    const namespace = this.#options.namespaceOf(key);
    const entry: Entry = { key, namespace, due: undefined, running: false, failures: 0 };
    this.#entries.set(key, entry);
    const entries = this.#namespaces.get(namespace);
    if (entries === undefined) this.#namespaces.set(namespace, new Map([[key, entry]]));
    else entries.set(key, entry);
    return entry;
  }

  #forget({ key, namespace }: Entry): void {
    this.#entries.delete(key);
    const entries = this.#namespaces.get(namespace);
    entries?.delete(key);
    if (entries?.size === 0) this.#namespaces.delete(namespace);
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
    while (this.#running < this.#options.workers) {
      const entry = this.#nextDue(now);
      if (entry === undefined) break;
      this.#putLast(entry);
      entry.due = undefined;
      entry.running = true;
      this.#running += 1;
      void this.#run(entry);
    }
    this.#schedule();
  }

  /** The due key whose turn it is. */
  #nextDue(now: number): Entry | undefined {
    let found: Entry | undefined;
    for (const [namespace, entries] of this.#namespaces) {
      const isTheirs = this.#options.preferred.has(namespace) === this.#isPreferredNext;
      if (found !== undefined && !isTheirs) continue;
      const due = firstDue(entries, now);
      if (due !== undefined && isTheirs) return due;
      found ??= due;
    }
    return found;
  }

  /** Puts a key behind all others: a key that is always due again must not delay the others. */
  #putLast(entry: Entry): void {
    const { key, namespace } = entry;
    this.#isPreferredNext = !this.#options.preferred.has(namespace);
    const entries = this.#namespaces.get(namespace);
    if (entries === undefined) return;
    entries.delete(key);
    entries.set(key, entry);
    this.#namespaces.delete(namespace);
    this.#namespaces.set(namespace, entries);
  }

  async #run(entry: Entry): Promise<void> {
    const { key } = entry;
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
      if (entry.due === undefined && entry.failures === 0) this.#forget(entry);
      this.#schedule();
    }
  }
}

function firstDue(entries: ReadonlyMap<string, Entry>, now: number): Entry | undefined {
  for (const entry of entries.values())
    if (!entry.running && entry.due !== undefined && entry.due <= now + 0.5) return entry;
  return undefined;
}
