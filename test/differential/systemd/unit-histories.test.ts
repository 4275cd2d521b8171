import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { unitFolder, vendorUnitFolder } from "../../../src/core/config/install-links.ts";
import { rpmOstreeHost } from "../../../src/host/rpm-ostree/rpm-ostree-host.ts";
import { systemDisk } from "../../../src/host/directory/disk.ts";
import { systemClock, systemRandom } from "../../../src/ports/node/index.ts";
import type { Processes } from "../../../src/ports/process.ts";
import {
  type UnitMachine,
  enabledByVendor,
  expectNoTrace,
  unitHistories,
  vendorPreset,
  vendorUnits,
} from "../../support/unit-histories.ts";
import { runs } from "../readers/runs.ts";
import { hasSystemctl } from "./has-systemctl.ts";

const { signal } = new AbortController();
const mask = { kind: "link", target: "/dev/null" } as const;
const folder = mkdtempSync(join(tmpdir(), "mco-unit-histories-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function systemctl(root: string, words: readonly string[]) {
  const { status, stdout, stderr } = spawnSync("systemctl", [`--root=${root}`, ...words], { encoding: "utf8" });
  return { code: status ?? 1, signal: undefined, stdout, stderr };
}

/** `systemctl` with `--root`: nothing runs there, so the state of a unit is that of its file. */
function processesOf(root: string): Processes {
  return {
    spawn: () => expect.fail("nothing is spawned"),
    async run(command, args) {
      expect([command, ...args.slice(0, 2)]).toEqual(["chroot", root, "systemctl"]);
      const words = args.slice(2);
      if (words[0] === "daemon-reload") return { code: 0, signal: undefined, stdout: "", stderr: "" };
      if (words[0] !== "show") return systemctl(root, words);
      const blocks = words.slice(words.indexOf("--") + 1).map((name) => {
        const state = systemctl(root, ["is-enabled", "--", name]).stdout.trim();
        const load = state === "" ? "not-found" : state === "masked" ? "masked" : "loaded";
        return `Id=${name}\nLoadState=${load}\nActiveState=inactive\nUnitFileState=${state}\nResult=success\nReloadResult=`;
      });
      return { code: 0, signal: undefined, stdout: `${blocks.join("\n\n")}\n`, stderr: "" };
    },
  };
}

async function newMachine(): Promise<UnitMachine> {
  const root = mkdtempSync(join(folder, "root-"));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  for (const [name, text] of Object.entries(vendorUnits)) write(`${vendorUnitFolder}/${name}`, text);
  write("/usr/lib/systemd/system-preset/90.preset", vendorPreset);
  write("/etc/passwd", "root:x:0:0::/root:/bin/sh\n");
  write("/etc/group", "root:x:0:\n");
  write("/proc/sys/kernel/random/boot_id", "boot\n");
  mkdirSync(join(root, unitFolder), { recursive: true });
  mkdirSync(join(root, "/run"));
  mkdirSync(join(root, "/var/lib"), { recursive: true });
  for (const unit of enabledByVendor) expect(systemctl(root, ["enable", unit]).code).toBe(0);
  const host = await rpmOstreeHost({
    root,
    processes: processesOf(root),
    clock: systemClock,
    random: systemRandom,
    architecture: "x64",
    disk: { ...systemDisk, sync: async () => undefined },
  });
  return { host, units: () => unitsBelow(join(root, unitFolder)) };
}

/** Files and links below a folder, by their paths. */
function unitsBelow(at: string): Readonly<Record<string, string>> {
  const entries = readdirSync(at, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  return Object.fromEntries(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [
        path.slice(at.length + 1),
        entry.isSymbolicLink() ? `→ ${readlinkSync(path)}` : readFileSync(path, "utf8"),
      ];
    }),
  );
}

describe.skipIf(!hasSystemctl)("a machine whose units systemctl (systemd 252 or newer) enables", () => {
  test("keeps the mask of an instance whose template is disabled [daemon-units-5]", async () => {
    const template = vendorUnits["bare@.service"] ?? "";
    const masked = [
      { name: "bare@.service", contents: template },
      { name: "bare@i.service", mask: true },
    ];
    await expectNoTrace([masked], newMachine);
    const machine = await newMachine();
    await machine.host.files.write([{ path: `${unitFolder}/bare@x.service`, entry: mask }], signal);
    await machine.host.units.disable("bare@.service", signal);
    expect(machine.units()["bare@x.service"]).toBe("→ /dev/null");
  });

  test("has the instances of the presets alone once presets decide about a template [daemon-units-6]", async () => {
    const contents = "[Service]\nExecStart=/bin/x\n[Install]\nWantedBy=multi-user.target\nDefaultInstance=one\n";
    const tty = { name: "tty@.service", contents };
    await expectNoTrace([[{ ...tty, enabled: true }], [tty]], newMachine);
    expect((await newMachine()).units()).not.toEqual({});
  });

  test("has no trace of the units that it had before [daemon-units-3]", { timeout: 3_600_000 }, async () => {
    const property = fc.asyncProperty(unitHistories, (history) => expectNoTrace(history, newMachine));
    await fc.assert(property, runs(3, 200));
    expect(await newMachine().then(({ host }) => host.units.links(signal))).toHaveLength(enabledByVendor.length);
  });
});
