import { simulate } from "../../test/simulation/simulation.ts";
import type { ScoredEstimate } from "../../test/simulation/estimate-score.ts";

/** |likely end - end|: in milliseconds, and as a share of the time that was left. */
export interface EstimateErrors {
  readonly ms: { readonly median: number; readonly p90: number };
  readonly share: { readonly median: number; readonly p90: number };
}

/** Estimates that were given when so many machines of the pool had the target. */
export interface EstimateGroup {
  readonly scored: number;
  /** Share of the ends, 0 to 1, that were within what the estimate said, before it and after it; a second either way. */
  readonly within: number;
  readonly before: number;
  readonly after: number;
  readonly errors: EstimateErrors;
  /** Width of the interval, in milliseconds: median. */
  readonly widthMs: number;
  /** What a stopwatch says at the same moments: time so far / machines done * machines left; absent: none is done. */
  readonly stopwatch?: EstimateErrors;
}

/** How estimates of one kind of run compare with what then happened. */
export interface EstimateMetrics {
  readonly seeds: number;
  /** Estimates for targets that a newer one overtook: nothing can be said of them. */
  readonly overtaken: number;
  readonly all: EstimateGroup;
  /** No machine has the target yet, up to half of them, more than half. */
  readonly none: EstimateGroup;
  readonly half: EstimateGroup;
  readonly most: EstimateGroup;
}

export interface EstimateRuns {
  /** People change things, and nothing fails. */
  readonly calm: EstimateMetrics;
  /** Processes die, machines lose power, and messages are lost. */
  readonly faults: EstimateMetrics;
}

/** Times of explanations are whole seconds. */
const roundingMs = 1000;

const at = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;

function errorsOf(
  scored: readonly ScoredEstimate[],
  likely: (one: ScoredEstimate) => number | undefined,
): EstimateErrors | undefined {
  const errors = scored.flatMap((one) => {
    const foreseen = likely(one);
    if (foreseen === undefined) return [];
    const ms = Math.abs(one.ended - foreseen);
    return [{ ms, share: ms / Math.max(roundingMs, one.ended - one.at) }];
  });
  if (errors.length === 0) return undefined;
  const spread = (values: readonly number[]) => ({ median: at(values, 0.5), p90: at(values, 0.9) });
  return { ms: spread(errors.map(({ ms }) => ms)), share: spread(errors.map(({ share }) => share)) };
}

const noErrors: EstimateErrors = { ms: { median: 0, p90: 0 }, share: { median: 0, p90: 0 } };

function groupOf(scored: readonly ScoredEstimate[]): EstimateGroup {
  const share = (is: (one: ScoredEstimate) => boolean) => scored.filter(is).length / Math.max(1, scored.length);
  const before = share(({ ended, earliest }) => ended < earliest - roundingMs);
  const after = share(({ ended, latest }) => ended > latest + roundingMs);
  const stopwatch = scored.every(({ naive }) => naive === undefined) ? undefined : errorsOf(scored, (one) => one.naive);
  return {
    scored: scored.length,
    within: 1 - before - after,
    before,
    after,
    errors: errorsOf(scored, ({ likely }) => likely) ?? noErrors,
    widthMs: at(
      scored.map(({ latest, earliest }) => latest - earliest),
      0.5,
    ),
    ...(stopwatch === undefined ? {} : { stopwatch }),
  };
}

const metricsOf = (seeds: number, scored: readonly ScoredEstimate[], overtaken: number): EstimateMetrics => ({
  seeds,
  overtaken,
  all: groupOf(scored),
  none: groupOf(scored.filter(({ done }) => done === 0)),
  half: groupOf(scored.filter(({ done, total }) => done > 0 && done * 2 <= total)),
  most: groupOf(scored.filter(({ done, total }) => done * 2 > total)),
});

/** Scores the estimates of `mco explain pool` in simulated clusters of 1+3 machines. */
export async function measureEstimates(seeds: number, tell: (line: string) => void): Promise<EstimateRuns> {
  const run = async (faults: boolean): Promise<EstimateMetrics> => {
    const scored: ScoredEstimate[] = [];
    let overtaken = 0;
    for (let seed = 1; seed <= seeds; seed += 1) {
      const { simulation } = await simulate({ seed, workers: 3, stormMs: 30 * 60_000, faults });
      const { estimates } = simulation.keeper.agreement;
      scored.push(...estimates.scored);
      overtaken += estimates.overtaken;
      if (seed % 10 === 0) tell(`estimates ${faults ? "with faults" : "in calm"}: ${seed} of ${seeds} seeds`);
    }
    return metricsOf(seeds, scored, overtaken);
  };
  return { calm: await run(false), faults: await run(true) };
}
