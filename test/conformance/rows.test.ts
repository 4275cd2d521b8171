import { describe, expect, test } from "vitest";
import { type Outcomes, documentOf, idOf, idsIn, problemsOf, recorded, together, unproven } from "./conformance.ts";
import { type Row, type Section, weaknesses } from "./define-rows.ts";
import { sections } from "./rows.ts";

const row = (change: Partial<Row>): readonly Section[] => [
  {
    id: "1",
    title: "t",
    rows: [{ id: "1 a", does: "It does.", as: "reference", shown: ["a-1"], ...change }],
  },
];
const known = new Map([
  ["a-1", "a.test.ts"],
  ["a-2", "a.test.ts"],
]);
const passed: Outcomes = { "a-1": "passed", "a-2": "passed" };

describe("rules and their tests", () => {
  test("a rule with an existing test is valid", () => {
    expect(problemsOf(row({}), known)).toEqual([]);
    expect(problemsOf(row({ shown: [], skipped: "it needs a moon" }), known)).toEqual([]);
  });

  test.for<{ title: string; change: Partial<Row>; says: string }>([
    { title: "without a test or a reason", change: { shown: [] }, says: "has no test and no reason" },
    { title: "with an empty reason", change: { shown: [], skipped: " " }, says: "is skipped without a reason" },
    { title: "with a test and a reason", change: { skipped: "it is late" }, says: "is skipped and has a test" },
    { title: "with a missing test", change: { shown: ["a-3"] }, says: "does not exist: a-3" },
    { title: "with an empty text", change: { does: "" }, says: "does not say what happens" },
  ])("a rule $title is found", ({ change, says }) => {
    expect(problemsOf(row(change), known)).toEqual([expect.stringContaining(says)]);
  });

  test("a duplicate rule is found", () => {
    expect(problemsOf([...row({}), ...row({})], known)).toEqual(["row 1 a: is there twice"]);
  });

  test("a test that failed or never ran proves nothing", () => {
    expect(unproven(row({}), passed)).toEqual([]);
    expect(unproven(row({}), { "a-1": "skipped" })).toEqual(["row 1 a: a-1: skipped"]);
    expect(unproven(row({ shown: ["a-1", "a-2"] }), { "a-1": "passed" })).toEqual(["row 1 a: a-2: never run"]);
  });

  test("an id is the text in brackets at the end of a title, in the source and in a report", () => {
    expect(idOf("a machine that joins gets its pool [daemon-join-12]")).toBe("daemon-join-12");
    expect(idOf("a title [with brackets]")).toBeUndefined();
    expect(
      idsIn('test("one [a-1]", () => {}); test.for(rows)("$title [a-2]", f); test(`three ${x} [a-b-3]`, f);'),
    ).toEqual(["a-1", "a-2", "a-b-3"]);
  });

  test.for([
    [undefined, "passed", "passed"],
    ["passed", "skipped", "passed"],
    ["skipped", "passed", "passed"],
    ["passed", "failed", "failed"],
    ["failed", "passed", "failed"],
    [undefined, "skipped", "skipped"],
  ] as const)("%s and %s under one id are together %s", ([before, next, both]) => {
    expect(together(before, next)).toBe(both);
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
    expect(text).toContain("| 1 a | It does. | reference | `a-1` | passed |");
    expect(text).toContain("| 2 a | It \\| does not. |  | *left out: it needs a moon* | left out |");
    expect(text).toContain("| all | 2 | 1 | 0 | 0 | 1 |");
    expect(documentOf(row({}), { "a-1": "failed" })).toContain("| failed |");
    expect(documentOf(row({}), {})).toContain("`a-1` | failed |");
  });

  test("only results of tests that rules name are kept", () => {
    expect(recorded(row({}), passed)).toEqual({ "a-1": "passed" });
  });

  test("every weakness that is listed is removed by a rule with a test", () => {
    const removed = new Set(sections.flatMap(({ rows }) => rows.map(({ as }): string => as)));
    expect(Object.keys(weaknesses).filter((weakness) => !removed.has(`ours (${weakness})`))).toEqual([]);
  });

  test("only few rules are omitted", () => {
    const all = sections.flatMap(({ rows }) => rows);
    expect(all.filter(({ skipped }) => skipped !== undefined).length / all.length).toBeLessThan(0.12);
  });
});
