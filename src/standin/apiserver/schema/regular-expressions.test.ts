import { expect, test } from "vitest";
import { allMatches, compiledSize, compileExpression } from "./regular-expressions.ts";

test.for<[string, readonly string[], readonly string[]]>([
  ["^[a-z]+$", ["abc"], ["ABC"]],
  ["b", ["abc"], ["x"]],
  ["(?i)^abc$", ["ABC"], ["abd"]],
  ["^(?i)(foo|bar)/[^][ ]+$", ["FOO/x"], ["foo/]", "foo/["]],
  ["^[]a]+$", ["]a"], ["b"]],
  ["^[[:alpha:]_]+$", ["a_B"], ["1"]],
  ["\\Aab\\z", ["ab"], ["abc"]],
  ["^(?P<name>x)$", ["x"], ["y"]],
  ["^[a-z0-9\\-\\_\\:]+$", ["a-_:"], ["A"]],
  ["^\\Qa.b\\E$", ["a.b"], ["axb"]],
  ["^\\pL+$", ["äb"], ["1"]],
  ["^{x}$", ["{x}"], ["x"]],
  ["^a(b(?i)c)d$", ["abCd"], ["aBcd", "abcD"]],
])("%s", ([pattern, good, bad]) => {
  const compiled = compileExpression(pattern);
  expect(compiled.verdict).toBe("compiled");
  if (compiled.verdict !== "compiled") return;
  expect(good.filter((text) => !compiled.test(text))).toEqual([]);
  expect(bad.filter(compiled.test)).toEqual([]);
});

test.for(["(?=a)", "(?<!a)b", "(a)\\1", "("])("%s is refused", (pattern) => {
  expect(compileExpression(pattern).verdict).toBe("refused");
});

test("an expression that backtracking would take for ever costs time that is linear in the text", () => {
  const compiled = compileExpression("^(a+)+$");
  if (compiled.verdict !== "compiled") throw new Error(compiled.message);
  expect(compiled.test("a".repeat(20_000))).toBe(true);
  // With backtracking this is 2^20000 steps.
  expect(compiled.test(`${"a".repeat(20_000)}!`)).toBe(false);
});

test("all matches are found in their order, up to a limit", () => {
  const compiled = compileExpression("[0-9]+");
  if (compiled.verdict !== "compiled") throw new Error(compiled.message);
  expect(allMatches(compiled.expression, "a1b22c333", 10)).toEqual(["1", "22", "333"]);
  expect(allMatches(compiled.expression, "a1b22c333", 2)).toEqual(["1", "22"]);
  expect(allMatches(compiled.expression, "abc", 10)).toEqual([]);
});

test.for([
  ["abc", 3],
  ["x{3}", 3],
  ["x{2,5}y", 6],
  ["(ab){10}", 40],
  ["((a{10}){10}){2}", 244],
  ["[a-z{}]{4}", 4],
  ["[]a]{2}\\{3\\p{Greek}{2}", 6],
  ["(", 0],
] as const)("%s becomes about %i instructions [apiserver-expressions-9]", ([pattern, size]) => {
  expect(compiledSize(pattern)).toBe(size);
});
