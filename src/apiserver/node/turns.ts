/** What {@link Turns} needs of the event loop. */
export interface Loop {
  /** Milliseconds since any origin. */
  monotonic(): number;
  /** Calls back after the work of this turn, its promises included, and after what has arrived meanwhile. */
  afterwards(run: () => void): void;
}

/** How long a share is known for the time that it took: of what is older, half as much counts for each such while. */
const memoryMs = 1_000;

/** A turn after which requests that arrived meanwhile are read first: they take some rounds of the loop to do so. */
const longTurnMs = 20;
const roundsToArrive = 5;

/**
 * Turns of the event loop, which all users share. Who waits and took the least time of late comes next, so that one request
 * of another waits for a single turn of those whose requests are long, and not for all of them.
 */
export class Turns {
  readonly #loop: Loop;
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #takenMs = new Map<string, number>();
  #halvedAt: number;
  /** Whose turn it is, and since when. */
  #current: { readonly share: string; readonly since: number } | undefined;
  #isRunning = false;

  constructor(loop: Loop) {
    this.#loop = loop;
    this.#halvedAt = loop.monotonic();
  }

  /** Resolves when it is the turn of a share; the turn lasts until the next wait for anything but a promise. */
  take(share: string): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(share);
      if (waiting === undefined) this.#waiting.set(share, [resolve]);
      else waiting.push(resolve);
      if (this.#isRunning) return;
      this.#isRunning = true;
      this.#loop.afterwards(() => this.#next());
    });
  }

  /** The turn is over. */
  #next(): void {
    const now = this.#loop.monotonic();
    this.#forget(now);
    let tookMs = 0;
    if (this.#current !== undefined) {
      const { share, since } = this.#current;
      tookMs = now - since;
      this.#takenMs.set(share, (this.#takenMs.get(share) ?? 0) + tookMs);
    }
    this.#rest(tookMs < longTurnMs ? 0 : roundsToArrive);
  }

  #rest(rounds: number): void {
    if (rounds === 0) this.#begin();
    else this.#loop.afterwards(() => this.#rest(rounds - 1));
  }

  #begin(): void {
    const share = this.#patientest();
    this.#current = share === undefined ? undefined : { share, since: this.#loop.monotonic() };
    if (share === undefined) {
      this.#isRunning = false;
      return;
    }
    const waiting = this.#waiting.get(share) ?? [];
    waiting.shift()?.();
    if (waiting.length === 0) this.#waiting.delete(share);
    this.#loop.afterwards(() => this.#next());
  }

  /** Of those who wait, the share that took the least time. */
  #patientest(): string | undefined {
    let found: string | undefined;
    let least = Infinity;
    for (const share of this.#waiting.keys()) {
      const taken = this.#takenMs.get(share) ?? 0;
      if (taken >= least) continue;
      found = share;
      least = taken;
    }
    return found;
  }

  #forget(now: number): void {
    const halvings = Math.floor((now - this.#halvedAt) / memoryMs);
    if (halvings === 0) return;
    this.#halvedAt += halvings * memoryMs;
    for (const [share, taken] of this.#takenMs) {
      const left = taken / 2 ** halvings;
      if (left < 1) this.#takenMs.delete(share);
      else this.#takenMs.set(share, left);
    }
  }
}
