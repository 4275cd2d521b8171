import {
  charactersOf,
  compareStoreKeys,
  type Store,
  type StoredEvent,
  type StoredObject,
  type StoreKey,
  type WriteOutcome,
} from "./store.ts";

/** A store that forgets when the process ends: tests and the simulation. No timers, no I/O. */
export function memoryStore(): Store {
  let revision = 1;
  let compactedThrough = 0;
  let events: StoredEvent[] = [];
  const objects = new Map<string, StoredObject>();
  // Sorted keys are computed for a list and dropped when the set of keys changes.
  let sorted: StoredObject[] | undefined;

  const path = (key: StoreKey) => `${key.resource}/${key.namespace}/${key.name}`;

  function write(
    type: StoredEvent["type"],
    key: StoreKey,
    value: string,
    before: StoredObject | undefined,
  ): WriteOutcome {
    revision += 1;
    const previous = before === undefined ? undefined : { revision: before.revision, value: before.value };
    events.push({ type, key, revision, value, previous });
    if (type === "DELETED") objects.delete(path(key));
    else objects.set(path(key), { key, revision, value });
    sorted = undefined;
    return { outcome: "written", revision };
  }

  return {
    revision: () => revision,
    compactedThrough: () => compactedThrough,
    get: (key) => objects.get(path(key)),
    list({ resource, namespace, after, limit }) {
      sorted ??= [...objects.values()].sort((a, b) => compareStoreKeys(a.key, b.key));
      const items: StoredObject[] = [];
      for (const object of sorted) {
        if (resource !== undefined && object.key.resource !== resource) continue;
        if (namespace !== undefined && object.key.namespace !== namespace) continue;
        if (after !== undefined && compareStoreKeys(object.key, after) <= 0) continue;
        if (limit !== undefined && items.length === limit) return { items, next: items.at(-1)?.key };
        items.push(object);
      }
      return { items, next: undefined };
    },
    create(key, value) {
      if (objects.has(path(key))) return { outcome: "exists" };
      return write("ADDED", key, value, undefined);
    },
    update(key, expected, value) {
      const before = objects.get(path(key));
      if (before === undefined) return { outcome: "absent" };
      if (before.revision !== expected) return { outcome: "changed", revision: before.revision };
      return write("MODIFIED", key, value, before);
    },
    delete(key, expected, finalValue) {
      const before = objects.get(path(key));
      if (before === undefined) return { outcome: "absent" };
      if (before.revision !== expected) return { outcome: "changed", revision: before.revision };
      return write("DELETED", key, finalValue, before);
    },
    events(since, limit, { resource, namespace, characters = Infinity } = {}) {
      if (since < compactedThrough) return { verdict: "compacted", through: compactedThrough };
      let low = 0;
      let high = events.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((events[middle]?.revision ?? 0) <= since) low = middle + 1;
        else high = middle;
      }
      const newer = events
        .slice(low)
        .filter(
          ({ key }) =>
            (resource === undefined || key.resource === resource) &&
            (namespace === undefined || key.namespace === namespace),
        )
        .slice(0, limit);
      return newer.reduce((sum, event) => sum + charactersOf(event), 0) > characters
        ? { verdict: "tooLong" }
        : { verdict: "events", events: newer };
    },
    compact(through) {
      const upTo = Math.min(through, revision);
      if (upTo <= compactedThrough) return;
      compactedThrough = upTo;
      events = events.filter((event) => event.revision > upTo);
    },
    close() {},
  };
}
