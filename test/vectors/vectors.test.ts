import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type ReferenceAnswer, type ReferenceCase, answerCase, comparable } from "./answer-case.ts";

const linesOf = <T>(name: string): readonly T[] =>
  gunzipSync(readFileSync(new URL(name, import.meta.url)))
    .toString("utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as T);

const cases = linesOf<ReferenceCase>("cases.jsonl.gz");
const expected = linesOf<ReferenceAnswer>("expected.jsonl.gz");

describe("the answers of the reference", () => {
  test("there are 900 cases, each with its answer", () => {
    expect(cases.length).toBe(900);
    expect(cases.map(({ id }) => id)).toEqual(expected.map(({ ID }) => ID));
  });

  test.for(["render", "diff", "convert"] as const)("every case of kind %s is answered as the reference does", (op) => {
    const wrong = cases.flatMap((one, i) => {
      const want = expected[i];
      if (one.op !== op || want === undefined) return [];
      try {
        expect(comparable(answerCase(one))).toEqual(comparable(want));
        return [];
      } catch (error) {
        return [`${one.id}: ${error instanceof Error ? error.message.slice(0, 2000) : ""}`];
      }
    });
    expect(wrong).toEqual([]);
  });
});
