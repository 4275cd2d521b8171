import { afterEach, expect, test, vi } from "vitest";
import { jsonLogger } from "./json-logger.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

test("a level that is asked for every line counts at once, for loggers that were there before as well", () => {
  const lines: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
  let level: "info" | "debug" = "info";
  const log = jsonLogger({ component: "test", level: () => level, pretty: true });
  const child = log.child({ key: "a" });
  child.debug({}, "one");
  child.info({}, "two");
  level = "debug";
  child.debug({}, "three");
  level = "info";
  log.debug({}, "four");
  log.error({}, "five");
  expect(lines.map((line) => /test: (\w+)/.exec(line)?.[1])).toEqual(["two", "three", "five"]);
});
