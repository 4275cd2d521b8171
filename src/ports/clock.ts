/** Cancels a pending call of {@link Clock.after}. Calling it more than once is harmless. */
export type CancelTimer = () => void;

/**
 * The time of a process. Production reads the machine's clocks; the simulation controls every tick. Nothing outside
 * `ports/node` reads a clock or sets a timer by other means.
 */
export interface Clock {
  /** Wall time in milliseconds since the epoch. May jump. */
  now(): number;
  /** Milliseconds since an origin that all processes of one boot share. Never goes back. */
  monotonic(): number;
  /** Calls `run` once, `milliseconds` from now. */
  after(milliseconds: number, run: () => void): CancelTimer;
  /** Resolves `milliseconds` from now; rejects with the signal's reason as soon as it aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** A signal that aborts after `milliseconds`, or with `parent`. `cancel` releases the timer. */
  deadline(milliseconds: number, parent?: AbortSignal): Deadline;
}

export interface Deadline {
  readonly signal: AbortSignal;
  cancel(): void;
}

/** The reason of a {@link Deadline} that passed. */
export class DeadlineExceeded extends Error {
  override readonly name = "DeadlineExceeded";
}

/** Derives the compound functions from the three primitive ones, so that all drivers behave alike. */
export function clockFrom(primitive: Pick<Clock, "now" | "monotonic" | "after">): Clock {
  return {
    ...primitive,
    sleep(milliseconds, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted === true) {
          reject(signal.reason as Error);
          return;
        }
        const onAbort = () => {
          cancel();
          reject(signal?.reason as Error);
        };
        const cancel = primitive.after(milliseconds, () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        });
        signal?.addEventListener("abort", onAbort, { once: true });
      });
    },
    deadline(milliseconds, parent) {
      const controller = new AbortController();
      const onAbort = () => {
        cancel();
        controller.abort(parent?.reason);
      };
      const cancel = primitive.after(milliseconds, () => {
        parent?.removeEventListener("abort", onAbort);
        controller.abort(new DeadlineExceeded(`not done within ${milliseconds} ms`));
      });
      if (parent?.aborted === true) onAbort();
      else parent?.addEventListener("abort", onAbort, { once: true });
      return {
        signal: controller.signal,
        cancel() {
          cancel();
          parent?.removeEventListener("abort", onAbort);
        },
      };
    },
  };
}
