/**
 * What is true after one look at one object. The runtime turns it into re-queues, conditions, events and logs; a
 * controller returns it and does none of that itself. Thrown means: try again with back-off.
 */
export type Outcome =
  | { readonly kind: "settled"; readonly lookAgainAfterSeconds?: number }
  | {
      readonly kind: "waiting";
      readonly reason: string;
      readonly message: string;
      readonly lookAgainAfterSeconds: number;
    }
  | { readonly kind: "stalled"; readonly reason: string; readonly message: string };

/** Nothing is left to do until something changes, or until the given time. */
export const settled = (lookAgainAfterSeconds?: number): Outcome =>
  lookAgainAfterSeconds === undefined ? { kind: "settled" } : { kind: "settled", lookAgainAfterSeconds };

/** Something else has to happen first; looked at again after the given time at the latest. */
export const waiting = (reason: string, message: string, lookAgainAfterSeconds: number): Outcome => ({
  kind: "waiting",
  reason,
  message,
  lookAgainAfterSeconds,
});

/** Only a change by somebody can help. */
export const stalled = (reason: string, message: string): Outcome => ({ kind: "stalled", reason, message });
