import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { type LabelSelector, selectorIsEmpty, selectorMatches } from "../../api/schema/object.ts";
import type { FieldProblem } from "./decode-go.ts";

export type PoolSelection =
  | { readonly verdict: "selected"; readonly pools: readonly MachineConfigPool[] }
  | { readonly verdict: "refused"; readonly problem: FieldProblem };

const path = "spec.machineConfigPoolSelector";
const operators = ["In", "NotIn", "Exists", "DoesNotExist"];

/** The pools that a KubeletConfig or ContainerRuntimeConfig is for. An absent or empty selector selects none. */
export function selectPools(selector: LabelSelector | undefined, pools: readonly MachineConfigPool[]): PoolSelection {
  const problem = selectorProblem(selector);
  if (problem !== undefined) return { verdict: "refused", problem };
  const selected =
    selector === undefined || selectorIsEmpty(selector)
      ? []
      : pools.filter(({ metadata }) => selectorMatches(selector, metadata.labels));
  if (selected.length > 0) return { verdict: "selected", pools: selected };
  const reason =
    selector === undefined || selectorIsEmpty(selector)
      ? "must select a pool by its labels; an empty selector selects none"
      : `selects none of the pools ${pools
          .map(({ metadata }) => metadata.name)
          .toSorted()
          .join(", ")}; give one of them the label, or change the selector`;
  return { verdict: "refused", problem: { path, reason } };
}

function selectorProblem(selector: LabelSelector | undefined): FieldProblem | undefined {
  for (const [i, { operator, values = [] }] of (selector?.matchExpressions ?? []).entries()) {
    const at = `${path}.matchExpressions[${i}]`;
    if (!operators.includes(operator))
      return { path: `${at}.operator`, reason: `must be one of ${operators.join(", ")}` };
    const wantsValues = operator === "In" || operator === "NotIn";
    if (wantsValues && values.length === 0)
      return { path: `${at}.values`, reason: `must hold a value for the operator ${operator}` };
    if (!wantsValues && values.length > 0)
      return { path: `${at}.values`, reason: `must be empty for the operator ${operator}` };
  }
  return undefined;
}
