import { expect } from "vitest";
import { type Api, at, type Json } from "../api-target.ts";
import { type ContractCase, configMap, core, created, deployment, apps, eventually, names } from "./case-fixture.ts";

/** Deletion options, and their effect on dependents. */
type Propagation = "Background" | "Foreground" | "Orphan";

const maps = (namespace: string, name = "") => core(namespace, "configmaps", name);
const ownerReference = (owner: Json, more: Json = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  name: at(owner, "metadata.name"),
  uid: at(owner, "metadata.uid"),
  ...more,
});

/** A ConfigMap that `owners` own. */
async function owned(
  api: Api,
  namespace: string,
  name: string,
  owners: readonly Json[],
  metadata: Json = {},
): Promise<Json> {
  return (await created(api, maps(namespace), configMap(name, {}, { ...metadata, ownerReferences: owners }))).json;
}

async function owner(api: Api, namespace: string, name = "owner"): Promise<Json> {
  return (await created(api, maps(namespace), configMap(name))).json;
}

const gone = (api: Api, path: string) => eventually(async () => expect((await api.get(path)).status).toBe(404));

/** What happens to the dependents of a deleted object. */
export const ownersCases: readonly ContractCase[] = [
  ...([["Background"], ["Foreground"], [undefined]] as readonly (readonly [Propagation | undefined])[]).map(
    ([propagationPolicy]): ContractCase => ({
      title: `a dependent is deleted with its owner: ${propagationPolicy ?? "by default"}`,
      async run(api, namespace) {
        const one = await owner(api, namespace);
        const child = await owned(api, namespace, "child", [ownerReference(one)]);
        await owned(api, namespace, "grandchild", [ownerReference(child)]);
        await api.delete(maps(namespace, "owner"), propagationPolicy === undefined ? undefined : { propagationPolicy });
        for (const name of ["owner", "child", "grandchild"]) await gone(api, maps(namespace, name));
      },
    }),
  ),
  {
    title: "an orphan stays, without its owner",
    async run(api, namespace) {
      await owned(api, namespace, "child", [ownerReference(await owner(api, namespace))]);
      await api.delete(maps(namespace, "owner"), { propagationPolicy: "Orphan" });
      await gone(api, maps(namespace, "owner"));
      expect((await api.get(maps(namespace, "child"))).at("metadata.ownerReferences")).toBeUndefined();
    },
  },
  {
    title: "in the foreground an owner waits for dependents that block it",
    async run(api, namespace) {
      const one = await owner(api, namespace);
      await owned(api, namespace, "child", [ownerReference(one, { blockOwnerDeletion: true })], {
        finalizers: ["example.com/hold"],
      });
      await api.delete(maps(namespace, "owner"), { propagationPolicy: "Foreground" });
      await eventually(async () =>
        expect((await api.get(maps(namespace, "child"))).at("metadata.deletionTimestamp")).toBeDefined(),
      );
      expect((await api.get(maps(namespace, "owner"))).at("metadata.finalizers")).toEqual(["foregroundDeletion"]);
      await api.patch(maps(namespace, "child"), "merge", { metadata: { finalizers: null } });
      await gone(api, maps(namespace, "owner"));
    },
  },
  {
    title: "in the foreground an owner does not wait for dependents that do not block it",
    async run(api, namespace) {
      const one = await owner(api, namespace);
      await owned(api, namespace, "child", [ownerReference(one)], { finalizers: ["example.com/hold"] });
      await api.delete(maps(namespace, "owner"), { propagationPolicy: "Foreground" });
      await gone(api, maps(namespace, "owner"));
      await eventually(async () =>
        expect((await api.get(maps(namespace, "child"))).at("metadata.deletionTimestamp")).toBeDefined(),
      );
      await api.patch(maps(namespace, "child"), "merge", { metadata: { finalizers: null } });
    },
  },
  {
    title: "a dependent with another owner stays, without the deleted one",
    async run(api, namespace) {
      const [one, other] = [await owner(api, namespace), await owner(api, namespace, "other")];
      await owned(api, namespace, "child", [ownerReference(one), ownerReference(other)]);
      await api.delete(maps(namespace, "owner"), { propagationPolicy: "Background" });
      await eventually(async () =>
        expect((await api.get(maps(namespace, "child"))).at("metadata.ownerReferences")).toEqual([
          ownerReference(other),
        ]),
      );
    },
  },
  {
    title: "a dependent of a missing owner is deleted",
    async run(api, namespace) {
      const one = await owner(api, namespace);
      await owned(api, namespace, "child", [
        { ...ownerReference(one), name: "ghost", uid: "00000000-0000-0000-0000-000000000000" },
      ]);
      await gone(api, maps(namespace, "child"));
    },
  },
  {
    title: "an object of the same name and another uid is not the owner",
    async run(api, namespace) {
      const one = await owner(api, namespace);
      await owned(api, namespace, "child", [{ ...ownerReference(one), uid: "00000000-0000-0000-0000-000000000000" }]);
      await gone(api, maps(namespace, "child"));
      expect((await api.get(maps(namespace, "owner"))).status).toBe(200);
    },
  },
  {
    title: "a deleted Deployment takes its ReplicaSets and pods with it",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d", 2));
      await eventually(async () => expect(names((await api.get(core(namespace, "pods"))).json)).toHaveLength(2));
      await api.delete(apps(namespace, "deployments", "d"), { propagationPolicy: "Foreground" });
      await gone(api, apps(namespace, "deployments", "d"));
      expect(names((await api.get(apps(namespace, "replicasets"))).json)).toEqual([]);
    },
  },
  {
    title: "a Deployment that is deleted with Orphan leaves its ReplicaSet",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d", 1));
      // The collector of a real server deletes only objects that it has seen: once both have been checked, it has.
      await eventually(async () => {
        expect((await api.get(apps(namespace, "replicasets"))).at("items.0.status.replicas")).toBe(1);
        expect((await api.get(apps(namespace, "deployments", "d"))).at("status.replicas")).toBe(1);
      });
      await api.delete(apps(namespace, "deployments", "d"), { propagationPolicy: "Orphan" });
      await gone(api, apps(namespace, "deployments", "d"));
      const sets = (await api.get(apps(namespace, "replicasets"))).at("items.0.metadata") as Json;
      expect(sets["ownerReferences"]).toBeUndefined();
    },
  },
  {
    title: "a namespace takes its objects with it, and waits for finalizers",
    async run(api, namespace) {
      const name = `${namespace}-full`;
      await created(api, "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
      await created(api, maps(name), configMap("free"));
      await created(api, maps(name), configMap("held", {}, { finalizers: ["example.com/hold"] }));
      await api.delete(`/api/v1/namespaces/${name}`);
      await gone(api, maps(name, "free"));
      await eventually(async () =>
        expect((await api.get(maps(name, "held"))).at("metadata.deletionTimestamp")).toBeDefined(),
      );
      expect((await api.get(`/api/v1/namespaces/${name}`)).at("status.phase")).toBe("Terminating");
      await api.patch(maps(name, "held"), "merge", { metadata: { finalizers: null } });
      await gone(api, `/api/v1/namespaces/${name}`);
    },
  },
];
