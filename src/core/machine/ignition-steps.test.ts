import { describe, expect, test } from "vitest";
import type { IgnitionConfig } from "../../ignition/index.ts";
import { ignitionSteps } from "./ignition-steps.ts";

const steps = (config: Omit<IgnitionConfig, "ignition">, resolve = (path: string) => path): readonly string[] => {
  const planned = ignitionSteps({ ignition: { version: "3.5.0" }, ...config }, resolve);
  return planned.verdict === "refused"
    ? [planned.reason]
    : planned.steps.map((step) =>
        "path" in step ? `${step.do} ${step.path}` : step.do === "preset" ? step.line : step.do,
      );
};

describe("ignitionSteps", () => {
  test("accounts come first, then shallow paths, then deep ones, then hard links", () => {
    expect(
      steps({
        passwd: { users: [{ name: "core" }] },
        storage: {
          files: [{ path: "/a/b/c" }, { path: "/x" }],
          directories: [{ path: "/a/b" }],
          links: [
            { path: "/h", target: "/a/b/c", hard: true },
            { path: "/a/l", target: "b" },
          ],
        },
      }),
    ).toEqual(["accounts", "file /x", "folder /a/b", "link /a/l", "file /a/b/c", "link /h"]);
  });

  test("depth is counted where a path leads to, not where it is written", () => {
    expect(
      steps({ storage: { files: [{ path: "/home/f" }, { path: "/a/b" }] } }, (path) =>
        path.replace("/home", "/var/home"),
      ),
    ).toEqual(["file /a/b", "file /var/home/f"]);
  });

  test("two names of one place are refused", () => {
    expect(
      steps({ storage: { files: [{ path: "/home/f" }], directories: [{ path: "/var/home/f" }] } }, (path) =>
        path.replace(/^\/home/, "/var/home"),
      ),
    ).toEqual(["/home/f and /var/home/f are the same place: /var/home/f"]);
  });

  test.for([
    { part: "disks", storage: { disks: [{ device: "/dev/sda" }] } },
    { part: "raid", storage: { raid: [{ name: "r" }] } },
    { part: "luks", storage: { luks: [{ name: "l" }] } },
    { part: "filesystems", storage: { filesystems: [{ device: "/dev/sda1" }] } },
  ])("a machine in a folder has no $part", ({ part, storage }) => {
    expect(steps({ storage })).toEqual([
      `this machine is a folder and has no disks: storage.${part} cannot be carried out`,
    ]);
  });

  test("units: drop-ins, contents, masks; presets last, instances of one template in one line", () => {
    expect(
      steps({
        systemd: {
          units: [
            { name: "b@2.service", enabled: true },
            {
              name: "a.service",
              contents: "[Unit]",
              enabled: false,
              dropins: [{ name: "1.conf", contents: "" }, { name: "2.conf" }],
            },
            { name: "b@1.service", enabled: true },
            { name: "m.service", mask: true },
            { name: "n.service", mask: false, contents: "" },
          ],
        },
      }),
    ).toEqual([
      "unitFile /etc/systemd/system/a.service.d/1.conf",
      "unitFile /etc/systemd/system/a.service",
      "mask /etc/systemd/system/m.service",
      "unmask /etc/systemd/system/n.service",
      "disable a.service",
      "enable b@.service 2 1",
    ]);
  });
});
