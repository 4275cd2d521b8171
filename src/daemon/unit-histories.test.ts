import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { memoryHost } from "../../test/support/hosts/memory-host.ts";
import {
  type UnitMachine,
  type UnitWanted,
  applyUnits,
  enabledByVendor,
  expectNoTrace,
  unitHistories,
  vendorPreset,
  vendorUnits,
} from "../../test/support/unit-histories.ts";
import { systemRandom } from "../ports/node/index.ts";

const { signal } = new AbortController();
const image = "os@sha256:1";

async function newMachine(): Promise<UnitMachine> {
  const units = Object.entries(vendorUnits).map(([name, text]) => [`/usr/lib/systemd/system/${name}`, text]);
  const usr = { ...Object.fromEntries(units), "/usr/lib/systemd/system-preset/90.preset": vendorPreset };
  const host = memoryHost({
    images: { [image]: { etc: {}, usr } },
    image,
    random: systemRandom,
    onReboot: () => undefined,
  });
  for (const unit of enabledByVendor) await host.units.enable(unit, signal);
  await host.boot({ orderly: true });
  return {
    host,
    units: () => Object.fromEntries([...host.snapshot()].filter(([path]) => path.startsWith("/etc/systemd/"))),
  };
}

const section = (lines: string) => `[Service]\nExecStart=/bin/x\n[Install]\n${lines}\n`;

describe("a machine that had other units before", () => {
  test.for<{ readonly title: string; readonly history: readonly (readonly UnitWanted[])[] }>([
    {
      title: "a unit of the OS is masked, enabled, and left alone",
      history: [[{ name: "on.service", mask: true }], [{ name: "on.service", enabled: true }], []],
    },
    {
      title: "a unit of the OS that is disabled is masked, then enabled",
      history: [[{ name: "off.service", mask: true }], [{ name: "off.service", enabled: true }], []],
    },
    {
      title: "a unit of the OS gets another text, is masked, and left alone",
      history: [
        [{ name: "on.service", enabled: true, contents: section("WantedBy=x.target") }],
        [{ name: "on.service", mask: true }],
      ],
    },
    {
      title: "an instance whose template comes with it",
      history: [
        [
          { name: "own@.service", enabled: true, contents: section("WantedBy=m.target\nDefaultInstance=one") },
          { name: "own@i.service", enabled: true },
        ],
      ],
    },
  ])("is like one that had none: $title [daemon-units-1]", async ({ history }) => {
    await expectNoTrace(history, newMachine);
  });

  test("enables nothing that systemctl refuses, and has nothing left to do [daemon-units-4]", async () => {
    const { host, units } = await newMachine();
    const before = units();
    const plain = section("WantedBy=multi-user.target");
    const wanted = [
      { name: "plain@.service", enabled: true, contents: plain },
      { name: "masked@.service", mask: true },
      { name: "masked@a.service", mask: false, enabled: true },
      { name: "nothing-there.service", enabled: true },
      { name: "bare@.service", enabled: true },
    ];
    expect(await applyUnits(host, "rendered-1", wanted)).toEqual([]);
    const has = units();
    const added = Object.keys(has).filter((path) => !(path in before));
    expect(added.sort()).toEqual(["/etc/systemd/system/masked@.service", "/etc/systemd/system/plain@.service"]);
  });

  test("is like one that had none, whatever they were [daemon-units-2]", { timeout: 3_600_000 }, async () => {
    const isLong = process.env["MCO_LONG"] !== undefined;
    const property = fc.asyncProperty(unitHistories, (history) => expectNoTrace(history, newMachine));
    await fc.assert(property, { numRuns: isLong ? 2_000 : 60 });
  });
});
