import { sourceGroup } from "../core/join/source-group.ts";
import type { Clock } from "../ports/clock.ts";

/** Limits of requests, for each client and in total. */
export interface RequestLimits {
  /** Requests that one source may have answered at once, and so many more each second. */
  readonly burst: number;
  readonly perSecond: number;
  /** Sources that are remembered; the one that was quiet longest is forgotten first. */
  readonly sources: number;
  /** Answers under way at the same time, of all sources. */
  readonly answers: number;
}

/** A pool's machines may stand behind one address. */
export const defaultLimits: RequestLimits = { burst: 600, perSecond: 60, sources: 10_000, answers: 1200 };

/** Counts what sources ask and what is under way; neither grows without bound. */
export class Limits {
  readonly #clock: Clock;
  readonly #limits: RequestLimits;
  readonly #left = new Map<string, { left: number; at: number }>();
  #underWay = 0;

  constructor(clock: Clock, limits: RequestLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get underWay(): number {
    return this.#underWay;
  }

  get sources(): number {
    return this.#left.size;
  }

  /** Takes one request of a source. @returns seconds to wait; 0: it is within its bounds. */
  take(address: string): number {
    const { burst, perSecond, sources } = this.#limits;
    const source = sourceGroup(address);
    const now = this.#clock.monotonic();
    const known = this.#left.get(source);
    const left = known === undefined ? burst : Math.min(burst, known.left + ((now - known.at) * perSecond) / 1000);
    this.#left.delete(source);
    const oldest = this.#left.keys().next();
    if (this.#left.size >= sources && oldest.done !== true) this.#left.delete(oldest.value);
    this.#left.set(source, { left: left < 1 ? left : left - 1, at: now });
    return left < 1 ? Math.max(1, Math.ceil((1 - left) / perSecond)) : 0;
  }

  /** Begins an answer; `undefined`: there are too many. The caller ends it, once. */
  begin(): (() => void) | undefined {
    if (this.#underWay >= this.#limits.answers) return undefined;
    this.#underWay += 1;
    let isOpen = true;
    return () => {
      if (isOpen) this.#underWay -= 1;
      isOpen = false;
    };
  }
}
