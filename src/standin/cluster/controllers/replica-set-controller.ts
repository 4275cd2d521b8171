import { leastOf } from "../../../api/schema/extremes.ts";
import { type Pod, type ReplicaSet, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { keyOf } from "../../../api/schema/object.ts";
import { workloads } from "../../../api/names.ts";
import { type Caches, type Context, type Controller, watching } from "../../../kube/controller.ts";
import { type Outcome, done } from "../../../kube/outcome.ts";
import type { ObjectChange } from "../../../kube/watch-cache.ts";
import { claim } from "./claim.ts";
import { Expectations } from "./expectations.ts";
import { createPods, deletePods, isTerminatingNamespace, messageOf } from "./make-pods.ts";
import { podOfTemplate } from "./pod-of-template.ts";
import { availableInMs, controllerOf, isActive, isPodReady, ownedIndexes, podIndexes } from "./pod-state.ts";
import { selects } from "./selects.ts";
import { setCondition } from "../../../api/schema/conditions.ts";
import { nameByHash } from "./template-hash.ts";
import { millisecondsOf } from "./timestamp.ts";
import { writeStatus } from "./write-status.ts";
import { own } from "../../../api/schema/own.ts";

/**
 * The most pods that one pass creates or deletes: k8s.io/kubernetes pkg/controller/replicaset (master) BurstReplicas.
 */
const burst = 500;

/** Keeps as many pods of a ReplicaSet as it asks for. */
export function replicaSetController(): Controller {
  const expectations = new Expectations();

  function concerns(change: ObjectChange<Pod>, caches: Caches): readonly string[] {
    expectations.observe(change);
    const keys = new Set<string>();
    const namespace = (change.after ?? change.before)?.metadata.namespace ?? "";
    for (const pod of [change.before, change.after]) {
      if (pod === undefined) continue;
      const owner = controllerOf(pod);
      if (owner?.kind === "ReplicaSet") keys.add(`${namespace}/${owner.name}`);
      if (owner === undefined && pod.metadata.deletionTimestamp === undefined) {
        for (const set of caches.of(kubernetes.ReplicaSet).byIndex("namespace", namespace))
          if (selects(set.spec?.selector, pod.metadata.labels)) keys.add(keyOf(set));
      }
    }
    return [...keys];
  }

  return {
    name: "replica-set",
    watches: [
      watching<ReplicaSet>({ resource: kubernetes.ReplicaSet, indexes: ownedIndexes }),
      watching<Pod>({ resource: kubernetes.Pod, indexes: podIndexes, concerns }),
    ],
    owns: ["ReplicaSet.status"],
    workers: 4,

    async reconcile(key, context): Promise<Outcome> {
      const { caches, clock } = context;
      const set = caches.of(kubernetes.ReplicaSet).get(key);
      if (set === undefined) return done();
      const uid = set.metadata.uid ?? "";
      const claimed = await claim(
        { owner: set, ownerResource: kubernetes.ReplicaSet, resource: kubernetes.Pod, selector: set.spec?.selector },
        context,
      );
      const pods = claimed.filter(isActive);
      const pendingMs = expectations.pendingMs(uid, clock.now());
      const failure =
        pendingMs === undefined && set.metadata.deletionTimestamp === undefined
          ? await resize(set, pods, context)
          : undefined;
      const again = await report(set, pods, failure, context);
      if (failure !== undefined && !isTerminatingNamespace(failure)) throw failure;
      const waits = [pendingMs, again].filter((wait) => wait !== undefined);
      return waits.length === 0 ? done() : done(leastOf(waits) / 1000);
    },
  };

  async function resize(set: ReplicaSet, pods: readonly Pod[], context: Context): Promise<unknown> {
    const wanted = set.spec?.replicas ?? 1;
    if (pods.length < wanted) {
      const missing = Math.min(wanted - pods.length, burst);
      const made = Array.from({ length: missing }, () =>
        podOfTemplate(set.spec?.template, set, kubernetes.ReplicaSet, {
          name: nameByHash(`${set.metadata.name}-`, context.random),
        }),
      );
      return createPods(made, set, expectations, context);
    }
    if (pods.length > wanted)
      return deletePods(
        expendable(pods, context.clock.now()).slice(0, Math.min(pods.length - wanted, burst)),
        set,
        expectations,
        context,
      );
    return undefined;
  }

  async function report(
    set: ReplicaSet,
    pods: readonly Pod[],
    failure: unknown,
    { kube, clock, signal }: Context,
  ): Promise<number | undefined> {
    const now = clock.now();
    const minReadySeconds = set.spec?.minReadySeconds ?? 0;
    const templateLabels = set.spec?.template?.metadata?.labels ?? {};
    const available = pods.map((pod) => availableInMs(pod, minReadySeconds, now));
    const later = available.filter((wait) => wait !== undefined).filter((wait) => wait > 0);
    const { conditions: before, ...other } = set.status ?? { replicas: 0 };
    const others = before?.filter(({ type }) => type !== "ReplicaFailure") ?? [];
    const fewer = pods.length > (set.spec?.replicas ?? 1);
    const conditions =
      failure === undefined
        ? others
        : setCondition(
            before,
            {
              type: "ReplicaFailure",
              status: "True",
              reason: fewer ? "FailedDelete" : "FailedCreate",
              message: messageOf(failure),
            },
            now,
          );
    const status = {
      ...other,
      replicas: pods.length,
      fullyLabeledReplicas: pods.filter((pod) => selects({ matchLabels: templateLabels }, pod.metadata.labels)).length,
      readyReplicas: pods.filter(isPodReady).length,
      availableReplicas: available.filter((wait) => wait === 0).length,
      observedGeneration: set.metadata.generation ?? 0,
      ...(conditions.length === 0 ? {} : { conditions }),
    };
    if (signal.aborted) return undefined;
    await writeStatus(kube, kubernetes.ReplicaSet, set, status, signal);
    return later.length === 0 ? undefined : leastOf(later);
  }
}

/**
 * Pods in the order in which they are given up: k8s.io/kubernetes pkg/controller/controller_utils.go (master)
 * ActivePodsWithRanks.
 */
export function expendable(pods: readonly Pod[], now: number): readonly Pod[] {
  const perNode = new Map<string, number>();
  for (const pod of pods) perNode.set(pod.spec?.nodeName ?? "", (perNode.get(pod.spec?.nodeName ?? "") ?? 0) + 1);
  const phases: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 };
  const restarts = (pod: Pod) =>
    (pod.status?.containerStatuses ?? []).reduce((most, { restartCount }) => Math.max(most, restartCount), 0);
  const rank = (pod: Pod): readonly number[] => {
    const ready = isPodReady(pod);
    const readySince =
      millisecondsOf(pod.status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime) ?? now;
    return [
      pod.spec?.nodeName === undefined || pod.spec.nodeName === "" ? 0 : 1,
      own(phases, pod.status?.phase ?? "Pending") ?? 2,
      ready ? 1 : 0,
      Number(pod.metadata.annotations?.[workloads.podDeletionCost] ?? 0) || 0,
      -(perNode.get(pod.spec?.nodeName ?? "") ?? 0),
      ready ? -readySince : 0,
      -restarts(pod),
      -(millisecondsOf(pod.metadata.creationTimestamp) ?? now),
    ];
  };
  const ranked = pods.map((pod) => ({ pod, rank: rank(pod) }));
  ranked.sort((a, b) => {
    for (const [index, value] of a.rank.entries()) if (value !== b.rank[index]) return value - (b.rank[index] ?? 0);
    return a.pod.metadata.name < b.pod.metadata.name ? -1 : 1;
  });
  return ranked.map(({ pod }) => pod);
}
