import * as fs from "node:fs/promises";
import { constants } from "node:fs";

/**
 * Every call by which a driver changes a disk. One seam, so that a test can count them, stop the machine between any
 * two, or work out what a power cut leaves behind: nothing is durable but what `sync` was called for.
 *
 * Each call does one thing to one name, and fails as the system call of Linux does that it is named after.
 */
export interface Disk {
  /** A new file with these contents and mode 0600. Fails with `EEXIST` when something has the name. */
  create(path: string, contents: Uint8Array): Promise<void>;
  /** Puts contents behind those of a file. Fails with `ENOENT` when there is none, and with `ELOOP` for a link. */
  append(path: string, contents: Uint8Array): Promise<void>;
  symlink(target: string, path: string): Promise<void>;
  /** One folder with mode 0700. Fails with `EEXIST` when something has the name. */
  mkdir(path: string): Promise<void>;
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

/** The disk of the machine that this process runs on. */
export const systemDisk: Disk = {
  async create(path, contents) {
    const handle = await fs.open(path, "wx", 0o600);
    try {
      await handle.writeFile(contents);
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
  async mkdir(path) {
    await fs.mkdir(path, { mode: 0o700 });
  },
  chmod: (path, mode) => opened(path, (handle) => handle.chmod(mode)),
  chown: (path, uid, gid) => fs.lchown(path, uid, gid),
  sync: (path) => opened(path, (handle) => handle.sync()),
  rename: (from, to) => fs.rename(from, to),
  unlink: (path) => fs.unlink(path),
  rmdir: (path) => fs.rmdir(path),
};
