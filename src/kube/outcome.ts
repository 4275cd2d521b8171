/**
 * The result of one reconcile of one object. The runtime derives the next run, a log line and, if the controller names
 * a `degradedCondition`, that condition. Use `report` for what happened on the way. A thrown error means: retry with
 * back-off.
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

/** Nothing to do until something changes, or until the given time. */
export const done = (reconcileAfterSeconds?: number): Outcome =>
  reconcileAfterSeconds === undefined ? { kind: "done" } : { kind: "done", reconcileAfterSeconds };

/** Waits for something else; reconciled again after the given time at the latest. */
export const waiting = (reason: string, message: string, reconcileAfterSeconds: number): Outcome => ({
  kind: "waiting",
  reason,
  message,
  reconcileAfterSeconds,
});

/** Only an external change can help. */
export const stalled = (reason: string, message: string): Outcome => ({ kind: "stalled", reason, message });
