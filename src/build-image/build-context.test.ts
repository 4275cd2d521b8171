import { describe, expect, test } from "vitest";
import { type BuildFile, buildFiles, buildPaths, printBuildFile } from "../core/build/image-build.ts";
import type { Files } from "../ports/files.ts";
import { systemFiles } from "../ports/node/index.ts";
import { readBuildContext } from "./build-context.ts";

const request: BuildFile = {
  v: 1,
  id: "worker-1-1",
  attempt: 1,
  mode: "os-only",
  architecture: "amd64",
  base: `r.example.com/os@sha256:${"b".repeat(64)}`,
  pieces: { configLayer: 0, buildVisible: 0 },
  files: [],
  mounts: [],
  certificates: {},
  target: { repository: "r.example.com/os", tag: "worker-1" },
  epoch: 7,
  noCache: false,
  pushSeconds: 60,
  labels: {},
};

/** What the builder's volumes hold for a build with one file in its context. */
function filesWith(path: string): Files {
  const held = new Map([
    [
      `${buildPaths.context}/${buildFiles.request}`,
      printBuildFile({ ...request, files: [{ path, key: "context-0", mode: 0o644 }] }),
    ],
    [`${buildPaths.context}/context-0`, "text"],
  ]);
  return {
    ...systemFiles,
    read: async (name) => Promise.resolve(held.has(name) ? Buffer.from(held.get(name) ?? "") : undefined),
    readText: async (name) => Promise.resolve(held.get(name)),
  };
}

describe("a file of a build's context", () => {
  test.for(["motd", "etc/motd", "...", "a..b/.c", "a b"])("lies inside of it: %j", async (path) => {
    const { files } = await readBuildContext(filesWith(path), (name) => name);
    expect(files.map((file) => file.path)).toEqual([path]);
  });

  test.for(["", ".", "..", "/etc/x", "a//b", "a/", "../x", "a/../../x", "a/./b", "a\n/../../x", "a/\n/..", "\n/../x"])(
    "lies nowhere else: %j [build-context-1]",
    async (path) => {
      await expect(readBuildContext(filesWith(path), (name) => name)).rejects.toMatchObject({
        code: "MCO_BUILD_CONTEXT_INVALID",
      });
    },
  );
});
