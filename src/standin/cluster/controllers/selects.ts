import type { PodDisruptionBudget } from "../../../api/foreign/kubernetes.ts";
import { type LabelSelector, selectorIsEmpty, selectorMatches } from "../../../api/schema/object.ts";

/** A label selector as Kubernetes' own kinds have it: the server has checked its operators. */
export type Selector = NonNullable<NonNullable<PodDisruptionBudget["spec"]>["selector"]>;

/** Whether a workload's selector picks an object with these labels. An absent one picks nothing. */
export const selects = (
  selector: Selector | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean => selectorMatches(selector as LabelSelector | undefined, labels);

/** Whether a selector is absent or would pick everything, which no workload may do. */
export const selectsNothingInParticular = (selector: Selector | undefined): boolean =>
  selector === undefined || selectorIsEmpty(selector as LabelSelector);
