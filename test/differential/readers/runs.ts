import { wantsChoice } from "../../support/how-much.ts";

/**
 * How many inputs a property takes: `RUNS=n` so many, and others each time; without it always the same ones, `long` of them
 * in `make test-long`, a quarter of that with `FAULTS=some`.
 */
export function runs(short: number, long: number): { readonly numRuns: number; readonly seed?: number } {
  const asked = process.env["RUNS"];
  if (asked !== undefined) return { numRuns: Number(asked) };
  const isLong = process.env["MCO_LONG"] !== undefined;
  return { numRuns: isLong ? Math.max(short, wantsChoice ? long / 4 : long) : short, seed: 34 };
}
