import { describe, expect, test } from "vitest";
import { type ConfigMap, type CustomResourceDefinition, kubernetes } from "../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { HttpHandler } from "../../ports/http.ts";
import { whenAborted } from "../../ports/when-aborted.ts";
import { type TestCluster, namespace, startCluster } from "../../../test/support/controllers-harness.ts";

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

/** Whether the dependent of a deleted owner is deleted. */
async function isCollecting({ kube, until }: TestCluster): Promise<boolean> {
  const map = (metadata: ConfigMap["metadata"]): ConfigMap => ({ apiVersion: "v1", kind: "ConfigMap", metadata });
  const { metadata } = await kube.create(kubernetes.ConfigMap, map({ name: "owner", namespace }));
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: metadata.uid ?? "" };
  await kube.create(kubernetes.ConfigMap, map({ name: "dependent", namespace, ownerReferences: [owner] }));
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
