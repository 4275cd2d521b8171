import type { Node, Pod } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import { annotations, labels, machineConfigNodeConditions, nodeStates } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { imageText, namedImage } from "../config/image-pair.ts";
import { type Phase, phaseWordOf } from "../books/phase.ts";
import { parseDrainRequest } from "../machine/drain-requests.ts";
import { drainReasons, drainSkipped } from "./drain-step.ts";
import { type MachineRefusal, refusedTargetsOf } from "./quarantine.ts";
import { clipText } from "../text/clip-text.ts";
import { own } from "../../api/schema/own.ts";

/**
 * Characters of what a machine says of itself. Root on it writes annotations of 256 Ki and conditions of a MiB, which its
 * pool would repeat in a status that no API server takes.
 */
const mostWords = 1024;
const clipped = (text: string) => clipText(text, mostWords);

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
  /** The separate image that it runs; empty: the one of its configuration. */
  readonly currentImage: string;
  readonly desiredImage: string;
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
  readonly phase: Phase;
  /** What it says of its phase; empty: nothing. */
  readonly says: string;
  /** The reason beside it, for programs. */
  readonly saysReason: string;
  /** RFC 3339 of when it got into its phase; empty: not known. */
  readonly since: string;
  /**
   * What its MachineConfigNode says, which is written after the node's annotations; `undefined` when there is none that
   * is kept current: it has no conditions yet, or the daemon that keeps it is away.
   */
  readonly reported: { readonly updatedTo: string; readonly image: string; readonly degraded: boolean } | undefined;
  /** RFC 3339 of when a machine whose drain was given up is tried again; empty: none was given up. */
  readonly skippedUntil: string;
  /**
   * RFC 3339 of when the daemon's pod stopped being ready, though the kubelet is; empty: it is ready, or nothing is
   * known of a pod.
   */
  readonly daemonAwaySince: string;
  /** Targets that it went back from, as its MachineConfigNode names them. */
  readonly refused: readonly MachineRefusal[];
}

export const isControlPlane = (node: Pick<Node, "metadata">): boolean =>
  node.metadata.labels?.[labels.masterRole] !== undefined ||
  node.metadata.labels?.[labels.controlPlaneRole] !== undefined;

/** What else is known of a node than the node itself. */
export interface Companions {
  readonly machineConfigNode?: MachineConfigNode | undefined;
  readonly daemonPod?: Pod | undefined;
}

/** The annotations that {@link memberFacts} reads. */
export const memberAnnotations: readonly string[] = [
  annotations.currentConfig,
  annotations.desiredConfig,
  annotations.currentImage,
  annotations.currentOSImage,
  annotations.desiredImage,
  annotations.desiredOSImage,
  annotations.state,
  annotations.reason,
  annotations.postConfigAction,
  annotations.desiredDrain,
  annotations.lastAppliedDrain,
  annotations.cordonedFor,
  annotations.drainSkipped,
];

export function memberFacts(node: Node, { machineConfigNode, daemonPod }: Companions = {}): MemberFacts {
  const has = node.metadata.annotations ?? {};
  const { kubeletReady, kubeletReason } = kubeletVerdict(node);
  const request = has[annotations.desiredDrain] ?? "";
  const { phase, message, reason, since } = phaseWordOf(node, machineConfigNode);
  const skipped = drainSkipped(node);
  const daemonAwaySince = kubeletReady ? awaySince(daemonPod) : "";
  return {
    name: node.metadata.name,
    zone: node.metadata.labels?.[labels.zone] ?? "",
    createdAt: node.metadata.creationTimestamp ?? "",
    controlPlane: isControlPlane(node),
    current: has[annotations.currentConfig] ?? "",
    desired: has[annotations.desiredConfig] ?? "",
    currentImage: imageText(namedImage(has, "current")),
    desiredImage: imageText(namedImage(has, "desired")),
    state: clipped(has[annotations.state] ?? ""),
    reason: clipped(has[annotations.reason] ?? ""),
    kubeletReady,
    kubeletReason: clipped(kubeletReason),
    cordoned:
      node.spec?.unschedulable !== true ? "no" : has[annotations.cordonedFor] === undefined ? "byOthers" : "byUs",
    // No controller answers an annotation that is no request.
    drainPending: parseDrainRequest(request) !== undefined && has[annotations.lastAppliedDrain] !== request,
    phase,
    says: clipped(skipped?.why ?? message),
    saysReason: skipped === undefined ? reason : drainReasons.skipped,
    since: skipped?.at ?? since,
    reported: daemonAwaySince === "" ? lastReportOf(machineConfigNode) : undefined,
    skippedUntil: skipped?.again ?? "",
    daemonAwaySince,
    refused: machineConfigNode === undefined ? [] : refusedTargetsOf(machineConfigNode),
  };
}

function lastReportOf(machineConfigNode: MachineConfigNode | undefined): MemberFacts["reported"] {
  const { conditions = [], configVersion, configImage } = machineConfigNode?.status ?? {};
  if (conditions.length === 0) return undefined;
  const { updated, nodeDegraded } = machineConfigNodeConditions;
  return {
    updatedTo: conditionOf(conditions, updated)?.status === "True" ? (configVersion?.current ?? "") : "",
    image: configImage?.currentImage ?? "",
    degraded: conditionOf(conditions, nodeDegraded)?.status === "True",
  };
}

function awaySince(pod: Pod | undefined): string {
  if (pod === undefined) return "";
  const ready = (pod.status?.conditions ?? []).find(({ type }) => type === "Ready");
  return ready?.status === "True" ? "" : (ready?.lastTransitionTime ?? pod.metadata.creationTimestamp ?? "");
}

/**
 * Conditions of a node that must have a certain status; openshift/machine-config-operator pkg/controller/node/status.go
 * (main).
 */
const mustBe: Readonly<Record<string, string>> = { Ready: "True", DiskPressure: "False", NetworkUnavailable: "False" };

/** Everything that a node controller reads of the kubelet's report, as one value: equal texts need no new look. */
export function kubeletVerdict(node: Pick<Node, "status">): {
  readonly kubeletReady: boolean;
  readonly kubeletReason: string;
} {
  const conditions = node.status?.conditions ?? [];
  if (!conditions.some(({ type }) => type === "Ready"))
    return { kubeletReady: false, kubeletReason: "its kubelet has not reported yet" };
  for (const { type, status, reason } of conditions) {
    const demanded = own(mustBe, type);
    if (demanded !== undefined && demanded !== status)
      return {
        kubeletReady: false,
        kubeletReason: `${type} is ${status}${reason === undefined || reason === "" ? "" : ` (${reason})`}`,
      };
  }
  return { kubeletReady: true, kubeletReason: "" };
}

/** A daemon whose pod is not ready for longer than this, while the kubelet is, counts as silent. */
export const silentAfterMs = 5 * 60_000;

/** The machine works, but its daemon does not. */
export const isSilent = ({ daemonAwaySince }: MemberFacts, now: number): boolean =>
  daemonAwaySince !== "" && now - Date.parse(daemonAwaySince) > silentAfterMs;

/** The machine has its requested target. */
export const isDone = (member: MemberFacts): boolean =>
  member.current !== "" && !isAway(member) && member.state === nodeStates.done;

/** The machine does not have its requested target. */
const isAway = ({ current, desired, currentImage, desiredImage }: MemberFacts): boolean =>
  current !== desired || currentImage !== desiredImage;

/** The daemon reports that it cannot go on. */
export const isDegraded = ({ state }: MemberFacts): boolean =>
  state === nodeStates.degraded || state === nodeStates.unreconcilable;

/** Annotations or MachineConfigNode say so: a person has to see it. */
export const looksDegraded = (member: MemberFacts): boolean => isDegraded(member) || member.reported?.degraded === true;

/** Degraded on the way to a target. */
export const isFailing = (member: MemberFacts): boolean => isDegraded(member) && isAway(member);

/** Nothing was applied to the machine yet: its kubelet is there, its daemon has to begin. */
export const isJoining = ({ current }: MemberFacts): boolean => current === "";

/** Out of service for any cause, ours or not. The budget counts these machines, and those with silent daemons. */
export const isOutOfService = (member: MemberFacts): boolean =>
  !member.kubeletReady || member.cordoned !== "no" || (!isDone(member) && !isSkipped(member));

/** Its drain was given up for now: it serves with what it has, though its daemon waits with a target. */
export const isSkipped = (member: MemberFacts): boolean =>
  member.skippedUntil !== "" && member.current !== "" && !isDegraded(member);

/** Out of service because of what we do: a target under way, a drain, our cordon. */
export const isUnderUpdate = (member: MemberFacts): boolean =>
  (member.desired !== "" && isAway(member)) ||
  member.state === nodeStates.working ||
  member.cordoned === "byUs" ||
  member.drainPending;

/** What annotations and MachineConfigNode say that cannot both be true; empty when they agree. */
export const contradiction = (member: MemberFacts): string => clipped(contradictionIn(member));

function contradictionIn(member: MemberFacts): string {
  if (member.reported === undefined) return "";
  if (isDegraded(member) !== member.reported.degraded)
    return `annotations say ${member.state === "" ? "nothing" : member.state}, the MachineConfigNode says ${member.reported.degraded ? "degraded" : "not degraded"}`;
  if (isDone(member) && member.reported.updatedTo !== member.current)
    return `annotations say that ${member.current} is applied, the MachineConfigNode says ${member.reported.updatedTo === "" ? "that an update is under way" : member.reported.updatedTo}`;
  return "";
}

/** In a few words why a machine counts against the budget. */
export function whyOutOfService(member: MemberFacts): string {
  if (isDegraded(member)) return member.state === nodeStates.degraded ? "degraded" : "unreconcilable";
  if (isJoining(member)) return "joining";
  if (isAway(member) || member.state === nodeStates.working) return "updating";
  if (!member.kubeletReady) return member.kubeletReason;
  if (member.cordoned === "byOthers") return "cordoned outside the suite";
  if (member.cordoned === "byUs") return "about to return to service";
  if (member.daemonAwaySince !== "") return `its daemon is silent since ${member.daemonAwaySince}`;
  return "not done";
}
