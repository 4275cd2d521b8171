import { chmod, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { installProgram } from "./install-program.ts";

const cleanups: string[] = [];
afterEach(async () => {
  for (const folder of cleanups.splice(0)) await rm(folder, { recursive: true, force: true });
});

test("a copy of the program and its runtime lies below /var, once for each build, and the command leads to the newest", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mco-program-"));
  cleanups.push(folder);
  const root = join(folder, "root");
  await mkdir(join(root, "usr"), { recursive: true });
  await mkdir(join(root, "var/usrlocal"), { recursive: true });
  // As on a machine with ostree; an absolute link is the machine's own, too.
  await symlink("/var/usrlocal", join(root, "usr/local"));
  const program = { runtime: join(folder, "node"), main: join(folder, "bundle/mco.mjs") };
  await mkdir(join(folder, "bundle"));
  await writeFile(program.runtime, '#!/bin/sh\necho "$@"\n');
  await chmod(program.runtime, 0o755);
  await writeFile(program.main, "main 1");
  await writeFile(join(folder, "bundle/chunk.mjs"), "chunk");

  await installProgram(root, program);
  const copies = join(root, "var/usrlocal/lib/mco");
  const [first = ""] = await readdir(copies);
  expect((await readdir(join(copies, first))).sort()).toEqual(["chunk.mjs", "mco.mjs", "runtime"]);
  expect(await readFile(join(root, "var/usrlocal/bin/mco"), "utf8")).toBe(
    `#!/bin/sh\nexec /usr/local/lib/mco/${first}/runtime /usr/local/lib/mco/${first}/mco.mjs "$@"\n`,
  );

  await installProgram(root, program);
  expect(await readdir(copies)).toEqual([first]);

  await writeFile(program.main, "main two");
  // What a killed copy left behind is no obstacle.
  await mkdir(join(copies, ".part"));
  await installProgram(root, program);
  const [second = "", ...others] = await readdir(copies);
  expect([second === first, others]).toEqual([false, []]);
  expect(await readFile(join(root, "var/usrlocal/bin/mco"), "utf8")).toContain(second);
  expect(await readFile(join(copies, second, "mco.mjs"), "utf8")).toBe("main two");
});
