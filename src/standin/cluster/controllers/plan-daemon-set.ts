import { pushAll } from "../../../api/schema/push-all.ts";
import type { DaemonSet, Node, Pod } from "../../../api/foreign/kubernetes.ts";
import { workloads } from "../../../api/names.ts";
import { nodeTaints } from "../../../api/names.ts";
import { intOrPercent } from "./int-or-percent.ts";
import { effectiveTaints, nodeSelected, pinnedNode, toleratesTaint } from "./node-fit.ts";
import { isActive, isAvailable, isTerminal } from "./pod-state.ts";

type Tolerations = NonNullable<NonNullable<Pod["spec"]>["tolerations"]>;

/**
 * The tolerations of every daemon, besides those of its template: k8s.io/kubernetes pkg/controller/daemon/util (master)
 * AddOrUpdateDaemonPodTolerations.
 */
export function daemonTolerations(spec: Pod["spec"]): Tolerations {
  const own: Tolerations = [
    { key: nodeTaints.notReady, operator: "Exists", effect: "NoExecute" },
    { key: nodeTaints.unreachable, operator: "Exists", effect: "NoExecute" },
    { key: nodeTaints.diskPressure, operator: "Exists", effect: "NoSchedule" },
    { key: nodeTaints.memoryPressure, operator: "Exists", effect: "NoSchedule" },
    { key: nodeTaints.pidPressure, operator: "Exists", effect: "NoSchedule" },
    { key: nodeTaints.unschedulable, operator: "Exists", effect: "NoSchedule" },
    ...(spec?.hostNetwork === true
      ? [{ key: nodeTaints.networkUnavailable, operator: "Exists", effect: "NoSchedule" }]
      : []),
  ];
  const same = (a: Tolerations[number], b: Tolerations[number]) => a.key === b.key && a.effect === b.effect;
  return [...(spec?.tolerations ?? []).filter((one) => !own.some((other) => same(one, other))), ...own];
}

/** The template's spec, pinned to a node in the way that the scheduler understands. */
export function daemonPodSpec(template: Pod["spec"], node: string): Pod["spec"] {
  const pin = { key: "metadata.name", operator: "In", values: [node] };
  const required = template?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  // Terms are alternatives: every one is pinned, and its field requirements go, as Kubernetes does it.
  const terms =
    required === undefined || required.nodeSelectorTerms.length === 0
      ? [{ matchFields: [pin] }]
      : required.nodeSelectorTerms.map((term) => ({ ...term, matchFields: [pin] }));
  return {
    ...template,
    containers: template?.containers ?? [],
    tolerations: daemonTolerations(template),
    affinity: {
      ...template?.affinity,
      nodeAffinity: {
        ...template?.affinity?.nodeAffinity,
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms },
      },
    },
  };
}

/** Whether a daemon belongs on a node, and whether an existing one may stay. */
export function daemonPlacement(set: DaemonSet, node: Node): { readonly run: boolean; readonly stay: boolean } {
  const spec = set.spec?.template?.spec;
  if ((spec?.nodeName ?? node.metadata.name) !== node.metadata.name || !nodeSelected(spec, node))
    return { run: false, stay: false };
  const tolerations = daemonTolerations(spec);
  const untolerated = effectiveTaints(node).filter((taint) => !toleratesTaint(tolerations, taint));
  const stay = !untolerated.some(({ effect }) => effect === "NoExecute");
  return { run: stay && !untolerated.some(({ effect }) => effect === "NoSchedule"), stay };
}

export interface DaemonSetPlan {
  /** Nodes that get a pod. */
  readonly create: readonly string[];
  readonly remove: readonly Pod[];
  /** Pods that ended on their own; removed like the others, with an Event. */
  readonly failed: readonly Pod[];
  readonly metrics: {
    readonly desiredNumberScheduled: number;
    readonly currentNumberScheduled: number;
    readonly numberMisscheduled: number;
    readonly numberReady: number;
    readonly updatedNumberScheduled: number;
    readonly numberAvailable: number;
    readonly numberUnavailable: number;
  };
}

/** The node that a daemon pod runs on or is meant for. */
export const nodeOfDaemon = (pod: Pod): string | undefined =>
  (pod.spec?.nodeName ?? "") === "" ? pinnedNode(pod.spec) : pod.spec?.nodeName;

/**
 * The next actions of a DaemonSet: one pod on each eligible node, none elsewhere, and old ones replaced within
 * `maxUnavailable`, or beside new ones within `maxSurge`. Pods that are not available anyway are replaced at once.
 */
export function planDaemonSet(
  set: DaemonSet,
  hash: string,
  nodes: readonly Node[],
  pods: readonly Pod[],
  now: number,
): DaemonSetPlan {
  const minReadySeconds = set.spec?.minReadySeconds ?? 0;
  const byNode = Map.groupBy(pods, (pod) => nodeOfDaemon(pod) ?? "");
  const isNew = (pod: Pod) => pod.metadata.labels?.[workloads.controllerRevisionHash] === hash;
  const available = (pod: Pod) => isActive(pod) && isAvailable(pod, minReadySeconds, now);

  const create: string[] = [];
  const remove: Pod[] = [];
  const failed: Pod[] = [];
  const metrics = {
    desiredNumberScheduled: 0,
    currentNumberScheduled: 0,
    numberMisscheduled: 0,
    numberReady: 0,
    updatedNumberScheduled: 0,
    numberAvailable: 0,
    numberUnavailable: 0,
  };
  /** Nodes that keep an old pod, with their other pods. */
  const outdated: { readonly node: string; readonly old: Pod; readonly fresh: Pod | undefined }[] = [];
  let unavailable = 0;
  let surging = 0;

  for (const node of nodes) {
    const { name } = node.metadata;
    const here = byNode.get(name) ?? [];
    byNode.delete(name);
    const { run, stay } = daemonPlacement(set, node);
    const leaving = here.filter((pod) => pod.metadata.deletionTimestamp !== undefined);
    const ended = here.filter((pod) => isTerminal(pod) && pod.metadata.deletionTimestamp === undefined);
    const active = here.filter(isActive);
    if (run) {
      metrics.desiredNumberScheduled += 1;
      const [first] = inOrder(active, available);
      if (here.length > 0) metrics.currentNumberScheduled += 1;
      const ready = active.find(
        (pod) => pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true,
      );
      if (ready !== undefined) metrics.numberReady += 1;
      if (active.some(available)) metrics.numberAvailable += 1;
      else unavailable += 1;
      if (
        first !== undefined &&
        active.some(isNew) &&
        (active.length === 1 || active.some((pod) => isNew(pod) && available(pod)))
      )
        metrics.updatedNumberScheduled += 1;
    } else if (here.length > 0) metrics.numberMisscheduled += 1;

    if (!stay) {
      pushAll(remove, [...active, ...ended]);
      continue;
    }
    pushAll(failed, ended);
    if (!run) {
      // It may stay where it is, but is not made again.
      pushAll(remove, inOrder(active, available).slice(1));
      continue;
    }
    const fresh = inOrder(active.filter(isNew), available);
    const old = inOrder(
      active.filter((pod) => !isNew(pod)),
      available,
    );
    pushAll(remove, [...fresh.slice(1), ...old.slice(1)]);
    const [newest] = fresh;
    const [oldest] = old;
    // The next pod of a node waits until the previous one is removed: they would compete for the same paths and ports.
    if (newest === undefined && oldest === undefined) {
      if (leaving.length === 0 && ended.length === 0) create.push(name);
    } else if (oldest !== undefined) {
      outdated.push({ node: name, old: oldest, fresh: newest });
      if (newest !== undefined) surging += 1;
    }
  }
  // Pods of deleted nodes, and pods without a node.
  for (const pod of [...byNode.values()].flat()) if (pod.metadata.deletionTimestamp === undefined) remove.push(pod);

  if (set.spec?.updateStrategy?.type !== "OnDelete") {
    const rolling = set.spec?.updateStrategy?.rollingUpdate;
    const total = metrics.desiredNumberScheduled;
    const maxSurge = intOrPercent(rolling?.maxSurge, total, "up");
    const maxUnavailable = intOrPercent(rolling?.maxUnavailable ?? (maxSurge > 0 ? 0 : 1), total, "up");
    if (maxSurge > 0) {
      let mayAdd = maxSurge - surging;
      for (const { node, old, fresh } of outdated) {
        if (fresh !== undefined) {
          if (available(fresh)) remove.push(old);
        } else if (!available(old)) remove.push(old);
        else if (mayAdd > 0) {
          mayAdd -= 1;
          create.push(node);
        }
      }
    } else {
      let mayGo = Math.max(maxUnavailable, total > 0 ? 1 : 0) - unavailable;
      for (const { old } of outdated) {
        if (!available(old)) remove.push(old);
        else if (mayGo > 0) {
          mayGo -= 1;
          remove.push(old);
        }
      }
    }
  }
  metrics.numberUnavailable = metrics.desiredNumberScheduled - metrics.numberAvailable;
  return {
    create,
    remove: [...new Set(remove)].filter((pod) => pod.metadata.deletionTimestamp === undefined),
    failed,
    metrics,
  };
}

/** Those that serve first, then those that have a node, then the oldest. */
function inOrder(pods: readonly Pod[], available: (pod: Pod) => boolean): readonly Pod[] {
  const rank = (pod: Pod) =>
    `${available(pod) ? 0 : 1}${(pod.spec?.nodeName ?? "") === "" ? 1 : 0}${pod.metadata.creationTimestamp ?? ""}${pod.metadata.name}`;
  return [...pods].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}
