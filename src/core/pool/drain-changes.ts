import type { Node } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { drainBegan, drainStep } from "./drain-step.ts";

/** A change of a node for its drain, decided by the version that it changes. */
export interface NodeChange<D> {
  readonly decision: D;
  /** Absent: the node requests something else by now. */
  readonly write?: Partial<Node>;
}

const removed = null as unknown as string;
const serves = { unschedulable: null as unknown as boolean };

/**
 * Takes a node out of service, and notes since when. A drain that was put back into service half-way is still the same
 * drain; a completed one starts again.
 */
export function cordonChange(
  node: Node,
  { now, pods }: { readonly now: number; readonly pods: number | undefined },
): NodeChange<{ readonly again: boolean }> {
  const step = drainStep(node);
  if (step.do !== "cordon") return { decision: { again: false } };
  const { request, again } = step;
  const began = again ? undefined : drainBegan(node);
  // Remove an earlier drain's "done" together with this cordon: the daemon would mistake it for the result of this
  // drain.
  const noted = {
    [annotations.cordonedFor]: request,
    [annotations.lastAppliedDrain]: removed,
    [annotations.drainBegan]: beganNote(request, began?.at ?? timestampOf(now), pods ?? 0),
    [annotations.drainSkipped]: removed,
  };
  return { decision: { again }, write: { ...noting(node, noted), spec: { unschedulable: true } } };
}

/** Notes when the drain of a node began that another client had cordoned. */
export function beginChange(
  node: Node,
  { now, pods }: { readonly now: number; readonly pods: number },
): NodeChange<"begins" | "goesOn"> {
  const step = drainStep(node);
  if (step.do !== "evict" || drainBegan(node) !== undefined) return { decision: "goesOn" };
  const noted = {
    [annotations.drainBegan]: beganNote(step.request, timestampOf(now), pods),
    [annotations.drainSkipped]: removed,
  };
  return { decision: "begins", write: noting(node, noted) };
}

const beganNote = (request: string, at: string, pods: number): string => JSON.stringify({ request, at, pods });

/** Gives a drain up for now: the node serves again, unless another client cordoned it. */
export function skipChange(
  node: Node,
  {
    now,
    request,
    again,
    why,
  }: { readonly now: number; readonly request: string; readonly again: string; readonly why: string },
): NodeChange<"skipped" | "overtaken"> {
  if (!drainsFor(node, request)) return { decision: "overtaken" };
  const ours = node.metadata.annotations?.[annotations.cordonedFor] !== undefined;
  const note = JSON.stringify({
    request,
    at: timestampOf(now),
    again,
    why: why.length <= 512 ? why : `${why.slice(0, 511)}…`,
  });
  const noted = {
    [annotations.drainSkipped]: note,
    [annotations.drainBegan]: removed,
    [annotations.cordonedFor]: removed,
  };
  return { decision: "skipped", write: { ...noting(node, noted), ...(ours ? { spec: serves } : {}) } };
}

/** Answers a drain request: all pods have left. */
export function confirmChange(node: Node, request: string): NodeChange<"confirmed" | "overtaken"> {
  return drainsFor(node, request)
    ? { decision: "confirmed", write: noting(node, { [annotations.lastAppliedDrain]: request }) }
    : { decision: "overtaken" };
}

function drainsFor(node: Node, request: string): boolean {
  const step = drainStep(node);
  return step.do === "evict" && step.request === request;
}

/** An uncordon as it was carried out. */
export interface Uncordoned {
  readonly request: string;
  /** The cordon was the suite's own. */
  readonly remedy: boolean;
  readonly wasCordoned: boolean;
}

/** Puts a node back into service, and answers the request. A cordon of another client stays. */
export function uncordonChange(node: Node): NodeChange<Uncordoned | undefined> {
  const step = drainStep(node);
  if (step.do !== "uncordon") return { decision: undefined };
  const { request, remedy } = step;
  const noted = {
    [annotations.cordonedFor]: removed,
    [annotations.drainBegan]: removed,
    [annotations.lastAppliedDrain]: request,
  };
  return {
    decision: { request, remedy, wasCordoned: node.spec?.unschedulable === true },
    write: { ...noting(node, noted), ...(remedy ? { spec: serves } : {}) },
  };
}

const noting = ({ metadata: { name } }: Node, noted: Readonly<Record<string, string>>): Pick<Node, "metadata"> => ({
  metadata: { name, annotations: noted },
});
