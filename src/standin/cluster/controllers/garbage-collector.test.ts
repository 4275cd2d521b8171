import { describe, expect, test } from "vitest";
import { type ConfigMap, type CustomResourceDefinition, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import type { HttpHandler } from "../../../ports/http.ts";
import { whenAborted } from "../../../ports/when-aborted.ts";
import { type TestCluster, namespace, startCluster } from "../../../../test/support/controllers-harness.ts";

const widgets: CustomResourceDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.example.com" },
  spec: {
    group: "example.com",
    names: { kind: "Widget", plural: "widgets" },
    scope: "Namespaced",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};
const listOfWidgets = "/apis/example.com/v1/widgets?";
const listOfDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?";
const discovery = "/apis";

/** The controllers' connection: a request waits until `before` lets it pass, or its sender gives it up. */
const held =
  (before: (target: string) => Promise<unknown> | undefined) =>
  (next: HttpHandler): HttpHandler =>
  async (request, signal) => {
    await Promise.race([before(request.target), whenAborted(signal)]);
    signal.throwIfAborted();
    return next(request, signal);
  };
const forGood = new Promise<never>(() => undefined);

async function define({ kube, until }: TestCluster): Promise<void> {
  await kube.create(kubernetes.CustomResourceDefinition, widgets);
  await until(
    kubernetes.CustomResourceDefinition,
    widgets.metadata,
    (object) => conditionOf(object?.status?.conditions, "Established")?.status === "True",
  );
}

async function undefine({ kube, until }: TestCluster): Promise<void> {
  await kube.delete(kubernetes.CustomResourceDefinition, widgets.metadata);
  await until(kubernetes.CustomResourceDefinition, widgets.metadata, (object) => object === undefined);
}

const mapOf = (metadata: ConfigMap["metadata"]): ConfigMap => ({ apiVersion: "v1", kind: "ConfigMap", metadata });

/** Whether the dependent of a deleted owner is deleted. */
async function isCollecting({ kube, until }: TestCluster): Promise<boolean> {
  const { metadata } = await kube.create(kubernetes.ConfigMap, mapOf({ name: "owner", namespace }));
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: metadata.uid ?? "" };
  await kube.create(kubernetes.ConfigMap, mapOf({ name: "dependent", namespace, ownerReferences: [owner] }));
  await kube.delete(kubernetes.ConfigMap, metadata);
  const left = await until(kubernetes.ConfigMap, { name: "dependent", namespace }, (object) => object === undefined);
  return left === undefined;
}

describe("garbage is collected after a definition", () => {
  test("that was deleted before its objects were listed [cluster-garbage-1]", async () => {
    const listed = Promise.withResolvers<void>();
    const cluster = await startCluster({
      between: held((target) => {
        if (!target.startsWith(listOfWidgets)) return undefined;
        listed.resolve();
        return forGood;
      }),
    });
    await define(cluster);
    await listed.promise;
    await undefine(cluster);
    expect(await isCollecting(cluster)).toBe(true);
  });

  test("that was deleted between the discovery of its kind and the first list of definitions [cluster-garbage-2]", async () => {
    const [defined, removed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const listed = Promise.withResolvers<void>();
    const cluster = await startCluster({
      between: held((target) => {
        if (target === discovery) return defined.promise;
        if (target.startsWith(listOfDefinitions)) return removed.promise;
        if (!target.startsWith(listOfWidgets)) return undefined;
        listed.resolve();
        return forGood;
      }),
    });
    await define(cluster);
    defined.resolve();
    await listed.promise;
    await undefine(cluster);
    removed.resolve();
    expect(await isCollecting(cluster)).toBe(true);
  });
});

test("garbage of others does not wait for an object with many owners that are gone [cluster-garbage-3]", async () => {
  const [objects, owners] = [10, 400];
  const asked = new Map<string, number>();
  const [busy, open] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const cluster = await startCluster({
    between: held((target) => {
      const of = /\/configmaps\/gone-(\d+)-/.exec(target)?.[1];
      if (of === undefined) return undefined;
      asked.set(of, (asked.get(of) ?? 0) + 1);
      if (asked.size === 8) busy.resolve();
      return open.promise;
    }),
  });
  const { kube, until, clock } = cluster;
  for (let at = 0; at < objects; at += 1) {
    const ownerReferences = Array.from({ length: owners }, (_, i) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      name: `gone-${at}-${i}`,
      uid: `${at}-${i}`,
    }));
    await kube.create(kubernetes.ConfigMap, mapOf({ name: `of-many-${at}`, namespace, ownerReferences }));
  }
  await busy.promise;
  const { metadata } = await kube.create(kubernetes.ConfigMap, mapOf({ name: "owner", namespace }));
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: metadata.uid ?? "" };
  await kube.create(kubernetes.ConfigMap, mapOf({ name: "dependent", namespace, ownerReferences: [owner] }));
  await kube.delete(kubernetes.ConfigMap, metadata);
  await until(kubernetes.ConfigMap, metadata, (object) => object === undefined);
  clock.skip(1_000);
  const total = () => [...asked.values()].reduce((sum, each) => sum + each, 0);
  open.resolve();
  await until(kubernetes.ConfigMap, { name: "dependent", namespace }, (object) => object === undefined);
  expect(total()).toBeLessThan((objects * owners) / 2);

  await cluster.untilAll(kubernetes.ConfigMap, { namespace }, (left) =>
    left.every(({ metadata: { name } }) => !name.startsWith("of-many-")),
  );
  expect(total()).toBe(objects * owners);
});

test("of an object with an owner of a kind that nobody serves, no other owner is asked for [cluster-garbage-4]", async () => {
  let asked = 0;
  const cluster = await startCluster({
    between: held((target) => {
      if (target.includes("/configmaps/gone")) asked += 1;
      return undefined;
    }),
  });
  const ownerReferences = [
    { apiVersion: "v1", kind: "ConfigMap", name: "gone", uid: "a" },
    { apiVersion: "nobody.example/v1", kind: "Widget", name: "w", uid: "b" },
  ];
  await cluster.kube.create(kubernetes.ConfigMap, mapOf({ name: "stays", namespace, ownerReferences }));
  expect(await isCollecting(cluster)).toBe(true);
  expect(asked).toBe(0);
});
