import { McoError } from "../api/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { type Random, backedOff } from "../ports/random.ts";
import type { Thread } from "../ports/threads.ts";

/** The wait before a thread that ended is started again; it grows with every end in a row. */
const restart = { firstMs: 200, lastMs: 30_000, spread: 0.5 };
/** A thread that ran this long has recovered. */
const recoveredMs = 60_000;

/**
 * Keeps a thread running until `signal` aborts.
 *
 * @param onEnd called each time the thread has ended although it should run.
 */
export async function keepThread(
  name: string,
  start: () => Thread,
  onEnd: (failure: McoError) => void,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    const began = clock.monotonic();
    const thread = start();
    const end = () => thread.end();
    signal.addEventListener("abort", end, { once: true });
    const cause = await thread.ended;
    signal.removeEventListener("abort", end);
    if (signal.aborted) return;
    failures = clock.monotonic() - began >= recoveredMs ? 1 : failures + 1;
    onEnd(
      new McoError(
        "MCO_THREAD_ENDED",
        { thread: name },
        { message: `the thread ${name} ended: ${cause?.message ?? "it was terminated, or ended on its own"}`, cause },
      ),
    );
    await clock.sleep(backedOff(random, failures, restart), signal).catch(() => undefined);
  }
}
