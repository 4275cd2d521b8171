import { expect, test } from "vitest";
import { McoError } from "../api/errors.ts";
import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { silentLogger } from "../ports/logger.ts";
import { memoryJournal } from "../ports/journal.ts";
import { Kernel } from "../../test/simulation/kernel.ts";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { type Controller, machineCoalesceMs, runControllers, watching } from "./controller.ts";
import { withOverallDegraded } from "../core/pool/pool-status.ts";
import { createEventRecorder } from "./event-recorder.ts";
import { KubeError } from "./kube-error.ts";
import { done } from "./outcome.ts";

/** Runs a controller of pools that fails with `failure` three times, and returns what its condition has been. */
async function statusesAfter(
  failure: Error,
): Promise<{ statuses: Set<string>; looks: number[]; alone: readonly string[] }> {
  const alone: string[] = [];
  const kernel = new Kernel(9);
  const statuses = new Set<string>();
  const looks: number[] = [];
  const controller: Controller = {
    name: "test",
    watches: [watching({ resource: MachineConfigPool })],
    owns: [],
    degradedCondition: "RenderDegraded",
    withSummary: withOverallDegraded,
    reconcile: async () => {
      looks.push(kernel.now);
      if (looks.length <= 3) throw failure;
      return done();
    },
  };
  const stopping = new AbortController();
  void (async () => {
    const { kube } = await inProcessCluster(kernel);
    await kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name: "worker" },
      spec: {},
    } as MachineConfigPool);
    await kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { status: { conditions: [{ type: "Degraded", status: "False" }] } } },
      { subresource: "status" },
    );
    const ports = { clock: kernel.clock, random: kernel.random, log: silentLogger, journal: memoryJournal() };
    void runControllers(
      [controller],
      { ...ports, kube, events: createEventRecorder({ ...ports, kube, component: "test" }) },
      stopping.signal,
    );
    const { resourceVersion } = await kube.list(MachineConfigPool);
    for await (const event of kube.watch(
      MachineConfigPool,
      {},
      { resourceVersion, timeoutSeconds: 600 },
      stopping.signal,
    )) {
      if (event.type === "BOOKMARK") continue;
      const statusOf = (wanted: string) => event.object.status?.conditions?.find(({ type }) => type === wanted)?.status;
      const status = statusOf("RenderDegraded");
      if (status !== undefined && statusOf("Degraded") !== status) alone.push(`${status} ${statusOf("Degraded")}`);
      if (status !== undefined) statuses.add(status);
    }
  })().catch(() => undefined);
  await kernel.run({ until: () => statuses.has("False"), maxMs: 600_000 });
  stopping.abort(new Error("the test is over"));
  return { statuses, looks, alone };
}

test.for([
  { title: "the server cannot be reached", failure: new McoError("MCO_KUBE_REQUEST_FAILED", {}) },
  { title: "the server is busy", failure: new KubeError(503, {}, "GET /") },
  { title: "the server does not know us for the moment", failure: new KubeError(401, {}, "GET /") },
])("while $title, no object is called degraded [kube-controller-1]", async ({ failure }) => {
  expect([...(await statusesAfter(failure)).statuses]).toEqual(["False"]);
});

test("a condition and the one that sums it up are written together [kube-controller-2]", async () => {
  const { statuses, alone } = await statusesAfter(new KubeError(422, { reason: "Invalid" }, "PATCH /"));
  expect([[...statuses], alone]).toEqual([["True", "False"], []]);
});

test("what the server refuses for good is shown until it is over", async () => {
  expect([...(await statusesAfter(new KubeError(422, { reason: "Invalid" }, "PATCH /"))).statuses]).toEqual([
    "True",
    "False",
  ]);
});

test("a key whose request a busy server turned away is looked at again no earlier than the server asks", async () => {
  const { looks } = await statusesAfter(new KubeError(429, {}, `GET ${kubernetes.Pod.plural}`, 20));
  for (const [index, at] of looks.slice(1).entries()) expect(at - (looks[index] ?? 0)).toBeGreaterThanOrEqual(20_000);
});

test("two watches of one kind with other selections are two caches, slim where asked, and a kind that the server does not have is empty until it comes", async () => {
  const kernel = new Kernel(10);
  const seen: string[][] = [];
  const stopping = new AbortController();
  const later = { ...MachineConfigPool, kind: "Later", plural: "laters" } as typeof MachineConfigPool;
  const trim = (object: ConfigMap): ConfigMap => ({ ...object, data: {} });
  const [red, blue] = [{ labelSelector: "colour=red" }, { labelSelector: "colour=blue" }];
  const controller: Controller = {
    name: "test",
    watches: [
      watching({ resource: kubernetes.ConfigMap, selection: red, keep: trim }),
      watching({ resource: kubernetes.ConfigMap, selection: blue }),
      watching({ resource: later, optional: true }),
    ],
    owns: [],
    reconcile: async (_key, { caches }) => {
      const words = (selection: typeof red) =>
        caches
          .of(kubernetes.ConfigMap, selection)
          .list()
          .map(({ metadata, data }) => `${metadata.name}:${data?.["word"] ?? ""}`);
      seen.push([...words(red), ...words(blue), `${caches.of(later).size}`]);
      return done();
    },
  };
  const ports = { clock: kernel.clock, random: kernel.random, log: silentLogger, journal: memoryJournal() };
  void (async () => {
    const { kube } = await inProcessCluster(kernel);
    for (const colour of ["red", "blue", "green"])
      await kube.create(kubernetes.ConfigMap, {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: colour, namespace: "default", labels: { colour } },
        data: { word: colour },
      });
    await runControllers(
      [controller],
      { ...ports, kube, events: createEventRecorder({ ...ports, kube, component: "test" }) },
      stopping.signal,
    );
  })().catch(() => undefined);
  await kernel.run({ until: () => seen.some((words) => words.length === 3), maxMs: 100_000 });
  stopping.abort(new Error("the test is over"));
  expect(seen.at(-1)).toEqual(["red:", "blue:blue", "0"]);
});

test("changes of what machines write cause one run in a time, and others run at once [attack-rates-4]", async () => {
  const kernel = new Kernel(12);
  const runs: number[] = [];
  const stopping = new AbortController();
  const one = () => ["all"];
  const controller: Controller = {
    name: "test",
    watches: [
      watching({ resource: kubernetes.ConfigMap, coalesceMs: machineCoalesceMs, concerns: one }),
      watching({ resource: MachineConfigPool, concerns: one }),
    ],
    owns: [],
    reconcile: () => {
      runs.push(kernel.now);
      return Promise.resolve(done());
    },
  };
  const { kube } = await kernel.complete(inProcessCluster(kernel), 60_000);
  const ports = { clock: kernel.clock, random: kernel.random, log: silentLogger, journal: memoryJournal() };
  void runControllers(
    [controller],
    { ...ports, kube, events: createEventRecorder({ ...ports, kube, component: "test" }) },
    stopping.signal,
  );
  const pass = (ms: number) => kernel.complete(kernel.clock.sleep(ms), 2 * ms);
  const put = (value: number) =>
    kernel.complete(
      kube.apply(
        kubernetes.ConfigMap,
        { metadata: { name: "m", namespace: "default" }, data: { value: String(value) } },
        { owner: "test" },
      ),
      60_000,
    );
  await pass(10_000);
  runs.length = 0;
  for (let value = 0; value < 40; value += 1) {
    await put(value);
    await pass(250);
  }
  expect(runs.length).toBeGreaterThan(5);
  expect(runs.length).toBeLessThanOrEqual(11);
  const last = kernel.now;
  await put(40);
  await pass(1100);
  expect(runs.at(-1)).toBeGreaterThan(last);

  const began = kernel.now;
  await kernel.complete(
    kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name: "worker" },
      spec: {},
    } as MachineConfigPool),
    60_000,
  );
  await pass(400);
  expect(runs.at(-1)).toBeGreaterThan(began);
  stopping.abort(new Error("the test is over"));
});

test("no pass runs before every watched kind has been read once", async () => {
  const kernel = new Kernel(10);
  const seen: number[] = [];
  const controller: Controller = {
    name: "test",
    watches: [watching({ resource: MachineConfigPool }), watching({ resource: kubernetes.Node, concerns: () => [] })],
    owns: [],
    reconcile: async (_key, { caches }) => {
      seen.push(caches.of(kubernetes.Node).size);
      return done();
    },
  };
  const stopping = new AbortController();
  void (async () => {
    const cluster = await inProcessCluster(kernel);
    await cluster.kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name: "worker" },
      spec: {},
    } as MachineConfigPool);
    await cluster.kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "worker-0" } });
    const kube = cluster.client(async (request, signal) => {
      if (request.target.startsWith("/api/v1/nodes")) await kernel.clock.sleep(5000, signal);
      return cluster.transport(request, signal);
    });
    const ports = { clock: kernel.clock, random: kernel.random, log: silentLogger, journal: memoryJournal() };
    void runControllers(
      [controller],
      { ...ports, kube, events: createEventRecorder({ ...ports, kube, component: "test" }) },
      stopping.signal,
    );
  })();
  await kernel.run({ until: () => seen.length > 0, maxMs: 60_000 });
  stopping.abort(new Error("the test is over"));
  expect(seen).toEqual([1]);
});
