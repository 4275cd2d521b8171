import { type CancelTimer, type Clock, clockFrom } from "../../src/ports/clock.ts";
import type { Random } from "../../src/ports/random.ts";

/** A small, fast generator of pseudo-random numbers (mulberry32): the only source of randomness in a simulation. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const bytes = (length: number) => Uint8Array.from({ length }, () => Math.floor(next() * 256));
  return {
    next,
    bytes,
    uuid() {
      const hex = [...bytes(16)]
        .map((byte, index) =>
          (index === 6 ? (byte & 15) | 64 : index === 8 ? (byte & 63) | 128 : byte).toString(16).padStart(2, "0"),
        )
        .join("");
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    },
  };
}

interface Scheduled {
  readonly at: number;
  readonly serial: number;
  readonly label: string;
  readonly run: () => void;
  cancelled: boolean;
}

/** Where virtual time starts: an ordinary date, so that timestamps look like any other. */
const epoch = Date.UTC(2026, 0, 1);

/**
 * The scheduler that owns every step: virtual time, randomness, and the order of events. After each event, all promises
 * that it resolved run to their end, so that a seed fixes the whole run.
 */
export class Kernel {
  readonly random: Random;
  readonly clock: Clock;
  readonly #heap: Scheduled[] = [];
  #now = 0;
  #serial = 0;
  #events = 0;
  #hash = 2166136261;
  #watch: { readonly everyMs: number; readonly look: () => void; next: number } | undefined;
  /** The last labels, for the report of a failure. */
  readonly recent: string[] = [];

  constructor(seed: number) {
    this.random = seededRandom(seed);
    this.clock = clockFrom({
      now: () => epoch + this.#now,
      monotonic: () => this.#now,
      after: (delay, run) => this.schedule(delay, "timer", run),
    });
  }

  /** Milliseconds of virtual time since the start. */
  get now(): number {
    return this.#now;
  }

  get events(): number {
    return this.#events;
  }

  /** A digest of everything that happened, in order: equal for equal seeds on every machine. */
  get traceHash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, "0");
  }

  note(label: string): void {
    const text = `${Math.round(this.#now)} ${label}`;
    for (let index = 0; index < text.length; index += 1)
      this.#hash = Math.imul(this.#hash ^ text.charCodeAt(index), 16777619) >>> 0;
    this.recent.push(text);
    if (this.recent.length > 200) this.recent.shift();
  }

  schedule(delay: number, label: string, run: () => void): CancelTimer {
    const event: Scheduled = {
      at: this.#now + Math.max(0, delay),
      serial: (this.#serial += 1),
      label,
      run,
      cancelled: false,
    };
    this.#push(event);
    return () => {
      event.cancelled = true;
    };
  }

  /** Looks every so often, between events: it is no event itself, and so changes no run. `look` must change nothing. */
  watch(everyMs: number, look: () => void): void {
    this.#watch = { everyMs, look, next: this.#now };
  }

  #passTo(at: number): void {
    const watch = this.#watch;
    for (; watch !== undefined && watch.next <= at; watch.next += watch.everyMs) {
      this.#now = Math.max(this.#now, watch.next);
      watch.look();
    }
    this.#now = Math.max(this.#now, at);
  }

  /** A number of milliseconds between `least` and `most`. */
  between(least: number, most: number): number {
    return least + (most - least) * this.random.next();
  }

  chance(probability: number): boolean {
    return this.random.next() < probability;
  }

  /** Runs events in order until `until` holds, none is left, or a limit is reached. */
  async run(options: {
    readonly until: () => boolean;
    readonly maxMs: number;
    readonly maxEvents?: number;
    readonly afterEach?: () => void;
  }): Promise<"done" | "idle" | "outOfTime"> {
    const end = this.#now + options.maxMs;
    const lastEvent = this.#events + (options.maxEvents ?? Infinity);
    await this.untilIdle();
    while (!options.until()) {
      const event = this.#pop();
      if (event === undefined) return "idle";
      if (event.cancelled) continue;
      if (event.at > end || this.#events >= lastEvent) {
        this.#push(event);
        return "outOfTime";
      }
      this.#passTo(event.at);
      this.#events += 1;
      this.note(event.label);
      event.run();
      await this.untilIdle();
      options.afterEach?.();
    }
    return "done";
  }

  /** Lets time pass until `work` has ended, and returns its result. */
  async complete<T>(work: Promise<T>, maxMs: number): Promise<T> {
    let outcome: { readonly value: T } | { readonly error: unknown } | undefined;
    work.then(
      (value) => {
        outcome = { value };
      },
      (error: unknown) => {
        outcome = { error };
      },
    );
    await this.run({ until: () => outcome !== undefined, maxMs });
    if (outcome === undefined)
      throw new Error(
        `not within ${maxMs} ms of virtual time: an answer; last seen: ${this.recent.slice(-5).join("; ")}`,
      );
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  /** Runs every promise that can run. The event loop comes round only when no microtask is left. */
  untilIdle(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  #before(a: Scheduled, b: Scheduled): boolean {
    return a.at < b.at || (a.at === b.at && a.serial < b.serial);
  }

  #push(event: Scheduled): void {
    const heap = this.#heap;
    heap.push(event);
    let index = heap.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const [a, b] = [heap[parent], heap[index]];
      if (a === undefined || b === undefined || !this.#before(b, a)) break;
      [heap[parent], heap[index]] = [b, a];
      index = parent;
    }
  }

  #pop(): Scheduled | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    heap[0] = last;
    let index = 0;
    for (;;) {
      let least = index;
      for (const child of [2 * index + 1, 2 * index + 2]) {
        const [a, b] = [heap[child], heap[least]];
        if (a !== undefined && b !== undefined && this.#before(a, b)) least = child;
      }
      if (least === index) return top;
      const [a, b] = [heap[least], heap[index]];
      if (a === undefined || b === undefined) return top;
      [heap[index], heap[least]] = [a, b];
      index = least;
    }
  }
}
