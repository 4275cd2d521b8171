import type { Pod, PodDisruptionBudget } from "../../api/foreign/kubernetes.ts";
import { selectorMatches } from "../../api/schema/object.ts";

/** The disruption budgets that cover a pod. */
export const budgetsOf = (pod: Pod, budgets: readonly PodDisruptionBudget[]): readonly PodDisruptionBudget[] =>
  inNamespaceOf(pod, budgets).filter((budget) => covers(budget, pod));

/** Whether some disruption budget covers a pod. */
export const hasBudget = (pod: Pod, budgets: readonly PodDisruptionBudget[]): boolean =>
  inNamespaceOf(pod, budgets).some((budget) => covers(budget, pod));

const covers = ({ spec }: PodDisruptionBudget, { metadata }: Pod): boolean =>
  selectorMatches(spec?.selector as never, metadata.labels);

const namespacesOf = new WeakMap<readonly PodDisruptionBudget[], ReadonlyMap<string, readonly PodDisruptionBudget[]>>();

/** The budgets of a pod's namespace. A list is sorted once, for all pods that are compared with it. */
function inNamespaceOf({ metadata }: Pod, budgets: readonly PodDisruptionBudget[]): readonly PodDisruptionBudget[] {
  const known = namespacesOf.get(budgets) ?? Map.groupBy(budgets, (budget) => budget.metadata.namespace ?? "");
  namespacesOf.set(budgets, known);
  return known.get(metadata.namespace ?? "") ?? [];
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
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(generation === undefined ? {} : { generation }),
    },
    ...(spec === undefined
      ? {}
      : {
          spec: {
            ...(spec.maxUnavailable === undefined ? {} : { maxUnavailable: spec.maxUnavailable }),
            ...(spec.minAvailable === undefined ? {} : { minAvailable: spec.minAvailable }),
            ...(spec.selector === undefined ? {} : { selector: isNotCompared ? {} : spec.selector }),
          },
        }),
    status: counts,
    ...(isNotCompared ? { isNotCompared } : {}),
  };
}
