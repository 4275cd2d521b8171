import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clearSetId } from "./clear-set-id.ts";

test("files lose their set-user-ID and set-group-ID bits, links are not followed, folders keep theirs [host-set-id-1]", async () => {
  const root = await fs.mkdtemp(join(tmpdir(), "mco-set-id-"));
  onTestFinished(() => fs.rm(root, { recursive: true, force: true }));
  const tree = join(root, "tree");
  const put = async (path: string, mode: number) => {
    await fs.writeFile(join(root, path), "");
    await fs.chmod(join(root, path), mode);
  };
  const modeOf = async (path: string) => ((await fs.stat(join(root, path))).mode & 0o7777).toString(8);
  await fs.mkdir(join(tree, "usr/bin"), { recursive: true });
  await fs.chmod(join(tree, "usr"), 0o2755);
  await put("outside", 0o4755);
  await put("tree/usr/bin/su", 0o4755);
  await put("tree/usr/bin/wall", 0o2711);
  await put("tree/usr/bin/both", 0o7700);
  await put("tree/usr/bin/ls", 0o755);
  await fs.symlink("../../../outside", join(tree, "usr/bin/link"));
  await clearSetId(tree);
  const modes = await Promise.all(
    ["outside", "tree/usr", ...["su", "wall", "both", "ls"].map((name) => `tree/usr/bin/${name}`)].map(modeOf),
  );
  expect(modes).toEqual(["4755", "2755", "755", "711", "1700", "755"]);
  // A folder that is not there is none to look at.
  await clearSetId(join(root, "absent"));
});
