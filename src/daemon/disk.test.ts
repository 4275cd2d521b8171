import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { hostPaths, objects } from "../api/names.ts";
import type { HostEntry } from "../host/host.ts";
import { type Content, MachineHarness, machineConfigOf } from "../../test/support/machine-harness.ts";

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
async function machineAfter(...contents: readonly Content[]): Promise<MachineHarness> {
  const [first = {}, ...more] = contents;
  const harness = await MachineHarness.make({ users });
  await harness.updatedTo("rendered-0", first);
  for (const [index, content] of more.entries()) {
    await harness.config(`rendered-${index + 1}`, content);
    await harness.desire(`rendered-${index + 1}`);
    await harness.untilDone(`rendered-${index + 1}`);
  }
  return harness;
}

/** `644 0:0 text`, `→ target`, or what else is there. */
async function shown(harness: MachineHarness, path: string): Promise<string> {
  const is: HostEntry | undefined = await harness.host.files.read(path, signal);
  if (is === undefined) return "nothing";
  return is.kind === "link"
    ? `→ ${is.target}`
    : `${is.mode.toString(8)} ${is.uid}:${is.gid} ${is.kind === "file" ? new TextDecoder().decode(is.contents) : "folder"}`;
}

const enablement = async (harness: MachineHarness, unit: string) =>
  (await harness.host.units.state([unit], signal)).get(unit)?.enablement;

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
    const harness = await machineAfter({}, storage(file));
    expect(await shown(harness, "/etc/x")).toBe(is);
  });

  test("in place of a link, with parent folders of root and 0755; its removal restores the link [daemon-disk-8]", async () => {
    const harness = await MachineHarness.make({ users });
    await harness.host.files.write([{ path: "/etc/x", entry: { kind: "link", target: "/etc/app.conf" } }], signal);
    await harness.updatedTo("rendered-0", {});
    await harness.config("rendered-1", { files: { "/etc/x": "ours", "/etc/deep/er/y": "ours" } });
    await harness.desire("rendered-1");
    await harness.untilDone("rendered-1");
    expect([await shown(harness, "/etc/x"), await shown(harness, "/etc/deep/er")]).toEqual([
      "644 0:0 ours",
      "755 0:0 folder",
    ]);
    expect(await harness.file("/etc/app.conf")).toBe("vendor");
    await harness.desire("rendered-0");
    await harness.untilDone("rendered-0");
    expect([await shown(harness, "/etc/x"), await shown(harness, "/etc/deep")]).toEqual(["→ /etc/app.conf", "nothing"]);
  });

  test("only when it differs: another spelling or order is no change and needs no reboot [daemon-disk-3]", async () => {
    const [a, b] = [
      { path: "/etc/a", mode: 0o644, contents: { source: "data:,one" } },
      { path: "/etc/b", mode: 0o644, contents: { source: "data:,two" } },
    ];
    const harness = await machineAfter(
      storage(a, b),
      storage(
        { ...b, overwrite: true },
        { ...a, contents: { compression: "gzip", source: `data:;base64,${gzipSync("one").toString("base64")}` } },
      ),
    );
    expect(harness.reboots).toEqual([]);
    expect(harness.effects.filter((effect) => effect.startsWith("files."))).toEqual(["files.remove", "files.write"]);
  });

  test("and removed with its configuration: the image's file is restored, a file without original is removed [daemon-disk-9]", async () => {
    const harness = await machineAfter({ files: { "/etc/app.conf": "ours", "/etc/new": "ours" } }, {});
    expect([await harness.file("/etc/app.conf"), await harness.file("/etc/new")]).toEqual(["vendor", undefined]);
  });

  test.for([
    { before: "vendor", title: "what the new OS ships there comes back", after: "vendor 2" },
    { before: "an administrator's", title: "an administrator's file comes back", after: "an administrator's" },
  ])(
    "and removed on another OS than that on which it was written: $title [daemon-disk-21]",
    async ({ before, after }) => {
      const harness = await MachineHarness.make({ users });
      if (before !== "vendor") await harness.put("/etc/app.conf", before);
      await harness.updatedTo("rendered-0", {});
      const ours = { files: { "/etc/app.conf": "ours" } };
      const onNewOs = { spec: { osImageURL: "os@sha256:2" } };
      const [first, second, third] = [ours, { ...ours, ...onNewOs }, onNewOs];
      for (const [name, content] of Object.entries({
        "rendered-1": first,
        "rendered-2": second,
        "rendered-3": third,
      })) {
        await harness.config(name, content);
        await harness.desire(name);
        await harness.untilDone(name);
      }
      expect(await harness.file("/etc/app.conf")).toBe(after);
      // Back on the old OS, nobody has changed the file.
      await harness.desire("rendered-0");
      await harness.untilDone("rendered-0");
      expect(await harness.file("/etc/app.conf")).toBe(before);
    },
  );

  test("and a unit that the machine does not have is skipped with one line [daemon-disk-23]", async () => {
    const harness = await MachineHarness.make({ users });
    await harness.updatedTo("rendered-0", {});
    const units = ["nothing-there", "crio", "other"].map((name) => ({ name: `${name}.service`, enabled: true }));
    await harness.config("rendered-1", { units });
    await harness.desire("rendered-1");
    await harness.untilDone("rendered-1");
    expect(harness.history.filter(({ reason }) => reason === "UnitSkipped").map(({ message }) => message)).toEqual([
      "not enabled, because the machine has no such unit: nothing-there.service, other.service",
    ]);
  });

  test("and nothing of it is owed to a file that went before the update began [daemon-disk-22]", async () => {
    const harness = await MachineHarness.make({ users });
    await harness.updatedTo("rendered-0", {});
    await harness.put("/etc/x", "by hand");
    harness.killAt = { effect: 2, when: "before" };
    harness.countEffectsFromHere();
    harness.onDeath = () => undefined;
    await harness.config("rendered-1", { files: { "/etc/x": "ours" } });
    await harness.desire("rendered-1");
    await harness.until(async () => harness.killAt === undefined, "the daemon is killed");
    await harness.host.files.remove("/etc/x", signal);
    await harness.desire("rendered-0");
    await harness.boot({ orderly: false });
    await harness.untilDone("rendered-0");
    expect(await harness.file("/etc/x")).toBe(undefined);
  });

  test("and kept if the new configuration has it as a drop-in [daemon-disk-10]", async () => {
    const path = "/etc/systemd/system/crio.service.d/10-x.conf";
    const harness = await machineAfter(
      { files: { [path]: "[Service]\nNice=1\n" } },
      { units: [dropin("[Service]\nNice=1\n")] },
    );
    expect(await harness.file(path)).toBe("[Service]\nNice=1\n");
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
      title: "that is removed leaves no file and no link",
      before: [{ name: "a.service", contents: service, enabled: true }],
      after: [],
      is: "nothing",
      enabled: "absent",
    },
    {
      title: "that does not exist is not enabled, and is no failure",
      before: [],
      after: [{ name: "a.service", enabled: true }],
      is: "nothing",
      enabled: "absent",
    },
  ])("$title [daemon-disk-6]", async ({ before, after, is, enabled }) => {
    const harness = await machineAfter({ units: before }, { units: after });
    expect([await shown(harness, unitPath), await enablement(harness, "a.service")]).toEqual([is, enabled]);
  });

  test("of the image is disabled, and enabled again when it is no longer configured [daemon-disk-12]", async () => {
    const harness = await machineAfter({}, { units: [{ name: "crio.service", enabled: false }] });
    expect([
      await enablement(harness, "crio.service"),
      await shown(harness, "/etc/systemd/system/crio.service"),
    ]).toEqual(["disabled", "nothing"]);
    await harness.desire("rendered-0");
    await harness.untilDone("rendered-0");
    expect(await enablement(harness, "crio.service")).toBe("enabled");
  });

  test("that does not exist is not enabled, and blocks no other [daemon-disk-13]", async () => {
    const harness = await machineAfter(
      {},
      {
        units: [
          { name: "nobody.service", enabled: true },
          { name: "a.service", contents: service, enabled: true },
        ],
      },
    );
    expect([await enablement(harness, "nobody.service"), await enablement(harness, "a.service")]).toEqual([
      "absent",
      "enabled",
    ]);
  });

  test("gets drop-ins, loses an emptied one, and loses its folder with the last [daemon-disk-11]", async () => {
    const path = "/etc/systemd/system/crio.service.d";
    const harness = await machineAfter({ units: [dropin("[Service]\nNice=1\n")] });
    expect(await shown(harness, `${path}/10-x.conf`)).toBe("644 0:0 [Service]\nNice=1\n");
    await harness.config("rendered-1", { units: [dropin("")] });
    await harness.desire("rendered-1");
    await harness.untilDone("rendered-1");
    expect([await shown(harness, `${path}/10-x.conf`), await shown(harness, path)]).toEqual(["nothing", "nothing"]);
  });
});

describe("the account core", () => {
  test("gets the keys of all listed entries in one file of its own, without a reboot [daemon-disk-4]", async () => {
    const harness = await machineAfter(
      {},
      { ignition: { passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 A", "ssh-ed25519 B"] }] } } },
    );
    expect(await shown(harness, hostPaths.sshKeys)).toBe("600 1000:1000 ssh-ed25519 A\nssh-ed25519 B\n");
    expect([
      await shown(harness, "/home/core/.ssh"),
      await shown(harness, "/home/core/.ssh/authorized_keys.d"),
    ]).toEqual(["700 1000:1000 folder", "700 1000:1000 folder"]);
    expect(harness.reboots).toEqual([]);
  });

  test("loses its keys with the last entry [daemon-disk-14]", async () => {
    const harness = await machineAfter({ keys: ["ssh-ed25519 A"] }, {});
    expect(await shown(harness, hostPaths.sshKeys)).toBe("nothing");
  });

  test("gets a password and is locked again, not left open [daemon-disk-5]", async () => {
    const harness = await machineAfter(
      {},
      { ignition: { passwd: { users: [{ name: "core", passwordHash: "$6$salt$hash" }] } } },
    );
    expect(await harness.host.users.passwordHash("core", signal)).toBe("$6$salt$hash");
    expect(harness.reboots).toEqual([]);
    await harness.desire("rendered-0");
    await harness.untilDone("rendered-0");
    expect(await harness.host.users.passwordHash("core", signal)).toBeUndefined();
  });

  describe("whose password somebody changed by hand", () => {
    const hash = (text: string) => ({ ignition: { passwd: { users: [{ name: "core", passwordHash: text }] } } });
    const byHand = "$6$by$hand";
    const has = (harness: MachineHarness) => harness.host.users.passwordHash("core", signal);

    test("keeps it at updates that ask for no other one, and reports no drift [daemon-disk-19]", async () => {
      const harness = await machineAfter({}, hash("$6$a$a"));
      await harness.host.users.setPasswordHash("core", byHand, signal);
      await harness.pass(3_600_000);
      expect(await has(harness)).toBe(byHand);
      await harness.config("rendered-9", { ...hash("$6$a$a"), files: { "/etc/x": "1" } });
      await harness.desire("rendered-9");
      await harness.untilDone("rendered-9");
      expect(await has(harness)).toBe(byHand);
      await harness.config("rendered-10", hash("$6$b$b"));
      await harness.desire("rendered-10");
      await harness.untilDone("rendered-10");
      expect(await has(harness)).toBe("$6$b$b");
    });

    test("loses what an unfinished update has set, whenever the daemon is killed [daemon-disk-20]", async () => {
      for (let effect = 1; effect < 12; effect += 1) {
        const harness = await machineAfter({}, hash("$6$a$a"));
        await harness.config("rendered-9", { ...hash("$6$b$b"), files: { "/etc/x": "1" } });
        harness.countEffectsFromHere();
        harness.killAt = { effect, when: "after" };
        await harness.desire("rendered-9");
        await harness.until(async () => harness.killAt === undefined || (await has(harness)) === "$6$b$b", "a kill");
        await harness.desire("rendered-1");
        await harness.untilDone("rendered-1");
        expect(await has(harness), `killed after effect ${effect}`).toBe("$6$a$a");
      }
    });
  });

  test("is skipped if the machine lacks it [daemon-disk-15]", async () => {
    const harness = await MachineHarness.make({ users: { root: users.root } });
    await harness.updatedTo("rendered-0", { keys: ["ssh-ed25519 A"], files: { "/etc/x": "1" } });
    expect([await shown(harness, hostPaths.sshKeys), await shown(harness, "/etc/x")]).toEqual(["nothing", "644 0:0 1"]);
  });
});

describe("a machine's record of itself", () => {
  test("holds whole configurations for root only, and no file of differences [daemon-disk-1]", async () => {
    const harness = await MachineHarness.make();
    const one = { files: { "/etc/new.conf": "one" } };
    await harness.config("rendered-1", one);
    await harness.put("/etc/new.conf", "one");
    await harness.put(
      hostPaths.nodeAnnotations,
      JSON.stringify({
        "machineconfiguration.openshift.io/currentConfig": "rendered-1",
        "machineconfiguration.openshift.io/desiredConfig": "rendered-1",
      }),
    );
    await harness.put(hostPaths.servedConfig, JSON.stringify(machineConfigOf("rendered-1", one)));
    harness.start();
    await harness.untilDone("rendered-1");
    expect(await shown(harness, hostPaths.currentConfig)).toMatch(/^600 0:0 .*rendered-1/);
    expect(await harness.host.files.read(hostPaths.servedConfig, signal)).toMatchObject({ mode: 0o600 });
    expect(await harness.file(hostPaths.currentImage)).toBeUndefined();
    expect(await harness.file("/etc/machine-config-daemon/bootstrapconfigdiff")).toBeUndefined();
  });

  test("lists lasting differences of its disks from the configuration, until they are gone [daemon-disk-2]", async () => {
    const disks = [{ device: "/dev/sda", wipeTable: true }];
    const harness = await MachineHarness.make();
    await harness.put(hostPaths.servedConfig, JSON.stringify(machineConfigOf("rendered-served", {})));
    await harness.updatedTo("rendered-0", {});
    const reported = async () =>
      (await harness.act(() => harness.kube.get(MachineConfigNode, { name: harness.name })))?.status
        ?.irreconcilableChanges;
    expect(await reported()).toBeUndefined();
    await harness.act(async () => {
      const { metadata } = await harness.kube.patch(
        MachineConfiguration,
        { name: objects.machineConfiguration },
        { type: "merge", body: { spec: { irreconcilableValidationOverrides: { storage: ["Disks"] } } } },
      );
      await harness.kube.patch(
        MachineConfiguration,
        { name: objects.machineConfiguration },
        { type: "merge", body: { status: { observedGeneration: metadata.generation } } },
        { subresource: "status" },
      );
    });
    await harness.config("rendered-1", { ignition: { storage: { disks } } });
    await harness.desire("rendered-1");
    await harness.untilDone("rendered-1");
    expect(await reported()).toMatchObject([
      { fieldPath: "spec.config.storage.disks", diff: expect.stringContaining("/dev/sda") as string },
    ]);
    await harness.desire("rendered-0");
    await harness.untilDone("rendered-0");
    expect(await reported()).toBeUndefined();
  });
});
