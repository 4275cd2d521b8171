import type { Pod } from "../../api/foreign/kubernetes.ts";
import { andMore, listText } from "../text/list-text.ts";
import { type KnownBudgets, budgetsOf, neverAllows } from "./disruption-budgets.ts";
import { type BlockedPod, type DrainPlan, isUnmanaged, whyStuck } from "./plan-drain.ts";

/** What blocks a pod, for people: its budgets where they are known, else what the server said. */
export function describeBlocked({ pod, by, why }: BlockedPod, budgets: KnownBudgets): string {
  const covering = by === "pdb" ? budgetsOf(pod, budgets) : [];
  if (covering.length === 0) return `pod ${nameOf(pod)} (${why})`;
  const described = covering.slice(0, budgetsShown).map((budget) => {
    const { status } = budget;
    const never = neverAllows(budget);
    const counts = `allowed disruptions ${status?.disruptionsAllowed ?? 0}, ${status?.currentHealthy ?? 0} healthy of ${status?.desiredHealthy ?? 0} needed`;
    const compared = budget.isNotCompared === true ? "; its selector is too large to be compared with the pod" : "";
    return `PodDisruptionBudget ${nameOf(budget)} (${counts}${compared}${never === undefined ? "" : `; it can never allow one: ${never}, so that only more replicas or another budget help`})`;
  });
  const rest = covering.length - described.length;
  const more = rest === 0 ? "" : ` ${andMore(rest)}`;
  return `pod ${nameOf(pod)} by ${described.join(" and ")}${more}${covering.length > 1 ? ", of which the eviction API takes only one" : ""}`;
}

const shown = 5;
/** Of one pod: anybody can make thousands in a namespace. */
const budgetsShown = 3;
const nameOf = ({ metadata }: { readonly metadata: { readonly namespace?: string; readonly name: string } }) =>
  `${metadata.namespace ?? ""}/${metadata.name}`;
/** The first of some items, which alone are described, and how many there are besides. */
const list = <T>(items: readonly T[], describe: (item: T) => string) =>
  listText(items.slice(0, shown).map(describe), shown, items.length);

export interface DrainProgress {
  /** How many pods had to go when it began. */
  readonly pods: number;
  readonly blocked: readonly BlockedPod[];
  readonly leaving: readonly Pod[];
  readonly budgets: KnownBudgets;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A drain's progress, for people: the pods that have left, are leaving, or are blocked, and their obstacles. */
export function describeDrain({ pods, blocked, leaving, budgets, now }: DrainProgress): string {
  const left = blocked.length + leaving.length;
  if (left === 0) return "all pods have left";
  const all = Math.max(pods, left);
  const isLeaving = (pod: Pod) => {
    const stuck = whyStuck(pod, now);
    return stuck === undefined
      ? nameOf(pod)
      : `${nameOf(pod)} (stuck since ${pod.metadata.deletionTimestamp}: ${stuck})`;
  };
  const lost = [...blocked.map(({ pod }) => pod), ...leaving].filter(isUnmanaged);
  return [
    `${all - left} of ${all} pods have left`,
    // Blocked pods need attention, so they precede pods that leave by themselves.
    ...(blocked.length === 0 ? [] : [`blocked: ${list(blocked, (each) => describeBlocked(each, budgets))}`]),
    ...(leaving.length === 0 ? [] : [`leaving: ${list(leaving, isLeaving)}`]),
    ...(lost.length === 0 ? [] : [`not re-created elsewhere: ${list(lost, nameOf)}`]),
  ].join("; ");
}

/** What a drain will meet, asked before the node is touched. `undefined`: no obstacle. */
export function describeForecast(
  plan: DrainPlan,
  blocked: readonly BlockedPod[],
  budgets: KnownBudgets,
): string | undefined {
  const held = [...plan.evict, ...plan.leaving].filter(({ metadata }) => (metadata.finalizers ?? []).length > 0);
  const lost = plan.evict.filter(isUnmanaged);
  const parts = [
    ...(blocked.length === 0
      ? []
      : [`cannot be evicted now: ${list(blocked, (each) => describeBlocked(each, budgets))}`]),
    ...(lost.length === 0
      ? []
      : [`will not be re-created elsewhere, because no controller owns them: ${list(lost, nameOf)}`]),
    ...(held.length === 0
      ? []
      : [
          `may be held by finalizers: ${list(held, (pod) => `${nameOf(pod)} (${(pod.metadata.finalizers ?? []).join(", ")})`)}`,
        ]),
  ];
  return parts.length === 0 ? undefined : `of ${plan.evict.length + plan.leaving.length} pods: ${parts.join("; ")}`;
}
