import { describe, expect, test } from "vitest";
import { failureClasses } from "./build-failures.ts";
import {
  pieceName,
  printBuildFile,
  printOutcome,
  readBuildFile,
  readOutcome,
  readStepMarker,
  stepMarker,
} from "./image-build.ts";

const file = {
  v: 1,
  id: "worker-1-1",
  attempt: 1,
  mode: "full",
  architecture: "amd64",
  base: `r/os@sha256:${"1".repeat(64)}`,
  pieces: { configLayer: 1, buildVisible: 0 },
  files: [],
  mounts: [],
  certificates: {},
  target: { repository: "r/os", tag: "t" },
  epoch: 0,
  noCache: false,
  pushSeconds: 600,
  labels: {},
} as const;

test("build inputs are read as they were written", () => {
  expect(readBuildFile(printBuildFile(file))).toEqual(file);
});

test.for([
  { text: "{", problem: "it is no JSON" },
  { text: "[]", problem: "it is no object" },
  { text: JSON.stringify({ ...file, v: 2 }), problem: "it has version 2, and this program reads version 1" },
  { text: JSON.stringify({ ...file, base: 1 }), problem: "base is no text" },
  { text: JSON.stringify({ ...file, epoch: "x" }), problem: "epoch is no whole number" },
  { text: JSON.stringify({ ...file, labels: [] }), problem: "labels is no object" },
  { text: JSON.stringify({ ...file, files: {} }), problem: "files is no list" },
])("invalid build inputs are refused with the problem: $problem", ({ text, problem }) => {
  expect(readBuildFile(text)).toEqual({ problem });
});

describe("the last words of a build", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  test("carry the digest, or everything about the failure", () => {
    expect(readOutcome(printOutcome({ digest }))).toEqual({ digest });
    for (const failureClass of Object.keys(failureClasses) as (keyof typeof failureClasses)[]) {
      const failure = { class: failureClass, step: "user:3", exitCode: 7, cause: "it failed", excerpt: "last\nlines" };
      expect(readOutcome(printOutcome({ failure }))).toEqual({ failure });
    }
  });

  test("fit what Kubernetes keeps of them, in whatever script", () => {
    const text = printOutcome({
      failure: {
        class: "UserStepFailed",
        step: "user:1",
        exitCode: 1,
        cause: "ü".repeat(300),
        excerpt: `${'€😀\n"'.repeat(2000)}the end`,
      },
    });
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096);
    expect(readOutcome(text)).toMatchObject({ failure: { excerpt: expect.stringMatching(/the end$/) as string } });
  });

  test.for(["", "no JSON", "[]", '{"rc":0,"digest":"latest"}', '{"rc":1,"step":"push","class":"Unheard"}'])(
    "of another program are none: %s",
    (text) => {
      expect(readOutcome(text)).toBeUndefined();
    },
  );
});

test("a marker of a step is read as it was written, and other lines are none", () => {
  expect(readStepMarker(stepMarker("user:2", "end", 7))).toEqual({ step: "user:2", state: "end", rc: 7 });
  for (const line of ["::mco step=push", "x ::mco step=push state=start rc=0", ""])
    expect(readStepMarker(line)).toBeUndefined();
});

test("pieces of a file sort as they are to be joined", () => {
  expect([0, 9, 10, 100].map((piece) => pieceName("f", piece, 101))).toEqual(["f.000", "f.009", "f.010", "f.100"]);
  expect(pieceName("f", 0, 1)).toBe("f");
});

test("a termination message of a node that is longer than a kubelet's is cut [image-build-1]", () => {
  const long = "x".repeat(300_000);
  const read = readOutcome(JSON.stringify({ step: long, rc: 1, class: "Internal", cause: long, excerpt: long }));
  expect(JSON.stringify(read).length).toBeLessThan(4_096);
});
