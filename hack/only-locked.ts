/**
 * Compares the packages that npm installed into a folder with a lock file, by path, version and integrity hash. Removes
 * them all, and fails, where npm installed one that the lock file does not pin.
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Lockfile } from "./sbom.ts";

type Packages = Lockfile["packages"];

/** Paths of installed packages that are not those of the lock file. */
export const strangers = (installed: Packages, locked: Packages): readonly string[] =>
  Object.entries(installed)
    .filter(
      ([path, { version, integrity }]) =>
        integrity === undefined || integrity !== locked[path]?.integrity || version !== locked[path]?.version,
    )
    .map(([path]) => path);

if (import.meta.main) {
  const [folder, lockFile] = process.argv.slice(2);
  if (folder === undefined || lockFile === undefined) {
    process.stderr.write("usage: hack/only-locked.ts FOLDER LOCKFILE\n");
    process.exit(64);
  }
  const packagesOf = (path: string) => (JSON.parse(readFileSync(path, "utf8")) as Lockfile).packages;
  const found = strangers(packagesOf(join(folder, "node_modules/.package-lock.json")), packagesOf(lockFile));
  if (found.length > 0) {
    rmSync(join(folder, "node_modules"), { recursive: true, force: true });
    process.stderr.write(`not in ${lockFile}, removed: ${found.join(", ")}\n`);
    process.exit(1);
  }
}
