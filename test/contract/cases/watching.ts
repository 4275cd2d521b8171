import { expect } from "vitest";
import { at, type Json } from "../api-target.ts";
import {
  configMap,
  core,
  created,
  expectEvents,
  pod,
  table,
  widget,
  widgetGroup,
  type ContractCase,
} from "./case-fixture.ts";

export const watchingCases: readonly ContractCase[] = [
  {
    title: "a watch from a revision reports the later events, in order",
    async run(api, namespace) {
      const path = core(namespace, "configmaps");
      const first = await created(api, path, configMap("a"));
      await created(api, path, configMap("b"));
      const watch = await api.watch(
        `${path}?watch=true&resourceVersion=${String(first.at("metadata.resourceVersion"))}`,
      );
      await api.patch(`${path}/b`, "merge", { data: { key: "other" } });
      await api.delete(`${path}/a`);
      const [, modified, gone] = await expectEvents(watch, ["ADDED b", "MODIFIED b", "DELETED a"]);
      expect(at(modified, "data.key")).toBe("other");
      expect(Number(at(gone, "metadata.resourceVersion"))).toBeGreaterThan(
        Number(at(modified, "metadata.resourceVersion")),
      );
      await watch.close();
    },
  },
  {
    title: "a watch without a revision begins with the present state",
    async run(api, namespace) {
      const path = `${core(namespace, "secrets")}`;
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } });
      const watch = await api.watch(`${path}?watch=true`);
      await expectEvents(watch, ["ADDED a"]);
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "b" } });
      await expectEvents(watch, ["ADDED b"]);
      await watch.close();
    },
  },
  {
    title: "a watch with a selector reports what enters and what leaves it",
    async run(api, namespace) {
      const path = core(namespace, "configmaps");
      const made = await created(api, path, configMap("a", {}, { labels: { app: "x" } }));
      const watch = await api.watch(
        `${path}?watch=true&labelSelector=app%3Dy&resourceVersion=${String(made.at("metadata.resourceVersion"))}`,
      );
      await api.patch(`${path}/a`, "merge", { metadata: { labels: { app: "y" } } });
      await api.patch(`${path}/a`, "merge", { data: { k: "v" } });
      await api.patch(`${path}/a`, "merge", { metadata: { labels: { app: "z" } } });
      const [, , gone] = await expectEvents(watch, ["ADDED a", "MODIFIED a", "DELETED a"]);
      expect(at(gone, "metadata.labels.app")).toBe("y");
      await watch.close();
    },
  },
  {
    title: "a watch of one name reports no other",
    async run(api, namespace) {
      const path = core(namespace, "configmaps");
      const made = await created(api, path, configMap("a"));
      const watch = await api.watch(
        `${path}?watch=true&fieldSelector=metadata.name%3Da&resourceVersion=${String(made.at("metadata.resourceVersion"))}`,
      );
      await created(api, path, configMap("b"));
      await api.patch(`${path}/a`, "merge", { data: { k: "v" } });
      await expectEvents(watch, ["MODIFIED a"]);
      await watch.close();
    },
  },
  {
    title: "sendInitialEvents gives the state and then a bookmark that says so",
    async run(api, namespace) {
      const path = core(namespace, "secrets");
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } });
      const watch = await api.watch(
        `${path}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
      );
      const [, bookmark] = await expectEvents(watch, ["ADDED a", "BOOKMARK"]);
      expect((at(bookmark, "metadata.annotations") as Json)["k8s.io/initial-events-end"]).toBe("true");
      await watch.close();
    },
  },
  {
    title: "a watch ends after timeoutSeconds, with a last bookmark",
    async run(api, namespace) {
      const watch = await api.watch(
        `${core(namespace, "secrets")}?watch=true&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=1`,
      );
      await expectEvents(watch, ["BOOKMARK"]);
      expect(await watch.next()).toBeUndefined();
    },
  },
  {
    title: "a watch in Tables carries rows",
    async run(api, namespace) {
      await created(api, core(namespace, "pods"), pod("p"));
      const watch = await api.watch(`${core(namespace, "pods")}?watch=true&resourceVersion=0`, { accept: table });
      const event = await watch.next();
      expect(event?.object).toMatchObject({ kind: "Table" });
      expect((at(event?.object, "rows.0.cells") as unknown[])[0]).toBe("p");
      await watch.close();
    },
  },
  {
    title: "a watch resumes where another one ended, and misses nothing",
    async run(api, namespace) {
      const path = core(namespace, "configmaps");
      const made = await created(api, path, configMap("a"));
      const first = await api.watch(
        `${path}?watch=true&resourceVersion=${String(made.at("metadata.resourceVersion"))}`,
      );
      await created(api, path, configMap("b"));
      const [seen] = await expectEvents(first, ["ADDED b"]);
      await first.close();
      await api.patch(`${path}/b`, "merge", { data: { key: "2" } });
      await api.delete(`${path}/a`);
      const second = await api.watch(
        `${path}?watch=true&resourceVersion=${String(at(seen, "metadata.resourceVersion"))}`,
      );
      await expectEvents(second, ["MODIFIED b", "DELETED a"]);
      await second.close();
    },
  },
  {
    title: "events of a watch have rising versions, each the object's own",
    async run(api, namespace) {
      const path = core(namespace, "configmaps");
      const made = await created(api, path, configMap("a"));
      const watch = await api.watch(
        `${path}?watch=true&resourceVersion=${String(made.at("metadata.resourceVersion"))}`,
      );
      const versions: unknown[] = [];
      for (const key of ["1", "2", "3"])
        versions.push((await api.patch(`${path}/a`, "merge", { data: { key } })).at("metadata.resourceVersion"));
      const events = await expectEvents(watch, ["MODIFIED a", "MODIFIED a", "MODIFIED a"]);
      expect(events.map((event) => at(event, "metadata.resourceVersion"))).toEqual(versions);
      expect(versions.map(Number)).toEqual(versions.map(Number).toSorted((a, b) => a - b));
      await watch.close();
    },
  },
  {
    title: "a write that changes nothing is no event",
    async run(api, namespace) {
      const path = core(namespace, "configmaps");
      const made = await created(api, path, configMap("a"));
      const watch = await api.watch(
        `${path}?watch=true&resourceVersion=${String(made.at("metadata.resourceVersion"))}`,
      );
      await api.patch(`${path}/a`, "merge", { data: { key: "value" } });
      await api.patch(`${path}/a?dryRun=All`, "merge", { data: { key: "dry" } });
      await created(api, path, configMap("b"));
      await expectEvents(watch, ["ADDED b"]);
      await watch.close();
    },
  },
  {
    title: "a watch with a field selector reports what enters and what leaves it",
    async run(api, namespace) {
      const path = core(namespace, "pods");
      const made = await created(api, path, pod("p", { schedulerName: "nobody" }));
      const watch = await api.watch(
        `${path}?watch=true&fieldSelector=spec.nodeName%3Dn1&resourceVersion=${String(made.at("metadata.resourceVersion"))}`,
      );
      await created(api, `${path}/p/binding`, {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name: "p" },
        target: { kind: "Node", name: "n1" },
      });
      await expectEvents(watch, ["ADDED p"]);
      await api.delete(`${path}/p`, { gracePeriodSeconds: 0 });
      // Controllers may write a bound pod's status meanwhile.
      let event = await watch.next();
      while (event?.type === "MODIFIED") event = await watch.next();
      expect(event?.type).toBe("DELETED");
      await watch.close();
    },
  },
  {
    title: "a watch sees a finalizer's removal as a deletion",
    async run(api, namespace) {
      const path = core(namespace, "configmaps");
      const made = await created(api, path, configMap("a", {}, { finalizers: ["example.com/hold"] }));
      const watch = await api.watch(
        `${path}?watch=true&resourceVersion=${String(made.at("metadata.resourceVersion"))}`,
      );
      await api.delete(`${path}/a`);
      await api.patch(`${path}/a`, "merge", { metadata: { finalizers: null } });
      const [marked] = await expectEvents(watch, ["MODIFIED a", "DELETED a"]);
      expect(at(marked, "metadata.deletionTimestamp")).toBeDefined();
      await watch.close();
    },
  },
  {
    title: "a watch of metadata carries metadata",
    async run(api, namespace) {
      const path = core(namespace, "secrets");
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } });
      const watch = await api.watch(`${path}?watch=true&resourceVersion=0`, {
        accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
      });
      const [seen] = await expectEvents(watch, ["ADDED a"]);
      expect(seen).toMatchObject({ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1" });
      expect(seen).not.toHaveProperty("type");
      await watch.close();
    },
  },
  {
    title: "a watch of custom objects has the requested version",
    async run(api, namespace) {
      const { group, path } = widgetGroup(namespace);
      const watch = await api.watch(`${path}?watch=true`);
      await created(api, path, widget(group, "w", { size: 4 }));
      const [seen] = await expectEvents(watch, ["ADDED w"]);
      expect(seen).toMatchObject({ apiVersion: `${group}/v1`, kind: "Widget", spec: { size: 4 } });
      await watch.close();
    },
  },
  {
    title: "the last event of an object with a finalizer shows the stored state, the answer the new one",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await created(
        api,
        core(namespace, "configmaps"),
        configMap("a", { x: "1" }, { finalizers: ["example.com/hold"] }),
      );
      const marked = await api.delete(path);
      const watch = await api.watch(
        `${core(namespace, "configmaps")}?watch=true&resourceVersion=${String(marked.at("metadata.resourceVersion"))}`,
      );
      const released = await api.patch(path, "merge", { metadata: { finalizers: null }, data: { x: "2" } });
      expect([released.at("metadata.finalizers"), released.at("data.x")]).toEqual([undefined, "2"]);
      const event = await watch.next();
      expect([event?.type, at(event?.object, "metadata.finalizers"), at(event?.object, "data.x")]).toEqual([
        "DELETED",
        ["example.com/hold"],
        "1",
      ]);
      await watch.close();
    },
  },
];
