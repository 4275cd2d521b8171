import { expect } from "vitest";
import { type Json } from "../api-target.ts";
import { apps, configMap, core, created, names, pod, table, type ContractCase } from "./case-fixture.ts";

export const readingCases: readonly ContractCase[] = [
  {
    title: "a missing object answers 404 with its name",
    async run(api, namespace) {
      const reply = await api.get(apps(namespace, "deployments", "ghost"));
      expect(reply.json).toEqual({
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: 'deployments.apps "ghost" not found',
        reason: "NotFound",
        details: { name: "ghost", group: "apps", kind: "deployments" },
        code: 404,
      });
    },
  },
  {
    title: "a list has kind, version and revision, and only the namespace's objects",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("b"));
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const reply = await api.get(`${core(namespace, "configmaps")}?fieldSelector=metadata.name!=kube-root-ca.crt`);
      expect(reply.json).toMatchObject({ kind: "ConfigMapList", apiVersion: "v1" });
      expect(reply.at("metadata.resourceVersion")).toMatch(/^\d+$/);
      expect(names(reply.json)).toEqual(["a", "b"]);
      const everywhere = await api.get("/api/v1/configmaps");
      expect(names(everywhere.json)).toEqual(expect.arrayContaining(["a", "b"]));
    },
  },
  {
    title: "label selectors select by equality, sets and existence; an invalid one answers 400",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a", {}, { labels: { app: "x", tier: "1" } }));
      await created(api, core(namespace, "configmaps"), configMap("b", {}, { labels: { app: "y" } }));
      const chosen = async (selector: string) =>
        names((await api.get(`${core(namespace, "configmaps")}?labelSelector=${encodeURIComponent(selector)}`)).json);
      expect(await chosen("app=x")).toEqual(["a"]);
      expect(await chosen("app in (x,y)")).toEqual(["a", "b"]);
      expect(await chosen("app,!tier")).toEqual(["b"]);
      expect(await chosen("app!=x,app")).toEqual(["b"]);
      expect(
        (await api.get(`${core(namespace, "configmaps")}?labelSelector=${encodeURIComponent("a in (")}`)).status,
      ).toBe(400);
    },
  },
  {
    title: "field selectors select by name and by the kind's fields; others answer 400",
    async run(api, namespace) {
      await created(api, core(namespace, "pods"), pod("a", { nodeName: "n1" }));
      await created(api, core(namespace, "pods"), pod("b", { nodeName: "n2" }));
      const chosen = async (selector: string) =>
        names((await api.get(`${core(namespace, "pods")}?fieldSelector=${encodeURIComponent(selector)}`)).json);
      expect(await chosen("metadata.name=a")).toEqual(["a"]);
      expect(await chosen("spec.nodeName=n2")).toEqual(["b"]);
      expect(await chosen("spec.nodeName=n2,status.phase!=Pending")).toEqual([]);
      expect((await api.get(`${core(namespace, "pods")}?fieldSelector=spec.color%3Dred`)).status).toBe(400);
    },
  },
  {
    title: "limit and continue give pages of one revision",
    async run(api, namespace) {
      const path = `/api/v1/namespaces/${namespace}/secrets`;
      for (const name of ["a", "b", "c", "d", "e"])
        await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name } });
      const first = await api.get(`${path}?limit=2`);
      expect(names(first.json)).toEqual(["a", "b"]);
      expect(first.at("metadata.remainingItemCount")).toBe(3);
      await api.delete(`${path}/c`);
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "bb" } });
      const second = await api.get(`${path}?limit=2&continue=${String(first.at("metadata.continue"))}`);
      expect(names(second.json)).toEqual(["c", "d"]);
      expect(second.at("metadata.resourceVersion")).toBe(first.at("metadata.resourceVersion"));
      const third = await api.get(`${path}?limit=2&continue=${String(second.at("metadata.continue"))}`);
      expect(names(third.json)).toEqual(["e"]);
      expect(third.at("metadata.continue")).toBeUndefined();
      expect((await api.get(`${path}?limit=2&continue=rubbish`)).status).toBe(400);
    },
  },
  {
    title: "a list at an exact revision shows the past, one of the future times out",
    async run(api, namespace) {
      const path = `/api/v1/namespaces/${namespace}/secrets`;
      const first = await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } });
      const then = String(first.at("metadata.resourceVersion"));
      await created(api, path, { apiVersion: "v1", kind: "Secret", metadata: { name: "b" } });
      await api.delete(`${path}/a`);
      expect(names((await api.get(`${path}?resourceVersion=${then}&resourceVersionMatch=Exact`)).json)).toEqual(["a"]);
      expect(names((await api.get(`${path}?resourceVersion=${then}&resourceVersionMatch=NotOlderThan`)).json)).toEqual([
        "b",
      ]);
      expect(names((await api.get(`${path}?resourceVersion=0`)).json)).toEqual(["b"]);
      const future = await api.get(`${path}?resourceVersion=999999999`);
      expect(future.status).toBe(504);
      expect(future.at("details.causes.0.reason")).toBe("ResourceVersionTooLarge");
    },
  },
  {
    title: "a Table has the kind's columns and rows with metadata",
    async run(api, namespace) {
      await created(api, core(namespace, "pods"), pod("p"));
      const reply = await api.get(core(namespace, "pods"), { accept: table });
      expect(reply.json).toMatchObject({ kind: "Table", apiVersion: "meta.k8s.io/v1" });
      expect((reply.at("columnDefinitions") as Json[]).map((column) => column["name"]).slice(0, 5)).toEqual([
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
      ]);
      expect((reply.at("rows.0.cells") as unknown[]).slice(0, 3)).toEqual(["p", "0/1", "Pending"]);
      expect(reply.at("rows.0.object.kind")).toBe("PartialObjectMetadata");
      const whole = await api.get(`${core(namespace, "pods", "p")}?includeObject=Object`, { accept: table });
      expect(whole.at("rows.0.object.kind")).toBe("Pod");
    },
  },
  {
    title: "metadata alone can be asked for",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const one = await api.get(core(namespace, "configmaps", "a"), {
        accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
      });
      expect(one.json).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "a" } });
      expect(one.at("data")).toBeUndefined();
      const list = await api.get(core(namespace, "configmaps"), {
        accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
      });
      expect(list.at("kind")).toBe("PartialObjectMetadataList");
    },
  },
  {
    title: "an unknown form answers 406 and names the known ones",
    async run(api, namespace) {
      const reply = await api.get(core(namespace, "configmaps"), { accept: "text/html" });
      expect(reply.json).toMatchObject({ code: 406, reason: "NotAcceptable", details: {} });
      expect(reply.at("message")).toMatch(
        /^406: Not Acceptable\n\nAvailable representations: application\/json, application\/yaml/,
      );
      expect((await api.get(core(namespace, "configmaps"), { accept: "text/html,application/json" })).status).toBe(200);
    },
  },
  {
    title: "a list of one name has one page, whatever the limit",
    async run(api, namespace) {
      for (const name of ["a", "b", "c"]) await created(api, core(namespace, "configmaps"), configMap(name));
      const one = await api.get(`${core(namespace, "configmaps")}?limit=1&fieldSelector=metadata.name%3Da`);
      expect(names(one.json)).toEqual(["a"]);
      expect(one.at("metadata.continue")).toBeUndefined();
      expect(
        (await api.get(`${core(namespace, "configmaps")}?limit=1&fieldSelector=metadata.name%21%3Da`)).at(
          "metadata.continue",
        ),
      ).toBeDefined();
    },
  },
];
