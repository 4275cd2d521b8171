/**
 * Writes the program for an image: `FOLDER/lib/mco`, in `FOLDER/bin` `mco` and the processes' own names as links to it, and
 * its pages for man(1) in `FOLDER/share/man/man1`.
 */
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { writeBundle } from "../src/cli/bundle.ts";
import { commands } from "../src/cli/commands.ts";
import { manPages } from "../src/cli/man-pages.ts";
import { programNames } from "../src/cli/program-names.ts";

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write("usage: hack/bundle.ts FOLDER\n");
  process.exit(64);
}
const at = resolve(folder);
const bookIndexes = join(at, "lib/mco");
const program = await writeBundle(bookIndexes);
// node:sqlite, which only the embedded API server loads, still says that it is new.
writeFileSync(
  program,
  `#!/usr/bin/env -S node --disable-warning=ExperimentalWarning\n${readFileSync(program, "utf8")}`,
);
chmodSync(program, 0o755);
const names = join(at, "bin");
rmSync(names, { recursive: true, force: true });
mkdirSync(names, { recursive: true });
// A name gets its link with the process that it stands for.
const links = ["mco", "kubectl-mco", ...programNames.flatMap(([name, process]) => (process in commands ? [name] : []))];
for (const name of links) symlinkSync("../lib/mco/mco.mjs", join(names, name));
const pages = join(at, "share/man/man1");
rmSync(pages, { recursive: true, force: true });
mkdirSync(pages, { recursive: true });
for (const [name, text] of manPages()) writeFileSync(join(pages, name), text);
process.stdout.write(`${at}/bin: ${links.join(", ")}\n`);
