import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { hostPaths, objects } from "../api/names.ts";
import type { HostEntry } from "../host/host.ts";
import { type Content, MachineScene, machineConfigOf } from "../../test/support/machine-scene.ts";

const { signal } = new AbortController();
const service = "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n";
const unitPath = "/etc/systemd/system/a.service";
const users = {
  root: { uid: 0, gid: 0, home: "/root" },
  core: { uid: 1000, gid: 1000, home: "/home/core" },
  app: { uid: 4711, gid: 4712, home: "/var/lib/app" },
};
const dropin = (contents: string) => ({ name: "crio.service", dropins: [{ name: "10-x.conf", contents }] });
const storage = (...files: readonly object[]): Content => ({ ignition: { storage: { files } } });

/** A machine that goes from one configuration to the next. */
async function machineAfter(...contents: readonly Content[]): Promise<MachineScene> {
  const [first = {}, ...more] = contents;
  const scene = await MachineScene.make({ users });
  await scene.settledOn("rendered-0", first);
  for (const [index, content] of more.entries()) {
    await scene.config(`rendered-${index + 1}`, content);
    await scene.desire(`rendered-${index + 1}`);
    await scene.untilDone(`rendered-${index + 1}`);
  }
  return scene;
}

/** `644 0:0 text`, `→ target`, or what else is there. */
async function shown(scene: MachineScene, path: string): Promise<string> {
  const is: HostEntry | undefined = await scene.host.files.read(path, signal);
  if (is === undefined) return "nothing";
  return is.kind === "link"
    ? `→ ${is.target}`
    : `${is.mode.toString(8)} ${is.uid}:${is.gid} ${is.kind === "file" ? new TextDecoder().decode(is.contents) : "folder"}`;
}

const enablement = async (scene: MachineScene, unit: string) =>
  (await scene.host.units.state([unit], signal)).get(unit)?.enablement;

describe("a file is written", () => {
  test.for<{ title: string; file: object; is: string }>([
    { title: "without contents: empty", file: { path: "/etc/x" }, is: "644 0:0 " },
    { title: "plain", file: { path: "/etc/x", mode: 0o600, contents: { source: "data:,a%20b" } }, is: "600 0:0 a b" },
    {
      title: "base64",
      file: { path: "/etc/x", contents: { source: `data:;base64,${btoa("abc")}` } },
      is: "644 0:0 abc",
    },
    {
      title: "compressed",
      file: {
        path: "/etc/x",
        contents: { compression: "gzip", source: `data:;base64,${gzipSync("abc").toString("base64")}` },
      },
      is: "644 0:0 abc",
    },
    { title: "owned by number", file: { path: "/etc/x", user: { id: 7 }, group: { id: 8 } }, is: "644 7:8 " },
    {
      title: "owned by name",
      file: { path: "/etc/x", user: { name: "app" }, group: { name: "app" } },
      is: "644 4711:4712 ",
    },
  ])("$title [daemon-disk-7]", async ({ file, is }) => {
    const scene = await machineAfter({}, storage(file));
    expect(await shown(scene, "/etc/x")).toBe(is);
  });

  test("in the place of a link, and folders on its way are root's and 0755; the link comes back [daemon-disk-8]", async () => {
    const scene = await MachineScene.make({ users });
    await scene.host.files.write([{ path: "/etc/x", entry: { kind: "link", target: "/etc/app.conf" } }], signal);
    await scene.settledOn("rendered-0", {});
    await scene.config("rendered-1", { files: { "/etc/x": "ours", "/etc/deep/er/y": "ours" } });
    await scene.desire("rendered-1");
    await scene.untilDone("rendered-1");
    expect([await shown(scene, "/etc/x"), await shown(scene, "/etc/deep/er")]).toEqual([
      "644 0:0 ours",
      "755 0:0 folder",
    ]);
    expect(await scene.file("/etc/app.conf")).toBe("vendor");
    await scene.desire("rendered-0");
    await scene.untilDone("rendered-0");
    expect([await shown(scene, "/etc/x"), await shown(scene, "/etc/deep")]).toEqual(["→ /etc/app.conf", "nothing"]);
  });

  test("only when it differs: another spelling or order of the same is no change, and reboots nobody [daemon-disk-3]", async () => {
    const [a, b] = [
      { path: "/etc/a", mode: 0o644, contents: { source: "data:,one" } },
      { path: "/etc/b", mode: 0o644, contents: { source: "data:,two" } },
    ];
    const scene = await machineAfter(
      storage(a, b),
      storage(
        { ...b, overwrite: true },
        { ...a, contents: { compression: "gzip", source: `data:;base64,${gzipSync("one").toString("base64")}` } },
      ),
    );
    expect(scene.reboots).toEqual([]);
    expect(scene.effects.filter((effect) => effect.startsWith("files."))).toEqual(["files.remove", "files.write"]);
  });

  test("and taken away with its configuration: what the image ships comes back, what nobody had goes [daemon-disk-9]", async () => {
    const scene = await machineAfter({ files: { "/etc/app.conf": "ours", "/etc/new": "ours" } }, {});
    expect([await scene.file("/etc/app.conf"), await scene.file("/etc/new")]).toEqual(["vendor", undefined]);
  });

  test("that the new configuration has as a drop-in stays, whoever named it before [daemon-disk-10]", async () => {
    const path = "/etc/systemd/system/crio.service.d/10-x.conf";
    const scene = await machineAfter(
      { files: { [path]: "[Service]\nNice=1\n" } },
      { units: [dropin("[Service]\nNice=1\n")] },
    );
    expect(await scene.file(path)).toBe("[Service]\nNice=1\n");
  });
});

describe("a unit", () => {
  test.for<{ title: string; before: object[]; after: object[]; is: string; enabled: string }>([
    {
      title: "that is masked is a link to /dev/null, whatever text it has",
      before: [{ name: "a.service", contents: service, enabled: true }],
      after: [{ name: "a.service", mask: true, contents: service }],
      is: "→ /dev/null",
      enabled: "masked",
    },
    {
      title: "with text is a file, enabled as it says",
      before: [],
      after: [{ name: "a.service", contents: service, enabled: true }],
      is: `644 0:0 ${service}`,
      enabled: "enabled",
    },
    {
      title: "with text is a file, disabled as it says",
      before: [{ name: "a.service", contents: service, enabled: true }],
      after: [{ name: "a.service", contents: service, enabled: false }],
      is: `644 0:0 ${service}`,
      enabled: "disabled",
    },
    {
      title: "with other text is enabled by the links of the other text",
      before: [{ name: "a.service", contents: service, enabled: true }],
      after: [{ name: "a.service", contents: `${service}# 2\n`, enabled: true }],
      is: `644 0:0 ${service}# 2\n`,
      enabled: "enabled",
    },
    {
      title: "whose mask is lifted has nothing in its place",
      before: [{ name: "a.service", mask: true }],
      after: [{ name: "a.service", mask: false }],
      is: "nothing",
      enabled: "absent",
    },
    {
      title: "whose text goes while it stays named is no file any more",
      before: [{ name: "a.service", contents: service, enabled: true }],
      after: [{ name: "a.service", enabled: true }],
      is: "nothing",
      enabled: "absent",
    },
    {
      title: "that goes leaves no file and no link",
      before: [{ name: "a.service", contents: service, enabled: true }],
      after: [],
      is: "nothing",
      enabled: "absent",
    },
    {
      title: "that nobody has is not enabled, and stops nobody",
      before: [],
      after: [{ name: "a.service", enabled: true }],
      is: "nothing",
      enabled: "absent",
    },
  ])("$title [daemon-disk-6]", async ({ before, after, is, enabled }) => {
    const scene = await machineAfter({ units: before }, { units: after });
    expect([await shown(scene, unitPath), await enablement(scene, "a.service")]).toEqual([is, enabled]);
  });

  test("of the image is disabled, and enabled again as it was when nobody speaks of it [daemon-disk-12]", async () => {
    const scene = await machineAfter({}, { units: [{ name: "crio.service", enabled: false }] });
    expect([await enablement(scene, "crio.service"), await shown(scene, "/etc/systemd/system/crio.service")]).toEqual([
      "disabled",
      "nothing",
    ]);
    await scene.desire("rendered-0");
    await scene.untilDone("rendered-0");
    expect(await enablement(scene, "crio.service")).toBe("enabled");
  });

  test("that nobody has is not enabled, and stops no other [daemon-disk-13]", async () => {
    const scene = await machineAfter(
      {},
      {
        units: [
          { name: "nobody.service", enabled: true },
          { name: "a.service", contents: service, enabled: true },
        ],
      },
    );
    expect([await enablement(scene, "nobody.service"), await enablement(scene, "a.service")]).toEqual([
      "absent",
      "enabled",
    ]);
  });

  test("gets drop-ins, loses an emptied one, and its folder goes with the last [daemon-disk-11]", async () => {
    const path = "/etc/systemd/system/crio.service.d";
    const scene = await machineAfter({ units: [dropin("[Service]\nNice=1\n")] });
    expect(await shown(scene, `${path}/10-x.conf`)).toBe("644 0:0 [Service]\nNice=1\n");
    await scene.config("rendered-1", { units: [dropin("")] });
    await scene.desire("rendered-1");
    await scene.untilDone("rendered-1");
    expect([await shown(scene, `${path}/10-x.conf`), await shown(scene, path)]).toEqual(["nothing", "nothing"]);
  });
});

describe("the account core", () => {
  test("gets the keys of all listed entries in one file of its own, without a reboot [daemon-disk-4]", async () => {
    const scene = await machineAfter(
      {},
      { ignition: { passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 A", "ssh-ed25519 B"] }] } } },
    );
    expect(await shown(scene, hostPaths.sshKeys)).toBe("600 1000:1000 ssh-ed25519 A\nssh-ed25519 B\n");
    expect([await shown(scene, "/home/core/.ssh"), await shown(scene, "/home/core/.ssh/authorized_keys.d")]).toEqual([
      "700 1000:1000 folder",
      "700 1000:1000 folder",
    ]);
    expect(scene.reboots).toEqual([]);
  });

  test("loses its keys with the last entry [daemon-disk-14]", async () => {
    const scene = await machineAfter({ keys: ["ssh-ed25519 A"] }, {});
    expect(await shown(scene, hostPaths.sshKeys)).toBe("nothing");
  });

  test("gets a password and is locked again, not left open [daemon-disk-5]", async () => {
    const scene = await machineAfter(
      {},
      { ignition: { passwd: { users: [{ name: "core", passwordHash: "$6$salt$hash" }] } } },
    );
    expect(await scene.host.users.passwordHash("core", signal)).toBe("$6$salt$hash");
    expect(scene.reboots).toEqual([]);
    await scene.desire("rendered-0");
    await scene.untilDone("rendered-0");
    expect(await scene.host.users.passwordHash("core", signal)).toBeUndefined();
  });

  test("that a machine does not have is nobody's loss [daemon-disk-15]", async () => {
    const scene = await MachineScene.make({ users: { root: users.root } });
    await scene.settledOn("rendered-0", { keys: ["ssh-ed25519 A"], files: { "/etc/x": "1" } });
    expect([await shown(scene, hostPaths.sshKeys), await shown(scene, "/etc/x")]).toEqual(["nothing", "644 0:0 1"]);
  });
});

describe("what a machine says of itself", () => {
  test("after it joined: whole configurations are its own to read, and no file with differences of contents is written [daemon-disk-1]", async () => {
    const scene = await MachineScene.make();
    const one = { files: { "/etc/new.conf": "one" } };
    await scene.config("rendered-1", one);
    await scene.put("/etc/new.conf", "one");
    await scene.put(
      hostPaths.nodeAnnotations,
      JSON.stringify({
        "machineconfiguration.openshift.io/currentConfig": "rendered-1",
        "machineconfiguration.openshift.io/desiredConfig": "rendered-1",
      }),
    );
    await scene.put(hostPaths.servedConfig, JSON.stringify(machineConfigOf("rendered-1", one)));
    scene.start();
    await scene.untilDone("rendered-1");
    expect(await shown(scene, hostPaths.currentConfig)).toMatch(/^600 0:0 .*rendered-1/);
    expect(await scene.host.files.read(hostPaths.servedConfig, signal)).toMatchObject({ mode: 0o600 });
    expect(await scene.file(hostPaths.currentImage)).toBeUndefined();
    expect(await scene.file("/etc/machine-config-daemon/bootstrapconfigdiff")).toBeUndefined();
  });

  test("where its disks differ for good from its configuration, and no more once they do not [daemon-disk-2]", async () => {
    const disks = [{ device: "/dev/sda", wipeTable: true }];
    const scene = await MachineScene.make();
    await scene.put(hostPaths.servedConfig, JSON.stringify(machineConfigOf("rendered-served", {})));
    await scene.settledOn("rendered-0", {});
    const reported = async () =>
      (await scene.act(() => scene.kube.get(MachineConfigNode, { name: scene.name })))?.status?.irreconcilableChanges;
    expect(await reported()).toBeUndefined();
    await scene.act(async () => {
      const { metadata } = await scene.kube.patch(
        MachineConfiguration,
        { name: objects.machineConfiguration },
        { type: "merge", body: { spec: { irreconcilableValidationOverrides: { storage: ["Disks"] } } } },
      );
      await scene.kube.patch(
        MachineConfiguration,
        { name: objects.machineConfiguration },
        { type: "merge", body: { status: { observedGeneration: metadata.generation } } },
        { subresource: "status" },
      );
    });
    await scene.config("rendered-1", { ignition: { storage: { disks } } });
    await scene.desire("rendered-1");
    await scene.untilDone("rendered-1");
    expect(await reported()).toMatchObject([
      { fieldPath: "spec.config.storage.disks", diff: expect.stringContaining("/dev/sda") as string },
    ]);
    await scene.desire("rendered-0");
    await scene.untilDone("rendered-0");
    expect(await reported()).toEqual([]);
  });
});
