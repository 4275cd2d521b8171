/** Requests that one source may have at once, and so many more each second. */
export interface BucketLimits {
  readonly burst: number;
  readonly perSecond: number;
  /** Sources that are remembered; the one that was quiet longest is forgotten first. */
  readonly sources: number;
}

/** A token bucket for each source of requests. It reads no clock: callers pass monotonic milliseconds. */
export class SourceBuckets {
  readonly #limits: BucketLimits;
  /** In the order in which sources last asked. */
  readonly #buckets = new Map<string, { readonly left: number; readonly at: number }>();

  constructor(limits: BucketLimits) {
    this.#limits = limits;
  }

  /** Sources that are remembered now. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one request of a source. @returns whole seconds until it may ask again; 0: it may have this request. */
  take(source: string, now: number): number {
    const { burst, perSecond, sources } = this.#limits;
    const known = this.#buckets.get(source);
    const left = known === undefined ? burst : Math.min(burst, known.left + ((now - known.at) * perSecond) / 1000);
    this.#buckets.delete(source);
    const oldest = this.#buckets.keys().next();
    if (this.#buckets.size >= sources && oldest.done !== true) this.#buckets.delete(oldest.value);
    const isWithin = left >= 1;
    this.#buckets.set(source, { left: isWithin ? left - 1 : left, at: now });
    return isWithin ? 0 : Math.max(1, Math.ceil((1 - left) / perSecond));
  }
}
