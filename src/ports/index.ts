export * from "./clock.ts";
export * from "./files.ts";
export * from "./forward.ts";
export * from "./http.ts";
export * from "./listener.ts";
export * from "./logger.ts";
export * from "./process.ts";
export * from "./random.ts";
export * from "./journal.ts";
export * from "./threads.ts";

import type { Clock } from "./clock.ts";
import type { Logger } from "./logger.ts";
import type { Random } from "./random.ts";
import type { Journal } from "./journal.ts";

/** The environment of every process: time, randomness, log and journal. */
export interface Ports {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly journal: Journal;
}
