import { afterAll, expect, test } from "vitest";
import {
  type Expectation,
  type Fault,
  type Plant,
  CrashHarness,
  type CrashHarnessOptions,
  type Scenario,
  type Start,
  apiFaults,
  hostFaults,
} from "./crash-harness.ts";
import { wantsAll } from "../support/how-much.ts";
import type { MakeSubject } from "./subjects.ts";

/** Kinds that do not depend on where a crash happened; `make test` takes one of them at every third effect, in turn. */
const others = new Set<Fault["kind"]>(["refused", "conflict", "powerCut"]);
/**
 * A kill after an effect is almost a kill before the next one: `make test` takes one of them at every second effect, in
 * turn.
 */
const done = ["after", "replyLost"] as const;
/** Whether effects-even takes all of its scenarios. `make test` takes a quarter of them. */
export const everyEvenScenario = wantsAll || process.env["MCO_LONG"] !== undefined;

/** Every fault of an effect: of a request, or of the machine. */
export const kindsOf = (effect: string): readonly Fault["kind"][] => (/^[A-Z]+ /.test(effect) ? apiFaults : hostFaults);

/** The faults of an effect, each in its own run. */
export function faultsAt(at: number, effect: string): readonly Fault["kind"][] {
  const kinds = kindsOf(effect);
  if (wantsAll) return kinds;
  const seldom = kinds.filter((kind) => others.has(kind));
  return kinds.filter(
    (kind) =>
      kind === "before" ||
      (at % 2 === 1 && kind === done[((at - 1) / 2) % done.length]) ||
      (seldom.includes(kind) && seldom.indexOf(kind) === at % (3 * seldom.length)),
  );
}

export interface Tally {
  scenarios: number;
  effects: number;
  runs: number;
  /** Faults that really happened: a run whose fault never came proves nothing. */
  faults: number;
  readonly checks: Record<string, number>;
  readonly found: string[];
}

export const newTally = (): Tally => ({ scenarios: 0, effects: 0, runs: 0, faults: 0, checks: {}, found: [] });

export function count(tally: Tally, harness: CrashHarness): void {
  tally.runs += 1;
  for (const [invariant, checks] of Object.entries(harness.keeper.checks))
    tally.checks[invariant] = (tally.checks[invariant] ?? 0) + checks;
  tally.faults += harness.faultsMet;
  const [first] = harness.keeper.violations;
  if (first !== undefined) tally.found.push(`${harness.description}: ${first.invariant}: ${first.what}`);
}

export interface Rehearsal {
  readonly scenario: Scenario;
  readonly start: Start | undefined;
  readonly expectation: Expectation;
  readonly harness: CrashHarness;
}

/** One run without faults: its effects, and what later runs are compared with. */
export async function rehearse(
  scenario: Scenario,
  subject: MakeSubject,
  plant?: Plant,
  books?: CrashHarnessOptions["books"],
): Promise<Rehearsal> {
  let start: Start | undefined;
  if (scenario.start !== undefined)
    await CrashHarness.run(
      { scenario, subject, atEnd: async (harness) => void (start = await harness.startState()) },
      "start",
    );
  let expectation: Expectation = { reboots: 0, disturbances: {} };
  const harness = await CrashHarness.run({
    scenario,
    subject,
    start,
    plant,
    books: books ?? "kept",
    atEnd: async (ended) => void (expectation = await ended.expectation()),
  });
  return { scenario, start, expectation, harness };
}

/** The journal is kept in every so many runs: it costs as much as the update that it reports. `FAULTS=all`: always. */
const keptEvery = wantsAll ? 1 : 8;

/** Every fault at every effect of a scenario, each in a run of its own. */
export async function everyFault(scenario: Scenario, subject: MakeSubject, tally: Tally): Promise<void> {
  const { harness, expectation, start } = await rehearse(scenario, subject);
  tally.scenarios += 1;
  tally.effects += harness.effects.length;
  count(tally, harness);
  for (const [at, effect] of harness.effects.entries()) {
    for (const kind of faultsAt(at, effect))
      count(
        tally,
        await CrashHarness.run(
          { scenario, subject, start, faults: [{ at, kind }], ...(at % keptEvery === 0 ? { books: "kept" } : {}) },
          expectation,
        ),
      );
  }
}

/** Faults at everything that the daemon records, and in every request for its journal. */
export async function everyFaultOfBooks(scenario: Scenario, subject: MakeSubject, tally: Tally): Promise<void> {
  const { harness, expectation, start } = await rehearse(scenario, subject, undefined, "counted");
  tally.scenarios += 1;
  count(tally, harness);
  for (const [at, effect] of harness.effects.entries()) {
    if (!/^books\.|machinestatejournals/.test(effect)) continue;
    tally.effects += 1;
    for (const kind of kindsOf(effect))
      count(
        tally,
        await CrashHarness.run({ scenario, subject, start, faults: [{ at, kind }], books: "counted" }, expectation),
      );
  }
}

/** One summary line for the test output. */
export function describeTally(what: string, { scenarios, effects, runs, faults, checks, found }: Tally): string {
  const total = Object.values(checks).reduce((sum, count) => sum + count, 0);
  return `${what}: ${scenarios} scenarios, ${effects} effects, ${runs} runs, ${faults} faults, ${total} checks of ${Object.keys(checks).length} invariants, ${found.length} violations\n`;
}

/** A test for each scenario; prints a summary. */
export function testEffects(what: string, list: readonly Scenario[], subject: () => MakeSubject): void {
  const total = newTally();
  test.for(list)("$title [crash-effects-1]", { timeout: 600_000 }, async (scenario) => {
    const before = total.found.length;
    await everyFault(scenario, subject(), total);
    expect(total.found.slice(before)).toEqual([]);
  });
  afterAll(() => void process.stdout.write(describeTally(what, total)));
}
