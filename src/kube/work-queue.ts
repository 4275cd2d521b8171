import type { CancelTimer, Clock } from "../ports/clock.ts";
import { type Random, backedOff } from "../ports/random.ts";
import { OrderedHeap } from "./ordered-heap.ts";

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
  readonly namespace: Namespace;
  /** Monotonic time of the next run; `undefined`: no run is due. */
  due: number | undefined;
  running: boolean;
  failures: number;
  /** The number of its last turn, or of its arrival. */
  turn: number;
}

interface Namespace {
  readonly name: string;
  readonly isPreferred: boolean;
  /** How many keys it has. */
  keys: number;
  /** Those that are due, by their turns. */
  readonly due: OrderedHeap<Entry>;
  /** The number of its last turn, or of its arrival. */
  turn: number;
}

const byTurn = (one: { readonly turn: number }, other: { readonly turn: number }) => one.turn < other.turn;
const byTime = (one: Entry, other: Entry) => (one.due ?? 0) < (other.due ?? 0);

/**
 * Keys to process. Each key has one worker at a time; a key added while it runs is run once more. Namespaces take turns,
 * and so do the keys of each: thousands of keys of one namespace keep those of another waiting for one turn. There is one
 * entry per distinct key, so the size of the cluster bounds the queue; a run costs next to nothing more with more of them.
 */
export class WorkQueue {
  readonly #options: Required<WorkQueueOptions>;
  readonly #entries = new Map<string, Entry>();
  readonly #namespaces = new Map<string, Namespace>();
  /** Keys that are due later, by time. Keys that run are in no heap. */
  readonly #later = new OrderedHeap<Entry>(byTime);
  /** Namespaces with keys that are due, by their turns: those of the suite, and others. */
  readonly #preferred = new OrderedHeap<Namespace>(byTurn);
  readonly #others = new OrderedHeap<Namespace>(byTurn);
  #turns = 0;
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
    if (entry.due === undefined || due < entry.due) {
      entry.due = due;
      // A key that is due already keeps its turn.
      if (!entry.running && !entry.namespace.due.has(entry)) this.#later.put(entry);
    }
    // Not the earliest of all: one event may add tens of thousands of keys.
    if (!entry.running) this.#wakeAt(entry.due);
  }

  #enter(key: string): Entry {
    const name = this.#options.namespaceOf(key);
    const namespace = this.#namespaces.get(name) ?? this.#enterNamespace(name);
    const entry: Entry = { key, namespace, due: undefined, running: false, failures: 0, turn: this.#nextTurn() };
    this.#entries.set(key, entry);
    namespace.keys += 1;
    return entry;
  }

  #enterNamespace(name: string): Namespace {
    const isPreferred = this.#options.preferred.has(name);
    const namespace = { name, isPreferred, keys: 0, due: new OrderedHeap<Entry>(byTurn), turn: this.#nextTurn() };
    this.#namespaces.set(name, namespace);
    return namespace;
  }

  #nextTurn(): number {
    this.#turns += 1;
    return this.#turns;
  }

  #forget({ key, namespace }: Entry): void {
    this.#entries.delete(key);
    namespace.keys -= 1;
    if (namespace.keys === 0) this.#namespaces.delete(namespace.name);
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
    const isDue = this.#preferred.size + this.#others.size > 0;
    const earliest = isDue ? this.#options.clock.monotonic() : this.#later.first?.due;
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
      this.#collectDue(now);
      const entry = this.#takeNext();
      if (entry === undefined) break;
      entry.due = undefined;
      entry.running = true;
      this.#running += 1;
      void this.#run(entry);
    }
    this.#schedule();
  }

  #namespacesOf({ isPreferred }: Pick<Namespace, "isPreferred">): OrderedHeap<Namespace> {
    return isPreferred ? this.#preferred : this.#others;
  }

  /** From now on, keys whose time has come wait for their turns alone. */
  #collectDue(now: number): void {
    for (let entry = this.#later.first; entry?.due !== undefined && entry.due <= now + 0.5; entry = this.#later.first) {
      this.#later.remove(entry);
      entry.namespace.due.put(entry);
      this.#namespacesOf(entry.namespace).put(entry.namespace);
    }
  }

  /**
   * Takes the due key whose turn it is. It and its namespace go behind all others: a key that is always due again must not
   * delay the others.
   */
  #takeNext(): Entry | undefined {
    const [theirs, others] = this.#isPreferredNext ? [this.#preferred, this.#others] : [this.#others, this.#preferred];
    const namespace = theirs.take() ?? others.take();
    const entry = namespace?.due.take();
    if (namespace === undefined || entry === undefined) return undefined;
    entry.turn = this.#nextTurn();
    namespace.turn = entry.turn;
    if (namespace.due.size > 0) this.#namespacesOf(namespace).put(namespace);
    this.#isPreferredNext = !namespace.isPreferred;
    return entry;
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
      if (entry.due !== undefined) this.#later.put(entry);
      else if (entry.failures === 0) this.#forget(entry);
      this.#schedule();
    }
  }
}
