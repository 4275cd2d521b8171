import { describe, expect, test } from "vitest";
import { irreconcilableChanges } from "./irreconcilable-changes.ts";

const config = (storage: object) => ({
  metadata: { name: "rendered" },
  spec: { config: { ignition: { version: "3.5.0" }, storage } },
});

describe("irreconcilableChanges", () => {
  test("none where the disks are as served, whatever else differs [config-irreconcilable-changes-1]", () => {
    const disks = [{ device: "/dev/sda", wipeTable: true }];
    expect(irreconcilableChanges(config({ disks }), config({ disks, files: [{ path: "/a" }] }))).toEqual([]);
    expect(irreconcilableChanges({ metadata: { name: "a" }, spec: {} }, config({}))).toEqual([]);
  });

  test("each section that differs, with the lines that do [config-irreconcilable-changes-2]", () => {
    const found = irreconcilableChanges(
      config({ disks: [{ device: "/dev/sda" }], filesystems: [{ device: "/dev/sda1", format: "xfs" }] }),
      config({
        disks: [{ device: "/dev/sdb" }],
        filesystems: [{ device: "/dev/sda1", format: "ext4" }],
        raid: [{ name: "md0", level: "raid1", devices: ["/dev/sda", "/dev/sdb"] }],
      }),
    );
    expect(found.map(({ fieldPath }) => fieldPath)).toEqual([
      "spec.config.storage.disks",
      "spec.config.storage.raid",
      "spec.config.storage.filesystems",
    ]);
    expect(found[0]?.diff.split("\n")).toEqual(
      expect.arrayContaining(['-    "device": "/dev/sda"', '+    "device": "/dev/sdb"']),
    );
    expect(found[2]?.diff).toContain('+    "format": "ext4"');
  });

  test("keys of encrypted disks are not shown, and that they differ is [config-irreconcilable-changes-3]", () => {
    const luks = (key: string) =>
      config({ luks: [{ name: "data", device: "/dev/sdb", keyFile: { source: `data:,${key}` } }] });
    const [found] = irreconcilableChanges(luks("canary-1"), luks("canary-2"));
    expect(found?.fieldPath).toBe("spec.config.storage.luks");
    expect(found?.diff).not.toContain("canary");
    expect(irreconcilableChanges(config({}), luks("canary-3"))[0]?.diff).not.toContain("canary");
  });

  test("what is longer than the API takes is cut [config-irreconcilable-changes-4]", () => {
    const disks = Array.from({ length: 300 }, (_, index) => ({ device: `/dev/disk/by-id/disk-${index}` }));
    expect(irreconcilableChanges(config({}), config({ disks }))[0]?.diff).toHaveLength(4096);
  });
});
