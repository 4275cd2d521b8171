import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type UnitFile,
  dropinsOf,
  enablingOf,
  unitFolder,
  vendorUnitFolder,
} from "../../../src/core/config/install-links.ts";
import { runs } from "../readers/runs.ts";
import { hasSystemctl } from "./has-systemctl.ts";

const names = ["a.service", "b.socket", "c@.service", "c@x.service", "d@.timer", "d@y.timer", "e.timer", "f-g.service"];
const wanters = fc.constantFrom(
  "multi-user.target",
  "t@%i.target",
  "%p.target",
  "x@.target",
  "%j-z.target",
  "bad",
  "../x.target",
  "q@r.target",
  "n%%x.target",
  "%z.target",
  '"quoted.target"',
  "'open",
  "a\\x2db.target",
  "%N.target",
);
const aliases = fc.constantFrom(
  "al.service",
  "al@.service",
  "al@x.service",
  "al@%i.service",
  "foo.socket",
  "multi-user.target.wants/a.service",
  "x@.target.wants/c@.service",
  "z.target.requires/c@x.service",
  "../evil.service",
  "%p.service",
  "a.service",
  "d@q.timer",
  "tm.timer",
);
const others = fc.constantFrom(
  "b.socket",
  "e.timer",
  "c@%i.service",
  "c@.service",
  "missing.service",
  "bad",
  "d@y.timer",
);
const gaps = fc.constantFrom(" ", "  ", "\t", " \\\n  ", " \\\n# comment\n ");
const listOf = (words: fc.Arbitrary<string>) =>
  fc
    .array(fc.tuple(gaps, words), { maxLength: 3 })
    .map((all) => all.map(([gap, word], index) => (index === 0 ? word : gap + word)).join(""));
const lines = fc.oneof(
  fc.tuple(fc.constantFrom("WantedBy=", "RequiredBy = ", "  WantedBy="), listOf(wanters)),
  fc.tuple(fc.constantFrom("Alias=", "Alias ="), listOf(aliases)),
  fc.tuple(fc.constant("Also="), listOf(others)),
  fc.tuple(fc.constant("DefaultInstance="), fc.constantFrom("q", "%p", "", "a b", "x@y")),
  fc.tuple(fc.constantFrom("; c", "", "garbage", "[X-Other]\n[Install]", "wantedby=x.target"), fc.constant("")),
);
const texts = fc
  .tuple(
    fc.constantFrom("[Unit]\nDescription=x\n", "", "# c \\\n[Service]\nExecStart=/bin/x \\\n\n"),
    fc.constantFrom("[Install]\n", "[Install]\n", "  [Install]  \n", "[install]\n", "[Install\n"),
    fc.array(lines, { maxLength: 5 }),
  )
  .map(([head, section, all]) => head + section + all.map(([key, value]) => `${key}${value}\n`).join(""));
const dropins = fc.dictionary(
  fc.constantFrom("10.conf", "20.conf", "no-dropin"),
  fc.constantFrom("[Install]\nWantedBy=drop.target\n", "[Install]\nWantedBy=\nAlso=e.timer\n", "[Service]\nNice=1\n"),
  { maxKeys: 2 },
);
const units = fc.dictionary(
  fc.constantFrom(...names),
  fc.record({ text: texts, isVendors: fc.boolean(), isMasked: fc.nat(11).map((n) => n === 0), dropins }),
);

/** Links below the folder of units, as `path → target`. */
function linksIn(root: string): readonly string[] {
  const folder = join(root, unitFolder);
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isSymbolicLink())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return `${path.slice(folder.length + 1)} → ${readlinkSync(path)}`;
    })
    .filter((link) => !/^[^/]* → \/dev\/null$/.test(link))
    .sort();
}

describe.skipIf(!hasSystemctl)("enabling a unit, as systemctl (systemd 252 or newer) does", () => {
  test("makes the links that systemctl makes [install-links-4]", { timeout: 3_600_000 }, () => {
    fc.assert(
      fc.property(units, fc.constantFrom(...names), (all, name) => {
        const root = mkdtempSync(join(tmpdir(), "mco-systemd-"));
        try {
          const files = new Map<string, UnitFile | "masked">();
          for (const folder of [unitFolder, vendorUnitFolder]) mkdirSync(join(root, folder), { recursive: true });
          const below = (name: string) => new Map(Object.entries(all[name.slice(0, -2)]?.dropins ?? {}));
          for (const [unit, { text, isVendors, isMasked, dropins: more }] of Object.entries(all)) {
            const path = `${isVendors ? vendorUnitFolder : unitFolder}/${unit}`;
            if (isMasked) symlinkSync("/dev/null", join(root, unitFolder, unit));
            else writeFileSync(join(root, path), text);
            files.set(unit, isMasked ? "masked" : { path, texts: [text] });
            mkdirSync(join(root, `${path}.d`));
            for (const [name, contents] of Object.entries(more)) writeFileSync(join(root, `${path}.d`, name), contents);
          }
          const { status } = spawnSync("systemctl", [`--root=${root}`, "enable", name]);
          const ours = enablingOf(name, (file, unit) => {
            const found = files.get(file);
            return found === undefined || found === "masked"
              ? found
              : { ...found, texts: [...found.texts, ...dropinsOf(unit, below)] };
          });
          expect(
            ours.links.map(({ path, target }) => `${path.slice(unitFolder.length + 1)} → ${target}`).sort(),
          ).toEqual(linksIn(root));
          // systemctl forgets a failure that a later success follows.
          if (status !== 0) expect(ours.problems).not.toEqual([]);
        } finally {
          rmSync(root, { recursive: true, force: true });
        }
      }),
      runs(60, 2_000),
    );
  });
});
