import * as fs from "node:fs/promises";
import { constants } from "node:fs";
import { basename, dirname, relative, sep } from "node:path";
import type { Disk } from "./disk.ts";

/**
 * A disk that never leaves `root`, whoever changes folders meanwhile: each folder on the way is opened by name below
 * the one before, no link among them, and what is done is done in the last one by its descriptor (proc(5),
 * /proc/pid/fd). Paths are resolved ones; one that has become a link since then fails with `ELOOP` or `ENOTDIR`.
 */
export function heldDisk(root: string, disk: Disk): Disk {
  async function within<T>(path: string, work: (path: string) => Promise<T>): Promise<T> {
    if (path === root) return work(path);
    const folders = relative(root, dirname(path))
      .split(sep)
      .filter((name) => name !== "");
    if (folders[0] === "..") throw Object.assign(new Error(`${path} is not below ${root}`), { code: "EXDEV" });
    let held = await fs.open(root, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      for (const name of folders) {
        const next = await fs.open(
          `/proc/self/fd/${held.fd}/${name}`,
          constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW,
        );
        await held.close();
        held = next;
      }
      return await work(`/proc/self/fd/${held.fd}/${basename(path)}`);
    } finally {
      await held.close();
    }
  }

  return {
    create: (path, contents) => within(path, (held) => disk.create(held, contents)),
    append: (path, contents) => within(path, (held) => disk.append(held, contents)),
    symlink: (target, path) => within(path, (held) => disk.symlink(target, held)),
    mkdir: (path) => within(path, (held) => disk.mkdir(held)),
    chmod: (path, mode) => within(path, (held) => disk.chmod(held, mode)),
    chown: (path, uid, gid) => within(path, (held) => disk.chown(held, uid, gid)),
    sync: (path) => within(path, (held) => disk.sync(held)),
    rename: (from, to) => within(from, (heldFrom) => within(to, (heldTo) => disk.rename(heldFrom, heldTo))),
    unlink: (path) => within(path, (held) => disk.unlink(held)),
    rmdir: (path) => within(path, (held) => disk.rmdir(held)),
  };
}
