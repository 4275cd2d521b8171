import type { ServerResponse } from "node:http";
import { ShareCounts } from "../http/share-counts.ts";
import type { Share } from "../schema/contract.ts";

/** How much of the answers may wait in memory for readers that do not take them. */
export interface UnsentLimits {
  /** Of all callers together. */
  readonly allBytes: number;
  /** Of all callers together for whom nothing is kept. */
  readonly othersBytes: number;
  /** Of all machines together. */
  readonly nodesBytes: number;
  /** Of one caller, beyond a single answer of any length. */
  readonly callerBytes: number;
  /** The same of one machine. */
  readonly nodeBytes: number;
  /** How long a reader may take for one answer, or for one piece of a watch. */
  readonly takenWithinMs: number;
}

export const unsentLimits: UnsentLimits = {
  allBytes: 512 * 1024 * 1024,
  othersBytes: 320 * 1024 * 1024,
  nodesBytes: 96 * 1024 * 1024,
  callerBytes: 128 * 1024 * 1024,
  nodeBytes: 32 * 1024 * 1024,
  takenWithinMs: 120_000,
};

/** Shorter answers find room always: a refusal is one of them. */
const shortBytes = 64 * 1024;

/** Answers that wait in memory for their readers. */
export interface UnsentAnswers {
  /** Room for so many bytes until the result is called; `undefined`: there is none. */
  take(caller: Share, bytes: number): (() => void) | undefined;
  /** Ends a connection that takes too long. Calling the result ends the wait. */
  expect(outgoing: ServerResponse): () => void;
}

export function unsentAnswers(limits: UnsentLimits): UnsentAnswers {
  const counts = new ShareCounts();
  const limitOf = { others: limits.othersBytes, nodes: limits.nodesBytes, cluster: limits.allBytes };
  return {
    take(caller, bytes) {
      if (bytes <= shortBytes) return () => {};
      const own = counts.ofUser(caller);
      // The first answer of a caller may be of any length.
      const more = own === 0 ? 1 : bytes;
      const ownLimit = caller.part === "nodes" ? limits.nodeBytes : limits.callerBytes;
      if (own > 0 && own + bytes > ownLimit) return undefined;
      if (counts.all + more > limits.allBytes || counts.ofPart(caller) + more > limitOf[caller.part]) return undefined;
      return counts.take(caller, bytes);
    },
    expect(outgoing) {
      const timer = setTimeout(() => outgoing.destroy(), limits.takenWithinMs);
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
}
