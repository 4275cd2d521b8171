import { lstat, realpath } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { orUndefined } from "../ports/absent-file.ts";

/** What version control systems have at the top of a work tree, as a folder or a file. */
const marks = [
  ".git",
  ".hg",
  ".jj",
  ".sl",
  ".svn",
  ".bzr",
  ".pijul",
  "_darcs",
  "CVS",
  ".fslckout",
  "_FOSSIL_",
] as const;

/**
 * The work trees of version control that a path lies in, the innermost first and without links, but for that of this
 * program. Their authors decide what is in them: a pull overwrites files that are ignored, and adds what is not there
 * (git-merge(1), `--overwrite-ignore`). The authors of this program's own work tree decide what the program does anyway.
 *
 * @param path of a file or folder, which need not be there.
 * @param program a file of the program.
 */
export async function workTreesOfOthers(
  path: string,
  program: string = import.meta.filename,
): Promise<readonly string[]> {
  const ownFile = await realpath(program);
  const found: string[] = [];
  for (let folder = await nearest(path); ; folder = dirname(folder)) {
    const isOwn = ownFile.startsWith(folder === sep ? folder : `${folder}${sep}`);
    if (!isOwn && (await hasMark(folder))) found.push(folder);
    if (folder === dirname(folder)) return found;
  }
}

/** A path without links, or of the nearest folder above it that is there. */
async function nearest(path: string): Promise<string> {
  return (await orUndefined(realpath(path))) ?? nearest(dirname(path));
}

async function hasMark(folder: string): Promise<boolean> {
  for (const mark of marks) if ((await orUndefined(lstat(join(folder, mark)))) !== undefined) return true;
  return false;
}
