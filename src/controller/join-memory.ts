import type { Machine } from "../api/foreign/openshift.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import type { RequestMemory } from "../core/join/join-decision.ts";
import type { Context } from "../kube/controller.ts";
import { RequestBudget } from "./request-budget.ts";

/** The approver's memory between passes. */
export interface JoinMemory {
  /** Request → the last report about it while it waits. */
  readonly reported: Map<string, string>;
  /** Node → its binding as this process wrote it last, and when: the watch brings it later. */
  readonly bound: Map<string, { readonly binding: NodeBinding; readonly at: number }>;
  /** Request → UID of the binding that its certificate was recorded in. */
  readonly recorded: Map<string, string>;
  /** Requests that were approved by hand, and whose names were bound or were not free: a name that is freed later is free. */
  readonly byHand: Set<string>;
  /** Requests whose names were bound, and that are about to be approved: the watch brings their approvals later. */
  readonly granted: Set<string>;
  /** As listed last. */
  machines: { readonly at: number; readonly items: readonly Machine[] } | undefined;
  readonly budget: RequestBudget;
}

export const emptyMemory = (): JoinMemory => ({
  reported: new Map(),
  bound: new Map(),
  recorded: new Map(),
  byHand: new Set(),
  granted: new Set(),
  machines: undefined,
  budget: new RequestBudget(),
});

/** The approver's memory of one request. */
export const memoryOf = (request: string, { reported, recorded, byHand }: JoinMemory): RequestMemory => ({
  reported: reported.get(request),
  recordedIn: recorded.get(request),
  isAdmittedByHand: byHand.has(request),
});

/** Forgets a request that is gone. */
export function forgetRequest(request: string, { reported, recorded, byHand, granted }: JoinMemory): void {
  for (const memory of [reported, recorded, byHand, granted]) memory.delete(request);
}

/**
 * For how long an own write counts more than the watch. An answer may come after what the watch brings of it, and of later
 * writes, so that nothing else would end it.
 */
const ownWriteMs = 10_000;

/** The binding of a name, as this process wrote it last, or as the watch shows it. */
export function bindingOf(
  name: string,
  { bound }: Pick<JoinMemory, "bound">,
  { caches, clock }: Pick<Context, "caches" | "clock">,
): NodeBinding | undefined {
  const own = bound.get(name);
  return own !== undefined && clock.monotonic() - own.at < ownWriteMs ? own.binding : caches.of(NodeBinding).get(name);
}
