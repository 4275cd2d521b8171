import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type MarkdownComment, markdownComment } from "./markdown.ts";

const comment = (given: Partial<MarkdownComment>) =>
  markdownComment({ title: "This change", columns: ["a", "b"], rows: [], language: "text", parts: [], ...given });

describe("a comment in Markdown", () => {
  test("has a table and parts to unfold [cli-markdown-1]", () => {
    expect(
      comment({
        rows: [[{ code: "x" }, "3"]],
        language: "diff",
        parts: [{ title: "pool a", lines: ["-old", "+new"] }],
      }),
    ).toBe(`### This change

| a | b |
| --- | --- |
| \`x\` | 3 |

<details><summary><code>pool a</code></summary>

\`\`\`diff
-old
+new
\`\`\`

</details>
`);
  });

  test.for([
    ["a | b", "`a \\| b`"],
    ["`", "`` ` ``"],
    ["@org/team <b>", "`@org/team <b>`"],
    ["a\nb", "`a\\u000ab`"],
    ["   ", ""],
    ["x".repeat(300), `\`${"x".repeat(199)}…\``],
  ] as const)("a text of a manifest is code: %j [cli-markdown-2]", ([code, cell]) => {
    expect(comment({ rows: [[{ code }, ""]] })).toContain(`\n| ${cell} |  |\n`);
  });

  test("no line ends the block that it is in, and no title its element [cli-markdown-3]", () => {
    const line = fc.oneof(fc.stringMatching(/^[`~ \n</>a]{0,12}$/), fc.constantFrom("```", "</details>", "````` x"));
    fc.assert(
      fc.property(fc.array(line), line, (lines, title) => {
        const text = comment({ parts: [{ title, lines }] });
        const [, heading = ""] = /<summary><code>([^]*?)<\/code><\/summary>/.exec(text) ?? [];
        expect(heading).not.toMatch(/[<>\n]/);
        const [fence = ""] = /^`{3,}(?=text$)/m.exec(text) ?? [];
        const after = text.slice(text.indexOf(`${fence}text\n`) + fence.length + "text\n".length).split("\n");
        // The first line of nothing but a fence as long as the first ends a block (spec.commonmark.org/0.31.2, fenced code).
        const end = after.findIndex((one) => /^ {0,3}(`+)\s*$/.exec(one)?.[1]?.length === fence.length);
        expect(end).toBe(lines.length);
        expect(after.slice(0, end).some((one) => /^ {0,3}(`+)/.exec(one)?.[1]?.startsWith(fence) === true)).toBe(false);
      }),
    );
  });

  test("holds no more than a comment may, and says how much is missing [cli-markdown-4]", () => {
    const lines = Array.from({ length: 3000 }, (_, i) => `+ line ${i} ${"x".repeat(20)}`);
    const parts = Array.from({ length: 500 }, (_, i) => ({ title: `pool ${i}`, lines }));
    const text = comment({ rows: parts.map(({ title }) => [{ code: title }, "1"]), parts });
    expect(text.length).toBeLessThan(65_536);
    expect(text).toContain("\nand 400 more\n");
    expect(text).toMatch(/\nand \d+ more lines: the command prints them all\.\n/);
    expect(text).toMatch(/\nand \d+ more: the command prints them all\.\n$/);
  });
});
