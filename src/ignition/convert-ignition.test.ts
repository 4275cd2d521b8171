import { describe, expect, test } from "vitest";
import { convertIgnition, servedVersions } from "./convert-ignition.ts";

const v3 = (rest: object, version = "3.5.0") => ({ ignition: { version }, ...rest });
const luks = (fields: object) => v3({ storage: { luks: [{ name: "a", device: "/dev/a", ...fields }] } });

/** Target → whether it is refused, per content: the table of what each version can say. */
const accepts = (value: unknown) => servedVersions.filter((target) => convertIgnition(value, target).verdict === "converted").join(" ");

describe("convertIgnition", () => {
  test.for([
    ["plain files", v3({ storage: { files: [{ path: "/a", contents: { source: "data:,a" } }] } }), "2.2.0 3.1.0 3.2.0 3.3.0 3.4.0 3.5.0"],
    ["LUKS discard", luks({ discard: true }), "3.4.0 3.5.0"],
    ["LUKS", luks({}), "3.2.0 3.3.0 3.4.0 3.5.0"],
    ["setgid folders", v3({ storage: { directories: [{ path: "/a", mode: 0o2755 }] } }), "3.4.0 3.5.0"],
    ["S3 by ARN", v3({ storage: { files: [{ path: "/a", contents: { source: "arn:aws:s3:::bucket/key" } }] } }), "3.4.0 3.5.0"],
    ["kernel arguments", v3({ kernelArguments: { shouldExist: ["a"] } }), "3.3.0 3.4.0 3.5.0"],
    ["users that should not exist", v3({ passwd: { users: [{ name: "joe", shouldExist: false }] } }), "3.2.0 3.3.0 3.4.0 3.5.0"],
    ["partitions in MiB", v3({ storage: { disks: [{ device: "/dev/a", partitions: [{ number: 1, sizeMiB: 1 }] }] } }), "3.1.0 3.2.0 3.3.0 3.4.0 3.5.0"],
    ["a proxy", v3({ ignition: { version: "3.5.0", proxy: { httpProxy: "http://p" } } }), "3.1.0 3.2.0 3.3.0 3.4.0 3.5.0"],
    ["gs sources", v3({ storage: { files: [{ path: "/a", contents: { source: "gs://b/a" } }] } }), "3.2.0 3.3.0 3.4.0 3.5.0"],
    ["a file system of format none", v3({ storage: { filesystems: [{ device: "/dev/a", format: "none" }] } }), "3.3.0 3.4.0 3.5.0"],
    ["spec 2", { ignition: { version: "2.2.0" } }, ""],
  ] as const)("%s can be served to the versions that know them", ([, value, versions]) => {
    expect(accepts(value)).toBe(versions);
  });

  test("there is no way down to 3.0 or to what does not exist", () => {
    for (const target of ["3.0.0", "3.6.0", "2.1.0", ""]) expect(convertIgnition(v3({}), target)).toMatchObject({ verdict: "refused", problems: [{ path: "ignition.version" }] });
  });

  test("in 2.2 appended texts become entries of their own", () => {
    const value = v3({ storage: { files: [{ path: "/a", overwrite: true, contents: { source: "data:,1" }, append: [{ source: "data:,2" }] }] } });
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

  test("in 2.2 paths lie below their file system", () => {
    const value = v3({ storage: { filesystems: [{ device: "/dev/a", format: "xfs", path: "/var" }], files: [{ path: "/var/a/b" }, { path: "/etc/c", contents: { source: "data:,c" } }, { path: "/var/d", contents: { source: "data:,d" } }] } });
    const converted = convertIgnition(value, "2.2.0");
    expect(converted).toMatchObject({ config: { storage: { filesystems: [{ name: "/var", mount: { device: "/dev/a", format: "xfs" } }], files: [{ filesystem: "root", path: "/etc/c" }, { filesystem: "/var", path: "/d" }] } } });
  });

  test("what cannot be said names its field", () => {
    expect(convertIgnition(luks({ discard: true }), "3.2.0")).toMatchObject({ verdict: "refused", problems: [{ path: "storage.luks[0].discard" }] });
  });
});
