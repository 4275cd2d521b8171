import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { redactText } from "../../core/text/redact.ts";
import { anySecret } from "../../../test/support/any-secret.ts";
import { jsonLogger } from "./json-logger.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

test("a level that is asked for every line counts at once, for loggers that were there before as well [node-json-logger-1]", () => {
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

test("nothing that looks like a secret is in a log, wherever it stood: in the message, an error, its cause, or deep in a field [node-json-logger-2]", () => {
  const lines: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
  const log = jsonLogger({ component: "test", pretty: true, redact: redactText });
  fc.assert(
    fc.property(anySecret, ({ text, secret }) => {
      lines.length = 0;
      log.child({ from: text }).warn(
        {
          error: new Error(`no answer: ${text}`, { cause: new Error(text) }),
          deep: { list: [text, 3] },
          at: new Date(0),
        },
        `it failed: ${text}`,
      );
      expect(lines.length).toBe(1);
      expect(lines.join()).not.toContain(secret);
      expect(lines.join()).toContain("1970-01-01");
    }),
    { numRuns: 100 },
  );
});
