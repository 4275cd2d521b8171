import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { git } from "../../test/support/git.ts";
import { temporaryFolder } from "../../test/support/registry/pull-harness.ts";
import { workTreesOfOthers } from "./work-trees.ts";

/** Folders, and a program in `program/`. */
async function harness() {
  const root = await temporaryFolder();
  for (const name of ["plain/below", "program/bin", "repository"]) await mkdir(join(root, name), { recursive: true });
  const program = join(root, "program/bin/mco.mjs");
  await writeFile(program, "");
  await git(join(root, "repository"), "init", "--quiet");
  await git(join(root, "repository"), "commit", "--quiet", "--allow-empty", "--message", "first");
  const found = async (path: string) =>
    (await workTreesOfOthers(join(root, path), program)).map((one) => one.slice(root.length + 1));
  return { root, found, repository: join(root, "repository") };
}

test("a folder outside of work trees is in none [work-trees-1]", async () => {
  const { found } = await harness();
  expect(await found("plain/below")).toEqual([]);
});

test("a folder in a work tree of git is found, also one that is not there yet [work-trees-2]", async () => {
  const { found } = await harness();
  for (const path of ["repository", "repository/.mco", "repository/a/b/c"])
    expect(await found(path), path).toEqual(["repository"]);
});

test("work trees whose repository is elsewhere are found [work-trees-3]", async () => {
  const { root, found, repository } = await harness();
  await git(repository, "worktree", "add", "--quiet", join(root, "second"));
  await git(root, "init", "--quiet", "--separate-git-dir", join(root, "plain/data"), join(root, "apart"));
  await git(repository, "submodule", "--quiet", "add", repository, "module");
  expect(await found("second/.mco")).toEqual(["second"]);
  expect(await found("apart/.mco")).toEqual(["apart"]);
  expect(await found("repository/module/.mco")).toEqual(["repository/module", "repository"]);
});

test("a link to a work tree leads to it [work-trees-4]", async () => {
  const { root, found, repository } = await harness();
  await symlink(repository, join(root, "way"));
  expect(await found("way/.mco")).toEqual(["repository"]);
});

test.for([".hg", ".jj", ".sl", ".svn", ".bzr", ".pijul", "_darcs", "CVS", ".fslckout", "_FOSSIL_"])(
  "a work tree of another system is found by its %s [work-trees-5]",
  async (mark) => {
    const { root, found } = await harness();
    await mkdir(join(root, "plain", mark));
    expect(await found("plain/below/.mco")).toEqual(["plain"]);
  },
);

test("the work tree of the program is none of others, and one within it is [work-trees-6]", async () => {
  const { root, found } = await harness();
  await git(join(root, "program"), "init", "--quiet");
  expect(await found("program/.mco")).toEqual([]);
  await git(root, "clone", "--quiet", join(root, "repository"), join(root, "program/clone"));
  expect(await found("program/clone/.mco")).toEqual(["program/clone"]);
});
