import type { Node, Pod, PodDisruptionBudget } from "../../api/foreign/kubernetes.ts";
import { annotations, labels } from "../../api/names.ts";
import { selectorMatches } from "../../api/schema/object.ts";
import { parseDrainRequest } from "../machine/drain-requests.ts";
import { isMirror, mirrorAnnotation } from "./mirror-pods.ts";
import type { PoolPolicy, Protection } from "./pool-policy.ts";
import { andMore, listText } from "../text/list-text.ts";

/** Why a drain does not end: reasons of the condition Drained. */
export const drainReasons = { blocked: "PodsBlocked", late: "DrainDeadlineExceeded", skipped: "DrainSkipped" } as const;

/** What a node's drain request asks for next. Requests are `drain-<config>` and `uncordon-<config>`. */
export type DrainStep =
  | { readonly do: "nothing" }
  /** Take the node out of service. `anew`: an earlier drain was reported as done, and the node was uncordoned since. */
  | { readonly do: "cordon"; readonly request: string; readonly anew: boolean }
  /** The node is out of service; see to its pods. */
  | { readonly do: "evict"; readonly request: string }
  /** Put the node back. `lift`: the cordon is ours; another one stays. */
  | { readonly do: "uncordon"; readonly request: string; readonly remedy: boolean }
  | { readonly do: "refuse"; readonly request: string; readonly reason: string };

/** Reads the request that a daemon wrote on its node, and how far it has been carried out. */
export function drainStep(node: Pick<Node, "metadata" | "spec">): DrainStep {
  const has = node.metadata.annotations ?? {};
  const request = has[annotations.desiredDrain] ?? "";
  if (request === "") return { do: "nothing" };
  const verb = parseDrainRequest(request)?.verb;
  const isCordoned = node.spec?.unschedulable === true;
  const fulfilled = has[annotations.lastAppliedDrain] === request;
  if (verb === "drain") {
    // It was given up for now: the node controller takes the target back, and gives it again when there is room.
    if (drainSkipped(node)?.request === request) return { do: "nothing" };
    if (!isCordoned) return { do: "cordon", request, anew: fulfilled };
    return fulfilled ? { do: "nothing" } : { do: "evict", request };
  }
  if (verb === "uncordon") {
    const ours = has[annotations.cordonedFor] !== undefined;
    return fulfilled && !ours ? { do: "nothing" } : { do: "uncordon", request, remedy: ours && isCordoned };
  }
  return {
    do: "refuse",
    request,
    reason: `"${request}" is no drain request: it starts with neither drain- nor uncordon-`,
  };
}

/** The drain in progress, as the Node records it: another process continues where this one stopped. */
export interface DrainBegan {
  readonly request: string;
  /** RFC 3339. */
  readonly at: string;
  /** How many pods had to go then. */
  readonly pods: number;
}

/** A drain that was given up for now. */
export interface DrainSkipped {
  readonly request: string;
  /** RFC 3339. */
  readonly at: string;
  /** RFC 3339: the node is offered its target again from then on. */
  readonly again: string;
  /** What held it, for people. */
  readonly why: string;
}

/** When the drain that a node is asked for began; `undefined` before that, or when the note is about another one. */
export function drainBegan({ metadata }: Pick<Node, "metadata">): DrainBegan | undefined {
  const note = noteOf(metadata.annotations?.[annotations.drainBegan]);
  const { request, at, pods } = note;
  if (typeof request !== "string" || request !== metadata.annotations?.[annotations.desiredDrain] || !isTime(at))
    return undefined;
  return { request, at, pods: typeof pods === "number" && pods >= 0 ? pods : 0 };
}

/** The drain of a node that was given up for now, if one was. */
export function drainSkipped({ metadata }: Pick<Node, "metadata">): DrainSkipped | undefined {
  const { request, at, again, why } = noteOf(metadata.annotations?.[annotations.drainSkipped]);
  return typeof request === "string" && isTime(at) && isTime(again)
    ? { request, at, again, why: typeof why === "string" ? why : "" }
    : undefined;
}

/**
 * As the controller writes it. Root on the machine can write it as well, and `Date.parse` reads times that no other clock
 * has, and texts of any length.
 */
const isTime = (value: unknown): value is string =>
  typeof value === "string" &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(value) &&
  !Number.isNaN(Date.parse(value));

function noteOf(text: string | undefined): Readonly<Record<string, unknown>> {
  if (text === undefined) return {};
  try {
    const note: unknown = JSON.parse(text);
    return typeof note === "object" && note !== null ? (note as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** How long a node that was skipped is left alone at least, in seconds: others come first. */
const leastPauseSeconds = 300;

/**
 * When a node whose drain is given up `now` (milliseconds since the epoch) is tried again: after its deadline once
 * more.
 */
export const skippedUntil = (now: number, deadlineSeconds: number): number =>
  now + 1000 * Math.max(leastPauseSeconds, deadlineSeconds);

export interface DrainPlan {
  /** Pods to ask the eviction API for. */
  readonly evict: readonly Pod[];
  /** Pods that build an OS image, while that is waited for. */
  readonly building: readonly Pod[];
  /** Pods on their way out. */
  readonly leaving: readonly Pod[];
  /** Pods that stay, and why. */
  readonly staying: readonly { readonly pod: Pod; readonly why: "DaemonSet" | "mirror" | "terminated" }[];
}

/**
 * How long a drain waits for an image that is being built on its node, in milliseconds: to build it again costs more.
 */
export const buildPatienceMs = 600_000;

/** Whether a drain still waits for images that are being built there. */
export function waitsForBuilds(node: Pick<Node, "metadata">, now: number): boolean {
  const began = drainBegan(node);
  return began === undefined || now - Date.parse(began.at) < buildPatienceMs;
}

/**
 * Sorts the pods of a node: what must go, what goes already, what stays. Nothing is left to do when only those stay.
 * @param holdBuilds pods that build an OS image are let finish.
 */
export function planDrain(pods: readonly Pod[], holdBuilds = false): DrainPlan {
  const evict: Pod[] = [];
  const building: Pod[] = [];
  const leaving: Pod[] = [];
  const staying: DrainPlan["staying"][number][] = [];
  for (const pod of pods) {
    const { metadata, status } = pod;
    const why = isMirror(pod)
      ? "mirror"
      : metadata.ownerReferences?.some(({ kind, controller }) => controller === true && kind === "DaemonSet") === true
        ? "DaemonSet"
        : status?.phase === "Succeeded" || status?.phase === "Failed"
          ? "terminated"
          : undefined;
    if (why !== undefined) staying.push({ pod, why });
    else if (metadata.deletionTimestamp !== undefined) leaving.push(pod);
    else if (holdBuilds && metadata.labels?.[labels.ephemeralBuildObject] !== undefined) building.push(pod);
    else evict.push(pod);
  }
  return { evict, building, leaving, staying };
}

/** Nothing recreates the pod elsewhere. */
export const isUnmanaged = ({ metadata }: Pod): boolean =>
  metadata.ownerReferences?.some(({ controller }) => controller === true) !== true;
const keepsData = ({ spec }: Pod): boolean => spec?.volumes?.some(({ emptyDir }) => emptyDir !== undefined) === true;

/** A pod that is not gone this long after its grace period is stuck, in milliseconds. */
export const stuckAfterMs = 60_000;

/**
 * Why a pod that leaves does not get away, for people; `undefined` while it has time. `now`: milliseconds since the
 * epoch.
 */
export function whyStuck({ metadata }: Pod, now: number): string | undefined {
  // The time of deletion has the grace period in it.
  if (metadata.deletionTimestamp === undefined || now - Date.parse(metadata.deletionTimestamp) <= stuckAfterMs)
    return undefined;
  const held = metadata.finalizers ?? [];
  return held.length > 0 ? `held by its finalizers ${held.join(", ")}` : "its kubelet does not confirm its end";
}

/** A pod whose eviction the API refused. */
export interface BlockedPod {
  readonly pod: Pod;
  /**
   * `pdb`: by a disruption budget. `refused`: by something else, such as a webhook. `failed`: the server could not say.
   * `build`: by us, until its image is built.
   */
  readonly by: "pdb" | "refused" | "failed" | "build";
  /** What the API server said, with the disruption budget's name where it names one. */
  readonly why: string;
}

/** A pod that is let finish an image. */
export const heldForBuild = (pod: Pod): BlockedPod => ({
  pod,
  by: "build",
  why: "it builds an OS image, which is waited for, ten minutes at most",
});

/**
 * Everything that protects a blocked pod from being deleted. Webhooks are asked before budgets: a pod that one of them
 * keeps may have a budget too.
 */
export function protectionsOf(
  { pod, by }: BlockedPod,
  budgets: readonly PodDisruptionBudget[],
): readonly (Protection | "failed")[] {
  const covered = by !== "pdb" && inNamespaceOf(pod, budgets).some((budget) => covers(budget, pod));
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

export function judgeDrain(
  { deadlineSeconds, afterDeadline }: PoolPolicy["drain"],
  seconds: number,
  blocked: readonly BlockedPod[],
  budgets: readonly PodDisruptionBudget[],
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

/** The disruption budgets that cover a pod. */
const budgetsOf = (pod: Pod, budgets: readonly PodDisruptionBudget[]): readonly PodDisruptionBudget[] =>
  inNamespaceOf(pod, budgets).filter((budget) => covers(budget, pod));

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

/** What blocks a pod, for people: its budgets where they are known, else what the server said. */
export function describeBlocked({ pod, by, why }: BlockedPod, budgets: readonly PodDisruptionBudget[]): string {
  const covering = by === "pdb" ? budgetsOf(pod, budgets) : [];
  if (covering.length === 0) return `pod ${nameOf(pod)} (${why})`;
  const described = covering.slice(0, budgetsShown).map((budget: TrimmedBudget) => {
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
  readonly budgets: readonly PodDisruptionBudget[];
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
  budgets: readonly PodDisruptionBudget[],
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

/** What a drain needs to know of a pod: the rest is not kept. */
export function trimPod({ apiVersion, kind, metadata, spec, status }: Pod): Pod {
  const {
    name,
    namespace,
    uid,
    resourceVersion,
    labels,
    annotations: said,
    ownerReferences,
    finalizers,
    deletionTimestamp,
  } = metadata;
  const mirror = said?.[mirrorAnnotation];
  const volumes =
    spec?.volumes
      ?.filter(({ emptyDir }) => emptyDir !== undefined)
      .map(({ name: volume }) => ({ name: volume, emptyDir: {} })) ?? [];
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(labels === undefined ? {} : { labels }),
      ...(mirror === undefined ? {} : { annotations: { [mirrorAnnotation]: mirror.slice(0, 64) } }),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
      ...(finalizers === undefined ? {} : { finalizers }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: { containers: [], ...(volumes.length === 0 ? {} : { volumes }) },
    status: status?.phase === undefined ? {} : { phase: status.phase },
  };
}

/** A disruption budget as drains keep it. */
interface TrimmedBudget extends PodDisruptionBudget {
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
