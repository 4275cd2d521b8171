import type { Node, Pod } from "../../api/foreign/kubernetes.ts";
import { machineConfigNodeConditions as types } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { childReason } from "../books/update-conditions.ts";
import { describeBlocked, describeDrain, describeForecast } from "./describe-drain.ts";
import type { KnownBudgets } from "./disruption-budgets.ts";
import type { DrainDecision, DrainMemory, DrainReport, DrainView, EvictionRound } from "./drain-decision.ts";
import { type DrainStep, drainBegan, drainReasons, drainStep, skippedUntil } from "./drain-step.ts";
import { type DrainVerdict, judgeDrain } from "./judge-drain.ts";
import { type BlockedPod, heldForBuild, planDrain, waitsForBuilds, whyStuck } from "./plan-drain.ts";

/** A blocked eviction is tried again after this time, or as soon as a pod or budget changes. */
const retrySeconds = 5;
/** After the pool's deadline. */
const lateRetrySeconds = 30;
/** How often a drain's progress is reported at most, while only counts change. */
const progressMs = 15_000;

/** The reason of the condition Drained while pods leave, and once all have. */
export const drainProgressReason = childReason(types.updateExecuted, types.drained);

/**
 * Decides what a pass over a node's drain request does next. The cases are evaluated in this order: the request, the
 * cordon, the evictions, and what the pool's policy makes of the pods that are left. A case that observes, prepares or
 * forces is followed by another decision on the updated view.
 */
export function decideDrain(view: DrainView, memory: DrainMemory): DrainDecision {
  const { node } = view;
  if (node === undefined || node.metadata.deletionTimestamp !== undefined)
    return { do: "rest", because: "the node is gone or leaves" };
  const step = drainStep(node);
  switch (step.do) {
    case "nothing":
      return { do: "rest", because: "the node requests nothing that is not carried out" };
    case "refuse":
      return { do: "refuse", because: step.reason };
    case "uncordon":
      return { do: "uncordon", because: `${step.request} asks to put the node back into service` };
    case "cordon":
      return decideCordon(view, node, step);
    case "evict":
      return decideEvictions(view, memory, node, step.request);
  }
}

type CordonStep = Extract<DrainStep, { readonly do: "cordon" }>;

function decideCordon({ forecast }: DrainView, { metadata: { name } }: Node, step: CordonStep): DrainDecision {
  if (forecast === undefined)
    return { do: "foresee", because: "what the drain will meet is asked before the node is touched" };
  const because = step.again
    ? "the node was put back into service while its drain is still needed"
    : `${step.request} asks to take the node out of service`;
  const { found } = forecast;
  if (found === undefined) return { do: "cordon", because, pods: undefined, foreseen: undefined, warning: undefined };
  const { plan, blocked, budgets } = found;
  const foreseen = describeForecast(plan, blocked, budgets);
  return {
    do: "cordon",
    because,
    pods: plan.evict.length + plan.leaving.length,
    foreseen,
    warning:
      foreseen === undefined
        ? undefined
        : {
            type: blocked.length > 0 ? "Warning" : "Normal",
            message: `Before ${name} is drained, ${foreseen}`,
          },
  };
}

/** What a round of evictions left on the node. */
interface Left {
  readonly request: string;
  /** How many pods had to go when the round began. */
  readonly first: number;
  readonly blocked: readonly BlockedPod[];
  readonly leaving: readonly Pod[];
}

function decideEvictions(view: DrainView, memory: DrainMemory, node: Node, request: string): DrainDecision {
  const { round, now } = view;
  if (round === undefined)
    return { do: "listPods", because: "the pods of the node are not known", startedAt: now, first: undefined };
  const plan = planDrain(round.pods, waitsForBuilds(node, round.startedAt));
  const answers = round.answers ?? (plan.evict.length === 0 ? [] : undefined);
  const first = round.first ?? plan.evict.length + plan.leaving.length;
  if (answers === undefined)
    return { do: "evict", because: `${plan.evict.length} pods are to leave the node`, pods: plan.evict };
  const leaving = [...plan.leaving, ...answers.flatMap((each) => (each.verdict === "leaving" ? [each.pod] : []))];
  if (round.from === "watch" && leaving.length === 0 && answers.every(({ verdict }) => verdict === "gone"))
    return {
      do: "listPods",
      because: "the watch may not have delivered a pod that was bound just before the cordon",
      startedAt: round.startedAt,
      first,
    };
  const blocked = [...plan.building.map(heldForBuild), ...blockedOf(answers)];
  if (blocked.length === 0 && leaving.length === 0) return { do: "confirm", because: "all pods have left", request };
  return decideLeft(view, memory, node, { request, first, blocked, leaving });
}

const blockedOf = (answers: NonNullable<EvictionRound["answers"]>): readonly BlockedPod[] =>
  answers.flatMap((each) => (each.verdict === "blocked" ? [each] : []));

/** Pods are left on the node. */
function decideLeft(view: DrainView, memory: DrainMemory, node: Node, left: Left): DrainDecision {
  const { blocked } = left;
  if (view.isWatched !== true)
    return {
      do: "watch",
      because: "the drain goes on as soon as a pod leaves or a blocking budget changes",
      byBudgets: blocked.flatMap(({ by, pod }) => (by === "pdb" ? [pod] : [])),
    };
  const began = drainBegan(node) ?? view.began;
  if (began === undefined) return { do: "begin", because: "another client cordoned the node", pods: left.first };
  const { budgets } = view;
  if (budgets === undefined)
    return { do: "readBudgets", because: "they say what blocks the pods", of: blocked, askedAt: view.now };

  const seconds = (budgets.askedAt - Date.parse(began.at)) / 1000;
  const drained: Drained = { ...left, view, node, seconds, pods: began.pods, budgets: budgets.known };
  const verdict = view.forced ?? judgeDrain(view.pool.drain, seconds, blocked, budgets.known);
  switch (verdict.do) {
    case "goOn":
      return decideWait(drained, memory, { isLate: verdict.late, kept: undefined });
    case "skip":
      return decideSkip(drained);
    case "force":
      return view.forced === undefined
        ? decideForce(drained, verdict)
        : decideWait(
            { ...drained, blocked: verdict.kept, leaving: [...left.leaving, ...verdict.pods.map(({ pod }) => pod)] },
            memory,
            { isLate: true, kept: verdict.kept },
          );
  }
}

/** A drain with pods left, as far as it is known to its last decision. */
interface Drained extends Left {
  readonly view: DrainView;
  readonly node: Node;
  /** How long it has taken. */
  readonly seconds: number;
  /** How many pods had to go when it began. */
  readonly pods: number;
  readonly budgets: KnownBudgets;
}

const described = ({ view: { now }, pods, blocked, leaving, budgets }: Drained): string =>
  describeDrain({ pods, blocked, leaving, budgets, now });

type ForceVerdict = Extract<DrainVerdict, { readonly do: "force" }>;

function decideForce({ view: { pool }, seconds, budgets }: Drained, verdict: ForceVerdict): DrainDecision {
  return {
    do: "force",
    because: `the drain has passed its deadline, and the policy of pool ${pool.name} names what it overrides`,
    verdict,
    pods: verdict.pods.map((each) => ({
      pod: each.pod,
      message: `${describeBlocked(each, budgets)} is deleted: its node has drained for ${Math.round(seconds)} s, and the policy of pool ${pool.name} requires it`,
    })),
  };
}

function decideSkip(drained: Drained): DrainDecision {
  const { view, node, request } = drained;
  const deadlineSeconds = view.pool.drain.deadlineSeconds ?? 0;
  const why = described(drained);
  const again = timestampOf(skippedUntil(view.now, deadlineSeconds));
  return {
    do: "skip",
    because: `The drain of ${node.metadata.name} is given up after the ${deadlineSeconds} s that its pool gives it; the node serves again and is tried again after ${again}: ${why}`,
    request,
    again,
    why,
  };
}

/** Who is kept, if the pool's policy overrides protections. */
interface Lateness {
  readonly isLate: boolean;
  readonly kept: ForceVerdict["kept"] | undefined;
}

function decideWait(drained: Drained, memory: DrainMemory, { isLate, kept }: Lateness): DrainDecision {
  const { view, seconds, blocked, leaving } = drained;
  const { deadlineSeconds } = view.pool.drain;
  const held = isLate ? drainReasons.late : blocked.length > 0 ? drainReasons.blocked : undefined;
  const message = `${described(drained)}${kept === undefined ? "" : unforcedText(kept)}`;
  const reason = held ?? drainProgressReason;
  const wait = isLate ? lateRetrySeconds : retrySeconds;
  const reported = progressOf(drained, reason, memory);
  return {
    do: "wait",
    because: message,
    reason,
    report:
      held === undefined ? undefined : reportOfHold(drained, { held, message, forces: kept !== undefined }, memory),
    writesProgress: reported !== memory.reported,
    memory: { held, reported },
    counts: { blocked: blocked.length, leaving: leaving.length },
    seconds: deadlineSeconds === undefined || isLate ? wait : Math.min(wait, Math.max(1, deadlineSeconds - seconds)),
  };
}

function unforcedText(kept: ForceVerdict["kept"]): string {
  if (kept.length === 0) return "";
  const unnamed = [...new Set(kept.flatMap((each) => each.unnamed))].sort().join(", ");
  return `; ${kept.length} not forced, because of what the pool's policy does not name: ${unnamed}`;
}

/**
 * That a drain is late or blocked, unless it was reported already: by this process, or by another one, which the
 * MachineConfigNode shows. Root on the machine can write that one.
 */
function reportOfHold(
  { view, node }: Drained,
  {
    held,
    message,
    forces,
  }: { readonly held: DrainReport["reason"]; readonly message: string; readonly forces: boolean },
  memory: DrainMemory,
): DrainReport | undefined {
  if (memory.held === held) return undefined;
  if (view.drained?.status === "Unknown" && view.drained.reason === held) return undefined;
  const { name } = node.metadata;
  const goesOn = forces ? "it overrides what the pool's policy names" : "it continues without force";
  return {
    reason: held,
    message:
      held === drainReasons.late
        ? `The drain of ${name} takes longer than the ${view.pool.drain.deadlineSeconds} s that its pool gives it; ${goesOn}: ${message}`
        : `The drain of ${name} waits: ${message}`,
  };
}

/** The progress that is reported last: news at once, and mere counts at intervals. */
function progressOf(
  { view, blocked, leaving }: Drained,
  reason: string,
  { reported }: DrainMemory,
): NonNullable<DrainMemory["reported"]> {
  const what = JSON.stringify([
    reason,
    blocked.map(({ pod }) => pod.metadata.uid),
    leaving.filter((pod) => whyStuck(pod, view.now) !== undefined).map(({ metadata }) => metadata.uid),
  ]);
  const isDue = reported?.what !== what || view.monotonic - reported.at >= progressMs;
  return isDue ? { what, at: view.monotonic } : reported;
}
