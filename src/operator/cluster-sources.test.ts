import { expect, test } from "vitest";
import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import { type KubeObject, type Resource, keyOf } from "../api/schema/object.ts";
import type { Caches, Context, Watch } from "../kube/controller.ts";
import { observeSources, sourceWatches } from "./cluster-sources.ts";

const where = "openshift-config";
const mapOf = (name: string): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: where, uid: name, resourceVersion: "1" },
  data: { "ca-bundle.crt": "x".repeat(1000) },
});
const ofNamespace = ({ resource, selection }: Watch) =>
  resource.kind === kubernetes.ConfigMap.kind && selection?.namespace === where;

/** As the cache of the operator holds it. */
function kept(map: ConfigMap): ConfigMap {
  const watch = sourceWatches(() => []).find(ofNamespace);
  return (watch?.keep?.(map) ?? map) as ConfigMap;
}

/** A cluster of OpenShift's whose Proxy names a ConfigMap. */
function contextWith(maps: readonly ConfigMap[], trustedCA: string) {
  const named: Readonly<Record<string, KubeObject>> = {
    Infrastructure: { apiVersion: "", kind: "Infrastructure", metadata: { name: "cluster" } },
    ClusterVersion: { apiVersion: "", kind: "ClusterVersion", metadata: { name: "version" } },
    Proxy: {
      apiVersion: "",
      kind: "Proxy",
      metadata: { name: "cluster" },
      spec: { trustedCA: { name: trustedCA } },
    } as KubeObject,
  };
  const cached = new Map(maps.map((map) => [keyOf(map), kept(map)]));
  const caches = {
    of: ({ kind }: Resource, selection?: { readonly namespace?: string }) => {
      const isOfMaps = kind === kubernetes.ConfigMap.kind && selection?.namespace === where;
      return {
        list: () => (isOfMaps ? [...cached.values()] : []),
        get: (key: string) => (isOfMaps ? cached.get(key) : named[kind]),
      };
    },
  } as unknown as Caches;
  const read: string[] = [];
  const kube = {
    get: ({ kind }: Resource, { name }: { readonly name: string }) => {
      if (kind === kubernetes.ConfigMap.kind) read.push(name);
      return Promise.resolve(
        kind === kubernetes.ConfigMap.kind ? maps.find(({ metadata }) => metadata.name === name) : undefined,
      );
    },
  };
  return { context: { caches, kube, signal: AbortSignal.any([]) } as unknown as Context, read };
}

test("the operator keeps names of ConfigMaps, and the contents of those alone that ControllerConfig has values from [operator-sources-1]", () => {
  expect(kept(mapOf("anything")).data).toBeUndefined();
  expect(kept(mapOf("anything")).metadata).toMatchObject({ name: "anything", namespace: where, resourceVersion: "1" });
  expect(kept(mapOf("user-ca-bundle")).data).toEqual(mapOf("user-ca-bundle").data);
});

test("a ConfigMap that Proxy names is read whole, once until it changes [operator-sources-2]", async () => {
  const { context, read } = contextWith([mapOf("trust"), mapOf("other")], "trust");
  for (let pass = 0; pass < 3; pass += 1) {
    const { configMaps } = await observeSources(context);
    expect(configMaps.get(`${where}/trust`)?.data).toEqual(mapOf("trust").data);
    expect(configMaps.get(`${where}/other`)?.data).toBeUndefined();
  }
  expect(read).toEqual(["trust"]);
});
