import { expect, test } from "vitest";
import { isInstallable } from "./install-links.ts";

test("the search for an install section costs no more than the length of the text [config-node-config-1]", () => {
  const blank = "\n".repeat(300_000);
  expect(isInstallable("x.service", [`[Install]\n${blank}x`])).toBe(false);
  expect(isInstallable("x.service", [`[Install]\nWantedBy=${" ".repeat(300_000)}`])).toBe(false);
  expect(isInstallable("x.service", [`${blank}[Install] \r\n  WantedBy = multi-user.target\r\n`])).toBe(true);
});
