import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** A cluster that is not up by then is stopped, and its test fails with what it printed. */
const patienceMs = 150_000;

/** A process `mco up` whose cluster is up, in a folder of its own. */
export interface McoUp {
  readonly directory: string;
  readonly secondsToUp: number;
  /** Stops the process, and resolves once it has ended; the folder stays. */
  end(): Promise<void>;
  /** Removes the folder; MCO_KEEP keeps it, with its logs. */
  remove(): void;
}

/** Starts `mco up` with `args`, and resolves once the cluster is up. It adopts a folder in which `prepare` leaves something. */
export async function mcoUp(
  prefix: string,
  args: readonly string[],
  prepare?: (directory: string) => Promise<void>,
): Promise<McoUp> {
  const directory = mkdtempSync(join(tmpdir(), prefix));
  const remove = () => {
    if (process.env["MCO_KEEP"] === undefined) rmSync(directory, { recursive: true, force: true });
  };
  await prepare?.(directory);
  const adopted = prepare === undefined ? [] : ["--adopt"];
  const up = spawn(join(root, "bin/mco"), ["up", "--dir", directory, ...adopted, ...args, "--json"], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const gone = new Promise<void>((resolve) => up.once("exit", () => resolve()));
  try {
    const { seconds } = JSON.parse(await firstLine(up)) as { seconds: number };
    return {
      directory,
      secondsToUp: seconds,
      async end() {
        up.kill("SIGTERM");
        await gone;
      },
      remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** What `mco up` prints once its cluster is up; fails with its errors. */
async function firstLine(up: ChildProcess): Promise<string> {
  let stdout = "";
  let stderr = "";
  up.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")));
  const patience = setTimeout(() => up.kill("SIGTERM"), patienceMs);
  try {
    await new Promise<void>((resolve, reject) => {
      up.stdout?.on("data", (chunk: Buffer) => {
        stdout += chunk.toString("utf8");
        if (stdout.includes("\n")) resolve();
      });
      up.once("error", reject);
      up.once("exit", (code) => reject(new Error(`mco up ended with ${code}: ${stderr.slice(-2000)}`)));
    });
  } finally {
    clearTimeout(patience);
  }
  return stdout;
}
