import { simulate } from "../../test/simulation/simulation.ts";
import type { ScoredEstimate } from "../../test/simulation/estimate-score.ts";

/** How estimates of one kind of run compare with what then happened. */
export interface EstimateMetrics {
  readonly seeds: number;
  /** Estimates of ends of roll-outs that came to their end, and those for targets that a newer one overtook. */
  readonly scored: number;
  readonly overtaken: number;
  /** Share of the ends, 0 to 1, that were within what the estimate said, before it and after it; a second either way. */
  readonly within: number;
  readonly before: number;
  readonly after: number;
  /** |likely end - end| as a share of the time that was left, and in milliseconds: median and 90 of 100. */
  readonly errorShare: { readonly median: number; readonly p90: number };
  readonly errorMs: { readonly median: number; readonly p90: number };
  /** Width of the interval, in milliseconds: median. */
  readonly widthMs: number;
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
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;

function metricsOf(seeds: number, scored: readonly ScoredEstimate[], overtaken: number): EstimateMetrics {
  const share = (is: (one: ScoredEstimate) => boolean) => scored.filter(is).length / Math.max(1, scored.length);
  const before = share(({ ended, earliest }) => ended < earliest - roundingMs);
  const after = share(({ ended, latest }) => ended > latest + roundingMs);
  const errors = scored.map(({ ended, likely }) => Math.abs(ended - likely));
  const shares = scored.map(({ ended, likely, at: given }) => Math.abs(ended - likely) / Math.max(1000, ended - given));
  return {
    seeds,
    scored: scored.length,
    overtaken,
    within: 1 - before - after,
    before,
    after,
    errorShare: { median: at(shares, 0.5), p90: at(shares, 0.9) },
    errorMs: { median: at(errors, 0.5), p90: at(errors, 0.9) },
    widthMs: at(
      scored.map(({ latest, earliest }) => latest - earliest),
      0.5,
    ),
  };
}

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
