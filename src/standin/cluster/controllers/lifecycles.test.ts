import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type ConfigMap,
  type CustomResourceDefinition,
  type Deployment,
  type Pod,
  type PodDisruptionBudget,
  kubernetes,
} from "../../../api/foreign/kubernetes.ts";
import { type KubeObject, conditionOf, resource } from "../../../api/schema/object.ts";
import { isTooManyRequests } from "../../../kube/kube-error.ts";
import {
  type TestCluster,
  inDefault,
  namespace,
  podIsReady,
  startCluster,
  template,
} from "../../../../test/support/controllers-harness.ts";
import { budgetMetrics } from "./disruption-budget-controller.ts";

const deployment = (name: string, replicas: number): Deployment => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace },
  spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name) },
});
const configMap = (
  name: string,
  owners: readonly KubeObject[] = [],
  more: Partial<KubeObject["metadata"]> = {},
): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    name,
    namespace,
    ownerReferences: owners.map(({ apiVersion, kind, metadata }) => ({
      apiVersion,
      kind,
      name: metadata.name,
      uid: metadata.uid ?? "",
      blockOwnerDeletion: true,
    })),
    ...more,
  },
});
const named = (names: readonly string[]) => (maps: readonly ConfigMap[]) =>
  JSON.stringify(
    maps
      .map(({ metadata }) => metadata.name)
      .filter((name) => name !== "kube-root-ca.crt")
      .toSorted(),
  ) === JSON.stringify(names.toSorted());

describe("garbage", () => {
  test("deleting a Deployment deletes its dependents, down to the pods", async () => {
    const { kube, until, untilAll, podsMade } = await startCluster({ nodes: [{}] });
    await kube.create(kubernetes.Deployment, deployment("web", 3));
    await until(kubernetes.Deployment, { name: "web", namespace }, (object) => object?.status?.availableReplicas === 3);
    await kube.delete(kubernetes.Deployment, { name: "web", namespace });
    await untilAll(kubernetes.Pod, inDefault, (pods) => pods.length === 0);
    await untilAll(kubernetes.ReplicaSet, inDefault, (sets) => sets.length === 0);
    expect(await kube.get(kubernetes.Deployment, { name: "web", namespace })).toBeUndefined();
    expect(podsMade.size).toBe(3);
  });

  test("with foreground deletion an owner stays until its dependents are deleted", async () => {
    const { kube, until } = await startCluster({ nodes: [{}] });
    const owner = await kube.create(kubernetes.ConfigMap, configMap("owner"));
    const held = await kube.create(kubernetes.ConfigMap, configMap("held", [owner], { finalizers: ["test/hold"] }));
    await kube.delete(kubernetes.ConfigMap, owner.metadata, { propagation: "Foreground" });
    await until(kubernetes.ConfigMap, held.metadata, (object) => object?.metadata.deletionTimestamp !== undefined);
    expect((await kube.get(kubernetes.ConfigMap, owner.metadata))?.metadata.finalizers).toEqual(["foregroundDeletion"]);
    await kube.patch(kubernetes.ConfigMap, held.metadata, { type: "merge", body: { metadata: { finalizers: null } } });
    await until(kubernetes.ConfigMap, owner.metadata, (object) => object === undefined);
  });

  test("orphaned dependents stay, without owner references", async () => {
    const { kube, until } = await startCluster();
    const owner = await kube.create(kubernetes.ConfigMap, configMap("owner"));
    const left = await kube.create(kubernetes.ConfigMap, configMap("left", [owner]));
    await until(kubernetes.ConfigMap, left.metadata, (object) => object !== undefined);
    await kube.delete(kubernetes.ConfigMap, owner.metadata, { propagation: "Orphan" });
    await until(kubernetes.ConfigMap, owner.metadata, (object) => object === undefined);
    expect((await kube.get(kubernetes.ConfigMap, left.metadata))?.metadata.ownerReferences ?? []).toEqual([]);
  });

  test("of two owners the last one decides, and a reference into another namespace is void only for its holder", async () => {
    const { kube, until, untilAll } = await startCluster();
    const [one, two] = [
      await kube.create(kubernetes.ConfigMap, configMap("one")),
      await kube.create(kubernetes.ConfigMap, configMap("two")),
    ];
    await kube.create(kubernetes.ConfigMap, configMap("both", [one, two]));
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: "other" } });
    await kube.create(kubernetes.ConfigMap, {
      ...configMap("abroad", [two]),
      metadata: { ...configMap("abroad", [two]).metadata, namespace: "other" },
    });
    await untilAll(kubernetes.ConfigMap, { namespace: "other" }, named([]));
    await kube.delete(kubernetes.ConfigMap, one.metadata);
    const kept = await until(
      kubernetes.ConfigMap,
      { name: "both", namespace },
      (object) => object?.metadata.ownerReferences?.length === 1,
    );
    expect(kept?.metadata.ownerReferences).toMatchObject([{ name: "two", uid: two.metadata.uid }]);
    await kube.delete(kubernetes.ConfigMap, two.metadata);
    await untilAll(kubernetes.ConfigMap, inDefault, named([]));
    expect(await kube.get(kubernetes.ConfigMap, { name: "both", namespace })).toBeUndefined();
  });

  test("objects of later defined kinds are owners and dependents too", async () => {
    const { kube, until, untilAll } = await startCluster();
    const schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
    const definition: CustomResourceDefinition = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "widgets.example.com" },
      spec: {
        group: "example.com",
        names: { kind: "Widget", plural: "widgets" },
        scope: "Namespaced",
        versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    };
    await kube.create(kubernetes.CustomResourceDefinition, definition);
    await until(
      kubernetes.CustomResourceDefinition,
      definition.metadata,
      (object) => conditionOf(object?.status?.conditions, "Established")?.status === "True",
    );
    const widgets = resource<KubeObject>("example.com/v1", "Widget", "widgets", "Namespaced");
    const owner = await kube.create(widgets, {
      apiVersion: "example.com/v1",
      kind: "Widget",
      metadata: { name: "w", namespace },
    });
    await kube.create(kubernetes.ConfigMap, configMap("of-widget", [owner]));
    const dependent = await kube.create(widgets, {
      apiVersion: "example.com/v1",
      kind: "Widget",
      metadata: { ...configMap("dependent", [owner]).metadata },
    });
    await kube.delete(widgets, owner.metadata);
    await untilAll(kubernetes.ConfigMap, inDefault, named([]));
    await until(widgets, dependent.metadata, (object) => object === undefined);
    expect((await kube.list(widgets, inDefault)).items).toEqual([]);
    expect(await kube.get(kubernetes.ConfigMap, { name: "of-widget", namespace })).toBeUndefined();
  });
});

describe("namespaces", () => {
  test("a deleted namespace is emptied and removed, and its conditions show what it waits for", async () => {
    const { kube, until } = await startCluster({ nodes: [{}] });
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: "doomed" } });
    await kube.create(kubernetes.Deployment, {
      ...deployment("web", 2),
      metadata: { name: "web", namespace: "doomed" },
    });
    const held = await kube.create(kubernetes.ConfigMap, {
      ...configMap("held"),
      metadata: { name: "held", namespace: "doomed", finalizers: ["test/hold"] },
    });
    await until(
      kubernetes.Deployment,
      { name: "web", namespace: "doomed" },
      (object) => object?.status?.availableReplicas === 2,
    );
    await kube.delete(kubernetes.Namespace, { name: "doomed" });
    const waiting = await until(
      kubernetes.Namespace,
      { name: "doomed" },
      (object) => conditionOf(object?.status?.conditions, "NamespaceFinalizersRemaining")?.status === "True",
    );
    expect(conditionOf(waiting?.status?.conditions, "NamespaceFinalizersRemaining")?.message).toContain(
      "test/hold in 1 resource instances",
    );
    await kube.patch(kubernetes.ConfigMap, held.metadata, { type: "merge", body: { metadata: { finalizers: null } } });
    await until(kubernetes.Namespace, { name: "doomed" }, (object) => object === undefined);
    expect((await kube.list(kubernetes.Pod, { namespace: "doomed" })).items).toEqual([]);
  });

  test("every namespace gets its service account and root certificate, also after their deletion", async () => {
    const { kube, until } = await startCluster();
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: "fresh" } });
    const map = { name: "kube-root-ca.crt", namespace: "fresh" };
    await until(kubernetes.ConfigMap, map, (object) => object?.data?.["ca.crt"] === "the root");
    const account = { name: "default", namespace: "fresh" };
    const first = await until(kubernetes.ServiceAccount, account, (object) => object !== undefined);
    await kube.delete(kubernetes.ServiceAccount, account);
    await kube.patch(kubernetes.ConfigMap, map, { type: "merge", body: { data: { "ca.crt": "forged" } } });
    const again = await until(kubernetes.ServiceAccount, account, (object) => object !== undefined);
    expect(again?.metadata.uid).not.toBe(first?.metadata.uid);
    const repaired = await until(kubernetes.ConfigMap, map, (object) => object?.data?.["ca.crt"] !== "forged");
    expect(repaired?.data).toEqual({ "ca.crt": "the root" });
  });
});

describe("disruption budgets", () => {
  const budget = (spec: PodDisruptionBudget["spec"]): PodDisruptionBudget => ({
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "web", namespace },
    spec: { selector: { matchLabels: { app: "web" } }, ...spec },
  });
  const evicts = async (kube: TestCluster["kube"], pod: Pod | undefined): Promise<boolean> => {
    if (pod === undefined) return false;
    try {
      await kube.evict(pod);
      return true;
    } catch (error) {
      if (isTooManyRequests(error)) return false;
      throw error;
    }
  };

  test("evictions stop at the budget, and continue when pods are back", async () => {
    const running = await startCluster({ nodes: [{}, {}] });
    const { kube, until, untilAll } = running;
    await kube.create(kubernetes.Deployment, deployment("web", 3));
    await kube.create(kubernetes.PodDisruptionBudget, budget({ maxUnavailable: 1 }));
    const allowed = await until(
      kubernetes.PodDisruptionBudget,
      { name: "web", namespace },
      (object) => object?.status?.disruptionsAllowed === 1,
    );
    expect(allowed?.status).toMatchObject({
      currentHealthy: 3,
      desiredHealthy: 2,
      expectedPods: 3,
      observedGeneration: 1,
    });
    running.neverReady = (pod) => pod.metadata.namespace === namespace;
    const pods = (await kube.list(kubernetes.Pod, inDefault)).items;
    expect(await evicts(kube, pods[0])).toBe(true);
    expect(await evicts(kube, pods[1])).toBe(false);
    const tight = await until(
      kubernetes.PodDisruptionBudget,
      { name: "web", namespace },
      (object) => object?.status?.currentHealthy === 2 && object.status.disruptedPods === undefined,
    );
    expect(tight?.status?.disruptionsAllowed).toBe(0);
    expect(conditionOf(tight?.status?.conditions, "DisruptionAllowed")).toMatchObject({
      status: "False",
      reason: "InsufficientPods",
    });
    await untilAll(
      kubernetes.Pod,
      inDefault,
      (all) =>
        all.length === 3 &&
        all.some(
          (pod) => pod.status?.phase === "Running" && !podIsReady(pod) && pod.metadata.deletionTimestamp === undefined,
        ),
    );
    for (const pod of (await kube.list(kubernetes.Pod, inDefault)).items.filter((one) => !podIsReady(one))) {
      await kube.patch(
        kubernetes.Pod,
        pod.metadata,
        { type: "merge", body: { status: { conditions: [{ type: "Ready", status: "True" }] } } },
        { subresource: "status" },
      );
    }
    await until(
      kubernetes.PodDisruptionBudget,
      { name: "web", namespace },
      (object) => object?.status?.disruptionsAllowed === 1,
    );
  });

  test("percentages count the desired pods of the controllers, not the existing ones", async () => {
    const { kube, until } = await startCluster({ nodes: [{ status: { allocatable: { pods: "2" } } }] });
    await kube.create(kubernetes.Deployment, deployment("web", 4));
    await kube.create(kubernetes.PodDisruptionBudget, budget({ minAvailable: "50%" }));
    const full = await until(
      kubernetes.PodDisruptionBudget,
      { name: "web", namespace },
      (object) => object?.status?.currentHealthy === 2,
    );
    expect(full?.status).toMatchObject({ expectedPods: 4, desiredHealthy: 2, disruptionsAllowed: 0 });
  });

  test("a pod counts as healthy whatever its name is, a word of the language among them [cluster-budgets-1]", () => {
    const pod: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "constructor", namespace },
      status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
    };
    expect(budgetMetrics(budget({ minAvailable: 0 }), [pod], 1, 0)).toMatchObject({
      currentHealthy: 1,
      disruptionsAllowed: 1,
    });
  });

  test("a budget never allows evictions below its number of healthy pods", () => {
    const anyPod = fc.record({ ready: fc.boolean(), disrupted: fc.boolean(), deleted: fc.boolean() });
    const anyLimit = fc.oneof(
      fc.nat(8),
      fc.nat(120).map((percent) => `${percent}%`),
    );
    const now = Date.UTC(2030, 0, 1);
    fc.assert(
      fc.property(fc.array(anyPod, { maxLength: 8 }), anyLimit, fc.boolean(), (given, limit, minimum) => {
        const pods = given.map(({ ready, deleted }, index): Pod => ({
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name: `p${index}`, namespace, ...(deleted ? { deletionTimestamp: "2030-01-01T00:00:00Z" } : {}) },
          status: { phase: "Running", conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
        }));
        const disruptedPods = Object.fromEntries(
          given.flatMap(({ disrupted }, index) => (disrupted ? [[`p${index}`, "2030-01-01T00:00:00Z"]] : [])),
        );
        const metrics = budgetMetrics(
          {
            ...budget(minimum ? { minAvailable: limit } : { maxUnavailable: limit }),
            status: { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0, disruptedPods },
          },
          pods,
          pods.length,
          now,
        );
        const healthy = given.filter(({ ready, disrupted, deleted }) => ready && !disrupted && !deleted).length;
        expect(metrics.currentHealthy).toBe(healthy);
        expect(metrics.disruptionsAllowed === 0 || healthy - metrics.disruptionsAllowed >= metrics.desiredHealthy).toBe(
          true,
        );
        expect(metrics.disruptionsAllowed).toBeLessThanOrEqual(healthy);
      }),
    );
  });
});
