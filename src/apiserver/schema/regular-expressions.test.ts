import { expect, test } from "vitest";
import { compileExpression } from "./regular-expressions.ts";

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
