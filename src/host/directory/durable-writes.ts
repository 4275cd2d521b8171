import * as fs from "node:fs/promises";
import type { Stats } from "node:fs";
import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import type { Ownership } from "../host.ts";
import type { Disk } from "./disk.ts";
import { readRegular } from "./read-regular.ts";
import { isAbsent } from "../../ports/absent-file.ts";
import { eachAtOnce } from "../../ports/each-at-once.ts";

export const absentIsDone = (error: unknown): void => {
  if (!isAbsent(error)) throw error;
};

/**
 * Files that are flushed at the same time: what the disk can gather into one write, and no more open files than that.
 */
const parallel = 32;

/**
 * Does `work` for each, a bounded number at a time; when some fail, the rest of them has ended before the first failure
 * is thrown.
 */
export async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  await eachAtOnce(items, parallel, work);
}

/**
 * The temporary name of an incomplete file. It is derived from the target's name, so that a killed process's leftover
 * is found and overwritten, and it is short whatever the target's name.
 */
export const temporaryOf = (path: string): string =>
  join(dirname(path), `.mco-${createHash("sha256").update(basename(path)).digest("hex").slice(0, 16)}`);

/** First removes a killed process's leftover under a temporary name. */
async function createAnew(disk: Disk, temporary: string, make: () => Promise<void>): Promise<void> {
  try {
    await make();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    await disk.unlink(temporary);
    await make();
  }
}

export const createTemporary = (disk: Disk, temporary: string, contents: Uint8Array, own?: Ownership): Promise<void> =>
  createAnew(disk, temporary, () => disk.create(temporary, contents, own));
export const linkTemporary = (disk: Disk, temporary: string, target: string): Promise<void> =>
  createAnew(disk, temporary, () => disk.symlink(target, temporary));

/**
 * Atomic and durable: temporary file beside it, fsync, rename, fsync of the folder. The folder must exist. For files of
 * a driver's own.
 */
export async function writeDurably(
  disk: Disk,
  path: string,
  contents: string | Uint8Array,
  mode: number,
): Promise<void> {
  const temporary = temporaryOf(path);
  await createTemporary(disk, temporary, typeof contents === "string" ? new TextEncoder().encode(contents) : contents);
  await disk.chmod(temporary, mode);
  await disk.sync(temporary);
  await disk.rename(temporary, path);
  await disk.sync(dirname(path));
}

export async function linkDurably(disk: Disk, path: string, target: string): Promise<void> {
  await linkTemporary(disk, temporaryOf(path), target);
  await disk.rename(temporaryOf(path), path);
  await disk.sync(dirname(path));
}

/**
 * Removes a file or link, and what an unfinished write of it left, durably; what is not there is no error. It is
 * flushed also then: who removed it may have been killed before that.
 */
export async function unlinkDurably(disk: Disk, path: string): Promise<void> {
  await unlinkBoth(disk, path);
  await disk.sync(dirname(path)).catch(absentIsDone);
}

/** The same without the flush of its folder. @returns whether there was something. */
export async function unlinkBoth(disk: Disk, path: string): Promise<boolean> {
  let found = false;
  for (const name of [path, temporaryOf(path)]) {
    if ((await statIfThere(name)) === undefined) continue;
    await disk.unlink(name);
    found = true;
  }
  return found;
}

/** Of the name itself, not of what it links to. */
export async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await fs.lstat(path);
  } catch (error) {
    absentIsDone(error);
    return undefined;
  }
}

/** Makes a folder and those above it that are missing; the names are durable. For folders of a driver's own. */
export async function ensureFolder(disk: Disk, path: string, mode: number): Promise<void> {
  if ((await statIfThere(path)) !== undefined) return;
  await ensureFolder(disk, dirname(path), mode);
  await disk.mkdir(path);
  await disk.chmod(path, mode);
  await disk.sync(path);
  await disk.sync(dirname(path));
}

/**
 * Copies a tree into a folder that does not exist yet, as it is: links stay links, modes stay, as root owners do.
 * Durable but for the name of `to`. Folders one after the other, so that no more files are open at a time than those of
 * one.
 */
export async function copyTree(disk: Disk, from: string, to: string): Promise<void> {
  await disk.mkdir(to);
  const entries = await fs.readdir(from, { withFileTypes: true });
  await eachOf(
    entries.filter((entry) => !entry.isDirectory()),
    async (entry) => {
      const source = join(from, entry.name);
      const target = join(to, entry.name);
      if (entry.isSymbolicLink()) {
        await disk.symlink(await fs.readlink(source), target);
        const { uid, gid } = await fs.lstat(source);
        if (isGivenAway({ uid, gid })) await disk.chown(target, uid, gid);
      } else {
        await disk.create(target, await fs.readFile(source));
        await copyOwnership(disk, source, target);
        await disk.sync(target);
      }
    },
  );
  for (const entry of entries)
    if (entry.isDirectory()) await copyTree(disk, join(from, entry.name), join(to, entry.name));
  await copyOwnership(disk, from, to);
  await disk.sync(to);
}

const isGivenAway = ({ uid, gid }: { readonly uid: number; readonly gid: number }) =>
  process.geteuid?.() === 0 && (uid !== 0 || gid !== 0);

async function copyOwnership(disk: Disk, from: string, to: string): Promise<void> {
  const stat = await fs.lstat(from);
  if (isGivenAway(stat)) await disk.chown(to, stat.uid, stat.gid);
  // An earlier release unpacked images with set-user-id bits, for which nothing runs their programs.
  await disk.chmod(to, stat.mode & (stat.isFile() ? 0o1777 : 0o7777));
}

/** Removes a tree; what is not there is no error. */
export async function removeTree(disk: Disk, path: string): Promise<void> {
  let entries;
  try {
    entries = await fs.readdir(path, { withFileTypes: true });
  } catch (error) {
    return absentIsDone(error);
  }
  for (const entry of entries) {
    if (entry.isDirectory()) await removeTree(disk, join(path, entry.name));
    else await disk.unlink(join(path, entry.name)).catch(absentIsDone);
  }
  await disk.rmdir(path).catch(absentIsDone);
}

/** @param most bytes; {@link mostFileBytes} if absent */
export async function readTextIfThere(path: string, most?: number): Promise<string | undefined> {
  try {
    const { contents } = await readRegular(path, { links: "follow", ...(most === undefined ? {} : { most }) });
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(contents);
  } catch (error) {
    absentIsDone(error);
    return undefined;
  }
}

export async function readJson<T>(path: string, fallback: T): Promise<T> {
  const text = await readTextIfThere(path);
  return text === undefined ? fallback : (JSON.parse(text) as T);
}

export const storeJson = (disk: Disk, path: string, value: unknown): Promise<void> =>
  writeDurably(disk, path, JSON.stringify(value), 0o600);
