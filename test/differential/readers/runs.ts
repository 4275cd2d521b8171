/**
 * How many inputs a property takes: `RUNS=n` so many, and others each time; without it always the same ones, `long` of them
 * in `make test-long`.
 */
export function runs(short: number, long: number): { readonly numRuns: number; readonly seed?: number } {
  const asked = process.env["RUNS"];
  if (asked !== undefined) return { numRuns: Number(asked) };
  return { numRuns: process.env["MCO_LONG"] === undefined ? short : long, seed: 34 };
}
