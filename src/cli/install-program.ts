import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { chmod, copyFile, mkdir, open, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { resolveInRoot } from "../host/directory/root-folder.ts";
import { version } from "./version.ts";

/** Path of a machine's programs that its image does not contain: below /var, the same for every booted system. */
const folder = "/usr/local/lib/mco";
const command = "/usr/local/bin/mco";

export interface Program {
  /** The runtime, one file. */
  readonly runtime: string;
  /** The bundle's first file; all beside it belongs to it. */
  readonly main: string;
}

/** This program, where it runs from a bundle: the name that it was called by may be a link. */
export function ownProgram(): Program | undefined {
  const main = process.argv[1] === undefined ? "" : realpathSync(process.argv[1]);
  return main.endsWith(".mjs") ? { runtime: process.execPath, main } : undefined;
}

/**
 * Keeps a copy of a program and its runtime on a machine, for its boot, where there is neither a container nor a
 * network. An existing copy is not copied again; the command switches over atomically, and unreferenced copies are
 * removed.
 *
 * @param root where the machine's root file system lies for us.
 */
export async function installProgram(root: string, { runtime, main }: Program): Promise<void> {
  const source = dirname(main);
  const names = (await readdir(source, { withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort();
  const id = await identityOf([runtime, ...names.map((name) => join(source, name))]);
  const copies = await resolveInRoot(root, folder, {}, true);
  const copy = join(copies, id);
  if ((await stat(copy).catch(() => undefined)) === undefined) {
    const part = join(copies, ".part");
    await rm(part, { recursive: true, force: true });
    await mkdir(part, { recursive: true, mode: 0o755 });
    await copyDurably(runtime, join(part, "runtime"), 0o755);
    for (const name of names) await copyDurably(join(source, name), join(part, name), 0o644);
    await syncPath(part);
    await rename(part, copy);
    await syncPath(copies);
  }
  const at = await resolveInRoot(root, command, {}, true);
  const text = `#!/bin/sh\nexec ${folder}/${id}/runtime ${folder}/${id}/${basename(main)} "$@"\n`;
  if ((await readFile(at, "utf8").catch(() => "")) !== text) {
    await mkdir(dirname(at), { recursive: true, mode: 0o755 });
    await writeFile(`${at}.new`, text, { mode: 0o755 });
    await chmod(`${at}.new`, 0o755);
    await syncPath(`${at}.new`);
    await rename(`${at}.new`, at);
    await syncPath(dirname(at));
  }
  for (const name of await readdir(copies))
    if (name !== id) await rm(join(copies, name), { recursive: true, force: true });
}

/** Identifies a build of the program without reading all of it. */
async function identityOf(files: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  for (const file of files) {
    const { size, mtimeMs } = await stat(file);
    hash.update(`${basename(file)} ${size} ${mtimeMs}\n`);
  }
  return `${version}-${hash.digest("hex").slice(0, 16)}`;
}

async function copyDurably(from: string, to: string, mode: number): Promise<void> {
  await copyFile(from, to);
  await chmod(to, mode);
  await syncPath(to);
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
