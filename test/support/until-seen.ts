import { systemClock } from "../../src/ports/node/index.ts";
import { notWithin } from "./not-within.ts";

interface Patience {
  readonly seconds?: number;
  readonly everyMs?: number;
}

/**
 * Polls, where a test cannot watch, until `look` returns what is wanted, and returns it. Fails with what it returned
 * last.
 */
export function untilSeen<T, S extends T>(
  what: string,
  look: () => T | Promise<T>,
  isWanted: (seen: T) => seen is S,
  patience?: Patience,
): Promise<S>;
export function untilSeen<T>(
  what: string,
  look: () => T | Promise<T>,
  isWanted: (seen: T) => boolean,
  patience?: Patience,
): Promise<T>;
export async function untilSeen<T>(
  what: string,
  look: () => T | Promise<T>,
  isWanted: (seen: T) => boolean,
  { seconds = 180, everyMs = 50 }: Patience = {},
): Promise<T> {
  const end = systemClock.monotonic() + seconds * 1000;
  for (;;) {
    const seen = await look();
    if (isWanted(seen)) return seen;
    if (systemClock.monotonic() > end) throw notWithin(seconds, what, seen);
    await systemClock.sleep(everyMs);
  }
}
