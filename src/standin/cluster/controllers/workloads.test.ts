import { describe, expect, test } from "vitest";
import { type DaemonSet, type Deployment, type Event, type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import { workloads } from "../../../api/names.ts";
import { systemClock } from "../../../ports/node/index.ts";
import {
  addNode,
  inDefault,
  namespace,
  podIsReady,
  startCluster,
  template,
} from "../../../../test/support/controllers-harness.ts";

const deployment = (
  name: string,
  replicas: number,
  more: Partial<NonNullable<Deployment["spec"]>> = {},
): Deployment => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace },
  spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name), ...more },
});

const rolledOut = (object: Deployment | undefined): boolean => {
  const { status, spec, metadata } = object ?? {};
  const wanted = spec?.replicas ?? 1;
  return (
    status?.observedGeneration === metadata?.generation &&
    status?.updatedReplicas === wanted &&
    status.replicas === wanted &&
    (status.availableReplicas ?? 0) === wanted
  );
};

describe("Deployments", () => {
  test("a Deployment yields running pods, and its status shows them", async () => {
    const { kube, until } = await startCluster({ nodes: [{}, {}] });
    await kube.create(kubernetes.Deployment, deployment("web", 3));
    const done = await until(
      kubernetes.Deployment,
      { name: "web", namespace },
      (object) =>
        rolledOut(object) &&
        conditionOf(object?.status?.conditions, "Progressing")?.reason === "NewReplicaSetAvailable",
    );
    expect(conditionOf(done?.status?.conditions, "Available")).toMatchObject({
      status: "True",
      reason: "MinimumReplicasAvailable",
    });
    expect(done?.metadata.annotations?.[workloads.deploymentRevision]).toBe("1");
    const { items } = await kube.list(kubernetes.Pod, inDefault);
    expect(items.map((pod) => pod.spec?.nodeName).toSorted()).toEqual(expect.arrayContaining(["node-0", "node-1"]));
    expect(items).toHaveLength(3);
  });

  test("a new template rolls out within the availability and surge limits", async () => {
    const { close, kube, until, signal } = await startCluster({ nodes: [{}] });
    await kube.create(
      kubernetes.Deployment,
      deployment("web", 4, { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } }),
    );
    await until(kubernetes.Deployment, { name: "web", namespace }, rolledOut);
    const { items, resourceVersion } = await kube.list(kubernetes.Pod, inDefault);
    const pods = new Map(items.map((pod) => [pod.metadata.uid, pod]));
    const ready: number[] = [];
    const watched = (async () => {
      for await (const event of kube.watch(
        kubernetes.Pod,
        inDefault,
        { resourceVersion, timeoutSeconds: 600 },
        signal,
      )) {
        if (event.type === "BOOKMARK") continue;
        if (event.type === "DELETED") pods.delete(event.object.metadata.uid);
        else pods.set(event.object.metadata.uid, event.object);
        const live = [...pods.values()].filter((pod) => pod.metadata.deletionTimestamp === undefined);
        ready.push(live.filter(podIsReady).length);
      }
    })().catch(() => undefined);
    // The surge bounds the desired replicas of all ReplicaSets together: their pods may overlap while old ones are
    // being removed.
    const sets = await kube.list(kubernetes.ReplicaSet, inDefault);
    const sizes = new Map(sets.items.map((set) => [set.metadata.uid, set.spec?.replicas ?? 1]));
    const wanted: number[] = [];
    const watchedSets = (async () => {
      for await (const event of kube.watch(
        kubernetes.ReplicaSet,
        inDefault,
        { resourceVersion: sets.resourceVersion, timeoutSeconds: 600 },
        signal,
      )) {
        if (event.type === "BOOKMARK") continue;
        if (event.type === "DELETED") sizes.delete(event.object.metadata.uid);
        else sizes.set(event.object.metadata.uid, event.object.spec?.replicas ?? 1);
        wanted.push([...sizes.values()].reduce((sum, size) => sum + size, 0));
      }
    })().catch(() => undefined);
    await kube.patch(
      kubernetes.Deployment,
      { name: "web", namespace },
      { type: "merge", body: { spec: { template: { metadata: { annotations: { again: "1" } } } } } },
    );
    const done = await until(
      kubernetes.Deployment,
      { name: "web", namespace },
      (object) => rolledOut(object) && object?.metadata.annotations?.[workloads.deploymentRevision] === "2",
    );
    expect(done?.status?.conditions?.find(({ type }) => type === "Available")?.status).toBe("True");
    expect(Math.min(...ready)).toBeGreaterThanOrEqual(3);
    expect(Math.max(...wanted)).toBe(5);
    await close();
    await Promise.all([watched, watchedSets]);
  });

  test("Recreate starts the new pods after the last old one is removed", async () => {
    const { kube, until, untilAll } = await startCluster({ nodes: [{}] });
    await kube.create(kubernetes.Deployment, deployment("web", 2, { strategy: { type: "Recreate" } }));
    await until(kubernetes.Deployment, { name: "web", namespace }, rolledOut);
    const old = new Set((await kube.list(kubernetes.Pod, inDefault)).items.map((pod) => pod.metadata.uid));
    await kube.patch(
      kubernetes.Deployment,
      { name: "web", namespace },
      { type: "merge", body: { spec: { template: { metadata: { annotations: { again: "1" } } } } } },
    );
    const mixed: boolean[] = [];
    await untilAll(kubernetes.Pod, inDefault, (pods) => {
      mixed.push(pods.some((pod) => old.has(pod.metadata.uid)) && pods.some((pod) => !old.has(pod.metadata.uid)));
      return pods.length === 2 && pods.every((pod) => !old.has(pod.metadata.uid) && podIsReady(pod));
    });
    expect(mixed).not.toContain(true);
  });

  test("a rollout that does not become ready stops at maxUnavailable, and an undo restores the old set", async () => {
    const cluster = await startCluster({ nodes: [{}] });
    const { kube, until } = cluster;
    await kube.create(
      kubernetes.Deployment,
      deployment("web", 3, {
        strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        progressDeadlineSeconds: 60,
      }),
    );
    const first = await until(kubernetes.Deployment, { name: "web", namespace }, rolledOut);
    cluster.neverReady = (pod) => pod.metadata.annotations?.["bad"] !== undefined;
    await kube.patch(
      kubernetes.Deployment,
      { name: "web", namespace },
      { type: "merge", body: { spec: { template: { metadata: { annotations: { bad: "1" } } } } } },
    );
    const stuck = await until(
      kubernetes.Deployment,
      { name: "web", namespace },
      (object) =>
        object?.status?.observedGeneration === object?.metadata.generation &&
        object?.status?.updatedReplicas === 1 &&
        object.status.replicas === 4,
    );
    expect(stuck?.status).toMatchObject({ availableReplicas: 3 });
    cluster.clock.skip(61_000);
    await until(
      kubernetes.Deployment,
      { name: "web", namespace },
      (object) => conditionOf(object?.status?.conditions, "Progressing")?.reason === "ProgressDeadlineExceeded",
    );
    await kube.patch(
      kubernetes.Deployment,
      { name: "web", namespace },
      { type: "merge", body: { spec: { template: { metadata: { annotations: { bad: null } } } } } },
    );
    const back = await until(
      kubernetes.Deployment,
      { name: "web", namespace },
      (object) => rolledOut(object) && object?.metadata.annotations?.[workloads.deploymentRevision] === "3",
    );
    expect(back?.spec?.template?.spec).toEqual(first?.spec?.template?.spec);
    expect((await kube.list(kubernetes.ReplicaSet, inDefault)).items).toHaveLength(2);
  });

  test("old sets beyond the history limit are removed", async () => {
    const { kube, until, untilAll } = await startCluster({ nodes: [{}] });
    await kube.create(kubernetes.Deployment, deployment("web", 1, { revisionHistoryLimit: 1 }));
    for (const turn of ["1", "2", "3"]) {
      await until(kubernetes.Deployment, { name: "web", namespace }, rolledOut);
      await kube.patch(
        kubernetes.Deployment,
        { name: "web", namespace },
        { type: "merge", body: { spec: { template: { metadata: { annotations: { turn } } } } } },
      );
    }
    await until(kubernetes.Deployment, { name: "web", namespace }, rolledOut);
    const left = await untilAll(kubernetes.ReplicaSet, inDefault, (sets) => sets.length === 2);
    expect(left.map(({ spec }) => spec?.template?.metadata?.annotations?.["turn"]).toSorted()).toEqual(["2", "3"]);
  });

  test("a paused Deployment is scaled but not rolled", async () => {
    const { kube, until } = await startCluster({ nodes: [{}] });
    await kube.create(kubernetes.Deployment, deployment("web", 1));
    await until(kubernetes.Deployment, { name: "web", namespace }, rolledOut);
    await kube.patch(
      kubernetes.Deployment,
      { name: "web", namespace },
      {
        type: "merge",
        body: { spec: { paused: true, replicas: 3, template: { metadata: { annotations: { turn: "1" } } } } },
      },
    );
    const paused = await until(
      kubernetes.Deployment,
      { name: "web", namespace },
      (object) => object?.status?.availableReplicas === 3,
    );
    expect(paused?.status?.updatedReplicas ?? 0).toBe(0);
    expect(conditionOf(paused?.status?.conditions, "Progressing")).toMatchObject({
      status: "Unknown",
      reason: "DeploymentPaused",
    });
  });
});

describe("ReplicaSets", () => {
  const replicaSet = (name: string, replicas: number) => ({
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name, namespace },
    spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name) },
  });

  test("a lagging watch never causes a duplicate pod", async () => {
    // Everything that the controllers hear of pods comes late.
    const { kube, until, podsMade } = await startCluster({
      nodes: [{}],
      between: (next) => async (request, signal) => {
        const response = await next(request, signal);
        if (
          !request.target.startsWith("/api/v1/pods") ||
          !request.target.includes("watch=true") ||
          typeof response.body === "string" ||
          response.body instanceof Uint8Array
        )
          return response;
        const { body } = response;
        const late = async function* () {
          for await (const chunk of body) {
            await systemClock.sleep(60, signal);
            yield chunk;
          }
        };
        return { ...response, body: late() };
      },
    });
    await kube.create(kubernetes.ReplicaSet, replicaSet("slow", 4));
    for (const turn of ["1", "2", "3", "4"])
      await kube.patch(
        kubernetes.ReplicaSet,
        { name: "slow", namespace },
        { type: "merge", body: { metadata: { annotations: { turn } } } },
      );
    await until(kubernetes.ReplicaSet, { name: "slow", namespace }, (set) => set?.status?.readyReplicas === 4);
    expect(podsMade.size).toBe(4);
  });

  test("matching pods without owner are adopted; pods that stop matching are released and replaced", async () => {
    const { kube, until, untilAll } = await startCluster({ nodes: [{}] });
    await kube.create(kubernetes.Pod, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "stray", namespace, labels: { app: "web" } },
      spec: template("web").spec,
    });
    await kube.create(kubernetes.ReplicaSet, replicaSet("web", 2));
    await until(kubernetes.ReplicaSet, { name: "web", namespace }, (set) => set?.status?.readyReplicas === 2);
    expect((await kube.get(kubernetes.Pod, { name: "stray", namespace }))?.metadata.ownerReferences?.[0]).toMatchObject(
      { kind: "ReplicaSet", name: "web", controller: true },
    );
    await kube.patch(
      kubernetes.Pod,
      { name: "stray", namespace },
      { type: "merge", body: { metadata: { labels: { app: "debug" } } } },
    );
    const pods = await untilAll(
      kubernetes.Pod,
      inDefault,
      (all) => all.length === 3 && all.filter((pod) => pod.metadata.ownerReferences?.length === 1).length === 2,
    );
    expect(pods.find((pod) => pod.metadata.name === "stray")?.metadata.ownerReferences ?? []).toEqual([]);
  });

  test("restarted controllers continue where the old ones stopped", async () => {
    const running = await startCluster({ nodes: [{}] });
    const { kube, until } = running;
    await kube.create(kubernetes.ReplicaSet, replicaSet("web", 3));
    await running.restart();
    await until(kubernetes.ReplicaSet, { name: "web", namespace }, (set) => set?.status?.readyReplicas === 3);
    await kube.patch(
      kubernetes.ReplicaSet,
      { name: "web", namespace },
      { type: "merge", body: { spec: { replicas: 1 } } },
    );
    await running.restart();
    await until(
      kubernetes.ReplicaSet,
      { name: "web", namespace },
      (set) => set?.status?.replicas === 1 && set.status.observedGeneration === set.metadata.generation,
    );
    expect(running.podsMade.size).toBe(3);
  });
});

describe("DaemonSets", () => {
  const daemonSet = (name: string, more: Partial<NonNullable<DaemonSet["spec"]>> = {}): DaemonSet => ({
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name, namespace },
    spec: { selector: { matchLabels: { app: name } }, template: template(name), ...more },
  });
  const updatedTo = (count: number) => (set: DaemonSet | undefined) =>
    set?.status?.observedGeneration === set?.metadata.generation &&
    set?.status?.desiredNumberScheduled === count &&
    set.status.numberAvailable === count &&
    set.status.updatedNumberScheduled === count;
  const nodesOf = (pods: readonly Pod[]) => pods.map((pod) => pod.spec?.nodeName ?? "").toSorted();

  test("every eligible node has one pod: tainted nodes are skipped, cordoned ones are not, and new nodes get theirs", async () => {
    const { kube, until, clock } = await startCluster({
      nodes: [{}, { spec: { unschedulable: true } }, { spec: { taints: [{ key: "special", effect: "NoSchedule" }] } }],
    });
    await kube.create(kubernetes.DaemonSet, daemonSet("agent"));
    await until(kubernetes.DaemonSet, { name: "agent", namespace }, updatedTo(2));
    await addNode(kube, clock, { metadata: { name: "later" } });
    const set = await until(kubernetes.DaemonSet, { name: "agent", namespace }, updatedTo(3));
    expect(set?.status).toMatchObject({ currentNumberScheduled: 3, numberMisscheduled: 0, numberReady: 3 });
    expect(nodesOf((await kube.list(kubernetes.Pod, inDefault)).items)).toEqual(["later", "node-0", "node-1"]);
  });

  test("a new template is rolled one node at a time, and its revision is kept", async () => {
    const { close, kube, until, signal } = await startCluster({ nodes: [{}, {}, {}] });
    await kube.create(kubernetes.DaemonSet, daemonSet("agent"));
    await until(kubernetes.DaemonSet, { name: "agent", namespace }, updatedTo(3));
    const { items, resourceVersion } = await kube.list(kubernetes.Pod, inDefault);
    const pods = new Map(items.map((pod) => [pod.metadata.uid, pod]));
    let fewest = 3;
    const watched = (async () => {
      for await (const event of kube.watch(
        kubernetes.Pod,
        inDefault,
        { resourceVersion, timeoutSeconds: 600 },
        signal,
      )) {
        if (event.type === "BOOKMARK") continue;
        if (event.type === "DELETED") pods.delete(event.object.metadata.uid);
        else pods.set(event.object.metadata.uid, event.object);
        fewest = Math.min(fewest, [...pods.values()].filter(podIsReady).length);
      }
    })().catch(() => undefined);
    await kube.patch(
      kubernetes.DaemonSet,
      { name: "agent", namespace },
      { type: "merge", body: { spec: { template: { metadata: { annotations: { turn: "1" } } } } } },
    );
    await until(kubernetes.DaemonSet, { name: "agent", namespace }, updatedTo(3));
    expect(fewest).toBe(2);
    expect(
      (await kube.list(kubernetes.ControllerRevision, inDefault)).items.map(({ revision }) => revision).toSorted(),
    ).toEqual([1, 2]);
    await close();
    await watched;
  });

  test("OnDelete replaces only deleted pods", async () => {
    const { kube, until, untilAll } = await startCluster({ nodes: [{}, {}] });
    await kube.create(kubernetes.DaemonSet, daemonSet("agent", { updateStrategy: { type: "OnDelete" } }));
    await until(kubernetes.DaemonSet, { name: "agent", namespace }, updatedTo(2));
    await kube.patch(
      kubernetes.DaemonSet,
      { name: "agent", namespace },
      { type: "merge", body: { spec: { template: { metadata: { annotations: { turn: "1" } } } } } },
    );
    await until(
      kubernetes.DaemonSet,
      { name: "agent", namespace },
      (set) =>
        set?.status?.observedGeneration === set?.metadata.generation &&
        (set?.status?.updatedNumberScheduled ?? 0) === 0,
    );
    const [first] = (await kube.list(kubernetes.Pod, inDefault)).items;
    await kube.delete(kubernetes.Pod, first?.metadata ?? { name: "" });
    const pods = await untilAll(
      kubernetes.Pod,
      inDefault,
      (all) =>
        all.length === 2 && all.every(podIsReady) && all.every((pod) => pod.metadata.uid !== first?.metadata.uid),
    );
    expect(pods.filter((pod) => pod.metadata.annotations?.["turn"] === "1")).toHaveLength(1);
  });

  test("a failed pod is recreated", async () => {
    const { kube, until, untilAll, podsMade } = await startCluster({ nodes: [{}] });
    await kube.create(kubernetes.DaemonSet, daemonSet("agent"));
    await until(kubernetes.DaemonSet, { name: "agent", namespace }, updatedTo(1));
    const [first] = (await kube.list(kubernetes.Pod, inDefault)).items;
    await kube.patch(
      kubernetes.Pod,
      first?.metadata ?? { name: "" },
      { type: "merge", body: { status: { phase: "Failed" } } },
      { subresource: "status" },
    );
    const pods = await untilAll(
      kubernetes.Pod,
      inDefault,
      (all) =>
        all.length === 1 && all.every(podIsReady) && all.every((pod) => pod.metadata.uid !== first?.metadata.uid),
    );
    expect(pods[0]?.metadata.ownerReferences).toMatchObject([{ kind: "DaemonSet", name: "agent" }]);
    expect(podsMade.size).toBe(2);
  });
});

describe("scheduling", () => {
  const pod = (name: string, spec: Partial<NonNullable<Pod["spec"]>> = {}): Pod => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels: { app: "web" } },
    spec: { ...template("web").spec, ...spec },
  });

  test("a pod that fits nowhere reports why, and is scheduled as soon as a node fits", async () => {
    const { kube, until, untilAll } = await startCluster({
      nodes: [
        { spec: { taints: [{ key: "node-role.kubernetes.io/master", effect: "NoSchedule" }] } },
        { spec: { unschedulable: true } },
        {},
      ],
    });
    await kube.create(kubernetes.Pod, pod("picky", { nodeSelector: { disk: "fast" } }));
    const waiting = await until(
      kubernetes.Pod,
      { name: "picky", namespace },
      (object) => conditionOf(object?.status?.conditions, "PodScheduled")?.status === "False",
    );
    const message =
      "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint {node-role.kubernetes.io/master: }, 1 node(s) were unschedulable. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    expect(conditionOf(waiting?.status?.conditions, "PodScheduled")).toMatchObject({
      reason: "Unschedulable",
      message,
    });
    const events = await untilAll<Event>(kubernetes.Event, inDefault, (all) =>
      all.some(({ reason }) => reason === "FailedScheduling"),
    );
    expect(events.find(({ reason }) => reason === "FailedScheduling")).toMatchObject({ message, type: "Warning" });
    await kube.patch(
      kubernetes.Node,
      { name: "node-2" },
      { type: "merge", body: { metadata: { labels: { disk: "fast" } } } },
    );
    await until(
      kubernetes.Pod,
      { name: "picky", namespace },
      (object) =>
        object?.spec?.nodeName === "node-2" &&
        conditionOf(object.status?.conditions, "PodScheduled")?.status === "True",
    );
  });

  test("pods with anti-affinity never share a node, however fast they are created", async () => {
    const { kube, untilAll } = await startCluster({ nodes: [{}, {}, {}] });
    const affinity = {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { labelSelector: { matchLabels: { app: "web" } }, topologyKey: "kubernetes.io/hostname" },
        ],
      },
    };
    await Promise.all(["a", "b", "c", "d"].map((name) => kube.create(kubernetes.Pod, pod(name, { affinity }))));
    const pods = await untilAll(
      kubernetes.Pod,
      inDefault,
      (all) =>
        all.filter(podIsReady).length === 3 &&
        all.some((one) => conditionOf(one.status?.conditions, "PodScheduled")?.reason === "Unschedulable"),
    );
    expect(pods.flatMap((one) => one.spec?.nodeName ?? []).toSorted()).toEqual(["node-0", "node-1", "node-2"]);
  });

  test("a full node takes no more pods, and a freed place is used", async () => {
    const { kube, until } = await startCluster({ nodes: [{ status: { allocatable: { pods: "1" } } }] });
    await kube.create(kubernetes.Pod, pod("first"));
    await until(kubernetes.Pod, { name: "first", namespace }, (object) => object !== undefined && podIsReady(object));
    await kube.create(kubernetes.Pod, pod("second"));
    const second = { name: "second", namespace };
    const refused = await until(
      kubernetes.Pod,
      second,
      (one) => conditionOf(one?.status?.conditions, "PodScheduled")?.message?.includes("1 Too many pods") === true,
    );
    expect(refused?.spec?.nodeName ?? "").toBe("");
    await kube.delete(kubernetes.Pod, { name: "first", namespace });
    const placed = await until(kubernetes.Pod, second, (one) => one !== undefined && podIsReady(one));
    expect(placed?.spec?.nodeName).toBe("node-0");
  });
});
