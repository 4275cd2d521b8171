import { type Pod, type PodDisruptionBudget, kubernetes } from "../api/foreign/kubernetes.ts";
import { trimBudget } from "../core/pool/disruption-budgets.ts";
import type { DrainMemory } from "../core/pool/drain-decision.ts";
import { trimPod } from "../core/pool/plan-drain.ts";
import type { Context } from "../kube/controller.ts";
import { WatchesOnDemand } from "../kube/watches-on-demand.ts";

/** Nodes whose pods are watched at once; the pods of further nodes are polled. */
const mostWatchedNodes = 64;
const allBudgets = "all";

/** What the process has of the drains under way: their watches, and what it remembers of each. */
export interface DrainWatches {
  /** Pods, node by node. */
  readonly pods: WatchesOnDemand<Pod>;
  /** All disruption budgets, while one blocks. */
  readonly budgets: WatchesOnDemand<PodDisruptionBudget>;
  /** Nodes that a budget blocks. */
  readonly blocked: Set<string>;
  readonly memories: Map<string, DrainMemory>;
}

/** Prepares the watches; none runs yet. `add` asks for a pass over a node. */
export function drainWatches(
  add: (node: string) => void,
  { kube, clock, random, log, signal }: Omit<Context, "caches">,
): DrainWatches {
  const blocked = new Set<string>();
  const ports = { kube, clock, random, log, signal };
  return {
    pods: new WatchesOnDemand({
      ...ports,
      resource: kubernetes.Pod,
      keep: trimPod,
      most: mostWatchedNodes,
      onChange: add,
    }),
    budgets: new WatchesOnDemand({
      ...ports,
      resource: kubernetes.PodDisruptionBudget,
      keep: trimBudget,
      most: 1,
      onChange: () => blocked.forEach((node) => add(node)),
    }),
    blocked,
    memories: new Map(),
  };
}

/** Continues the drain of a node as soon as a pod leaves, or a blocking budget changes. */
export function watchDrain(name: string, byBudget: boolean, { pods, budgets, blocked }: DrainWatches): void {
  pods.open(name, { fieldSelector: `spec.nodeName=${name}` });
  if (byBudget) {
    blocked.add(name);
    budgets.open(allBudgets, {});
  } else blocked.delete(name);
}

/** The budgets as they are watched; `undefined` while they are not. */
export const watchedBudgets = ({ budgets }: DrainWatches): readonly PodDisruptionBudget[] | undefined =>
  budgets.objects(allBudgets);

/** Nothing needs to watch this node any more. */
export function restDrain(name: string, { pods, budgets, blocked, memories }: DrainWatches): void {
  pods.close(name);
  memories.delete(name);
  blocked.delete(name);
  if (blocked.size === 0) budgets.close(allBudgets);
}
