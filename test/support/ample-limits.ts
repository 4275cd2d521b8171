import type { ListenLimits } from "../../src/ports/listener.ts";

/** Limits that no test of something else reaches. */
export const ampleLimits: ListenLimits = {
  connections: 1000,
  connectionsOfOneSource: 1000,
  requests: 1000,
  arriveMs: 60_000,
  requestMs: 3_600_000,
  bodyBytes: 3 * 1024 * 1024,
  burst: 100_000,
  perSecond: 100_000,
  sourceOf: (address) => address,
};
