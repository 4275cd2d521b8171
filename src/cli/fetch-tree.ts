import { lstat, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../ports/clock.ts";
import { systemFiles, systemRandom } from "../ports/node/index.ts";
import { folderStore } from "../registry/node/folder-store.ts";
import { httpsWire } from "../registry/node/https-wire.ts";
import { isRunning, processWord } from "../registry/node/process-identity.ts";
import { unpackLayers } from "../registry/node/unpack-layers.ts";
import { admitImage, pullImage } from "../registry/pull-image.ts";
import type { PullSettings } from "../host/directory/pull-settings.ts";
import { architecture, pullOptions } from "./pull-options.ts";
import { type ImagesInUse, type TreeRecord, requestTree, recordOf, treeIn } from "./tree-record.ts";
import { orUndefined } from "../ports/absent-file.ts";

export interface WantedTree {
  readonly image: string;
  readonly folder: string;
  /** Where the tree is to lie. */
  readonly tree: string;
  /** Of the tree that lies there already. */
  readonly record: TreeRecord | undefined;
  readonly settings: PullSettings;
  readonly inUse: ImagesInUse | undefined;
  readonly clock: Clock;
}

/** How long blobs of no tree and trees of no machine are kept: another process may be about to use them. */
const graceMs = 3_600_000;

const part = ".part-";
const note = ".complete";

/** Pulls an image and unpacks it, or, when that was done for another machine, asks this machine's policy about it. */
export async function fetchTree(
  { image, folder, tree, record, settings, inUse, clock }: WantedTree,
  signal: AbortSignal,
): Promise<void> {
  const wire = httpsWire();
  try {
    const options = pullOptions(settings, clock, wire);
    if (record !== undefined) return await admitImage(image, record.digests, options, signal);
    const store = folderStore(join(folder, "store"), { clock, random: systemRandom, files: systemFiles });
    const pulled = await pullImage(image, { ...options, store, architecture: architecture() }, signal);
    await removeOrphans(folder);
    const own = await ownName(folder);
    try {
      const owners = await unpackLayers(pulled.layers, store, own, signal);
      await publishTree(own, tree, {
        v: 1,
        digests: pulled.indexDigest === undefined ? [pulled.digest] : [pulled.digest, pulled.indexDigest],
        blobs: pulled.blobs,
        owners,
        labels: pulled.labels,
      });
    } finally {
      await rm(own, { recursive: true, force: true });
    }
    await requestTree(tree, clock);
    if (inUse !== undefined) await removeUnused(folder, inUse, clock);
    await store.keep(await blobsInUse(folder), graceMs);
  } finally {
    wire.close();
  }
}

/** Puts a tree in its place, in one step; the note that it is whole comes last. */
async function publishTree(own: string, tree: string, record: TreeRecord): Promise<void> {
  for (;;) {
    try {
      await rename(own, tree);
      break;
    } catch (error) {
      if (!["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
    if ((await recordOf(tree)) !== undefined) return; // Another process was faster.
    // One that was killed left it there, or one that lives is about to write its note: for the same tree.
    const aside = `${own}-aside`;
    await rename(tree, aside).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
    await rm(aside, { recursive: true, force: true });
  }
  await systemFiles.write(`${tree}${note}`, JSON.stringify(record));
}

/** A name for a file that only this process needs; {@link removeOrphans} removes it when the process has ended. */
const ownName = async (folder: string) => join(folder, `${part}${await processWord()}-${systemRandom.uuid()}`);

/**
 * Removes pulled trees that no machine has and that nothing requested within the grace period. The note is removed
 * first: from then on a request finds no tree. An earlier request has left a time on the tree, and the note is
 * restored.
 */
async function removeUnused(folder: string, inUse: ImagesInUse, clock: Clock): Promise<void> {
  /** Not known: in use. */
  const isUsed = async (tree: string) => {
    const images = await inUse();
    return images === "unknown" || [...images].some((image) => treeIn(folder, image) === tree);
  };
  const isRecent = async (path: string, time: "mtimeMs" | "ctimeMs") => {
    const stat = await orUndefined(lstat(path));
    return stat === undefined || clock.now() - stat[time] < graceMs;
  };
  for (const name of await readdir(folder)) {
    if (!/^sha256-[0-9a-f]{64}$/.test(name)) continue;
    const tree = join(folder, name);
    const noted = (await orUndefined(lstat(tree + note))) !== undefined;
    // One without a note was left by a killed process, or its note is about to come: its own name is as old as that.
    if (
      (await isRecent(noted ? tree + note : tree, noted ? "mtimeMs" : "ctimeMs")) ||
      (await recordOf(tree)) === "born" ||
      (await isUsed(tree))
    )
      continue;
    const doomed = await ownName(folder);
    if (noted) {
      if ((await orUndefined(rename(tree + note, doomed).then(() => true))) === undefined) continue; // Another process removes it.
      if ((await isRecent(doomed, "mtimeMs")) || (await isUsed(tree))) {
        await rename(doomed, tree + note);
        continue;
      }
    }
    await orUndefined(rename(tree, `${doomed}-tree`));
    await rm(`${doomed}-tree`, { recursive: true, force: true });
    await rm(doomed, { force: true });
  }
}

/** Leftovers of a process that was killed while it unpacked. */
async function removeOrphans(folder: string): Promise<void> {
  for (const name of await readdir(folder))
    if (name.startsWith(part) && !(await isRunning(name.slice(part.length))))
      await rm(join(folder, name), { recursive: true, force: true });
}

async function blobsInUse(folder: string): Promise<ReadonlySet<string>> {
  const blobs = new Set<string>();
  for (const name of await readdir(folder)) {
    const record = name.endsWith(note) ? await recordOf(join(folder, name.slice(0, -note.length))) : undefined;
    if (typeof record === "object") for (const digest of record.blobs) blobs.add(digest);
  }
  return blobs;
}
