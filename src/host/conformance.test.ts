import { mkdtemp, mkdir, rm, writeFile, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { systemRandom } from "../ports/node/index.ts";
import { directoryHost, directoryMachine } from "./directory/directory-host.ts";
import type { Host, Machine, PlainFile } from "./host.ts";
import { memoryHost } from "./memory/memory-host.ts";

const signal = new AbortController().signal;
const oldImage = "os/stock@sha256:old";
const newImage = "os/stock@sha256:new";
const unit = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
const passwd = "root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:core:/home/core:/bin/bash\n";

const images = {
  [oldImage]: { etc: { "/etc/chrony.conf": "pool old\n", "/etc/passwd": passwd, "/etc/group": "core:x:1000:\n", "/etc/vendor.conf": "1\n" }, usr: { "/usr/lib/systemd/system/chronyd.service": unit } },
  [newImage]: { etc: { "/etc/chrony.conf": "pool new\n", "/etc/passwd": passwd, "/etc/group": "core:x:1000:\n", "/etc/vendor.conf": "2\n" }, usr: { "/usr/lib/systemd/system/chronyd.service": unit } },
};

interface Subject {
  readonly host: Host;
  readonly machine: Machine;
  readonly seenBy: (service: string) => Promise<Readonly<Record<string, string>>>;
  readonly reboots: string[];
  plantLink?: (path: string, target: string) => Promise<void>;
}

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

async function memory(): Promise<Subject> {
  const reboots: string[] = [];
  const host = memoryHost({ images, image: oldImage, random: systemRandom, onReboot: (because) => reboots.push(because) });
  await host.boot({ orderly: true });
  return { host, machine: host, seenBy: async (service) => host.seenBy(service), reboots };
}

async function directory(): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), "mco-host-"));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const trees: Record<string, string> = {};
  for (const [name, { etc, usr }] of Object.entries(images)) {
    const tree = join(folder, "images", name.replaceAll(/[/:@]/g, "_"));
    trees[name] = tree;
    for (const [path, contents] of [...Object.entries(etc).map(([p, c]) => [`/usr${p}`, c] as const), ...Object.entries(usr)]) {
      await mkdir(join(tree, path, ".."), { recursive: true });
      await writeFile(join(tree, path), contents);
    }
  }
  const store = {
    treeOf: async (image: string) => {
      const tree = trees[image];
      if (tree === undefined) throw new Error(`no image ${image}`);
      return tree;
    },
  };
  const reboots: string[] = [];
  const options = { directory: join(folder, "node"), images: store, requestReboot: async (because: string) => void reboots.push(because) };
  const machine = directoryMachine(options);
  await mkdir(options.directory);
  await machine.provision({ image: oldImage, kernelArguments: [] });
  await machine.boot({ orderly: true });
  const { readFile } = await import("node:fs/promises");
  return {
    host: directoryHost(options),
    machine,
    reboots,
    seenBy: async (service) => (JSON.parse(await readFile(join(options.directory, "units.json"), "utf8")) as { services: Record<string, { read: Record<string, string> }> }).services[service]?.read ?? {},
    plantLink: (path, target) => symlink(target, join(options.directory, "rootfs", path)),
  };
}

const file = (text: string, mode = 0o644): PlainFile => ({ kind: "file", contents: new TextEncoder().encode(text), mode, uid: 0, gid: 0 });
const textOf = async (host: Host, path: string) => {
  const entry = await host.files.read(path, signal);
  return entry?.kind === "file" ? new TextDecoder().decode(entry.contents) : entry?.kind;
};

describe.each([
  ["memory", memory],
  ["directory", directory],
] as const)("every host driver: %s", (_name, make) => {
  test("an absent path reads as undefined, and removing it is no error", async () => {
    const { host } = await make();
    expect(await host.files.read("/etc/none/of/this", signal)).toBeUndefined();
    await host.files.remove("/etc/none/of/this", signal);
  });

  test("a written file has its contents, mode and owner, and replaces a link", async () => {
    const { host } = await make();
    await host.files.write("/etc/a/b.conf", { kind: "link", target: "/etc/elsewhere" }, {}, signal);
    await host.files.write("/etc/a/b.conf", file("x", 0o600), {}, signal);
    const entry = await host.files.read("/etc/a/b.conf", signal);
    expect(entry).toMatchObject({ kind: "file", mode: 0o600, uid: 0, gid: 0 });
    expect(await textOf(host, "/etc/a/b.conf")).toBe("x");
  });

  test("removing the last file of folders that were made for it removes them too", async () => {
    const { host } = await make();
    await host.files.write("/etc/made/deep/b.conf", file("x"), {}, signal);
    await host.files.remove("/etc/made/deep/b.conf", signal);
    expect(await host.files.read("/etc/made", signal)).toBeUndefined();
  });

  test("what the image ships in /etc is there, and known as the vendor's after a change", async () => {
    const { host } = await make();
    expect(await textOf(host, "/etc/chrony.conf")).toBe("pool old\n");
    await host.files.write("/etc/chrony.conf", file("mine"), {}, signal);
    const vendor = await host.files.vendor("/etc/chrony.conf", signal);
    expect(vendor?.kind === "file" ? new TextDecoder().decode(vendor.contents) : vendor).toBe("pool old\n");
    expect(await host.files.vendor("/etc/mine-only", signal)).toBeUndefined();
  });

  test("/usr cannot be written", async () => {
    const { host } = await make();
    await expect(host.files.write("/usr/bin/x", file("x"), {}, signal)).rejects.toMatchObject({ code: "MCO_HOST_READ_ONLY" });
  });

  test("staging changes nothing until an orderly boot, which merges /etc three ways", async () => {
    const { host, machine } = await make();
    await host.files.write("/etc/chrony.conf", file("mine"), {}, signal);
    await host.files.write("/etc/new.conf", file("added"), {}, signal);
    await host.files.write("/var/lib/kept", file("kept"), {}, signal);
    await host.files.write("/run/gone", file("gone"), {}, signal);
    const before = await host.os.status(signal);
    await host.os.stage({ image: newImage, kernelArguments: ["quiet"] }, signal);
    await host.os.stage({ image: newImage, kernelArguments: ["quiet"] }, signal);
    expect(await textOf(host, "/etc/vendor.conf")).toBe("1\n");
    await machine.boot({ orderly: true });
    const after = await host.os.status(signal);
    expect(after.booted).toEqual({ image: newImage, kernelArguments: ["quiet"] });
    expect(after.staged).toBeUndefined();
    expect(after.bootId).not.toBe(before.bootId);
    expect(await textOf(host, "/etc/chrony.conf")).toBe("mine");
    expect(await textOf(host, "/etc/new.conf")).toBe("added");
    expect(await textOf(host, "/etc/vendor.conf")).toBe("2\n");
    expect(await textOf(host, "/var/lib/kept")).toBe("kept");
    expect(await host.files.read("/run/gone", signal)).toBeUndefined();
  });

  test("a power cut finalises nothing: the staged deployment is gone and /etc is as it was", async () => {
    const { host, machine } = await make();
    await host.files.write("/etc/chrony.conf", file("mine"), {}, signal);
    await host.os.stage({ image: newImage, kernelArguments: [] }, signal);
    await machine.boot({ orderly: false });
    const after = await host.os.status(signal);
    expect(after.booted.image).toBe(oldImage);
    expect(await textOf(host, "/etc/chrony.conf")).toBe("mine");
    expect(await textOf(host, "/etc/vendor.conf")).toBe("1\n");
  });

  test("a discarded staged deployment does not boot", async () => {
    const { host, machine } = await make();
    await host.os.stage({ image: newImage, kernelArguments: [] }, signal);
    await host.os.discardStaged(signal);
    await host.os.discardStaged(signal);
    await machine.boot({ orderly: true });
    expect((await host.os.status(signal)).booted.image).toBe(oldImage);
  });

  test("an image that cannot be had is refused when it is staged", async () => {
    const { host } = await make();
    await expect(host.os.stage({ image: "os/none", kernelArguments: [] }, signal)).rejects.toThrow();
    expect((await host.os.status(signal)).staged).toBeUndefined();
  });

  test("a reboot request reaches whoever runs the machine", async () => {
    const { host, reboots } = await make();
    await host.os.reboot("because of x", signal);
    expect(reboots).toEqual(["because of x"]);
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

  test("a unit is absent, disabled, enabled, masked, as its files and links say", async () => {
    const { host } = await make();
    const is = async (name: string) => (await host.units.state([name], signal)).get(name)?.enablement;
    expect(await is("x.service")).toBe("absent");
    await host.files.write("/etc/systemd/system/x.service", file(unit), {}, signal);
    expect(await is("x.service")).toBe("disabled");
    await host.units.enable("x.service", signal);
    await host.units.enable("x.service", signal);
    expect(await is("x.service")).toBe("enabled");
    await host.units.disable("x.service", signal);
    expect(await is("x.service")).toBe("disabled");
    await host.files.write("/etc/systemd/system/x.service", { kind: "link", target: "/dev/null" }, {}, signal);
    expect(await is("x.service")).toBe("masked");
  });

  test("a service sees a changed file after a reload, and a changed unit only after daemon-reload and restart", async () => {
    const { host, seenBy } = await make();
    const path = "/etc/containers/registries.conf";
    const dropIn = "/etc/systemd/system/crio.service.d/10-x.conf";
    await host.files.write("/etc/systemd/system/crio.service", file(unit), {}, signal);
    await host.files.write(path, file("a"), {}, signal);
    await host.units.daemonReload(signal);
    await host.units.restart("crio.service", signal);
    const first = await seenBy("crio.service");
    await host.files.write(path, file("b"), {}, signal);
    await host.files.write(dropIn, file("[Service]\n"), {}, signal);
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

  test("users are found, and a password hash is set and locked again", async () => {
    const { host } = await make();
    expect(await host.users.lookup("core", signal)).toEqual({ uid: 1000, gid: 1000, home: "/home/core" });
    expect(await host.users.lookup("nobody-here", signal)).toBeUndefined();
    await host.users.setPasswordHash("core", "$6$x$y", signal);
    expect(await host.users.passwordHash("core", signal)).toBe("$6$x$y");
    await host.users.setPasswordHash("core", undefined, signal);
    expect(await host.users.passwordHash("core", signal)).toBeUndefined();
  });

  test("a watch tells of a write, of a removal and of a file in a folder that did not exist", async () => {
    const { host } = await make();
    await host.files.write("/etc/w.conf", file("a"), {}, signal);
    const waiting = new Map<string, () => void>();
    const next = (path: string) => new Promise<void>((resolve) => waiting.set(path, resolve));
    const stop = host.files.watch(["/etc/w.conf", "/etc/later/f.conf"], (path) => waiting.get(path)?.());
    // Watches of the directory driver are armed in the background: write until one is seen.
    const seen = async (path: string, act: () => Promise<void>) => {
      let told = false;
      const heard = next(path).then(() => {
        told = true;
      });
      while (!told) {
        await act();
        await Promise.race([heard, new Promise((resolve) => setImmediate(resolve))]);
      }
    };
    let version = 0;
    await seen("/etc/w.conf", () => host.files.write("/etc/w.conf", file(`v${(version += 1)}`), {}, signal));
    await seen("/etc/later/f.conf", () => host.files.write("/etc/later/f.conf", file(`v${(version += 1)}`), {}, signal));
    stop();
  });
});

test("a link planted inside a directory machine never leads out of it", async () => {
  const { host, plantLink } = await directory();
  await plantLink?.("etc/out", "/");
  await host.files.write("/etc/out/etc/inside.conf", file("x"), {}, signal);
  expect(await textOf(host, "/etc/inside.conf")).toBe("x");
});
