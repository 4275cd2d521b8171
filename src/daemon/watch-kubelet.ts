import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { DaemonFacts } from "./daemon-facts.ts";

const periodMs = 30_000;

/** Counts health checks of the kubelet that fail in a row. Only the answer `ok` counts as healthy. */
export async function watchKubelet(
  options: {
    readonly check: (signal: AbortSignal) => Promise<string>;
    readonly facts: DaemonFacts;
    readonly clock: Clock;
    readonly log: Logger;
  },
  signal: AbortSignal,
): Promise<void> {
  const { check, facts, clock, log } = options;
  while (!signal.aborted) {
    const limit = clock.deadline(periodMs, signal);
    try {
      const answer = (await check(limit.signal)).trim();
      if (answer !== "ok") throw new Error(`the kubelet answers ${JSON.stringify(answer.slice(0, 200))}`);
      facts.kubeletFailures = 0;
    } catch (error) {
      if (signal.aborted) return;
      facts.kubeletFailures += 1;
      log.debug({ error }, "the kubelet is not healthy");
    } finally {
      limit.cancel();
    }
    await clock.sleep(periodMs, signal).catch(() => undefined);
  }
}
