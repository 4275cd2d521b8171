import { type Clock, clockFrom } from "../../src/ports/clock.ts";
import { systemClock } from "../../src/ports/node/index.ts";

export interface HeldClock extends Clock {
  /** Advances the time at once: what is due within these milliseconds happens now. */
  pass(milliseconds: number): void;
}

/** The machine's clock, except that a wait of a second or longer lasts until the test lets that time pass. */
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
