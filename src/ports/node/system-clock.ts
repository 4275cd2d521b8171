import { type Clock, clockFrom } from "../clock.ts";

/**
 * When this process began, in milliseconds since the machine booted (clock_gettime(2), CLOCK_MONOTONIC): two processes
 * of one boot agree about the time in between.
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
