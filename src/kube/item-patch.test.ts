import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonPatch, mergePatch } from "../standin/apiserver/schema/merge/patches.ts";
import { hasPatch, itemPatch } from "./item-patch.ts";

const object = {
  metadata: { name: "a", resourceVersion: "7" },
  status: {
    observedGeneration: 1,
    conditions: [
      { type: "A", status: "True" },
      { type: "B", status: "False" },
    ],
    configVersion: { desired: "x", current: "w" },
  },
};

describe("a patch by item", () => {
  test("names the version that was read, and of a list only the items that say something else", () => {
    expect(
      itemPatch(object, {
        status: {
          observedGeneration: 1,
          conditions: [
            { type: "A", status: "True" },
            { type: "B", status: "True" },
          ],
          configVersion: { current: "x" },
        },
      }),
    ).toEqual([
      { op: "replace", path: "/metadata/resourceVersion", value: "7" },
      { op: "replace", path: "/status/conditions/1", value: { type: "B", status: "True" } },
      { op: "replace", path: "/status/configVersion/current", value: "x" },
    ]);
  });

  test("sends a list of another length, and what was not there, as a whole", () => {
    expect(itemPatch(object, { status: { conditions: [{ type: "A", status: "True" }], "a/b~c": 1 } }).slice(1)).toEqual(
      [
        { op: "replace", path: "/status/conditions", value: [{ type: "A", status: "True" }] },
        { op: "add", path: "/status/a~1b~0c", value: 1 },
      ],
    );
    expect(itemPatch({ metadata: { resourceVersion: "1" } }, { status: { conditions: [] } }).slice(1)).toEqual([
      { op: "add", path: "/status", value: { conditions: [] } },
    ]);
  });

  test("gives what was asked for, and leaves the rest", () => {
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 3 },
        fc.integer(),
        fc.string(),
        fc.array(tie("any"), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom("a", "b", "c/d", "e~f"), tie("any"), { maxKeys: 3 }),
      ),
    })).any;
    const fields = fc.dictionary(fc.constantFrom("status", "spec", "x"), value, { maxKeys: 3 });
    fc.assert(
      fc.property(fields, fields, (before, changed) => {
        const from = { metadata: { resourceVersion: "1" }, ...before };
        const merged = (a: unknown, b: unknown): unknown =>
          isFields(a) && isFields(b)
            ? Object.fromEntries(
                [...new Set([...Object.keys(a), ...Object.keys(b)])].map((key) => [
                  key,
                  key in b ? merged(a[key], b[key]) : a[key],
                ]),
              )
            : b === undefined
              ? a
              : b;
        expect(jsonPatch(from as never, itemPatch(from, changed) as never)).toEqual({
          verdict: "patched",
          object: merged(from, changed),
        });
      }),
      { numRuns: 300 },
    );
  });
});

describe("a version has what a merge patch writes", () => {
  const labels = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2"), { maxKeys: 3 });
  const patches = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2", null), { maxKeys: 3 });

  test("exactly where the patch changes nothing of it any more [kube-item-patch-1]", () => {
    fc.assert(
      fc.property(labels, patches, (before, written) => {
        const object = { metadata: { labels: before } };
        const patch = { metadata: { labels: written } };
        const after = mergePatch(object, patch);
        if (after.verdict !== "patched") throw new Error("it is refused");
        expect(hasPatch(after.object, patch)).toBe(true);
        expect(hasPatch(object, patch)).toBe(JSON.stringify(sorted(after.object)) === JSON.stringify(sorted(object)));
      }),
    );
  });

  test("also where that is an empty list, which Kubernetes does not keep [kube-item-patch-2]", () => {
    expect(hasPatch({ spec: {} }, { spec: { taints: [] } })).toBe(true);
    expect(hasPatch({ spec: { taints: [{ key: "a" }] } }, { spec: { taints: [] } })).toBe(false);
  });
});

/** A value whose objects have their keys in order. */
const sorted = (value: unknown): unknown =>
  isFields(value)
    ? Object.fromEntries(
        Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, field]) => [key, sorted(field)]),
      )
    : value;

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
