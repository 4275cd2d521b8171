import { expect, test } from "vitest";
import { countWork } from "../../../test/support/count-work.ts";
import { validateMachineConfig } from "./validate-machine-config.ts";

const install = (lines: string) => `[Service]\nExecStart=/bin/true\n[Install]\n${lines}\n`;
const findings = (units: readonly object[]) =>
  validateMachineConfig(
    { metadata: { name: "50-units" }, spec: { config: { ignition: { version: "3.4.0" }, systemd: { units } } } },
    { role: "worker" },
  ).map(({ severity, path, reason }) => `${severity} ${path} ${reason}`);

test("a unit that systemctl cannot enable is a warning [validate-units-1]", () => {
  const template = (lines: string) => ({ name: "p@.service", enabled: true, contents: install(lines) });
  expect(findings([template("WantedBy=m.target")])).toEqual([
    "warning spec.config.systemd.units[0].enabled systemctl cannot: p@.service: WantedBy=m.target needs an instance: the template has no DefaultInstance",
  ]);
  expect(findings([template("WantedBy=m.target\nDefaultInstance=a")])).toEqual([]);
  expect(findings([{ ...template("WantedBy=m.target"), enabled: false }])).toEqual([]);
  // The machine may have these units.
  expect(
    findings([
      { name: "vendors.service", enabled: true },
      { name: "vendors@a.service", enabled: true },
      { name: "a.service", enabled: true, contents: install("WantedBy=m.target\nAlso=vendors.socket") },
    ]),
  ).toEqual([]);
});

test("an instance of a masked template is masked, whatever its own entry says [validate-units-2]", () => {
  const masked = { name: "p@.service", mask: true };
  const stays = (field: string) =>
    `warning spec.config.systemd.units[1].${field} p@a.service stays masked: it has no contents of its own, and its template p@.service is masked`;
  expect(findings([masked, { name: "p@a.service", enabled: true }])).toEqual([stays("enabled")]);
  expect(findings([masked, { name: "p@a.service", mask: false }])).toEqual([stays("mask")]);
  expect(findings([masked, { name: "p@a.service", enabled: false }])).toEqual([]);
  const own = { name: "p@a.service", enabled: true, contents: install("WantedBy=m.target") };
  expect(findings([masked, own])).toEqual([]);
});

test("units are judged in time in proportion to their number [validate-units-3]", async () => {
  const unitsOf = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ name: `u${i}.service`, enabled: true, contents: install("Alias=a") }));
  expect(findings(unitsOf(2))).toHaveLength(2);
  const work = (count: number) => {
    const units = unitsOf(count);
    return countWork(() => findings(units));
  };
  expect(await work(400)).toBeLessThan(3 * (await work(200)));
});
