import { describe, expect, test } from "vitest";
import { labels } from "../../api/names.ts";
import { type BlameQuestion, blame } from "./blame.ts";
import { renderPool } from "../render/render-pool.ts";
import type { MachineConfigInput } from "../config/validate-machine-config.ts";

const member = (name: string, ignition: object, spec: object = {}): MachineConfigInput => ({
  metadata: { name, labels: { [labels.role]: "worker" } },
  spec: { ...spec, config: { ignition: { version: "3.4.0" }, ...ignition } },
});
const members = [
  member(
    "00-worker",
    {
      storage: {
        files: [
          { path: "/etc/a", mode: 420, contents: { source: "data:,a" } },
          { path: "/etc/same", contents: { source: "data:,s" } },
        ],
      },
      systemd: { units: [{ name: "a.service", enabled: true, contents: "[Unit]\n" }] },
    },
    { osImageURL: "one", kernelArguments: ["quiet console=tty0"] },
  ),
  member(
    "99-worker",
    {
      storage: {
        files: [
          { path: "/etc/a", contents: { source: "data:,b" } },
          { path: "/etc/same", contents: { source: "data:;base64,cw==" } },
        ],
      },
      systemd: { units: [{ name: "a.service", dropins: [{ name: "x.conf", contents: "[Unit]\n" }] }] },
      passwd: { users: [{ name: "core", sshAuthorizedKeys: ["key"] }] },
    },
    { osImageURL: "two", kernelArguments: ["nosmt"], kernelType: "realtime" },
  ),
];
const result = renderPool({
  pool: { metadata: { name: "worker" } },
  members,
  controllerConfig: { spec: { baseOSContainerImage: "base" } },
});
if (result.verdict === "refused") throw new Error(JSON.stringify(result));
const asked = (question: BlameQuestion) => blame(result, question);

describe("blame", () => {
  test("a path names whose contents and whose mode stand, and whose do not", () => {
    expect(asked({ about: "path", path: "/etc/a" })).toMatchObject([
      {
        kind: "file",
        from: "99-worker",
        contributors: ["00-worker", "99-worker"],
        fields: { contents: "99-worker", mode: "00-worker" },
        overrode: [{ member: "00-worker", field: "contents", by: "99-worker" }],
      },
    ]);
  });
  test("the same contents in another spelling override nothing", () => {
    expect(asked({ about: "path", path: "/etc/same" })).toMatchObject([{ overrode: [] }]);
    expect(result.warnings.filter(({ code }) => code === "Conflict").map(({ reason }) => reason)).toEqual([
      "99-worker replaces the contents that 00-worker gives /etc/a",
    ]);
  });
  test.for([
    [
      "the path of a unit's file",
      { about: "path", path: "/etc/systemd/system/a.service" },
      [["unit", "a.service", "99-worker"]],
    ],
    [
      "the path of a drop-in",
      { about: "path", path: "/etc/systemd/system/a.service.d/x.conf" },
      [["dropin", "a.service/x.conf", "99-worker"]],
    ],
    [
      "the file of SSH keys",
      { about: "path", path: "/home/core/.ssh/authorized_keys.d/ignition" },
      [["sshKey", "core: key", "99-worker"]],
    ],
    [
      "a unit with its drop-ins",
      { about: "unit", name: "a.service" },
      [
        ["unit", "a.service", "99-worker"],
        ["dropin", "a.service/x.conf", "99-worker"],
      ],
    ],
    [
      "a user",
      { about: "user", name: "core" },
      [
        ["user", "core", "99-worker"],
        ["sshKey", "core: key", "99-worker"],
      ],
    ],
    ["a kernel argument", { about: "kernelArgument", argument: "nosmt" }, [["kernelArgument", "nosmt", "99-worker"]]],
    [
      "one of several kernel arguments in one entry, by its name",
      { about: "kernelArgument", argument: "console" },
      [["kernelArgument", "quiet console=tty0", "00-worker"]],
    ],
    ["a field that no member sets", { about: "field", field: "fips" }, [["fips", "false", "cluster"]]],
    ["what the config does not say", { about: "path", path: "/etc/b" }, []],
  ] as const)("%s", ([, question, entries]) => {
    expect(asked(question).map(({ kind, name, from }) => [kind, name, from])).toEqual(entries);
  });
  test("a field names what it overrode", () => {
    expect(asked({ about: "field", field: "osImageURL" })).toMatchObject([
      { name: "two", from: "99-worker", overrode: [{ member: "00-worker", field: "osImageURL one", by: "99-worker" }] },
    ]);
  });
});
