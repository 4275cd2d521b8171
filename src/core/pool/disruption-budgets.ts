import type { Pod, PodDisruptionBudget } from "../../api/foreign/kubernetes.ts";
import { defined } from "../../api/schema/defined.ts";
import { selectorMatches } from "../../api/schema/object.ts";

/**
 * Budgets of a namespace that pods are compared with. A namespace with more has none compared: a message then has what
 * the API server said, and every pod counts as covered. Anybody with `edit` can make thousands in a namespace.
 */
export const mostComparedBudgets = 100;

/** The disruption budgets of some namespaces; `tooMany` are not compared. */
export type KnownBudgets = ReadonlyMap<string, readonly TrimmedBudget[] | "tooMany">;

/** Sorts budgets by namespace. */
export function knownBudgets(budgets: readonly TrimmedBudget[]): KnownBudgets {
  const byNamespace = Map.groupBy(budgets, namespaceOf);
  return new Map(
    [...byNamespace].map(([namespace, all]) => [namespace, all.length > mostComparedBudgets ? "tooMany" : all]),
  );
}

/** The namespace of a pod or budget. */
export const namespaceOf = ({ metadata }: { readonly metadata: { readonly namespace?: string } }): string =>
  metadata.namespace ?? "";

/** The disruption budgets that cover a pod; none if its namespace has too many. */
export function budgetsOf(pod: Pod, budgets: KnownBudgets): readonly TrimmedBudget[] {
  const known = budgets.get(namespaceOf(pod)) ?? [];
  return known === "tooMany" ? [] : known.filter((budget) => covers(budget, pod));
}

/** Whether some disruption budget covers a pod, or may cover it. */
export function hasBudget(pod: Pod, budgets: KnownBudgets): boolean {
  const known = budgets.get(namespaceOf(pod)) ?? [];
  return known === "tooMany" || known.some((budget) => covers(budget, pod));
}

/** Whether a budget covers a pod of its own namespace. */
export const covers = ({ spec }: PodDisruptionBudget, { metadata }: Pod): boolean =>
  selectorMatches(spec?.selector as never, metadata.labels);

/**
 * Whether an eviction that was refused may succeed after this change of a budget. It does not if nothing of the budget
 * changed but counts, none of them for the better.
 */
export function mayGiveWay(before: PodDisruptionBudget | undefined, after: PodDisruptionBudget | undefined): boolean {
  if (before?.metadata.generation === undefined || after === undefined) return true;
  const was = before.status;
  const is = after.status;
  return (
    before.metadata.uid !== after.metadata.uid ||
    before.metadata.generation !== after.metadata.generation ||
    was?.observedGeneration !== is?.observedGeneration ||
    (is?.disruptionsAllowed ?? 0) > 0 ||
    // The eviction of a pod that is not ready depends on these alone.
    (is?.currentHealthy ?? 0) > (was?.currentHealthy ?? 0) ||
    (is?.desiredHealthy ?? 0) < (was?.desiredHealthy ?? 0)
  );
}

/** Why a budget will not allow a disruption, however long one waits; `undefined` when it may. */
export function neverAllows({ spec, status, metadata }: PodDisruptionBudget): string | undefined {
  const { minAvailable, maxUnavailable } = spec ?? {};
  if (maxUnavailable !== undefined && /^0+%?$/.test(String(maxUnavailable)))
    return `its maxUnavailable is ${String(maxUnavailable)}`;
  const percent = /^(\d+)%$/.exec(String(minAvailable ?? ""))?.[1];
  if (percent !== undefined && Number(percent) >= 100) return `its minAvailable is ${String(minAvailable)}`;
  const expected = (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0) ? (status?.expectedPods ?? 0) : 0;
  if (minAvailable === undefined || expected === 0) return undefined;
  // Percentages of a budget are rounded up: k8s.io/kubernetes pkg/controller/disruption/disruption.go (master).
  const needed = percent === undefined ? Number(minAvailable) : Math.ceil((Number(percent) * expected) / 100);
  return needed >= expected ? `it wants ${needed} available of ${expected}` : undefined;
}

/** A disruption budget as drains keep it. */
export interface TrimmedBudget extends PodDisruptionBudget {
  /** Its selector was too large, and it counts as one that selects every pod of its namespace. */
  readonly isNotCompared?: true;
}

/** Of a selector: a person writes a few labels. Larger ones would keep the controllers busy, and fill their memory. */
const largestSelector = { requirements: 64, characters: 4096 } as const;

type Selector = NonNullable<NonNullable<PodDisruptionBudget["spec"]>["selector"]>;

function isTooLarge(selector: Selector): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const requirements = matchExpressions.reduce(
    (sum, { values = [] }) => sum + 1 + values.length,
    Object.keys(matchLabels).length,
  );
  return requirements > largestSelector.requirements || JSON.stringify(selector).length > largestSelector.characters;
}

/**
 * What a drain needs to know of a disruption budget. One with too large a selector counts as covering every pod of its
 * namespace: the API server has compared it, and what it forbids it has said already.
 */
export function trimBudget({ apiVersion, kind, metadata, spec, status }: PodDisruptionBudget): TrimmedBudget {
  const { name, namespace, uid, resourceVersion, generation } = metadata;
  const isNotCompared = spec?.selector !== undefined && isTooLarge(spec.selector);
  const {
    disruptedPods: _,
    conditions: __,
    ...counts
  } = status ?? { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 };
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...defined({ namespace, uid, resourceVersion, generation }),
    },
    ...(spec === undefined
      ? {}
      : {
          spec: {
            ...defined({ maxUnavailable: spec.maxUnavailable, minAvailable: spec.minAvailable }),
            ...(spec.selector === undefined ? {} : { selector: isNotCompared ? {} : spec.selector }),
          },
        }),
    status: counts,
    ...(isNotCompared ? { isNotCompared } : {}),
  };
}
