import { describe, expect, test } from "vitest";
import { serverWithAdmin } from "../../../../test/support/server-with-admin.ts";
import { type Namespace, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import type { Context } from "../../../kube/controller.ts";
import { createKubeClient } from "../../../kube/kube-client.ts";
import type { HttpRequest } from "../../../ports/http.ts";
import { systemClock, systemRandom } from "../../../ports/node/index.ts";
import { namespaceLifecycleController } from "./namespace-lifecycle-controller.ts";

const doomed = { name: "doomed" };

/** A deleted namespace with ConfigMaps that a finalizer holds, and the controller that is to empty it. */
async function deletedNamespace(maps: Readonly<Record<string, { data?: string; finalizers: readonly string[] }>>) {
  const { server, kube } = serverWithAdmin();
  const transport = server.as({ name: "admin", groups: ["system:masters"] });
  const seen: { request: HttpRequest; answer: string }[] = [];
  const kubeOfController = createKubeClient({
    clock: systemClock,
    random: systemRandom,
    userAgent: "test",
    async transport(request, signal) {
      const response = await transport(request, signal);
      seen.push({ request, answer: typeof response.body === "string" ? response.body : "" });
      return response;
    },
  });

  await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: doomed });
  for (const [name, { data = "", finalizers }] of Object.entries(maps))
    await kube.create(kubernetes.ConfigMap, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, namespace: doomed.name, finalizers: [...finalizers] },
      data: { data },
    });
  await kube.delete(kubernetes.Namespace, doomed);

  const controller = namespaceLifecycleController();
  let atMs = 0;
  const clock = { ...systemClock, monotonic: () => atMs };
  const { signal } = new AbortController();
  return {
    controller,
    seen,
    namespace: () => kube.get(kubernetes.Namespace, doomed),
    letGo: (name: string) =>
      kube.patch(
        kubernetes.ConfigMap,
        { name, namespace: doomed.name },
        { type: "merge", body: { metadata: { finalizers: null } } },
      ),
    /** One pass, and its wait. @returns the seconds of that wait. */
    async pass(): Promise<number | undefined> {
      const namespace = await kube.get(kubernetes.Namespace, doomed);
      const caches = { of: () => ({ get: () => namespace }) };
      const context = { caches, kube: kubeOfController, clock, signal } as unknown as Context;
      const outcome = await controller.reconcile(doomed.name, context);
      const wait = outcome.kind === "done" ? outcome.reconcileAfterSeconds : undefined;
      atMs += (wait ?? 0) * 1000;
      return wait;
    },
  };
}

const held = { finalizers: ["test/hold"] };

describe("a deleted namespace whose objects are held", () => {
  test("is looked at less and less while nothing leaves it, and soon again once something did [cluster-namespaces-1]", async () => {
    const { pass, letGo, namespace } = await deletedNamespace({ one: held, two: held });
    const waits: number[] = [];
    for (let index = 0; index < 40; index += 1) waits.push((await pass()) ?? Number.NaN);
    expect(waits.slice(0, 5)).toEqual([0.5, 0.5, 0.5, 0.5, 0.5]);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(waits.slice(-5)).toEqual([60, 60, 60, 60, 60]);
    await letGo("one");
    expect(await pass()).toBe(0.5);
    await letGo("two");
    expect(await pass()).toBeUndefined();
    expect(await namespace()).toBeUndefined();
  });

  test("is looked at once when its deletion begins, not for what its conditions say [cluster-namespaces-2]", async () => {
    const { controller, namespace } = await deletedNamespace({ one: held });
    const deleted = await namespace();
    const of = (uid: string, deletionTimestamp?: string): Namespace => ({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { ...doomed, uid, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
    });
    const [present, gone, other] = [of("1"), of("1", "2030-01-01T00:00:00Z"), of("2", "2030-01-01T00:00:00Z")];
    const keysOf = (before: Namespace | undefined, after: Namespace | undefined) =>
      controller.watches[0].concerns?.({ key: doomed.name, before, after }, {} as never);
    expect(deleted?.metadata.deletionTimestamp).toBeDefined();
    expect(keysOf(undefined, present)).toEqual([]);
    expect(keysOf(undefined, gone)).toEqual([doomed.name]);
    expect(keysOf(present, gone)).toEqual([doomed.name]);
    expect(keysOf(gone, gone)).toEqual([]);
    expect(keysOf(gone, other)).toEqual([doomed.name]);
    expect(keysOf(gone, undefined)).toEqual([]);
  });

  test("is read in pages that show no content [cluster-namespaces-3]", async () => {
    const { pass, seen } = await deletedNamespace({ one: { ...held, data: "content ".repeat(10_000) } });
    await pass();
    await pass();
    const ofMaps = seen.filter(({ request }) => request.target.startsWith("/api/v1/namespaces/doomed/configmaps"));
    expect(ofMaps.map(({ request }) => request.method)).toEqual(["GET", "DELETE", "GET", "GET"]);
    for (const { request, answer } of ofMaps) {
      expect(answer).not.toContain("content content");
      expect(request.mostBytes).toBeLessThan(8 * 1024 * 1024);
      if (request.method === "GET") expect(request.target).toContain("limit=");
    }
  });

  test("names some of the finalizers that hold them, however many there are [cluster-namespaces-4]", async () => {
    const finalizers = Array.from({ length: 1000 }, (_, index) => `test/hold-${index}`);
    const { pass, namespace } = await deletedNamespace({ one: { finalizers } });
    await pass();
    const condition = conditionOf((await namespace())?.status?.conditions, "NamespaceFinalizersRemaining");
    expect(condition?.message).toMatch(/remaining: test\/hold-0 in 1 resource instances, .*, and 980 more$/);
  });
});
