import { describe, expect, test } from "vitest";
import { memoryHost } from "../../test/support/hosts/memory-host.ts";
import { hostPaths } from "../api/names.ts";
import { systemRandom } from "../ports/node/index.ts";
import { silentLogger } from "../ports/logger.ts";
import { closeBuildCaches } from "./close-build-caches.ts";

const { signal } = new AbortController();
const machine = () =>
  memoryHost({
    images: { "os@sha256:1": { etc: {}, usr: {} } },
    image: "os@sha256:1",
    random: systemRandom,
    onReboot: () => undefined,
  });

describe("the caches of image builds", () => {
  test("are root's alone, and stay so where a kubelet made their folder first [daemon-build-caches-1]", async () => {
    const host = machine();
    const open = { mode: 0o755, uid: 0, gid: 0 };
    await host.files.makeFolder(`${hostPaths.buildCaches}/cache/worker`, open, signal);
    await closeBuildCaches(host, silentLogger, signal);
    expect(await host.files.read(hostPaths.buildCaches, signal)).toEqual({ kind: "folder", ...open, mode: 0o700 });
    expect(await host.files.read(`${hostPaths.buildCaches}/cache/worker`, signal)).toEqual({ kind: "folder", ...open });
    const fresh = machine();
    await closeBuildCaches(fresh, silentLogger, signal);
    expect(await fresh.files.read(hostPaths.buildCaches, signal)).toMatchObject({ kind: "folder", mode: 0o700 });
  });

  test("do not keep a machine from its updates [daemon-build-caches-2]", async () => {
    const host = machine();
    const told: string[] = [];
    const full = { ...host, files: { ...host.files, makeFolder: () => Promise.reject(new Error("no space left")) } };
    await closeBuildCaches(full, { ...silentLogger, warn: (_, text) => told.push(text ?? "") }, signal);
    expect(told).toEqual(["users of the machine may reach the caches of image builds"]);
  });
});
