import type { Node, Pod } from "../api/kubernetes.ts";
import { annotations } from "../api/names.ts";

/** Why a drain does not end: reasons of the condition Drained. */
export const drainReasons = { blocked: "PodsBlocked", late: "DrainDeadlineExceeded" } as const;

/** What a node's drain request asks for next. Requests are `drain-<config>` and `uncordon-<config>`. */
export type DrainStep =
  | { readonly do: "nothing" }
  /** Take the node out of service. `anew`: an earlier drain was said to be done, and somebody has put the node back since. */
  | { readonly do: "cordon"; readonly request: string; readonly anew: boolean }
  /** The node is out of service; see to its pods. */
  | { readonly do: "evict"; readonly request: string }
  /** Put the node back. `lift`: the cordon is ours; another one stays. */
  | { readonly do: "uncordon"; readonly request: string; readonly lift: boolean }
  | { readonly do: "refuse"; readonly request: string; readonly reason: string };

/** Reads the request that a daemon wrote on its node, and how far it has been carried out. */
export function drainStep(node: Pick<Node, "metadata" | "spec">): DrainStep {
  const has = node.metadata.annotations ?? {};
  const request = has[annotations.desiredDrain] ?? "";
  if (request === "") return { do: "nothing" };
  const verb = request.split("-", 1)[0];
  const isCordoned = node.spec?.unschedulable === true;
  const fulfilled = has[annotations.lastAppliedDrain] === request;
  if (verb === "drain") {
    if (!isCordoned) return { do: "cordon", request, anew: fulfilled };
    return fulfilled ? { do: "nothing" } : { do: "evict", request };
  }
  if (verb === "uncordon") {
    const ours = has[annotations.cordonedFor] !== undefined;
    return fulfilled && !ours ? { do: "nothing" } : { do: "uncordon", request, lift: ours && isCordoned };
  }
  return { do: "refuse", request, reason: `"${request}" is no drain request: it starts with neither drain- nor uncordon-` };
}

export interface DrainPlan {
  /** Pods to ask the eviction API for. */
  readonly evict: readonly Pod[];
  /** Pods on their way out. */
  readonly leaving: readonly Pod[];
  /** Pods that stay, and why. */
  readonly staying: readonly { readonly pod: Pod; readonly why: "DaemonSet" | "mirror" | "terminated" }[];
}

/** Sorts the pods of a node: what must go, what goes already, what stays. Nothing is left to do when the first two are empty. */
export function planDrain(pods: readonly Pod[]): DrainPlan {
  const evict: Pod[] = [];
  const leaving: Pod[] = [];
  const staying: DrainPlan["staying"][number][] = [];
  for (const pod of pods) {
    const { metadata, status } = pod;
    const why =
      metadata.annotations?.["kubernetes.io/config.mirror"] !== undefined
        ? "mirror"
        : metadata.ownerReferences?.some(({ kind, controller }) => controller === true && kind === "DaemonSet") === true
          ? "DaemonSet"
          : status?.phase === "Succeeded" || status?.phase === "Failed"
            ? "terminated"
            : undefined;
    if (why !== undefined) staying.push({ pod, why });
    else if (metadata.deletionTimestamp !== undefined) leaving.push(pod);
    else evict.push(pod);
  }
  return { evict, leaving, staying };
}

/** A pod that the eviction API would not let go. */
export interface BlockedPod {
  readonly pod: Pod;
  /** What the API server said, with the disruption budget's name where it names one. */
  readonly why: string;
}

const shown = 5;
const nameOf = ({ metadata }: Pod) => `${metadata.namespace ?? ""}/${metadata.name}`;

/** Where a drain stands, for people: pods that are blocked and by what, then pods that are on their way. */
export function describeDrain(blocked: readonly BlockedPod[], leaving: readonly Pod[]): string {
  const list = (items: readonly string[]) => (items.length <= shown ? items.join(", ") : `${items.slice(0, shown).join(", ")} and ${items.length - shown} more`);
  const parts = [
    ...(blocked.length === 0 ? [] : [`${blocked.length} ${blocked.length === 1 ? "pod" : "pods"} cannot be evicted: ${list(blocked.map(({ pod, why }) => `${nameOf(pod)} (${why})`))}`]),
    ...(leaving.length === 0 ? [] : [`waiting for ${list(leaving.map(nameOf))} to end`]),
  ];
  return parts.length === 0 ? "all pods have left" : parts.join("; ");
}
