import { expect } from "vitest";
import { apps, configMap, core, created, deployment, type ContractCase } from "./case-fixture.ts";

export const updatingCases: readonly ContractCase[] = [
  {
    title: "an update with the current version succeeds, with an older one it conflicts",
    async run(api, namespace) {
      const first = await created(api, core(namespace, "configmaps"), configMap("a"));
      const second = await api.put(core(namespace, "configmaps", "a"), { ...first.json, data: { key: "2" } });
      expect(second.status).toBe(200);
      expect(second.at("metadata.uid")).toBe(first.at("metadata.uid"));
      const stale = await api.put(core(namespace, "configmaps", "a"), { ...first.json, data: { key: "3" } });
      expect(stale.status).toBe(409);
      expect(stale.at("reason")).toBe("Conflict");
      expect(stale.at("message")).toBe(
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
      );
    },
  },
  {
    title: "an update that changes nothing writes nothing",
    async run(api, namespace) {
      const first = await created(api, core(namespace, "configmaps"), configMap("a"));
      const again = await api.put(core(namespace, "configmaps", "a"), first.json);
      expect(again.at("metadata.resourceVersion")).toBe(first.at("metadata.resourceVersion"));
      const patched = await api.patch(core(namespace, "configmaps", "a"), "merge", { data: { key: "value" } });
      expect(patched.at("metadata.resourceVersion")).toBe(first.at("metadata.resourceVersion"));
    },
  },
  {
    title: "an update of a missing object answers 404, with another name 400",
    async run(api, namespace) {
      expect((await api.put(core(namespace, "configmaps", "ghost"), configMap("ghost"))).status).toBe(404);
      await created(api, core(namespace, "configmaps"), configMap("a"));
      expect((await api.put(core(namespace, "configmaps", "a"), configMap("b"))).status).toBe(400);
    },
  },
  {
    title: "generation counts changes of the spec and nothing else",
    async run(api, namespace) {
      // A Deployment's controller would write annotations meanwhile, which count as well.
      const budgets = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
      const first = await created(api, budgets, {
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: { name: "d" },
        spec: { minAvailable: 1, selector: { matchLabels: { app: "nobody" } } },
      });
      expect(first.at("metadata.generation")).toBe(1);
      const labelled = await api.patch(`${budgets}/d`, "merge", { metadata: { labels: { a: "b" } } });
      expect(labelled.at("metadata.generation")).toBe(1);
      const status = await api.patch(`${budgets}/d/status`, "merge", { status: { observedGeneration: 1 } });
      expect(status.at("metadata.generation")).toBe(1);
      const changed = await api.patch(`${budgets}/d`, "merge", { spec: { minAvailable: 3 } });
      expect(changed.at("metadata.generation")).toBe(2);
    },
  },
  {
    title: "the main endpoint ignores status, and /status ignores the rest",
    async run(api, namespace) {
      // A Deployment's controller counts replicas meanwhile; it leaves collisionCount as it finds it.
      await created(api, apps(namespace, "deployments"), deployment("d"));
      const main = await api.patch(apps(namespace, "deployments", "d"), "merge", { status: { collisionCount: 9 } });
      expect(main.at("status.collisionCount")).toBeUndefined();
      const status = await api.patch(`${apps(namespace, "deployments", "d")}/status`, "merge", {
        spec: { replicas: 9 },
        status: { collisionCount: 4 },
      });
      expect(status.json).toMatchObject({ spec: { replicas: 1 }, status: { collisionCount: 4 } });
    },
  },
  {
    title: "a deployment's selector cannot change",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d"));
      const reply = await api.patch(apps(namespace, "deployments", "d"), "merge", {
        spec: { selector: { matchLabels: { app: "other" } }, template: { metadata: { labels: { app: "other" } } } },
      });
      expect(reply.status).toBe(422);
      expect(reply.at("message")).toContain("field is immutable");
    },
  },
  {
    title: "PUT creates a missing lease",
    async run(api, namespace) {
      const reply = await api.put(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/l`, {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name: "l" },
        spec: { holderIdentity: "me" },
      });
      expect(reply.status).toBe(201);
    },
  },
  {
    title: "what holds a namespace until it is empty changes by /finalize alone",
    async run(api, namespace) {
      const path = `/api/v1/namespaces/${namespace}-held`;
      const made = await created(api, "/api/v1/namespaces", {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: `${namespace}-held` },
        spec: { finalizers: ["example.com/held"] },
      });
      const finalizers = ["example.com/held", "kubernetes"];
      expect(made.at("spec.finalizers")).toEqual(finalizers);
      const patched = await api.patch(path, "merge", { spec: { finalizers: [] } });
      expect([patched.status, patched.at("spec.finalizers")]).toEqual([200, finalizers]);
      const put = await api.put(path, { apiVersion: "v1", kind: "Namespace", metadata: { name: `${namespace}-held` } });
      expect([put.status, put.at("spec.finalizers")]).toEqual([200, finalizers]);
      const finalized = await api.put(`${path}/finalize`, {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: `${namespace}-held` },
        spec: { finalizers: ["kubernetes"] },
      });
      expect([finalized.status, finalized.at("spec.finalizers")]).toEqual([200, ["kubernetes"]]);
    },
  },
];
