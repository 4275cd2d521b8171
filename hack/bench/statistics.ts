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
  const rank = (share: number) =>
    rounded(sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN);
  return { median: rank(0.5), p95: rank(0.95), max: rank(1), count: sorted.length };
}

/**
 * How often `work` can be done in a second of processor time, so that other programs on the machine do not count:
 * `seconds` of it, after one tenth of that to warm up. `work` returns how much it did.
 */
export function ratePerSecond(work: (turn: number) => number, seconds: number): number {
  const spentMs = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
  const loop = (forMs: number) => {
    const began = spentMs();
    let done = 0;
    let turn = 0;
    while (spentMs() - began < forMs) done += work(turn++);
    return (done * 1000) / (spentMs() - began);
  };
  loop(seconds * 100);
  return Math.round(loop(seconds * 1000));
}
