import { describe, expect, test } from "vitest";
import { type Outcomes, documentOf, isNamed, problemsOf, recorded, unproven } from "./conformance.ts";
import { type Row, type Section, weaknesses } from "./row-kit.ts";
import { sections } from "./rows.ts";

const row = (change: Partial<Row>): readonly Section[] => [
  {
    id: "1",
    title: "t",
    rows: [{ id: "1 a", does: "It does.", as: "reference", shown: [{ file: "a.test.ts", title: "one" }], ...change }],
  },
];
const known = new Map([["a.test.ts", ["one", "two > a", "two > b"]]]);
const passed: Outcomes = { "a.test.ts": { one: "passed", "two > a": "passed", "two > b": "passed" } };

describe("rules and their tests", () => {
  test("a rule with a test that exists, or with all of a group, is in order", () => {
    expect(problemsOf(row({}), known)).toEqual([]);
    expect(problemsOf(row({ shown: [{ file: "a.test.ts", title: "two > *" }] }), known)).toEqual([]);
    expect(problemsOf(row({ shown: [], skipped: "it needs a moon" }), known)).toEqual([]);
  });

  test.for<{ title: string; change: Partial<Row>; says: string }>([
    { title: "without a test or a reason", change: { shown: [] }, says: "has no test and no reason" },
    { title: "with an empty reason", change: { shown: [], skipped: " " }, says: "is skipped without a reason" },
    { title: "with a test and a reason", change: { skipped: "it is late" }, says: "is skipped and has a test" },
    {
      title: "with a wrong title",
      change: { shown: [{ file: "a.test.ts", title: "onee" }] },
      says: "a.test.ts > onee",
    },
    {
      title: "with the title of a group only",
      change: { shown: [{ file: "a.test.ts", title: "two" }] },
      says: "a.test.ts > two",
    },
    {
      title: "with a file that is not there",
      change: { shown: [{ file: "b.test.ts", title: "*" }] },
      says: "b.test.ts > *",
    },
    { title: "that says nothing", change: { does: "" }, says: "does not say what happens" },
  ])("a rule $title is found", ({ change, says }) => {
    expect(problemsOf(row(change), known)).toEqual([expect.stringContaining(says)]);
  });

  test("a rule that is there twice is found", () => {
    expect(problemsOf([...row({}), ...row({})], known)).toEqual(["row 1 a: is there twice"]);
  });

  test("a test that did not pass, or was never run, proves nothing", () => {
    expect(unproven(row({}), known, passed)).toEqual([]);
    expect(unproven(row({}), known, { "a.test.ts": { one: "skipped" } })).toEqual([
      "row 1 a: a.test.ts > one: skipped",
    ]);
    expect(
      unproven(row({ shown: [{ file: "a.test.ts", title: "two > *" }] }), known, {
        "a.test.ts": { "two > a": "passed" },
      }),
    ).toEqual(["row 1 a: a.test.ts > two > b: never run"]);
  });

  test("the document counts, names reasons, and is the same for the same results", () => {
    const text = documentOf(
      [
        ...row({}),
        {
          id: "2",
          title: "u",
          rows: [{ id: "2 a", does: "It | does not.", as: "ours", shown: [], skipped: "it needs a moon" }],
        },
      ],
      passed,
    );
    expect(text).toContain("| 1 a | It does. | reference | `a.test.ts` one | passed |");
    expect(text).toContain("| 2 a | It \\| does not. |  | *left out: it needs a moon* | left out |");
    expect(text).toContain("| all | 2 | 1 | 0 | 0 | 1 |");
    expect(documentOf(row({}), { "a.test.ts": { one: "failed" } })).toContain("| failed |");
    expect(documentOf(row({}), {})).toContain("`a.test.ts` one | failed |");
  });

  test("only what rules name is kept of a run", () => {
    expect(recorded(row({}), passed)).toEqual({ "a.test.ts": { one: "passed" } });
    expect(isNamed(row({}), "a.test.ts", "one")).toBe(true);
    expect(isNamed(row({}), "a.test.ts", "two > a")).toBe(false);
  });

  test("every weakness that is listed is removed by a rule with a test", () => {
    const removed = new Set(sections.flatMap(({ rows }) => rows.map(({ as }): string => as)));
    expect(Object.keys(weaknesses).filter((weakness) => !removed.has(`ours (${weakness})`))).toEqual([]);
  });

  test("few rules are left out", () => {
    const all = sections.flatMap(({ rows }) => rows);
    expect(all.filter(({ skipped }) => skipped !== undefined).length / all.length).toBeLessThan(0.12);
  });
});
