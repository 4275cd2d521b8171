import { leastOf } from "../../../api/schema/extremes.ts";
import { type Lease, type Node, type Pod, type Taint, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { conditionOf, keyOf } from "../../../api/schema/object.ts";
import { type Caches, type Context, type Controller, watching } from "../../../kube/controller.ts";
import { isConflict } from "../../../kube/kube-error.ts";
import { done } from "../../../kube/outcome.ts";
import type { ObjectChange } from "../../../kube/watch-cache.ts";
import { changeStatus, eachPod, type PodFailure, reportFailures } from "./each-pod.ts";
import { evictionTime, unreachableConditions, wantedTaints } from "./judge-node.ts";
import { isPodReady, isTerminal, podIndexes } from "./pod-state.ts";
import { sameJson } from "./merge-difference.ts";
import { setCondition } from "../../../api/schema/conditions.ts";
import { leaseNamespace } from "../../apiserver/access/node-authorizer.ts";
import { millisecondsOf } from "./timestamp.ts";

/** A deleted node may be about to register again: k8s.io/kubernetes pkg/controller/podgc (master) quarantineTime. */
const vanishedGraceMs = 40_000;

interface Heartbeat {
  readonly uid: string | undefined;
  readonly sign: string;
  /** Monotonic time at which we saw the sign first: clocks of machines are not compared. */
  readonly seenAt: number;
}

/**
 * Detects nodes that no longer respond, taints nodes by their state, and ends pods that may not stay where they are.
 */
export function nodeLifecycleController(graceSeconds: number): Controller {
  const heartbeats = new Map<string, Heartbeat>();
  const firstSeen = new Map<string, number>();
  const vanished = new Map<string, number>();

  const concernsOfNode = ({ key, before, after }: ObjectChange<Node>): readonly string[] => {
    const matters = (node: Node | undefined) =>
      node === undefined
        ? undefined
        : [
            node.metadata.uid,
            node.spec?.taints,
            node.spec?.unschedulable,
            node.status?.conditions?.map(({ type, status }) => [type, status]),
          ];
    return sameJson(matters(before), matters(after)) ? [] : [key];
  };
  const concernsOfPod = ({ before, after }: ObjectChange<Pod>, caches: Caches): readonly string[] => {
    const name = after?.spec?.nodeName ?? "";
    if (name === "") return [];
    const node = caches.of(kubernetes.Node).get(name);
    if (node === undefined) return [name];
    const came = before === undefined || (before.spec?.nodeName ?? "") === "";
    const tainted = node.spec?.taints?.some(({ effect }) => effect === "NoExecute") === true;
    return came && tainted ? [name] : [];
  };

  /** Milliseconds since the last sign of life. */
  function silentForMs(node: Node, lease: Lease | undefined, monotonic: number): number {
    const sign = JSON.stringify([
      lease?.spec?.renewTime,
      node.status?.conditions?.map(({ type, lastHeartbeatTime }) => [type, lastHeartbeatTime]),
    ]);
    const before = heartbeats.get(node.metadata.name);
    if (before === undefined || before.sign !== sign || before.uid !== node.metadata.uid) {
      heartbeats.set(node.metadata.name, { uid: node.metadata.uid, sign, seenAt: monotonic });
      return 0;
    }
    return monotonic - before.seenAt;
  }

  return {
    name: "node-lifecycle",
    watches: [
      watching<Node>({ resource: kubernetes.Node, concerns: concernsOfNode }),
      watching<Lease>({
        resource: kubernetes.Lease,
        selection: { namespace: leaseNamespace },
        concerns: ({ before, after }) =>
          before?.spec?.renewTime === after?.spec?.renewTime ? [] : [(after ?? before)?.metadata.name ?? ""],
      }),
      watching<Pod>({ resource: kubernetes.Pod, indexes: podIndexes, concerns: concernsOfPod }),
    ],
    owns: ["Node.spec.taints[node.kubernetes.io]", "Node.status.conditions[Unknown]"],
    workers: 4,

    async reconcile(name, context) {
      const { caches, kube, clock, events, signal } = context;
      const node = caches.of(kubernetes.Node).get(name);
      if (node === undefined) return (await buryPods(name, context)) ?? done();
      vanished.delete(name);
      const waits: number[] = [];
      const silent = silentForMs(node, caches.of(kubernetes.Lease).get(`${leaseNamespace}/${name}`), clock.monotonic());
      let fresh = node;
      if (silent < graceSeconds * 1000) waits.push(graceSeconds * 1000 - silent);
      else {
        const conditions = unreachableConditions(node, clock.now());
        if (conditions !== node.status?.conditions) {
          const body = { metadata: { resourceVersion: node.metadata.resourceVersion }, status: { conditions } };
          fresh = await kube.patch(
            kubernetes.Node,
            node.metadata,
            { type: "merge", body },
            { subresource: "status", signal },
          );
          events.event(node, {
            type: "Normal",
            reason: "NodeNotReady",
            message: `Node ${name} status is now: NodeNotReady`,
          });
        }
      }
      const taints = wantedTaints(fresh, clock.now());
      if (taints !== (fresh.spec?.taints ?? taints) || (fresh.spec?.taints === undefined && taints.length > 0)) {
        fresh = await kube.patch(
          kubernetes.Node,
          fresh.metadata,
          {
            type: "merge",
            body: {
              metadata: { resourceVersion: fresh.metadata.resourceVersion },
              spec: { taints: taints.length === 0 ? null : taints },
            },
          },
          { signal },
        );
      }
      const pods = caches.of(kubernetes.Pod).byIndex("node", name);
      const doubted = await doubtPods(fresh, pods, context);
      const evicted = await evict(fresh, pods, context);
      if (evicted.againInMs !== undefined) waits.push(evicted.againInMs);
      const againSeconds = reportFailures([...doubted, ...evicted.failures], context);
      if (againSeconds !== undefined) waits.push(againSeconds * 1000);
      return waits.length === 0 ? done() : done(Math.max(0.05, leastOf(waits) / 1000));
    },
  };

  /** Pods of a node that is not ready are not ready either; only what was ready before the node was lost is written. */
  async function doubtPods(node: Node, pods: readonly Pod[], context: Context): Promise<readonly PodFailure[]> {
    const { kube, clock, signal } = context;
    const ready = conditionOf(node.status?.conditions, "Ready");
    if (ready === undefined || ready.status === "True") return [];
    const lostAt = millisecondsOf(ready.lastTransitionTime) ?? clock.now();
    const doubtful = pods.filter(
      (pod) =>
        !isTerminal(pod) &&
        isPodReady(pod) &&
        (millisecondsOf(conditionOf(pod.status?.conditions, "Ready")?.lastTransitionTime) ?? 0) <= lostAt,
    );
    if (doubtful.length === 0) return [];
    // A machine may be back within a second, with its pods ready again, before our cache shows it: no process would correct
    // our write. A machine reports ready before its pods do, so a later report of a pod makes the write a conflict.
    const now = await kube.get(kubernetes.Node, node.metadata, { signal });
    if (now === undefined || conditionOf(now.status?.conditions, "Ready")?.status === "True") return [];
    return eachPod(
      doubtful,
      (pod) => {
        const conditions = setCondition(
          pod.status?.conditions,
          { type: "Ready", status: "False", reason: "NodeNotReady" },
          clock.now(),
        );
        return kube.patch(
          kubernetes.Pod,
          pod.metadata,
          {
            type: "merge",
            body: {
              metadata: { uid: pod.metadata.uid, resourceVersion: pod.metadata.resourceVersion },
              status: { conditions },
            },
          },
          { subresource: "status", signal },
        );
      },
      context,
    );
  }

  /** Ends pods whose patience with the node's taints is over. @returns milliseconds until the next one's is. */
  async function evict(
    node: Node,
    pods: readonly Pod[],
    context: Context,
  ): Promise<{ readonly againInMs?: number; readonly failures: readonly PodFailure[] }> {
    const { kube, clock, events, signal } = context;
    const taints = (node.spec?.taints ?? []).filter(({ effect }) => effect === "NoExecute");
    const id = ({ key, value }: Taint) => `${node.metadata.uid}/${key}=${value ?? ""}`;
    for (const known of [...firstSeen.keys()].filter((one) => one.startsWith(`${node.metadata.uid}/`)))
      if (!taints.some((taint) => id(taint) === known)) firstSeen.delete(known);
    if (taints.length === 0) return { failures: [] };
    const now = clock.now();
    const addedAt = (taint: Taint): number => {
      const written = millisecondsOf(taint.timeAdded);
      if (written !== undefined) return written;
      const seen = firstSeen.get(id(taint)) ?? now;
      firstSeen.set(id(taint), seen);
      return seen;
    };
    const ends = pods
      .filter((pod) => pod.metadata.deletionTimestamp === undefined && !isTerminal(pod))
      .flatMap((pod) => {
        const end = evictionTime(pod, taints, addedAt);
        return end === undefined ? [] : [{ pod, end }];
      });
    const failures = await eachPod(
      ends.filter(({ end }) => end <= now).map(({ pod }) => pod),
      async (pod) => {
        await deleteThis(pod, kube, signal, undefined);
        const message = `Marking for deletion Pod ${keyOf(pod)}`;
        events.event(pod, { type: "Normal", reason: "TaintManagerEviction", message });
      },
      context,
    );
    const later = ends.filter(({ end }) => end > now).map(({ end }) => end - now);
    return { failures, ...(later.length === 0 ? {} : { againInMs: later.reduce((a, b) => Math.min(a, b)) }) };
  }

  /** Nothing else will end the pods of a deleted node. */
  async function buryPods(name: string, context: Context) {
    const { caches, kube, clock, signal } = context;
    const uid = heartbeats.get(name)?.uid;
    if (uid !== undefined)
      for (const known of firstSeen.keys()) if (known.startsWith(`${uid}/`)) firstSeen.delete(known);
    heartbeats.delete(name);
    const pods = caches.of(kubernetes.Pod).byIndex("node", name);
    if (pods.length === 0) {
      vanished.delete(name);
      return undefined;
    }
    const since = vanished.get(name) ?? clock.monotonic();
    vanished.set(name, since);
    const left = since + vanishedGraceMs - clock.monotonic();
    if (left > 0) return done(left / 1000);
    if ((await kube.get(kubernetes.Node, { name }, { signal })) !== undefined) return done(1);
    const failures = await eachPod(pods, (pod) => bury(pod, context), context);
    const againSeconds = reportFailures(failures, context);
    if (againSeconds !== undefined) return done(againSeconds);
    // No event tells when the last of them is gone, and pods may name nodes that never were.
    vanished.delete(name);
    return undefined;
  }
}

/** Reports that a pod's node is gone, and deletes the pod, even if the API server refuses the report. */
async function bury(pod: Pod, context: Context): Promise<void> {
  const { kube, clock, log, signal } = context;
  if (!isTerminal(pod)) {
    const condition = {
      type: "DisruptionTarget",
      status: "True",
      reason: "DeletionByPodGC",
      message: "PodGC: node no longer exists",
    };
    const error = await changeStatus(
      pod,
      (fresh) =>
        isTerminal(fresh)
          ? undefined
          : { phase: "Failed", conditions: setCondition(fresh.status?.conditions, condition, clock.now()) },
      context,
    );
    if (error !== undefined)
      log.warn({ error, pod: keyOf(pod) }, "the pod is deleted without saying that its node is gone");
  }
  await deleteThis(pod, kube, signal, 0);
}

async function deleteThis(
  pod: Pod,
  kube: Context["kube"],
  signal: AbortSignal,
  gracePeriodSeconds: number | undefined,
): Promise<void> {
  const { uid } = pod.metadata;
  try {
    await kube.delete(kubernetes.Pod, pod.metadata, {
      ...(uid === undefined ? {} : { uid }),
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      signal,
    });
  } catch (error) {
    if (!isConflict(error)) throw error; // Another pod of this name: not the one that was meant.
  }
}
