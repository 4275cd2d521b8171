import { describe, expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import { type InProcessCluster, inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { ControllerConfig } from "../api/controller-config.ts";
import { type Node, type Pod, kubernetes } from "../api/kubernetes.ts";
import { MachineConfig } from "../api/machine-config.ts";
import { MachineConfigNode } from "../api/machine-config-node.ts";
import { MachineConfigPool } from "../api/machine-config-pool.ts";
import { MachineConfiguration } from "../api/machine-configuration.ts";
import { annotations, labels, machineConfigNodeConditions, namespace, notYetSet, objects, taints } from "../api/names.ts";
import { conditionOf } from "../api/object.ts";
import { encodeDataUrl } from "../ignition/data-url.ts";
import { createEventRecorder } from "../kube/event-recorder.ts";
import type { HttpHandler } from "../ports/http.ts";
import { silentLogger } from "../ports/logger.ts";
import { memoryScribe } from "../ports/scribe.ts";
import { runController } from "./run-controller.ts";

const version = "1.0.0";

/** A cluster in virtual time whose machines do only what a test makes them do. */
class Scene {
  readonly kernel = new Kernel(7);
  readonly cluster: InProcessCluster;
  /** Stands between the controllers and the API server. */
  intercept: (handler: HttpHandler) => HttpHandler = (handler) => handler;
  readonly stopping = new AbortController();

  private constructor(kernel: Kernel, cluster: InProcessCluster) {
    this.kernel = kernel;
    this.cluster = cluster;
  }

  static async make(): Promise<Scene> {
    const kernel = new Kernel(7);
    const scene = new Scene(kernel, await kernel.complete(inProcessCluster(kernel), 60_000));
    const { kube } = scene;
    await scene.act(async () => {
      await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
      for (const name of ["master", "worker"]) await scene.pool(name);
      await kube.create(ControllerConfig, {
        apiVersion: ControllerConfig.apiVersion,
        kind: "ControllerConfig",
        metadata: { name: objects.controllerConfig, annotations: { [annotations.generatedByVersion]: version } },
        spec: { clusterDNSIP: "10.0.0.10", cloudProviderConfig: "", kubeAPIServerServingCAData: "", rootCAData: "", cloudProviderCAData: null, additionalTrustBundle: btoa("-- a bundle --\n"), images: {}, baseOSContainerImage: "os@sha256:0", releaseImage: "r", proxy: null, infra: null, dns: null, ipFamilies: "IPv4" },
      });
    });
    return scene;
  }

  get kube() {
    return this.cluster.kube;
  }

  act<T>(work: () => Promise<T>): Promise<T> {
    return this.kernel.complete(work(), 60_000);
  }

  pass(ms: number) {
    return this.kernel.run({ until: () => false, maxMs: ms });
  }

  pool(name: string, more: object = {}) {
    return this.kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name },
      spec: { machineConfigSelector: { matchLabels: { [labels.role]: name } }, nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } }, ...more },
    });
  }

  config(name: string, role: string, files: Readonly<Record<string, string>>, more: object = {}) {
    return this.kube.apply(
      MachineConfig,
      {
        metadata: { name, labels: { [labels.role]: role } },
        spec: { config: { ignition: { version: "3.4.0" }, storage: { files: Object.entries(files).map(([path, text]) => ({ path, mode: 0o644, contents: { source: encodeDataUrl(text) } })) } }, ...more },
      },
      { owner: "people" },
    );
  }

  async node(name: string, role: string, has: Readonly<Record<string, string>> = {}) {
    const nodeLabels = { [`node-role.kubernetes.io/${role}`]: "", ...(role === "master" ? { [labels.controlPlaneRole]: "" } : {}) };
    const made = await this.kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name, labels: nodeLabels, annotations: { ...has } }, spec: {} });
    // As the operator does.
    await this.kube.create(MachineConfigNode, { apiVersion: MachineConfigNode.apiVersion, kind: MachineConfigNode.kind, metadata: { name, ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: made.metadata.uid ?? "" }] }, spec: { node: { name }, pool: { name: role }, configVersion: { desired: notYetSet } } });
    await this.kube.patch(kubernetes.Node, { name }, { type: "merge", body: { status: { conditions: [{ type: "Ready", status: "True" }] } } }, { subresource: "status" });
    // A new node is tainted as not ready; the cluster's node controller takes that away, which does not run here.
    await this.kube.patch(kubernetes.Node, { name }, { type: "merge", body: { spec: { taints: null } } });
  }

  annotate(name: string, changes: Readonly<Record<string, string | null>>, spec?: object) {
    return this.kube.patch(kubernetes.Node, { name }, { type: "merge", body: { metadata: { annotations: changes }, ...(spec === undefined ? {} : { spec }) } });
  }

  /** What a daemon says when its machine has its target. */
  async finish(name: string) {
    const node = await this.kube.get(kubernetes.Node, { name });
    const desired = node?.metadata.annotations?.[annotations.desiredConfig] ?? "";
    await this.annotate(name, { [annotations.currentConfig]: desired, [annotations.state]: "Done" });
  }

  start() {
    const kube = this.cluster.client((request, signal) => this.intercept(this.cluster.transport)(request, signal));
    const ports = { clock: this.kernel.clock, random: this.kernel.random, log: silentLogger, scribe: memoryScribe() };
    const events = createEventRecorder({ ...ports, kube, component: "machineconfigcontroller" });
    void runController({ ...ports, kube, events, identity: "test", version }, this.stopping.signal);
  }

  async desired(role: string): Promise<Record<string, string>> {
    const { items } = await this.act(() => this.kube.list(kubernetes.Node, { labelSelector: `node-role.kubernetes.io/${role}` }));
    return Object.fromEntries(items.map((node) => [node.metadata.name, node.metadata.annotations?.[annotations.desiredConfig] ?? ""]));
  }

  async poolStatus(name: string) {
    const pool = await this.act(() => this.kube.get(MachineConfigPool, { name }));
    const conditions = pool?.status?.conditions as { type: string; status: string; reason: string; message: string }[] | undefined;
    return { pool, target: pool?.spec.configuration?.name ?? "", of: (type: string) => conditionOf(conditions, type) };
  }

  async node_(name: string): Promise<Node> {
    const node = await this.act(() => this.kube.get(kubernetes.Node, { name }));
    if (node === undefined) throw new Error(name);
    return node;
  }

  async events(reason: string): Promise<string[]> {
    const { items } = await this.act(() => this.kube.list(kubernetes.Event));
    return items.filter((event) => event.reason === reason).map(({ message }) => message ?? "");
  }
}

/** A worker pool with machines that have its first configuration. */
async function settledPool(machines: readonly string[]): Promise<{ scene: Scene; first: string }> {
  const scene = await Scene.make();
  await scene.act(() => scene.config("50-worker", "worker", { "/etc/a": "1" }));
  scene.start();
  await scene.pass(5000);
  const { target: first } = await scene.poolStatus("worker");
  for (const name of machines) await scene.act(() => scene.node(name, "worker", { [annotations.currentConfig]: first, [annotations.desiredConfig]: first, [annotations.state]: "Done" }));
  await scene.pass(3000);
  return { scene, first };
}

describe("base configurations and rendering", () => {
  test("the ControllerConfig becomes base configurations, and pools are rendered once these are complete", async () => {
    const scene = await Scene.make();
    scene.start();
    await scene.pass(5000);
    const { items } = await scene.act(() => scene.kube.list(MachineConfig));
    expect(items.map(({ metadata }) => metadata.name.replace(/[0-9a-f]{32}$/, "…")).toSorted()).toEqual(
      ["00-master", "00-worker", "01-master-container-runtime", "01-master-kubelet", "01-worker-container-runtime", "01-worker-kubelet", "rendered-master-…", "rendered-worker-…"],
    );
    const config = await scene.act(() => scene.kube.get(ControllerConfig, { name: objects.controllerConfig }));
    expect(config?.status?.observedGeneration).toBe(config?.metadata.generation);
    expect(conditionOf(config?.status?.conditions as { type: string }[], "TemplateControllerCompleted")).toMatchObject({ status: "True" });
    const { pool, target, of } = await scene.poolStatus("worker");
    expect((pool?.spec.configuration as { source?: { name: string }[] } | undefined)?.source?.map(({ name }) => name)).toEqual(["00-worker", "01-worker-container-runtime", "01-worker-kubelet"]);
    expect(of("RenderDegraded")?.status).toBe("False");
    expect(of("Updated")?.status).toBe("True");
    expect(await scene.events("RenderedConfigGenerated")).toContain(`${target} successfully generated (release version: 1.0.0, controller version: base-1)`);
  });

  test("a base configuration that somebody deletes comes back", async () => {
    const { scene, first } = await settledPool([]);
    await scene.act(() => scene.kube.delete(MachineConfig, { name: "01-worker-kubelet" }));
    await scene.pass(3000);
    expect((await scene.poolStatus("worker")).target).toBe(first);
  });

  test("nothing is rendered from a ControllerConfig of another version", async () => {
    const scene = await Scene.make();
    await scene.act(() => scene.kube.patch(ControllerConfig, { name: objects.controllerConfig }, { type: "merge", body: { metadata: { annotations: { [annotations.generatedByVersion]: "0.9.0" } } } }));
    scene.start();
    await scene.pass(5000);
    expect((await scene.poolStatus("worker")).target).toBe("");
    await scene.act(() => scene.kube.patch(ControllerConfig, { name: objects.controllerConfig }, { type: "merge", body: { metadata: { annotations: { [annotations.generatedByVersion]: version } } } }));
    await scene.pass(3000);
    expect((await scene.poolStatus("worker")).target).toMatch(/^rendered-worker-/);
  });

  test("a member that cannot be rendered degrades its pool only, with field and reason, until it is repaired", async () => {
    const { scene, first } = await settledPool(["w0"]);
    await scene.act(() => scene.config("99-bad", "worker", {}, { kernelType: "fast" }));
    await scene.pass(2000);
    const bad = await scene.poolStatus("worker");
    expect(bad.target).toBe(first);
    expect(bad.of("RenderDegraded")).toMatchObject({ status: "True", reason: "RenderRefused" });
    expect(bad.of("RenderDegraded")?.message).toContain("99-bad: spec.kernelType");
    expect(bad.of("Degraded")).toMatchObject({ status: "True", reason: "RenderDegraded" });
    expect((await scene.poolStatus("master")).of("Degraded")?.status).toBe("False");
    await scene.act(() => scene.kube.delete(MachineConfig, { name: "99-bad" }));
    await scene.pass(2000);
    expect((await scene.poolStatus("worker")).of("Degraded")?.status).toBe("False");
  });

  test("what running machines could not follow degrades the pool with the member's name, until the administrator allows it", async () => {
    const { scene, first } = await settledPool(["w0"]);
    const stretched = { config: { ignition: { version: "3.4.0" }, storage: { disks: [{ device: "/dev/vdb", wipeTable: true }] } } };
    await scene.act(() => scene.config("99-disk", "worker", {}, stretched));
    await scene.pass(2000);
    const refused = await scene.poolStatus("worker");
    expect(refused.target).toBe(first);
    expect(refused.of("RenderDegraded")).toMatchObject({ status: "True", reason: "RenderRefused" });
    expect(refused.of("RenderDegraded")?.message).toMatch(/^Failed to render configuration for pool worker: 99-disk: the section disks changes/);
    await scene.act(() => scene.kube.apply(MachineConfiguration, { metadata: { name: objects.machineConfiguration }, spec: { irreconcilableValidationOverrides: { storage: ["Disks"] } } }, { owner: "people" }));
    await scene.pass(2000);
    const allowed = await scene.poolStatus("worker");
    expect(allowed.of("RenderDegraded")?.status).toBe("False");
    expect(allowed.target).not.toBe(first);
  });

  test("a rendered config that was deleted while a pool needs it is made again", async () => {
    const { scene, first } = await settledPool([]);
    await scene.act(() => scene.kube.delete(MachineConfig, { name: first }));
    await scene.pass(2000);
    expect(await scene.act(() => scene.kube.get(MachineConfig, { name: first }))).toBeDefined();
  });
});

describe("roll-out", () => {
  test("a written MachineConfig reaches the first machine within a second", async () => {
    const { scene, first } = await settledPool(["w0", "w1"]);
    await scene.act(() => scene.config("60-worker", "worker", { "/etc/b": "1" }));
    await scene.pass(1000);
    expect(Object.values(await scene.desired("worker")).filter((desired) => desired !== first)).toHaveLength(1);
  });

  test("machines get the target one after the other, and the pool tells the story", async () => {
    const { scene, first } = await settledPool(["w0", "w1"]);
    expect((await scene.poolStatus("worker")).of("Updated")).toMatchObject({ status: "True", message: `All nodes are updated with MachineConfig ${first}` });
    await scene.act(() => scene.config("60-worker", "worker", { "/etc/b": "1" }));
    await scene.pass(2000);
    const { target, of } = await scene.poolStatus("worker");
    expect(target).not.toBe(first);
    expect(await scene.desired("worker")).toEqual({ w0: target, w1: first });
    expect(of("Updating")).toMatchObject({ status: "True", reason: "MaxUnavailableReached" });
    expect(of("Updating")?.message).toContain("waiting: w1 (BudgetUsed: 1 of 1 allowed unavailable: w0 updating)");
    expect((await scene.node_("w1")).spec?.taints).toEqual([{ key: taints.updateInProgress, effect: "PreferNoSchedule" }]);
    await scene.act(() => scene.finish("w0"));
    await scene.pass(2000);
    expect(await scene.desired("worker")).toEqual({ w0: target, w1: target });
    await scene.act(() => scene.finish("w1"));
    await scene.pass(2000);
    const done = await scene.poolStatus("worker");
    expect(done.of("Updated")?.status).toBe("True");
    expect(done.pool?.status).toMatchObject({ configuration: { name: target }, machineCount: 2, updatedMachineCount: 2, readyMachineCount: 2, unavailableMachineCount: 0, degradedMachineCount: 0, observedGeneration: done.pool?.metadata.generation });
    expect((await scene.node_("w1")).spec?.taints ?? []).toEqual([]);
    expect(await scene.events("Completed")).toContain(`Pool worker has completed update to MachineConfig ${target}`);
    const described = await scene.act(() => scene.kube.get(MachineConfigNode, { name: "w0" }));
    expect(described?.spec).toEqual({ node: { name: "w0" }, pool: { name: "worker" }, configVersion: { desired: target } });
    expect(described?.metadata.ownerReferences?.[0]).toMatchObject({ kind: "Node", name: "w0" });
  });

  test("an answer that is lost does not cost a second machine", async () => {
    const { scene, first } = await settledPool(["w0", "w1", "w2"]);
    let lost = 0;
    scene.intercept = (handler) => async (request, signal) => {
      const response = await handler(request, signal);
      // The write is carried out, and neither its answer nor, for a while, the news of it arrives.
      if (request.method === "PATCH" && request.target.startsWith("/api/v1/nodes/") && lost < 2) {
        lost += 1;
        throw new Error("connection reset");
      }
      return response;
    };
    await scene.act(() => scene.config("60-worker", "worker", { "/etc/b": "1" }));
    await scene.pass(20_000);
    expect(lost).toBe(2);
    expect(Object.values(await scene.desired("worker")).filter((desired) => desired !== first)).toHaveLength(1);
  });

  test("a machine whose write never arrived is given its target again", async () => {
    const { scene, first } = await settledPool(["w0", "w1"]);
    let lost = 0;
    scene.intercept = (handler) => async (request, signal) => {
      if (request.method === "PATCH" && request.target.startsWith("/api/v1/nodes/w0") && lost < 3) {
        lost += 1;
        throw new Error("connection refused");
      }
      return handler(request, signal);
    };
    await scene.act(() => scene.config("60-worker", "worker", { "/etc/b": "1" }));
    await scene.pass(20_000);
    const { target } = await scene.poolStatus("worker");
    expect(await scene.desired("worker")).toEqual({ w0: target, w1: first });
  });

  test("a paused pool renders and gives nobody anything", async () => {
    const { scene, first } = await settledPool(["w0"]);
    await scene.act(() => scene.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: { spec: { paused: true } } }));
    await scene.act(() => scene.config("60-worker", "worker", { "/etc/b": "1" }));
    await scene.pass(3000);
    const { target, of } = await scene.poolStatus("worker");
    expect(target).not.toBe(first);
    expect(await scene.desired("worker")).toEqual({ w0: first });
    expect(of("Updating")).toMatchObject({ status: "False", reason: "Paused" });
    await scene.act(() => scene.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: { spec: { paused: false } } }));
    await scene.pass(2000);
    expect(await scene.desired("worker")).toEqual({ w0: target });
  });

  test("machines of the control plane are told whether they are the only one", async () => {
    const scene = await Scene.make();
    await scene.act(() => scene.node("m0", "master"));
    scene.start();
    await scene.pass(5000);
    expect((await scene.node_("m0")).metadata.annotations?.[annotations.controlPlaneTopology]).toBe("SingleReplica");
    await scene.act(() => scene.node("m1", "master"));
    await scene.pass(3000);
    expect((await scene.node_("m0")).metadata.annotations?.[annotations.controlPlaneTopology]).toBe("HighlyAvailable");
    expect(Object.values(await scene.desired("master")).filter((desired) => desired !== "")).toHaveLength(1);
  });

  test("heartbeats of kubelets cause no write", async () => {
    const { scene } = await settledPool(["w0", "w1"]);
    await scene.pass(5000);
    let writes = 0;
    scene.intercept = (handler) => (request, signal) => {
      if (request.method !== "GET" && !request.target.includes("/leases/")) writes += 1;
      return handler(request, signal);
    };
    for (let beat = 0; beat < 5; beat += 1) {
      await scene.act(() => scene.kube.patch(kubernetes.Node, { name: "w0" }, { type: "merge", body: { status: { conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: new Date(scene.kernel.clock.now()).toISOString() }] } } }, { subresource: "status" }));
      await scene.pass(10_000);
    }
    expect(writes).toBe(0);
  });
});

describe("drain", () => {
  const pod = (name: string, node: string, app: string): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default", labels: { app } }, spec: { nodeName: node, terminationGracePeriodSeconds: 0, containers: [{ name: "c", image: "x" }] } });
  const running = { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } };

  async function withPod(): Promise<Scene> {
    const { scene } = await settledPool(["w0"]);
    await scene.act(async () => {
      await scene.kube.create(kubernetes.Pod, pod("web-1", "w0", "web"));
      await scene.kube.patch(kubernetes.Pod, { name: "web-1", namespace: "default" }, { type: "merge", body: running }, { subresource: "status" });
    });
    await scene.pass(500);
    return scene;
  }
  const request = (scene: Scene, value: string) => scene.act(() => scene.annotate("w0", { [annotations.desiredDrain]: value }));
  const applied = async (scene: Scene) => (await scene.node_("w0")).metadata.annotations?.[annotations.lastAppliedDrain];
  const drained = async (scene: Scene) => conditionOf((await scene.act(() => scene.kube.get(MachineConfigNode, { name: "w0" })))?.status?.conditions, machineConfigNodeConditions.drained);

  test("a node is cordoned, emptied, reported, and put back", async () => {
    const scene = await withPod();
    await request(scene, "drain-x");
    await scene.pass(2000);
    const node = await scene.node_("w0");
    expect(node.spec?.unschedulable).toBe(true);
    expect(node.metadata.annotations?.[annotations.cordonedFor]).toBe("drain-x");
    expect(await scene.act(() => scene.kube.get(kubernetes.Pod, { name: "web-1", namespace: "default" }))).toBeUndefined();
    expect(await applied(scene)).toBe("drain-x");
    expect(await drained(scene)).toMatchObject({ status: "True" });
    await request(scene, "uncordon-x");
    await scene.pass(1000);
    const back = await scene.node_("w0");
    expect(back.spec?.unschedulable).toBeUndefined();
    expect(back.metadata.annotations?.[annotations.cordonedFor]).toBeUndefined();
    expect(await applied(scene)).toBe("uncordon-x");
  });

  test("a budget holds a drain back; the reason is told, and lifting it lets the drain go on at once", async () => {
    const scene = await withPod();
    await scene.act(async () => {
      await scene.kube.create(kubernetes.PodDisruptionBudget, { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "keep-web", namespace: "default" }, spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } } });
      await scene.kube.patch(kubernetes.PodDisruptionBudget, { name: "keep-web", namespace: "default" }, { type: "merge", body: { status: { observedGeneration: 1, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, disruptionsAllowed: 0 } } }, { subresource: "status" });
    });
    await request(scene, "drain-x");
    await scene.pass(30_000);
    expect(await applied(scene)).toBeUndefined();
    expect(await drained(scene)).toMatchObject({ status: "Unknown", reason: "PodsBlocked" });
    expect((await drained(scene))?.message).toContain("default/web-1 (The disruption budget keep-web needs 1 healthy pods and has 1 currently)");
    expect((await scene.events("DrainBlocked")).length).toBe(1);
    await scene.act(() => scene.kube.delete(kubernetes.PodDisruptionBudget, { name: "keep-web", namespace: "default" }));
    await scene.pass(1000);
    expect(await applied(scene)).toBe("drain-x");
  });

  test("after the pool's deadline the drain says so, and still forces nothing", async () => {
    const scene = await withPod();
    await scene.act(async () => {
      await scene.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: { metadata: { annotations: { [annotations.drainDeadlineSeconds]: "60" } } } });
      await scene.kube.create(kubernetes.PodDisruptionBudget, { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "keep-web", namespace: "default" }, spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } } });
    });
    await request(scene, "drain-x");
    await scene.pass(120_000);
    expect(await drained(scene)).toMatchObject({ status: "Unknown", reason: "DrainDeadlineExceeded" });
    expect((await scene.events("DrainDeadlineExceeded")).length).toBe(1);
    expect(await scene.act(() => scene.kube.get(kubernetes.Pod, { name: "web-1", namespace: "default" }))).toBeDefined();
  });

  test("a cordon of an administrator stays when ours is not needed", async () => {
    const scene = await withPod();
    await scene.act(() => scene.kube.patch(kubernetes.Node, { name: "w0" }, { type: "merge", body: { spec: { unschedulable: true } } }));
    await request(scene, "drain-x");
    await scene.pass(2000);
    expect(await applied(scene)).toBe("drain-x");
    await request(scene, "uncordon-x");
    await scene.pass(1000);
    expect((await scene.node_("w0")).spec?.unschedulable).toBe(true);
    expect(await applied(scene)).toBe("uncordon-x");
  });

  test("a drained node that somebody puts back is drained again before its daemon may go on", async () => {
    const scene = await withPod();
    await request(scene, "drain-x");
    await scene.pass(2000);
    await scene.act(async () => {
      await scene.kube.patch(kubernetes.Node, { name: "w0" }, { type: "merge", body: { spec: { unschedulable: null } } });
      await scene.kube.create(kubernetes.Pod, pod("web-2", "w0", "web"));
    });
    await scene.pass(3000);
    expect((await scene.node_("w0")).spec?.unschedulable).toBe(true);
    expect(await scene.act(() => scene.kube.get(kubernetes.Pod, { name: "web-2", namespace: "default" }))).toBeUndefined();
    expect(await applied(scene)).toBe("drain-x");
  });
});
