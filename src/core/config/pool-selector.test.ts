import fc from "fast-check";
import { expect, test } from "vitest";
import type { LabelSelector } from "../../api/schema/object.ts";
import {
  labelValueProblems,
  qualifiedNameProblems,
} from "../../standin/apiserver/schema/validation/object-validation.ts";
import { poolSelects, selectorProblem } from "./pool-selector.ts";

const infra = "node-role.kubernetes.io/infra";
const many = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ key: `k${i}`, operator: "DoesNotExist" as const }));
const values = (count: number) => Array.from({ length: count }, (_, i) => `w${i}`);
const expressions = (...matchExpressions: object[]) => ({ matchExpressions }) as LabelSelector;

test.for<{ title: string; selector: LabelSelector; field: string; reason: string }>([
  { title: "that is empty", selector: {}, field: "", reason: "is empty" },
  {
    title: "with very many terms",
    selector: { matchExpressions: many(65) },
    field: "",
    reason: "has 65 terms, and at most 64 are compared",
  },
  {
    title: "with very many values",
    selector: expressions({ key: "a", operator: "In", values: values(4097) }),
    field: "",
    reason: "lists 4097 values, and at most 4096 are compared",
  },
  {
    title: "whose key no label can have",
    selector: { matchLabels: { "a b": "" } },
    field: ".matchLabels",
    reason: "has a key that no label can have",
  },
  {
    title: "whose value no label can have",
    selector: { matchLabels: { a: "y; reboot #" } },
    field: ".matchLabels",
    reason: "has a value that no label can have",
  },
  {
    title: "whose list has a value that no label can have",
    selector: expressions({ key: "a", operator: "In", values: ["b", "$(reboot)"] }),
    field: ".matchExpressions[0].values[1]",
    reason: "is no value that a label can have",
  },
  {
    title: "with an unknown operator",
    selector: expressions({ key: "a", operator: "Gt", values: ["1"] }),
    field: ".matchExpressions[0].operator",
    reason: "is no operator",
  },
  {
    title: "that lists no value where one is needed",
    selector: expressions({ key: "a", operator: "NotIn" }),
    field: ".matchExpressions[0].values",
    reason: "is empty, and NotIn takes one value at least",
  },
  {
    title: "that lists values where none is taken",
    selector: expressions({ key: "a", operator: "Exists", values: ["b"] }),
    field: ".matchExpressions[0].values",
    reason: "is given, and Exists takes none",
  },
])("a pool takes nothing by a selector $title [config-pool-selector-1]", ({ selector, field, reason }) => {
  expect(selectorProblem(selector)).toMatchObject({ field, reason });
  expect(poolSelects(selector, { a: "c" })).toBe(false);
});

test("a selector that Kubernetes reads is taken up to its limits [config-pool-selector-2]", () => {
  expect(poolSelects({ matchLabels: { [infra]: "" } }, { [infra]: "" })).toBe(true);
  expect(poolSelects({ matchExpressions: many(64) }, {})).toBe(true);
  expect(poolSelects(expressions({ key: "a", operator: "In", values: values(4096) }), { a: "w4095" })).toBe(true);
  expect(poolSelects(undefined, {})).toBe(false);
});

test("keys and values are those that the API server takes for labels [config-pool-selector-3]", () => {
  const part = fc.oneof(
    fc.string({ unit: fc.constantFrom("a", "Z", "0", "-", "_", ".", "/", " ", "ä", "\n"), maxLength: 8 }),
    fc.integer({ min: 60, max: 66 }).map((length) => "a".repeat(length)),
    fc.integer({ min: 250, max: 256 }).map((length) => "a.".repeat(length / 2)),
    fc.constantFrom("example.com", "a", ""),
  );
  const key = fc.oneof(
    part,
    fc.tuple(part, part).map(([prefix, name]) => `${prefix}/${name}`),
  );
  fc.assert(
    fc.property(key, part, (name, value) => {
      const isKey = qualifiedNameProblems(name).length === 0;
      expect([name, selectorProblem({ matchLabels: { [name]: "" } }) === undefined]).toEqual([name, isKey]);
      const isValue = labelValueProblems(value).length === 0;
      expect([value, selectorProblem({ matchLabels: { a: value } }) === undefined]).toEqual([value, isValue]);
    }),
    { numRuns: 2000 },
  );
});
