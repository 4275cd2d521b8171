import type { KubeObject, Resource } from "../api/schema/object.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Random } from "../ports/random.ts";
import type { KubeClient, Selection } from "./kube-client.ts";
import type { Crowded, RoomOptions } from "./cache-room.ts";
import { type ObjectChange, WatchCache } from "./watch-cache.ts";

export interface WatchesOnDemandOptions<T extends KubeObject> {
  readonly kube: KubeClient;
  readonly resource: Resource<T>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly keep?: (object: T) => T;
  /** Concurrent watches; callers beyond this limit have to poll. */
  readonly most: number;
  /** Objects of one watch that are kept at most; absent: all. */
  readonly room?: RoomOptions<T>;
  /** Called after the first list of a watch, and, with the change, after every later one. */
  readonly onChange: (id: string, change?: ObjectChange<T>) => void;
  /** Ends all watches. */
  readonly signal: AbortSignal;
}

/**
 * Watches of parts of a kind that run only while they are needed, for kinds with too many objects to cache them all.
 */
export class WatchesOnDemand<T extends KubeObject> {
  readonly #options: WatchesOnDemandOptions<T>;
  readonly #open = new Map<string, { readonly cache: WatchCache<T>; readonly stop: () => void; isSynced: boolean }>();

  constructor(options: WatchesOnDemandOptions<T>) {
    this.#options = options;
  }

  /** Starts the watch of this id unless it runs already or the limit is reached. */
  open(id: string, selection: Selection): void {
    const { kube, resource, clock, random, log, keep, room, most, onChange, signal } = this.#options;
    if (signal.aborted || this.#open.has(id) || this.#open.size >= most) return;
    const stopping = new AbortController();
    const onAbort = () => stopping.abort();
    signal.addEventListener("abort", onAbort, { once: true });
    const cache = new WatchCache({
      kube,
      resource,
      selection,
      clock,
      random,
      log,
      ...(keep === undefined ? {} : { keep }),
      ...(room === undefined ? {} : { room }),
    });
    const entry = {
      cache,
      isSynced: false,
      stop: () => {
        signal.removeEventListener("abort", onAbort);
        stopping.abort();
      },
    };
    this.#open.set(id, entry);
    const notify = (change?: ObjectChange<T>) => {
      if (entry.isSynced && !stopping.signal.aborted) onChange(id, change);
    };
    cache.onChange(notify);
    void cache.synced.then(() => {
      entry.isSynced = true;
      notify();
    });
    void cache.run(stopping.signal);
  }

  /** The objects of this watch; `undefined` before its first list, or if it does not run. */
  objects(id: string): readonly T[] | undefined {
    const entry = this.#open.get(id);
    return entry?.isSynced === true ? entry.cache.list() : undefined;
  }

  /** The objects of one share of the room of this watch; `undefined` as above. */
  share(id: string, name: string): readonly T[] | Crowded | undefined {
    const entry = this.#open.get(id);
    return entry?.isSynced === true ? entry.cache.share(name) : undefined;
  }

  close(id: string): void {
    this.#open.get(id)?.stop();
    this.#open.delete(id);
  }

  /** Number of running watches. */
  get size(): number {
    return this.#open.size;
  }
}
