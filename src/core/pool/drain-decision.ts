import type { Node, Pod } from "../../api/foreign/kubernetes.ts";
import type { Condition } from "../../api/schema/object.ts";
import type { KnownBudgets } from "./disruption-budgets.ts";
import type { DrainBegan, drainReasons } from "./drain-step.ts";
import type { DrainVerdict } from "./judge-drain.ts";
import type { BlockedPod, DrainPlan } from "./plan-drain.ts";
import type { PoolPolicy } from "./pool-policy.ts";

/** What the API server answered to the eviction of a pod. */
export type AskedPod =
  | { readonly verdict: "gone" }
  | { readonly verdict: "leaving"; readonly pod: Pod }
  | ({ readonly verdict: "blocked" } & BlockedPod);

/** What a drain will meet, found out by evictions as a dry run. */
export interface DrainForecast {
  readonly plan: DrainPlan;
  readonly blocked: readonly BlockedPod[];
  readonly budgets: KnownBudgets;
}

/** The pods of a node, and what was asked of them. */
export interface EvictionRound {
  /** Milliseconds since the epoch at which the round began. */
  readonly startedAt: number;
  readonly from: "watch" | "server";
  readonly pods: readonly Pod[];
  /** How many pods had to go when they were listed first; absent: this is the first list. */
  readonly first: number | undefined;
  /** Absent until their evictions are requested. */
  readonly answers?: readonly AskedPod[];
}

/** What this pass has found out and done. */
export interface DrainPass {
  /** As the watch showed it when the pass began, or as its cordon left it; absent: there is none. */
  readonly node: Node | undefined;
  /** `found` is absent if nothing could be foreseen. */
  readonly forecast?: { readonly found: DrainForecast | undefined };
  readonly round?: EvictionRound;
  /** Pods that leave, and budgets that block, are watched. */
  readonly isWatched?: true;
  /** The beginning of the drain, if this pass noted it on the node. */
  readonly began?: DrainBegan;
  /** `askedAt`, in milliseconds since the epoch, is also the time by which the drain is late or not. */
  readonly budgets?: { readonly known: KnownBudgets; readonly askedAt: number };
  /** The pods that this pass deleted against their protections, and those that it kept. */
  readonly forced?: Extract<DrainVerdict, { readonly do: "force" }>;
}

/** The inputs of a decision about the drain request of a node. */
export interface DrainView extends DrainPass {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Monotonic milliseconds. */
  readonly monotonic: number;
  readonly pool: { readonly name: string; readonly drain: PoolPolicy["drain"] };
  /** The condition Drained of the MachineConfigNode. */
  readonly drained: Pick<Condition, "status" | "reason"> | undefined;
}

/** What the process remembers of a node between passes; a restart costs one more report. */
export interface DrainMemory {
  /** Why the drain was last reported as held. */
  readonly held: DrainReport["reason"] | undefined;
  /** The last progress that was written, and its time in monotonic milliseconds. */
  readonly reported: { readonly what: string; readonly at: number } | undefined;
}

/** That a drain is held, for people. */
export interface DrainReport {
  readonly reason: (typeof drainReasons)["blocked" | "late"];
  readonly message: string;
}

/** What a pass over the drain request of a node does next, each with its reason for people. */
export type DrainDecision = { readonly because: string } & (DrainQuestion | DrainPreparation | DrainEnd);

/** Parts that the view lacks: they are looked up, and the pass decides again. */
export type DrainQuestion =
  /** Evicts the pods of the node as a dry run. */
  | { readonly do: "foresee" }
  /** Reads the pods of the node: the first time from their watch, if one runs, then from the API server. */
  | { readonly do: "listPods"; readonly startedAt: number; readonly first: number | undefined }
  | { readonly do: "evict"; readonly pods: readonly Pod[] }
  | { readonly do: "readBudgets"; readonly of: readonly BlockedPod[]; readonly askedAt: number };

/** Changes after which the pass decides again. */
export type DrainPreparation =
  | {
      readonly do: "cordon";
      /** How many pods have to leave, if that could be foreseen. */
      readonly pods: number | undefined;
      /** Obstacles in words, if there are any. */
      readonly foreseen: string | undefined;
      readonly warning: { readonly type: "Warning" | "Normal"; readonly message: string } | undefined;
    }
  /** `byBudgets`: the pods that disruption budgets block. */
  | { readonly do: "watch"; readonly byBudgets: readonly Pod[] }
  /** Notes on the node that its drain began, with the number of pods that have to leave. */
  | { readonly do: "begin"; readonly pods: number }
  /** Deletes pods against protections that the policy of the pool names. */
  | {
      readonly do: "force";
      readonly verdict: NonNullable<DrainPass["forced"]>;
      readonly pods: readonly { readonly pod: Pod; readonly message: string }[];
    };

/** Ends of a pass. */
export type DrainEnd =
  | { readonly do: "rest" | "refuse" | "uncordon" }
  | { readonly do: "confirm"; readonly request: string }
  /** The node serves again, and another one takes its place. */
  | { readonly do: "skip"; readonly request: string; readonly again: string; readonly why: string }
  | {
      readonly do: "wait";
      readonly reason: string;
      /** What is reported of the hold; absent if it was already. */
      readonly report: DrainReport | undefined;
      readonly writesProgress: boolean;
      readonly memory: DrainMemory;
      readonly counts: { readonly blocked: number; readonly leaving: number };
      readonly seconds: number;
    };

export type DrainCase<Name extends DrainDecision["do"]> = DrainDecision & { readonly do: Name };
