import type { Node } from "../api/kubernetes.ts";
import { annotations, labels, nodeStates } from "../api/names.ts";

/** What decisions about a pool need to know of one of its machines. */
export interface MemberFacts {
  readonly name: string;
  /** Empty: the node has no zone. */
  readonly zone: string;
  /** RFC 3339 */
  readonly createdAt: string;
  readonly controlPlane: boolean;
  /** Empty: the machine has applied nothing yet. */
  readonly current: string;
  /** Empty: nothing was chosen for the machine yet. */
  readonly desired: string;
  readonly state: string;
  /** Text of the daemon for a failing machine. */
  readonly reason: string;
  /** What the kubelet reports: Ready, disk and network fine. */
  readonly kubeletReady: boolean;
  /** Why not, for people; empty when it is ready. */
  readonly kubeletReason: string;
  readonly cordoned: "no" | "byUs" | "byOthers";
  /** A drain or an end of one was asked for and is not carried out yet. */
  readonly drainPending: boolean;
}

export const isControlPlane = (node: Pick<Node, "metadata">): boolean => node.metadata.labels?.[labels.masterRole] !== undefined || node.metadata.labels?.[labels.controlPlaneRole] !== undefined;

export function memberFacts(node: Node): MemberFacts {
  const has = node.metadata.annotations ?? {};
  const { kubeletReady, kubeletReason } = kubeletVerdict(node);
  const request = has[annotations.desiredDrain] ?? "";
  return {
    name: node.metadata.name,
    zone: node.metadata.labels?.[labels.zone] ?? "",
    createdAt: node.metadata.creationTimestamp ?? "",
    controlPlane: isControlPlane(node),
    current: has[annotations.currentConfig] ?? "",
    desired: has[annotations.desiredConfig] ?? "",
    state: has[annotations.state] ?? "",
    reason: has[annotations.reason] ?? "",
    kubeletReady,
    kubeletReason,
    cordoned: node.spec?.unschedulable !== true ? "no" : has[annotations.cordonedFor] === undefined ? "byOthers" : "byUs",
    drainPending: request !== "" && has[annotations.lastAppliedDrain] !== request,
  };
}

/** Conditions of a node that must have a certain status; openshift/machine-config-operator pkg/controller/node/status.go (main). */
const mustBe: Readonly<Record<string, string>> = { Ready: "True", DiskPressure: "False", NetworkUnavailable: "False" };

/** Everything that a node controller reads of the kubelet's report, as one value: equal texts need no new look. */
export function kubeletVerdict(node: Pick<Node, "status">): { readonly kubeletReady: boolean; readonly kubeletReason: string } {
  const conditions = node.status?.conditions ?? [];
  if (!conditions.some(({ type }) => type === "Ready")) return { kubeletReady: false, kubeletReason: "its kubelet has not reported yet" };
  for (const { type, status, reason } of conditions) {
    if (mustBe[type] !== undefined && mustBe[type] !== status) return { kubeletReady: false, kubeletReason: `${type} is ${status}${reason === undefined || reason === "" ? "" : ` (${reason})`}` };
  }
  return { kubeletReady: true, kubeletReason: "" };
}

/** The machine has what it was told to have. */
export const isDone = ({ current, desired, state }: MemberFacts): boolean => current !== "" && current === desired && state === nodeStates.done;

/** The daemon reports that it cannot go on. */
export const isDegraded = ({ state }: MemberFacts): boolean => state === nodeStates.degraded || state === nodeStates.unreconcilable;

/** Degraded on the way to a target. */
export const isFailing = (member: MemberFacts): boolean => isDegraded(member) && member.current !== member.desired;

/** Nothing was applied to the machine yet: its kubelet is there, its daemon has to begin. */
export const isJoining = ({ current }: MemberFacts): boolean => current === "";

/** Out of service for whatever cause, ours or not: what the budget counts. */
export const isOutOfService = (member: MemberFacts): boolean => !member.kubeletReady || member.cordoned !== "no" || !isDone(member);

/** Out of service because of what we do: a target under way, a drain, our cordon. */
export const isInOurHands = (member: MemberFacts): boolean =>
  (member.desired !== "" && member.desired !== member.current) || member.state === nodeStates.working || member.cordoned === "byUs" || member.drainPending;

/** In a few words why a machine counts against the budget. */
export function whyOutOfService(member: MemberFacts): string {
  if (isDegraded(member)) return member.state === nodeStates.degraded ? "degraded" : "unreconcilable";
  if (isJoining(member)) return "joining";
  if (member.desired !== member.current || member.state === nodeStates.working) return "updating";
  if (!member.kubeletReady) return member.kubeletReason;
  if (member.cordoned === "byOthers") return "cordoned by somebody else";
  if (member.cordoned === "byUs") return "about to return to service";
  return "not done";
}
