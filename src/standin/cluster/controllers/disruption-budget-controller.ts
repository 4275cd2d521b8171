import {
  type Deployment,
  type Pod,
  type PodDisruptionBudget,
  type ReplicaSet,
  kubernetes,
} from "../../../api/foreign/kubernetes.ts";
import { keyOf } from "../../../api/schema/object.ts";
import { type Caches, type Controller, watching } from "../../../kube/controller.ts";
import { done } from "../../../kube/outcome.ts";
import type { ObjectChange } from "../../../kube/watch-cache.ts";
import { intOrPercent } from "./int-or-percent.ts";
import { controllerOf, isActive, isPodReady, ownedIndexes, podIndexes } from "./pod-state.ts";
import { selects } from "./selects.ts";
import { setCondition } from "../../../api/schema/conditions.ts";
import { millisecondsOf } from "./timestamp.ts";
import { writeStatus } from "./write-status.ts";

/**
 * An eviction that was allowed and did not happen within this time counts no more: k8s.io/kubernetes
 * pkg/controller/disruption (master) DeletionTimeout.
 */
const evictionTimeoutMs = 120_000;

export interface BudgetMetrics {
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly expectedPods: number;
  readonly disruptionsAllowed: number;
  readonly disruptedPods: Readonly<Record<string, string>>;
  /** Pods whose allowed eviction never came. */
  readonly expired: readonly Pod[];
  /** Milliseconds until the next allowed eviction runs out. */
  readonly againInMs: number | undefined;
}

/**
 * How many more pods may be disrupted.
 *
 * @param scale pods that the controllers of `pods` ask for, all together; matters for percentages and `maxUnavailable`
 */
export function budgetMetrics(
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
  scale: number,
  now: number,
): BudgetMetrics {
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  const byName = new Map(pods.map((pod) => [pod.metadata.name, pod]));
  const disruptedPods: Record<string, string> = {};
  const expired: Pod[] = [];
  let againInMs: number | undefined;
  for (const [name, since] of Object.entries(budget.status?.disruptedPods ?? {})) {
    const pod = byName.get(name);
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) continue;
    const left = (millisecondsOf(since) ?? 0) + evictionTimeoutMs - now;
    if (left <= 0) {
      expired.push(pod);
      continue;
    }
    disruptedPods[name] = since;
    againInMs = Math.min(againInMs ?? left, left);
  }
  const currentHealthy = pods.filter(
    (pod) => isActive(pod) && isPodReady(pod) && !Object.hasOwn(disruptedPods, pod.metadata.name),
  ).length;
  const expectedPods =
    maxUnavailable !== undefined || typeof minAvailable === "string" ? scale : pods.filter(isActive).length;
  const desiredHealthy =
    maxUnavailable === undefined
      ? intOrPercent(minAvailable ?? 1, expectedPods, "up")
      : Math.max(0, expectedPods - intOrPercent(maxUnavailable, expectedPods, "up"));
  const disruptionsAllowed = expectedPods <= 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  return { currentHealthy, desiredHealthy, expectedPods, disruptionsAllowed, disruptedPods, expired, againInMs };
}

type Scale = { readonly known: true; readonly replicas: number } | { readonly known: false; readonly message: string };

/** Pods that the controllers of these pods ask for. */
function scaleOf(pods: readonly Pod[], caches: Caches): Scale {
  const controllers = new Map<string, number>();
  for (const pod of pods) {
    const owner = controllerOf(pod);
    if (owner === undefined || controllers.has(owner.uid)) continue;
    const set =
      owner.kind === "ReplicaSet"
        ? caches.of(kubernetes.ReplicaSet).get(`${pod.metadata.namespace}/${owner.name}`)
        : undefined;
    if (set === undefined || set.metadata.uid !== owner.uid)
      return { known: false, message: `found no controllers for pod ${JSON.stringify(pod.metadata.name)}` };
    const above = controllerOf(set);
    const deployment =
      above?.kind === "Deployment"
        ? caches.of(kubernetes.Deployment).get(`${pod.metadata.namespace}/${above.name}`)
        : undefined;
    if (above !== undefined && deployment !== undefined && deployment.metadata.uid === above.uid)
      controllers.set(above.uid, deployment.spec?.replicas ?? 1);
    else controllers.set(owner.uid, set.spec?.replicas ?? 1);
  }
  return { known: true, replicas: [...controllers.values()].reduce((total, count) => total + count, 0) };
}

/** Maintains the status of PodDisruptionBudgets, by which the API server allows evictions. */
export function disruptionBudgetController(): Controller {
  function concernsOfPod({ before, after }: ObjectChange<Pod>, caches: Caches): readonly string[] {
    const namespace = (after ?? before)?.metadata.namespace ?? "";
    return caches
      .of(kubernetes.PodDisruptionBudget)
      .byIndex("namespace", namespace)
      .filter(({ spec }) =>
        [before, after].some((pod) => pod !== undefined && selects(spec?.selector, pod.metadata.labels)),
      )
      .map(keyOf);
  }
  const concernsOfScale = (
    { before, after }: ObjectChange<Deployment | ReplicaSet>,
    caches: Caches,
  ): readonly string[] =>
    before?.spec?.replicas === after?.spec?.replicas && before?.metadata.uid === after?.metadata.uid
      ? []
      : caches
          .of(kubernetes.PodDisruptionBudget)
          .byIndex("namespace", (after ?? before)?.metadata.namespace ?? "")
          .map(keyOf);

  return {
    name: "disruption-budget",
    watches: [
      watching<PodDisruptionBudget>({
        resource: kubernetes.PodDisruptionBudget,
        indexes: { namespace: ownedIndexes.namespace },
      }),
      watching<Pod>({ resource: kubernetes.Pod, indexes: podIndexes, concerns: concernsOfPod }),
      watching<Deployment>({ resource: kubernetes.Deployment, indexes: ownedIndexes, concerns: concernsOfScale }),
      watching<ReplicaSet>({ resource: kubernetes.ReplicaSet, indexes: ownedIndexes, concerns: concernsOfScale }),
    ],
    owns: ["PodDisruptionBudget.status"],

    async reconcile(key, { caches, kube, clock, events, signal }) {
      const budget = caches.of(kubernetes.PodDisruptionBudget).get(key);
      if (budget === undefined) return done();
      const now = clock.now();
      const pods = caches
        .of(kubernetes.Pod)
        .byIndex("namespace", budget.metadata.namespace ?? "")
        .filter((pod) => selects(budget.spec?.selector, pod.metadata.labels));
      const { maxUnavailable, minAvailable } = budget.spec ?? {};
      const scale =
        maxUnavailable !== undefined || typeof minAvailable === "string"
          ? scaleOf(pods, caches)
          : { known: true as const, replicas: 0 };
      const observedGeneration = budget.metadata.generation ?? 0;
      const before = budget.status;
      const condition = (status: "True" | "False", reason: string, message = "") =>
        setCondition(
          before?.conditions,
          { type: "DisruptionAllowed", status, reason, message, observedGeneration },
          now,
        );
      if (!scale.known) {
        // No eviction is allowed by unknown counts.
        await writeStatus(
          kube,
          kubernetes.PodDisruptionBudget,
          budget,
          {
            currentHealthy: 0,
            desiredHealthy: 0,
            expectedPods: 0,
            ...before,
            disruptionsAllowed: 0,
            observedGeneration,
            conditions: condition("False", "SyncFailed", scale.message),
          },
          signal,
        );
        return done();
      }
      const { expired, againInMs, disruptedPods, ...metrics } = budgetMetrics(budget, pods, scale.replicas, now);
      for (const pod of expired)
        events.event(pod, {
          type: "Warning",
          reason: "NotDeleted",
          message: `Pod was expected by PDB ${keyOf(budget)} to be deleted but it wasn't`,
        });
      const { disruptedPods: _, ...kept } = before ?? {};
      await writeStatus(
        kube,
        kubernetes.PodDisruptionBudget,
        budget,
        {
          ...kept,
          ...metrics,
          observedGeneration,
          ...(Object.keys(disruptedPods).length === 0 ? {} : { disruptedPods: { ...disruptedPods } }),
          conditions:
            metrics.disruptionsAllowed > 0
              ? condition("True", "SufficientPods")
              : condition("False", "InsufficientPods"),
        },
        signal,
      );
      return againInMs === undefined ? done() : done(againInMs / 1000);
    },
  };
}
