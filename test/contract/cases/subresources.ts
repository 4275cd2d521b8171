import { expect } from "vitest";
import {
  apps,
  budget,
  core,
  created,
  deployment,
  eventually,
  pod,
  readyPod,
  widget,
  widgetGroup,
  type ContractCase,
} from "./case-fixture.ts";

export const subresourcesCases: readonly ContractCase[] = [
  {
    title: "scale reads and writes replicas, of built-in and custom kinds",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d", 2));
      const scale = await api.get(`${apps(namespace, "deployments", "d")}/scale`);
      expect(scale.json).toMatchObject({
        kind: "Scale",
        apiVersion: "autoscaling/v1",
        spec: { replicas: 2 },
        status: { selector: "app=d" },
      });
      expect(
        (await api.patch(`${apps(namespace, "deployments", "d")}/scale`, "merge", { spec: { replicas: 5 } })).at(
          "spec.replicas",
        ),
      ).toBe(5);
      const scaled = await api.get(apps(namespace, "deployments", "d"));
      expect(scaled.at("spec.replicas")).toBe(5);
      // A Deployment's annotations count as well, and its controller may have written its revision:
      // kubernetes/kubernetes pkg/registry/apps/deployment (v1.34).
      expect([2, 3]).toContain(scaled.at("metadata.generation"));
      const { group, path } = widgetGroup(namespace);
      await created(api, path, widget(group, "w", { size: 5, replicas: 1 }));
      expect(
        (
          await api.put(`${path}/w/scale`, {
            kind: "Scale",
            apiVersion: "autoscaling/v1",
            metadata: { name: "w", namespace },
            spec: { replicas: 4 },
          })
        ).at("spec.replicas"),
      ).toBe(4);
      expect((await api.get(`${path}/w`)).at("metadata.generation")).toBe(2);
    },
  },
  {
    title: "a pod is bound once",
    async run(api, namespace) {
      await created(api, core(namespace, "pods"), pod("p", { schedulerName: "nobody" }));
      const bind = (node: string) =>
        api.post(`${core(namespace, "pods", "p")}/binding`, {
          apiVersion: "v1",
          kind: "Binding",
          metadata: { name: "p" },
          target: { kind: "Node", name: node },
        });
      expect((await bind("n1")).status).toBe(201);
      const bound = await api.get(core(namespace, "pods", "p"));
      expect(bound.at("spec.nodeName")).toBe("n1");
      expect(bound.at("status.conditions")).toContainEqual(
        expect.objectContaining({ type: "PodScheduled", status: "True" }),
      );
      const again = await bind("n2");
      expect(again.status).toBe(409);
      expect(again.at("message")).toContain('pod p is already assigned to node "n1"');
    },
  },
  {
    title: "an eviction uses the budget, and is refused when it is used up",
    async run(api, namespace) {
      for (const name of ["a", "b"]) await readyPod(api, namespace, name, { app: "x" });
      const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/guard`;
      await created(api, `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`, budget("guard", "x"));
      const evict = (name: string, query = "") =>
        api.post(`${core(namespace, "pods", name)}/eviction${query}`, {
          apiVersion: "policy/v1",
          kind: "Eviction",
          metadata: { name, namespace },
        });
      await eventually(async () =>
        expect((await api.get(path)).json).toMatchObject({
          status: {
            observedGeneration: 1,
            disruptionsAllowed: 1,
            currentHealthy: 2,
            desiredHealthy: 1,
            expectedPods: 2,
          },
        }),
      );
      expect((await evict("a", "?dryRun=All")).status).toBe(201);
      expect((await api.get(path)).at("status.disruptionsAllowed")).toBe(1);
      expect((await evict("a")).json).toMatchObject({ kind: "Status", status: "Success" });
      expect((await api.get(core(namespace, "pods", "a"))).at("metadata.deletionTimestamp")).toBeDefined();
      await eventually(async () =>
        expect((await api.get(path)).json).toMatchObject({ status: { disruptionsAllowed: 0, currentHealthy: 1 } }),
      );
      const refused = await evict("b");
      expect(refused.status).toBe(429);
      expect(refused.at("message")).toBe("Cannot evict pod as it would violate the pod's disruption budget.");
      expect(refused.at("details.causes.0")).toEqual({
        reason: "DisruptionBudget",
        message: "The disruption budget guard needs 1 healthy pods and has 1 currently",
      });
    },
  },
  {
    title: "logs need to know which container",
    async run(api, namespace) {
      const both = [
        { name: "one", image: "i" },
        { name: "two", image: "i" },
      ];
      await created(api, core(namespace, "pods"), pod("p", { containers: both }));
      expect((await api.get(`${core(namespace, "pods", "p")}/log`)).at("message")).toBe(
        "a container name must be specified for pod p, choose one of: [one two]",
      );
      expect((await api.get(`${core(namespace, "pods", "p")}/log?container=three`)).at("message")).toBe(
        "container three is not valid for pod p",
      );
      expect((await api.get(`${core(namespace, "pods", "p")}/log?container=one`)).text).toBe("");
    },
  },
];
