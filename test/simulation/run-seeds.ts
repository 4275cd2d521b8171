import { expect } from "vitest";
import { collectGarbage } from "../support/collect-garbage.ts";
import type { InvariantKeeper } from "./invariants.ts";
import { simulate } from "./simulation.ts";

/**
 * `SEED=n` runs one seed and prints its report; `SEEDS=n` runs n seeds instead of 6; `FROM=n` leaves out those before
 * n, to go on where a long run stopped.
 */
export const wanted = {
  one: process.env["SEED"] === undefined ? undefined : Number(process.env["SEED"]),
  count: Number(process.env["SEEDS"] ?? 6),
  from: Number(process.env["FROM"] ?? 1),
};
const progressMs = 60_000;

/** After this many seeds, all code and what it keeps for all worlds is there. */
const warmSeeds = 10;
/** A world that stayed would take a third of this; the code of all seeds takes less. */
const mostGrowthMiB = 64;

/** Heap without garbage, in MiB. */
function heapMiB(): number {
  collectGarbage();
  return Math.round(process.memoryUsage().heapUsed / 1024 / 1024);
}

interface SeedsReport {
  readonly seeds: number;
  readonly events: number;
  readonly virtualHours: number;
  /** Heap in MiB after the first seeds and after all of them; absent: there were no more than the first. */
  readonly heapMiB?: { readonly warm: number; readonly end: number };
  /** What happened in each seed that broke an invariant or failed. */
  readonly histories: readonly string[];
  /** What happened in the one seed that was asked for. */
  readonly history: string | undefined;
  readonly accidents: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly checks: Readonly<Record<string, number>>;
}

/** Whether this run has any of the seeds of `runSeeds`: not where it is for one of the others. */
export const concerns = (first: number, step: number): boolean =>
  wanted.one === undefined || (wanted.one - 1) % step === first;

/** Runs every `step`-th seed after `first`; half of them with three control-plane machines. */
async function runSeeds(first: number, step: number): Promise<SeedsReport> {
  const histories: string[] = [];
  const accidents: Record<string, number> = {};
  const faults: Record<string, number> = {};
  const checks: Record<string, number> = {};
  let events = 0;
  let virtualMs = 0;
  let seeds = 0;
  let warm: number | undefined;
  let history: string | undefined;
  const list =
    wanted.one === undefined
      ? Array.from({ length: Math.ceil((wanted.count - first) / step) }, (_, index) => 1 + first + index * step)
      : concerns(first, step)
        ? [wanted.one]
        : [];
  let saidAt = performance.now();
  for (const seed of list) {
    if (seed < wanted.from) continue;
    if (performance.now() - saidAt > progressMs) {
      saidAt = performance.now();
      const heap = Math.round(process.memoryUsage().heapUsed / 1024 / 1024);
      console.log(`simulation: seed ${seed} of ${wanted.count}, ${heap} MiB of heap; FROM=${seed} goes on from here`);
    }
    const { simulation } = await simulate({
      seed,
      controlPlane: seed % 4 === 0 ? 3 : 1,
      workers: 3,
      changesMind: true,
    });
    seeds += 1;
    if (seeds === warmSeeds) warm = heapMiB();
    events += simulation.kernel.events;
    virtualMs += simulation.kernel.now;
    for (const [name, count] of Object.entries(simulation.accidents)) accidents[name] = (accidents[name] ?? 0) + count;
    for (const [name, count] of Object.entries(simulation.faults)) faults[name] = (faults[name] ?? 0) + count;
    for (const [name, count] of Object.entries(simulation.keeper.checks)) checks[name] = (checks[name] ?? 0) + count;
    if (simulation.keeper.violations.length > 0 || simulation.failures.length > 0) histories.push(simulation.history());
    if (wanted.one !== undefined) history = simulation.history();
  }
  return {
    seeds,
    events,
    virtualHours: virtualMs / 3_600_000,
    ...(warm === undefined || seeds <= warmSeeds ? {} : { heapMiB: { warm, end: heapMiB() } }),
    histories,
    history,
    accidents,
    faults,
    checks,
  };
}

function describeReport(report: SeedsReport): string {
  const list = (record: Readonly<Record<string, number>>) =>
    Object.entries(record)
      .map(([name, count]) => `${count} ${name}`)
      .join(", ");
  return `${report.seeds} seeds, ${report.events} events, ${report.virtualHours.toFixed(0)} virtual hours${report.heapMiB === undefined ? "" : `; heap ${report.heapMiB.warm} MiB after ${warmSeeds} seeds, ${report.heapMiB.end} MiB at the end`}; accidents: ${list(report.accidents)}; on the way: ${list(report.faults)}; looked at: ${list(report.checks)}`;
}

/**
 * With this many seeds everything happens that can: accidents, network faults, and everything that the invariants
 * check.
 */
const enoughSeeds = 80;

const expected = {
  accidents: [
    "daemon killed",
    "controller killed",
    "second controller",
    "API server restarted",
    "boot not finalised",
    "boots not finalised for a while",
    "power cut",
  ],
  faults: [
    "conflict",
    "stale read",
    "coalesced watch",
    "stalled watch",
    "lagging watch",
    "watch cut",
    "request lost",
    "reply lost",
    "slow message",
    "leader change",
  ],
  checks: [
    "choices",
    "reboots",
    "removals",
    "claims",
    "quarantines",
    "exclusions",
    "pauses",
    "cures",
    "statuses",
    "conditions",
    "lines",
    "updates",
    "agreements",
    "successes",
    "effects",
  ],
} as const satisfies {
  readonly accidents: readonly string[];
  readonly faults: readonly string[];
  readonly checks: readonly (keyof InvariantKeeper["checks"])[];
};

/** Moments at which everything must agree, for each seed at least: 200,000 in the 300 of `make test-long`. */
const agreementsOfSeed = process.env["MCO_LONG"] === undefined ? 417 : 667;

/** What did not happen in a run with faults: a test that never meets its trouble proves nothing. */
function neverHappened(report: SeedsReport): readonly string[] {
  return (["accidents", "faults", "checks"] as const).flatMap((group) =>
    expected[group].filter((name) => (report[group][name] ?? 0) === 0),
  );
}

/** Runs every `step`-th seed after `first`, prints what happened, and expects that no rule was broken. */
export async function expectSeedsToHold(first: number, step: number): Promise<void> {
  const report = await runSeeds(first, step);
  process.stdout.write(`simulation: ${describeReport(report)}\n`);
  if (report.history !== undefined) process.stdout.write(`${report.history}\n`);
  expect(report.histories).toEqual([]);
  if (report.seeds >= 3) expect(report.checks["agreements"]).toBeGreaterThanOrEqual(agreementsOfSeed * report.seeds);
  const { warm = 0, end = 0 } = report.heapMiB ?? {};
  expect(end - warm).toBeLessThan(mostGrowthMiB);
  if (report.seeds >= enoughSeeds) expect(neverHappened(report)).toEqual([]);
}
