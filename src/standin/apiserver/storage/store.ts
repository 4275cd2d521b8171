/**
 * The storage of objects. One writer (the server that opened it), one counter for all writes: the revision of a write
 * is the object's new resourceVersion, and the log of events is ordered by it.
 *
 * Calls are synchronous on purpose: reading an object and writing it back cannot be interleaved with other calls, and
 * the simulation needs no scheduler inside the store. A write that returned is acknowledged: it survives `kill -9`.
 */
export interface Store {
  /** Revision of the newest write; 1 for a store that was never written to. */
  revision(): number;
  /** Writes up to and including this revision are no longer in the event log; 0 when the log is whole. */
  compactedThrough(): number;
  get(key: StoreKey): StoredObject | undefined;
  /** Objects in order of resource, namespace, name. */
  list(query: StoreQuery): StorePage;
  create(key: StoreKey, value: string): WriteOutcome;
  /** Replaces the value if it still has revision `expected`. */
  update(key: StoreKey, expected: number, value: string): WriteOutcome;
  /** Removes the object if it still has revision `expected`; `finalValue` is what the event shows. */
  delete(key: StoreKey, expected: number, finalValue: string): WriteOutcome;
  /** Events newer than revision `since`, oldest first, at most `limit`; `of` narrows them. */
  events(since: number, limit: number, of?: EventsQuery): StoreEvents;
  /** Forgets events up to and including `revision`. Objects stay. */
  compact(revision: number): void;
  close(): void;
}

export interface StoreKey {
  /** `pods`, `deployments.apps` */
  readonly resource: string;
  /** Empty for what lives in no namespace. */
  readonly namespace: string;
  readonly name: string;
}

export interface StoredObject {
  readonly key: StoreKey;
  readonly revision: number;
  /** JSON. The store does not parse it. */
  readonly value: string;
}

export interface StoreQuery {
  readonly resource?: string;
  readonly namespace?: string;
  /** Start behind this key. */
  readonly after?: StoreKey;
  readonly limit?: number;
}

export interface EventsQuery extends Pick<StoreQuery, "resource" | "namespace"> {
  /** Characters that all values may have, those before the changes too. Absent: any number. */
  readonly characters?: number;
}

export interface StorePage {
  readonly items: readonly StoredObject[];
  /** There is more: pass this as `after`. */
  readonly next: StoreKey | undefined;
}

export type WriteOutcome =
  | { readonly outcome: "written"; readonly revision: number }
  | { readonly outcome: "exists" }
  | { readonly outcome: "absent" }
  /** Another client wrote since. */
  | { readonly outcome: "changed"; readonly revision: number };

export interface StoredEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly key: StoreKey;
  readonly revision: number;
  readonly value: string;
  /** The previous object; absent on creation, and if the log no longer has it. */
  readonly previous: { readonly revision: number; readonly value: string } | undefined;
}

export type StoreEvents =
  | { readonly verdict: "events"; readonly events: readonly StoredEvent[] }
  | { readonly verdict: "compacted"; readonly through: number }
  /** Their values have more characters than asked for. */
  | { readonly verdict: "tooLong" };

/** Of both values of an event. */
export function charactersOf({ value, previous }: StoredEvent): number {
  return value.length + (previous?.value.length ?? 0);
}

/** Order of {@link Store.list}. */
export function compareStoreKeys(a: StoreKey, b: StoreKey): number {
  return compare(a.resource, b.resource) || compare(a.namespace, b.namespace) || compare(a.name, b.name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
