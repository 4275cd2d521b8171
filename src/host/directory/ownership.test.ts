import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { heldDisk } from "./held-disk.ts";
import { systemDisk } from "./disk.ts";
import { recordedOwners } from "./ownership.ts";

test("the record of owners is read once, and again when another process has written it [host-ownership-1]", async () => {
  const folder = await fs.mkdtemp(join(tmpdir(), "mco-owners-"));
  onTestFinished(() => fs.rm(folder, { recursive: true, force: true }));
  const ofProcess = () => recordedOwners(heldDisk(folder, systemDisk), folder, join(folder, "owners.json"));
  const [one, other] = [ofProcess(), ofProcess()];
  const names = Array.from({ length: 30 }, (_, i) => join(folder, `f${i}`));
  for (const name of names) await fs.writeFile(name, "");
  const give = (owners: typeof one, uid: number) =>
    owners.give(names.map((name) => ({ at: name, as: name, kind: "file", own: { mode: 0o600, uid, gid: uid } })));
  const uidsOf = async (owners: typeof one) => {
    const uids = await Promise.all(names.map(async (name) => (await owners.of(name, await fs.lstat(name))).uid));
    return [...new Set(uids)];
  };

  await give(one, 7);
  expect([await uidsOf(one), await uidsOf(other)]).toEqual([[7], [7]]);
  const parsed = vi.spyOn(JSON, "parse");
  onTestFinished(() => parsed.mockRestore());
  for (const name of names) await other.of(name, await fs.lstat(name));
  expect(parsed).not.toHaveBeenCalled();
  await give(one, 8);
  expect([await uidsOf(one), await uidsOf(other)]).toEqual([[8], [8]]);
  await fs.rm(join(folder, "owners.json"));
  expect(await uidsOf(other)).toEqual([0]);
});
