import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { convertIgnition, servedVersions } from "./convert-ignition.ts";

const v3 = (rest: object, version = "3.5.0") => ({ ignition: { version }, ...rest });
const luks = (fields: object) => v3({ storage: { luks: [{ name: "a", device: "/dev/a", ...fields }] } });

const files = (...list: object[]) => v3({ storage: { files: list } });
const disk = (partition: object) =>
  v3({ storage: { disks: [{ device: "/dev/a", partitions: [{ number: 1, ...partition }] }] } });
const section = (fields: object) => v3({ ignition: { version: "3.5.0", ...fields } });
const remote = { source: "https://a.example.com/x" };
const headers = { ...remote, httpHeaders: [{ name: "a", value: "b" }] };
const sha256 = { ...remote, verification: { hash: `sha256-${"0".repeat(64)}` } };
const inline = { source: "data:,a" };
const gzipped = { source: "data:;base64,H4sIAAAAAAAAA0sEAEO+t+gBAAAA", compression: "gzip" };

/** Target → whether it is refused, per content: the table of what each version can say. */
const accepts = (value: unknown) =>
  servedVersions.filter((target) => convertIgnition(value, target).verdict === "converted").join(" ");
const from = (lowest: string) =>
  servedVersions.slice(servedVersions.findIndex((version) => version === lowest)).join(" ");

describe("convertIgnition", () => {
  // By the lowest version that can say it, and the field that is named below that.
  test.for([
    ["plain files", "2.2.0", "", files({ path: "/a", contents: inline })],
    ["appended texts", "2.2.0", "", files({ path: "/a", append: [inline] })],
    ["gzip contents", "2.2.0", "", files({ path: "/a", contents: gzipped })],
    ["links", "2.2.0", "", v3({ storage: { links: [{ path: "/a", target: "/b" }] } })],
    ["directories", "2.2.0", "", v3({ storage: { directories: [{ path: "/a", mode: 0o755 }] } })],
    [
      "units and drop-ins",
      "2.2.0",
      "",
      v3({
        systemd: {
          units: [
            {
              name: "a.service",
              enabled: true,
              contents: "[Install]\nWantedBy=a.target\n",
              dropins: [{ name: "a.conf", contents: "[Service]\n" }],
            },
          ],
        },
      }),
    ],
    [
      "users that should exist",
      "2.2.0",
      "",
      v3({ passwd: { users: [{ name: "joe", shouldExist: true }], groups: [{ name: "g", shouldExist: true }] } }),
    ],
    [
      "partitions that are not resized",
      "2.2.0",
      "",
      disk({ resize: false, shouldExist: true, wipePartitionEntry: false }),
    ],
    ["merged configs", "2.2.0", "", section({ config: { merge: [remote] } })],
    ["authorities", "2.2.0", "", section({ security: { tls: { certificateAuthorities: [inline] } } })],
    ["a config in place of this one", "2.2.0", "", section({ config: { replace: remote } })],
    ["partitions of a size", "3.1.0", "storage.disks[0].partitions[0]", disk({ sizeMiB: 1 })],
    ["partitions at a place", "3.1.0", "storage.disks[0].partitions[0]", disk({ startMiB: 1 })],
    [
      "partitions that should not exist",
      "3.1.0",
      "storage.disks[0].partitions[0].shouldExist",
      disk({ shouldExist: false }),
    ],
    [
      "partitions that may be wiped",
      "3.1.0",
      "storage.disks[0].partitions[0].wipePartitionEntry",
      disk({ wipePartitionEntry: true }),
    ],
    [
      "mount options",
      "3.1.0",
      "storage.filesystems[0].mountOptions",
      v3({ storage: { filesystems: [{ device: "/dev/a", format: "xfs", path: "/a", mountOptions: ["ro"] }] } }),
    ],
    ["a proxy", "3.1.0", "ignition.proxy", section({ proxy: { httpProxy: "http://p" } })],
    [
      "a compressed config",
      "3.1.0",
      "ignition.config.merge[0].compression",
      section({ config: { merge: [{ ...remote, compression: "gzip" }] } }),
    ],
    [
      "a compressed config in place of this one",
      "3.1.0",
      "ignition.config.replace.compression",
      section({ config: { replace: { ...remote, compression: "gzip" } } }),
    ],
    [
      "a compressed authority",
      "3.1.0",
      "ignition.security.tls.certificateAuthorities[0].compression",
      section({ security: { tls: { certificateAuthorities: [gzipped] } } }),
    ],
    [
      "headers for a config",
      "3.1.0",
      "ignition.config.merge[0].httpHeaders",
      section({ config: { merge: [headers] } }),
    ],
    [
      "headers for an authority",
      "3.1.0",
      "ignition.security.tls.certificateAuthorities[0].httpHeaders",
      section({ security: { tls: { certificateAuthorities: [headers] } } }),
    ],
    ["headers for a file", "3.1.0", "storage.files[0]", files({ path: "/a", contents: headers })],
    ["headers for an appended text", "3.1.0", "storage.files[0]", files({ path: "/a", append: [headers] })],
    [
      "sha256 of a file",
      "3.1.0",
      "storage.files[1].contents.verification.hash",
      files({ path: "/a", append: [inline, inline] }, { path: "/b", contents: sha256 }),
    ],
    [
      "sha256 of an appended text",
      "3.1.0",
      "storage.files[0].append[1].verification.hash",
      files({ path: "/a", append: [inline, sha256] }),
    ],
    [
      "sha256 of a config",
      "3.1.0",
      "ignition.config.merge[0].verification.hash",
      section({ config: { merge: [sha256] } }),
    ],
    [
      "files without contents",
      "3.1.0",
      "storage.files[1]",
      files({ path: "/a", contents: inline }, { path: "/b", mode: 0o600 }),
    ],
    ["LUKS", "3.2.0", "storage.luks", luks({})],
    [
      "users that should not exist",
      "3.2.0",
      "passwd.users[0].shouldExist",
      v3({ passwd: { users: [{ name: "joe", shouldExist: false }] } }),
    ],
    [
      "groups that should not exist",
      "3.2.0",
      "passwd.groups[0].shouldExist",
      v3({ passwd: { groups: [{ name: "joe", shouldExist: false }] } }),
    ],
    ["partitions that are resized", "3.2.0", "storage.disks[0].partitions[0].resize", disk({ resize: true })],
    [
      "gs sources",
      "3.2.0",
      "storage.files[0].contents.source",
      files({ path: "/a", contents: { source: "gs://b/a" } }),
    ],
    ["kernel arguments", "3.3.0", "kernelArguments.shouldExist", v3({ kernelArguments: { shouldExist: ["a"] } })],
    [
      "kernel arguments that should not exist",
      "3.3.0",
      "kernelArguments.shouldNotExist",
      v3({ kernelArguments: { shouldNotExist: ["a"] } }),
    ],
    [
      "a file system of format none",
      "3.3.0",
      "storage.filesystems[0].format",
      v3({ storage: { filesystems: [{ device: "/dev/a", format: "none" }] } }),
    ],
    ["LUKS discard", "3.4.0", "storage.luks[0].discard", luks({ discard: true })],
    ["LUKS open options", "3.4.0", "storage.luks[0].openOptions", luks({ openOptions: ["a"] })],
    [
      "Tang advertisements",
      "3.4.0",
      "storage.luks[0].clevis.tang[0].advertisement",
      luks({ clevis: { tang: [{ url: "http://t", thumbprint: "x", advertisement: "{}" }] } }),
    ],
    ["setuid files", "3.4.0", "storage.files[0].mode", files({ path: "/a", mode: 0o4755, contents: inline })],
    [
      "sticky folders",
      "3.4.0",
      "storage.directories[0].mode",
      v3({ storage: { directories: [{ path: "/a", mode: 0o1777 }] } }),
    ],
    [
      "setgid folders",
      "3.4.0",
      "storage.directories[0].mode",
      v3({ storage: { directories: [{ path: "/a", mode: 0o2755 }] } }),
    ],
    [
      "S3 by ARN",
      "3.4.0",
      "storage.files[0].contents.source",
      files({ path: "/a", contents: { source: "arn:aws:s3:::bucket/key" } }),
    ],
    [
      "S3 by ARN in a key file",
      "3.4.0",
      "storage.luks[0].keyFile.source",
      luks({ keyFile: { source: "arn:aws:s3:::bucket/key" } }),
    ],
    ["LUKS by a CEX card", "3.5.0", "storage.luks[0].cex", luks({ cex: { enabled: true } })],
    ["LUKS without one", "3.2.0", "storage.luks", luks({ cex: { enabled: false }, discard: false })],
  ] as const)("%s can be said from %s on; below that %s is named [convert-ignition-1]", ([, lowest, path, value]) => {
    expect(accepts(value)).toBe(from(lowest));
    for (const target of servedVersions.slice(
      0,
      servedVersions.findIndex((version) => version === lowest),
    )) {
      const answer = convertIgnition(value, target);
      expect(answer.verdict === "refused" ? answer.problems : []).toContainEqual(
        expect.objectContaining({ path, lowestVersion: lowest }),
      );
    }
  });

  test("spec 2 is not converted any more [convert-ignition-2]", () => {
    expect(accepts({ ignition: { version: "2.2.0" } })).toBe("");
  });

  test("everything that would be lost is named at once, each with the lowest version that keeps it [convert-ignition-3]", () => {
    const value = v3({
      kernelArguments: { shouldExist: ["a"] },
      ignition: { version: "3.5.0", proxy: { httpProxy: "http://p" } },
      storage: {
        luks: [{ name: "a", device: "/dev/a", cex: { enabled: true }, discard: true }],
        files: [{ path: "/b" }],
      },
    });
    const answer = convertIgnition(value, "2.2.0");
    expect(
      answer.verdict === "refused" ? answer.problems.map(({ path, lowestVersion }) => `${path} ${lowestVersion}`) : [],
    ).toEqual([
      "storage.luks[0].cex 3.5.0",
      "storage.luks[0].discard 3.4.0",
      "kernelArguments.shouldExist 3.3.0",
      "storage.luks 3.2.0",
      "ignition.proxy 3.1.0",
      "storage.files[0] 3.1.0",
    ]);
  });

  test("the lowest version that every loss needs keeps the whole config [convert-ignition-4]", () => {
    const pieces = [
      { kernelArguments: { shouldExist: ["a"] } },
      { storage: { luks: [{ name: "a", device: "/dev/a", discard: true }] } },
      { passwd: { users: [{ name: "joe", shouldExist: false }] } },
      { storage: { files: [{ path: "/b" }] } },
      {},
    ];
    fc.assert(
      fc.property(fc.subarray(pieces), fc.constantFrom(...servedVersions), (some, target) => {
        const value = v3(Object.assign({}, ...some) as object);
        const answer = convertIgnition(value, target);
        if (answer.verdict === "converted") return;
        const enough =
          answer.problems
            .map(({ lowestVersion = "" }) => lowestVersion)
            .sort()
            .at(-1) ?? "";
        expect(convertIgnition(value, enough).verdict).toBe("converted");
      }),
    );
  });

  test("Tang advertisements come through as they are, from 3.4 and to it [convert-ignition-5]", () => {
    const tang = [{ url: "http://t", thumbprint: "x", advertisement: '{"keys":[]}' }];
    for (const version of ["3.4.0", "3.5.0"]) {
      for (const target of ["3.4.0", "3.5.0"])
        expect(
          convertIgnition(
            v3({ storage: { luks: [{ name: "a", device: "/dev/a", clevis: { tang } }] } }, version),
            target,
          ),
        ).toMatchObject({ config: { ignition: { version: target }, storage: { luks: [{ clevis: { tang } }] } } });
    }
  });

  test("there is no way down to 3.0 or to what does not exist [convert-ignition-6]", () => {
    for (const target of ["3.0.0", "3.6.0", "2.1.0", ""])
      expect(convertIgnition(v3({}), target)).toMatchObject({
        verdict: "refused",
        problems: [{ path: "ignition.version" }],
      });
  });

  test.for(["3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"])(
    "a config of %s can be had in every version that is served [convert-ignition-7]",
    (version) => {
      expect(accepts(v3({ storage: { files: [{ path: "/a", contents: inline }] } }, version))).toBe(from("2.2.0"));
    },
  );

  test.for(["2.0.0", "2.1.0", "2.2.0", "2.3.0", "3.6.0", "3.6.0-experimental", "4.0.0", ""])(
    "a config of %s can be had in none [convert-ignition-8]",
    (version) => {
      expect(accepts(v3({}, version))).toBe("");
    },
  );

  test.for([
    {
      what: "merged configs are appended ones",
      value: section({ config: { merge: [remote], replace: remote } }),
      config: { ignition: { version: "2.2.0", config: { append: [remote], replace: remote } } },
    },
    {
      what: "timeouts and authorities stay",
      value: section({ timeouts: { httpTotal: 5 }, security: { tls: { certificateAuthorities: [inline] } } }),
      config: {
        ignition: {
          version: "2.2.0",
          timeouts: { httpTotal: 5 },
          security: { tls: { certificateAuthorities: [inline] } },
        },
      },
    },
    {
      what: "a file that says nothing of it does not overwrite",
      value: files({ path: "/a", contents: inline }),
      config: { storage: { files: [{ filesystem: "root", path: "/a", overwrite: false, contents: inline }] } },
    },
    {
      what: "folders and links lie below root",
      value: v3({
        storage: { directories: [{ path: "/a", mode: 0o700 }], links: [{ path: "/b", target: "/a", hard: false }] },
      }),
      config: {
        storage: {
          directories: [{ filesystem: "root", path: "/a", mode: 0o700 }],
          links: [{ filesystem: "root", path: "/b", target: "/a" }],
        },
      },
    },
    {
      what: "file systems without a path are counted",
      value: v3({
        storage: {
          filesystems: [
            { device: "/dev/a", format: "xfs" },
            { device: "/dev/b", format: "ext4", wipeFilesystem: true },
          ],
        },
      }),
      config: {
        storage: {
          filesystems: [
            { name: "1", mount: { device: "/dev/a", format: "xfs" } },
            { name: "2", mount: { device: "/dev/b", format: "ext4", wipeFilesystem: true } },
          ],
        },
      },
    },
    {
      what: "the file system with the longest path takes a file",
      value: v3({
        storage: {
          filesystems: [
            { device: "/dev/a", format: "xfs", path: "/var" },
            { device: "/dev/b", format: "xfs", path: "/var/lib" },
          ],
          files: [{ path: "/var/lib/x", contents: inline }],
        },
      }),
      config: { storage: { files: [{ filesystem: "/var/lib", path: "/x" }] } },
    },
    {
      what: "gzip stays",
      value: files({ path: "/a", contents: gzipped }),
      config: { storage: { files: [{ contents: gzipped }] } },
    },
    {
      what: "what is not enabled is told from what says nothing",
      value: v3({ systemd: { units: [{ name: "a.service", enabled: false, mask: false }, { name: "b.service" }] } }),
      config: { systemd: { units: [{ name: "a.service", enabled: false }, { name: "b.service" }] } },
    },
    {
      what: "users and groups keep what they are",
      value: v3({
        passwd: {
          users: [{ name: "core", uid: 0, system: true, sshAuthorizedKeys: ["k"] }],
          groups: [{ name: "g", gid: 0 }],
        },
      }),
      config: {
        passwd: {
          users: [{ name: "core", uid: 0, system: true, sshAuthorizedKeys: ["k"] }],
          groups: [{ name: "g", gid: 0 }],
        },
      },
    },
  ])("in 2.2 $what [convert-ignition-9]", ({ value, config }) => {
    expect(convertIgnition(value, "2.2.0")).toMatchObject({ verdict: "converted", config });
  });

  test("in 2.2 no and nothing are the same, and neither is written [convert-ignition-10]", () => {
    const converted = convertIgnition(
      v3({
        systemd: { units: [{ name: "a.service", mask: false }] },
        passwd: { users: [{ name: "core", noCreateHome: false, shell: "" }] },
      }),
      "2.2.0",
    );
    expect(converted.verdict === "converted" ? converted.config : converted).toEqual({
      ignition: { version: "2.2.0" },
      systemd: { units: [{ name: "a.service" }] },
      passwd: { users: [{ name: "core" }] },
    });
  });

  test("in 2.2 appended texts become entries of their own [convert-ignition-11]", () => {
    const value = v3({
      storage: {
        files: [{ path: "/a", overwrite: true, contents: { source: "data:,1" }, append: [{ source: "data:,2" }] }],
      },
    });
    expect(convertIgnition(value, "2.2.0")).toMatchObject({
      config: {
        storage: {
          files: [
            { filesystem: "root", path: "/a", overwrite: true, contents: { source: "data:,1" } },
            { filesystem: "root", path: "/a", overwrite: false, append: true, contents: { source: "data:,2" } },
          ],
        },
      },
    });
  });

  test("in 2.2 paths lie below their file system [convert-ignition-12]", () => {
    const value = v3({
      storage: {
        filesystems: [{ device: "/dev/a", format: "xfs", path: "/var" }],
        files: [
          { path: "/etc/c", contents: { source: "data:,c" } },
          { path: "/var/d", contents: { source: "data:,d" } },
        ],
      },
    });
    const converted = convertIgnition(value, "2.2.0");
    expect(converted).toMatchObject({
      config: {
        storage: {
          filesystems: [{ name: "/var", mount: { device: "/dev/a", format: "xfs" } }],
          files: [
            { filesystem: "root", path: "/etc/c" },
            { filesystem: "/var", path: "/d" },
          ],
        },
      },
    });
  });
});
