import type { Clock } from "../../../ports/clock.ts";
import type { StartThread } from "../../../ports/threads.ts";
import { type ReadYaml, readYaml, type YamlOutcome } from "../http/request-body.ts";

/** The part of the program that a thread runs to read one body. */
export const yamlThread = "yaml-reader";

/** Each keeps a processor busy. */
const mostThreads = 2;
/** Ten times what the longest body that is read as YAML takes on a calm machine. */
const deadlineMs = 60_000;
/**
 * Twice what the worst of the longest texts takes, so that none comes near it: V8 ends the whole process, and not the thread,
 * where one allocation is larger than what is left of the heap and an allowance of 16 MiB.
 */
export const yamlHeapMb = 384;

interface Waiting {
  readonly text: string;
  readonly signal: AbortSignal;
  readonly answer: (outcome: YamlOutcome) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Reads long YAML in threads, each of which ends with its text: one at a time for each share of users, who take turns. While
 * a thread reads, the server answers others.
 */
export function yamlInThreads(startThread: StartThread, clock: Pick<Clock, "after">): ReadYaml {
  const queues = new Map<string, Waiting[]>();
  const running = new Set<string>();

  function next(): void {
    for (const [share, queue] of queues) {
      if (running.size === mostThreads) return;
      if (running.has(share)) continue;
      const waiting = queue.shift();
      if (queue.length === 0) queues.delete(share);
      if (waiting === undefined) continue;
      running.add(share);
      void readIn(startThread, clock, waiting)
        .finally(() => {
          running.delete(share);
          // Who had a turn waits behind the others.
          const left = queues.get(share);
          queues.delete(share);
          if (left !== undefined) queues.set(share, left);
          next();
        })
        .then(waiting.answer, waiting.fail);
    }
  }

  return (text, share, signal) =>
    new Promise((answer, fail) => {
      const queue = queues.get(share) ?? [];
      queue.push({ text, signal, answer, fail });
      queues.set(share, queue);
      next();
    });
}

async function readIn(
  startThread: StartThread,
  clock: Pick<Clock, "after">,
  { text, signal }: Waiting,
): Promise<YamlOutcome> {
  signal.throwIfAborted();
  let outcome: YamlOutcome | undefined;
  let isLate = false;
  const thread = startThread({
    name: yamlThread,
    data: text,
    heapMb: yamlHeapMb,
    onMessage: (message) => {
      outcome = message as YamlOutcome;
      thread.end();
    },
  });
  const end = () => thread.end();
  const cancel = clock.after(deadlineMs, () => {
    isLate = true;
    end();
  });
  signal.addEventListener("abort", end, { once: true });
  const failure: (Error & { readonly code?: unknown }) | undefined = await thread.ended;
  signal.removeEventListener("abort", end);
  cancel();
  if (outcome !== undefined) return outcome;
  signal.throwIfAborted();
  if (isLate || failure?.code === "ERR_WORKER_OUT_OF_MEMORY")
    return { verdict: "refused", code: 400, message: "it takes too much to read as YAML: send JSON" };
  // That is not the fault of the text.
  throw failure ?? new Error("the thread that reads YAML ended without an answer");
}

/** What the thread runs. */
export const readYamlInThread = (data: unknown): YamlOutcome => readYaml(String(data));
