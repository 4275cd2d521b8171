import * as fs from "node:fs/promises";
import type { Dirent, Stats } from "node:fs";
import { join, posix } from "node:path";
import { McoError } from "../../api/errors.ts";
import { isAbsent } from "../../ports/absent-file.ts";
import { absentIsDone, statIfThere } from "./durable-writes.ts";
import { type DiskHold, asNamed, heldInside } from "./held-disk.ts";
import { own } from "../../api/schema/own.ts";

/** Links followed before a path is taken for a loop. */
const maxLinks = 40;

/** Root, and the user who runs this process: for a machine in a folder, its owner. */
const isTrusted = (uid: number) => uid === 0 || uid === process.geteuid?.();

/** Root's, and that of the user who runs this process where that is not root: it made its machine's folders. */
const isTrustedGroup = (gid: number) => gid === 0 || (process.geteuid?.() !== 0 && gid === process.getegid?.());

/**
 * Whether only those we trust can change names in a folder, as sshd judges it (sshd_config(5), StrictModes), but for
 * root's group. Others place only links of their own below a sticky one.
 */
export function isSafeFolder({ uid, gid, mode }: Stats): boolean {
  const isOpen = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !isTrustedGroup(gid));
  return isTrusted(uid) && (!isOpen || (mode & 0o1000) !== 0);
}

/** Folders of a machine in a folder that lie beside its root, as a deployment's do: see {@link resolveInRoot}. */
export const machineMounts = (directory: string): { readonly var: string; readonly run: string } => ({
  var: join(directory, "sysroot", "var"),
  run: join(directory, "sysroot", "run"),
});

/**
 * Resolves a path of the machine to a path of ours without ever leaving `root`: absolute links and `..` are those of
 * the machine. The last component is followed only where `follow` says so.
 *
 * Throws MCO_HOST_UNSAFE_PATH for a link that a user other than root could place: followed with root's rights, it leads
 * to files that its owner may not touch. That holds for every link below a folder of such a user, regardless of the
 * link's owner: the folder may be replaced before it is read.
 *
 * @param mounts top-level folders of the machine that lie elsewhere (`var` → its folder), as mounts do on a real one.
 */
export async function resolveInRoot(
  root: string,
  path: string,
  mounts: Readonly<Record<string, string>> = {},
  follow = false,
): Promise<string> {
  const place = (parts: readonly string[]) => {
    const mount = own(mounts, parts[0] ?? "");
    return mount === undefined ? join(root, ...parts) : join(mount, ...parts.slice(1));
  };
  let todo = posix
    .normalize(path)
    .split("/")
    .filter((part) => part !== "");
  let done: string[] = [];
  let links = 0;
  let isSafe = true;
  while (todo.length > 0) {
    const [part = "", ...rest] = todo;
    todo = rest;
    if (part === "..") {
      done.pop();
      continue;
    }
    const isMount = done.length === 0 && Object.hasOwn(mounts, part);
    const at = place([...done, part]);
    const stat = (todo.length === 0 && !follow) || isMount ? undefined : await statIfThere(at);
    const target = stat?.isSymbolicLink() === true ? await linkTarget(at) : undefined;
    if (stat === undefined || target === undefined) {
      isSafe &&= stat === undefined || isSafeFolder(stat);
      done.push(part);
      continue;
    }
    if (!isSafe || !isTrusted(stat.uid)) throw new McoError("MCO_HOST_UNSAFE_PATH", { path, link: at });
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

/**
 * Paths of all that is below a folder, relative to it, sorted, a folder before what is in it. Empty when there is no
 * such folder.
 *
 * @param hold how each folder is held while it is read, so that none is a link.
 */
export async function entriesBelow(
  folder: string,
  hold: DiskHold = asNamed,
): Promise<readonly { readonly path: string; readonly isFolder: boolean }[]> {
  const found: { path: string; isFolder: boolean }[] = [];
  async function walk(relative: string): Promise<void> {
    let entries: Dirent[] = [];
    try {
      entries = await heldInside(hold)(join(folder, relative), (at) => fs.readdir(at, { withFileTypes: true }));
    } catch (error) {
      absentIsDone(error);
    }
    for (const entry of entries) {
      const path = relative === "" ? entry.name : `${relative}/${entry.name}`;
      found.push({ path, isFolder: entry.isDirectory() });
      if (entry.isDirectory()) await walk(path);
    }
  }
  await walk("");
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Paths of all files and links below a folder, relative to it, sorted. Empty when there is no such folder. */
export const filesBelow = async (folder: string, hold?: DiskHold): Promise<readonly string[]> =>
  (await entriesBelow(folder, hold)).filter(({ isFolder }) => !isFolder).map(({ path }) => path);
