import { constants } from "node:fs";
import * as fs from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { randomBytes } from "node:crypto";
import { McoError } from "../../api/errors.ts";
import type { FileStat, Files } from "../files.ts";
import { isAbsent } from "../absent-file.ts";

async function absentAs<T>(work: Promise<T>, fallback: T): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isAbsent(error)) return fallback;
    throw error;
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await fs.open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const temporaryName = (path: string) => join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`);

/** The largest text that is read; a larger one would not fit into one string anyway. */
const mostTextBytes = 256 * 1024 * 1024;

/** The size is that of the descriptor that is read. Pipes and files of /proc have none. */
async function textOf(path: string): Promise<string> {
  const handle = await fs.open(path, constants.O_RDONLY);
  try {
    const { size } = await handle.stat();
    if (size > mostTextBytes) throw new McoError("MCO_FILE_TOO_LARGE", { path, most: mostTextBytes });
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}

async function partOf(path: string, position: number, mostBytes: number): Promise<Uint8Array | undefined> {
  let handle: fs.FileHandle;
  try {
    handle = await fs.open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isAbsent(error) || ["ELOOP", "ENXIO"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
  try {
    if (!(await handle.stat()).isFile()) return undefined;
    const buffer = new Uint8Array(mostBytes);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, length, mostBytes - length, position + length);
      length += bytesRead;
      if (bytesRead === 0 || length === mostBytes) return buffer.subarray(0, length);
    }
  } finally {
    await handle.close();
  }
}

/** The file system of this machine. */
export const systemFiles: Files = {
  read: (path) => absentAs<Uint8Array | undefined>(fs.readFile(path), undefined),
  readText: (path) => absentAs<string | undefined>(textOf(path), undefined),
  readFrom: partOf,
  async write(path, contents, options) {
    await fs.mkdir(dirname(path), { recursive: true });
    const temporary = temporaryName(path);
    const handle = await fs.open(temporary, "wx", options?.mode ?? 0o644);
    try {
      await handle.chmod(options?.mode ?? 0o644);
      await handle.writeFile(contents);
      await handle.sync();
    } catch (error) {
      await fs.rm(temporary, { force: true });
      throw error;
    } finally {
      await handle.close();
    }
    await fs.rename(temporary, path);
    await syncFolder(dirname(path));
  },
  async append(path, contents, options) {
    await fs.appendFile(path, contents, { mode: options?.mode ?? 0o644 });
  },
  async stat(path) {
    const stat = await absentAs(fs.lstat(path), undefined);
    if (stat === undefined) return undefined;
    const kind: FileStat["kind"] = stat.isSymbolicLink()
      ? "symlink"
      : stat.isDirectory()
        ? "directory"
        : stat.isFile()
          ? "file"
          : "other";
    return {
      kind,
      mode: stat.mode & 0o7777,
      uid: stat.uid,
      gid: stat.gid,
      sizeBytes: stat.size,
      modifiedMs: stat.mtimeMs,
    };
  },
  async list(path) {
    return (await absentAs(fs.readdir(path), [])).sort();
  },
  async makeDirectory(path, options) {
    await fs.mkdir(path, { recursive: true, mode: options?.mode ?? 0o755 });
  },
  remove: (path) => fs.rm(path, { recursive: true, force: true }),
  rename: (from, to) => fs.rename(from, to),
  async symlink(target, path) {
    const temporary = temporaryName(path);
    await fs.symlink(target, temporary);
    await fs.rename(temporary, path);
  },
  readLink: (path) => absentAs<string | undefined>(fs.readlink(path), undefined),
  chmod: (path, mode) => fs.chmod(path, mode),
};
