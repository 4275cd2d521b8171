import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock, systemFiles } from "../ports/node/index.ts";
import { claimFolder } from "./claim-folder.ts";

async function harness() {
  const folder = await mkdtemp(join(tmpdir(), "mco-claim-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const ports = { files: systemFiles, clock: systemClock };
  /** What a process wrote that is not this one. */
  const other = (claim: object) => writeFile(join(folder, "running", "other"), JSON.stringify(claim));
  return { folder, claim: (id: string) => claimFolder(folder, id, ports), other };
}

test("a build is alone until another one starts, and again after that one ends", async () => {
  const { folder, claim } = await harness();
  const first = await claim("worker-1");
  expect(await first.isAlone()).toBe(true);
  const second = await claim("infra/1");
  expect([await first.isAlone(), await second.isAlone()]).toEqual([false, false]);
  await second.release();
  expect(await first.isAlone()).toBe(true);
  await first.release();
  expect(await readdir(join(folder, "running"))).toEqual([]);
});

test("a build that was killed holds nothing, at once where its process can be looked for, else after a while", async () => {
  const { claim, other } = await harness();
  const own = await claim("own");
  const namespace = await systemFiles.readLink("/proc/self/ns/pid");
  await other({ namespace, pid: "1", began: "another process", at: systemClock.now() });
  expect(await own.isAlone()).toBe(true);
  await other({ namespace: "pid:[1]", pid: "1", began: "1", at: systemClock.now() - 59_000 });
  expect(await own.isAlone()).toBe(false);
  await other({ namespace: "pid:[1]", pid: "1", began: "1", at: systemClock.now() - 61_000 });
  expect(await own.isAlone()).toBe(true);
  await own.release();
});
