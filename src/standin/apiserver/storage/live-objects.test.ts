import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type LiveEvent, liveObjects } from "./live-objects.ts";
import { defaultRoom } from "./room.ts";
import { memoryStore } from "./memory-store.ts";
import type { KubeObject, Part } from "../schema/contract.ts";

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

  test("who looks back in one namespace decodes no events of others [apiserver-live-objects-1]", () => {
    const store = memoryStore();
    let read = 0;
    const counted: typeof store = {
      ...store,
      events(...asked) {
        const found = store.events(...asked);
        if (found.verdict === "events") read += found.events.length;
        return found;
      },
    };
    const live = liveObjects(counted, { memoryEvents: 1, storedEvents: 1_000 });
    const since = live.revision();
    live.create(key("a", "own"), object("a"));
    for (let index = 0; index < 100; index += 1) live.create(key(`b${index}`, "other"), object("b"));
    expect(live.since({ resource: "things", namespace: "own" }, since)).toHaveLength(1);
    expect(live.listAt("things", "own", since)).toEqual([]);
    expect(read).toBe(2);
  });

  test("who looks back over too much is told to list again [apiserver-live-objects-2]", () => {
    const live = liveObjects(memoryStore(), { memoryEvents: 1, storedEvents: 1_000, replayCharacters: 20_000 });
    const at = key("a");
    live.create(at, { ...object("a"), long: "x".repeat(1_000) });
    const revisions = Array.from({ length: 20 }, (_, value) => {
      const { revision } = live.get(at) ?? { revision: 0 };
      live.update(at, revision, { ...object("a", value), long: "x".repeat(1_000) });
      return revision;
    });
    const [first = 0] = revisions;
    const ask = (since: number) => [live.since({ resource: "things" }, since), live.listAt("things", "n", since)];
    expect(ask(first)).toEqual(["compacted", "compacted"]);
    // Four changes, each with the state before it.
    const [events, list] = ask(revisions.at(-4) ?? 0);
    expect(events).toHaveLength(4);
    expect(list).toEqual([expect.objectContaining({ revision: revisions.at(-4), object: expect.anything() })]);
  });

  test("objects of one namespace leave room for those of others, and for what goes [apiserver-live-objects-3]", () => {
    const store = memoryStore();
    const room = { ...defaultRoom, resourceBytes: 8_500, namespaceBytes: 14_000 };
    const long = (name: string, length = 1_000) => ({ ...object(name), long: "x".repeat(length) });
    const fill = (at: typeof store, resource: string, namespace: string, by?: Part) => {
      const live = liveObjects(at, undefined, room);
      return ["a", "b", "c", "d"].map((name) => live.create(key(name, namespace, resource), long(name), by).outcome);
    };
    expect(fill(store, "things", "own")).toEqual(["written", "written", "noRoom", "noRoom"]);
    expect(fill(store, "others", "own")).toEqual(["written", "written", "noRoom", "noRoom"]);
    expect(fill(store, "more", "own")).toEqual(["noRoom", "noRoom", "noRoom", "noRoom"]);
    expect(fill(store, "things", "other")).toEqual(["written", "written", "noRoom", "noRoom"]);
    expect(fill(store, "clusterwide", "")).toEqual(["written", "written", "written", "written"]);
    const requests = "certificatesigningrequests.certificates.k8s.io";
    // An eighth of the room is that of one requester.
    expect(fill(store, requests, "")).toEqual(["noRoom", "noRoom", "noRoom", "noRoom"]);
    expect(fill(store, requests, "", "cluster")).toEqual(["written", "written", "noRoom", "noRoom"]);

    const live = liveObjects(store, undefined, room);
    const [first] = live.list("things", "own");
    if (first === undefined) throw new Error("nothing was stored");
    expect(live.update(first.key, first.revision, long("a", 3_000)).outcome).toBe("noRoom");
    expect(live.update(first.key, first.revision, long("a", 900)).outcome).toBe("written");
    expect(live.remove(first.key, live.get(first.key)?.revision ?? 0, first.object).outcome).toBe("written");
    expect(live.create(key("c", "own"), long("c")).outcome).toBe("written");
  });

  test("what nodes write in any namespace shares one limit, and what is stored beyond it is read [apiserver-live-objects-5]", () => {
    const store = memoryStore();
    const long = (name: string) => ({ ...object(name), long: "x".repeat(1_000) });
    const many = liveObjects(store);
    for (const namespace of ["a", "b", "c"]) many.create(key("e", namespace, "events"), long("e"));
    // An earlier version stored more than there is room for now.
    const live = liveObjects(store, undefined, { ...defaultRoom, everywhereBytes: { events: 7_500 } });
    const namesIn = (namespace: string) => live.list("events", namespace).map(({ key: { name } }) => name);
    expect(["a", "b", "c"].map(namesIn)).toEqual([["e"], ["e"], ["e"]]);
    const create = (namespace: string, resource = "events") =>
      live.create(key("f", namespace, resource), long("f")).outcome;
    expect([create("d"), create("d", "configmaps")]).toEqual(["noRoom", "written"]);
    for (const namespace of ["a", "b"]) {
      const [one] = live.list("events", namespace);
      if (one !== undefined) expect(live.remove(one.key, one.revision, one.object).outcome).toBe("written");
    }
    expect([create("d"), create("e")]).toEqual(["written", "noRoom"]);
  });

  test("tenants of many namespaces leave room in those of the cluster [apiserver-live-objects-6]", () => {
    const live = liveObjects(memoryStore(), undefined, { ...defaultRoom, tenantsBytes: 7_500 });
    const create = (namespace: string) =>
      live.create(key("a", namespace), { ...object("a"), long: "x".repeat(1_000) }).outcome;
    expect(["a", "b", "c", "kube-system", "openshift-machine-config-operator"].map(create)).toEqual([
      "written",
      "written",
      "noRoom",
      "written",
      "written",
    ]);
  });

  test("tenants at their limits leave room for pods, Events and builds of the suite [apiserver-live-objects-7]", () => {
    const room = { ...defaultRoom, tenantsBytes: 15_000, everywhereBytes: { pods: 7_500, events: 7_500 } };
    const live = liveObjects(memoryStore(), undefined, room);
    const create = (namespace: string, resource: string) =>
      live.create(key("a", namespace, resource), { ...object("a"), long: "x".repeat(1_000) }).outcome;
    for (const resource of ["pods", "events"])
      expect(["a", "b", "c"].map((namespace) => create(namespace, resource))).toEqual(["written", "written", "noRoom"]);
    expect(create("a", "configmaps")).toBe("noRoom");
    const ofSuite = ["openshift-machine-config-operator", "openshift-machine-config-builds", "kube-system"];
    for (const resource of ["pods", "events", "configmaps"])
      expect(ofSuite.map((namespace) => create(namespace, resource))).toEqual(["written", "written", "written"]);
    expect(create("openshift-machine-config-join", "serviceaccounts")).toBe("written");
    // A pod that runs has a longer status.
    const pod = live.get(key("a", "openshift-machine-config-operator", "pods"));
    expect(pod).toBeDefined();
    if (pod === undefined) return;
    const status = { status: { phase: "Running", long: "x".repeat(1_000) } };
    expect(live.update(pod.key, pod.revision, { ...pod.object, ...status }).outcome).toBe("written");
  });

  test("nodes that write in the namespaces of the cluster fill no more than one limit of these [apiserver-live-objects-8]", () => {
    const room = { ...defaultRoom, clusterBytes: { pods: 7_500, events: 7_500 } };
    const live = liveObjects(memoryStore(), undefined, room);
    const create = (namespace: string, resource: string) =>
      live.create(key("a", namespace, resource), { ...object("a"), long: "x".repeat(1_000) }).outcome;
    const ofCluster = ["kube-system", "kube-public", "kube-node-lease", "openshift-machine-config-operator"];
    for (const resource of ["pods", "events"])
      expect([...ofCluster, "own"].map((namespace) => create(namespace, resource))).toEqual([
        "written",
        "written",
        "noRoom",
        "noRoom",
        "written",
      ]);
  });

  test("whatever tenants store, machines and the suite have room for Events about objects without a namespace [apiserver-live-objects-9]", () => {
    const weight = 4_000;
    const room = {
      ...defaultRoom,
      tenantsBytes: 2 * weight,
      everywhereBytes: { events: weight },
      namespaceBytes: 1,
      clusterScopedEventsBytes: 8 * weight,
    };
    const store = memoryStore();
    let live = liveObjects(store, undefined, room);
    const eventOf = (involvedObject: Readonly<Record<string, string>>, name: string): KubeObject => ({
      ...object(name),
      involvedObject,
      long: "x".repeat(1_000),
    });
    /** Writes until there is no room, and says how often there was. */
    const fill = (by: Part, involvedObject: Readonly<Record<string, string>> = { kind: "Node", name: "n" }) => {
      for (let count = 0; ; count += 1) {
        const at = key(`${by}-${live.revision()}`, "default", "events");
        if (live.create(at, eventOf(involvedObject, at.name), by).outcome !== "written") return count;
      }
    };
    // What is about an object of the namespace counts there, whoever writes it.
    expect(fill("cluster", { kind: "Pod", name: "p", namespace: "default" })).toBe(0);
    // An earlier process stored the first half of it.
    const ofTenants = fill("others");
    live = liveObjects(store, undefined, room);
    expect([fill("others"), fill("others", { kind: "Node", name: "n", namespace: "" })]).toEqual([0, 0]);
    const ofNodes = fill("nodes");
    const ofSuite = fill("cluster");
    expect(ofTenants).toBeGreaterThanOrEqual(4);
    expect(ofNodes).toBeGreaterThanOrEqual(1);
    expect(ofSuite).toBeGreaterThanOrEqual(1);
    expect([fill("others"), fill("nodes"), fill("cluster")]).toEqual([0, 0, 0]);
    // What goes makes room there; one that is said to be about something else has to have room in its new place.
    const [one, ...others] = live.list("events", "default");
    const node = others.at(-1);
    if (one === undefined || node === undefined) throw new Error("nothing was stored");
    const elsewhere = eventOf({ kind: "Pod", name: "p", namespace: "default" }, node.key.name);
    expect(live.update(node.key, node.revision, elsewhere, "cluster").outcome).toBe("noRoom");
    for (const { key: at, revision, object: gone } of [one, ...others])
      expect(live.remove(at, revision, gone).outcome).toBe("written");
    expect(fill("others")).toBe(ofTenants);
  });

  test("what is being deleted grows no further than what stays [apiserver-live-objects-4]", () => {
    const room = { ...defaultRoom, resourceBytes: 8_500, namespaceBytes: 14_000 };
    const live = liveObjects(memoryStore(), undefined, room);
    const at = key("a");
    const update = (length: number, goes: boolean) => {
      const { metadata, ...rest } = object("a");
      const times = goes ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {};
      const next = { ...rest, metadata: { ...metadata, ...times }, long: "x".repeat(length) };
      return live.update(at, live.get(at)?.revision ?? 0, next).outcome;
    };
    live.create(at, object("a"));
    // It fills the room to the last characters, and is marked as deleted nevertheless.
    let length = 2_000;
    while (update(length, false) === "written") length += 1;
    expect(update(length - 1, true)).toBe("written");
    // Those who have something to do before it goes may write a little, and not without end.
    expect(update(length + 50, true)).toBe("written");
    expect(update(length + 500, true)).toBe("noRoom");
    expect(update(length, true)).toBe("written");
    expect(live.remove(at, live.get(at)?.revision ?? 0, object("a")).outcome).toBe("written");
  });

  test("in a full namespace components and machines write statuses, and not without end [apiserver-live-objects-10]", () => {
    const mebibyte = 1024 * 1024;
    const room = { ...defaultRoom, resourceBytes: mebibyte, namespaceBytes: mebibyte };
    const live = liveObjects(memoryStore(), undefined, room);
    const create = (name: string, by: Part, resource = "pods") =>
      live.create(key(name, "own", resource), { ...object(name), long: "x".repeat(20_000) }, by).outcome;
    const update = (name: string, length: number, by: Part, resource = "pods") => {
      const at = key(name, "own", resource);
      const { object: before = object(name), revision = 0 } = live.get(at) ?? {};
      return live.update(at, revision, { ...before, status: { message: "s".repeat(length) } }, by).outcome;
    };
    let count = 0;
    while (create(`${count}`, "others") === "written") count += 1;
    // Nobody creates more, and tenants write no more of what there is.
    let left = 20_000;
    while (left > 0 && update("0", 20_000 - left + 1, "others") === "written") left -= 1;
    expect([create("a", "nodes"), create("a", "cluster"), update("1", 100, "others")]).toEqual([
      "noRoom",
      "noRoom",
      "noRoom",
    ]);
    // Machines and components do. A status that is very long is not for the reserve.
    expect(update("1", 100_000, "nodes")).toBe("noRoom");
    expect([update("1", 1_000, "nodes"), update("2", 1_000, "cluster")]).toEqual(["written", "written"]);
    // Whatever machines write, components have something left, and what they write has an end, too.
    const fill = (by: Part) => {
      let written = 0;
      for (let index = 0; index < count; index += 1) if (update(`${index}`, 10_000, by) === "written") written += 1;
      return written;
    };
    expect(fill("nodes")).toBeGreaterThan(2);
    expect(fill("cluster")).toBeGreaterThan(0);
    expect(update(`${count - 1}`, 20_000, "cluster")).toBe("noRoom");
    const stored = live.list("pods", "own").reduce((sum, { weight }) => sum + weight, 0);
    expect(stored).toBeLessThanOrEqual(mebibyte * (1 + 1 / 8));
  });

  test("Events have no room beyond that of Events, whoever changes them [apiserver-live-objects-11]", () => {
    const live = liveObjects(memoryStore(), undefined, { ...defaultRoom, resourceBytes: 8_500 });
    const at = key("e", "own", "events");
    live.create(at, { ...object("e"), involvedObject: { namespace: "own" } });
    const update = (length: number, by: Part) => {
      const { object: before = object("e"), revision = 0 } = live.get(at) ?? {};
      return live.update(at, revision, { ...before, long: "x".repeat(length) }, by).outcome;
    };
    let length = 2_000;
    while (update(length, "others") === "written") length += 1;
    expect([update(length + 50, "nodes"), update(length + 50, "cluster")]).toEqual(["noRoom", "noRoom"]);
  });

  test("following the events from any revision yields the current objects", () => {
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
