import { leastOf } from "../../../api/schema/extremes.ts";
import type { Node, NodeCondition, Pod, Taint } from "../../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import { nodeTaints } from "../../../api/names.ts";
import { tolerates } from "./node-fit.ts";
import { timestamp } from "./timestamp.ts";

/**
 * Conditions that an unresponsive kubelet can no longer vouch for: k8s.io/kubernetes pkg/controller/nodelifecycle
 * (master).
 */
const vouched = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] as const;

/** The conditions of a node whose kubelet no longer responds; the list itself if they show it already. */
export function unreachableConditions(node: Node, now: number): readonly NodeCondition[] {
  const before = node.status?.conditions ?? [];
  const silent = vouched.map((type): NodeCondition => {
    const old = conditionOf(before, type);
    if (old === undefined)
      return {
        type,
        status: "Unknown",
        reason: "NodeStatusNeverUpdated",
        message: "Kubelet never posted node status.",
        lastTransitionTime: timestamp(now),
      };
    if (old.status === "Unknown") return old;
    return {
      ...old,
      status: "Unknown",
      reason: "NodeStatusUnknown",
      message: "Kubelet stopped posting node status.",
      lastTransitionTime: timestamp(now),
    };
  });
  if (silent.every((condition) => before.includes(condition))) return before;
  return [...before.filter(({ type }) => !(vouched as readonly string[]).includes(type)), ...silent];
}

/** Taints that a node's conditions call for, by key. */
const pressures: readonly (readonly [condition: string, key: string])[] = [
  ["MemoryPressure", nodeTaints.memoryPressure],
  ["DiskPressure", nodeTaints.diskPressure],
  ["PIDPressure", nodeTaints.pidPressure],
  ["NetworkUnavailable", nodeTaints.networkUnavailable],
];

/**
 * The taints that a node should have: those of others as they are, and those that follow its state. The list itself
 * when nothing changes.
 */
export function wantedTaints(node: Node, now: number): readonly Taint[] {
  const before = node.spec?.taints ?? [];
  const { conditions } = node.status ?? {};
  const ready = conditionOf(conditions, "Ready")?.status;
  const lost = ready === "True" ? undefined : ready === "Unknown" ? nodeTaints.unreachable : nodeTaints.notReady;
  const wanted: { readonly key: string; readonly effect: string }[] = [
    ...(lost === undefined
      ? []
      : [
          { key: lost, effect: "NoSchedule" },
          { key: lost, effect: "NoExecute" },
        ]),
    ...(node.spec?.unschedulable === true ? [{ key: nodeTaints.unschedulable, effect: "NoSchedule" }] : []),
    ...pressures
      .filter(([condition]) => conditionOf(conditions, condition)?.status === "True")
      .map(([, key]) => ({ key, effect: "NoSchedule" })),
  ];
  const ours = (taint: Taint) =>
    (taint.effect === "NoSchedule" && (Object.values(nodeTaints) as readonly string[]).includes(taint.key)) ||
    (taint.effect === "NoExecute" && (taint.key === nodeTaints.notReady || taint.key === nodeTaints.unreachable));
  const isWanted = (taint: Taint) => wanted.some(({ key, effect }) => key === taint.key && effect === taint.effect);
  const kept = before.filter((taint) => !ours(taint) || isWanted(taint));
  const missing = wanted
    .filter(({ key, effect }) => !before.some((taint) => taint.key === key && taint.effect === effect))
    .map(({ key, effect }): Taint => ({ key, effect, timeAdded: timestamp(now) }));
  return missing.length === 0 && kept.length === before.length ? before : [...kept, ...missing];
}

/**
 * Wall time at which the `NoExecute` taints of its node end a pod; `undefined`: never.
 *
 * @param addedAt when a taint came to be, in milliseconds
 */
export function evictionTime(
  pod: Pod,
  taints: readonly Taint[],
  addedAt: (taint: Taint) => number,
): number | undefined {
  let earliest: number | undefined;
  for (const taint of taints) {
    if (taint.effect !== "NoExecute") continue;
    const tolerations = (pod.spec?.tolerations ?? []).filter((toleration) => tolerates(toleration, taint));
    if (tolerations.some(({ tolerationSeconds }) => tolerationSeconds === undefined)) {
      // It is tolerated for good, unless another toleration of the pod limits it: the shortest counts.
      const limited = tolerations.flatMap(({ tolerationSeconds }) => tolerationSeconds ?? []);
      if (limited.length === 0) continue;
    }
    const patience =
      tolerations.length === 0 ? 0 : leastOf(tolerations.flatMap(({ tolerationSeconds }) => tolerationSeconds ?? []));
    const end = addedAt(taint) + Math.max(0, patience) * 1000;
    earliest = Math.min(earliest ?? end, end);
  }
  return earliest;
}
