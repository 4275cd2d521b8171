import { describe, expect, test } from "vitest";
import { heavyContents } from "../../../test/support/heavy-contents.ts";
import { irreconcilableBetween, reconcile } from "./reconcilable.ts";
import { validateMachineConfig } from "./validate-machine-config.ts";

const config = (ignition: object, spec: object = {}) => ({
  metadata: { name: "rendered" },
  spec: { ...spec, config: { ignition: { version: "3.5.0" }, ...ignition } },
});
const user = (...users: object[]) => config({ passwd: { users } });
const storage = (fields: object) => config({ storage: fields });
const none = config({});
const core = { name: "core", sshAuthorizedKeys: ["a"] };

describe("reconcile", () => {
  test.for([
    ["nothing changes", none, none, []],
    ["files come and go", storage({ files: [{ path: "/a" }] }), storage({ files: [{ path: "/b" }] }), []],
    ["keys change", user(core), user({ name: "core", sshAuthorizedKeys: ["b"] }), []],
    ["core goes altogether", user(core), none, []],
    ["core gets a password only", none, user({ name: "core", passwordHash: "h" }), []],
    ["core loses its keys", user(core), user({ name: "core", sshAuthorizedKeys: [] }), ["spec.config.passwd.users[0]"]],
    ["another user comes", user(core), user(core, { name: "joe" }), ["spec.config.passwd.users[1]"]],
    ["core gets a shell", user(core), user({ ...core, shell: "/bin/zsh" }), ["spec.config.passwd.users[0].shell"]],
    ["groups change", none, config({ passwd: { groups: [{ name: "g" }] } }), ["spec.config.passwd.groups"]],
    [
      "Ignition's own kernel arguments change",
      none,
      config({ kernelArguments: { shouldExist: ["a"] } }),
      ["spec.config.kernelArguments"],
    ],
    ["disks change", none, storage({ disks: [{ device: "/dev/a" }] }), ["spec.config.storage.disks"]],
    ["folders change", none, storage({ directories: [{ path: "/a" }] }), ["spec.config.storage.directories"]],
    ["links come", none, storage({ links: [{ path: "/a", target: "/b" }] }), ["spec.config.storage.links"]],
    ["links go", storage({ links: [{ path: "/a", target: "/b" }] }), none, []],
    [
      "a file is appended to",
      none,
      storage({ files: [{ path: "/a", append: [{ source: "data:,a" }] }] }),
      ["spec.config.storage.files[0].append"],
    ],
    [
      "the force file is written",
      none,
      storage({ files: [{ path: "/run/machine-config-daemon-force" }] }),
      ["spec.config.storage.files[0].path"],
    ],
    ["FIPS changes", none, config({}, { fips: true }), ["spec.fips"]],
    ["the new config is invalid", none, storage({ files: [{ path: "a" }] }), ["spec.config.storage.files[0].path"]],
    [
      "several things change",
      none,
      storage({ disks: [{ device: "/dev/a" }], directories: [{ path: "/a" }] }),
      ["spec.config.storage.disks", "spec.config.storage.directories"],
    ],
  ] as const)("%s [config-reconcilable-1]", ([, from, to, fields]) => {
    const found = reconcile(from, to);
    expect(found.map(({ field }) => field)).toEqual(fields);
    expect(found.every(({ reason, remedy, rule }) => reason !== "" && remedy !== "" && rule === "reference")).toBe(
      true,
    );
  });

  test("what the reference would fail on after the drain is refused before it [config-reconcilable-5]", () => {
    const to = storage({
      files: [
        { path: "/a", contents: { source: "https://example.com/a" } },
        { path: "/b", contents: { source: "data:,x", compression: "gzip" } },
      ],
      luks: [{ name: "l", device: "/dev/l" }],
    });
    expect(reconcile(none, to).map(({ field, rule }) => [field, rule])).toEqual([
      ["spec.config.storage.files[0].contents", "ours"],
      ["spec.config.storage.files[1].contents", "ours"],
      ["spec.config.storage.luks", "ours"],
    ]);
  });

  test("an administrator can allow changes of storage [config-reconcilable-3]", () => {
    expect(reconcile(none, storage({ disks: [{ device: "/dev/a" }] }), { overrides: ["Disks"] })).toEqual([]);
    expect(reconcile(none, storage({ disks: [{ device: "/dev/a" }] }), { overrides: ["Raid"] })).toHaveLength(1);
  });

  test("a machine with another FIPS mode is not brought to a config [config-reconcilable-4]", () => {
    expect(reconcile(none, none, { machineFips: true })).toMatchObject([{ field: "spec.fips" }]);
    expect(reconcile(none, none, { machineFips: false })).toEqual([]);
  });

  test("an old config that later rules refuse does not stand in the way [config-reconcilable-2]", () => {
    expect(reconcile(storage({ files: [{ path: "/a", mode: 0o4755 }] }), none)).toEqual([]);
  });
});

describe("validateMachineConfig", () => {
  const labelled = (ignition: object | undefined, spec: object = {}) => ({
    metadata: { name: "a", labels: { "machineconfiguration.openshift.io/role": "worker" } },
    spec: { ...spec, ...(ignition === undefined ? {} : { config: { ignition: { version: "3.5.0" }, ...ignition } }) },
  });
  test.for([
    ["a good one", labelled({}), []],
    ["without config", labelled(undefined), []],
    ["unlabelled", { metadata: { name: "a" }, spec: {} }, ["warning metadata.labels"]],
    ["a null config", { ...labelled(undefined), spec: { config: null } } as never, []],
    ["an empty config", { ...labelled(undefined), spec: { config: {} } }, ["error spec.config.ignition.version"]],
    ["a bad kernel type", labelled({}, { kernelType: "x" }), ["error spec.kernelType"]],
    ["a bad extension", labelled({}, { extensions: ["x"] }), ["error spec.extensions[0]"]],
    [
      "a remote file",
      labelled({ storage: { files: [{ path: "/a", contents: { source: "http://x" } }] } }),
      ["warning spec.config.storage.files[0].contents"],
    ],
    [
      "NUL in a path",
      labelled({ storage: { files: [{ path: "/a\0b" }] } }),
      ["warning spec.config.storage.files[0].path"],
    ],
    [
      "a unit that climbs",
      labelled({ systemd: { units: [{ name: "../../etc/a.service" }] } }),
      ["warning spec.config.systemd.units[0].name"],
    ],
    [
      "a key with a line break",
      labelled({ passwd: { users: [{ name: "core", sshAuthorizedKeys: ["a\nb"] }] } }),
      ["warning spec.config.passwd.users[0].sshAuthorizedKeys[0]"],
    ],
  ] as const)("%s", ([, machineConfig, problems]) => {
    expect(validateMachineConfig(machineConfig).map(({ path, severity }) => `${severity} ${path}`)).toEqual(problems);
  });
});

describe("irreconcilableBetween", () => {
  const withDisk = (name: string, device?: string) => ({
    metadata: { name },
    spec: {
      config: {
        ignition: { version: "3.4.0" },
        ...(device === undefined ? {} : { storage: { disks: [{ device, wipeTable: true }] } }),
      },
    },
  });
  const [plain, disk] = [withDisk("a"), withDisk("b", "/dev/vdb")];
  test.for([
    {
      title: "a changed disk cannot be followed",
      from: plain,
      to: disk,
      overrides: [],
      fields: ["spec.config.storage.disks"],
    },
    { title: "what the administrator allows is no finding", from: plain, to: disk, overrides: ["Disks"], fields: [] },
    {
      title: "another override allows nothing of it",
      from: plain,
      to: disk,
      overrides: ["Raid"],
      fields: ["spec.config.storage.disks"],
    },
    { title: "the same configuration can be followed", from: disk, to: disk, overrides: [], fields: [] },
    {
      title: "of a configuration that is not known nothing is said",
      from: undefined,
      to: disk,
      overrides: [],
      fields: [],
    },
    { title: "nor of a target that is not known", from: plain, to: undefined, overrides: [], fields: [] },
  ] as const)("$title", ({ from, to, overrides, fields }) => {
    // Twice: the second answer is remembered.
    for (const _ of [1, 2])
      expect(irreconcilableBetween(from, to, overrides).map(({ field }) => field)).toEqual(fields);
  });
});

test("what keeps a machine from a config is found without its contents being decoded again [config-reconcilable-6]", () => {
  const from = config({ storage: { directories: [{ path: "/etc/d" }] } });
  const files = [1, 2].map((number) => ({ path: `/etc/f${number}`, contents: heavyContents(number) }));
  // Each change of a kernel argument makes the whole config again.
  const changed = Array.from({ length: 20 }, (_, i) =>
    structuredClone(config({ storage: { files } }, { kernelArguments: [`a=${i}`] })),
  );
  const before = process.threadCpuUsage();
  for (const to of changed)
    expect(reconcile(from, to).map(({ field }) => field)).toEqual(["spec.config.storage.directories"]);
  expect(process.threadCpuUsage(before).user / 1e6).toBeLessThan(2);
});
