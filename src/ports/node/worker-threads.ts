import { realpathSync } from "node:fs";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
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
 * thread.
 *
 * @param program absent: the one that this process, or this thread, was started with.
 */
export const workerThreads =
  (program?: string): StartThread =>
  ({ name, data, heapMb, onMessage }) => {
    const start: Start = { name, data };
    const worker = new Worker(realpathSync(program ?? process.argv[1] ?? ""), {
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
