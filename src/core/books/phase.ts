import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import { annotations, machineConfigNodeConditions as types, nodeStates } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { imageText, namedImage } from "../config/image-pair.ts";
import { parseDrainRequest } from "../machine/drain-requests.ts";
import { supersededReason } from "./update-conditions.ts";

export type Phase =
  | "Lost"
  | "Degraded"
  | "Unreconcilable"
  | "Rebooting"
  | "PostAction"
  | "ApplyingOS"
  | "ApplyingFiles"
  | "PullingImage"
  | "Draining"
  | "Cordoning"
  | "Preparing"
  | "Uncordoning"
  | "Resuming"
  | "NeedsUpdate"
  | "Updated"
  | "Joining"
  | "Unknown";

/** Where a machine is in its update, and what it says about that. */
export interface PhaseWord {
  readonly phase: Phase;
  /** Empty: nothing to say. */
  readonly message: string;
  /** The reason beside the message, for programs. */
  readonly reason: string;
  /** RFC 3339 of its start, as far as its conditions show it; else empty. */
  readonly since: string;
}

/** The condition that speaks for a phase. */
const speakerOf: Partial<Record<Phase, string>> = {
  Degraded: types.nodeDegraded,
  Unreconcilable: types.nodeDegraded,
  Rebooting: types.rebootedNode,
  PostAction: types.updatePostActionComplete,
  ApplyingOS: types.appliedOSImage,
  ApplyingFiles: types.updatePrepared,
  PullingImage: types.imagePulledFromRegistry,
  Resuming: types.rebootedNode,
  Draining: types.drained,
  Cordoning: types.updatePrepared,
  Updated: types.updated,
};

export const isReady = (node: Pick<Node, "status">): boolean =>
  conditionOf(node.status?.conditions as { type: string; status?: string }[] | undefined, "Ready")?.status === "True";

/** The word for where a node is in its update: the first that fits, the worst first. */
export function phaseOf(node: Node, machineConfigNode: MachineConfigNode | undefined): Phase {
  const has = node.metadata.annotations ?? {};
  const condition = (type: string) => conditionOf(machineConfigNode?.status?.conditions, type);
  const state = has[annotations.state];
  const rebooting =
    has[annotations.postConfigAction] === "Rebooting" || condition(types.rebootedNode)?.status === "Unknown";
  if (!isReady(node) && !rebooting) return "Lost";
  if (state === nodeStates.degraded) return "Degraded";
  if (state === nodeStates.unreconcilable) return "Unreconcilable";
  if (rebooting) return "Rebooting";
  const current = has[annotations.currentConfig] ?? "";
  const desired = has[annotations.desiredConfig] ?? "";
  if (current === "" && desired === "") return "Joining";
  if (state === nodeStates.working) {
    const requested = has[annotations.desiredDrain] ?? "";
    if (parseDrainRequest(requested)?.verb === "drain" && has[annotations.lastAppliedDrain] !== requested)
      return node.spec?.unschedulable === true ? "Draining" : "Cordoning";
    if (condition(types.updatePostActionComplete)?.status === "Unknown") return "PostAction";
    if (condition(types.rebootedNode)?.status === "True") return "Resuming";
    if (
      condition(types.appliedOSImage)?.status === "Unknown" &&
      condition(types.appliedOSImage)?.reason !== supersededReason
    )
      return "ApplyingOS";
    if (
      condition(types.appliedFiles)?.status === "Unknown" &&
      condition(types.appliedFiles)?.reason !== supersededReason
    )
      return "ApplyingFiles";
    if (condition(types.imagePulledFromRegistry)?.status === "Unknown") return "PullingImage";
    return condition(types.updatePrepared)?.status === "True" ? "ApplyingFiles" : "Preparing";
  }
  if (
    parseDrainRequest(has[annotations.desiredDrain])?.verb === "uncordon" &&
    has[annotations.lastAppliedDrain] !== has[annotations.desiredDrain]
  )
    return "Uncordoning";
  if (current === "") return "Joining";
  if (current !== desired || imageText(namedImage(has, "current")) !== imageText(namedImage(has, "desired")))
    return "NeedsUpdate";
  return state === nodeStates.done ? "Updated" : "Unknown";
}

/** The phase with the machine's own words for it. */
export function phaseWordOf(node: Node, machineConfigNode: MachineConfigNode | undefined): PhaseWord {
  const phase = phaseOf(node, machineConfigNode);
  if (phase === "Lost") {
    const ready = conditionOf(
      node.status?.conditions as { type: string; message?: string; lastTransitionTime?: string }[] | undefined,
      "Ready",
    );
    return {
      phase,
      message: ready?.message ?? "the kubelet has not reported yet",
      reason: "",
      since: ready?.lastTransitionTime ?? "",
    };
  }
  const type = speakerOf[phase];
  const condition = type === undefined ? undefined : conditionOf(machineConfigNode?.status?.conditions, type);
  const tells = condition !== undefined && condition.status !== "False";
  const isBroken = phase === "Degraded" || phase === "Unreconcilable";
  const detail =
    tells && phase !== "ApplyingFiles" && phase !== "Cordoning" && phase !== "Updated" ? condition.message : "";
  return {
    phase,
    reason: tells ? condition.reason : "",
    message: detail === "" && isBroken ? (node.metadata.annotations?.[annotations.reason] ?? "") : detail,
    since: tells ? condition.lastTransitionTime : "",
  };
}
