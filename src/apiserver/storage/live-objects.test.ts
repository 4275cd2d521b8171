import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type LiveEvent, liveObjects } from "./live-objects.ts";
import { memoryStore } from "./memory-store.ts";
import type { KubeObject } from "../schema/contract.ts";

const key = (name: string, namespace = "n", resource = "things") => ({ resource, namespace, name });
const object = (name: string, value = 0): KubeObject => ({
  apiVersion: "v1",
  kind: "Thing",
  metadata: { name, namespace: "n" },
  value,
});

const anyWrite = fc.record({
  namespace: fc.constantFrom("m", "n"),
  name: fc.constantFrom("a", "b", "c", "d"),
  value: fc.nat(9),
  remove: fc.boolean(),
});

describe("liveObjects", () => {
  test("the list at a revision is the list that there was at that revision", () => {
    fc.assert(
      fc.property(fc.array(anyWrite, { maxLength: 30 }), fc.constantFrom(2, 1_000), (writes, memoryEvents) => {
        const live = liveObjects(memoryStore(), { memoryEvents, storedEvents: 1_000 });
        const then: { revision: number; all: unknown; one: unknown }[] = [];
        for (const { namespace, name, value, remove } of writes) {
          const at = key(name, namespace);
          const before = live.get(at);
          if (before === undefined) live.create(at, object(name, value));
          else if (remove) live.remove(at, before.revision, before.object);
          else live.update(at, before.revision, object(name, value));
          then.push({
            revision: live.revision(),
            all: live.list("things").map(({ json }) => json),
            one: live.list("things", "m").map(({ json }) => json),
          });
        }
        for (const { revision, all, one } of then) {
          const listed = live.listAt("things", undefined, revision);
          expect(listed === "compacted" ? listed : listed.map(({ json }) => json)).toEqual(all);
          const narrowed = live.listAt("things", "m", revision);
          expect(narrowed === "compacted" ? narrowed : narrowed.map(({ json }) => json)).toEqual(one);
        }
      }),
    );
  });

  test("whoever follows the events from any revision ends with what there is", () => {
    fc.assert(
      fc.property(fc.array(anyWrite, { maxLength: 30 }), fc.nat(30), (writes, start) => {
        const live = liveObjects(memoryStore(), { memoryEvents: 3, storedEvents: 1_000 });
        const heard = new Map<string, string>();
        let since = 0;
        writes.forEach(({ namespace, name, value, remove }, index) => {
          const at = key(name, namespace);
          const before = live.get(at);
          if (before === undefined) live.create(at, object(name, value));
          else if (remove) live.remove(at, before.revision, before.object);
          else live.update(at, before.revision, object(name, value));
          if (index === Math.min(start, writes.length - 1)) {
            since = live.revision();
            for (const { json, key: where } of live.list("things")) heard.set(`${where.namespace}/${where.name}`, json);
          }
        });
        const events = live.since({ resource: "things" }, since);
        if (events === "compacted") throw new Error("nothing was compacted");
        for (const {
          type,
          live: { key: where, json },
        } of events) {
          if (type === "DELETED") heard.delete(`${where.namespace}/${where.name}`);
          else heard.set(`${where.namespace}/${where.name}`, json);
        }
        expect([...heard.values()].sort()).toEqual(
          live
            .list("things")
            .map(({ json }) => json)
            .sort(),
        );
      }),
    );
  });

  test("only those who asked for a resource, namespace, name or node hear of a change", () => {
    const live = liveObjects(memoryStore());
    const heard: string[] = [];
    const listen = (who: string, interest: Parameters<typeof live.subscribe>[0]) =>
      live.subscribe(interest, () => heard.push(who));
    listen("all", { resource: "pods" });
    listen("namespace n", { resource: "pods", namespace: "n" });
    listen("namespace m", { resource: "pods", namespace: "m" });
    listen("name a", { resource: "pods", namespace: "n", name: "a" });
    listen("name b", { resource: "pods", namespace: "n", name: "b" });
    listen("node x", { resource: "pods", nodeName: "x" });
    listen("node y", { resource: "pods", nodeName: "y" });
    listen("other kind", { resource: "nodes" });
    const pod = (nodeName: string) => ({ ...object("a"), spec: { nodeName } });
    live.create(key("a", "n", "pods"), pod("x"));
    expect(heard.splice(0).sort()).toEqual(["all", "name a", "namespace n", "node x"]);
    const made = live.get(key("a", "n", "pods"));
    live.update(key("a", "n", "pods"), made?.revision ?? 0, pod("y"));
    expect(heard.splice(0).sort()).toEqual(["all", "name a", "namespace n", "node x", "node y"]);
  });

  test("a write inside a listener is heard after the write that caused it, by everyone", () => {
    const live = liveObjects(memoryStore());
    const heard: string[] = [];
    const hear = (who: string) => (event: LiveEvent) => heard.push(`${who} ${event.live.key.name}`);
    live.subscribe({ resource: "things" }, (event) => {
      if (event.live.key.name === "a") live.create(key("b"), object("b"));
    });
    live.subscribe({ resource: "things" }, hear("one"));
    live.subscribe({ resource: "things" }, hear("other"));
    live.create(key("a"), object("a"));
    expect(heard).toEqual(["one a", "other a", "one b", "other b"]);
  });
});
