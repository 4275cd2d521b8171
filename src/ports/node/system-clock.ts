import { type Clock, clockFrom } from "../clock.ts";

/**
 * When this process started, in milliseconds since boot (clock_gettime(2), CLOCK_MONOTONIC): two processes of one boot
 * agree on times.
 */
const beganMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** The machine's clock and timers. */
export const systemClock: Clock = clockFrom({
  now: () => Date.now(),
  monotonic: () => beganMs + performance.now(),
  after(milliseconds, run) {
    const timer = setTimeout(run, Math.max(0, Math.min(milliseconds, 2 ** 31 - 1)));
    return () => clearTimeout(timer);
  },
});
