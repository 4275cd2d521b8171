import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bookSections, reportReasons } from "../../src/api/books/report-table.ts";

const root = join(import.meta.dirname, "../..");
/** Readers of books name sections, too: their room's judge of joins is the only writer in it. */
const isWriter = (file: string) =>
  !file.endsWith(".test.ts") &&
  !file.startsWith("src/api/books/") &&
  (!file.startsWith("src/core/books/") || file === "src/core/books/judge-joins.ts");
const files = globSync("src/**/*.ts", { cwd: root })
  .filter(isWriter)
  .map((file) => readFileSync(join(root, file), "utf8"));
const program = files.join("\n");
const isNamedIn = (text: string, word: string) =>
  text.includes(`"${word}"`) || text.includes(`"${word}/`) || text.includes(`\`${word}/`);

describe("books list what programs write, and nothing else", () => {
  test("every chapter and every section is named by a writer [guards-written-sections-1]", () => {
    const unwritten = Object.entries(bookSections).flatMap(([book, chapters]) =>
      Object.entries(chapters).flatMap(([chapter, sections]) => [
        ...(isNamedIn(program, chapter) ? [] : [`${book} ${chapter}`]),
        ...Object.keys(sections).flatMap((section) =>
          isNamedIn(program, section.replace("/*", "")) ? [] : [`${book} ${chapter}: ${section}`],
        ),
      ]),
    );
    expect(unwritten).toEqual([]);
  });

  // The daemon's updates have a pen of their own, which knows the chapter.
  const ofPen = new Set(["node Update"]);
  test("every section is named where its chapter is, and not only elsewhere [guards-written-sections-4]", () => {
    const apart = Object.entries(bookSections).flatMap(([book, chapters]) =>
      Object.entries(chapters).flatMap(([chapter, sections]) =>
        Object.keys(sections)
          .filter(
            (section) => !files.some((file) => isNamedIn(file, chapter) && isNamedIn(file, section.replace("/*", ""))),
          )
          .filter(() => !ofPen.has(`${book} ${chapter}`))
          .map((section) => `${book} ${chapter}: ${section}`),
      ),
    );
    expect(apart).toEqual([]);
  });

  test("every reason is named by a writer or a rule of health [guards-written-sections-2]", () => {
    expect(Object.keys(reportReasons).filter((reason) => !isNamedIn(program, reason))).toEqual([]);
  });

  test("the guard finds a section that nobody writes [guards-written-sections-3]", () => {
    expect(isNamedIn('report({ chapter: "Update", path: `Node/${name}` })', "Update")).toBe(true);
    expect(isNamedIn("path: `Node/${name}`", "Node")).toBe(true);
    expect(isNamedIn('report({ chapter: "Updated" })', "Update")).toBe(false);
  });
});
