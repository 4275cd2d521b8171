import type { Clock } from "./clock.ts";
import type { Logger } from "./logger.ts";

/** The process that this one replaces, or any other program of the machine, may hold the address for a while. */
const listenAgainMs = 5000;

/**
 * Listens as soon as the address is free; a process that has other work does not depend on it. Resolves when it listens, or
 * when `signal` aborts.
 *
 * @param what is answered, for the log.
 */
export async function keepListening(
  listen: (signal: AbortSignal) => Promise<{ readonly port: number }>,
  what: string,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const { port } = await listen(signal);
      log.info({ port }, what);
      return;
    } catch (error) {
      log.warn({ error, what }, "cannot listen, trying again");
      await clock.sleep(listenAgainMs, signal).catch(() => undefined);
    }
  }
}
