import { McoError } from "../api/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { type Random, backedOff } from "../ports/random.ts";

/**
 * How long to try again. Waits double from the first to the last, each spread so that many machines do not come back at
 * once: about 1, 2, 4, 8 and 16 s, half a minute in all.
 */
export const retrySchedule = { failures: 6, firstMs: 1000, lastMs: 30_000, spread: 0.2 } as const;

/** The longest that a registry may ask us to wait (`Retry-After`). */
export const maxRetryAfterMs = 60_000;

/** The progress between two failures that resets the count: a long download over a bad line completes in the end. */
export const freshStartBytes = 1024 * 1024;

export const isRetryable = (error: unknown): error is McoError =>
  error instanceof McoError && error.facts["retryable"] === true;

/**
 * Runs `attempt` until it succeeds, fails for good, or has failed `limit` times in a row.
 *
 * @param received how many bytes have arrived so far, over all attempts.
 */
export async function retried<T>(
  attempt: () => Promise<T>,
  {
    clock,
    random,
    received = () => 0,
    limit = retrySchedule.failures,
  }: { readonly clock: Clock; readonly random: Random; readonly received?: () => number; readonly limit?: number },
  signal: AbortSignal,
): Promise<T> {
  let failures = 0;
  let receivedBefore = received();
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      if (!isRetryable(error)) throw error;
      failures = received() - receivedBefore >= freshStartBytes ? 1 : failures + 1;
      receivedBefore = received();
      if (failures >= limit) throw error;
      const asked = Number(error.facts["retryAfterMs"] ?? 0);
      await clock.sleep(Math.max(backedOff(random, failures, retrySchedule), Math.min(asked, maxRetryAfterMs)), signal);
    }
  }
}
