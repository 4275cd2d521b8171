import { type Clock, clockFrom } from "../clock.ts";

/** The machine's clock and timers. */
export const systemClock: Clock = clockFrom({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(milliseconds, run) {
    const timer = setTimeout(run, Math.max(0, Math.min(milliseconds, 2 ** 31 - 1)));
    return () => clearTimeout(timer);
  },
});
