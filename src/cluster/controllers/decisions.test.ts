import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { intOrPercent } from "./int-or-percent.ts";
import { mergeDifference, sameJson } from "./merge-difference.ts";
import { rollLimits, rollSizes, sum } from "./roll-deployment.ts";
import { templateHash } from "./template-hash.ts";

type Json = { [field: string]: Json } | Json[] | string | number | boolean;

/** RFC 7386. */
function applied(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> =
    typeof target === "object" && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = applied(result[key], value);
  }
  return result;
}

const anyJson = fc.letrec<{ value: Json; object: { [field: string]: Json } }>((tie) => ({
  object: fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value"), { maxKeys: 3, noNullPrototype: true }),
  value: fc.oneof(
    { maxDepth: 3 },
    fc.boolean(),
    fc.nat(3),
    fc.constantFrom("x", "y"),
    fc.array(tie("value"), { maxLength: 2 }),
    tie("object"),
  ),
})).object;

describe("merge differences", () => {
  test("the difference turns the first into the second, and is empty for equal values", () => {
    fc.assert(
      fc.property(anyJson, anyJson, (before, after) => {
        const difference = mergeDifference(before, after);
        if (difference === undefined) expect(before).toEqual(after);
        else expect(applied(before, difference)).toEqual(after);
        expect(sameJson(before, structuredClone(before))).toBe(true);
      }),
    );
  });

  test("present and absent values differ", () => {
    expect([sameJson(["a"], undefined), sameJson(undefined, {}), sameJson(undefined, undefined)]).toEqual([
      false,
      false,
      true,
    ]);
    expect([sameJson({ a: null }, {}), sameJson({ a: null }, { a: 1 }), sameJson({ a: 1 }, { a: null })]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

test.for([
  { value: "25%", total: 4, round: "up", is: 1 },
  { value: "25%", total: 3, round: "up", is: 1 },
  { value: "25%", total: 3, round: "down", is: 0 },
  { value: 2, total: 3, round: "down", is: 2 },
  { value: undefined, total: 3, round: "up", is: 7 },
] as const)("$value of $total, rounded $round, is $is", ({ value, total, round, is }) => {
  expect(intOrPercent(value, total, round, 7)).toBe(is);
});

test("equal templates have equal hashes, however they are written", () => {
  expect(templateHash({ a: 1, b: { c: [1, 2], d: undefined }, metadata: { creationTimestamp: null } })).toBe(
    templateHash({ metadata: {}, b: { c: [1, 2] }, a: 1 }),
  );
  expect(templateHash({ a: 1 })).not.toBe(templateHash({ a: 2 }));
  expect(templateHash({ a: 1 }, 1)).not.toBe(templateHash({ a: 1 }));
});

describe("rolling a Deployment", () => {
  const anySize = fc.nat(6).chain((wanted) => fc.nat(wanted).map((available) => ({ wanted, available })));
  const anyLimit = fc.oneof(
    fc.nat(4),
    fc.nat(100).map((percent) => `${percent}%`),
  );

  test("never exceeds the surge nor falls below the required availability", () => {
    fc.assert(
      fc.property(
        anySize,
        fc.array(anySize, { maxLength: 3 }),
        fc.nat(6),
        anyLimit,
        anyLimit,
        (current, old, desired, maxSurge, maxUnavailable) => {
          const limits = rollLimits(desired, { maxSurge, maxUnavailable });
          const next = rollSizes(current, old, limits);
          const before = current.wanted + sum(old.map(({ wanted }) => wanted));
          const after = next.current + sum(next.old);
          expect(after).toBeLessThanOrEqual(Math.max(before, desired + limits.maxSurge));
          // Whichever pods a set gives up, unavailable ones are given up first.
          const available = (size: { wanted: number; available: number }, to: number) => Math.min(size.available, to);
          const left =
            available(current, next.current) + sum(old.map((size, index) => available(size, next.old[index] ?? 0)));
          const had = current.available + sum(old.map((size) => size.available));
          if (current.wanted <= desired)
            expect(left).toBeGreaterThanOrEqual(Math.min(had, desired - limits.maxUnavailable));
          expect([next.current, ...next.old].every((size) => size >= 0)).toBe(true);
        },
      ),
    );
  });

  test("completes when every pod becomes available", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(6), { maxLength: 3 }),
        fc.nat(6),
        anyLimit,
        anyLimit,
        (sizes, desired, maxSurge, maxUnavailable) => {
          let current = 0;
          let old: readonly number[] = sizes;
          const limits = rollLimits(desired, { maxSurge, maxUnavailable });
          for (let step = 0; step < 100; step += 1)
            ({ current, old } = rollSizes(
              { wanted: current, available: current },
              old.map((wanted) => ({ wanted, available: wanted })),
              limits,
            ));
          expect({ current, old: sum(old) }).toEqual({ current: desired, old: 0 });
        },
      ),
    );
  });
});
