import { lstat, readFile, utimes } from "node:fs/promises";
import { parseImageReference } from "../core/images/image-reference.ts";
import type { Ownership } from "../host/host.ts";
import type { Clock } from "../ports/clock.ts";

/** The content of `<tree>.complete` for a pulled tree. Initial trees of machines have none. */
export interface TreeRecord {
  readonly v: 1;
  /** Of the manifest, and of the index that led to it. */
  readonly digests: readonly string[];
  /** What of the store it is made of. */
  readonly blobs: readonly string[];
  /** Files and folders whose owner could not be set, by path: without root only. */
  readonly owners: Readonly<Record<string, Ownership>>;
  /** Of the image; absent in what an older version wrote. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Which images the machines of a folder boot, are about to boot, or can go back to. */
export type ImagesInUse = () => Promise<ReadonlySet<string> | "unknown">;

/** The path of an image's tree; `undefined` when it is not named by a digest. */
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
 * Leaves a time at a tree to mark the request, and only then returns its record: a tree that is being removed has none.
 */
export async function requestTree(tree: string, clock: Clock): Promise<TreeRecord | "born" | undefined> {
  const now = new Date(clock.now());
  await utimes(`${tree}.complete`, now, now).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  return recordOf(tree);
}
