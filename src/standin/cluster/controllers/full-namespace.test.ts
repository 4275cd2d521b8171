import { describe, expect, test } from "vitest";
import { startCluster, template } from "../../../../test/support/controllers-harness.ts";
import { buildNamespace, namespace as suite } from "../../../api/names.ts";
import { type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";
import type { HttpHandler } from "../../../ports/http.ts";
import { leaseNamespace } from "../../apiserver/access/node-authorizer.ts";
import { namespacesInTurn } from "../namespaces-in-turn.ts";

const pod = (name: string, namespace: string, spec: Partial<NonNullable<Pod["spec"]>> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace },
  spec: { ...template("web").spec, ...spec },
});

const makeNamespaces = async (kube: KubeClient, ...names: readonly string[]) => {
  for (const name of names)
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
};

const statusInFull = /^\/api\/v1\/namespaces\/full\/pods\/([^/]+)\/status/;

/** The controllers write no status of a pod in the namespace `full`. @param onRefused gets the name of each such pod. */
const refusing =
  (onRefused: (name: string) => Promise<void> | void = () => undefined) =>
  (next: HttpHandler): HttpHandler =>
  async (request, signal) => {
    const name = request.method === "PATCH" ? statusInFull.exec(request.target)?.[1] : undefined;
    if (name === undefined) return next(request, signal);
    await onRefused(name);
    const status = { kind: "Status", status: "Failure", code: 403, reason: "Forbidden", message: "exceeded quota" };
    return { status: 403, headers: { "content-type": "application/json" }, body: JSON.stringify(status) };
  };

describe("in a namespace that takes no statuses of pods", () => {
  test("pods that no node takes keep none of others waiting, and are written to once [cluster-full-1]", async () => {
    const count = 300;
    const written: string[] = [];
    const released = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const allWritten = Promise.withResolvers<void>();
    const writtenBefore = new Map<string, number>();
    const cluster = await startCluster({
      nodes: [{}],
      between: (next) => {
        const refused = refusing(async (name) => {
          written.push(name);
          begun.resolve();
          if (written.length === count) allWritten.resolve();
          await released.promise;
        })(next);
        return (request, signal) => {
          const bound = /\/pods\/([^/]+)\/binding$/.exec(request.target)?.[1];
          if (bound !== undefined) writtenBefore.set(bound, written.length);
          return refused(request, signal);
        };
      },
    });
    const { kube, clock, until } = cluster;
    await makeNamespaces(kube, suite, "full", "other");
    const names = Array.from({ length: count }, (_, index) => `full-${index}`);
    for (const name of names) await kube.create(kubernetes.Pod, pod(name, "full", { nodeSelector: { a: "b" } }));
    await begun.promise;
    const others = [pod("suites", suite), pod("tenants", "other")];
    for (const other of others) {
      await kube.create(kubernetes.Pod, other);
      await until(kubernetes.Pod, other.metadata, (object) => object !== undefined);
    }
    clock.skip(1000);
    released.resolve();
    const isBound = (object: Pod | undefined) => (object?.spec?.nodeName ?? "") !== "";
    for (const { metadata } of others) await until(kubernetes.Pod, metadata, isBound);
    for (const { metadata } of others) expect(writtenBefore.get(metadata.name), metadata.name).toBeLessThan(count / 3);

    // All have their turn, and have none again until what is to be said of them is something else.
    await allWritten.promise;
    clock.skip(3_600_000);
    const later = pod("later", "other");
    await kube.create(kubernetes.Pod, later);
    await until(kubernetes.Pod, later.metadata, isBound);
    expect(written.toSorted()).toEqual(names.toSorted());
  });

  test("pods on a lost machine keep none of others there [cluster-full-2]", async () => {
    const cluster = await startCluster({
      nodes: [{}],
      controllers: { nodeMonitorGraceSeconds: 40 },
      between: refusing(),
    });
    const { kube, clock, until, whileTimeFlies } = cluster;
    await makeNamespaces(kube, "full", "other");
    const renewTime = `${new Date(clock.now()).toISOString().slice(0, 23)}000Z`;
    await kube.create(kubernetes.Lease, {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "node-0", namespace: leaseNamespace },
      spec: { holderIdentity: "node-0", leaseDurationSeconds: 40, renewTime },
    });
    const pods = [pod("first", "full"), pod("victim", "other"), pod("last", "full")];
    for (const each of pods) {
      await kube.create(kubernetes.Pod, each);
      await until(kubernetes.Pod, each.metadata, (object) => object?.status?.phase === "Running");
    }
    for (const { metadata } of pods)
      expect(await whileTimeFlies(until(kubernetes.Pod, metadata, (object) => object === undefined))).toBeUndefined();
  });

  test("pods of a deleted node keep none of others there [cluster-full-3]", async () => {
    const { kube, until, whileTimeFlies } = await startCluster({ nodes: [{}], between: refusing() });
    await makeNamespaces(kube, "full", "other");
    const pods = [pod("first", "full"), pod("victim", "other"), pod("last", "full")];
    for (const each of pods) {
      await kube.create(kubernetes.Pod, each);
      await until(kubernetes.Pod, each.metadata, (object) => object?.status?.phase === "Running");
    }
    await kube.delete(kubernetes.Node, { name: "node-0" });
    for (const { metadata } of pods)
      expect(await whileTimeFlies(until(kubernetes.Pod, metadata, (object) => object === undefined))).toBeUndefined();
  });
});

test("garbage of a namespace that has much of it keeps none of others [cluster-full-5]", async () => {
  const count = 300;
  const asked: string[] = [];
  const released = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const { kube, clock, until, untilAll } = await startCluster({
    between: (next) => async (request, signal) => {
      const owner = request.method === "GET" ? /\/secrets\/(gone-[^/?]+)/.exec(request.target)?.[1] : undefined;
      if (owner !== undefined) {
        asked.push(owner);
        begun.resolve();
        await released.promise;
      }
      return next(request, signal);
    },
  });
  await makeNamespaces(kube, "full", "other");
  const owned = (name: string, namespace: string) =>
    kube.create(kubernetes.ConfigMap, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name,
        namespace,
        ownerReferences: [{ apiVersion: "v1", kind: "Secret", name: `gone-${name}`, uid: `uid-${name}` }],
      },
    });
  for (let index = 0; index < count; index += 1) await owned(`full-${index}`, "full");
  await begun.promise;
  await owned("single", "other");
  await until(kubernetes.ConfigMap, { name: "single", namespace: "other" }, (object) => object !== undefined);
  clock.skip(1000);
  released.resolve();
  const isGone = (objects: readonly { metadata: { name: string } }[]) =>
    objects.every(({ metadata }) => metadata.name === "kube-root-ca.crt");
  for (const namespace of ["other", "full"]) await untilAll(kubernetes.ConfigMap, { namespace }, isGone);
  expect(asked.indexOf("gone-single")).toBeGreaterThan(0);
  expect(asked.indexOf("gone-single")).toBeLessThan(count / 3);
});

test("namespaces take turns in a list, those of the cluster and the suite first [cluster-full-4]", () => {
  const keys = [
    "full/1",
    "full/2",
    "full/3",
    "other/1",
    `${suite}/1`,
    "other/2",
    `${buildNamespace}/1`,
    "kube-system/1",
  ];
  const pods = keys.map((key) => pod(key.slice(key.indexOf("/") + 1), key.slice(0, key.indexOf("/"))));
  expect(namespacesInTurn(pods).map(({ metadata: { namespace, name } }) => `${namespace}/${name}`)).toEqual([
    `${suite}/1`,
    `${buildNamespace}/1`,
    "kube-system/1",
    "full/1",
    "other/1",
    "full/2",
    "other/2",
    "full/3",
  ]);
});
