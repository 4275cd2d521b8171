import * as fs from "node:fs/promises";
import { constants } from "node:fs";
import type { Ownership } from "../host.ts";

/**
 * Every call by which a driver changes a disk. One seam, so that a test can count them, stop the machine between any
 * two, or work out what a power cut leaves behind: nothing is durable but what `sync` was called for.
 *
 * Each call does one thing to one name, and fails as the system call of Linux does that it is named after.
 */
export interface Disk {
  /**
   * A new file with these contents and mode 0600, or of this owner and mode: the file that was made gets them, whatever has
   * its name by then. Fails with `EEXIST` when something has the name.
   */
  create(path: string, contents: Uint8Array, own?: Ownership): Promise<void>;
  /** Puts contents behind those of a file. Fails with `ENOENT` when there is none, and with `ELOOP` for a link. */
  append(path: string, contents: Uint8Array): Promise<void>;
  symlink(target: string, path: string): Promise<void>;
  /**
   * One folder with mode 0700, or of this owner and mode: only an empty folder of this process's own user gets them. Fails
   * with `EEXIST` when something has the name.
   *
   * @param inside makes what is to be in it, before it is given away: below the name that it is called with.
   */
  mkdir(path: string, own?: Ownership, inside?: (path: string) => Promise<void>): Promise<void>;
  /** Gives a folder of this user to another owner, with another mode. Fails with `EEXIST` where another one has the name. */
  give(path: string, own: Ownership, uid: number): Promise<void>;
  /** Fails with `ELOOP` for a link. */
  chmod(path: string, mode: number): Promise<void>;
  /** Of the name itself: links are not followed. */
  chown(path: string, uid: number, gid: number): Promise<void>;
  /**
   * Of a file: its contents, mode and owner are on the disk when this resolves. Of a folder: the names in it, its mode
   * and owner.
   */
  sync(path: string): Promise<void>;
  /** Replaces a file or link that has the name already. */
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  rmdir(path: string): Promise<void>;
}

/**
 * Whatever has the name, but no link: who can change the folder must not lead us elsewhere. Nor does a pipe in its place
 * make us wait.
 */
async function opened(path: string, work: (handle: fs.FileHandle) => Promise<void>): Promise<void> {
  const handle = await fs.open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    await work(handle);
  } finally {
    await handle.close();
  }
}

/** The mode last: a change of the owner takes bits away. */
async function give(handle: fs.FileHandle, { mode, uid, gid }: Ownership): Promise<void> {
  await handle.chown(uid, gid);
  await handle.chmod(mode);
}

const another = (path: string) =>
  Object.assign(new Error(`another folder came in the place of ${path}`), { code: "EEXIST" });

/** The disk of the machine that this process runs on. */
export const systemDisk: Disk = {
  async create(path, contents, own) {
    const handle = await fs.open(path, "wx", 0o600);
    try {
      await handle.writeFile(contents);
      if (own !== undefined) await give(handle, own);
    } finally {
      await handle.close();
    }
  },
  async append(path, contents) {
    const handle = await fs.open(
      path,
      constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    try {
      await handle.writeFile(contents);
    } finally {
      await handle.close();
    }
  },
  symlink: (target, path) => fs.symlink(target, path),
  async mkdir(path, own, inside) {
    await fs.mkdir(path, { mode: 0o700 });
    if (own === undefined && inside === undefined) return;
    await opened(path, async (handle) => {
      const at = `/proc/self/fd/${handle.fd}`;
      // Who owns the folder above it may have put another one in its place.
      const isOurs = (await handle.stat()).uid === process.geteuid?.();
      if (!isOurs || (await fs.readdir(at)).length > 0) throw another(path);
      await inside?.(at);
      if (own !== undefined) await give(handle, own);
    });
  },
  give: (path, own, uid) =>
    opened(path, async (handle) => {
      const is = await handle.stat();
      if (!is.isDirectory() || is.uid !== uid) throw another(path);
      // Also before: who finds it with its owner finds it with its mode.
      await handle.chmod(own.mode);
      await give(handle, own);
    }),
  chmod: (path, mode) => opened(path, (handle) => handle.chmod(mode)),
  chown: (path, uid, gid) => fs.lchown(path, uid, gid),
  sync: (path) => opened(path, (handle) => handle.sync()),
  rename: (from, to) => fs.rename(from, to),
  unlink: (path) => fs.unlink(path),
  rmdir: (path) => fs.rmdir(path),
};
