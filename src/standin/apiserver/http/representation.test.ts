import { expect, test } from "vitest";
import { inTurns } from "./representation.ts";

/** The sizes of the parts that a list is shown in; before the first turn nothing is shown. */
async function partsOf(lengths: readonly number[]): Promise<readonly number[]> {
  const shownAtTurn: number[] = [];
  let shown = 0;
  const show = () => {
    shown += 1;
    return "";
  };
  const turn = () => {
    shownAtTurn.push(shown);
    return Promise.resolve();
  };
  const items = lengths.map((length) => ({ json: { length } }));
  expect(await inTurns(items, show, turn)).toHaveLength(items.length);
  return shownAtTurn;
}

const many = (count: number, length: number): readonly number[] => Array.from({ length: count }, () => length);

test("what is shown in one turn needs no further one, and of longer lists nothing is shown before it [apiserver-lists-1]", async () => {
  expect(await partsOf([])).toEqual([]);
  expect(await partsOf(many(500, 1_000))).toEqual([]);
  expect(await partsOf(many(501, 1_000))).toEqual([0, 500]);
  expect(await partsOf(many(1_001, 1))).toEqual([0, 500, 1_000]);
});

test("long rows of short objects take turns of their own, and more than a text holds is not made [apiserver-lists-3]", async () => {
  let [turns, made] = [0, 0];
  const turn = () => {
    turns += 1;
    return Promise.resolve();
  };
  const columns = "x".repeat(1024 * 1024);
  const show = () => {
    made += 1;
    return columns;
  };
  const rows = (count: number) =>
    inTurns(
      many(count, 10).map((length) => ({ json: { length } })),
      show,
      turn,
    );
  expect(await rows(100)).toHaveLength(100);
  expect([made, turns]).toEqual([100, 11]);
  expect(await rows(400)).toBeUndefined();
  expect(made).toBeLessThan(100 + 260);
});

test("large objects fill a turn by their characters, and one that is larger has a turn for itself [apiserver-lists-2]", async () => {
  const half = 2 * 1024 * 1024;
  expect(await partsOf(many(2, half))).toEqual([]);
  expect(await partsOf(many(5, half))).toEqual([0, 2, 4]);
  expect(await partsOf([3 * half])).toEqual([]);
  expect(await partsOf([1, 3 * half, 1, 1])).toEqual([0, 1, 2]);
});
