import { realpathSync, statSync } from "node:fs";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { McoError } from "../../api/errors.ts";
import type { ParentThread, StartThread } from "../threads.ts";

/** What a thread runs, and with which data. */
interface Start {
  readonly name: string;
  readonly data: unknown;
}

/** Size of the heap's young generation in MiB: threads keep most of their objects for a long time. */
const youngMb = 16;

/**
 * Threads that run this program: its sources or its bundle. The program finds out by {@link ownThread} that it is a
 * thread. An upgrade may replace the file while the process runs: a thread of another version would read messages of this one,
 * and is not started.
 *
 * @param program absent: the one that this process, or this thread, was started with.
 */
export function workerThreads(program?: string): StartThread {
  const path = realpathSync(program ?? process.argv[1] ?? "");
  const startedWith = stateOfFile(path);
  return ({ name, data, heapMb, onMessage }) => {
    if (stateOfFile(path) !== startedWith) {
      const failure = new McoError(
        "MCO_PROGRAM_REPLACED",
        { thread: name, program: path },
        {
          message: `the program ${path} was replaced since this process started: restart the process`,
        },
      );
      return { send: () => undefined, end: () => undefined, ended: Promise.resolve(failure) };
    }
    const start: Start = { name, data };
    const worker = new Worker(path, {
      name,
      workerData: start,
      argv: [],
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: youngMb },
    });
    worker.on("message", onMessage);
    return {
      send: (message) => worker.postMessage(message),
      end: () => void worker.terminate(),
      ended: new Promise((resolve) => {
        let failure: Error | undefined;
        worker.once("error", (error) => {
          failure = error instanceof Error ? error : new Error(String(error));
        });
        worker.once("exit", () => resolve(failure));
      }),
    };
  };
}

/** What tells a file from one that replaced it, or that it became. */
function stateOfFile(path: string): string | undefined {
  const state = statSync(path, { throwIfNoEntry: false });
  return state === undefined
    ? undefined
    : [state.dev, state.ino, state.birthtimeMs, state.mtimeMs, state.size].join(" ");
}

/** What this thread is to run; `undefined` in the main thread of the process. */
export function ownThread(): (Start & { readonly parent: ParentThread }) | undefined {
  if (isMainThread || parentPort === null) return undefined;
  const port = parentPort;
  const { name, data } = workerData as Start;
  return {
    name,
    data,
    parent: {
      send: (message) => port.postMessage(message),
      listen: (handle) => void port.on("message", handle),
    },
  };
}
