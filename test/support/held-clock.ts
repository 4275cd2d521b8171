import { type Clock, clockFrom } from "../../src/ports/clock.ts";
import { systemClock } from "../../src/ports/node/index.ts";

export interface HeldClock extends Clock {
  /** Time passes at once: what was to happen within these milliseconds happens now. */
  pass(milliseconds: number): void;
}

/** The machine's clock, but whoever waits for a second or longer waits until the test lets that time pass. */
export function heldClock(): HeldClock {
  let ahead = 0;
  const held = new Set<{ readonly at: number; readonly run: () => void }>();
  const monotonic = () => systemClock.monotonic() + ahead;
  const clock = clockFrom({
    now: () => systemClock.now() + ahead,
    monotonic,
    after(milliseconds, run) {
      if (milliseconds < 1000) return systemClock.after(milliseconds, run);
      const one = { at: monotonic() + milliseconds, run };
      held.add(one);
      return () => held.delete(one);
    },
  });
  return {
    ...clock,
    pass(milliseconds) {
      ahead += milliseconds;
      for (const one of [...held].toSorted((a, b) => a.at - b.at)) {
        if (one.at > monotonic()) continue;
        held.delete(one);
        one.run();
      }
    },
  };
}
