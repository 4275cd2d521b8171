import type { ObjectChange } from "../../../kube/watch-cache.ts";
import type { KubeObject } from "../../../api/schema/object.ts";

/** After this long, a write that the watch never showed is no longer waited for. */
const patienceMs = 30_000;

interface Expected {
  readonly what: "creation" | "deletion";
  readonly until: number;
}

/**
 * Actions of a controller that its cache does not show yet. While an owner has expectations, the cache is too old for
 * counting: a controller that counts anyway creates a pod twice. The controllers choose the names, so that a creation
 * is expected before it is requested, and the watch may be faster than the response.
 */
export class Expectations {
  readonly #owners = new Map<string, Map<string, Expected>>();
  readonly #ownerOf = new Map<string, string>();

  expect(what: Expected["what"], owner: string, key: string, now: number): void {
    const expected = this.#owners.get(owner) ?? new Map<string, Expected>();
    this.#owners.set(owner, expected);
    expected.set(key, { what, until: now + patienceMs });
    this.#ownerOf.set(key, owner);
  }

  /** The write did not happen. */
  forget(key: string): void {
    const owner = this.#ownerOf.get(key);
    if (owner === undefined) return;
    this.#ownerOf.delete(key);
    const expected = this.#owners.get(owner);
    expected?.delete(key);
    if (expected?.size === 0) this.#owners.delete(owner);
  }

  /** The cache shows this change now. */
  observe({ key, after }: ObjectChange<KubeObject>): void {
    const owner = this.#ownerOf.get(key);
    const expected = owner === undefined ? undefined : this.#owners.get(owner)?.get(key);
    if (expected === undefined) return;
    const fulfilled =
      expected.what === "creation" ? true : after === undefined || after.metadata.deletionTimestamp !== undefined;
    if (fulfilled) this.forget(key);
  }

  /** Milliseconds for which to wait at most until the cache can be trusted; `undefined`: it can. */
  pendingMs(owner: string, now: number): number | undefined {
    let latest: number | undefined;
    for (const [key, { until }] of this.#owners.get(owner) ?? []) {
      if (until <= now) this.forget(key);
      else latest = Math.max(latest ?? 0, until - now);
    }
    return latest;
  }
}
