import { type Pod, type PodDisruptionBudget, kubernetes } from "../api/foreign/kubernetes.ts";
import { type KnownBudgets, mostComparedBudgets, namespaceOf, trimBudget } from "../core/pool/disruption-budgets.ts";
import type { DrainMemory } from "../core/pool/drain-decision.ts";
import { trimPod } from "../core/pool/plan-drain.ts";
import type { Context } from "../kube/controller.ts";
import { WatchesOnDemand } from "../kube/watches-on-demand.ts";
import { BudgetWakes } from "./budget-wakes.ts";
import { listBudgets } from "./evict-pods.ts";

/** Nodes whose pods are watched at once; the pods of further nodes are polled. */
const mostWatchedNodes = 64;
const allBudgets = "all";
/** Disruption budgets that are kept: of a namespace no more than are compared. */
const budgetRoom = { shareOf: namespaceOf, each: mostComparedBudgets, inAll: 10_000 };

/** What the process has of the drains under way: their watches, and what it remembers of each. */
export interface DrainWatches {
  /** Pods, node by node. */
  readonly pods: WatchesOnDemand<Pod>;
  /** Disruption budgets of all namespaces, while one blocks. */
  readonly budgets: WatchesOnDemand<PodDisruptionBudget>;
  /** Nodes that a budget blocks, and when its changes wake them. */
  readonly wakes: BudgetWakes;
  readonly memories: Map<string, DrainMemory>;
}

/** Prepares the watches; none runs yet. `add` asks for a pass over a node. */
export function drainWatches(
  add: (node: string) => void,
  { kube, clock, random, log, signal }: Omit<Context, "caches">,
): DrainWatches {
  const wakes = new BudgetWakes(clock, add);
  signal.addEventListener("abort", () => wakes.end(), { once: true });
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
      room: budgetRoom,
      onChange: (_id, change) => (change === undefined ? wakes.changedAny() : wakes.changed(change)),
    }),
    wakes,
    memories: new Map(),
  };
}

/**
 * Continues the drain of a node as soon as a pod leaves, or a budget changes that blocks one of `byBudgets`.
 */
export function watchDrain(name: string, byBudgets: readonly Pod[], { pods, budgets, wakes }: DrainWatches): void {
  pods.open(name, { fieldSelector: `spec.nodeName=${name}` });
  if (byBudgets.length > 0) {
    wakes.block(name, byBudgets);
    budgets.open(allBudgets, {});
  } else wakes.forget(name);
}

/**
 * The budgets of some namespaces: as they are watched; as the server has them now, where they are not, or where budgets of
 * other namespaces have taken all places.
 */
export async function currentBudgets(
  namespaces: readonly string[],
  { budgets }: Pick<DrainWatches, "budgets">,
  context: Pick<Context, "kube" | "signal">,
): Promise<KnownBudgets> {
  const known = new Map<string, readonly PodDisruptionBudget[] | "tooMany">();
  const unknown: string[] = [];
  for (const namespace of namespaces) {
    const share = budgets.share(allBudgets, namespace);
    if (share === undefined || share === "noRoom") unknown.push(namespace);
    else known.set(namespace, share === "incomplete" ? "tooMany" : share);
  }
  return unknown.length === 0 ? known : new Map([...known, ...(await listBudgets(unknown, context))]);
}

/** Nothing needs to watch this node any more. */
export function restDrain(name: string, { pods, budgets, wakes, memories }: DrainWatches): void {
  pods.close(name);
  memories.delete(name);
  wakes.forget(name);
  if (wakes.isEmpty) budgets.close(allBudgets);
}
