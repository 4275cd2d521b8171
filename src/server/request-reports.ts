import type { Report } from "../kube/report.ts";
import type { CancelTimer, Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { RequestOutcome } from "./answer-request.ts";
import { type ReportingServer, configServed, firstConfigServed, moreServed, requestsRefused } from "./reports.ts";

export interface RequestReportsOptions extends ReportingServer {
  readonly clock: Clock;
  readonly report: Report;
  readonly log: Logger;
  /** Whether the pool exists: names of other pools are not repeated in reports. */
  readonly isPool: (pool: string) => boolean;
}

/** Stands for every pool that there is not. */
const noPool = "-";
/** Lines of answers in a minute; further ones are reported as a count. */
const mostServed = 150;
const minuteMs = 60_000;
/** Refusals of one kind are gathered for a minute, and longer the longer they go on. */
const longestMs = 60 * 60_000;

interface Gathered {
  count: number;
  last: RequestOutcome;
  windowMs: number;
  cancel: CancelTimer;
}

/**
 * Reports to journal and log: each served response by itself, and refusals as counts, so that a flood fills neither.
 */
export class RequestReports {
  readonly #options: RequestReportsOptions;
  readonly #refused = new Map<string, Gathered>();
  readonly #folded = new Map<string, Gathered>();
  #minute = { began: Number.NEGATIVE_INFINITY, lines: 0 };

  constructor(options: RequestReportsOptions) {
    this.#options = options;
  }

  report(outcome: RequestOutcome): void {
    switch (outcome.is) {
      case "served":
        return this.#served(outcome);
      case "refused":
      case "broken":
        return this.#gather(
          this.#refused,
          `${outcome.status} ${outcome.reason} ${this.#poolOf(outcome)}`,
          outcome,
          true,
        );
      case "notModified":
      case "described":
      case "health":
        return;
    }
  }

  /** Reports the pending counts, and nothing after that. */
  stop(): void {
    for (const one of [...this.#refused.values(), ...this.#folded.values()]) {
      one.cancel();
      if (one.count > 0) this.#reportGathered(one);
    }
    this.#refused.clear();
    this.#folded.clear();
  }

  #poolOf({ pool }: RequestOutcome): string {
    return pool !== "" && this.#options.isPool(pool) ? pool : noPool;
  }

  #served(outcome: RequestOutcome): void {
    const { clock, report, chapter } = this.#options;
    const now = clock.monotonic();
    if (now - this.#minute.began >= minuteMs) this.#minute = { began: now, lines: 0 };
    this.#minute.lines += 1;
    if (this.#minute.lines > mostServed) return this.#gather(this.#folded, outcome.pool, outcome, false);
    // A machine without a Node, and whose name its token gives, gets its own book.
    if (chapter === "Bootstrap" && outcome.node !== "") report(firstConfigServed(outcome));
    report(configServed(this.#options, outcome));
  }

  /** @param isFirstReported the first of its kind is reported at once. */
  #gather(into: Map<string, Gathered>, key: string, outcome: RequestOutcome, isFirstReported: boolean): void {
    const known = into.get(key);
    if (known !== undefined) {
      known.count += 1;
      known.last = outcome;
      return;
    }
    if (isFirstReported) this.#reportRefused(outcome, 1, 0);
    into.set(key, this.#window(into, key, outcome, isFirstReported ? 0 : 1, minuteMs));
  }

  #window(into: Map<string, Gathered>, key: string, last: RequestOutcome, count: number, windowMs: number): Gathered {
    const one: Gathered = {
      count,
      last,
      windowMs,
      cancel: this.#options.clock.after(windowMs, () => {
        into.delete(key);
        if (one.count === 0) return;
        this.#reportGathered(one);
        if (into === this.#refused)
          into.set(key, this.#window(into, key, one.last, 0, Math.min(longestMs, windowMs * 2)));
      }),
    };
    return one;
  }

  #reportGathered({ last, count, windowMs }: Gathered): void {
    if (last.is !== "served") return this.#reportRefused(last, count, windowMs);
    this.#options.report(moreServed(this.#options, last, count));
  }

  #reportRefused(outcome: RequestOutcome, count: number, windowMs: number): void {
    const { report, log, chapter, run } = this.#options;
    const pool = this.#poolOf(outcome);
    const { status, reason, requester, config } = outcome;
    const what =
      outcome.is === "broken" ? "answers broke off before they had arrived" : `requests were refused with ${status}`;
    const message = `${reason}: ${count} ${what}${windowMs === 0 ? "" : ` within ${windowMs / minuteMs} min`}, the last one from ${requester}`;
    const data = {
      ...(pool === noPool ? {} : { pool }),
      status,
      why: reason,
      requests: count,
      last: requester,
      ...(config === "" ? {} : { config }),
    };
    log.warn(data, outcome.is === "broken" ? "answers broke off" : "requests refused");
    if (chapter === "Server" && outcome.is === "refused") report(requestsRefused(run, pool, message, data));
  }
}
