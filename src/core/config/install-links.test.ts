import { expect, test } from "vitest";
import { installLinks } from "./install-links.ts";

test("a unit is linked by the names that its section gives, with specifiers", () => {
  const unit = "[Unit]\nAlias=no.service\n[Install]\nWantedBy=multi-user.target a@%i.service\nAlias=b\\x2dc.service";
  expect(installLinks("x.service", unit).map(({ path }) => path)).toEqual([
    "/etc/systemd/system/multi-user.target.wants/x.service",
    "/etc/systemd/system/a@%i.service.wants/x.service",
    "/etc/systemd/system/b\\x2dc.service",
  ]);
});

test("no link leaves the folder of units [install-links-1]", () => {
  const unit = "[Install]\nAlias=../../cron.d/x /etc/passwd .. .\nWantedBy=../../../tmp/a\nRequiredBy=a/b";
  expect(installLinks("x.service", unit)).toEqual([]);
});
