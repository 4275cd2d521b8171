/** How many objects are remembered: caches have long caught up with the oldest ones. */
const mostObjects = 20_000;

/**
 * The versions that the updates by one client led to. A cache may lag behind them. Without this memory, an update that takes
 * back an earlier one would find its result in the cache already, write nothing, and leave the earlier one in force.
 */
export class OwnWrites {
  /** Path of an object → its version after the last update, in the order of the updates; `undefined`: it is not known. */
  readonly #versions = new Map<string, string | undefined>();

  /** Objects that are remembered. */
  get size(): number {
    return this.#versions.size;
  }

  /** Whether a version of an object in a cache may be older than the last update of that object. */
  isBehind(path: string, cached: string | undefined): boolean {
    if (!this.#versions.has(path)) return false;
    const version = this.#versions.get(path);
    if (version === undefined || isNewerVersion(version, cached)) return true;
    this.#versions.delete(path);
    return false;
  }

  /** An update is sent: until its answer is in, the version of the object is not known. */
  begin(path: string): void {
    this.#put(path, undefined);
  }

  /** An answer has this version of the object; `undefined`: it does not exist. */
  see(path: string, version: string | undefined): void {
    if (version === undefined) this.#versions.delete(path);
    else this.#put(path, version);
  }

  #put(path: string, version: string | undefined): void {
    this.#versions.delete(path);
    this.#versions.set(path, version);
    if (this.#versions.size <= mostObjects) return;
    const [oldest = ""] = this.#versions.keys();
    this.#versions.delete(oldest);
  }
}

/**
 * Whether a version of an object is newer than another one. Versions are decimal numbers that grow (Kubernetes KEP-5504). Of
 * others only equality is defined: any other one counts as newer.
 */
export function isNewerVersion(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined || a === b) return false;
  return /^\d+$/.test(a) && /^\d+$/.test(b) ? BigInt(a) > BigInt(b) : true;
}
