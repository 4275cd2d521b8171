/** How many objects a cache keeps at most, so that nobody who writes many of a kind fills the memory of its readers. */
export interface RoomOptions<T> {
  /** Whose share an object takes from, e.g. its namespace's. */
  readonly shareOf: (object: T) => string;
  readonly each: number;
  readonly inAll: number;
}

/** Why others of a share may be missing: it has more than are kept of one share, or all places were taken by others. */
export type Crowded = "incomplete" | "noRoom";

/** The places of a cache: which objects have one, by share, and which shares had none left for an object. */
export class CacheRoom<T> {
  readonly #options: RoomOptions<T>;
  readonly #shares = new Map<string, Set<string>>();
  readonly #crowded = new Map<string, Crowded>();
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
      this.#crowded.set(share, keys.size >= this.#options.each ? "incomplete" : "noRoom");
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

  /** The keys of a share, or why an object of it got no place last: others may be missing since. */
  keysOf(share: string): ReadonlySet<string> | Crowded {
    return this.#crowded.get(share) ?? this.#shares.get(share) ?? new Set();
  }
}
