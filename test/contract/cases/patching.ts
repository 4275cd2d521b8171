import { expect } from "vitest";
import { type Json } from "../api-target.ts";
import { apps, configMap, core, created, deployment, widget, widgetGroup, type ContractCase } from "./case-fixture.ts";

export const patchingCases: readonly ContractCase[] = [
  {
    title: "a JSON patch applies, and a failed test refuses all of it",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const reply = await api.patch(path, "json", [
        { op: "test", path: "/data/key", value: "value" },
        { op: "add", path: "/data/more", value: "1" },
      ]);
      expect(reply.json).toMatchObject({ data: { key: "value", more: "1" } });
      const refused = await api.patch(path, "json", [
        { op: "remove", path: "/data/more" },
        { op: "test", path: "/data/key", value: "other" },
      ]);
      expect(refused.status).toBe(422);
      expect((await api.get(path)).at("data.more")).toBe("1");
    },
  },
  {
    title: "a merge patch sets and null removes",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a", { x: "1", y: "2" }));
      expect(
        (await api.patch(core(namespace, "configmaps", "a"), "merge", { data: { x: null, z: "3" } })).at("data"),
      ).toEqual({ y: "2", z: "3" });
    },
  },
  {
    title: "a merge patch with an old resourceVersion conflicts",
    async run(api, namespace) {
      const first = await created(api, core(namespace, "configmaps"), configMap("a"));
      await api.patch(core(namespace, "configmaps", "a"), "merge", { data: { x: "1" } });
      const reply = await api.patch(core(namespace, "configmaps", "a"), "merge", {
        metadata: { resourceVersion: first.at("metadata.resourceVersion") },
        data: { x: "2" },
      });
      expect(reply.status).toBe(409);
    },
  },
  {
    title: "a strategic patch merges containers by name",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d"));
      const reply = await api.patch(apps(namespace, "deployments", "d"), "strategic", {
        spec: { template: { spec: { containers: [{ name: "side", image: "example.com/side:1" }] } } },
      });
      expect(
        (reply.at("spec.template.spec.containers") as Json[]).map((container) => container["name"]).sort(),
      ).toEqual(["main", "side"]);
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
  {
    title: "a strategic patch or a merge patch that removes the name is refused",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const nameless = "the name of the object (a based on URL) was undeterminable: name must be provided";
      for (const patch of [
        { $patch: "replace", data: { y: "2" } },
        { $patch: "delete" },
        { $retainKeys: ["data"], data: { y: "2" } },
      ]) {
        const reply = await api.patch(path, "strategic", patch);
        expect([reply.status, reply.at("message")]).toEqual([400, nameless]);
      }
      expect((await api.patch(path, "merge", { metadata: { name: null } })).at("message")).toBe(nameless);
      expect(
        (
          await api.patch(`${core(namespace, "configmaps", "b")}?fieldManager=me`, "apply", {
            apiVersion: "v1",
            kind: "ConfigMap",
          })
        ).at("message"),
      ).toBe("the name of the object (b based on URL) was undeterminable: name must be provided");
      expect(
        (await api.patch(path, "strategic", { $patch: "replace", metadata: { name: "a" }, data: { y: "2" } })).at(
          "data",
        ),
      ).toEqual({ y: "2" });
      expect(
        (await api.patch(path, "strategic", { $retainKeys: ["data"], metadata: { name: "a" } })).at("message"),
      ).toBe("invalid patch format of retainKeys");
    },
  },
  {
    title: "a strategic patch replaces an atomic list as it is, directives included",
    async run(api, namespace) {
      const path = apps(namespace, "deployments", "d");
      await created(
        api,
        apps(namespace, "deployments"),
        deployment("d", 1, { tolerations: [{ key: "k", operator: "Exists" }] }),
      );
      const reply = await api.patch(path, "strategic", {
        spec: { template: { spec: { tolerations: [{ key: "k", $patch: "delete" }] } } },
      });
      expect(reply.status, reply.text).toBe(200);
      expect(reply.at("spec.template.spec.tolerations")).toEqual([{ key: "k" }]);
      await api.patch(path, "strategic", { spec: { template: { spec: { tolerations: null } } } });
      expect(
        (
          await api.patch(path, "strategic", {
            spec: { template: { spec: { tolerations: [{ key: "k", $patch: "delete" }] } } },
          })
        ).at("spec.template.spec.tolerations"),
      ).toBeUndefined();
    },
  },
  {
    title: "values of a wrong type in a strategic patch are refused in the words of Go's converter",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a"));
      for (const [patch, problem] of [
        [{ data: "text" }, 'Invalid value: "map[data:text]": cannot restore map from string'],
        [{ data: { x: 1 } }, 'Invalid value: "map[data:map[x:1]]": cannot convert int64 to string'],
        [{ data: { x: true } }, 'Invalid value: "map[data:map[x:true]]": unrecognized type: string'],
        [{ metadata: "x" }, 'Invalid value: "map[metadata:x]": cannot restore struct from: string'],
        [
          { metadata: { finalizers: "x" } },
          'Invalid value: "map[metadata:map[finalizers:x]]": cannot restore slice from string',
        ],
        [{ immutable: "x" }, 'Invalid value: "map[immutable:x]": unrecognized type: bool'],
      ] as const) {
        const reply = await api.patch(core(namespace, "configmaps", "a"), "strategic", patch);
        expect(reply.at("details.causes.0")).toEqual({ reason: "FieldValueInvalid", field: "patch", message: problem });
      }
      await created(api, apps(namespace, "deployments"), deployment("d"));
      const reply = await api.patch(apps(namespace, "deployments", "d"), "strategic", { spec: { replicas: "two" } });
      expect(reply.at("message")).toBe(
        ' "" is invalid: patch: Invalid value: "map[spec:map[replicas:two]]": unrecognized type: int32',
      );
    },
  },
  {
    title: "an empty list of managed fields resets them, except those of a custom object",
    async run(api, namespace) {
      const { group, path: place } = widgetGroup(namespace);
      const custom = await created(api, place, widget(group, "w"));
      expect(
        (await api.patch(`${place}/w`, "merge", { metadata: { managedFields: [] } })).at("metadata.managedFields"),
      ).toEqual(custom.at("metadata.managedFields"));
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const path = core(namespace, "configmaps", "a");
      const live = await api.get(path);
      expect(live.at("metadata.managedFields")).toHaveLength(1);
      const reset = await api.patch(path, "merge", { metadata: { managedFields: [] } });
      expect(reset.at("metadata.managedFields")).toBeUndefined();
      expect(reset.at("metadata.resourceVersion")).not.toBe(live.at("metadata.resourceVersion"));
      // From now on managers are not recorded, until the next apply.
      expect((await api.patch(path, "merge", { data: { x: "1" } })).at("metadata.managedFields")).toBeUndefined();
      const applied = await api.patch(`${path}?fieldManager=me`, "apply", configMap("a", { y: "1" }));
      expect((applied.at("metadata.managedFields") as Json[]).map((entry) => entry["manager"]).toSorted()).toEqual([
        "before-first-apply",
        "me",
      ]);
    },
  },
  {
    title: "a Deployment with Recreate gets one error alone for its rolling update",
    async run(api, namespace) {
      const body = deployment("d");
      const reply = await api.post(apps(namespace, "deployments"), {
        ...body,
        spec: { ...body.spec, strategy: { type: "Recreate", rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } } },
      });
      expect((reply.at("details.causes") as Json[]).map((cause) => cause["field"])).toEqual([
        "spec.strategy.rollingUpdate",
      ]);
    },
  },
];
