import { join } from "node:path";
import { expect, test } from "vitest";
import { workerThreads } from "../../../ports/node/index.ts";
import type { StartThread, ThreadOptions } from "../../../ports/threads.ts";
import { yamlInThreads } from "./yaml-threads.ts";

/** Threads that do nothing by themselves, and a clock that does not go by itself. */
function start() {
  const threads: (ThreadOptions & { readonly end: (failure?: Error) => void; isOver: boolean })[] = [];
  const deadlines: (() => void)[] = [];
  const startThread: StartThread = (options) => {
    const { promise: ended, resolve } = Promise.withResolvers<Error | undefined>();
    const thread = {
      ...options,
      isOver: false,
      end: (failure?: Error) => {
        thread.isOver = true;
        resolve(failure);
      },
    };
    threads.push(thread);
    return { send: () => {}, end: () => thread.end(), ended };
  };
  const read = yamlInThreads(startThread, { after: (_, run) => (deadlines.push(run), () => {}) });
  const { signal } = new AbortController();
  return {
    read: (text: string, share: string, until = signal) => read(text, share, until),
    /** Texts that are being read. */
    open: () => threads.filter(({ isOver }) => !isOver).map(({ data }) => data),
    finish: (text: string) =>
      threads.find(({ data }) => data === text)?.onMessage({ verdict: "read", json: `"${text}"` }),
    fail: (text: string, code: string) =>
      threads.find(({ data }) => data === text)?.end(Object.assign(new Error(code), { code })),
    passDeadline: () => deadlines.at(-1)?.(),
  };
}

test("each user has one text read at a time, and users take turns [apiserver-yaml-threads-1]", async () => {
  const { read, open, finish } = start();
  const first = read("a1", "a");
  const answers = [read("a2", "a"), read("a3", "a"), read("b1", "b"), read("c1", "c")];
  expect(open()).toEqual(["a1", "b1"]);
  finish("a1");
  expect(await first).toEqual({ verdict: "read", json: '"a1"' });
  expect(open()).toEqual(["b1", "c1"]);
  finish("b1");
  await answers[2];
  expect(open()).toEqual(["c1", "a2"]);
  finish("a2");
  await answers[0];
  expect(open()).toEqual(["c1", "a3"]);
  finish("a3");
  finish("c1");
  expect(await Promise.all(answers)).toHaveLength(4);
  expect(open()).toEqual([]);
});

test("a text that takes too long or too much is refused, and makes room for others [apiserver-yaml-threads-2]", async () => {
  const { read, open, fail, passDeadline, finish } = start();
  const refused = { verdict: "refused", code: 400, message: "it takes too much to read as YAML: send JSON" };
  const large = read("large", "a");
  fail("large", "ERR_WORKER_OUT_OF_MEMORY");
  expect(await large).toEqual(refused);
  const slow = read("slow", "a");
  passDeadline();
  expect(await slow).toEqual(refused);
  const gone = new AbortController();
  const left = read("left", "a", gone.signal);
  const waits = read("waits", "a", gone.signal);
  const next = read("next", "a");
  gone.abort(new Error("the caller went away"));
  await expect(left).rejects.toThrow("the caller went away");
  await expect(waits).rejects.toThrow("the caller went away");
  expect(open()).toEqual(["next"]);
  finish("next");
  expect(await next).toEqual({ verdict: "read", json: '"next"' });
});

test("a thread that could not start is not the fault of its text [apiserver-yaml-threads-4]", async () => {
  const { read, fail, finish } = start();
  const unread = read("unread", "a");
  fail("unread", "ERR_WORKER_INIT_FAILED");
  await expect(unread).rejects.toThrow("ERR_WORKER_INIT_FAILED");
  const next = read("next", "a");
  finish("next");
  expect(await next).toEqual({ verdict: "read", json: '"next"' });
});

test("the program reads YAML in a thread as in the server [apiserver-yaml-threads-3]", async () => {
  const program = join(import.meta.dirname, "../../../cli/main.ts");
  // No deadline: to load all sources may take long on a busy machine.
  const read = yamlInThreads(workerThreads(program), { after: () => () => {} });
  const { signal } = new AbortController();
  const long = `a: &a [yes, 0o17, ~]\nb: *a\nc: |\n  é\n${"# comment\n".repeat(3_000)}`;
  expect(await Promise.all([read(long, "a", signal), read("a: b: c", "b", signal), read("{", "c", signal)])).toEqual([
    { verdict: "read", json: '{"a":[true,15,null],"b":[true,15,null],"c":"é\\n"}' },
    { verdict: "refused", code: 400, message: expect.stringContaining("error decoding the body: Nested mappings") },
    { verdict: "refused", code: 400, message: expect.stringContaining("error decoding the body: Flow map") },
  ]);
});
