import { describe, expect, test } from "vitest";
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
      "spec.config.storage.files[2].append",
    ],
    [
      "the force file",
      member("50-force", {
        storage: { files: [{ path: "/run/machine-config-daemon-force", contents: { source: "data:," } }] },
      }),
      "spec.config.storage.files[2].path",
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

  test("a file that only its merged form makes invalid is refused with the member that gave it [render-for-pool-2]", () => {
    expect(renderForPool(inputs(member("50-bare", { storage: { files: [{ path: "/etc/b" }] } })), now())).toMatchObject(
      { verdict: "refused", refusals: [{ member: "50-bare", path: "spec.config.storage.files[1].overwrite" }] },
    );
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
});
