import { describe, expect, test } from "vitest";
import { type Deployment, type Node, type Pod, type Taint, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import { buildNamespace, nodeTaints } from "../../../api/names.ts";
import {
  type TestCluster,
  inDefault,
  namespace,
  podIsReady,
  startCluster,
  template,
} from "../../../../test/support/controllers-harness.ts";
import { evictionTime, wantedTaints } from "./judge-node.ts";
import { leaseNamespace } from "../../apiserver/access/node-authorizer.ts";

const pod = (name: string, spec: Partial<NonNullable<Pod["spec"]>> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace },
  spec: { ...template("web").spec, ...spec },
});
const taintsOf = (node: Node | undefined) =>
  (node?.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).toSorted();
const deployment: Deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace },
  spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: template("web") },
};

async function renew({ kube, clock }: TestCluster, name: string): Promise<void> {
  const spec = {
    holderIdentity: name,
    leaseDurationSeconds: 40,
    renewTime: `${new Date(clock.now()).toISOString().slice(0, 23)}000Z`,
  };
  const lease = {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name, namespace: leaseNamespace },
    spec,
  };
  if ((await kube.get(kubernetes.Lease, lease.metadata)) === undefined) await kube.create(kubernetes.Lease, lease);
  else await kube.patch(kubernetes.Lease, lease.metadata, { type: "merge", body: { spec } });
}

describe("the life of nodes", () => {
  test("a cordon adds its taint, and an uncordon removes it", async () => {
    const { kube, until } = await startCluster({
      nodes: [{ spec: { taints: [{ key: "mine", effect: "NoSchedule" }] } }],
    });
    await kube.patch(kubernetes.Node, { name: "node-0" }, { type: "merge", body: { spec: { unschedulable: true } } });
    const cordon = `${nodeTaints.unschedulable}:NoSchedule`;
    const cordoned = await until(
      kubernetes.Node,
      { name: "node-0" },
      (node) => taintsOf(node).includes(cordon) && taintsOf(node).length === 2,
    );
    expect(taintsOf(cordoned)).toEqual(["mine:NoSchedule", cordon]);
    await kube.patch(kubernetes.Node, { name: "node-0" }, { type: "merge", body: { spec: { unschedulable: null } } });
    const back = await until(kubernetes.Node, { name: "node-0" }, (node) => !taintsOf(node).includes(cordon));
    expect(taintsOf(back)).toEqual(["mine:NoSchedule"]);
  });

  test("an unresponsive node becomes unreachable, its pods move after five minutes, and a heartbeat restores it", async () => {
    const running = await startCluster({ nodes: [{}, {}], controllers: { nodeMonitorGraceSeconds: 40 } });
    const { kube, until, untilAll, clock, whileTimeFlies } = running;
    await Promise.all(["node-0", "node-1"].map((name) => renew(running, name)));
    await kube.create(kubernetes.Deployment, deployment);
    await until(kubernetes.Deployment, deployment.metadata, (object) => object?.status?.availableReplicas === 2);
    const oneSpeaks = () => renew(running, "node-0");
    const lost = await whileTimeFlies(
      until(kubernetes.Node, { name: "node-1" }, (node) => taintsOf(node).length === 2),
      oneSpeaks,
    );
    expect(conditionOf(lost?.status?.conditions, "Ready")).toMatchObject({
      status: "Unknown",
      reason: "NodeStatusUnknown",
    });
    expect(taintsOf(lost)).toEqual([`${nodeTaints.unreachable}:NoExecute`, `${nodeTaints.unreachable}:NoSchedule`]);
    await until(kubernetes.Deployment, deployment.metadata, (object) => object?.status?.readyReplicas === 1);
    expect(taintsOf(await kube.get(kubernetes.Node, { name: "node-0" }))).toEqual([]);
    expect((await kube.list(kubernetes.Pod, inDefault)).items).toHaveLength(2);

    await whileTimeFlies(
      untilAll(
        kubernetes.Pod,
        inDefault,
        (pods) => pods.filter((one) => podIsReady(one) && one.spec?.nodeName === "node-0").length === 2,
      ),
      oneSpeaks,
    );

    await renew(running, "node-1");
    const at = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
    await kube.patch(
      kubernetes.Node,
      { name: "node-1" },
      {
        type: "merge",
        body: {
          status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: at, lastHeartbeatTime: at }] },
        },
      },
      { subresource: "status" },
    );
    await until(kubernetes.Node, { name: "node-1" }, (node) => taintsOf(node).length === 0);
  });

  test("pods of a deleted node are removed after a delay", async () => {
    const { kube, until, clock, whileTimeFlies } = await startCluster({ nodes: [{}] });
    await kube.create(kubernetes.Pod, pod("left"));
    await until(kubernetes.Pod, { name: "left", namespace }, (object) => object !== undefined && podIsReady(object));
    const before = clock.now();
    await kube.delete(kubernetes.Node, { name: "node-0" });
    await whileTimeFlies(until(kubernetes.Pod, { name: "left", namespace }, (object) => object === undefined));
    expect(clock.now() - before).toBeGreaterThanOrEqual(40_000);
    expect((await kube.list(kubernetes.Pod, inDefault)).items).toEqual([]);
  });

  test("[cluster-nodes-1] nothing is remembered of a node that never was: its next pod gets the same delay", async () => {
    const { kube, until, clock, whileTimeFlies } = await startCluster({ nodes: [{}] });
    for (const name of ["first", "second"]) {
      const before = clock.now();
      await kube.create(kubernetes.Pod, pod(name, { nodeName: "ghost" }));
      await whileTimeFlies(until(kubernetes.Pod, { name, namespace }, (object) => object === undefined));
      expect([name, clock.now() - before >= 40_000]).toEqual([name, true]);
    }
  });

  test("ended pods beyond the limit are removed, oldest first", async () => {
    const running = await startCluster({ nodes: [{}], controllers: { endedPods: 2 } });
    running.exitOf = () => 0;
    for (const name of ["a", "b", "c", "d"])
      await running.kube.create(kubernetes.Pod, pod(name, { restartPolicy: "Never" }));
    const left = await running.untilAll(
      kubernetes.Pod,
      inDefault,
      (pods) => pods.length === 2 && pods.every(({ status }) => status?.phase === "Succeeded"),
    );
    expect(left.map(({ metadata }) => metadata.name).toSorted()).toEqual(["c", "d"]);
  });

  test("[cluster-nodes-2] ended pods of one namespace remove none of another one", async () => {
    const running = await startCluster({ nodes: [{}], controllers: { endedPods: 2 } });
    running.exitOf = () => 0;
    const other = { apiVersion: "v1", kind: "Namespace", metadata: { name: buildNamespace } };
    await running.kube.create(kubernetes.Namespace, other);
    const ended = { phase: "Succeeded" };
    const build: Pod = {
      ...pod("build", { restartPolicy: "Never" }),
      metadata: { name: "build", namespace: buildNamespace },
    };
    await running.kube.create(kubernetes.Pod, build);
    const key = { name: "build", namespace: buildNamespace };
    await running.until(kubernetes.Pod, key, (object) => object?.status?.phase === ended.phase);
    running.clock.skip(5000); // It is the oldest.
    for (const name of ["a", "b", "c", "d", "e"])
      await running.kube.create(kubernetes.Pod, pod(name, { restartPolicy: "Never" }));
    const left = await running.untilAll(
      kubernetes.Pod,
      inDefault,
      (pods) => pods.length === 2 && pods.every(({ status }) => status?.phase === ended.phase),
    );
    expect(left.map(({ metadata }) => metadata.name).toSorted()).toEqual(["d", "e"]);
    expect(await running.kube.get(kubernetes.Pod, build.metadata)).toMatchObject({ status: ended });
  });
});

describe("judging nodes", () => {
  const now = Date.UTC(2030, 0, 1);
  const node = (ready: string | undefined, taints: Taint[] = [], unschedulable?: boolean): Node => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n" },
    spec: { taints, ...(unschedulable === undefined ? {} : { unschedulable }) },
    status: { conditions: ready === undefined ? [] : [{ type: "Ready", status: ready }] },
  });
  const notReady = [`${nodeTaints.notReady}:NoExecute`, `${nodeTaints.notReady}:NoSchedule`];
  const unreachable = [`${nodeTaints.unreachable}:NoExecute`, `${nodeTaints.unreachable}:NoSchedule`];

  test.for([
    { title: "a ready node has no taints of ours", given: node("True"), taints: [] },
    {
      title: "a node that reports that it is not ready is tainted accordingly",
      given: node("False"),
      taints: notReady,
    },
    { title: "a node that never reported is not ready", given: node(undefined), taints: notReady },
    {
      title: "an unresponsive node is unreachable",
      given: node("Unknown", [{ key: nodeTaints.notReady, effect: "NoExecute" }]),
      taints: unreachable,
    },
    {
      title: "taints of others stay",
      given: node("True", [
        { key: "UpdateInProgress", effect: "PreferNoSchedule" },
        { key: nodeTaints.unreachable, effect: "NoExecute" },
      ]),
      taints: ["UpdateInProgress:PreferNoSchedule"],
    },
  ])("$title", ({ given, taints }) => {
    expect(taintsOf({ ...given, spec: { taints: [...wantedTaints(given, now)] } })).toEqual(taints);
  });

  test("correct nodes and pods are left alone", () => {
    const given = node("Unknown", [
      { key: nodeTaints.unreachable, effect: "NoExecute", timeAdded: "2029-01-01T00:00:00Z" },
      { key: nodeTaints.unreachable, effect: "NoSchedule" },
    ]);
    expect(wantedTaints(given, now)).toBe(given.spec?.taints);
  });

  const taint: Taint = { key: "k", effect: "NoExecute" };
  test.for([
    { title: "a pod without a toleration is evicted at once", tolerations: [], end: now },
    {
      title: "a pod with tolerationSeconds is evicted after that time",
      tolerations: [{ key: "k", operator: "Exists", tolerationSeconds: 60 }],
      end: now + 60_000,
    },
    { title: "a pod that tolerates the taint stays", tolerations: [{ operator: "Exists" }], end: undefined },
    {
      title: "the shortest tolerationSeconds counts",
      tolerations: [
        { operator: "Exists" },
        { key: "k", operator: "Exists", effect: "NoExecute", tolerationSeconds: 5 },
      ],
      end: now + 5_000,
    },
    {
      title: "another taint's toleration does not help",
      tolerations: [{ key: "other", operator: "Exists" }],
      end: now,
    },
  ])("$title", ({ tolerations, end }) => {
    expect(evictionTime(pod("p", { tolerations }), [taint], () => now)).toBe(end);
  });
});
