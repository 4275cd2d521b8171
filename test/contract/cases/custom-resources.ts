import { expect } from "vitest";
import { type Json } from "../api-target.ts";
import {
  created,
  names,
  ownWidgetGroup,
  defined,
  definitions,
  eventually,
  expectEvents,
  table,
  widget,
  widgetGroup,
  widgets,
  type ContractCase,
} from "./case-fixture.ts";

export const customResourcesCases: readonly ContractCase[] = [
  {
    title: "an established definition is served: discovery, objects, columns",
    async run(api, namespace) {
      const { group, path } = widgetGroup(namespace);
      await eventually(async () =>
        expect((await api.get(`/apis/${group}/v1`)).at("resources")).toContainEqual(
          expect.objectContaining({ name: "widgets", kind: "Widget", shortNames: ["wd"] }),
        ),
      );
      await created(api, path, widget(group, "w"));
      const shown = await api.get(path, { accept: table });
      expect((shown.at("columnDefinitions") as Json[]).map((column) => column["name"])).toEqual(["Name", "Size"]);
      expect(shown.at("rows.0.cells")).toEqual(["w", 3]);
    },
  },
  {
    title: "custom objects are checked by schema and rules",
    async run(api, namespace) {
      const { group, path } = widgetGroup(namespace);
      const low = await api.post(path, widget(group, "w", { size: 0 }));
      expect(low.status).toBe(422);
      expect(low.at("message")).toContain(
        "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
      );
      const color = await api.post(path, widget(group, "w", { color: "blue" }));
      expect(color.at("message")).toContain('spec.color: Unsupported value: "blue": supported values: "red", "green"');
      const rule = await api.post(path, widget(group, "w", { size: 2, replicas: 3 }));
      expect(rule.at("message")).toContain("replicas may not exceed size");
      const type = await api.post(path, widget(group, "w", { size: "big" }));
      expect(type.status).toBe(422);
    },
  },
  {
    title: "an update of a custom object must name its version",
    async run(api, namespace) {
      const { group, path } = widgetGroup(namespace);
      await created(api, path, widget(group, "w"));
      const reply = await api.put(`${path}/w`, widget(group, "w", { size: 5 }));
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toContain(
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
      );
    },
  },
  {
    title: "apply merges list maps of custom objects by their keys",
    async run(api, namespace) {
      const { group, path } = widgetGroup(namespace);
      const apply = (manager: string, parts: readonly Json[]) =>
        api.patch(`${path}/w?fieldManager=${manager}`, "apply", widget(group, "w", { parts }));
      await apply("one", [{ name: "a", count: 1 }]);
      const both = await apply("two", [{ name: "b", count: 2 }]);
      expect(both.at("spec.parts")).toEqual([
        { name: "a", count: 1 },
        { name: "b", count: 2 },
      ]);
      const less = await apply("one", []);
      expect(less.at("spec.parts")).toEqual([{ name: "b", count: 2 }]);
    },
  },
  {
    title: "a definition with a broken schema is refused by field",
    async run(api, namespace) {
      const group = `${namespace}.example.com`;
      const broken = structuredClone(widgets(group)) as { spec: { versions: { schema: unknown }[] } };
      for (const version of broken.spec.versions)
        version.schema = {
          openAPIV3Schema: { type: "object", properties: { spec: { properties: { a: { type: "string" } } } } },
        };
      const reply = await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", broken);
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toContain("must not be empty for specified object fields");
    },
  },
  {
    title: "deleting a definition deletes its objects, and waits for finalizers",
    async run(api, namespace) {
      const { group, path } = await ownWidgetGroup(api, namespace);
      const crd = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`;
      await created(api, path, widget(group, "free"));
      await created(api, path, {
        ...widget(group, "held"),
        metadata: { name: "held", finalizers: ["example.com/hold"] },
      });
      await api.delete(crd);
      expect((await api.get(crd)).at("metadata.deletionTimestamp")).toBeDefined();
      // A real API server learns of the deletion through a watch.
      await eventually(async () =>
        expect((await api.post(`${path}?dryRun=All`, widget(group, "late"))).at("message")).toBe(
          `widgets.${group} "late" is forbidden: create not allowed while custom resource definition is terminating`,
        ),
      );
      await eventually(async () => expect(names((await api.get(path)).json)).toEqual(["held"]));
      // A real API server deletes objects side by side: the other one may be gone before this one is marked.
      await eventually(async () =>
        expect((await api.get(`${path}/held`)).at("metadata.deletionTimestamp")).toBeDefined(),
      );
      const watch = await api.watch(`${path}?watch=true`);
      await expectEvents(watch, ["ADDED held"]);
      await api.patch(`${path}/held`, "merge", { metadata: { finalizers: null } });
      await expectEvents(watch, ["DELETED held"]);
      expect(await watch.next()).toBeUndefined();
      await eventually(async () => {
        expect((await api.get(crd)).status).toBe(404);
        expect((await api.get(path)).status).toBe(404);
      });
    },
  },
  {
    title: "an object is the same in every served version of its definition",
    async run(api, namespace) {
      const group = `${namespace}.example.com`;
      const both = widgets(group);
      const [first] = both.spec.versions;
      await defined(api, {
        ...both,
        spec: {
          ...both.spec,
          versions: [
            first,
            { ...first, name: "v1beta1", storage: false },
            { ...first, name: "v1alpha1", storage: false, served: false },
          ],
        },
      });
      const path = (version: string) => `/apis/${group}/${version}/namespaces/${namespace}/widgets`;
      await created(api, path("v1beta1"), { ...widget(group, "w", { size: 7 }), apiVersion: `${group}/v1beta1` });
      expect((await api.get(`${path("v1")}/w`)).json).toMatchObject({ apiVersion: `${group}/v1`, spec: { size: 7 } });
      expect((await api.get(`${path("v1beta1")}/w`)).at("apiVersion")).toBe(`${group}/v1beta1`);
      expect((await api.get(`${path("v1alpha1")}/w`)).status).toBe(404);
      const watch = await api.watch(`${path("v1beta1")}?watch=true`);
      const [event] = await expectEvents(watch, ["ADDED w"]);
      expect(event?.["apiVersion"]).toBe(`${group}/v1beta1`);
      await watch.close();
      const crd = await api.get(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`);
      expect(crd.at("status.storedVersions")).toEqual(["v1"]);
    },
  },
  {
    title: "a definition with the names of another is not established",
    async run(api, namespace) {
      const { group } = await ownWidgetGroup(api, namespace);
      const other = widgets(group);
      const reply = await created(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        ...other,
        metadata: { name: `gizmos.${group}` },
        spec: { ...other.spec, names: { plural: "gizmos", singular: "gizmo", kind: "Widget", listKind: "WidgetList" } },
      });
      await eventually(async () => {
        const definition = await api.get(`${definitions}/${String(reply.at("metadata.name"))}`);
        expect(definition.at("status.conditions")).toContainEqual(
          expect.objectContaining({ type: "NamesAccepted", status: "False", reason: "ListKindConflict" }),
        );
      });
      expect((await api.get(`/apis/${group}/v1/namespaces/${namespace}/gizmos`)).status).toBe(404);
    },
  },
  {
    title: "an update that makes two existing items duplicates is refused",
    async run(api, namespace) {
      const { group, path } = widgetGroup(namespace);
      const made = await created(api, path, widget(group, "w", { parts: [{ name: "a", count: 1 }] }));
      const reply = await api.put(`${path}/w`, {
        ...made.json,
        spec: {
          parts: [
            { name: "a", count: 1 },
            { name: "a", count: 1 },
            { name: "a", count: 1 },
          ],
        },
      });
      expect(reply.at("details.causes")).toEqual([
        { reason: "FieldValueDuplicate", field: "spec.parts[1]", message: 'Duplicate value: {"name":"a"}' },
      ]);
    },
  },
  {
    title: "a value of a wrong type outside status makes /status drop the managers",
    async run(api, namespace) {
      const { group, path } = widgetGroup(namespace);
      await created(api, path, widget(group, "w"));
      const reply = await api.patch(`${path}/w/status`, "merge", { spec: { size: "big" } });
      expect(reply.status, reply.text).toBe(200);
      expect(reply.at("spec.size")).toBe(3);
      expect(reply.at("metadata.managedFields")).toBeUndefined();
    },
  },
];
