import * as fs from "node:fs/promises";
import { constants } from "node:fs";
import { randomBytes } from "node:crypto";
import { dirname, join, posix } from "node:path";
import { McoError } from "../../api/errors.ts";

const isAbsent = (error: unknown) => ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");

/** Links followed before a path is taken for a loop. */
const maxLinks = 40;

/**
 * Resolves a path of the machine to a path of ours without ever leaving `root`: absolute links and `..` are those of
 * the machine. The last component is not followed.
 *
 * @param mounts top-level folders of the machine that lie elsewhere (`var` → its folder), as mounts do on a real one.
 */
export async function resolveInRoot(root: string, path: string, mounts: Readonly<Record<string, string>> = {}): Promise<string> {
  const place = (parts: readonly string[]) => {
    const mount = mounts[parts[0] ?? ""];
    return mount === undefined ? join(root, ...parts) : join(mount, ...parts.slice(1));
  };
  let todo = posix.normalize(path).split("/").filter((part) => part !== "");
  let done: string[] = [];
  let links = 0;
  while (todo.length > 0) {
    const [part = "", ...rest] = todo;
    todo = rest;
    if (part === "..") {
      done.pop();
      continue;
    }
    const isMount = done.length === 0 && mounts[part] !== undefined;
    const target = todo.length === 0 || isMount ? undefined : await linkTarget(place([...done, part]));
    if (target === undefined) {
      done.push(part);
      continue;
    }
    links += 1;
    if (links > maxLinks) throw new McoError("MCO_HOST_COMMAND_FAILED", { path, problem: "too many links" });
    if (target.startsWith("/")) done = [];
    todo = [...target.split("/").filter((word) => word !== "" && word !== "."), ...todo];
  }
  return place(done);
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await fs.readlink(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EINVAL" || isAbsent(error)) return undefined;
    throw error;
  }
}

export async function syncFolder(path: string): Promise<void> {
  const handle = await fs.open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export interface Ownership {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/** Atomic and durable: temporary file beside it, fsync, rename, fsync of the folder. The folder must exist. */
export async function writeFileDurably(path: string, contents: Uint8Array | string, own: Ownership, chown: boolean): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  const handle = await fs.open(temporary, "wx", 0o600);
  try {
    await handle.writeFile(contents);
    if (chown) await handle.chown(own.uid, own.gid);
    await handle.chmod(own.mode);
    await handle.sync();
  } catch (error) {
    await fs.rm(temporary, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  await fs.rename(temporary, path);
  await syncFolder(dirname(path));
}

export async function writeLinkDurably(path: string, target: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  await fs.symlink(target, temporary);
  await fs.rename(temporary, path);
  await syncFolder(dirname(path));
}

export async function readTextIfThere(path: string): Promise<string | undefined> {
  try {
    return await fs.readFile(path, "utf8");
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** Paths of all files and links below a folder, relative to it, sorted. Empty when there is no such folder. */
export async function filesBelow(folder: string): Promise<readonly string[]> {
  const found: string[] = [];
  async function walk(relative: string): Promise<void> {
    let entries;
    try {
      entries = await fs.readdir(join(folder, relative), { withFileTypes: true });
    } catch (error) {
      if (isAbsent(error)) return;
      throw error;
    }
    for (const entry of entries) {
      const path = relative === "" ? entry.name : `${relative}/${entry.name}`;
      if (entry.isDirectory()) await walk(path);
      else found.push(path);
    }
  }
  await walk("");
  return found.sort();
}
