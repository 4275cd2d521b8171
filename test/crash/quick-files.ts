import * as fs from "node:fs";
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

/**
 * From now on this process works on files synchronously instead of in threads: the same calls with the same effects,
 * without the thread switches, which are most of the cost of thousands of short runs on a disk in memory. Only for a
 * test file of its own.
 */
export function workOnFilesAtOnce(): void {
  const atOnce =
    <Args extends readonly unknown[], Result>(work: (...args: Args) => Result) =>
    async (...args: Args): Promise<Result> =>
      work(...args);
  Object.assign(promises, {
    chmod: atOnce(fs.chmodSync),
    lchown: atOnce(fs.lchownSync),
    lstat: atOnce(fs.lstatSync),
    mkdir: atOnce(fs.mkdirSync),
    readFile: atOnce(fs.readFileSync),
    readdir: atOnce(fs.readdirSync),
    readlink: atOnce(fs.readlinkSync),
    realpath: atOnce(fs.realpathSync),
    rename: atOnce(fs.renameSync),
    rmdir: atOnce(fs.rmdirSync),
    statfs: atOnce(fs.statfsSync),
    symlink: atOnce(fs.symlinkSync),
    unlink: atOnce(fs.unlinkSync),
  });
  syncBuiltinESMExports();
}
