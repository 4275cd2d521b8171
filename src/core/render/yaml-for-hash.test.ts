import { expect, test } from "vitest";
import { yamlForHash } from "./yaml-for-hash.ts";

test("blanks take time in proportion to their number, whatever line breaks stand before them [yaml-for-hash-1]", () => {
  const blanks = " ".repeat(60_000);
  const began = process.cpuUsage();
  const read = yamlForHash({ a: `\u0085 \u0085b${blanks}c \u0085 d` });
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1);
  // Two breaks are one, one is a blank.
  expect(read.verdict === "emitted" ? read.text.replaceAll(/ +/g, " ") : read).toBe("a: |2-\n\n b c d\n");
});
