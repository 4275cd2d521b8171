import { type ConditionInput, setCondition } from "./conditions.ts";

/** How far an object is from what its spec says. */
export type Progress =
  | { readonly verdict: "current" }
  /** It gets there by itself, or once a step that it waits for is taken. */
  | { readonly verdict: "reconciling"; readonly reason: string; readonly message: string }
  /** It does not get there unless somebody changes something. */
  | { readonly verdict: "stalled"; readonly reason: string; readonly message: string };

/**
 * The conditions by which Flux, Argo CD and others judge an object that they do not know. `Reconciling` and `Stalled` are
 * never True at once, because the first of them decides.
 * Source: sigs.k8s.io/cli-utils pkg/kstatus (v0.37.2), README and status/generic.go.
 */
export const progressTypes = { reconciling: "Reconciling", stalled: "Stalled" } as const;

/** A condition that says how far an object is. */
export interface ProgressCondition {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

/** Both conditions for a progress; of one that is not the case, the reason is that of its opposite. */
function progressConditions(progress: Progress): readonly ProgressCondition[] {
  const of = (type: string, is: boolean): ProgressCondition => {
    if (progress.verdict === "current") return { type, status: "False", reason: "UpToDate", message: "" };
    const { reason, message } = progress;
    return is ? { type, status: "True", reason, message } : { type, status: "False", reason, message: "" };
  };
  return [
    of(progressTypes.reconciling, progress.verdict === "reconciling"),
    of(progressTypes.stalled, progress.verdict === "stalled"),
  ];
}

/**
 * Conditions together with those of a progress.
 *
 * @param now milliseconds since the epoch.
 */
export function withProgress<Condition extends { readonly type?: string; readonly status?: string }>(
  conditions: readonly Condition[],
  progress: Progress,
  now: number,
): readonly (Condition | ProgressCondition)[] {
  return progressConditions(progress).reduce<readonly (Condition | ProgressCondition)[]>(
    (all, next) =>
      setCondition<Condition | ProgressCondition>(all, next as ConditionInput<Condition | ProgressCondition>, now),
    conditions,
  );
}
