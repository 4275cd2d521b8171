import type { Pod, PodDisruptionBudget } from "../api/foreign/kubernetes.ts";
import { covers, mayGiveWay, namespaceOf } from "../core/pool/disruption-budgets.ts";
import type { ObjectChange } from "../kube/watch-cache.ts";
import type { CancelTimer, Clock } from "../ports/clock.ts";

/** Budgets wake a node at most once in this time, however many of them change. */
export const wakePauseMs = 5000;
/**
 * Comparisons of a pod with a changed budget that one node costs in this time. A budget that would cost more counts as
 * covering one of its pods.
 */
export const mostComparisons = 1000;

/** What budgets do to a node. */
interface BlockedNode {
  /** The pods that budgets block, by namespace. */
  pods: ReadonlyMap<string, readonly Pod[]>;
  /** The monotonic time before which budgets do not wake it again. */
  quietUntil: number;
  /** Comparisons, and the monotonic time until which they are counted together. */
  comparisons: { count: number; readonly until: number };
  /** The wake at the end of the pause, if some budget changed meanwhile. */
  cancel: CancelTimer | undefined;
}

type BudgetChange = Pick<ObjectChange<PodDisruptionBudget>, "before" | "after" | "isKept">;

/**
 * Wakes the nodes with a blocked pod that a changed budget covers, before or after the change: at once, and then once at
 * the end of each pause for all that changed in it. Whoever may write budgets can change them without end.
 */
export class BudgetWakes {
  readonly #nodes = new Map<string, BlockedNode>();
  readonly #clock: Clock;
  readonly #wake: (node: string) => void;

  constructor(clock: Clock, wake: (node: string) => void) {
    this.#clock = clock;
    this.#wake = wake;
  }

  /** Whether budgets block no node. */
  get isEmpty(): boolean {
    return this.#nodes.size === 0;
  }

  /** Notes which pods of a node budgets block now. */
  block(node: string, pods: readonly Pod[]): void {
    const byNamespace = Map.groupBy(pods, namespaceOf);
    const known = this.#nodes.get(node);
    if (known === undefined)
      this.#nodes.set(node, {
        pods: byNamespace,
        quietUntil: 0,
        comparisons: { count: 0, until: 0 },
        cancel: undefined,
      });
    else known.pods = byNamespace;
  }

  /** Budgets block the node no more. */
  forget(node: string): void {
    this.#nodes.get(node)?.cancel?.();
    this.#nodes.delete(node);
  }

  /** Budgets wake no node any more. */
  end(): void {
    for (const node of this.#nodes.keys()) this.forget(node);
  }

  /** Any budget may have changed. */
  changedAny(): void {
    for (const [name, node] of this.#nodes) this.#soon(name, node);
  }

  /** A budget was made, changed or removed. */
  changed(change: BudgetChange): void {
    const { before, after, isKept } = change;
    const budget = after ?? before;
    if (budget === undefined || (isKept !== false && !mayGiveWay(before, after))) return;
    for (const [name, node] of this.#nodes) {
      const pods = node.pods.get(namespaceOf(budget)) ?? [];
      if (node.cancel === undefined && pods.length > 0 && this.#concerns(node, pods, change)) this.#soon(name, node);
    }
  }

  #concerns(node: BlockedNode, pods: readonly Pod[], { before, after, isKept }: BudgetChange): boolean {
    // What a budget covered that the watch has no room for is not known.
    if (isKept === false) return true;
    const now = this.#clock.monotonic();
    if (now >= node.comparisons.until) node.comparisons = { count: 0, until: now + wakePauseMs };
    node.comparisons.count += pods.length;
    const states = [before, after].filter((budget) => budget !== undefined);
    return node.comparisons.count > mostComparisons || pods.some((pod) => states.some((budget) => covers(budget, pod)));
  }

  /** Wakes a node now, or at the end of its pause. */
  #soon(name: string, node: BlockedNode): void {
    const wait = node.quietUntil - this.#clock.monotonic();
    if (wait <= 0) this.#wakeNow(name, node);
    else node.cancel ??= this.#clock.after(wait, () => this.#wakeNow(name, node));
  }

  #wakeNow(name: string, node: BlockedNode): void {
    node.cancel = undefined;
    node.quietUntil = this.#clock.monotonic() + wakePauseMs;
    this.#wake(name);
  }
}
