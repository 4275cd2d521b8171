import { type KubeObject, type Resource, keyOf } from "../api/schema/object.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { type Random, backedOff } from "../ports/random.ts";
import { CacheRoom, type Crowded, type RoomOptions } from "./cache-room.ts";
import type { KubeClient, Selection } from "./kube-client.ts";
import { isExpired, isForbidden, isNotFound, retryAfterMs } from "./kube-error.ts";

export interface ObjectChange<T> {
  readonly key: string;
  /** `undefined`: the object is new to the cache. */
  readonly before: T | undefined;
  /** `undefined`: the object was deleted, or a cache with too little room lets go of it. */
  readonly after: T | undefined;
  /** The cache has no room for the object: its other state is unknown, and not absent. */
  readonly isKept?: false;
}

export interface WatchCacheOptions<T extends KubeObject> {
  readonly kube: KubeClient;
  readonly resource: Resource<T>;
  readonly selection?: Selection;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Transforms each object before it is stored, to bound memory; by default drops `managedFields`. */
  readonly keep?: (object: T) => T;
  /** The server may lack the kind: an unknown kind has no objects and is requested again from time to time. */
  readonly optional?: boolean;
  /** The process may lack the right to read the kind: after a while the cache counts as read, and is empty. */
  readonly mayBeForbidden?: boolean;
  /** Index name → the values under which an object is found. */
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>;
  /** Absent: every object is kept. Changes of those that are not kept are delivered, too. */
  readonly room?: RoomOptions<T>;
}

/** A watch without any event for this long is considered dead: servers send bookmarks about once a minute. */
const stallMs = 150_000;

/**
 * The wait before a watch is restarted. It doubles while the server sends nothing, and applies after a regular end,
 * too: a server that shuts down ends all watches of all processes at once.
 */
const again = { firstMs: 200, lastMs: 10_000, spread: 0.5 };
/** An attempt that lasted this long resets the wait. */
const longAttemptMs = 10_000;

/** Wait between requests for an optional kind that the server lacks: most clusters that lack one never get it. */
const absent = { firstMs: 30_000, lastMs: 120_000 };

/** An API server that has just been started, or rights that have just been given, may take this long to be in force. */
export const rightsAwaitedMs = 3000;

/**
 * All objects of one kind, kept current by one watch: list, then watch with bookmarks. The watch resumes after a
 * growing wait with jitter, and lists again only after a 410. Readers get the cached objects themselves and must not
 * modify them.
 */
export class WatchCache<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly #options: WatchCacheOptions<T>;
  readonly #keep: (object: T) => T;
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, Map<string, Set<string>>>();
  readonly #listeners = new Set<(change: ObjectChange<T>) => void>();
  #room: CacheRoom<T> | undefined;
  #synced = false;
  #onSynced: () => void = () => undefined;
  /** Resolves when the first list is in. */
  readonly synced: Promise<void>;
  /** By the monotonic clock; `undefined`: nothing was listed yet. */
  #heardAt: number | undefined;

  constructor(options: WatchCacheOptions<T>) {
    this.resource = options.resource;
    this.#options = options;
    this.#keep = options.keep ?? withoutManagedFields;
    this.synced = new Promise((resolve) => {
      this.#onSynced = resolve;
    });
    for (const name of Object.keys(options.indexes ?? {})) this.#indexes.set(name, new Map());
    this.#room = this.#emptyRoom();
  }

  #emptyRoom(): CacheRoom<T> | undefined {
    const { room } = this.#options;
    return room === undefined ? undefined : new CacheRoom(room);
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): readonly T[] {
    return [...this.#objects.values()];
  }

  get size(): number {
    return this.#objects.size;
  }

  /** Objects whose index function returned `value`. The index must be declared. */
  byIndex(index: string, value: string): readonly T[] {
    const keys = this.#indexes.get(index)?.get(value);
    if (keys === undefined) return [];
    return [...keys].flatMap((key) => this.#objects.get(key) ?? []);
  }

  /**
   * The objects of one share of the room, which must be declared; `incomplete`: there are more than it keeps of one share;
   * `noRoom`: others had taken all places.
   */
  share(name: string): readonly T[] | Crowded {
    const keys = this.#room?.keysOf(name) ?? "noRoom";
    return typeof keys === "string" ? keys : [...keys].flatMap((key) => this.#objects.get(key) ?? []);
  }

  /** Subscribes to all later changes; called after the cache is updated. Returns the function that unsubscribes. */
  onChange(listener: (change: ObjectChange<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Milliseconds since the last event of the watch; 0 before the first list. */
  silentForMs(): number {
    return this.#heardAt === undefined ? 0 : this.#options.clock.monotonic() - this.#heardAt;
  }

  /** Lists and watches until `signal` aborts. Never rejects: logs failures and retries. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options;
    let resumeAt: string | undefined;
    let failures = 0;
    let absentMs = absent.firstMs;
    const begun = clock.monotonic();
    while (!signal.aborted) {
      const began = clock.monotonic();
      let isHeard = false;
      let failure: unknown;
      try {
        resumeAt ??= await this.#relist(signal);
        for await (const version of this.#follow(resumeAt, signal)) {
          resumeAt = version;
          isHeard = true;
        }
      } catch (error) {
        failure = error;
        if (isExpired(error)) resumeAt = undefined;
      }
      if (signal.aborted) return;
      if (this.#options.optional === true && isNotFound(failure)) {
        resumeAt = undefined;
        failures = 0;
        this.#replace([]);
        await clock.sleep(absentMs * (1 + random.next()), signal).catch(() => undefined);
        absentMs = Math.min(2 * absentMs, absent.lastMs);
        continue;
      }
      absentMs = absent.firstMs;
      const isAwaited = this.#options.mayBeForbidden !== true || clock.monotonic() - begun < rightsAwaitedMs;
      if (!this.#synced && !isAwaited && isForbidden(failure)) this.#replace([]);
      if (isHeard || clock.monotonic() - began >= longAttemptMs) failures = 0;
      failures += 1;
      const wait = Math.max(retryAfterMs(failure) * (1 + 0.2 * random.next()), backedOff(random, failures, again));
      if (failure !== undefined)
        log[failures > 3 ? "warn" : "debug"](
          { kind: this.resource.kind, error: failure, waitMs: Math.round(wait) },
          isExpired(failure) ? "watch expired, listing again" : "watch failed",
        );
      await clock.sleep(wait, signal).catch(() => undefined);
    }
  }

  async #relist(signal: AbortSignal): Promise<string> {
    const room = this.#emptyRoom();
    const { items, resourceVersion } = await this.#options.kube.list(this.resource, this.#options.selection, {
      signal,
      keep: (object) => {
        if (room?.admit(keyOf(object), object) !== false) return this.#keep(object);
        // It may have changed since the last watch ended.
        if (this.#synced) this.#notifyUnkept(object, "after");
        return undefined;
      },
    });
    this.#room = room;
    this.#heardAt = this.#options.clock.monotonic();
    this.#replace(items);
    return resourceVersion;
  }

  #replace(items: readonly T[]): void {
    const gone = new Set(this.#objects.keys());
    for (const item of items) {
      gone.delete(keyOf(item));
      this.#put(item, (kept) => kept);
    }
    for (const key of gone) this.#drop(key);
    if (!this.#synced) {
      this.#synced = true;
      this.#onSynced();
    }
  }

  async *#follow(resourceVersion: string, signal: AbortSignal): AsyncIterable<string> {
    // A signal that aborted during the list does not fire again.
    if (signal.aborted) return;
    const { kube, clock, random } = this.#options;
    const stall = new AbortController();
    const onAbort = () => stall.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    let cancel = () => undefined as void;
    const rearm = () => {
      cancel();
      cancel = clock.after(stallMs, () => stall.abort(new Error("the watch fell silent")));
    };
    rearm();
    try {
      const timeoutSeconds = 2700 + 600 * random.next();
      for await (const event of kube.watch(
        this.resource,
        this.#options.selection ?? {},
        { resourceVersion, timeoutSeconds },
        stall.signal,
      )) {
        this.#heardAt = clock.monotonic();
        rearm();
        if (event.type === "DELETED") this.#drop(keyOf(event.object), event.object);
        else if (event.type !== "BOOKMARK") this.#put(event.object, this.#keep);
        yield event.object.metadata.resourceVersion ?? resourceVersion;
      }
    } finally {
      cancel();
      signal.removeEventListener("abort", onAbort);
    }
  }

  #put(object: T, keep: (object: T) => T): void {
    const key = keyOf(object);
    const before = this.#objects.get(key);
    if (
      before?.metadata.resourceVersion !== undefined &&
      before.metadata.resourceVersion === object.metadata.resourceVersion &&
      before.metadata.uid === object.metadata.uid
    )
      return;
    if (this.#room?.admit(key, object) === false) return this.#notifyUnkept(object, "after");
    const after = keep(object);
    this.#unindex(key, before);
    this.#objects.set(key, after);
    this.#index(key, after);
    this.#notify({ key, before, after });
  }

  #drop(key: string, object?: T): void {
    const before = this.#objects.get(key);
    if (before === undefined) {
      if (object !== undefined && this.#room !== undefined) this.#notifyUnkept(object, "before");
      return;
    }
    this.#unindex(key, before);
    this.#objects.delete(key);
    this.#room?.leave(key, before);
    this.#notify({ key, before, after: undefined });
  }

  #notify(change: ObjectChange<T>): void {
    for (const listener of this.#listeners) listener(change);
  }

  #notifyUnkept(object: T, state: "before" | "after"): void {
    const unknown = { before: undefined, after: undefined };
    this.#notify({ key: keyOf(object), ...unknown, [state]: this.#keep(object), isKept: false });
  }

  #index(key: string, object: T): void {
    for (const [name, values] of Object.entries(this.#options.indexes ?? {})) {
      const index = this.#indexes.get(name);
      for (const value of values(object)) {
        const keys = index?.get(value) ?? new Set();
        keys.add(key);
        index?.set(value, keys);
      }
    }
  }

  #unindex(key: string, object: T | undefined): void {
    if (object === undefined) return;
    for (const [name, values] of Object.entries(this.#options.indexes ?? {})) {
      const index = this.#indexes.get(name);
      for (const value of values(object)) {
        const keys = index?.get(value);
        keys?.delete(key);
        if (keys?.size === 0) index?.delete(value);
      }
    }
  }
}

function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (object.metadata.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
