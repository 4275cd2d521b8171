import { expect, test } from "vitest";
import {
  agreementsOfSeed,
  concerns,
  describeReport,
  enoughSeeds,
  mostGrowthMiB,
  neverHappened,
  runSeeds,
} from "./run-seeds.ts";

test.skipIf(!concerns(0, 2))(
  "no order of events breaks an invariant (odd seeds) [simulation-seeds-odd-1]",
  { timeout: 3_600_000 },
  async () => {
    const report = await runSeeds(0, 2);
    process.stdout.write(`simulation: ${describeReport(report)}\n`);
    if (report.history !== undefined) process.stdout.write(`${report.history}\n`);
    expect(report.histories).toEqual([]);
    if (report.seeds >= 3) expect(report.checks["agreements"]).toBeGreaterThanOrEqual(agreementsOfSeed * report.seeds);
    const { warm = 0, end = 0 } = report.heapMiB ?? {};
    expect(end - warm).toBeLessThan(mostGrowthMiB);
    if (report.seeds >= enoughSeeds) expect(neverHappened(report)).toEqual([]);
  },
);
