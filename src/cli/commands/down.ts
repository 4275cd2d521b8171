import { resolve } from "node:path";
import { type Layout, layoutOf, partOfCluster, removeCluster } from "../../standin/index.ts";
import { runningCluster, startTimeOf } from "../../standin/cluster.ts";
import { listText } from "../../core/text/list-text.ts";
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
  if (values.purge) await purge(layout);
  return 0;
}

/** Removes the cluster and nothing else: a mistyped folder keeps its files. */
async function purge(layout: Layout): Promise<void> {
  const { directory } = layout;
  const isAny = [await partOfCluster(systemFiles, layout), await systemFiles.stat(layout.identity)].some(
    (part) => part !== undefined,
  );
  if (!isAny) {
    processIo().out(`there is no cluster in ${directory} to remove\n`);
    return;
  }
  await forgetFolder(layout);
  const left = await removeCluster(systemFiles, layout);
  processIo().out(
    left.length === 0
      ? `removed ${directory}\n`
      : `removed the cluster in ${directory}; what is not the cluster's stays: ${listText(left, 5)}\n`,
  );
}
