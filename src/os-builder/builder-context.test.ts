import { expect, test } from "vitest";
import { builderMemory, rememberPools } from "./builder-context.ts";

test("[builder-memory-1] the pools of builds that are long gone are forgotten, and those of others never", () => {
  const memory = builderMemory();
  const build = (i: number) => ({ name: `build-${i}`, pool: "worker" });
  for (let i = 0; i < 5000; i += 1) rememberPools(memory, [build(-1), build(i)]);
  expect(memory.pools.size).toBe(1002);
  expect(["build--1", "build-4999", "build-4500", "build-0"].map((name) => memory.pools.has(name))).toEqual([
    true,
    true,
    true,
    false,
  ]);
});
