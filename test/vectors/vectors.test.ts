import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { convertIgnition } from "../../src/ignition/convert-ignition.ts";
import { type ReferenceAnswer, type ReferenceCase, answerCase, comparable } from "./answer-case.ts";
import { type ConfigAnswer, type ConfigCase, answerConfigCase, comparableConfig } from "./answer-config-case.ts";

const linesOf = <T>(name: string): readonly T[] =>
  gunzipSync(readFileSync(new URL(name, import.meta.url)))
    .toString("utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as T);

const cases = linesOf<ReferenceCase>("cases.jsonl.gz");
const expected = linesOf<ReferenceAnswer>("expected.jsonl.gz");

/**
 * Conversions that lose something in the reference and that this suite refuses: the reference silently omits files
 * without contents from spec 2.2. By case, with the named fields.
 */
const refusedHere: Readonly<Record<string, readonly string[]>> = {
  "202-125": ["storage.files[3]"],
  "202-257": ["storage.files[1]", "storage.files[4]"],
  "202-485": ["storage.files[0]", "storage.files[1]", "storage.files[2]"],
  "202-611": ["storage.files[1]"],
  "202-665": ["storage.files[1]"],
  "202-833": ["storage.files[1]"],
};

describe("the answers of the reference", () => {
  test("the file holds 900 cases, each with its answer [vectors-2]", () => {
    expect(cases.length).toBe(900);
    expect(cases.map(({ id }) => id)).toEqual(expected.map(({ ID }) => ID));
  });

  test.for(Object.entries(refusedHere))(
    "fields that the reference drops in case %s are refused, one by one [vectors-3]",
    ([id, paths]) => {
      const one = cases.find((candidate) => candidate.id === id);
      expect(expected.find(({ ID }) => ID === id)?.Error).toBeUndefined();
      const answer = one?.op === "convert" ? convertIgnition(one.ign, one.target) : undefined;
      expect(
        answer?.verdict === "refused"
          ? answer.problems.map(({ path, lowestVersion }) => ({ path, lowestVersion }))
          : answer,
      ).toEqual(paths.map((path) => ({ path, lowestVersion: "3.1.0" })));
    },
  );

  test.for(["render", "diff", "convert"] as const)(
    "every case of kind %s is answered as the reference does [vectors-1]",
    (op) => {
      const wrong = cases.flatMap((one, i) => {
        const want = expected[i];
        if (one.op !== op || want === undefined || refusedHere[one.id] !== undefined) return [];
        try {
          expect(comparable(answerCase(one))).toEqual(comparable(want));
          return [];
        } catch (error) {
          return [`${one.id}: ${error instanceof Error ? error.message.slice(0, 2000) : ""}`];
        }
      });
      expect(wrong).toEqual([]);
    },
  );
});

describe("the answers of the reference, and of kubelet 1.34, about configurations", () => {
  const configCases = linesOf<ConfigCase>("config-cases.jsonl.gz");
  const wanted = linesOf<ConfigAnswer>("config-expected.jsonl.gz");

  test("the file holds 600 cases, each with its answer [vectors-4]", () => {
    expect(configCases.length).toBe(600);
    expect(configCases.map(({ id }) => id)).toEqual(wanted.map(({ ID }) => ID));
  });

  test.for(["kubelet", "crio", "registries", "validate-kubelet"] as const)(
    "every case of kind %s is answered as they do [vectors-5]",
    (op) => {
      const wrong = configCases.flatMap((one, i) => {
        const want = wanted[i];
        if (one.op !== op || want === undefined) return [];
        const isFree =
          want.Free === true || op === "registries" || op === "validate-kubelet" || want.Suffix === undefined;
        try {
          expect(comparableConfig(answerConfigCase(one), isFree)).toEqual(comparableConfig(want, isFree));
          return [];
        } catch (error) {
          return [`${one.id}: ${error instanceof Error ? error.message.slice(0, 2000) : ""}`];
        }
      });
      expect(wrong).toEqual([]);
    },
  );
});
