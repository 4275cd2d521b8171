import { execFileSync } from "node:child_process";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { HostWrite } from "../host.ts";
import { systemDisk } from "./disk.ts";
import { type Hold, heldBelow, heldDisk } from "./held-disk.ts";
import { realOwners } from "./ownership.ts";
import { mostFileBytes } from "./read-regular.ts";
import { entryAt, rootFiles } from "./root-files.ts";
import { resolveInRoot } from "./root-folder.ts";

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
function files(hold: Hold = heldBelow(root)) {
  const disk = heldDisk(root, systemDisk);
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

  test("a folder that becomes a link after it was resolved leads nowhere [host-unsafe-6]", async () => {
    await files().write([write(keys)], never);
    const swapFirst: Hold = async (path, work) => {
      await replaced(".ssh", (at) => fs.symlink("/etc", at));
      return heldBelow(root)(path, work);
    };
    expect(await files(swapFirst).read("/home/core/.ssh/shadow", never)).toBeUndefined();
  });

  test("a folder that becomes a link while it is read from stays the folder [host-unsafe-7]", async () => {
    await files().write([write(keys)], never);
    const held: Hold = (path, work) =>
      heldBelow(root)(path, async (at) => {
        await fs.rename(join(root, "var/home/core/.ssh"), join(root, "var/home/core/.old"));
        await fs.symlink("/etc", join(root, "var/home/core/.ssh"));
        return work(at);
      });
    expect(await files(held).read(keys, never)).toMatchObject({ contents: Buffer.from("ssh-ed25519 AAAA") });
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
    await expect(files().read(keys, never)).rejects.toMatchObject({ code: "MCO_HOST_COMMAND_FAILED" });
    await expect(systemDisk.sync(join(root, "var/home/core/.ssh/authorized_keys"))).rejects.toThrow();
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
});
