import { execFileSync } from "node:child_process";
import { appendFile, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Pod } from "../../../api/foreign/kubernetes.ts";
import type { Files } from "../../../ports/files.ts";
import { systemClock, systemFiles } from "../../../ports/node/index.ts";
import { logResponse } from "./pod-logs.ts";

const pod: Pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "n", uid: "u" },
  spec: { containers: [{ name: "c", image: "i" }] },
};

/** A log in a folder of its own; `largest`: the most bytes that one read of a file has given. */
async function harness(contents: string) {
  const folder = await mkdtemp(join(tmpdir(), "mco-pod-logs-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "c.log");
  await writeFile(file, contents);
  const read = { largest: 0 };
  const counted = <T extends { readonly length: number } | undefined>(value: T): T => {
    read.largest = Math.max(read.largest, value?.length ?? 0);
    return value;
  };
  const files: Files = {
    ...systemFiles,
    read: async (path) => counted(await systemFiles.read(path)),
    readText: async (path) => counted(await systemFiles.readText(path)),
    readFrom: async (...given) => counted(await systemFiles.readFrom(...given)),
  };
  const pods = new Map([["n/p", pod]]);
  const options = { files, clock: systemClock, podOf: (key: string) => pods.get(key), logFile: () => file };
  const stop = new AbortController();
  onTestFinished(() => stop.abort(new Error("the test is over")));
  const ask = (query: string) =>
    logResponse({ method: "GET", target: `/containerLogs/n/p/c${query}`, headers: {} }, options, stop.signal);
  async function* chunks(query: string): AsyncGenerator<Buffer> {
    const { body } = await ask(query);
    if (typeof body === "string" || body instanceof Uint8Array) yield Buffer.from(body);
    else for await (const chunk of body) yield Buffer.from(chunk);
  }
  async function textOf(query: string): Promise<string> {
    const parts: Buffer[] = [];
    for await (const chunk of chunks(query)) parts.push(chunk);
    return Buffer.concat(parts).toString();
  }
  return { folder, file, read, pods, ask, chunks, textOf };
}

describe("logs of a host's pods", () => {
  test.for<[query: string, text: string]>([
    ["", "one\ntwo\n\nfour"],
    ["?tailLines=0", ""],
    ["?tailLines=1", "four"],
    ["?tailLines=2", "\nfour"],
    ["?tailLines=9", "one\ntwo\n\nfour"],
    ["?limitBytes=5", "one\nt"],
    ["?tailLines=3&limitBytes=3", "two"],
  ])("%s gives that part of a log [pod-logs-1]", async ([query, text]) => {
    const { textOf } = await harness("one\ntwo\n\nfour");
    expect(await textOf(query)).toBe(text);
  });

  test("the last lines of a log are those before its last line feed, over the borders of what is read at once [pod-logs-2]", async () => {
    const line = `${"x".repeat(99_999)}\n`;
    const { textOf } = await harness(line.repeat(30));
    for (const lines of [1, 2, 3, 10, 29]) expect((await textOf(`?tailLines=${lines}`)).length).toBe(lines * 100_000);
  });

  test("a number that is none is refused [pod-logs-3]", async () => {
    const { ask } = await harness("");
    for (const query of ["?tailLines=-1", "?limitBytes=x", "?tailLines=1e9"])
      expect((await ask(query)).status).toBe(400);
  });

  test("a log of gigabytes is sent and followed without being in memory [pod-logs-4]", async () => {
    const { file, read, pods, chunks, textOf } = await harness("");
    await truncate(file, 3 * 1024 ** 3);
    await appendFile(file, "\nend\n");
    expect(await textOf("?tailLines=1&follow=false")).toBe("end\n");
    expect((await textOf("?limitBytes=2000000")).length).toBe(2_000_000);
    const followed = chunks("?follow=true&tailLines=1");
    expect(String((await followed.next()).value)).toBe("end\n");
    await appendFile(file, "more\n");
    expect(String((await followed.next()).value)).toBe("more\n");
    pods.clear();
    expect((await followed.next()).done).toBe(true);
    expect(read.largest).toBeLessThanOrEqual(1024 * 1024);
  });

  test("neither a link nor a pipe in the place of a log is read, nor waited for [pod-logs-5]", async () => {
    const { folder, file, textOf } = await harness("");
    await writeFile(join(folder, "secret"), "secret");
    await rm(file);
    await symlink(join(folder, "secret"), file);
    expect(await textOf("")).toBe("");
    await rm(file);
    execFileSync("mkfifo", [file]);
    expect(await textOf("?tailLines=3")).toBe("");
  });

  test("a followed log ends with its container, and has its last line [pod-logs-6]", async () => {
    const { file, pods, chunks } = await harness("one\n");
    const followed = chunks("?follow=true");
    expect(String((await followed.next()).value)).toBe("one\n");
    await appendFile(file, "two\n");
    const ended = {
      exitCode: 0,
      finishedAt: "2026-01-01T00:00:00Z",
      reason: "Completed",
      startedAt: "2026-01-01T00:00:00Z",
    };
    const status = { name: "c", image: "i", imageID: "", ready: false, restartCount: 0, state: { terminated: ended } };
    pods.set("n/p", { ...pod, status: { containerStatuses: [status] } });
    expect(String((await followed.next()).value)).toBe("two\n");
    expect((await followed.next()).done).toBe(true);
  });
});
