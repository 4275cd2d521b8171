import type { SectionMeter } from "../core/metrics/section-meter.ts";
import type { Clock } from "../ports/clock.ts";
import type { Scribe } from "../ports/scribe.ts";

/** The same scribe, with a meter that looks over its shoulder. */
export function meteredScribe(scribe: Scribe, meter: SectionMeter, clock: Pick<Clock, "monotonic">): Scribe {
  return {
    line(line) {
      meter.take(line, clock.monotonic());
      scribe.line(line);
    },
    settle: (signal) => scribe.settle(signal),
    get counts() {
      return scribe.counts ?? { dropped: 0 };
    },
  };
}
