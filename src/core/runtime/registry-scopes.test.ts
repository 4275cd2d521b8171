import fc from "fast-check";
import { expect, test } from "vitest";
import { isMirrorSource, isNested, isRepository, outerScopes, scopeProblem } from "./registry-scopes.ts";

test.for([
  ["quay.io", "quay.io", true],
  ["quay.io/a/b", "quay.io/a", true],
  ["quay.io/ab", "quay.io/a", false],
  ["a.b.example:5000/x", "*.example", true],
  ["example/x", "*.example", false],
] as const)("%s is inside %s: %j [runtime-registry-scopes-1]", ([inner, outer, is]) => {
  expect(isNested(inner, outer)).toBe(is);
});

test("a star stands only at the begin of a domain [runtime-registry-scopes-2]", () => {
  expect(["", "*", "*.", "a*.example", "*.example/x", "*.a.*"].map(scopeProblem)).not.toContain(undefined);
  expect(["*.example", "quay.io/a", "h:5000"].map(scopeProblem)).toEqual([undefined, undefined, undefined]);
});

test("a long name that fits almost is refused in little time [runtime-registry-scopes-3]", () => {
  for (const text of [
    `h.example/${"a".repeat(100_000)}!`,
    `${"a-".repeat(50_000)}!`,
    `h.example/${"a_".repeat(50_000)}!`,
  ])
    expect([isRepository(text), isMirrorSource(text)]).toEqual([false, false]);
});

test("the scopes of a list around another one are those that it is nested in [runtime-registry-scopes-4]", () => {
  const scope = fc.stringMatching(/^(?:\*\.)?(?:a|b|ab)(?:\.(?:a|b)){0,2}(?::5)?(?:\/(?:a|b)){0,2}$/);
  fc.assert(
    fc.property(fc.array(scope, { maxLength: 12 }), scope, (list, inner) => {
      const around = [...new Set(list)].filter((outer) => isNested(inner, outer));
      const byLength = around.toSorted((one, other) => other.length - one.length);
      expect(outerScopes(list)(inner)).toEqual(byLength);
    }),
    { numRuns: 2000 },
  );
});

test("a long path is looked for in little time [runtime-registry-scopes-5]", () => {
  const path = `h.example${"/a".repeat(500_000)}`;
  expect(outerScopes(["*.example", "h.example/a", "h.example/b"])(path)).toEqual(["h.example/a", "*.example"]);
});
