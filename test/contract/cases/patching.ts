import { expect } from "vitest";
import { type Json } from "../api-target.ts";
import { apps, configMap, core, created, deployment, widget, widgetGroup, type ContractCase } from "./kit.ts";

export const patchingCases: readonly ContractCase[] = [
  {
    title: "a JSON patch changes, and a failed test refuses all of it",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const reply = await api.patch(path, "json", [{ op: "test", path: "/data/key", value: "value" }, { op: "add", path: "/data/more", value: "1" }]);
      expect(reply.json).toMatchObject({ data: { key: "value", more: "1" } });
      const refused = await api.patch(path, "json", [{ op: "remove", path: "/data/more" }, { op: "test", path: "/data/key", value: "other" }]);
      expect(refused.status).toBe(422);
      expect((await api.get(path)).at("data.more")).toBe("1");
    },
  },
  {
    title: "a merge patch sets and null removes",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a", { x: "1", y: "2" }));
      expect((await api.patch(core(namespace, "configmaps", "a"), "merge", { data: { x: null, z: "3" } })).at("data")).toEqual({ y: "2", z: "3" });
    },
  },
  {
    title: "a merge patch with an old resourceVersion conflicts",
    async run(api, namespace) {
      const first = await created(api, core(namespace, "configmaps"), configMap("a"));
      await api.patch(core(namespace, "configmaps", "a"), "merge", { data: { x: "1" } });
      const reply = await api.patch(core(namespace, "configmaps", "a"), "merge", { metadata: { resourceVersion: first.at("metadata.resourceVersion") }, data: { x: "2" } });
      expect(reply.status).toBe(409);
    },
  },
  {
    title: "a strategic patch merges containers by name",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d"));
      const reply = await api.patch(apps(namespace, "deployments", "d"), "strategic", { spec: { template: { spec: { containers: [{ name: "side", image: "example.com/side:1" }] } } } });
      expect((reply.at("spec.template.spec.containers") as Json[]).map((container) => container["name"]).sort()).toEqual(["main", "side"]);
    },
  },
  {
    title: "custom resources answer 415 to strategic patches",
    async run(api, namespace) {
      const { group, path } = widgetGroup(namespace);
      await created(api, path, widget(group, "w"));
      expect((await api.patch(`${path}/w`, "strategic", { spec: { size: 4 } })).status).toBe(415);
      expect((await api.patch(`${path}/w`, "merge", { spec: { size: 4 } })).at("spec.size")).toBe(4);
    },
  },
];
