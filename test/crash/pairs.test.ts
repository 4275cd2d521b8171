import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { type Fault, CrashHarness } from "./crash-harness.ts";
import { type Rehearsal, count, describeTally, kindsOf, newTally, rehearse } from "./run-effects.ts";
import { scenarios } from "./scenarios.ts";
import { inMemory } from "./subjects.ts";

const runs = Number(process.env["PAIRS"] ?? (process.env["MCO_LONG"] === undefined ? 50 : 150));
/** The same choice in every run of the tests; a new one for long runs, which a failure then names. */
const seed =
  process.env["SEED"] !== undefined ? Number(process.env["SEED"]) : process.env["PAIRS"] === undefined ? 1 : undefined;
const total = newTally();
const rehearsed = new Map<number, Promise<Rehearsal>>();

/** Rehearses a scenario once. */
function rehearsal(index: number): Promise<Rehearsal> {
  const scenario = scenarios[index];
  if (scenario === undefined) throw new Error(`bug: there is no scenario ${index}`);
  const known = rehearsed.get(index) ?? rehearse(scenario, inMemory);
  rehearsed.set(index, known);
  return known;
}

test(
  "two or three faults in one run, at any effects, leave the machine on its target [crash-pairs-1]",
  { timeout: 600_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(scenarios.length - 1),
        fc.array(fc.tuple(fc.nat(1_000_000), fc.nat(1_000_000)), { minLength: 2, maxLength: 3 }),
        async (index, picks) => {
          const { scenario, start, expectation, harness } = await rehearsal(index);
          // The run after the first fault is longer than the run without one: later faults may fall beyond its end.
          const faults = picks.map(([place, kind]): Fault => {
            const at = place % (harness.effects.length + 10);
            const kinds = kindsOf(harness.effects[at] ?? "files");
            return { at, kind: kinds[kind % kinds.length] ?? "before" };
          });
          const ended = await CrashHarness.run({ scenario, subject: inMemory, start, faults }, expectation);
          count(total, ended);
          expect(ended.keeper.violations, ended.description).toEqual([]);
        },
      ),
      { numRuns: runs, ...(seed === undefined ? {} : { seed }) },
    );
  },
);

afterAll(() => {
  total.scenarios = rehearsed.size;
  process.stdout.write(describeTally("several crashes in one run", total));
});
