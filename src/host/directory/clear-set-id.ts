import { type Stats, constants } from "node:fs";
import * as fs from "node:fs/promises";
import { join } from "node:path";
import { absentIsDone, statIfThere } from "./durable-writes.ts";
import { heldBelow } from "./held-disk.ts";
import { filesBelow } from "./root-folder.ts";

const setId = 0o6000;

/**
 * Takes the set-user-ID and set-group-ID bits away from all files below a folder: earlier releases unpacked images with
 * them, and users of this machine can reach these. Follows no link, also of a name that is changed meanwhile.
 */
export async function clearSetId(folder: string): Promise<void> {
  const hold = heldBelow(folder);
  for (const path of await filesBelow(folder)) {
    const real = join(folder, path);
    if (hasSetId(await statIfThere(real))) await hold(real, clear).catch(linkOrAbsent);
  }
}

const hasSetId = (stat: Stats | undefined): boolean => stat?.isFile() === true && (stat.mode & setId) !== 0;

/** What became a link has no such bits. */
const linkOrAbsent = (error: NodeJS.ErrnoException): void => {
  if (error.code !== "ELOOP") absentIsDone(error);
};

async function clear(path: string): Promise<void> {
  const handle = await fs.open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = await handle.stat();
    if (hasSetId(stat)) await handle.chmod(stat.mode & 0o7777 & ~setId);
  } finally {
    await handle.close();
  }
}
