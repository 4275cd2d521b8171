import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Child, Exit, Processes, RunResult, SpawnOptions } from "../process.ts";

const outputLimitBytes = 1024 * 1024;

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve, reject) => {
    child.once("error", (error) => (child.pid === undefined ? reject(error) : undefined));
    child.once("exit", (code, signal) => resolve({ code: code ?? undefined, signal: signal ?? undefined }));
  });
}

/** Descendants may hold the output open after the program ends: wait only this long. */
const lastWordsMs = 500;

async function endOf(child: ChildProcess): Promise<Exit> {
  const closed = new Promise((resolve) => child.once("close", resolve));
  const exit = await exitOf(child);
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([closed, new Promise((resolve) => (timer = setTimeout(resolve, lastWordsMs)))]);
  clearTimeout(timer);
  return exit;
}

function start(command: string, args: readonly string[], options: SpawnOptions, stdio: StdioOptions): ChildProcess {
  return spawn(command, [...args], {
    stdio,
    detached: options.group === true,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: { ...options.env } }),
  });
}

function signalTo(child: ChildProcess, group: boolean, signal: NodeJS.Signals): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(group ? -child.pid : child.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** The processes of this machine. */
export const systemProcesses: Processes = {
  spawn(command, args, options = {}): Child {
    const { onOutput } = options;
    const output =
      onOutput !== undefined
        ? "pipe"
        : options.logFile === undefined
          ? "ignore"
          : openSync(options.logFile, "a", 0o600);
    const child = start(command, args, options, [
      "ignore",
      output,
      output,
      ...(options.lifeline === true ? ["pipe" as const] : []),
    ]);
    if (typeof output === "number") closeSync(output);
    if (onOutput !== undefined)
      for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", onOutput);
    return {
      pid: child.pid ?? -1,
      exited: onOutput === undefined ? exitOf(child) : endOf(child),
      kill: (signal) => signalTo(child, options.group === true, signal),
    };
  },

  async run(command, args, options): Promise<RunResult> {
    const child = start(command, args, options, "pipe");
    const onAbort = () => signalTo(child, options.group === true, "SIGKILL");
    options.signal.addEventListener("abort", onAbort, { once: true });
    const collect = (stream: NodeJS.ReadableStream | null) => {
      let text = "";
      stream?.on("data", (chunk: Buffer) => {
        if (text.length < outputLimitBytes) text += chunk.toString("utf8");
      });
      return () => text;
    };
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    child.stdin?.on("error", () => undefined); // A program may end without reading all of its input.
    child.stdin?.end(options.input ?? "");
    try {
      const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
      const exit = await exitOf(child);
      await closed;
      options.signal.throwIfAborted();
      return { ...exit, stdout: stdout(), stderr: stderr() };
    } finally {
      options.signal.removeEventListener("abort", onAbort);
    }
  },
};
