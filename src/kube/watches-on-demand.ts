import type { KubeObject, Resource } from "../api/schema/object.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { Random } from "../ports/random.ts";
import type { KubeClient, Selection } from "./kube-client.ts";
import { WatchCache } from "./watch-cache.ts";

export interface WatchesOnDemandOptions<T extends KubeObject> {
  readonly kube: KubeClient;
  readonly resource: Resource<T>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly keep?: (object: T) => T;
  /** How many run at once; whoever comes later has to ask the server now and then. */
  readonly most: number;
  /** Called when a watch has its first list, and after every change from then on. */
  readonly onChange: (id: string) => void;
  /** Ends all of them. */
  readonly signal: AbortSignal;
}

/**
 * Watches of parts of a kind that run only while somebody needs them, for kinds of which a cluster has too many objects
 * to hold them all.
 */
export class WatchesOnDemand<T extends KubeObject> {
  readonly #options: WatchesOnDemandOptions<T>;
  readonly #open = new Map<string, { readonly cache: WatchCache<T>; readonly stop: () => void; isSynced: boolean }>();

  constructor(options: WatchesOnDemandOptions<T>) {
    this.#options = options;
  }

  /** Starts the watch of this id if it does not run, and there is room for it. */
  open(id: string, selection: Selection): void {
    const { kube, resource, clock, random, log, keep, most, onChange, signal } = this.#options;
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
    const tell = () => {
      if (entry.isSynced && !stopping.signal.aborted) onChange(id);
    };
    cache.onChange(tell);
    void cache.synced.then(() => {
      entry.isSynced = true;
      tell();
    });
    void cache.run(stopping.signal);
  }

  /** The objects as this watch knows them; `undefined` until its first list is in, or when it does not run. */
  objects(id: string): readonly T[] | undefined {
    const entry = this.#open.get(id);
    return entry?.isSynced === true ? entry.cache.list() : undefined;
  }

  close(id: string): void {
    this.#open.get(id)?.stop();
    this.#open.delete(id);
  }

  /** How many run. */
  get size(): number {
    return this.#open.size;
  }
}
