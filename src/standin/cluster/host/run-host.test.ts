import { expect, test } from "vitest";
import type { Files } from "../../../ports/files.ts";
import { silentLogger } from "../../../ports/logger.ts";
import { systemClock, systemRandom } from "../../../ports/node/index.ts";
import type { Processes } from "../../../ports/process.ts";
import { type HostOptions, runHost } from "./run-host.ts";

test("a mount that a killed program left in the folder of its pod is gone before the folders are removed [cluster-run-host-1]", async () => {
  const done: string[] = [];
  const files = {
    stat: async () => undefined,
    readText: async () => "overlay /c/hosts/w/pods/u/root/merged overlay rw 0 0\n",
    remove: async (path: string) => void done.push(`remove ${path}`),
  } as unknown as Files;
  const processes = {
    run: async (command: string, args: readonly string[]) => (
      done.push([command, ...args].join(" ")),
      { code: 0, signal: undefined, stdout: "", stderr: "" }
    ),
  } as unknown as Processes;
  const options = {
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    directory: "/c/hosts/w",
    environment: {},
    files,
    processes,
    serveControl: () => Promise.reject(new Error("it has begun")),
  } as unknown as HostOptions;
  await expect(runHost(options, new AbortController().signal)).rejects.toThrow("it has begun");
  expect(done).toEqual([
    "remove /c/hosts/w/orderly-end",
    "umount -- /c/hosts/w/pods/u/root/merged",
    "remove /c/hosts/w/pods",
  ]);
});
