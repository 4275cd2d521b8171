import { sourceGroup } from "../core/join/source-group.ts";
import type { Clock } from "../ports/clock.ts";
import { type BucketLimits, SourceBuckets } from "../ports/source-buckets.ts";

/** Limits of requests, for each client and in total. */
export interface RequestLimits extends BucketLimits {
  /** Answers under way at the same time, of all sources. */
  readonly answers: number;
  /** Of these, answers to one source. */
  readonly answersOfOneSource: number;
}

/** A pool's machines may stand behind one address. */
export const defaultLimits: RequestLimits = {
  burst: 600,
  perSecond: 60,
  sources: 10_000,
  answers: 1200,
  answersOfOneSource: 800,
};

/** Counts the requests of each source and those in progress; both counts are bounded. */
export class Limits {
  readonly #clock: Clock;
  readonly #limits: RequestLimits;
  readonly #buckets: SourceBuckets;
  readonly #ofSource = new Map<string, number>();
  #underWay = 0;

  constructor(clock: Clock, limits: RequestLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#buckets = new SourceBuckets(limits);
  }

  get underWay(): number {
    return this.#underWay;
  }

  get sources(): number {
    return this.#buckets.size;
  }

  /** Takes one request of a source. @returns seconds to wait; 0: it is within its bounds. */
  take(address: string): number {
    return this.#buckets.take(sourceGroup(address), this.#clock.monotonic());
  }

  /** Begins an answer; `undefined`: there are too many. The caller ends it, once. */
  begin(address: string): (() => void) | undefined {
    const source = sourceGroup(address);
    const count = this.#ofSource.get(source) ?? 0;
    if (this.#underWay >= this.#limits.answers || count >= this.#limits.answersOfOneSource) return undefined;
    this.#underWay += 1;
    this.#ofSource.set(source, count + 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#underWay -= 1;
      const left = (this.#ofSource.get(source) ?? 1) - 1;
      if (left === 0) this.#ofSource.delete(source);
      else this.#ofSource.set(source, left);
    };
  }
}
