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

test.skipIf(!concerns(1, 2))(
  "no order of events breaks an invariant (even seeds) [simulation-seeds-even-1]",
  { timeout: 3_600_000 },
  async () => {
    const report = await runSeeds(1, 2);
    process.stdout.write(`simulation: ${describeReport(report)}\n`);
    if (report.history !== undefined) process.stdout.write(`${report.history}\n`);
    expect(report.histories).toEqual([]);
    if (report.seeds >= 3) expect(report.checks["agreements"]).toBeGreaterThanOrEqual(agreementsOfSeed * report.seeds);
    const { warm = 0, end = 0 } = report.heapMiB ?? {};
    expect(end - warm).toBeLessThan(mostGrowthMiB);
    if (report.seeds >= enoughSeeds) expect(neverHappened(report)).toEqual([]);
  },
);
