import { afterAll, expect, test } from "vitest";
import { describeTally, everyFaultOfBooks, newTally } from "./run-effects.ts";
import { scenarios } from "./scenarios.ts";
import { inMemory } from "./subjects.ts";

const tally = newTally();
const list = scenarios.filter(
  ({ title }) =>
    process.env["FAULTS"] === "all" ||
    ["a changed file drains", "the OS image, kernel arguments"].some((part) => title.includes(part)),
);

test.for(list)(
  "whatever happens to a line on its way to the disk and to the journal, none is lost and none is there twice: $title [crash-story-1]",
  { timeout: 600_000 },
  async (scenario) => {
    const before = tally.found.length;
    await everyFaultOfBooks(scenario, inMemory, tally);
    expect(tally.found.slice(before)).toEqual([]);
    expect(tally.faults).toBeGreaterThan(20);
  },
);
afterAll(() => void process.stdout.write(describeTally("faults of the journal", tally)));
