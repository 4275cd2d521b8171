/** How many objects a cache keeps at most, so that nobody who writes many of a kind fills the memory of its readers. */
export interface RoomOptions<T> {
  /** Whose share an object takes from, e.g. its namespace's. */
  readonly shareOf: (object: T) => string;
  readonly each: number;
  readonly inAll: number;
}

/** The places of a cache: which objects have one, by share, and which shares had none left for an object. */
export class CacheRoom<T> {
  readonly #options: RoomOptions<T>;
  readonly #shares = new Map<string, Set<string>>();
  readonly #crowded = new Set<string>();
  #size = 0;

  constructor(options: RoomOptions<T>) {
    this.#options = options;
  }

  /** Gives an object a place, if it has none. @returns whether it has one. */
  admit(key: string, object: T): boolean {
    const share = this.#options.shareOf(object);
    const keys = this.#shares.get(share) ?? new Set();
    if (keys.has(key)) return true;
    if (keys.size >= this.#options.each || this.#size >= this.#options.inAll) {
      this.#crowded.add(share);
      return false;
    }
    this.#shares.set(share, keys.add(key));
    this.#size += 1;
    return true;
  }

  leave(key: string, object: T): void {
    const share = this.#options.shareOf(object);
    const keys = this.#shares.get(share);
    if (keys?.delete(key) !== true) return;
    this.#size -= 1;
    if (keys.size === 0) this.#shares.delete(share);
  }

  /** The keys of a share; `undefined` if an object of it got no place: others may be missing since. */
  keysOf(share: string): ReadonlySet<string> | undefined {
    return this.#crowded.has(share) ? undefined : (this.#shares.get(share) ?? new Set());
  }
}
