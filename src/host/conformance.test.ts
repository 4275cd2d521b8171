import { realpathSync } from "node:fs";
import { chmod, chown, lstat, mkdtemp, mkdir, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { McoError } from "../api/errors.ts";
import { hostPaths } from "../api/names.ts";
import { settleUnitText } from "../core/config/image-content.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { type ImageTrees, directoryHost, directoryMachine } from "./directory/directory-host.ts";
import { type Disk, systemDisk } from "./directory/disk.ts";
import { entriesBelow } from "./directory/root-folder.ts";
import type { ObservedDeployment, Host, HostEntry, Link, HostMachine, Ownership, PlainFile } from "./host.ts";
import { memoryHost } from "../../test/support/hosts/memory-host.ts";
import { untilSeen } from "../../test/support/until-seen.ts";
import { fakeSystem } from "../../test/support/hosts/fake-rpm-ostree.ts";
import { otherKernels } from "./rpm-ostree/read-status.ts";
import { rpmOstreeHost } from "./rpm-ostree/rpm-ostree-host.ts";
import type { UnitModelState } from "./unit-model.ts";
import type { PullSettings } from "./directory/pull-settings.ts";

const signal = new AbortController().signal;
const oldImage = `os.example.com/stock@sha256:${"0".repeat(64)}`;
const newImage = `os.example.com/stock@sha256:${"1".repeat(64)}`;
const extensionsImage = `os.example.com/extensions@sha256:${"2".repeat(64)}`;
const unit = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
const passwd = "root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:core:/home/core:/bin/bash\n";
const shadow = "root:*::0:99999:7:::\ncore:!!::0:99999:7:::\nother:!$6$locked$x::0:99999:7:::\n";

const presets = {
  "/usr/lib/systemd/system-preset/90-default.preset": "enable chrony*.service\ndisable *\n",
  "/usr/lib/systemd/system-preset/10-first.preset": "# first\nenable first.service\n",
};
const policy = '{"default":[{"type":"insecureAcceptAnything"}]}';

const labels = { "io.openshift.machineconfig.content": "os-only" };
const images = {
  [extensionsImage]: { etc: {}, usr: {} },
  [oldImage]: {
    etc: {
      "/etc/chrony.conf": "pool old\n",
      "/etc/passwd": passwd,
      "/etc/shadow": shadow,
      "/etc/group": "core:x:1000:\n",
      "/etc/vendor.conf": "1\n",
      "/etc/removed.conf": "1\n",
      "/etc/containers/policy.json": policy,
    },
    usr: {
      "/usr/lib/os-release": 'ID="rhcos"\n',
      "/usr/lib/systemd/system/chronyd.service": unit,
      "/usr/lib/systemd/system/static.service": "[Service]\n",
      ...presets,
    },
  },
  [newImage]: {
    etc: {
      "/etc/chrony.conf": "pool new\n",
      "/etc/passwd": passwd,
      "/etc/shadow": shadow,
      "/etc/group": "core:x:1000:\n",
      "/etc/vendor.conf": "2\n",
      "/etc/removed.conf": "2\n",
      "/etc/containers/policy.json": policy,
    },
    usr: {
      "/usr/lib/os-release": 'ID="rhcos"\n',
      "/usr/lib/systemd/system/chronyd.service": unit,
      "/usr/lib/systemd/system/static.service": "[Service]\n",
      ...presets,
    },
    labels,
  },
};

/** What the trees of images hold that is not root's, or that not everybody may read: below /usr. */
const owned: Readonly<Record<string, Ownership & { readonly text?: string }>> = {
  "etc/service": { mode: 0o2750, uid: 0, gid: 993 },
  "etc/service/key": { mode: 0o440, uid: 995, gid: 993, text: "key" },
  "etc/service/closed": { mode: 0, uid: 995, gid: 0, text: "x" },
};

/** Where nothing loses power. */
const forgetfulDisk: Disk = { ...systemDisk, sync: async () => undefined };

interface Subject {
  readonly host: Host;
  readonly machine: HostMachine;
  readonly seenBy: (service: string) => Promise<Readonly<Record<string, string>>>;
  readonly reboots: string[];
  readonly fips: boolean | undefined;
  /** What the settling unit does. */
  readonly settling: { run: () => Promise<void> };
}

const isRoot = () => process.geteuid?.() === 0;

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

async function memory(): Promise<Subject> {
  const reboots: string[] = [];
  const settling = { run: async () => undefined };
  const host = memoryHost({
    images,
    image: oldImage,
    fips: true,
    freeBytes: 1,
    random: systemRandom,
    onReboot: (because) => reboots.push(because),
    applyImageContent: () => settling.run(),
  });
  await host.boot({ orderly: true });
  return { host, machine: host, seenBy: async (service) => host.seenBy(service), reboots, fips: true, settling };
}

/** Trees of the images in a folder; a pull is remembered with what the machine said about it. */
async function imageStore(
  folder: string,
): Promise<ImageTrees & { readonly fetched: { image: string; settings: PullSettings }[] }> {
  const trees: Record<string, string> = {};
  for (const [name, { etc, usr }] of Object.entries(images)) {
    const tree = join(folder, "images", name.replaceAll(/[/:@]/g, "_"));
    trees[name] = tree;
    for (const [path, contents] of [
      ...Object.entries(etc).map(([p, c]) => [`/usr${p}`, c] as const),
      ...Object.entries(usr),
    ]) {
      await mkdir(join(tree, path, ".."), { recursive: true });
      await writeFile(join(tree, path), contents, { mode: path.endsWith("shadow") ? 0o600 : 0o644 });
    }
    if (name === newImage) await layDownOwned(join(tree, "usr"));
  }
  const fetched: { image: string; settings: PullSettings }[] = [];
  const treeOf = async (image: string) => {
    const tree = trees[image];
    if (tree === undefined) throw new McoError("MCO_HOST_IMAGE_UNKNOWN", { image });
    return tree;
  };
  return {
    treeOf,
    labelsOf: async (image) => (image === newImage ? labels : {}),
    ownersIn: async (image) =>
      isRoot() || image !== newImage
        ? {}
        : Object.fromEntries(
            Object.entries(owned).map(([path, { mode, uid, gid }]) => [`usr/${path}`, { mode, uid, gid }]),
          ),
    fetched,
    async fetch(image, settings) {
      await treeOf(image);
      fetched.push({ image, settings });
    },
  };
}

/** As unpacking does: with its owners as root, else so that this user can read it. */
async function layDownOwned(usr: string): Promise<void> {
  for (const [path, { text }] of Object.entries(owned))
    await (text === undefined ? mkdir(join(usr, path)) : writeFile(join(usr, path), text));
  if (!isRoot()) return;
  for (const [path, { mode, uid, gid }] of Object.entries(owned)) {
    await chown(join(usr, path), uid, gid);
    await chmod(join(usr, path), mode);
  }
}

async function directoryWith(disk?: Disk) {
  const folder = await mkdtemp(join(tmpdir(), "mco-host-"));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const store = await imageStore(folder);
  const reboots: string[] = [];
  const settling = { run: async () => undefined };
  const options = {
    directory: join(folder, "node"),
    images: store,
    applyImageContent: () => settling.run(),
    requestReboot: async (because: string) => void reboots.push(because),
    ...(disk === undefined ? {} : { disk }),
  };
  const machine = directoryMachine(options);
  await mkdir(options.directory);
  await machine.provision(os(oldImage), { fips: false });
  await machine.boot({ orderly: true });
  return {
    host: directoryHost(options),
    machine,
    reboots,
    options,
    store,
    fips: false,
    settling,
    seenBy: async (service: string) =>
      (JSON.parse(await readFile(join(options.directory, "units.json"), "utf8")) as UnitModelState).services[service]
        ?.read ?? {},
    real: (path: string) => join(options.directory, "rootfs", path),
  };
}

const directory = () => directoryWith();

async function rpmOstree(): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), "mco-host-"));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const root = join(folder, "root");
  const settling = { run: async () => undefined };
  const system = await fakeSystem({
    root,
    images,
    image: oldImage,
    extensions: ["usbguard", "kata-containers", ...otherKernels.realtime],
    applyImageContent: () => settling.run(),
  });
  cleanups.push(async () => expect(system.violations).toEqual([]));
  await system.boot({ orderly: true });
  return {
    host: await rpmOstreeHost({
      root,
      processes: system.processes,
      clock: systemClock,
      random: systemRandom,
      architecture: "x64",
      disk: forgetfulDisk,
    }),
    machine: system,
    seenBy: async (service) => system.seenBy(service),
    reboots: system.reboots,
    fips: false,
    settling,
  };
}

const file = (text: string, mode = 0o644, owner: { uid: number; gid: number } = { uid: 0, gid: 0 }): PlainFile => ({
  kind: "file",
  contents: new TextEncoder().encode(text),
  mode,
  ...owner,
});
const put = (host: Host, path: string, entry: PlainFile | Link) => host.files.write([{ path, entry }], signal);
const os = (image: string, kernelArguments: readonly string[] = []): ObservedDeployment => ({
  image,
  kernelArguments,
  packages: [],
  kernelType: "default",
});
const textOfEntry = (entry: HostEntry | undefined) =>
  entry?.kind === "file" ? new TextDecoder().decode(entry.contents) : entry?.kind;
const textOf = async (host: Host, path: string) => textOfEntry(await host.files.read(path, signal));
const nobody = 65534;

describe.each([
  ["memory", memory, false],
  ["directory", directory, false],
  ...(process.geteuid?.() === 0
    ? [
        ["directory, without root", () => directoryWith(forgetfulDisk), true] as const,
        // Only root gives files away, as a real machine's driver must.
        ["rpm-ostree, over a fake system", rpmOstree, false] as const,
      ]
    : []),
] as const)("every host driver: %s", (_name, make, withoutRoot) => {
  if (withoutRoot) {
    // The file system asks for the effective user; the test runner's own stays root.
    beforeAll(() => process.seteuid?.(nobody));
    afterAll(() => process.seteuid?.(0));
  }

  test("an absent path reads as undefined, and removing it is no error [host-conformance-10]", async () => {
    const { host } = await make();
    expect(await host.files.read("/etc/none/of/this", signal)).toBeUndefined();
    await host.files.remove("/etc/none/of/this", signal);
  });

  test("a written file has its contents, mode and owner, and replaces a link", async () => {
    const { host } = await make();
    await put(host, "/etc/a/b.conf", { kind: "link", target: "/etc/elsewhere" });
    await put(host, "/etc/a/b.conf", file("x", 0o4750, { uid: 1000, gid: 10 }));
    expect(await host.files.read("/etc/a/b.conf", signal)).toMatchObject({
      kind: "file",
      mode: 0o4750,
      uid: 1000,
      gid: 10,
    });
    expect(await textOf(host, "/etc/a/b.conf")).toBe("x");
    await put(host, "/etc/a/b.conf", file("x", 0));
    expect(await host.files.read("/etc/a/b.conf", signal)).toMatchObject({ kind: "file", mode: 0, uid: 0, gid: 0 });
    await put(host, "/etc/a/b.conf", { kind: "link", target: "/etc/elsewhere" });
    expect(await host.files.read("/etc/a/b.conf", signal)).toEqual({ kind: "link", target: "/etc/elsewhere" });
  });

  test("many are written at once, the last one of a path counts, and folders on the way have the owner that is asked for [host-conformance-5]", async () => {
    const { host } = await make();
    const folder = { mode: 0o700, uid: 1000, gid: 1000 };
    await host.files.write(
      [
        { path: "/var/home/core/.ssh/keys.d/a", entry: file("a"), folder },
        { path: "/var/home/core/.ssh/keys.d/b", entry: file("b"), folder },
        { path: "/var/home/core/.ssh/keys.d/a", entry: file("later"), folder },
        { path: "/etc/plain/c", entry: { kind: "link", target: "x" } },
      ],
      signal,
    );
    expect(await textOf(host, "/var/home/core/.ssh/keys.d/a")).toBe("later");
    expect(await textOf(host, "/var/home/core/.ssh/keys.d/b")).toBe("b");
    for (const path of ["/var/home/core/.ssh", "/var/home/core/.ssh/keys.d"])
      expect(await host.files.read(path, signal)).toEqual({ kind: "folder", ...folder });
    expect(await host.files.read("/etc/plain", signal)).toEqual({ kind: "folder", mode: 0o755, uid: 0, gid: 0 });
  });

  test("a folder is made, with plain ones above it, and changed where it is there", async () => {
    const { host } = await make();
    await host.files.makeFolder("/etc/f/g", { mode: 0o2750, uid: 1, gid: 2 }, signal);
    expect(await host.files.read("/etc/f/g", signal)).toEqual({ kind: "folder", mode: 0o2750, uid: 1, gid: 2 });
    expect(await host.files.read("/etc/f", signal)).toEqual({ kind: "folder", mode: 0o755, uid: 0, gid: 0 });
    await put(host, "/etc/f/g/x", file("x"));
    await host.files.makeFolder("/etc/f/g", { mode: 0o711, uid: 0, gid: 0 }, signal);
    await host.files.makeFolder("/etc/f/g", { mode: 0o711, uid: 0, gid: 0 }, signal);
    expect(await host.files.read("/etc/f/g", signal)).toEqual({ kind: "folder", mode: 0o711, uid: 0, gid: 0 });
    await host.files.remove("/etc/f/g/x", signal);
    expect(await host.files.read("/etc/f/g", signal)).toMatchObject({ kind: "folder" });
  });

  test("a folder is neither replaced by a file nor removed as one, and a file does not become a folder", async () => {
    const { host } = await make();
    await put(host, "/etc/folder/x", file("x"));
    await expect(put(host, "/etc/folder", file("y"))).rejects.toBeInstanceOf(McoError);
    await expect(host.files.remove("/etc/folder", signal)).rejects.toBeInstanceOf(McoError);
    await expect(
      host.files.makeFolder("/etc/folder/x", { mode: 0o755, uid: 0, gid: 0 }, signal),
    ).rejects.toBeInstanceOf(McoError);
    expect(await textOf(host, "/etc/folder/x")).toBe("x");
  });

  test("removing the last file of folders that were made for it removes them too", async () => {
    const { host } = await make();
    await put(host, "/etc/made/deep/b.conf", file("x"));
    await put(host, "/etc/made/c.conf", file("x"));
    await host.files.remove("/etc/made/deep/b.conf", signal);
    expect(await host.files.read("/etc/made/deep", signal)).toBeUndefined();
    expect(await host.files.read("/etc/made", signal)).toMatchObject({ kind: "folder" });
    await host.files.remove("/etc/made/c.conf", signal);
    expect(await host.files.read("/etc/made", signal)).toBeUndefined();
  });

  test("a folder that was made for files is told from one of others, with what is in it [host-conformance-made-1]", async () => {
    const { host } = await make();
    const madeFolder = (path: string) => host.files.madeFolder(path, signal);
    expect(await madeFolder("/etc/made")).toBeUndefined();
    await put(host, "/etc/made/deep/b.conf", file("x"));
    await put(host, "/etc/made/c.conf", file("x"));
    expect([...((await madeFolder("/etc/made")) ?? [])].sort()).toEqual(["c.conf", "deep"]);
    expect(await madeFolder("/etc/made/deep")).toEqual(["b.conf"]);
    expect(await madeFolder("/etc/made/c.conf")).toBeUndefined();
    expect(await madeFolder("/etc")).toBeUndefined();
    await host.files.makeFolder("/etc/theirs", { mode: 0o755, uid: 0, gid: 0 }, signal);
    expect(await madeFolder("/etc/theirs")).toBeUndefined();
    for (const path of ["/etc/made/deep/b.conf", "/etc/made/c.conf"]) await host.files.remove(path, signal);
    expect(await madeFolder("/etc/made")).toBeUndefined();
    // So that a file can take the folder's place, and a folder the file's.
    await put(host, "/etc/made", file("y"));
    expect(await host.files.read("/etc/made/c.conf", signal)).toBeUndefined();
    await expect(put(host, "/etc/made/c.conf", file("x"))).rejects.toBeInstanceOf(McoError);
    await host.files.remove("/etc/made/c.conf", signal);
    await host.files.remove("/etc/made", signal);
    await put(host, "/etc/made/c.conf", file("x"));
    expect(await textOf(host, "/etc/made/c.conf")).toBe("x");
  });

  test("two names of one folder are told as one place [host-conformance-place-1]", async () => {
    const { host } = await make();
    const placeOf = (folder: string) => host.files.placeOf(folder, signal);
    await put(host, "/var/data/x", file("x"));
    await host.files.write([{ path: "/etc/link", entry: { kind: "link", target: "/var/data" } }], signal);
    await host.files.write([{ path: "/etc/near", entry: { kind: "link", target: "../var/data" } }], signal);
    expect(await placeOf("/etc/link")).toBe(await placeOf("/var/data"));
    expect(await placeOf("/etc/near")).toBe(await placeOf("/var/data"));
    expect(await placeOf("/etc/link/none/yet")).toBe(await placeOf("/var/data/none/yet"));
    expect(await placeOf("/etc")).not.toBe(await placeOf("/var"));
    expect(await textOf(host, "/etc/link/x")).toBe("x");
    await put(host, "/etc/near/y", file("y"));
    expect(await textOf(host, "/var/data/y")).toBe("y");
  });

  test("a directory of another owner stays when it becomes empty", async () => {
    const { host } = await make();
    await host.files.makeFolder("/etc/theirs", { mode: 0o755, uid: 0, gid: 0 }, signal);
    await put(host, "/etc/theirs/x", file("x"));
    await host.files.remove("/etc/theirs/x", signal);
    expect(await host.files.read("/etc/theirs", signal)).toMatchObject({ kind: "folder" });
  });

  test("free space is reported where it is known", async () => {
    const { host } = await make();
    expect(await host.files.freeBytes(signal)).toBeGreaterThan(0);
  });

  test("what the image ships in /etc is there, and known as the vendor's after a change [host-conformance-9]", async () => {
    const { host } = await make();
    expect(await textOf(host, "/etc/chrony.conf")).toBe("pool old\n");
    await put(host, "/etc/chrony.conf", file("mine"));
    const vendor = await host.files.vendor("/etc/chrony.conf", signal);
    expect(vendor?.kind === "file" ? new TextDecoder().decode(vendor.contents) : vendor).toBe("pool old\n");
    expect(await host.files.vendor("/etc/mine-only", signal)).toBeUndefined();
    expect(await host.files.vendor("/usr/lib/os-release", signal)).toBeUndefined();
  });

  test("state that the system's own tree leads to is written and read there: homes, /opt, /srv, /mnt and /usr/local", async () => {
    const { host, machine } = await make();
    const paths = ["/home/core/a", "/root/a", "/opt/a/b", "/srv/a", "/mnt/a", "/usr/local/bin/a"];
    for (const path of paths) await put(host, path, file(path));
    await host.os.stage(os(newImage), undefined, signal);
    await machine.boot({ orderly: true });
    for (const path of paths) expect(await textOf(host, path)).toBe(path);
    for (const path of paths) await host.files.remove(path, signal);
    for (const path of [...paths, "/opt/a", "/usr/local/bin"])
      expect(await host.files.read(path, signal)).toBeUndefined();
  });

  test("/usr cannot be written", async () => {
    const { host } = await make();
    await expect(
      host.files.write(
        [
          { path: "/etc/before", entry: file("x") },
          { path: "/usr/bin/x", entry: file("x") },
        ],
        signal,
      ),
    ).rejects.toMatchObject({ code: "MCO_HOST_READ_ONLY" });
    expect(await host.files.read("/etc/before", signal)).toBeUndefined();
    await expect(host.files.makeFolder("/usr/x", { mode: 0o755, uid: 0, gid: 0 }, signal)).rejects.toMatchObject({
      code: "MCO_HOST_READ_ONLY",
    });
    await expect(host.files.remove("/usr/lib/systemd/system/chronyd.service", signal)).rejects.toMatchObject({
      code: "MCO_HOST_READ_ONLY",
    });
  });

  test("staging changes nothing until an orderly boot, which merges /etc three ways [host-conformance-1]", async () => {
    const { host, machine } = await make();
    await put(host, "/etc/chrony.conf", file("mine"));
    await put(host, "/etc/new.conf", file("added", 0o640, { uid: 5, gid: 6 }));
    await host.files.makeFolder("/etc/empty", { mode: 0o750, uid: 7, gid: 8 }, signal);
    await host.files.remove("/etc/removed.conf", signal);
    await put(host, "/var/lib/kept", file("kept"));
    await put(host, "/run/gone", file("gone"));
    const before = await host.os.status(signal);
    const next: ObservedDeployment = {
      image: newImage,
      kernelArguments: ["quiet"],
      packages: ["usbguard"],
      kernelType: "realtime",
    };
    await host.os.prefetch(newImage, signal);
    await host.os.stage(os(newImage), undefined, signal);
    await host.os.prefetch(extensionsImage, signal);
    await host.os.stage(next, extensionsImage, signal);
    await host.os.stage(next, extensionsImage, signal);
    expect(await host.os.status(signal)).toEqual({ ...before, staged: next });
    expect(await host.os.installed(["usbguard"], signal)).toEqual([]);
    expect(await textOf(host, "/etc/vendor.conf")).toBe("1\n");
    await machine.boot({ orderly: true });
    const after = await host.os.status(signal);
    expect(after.booted).toEqual(next);
    expect(await host.os.installed(["kata-containers", "usbguard"], signal)).toEqual(["usbguard"]);
    expect(await host.os.finaliseFailure(signal)).toBeUndefined();
    expect(await host.files.read("/etc/new.conf", signal)).toMatchObject({ mode: 0o640, uid: 5, gid: 6 });
    expect(await host.files.read("/etc/empty", signal)).toEqual({ kind: "folder", mode: 0o750, uid: 7, gid: 8 });
    expect(await host.files.read("/etc/removed.conf", signal)).toBeUndefined();
    expect(after.staged).toBeUndefined();
    expect(after.bootId).not.toBe(before.bootId);
    expect(await textOf(host, "/etc/chrony.conf")).toBe("mine");
    expect(await textOf(host, "/etc/new.conf")).toBe("added");
    expect(await textOf(host, "/etc/vendor.conf")).toBe("2\n");
    expect(await textOf(host, "/var/lib/kept")).toBe("kept");
    expect(await host.files.read("/run/gone", signal)).toBeUndefined();
  });

  test("what was booted before stays as it was, and boots again when it is asked for, even by a power cut; and the other way round", async () => {
    const { host, machine } = await make();
    await expect(host.os.bootPrevious(signal)).rejects.toBeInstanceOf(McoError);
    expect((await host.os.status(signal)).rollback).toBeUndefined();
    await put(host, "/etc/local.conf", file("before"));
    await host.os.stage(os(newImage, ["nosmt"]), undefined, signal);
    await machine.boot({ orderly: true });
    await put(host, "/etc/local.conf", file("after"));
    await put(host, "/var/lib/state", file("of both"));
    expect(await host.os.status(signal)).toMatchObject({ booted: os(newImage, ["nosmt"]), rollback: os(oldImage) });

    await host.os.stage(os(newImage, ["other"]), undefined, signal);
    await host.os.bootPrevious(signal);
    await host.os.bootPrevious(signal);
    expect((await host.os.status(signal)).staged).toBeUndefined();
    await machine.boot({ orderly: false });
    expect(await host.os.status(signal)).toMatchObject({ booted: os(oldImage), rollback: os(newImage, ["nosmt"]) });
    expect([
      await textOf(host, "/etc/local.conf"),
      await textOf(host, "/etc/vendor.conf"),
      await textOf(host, "/var/lib/state"),
    ]).toEqual(["before", "1\n", "of both"]);
    // A boot that nobody asked for stays where it is.
    await machine.boot({ orderly: true });
    expect((await host.os.status(signal)).booted.image).toBe(oldImage);

    await host.os.bootPrevious(signal);
    await machine.boot({ orderly: true });
    expect(await textOf(host, "/etc/local.conf")).toBe("after");
  });

  test("what an image says of itself is reported once it was fetched", async () => {
    const { host } = await make();
    await host.os.prefetch(newImage, signal);
    expect(await host.os.labels(newImage, signal)).toMatchObject(labels);
  });

  test("the settling unit runs at a boot when it is enabled, before services read their files, and when it is started; that it fails is its state", async () => {
    const { host, machine, seenBy, settling } = await make();
    let runs = 0;
    settling.run = async () => {
      runs += 1;
      await put(host, "/etc/chrony.conf", file(`settled ${runs}`));
    };
    await host.units.enable("chronyd.service", signal);
    await machine.boot({ orderly: true });
    expect(runs).toBe(0);
    await put(host, `/etc/systemd/system/${hostPaths.settleUnit}`, file(settleUnitText));
    await host.units.enable(hostPaths.settleUnit, signal);
    await machine.boot({ orderly: true });
    expect(runs).toBe(1);
    expect((await host.units.state([hostPaths.settleUnit], signal)).get(hostPaths.settleUnit)).toEqual({
      enablement: "enabled",
      activity: "active",
    });
    const seen = await seenBy("chronyd.service");
    await host.units.daemonReload(signal);
    await host.units.restart("chronyd.service", signal);
    expect(await seenBy("chronyd.service")).toEqual(seen);
    await host.units.restart(hostPaths.settleUnit, signal);
    expect(await textOf(host, "/etc/chrony.conf")).toBe("settled 2");
    settling.run = () => Promise.reject(new Error("no"));
    await machine.boot({ orderly: true });
    expect((await host.units.state([hostPaths.settleUnit], signal)).get(hostPaths.settleUnit)?.activity).toBe("failed");
    await expect(host.units.restart(hostPaths.settleUnit, signal)).rejects.toBeInstanceOf(McoError);
    await host.units.startEnabled(signal);
  });

  test("a power cut finalises nothing: the staged deployment is gone and /etc is as it was [host-conformance-2]", async () => {
    const { host, machine } = await make();
    await put(host, "/etc/chrony.conf", file("mine"));
    await host.os.stage(os(newImage), undefined, signal);
    await machine.boot({ orderly: false });
    const after = await host.os.status(signal);
    expect(after.booted.image).toBe(oldImage);
    expect(await textOf(host, "/etc/chrony.conf")).toBe("mine");
    expect(await textOf(host, "/etc/vendor.conf")).toBe("1\n");
  });

  test("a shutdown that fails to finalise leaves the old system, says why until the next boot, and does it once", async () => {
    const { host, machine } = await make();
    await machine.failToFinalise?.("error: no space left");
    await host.os.stage(os(newImage), undefined, signal);
    await machine.boot({ orderly: true });
    expect((await host.os.status(signal)).booted.image).toBe(oldImage);
    expect((await host.os.status(signal)).staged).toBeUndefined();
    expect(await host.os.finaliseFailure(signal)).toBe("error: no space left");
    await host.os.stage(os(newImage), undefined, signal);
    await machine.boot({ orderly: true });
    expect((await host.os.status(signal)).booted.image).toBe(newImage);
    expect(await host.os.finaliseFailure(signal)).toBeUndefined();
  });

  test("booting twice finalises once, and is two boots", async () => {
    const { host, machine } = await make();
    await host.os.stage(os(newImage), undefined, signal);
    const first = await machine.boot({ orderly: true });
    await put(host, "/etc/vendor.conf", file("mine"));
    const second = await machine.boot({ orderly: true });
    expect(second.bootId).not.toBe(first.bootId);
    expect((await host.os.status(signal)).bootId).toBe(second.bootId);
    expect(await textOf(host, "/etc/vendor.conf")).toBe("mine");
  });

  test("what the kernel says of FIPS mode is reported, and what of the system can be changed", async () => {
    const { host, fips } = await make();
    const status = await host.os.status(signal);
    expect(status.fips).toBe(fips);
    expect(status.can).toMatchObject({ images: true, kernelArguments: true, packages: true });
  });

  test("a discarded staged deployment does not boot", async () => {
    const { host, machine } = await make();
    await host.os.stage(os(newImage), undefined, signal);
    await host.os.discardStaged(signal);
    await host.os.discardStaged(signal);
    await machine.boot({ orderly: true });
    expect((await host.os.status(signal)).booted.image).toBe(oldImage);
  });

  test("an image that cannot be had is refused when it is fetched and when it is staged", async () => {
    const { host } = await make();
    await expect(host.os.prefetch("os/none", signal)).rejects.toBeInstanceOf(McoError);
    await expect(host.os.stage(os("os/none"), undefined, signal)).rejects.toBeInstanceOf(McoError);
    expect((await host.os.status(signal)).staged).toBeUndefined();
  });

  test("a reboot request reaches the process that runs the machine", async () => {
    const { host, reboots } = await make();
    await host.os.reboot("because of x", signal);
    expect(reboots).toEqual([expect.stringContaining("because of x")]);
  });

  test("the ledger keeps documents across boots and power cuts", async () => {
    const { host, machine } = await make();
    await host.ledger.write("ledger.json", "{}", signal);
    await machine.boot({ orderly: false });
    expect(await host.ledger.read("ledger.json", signal)).toBe("{}");
    await host.ledger.remove("ledger.json", signal);
    await host.ledger.remove("ledger.json", signal);
    expect(await host.ledger.read("ledger.json", signal)).toBeUndefined();
  });

  test("journal lines keep their order, separately for each boot, across boots and power cuts", async () => {
    const { host, machine } = await make();
    expect(await host.books.read(signal)).toEqual([]);
    await host.books.append("boot-1", ["1", "2"], { durable: true }, signal);
    await host.books.append("boot-1", [], { durable: true }, signal);
    await host.books.append("boot-1", ["3 ü"], { durable: true }, signal);
    await machine.boot({ orderly: false });
    await host.books.append("boot-2", ["4"], { durable: false }, signal);
    await machine.boot({ orderly: true });
    expect(await host.books.read(signal)).toEqual([
      { boot: "boot-1", lines: ["1", "2", "3 ü"] },
      { boot: "boot-2", lines: ["4"] },
    ]);
  });

  test("a unit is absent, disabled, enabled, masked, as its files and links say", async () => {
    const { host } = await make();
    const is = async (name: string) => (await host.units.state([name], signal)).get(name)?.enablement;
    expect(await is("x.service")).toBe("absent");
    await put(host, "/etc/systemd/system/x.service", file(unit));
    expect(await is("x.service")).toBe("disabled");
    await host.units.enable("x.service", signal);
    await host.units.enable("x.service", signal);
    expect(await is("x.service")).toBe("enabled");
    await host.units.disable("x.service", signal);
    expect(await is("x.service")).toBe("disabled");
    await put(host, "/etc/systemd/system/x.service", { kind: "link", target: "/dev/null" });
    expect(await is("x.service")).toBe("masked");
  });

  test("a service sees a changed file after a reload, and a changed unit only after daemon-reload and restart", async () => {
    const { host, seenBy } = await make();
    const path = "/etc/containers/registries.conf";
    const dropIn = "/etc/systemd/system/crio.service.d/10-x.conf";
    await put(host, "/etc/systemd/system/crio.service", file(unit));
    await put(host, path, file("a"));
    await host.units.daemonReload(signal);
    await host.units.restart("crio.service", signal);
    const first = await seenBy("crio.service");
    await put(host, path, file("b"));
    await put(host, dropIn, file("[Service]\n"));
    expect(await seenBy("crio.service")).toEqual(first);
    await host.units.reload("crio.service", signal);
    const second = await seenBy("crio.service");
    expect(second[path]).not.toBe(first[path]);
    expect(second[dropIn]).toBeUndefined();
    await host.units.restart("crio.service", signal);
    expect((await seenBy("crio.service"))[dropIn]).toBeUndefined();
    await host.units.daemonReload(signal);
    await host.units.restart("crio.service", signal);
    expect((await seenBy("crio.service"))[dropIn]).toBeDefined();
  });

  test("a unit that is absent or masked is neither enabled nor started, and disabling one that is gone is no error [host-conformance-12]", async () => {
    const { host } = await make();
    await expect(host.units.enable("gone.service", signal)).rejects.toBeInstanceOf(McoError);
    await expect(host.units.restart("gone.service", signal)).rejects.toBeInstanceOf(McoError);
    await expect(host.units.reload("gone.service", signal)).rejects.toBeInstanceOf(McoError);
    await host.units.disable("gone.service", signal);
    await host.units.preset("gone.service", signal);
    await put(host, "/etc/systemd/system/x.service", { kind: "link", target: "/dev/null" });
    await host.units.daemonReload(signal);
    await expect(host.units.enable("x.service", signal)).rejects.toBeInstanceOf(McoError);
    await expect(host.units.restart("x.service", signal)).rejects.toBeInstanceOf(McoError);
    expect(await host.units.state(["gone.service", "x.service"], signal)).toEqual(
      new Map([
        ["gone.service", { enablement: "absent", activity: "inactive" }],
        ["x.service", { enablement: "masked", activity: "inactive" }],
      ]),
    );
  });

  test("links of units are listed, removed and made as they are, also those that a mask hides [host-conformance-14]", async () => {
    const { host } = await make();
    const at = (name: string) => `/etc/systemd/system/${name}`;
    const is = async (name: string) => (await host.units.state([name], signal)).get(name)?.enablement;
    const listed = async () => [...(await host.units.links(signal))].sort((a, b) => (a.path < b.path ? -1 : 1));
    const before = await listed();
    await put(host, at("x.service"), file(unit));
    await host.units.enable("x.service", signal);
    const own = { path: at("multi-user.target.wants/x.service"), target: at("x.service") };
    expect(await listed()).toEqual([...before, own].sort((a, b) => (a.path < b.path ? -1 : 1)));
    await put(host, at("x.service"), { kind: "link", target: "/dev/null" });
    const other = { path: at("a.target.requires/x.service"), target: "/usr/lib/systemd/system/x.service" };
    for (const _ of [1, 2]) await host.units.relink({ remove: [own.path], make: [other] }, signal);
    expect(await listed()).toEqual([...before, other].sort((a, b) => (a.path < b.path ? -1 : 1)));
    expect(await is("x.service")).toBe("masked");
    await host.files.remove(at("x.service"), signal);
    await put(host, at("x.service"), file(unit));
    expect(await is("x.service")).toBe("enabled");
    await host.units.relink({ remove: [other.path], make: [] }, signal);
    expect([await is("x.service"), await listed()]).toEqual(["disabled", before]);
  });

  test("a template is enabled by the link of its default instance, and an instance by its own [host-conformance-15]", async () => {
    const { host } = await make();
    const is = async (...names: string[]) =>
      [...(await host.units.state(names, signal)).values()].map(({ enablement }) => enablement);
    const names = ["p@.service", "p@one.service", "p@two.service", "gone@.service", "m@.service"];
    await put(host, "/etc/systemd/system/p@.service", file(`${unit}DefaultInstance=one\n`));
    await put(host, "/etc/systemd/system/m@.service", { kind: "link", target: "/dev/null" });
    expect(await is(...names)).toEqual(["disabled", "disabled", "disabled", "absent", "masked"]);
    await host.units.enable("p@.service", signal);
    await host.units.enable("p@two.service", signal);
    expect(await is(...names)).toEqual(["enabled", "enabled", "enabled", "absent", "masked"]);
    await host.units.disable("p@one.service", signal);
    expect(await is("p@one.service", "p@two.service")).toEqual(["disabled", "enabled"]);
    await host.units.disable("p@.service", signal);
    expect(await is(...names)).toEqual(["disabled", "disabled", "disabled", "absent", "masked"]);
  });

  test("presets decide unconfigured units: the first matching line counts [host-conformance-11]", async () => {
    const { host } = await make();
    const is = async (name: string) => (await host.units.state([name], signal)).get(name)?.enablement;
    for (const name of ["first.service", "other.service"]) await put(host, `/etc/systemd/system/${name}`, file(unit));
    await host.units.enable("other.service", signal);
    for (const name of ["first.service", "other.service", "chronyd.service", "static.service"])
      await host.units.preset(name, signal);
    expect([
      await is("first.service"),
      await is("other.service"),
      await is("chronyd.service"),
      await is("static.service"),
    ]).toEqual(["enabled", "disabled", "enabled", "static"]);
  });

  test("a boot starts what is enabled, with the files that it finds", async () => {
    const { host, machine, seenBy } = await make();
    await host.units.disable("chronyd.service", signal);
    await machine.boot({ orderly: true });
    await host.units.enable("chronyd.service", signal);
    await put(host, "/etc/chrony.conf", file("mine"));
    expect((await seenBy("chronyd.service"))["/etc/chrony.conf"]).toBeUndefined();
    await machine.boot({ orderly: false });
    expect((await seenBy("chronyd.service"))["/etc/chrony.conf"]).toBeDefined();
    expect((await host.units.state(["chronyd.service"], signal)).get("chronyd.service")?.activity).toBe("active");
    await host.units.disable("chronyd.service", signal);
    await machine.boot({ orderly: true });
    expect((await host.units.state(["chronyd.service"], signal)).get("chronyd.service")?.activity).toBe("inactive");
  });

  test("a restart that refreshes the CA trust works where there is no unit for it", async () => {
    const { host } = await make();
    await host.units.restart("coreos-update-ca-trust.service", signal);
    await expect(host.units.restart("not-there.service", signal)).rejects.toMatchObject({
      code: "MCO_HOST_COMMAND_FAILED",
    });
  });

  test("disabling takes the folder of links away that enabling made [host-conformance-4]", async () => {
    const { host } = await make();
    await put(host, "/etc/systemd/system/x.service", file(unit.replace("multi-user", "odd")));
    await host.units.daemonReload(signal);
    await host.units.enable("x.service", signal);
    await host.units.disable("x.service", signal);
    expect(await textOf(host, "/etc/systemd/system/odd.target.wants/x.service")).toBeUndefined();
  });

  test("a service that fails to reload or to start says so, by the verb and by its state, until it starts again", async () => {
    const { host, machine } = await make();
    const is = async () => (await host.units.state(["x.service"], signal)).get("x.service")?.activity;
    await put(host, "/etc/systemd/system/x.service", file(unit));
    await host.units.daemonReload(signal);
    expect(await is()).toBe("inactive");
    await expect(host.units.reload("x.service", signal)).rejects.toBeInstanceOf(McoError);
    await host.units.restart("x.service", signal);
    expect(await is()).toBe("active");
    await machine.breakUnits?.(["x.service"]);
    await expect(host.units.reload("x.service", signal)).rejects.toBeInstanceOf(McoError);
    expect(await is()).toBe("failed");
    await expect(host.units.restart("x.service", signal)).rejects.toBeInstanceOf(McoError);
    expect(await is()).toBe("failed");
    await machine.breakUnits?.([]);
    await host.units.restart("x.service", signal);
    expect(await is()).toBe("active");
  });

  test("users are found, and a password hash is set and locked again", async () => {
    const { host } = await make();
    expect(await host.users.lookup("core", signal)).toEqual({ uid: 1000, gid: 1000, home: "/home/core" });
    expect(await host.users.lookup("nobody-here", signal)).toBeUndefined();
    expect(await host.users.group("core", signal)).toBe(1000);
    expect(await host.users.group("nobody-here", signal)).toBeUndefined();
    for (const user of ["root", "core", "other", "nobody-here"])
      expect(await host.users.passwordHash(user, signal)).toBeUndefined();
    await host.users.setPasswordHash("core", "$6$x$y", signal);
    await host.users.setPasswordHash("core", "$6$x$y", signal);
    expect(await host.users.passwordHash("core", signal)).toBe("$6$x$y");
    await host.users.setPasswordHash("core", undefined, signal);
    await host.users.setPasswordHash("core", undefined, signal);
    expect(await host.users.passwordHash("core", signal)).toBeUndefined();
    await host.users.setPasswordHash("nobody-here", undefined, signal);
    await expect(host.users.setPasswordHash("nobody-here", "$6$x$y", signal)).rejects.toBeInstanceOf(McoError);
    await expect(host.users.setPasswordHash("core", "$6$x:0:0::", signal)).rejects.toBeInstanceOf(McoError);
  });

  test("a watch reports a write, a removal, and a file in a directory that did not exist", async () => {
    const { host } = await make();
    await put(host, "/etc/w.conf", file("a"));
    const written: string[] = [];
    const stop = host.files.watch(["/etc/w.conf", "/etc/later/f.conf"], (path) => void written.push(path));
    // Watches of the directory driver are armed in the background: act until one is seen.
    const seen = (by: readonly string[], path: string, act: () => Promise<void>) => {
      const before = by.length;
      return untilSeen(
        `a watch tells of ${path}`,
        async () => {
          await act();
          await new Promise((resolve) => setImmediate(resolve));
          return by.slice(before);
        },
        (paths) => paths.includes(path),
        { seconds: 10, everyMs: 1 },
      );
    };
    let version = 0;
    await seen(written, "/etc/w.conf", () => put(host, "/etc/w.conf", file(`v${(version += 1)}`)));
    await seen(written, "/etc/later/f.conf", () => put(host, "/etc/later/f.conf", file(`v${(version += 1)}`)));
    const again = file(`v${version}`);
    await seen(written, "/etc/w.conf", async () => {
      await host.files.remove("/etc/w.conf", signal);
      await put(host, "/etc/w.conf", again);
    });
    // A second watch of the same paths says when the stopped one would have reported a change, had it gone on.
    const seenBySecond: string[] = [];
    const stopSecond = host.files.watch(["/etc/w.conf", "/etc/later/f.conf"], (path) => void seenBySecond.push(path));
    stop();
    const seenBeforeStop = [...written];
    await seen(seenBySecond, "/etc/later/f.conf", () => put(host, "/etc/later/f.conf", file(`v${(version += 1)}`)));
    await seen(seenBySecond, "/etc/w.conf", () => put(host, "/etc/w.conf", file(`v${(version += 1)}`)));
    expect(written, "a stopped watch reports nothing more").toEqual(seenBeforeStop);
    stopSecond();
  });
});

describe("a directory machine", () => {
  test("a link planted inside never leads out of it [host-conformance-7]", async () => {
    const { host, real } = await directory();
    await symlink("/", real("etc/out"));
    await put(host, "/etc/out/etc/inside.conf", file("x"));
    expect(await textOf(host, "/etc/inside.conf")).toBe("x");
  });

  test.for([
    ["as root", false],
    ["without root", true],
  ] as const)(
    "boots what its image ships with owners and modes, as the vendor's and in /etc, %s",
    async ([, withoutRoot]) => {
      const wasRoot = isRoot();
      if (wasRoot && withoutRoot) process.seteuid?.(nobody);
      try {
        const { host, machine } = await directory();
        await host.os.stage(os(newImage), undefined, signal);
        await machine.boot({ orderly: true });
        for (const [path, { mode, uid, gid, text }] of Object.entries(owned)) {
          const entry = await host.files.read(`/${path}`, signal);
          expect(entry).toMatchObject({ kind: text === undefined ? "folder" : "file", mode, uid, gid });
          expect(textOfEntry(entry)).toBe(text ?? "folder");
          expect(await host.files.vendor(`/${path}`, signal)).toEqual(entry);
        }
        // Only the owner is another: that is the machine's own too, and stays.
        await put(host, "/etc/service/key", file("key", 0o440, { uid: 7, gid: 993 }));
        await host.os.stage(os(newImage, ["quiet"]), undefined, signal);
        await machine.boot({ orderly: true });
        expect(await host.files.read("/etc/service/key", signal)).toMatchObject({ mode: 0o440, uid: 7, gid: 993 });
        expect(await host.files.vendor("/etc/service/key", signal)).toMatchObject({ mode: 0o440, uid: 995, gid: 993 });
      } finally {
        if (wasRoot) process.seteuid?.(0);
      }
    },
  );

  test("keeps its ledger, and its own files, for root only [host-conformance-8]", async () => {
    const { host, options } = await directory();
    await host.ledger.write("ledger.json", "{}", signal);
    const folder = join(options.directory, "sysroot/var/lib/machine-config-daemon");
    expect([
      (await lstat(folder)).mode & 0o777,
      (await lstat(join(folder, "ledger.json"))).mode & 0o777,
      (await lstat(join(options.directory, "state.json"))).mode & 0o777,
    ]).toEqual([0o700, 0o600, 0o600]);
  });

  test("keeps journal lines readable by root only; a truncated one stays a separate line, and is read as far as possible", async () => {
    const { host, options } = await directory();
    await host.books.append("boot-1", ["whole"], { durable: true }, signal);
    const folder = join(options.directory, "sysroot/var/lib/machine-config-daemon/books");
    const path = join(folder, "journal-boot-1.jsonl");
    expect([(await lstat(folder)).mode & 0o777, (await lstat(path)).mode & 0o777]).toEqual([0o700, 0o600]);
    await writeFile(path, "whole\nha");
    const later = directoryHost(options);
    expect((await later.books.read(signal))[0]?.lines).toEqual(["whole", "ha"]);
    await later.books.append("boot-1", ["next"], { durable: true }, signal);
    await later.books.append("boot-1", ["last"], { durable: false }, signal);
    expect((await later.books.read(signal))[0]?.lines).toEqual(["whole", "ha", "next", "last"]);
  });

  test("rotates a file of journal lines at 4 MiB, keeps 16 MiB in total, and reads the newest lines", async () => {
    const { host, options } = await directoryWith(forgetfulDisk);
    const block = Array.from({ length: 1024 }, () => "x".repeat(1023));
    let serial = 0;
    const numbered = () => block.map((line) => `${(serial += 1)} ${line}`.slice(0, 1023));
    for (let mebibytes = 0; mebibytes < 22; mebibytes += 1)
      await host.books.append(mebibytes < 3 ? "boot-1" : "boot-2", numbered(), { durable: false }, signal);
    const folder = join(options.directory, "sysroot/var/lib/machine-config-daemon/books");
    const names = await readdir(folder);
    const sizes = await Promise.all(names.map(async (name) => (await lstat(join(folder, name))).size));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4 * 1024 * 1024);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(16 * 1024 * 1024);
    expect(names.some((name) => name.startsWith("journal-boot-1"))).toBe(false);
    const [read, ...others] = await host.books.read(signal);
    expect(others).toEqual([]);
    const numbers = (read?.lines ?? []).map((line) => Number.parseInt(line, 10));
    expect(numbers.at(-1)).toBe(serial);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(numbers.length).toBeGreaterThan(400);
  });

  test("a process killed at any call of an append leaves the lines of earlier ones, and what it wrote whole or cut off at its end", async () => {
    let kills = 0;
    for (let at = 1; ; at += 2) {
      const { disk, killAfter } = fallibleDisk();
      const { host, options } = await directoryWith(disk);
      killAfter(at);
      const appends = [
        ["boot-1", "a"],
        ["boot-1", "b"],
        ["boot-2", "c"],
      ] as const;
      let done = 0;
      for (const [boot, line] of appends) {
        const died = await host.books.append(boot, [line], { durable: true }, signal).then(
          () => false,
          () => true,
        );
        if (died) break;
        done += 1;
      }
      killAfter(Infinity);
      const later = directoryHost(options);
      const left = (await later.books.read(signal)).flatMap(({ lines }) => lines);
      expect(left.slice(0, done)).toEqual(["a", "b", "c"].slice(0, done));
      expect(left.length).toBeLessThanOrEqual(done + 1);
      await later.books.append("boot-2", ["next"], { durable: true }, signal);
      expect((await later.books.read(signal)).at(-1)?.lines.at(-1)).toBe("next");
      if (done === appends.length) break;
      kills += 1;
    }
    expect(kills).toBeGreaterThan(5);
  });

  test("setting a password and taking it away leaves the shadow database byte for byte as it was [host-conformance-13]", async () => {
    const { host, real } = await directory();
    const before = await readFile(real("etc/shadow"), "utf8");
    for (const user of ["core", "root"]) await host.users.setPasswordHash(user, "$6$x$y", signal);
    expect(await readFile(real("etc/shadow"), "utf8")).toBe(
      before.replace("core:!!:", "core:$6$x$y:").replace("root:*:", "root:$6$x$y:"),
    );
    expect((await lstat(real("etc/shadow"))).mode & 0o7777).toBe(0o600);
    for (const user of ["core", "root"]) await host.users.setPasswordHash(user, undefined, signal);
    expect(await readFile(real("etc/shadow"), "utf8")).toBe(before);
  });

  test("says what a pull must know: policy, the merged pull secret when it is one, registries, certificates, keys", async () => {
    const { host, store } = await directory();
    await put(host, "/etc/containers/policy.json", file("policy"));
    await put(host, "/etc/containers/registries.conf", file("registries"));
    await put(host, "/etc/docker/certs.d/r:5000/b.crt", file("B"));
    await put(host, "/etc/docker/certs.d/r:5000/a.crt", file("A"));
    await put(host, "/etc/docker/certs.d/r:5000/a.key", file("K"));
    await put(host, "/etc/pki/key.pub", file("key"));
    await put(host, "/etc/mco/internal-registry-pull-secret.json", file("\n", 0o600));
    await put(host, "/var/lib/kubelet/config.json", file('{"auths":{}}', 0o600));
    await host.os.prefetch(newImage, signal);
    await put(host, "/etc/mco/internal-registry-pull-secret.json", file('{"merged":1}', 0o600));
    await put(host, "/run/ostree/auth.json", { kind: "link", target: "/etc/mco/internal-registry-pull-secret.json" });
    await host.os.prefetch(newImage, signal);
    const [first, second] = store.fetched;
    expect(first?.settings).toMatchObject({ policy: "policy", registries: "registries", auth: '{"auths":{}}' });
    expect(second?.settings.auth).toBe('{"merged":1}');
    expect(await first?.settings.certificates("r:5000")).toEqual(["A", "B"]);
    expect(await first?.settings.certificates("../../containers")).toEqual([]);
    expect(await first?.settings.file("/etc/pki/key.pub")).toBe("key");
    expect(await first?.settings.file("/etc/pki/none")).toBeUndefined();
  });

  test("an image that vanishes before it is finalised leaves the old system, and why", async () => {
    const { host, machine, options } = await directory();
    await host.os.stage(os(newImage), undefined, signal);
    await rm(join(options.directory, "..", "images"), { recursive: true });
    await machine.boot({ orderly: true });
    expect((await host.os.status(signal)).booted.image).toBe(oldImage);
    expect(await host.os.finaliseFailure(signal)).toContain("ENOENT");
  });
});

/** A disk that counts, and stops working before a certain call, as a process does that is killed. */
function fallibleDisk() {
  const calls: { verb: keyof Disk; path: string }[] = [];
  let left = Infinity;
  const wrap =
    <Args extends readonly unknown[]>(verb: keyof Disk, call: (...args: Args) => Promise<void>) =>
    async (...args: Args): Promise<void> => {
      if (left <= 0) throw new Error("killed");
      left -= 1;
      const path = String(verb === "symlink" || verb === "rename" ? args[1] : args[0]);
      // The driver names a folder by its descriptor.
      calls.push({ verb, path: join(realpathSync(dirname(path)), basename(path)) });
      await call(...args);
    };
  const disk: Disk = {
    create: wrap("create", systemDisk.create),
    append: wrap("append", systemDisk.append),
    symlink: wrap("symlink", systemDisk.symlink),
    mkdir: wrap("mkdir", systemDisk.mkdir),
    give: wrap("give", systemDisk.give),
    chmod: wrap("chmod", systemDisk.chmod),
    chown: wrap("chown", systemDisk.chown),
    sync: wrap("sync", forgetfulDisk.sync),
    rename: wrap("rename", systemDisk.rename),
    unlink: wrap("unlink", systemDisk.unlink),
    rmdir: wrap("rmdir", systemDisk.rmdir),
  };
  return {
    disk,
    calls,
    countOf: (verb: keyof Disk) => calls.filter((call) => call.verb === verb).length,
    killAfter: (count: number) => {
      left = count;
    },
  };
}

describe("the disk of a directory machine", () => {
  const twoHundred = Array.from({ length: 200 }, (_, index) => ({
    path: `/etc/many/${index % 4}/${index}.conf`,
    entry: file(`contents ${index}`),
  }));

  test("200 files are one flush pass: every file once, every folder once, then nothing at all when they are the same [host-conformance-3]", async () => {
    const { disk, calls, countOf } = fallibleDisk();
    const { host } = await directoryWith(disk);
    await host.files.write([{ path: "/etc/many/first", entry: file("x") }], signal);
    calls.length = 0;
    await host.files.write(twoHundred, signal);
    // Beside the files: the record (a file and its folder), four new folders before they have their names, and after
    // what came into them, and the one they are in.
    expect(countOf("sync")).toBe(200 + 2 + 4 + 4 + 1);
    expect(countOf("create")).toBe(201);
    const onFiles = calls.filter(({ path }) => /\/many\/\d\/\.mco-/.test(path)).map(({ verb }) => verb);
    expect(onFiles.lastIndexOf("create")).toBeLessThan(onFiles.indexOf("sync"));
    const lastContents = calls.findLastIndex(({ verb, path }) => verb === "sync" && path.includes("/.mco-"));
    const firstName = calls.findIndex(({ verb, path }) => verb === "rename" && path.endsWith(".conf"));
    expect(lastContents).toBeLessThan(firstName);
    expect(calls.slice(firstName).filter(({ verb }) => verb === "sync").length).toBe(5);
    calls.length = 0;
    await host.files.write(twoHundred, signal);
    for (const { path } of twoHundred) await host.files.read(path, signal);
    expect(calls).toEqual([]);
  });

  test("a write changes no other file of its list: inode and times stay", async () => {
    const { host, real } = await directory();
    const writes = ["a", "b"].map((name) => ({ path: `/etc/${name}.conf`, entry: file(name) }));
    await host.files.write(writes, signal);
    const before = await lstat(real("etc/a.conf"), { bigint: true });
    await host.files.write([...writes.slice(0, 1), { path: "/etc/b.conf", entry: file("changed") }], signal);
    const after = await lstat(real("etc/a.conf"), { bigint: true });
    expect([after.ino, after.mtimeNs, after.ctimeNs]).toEqual([before.ino, before.mtimeNs, before.ctimeNs]);
    expect(await textOf(host, "/etc/b.conf")).toBe("changed");
  });

  /** Everything on the machine's disk that a driver keeps for the machine: names, contents, modes and owners. */
  async function imageOfDisk(host: Host, options: { readonly directory: string }): Promise<readonly string[]> {
    const seen: string[] = [];
    for (const [name, folder] of [
      ["/etc", join(options.directory, "rootfs", "etc")],
      ["/var", join(options.directory, "sysroot", "var")],
    ] as const)
      for (const { path } of await entriesBelow(folder)) {
        const entry = await host.files.read(`${name}/${path}`, signal);
        seen.push(
          `${name}/${path} ${JSON.stringify(entry?.kind === "file" ? { ...entry, contents: textOfEntry(entry) } : entry)}`,
        );
      }
    return seen;
  }

  test.for([
    ["as root", false],
    ["without root", true],
  ] as const)(
    "a process killed at any call leaves each path old or new, and nothing of its own for the next one, %s [host-conformance-6]",
    async ([, withoutRoot]) => {
      if (process.geteuid?.() === 0 && withoutRoot) process.seteuid?.(nobody);
      try {
        const old = [{ path: "/etc/old/kept.conf", entry: file("old", 0o600, { uid: 3, gid: 4 }) }];
        const next = [
          { path: "/etc/old/kept.conf", entry: file("new", 0o640, { uid: 5, gid: 6 }) },
          { path: "/etc/new/deep/x.conf", entry: file("x"), folder: { mode: 0o700, uid: 1, gid: 1 } },
          { path: "/etc/new/link", entry: { kind: "link", target: "deep" } as const },
        ];
        let kills = 0;
        for (let at = 1; ; at += withoutRoot ? 2 : 1) {
          const { disk, killAfter } = fallibleDisk();
          const { host, options } = await directoryWith(disk);
          await host.files.write(old, signal);
          const before = await imageOfDisk(host, options);
          killAfter(at);
          const died = await host.files.write(next, signal).then(
            () => false,
            () => true,
          );
          killAfter(Infinity);
          if (!died) break;
          kills += 1;
          const later = directoryHost(options);
          for (const { path, entry } of next) {
            const found = await later.files.read(path, signal);
            if (path.endsWith("kept.conf"))
              expect([
                { ...old[0]?.entry, contents: "old" },
                { ...entry, contents: "new" },
              ]).toContainEqual({ ...found, contents: textOfEntry(found) });
            else if (found !== undefined)
              expect({ ...found, contents: textOfEntry(found) }).toEqual({
                ...entry,
                contents: entry.kind === "file" ? textOfEntry(entry) : "link",
              });
          }
          // Goes back: also what is equal already was asked for, so that nothing tells of the attempt.
          await later.files.write(old, signal);
          for (const { path } of next.slice(1)) await later.files.remove(path, signal);
          expect(await imageOfDisk(later, options)).toEqual(before);
        }
        expect(kills).toBeGreaterThan(15);
      } finally {
        if (process.getuid?.() === 0) process.seteuid?.(0);
      }
    },
  );

  test("a host killed at any call of a boot leaves a machine that boots, on the old system or on the new, with no tree of the attempt", async () => {
    let olds = 0;
    let news = 0;
    for (let at = 1; ; at += 6) {
      const { disk, killAfter } = fallibleDisk();
      const { host, machine, options } = await directoryWith(disk);
      await put(host, "/etc/chrony.conf", file("mine"));
      await host.os.stage(os(newImage), undefined, signal);
      killAfter(at);
      const died = await machine.boot({ orderly: true }).then(
        () => false,
        () => true,
      );
      killAfter(Infinity);
      if (!died) break;
      await directoryMachine(options).boot({ orderly: true });
      const later = directoryHost(options);
      const { booted, staged } = await later.os.status(signal);
      expect(staged).toBeUndefined();
      if (booted.image === newImage) news += 1;
      else olds += 1;
      expect(await textOf(later, "/etc/vendor.conf")).toBe(booted.image === newImage ? "2\n" : "1\n");
      expect(await textOf(later, "/etc/chrony.conf")).toBe("mine");
      expect((await readdir(join(options.directory, "sysroot", "deploy"))).length).toBe(
        booted.image === newImage ? 2 : 1,
      );
    }
    expect(olds).toBeGreaterThan(5);
    expect(news).toBeGreaterThan(0);
  });
});
