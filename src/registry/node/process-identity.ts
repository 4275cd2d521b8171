import { readFile } from "node:fs/promises";

/** When the process started, in ticks since boot: a process id alone may have been given to another one since. */
async function startOf(pid: string): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may hold anything. Source of the field's place: proc(5).
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

/** A word for this process, for names of files that are its own. */
export const processWord = async (): Promise<string> => `${process.pid}-${await startOf("self")}`;

/** Whether the process that calls itself so still runs. */
export async function isRunning(identity: string): Promise<boolean> {
  const [pid = "", start] = identity.split("-");
  return /^[0-9]+$/.test(pid) && start !== undefined && (await startOf(pid)) === start;
}
