import type { Files } from "../../../ports/files.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { Processes } from "../../../ports/process.ts";

/** As the kernel writes blanks and backslashes in /proc/self/mounts (proc_mounts(5)). */
const unescaped = (path: string) =>
  path.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/**
 * Unmounts everything below a machine's folder: no mount outlives a boot, and where machines are folders, nothing else
 * removes the mounts of a killed program. Without root there are none.
 */
export async function unmountBelow(
  folder: string,
  {
    files,
    processes,
    log,
    environment,
  }: {
    readonly files: Files;
    readonly processes: Processes;
    readonly log: Logger;
    readonly environment: Readonly<Record<string, string>>;
  },
  signal: AbortSignal,
): Promise<void> {
  const mounts = (await files.readText("/proc/self/mounts")) ?? "";
  const below = mounts
    .split("\n")
    .map((line) => unescaped(line.split(" ")[1] ?? ""))
    .filter((path) => path.startsWith(`${folder}/`));
  // The last mount lies on top of the earlier ones.
  for (const path of below.reverse()) {
    const { code, stderr } = await processes.run("umount", ["--", path], { env: environment, signal });
    if (code !== 0) log.warn({ path, stderr: stderr.slice(0, 300) }, "a mount of an earlier boot is left");
  }
}
