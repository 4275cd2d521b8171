import type { SectionMeter } from "../core/metrics/section-meter.ts";
import type { Clock } from "../ports/clock.ts";
import type { Journal } from "../ports/journal.ts";

/** A journal that also feeds every line to a meter. */
export function meteredJournal(journal: Journal, meter: SectionMeter, clock: Pick<Clock, "monotonic">): Journal {
  return {
    line(line) {
      meter.take(line, clock.monotonic());
      journal.line(line);
    },
    flush: (signal) => journal.flush(signal),
    get counts() {
      return journal.counts ?? { dropped: 0 };
    },
  };
}
