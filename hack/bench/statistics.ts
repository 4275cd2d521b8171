export interface Summary {
  readonly median: number;
  readonly p95: number;
  readonly max: number;
  readonly count: number;
}

const rounded = (value: number) => Number(value.toPrecision(4));

/** Median, 95th percentile and maximum (nearest rank), four significant digits. */
export function summary(values: readonly number[]): Summary {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = (share: number) => rounded(sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN);
  return { median: rank(0.5), p95: rank(0.95), max: rank(1), count: sorted.length };
}

/** How often `work` runs in a second: in batches until `seconds` have passed, after one tenth of that to warm up. */
export function ratePerSecond(work: (turn: number) => number, seconds: number): number {
  const loop = (forMs: number) => {
    const began = performance.now();
    let done = 0;
    let turn = 0;
    while (performance.now() - began < forMs) done += work(turn++);
    return (done * 1000) / (performance.now() - began);
  };
  loop(seconds * 100);
  return Math.round(loop(seconds * 1000));
}
