import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type BookKind, bookSections, reportReasons } from "../../src/api/books/report-table.ts";
import { placeOfReason } from "../../src/api/books/short-lines.ts";

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

/** A section is written, too, where a writer gives a reason that is in no other section of the book. */
const hasOwnReason = (book: string, reasons: readonly string[]) =>
  reasons.some((reason) => placeOfReason(book as BookKind, reason) !== undefined && isNamedIn(program, reason));
const sectionsOfBooks = Object.entries(bookSections).flatMap(([book, chapters]) =>
  Object.entries<Readonly<Record<string, readonly string[]>>>(chapters).flatMap(([chapter, sections]) =>
    Object.entries(sections).map(([section, reasons]) => ({
      book,
      chapter,
      section: section.replace("/*", ""),
      reasons,
    })),
  ),
);

describe("books list what programs write, and nothing else", () => {
  test("every chapter and every section is named by a writer [guards-written-sections-1]", () => {
    const unwritten = sectionsOfBooks.filter(
      ({ book, chapter, section, reasons }) =>
        !(isNamedIn(program, chapter) && isNamedIn(program, section)) && !hasOwnReason(book, reasons),
    );
    expect(unwritten).toEqual([]);
  });

  test("every section is named where its chapter is, and not only elsewhere [guards-written-sections-4]", () => {
    const apart = sectionsOfBooks.filter(
      ({ book, chapter, section, reasons }) =>
        !hasOwnReason(book, reasons) && !files.some((file) => isNamedIn(file, chapter) && isNamedIn(file, section)),
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
    expect(hasOwnReason("node", ["Interrupted", "UpdateFailed", "NobodyReportsThis"])).toBe(false);
    expect(hasOwnReason("node", ["Interrupted", "Settling"])).toBe(true);
  });
});
