import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Host } from "../../src/host/host.ts";
import { wantsAll, wantsChoice } from "../support/how-much.ts";
import { historiesOfActs, wayBack } from "../support/ways-back.ts";

/** Milliseconds; all histories take some minutes. */
const timeout = 3_600_000;

test(
  "whatever happened to a machine, taking everything back settles it, and leaves nothing behind [ways-back-1]",
  { timeout },
  async () => {
    await fc.assert(
      fc.asyncProperty(historiesOfActs, async (acts) => {
        expect(await wayBack(acts)).toBe(undefined);
      }),
      { numRuns: wantsAll ? 1000 : wantsChoice ? 60 : 12 },
    );
  },
);

const nothing = () => Promise.resolve();

/** Careless changes, of which each leaves something behind, never settles, or reboots too often. */
const bugs: Readonly<Record<string, (host: Host) => Partial<Host>>> = {
  "the originals are never recorded": ({ ledger }) => ({
    ledger: {
      ...ledger,
      write: (name, text, until) => (name === "originals.json" ? nothing() : ledger.write(name, text, until)),
    },
  }),
  "a file below a former folder stays": ({ files }) => ({
    files: { ...files, remove: (path, until) => (path.startsWith("/etc/p/") ? nothing() : files.remove(path, until)) },
  }),
  "links of units are left as they are": ({ units }) => ({ units: { ...units, relink: nothing } }),
  "nobody knows what the OS ships": ({ files }) => ({ files: { ...files, vendor: () => Promise.resolve(undefined) } }),
  "a password is never taken away": ({ users }) => ({
    users: {
      ...users,
      setPasswordHash: (user, hash, until) =>
        hash === undefined ? nothing() : users.setPasswordHash(user, hash, until),
    },
  }),
  "a file has one name only": ({ files }) => ({ files: { ...files, placeOf: (path) => Promise.resolve(path) } }),
  "nobody counts the reboots of a target": ({ ledger }) => ({
    ledger: {
      ...ledger,
      write: (name, text, until) => ledger.write(name, name === "ledger.json" ? withoutReboots(text) : text, until),
    },
  }),
  "the ledger is never closed": ({ ledger }) => ({
    ledger: {
      ...ledger,
      remove: (name, until) => (name === "ledger.json" ? nothing() : ledger.remove(name, until)),
    },
  }),
};

const withoutReboots = (text: string): string =>
  JSON.stringify({ ...(JSON.parse(text) as Record<string, unknown>), rebootsAsked: undefined });

/** What is found first in histories that are the same each time. */
async function firstFinding(plant: (host: Host) => Partial<Host>): Promise<string | undefined> {
  for (const acts of fc.sample(historiesOfActs, { seed: 5, numRuns: 200 })) {
    const wrong = await wayBack(acts, (host) => ({ ...host, ...plant(host) }));
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

describe("a careless change is found", () => {
  test.for(Object.entries(bugs).slice(0, wantsAll || wantsChoice ? undefined : 2))(
    "%s [ways-back-2]",
    async ([, plant]) => {
      expect(await firstFinding(plant)).toMatch(
        /^(left behind|the machine is not settled|it is busy|\d+ reboots for one target)/,
      );
    },
  );
});
