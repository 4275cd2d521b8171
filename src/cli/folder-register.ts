import { createHash } from "node:crypto";
import { lstat, mkdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { McoError } from "../api/errors.ts";
import { orUndefined } from "../ports/absent-file.ts";
import type { Files } from "../ports/files.ts";
import type { Random } from "../ports/random.ts";
import type { Layout } from "../standin/index.ts";

/** The folders of clusters that `mco up` of this user made. */
export interface FolderRegister {
  /** Whether it made the folder: the one that is there now, and not another one at that path, or with these files. */
  has(layout: Layout): Promise<boolean>;
  /** The work trees around a folder of which its user trusts the authors with it; none of a folder that it did not make. */
  trusted(layout: Layout): Promise<readonly string[]>;
  /**
   * Adds a folder, and takes out those that are gone.
   *
   * @param workTrees that {@link trusted} is to have; those of before are not kept.
   */
  add(layout: Layout, workTrees?: readonly string[]): Promise<void>;
  remove(layout: Layout): Promise<void>;
}

/**
 * The knowledge of one folder. The number of its device is not: on btrfs, overlayfs and NFS, it differs after the next
 * mount.
 */
interface Entry {
  readonly v: 1;
  /** Without links. */
  readonly path: string;
  /** A file system gives the number of a folder that was removed to the next one. */
  readonly inode: string;
  /** As in the folder itself, where nobody else can read it. */
  readonly id: string;
  /** Without links; absent: none. */
  readonly workTrees?: readonly string[];
}

const mostEntryBytes = 16 * 1024;

/**
 * The register below the user's folder for state, with a file for each folder: two processes that add at once disturb
 * each other in nothing.
 */
export function folderRegister({
  home,
  files,
  random,
}: {
  readonly home: string;
  readonly files: Files;
  readonly random: Pick<Random, "uuid">;
}): FolderRegister {
  const own = join(home, "mco");
  const folder = join(own, "folders");
  const fileOf = (path: string) => join(folder, `${createHash("sha256").update(path).digest("hex")}.json`);

  /** `undefined` for a file that is none of the register's. */
  async function read(file: string): Promise<Entry | undefined> {
    const bytes = await files.readFrom(file, 0, mostEntryBytes);
    try {
      return bytes === undefined ? undefined : (JSON.parse(new TextDecoder().decode(bytes)) as Entry);
    } catch {
      return undefined;
    }
  }

  /** Others who could write here would make any folder one of this user's. */
  async function checkOwn(): Promise<void> {
    const uid = process.geteuid?.() ?? 0;
    for (const path of [own, folder]) {
      const found = await orUndefined(stat(path));
      if (found === undefined) return;
      if (found.uid !== uid || (found.mode & 0o022) !== 0)
        throw new McoError("MCO_CLUSTER_REGISTER", {
          path,
          problem: `it belongs to user ${found.uid} and has mode ${(found.mode & 0o777).toString(8)}; only user ${uid} may write there`,
        });
    }
  }

  async function removeGone(): Promise<void> {
    for (const name of await files.list(folder)) {
      const file = join(folder, name);
      const { path, inode } = (await read(file)) ?? { path: undefined, inode: "" };
      if (typeof path !== "string" || file !== fileOf(path)) continue;
      // A folder that this process cannot reach is not gone.
      if ((await inodeOf(path).catch(() => inode)) !== inode) await files.remove(file);
    }
  }

  async function find(layout: Layout): Promise<Entry | undefined> {
    const path = await orUndefined(realpath(layout.directory));
    if (path === undefined) return undefined;
    await checkOwn();
    const entry = await read(fileOf(path));
    if (entry?.path !== path || entry.inode !== (await inodeOf(path))) return undefined;
    const id = await files.readFrom(layout.identity, 0, mostEntryBytes);
    return id !== undefined && entry.id !== "" && new TextDecoder().decode(id) === entry.id ? entry : undefined;
  }

  return {
    has: (layout) => asRegister(folder, async () => (await find(layout)) !== undefined),
    trusted: (layout) => asRegister(folder, async () => (await find(layout))?.workTrees ?? []),
    add: (layout, workTrees = []) =>
      asRegister(folder, async () => {
        await makeFolder(folder);
        await checkOwn();
        await removeGone();
        const path = await realpath(layout.directory);
        const entry: Entry = { v: 1, path, inode: (await inodeOf(path)) ?? "", id: random.uuid(), workTrees };
        await files.write(fileOf(path), JSON.stringify(entry), { mode: 0o600 });
        await files.write(layout.identity, entry.id, { mode: 0o600 });
      }),
    remove: (layout) =>
      asRegister(folder, async () => {
        await checkOwn();
        const path = await orUndefined(realpath(layout.directory));
        if (path !== undefined) await files.remove(fileOf(path));
      }),
  };
}

/**
 * Makes a folder with those above it. Node's own way to do that never ends where a file system calls a folder absent that
 * cannot be made, as /proc does.
 */
async function makeFolder(path: string): Promise<void> {
  const above = dirname(path);
  if (above !== path && (await orUndefined(stat(above))) === undefined) await makeFolder(above);
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

/** The number of a folder in its file system; `undefined` for what is none, and for one that is gone. */
async function inodeOf(path: string): Promise<string | undefined> {
  const found = await orUndefined(lstat(path, { bigint: true }));
  return found?.isDirectory() === true ? String(found.ino) : undefined;
}

/** A register that cannot be read or written is a failure with a remedy. */
async function asRegister<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof McoError || !(error instanceof Error) || !("code" in error)) throw error;
    throw new McoError("MCO_CLUSTER_REGISTER", { path, problem: error.message }, { cause: error });
  }
}
