import { closeSync, constants, openSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import type { Disk } from "./disk.ts";

/** Runs `work` with a name for `path` that stays valid under concurrent changes of the folders above. */
export type DiskHold = <T>(path: string, work: (path: string) => Promise<T>) => Promise<T>;

/**
 * Opens each folder on the way by name below the one before, no link among them, and names the path by the descriptor of
 * the last one (proc(5), /proc/pid/fd). Paths are resolved ones, below the first of `roots` that is above them; one that
 * has become a link since then fails with `ELOOP` or `ENOTDIR`.
 */
export function heldBelow(...roots: readonly string[]): DiskHold {
  return async (path, work) => {
    // A descriptor that somebody holds already.
    if (roots.includes(path) || path.startsWith("/proc/self/fd/")) return work(path);
    const root = roots.find((each) => relative(each, path).split(sep)[0] !== "..");
    if (root === undefined)
      throw Object.assign(new Error(`${path} is not below ${roots.join(" or ")}`), { code: "EXDEV" });
    const folders = relative(root, dirname(path))
      .split(sep)
      .filter((name) => name !== "");
    // Without a turn of the event loop for each: some folders lie above every file, and the kernel has them at hand.
    let held = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      for (const name of folders) {
        const next = openSync(
          `/proc/self/fd/${held}/${name}`,
          constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW,
        );
        closeSync(held);
        held = next;
      }
      return await work(`/proc/self/fd/${held}/${basename(path)}`);
    } finally {
      closeSync(held);
    }
  };
}

/** Holds nothing: for folders that nobody else can change. */
export const asNamed: DiskHold = (path, work) => work(path);

/** Does `work` in a folder: a link that has its name by then is refused as one. */
export const heldInside =
  (hold: DiskHold): DiskHold =>
  (folder, work) =>
    hold(join(folder, "any"), (at) => work(dirname(at)));

/** A disk that never leaves `roots`, even under concurrent changes of folders. Paths as in {@link heldBelow}. */
export function heldDisk(roots: string | readonly string[], disk: Disk): Disk {
  const within = heldBelow(...[roots].flat());

  return {
    create: (path, contents, own) => within(path, (held) => disk.create(held, contents, own)),
    append: (path, contents) => within(path, (held) => disk.append(held, contents)),
    symlink: (target, path) => within(path, (held) => disk.symlink(target, held)),
    mkdir: (path, own, inside) => within(path, (held) => disk.mkdir(held, own, inside)),
    give: (path, own, uid) => within(path, (held) => disk.give(held, own, uid)),
    chmod: (path, mode) => within(path, (held) => disk.chmod(held, mode)),
    chown: (path, uid, gid) => within(path, (held) => disk.chown(held, uid, gid)),
    sync: (path) => within(path, (held) => disk.sync(held)),
    rename: (from, to) => within(from, (heldFrom) => within(to, (heldTo) => disk.rename(heldFrom, heldTo))),
    unlink: (path) => within(path, (held) => disk.unlink(held)),
    rmdir: (path) => within(path, (held) => disk.rmdir(held)),
  };
}
