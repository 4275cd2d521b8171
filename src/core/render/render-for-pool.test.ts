import { describe, expect, test } from "vitest";
import { countWork } from "../../../test/support/count-work.ts";
import { heavyContents } from "../../../test/support/heavy-contents.ts";
import { labels } from "../../api/names.ts";
import { renderForPool, storageOverridesOf } from "./render-for-pool.ts";
import { renderPool } from "./render-pool.ts";
import type { MachineConfigInput } from "../config/validate-machine-config.ts";

const member = (name: string, ignition: object, spec: object = {}): MachineConfigInput => ({
  metadata: { name, labels: { [labels.role]: "worker" } },
  spec: { ...spec, config: { ignition: { version: "3.4.0" }, ...ignition } },
});
const base = member("00-worker", { storage: { files: [{ path: "/etc/a", contents: { source: "data:,a" } }] } });
const inputs = (...members: MachineConfigInput[]) => ({
  pool: { metadata: { name: "worker" } },
  members: [base, ...members],
  controllerConfig: { spec: {} },
});
const now = (...members: MachineConfigInput[]) => {
  const result = renderPool(inputs(...members));
  if (result.verdict === "refused") throw new Error(JSON.stringify(result.refusals));
  return result.config;
};
const disk = member("50-disk", { storage: { disks: [{ device: "/dev/vdb", wipeTable: true }] } });

describe("renderForPool", () => {
  test.for([
    ["a disk", disk, "spec.config.storage.disks"],
    [
      "a folder",
      member("50-dir", { storage: { directories: [{ path: "/etc/d" }] } }),
      "spec.config.storage.directories",
    ],
    [
      "a link",
      member("50-link", { storage: { links: [{ path: "/etc/l", target: "/etc/a" }] } }),
      "spec.config.storage.links",
    ],
    ["another user", member("50-user", { passwd: { users: [{ name: "joe" }] } }), "spec.config.passwd.users[0]"],
    ["a group", member("50-group", { passwd: { groups: [{ name: "g" }] } }), "spec.config.passwd.groups"],
    [
      "a file that is appended to",
      member("50-append", {
        storage: { files: [{ path: "/etc/b", overwrite: false, append: [{ source: "data:,x" }] }] },
      }),
      "spec.config.storage.files[0].append",
    ],
    [
      "the force file",
      member("50-force", {
        storage: { files: [{ path: "/run/machine-config-daemon-force", contents: { source: "data:," } }] },
      }),
      "spec.config.storage.files[0].path",
    ],
    [
      "Ignition's kernel arguments",
      member("50-karg", { kernelArguments: { shouldExist: ["a"] } }),
      "spec.config.kernelArguments",
    ],
    ["FIPS mode", member("50-fips", {}, { fips: true }), "spec.fips"],
  ] as const)("%s is refused where machines run, and the member is named [render-for-pool-1]", ([, culprit, path]) => {
    const innocent = member("40-other", { storage: { files: [{ path: "/etc/o", contents: { source: "data:,o" } }] } });
    expect(renderForPool(inputs(innocent, culprit), now())).toMatchObject({
      verdict: "refused",
      refusals: [{ code: "Irreconcilable", member: culprit.metadata.name, path }],
    });
    expect(renderForPool(inputs(innocent, culprit), undefined).verdict).toBe("rendered");
  });

  const bare = member("50-bare", { storage: { files: [{ path: "/etc/b", mode: 384 }] } });
  test.for([
    ["where machines run", true],
    ["in a new pool", false],
  ] as const)(
    "a file without contents is refused %s, with its member, field and path [render-for-pool-2]",
    ([, machinesRun]) => {
      expect(renderForPool(inputs(bare), machinesRun ? now() : undefined)).toEqual({
        verdict: "refused",
        refusals: [
          {
            code: "NoContents",
            member: "50-bare",
            path: "spec.config.storage.files[0]",
            reason: "50-bare: /etc/b has no contents in any MachineConfig of the pool",
            remedy: "give contents.source, the whole file as a data URL (data:, for an empty file)",
            involves: [{ member: "50-bare", path: "spec.config.storage.files[0]" }],
          },
        ],
      });
    },
  );

  test("a file without contents changes the mode of one that has them [render-for-pool-7]", () => {
    const contents = member("40-b", { storage: { files: [{ path: "/etc/b", contents: { source: "data:,b" } }] } });
    expect(renderForPool(inputs(contents, bare), now())).toMatchObject({ verdict: "rendered" });
  });

  const notes = (name: string, path: string) =>
    member(name, {
      storage: {
        files: [
          { path: "/etc/x", contents: { source: "data:,x" } },
          { path, contents: { source: "data:,n" } },
        ],
      },
    });
  test.for([
    ["where machines run", true],
    ["in a new pool", false],
  ] as const)(
    "a path that is a file of one member and a folder of another is refused %s, with both members and fields [render-for-pool-8]",
    ([, machinesRun]) => {
      const above = notes("70-notes", "/etc/notes");
      const below = notes("71-notes", "/etc/notes/today");
      const reason =
        "70-notes (spec.config.storage.files[1].path) makes /etc/notes a file, and 71-notes (spec.config.storage.files[1].path) puts a file below it at /etc/notes/today; no disk can hold both";
      for (const members of [
        [above, below],
        [below, above],
      ])
        expect(renderForPool(inputs(...members), machinesRun ? now() : undefined)).toMatchObject({
          verdict: "refused",
          refusals: [{ code: "PathConflict", member: "71-notes", path: "spec.config.storage.files[1].path", reason }],
        });
      expect(renderForPool(inputs(above), machinesRun ? now() : undefined).verdict).toBe("rendered");
      expect(renderForPool(inputs(below), machinesRun ? now() : undefined).verdict).toBe("rendered");
    },
  );

  test("the member that comes later is to blame, whichever of the two paths is above [render-for-pool-9]", () => {
    const result = renderForPool(inputs(notes("70-a", "/etc/n/today"), notes("71-b", "/etc/n")), now());
    expect(result).toMatchObject({ verdict: "refused", refusals: [{ member: "71-b" }] });
  });

  test("a unit and a file of two members in one place are refused with both [render-for-pool-10]", () => {
    const text = "[Unit]\n";
    const unit = member("77-unit-a", { systemd: { units: [{ name: "twice.service", contents: text }] } });
    const result = renderForPool(inputs(unit, notes("78-unit-b", "/etc/systemd/system/twice.service")), now());
    expect(result).toMatchObject({
      verdict: "refused",
      refusals: [
        {
          code: "PathConflict",
          member: "78-unit-b",
          reason:
            "78-unit-b (spec.config.storage.files[1].path) makes /etc/systemd/system/twice.service a file, and 77-unit-a (spec.config.systemd.units[0].name) makes /etc/systemd/system/twice.service, which is the same entry of the disk, the unit twice.service",
        },
      ],
    });
  });

  test.for([
    ["paths that exclude each other", (at: number) => ({ path: `/etc/n${at}/below`, contents: { source: "data:,a" } })],
    ["files without contents", (at: number) => ({ path: `/etc/m${at}`, mode: 384 })],
  ] as const)(
    "the members of thousands of %s are found in one look [render-for-pool-12]",
    async ([, file]: readonly [string, (at: number) => object]) => {
      const work = (count: number) => {
        const numbers = Array.from({ length: count }, (_, at) => at);
        const above = numbers.map((at) => ({ path: `/etc/n${at}`, contents: { source: "data:,a" } }));
        const members = [
          member("70-above", { storage: { files: above } }),
          member("71-other", { storage: { files: numbers.map(file) } }),
        ];
        return countWork(() => {
          const result = renderForPool(inputs(...members), undefined);
          expect(result.verdict === "refused" && result.refusals).toHaveLength(count);
        });
      };
      expect(await work(2000)).toBeLessThan(6 * (await work(500)));
    },
  );

  test("whose files machines cannot follow is not looked for once more for each of them [render-for-pool-13]", async () => {
    const current = now();
    const work = (count: number) => {
      const files = Array.from({ length: count }, (_, i) => ({
        path: `/etc/f${i}`,
        contents: { source: "data:,a" },
        append: [{ source: "data:,b" }],
      }));
      const bad = member("99-bad", { storage: { files } });
      return countWork(() => {
        const result = renderForPool(inputs(bad), current);
        const refusals = result.verdict === "refused" ? result.refusals : [];
        expect(refusals).toHaveLength(count);
        expect(refusals[count - 1]).toMatchObject({
          code: "Irreconcilable",
          member: "99-bad",
          path: expect.stringMatching(/^spec\.config\.storage\.files\[\d+\]\.append/),
        });
      });
    };
    expect(await work(2000)).toBeLessThan(6 * (await work(500)));
  });

  test("what the pool has already is no reason to refuse a change beside it [render-for-pool-3]", () => {
    expect(
      renderForPool(
        inputs(disk, member("60-file", { storage: { files: [{ path: "/etc/b", contents: { source: "data:,b" } }] } })),
        now(disk),
      ).verdict,
    ).toBe("rendered");
  });

  test("removing a disk is refused too, though no member is responsible [render-for-pool-4]", () => {
    const result = renderForPool(inputs(), now(disk));
    expect(result).toMatchObject({
      verdict: "refused",
      refusals: [{ code: "Irreconcilable", path: "spec.config.storage.disks" }],
    });
    expect(result.verdict === "refused" && result.refusals[0]?.member).toBe(undefined);
  });

  test("of a disk's MachineConfig that is gone, the refusal names it and what to do [render-for-pool-11]", () => {
    const source = ["00-worker", "50-disk"].map((name) => ({ kind: "MachineConfig", name }));
    const spec = { configuration: { name: now(disk).metadata.name, source } };
    const had = { ...inputs(), pool: { metadata: { name: "worker" }, spec } };
    expect(renderForPool(had, now(disk))).toEqual({
      verdict: "refused",
      refusals: [
        {
          code: "Irreconcilable",
          path: "spec.config.storage.disks",
          reason:
            "the section disks changes, which a running machine cannot follow: machines were set up with 50-disk, which the pool no longer has",
          remedy:
            "make 50-disk again as it was, or allow the change by the override Disks of MachineConfiguration/cluster: machines that run keep what they have",
        },
      ],
    });
  });

  test("an administrator may allow changes of storage [render-for-pool-5]", () => {
    const overrides = storageOverridesOf({
      spec: { irreconcilableValidationOverrides: { storage: ["Disks", "Sofas"] } } as never,
    });
    expect(overrides).toEqual(["Disks"]);
    expect(renderForPool(inputs(disk), now(), overrides).verdict).toBe("rendered");
  });

  test("what only the daemon refuses renders, as it does in the reference [render-for-pool-6]", () => {
    expect(
      renderForPool(
        inputs(
          member("50-remote", {
            storage: { files: [{ path: "/etc/b", contents: { source: "https://example.com/b" } }] },
          }),
        ),
        now(),
      ).verdict,
    ).toBe("rendered");
  });

  test("the member to blame is found without the contents of any [render-for-pool-14]", () => {
    const folders = (name: string, path: string, number?: number) =>
      member(name, {
        storage: {
          directories: [{ path }],
          ...(number === undefined ? {} : { files: [{ path: "/etc/f", contents: heavyContents(number) }] }),
        },
      });
    const heavy = Array.from({ length: 30 }, (_, i) => folders(`50-heavy-${i + 10}`, "/etc/d", i));
    const current = now(...heavy);
    const before = process.threadCpuUsage();
    expect(renderForPool(inputs(...heavy, folders("99-more", "/etc/e")), current)).toMatchObject({
      verdict: "refused",
      refusals: [{ code: "Irreconcilable", member: "99-more", path: "spec.config.storage.directories" }],
    });
    expect(process.threadCpuUsage(before).user / 1e6).toBeLessThan(1.5);
  });
});
