import type { ServerResponse } from "node:http";
import type { Share } from "../access/shares.ts";
import type { Part } from "../schema/contract.ts";

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
  let all = 0;
  const ofParts: Record<Part, number> = { others: 0, nodes: 0, cluster: 0 };
  const limitOf = { others: limits.othersBytes, nodes: limits.nodesBytes, cluster: limits.allBytes };
  const callers = new Map<string, number>();
  const add = ({ of: caller, part }: Share, bytes: number) => {
    all += bytes;
    ofParts[part] += bytes;
    const own = (callers.get(caller) ?? 0) + bytes;
    if (own === 0) callers.delete(caller);
    else callers.set(caller, own);
  };
  return {
    take(caller, bytes) {
      if (bytes <= shortBytes) return () => {};
      const own = callers.get(caller.of) ?? 0;
      // The first answer of a caller may be of any length.
      const more = own === 0 ? 1 : bytes;
      const ownLimit = caller.part === "nodes" ? limits.nodeBytes : limits.callerBytes;
      if (own > 0 && own + bytes > ownLimit) return undefined;
      if (all + more > limits.allBytes || ofParts[caller.part] + more > limitOf[caller.part]) return undefined;
      add(caller, bytes);
      let given = false;
      return () => {
        if (!given) add(caller, -bytes);
        given = true;
      };
    },
    expect(outgoing) {
      const timer = setTimeout(() => outgoing.destroy(), limits.takenWithinMs);
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
}
