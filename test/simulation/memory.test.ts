import { expect, test } from "vitest";
import { collectGarbage } from "../support/collect-garbage.ts";
import { untilSeen } from "../support/until-seen.ts";
import { simulate } from "./simulation.ts";

async function run(seed: number): Promise<WeakRef<object>> {
  const { simulation } = await simulate({ seed, controlPlane: 1, workers: 2, stormMs: 5 * 60_000 });
  expect(simulation.keeper.violations).toEqual([]);
  return new WeakRef(simulation);
}

test("a finished simulation leaves nothing in memory, so that runs of any number of seeds end [simulation-memory-1]", async () => {
  const refs = [await run(1), await run(2), await run(3)];
  const alive = await untilSeen(
    "the simulations are collected",
    () => {
      collectGarbage();
      return Promise.resolve(refs.filter((ref) => ref.deref() !== undefined).length);
    },
    (count) => count === 0,
  );
  expect(alive).toBe(0);
});
