import type { Node } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";
import { parseDrainRequest } from "../machine/drain-requests.ts";

/** Why a drain does not end: reasons of the condition Drained. */
export const drainReasons = { blocked: "PodsBlocked", late: "DrainDeadlineExceeded", skipped: "DrainSkipped" } as const;

/** What a node's drain request asks for next. Requests are `drain-<config>` and `uncordon-<config>`. */
export type DrainStep =
  | { readonly do: "nothing" }
  /** Take the node out of service. `again`: an earlier drain was reported as done, and the node was uncordoned since. */
  | { readonly do: "cordon"; readonly request: string; readonly again: boolean }
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
    if (!isCordoned) return { do: "cordon", request, again: fulfilled };
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
