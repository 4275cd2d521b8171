import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { StartThread } from "../threads.ts";
import { workerThreads } from "./worker-threads.ts";

/** A program whose threads send one word, and a later version that replaces it. */
async function programs() {
  const folder = await mkdtemp(join(tmpdir(), "mco-threads-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const write = async (name: string, word: string): Promise<string> => {
    const path = join(folder, name);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, `import { parentPort } from "node:worker_threads"; parentPort.postMessage("${word}");`);
    return path;
  };
  return { folder, write };
}

/** What a thread of the program sends, or why it does not run. */
async function wordOf(startThread: StartThread): Promise<unknown> {
  const words: unknown[] = [];
  const { ended } = startThread({ name: "t", data: undefined, heapMb: 16, onMessage: (word) => words.push(word) });
  const failure = await ended;
  return failure ?? words[0];
}

test("a thread never runs another version of the program than its process [ports-worker-threads-1]", async () => {
  const { write } = await programs();
  const program = await write("mco.mjs", "old");
  const startThread = workerThreads(program);
  expect(await wordOf(startThread)).toBe("old");
  await rename(await write("mco.mjs.next", "new"), program);
  const failure = expect.objectContaining({
    code: "MCO_PROGRAM_REPLACED",
    message: expect.stringContaining(program) as string,
  }) as unknown;
  expect(await wordOf(startThread)).toEqual(failure);
  await rm(program);
  expect(await wordOf(startThread)).toEqual(failure);
});

test("a thread runs the process's own version where a link to it leads elsewhere by now [ports-worker-threads-2]", async () => {
  const { folder, write } = await programs();
  const [old, next] = [await write("1/mco.mjs", "old"), await write("2/mco.mjs", "new")];
  const link = join(folder, "mco.mjs");
  await symlink(old, link);
  const startThread = workerThreads(link);
  await rm(link);
  await symlink(next, link);
  expect(await wordOf(startThread)).toBe("old");
});
