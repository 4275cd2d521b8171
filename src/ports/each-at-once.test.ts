import { expect, test } from "vitest";
import { eachAtOnce } from "./each-at-once.ts";

/** Records how many run at the same time; each item takes as many turns as it says. */
function turns() {
  const seen = { running: 0, most: 0, begun: [] as number[] };
  const work = async (count: number): Promise<string> => {
    seen.begun.push(count);
    seen.running += 1;
    seen.most = Math.max(seen.most, seen.running);
    for (let turn = 0; turn < Math.abs(count); turn++) await Promise.resolve();
    seen.running -= 1;
    if (count < 0) throw new Error(`failed ${count}`);
    return `did ${count}`;
  };
  return { seen, work };
}

test("never runs more items than it may, and answers in the order of the items", async () => {
  const { seen, work } = turns();
  expect(await eachAtOnce([5, 1, 3, 2], 2, work)).toEqual(["did 5", "did 1", "did 3", "did 2"]);
  expect(seen.most).toBe(2);
});

test("works on nothing", async () => {
  expect(await eachAtOnce([], 4, () => Promise.reject(new Error("asked")))).toEqual([]);
});

test("after a failure begins nothing further, and throws the first failure when the others have ended", async () => {
  const { seen, work } = turns();
  await expect(eachAtOnce([9, -2, -4, 1, 1], 3, work)).rejects.toThrow("failed -2");
  expect(seen.begun).toEqual([9, -2, -4]);
  expect(seen.running).toBe(0);
});

test("an item that fails before it waits fails the whole", async () => {
  const work = () => {
    throw new Error("at once");
  };
  await expect(eachAtOnce([1, 2], 2, work)).rejects.toThrow("at once");
});
