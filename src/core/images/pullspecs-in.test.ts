import { describe, expect, test } from "vitest";
import { pullspecsIn } from "./pullspecs-in.ts";

const digest = `@sha256:${"0123456789abcdef".repeat(4)}`;

describe("names of images in a text", () => {
  test.for([
    ["", []],
    [digest, []],
    [`quay.io/a/b${digest}`, [`quay.io/a/b${digest}`]],
    [`"x": "(quay.io/a${digest}", 'b${digest}',c${digest}`, [`quay.io/a${digest}`, `b${digest}`, `c${digest}`]],
    [`a${digest}b${digest}`, [`a${digest}`, `b${digest}`]],
    [`a@sha256:0123`, []],
    [`host:5000/a\\nb${digest}`, [`nb${digest}`]],
  ] as const)("in %j are %j [pullspecs-in-1]", ([text, names]) => {
    expect(pullspecsIn(text)).toEqual(names);
  });

  test("are found in one pass [pullspecs-in-2]", () => {
    const began = process.cpuUsage();
    expect(pullspecsIn("a".repeat(1_000_000))).toEqual([]);
    expect(pullspecsIn(`${"a".repeat(1_000_000)}${digest}`)).toHaveLength(1);
    expect(process.cpuUsage(began).user / 1e6).toBeLessThan(2);
  });
});
