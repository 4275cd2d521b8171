import { expect, test } from "vitest";
import { wantsAll, wantsChoice } from "../support/how-much.ts";
import { describeHistory, historyOf, runHistory, shrink } from "./join-histories.ts";

/** `HISTORIES=n` runs n of them, `FROM=n` leaves out those before n, and `SEED=n` runs that one and prints it. */
const count = Number(process.env["HISTORIES"] ?? (wantsAll ? 1000 : wantsChoice ? 300 : 60));
const from = Number(process.env["FROM"] ?? 1);
const one = process.env["SEED"] === undefined ? undefined : Number(process.env["SEED"]);

/** What happens in so many histories if nothing is wrong with the steps themselves. */
const enough = 300;
const mustHappen = [
  "join Approved",
  "join Denied",
  "renew Approved",
  "serve Approved",
  "serve Denied",
  "labels given",
  "renewals of holders by another",
  "renewals of former machines by another",
];
const progressMs = 60_000;
/** More of them say nothing new. */
const mostFailures = 5;

test(
  "no history gives a machine what its join record does not name, or refuses what it does [simulation-join-1]",
  { timeout: 7 * 3_600_000 },
  async () => {
    const failed: string[] = [];
    const counts: Record<string, number> = {};
    let seeds = 0;
    let saidAt = performance.now();
    for (let seed = one ?? from; seed <= (one ?? count) && failed.length < mostFailures; seed += 1) {
      if (performance.now() - saidAt > progressMs) {
        saidAt = performance.now();
        console.log(`joins: history ${seed} of ${count}; FROM=${seed} goes on from here`);
      }
      const history = historyOf(seed);
      const outcome = await runHistory(history);
      seeds += 1;
      for (const [what, times] of Object.entries(outcome.counts)) counts[what] = (counts[what] ?? 0) + times;
      if (outcome.problems.length > 0) failed.push(describeHistory(await shrink(history)));
      else if (one !== undefined) process.stdout.write(`${describeHistory({ history, outcome })}\n`);
    }
    const list = Object.entries(counts).map(([what, times]) => `${times} ${what}`);
    process.stdout.write(`joins: ${seeds} histories; ${list.join(", ")}\n`);
    expect(failed.join("\n")).toBe("");
    if (seeds >= enough) expect(mustHappen.filter((what) => counts[what] === undefined)).toEqual([]);
  },
);
