import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { McoError } from "../../../api/errors.ts";
import { memoryStore } from "./memory-store.ts";
import { sqliteStore } from "../node/sqlite-store.ts";
import type { Store, StoreKey } from "./store.ts";

const folder = mkdtempSync(join(tmpdir(), "mco-store-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const freshFile = () => join(folder, `${files++}.db`);

const key = (name: string, namespace = "default", resource = "pods"): StoreKey => ({ resource, namespace, name });
const revisionOf = (outcome: { outcome: string; revision?: number }) => {
  expect(outcome.outcome).toBe("written");
  return outcome.revision ?? 0;
};

describe.for([
  { driver: "memory", make: () => memoryStore() },
  { driver: "sqlite", make: () => sqliteStore({ file: freshFile() }) },
])("the $driver store", ({ make }) => {
  test("counts every write once, over all kinds", () => {
    const store = make();
    expect(store.revision()).toBe(1);
    const first = revisionOf(store.create(key("a"), "1"));
    const second = revisionOf(store.create(key("a", "", "nodes"), "2"));
    const third = revisionOf(store.update(key("a"), first, "3"));
    const fourth = revisionOf(store.delete(key("a"), third, "3"));
    expect([first, second, third, fourth]).toEqual([2, 3, 4, 5]);
    expect(store.revision()).toBe(5);
    store.close();
  });

  test("refuses a second creation, a write on what is gone and a write on what changed", () => {
    const store = make();
    const first = revisionOf(store.create(key("a"), "1"));
    expect(store.create(key("a"), "2")).toEqual({ outcome: "exists" });
    expect(store.update(key("b"), 1, "2")).toEqual({ outcome: "absent" });
    expect(store.delete(key("b"), 1, "2")).toEqual({ outcome: "absent" });
    const second = revisionOf(store.update(key("a"), first, "2"));
    expect(store.update(key("a"), first, "3")).toEqual({ outcome: "changed", revision: second });
    expect(store.delete(key("a"), first, "3")).toEqual({ outcome: "changed", revision: second });
    expect(store.get(key("a"))).toEqual({ key: key("a"), revision: second, value: "2" });
    expect(store.revision()).toBe(second);
    store.close();
  });

  test("lists in order, by resource and namespace, in pages", () => {
    const store = make();
    for (const [name, namespace, resource] of [
      ["b", "x", "pods"],
      ["a", "y", "pods"],
      ["a", "x", "pods"],
      ["n", "", "nodes"],
    ] as const)
      store.create(key(name, namespace, resource), name);
    const names = (page: ReturnType<Store["list"]>) =>
      page.items.map((item) => `${item.key.namespace}/${item.key.name}`);
    expect(names(store.list({}))).toEqual(["/n", "x/a", "x/b", "y/a"]);
    expect(names(store.list({ resource: "pods", namespace: "x" }))).toEqual(["x/a", "x/b"]);
    const page = store.list({ resource: "pods", limit: 2 });
    expect(names(page)).toEqual(["x/a", "x/b"]);
    expect(page.next).toEqual(key("b", "x"));
    const rest = store.list({ resource: "pods", limit: 2, after: key("b", "x") });
    expect(names(rest)).toEqual(["y/a"]);
    expect(rest.next).toBeUndefined();
    store.close();
  });

  test("returns the events since a revision, with the previous objects", () => {
    const store = make();
    const first = revisionOf(store.create(key("a"), "1"));
    const second = revisionOf(store.update(key("a"), first, "2"));
    const third = revisionOf(store.delete(key("a"), second, "2 gone"));
    expect(store.events(first, 10)).toEqual({
      verdict: "events",
      events: [
        { type: "MODIFIED", key: key("a"), revision: second, value: "2", previous: { revision: first, value: "1" } },
        {
          type: "DELETED",
          key: key("a"),
          revision: third,
          value: "2 gone",
          previous: { revision: second, value: "2" },
        },
      ],
    });
    expect(store.events(third, 10)).toEqual({ verdict: "events", events: [] });
    const limited = store.events(1, 1);
    expect(limited.verdict === "events" ? limited.events.map((event) => event.type) : []).toEqual(["ADDED"]);
    store.close();
  });

  test("returns events of one resource and namespace alone [apiserver-store-1]", () => {
    const store = make();
    for (const [resource, namespace] of [
      ["pods", "a"],
      ["pods", "b"],
      ["maps", "a"],
    ] as const)
      store.create({ resource, namespace, name: "n" }, resource);
    const of = (...narrowed: Parameters<Store["events"]>[2][]) => {
      const found = store.events(1, 2, ...narrowed);
      return found.verdict === "events"
        ? found.events.map((event) => `${event.key.resource} ${event.key.namespace}`)
        : [];
    };
    expect(of()).toEqual(["pods a", "pods b"]);
    expect(of({ resource: "pods" })).toEqual(["pods a", "pods b"]);
    expect(of({ resource: "maps" })).toEqual(["maps a"]);
    expect(of({ resource: "pods", namespace: "b" })).toEqual(["pods b"]);
    store.close();
  });

  test("returns no events whose values are too long together [apiserver-store-2]", () => {
    const store = make();
    const first = revisionOf(store.create(key("a"), "x".repeat(10)));
    revisionOf(store.update(key("a"), first, "y".repeat(10)));
    // Ten characters of the first change; twenty of the second, with the state before it.
    expect(store.events(1, 10, { characters: 29 })).toEqual({ verdict: "tooLong" });
    expect(store.events(1, 10, { characters: 30 })).toMatchObject({ verdict: "events" });
    expect(store.events(first, 10, { characters: 20 })).toMatchObject({ verdict: "events" });
    store.close();
  });

  test("keeps objects and revision when the log is compacted, and says that the old events are gone", () => {
    const store = make();
    const first = revisionOf(store.create(key("a"), "1"));
    const second = revisionOf(store.update(key("a"), first, "2"));
    store.compact(first);
    expect(store.compactedThrough()).toBe(first);
    expect(store.events(1, 10)).toEqual({ verdict: "compacted", through: first });
    const events = store.events(first, 10);
    expect(events).toEqual({ verdict: "events", events: [expect.objectContaining({ revision: second, value: "2" })] });
    expect(store.get(key("a"))?.value).toBe("2");
    expect(revisionOf(store.create(key("b"), "1"))).toBe(second + 1);
    store.close();
  });
});

describe("the sqlite store", () => {
  test("finds everything again after it was closed: objects, events, revision and compaction", () => {
    const file = freshFile();
    const before = sqliteStore({ file });
    const first = revisionOf(before.create(key("a"), "1"));
    revisionOf(before.update(key("a"), first, "2"));
    before.compact(first);
    before.close();
    const after = sqliteStore({ file, survives: "powerCut" });
    expect(after.revision()).toBe(3);
    expect(after.compactedThrough()).toBe(first);
    expect(after.get(key("a"))).toEqual({ key: key("a"), revision: 3, value: "2" });
    expect(after.events(first, 10).verdict).toBe("events");
    after.close();
  });

  test("refuses a file of a later release", () => {
    const file = freshFile();
    sqliteStore({ file }).close();
    const db = new DatabaseSync(file);
    db.exec("PRAGMA user_version = 999");
    db.close();
    expect(() => sqliteStore({ file })).toThrow(expect.objectContaining({ code: "MCO_STORE_NEWER" }) as McoError);
  });

  test("refuses a file that another server has open", () => {
    const file = freshFile();
    const first = sqliteStore({ file });
    expect(() => sqliteStore({ file })).toThrow(expect.objectContaining({ code: "MCO_STORE_LOCKED" }) as McoError);
    first.close();
    sqliteStore({ file }).close();
  });

  test("answers like the memory store, whatever is asked in whatever order", () => {
    const anyKey = fc.record({
      resource: fc.constantFrom("pods", "nodes"),
      namespace: fc.constantFrom("", "x"),
      name: fc.constantFrom("a", "b", "c"),
    });
    const anyCall = fc.oneof(
      fc.record({ call: fc.constant("create" as const), key: anyKey, value: fc.string() }),
      fc.record({ call: fc.constant("update" as const), key: anyKey, value: fc.string(), stale: fc.boolean() }),
      fc.record({ call: fc.constant("delete" as const), key: anyKey, value: fc.string(), stale: fc.boolean() }),
      fc.record({ call: fc.constant("compact" as const), back: fc.nat(5) }),
    );
    fc.assert(
      fc.property(fc.array(anyCall, { maxLength: 40 }), (calls) => {
        const stores = [memoryStore(), sqliteStore({ file: ":memory:" })];
        const [one, other] = stores.map((store) => {
          const answers: unknown[] = calls.map((call) => {
            if (call.call === "compact") return store.compact(store.revision() - call.back);
            if (call.call === "create") return store.create(call.key, call.value);
            const expected = (store.get(call.key)?.revision ?? 1) - (call.stale ? 1 : 0);
            return call.call === "update"
              ? store.update(call.key, expected, call.value)
              : store.delete(call.key, expected, call.value);
          });
          const events = store.events(store.compactedThrough(), 1000);
          // Whether the log still has the value before the first event is the driver's own business.
          const told = events.verdict === "events" ? events.events.map(({ previous: _, ...event }) => event) : events;
          const state = [answers, store.list({}), told, store.revision(), store.compactedThrough()];
          store.close();
          return state;
        });
        expect(one).toEqual(other);
      }),
      { numRuns: 60 },
    );
  });

  test("a database in memory leaves no file of its name behind [store-memory-1]", () => {
    sqliteStore({ file: ":memory:" }).close();
    expect(existsSync(":memory:")).toBe(false);
  });
});
