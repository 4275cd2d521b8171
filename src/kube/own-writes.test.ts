import { expect, test } from "vitest";
import { OwnWrites, isNewerVersion } from "./own-writes.ts";

test("versions are compared as numbers; any other one counts as newer [own-writes-1]", () => {
  expect(isNewerVersion("10", "9")).toBe(true);
  expect(isNewerVersion("9", "10")).toBe(false);
  expect(isNewerVersion("9007199254740993", "9007199254740992")).toBe(true);
  expect(isNewerVersion("7", "7")).toBe(false);
  expect(isNewerVersion("x", "7")).toBe(true);
  expect(isNewerVersion("7", undefined)).toBe(false);
});

test("the memory of an object ends when a cache has caught up, and is bounded [own-writes-2]", () => {
  const writes = new OwnWrites();
  writes.begin("/a");
  expect(writes.isBehind("/a", "9")).toBe(true);
  writes.see("/a", "5");
  expect(writes.isBehind("/a", "4")).toBe(true);
  expect(writes.isBehind("/a", "5")).toBe(false);
  expect(writes.size).toBe(0);
  writes.begin("/a");
  writes.see("/a", undefined);
  expect(writes.size).toBe(0);
  for (let index = 0; index < 30_000; index += 1) writes.see(`/${index}`, "1");
  expect(writes.size).toBe(20_000);
  expect(writes.isBehind("/29999", "0")).toBe(true);
});
