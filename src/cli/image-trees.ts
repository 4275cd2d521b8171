import { lstat, readFile, utimes } from "node:fs/promises";
import { McoError } from "../api/errors.ts";
import { parseImageReference } from "../core/images/image-reference.ts";
import type { ImageTrees } from "../host/directory/directory-host.ts";
import type { Ownership } from "../host/host.ts";
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../ports/node/index.ts";

/** What `<tree>.complete` says of a tree that was pulled. Trees that machines are born with say nothing. */
export interface TreeRecord {
  readonly v: 1;
  /** Of the manifest, and of the index that led to it. */
  readonly digests: readonly string[];
  /** What of the store it is made of. */
  readonly blobs: readonly string[];
  /** Of files and folders that could not be given away, by path: without root only. */
  readonly owners: Readonly<Record<string, Ownership>>;
  /** Of the image; absent in what an older version wrote. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Which images the machines of a folder boot, are about to boot, or can go back to. */
export type ImagesInUse = () => Promise<ReadonlySet<string> | "unknown">;

export interface ImageTreesOptions {
  /** Without it no tree is ever removed. */
  readonly inUse?: ImagesInUse;
  readonly clock?: Clock;
}

/** Where the tree of an image lies; `undefined` when it is not named by a digest. */
export function treeIn(folder: string, image: string): string | undefined {
  const reading = parseImageReference(image);
  const digest = reading.verdict === "reference" ? reading.reference.digest : undefined;
  return digest === undefined ? undefined : `${folder}/${digest.replace(":", "-")}`;
}

/** `undefined`: there is no such tree, or not all of it. */
export async function recordOf(tree: string): Promise<TreeRecord | "born" | undefined> {
  let text: string;
  try {
    await lstat(tree);
    text = await readFile(`${tree}.complete`, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return text === "" ? "born" : (JSON.parse(text) as TreeRecord);
}

/**
 * Leaves a time at a tree, that somebody asked for it, and only then says what it is: one that is being removed is
 * none.
 */
export async function askFor(tree: string, clock: Clock): Promise<TreeRecord | "born" | undefined> {
  const now = new Date(clock.now());
  await utimes(`${tree}.complete`, now, now).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  return recordOf(tree);
}

/**
 * OS images that lie unpacked in a folder, by digest; others are pulled into it. Several processes may share the
 * folder: two that fetch the same image at once both end with the same tree. Who pulls one removes those that no
 * machine has, and that nobody asked for within the hour: between fetching and staging, only that tells that a tree is
 * wanted.
 */
export function imageTrees(folder: string, { inUse, clock = systemClock }: ImageTreesOptions = {}): ImageTrees {
  return {
    async ownersIn(image) {
      const tree = treeIn(folder, image);
      const record = tree === undefined ? undefined : await recordOf(tree);
      return typeof record === "object" ? record.owners : {};
    },
    async labelsOf(image) {
      const tree = treeIn(folder, image);
      const record = tree === undefined ? undefined : await recordOf(tree);
      return typeof record === "object" ? (record.labels ?? {}) : {};
    },
    async treeOf(image) {
      const tree = treeIn(folder, image);
      if (tree === undefined || (await askFor(tree, clock)) === undefined)
        throw new McoError("MCO_HOST_IMAGE_UNKNOWN", { image });
      return tree;
    },
    async fetch(image, settings, signal) {
      const tree = treeIn(folder, image);
      if (tree === undefined)
        throw new McoError("MCO_IMAGE_INVALID", {
          image,
          problem: "an OS image must be named by its digest: name@sha256:…",
          retryable: false,
        });
      const record = await askFor(tree, clock);
      if (record === "born") return;
      // What pulls is loaded only when there is something to pull: a daemon at rest does not carry it.
      const { fetchTree } = await import("./fetch-tree.ts");
      await fetchTree({ image, folder, tree, record, settings, inUse, clock }, signal);
    },
  };
}
