import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemFiles } from "./system-files.ts";

test("a text file of a gigabyte is refused with a code, and is not read [ports-files-1]", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mco-files-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "large");
  await writeFile(path, "");
  await truncate(path, 1024 * 1024 * 1024);
  const before = process.memoryUsage().rss;
  await expect(systemFiles.readText(path)).rejects.toMatchObject({ code: "MCO_FILE_TOO_LARGE" });
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
  expect(await systemFiles.readText(join(folder, "absent"))).toBeUndefined();
  expect(await systemFiles.readText("/proc/self/comm")).not.toBe("");
});
