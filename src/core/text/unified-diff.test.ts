import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hunkHeader, hunksBetween, linesOf } from "./unified-diff.ts";

const printed = (before: string, after: string) => {
  const [old, next] = [linesOf(before), linesOf(after)];
  return hunksBetween(old, next).flatMap((hunk) => [
    hunkHeader(hunk),
    ...hunk.lines.map(({ sign, index }) => `${sign}${(sign === "+" ? next : old)[index] ?? ""}`),
  ]);
};

describe("hunksBetween", () => {
  test.for([
    { title: "equal texts have none", before: "a\nb\n", after: "a\nb\n", lines: [] },
    { title: "a new text", before: "", after: "a\nb\n", lines: ["@@ -0,0 +1,2 @@", "+a", "+b"] },
    { title: "a text that goes", before: "a\n", after: "", lines: ["@@ -1 +0,0 @@", "-a"] },
    {
      title: "a changed line has its neighbours",
      before: "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
      after: "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
      lines: ["@@ -2,7 +2,7 @@", " 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"],
    },
    {
      title: "far changes are apart",
      before: "a\n1\n2\n3\n4\n5\n6\n7\nb\n",
      after: "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
      lines: ["@@ -1,4 +1,4 @@", "-a", "+A", " 1", " 2", " 3", "@@ -6,4 +6,4 @@", " 5", " 6", " 7", "-b", "+B"],
    },
    {
      title: "near changes are together",
      before: "a\n1\n2\nb\n",
      after: "A\n1\n2\nB\n",
      lines: ["@@ -1,4 +1,4 @@", "-a", "+A", " 1", " 2", "-b", "+B"],
    },
  ])("$title", ({ before, after, lines }) => {
    expect(printed(before, after)).toEqual(lines);
  });

  test("the old text with its hunks applied is the new text", () => {
    const text = fc.array(fc.constantFrom("a", "b", "c", "d", ""), { maxLength: 60 });
    fc.assert(
      fc.property(text, text, (before, after) => {
        const result: string[] = [];
        let at = 0;
        for (const { oldStart, oldLines, lines } of hunksBetween(before, after)) {
          const start = oldLines === 0 ? oldStart : oldStart - 1;
          result.push(...before.slice(at, start));
          for (const { sign, index } of lines)
            if (sign !== "-") result.push((sign === "+" ? after : before)[index] ?? "");
          at = start + oldLines;
        }
        expect([...result, ...before.slice(at)]).toEqual(after);
      }),
    );
  });

  test("two long texts without a common line take bounded time", () => {
    const lines = (word: string) => Array.from({ length: 50_000 }, (_, i) => `${word}${i}`);
    expect(hunksBetween(lines("a"), lines("b"))).toHaveLength(1);
  });
});
