import type { Pod } from "../../api/foreign/kubernetes.ts";
import { type KnownBudgets, hasBudget } from "./disruption-budgets.ts";
import { type BlockedPod, isUnmanaged } from "./plan-drain.ts";
import type { PoolPolicy, Protection } from "./pool-policy.ts";

const keepsData = ({ spec }: Pod): boolean => spec?.volumes?.some(({ emptyDir }) => emptyDir !== undefined) === true;

/**
 * Everything that protects a blocked pod from being deleted. Webhooks are asked before budgets: a pod that one of them
 * keeps may have a budget too.
 */
export function protectionsOf({ pod, by }: BlockedPod, budgets: KnownBudgets): readonly (Protection | "failed")[] {
  const covered = by !== "pdb" && hasBudget(pod, budgets);
  return [
    by === "build" ? "failed" : by,
    ...(covered ? (["pdb"] as const) : []),
    ...(isUnmanaged(pod) ? (["unmanaged"] as const) : []),
    ...(keepsData(pod) ? (["emptyDir"] as const) : []),
  ];
}

/** What a pool's policy makes of a drain: nothing before its deadline. `seconds`: how long it has taken. */
export type DrainVerdict =
  | { readonly do: "goOn"; readonly late: boolean }
  | { readonly do: "skip" }
  /** Delete `pods`; the others have protections that were not named. */
  | {
      readonly do: "force";
      readonly pods: readonly BlockedPod[];
      readonly kept: readonly (BlockedPod & { readonly unnamed: readonly string[] })[];
    };

/** Judges a drain by the policy of its pool. */
export function judgeDrain(
  { deadlineSeconds, afterDeadline }: PoolPolicy["drain"],
  seconds: number,
  blocked: readonly BlockedPod[],
  budgets: KnownBudgets,
): DrainVerdict {
  const late = deadlineSeconds !== undefined && seconds >= deadlineSeconds;
  if (!late || afterDeadline.do === "wait") return { do: "goOn", late };
  if (afterDeadline.do === "skip") return { do: "skip" };
  const judged = blocked.map((each) => ({
    ...each,
    unnamed: protectionsOf(each, budgets).filter(
      (protection) => protection === "failed" || !afterDeadline.despite.includes(protection),
    ),
  }));
  return {
    do: "force",
    pods: judged.filter(({ unnamed }) => unnamed.length === 0),
    kept: judged.filter(({ unnamed }) => unnamed.length > 0),
  };
}
