import { resolve } from "node:path";
import { layoutOf } from "../../standin/index.ts";
import { runningCluster, startTimeOf } from "../../standin/cluster.ts";
import { systemClock, systemFiles } from "../../ports/node/index.ts";
import { readArguments } from "../arguments.ts";
import { flags } from "../flags.ts";
import { processIo } from "../io.ts";
import { checkRecordedFolder, forgetFolder } from "../own-folder.ts";

const patienceMs = 60_000;

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, flags.down);
  const layout = layoutOf(resolve(values.dir));
  // Its record says which processes end.
  await checkRecordedFolder(layout);
  const record = await runningCluster(systemFiles, layout);
  if (record === undefined) processIo().out(`no cluster runs in ${layout.directory}\n`);
  else {
    const { pid, startTime } = record.supervisor;
    const alive = async (one: { pid: number; startTime: string }) =>
      (await startTimeOf(systemFiles, one.pid)) === one.startTime;
    process.kill(pid, "SIGTERM");
    const began = systemClock.monotonic();
    while ((await alive({ pid, startTime })) && systemClock.monotonic() - began < patienceMs)
      await systemClock.sleep(50);
    // Only processes of the record, and only while each still is the one that was recorded.
    for (const one of [{ pid, startTime }, ...record.processes]) if (await alive(one)) process.kill(one.pid, "SIGKILL");
    processIo().out(`the cluster in ${layout.directory} has ended\n`);
  }
  if (values.purge) {
    await forgetFolder(layout);
    await systemFiles.remove(layout.directory);
    processIo().out(`removed ${layout.directory}\n`);
  }
  return 0;
}
