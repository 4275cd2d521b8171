import { expect, test } from "vitest";
import { hasInstallSection } from "./node-config.ts";

test("the search for an install section costs no more than the length of the text [config-node-config-1]", () => {
  const blank = "\n".repeat(300_000);
  expect(hasInstallSection(`[Install]\n${blank}x`)).toBe(false);
  expect(hasInstallSection(`${blank}[Install] \r\n  WantedBy = multi-user.target\r\n`)).toBe(true);
});
