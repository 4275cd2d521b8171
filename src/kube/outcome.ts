/**
 * What is true after one pass over one object. The runtime turns it into the next pass, a log line and, where the
 * controller names a `degradedCondition`, that condition. What happened on the way is said by `report`. Thrown means:
 * try again with back-off.
 */
export type Outcome =
  | { readonly kind: "done"; readonly reconcileAfterSeconds?: number }
  | {
      readonly kind: "waiting";
      readonly reason: string;
      readonly message: string;
      readonly reconcileAfterSeconds: number;
    }
  | { readonly kind: "stalled"; readonly reason: string; readonly message: string };

/** Nothing is left to do until something changes, or until the given time. */
export const done = (reconcileAfterSeconds?: number): Outcome =>
  reconcileAfterSeconds === undefined ? { kind: "done" } : { kind: "done", reconcileAfterSeconds };

/** Something else has to happen first; looked at again after the given time at the latest. */
export const waiting = (reason: string, message: string, reconcileAfterSeconds: number): Outcome => ({
  kind: "waiting",
  reason,
  message,
  reconcileAfterSeconds,
});

/** Only a change by somebody can help. */
export const stalled = (reason: string, message: string): Outcome => ({ kind: "stalled", reason, message });
