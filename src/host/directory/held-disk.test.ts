import { mkdir, mkdtemp, readFile, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemDisk } from "./disk.ts";
import { heldDisk } from "./held-disk.ts";

let folder = "";
let root = "";
let outside = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "mco-held-"));
  root = join(folder, "root");
  outside = join(folder, "outside");
  await mkdir(join(root, "a/b"), { recursive: true });
  await mkdir(outside);
  await writeFile(join(outside, "theirs"), "theirs", { mode: 0o640 });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const contents = new TextEncoder().encode("x");

test("does below its root what the disk does", async () => {
  const disk = heldDisk(root, systemDisk);
  const at = (name: string) => join(root, "a/b", name);
  await disk.mkdir(at("new"));
  await disk.create(at("new/file"), contents);
  await disk.chmod(at("new/file"), 0o644);
  await disk.sync(at("new/file"));
  await disk.symlink("file", at("new/link"));
  await disk.rename(at("new/file"), join(root, "top"));
  await disk.sync(at("new"));
  await disk.sync(root);
  expect(await readFile(join(root, "top"), "utf8")).toBe("x");
  await disk.unlink(at("new/link"));
  await disk.rmdir(at("new"));
  expect(await readdir(join(root, "a/b"))).toEqual([]);
});

test("does nothing where a folder on the way has become a link since its path was resolved", async () => {
  const disk = heldDisk(root, systemDisk);
  await rename(join(root, "a/b"), join(root, "a/c"));
  await symlink(outside, join(root, "a/b"));
  const at = (name: string) => join(root, "a/b", name);
  const tries = [
    disk.create(at("file"), contents),
    disk.mkdir(at("new")),
    disk.symlink("x", at("link")),
    disk.unlink(at("theirs")),
    disk.chmod(at("theirs"), 0o777),
    disk.rename(join(root, "a/c"), at("moved")),
    disk.sync(at("theirs")),
  ];
  for (const outcome of await Promise.allSettled(tries))
    expect(outcome).toMatchObject({
      status: "rejected",
      reason: { code: expect.stringMatching(/ELOOP|ENOTDIR/) as unknown },
    });
  expect(await readdir(outside)).toEqual(["theirs"]);
  await expect(disk.create(join(outside, "file"), contents)).rejects.toMatchObject({ code: "EXDEV" });
});

test("changes no mode through a link that was put in place of a file", async () => {
  await symlink(join(outside, "theirs"), join(root, "a/planted"));
  await expect(heldDisk(root, systemDisk).chmod(join(root, "a/planted"), 0o777)).rejects.toMatchObject({
    code: "ELOOP",
  });
});
