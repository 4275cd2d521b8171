import { mirrorAnnotation } from "../core/pool/mirror-pods.ts";
import { describe, expect, test, vi } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { type Pod, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { annotations, labels, namespace } from "../api/names.ts";
import { ClusterMembers } from "../core/pool/cluster-members.ts";
import { PoolMembers } from "../core/pool/pool-members.ts";

const change = (harness: Harness, more: Readonly<Record<string, string>> = { "/etc/b": "1" }, role = "worker") =>
  harness.act(() => harness.config(`60-${role}`, role, more));
const patchPool = (harness: Harness, body: object, name = "worker") =>
  harness.act(() => harness.kube.patch(MachineConfigPool, { name }, { type: "merge", body }));

/** A pod that is where it is and ready or not; nothing runs it. */
async function pod(
  harness: Harness,
  {
    name,
    inNamespace,
    labels: podLabels,
    on,
    ready,
    isStatic = false,
  }: {
    name: string;
    inNamespace: string;
    labels: Readonly<Record<string, string>>;
    on: string;
    ready: boolean;
    isStatic?: boolean;
  },
): Promise<void> {
  await harness.act(async () => {
    if ((await harness.kube.get(kubernetes.Namespace, { name: inNamespace })) === undefined)
      await harness.kube.create(kubernetes.Namespace, {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: inNamespace },
      });
    await harness.kube.create(kubernetes.Pod, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name,
        namespace: inNamespace,
        labels: podLabels,
        ...(isStatic ? mirrorOf((await harness.kube.get(kubernetes.Node, { name: on }))?.metadata.uid ?? "", on) : {}),
      },
      spec: { nodeName: on, containers: [{ name: "c", image: "x" }] },
    } as unknown as Pod);
  });
  await judge(harness, name, inNamespace, ready);
}

/** The marks that a kubelet gives the mirror of a static pod. */
const mirrorOf = (uid: string, node: string) => ({
  annotations: { [mirrorAnnotation]: "hash" },
  ownerReferences: [{ apiVersion: "v1", kind: "Node", name: node, uid, controller: true }],
});

async function judge(harness: Harness, name: string, inNamespace: string, ready: boolean): Promise<void> {
  const lastTransitionTime = `${new Date(harness.kernel.clock.now()).toISOString().slice(0, 19)}Z`;
  const status = {
    phase: "Running",
    conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime }],
  };
  await harness.act(() =>
    harness.kube.patch(
      kubernetes.Pod,
      { name, namespace: inNamespace },
      { type: "merge", body: { status } },
      { subresource: "status" },
    ),
  );
}

async function masters(harness: Harness, names: readonly string[]): Promise<string> {
  await harness.act(() => harness.config("50-master", "master", { "/etc/m": "1" }));
  await harness.pass(2000);
  const { target } = await harness.poolStatus("master");
  for (const name of names)
    await harness.act(() =>
      harness.node(name, "master", {
        [annotations.currentConfig]: target,
        [annotations.desiredConfig]: target,
        [annotations.state]: "Done",
      }),
    );
  await harness.pass(2000);
  return target;
}

const chosen = async (harness: Harness, role: string, before: string) =>
  Object.entries(await harness.desired(role)).flatMap(([name, desired]) => (desired === before ? [] : [name]));

describe("the order of targets", () => {
  test("as many machines as the pool allows get the target at once, with one Event [node-controller-10]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1", "w2"]);
    await patchPool(harness, { spec: { maxUnavailable: 2 } });
    await change(harness);
    await harness.pass(2000);
    expect(await chosen(harness, "worker", first)).toEqual(["w0", "w1"]);
    const { target } = await harness.poolStatus("worker");
    expect(await harness.events("SetDesiredConfig")).toContain(
      `Set target for 2 nodes to MachineConfig ${target}: w0, w1`,
    );
    expect(await harness.events("Updating")).toEqual([`Pool worker is updating to MachineConfig ${target}`]);
  });

  test("an updating machine gets the newest target at once; the others get several changes as one disruption [node-controller-6]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    await change(harness);
    await harness.pass(2000);
    expect(await chosen(harness, "worker", first)).toEqual(["w0"]);
    await harness.act(() => harness.annotate("w0", { [annotations.state]: "Working" }));
    await change(harness, { "/etc/b": "2" });
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    expect(await harness.desired("worker")).toEqual({ w0: target, w1: first });
    await change(harness, { "/etc/b": "3" });
    await harness.pass(2000);
    const { target: newest } = await harness.poolStatus("worker");
    await harness.act(() => harness.finish("w0"));
    await harness.pass(2000);
    expect(await harness.desired("worker")).toEqual({ w0: newest, w1: newest });
  });

  test("a pool with one zone at a time updates no second zone [node-controller-9]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1", "w2"]);
    const zones = { w0: "z1", w1: "z2", w2: "z2" };
    for (const [name, zone] of Object.entries(zones))
      await harness.act(() =>
        harness.kube.patch(
          kubernetes.Node,
          { name },
          { type: "merge", body: { metadata: { labels: { [labels.zone]: zone } } } },
        ),
      );
    await patchPool(harness, {
      metadata: { annotations: { [annotations.oneZoneAtATime]: "true" } },
      spec: { maxUnavailable: 3 },
    });
    await change(harness);
    await harness.pass(2000);
    expect(await chosen(harness, "worker", first)).toEqual(["w0"]);
    expect((await harness.poolStatus("worker")).of("Updating")?.message).toContain(
      "w1, w2 (ZoneBusy: w0 of zone z1 is away, and the pool updates one zone at a time)",
    );
    await harness.act(() => harness.finish("w0"));
    await harness.pass(2000);
    expect(await chosen(harness, "worker", first)).toEqual(["w0", "w1", "w2"]);
  });

  test("a control-plane machine waits while another machine's etcd member is not ready [node-controller-7]", async () => {
    const { harness } = await updatedPool([]);
    await harness.act(() => harness.ofOpenShift());
    const first = await masters(harness, ["m0", "m1"]);
    for (const name of ["m0", "m1"])
      await pod(harness, {
        name: `etcd-${name}`,
        inNamespace: "openshift-etcd",
        labels: { app: "etcd" },
        on: name,
        ready: true,
        isStatic: true,
      });
    await judge(harness, "etcd-m1", "openshift-etcd", false);
    await harness.pass(1000);
    await change(harness, { "/etc/b": "1" }, "master");
    await harness.pass(3000);
    // The one whose own member is sick is not kept from its update.
    expect(await chosen(harness, "master", first)).toEqual(["m1"]);
    await harness.act(() => harness.finish("m1"));
    await harness.pass(3000);
    expect(await chosen(harness, "master", first)).toEqual(["m1"]);
    expect((await harness.poolStatus("master")).of("Updating")?.message).toContain(
      "m0 (EtcdUnhealthy: the etcd member on m1 is not ready, and taking m0 away could cost etcd its quorum)",
    );
    await judge(harness, "etcd-m1", "openshift-etcd", true);
    await harness.pass(3000);
    expect(await chosen(harness, "master", first)).toEqual(["m0", "m1"]);
  });

  test("a control-plane machine does not wait for a pod that a worker's kubelet labelled like etcd's [node-controller-13]", async () => {
    const { harness } = await updatedPool(["w0"]);
    const first = await masters(harness, ["m0"]);
    await pod(harness, {
      name: "looks-like-etcd",
      inNamespace: "kube-system",
      labels: { component: "etcd" },
      on: "w0",
      ready: false,
    });
    await harness.pass(1000);
    await change(harness, { "/etc/b": "1" }, "master");
    await harness.pass(3000);
    expect(await chosen(harness, "master", first)).toEqual(["m0"]);
  });

  test.for<{ title: string; cluster: "plain" | "ofEarlierVersion" | "ofOpenShift"; isStatic: boolean }>([
    { title: "a cluster that is not OpenShift's, whatever they look like", cluster: "plain", isStatic: true },
    { title: "a cluster that an earlier version took for OpenShift's", cluster: "ofEarlierVersion", isStatic: true },
    { title: "OpenShift, where they are no static pods", cluster: "ofOpenShift", isStatic: false },
  ])(
    "pods in openshift-etcd hold back no control-plane machine of $title [node-controller-15]",
    async ({ cluster, isStatic }) => {
      const { harness } = await updatedPool([]);
      if (cluster !== "plain") await harness.act(() => harness[cluster]());
      const first = await masters(harness, ["m0", "m1"]);
      for (const on of ["m0", "m1"])
        await pod(harness, {
          name: `x-${on}`,
          inNamespace: "openshift-etcd",
          labels: { app: "etcd" },
          on,
          ready: false,
          isStatic,
        });
      await harness.pass(1000);
      await change(harness, { "/etc/b": "1" }, "master");
      await harness.pass(3000);
      expect(await chosen(harness, "master", first)).toEqual(["m0"]);
    },
  );

  test("a control-plane machine waits while the etcd member of an arbiter is not ready [node-controller-14]", async () => {
    const { harness } = await updatedPool([]);
    await harness.act(() => harness.ofOpenShift());
    const first = await masters(harness, ["m0"]);
    await harness.act(() => harness.node("a0", "arbiter"));
    await pod(harness, {
      name: "etcd-a0",
      inNamespace: "openshift-etcd",
      labels: { app: "etcd" },
      on: "a0",
      ready: false,
      isStatic: true,
    });
    await harness.pass(1000);
    await change(harness, { "/etc/b": "1" }, "master");
    await harness.pass(3000);
    expect(await chosen(harness, "master", first)).toEqual([]);
  });

  test("the operator's machine updates last in the control plane [node-controller-8]", async () => {
    const { harness } = await updatedPool([]);
    const first = await masters(harness, ["m0", "m1"]);
    await pod(harness, {
      name: "operator",
      inNamespace: namespace,
      labels: { "k8s-app": "machine-config-operator" },
      on: "m0",
      ready: true,
    });
    await harness.pass(1000);
    await change(harness, { "/etc/b": "1" }, "master");
    await harness.pass(3000);
    expect(await chosen(harness, "master", first)).toEqual(["m1"]);
    expect(await harness.events("DeferringOperatorNodeUpdate")).toEqual([
      "The operator runs on m0, which is updated last",
    ]);
    await harness.act(() => harness.finish("m1"));
    await harness.pass(3000);
    expect(await chosen(harness, "master", first)).toEqual(["m0", "m1"]);
  });

  test("a machine whose drain was skipped gives its turn to another, and gets its target again later [node-controller-1]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    await change(harness);
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    const stamp = (ms: number) => `${new Date(harness.kernel.clock.now() + ms).toISOString().slice(0, 19)}Z`;
    const note = JSON.stringify({
      request: `drain-${target}`,
      at: stamp(0),
      again: stamp(300_000),
      why: "pod default/web by its budget",
    });
    await harness.act(() =>
      harness.annotate("w0", { [annotations.state]: "Working", [annotations.drainSkipped]: note }),
    );
    await harness.pass(2000);
    expect(await chosen(harness, "worker", first)).toEqual(["w0", "w1"]);
    expect((await harness.poolStatus("worker")).of("Updating")?.message).toContain(
      "w0 (DrainSkipped: its drain took longer than the pool gives it and is tried again after",
    );
    await harness.act(() => harness.finish("w1"));
    await harness.pass(200_000);
    expect((await harness.node_("w0")).metadata.annotations?.[annotations.drainSkipped]).toBe(note);
    await harness.pass(110_000);
    expect((await harness.node_("w0")).metadata.annotations?.[annotations.drainSkipped]).toBeUndefined();
  });
});

describe("the annotations and the status that the controller writes", () => {
  test("a machine whose daemon is not ready for five minutes counts as unavailable; a brief outage does not count [node-controller-11]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    await pod(harness, {
      name: "daemon-w0",
      inNamespace: namespace,
      labels: { "k8s-app": "machine-config-daemon" },
      on: "w0",
      ready: false,
    });
    await harness.pass(200_000);
    expect((await harness.poolStatus("worker")).pool?.status).toMatchObject({
      unavailableMachineCount: 0,
      updatedMachineCount: 2,
    });
    await harness.pass(110_000);
    const { pool, of } = await harness.poolStatus("worker");
    expect(pool?.status).toMatchObject({ unavailableMachineCount: 1, updatedMachineCount: 2 });
    expect(of("Updated")).toMatchObject({ status: "True" });
    expect(of("Updated")?.message).toContain("the daemon of w0 is silent since");
    await change(harness);
    await harness.pass(2000);
    expect(await chosen(harness, "worker", first)).toEqual(["w0"]);
    await judge(harness, "daemon-w0", namespace, true);
    await harness.pass(2000);
    expect((await harness.poolStatus("worker")).of("Updating")?.message).not.toContain("silent");
  });

  test("a node in two custom pools gets no target, and node and pools report why, until a label is removed [node-controller-3]", async () => {
    const { harness } = await updatedPool([]);
    const selects = (role: string) => ({
      machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: "In", values: ["worker", role] }] },
    });
    for (const name of ["infra", "gpu"]) await harness.act(() => harness.pool(name, selects(name)));
    await harness.pass(2000);
    await harness.act(() => harness.node("x", "infra"));
    await harness.act(() =>
      harness.kube.patch(
        kubernetes.Node,
        { name: "x" },
        { type: "merge", body: { metadata: { labels: { "node-role.kubernetes.io/gpu": "" } } } },
      ),
    );
    await harness.act(() => harness.annotate("x", { [annotations.desiredConfig]: null }));
    await harness.pass(3000);
    expect((await harness.node_("x")).metadata.annotations?.[annotations.desiredConfig]).toBeUndefined();
    expect(await harness.events("SeveralPools")).toEqual([
      "the pools gpu and infra select x, so that it belongs to none of them and is not updated; take a label away that only one of them selects by",
    ]);
    for (const name of ["infra", "gpu"])
      expect((await harness.poolStatus(name)).of("Updated")?.message).toContain(
        "x is selected by gpu and infra and so belongs to none of them",
      );
    await harness.act(() =>
      harness.kube.patch(
        kubernetes.Node,
        { name: "x" },
        { type: "merge", body: { metadata: { labels: { "node-role.kubernetes.io/gpu": null } } } },
      ),
    );
    await harness.pass(3000);
    const { target } = await harness.poolStatus("infra");
    expect((await harness.node_("x")).metadata.annotations?.[annotations.desiredConfig]).toBe(target);
    expect((await harness.act(() => harness.kube.get(MachineConfigNode, { name: "x" })))?.spec).toMatchObject({
      pool: { name: "infra" },
      configVersion: { desired: target },
    });
  });

  test("a node that says that it booted into a custom pool first gets no label by that [node-controller-4]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    await harness.act(() =>
      harness.pool("infra", {
        machineConfigSelector: {
          matchExpressions: [{ key: labels.role, operator: "In", values: ["worker", "infra"] }],
        },
      }),
    );
    const { uid = "" } = (await harness.node_("w0")).metadata;
    const spec = { pool: "infra", publicKey: "a".repeat(64), expiresAt: "2099-01-01T00:00:00Z", nodeUID: uid };
    const { apiVersion, kind } = NodeBinding;
    // It has joined that pool, and an administrator has moved it out of it.
    await harness.act(() =>
      harness.kube.create(NodeBinding, {
        apiVersion,
        kind,
        metadata: { name: "w0" },
        spec: { ...spec, lastPool: "worker" },
      }),
    );
    await harness.act(() =>
      harness.annotate("w0", { [annotations.firstPivotConfig]: first.replace("worker", "infra") }),
    );
    await harness.pass(3000);
    expect((await harness.node_("w0")).metadata.labels).not.toHaveProperty(["node-role.kubernetes.io/infra"]);
  });

  test("a pool with an empty selector selects no node, and reports it [node-controller-5]", async () => {
    const { harness } = await updatedPool(["w0"]);
    await harness.act(() => harness.pool("all", { nodeSelector: {} }));
    await harness.pass(2000);
    expect((await harness.poolStatus("all")).pool?.status?.machineCount ?? 0).toBe(0);
    expect((await harness.poolStatus("worker")).pool?.status?.machineCount).toBe(1);
    expect(await harness.events("SelectingAll")).toEqual([
      "This machineconfigpool is selecting all nodes. A non-empty selector is required.",
    ]);
  });

  test("counts stay stable while a daemon or its watch restarts [node-controller-12]", async () => {
    const { harness } = await updatedPool(["w0", "w1"]);
    await pod(harness, {
      name: "daemon-w0",
      inNamespace: namespace,
      labels: { "k8s-app": "machine-config-daemon" },
      on: "w0",
      ready: true,
    });
    await harness.pass(2000);
    const before = (await harness.poolStatus("worker")).pool?.metadata.resourceVersion;
    await judge(harness, "daemon-w0", namespace, false);
    await harness.pass(20_000);
    await harness.act(() => harness.kube.delete(kubernetes.Pod, { name: "daemon-w0", namespace }));
    await harness.pass(60_000);
    expect((await harness.poolStatus("worker")).pool?.metadata.resourceVersion).toBe(before);
  });
});

test("an event of one machine re-evaluates that machine alone [node-controller-2]", async () => {
  const names = Array.from({ length: 60 }, (_, index) => `w${index}`);
  const { harness } = await updatedPool(names);
  await harness.pass(5000);
  const [judged, listed] = [vi.spyOn(PoolMembers.prototype, "put"), vi.spyOn(PoolMembers.prototype, "all")];
  const placed = vi.spyOn(ClusterMembers.prototype, "putNode");
  try {
    await harness.act(() =>
      harness.annotate("w7", { [annotations.state]: "Degraded", [annotations.reason]: "no space" }),
    );
    await harness.pass(2000);
    expect((await harness.poolStatus("worker")).pool?.status?.degradedMachineCount).toBe(1);
    expect(placed).toHaveBeenCalledTimes(1);
    expect(judged).toHaveBeenCalledTimes(1);
    expect(listed).not.toHaveBeenCalled();
  } finally {
    for (const spy of [judged, listed, placed]) spy.mockRestore();
  }
});
