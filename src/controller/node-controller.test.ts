import { describe, expect, test, vi } from "vitest";
import { type Scene, settledPool } from "../../test/support/control-plane-scene.ts";
import { type Pod, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, labels, namespace } from "../api/names.ts";
import { ClusterMembers } from "../core/pool/cluster-members.ts";
import { PoolMembers } from "../core/pool/pool-members.ts";

const change = (scene: Scene, more: Readonly<Record<string, string>> = { "/etc/b": "1" }, role = "worker") =>
  scene.act(() => scene.config(`60-${role}`, role, more));
const patchPool = (scene: Scene, body: object, name = "worker") =>
  scene.act(() => scene.kube.patch(MachineConfigPool, { name }, { type: "merge", body }));

/** A pod that is where it is and ready or not; nothing runs it. */
async function pod(
  scene: Scene,
  {
    name,
    inNamespace,
    labels: podLabels,
    on,
    ready,
  }: { name: string; inNamespace: string; labels: Readonly<Record<string, string>>; on: string; ready: boolean },
): Promise<void> {
  await scene.act(async () => {
    if ((await scene.kube.get(kubernetes.Namespace, { name: inNamespace })) === undefined)
      await scene.kube.create(kubernetes.Namespace, {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: inNamespace },
      });
    await scene.kube.create(kubernetes.Pod, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: inNamespace, labels: podLabels },
      spec: { nodeName: on, containers: [{ name: "c", image: "x" }] },
    } as unknown as Pod);
  });
  await judge(scene, name, inNamespace, ready);
}

async function judge(scene: Scene, name: string, inNamespace: string, ready: boolean): Promise<void> {
  const lastTransitionTime = `${new Date(scene.kernel.clock.now()).toISOString().slice(0, 19)}Z`;
  const status = {
    phase: "Running",
    conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime }],
  };
  await scene.act(() =>
    scene.kube.patch(
      kubernetes.Pod,
      { name, namespace: inNamespace },
      { type: "merge", body: { status } },
      { subresource: "status" },
    ),
  );
}

async function masters(scene: Scene, names: readonly string[]): Promise<string> {
  await scene.act(() => scene.config("50-master", "master", { "/etc/m": "1" }));
  await scene.pass(2000);
  const { target } = await scene.poolStatus("master");
  for (const name of names)
    await scene.act(() =>
      scene.node(name, "master", {
        [annotations.currentConfig]: target,
        [annotations.desiredConfig]: target,
        [annotations.state]: "Done",
      }),
    );
  await scene.pass(2000);
  return target;
}

const chosen = async (scene: Scene, role: string, before: string) =>
  Object.entries(await scene.desired(role)).flatMap(([name, desired]) => (desired === before ? [] : [name]));

describe("who gets the target", () => {
  test("as many as the pool allows get it at the same time, which is one event [node-controller-10]", async () => {
    const { scene, first } = await settledPool(["w0", "w1", "w2"]);
    await patchPool(scene, { spec: { maxUnavailable: 2 } });
    await change(scene);
    await scene.pass(2000);
    expect(await chosen(scene, "worker", first)).toEqual(["w0", "w1"]);
    const { target } = await scene.poolStatus("worker");
    expect(await scene.events("SetDesiredConfig")).toContain(
      `Set target for 2 nodes to MachineConfig ${target}: w0, w1`,
    );
    expect(await scene.events("Updating")).toEqual([`Pool worker is updating to MachineConfig ${target}`]);
  });

  test("a machine in the middle of an update gets the newest target at once, and several changes are one disruption for the others [node-controller-6]", async () => {
    const { scene, first } = await settledPool(["w0", "w1"]);
    await change(scene);
    await scene.pass(2000);
    expect(await chosen(scene, "worker", first)).toEqual(["w0"]);
    await scene.act(() => scene.annotate("w0", { [annotations.state]: "Working" }));
    await change(scene, { "/etc/b": "2" });
    await scene.pass(2000);
    const { target } = await scene.poolStatus("worker");
    expect(await scene.desired("worker")).toEqual({ w0: target, w1: first });
    await change(scene, { "/etc/b": "3" });
    await scene.pass(2000);
    const { target: newest } = await scene.poolStatus("worker");
    await scene.act(() => scene.finish("w0"));
    await scene.pass(2000);
    expect(await scene.desired("worker")).toEqual({ w0: newest, w1: newest });
  });

  test("one zone at a time, where the pool asks for it [node-controller-9]", async () => {
    const { scene, first } = await settledPool(["w0", "w1", "w2"]);
    const zones = { w0: "z1", w1: "z2", w2: "z2" };
    for (const [name, zone] of Object.entries(zones))
      await scene.act(() =>
        scene.kube.patch(
          kubernetes.Node,
          { name },
          { type: "merge", body: { metadata: { labels: { [labels.zone]: zone } } } },
        ),
      );
    await patchPool(scene, {
      metadata: { annotations: { [annotations.oneZoneAtATime]: "true" } },
      spec: { maxUnavailable: 3 },
    });
    await change(scene);
    await scene.pass(2000);
    expect(await chosen(scene, "worker", first)).toEqual(["w0"]);
    expect((await scene.poolStatus("worker")).of("Updating")?.message).toContain(
      "w1, w2 (ZoneBusy: w0 of zone z1 is away, and the pool updates one zone at a time)",
    );
    await scene.act(() => scene.finish("w0"));
    await scene.pass(2000);
    expect(await chosen(scene, "worker", first)).toEqual(["w0", "w1", "w2"]);
  });

  test("a control plane waits while a member of etcd elsewhere is not ready [node-controller-7]", async () => {
    const { scene } = await settledPool([]);
    const first = await masters(scene, ["m0", "m1"]);
    for (const name of ["m0", "m1"])
      await pod(scene, {
        name: `etcd-${name}`,
        inNamespace: "openshift-etcd",
        labels: { app: "etcd" },
        on: name,
        ready: true,
      });
    await judge(scene, "etcd-m1", "openshift-etcd", false);
    await scene.pass(1000);
    await change(scene, { "/etc/b": "1" }, "master");
    await scene.pass(3000);
    // The one whose own member is sick is not kept from its update.
    expect(await chosen(scene, "master", first)).toEqual(["m1"]);
    await scene.act(() => scene.finish("m1"));
    await scene.pass(3000);
    expect(await chosen(scene, "master", first)).toEqual(["m1"]);
    expect((await scene.poolStatus("master")).of("Updating")?.message).toContain(
      "m0 (EtcdUnhealthy: the etcd member on m1 is not ready, and taking m0 away could cost etcd its quorum)",
    );
    await judge(scene, "etcd-m1", "openshift-etcd", true);
    await scene.pass(3000);
    expect(await chosen(scene, "master", first)).toEqual(["m0", "m1"]);
  });

  test("the operator's own machine is the last of the control plane [node-controller-8]", async () => {
    const { scene } = await settledPool([]);
    const first = await masters(scene, ["m0", "m1"]);
    await pod(scene, {
      name: "operator",
      inNamespace: namespace,
      labels: { "k8s-app": "machine-config-operator" },
      on: "m0",
      ready: true,
    });
    await scene.pass(1000);
    await change(scene, { "/etc/b": "1" }, "master");
    await scene.pass(3000);
    expect(await chosen(scene, "master", first)).toEqual(["m1"]);
    expect(await scene.events("DeferringOperatorNodeUpdate")).toEqual([
      "The operator runs on m0, which is updated last",
    ]);
    await scene.act(() => scene.finish("m1"));
    await scene.pass(3000);
    expect(await chosen(scene, "master", first)).toEqual(["m0", "m1"]);
  });

  test("a machine whose drain was given up gives its place to another, and is offered its target again when its time comes [node-controller-1]", async () => {
    const { scene, first } = await settledPool(["w0", "w1"]);
    await change(scene);
    await scene.pass(2000);
    const { target } = await scene.poolStatus("worker");
    const stamp = (ms: number) => `${new Date(scene.kernel.clock.now() + ms).toISOString().slice(0, 19)}Z`;
    const note = JSON.stringify({
      request: `drain-${target}`,
      at: stamp(0),
      again: stamp(300_000),
      why: "pod default/web by its budget",
    });
    await scene.act(() => scene.annotate("w0", { [annotations.state]: "Working", [annotations.drainSkipped]: note }));
    await scene.pass(2000);
    expect(await chosen(scene, "worker", first)).toEqual(["w0", "w1"]);
    expect((await scene.poolStatus("worker")).of("Updating")?.message).toContain(
      "w0 (DrainSkipped: its drain took longer than the pool gives it and is tried again after",
    );
    await scene.act(() => scene.finish("w1"));
    await scene.pass(200_000);
    expect((await scene.node_("w0")).metadata.annotations?.[annotations.drainSkipped]).toBe(note);
    await scene.pass(110_000);
    expect((await scene.node_("w0")).metadata.annotations?.[annotations.drainSkipped]).toBeUndefined();
  });
});

describe("what the pool and its nodes are told", () => {
  test("a daemon that is silent for five minutes counts as away and is named; one that is away for a moment does not [node-controller-11]", async () => {
    const { scene, first } = await settledPool(["w0", "w1"]);
    await pod(scene, {
      name: "daemon-w0",
      inNamespace: namespace,
      labels: { "k8s-app": "machine-config-daemon" },
      on: "w0",
      ready: false,
    });
    await scene.pass(200_000);
    expect((await scene.poolStatus("worker")).pool?.status).toMatchObject({
      unavailableMachineCount: 0,
      updatedMachineCount: 2,
    });
    await scene.pass(110_000);
    const { pool, of } = await scene.poolStatus("worker");
    expect(pool?.status).toMatchObject({ unavailableMachineCount: 1, updatedMachineCount: 2 });
    expect(of("Updated")).toMatchObject({ status: "True" });
    expect(of("Updated")?.message).toContain("the daemon of w0 is silent since");
    await change(scene);
    await scene.pass(2000);
    expect(await chosen(scene, "worker", first)).toEqual(["w0"]);
    await judge(scene, "daemon-w0", namespace, true);
    await scene.pass(2000);
    expect((await scene.poolStatus("worker")).of("Updating")?.message).not.toContain("silent");
  });

  test("a node that two custom pools select gets nothing, and node and pools say why, until a label goes [node-controller-3]", async () => {
    const { scene } = await settledPool([]);
    const selects = (role: string) => ({
      machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: "In", values: ["worker", role] }] },
    });
    for (const name of ["infra", "gpu"]) await scene.act(() => scene.pool(name, selects(name)));
    await scene.pass(2000);
    await scene.act(() => scene.node("x", "infra"));
    await scene.act(() =>
      scene.kube.patch(
        kubernetes.Node,
        { name: "x" },
        { type: "merge", body: { metadata: { labels: { "node-role.kubernetes.io/gpu": "" } } } },
      ),
    );
    await scene.act(() => scene.annotate("x", { [annotations.desiredConfig]: null }));
    await scene.pass(3000);
    expect((await scene.node_("x")).metadata.annotations?.[annotations.desiredConfig]).toBeUndefined();
    expect(await scene.events("SeveralPools")).toEqual([
      "the pools gpu and infra select x, so that it belongs to none of them and is not updated; take a label away that only one of them selects by",
    ]);
    for (const name of ["infra", "gpu"])
      expect((await scene.poolStatus(name)).of("Updated")?.message).toContain(
        "x is selected by gpu and infra and so belongs to none of them",
      );
    await scene.act(() =>
      scene.kube.patch(
        kubernetes.Node,
        { name: "x" },
        { type: "merge", body: { metadata: { labels: { "node-role.kubernetes.io/gpu": null } } } },
      ),
    );
    await scene.pass(3000);
    const { target } = await scene.poolStatus("infra");
    expect((await scene.node_("x")).metadata.annotations?.[annotations.desiredConfig]).toBe(target);
    expect((await scene.act(() => scene.kube.get(MachineConfigNode, { name: "x" })))?.spec).toMatchObject({
      pool: { name: "infra" },
      configVersion: { desired: target },
    });
  });

  test("a node that was served a custom pool's configuration gets that pool's labels, once [node-controller-4]", async () => {
    const { scene, first } = await settledPool(["w0"]);
    await scene.act(() =>
      scene.pool("infra", {
        machineConfigSelector: {
          matchExpressions: [{ key: labels.role, operator: "In", values: ["worker", "infra"] }],
        },
      }),
    );
    await scene.act(() => scene.annotate("w0", { [annotations.firstPivotConfig]: first.replace("worker", "infra") }));
    await scene.pass(3000);
    expect((await scene.node_("w0")).metadata.labels).toHaveProperty(["node-role.kubernetes.io/infra"]);
    await scene.act(() =>
      scene.kube.patch(
        kubernetes.Node,
        { name: "w0" },
        { type: "merge", body: { metadata: { labels: { "node-role.kubernetes.io/infra": null } } } },
      ),
    );
    await scene.pass(3000);
    expect((await scene.node_("w0")).metadata.labels).not.toHaveProperty(["node-role.kubernetes.io/infra"]);
  });

  test("a pool whose selector is empty selects nobody, and says so [node-controller-5]", async () => {
    const { scene } = await settledPool([]);
    await scene.act(() => scene.pool("all", { nodeSelector: {} }));
    await scene.pass(2000);
    expect(await scene.events("SelectingAll")).toEqual([
      "This machineconfigpool is selecting all nodes. A non-empty selector is required.",
    ]);
  });

  test("counts do not move when a daemon or the watch of it comes and goes [node-controller-12]", async () => {
    const { scene } = await settledPool(["w0", "w1"]);
    await pod(scene, {
      name: "daemon-w0",
      inNamespace: namespace,
      labels: { "k8s-app": "machine-config-daemon" },
      on: "w0",
      ready: true,
    });
    await scene.pass(2000);
    const before = (await scene.poolStatus("worker")).pool?.metadata.resourceVersion;
    await judge(scene, "daemon-w0", namespace, false);
    await scene.pass(20_000);
    await scene.act(() => scene.kube.delete(kubernetes.Pod, { name: "daemon-w0", namespace }));
    await scene.pass(60_000);
    expect((await scene.poolStatus("worker")).pool?.metadata.resourceVersion).toBe(before);
  });
});

test("the news of one machine is judged for that machine alone, however many there are [node-controller-2]", async () => {
  const names = Array.from({ length: 60 }, (_, index) => `w${index}`);
  const { scene } = await settledPool(names);
  await scene.pass(5000);
  const [judged, listed] = [vi.spyOn(PoolMembers.prototype, "put"), vi.spyOn(PoolMembers.prototype, "all")];
  const placed = vi.spyOn(ClusterMembers.prototype, "putNode");
  try {
    await scene.act(() => scene.annotate("w7", { [annotations.state]: "Degraded", [annotations.reason]: "no space" }));
    await scene.pass(2000);
    expect((await scene.poolStatus("worker")).pool?.status?.degradedMachineCount).toBe(1);
    expect(placed).toHaveBeenCalledTimes(1);
    expect(judged).toHaveBeenCalledTimes(1);
    expect(listed).not.toHaveBeenCalled();
  } finally {
    for (const spy of [judged, listed, placed]) spy.mockRestore();
  }
});
