import { assert } from "../../../api/errors.ts";
import type { KubeObject, Part } from "../schema/contract.ts";
import { defaultRoom, Room, type RoomLimits, weightOf } from "./room.ts";
import type { Store, StoreKey, StoredObject } from "./store.ts";

/** An object as it is stored now. Shared between readers: never change it, parse `json` to get a copy of your own. */
export interface LiveObject {
  readonly key: StoreKey;
  readonly revision: number;
  readonly object: KubeObject;
  readonly json: string;
  /** What it takes in memory, in bytes. */
  readonly weight: number;
}

export interface LiveEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** After the change; of a deletion, the last state with the revision of the deletion. */
  readonly live: LiveObject;
  /** Before it; unknown for events read back from the store's log when that no longer has it. */
  readonly previous: LiveObject | undefined;
  /** Encodings of this event that were already made, by format. */
  readonly encoded: Map<string, string>;
}

/** What a listener subscribes to. The narrowest index that covers it is used. */
export interface Interest {
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
  /** Pods of one node. */
  readonly nodeName?: string;
}

export type Commit =
  | { readonly outcome: "written"; readonly live: LiveObject }
  /**
   * `tooLarge`: it would be larger than {@link storedLimitCharacters}, and larger than it was. `noRoom`: others like it
   * leave no room for what it would be larger.
   */
  | { readonly outcome: "exists" | "absent" | "changed" | "tooLarge" | "noRoom" };

/**
 * An object in its stored form. The size of a request is bounded (`http/request-body.ts`); without a bound on the
 * result, many requests could grow one object. The real server leaves this to etcd (1.5 MiB a request).
 */
export const storedLimitCharacters = 3 * 1024 * 1024;
/** Of this limit, for objects that are being deleted beyond it: those who hold them write what ends that. */
const reservedShare = 1 / 8;

/**
 * All objects, decoded, in memory, kept equal to the store: reads never touch the store, a write goes to the store
 * first. Keeps the newest events too, so that lists at an older revision and watches can start in the past.
 */
export interface LiveObjects {
  revision(): number;
  get(key: StoreKey): LiveObject | undefined;
  /** Sorted by namespace and name. */
  list(resource: string, namespace?: string): readonly LiveObject[];
  /** The list as it was at `revision`; `compacted` when that is too long ago. */
  listAt(resource: string, namespace: string | undefined, revision: number): readonly LiveObject[] | "compacted";
  count(resource: string): number;
  resources(): readonly string[];
  /** @param by whose part of the room it takes where some is kept. */
  create(key: StoreKey, object: KubeObject, by?: Part): Commit;
  update(key: StoreKey, expected: number, object: KubeObject, by?: Part): Commit;
  remove(key: StoreKey, expected: number, object: KubeObject): Commit;
  /** Events of the interest newer than `revision`, oldest first. */
  since(interest: Interest, revision: number): readonly LiveEvent[] | "compacted";
  /** Oldest revision that {@link since} can start from. */
  oldest(): number;
  /** Calls back inside the write that causes the event, in order of revision. */
  subscribe(interest: Interest, listener: (event: LiveEvent) => void): () => void;
}

export interface HistoryLimits {
  /** Events kept decoded in memory. */
  readonly memoryEvents: number;
  /** Events kept in the store; older ones answer 410. */
  readonly storedEvents: number;
  /** The same in bytes of memory: whoever may change one large object makes events without end. */
  readonly memoryBytes?: number;
  /** The same in characters of their objects. */
  readonly storedCharacters?: number;
  /** Of the store's events, as many as one request reads, with the states before them; for more, it is told 410. */
  readonly replayCharacters?: number;
}

export const defaultHistory = {
  memoryEvents: 2_000,
  storedEvents: 20_000,
  memoryBytes: 128 * 1024 * 1024,
  storedCharacters: 128 * 1024 * 1024,
  replayCharacters: 16 * 1024 * 1024,
} as const satisfies HistoryLimits;

const loadPage = 500;

export function liveObjects(
  store: Store,
  limits: HistoryLimits = defaultHistory,
  roomLimits: RoomLimits = defaultRoom,
): LiveObjects {
  const byResource = new Map<string, ResourceObjects>();
  const room = new Room(roomLimits);
  const listeners = new Map<string, Set<(event: LiveEvent) => void>>();
  let recent: LiveEvent[] = [];
  /** Everything newer than this is in `recent`. */
  let recentSince = store.revision();
  let recentBytes = 0;
  const {
    memoryBytes = defaultHistory.memoryBytes,
    storedCharacters = defaultHistory.storedCharacters,
    replayCharacters = defaultHistory.replayCharacters,
  } = limits;
  const stored = { firstRevision: store.revision() + 1, sizes: [] as number[], characters: 0 };
  const pending: LiveEvent[] = [];
  let dispatching = false;

  for (let page = store.list({ limit: loadPage }); ; page = store.list({ limit: loadPage, after: page.next })) {
    for (const stored of page.items) {
      const live = decode(stored);
      objectsOf(stored.key.resource).set(live);
      room.replace(undefined, live);
    }
    if (page.next === undefined) break;
  }

  function objectsOf(resource: string): ResourceObjects {
    let objects = byResource.get(resource);
    if (objects === undefined) byResource.set(resource, (objects = new ResourceObjects()));
    return objects;
  }

  function commit(
    type: LiveEvent["type"],
    key: StoreKey,
    expected: number,
    object: KubeObject,
    by: Part = "others",
  ): Commit {
    const revision = store.revision() + 1;
    const stamped = ordered(object, String(revision));
    const json = JSON.stringify(stamped);
    const before = objectsOf(key.resource).get(key);
    const live: LiveObject = { key, revision, object: stamped, json, weight: weightOf(json, stamped) };
    const goes = object.metadata.deletionTimestamp !== undefined;
    // What is to go must be able to, whatever size it has: only the server marks it. What follows is written by anybody.
    const isMarked = goes && before?.object.metadata.deletionTimestamp === undefined;
    if (type !== "DELETED" && !isMarked) {
      const share = goes ? 1 + reservedShare : 1;
      const isLonger = json.length > (before?.json.length ?? 0);
      if (isLonger && json.length > storedLimitCharacters * share) return { outcome: "tooLarge" };
      if (!room.has(before, live, by)) return { outcome: "noRoom" };
    }
    const outcome =
      type === "ADDED"
        ? store.create(key, json)
        : type === "MODIFIED"
          ? store.update(key, expected, json)
          : store.delete(key, expected, json);
    if (outcome.outcome !== "written") return { outcome: outcome.outcome };
    assert(outcome.revision === revision, "the store gave another revision than the next one");
    room.replace(before, type === "DELETED" ? undefined : live);
    const objects = objectsOf(key.resource);
    const previous = objects.get(key);
    if (type === "DELETED") objects.delete(key);
    else objects.set(live);
    const event: LiveEvent = { type, live, previous, encoded: new Map() };
    remember(event);
    dispatch(event);
    return { outcome: "written", live };
  }

  function remember(event: LiveEvent): void {
    recent.push(event);
    recentBytes += bytesOf(event);
    // Cut in halves, so that the cost of a cut is shared by many writes.
    if (recent.length > 2 * limits.memoryEvents || recentBytes > memoryBytes) {
      recent = newestOf(recent, limits.memoryEvents, memoryBytes / 2);
      recentBytes = recent.reduce((sum, event) => sum + bytesOf(event), 0);
      recentSince = (recent[0]?.live.revision ?? 1) - 1;
    }
    if (event.live.revision % 1_000 === 0) store.compact(event.live.revision - limits.storedEvents);
    compactBySize(event);
  }

  /** The events of an earlier process were within the limit. */
  function compactBySize({ live: { json } }: LiveEvent): void {
    stored.sizes.push(json.length);
    stored.characters += json.length;
    const isLong = stored.sizes.length > 2 * limits.storedEvents;
    if (stored.characters <= storedCharacters && !isLong) return;
    let gone = isLong ? stored.sizes.length - limits.storedEvents : 0;
    let characters = stored.sizes.slice(gone).reduce((sum, size) => sum + size, 0);
    for (; characters > storedCharacters / 2 && gone < stored.sizes.length - 1; gone += 1)
      characters -= stored.sizes[gone] ?? 0;
    stored.sizes.splice(0, gone);
    stored.characters = characters;
    stored.firstRevision += gone;
    store.compact(stored.firstRevision - 1);
  }

  function dispatch(event: LiveEvent): void {
    pending.push(event);
    if (dispatching) return;
    dispatching = true;
    try {
      for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
        const called = new Set<(event: LiveEvent) => void>();
        for (const scope of scopesOf(next)) {
          for (const listener of listeners.get(scope) ?? []) {
            if (called.has(listener)) continue;
            called.add(listener);
            listener(next);
          }
        }
        // All who hear of it have heard: its encodings would be kept as long as the event.
        next.encoded.clear();
      }
    } finally {
      dispatching = false;
    }
  }

  /** Recent events newer than `revision`, or those of the store's log: of these only what was asked for is decoded. */
  function eventsSince(
    revision: number,
    of: Pick<Interest, "resource" | "namespace">,
  ): readonly LiveEvent[] | "compacted" {
    if (revision >= recentSince) {
      let low = 0;
      let high = recent.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((recent[middle]?.live.revision ?? 0) <= revision) low = middle + 1;
        else high = middle;
      }
      return low === 0 ? recent : recent.slice(low);
    }
    const log = store.events(revision, Number.MAX_SAFE_INTEGER, { ...of, characters: replayCharacters });
    // Who would read too much lists again, as where the log no longer reaches back.
    if (log.verdict !== "events") return "compacted";
    return log.events.map((event) => ({
      type: event.type,
      live: decodedLater(event),
      previous: event.previous === undefined ? undefined : decodedLater({ key: event.key, ...event.previous }),
      encoded: new Map(),
    }));
  }

  return {
    revision: () => store.revision(),
    get: (key) => byResource.get(key.resource)?.get(key),
    list: (resource, namespace) => byResource.get(resource)?.list(namespace) ?? [],
    listAt(resource, namespace, revision) {
      const now = byResource.get(resource)?.list(namespace) ?? [];
      if (revision >= store.revision()) return now;
      const events = eventsSince(revision, namespace === undefined ? { resource } : { resource, namespace });
      if (events === "compacted") return "compacted";
      const undone = events.filter(
        ({ live: { key } }) => key.resource === resource && (namespace === undefined || key.namespace === namespace),
      );
      if (undone.length === 0) return now;
      const then = new Map(now.map((live) => [path(live.key), live]));
      for (const event of undone.toReversed()) {
        if (event.type === "ADDED") then.delete(path(event.live.key));
        else if (event.previous === undefined) return "compacted";
        else then.set(path(event.live.key), event.previous);
      }
      return [...then.values()].sort((a, b) => (path(a.key) < path(b.key) ? -1 : 1));
    },
    count: (resource) => byResource.get(resource)?.size ?? 0,
    resources: () => [...byResource].filter(([, objects]) => objects.size > 0).map(([resource]) => resource),
    create: (key, object, by) => commit("ADDED", key, 0, object, by),
    update: (key, expected, object, by) => commit("MODIFIED", key, expected, object, by),
    remove: (key, expected, object) => commit("DELETED", key, expected, object),
    since(interest, revision) {
      const events = eventsSince(revision, interest);
      if (events === "compacted") return "compacted";
      const scope = scopeOf(interest);
      // Who reads the past encodes for itself: the kept events would keep it.
      return events
        .filter((event) => scopesOf(event).includes(scope))
        .map((event) => ({ ...event, encoded: new Map<string, string>() }));
    },
    oldest: () => Math.min(recentSince, store.compactedThrough()),
    subscribe(interest, listener) {
      const scope = scopeOf(interest);
      let set = listeners.get(scope);
      if (set === undefined) listeners.set(scope, (set = new Set()));
      set.add(listener);
      return () => {
        set.delete(listener);
        if (set.size === 0 && listeners.get(scope) === set) listeners.delete(scope);
      };
    },
  };
}

/** What an event keeps in memory: the state before is often one that another event keeps as well. */
const bytesOf = ({ live, previous }: LiveEvent): number => Math.max(live.weight, previous?.weight ?? 0);

/** The newest events, as many as fit into both limits, but one at least. */
function newestOf(events: readonly LiveEvent[], count: number, bytes: number): LiveEvent[] {
  let first = events.length - 1;
  const weigh = (index: number): number => {
    const event = events[index];
    return event === undefined ? 0 : bytesOf(event);
  };
  let left = bytes - weigh(first);
  for (; first > 0 && events.length - first < count; first -= 1) {
    left -= weigh(first - 1);
    if (left < 0) break;
  }
  return events.slice(first);
}

/** Objects of one resource, with a sorted view that is valid until an object is added or removed. */
class ResourceObjects {
  readonly #objects = new Map<string, LiveObject>();
  #order: string[] | undefined;

  get size(): number {
    return this.#objects.size;
  }

  get(key: StoreKey): LiveObject | undefined {
    return this.#objects.get(path(key));
  }

  set(live: LiveObject): void {
    const at = path(live.key);
    if (!this.#objects.has(at)) this.#order = undefined;
    this.#objects.set(at, live);
  }

  delete(key: StoreKey): void {
    if (this.#objects.delete(path(key))) this.#order = undefined;
  }

  list(namespace: string | undefined): readonly LiveObject[] {
    this.#order ??= [...this.#objects.keys()].sort();
    const found: LiveObject[] = [];
    const prefix = namespace === undefined ? "" : `${namespace}/`;
    for (let index = prefix === "" ? 0 : firstFrom(this.#order, prefix); index < this.#order.length; index++) {
      const at = this.#order[index];
      if (at === undefined || !at.startsWith(prefix)) break;
      const live = this.#objects.get(at);
      if (live !== undefined) found.push(live);
    }
    return found;
  }
}

function firstFrom(sorted: readonly string[], prefix: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? "") < prefix) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Within one resource. */
function path(key: StoreKey): string {
  return `${key.namespace}/${key.name}`;
}

function scopeOf({ resource, namespace, name, nodeName }: Interest): string {
  if (name !== undefined && namespace !== undefined) return `${resource}|name|${namespace}/${name}`;
  if (nodeName !== undefined && resource === "pods") return `${resource}|node|${nodeName}`;
  return namespace === undefined ? resource : `${resource}|namespace|${namespace}`;
}

function scopesOf({ live, previous }: LiveEvent): string[] {
  const { resource, namespace, name } = live.key;
  const scopes = [resource, `${resource}|namespace|${namespace}`, `${resource}|name|${namespace}/${name}`];
  if (resource === "pods") {
    const nodes = new Set([nodeNameOf(live.object), previous === undefined ? undefined : nodeNameOf(previous.object)]);
    for (const node of nodes) if (node !== undefined) scopes.push(`${resource}|node|${node}`);
  }
  return scopes;
}

function nodeNameOf(pod: KubeObject): string | undefined {
  const spec = pod["spec"];
  if (typeof spec !== "object" || spec === null || !("nodeName" in spec)) return undefined;
  return typeof spec.nodeName === "string" ? spec.nodeName : undefined;
}

/** apiVersion, kind and metadata first, the usual order, with the resourceVersion of this write. */
function ordered(object: KubeObject, resourceVersion: string): KubeObject {
  const { apiVersion, kind, metadata, ...rest } = object;
  return { apiVersion, kind, metadata: { ...metadata, resourceVersion }, ...rest };
}

function decode({ key, revision, value }: StoredObject): LiveObject {
  const object = JSON.parse(value) as KubeObject;
  return { key, revision, object, json: value, weight: weightOf(value, object) };
}

/** Most readers of the past need only the text: to decode one large object takes long, and ten times its memory. */
function decodedLater({ key, revision, value }: StoredObject): LiveObject {
  let object: KubeObject | undefined;
  return {
    key,
    revision,
    json: value,
    get object() {
      return (object ??= JSON.parse(value) as KubeObject);
    },
    get weight() {
      return weightOf(value, this.object);
    },
  };
}
