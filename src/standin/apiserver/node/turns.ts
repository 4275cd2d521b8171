import type { UserTurns } from "../access/exchange.ts";
import type { Part, Share } from "../schema/contract.ts";

/** What {@link Turns} needs of the event loop. */
export interface Loop {
  /** Milliseconds since any origin. */
  monotonic(): number;
  /** Calls back after the work of this turn, its promises included. */
  next(run: () => void): void;
  /** The same, and after what has arrived meanwhile. */
  afterwards(run: () => void): void;
}

/** The event loop of this process. */
export const eventLoop = (monotonic: () => number): Loop => ({
  monotonic,
  // Ticks come after all promises, and before what has arrived.
  next: (run) => void Promise.resolve().then(() => process.nextTick(run)),
  afterwards: (run) => void setImmediate(run),
});

/** How long a share is known for the time that it took: of what is older, half as much counts for each such while. */
const memoryMs = 1_000;

/** A turn after which requests that arrived meanwhile are read first: they take some rounds of the loop to do so. */
const longTurnMs = 20;
const roundsToArrive = 5;

/** Turns that are short follow each other for so long before what has arrived meanwhile is read. */
const roundMs = 5;

/** Requests of one share that may wait for their first turn: hundreds of times what a client sends beside each other. */
const mostWaiting = 1_000;

/** Users who may have something half made that waits for a further turn: together they hold a few lists of any length. */
const mostHalfMade = 8;

/**
 * Of a user who waits for a place among these, as many requests may have begun, and have made nothing yet; others of theirs
 * that are short are answered meanwhile. Which ones are short shows when they have begun.
 */
const mostBegunBeside = 4;

/** Those who wait for their first turn, and those who wait for a further one. */
type Line = "fresh" | "begun";

/** Whose turn it is. */
interface Next {
  readonly share: string;
  readonly part: Part;
  readonly line: Line;
}

/** Those of one share who wait, in the order in which they came. */
interface Waiting {
  readonly part: Part;
  readonly fresh: Set<() => void>;
  /** They are next: all of them half made would fill the memory. */
  readonly begun: Set<() => void>;
  /** The one of these that had the last turn: it holds what it has made so far, and is the first of them. */
  underWay: (() => void) | undefined;
}

/**
 * Turns of the event loop, which all users share. Who waits and took the least time of late comes next, so that one request
 * of another waits for a single turn of those whose requests are long, and not for all of them. The same is so for the parts
 * that are kept: however many users and machines there are, the components of the cluster have a third of the time.
 */
export class Turns implements UserTurns {
  readonly #loop: Loop;
  readonly #waiting = new Map<string, Waiting>();
  readonly #takenMs = new Map<string, number>();
  readonly #partTookMs: Record<Part, number> = { others: 0, nodes: 0, cluster: 0 };
  /** Of the users, those with something half made: each waits for a further turn, or has one. */
  readonly #halfMade = new Set<string>();
  #halvedAt: number;
  /** When what had arrived was read last. */
  #roundSince: number;
  /** Whose turn it is, and since when. */
  #current: { readonly share: string; readonly part: Part; readonly since: number } | undefined;
  #isRunning = false;

  constructor(loop: Loop) {
    this.#loop = loop;
    this.#halvedAt = loop.monotonic();
    this.#roundSince = this.#halvedAt;
  }

  /** The turn lasts until the next wait for anything but a promise. */
  async begin(share: Share, signal: AbortSignal): Promise<"begun" | "tooMany"> {
    if ((this.#waiting.get(share.of)?.fresh.size ?? 0) >= mostWaiting) return "tooMany";
    await this.#take(share, "fresh", signal);
    return "begun";
  }

  async goOn(share: Share, signal: AbortSignal): Promise<void> {
    await this.#take(share, "begun", signal);
  }

  #take({ of: share, part }: Share, line: Line, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(share) ?? { part, fresh: new Set(), begun: new Set(), underWay: undefined };
    this.#waiting.set(share, waiting);
    const begin = () => {
      leave();
      resolve();
    };
    const giveUp = () => {
      leave();
      reject(signal.reason as Error);
    };
    const leave = () => {
      signal.removeEventListener("abort", giveUp);
      waiting[line].delete(begin);
      if (waiting.underWay === begin) waiting.underWay = undefined;
      this.#giveBack(share);
      const isLast = waiting.fresh.size === 0 && waiting.begun.size === 0;
      if (isLast && this.#waiting.get(share) === waiting) this.#waiting.delete(share);
    };
    signal.addEventListener("abort", giveUp, { once: true });
    waiting[line].add(begin);
    if (line === "begun" && this.#current?.share === share) waiting.underWay = begin;
    if (!this.#isRunning) {
      this.#isRunning = true;
      this.#read(1);
    }
    return promise;
  }

  /** The turn is over. */
  #next(): void {
    const now = this.#loop.monotonic();
    let tookMs = 0;
    if (this.#current !== undefined) {
      const { share, part, since } = this.#current;
      tookMs = now - since;
      this.#partTookMs[part] += tookMs;
      this.#takenMs.set(share, (this.#takenMs.get(share) ?? 0) + tookMs);
      this.#current = undefined;
      this.#giveBack(share);
    }
    if (tookMs >= longTurnMs) this.#read(roundsToArrive);
    else if (now - this.#roundSince >= roundMs) this.#read(1);
    else this.#begin();
  }

  /** Reads what has arrived. */
  #read(rounds: number): void {
    if (rounds > 0) {
      this.#loop.afterwards(() => this.#read(rounds - 1));
      return;
    }
    this.#roundSince = this.#loop.monotonic();
    this.#begin();
  }

  #begin(): void {
    this.#forget(this.#loop.monotonic());
    const found = this.#patientest();
    if (found === undefined) {
      this.#isRunning = false;
      return;
    }
    const { share, part, line } = found;
    this.#current = { share, part, since: this.#loop.monotonic() };
    if (part === "others" && line === "begun") this.#halfMade.add(share);
    const waiting = this.#waiting.get(share);
    const begin = (line === "begun" ? waiting?.underWay : undefined) ?? first(waiting?.[line] ?? []);
    begin?.();
    this.#loop.next(() => this.#next());
  }

  /** Of those who wait, the share that took the least time, of the part that took the least. */
  #patientest(): Next | undefined {
    let found: Next | undefined;
    let leastOfPart = Infinity;
    let least = Infinity;
    for (const [share, waiting] of this.#waiting) {
      const line = this.#lineOf(share, waiting);
      if (line === undefined) continue;
      const { part } = waiting;
      const ofPart = this.#partTookMs[part];
      const taken = this.#takenMs.get(share) ?? 0;
      if (ofPart > leastOfPart || (ofPart === leastOfPart && taken >= least)) continue;
      found = { share, part, line };
      leastOfPart = ofPart;
      least = taken;
    }
    return found;
  }

  /** Whose turn it is of one share; of nobody where too much is half made already. */
  #lineOf(share: string, { part, begun, fresh }: Waiting): Line | undefined {
    if (begun.size === 0) return "fresh";
    if (part !== "others" || this.#halfMade.has(share) || this.#halfMade.size < mostHalfMade) return "begun";
    return begun.size < mostBegunBeside && fresh.size > 0 ? "fresh" : undefined;
  }

  /** What was half made is whole, or given up. */
  #giveBack(share: string): void {
    if (this.#current?.share === share || (this.#waiting.get(share)?.begun.size ?? 0) > 0) return;
    this.#halfMade.delete(share);
  }

  #forget(now: number): void {
    const halvings = Math.floor((now - this.#halvedAt) / memoryMs);
    if (halvings === 0) return;
    this.#halvedAt += halvings * memoryMs;
    for (const part of ["others", "nodes", "cluster"] as const) this.#partTookMs[part] /= 2 ** halvings;
    for (const [share, taken] of this.#takenMs) {
      const left = taken / 2 ** halvings;
      if (left < 1) this.#takenMs.delete(share);
      else this.#takenMs.set(share, left);
    }
  }
}

function first<T>(of: Iterable<T>): T | undefined {
  for (const one of of) return one;
  return undefined;
}
