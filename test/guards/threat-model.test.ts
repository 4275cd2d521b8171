import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source-files.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");

const model = read("docs/threat-model.md");

/** The tests that a text names, those between the two ends of a range included. */
function namedTests(text: string): readonly string[] {
  const single = [...text.matchAll(/[[`]([a-z]+(?:-[a-z0-9]+)*-\d+)[\]`]/g)].map(([, id = ""]) => id);
  const between = [...text.matchAll(/\[([a-z0-9-]+-)(\d+)\]\s+to\s+\[\1(\d+)\]/g)].flatMap(([, name, from, to]) =>
    Array.from({ length: Number(to) - Number(from) + 1 }, (_, index) => `${name}${Number(from) + index}`),
  );
  return [...new Set([...single, ...between])];
}

test("every test that the threat model names exists [guards-threat-model-1]", () => {
  const named = namedTests(model);
  const titles = globSync("{src,test}/**/*.test.ts", { cwd: root }).map(read).join("\n");
  expect(named.length).toBeGreaterThan(400);
  expect(named.filter((id) => !titles.includes(`[${id}]`))).toEqual([]);
  expect(namedTests("[a-b-1] to\n  [a-b-3], `c-4`")).toEqual(["a-b-1", "a-b-3", "c-4", "a-b-2"]);
});

test("every section of the threat model with a promise names a test [guards-threat-model-2]", () => {
  const sections = model.split(/^## /m).filter((section) => /\*Promise:?\*/.test(section));
  expect(sections.length).toBeGreaterThan(30);
  expect(
    sections.filter((section) => namedTests(section).length === 0).map((section) => section.split("\n")[0]),
  ).toEqual([]);
});
