import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { memoryHost } from "../../test/support/hosts/memory-host.ts";
import {
  type UnitMachine,
  type UnitWanted,
  applyUnits,
  configOf,
  enabledByVendor,
  expectNoTrace,
  unitHistories,
  vendorPreset,
  vendorUnits,
} from "../../test/support/unit-histories.ts";
import { systemRandom } from "../ports/node/index.ts";
import { originalsOf } from "./adopt-machine.ts";
import { documentStore } from "./machine-documents.ts";

const { signal } = new AbortController();
const image = "os@sha256:1";

const wants = (name: string) => `/etc/systemd/system/multi-user.target.wants/${name}`;

/** @param isLinked the OS enables its units by links, too. */
async function newMachine(isLinked = false): Promise<UnitMachine> {
  const units = Object.entries(vendorUnits).map(([name, text]) => [`/usr/lib/systemd/system/${name}`, text]);
  const usr = { ...Object.fromEntries(units), "/usr/lib/systemd/system-preset/90.preset": vendorPreset };
  const link = { kind: "link", target: "/usr/lib/systemd/system/on.service" } as const;
  const etc = isLinked ? { [wants("on.service")]: link } : {};
  const host = memoryHost({
    images: { [image]: { etc, usr } },
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

const drop = "[Install]\nWantedBy=drop.target\n";

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
      title: "an instance loses a drop-in that hid one of its template",
      history: [
        [
          {
            name: "own@.service",
            contents: section("WantedBy=m.target"),
            dropins: [{ name: "10.conf", contents: drop }],
          },
          { name: "own@i.service", enabled: true, dropins: [{ name: "10.conf", contents: "[Service]\nNice=1\n" }] },
        ],
        [
          {
            name: "own@.service",
            contents: section("WantedBy=m.target"),
            dropins: [{ name: "10.conf", contents: drop }],
          },
          { name: "own@i.service", enabled: true },
        ],
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
    await expectNoTrace(history, () => newMachine());
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

  test.for([
    { title: "by a link of its own", isLinked: true },
    { title: "by its presets", isLinked: false },
  ])("that was adopted gives a unit back to the OS, which enables it $title [daemon-units-7]", async ({ isLinked }) => {
    const { host, units } = await newMachine(isLinked);
    const vendor = units();
    expect(Object.keys(vendor)).toContain(wants("on.service"));
    const other = section("WantedBy=other.target");
    const { machineConfig, config } = configOf("rendered-1", [{ name: "on.service", enabled: true, contents: other }]);
    await host.units.disable("on.service", signal);
    const entry = { kind: "file", contents: new TextEncoder().encode(other), mode: 0o644, uid: 0, gid: 0 } as const;
    await host.files.write([{ path: "/etc/systemd/system/on.service", entry }], signal);
    await host.units.enable("on.service", signal);
    const previous = { config: machineConfig, pair: undefined, proven: true };
    await documentStore(host.ledger).adopt(previous, await originalsOf(host, config, signal), signal);
    expect(await applyUnits(host, "rendered-2", [])).toEqual([]);
    expect(units()).toEqual(vendor);
  });

  test("is like one that had none, whatever they were [daemon-units-2]", { timeout: 3_600_000 }, async () => {
    const isLong = process.env["MCO_LONG"] !== undefined;
    const property = fc.asyncProperty(unitHistories, (history) => expectNoTrace(history, () => newMachine()));
    await fc.assert(property, { numRuns: isLong ? 2_000 : 60 });
  });
});
