import { afterAll, expect, test } from "vitest";
import { wantsAll } from "../support/how-much.ts";
import { describeTally, everyFaultOfBooks, newTally } from "./run-effects.ts";
import { scenarios } from "./scenarios.ts";
import { inMemory } from "./subjects.ts";

const tally = newTally();
const list = scenarios.filter(
  ({ title }) =>
    wantsAll || ["a changed file drains", "the OS image, kernel arguments"].some((part) => title.includes(part)),
);

test.for(list)(
  "no fault on the way to the disk and to the journal loses or duplicates a line: $title [crash-story-1]",
  { timeout: 600_000 },
  async (scenario) => {
    const before = tally.found.length;
    await everyFaultOfBooks(scenario, inMemory, tally);
    expect(tally.found.slice(before)).toEqual([]);
    expect(tally.faults).toBeGreaterThan(20);
  },
);
afterAll(() => void process.stdout.write(describeTally("faults of the journal", tally)));
