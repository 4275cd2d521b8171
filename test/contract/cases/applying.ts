import { expect } from "vitest";
import { type Json } from "../api-target.ts";
import { configMap, core, created, widget, widgetGroup, type ContractCase } from "./case-fixture.ts";

export const applyingCases: readonly ContractCase[] = [
  {
    title: "apply creates, records owners, and changes nothing the second time",
    async run(api, namespace) {
      const path = `${core(namespace, "configmaps", "a")}?fieldManager=me`;
      const first = await api.patch(path, "apply", configMap("a"));
      expect(first.status).toBe(201);
      expect(first.at("metadata.managedFields.0")).toMatchObject({
        manager: "me",
        operation: "Apply",
        apiVersion: "v1",
        fieldsType: "FieldsV1",
        fieldsV1: { "f:data": { "f:key": {} } },
      });
      const second = await api.patch(path, "apply", configMap("a"));
      expect(second.status).toBe(200);
      expect(second.at("metadata.resourceVersion")).toBe(first.at("metadata.resourceVersion"));
    },
  },
  {
    title: "apply understands YAML",
    async run(api, namespace) {
      const reply = await api.patch(
        `${core(namespace, "configmaps", "a")}?fieldManager=me`,
        "apply",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n",
      );
      expect(reply.at("data.k")).toBe("v");
    },
  },
  {
    title: "apply without a field manager is refused",
    async run(api, namespace) {
      const reply = await api.patch(core(namespace, "configmaps", "a"), "apply", configMap("a"));
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toBe(
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
      );
    },
  },
  {
    title: "two appliers of one field conflict, and force takes the field over",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await api.patch(`${path}?fieldManager=one`, "apply", configMap("a", { x: "1" }));
      const reply = await api.patch(`${path}?fieldManager=two`, "apply", configMap("a", { x: "2" }));
      expect(reply.status).toBe(409);
      expect(reply.at("message")).toBe('Apply failed with 1 conflict: conflict with "one": .data.x');
      expect(reply.at("details.causes.0")).toEqual({
        reason: "FieldManagerConflict",
        message: 'conflict with "one"',
        field: ".data.x",
      });
      const forced = await api.patch(`${path}?fieldManager=two&force=true`, "apply", configMap("a", { x: "2" }));
      expect(forced.status).toBe(200);
      expect(forced.at("data.x")).toBe("2");
    },
  },
  {
    title: "a field that its applier no longer names is removed, unless another also owns it",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await api.patch(`${path}?fieldManager=one`, "apply", configMap("a", { mine: "1", ours: "1" }));
      await api.patch(`${path}?fieldManager=two`, "apply", configMap("a", { ours: "1" }));
      const reply = await api.patch(`${path}?fieldManager=one`, "apply", configMap("a", {}));
      expect(reply.at("data")).toEqual({ ours: "1" });
    },
  },
  {
    title: "apply to /status owns status only",
    async run(api, namespace) {
      const { group, path } = widgetGroup(namespace);
      await created(api, path, widget(group, "w"));
      const reply = await api.patch(`${path}/w/status?fieldManager=me`, "apply", {
        apiVersion: `${group}/v1`,
        kind: "Widget",
        metadata: { name: "w" },
        spec: { size: 9 },
        status: { phase: "Ready" },
      });
      expect(reply.status, reply.text).toBe(200);
      expect(reply.json).toMatchObject({ spec: { size: 3 }, status: { phase: "Ready" } });
      expect(reply.at("metadata.managedFields")).toContainEqual(
        expect.objectContaining({
          manager: "me",
          operation: "Apply",
          subresource: "status",
          fieldsV1: { "f:status": { "f:phase": {} } },
        }),
      );
    },
  },
  {
    title: "updates are owned by their manager, or by the user agent without one",
    async run(api, namespace) {
      await api.send("POST", core(namespace, "configmaps"), configMap("a"), { "user-agent": "robot/1.0 (linux)" });
      const reply = await api.patch(`${core(namespace, "configmaps", "a")}?fieldManager=hand`, "merge", {
        data: { more: "1" },
      });
      const owners = (reply.at("metadata.managedFields") as Json[]).map(
        (entry) => `${String(entry["manager"])} ${String(entry["operation"])}`,
      );
      expect(owners.sort()).toEqual(["hand Update", "robot Update"]);
    },
  },
  {
    title: "an applied list keeps its own order, and items of other owners keep their places",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      const apply = (manager: string, ...finalizers: readonly string[]) =>
        api.patch(`${path}?fieldManager=${manager}`, "apply", {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: "a", finalizers: finalizers.map((one) => `example.com/${one}`) },
        });
      const order = (reply: { at(path: string): unknown }) =>
        (reply.at("metadata.finalizers") as string[]).map((one) => one.replace("example.com/", "")).join("");
      expect(order(await apply("one", "b", "c", "d"))).toBe("bcd");
      expect(order(await apply("two", "d", "a", "b"))).toBe("cdab");
      expect(order(await apply("three", "e", "d"))).toBe("cedab");
      expect(order(await apply("one", "d", "c", "b"))).toBe("edacb");
      await api.patch(path, "merge", { metadata: { finalizers: null } });
    },
  },
];
