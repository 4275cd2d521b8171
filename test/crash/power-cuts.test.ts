import { afterAll, describe, expect, test } from "vitest";
import { choiceOf, wantsAll } from "../support/how-much.ts";
import { type CutTally, cutEverywhere, newCutTally } from "./power-cuts.ts";
import { workOnFilesAtOnce } from "./quick-files.ts";
import type { Scenario } from "./crash-harness.ts";
import { describeTally, everyFault, newTally } from "./run-effects.ts";
import { scenarios } from "./scenarios.ts";
import { directorySubjects } from "./subjects.ts";

workOnFilesAtOnce();

/** `STATES=n`: that many states of every scenario; otherwise a few significant ones. */
const wanted = process.env["STATES"] === undefined ? undefined : Number(process.env["STATES"]);
/** A machine that waits for people after a power cut cannot show that it continues by itself. */
const able = scenarios.filter(({ drifts }) => drifts !== true);
const telling = [
  "joins with files",
  "a changed file drains",
  "many files of all kinds",
  "everything comes and goes",
  "keys and a password",
  "a unit is rewritten",
  "all at once",
  "another target comes while the first",
];
const named = (part: string): Scenario => {
  const found = scenarios.find(({ title }) => title.includes(part));
  if (found === undefined) throw new Error(`bug: no scenario speaks of ${part}`);
  return found;
};

describe("a machine in a folder that loses power between any two changes of its disk", () => {
  const tally: CutTally = newCutTally();
  const list = wanted === undefined ? choiceOf(telling, 2).map(named) : able;
  test.for(list)("$title", { timeout: 3_600_000 }, async (scenario) => {
    const before = tally.found.length;
    await cutEverywhere({ scenario, perPoint: wanted === undefined ? 8 : 64, atMost: wanted ?? 60 }, tally);
    expect(tally.found.slice(before)).toEqual([]);
  });
  afterAll(() => {
    const { operations, exhausted, sampled, states, found } = tally;
    process.stdout.write(
      `power cuts: ${list.length} scenarios, ${operations} changes of the disk and flushes, ${states} different states (all there can be at ${exhausted} points, a choice at ${sampled}), ${found.length} violations\n`,
    );
  });
});

describe("a forgotten flush is found", () => {
  const isOfLedger = (path: string) =>
    path.includes("machine-config-daemon/") || path.endsWith("/machine-config-daemon");
  // A file that is flushed has a temporary name.
  const isFile = (path: string) => (path.split("/").at(-1) ?? "").startsWith(".mco-");
  const bugs = [
    {
      bug: "files are renamed before their contents are flushed",
      scenario: "many files of all kinds",
      forgets: (path: string) => isFile(path) && path.includes("/etc/"),
    },
    {
      bug: "folders are never flushed",
      scenario: "a changed file drains",
      forgets: (path: string) => !isFile(path) && !isOfLedger(path),
    },
    {
      bug: "the ledger's contents are not flushed",
      scenario: "a changed file drains",
      forgets: (path: string) => isFile(path) && isOfLedger(path),
    },
    {
      bug: "the ledger's folder is not flushed",
      scenario: "a changed file drains",
      forgets: (path: string) => !isFile(path) && isOfLedger(path),
    },
  ];
  test.for(choiceOf(bugs, 2))("$bug", { timeout: 900_000 }, async ({ scenario, forgets }) => {
    const tally = newCutTally();
    await cutEverywhere({ scenario: named(scenario), perPoint: 12, atMost: 400, forgets, until: "any" }, tally);
    expect(tally.found).not.toEqual([]);
  });
});

describe("a machine in a folder", () => {
  const tally = newTally();
  const list = wantsAll ? scenarios : [named("a unit is rewritten")];
  test.for(list)("$title", { timeout: 600_000 }, async (scenario) => {
    const machines = await directorySubjects();
    const before = tally.found.length;
    try {
      await everyFault(scenario, machines.make, tally);
    } finally {
      await machines.close();
    }
    expect(tally.found.slice(before)).toEqual([]);
  });
  afterAll(() => void process.stdout.write(describeTally("crash at every effect on a directory machine", tally)));
});
