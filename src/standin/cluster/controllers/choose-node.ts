import type { Node, Pod } from "../../../api/foreign/kubernetes.ts";
import { nodeTaints } from "../../../api/names.ts";
import { isSuiteNamespace } from "../suite-namespaces.ts";
import { effectiveTaints, nodeSelected, pinnedNode, toleratesTaint } from "./node-fit.ts";
import { controllerOf, isTerminal } from "./pod-state.ts";
import { type Selector, selects } from "./selects.ts";
import { own } from "../../../api/schema/own.ts";

export interface SchedulingView {
  readonly nodes: readonly Node[];
  node(name: string): Node | undefined;
  /** Pods that are on a node, or on their way to it. */
  podsOn(node: string): readonly Pod[];
}

export type NodeChoice =
  | { readonly verdict: "node"; readonly node: string }
  | { readonly verdict: "nowhere"; readonly message: string };

type Refused = { readonly why: string; readonly helpedByPreemption: boolean };

const defaultPodCapacity = 110;

/**
 * Chooses the node for a pod: among the nodes that may take it, one without taints that the pod would rather avoid,
 * then the one with the fewest siblings, then the one with the fewest pods. `nowhere` gives the reason for every node,
 * in the words of kube-scheduler (k8s.io/kubernetes pkg/scheduler/framework (release-1.32)).
 */
export function chooseNode(pod: Pod, view: SchedulingView): NodeChoice {
  const pinned = pinnedNode(pod.spec);
  const pinnedTo = pinned === undefined ? undefined : view.node(pinned);
  const candidates = pinnedTo === undefined ? view.nodes : [pinnedTo];
  if (view.nodes.length === 0) return { verdict: "nowhere", message: "no nodes available to schedule pods" };
  if (!isWithinLimits(requiredTerms(pod)))
    return {
      verdict: "nowhere",
      message: `spec.affinity.podAntiAffinity: the required terms are more than this scheduler compares, ${affinityLimits.terms} of them with ${affinityLimits.words} labels, values and namespaces in all: use fewer, or preferred ones`,
    };

  const refusals = new Map<string, { count: number; helped: boolean }>();
  const refuse = ({ why, helpedByPreemption }: Refused, count = 1) =>
    refusals.set(why, { count: (refusals.get(why)?.count ?? 0) + count, helped: helpedByPreemption });
  const domainsTaken = antiAffinityDomains(pod, view);
  let best: { node: string; rank: readonly number[] } | undefined;
  for (const node of candidates) {
    const present = view.podsOn(node.metadata.name).filter((other) => !isTerminal(other));
    const refused = refusal(pod, node, present, domainsTaken);
    if (refused !== undefined) {
      refuse(refused);
      continue;
    }
    const rank = rankOf(pod, node, present);
    if (best === undefined || before(rank, best.rank) || (!before(best.rank, rank) && node.metadata.name < best.node))
      best = { node: node.metadata.name, rank };
  }
  if (best !== undefined) return { verdict: "node", node: best.node };

  const others = view.nodes.length - candidates.length;
  if (others > 0)
    refuse({ why: "node(s) didn't match Pod's node affinity/selector", helpedByPreemption: false }, others);
  const all = view.nodes.length;
  const helped = [...refusals.values()].reduce((sum, one) => sum + (one.helped ? one.count : 0), 0);
  const reasons = [...refusals].map(([why, { count }]) => `${count} ${why}`).sort();
  const preemption = [
    ...(helped === 0 ? [] : [`${helped} No preemption victims found for incoming pod`]),
    ...(all === helped ? [] : [`${all - helped} Preemption is not helpful for scheduling`]),
  ];
  return {
    verdict: "nowhere",
    message: `0/${all} nodes are available: ${reasons.join(", ")}. preemption: 0/${all} nodes are available: ${preemption.join(", ")}.`,
  };
}

function refusal(
  pod: Pod,
  node: Node,
  present: readonly Pod[],
  domainsTaken: (node: Node) => boolean,
): Refused | undefined {
  const unresolvable = (why: string): Refused => ({ why, helpedByPreemption: false });
  const taints = effectiveTaints(node).filter(({ effect }) => effect === "NoSchedule" || effect === "NoExecute");
  const tolerations = pod.spec?.tolerations;
  if (
    node.spec?.unschedulable === true &&
    !toleratesTaint(tolerations, { key: nodeTaints.unschedulable, effect: "NoSchedule" })
  )
    return unresolvable("node(s) were unschedulable");
  const taint = taints.find((one) => !toleratesTaint(tolerations, one));
  if (taint !== undefined) return unresolvable(`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ""}}`);
  if (!nodeSelected(pod.spec, node)) return unresolvable("node(s) didn't match Pod's node affinity/selector");
  const capacity = Number(node.status?.allocatable?.["pods"] ?? defaultPodCapacity);
  // The suite's pods always have a place, on their machines too: they would be preempted for elsewhere.
  if (present.length >= capacity && !isSuiteNamespace(pod.metadata.namespace ?? ""))
    return { why: "Too many pods", helpedByPreemption: true };
  if (domainsTaken(node)) return { why: "node(s) didn't match pod anti-affinity rules", helpedByPreemption: true };
  return undefined;
}

type AntiAffinityTerm = { labelSelector?: Selector; topologyKey: string; namespaces?: string[] };

/**
 * The most of a pod's required anti-affinity: each term is compared with every pod on every node, and each pod that comes with
 * those of all others. kube-scheduler takes any number of them.
 */
const affinityLimits = { terms: 64, words: 1024 } as const;

/** Labels, values and namespaces that a term compares. */
const wordsOf = ({ labelSelector: { matchLabels, matchExpressions = [] } = {}, namespaces = [] }: AntiAffinityTerm) =>
  matchExpressions.reduce((sum, { values = [] }) => sum + 1 + values.length, namespaces.length) +
  Object.keys(matchLabels ?? {}).length;

const requiredTerms = (pod: Pod): readonly AntiAffinityTerm[] =>
  pod.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];

function isWithinLimits(terms: readonly AntiAffinityTerm[]): boolean {
  let words = 0;
  return (
    terms.length <= affinityLimits.terms && terms.every((term) => (words += wordsOf(term)) <= affinityLimits.words)
  );
}

/** Objects of the cache stay what they are until they change. */
const termsKnown = new WeakMap<Pod, readonly AntiAffinityTerm[]>();

/** Those that count: a pod with more was put on its node by its author. */
function termsOf(pod: Pod): readonly AntiAffinityTerm[] {
  const known = termsKnown.get(pod);
  if (known !== undefined) return known;
  const terms = requiredTerms(pod);
  const counted = isWithinLimits(terms) ? terms : [];
  termsKnown.set(pod, counted);
  return counted;
}

/** Where the required anti-affinity of the pod, or of existing pods, forbids it. Pods are read only when it matters. */
function antiAffinityDomains(pod: Pod, view: SchedulingView): (node: Node) => boolean {
  const taken = new Map<string, Set<string>>();
  const repels = (from: Pod, term: AntiAffinityTerm, other: Pod) =>
    (term.namespaces ?? [from.metadata.namespace]).includes(other.metadata.namespace ?? "") &&
    selects(term.labelSelector, other.metadata.labels);
  const terms = termsOf(pod);
  for (const node of view.nodes) {
    const labels = node.metadata.labels ?? {};
    for (const other of view.podsOn(node.metadata.name)) {
      if (isTerminal(other)) continue;
      for (const [from, term, to] of [
        ...terms.map((term) => [pod, term, other] as const),
        ...termsOf(other).map((term) => [other, term, pod] as const),
      ]) {
        const domain = own(labels, term.topologyKey);
        const domains = taken.get(term.topologyKey) ?? new Set();
        if (domain === undefined || domains.has(domain) || !repels(from, term, to)) continue;
        domains.add(domain);
        taken.set(term.topologyKey, domains);
      }
    }
  }
  return (node) => [...taken].some(([key, domains]) => domains.has(own(node.metadata.labels, key) ?? ""));
}

function rankOf(pod: Pod, node: Node, present: readonly Pod[]): readonly number[] {
  const avoided = effectiveTaints(node).filter(
    (taint) => taint.effect === "PreferNoSchedule" && !toleratesTaint(pod.spec?.tolerations, taint),
  ).length;
  const owner = controllerOf(pod)?.uid;
  const siblings = owner === undefined ? 0 : present.filter((other) => controllerOf(other)?.uid === owner).length;
  return [avoided, siblings, present.length];
}

function before(a: readonly number[], b: readonly number[]): boolean {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0;
    if (value !== other) return value < other;
  }
  return false;
}
