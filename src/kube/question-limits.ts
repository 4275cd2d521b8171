import { sourceGroup } from "../core/join/source-group.ts";
import type { ListenLimits } from "../ports/listener.ts";

/**
 * Limits of an endpoint for probes and readers of metrics, which every pod may reach: they send no bodies, and few of them
 * ask at the same time. What is held in memory for all connections together is a small part of a component's limit.
 */
export const questionLimits: ListenLimits = {
  connections: 512,
  connectionsOfOneSource: 64,
  requests: 64,
  arriveMs: 10_000,
  requestMs: 30_000,
  bodyBytes: 0,
  burst: 200,
  perSecond: 50,
  sourceOf: sourceGroup,
};

/** The same on a machine's loopback: all of its programs are one source there, and the kubelet is one of them. */
export const localQuestionLimits: ListenLimits = {
  ...questionLimits,
  connectionsOfOneSource: questionLimits.connections,
  burst: 1000,
  perSecond: 1000,
};
