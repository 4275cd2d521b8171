import { execFileSync } from "node:child_process";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type HostWrite, mostDocumentBytes } from "../host.ts";
import { directoryHost, directoryMachine } from "./directory-host.ts";
import { type Disk, systemDisk } from "./disk.ts";
import { type DiskHold, heldBelow, heldDisk } from "./held-disk.ts";
import { realOwners } from "./ownership.ts";
import { pullSettings } from "./pull-settings.ts";
import { mostFileBytes } from "./read-regular.ts";
import { entryAt, rootFiles } from "./root-files.ts";
import { resolveInRoot } from "./root-folder.ts";
import { ledgerFolder, rootLedger } from "./root-ledger.ts";

const never = new AbortController().signal;
/** The user core of the machine. */
const core = 1000;
const keys = "/home/core/.ssh/authorized_keys";

let root = "";
beforeEach(async () => {
  root = await fs.mkdtemp(join(tmpdir(), "mco-unsafe-"));
  await fs.mkdir(join(root, "etc"));
  await fs.mkdir(join(root, "var/lib"), { recursive: true });
  await fs.writeFile(join(root, "etc/shadow"), "root:canary", { mode: 0o600 });
  // As on every machine of ostree: a link of root's.
  await fs.mkdir(join(root, "var/home/core/.ssh"), { recursive: true });
  await fs.symlink("var/home", join(root, "home"));
  for (const path of ["var/home/core", "var/home/core/.ssh"]) await fs.chown(join(root, path), core, core);
});
afterEach(() => fs.rm(root, { recursive: true, force: true }));

/** The files of that machine, as a real one has them. `hold`: what happens between a check and a use. */
function files(hold: DiskHold = heldBelow(root), real: Disk = systemDisk) {
  const disk = heldDisk(root, real);
  const locate = (path: string) => resolveInRoot(root, path);
  return rootFiles({
    locate,
    disk,
    hold,
    owners: realOwners(disk),
    recordPath: async () => join(root, "var/lib/made"),
  });
}
const write = (path: string): HostWrite => ({
  path,
  entry: { kind: "file", contents: new TextEncoder().encode("ssh-ed25519 AAAA"), mode: 0o600, uid: core, gid: core },
});
const shadow = () => fs.readFile(join(root, "etc/shadow"), "utf8");
/** Core replaces something of its own. */
async function replaced(path: string, make: (at: string) => Promise<void>): Promise<void> {
  const at = join(root, "var/home/core", path);
  await fs.rm(at, { recursive: true, force: true });
  await make(at);
  await fs.lchown(at, core, core);
}

// Only root can give files to another user.
describe.skipIf(process.getuid?.() !== 0)("in a folder of a user of the machine", () => {
  test("files are read and written, through links of root's above it [host-unsafe-1]", async () => {
    await files().write([write(keys)], never);
    expect(await files().read(keys, never)).toMatchObject({ kind: "file", uid: core, mode: 0o600 });
  });

  test("a link in place of a file is neither read nor written through [host-unsafe-2]", async () => {
    await replaced(".ssh/authorized_keys", (at) => fs.symlink("/etc/shadow", at));
    expect(await files().read(keys, never)).toEqual({ kind: "link", target: "/etc/shadow" });
    await files().write([write(keys)], never);
    expect(await shadow()).toBe("root:canary");
    expect((await fs.lstat(join(root, "var/home/core/.ssh/authorized_keys"))).isFile()).toBe(true);
  });

  test.for<[title: string, target: string]>([
    ["a folder of root's", "/etc"],
    ["a folder of root's, by a relative path", "../../../etc"],
    ["a folder of its own", "/home/core/elsewhere"],
  ])("a link in place of a folder leads nowhere: %s [host-unsafe-3]", async ([, target]) => {
    await replaced(".ssh", (at) => fs.symlink(target, at));
    for (const path of [keys, "/home/core/.ssh/shadow", "/home/core/.ssh/new/file"]) {
      await expect(files().read(path, never)).rejects.toMatchObject({ code: "MCO_HOST_UNSAFE_PATH" });
      await expect(files().write([write(path)], never)).rejects.toMatchObject({ code: "MCO_HOST_UNSAFE_PATH" });
      await expect(files().remove(path, never)).rejects.toMatchObject({ code: "MCO_HOST_UNSAFE_PATH" });
    }
    expect(await shadow()).toBe("root:canary");
    expect(await fs.readdir(join(root, "etc"))).toEqual(["shadow"]);
  });

  test("a link of root's that a user moved into a folder of its own leads nowhere [host-unsafe-4]", async () => {
    await fs.symlink("/etc", join(root, "var/home/core/theirs"));
    await expect(files().read("/home/core/theirs/shadow", never)).rejects.toMatchObject({
      code: "MCO_HOST_UNSAFE_PATH",
    });
  });

  test("a link that anybody could place in a folder of root's leads nowhere [host-unsafe-5]", async () => {
    await fs.mkdir(join(root, "var/tmp"));
    await fs.chmod(join(root, "var/tmp"), 0o1777);
    await fs.symlink("/etc", join(root, "var/tmp/x"));
    expect(await files().read("/var/tmp/x/shadow", never)).toMatchObject({ kind: "file" });
    await fs.lchown(join(root, "var/tmp/x"), core, core);
    await expect(files().read("/var/tmp/x/shadow", never)).rejects.toMatchObject({ code: "MCO_HOST_UNSAFE_PATH" });
  });

  // Modes and groups as Debian and systems of ostree have them.
  const staff = 50;
  test.for<[title: string, mode: number, gid: number, follows: boolean]>([
    ["/var/local of Debian, root:staff 2775", 0o2775, staff, false],
    ["/var/mail of Debian, root:mail 2775", 0o2775, 8, false],
    ["a folder that a group may write, 0775", 0o775, core, false],
    ["a folder that everybody may write, 0777", 0o777, 0, false],
    ["a sticky folder of a group, 3775", 0o3775, staff, true],
    ["/tmp, root:root 1777", 0o1777, 0, true],
    ["a folder that root's group may write, 0775", 0o775, 0, true],
    ["/var/log of Debian, root:syslog 0755", 0o755, 104, true],
    ["/usr/local of ostree, root:root 0755", 0o755, 0, true],
  ])("a link of root's is followed only where no one else could move it: %s [host-unsafe-11]", async (row) => {
    const [, mode, gid, follows] = row;
    const folder = join(root, "var/open");
    await fs.mkdir(folder);
    await fs.symlink("/etc", join(folder, "x"));
    await fs.chown(folder, 0, gid);
    await fs.chmod(folder, mode);
    const reading = files().read("/var/open/x/shadow", never);
    if (follows) expect(await reading).toMatchObject({ kind: "file" });
    else await expect(reading).rejects.toMatchObject({ code: "MCO_HOST_UNSAFE_PATH" });
  });

  test("a folder that becomes a link after it was resolved leads nowhere [host-unsafe-6]", async () => {
    await files().write([write(keys)], never);
    const swapFirst: DiskHold = async (path, work) => {
      await replaced(".ssh", (at) => fs.symlink("/etc", at));
      return heldBelow(root)(path, work);
    };
    expect(await files(swapFirst).read("/home/core/.ssh/shadow", never)).toBeUndefined();
  });

  test("a folder that becomes a link while it is read from stays the folder [host-unsafe-7]", async () => {
    await files().write([write(keys)], never);
    const held: DiskHold = (path, work) =>
      heldBelow(root)(path, async (at) => {
        await fs.rename(join(root, "var/home/core/.ssh"), join(root, "var/home/core/.old"));
        await fs.symlink("/etc", join(root, "var/home/core/.ssh"));
        return work(at);
      });
    expect(await files(held).read(keys, never)).toMatchObject({ contents: Buffer.from("ssh-ed25519 AAAA") });
  });

  test("a key that becomes a link, or lies behind one, after it was resolved is not read [host-unsafe-17]", async () => {
    const key = "/home/core/.ssh/key";
    const put = () => fs.writeFile(join(root, "var/home/core/.ssh/key"), "a key");
    const settings = (hold: DiskHold) => pullSettings((path) => resolveInRoot(root, path, {}, true), hold);
    await put();
    expect(await (await settings(heldBelow(root))).file(key)).toBe("a key");
    const swaps = [
      () => replaced(".ssh/key", (at) => fs.symlink(join(root, "etc/shadow"), at)),
      () => replaced(".ssh", (at) => fs.symlink(join(root, "etc"), at)),
    ];
    for (const swap of swaps) {
      const { file } = await settings(async (path, work) => {
        if (path.endsWith("/key")) await swap();
        return heldBelow(root)(path, work);
      });
      expect(await file(key)).toBeUndefined();
      await fs.rm(join(root, "var/home/core/.ssh/key"), { force: true });
      if ((await fs.lstat(join(root, "var/home/core/.ssh"))).isDirectory()) await put();
    }
  });

  test("a file that becomes a link between check and read is not followed [host-unsafe-8]", async () => {
    await files().write([write(keys)], never);
    const at = join(root, "var/home/core/.ssh/authorized_keys");
    const place = () => fs.symlink(join(root, "etc/shadow"), `${at}.link`);
    await place();
    const seen: unknown[] = [];
    for (let round = 0; round < 200; round++) {
      const swap = fs.rename(`${at}.link`, at).then(place);
      seen.push(await entryAt(at, realOwners(systemDisk)).catch((error: unknown) => error));
      await swap;
      await fs.unlink(at);
      await fs.writeFile(at, "own");
    }
    expect(JSON.stringify(seen)).not.toContain(Buffer.from("root:canary").toJSON().data.join(","));
  });

  test("a pipe does not make the daemon wait, and is no file [host-unsafe-9]", async () => {
    await replaced(".ssh/authorized_keys", (at) => {
      execFileSync("mkfifo", [at]);
      return Promise.resolve();
    });
    await expect(files().read(keys, never)).rejects.toMatchObject({ code: "MCO_HOST_NO_FILE" });
    await expect(systemDisk.sync(join(root, "var/home/core/.ssh/authorized_keys"))).rejects.toThrow();
    await files().write([write(keys)], never);
    expect(await files().read(keys, never)).toMatchObject({ contents: Buffer.from("ssh-ed25519 AAAA") });
  });

  test("a file of a gigabyte is not read, and can be replaced [host-unsafe-10]", async () => {
    const sparse = async (at: string) => {
      await fs.writeFile(at, "");
      await fs.truncate(at, 1024 * 1024 * 1024);
    };
    await replaced(".ssh/authorized_keys", sparse);
    const before = process.memoryUsage().rss;
    await expect(files().read(keys, never)).rejects.toMatchObject({
      code: "MCO_HOST_FILE_TOO_LARGE",
      facts: { most: mostFileBytes },
    });
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
    await files().write([write(keys)], never);
    expect(await files().read(keys, never)).toMatchObject({ contents: Buffer.from("ssh-ed25519 AAAA") });
  });

  test.for<[title: string, verb: "create" | "mkdir", secret: string]>([
    ["a file", "create", ".ssh/secret"],
    ["a folder", "mkdir", "secret"],
  ])("%s of root's that a user gives a temporary name stays root's [host-unsafe-15]", async ([, verb, secret]) => {
    const theirs = join(root, "var/home/core");
    if (verb === "mkdir") {
      await fs.rm(join(theirs, ".ssh"), { recursive: true });
      await fs.mkdir(join(theirs, secret), { mode: 0o700 });
      await fs.writeFile(join(theirs, secret, "inside"), "root's", { mode: 0o600 });
    } else await fs.writeFile(join(theirs, secret), "root's", { mode: 0o600 });
    const { ino } = await fs.lstat(join(theirs, secret));
    let isSwapped = false;
    const swap = async (path: string) => {
      const at = await fs.realpath(path);
      if (isSwapped || !at.startsWith(`${await fs.realpath(theirs)}/`)) return;
      isSwapped = true;
      await fs.rename(at, `${at}.old`);
      await fs.rename(join(theirs, secret), at);
    };
    const disk: Disk = {
      ...systemDisk,
      create: async (path, contents, own) => {
        await systemDisk.create(path, contents, own);
        if (verb === "create") await swap(path);
      },
      mkdir: async (path, own, inside) => {
        await systemDisk.mkdir(path, own, inside);
        if (verb === "mkdir") await swap(path);
      },
    };
    const folder = { mode: 0o700, uid: core, gid: core };
    await files(undefined, disk)
      .write([{ ...write(keys), folder }], never)
      .catch(() => undefined);
    expect(isSwapped).toBe(true);
    const found: { readonly ino: number; readonly uid: number }[] = [];
    for (const name of await fs.readdir(theirs, { recursive: true })) found.push(await fs.lstat(join(theirs, name)));
    for (const stat of found) if (stat.ino === ino) expect(stat.uid).toBe(0);
  });

  test("a new folder has its owner at once, and one that is there already is given to nobody [host-unsafe-16]", async () => {
    const at = join(root, "var/new");
    const own = { mode: 0o700, uid: core, gid: core };
    await systemDisk.mkdir(at, own);
    expect((await fs.lstat(at)).uid).toBe(core);
    await expect(systemDisk.mkdir(at, own)).rejects.toMatchObject({ code: "EEXIST" });
  });

  const owned = { mode: 0o700, uid: core, gid: core };

  test("of new folders, one is a user's when all below it are made, and not before [host-unsafe-18]", async () => {
    const above: number[] = [];
    const disk: Disk = {
      ...systemDisk,
      mkdir: async (path, own, inside) => {
        if (!path.endsWith("/.new") && !/\/\.mco-/.test(path)) above.push((await fs.stat(join(path, ".."))).uid);
        await systemDisk.mkdir(path, own, inside);
      },
    };
    await files(undefined, disk).write([{ ...write("/home/core/.new/b/c/file"), folder: owned }], never);
    expect(above).toEqual([0, 0]);
    for (const path of [".new", ".new/b", ".new/b/c"])
      expect(await files().read(`/home/core/${path}`, never)).toEqual({ kind: "folder", ...owned });
  });

  test.for<[title: string, before: object, own: object, isGiven: boolean]>([
    ["one of root's to the user", { uid: 0 }, {}, false],
    ["one of root's to root, with another mode", { uid: 0 }, { uid: 0, mode: 0o755 }, false],
    ["one of another user to this one", { uid: core + 1 }, {}, false],
    ["its own to root", { mode: 0o755 }, { uid: 0 }, true],
    ["its own to another user", {}, { uid: core + 1 }, true],
    ["its own, with another mode", { mode: 0o755 }, {}, true],
    ["one of the new owner, with another mode", { uid: core + 1 }, { uid: core + 1, mode: 0o755 }, true],
  ])(
    "a folder that a user may have put there is given away only where it was the user's: %s [host-unsafe-19]",
    async (each) => {
      const [, before, own, isGiven] = each;
      const [was, is] = [
        { ...owned, ...before },
        { ...owned, ...own },
      ];
      const at = join(root, "var/home/core/.config");
      await fs.mkdir(at);
      await fs.chown(at, was.uid, was.gid);
      await fs.chmod(at, was.mode);
      const giving = files().makeFolder("/home/core/.config", is, never);
      if (isGiven) await giving;
      else await expect(giving).rejects.toMatchObject({ code: "MCO_HOST_UNSAFE_PATH" });
      expect(await files().read("/home/core/.config", never)).toEqual({ kind: "folder", ...(isGiven ? is : was) });
    },
  );

  test("a folder of root's in a folder of root's is given to a user, and no other one that takes its place [host-unsafe-20]", async () => {
    const make = async (name: string) => {
      await fs.mkdir(join(root, "var/lib", name), { mode: 0o700 });
      return join(root, "var/lib", name);
    };
    await make("app");
    await files().makeFolder("/var/lib/app", owned, never);
    expect((await fs.stat(join(root, "var/lib/app"))).uid).toBe(core);
    const mine = join(root, "var/home/core/.config");
    await fs.mkdir(mine, { mode: 0o755 });
    await fs.chown(mine, core, core);
    const theirs = join(root, "var/home/core/rootdir");
    await fs.mkdir(theirs, { mode: 0o700 });
    const swapped: Disk = {
      ...systemDisk,
      give: async (path, own, uid) => {
        await fs.rename(mine, `${mine}.old`);
        await fs.rename(theirs, mine);
        await systemDisk.give(path, own, uid);
      },
    };
    await expect(files(undefined, swapped).makeFolder("/home/core/.config", owned, never)).rejects.toThrow();
    expect((await fs.stat(mine)).uid).toBe(0);
  });

  test("a document that could not be read again is not written [host-unsafe-14]", async () => {
    const ledger = rootLedger((path) => resolveInRoot(root, path), heldDisk(root, systemDisk));
    await ledger.write("ledger.json", "{}", never);
    await expect(ledger.write("ledger.json", "x".repeat(mostDocumentBytes + 1), never)).rejects.toMatchObject({
      code: "MCO_HOST_FILE_TOO_LARGE",
    });
    expect(await ledger.read("ledger.json", never)).toBe("{}");
    // An earlier release wrote what it could not read.
    const at = join(root, ledgerFolder, "originals.json");
    await fs.writeFile(at, "");
    await fs.truncate(at, mostFileBytes + 1);
    expect(await ledger.read("originals.json", never)).toHaveLength(mostFileBytes + 1);
  });

  /** A machine in a folder, as `mco up` runs it, with what happens right before a call of its disk. */
  async function machineInFolder(before: Partial<Record<keyof Disk, (path: string) => Promise<void>>>) {
    const directory = join(root, "machine");
    const tree = join(root, "tree");
    await fs.mkdir(join(tree, "usr/etc"), { recursive: true });
    await fs.mkdir(directory);
    const hooked = (verb: keyof Disk) =>
      ({
        [verb]: async (...args: readonly string[]) => {
          await before[verb]?.(args[0] ?? "");
          await (systemDisk[verb] as (...given: readonly unknown[]) => Promise<void>)(...args);
        },
      }) as Partial<Disk>;
    const disk: Disk = { ...systemDisk, ...hooked("create"), ...hooked("rename"), ...hooked("unlink") };
    const images = { treeOf: async () => tree, fetch: async () => undefined };
    const machine = directoryMachine({ directory, images, disk });
    await machine.provision({ image: "a", kernelArguments: [], packages: [], kernelType: "default" });
    const host = directoryHost({ directory, images, disk, requestReboot: async () => undefined });
    const home = join(directory, "sysroot/var/home/core");
    await fs.mkdir(join(home, ".ssh"));
    await fs.lchown(join(home, ".ssh"), core, core);
    return { machine, host, home };
  }

  test.for<keyof Disk>(["create", "rename"])(
    "of a machine in a folder, a user who swaps it before the call of the disk leads root nowhere: %s [host-unsafe-12]",
    async (verb) => {
      const outside = join(root, "outside");
      await fs.mkdir(outside);
      let home = "";
      const swap = async () => {
        if (home === "") return;
        await fs.rename(join(home, ".ssh"), join(home, ".old"));
        await fs.symlink(outside, join(home, ".ssh"));
        // What is there by then has the name that root is about to use.
        for (const name of await fs.readdir(join(home, ".old"))) await fs.writeFile(join(outside, name), "root's");
        home = "";
      };
      const made = await machineInFolder({ [verb]: swap });
      home = made.home;
      await expect(made.host.files.write([write(keys)], never)).rejects.toThrow();
      for (const name of await fs.readdir(outside)) {
        expect((await fs.stat(join(outside, name))).uid).toBe(0);
        expect(await fs.readFile(join(outside, name), "utf8")).toBe("root's");
      }
    },
  );

  test("a machine in a folder that is removed takes nothing else with it [host-unsafe-13]", async () => {
    const outside = join(root, "outside");
    await fs.mkdir(outside);
    await fs.writeFile(join(outside, "theirs"), "root's");
    let home = "";
    const made = await machineInFolder({
      async unlink(path) {
        if (home === "" || !path.endsWith("theirs")) return;
        await fs.rename(join(home, ".ssh"), join(home, ".old"));
        await fs.symlink(outside, join(home, ".ssh"));
        home = "";
      },
    });
    await fs.writeFile(join(made.home, ".ssh/theirs"), "core's");
    home = made.home;
    await made.machine.wipe().catch(() => undefined);
    expect(await fs.readFile(join(outside, "theirs"), "utf8")).toBe("root's");
  });
});
