import { spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startTimeOf } from "../standin/cluster/up.ts";
import { systemFiles } from "../ports/node/index.ts";
import { temporaryFolder } from "../../test/support/registry/pull-harness.ts";
import { run as down } from "./commands/down.ts";
import { run as up } from "./commands/up.ts";

// Only root can give a folder to another user.
test.skipIf(process.getuid?.() !== 0).for<[name: string, run: typeof down]>([
  ["up", up],
  ["down", down],
])("mco %s does not read the record of a folder that another user prepared [cli-foreign-folder-1]", async ([, run]) => {
  const directory = join(await temporaryFolder(), "cluster");
  await mkdir(directory);
  // With it, that user chooses whose process is the supervisor that ends.
  const victim = spawn("sleep", ["300"], { stdio: "ignore" });
  const exit = once(victim, "exit");
  onTestFinished(async () => {
    victim.kill("SIGKILL");
    await exit;
  });
  const supervisor = { pid: victim.pid ?? -1, startTime: await startTimeOf(systemFiles, victim.pid ?? -1) };
  const record = { v: 1, version: "0", network: "127.1.1", supervisor, processes: [], hosts: [] };
  await writeFile(join(directory, "cluster.json"), JSON.stringify(record));
  await chown(directory, 1234, 1234);
  await expect(run(["--dir", directory])).rejects.toMatchObject({ code: "MCO_CLUSTER_FOLDER_FOREIGN" });
  expect([victim.exitCode, victim.signalCode]).toEqual([null, null]);
});
