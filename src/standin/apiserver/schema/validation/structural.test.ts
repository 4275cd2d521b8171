import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import type { KubeObject, Schema } from "../contract.ts";
import { cloneJson } from "../json-values.ts";
import { compileSchema } from "./structural.ts";

const pool: Schema = {
  type: "object",
  required: ["spec"],
  properties: {
    spec: {
      type: "object",
      required: ["name"],
      properties: {
        name: { type: "string", minLength: 2, maxLength: 5, pattern: "^[a-z]+$" },
        replicas: { type: "integer", minimum: 1, maximum: 9, default: 3 },
        mode: { type: "string", enum: ["A", "B"], default: "A" },
        port: { "x-kubernetes-int-or-string": true },
        ratio: { type: "number", exclusiveMinimum: true, minimum: 0, multipleOf: 0.5 },
        tags: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set", maxItems: 3 },
        items: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["key"],
          items: {
            type: "object",
            required: ["key"],
            properties: { key: { type: "string" }, on: { type: "boolean", default: true } },
          },
        },
        labels: { type: "object", additionalProperties: { type: "string" }, maxProperties: 2 },
        free: {
          type: "object",
          "x-kubernetes-preserve-unknown-fields": true,
          properties: { known: { type: "object", properties: { a: { type: "string" } } } },
        },
        maybe: { type: "string", nullable: true },
        when: { type: "string", format: "date-time" },
        template: {
          type: "object",
          "x-kubernetes-embedded-resource": true,
          "x-kubernetes-preserve-unknown-fields": true,
        },
        choice: {
          type: "object",
          properties: { a: { type: "string" }, b: { type: "string" } },
          oneOf: [{ required: ["a"] }, { required: ["b"] }],
        },
      },
    },
  },
};
const compiled = compileSchema(pool);

function pooled(spec: Record<string, unknown>): KubeObject {
  return { apiVersion: "x/v1", kind: "Pool", metadata: { name: "a" }, spec: { name: "abc", ...spec } };
}
function errors(spec: Record<string, unknown>, before?: Record<string, unknown>): string[] {
  return compiled
    .validate(pooled(spec), before === undefined ? undefined : pooled(before))
    .map((e) => `${e.field}: ${e.message}`);
}

describe("validate", () => {
  test.for<[string, Record<string, unknown>, string[]]>([
    ["a good object has no errors", { replicas: 2, port: "http", tags: ["a", "b"] }, []],
    [
      "a wrong type names the type found",
      { replicas: "3" },
      ['spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"'],
    ],
    [
      "a fraction is no integer",
      { replicas: 1.5 },
      ['spec.replicas: Invalid value: "number": spec.replicas in body must be of type integer: "number"'],
    ],
    [
      "bounds are printed",
      { replicas: 10 },
      ["spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9"],
    ],
    [
      "exclusive bounds are printed",
      { ratio: 0 },
      ["spec.ratio: Invalid value: 0: spec.ratio in body should be greater than 0"],
    ],
    [
      "multiples are checked",
      { ratio: 0.7 },
      ["spec.ratio: Invalid value: 0.7: spec.ratio in body should be a multiple of 0.5"],
    ],
    ["an enum lists its values", { mode: "C" }, ['spec.mode: Unsupported value: "C": supported values: "A", "B"']],
    ["a long text is too long", { name: "abcdef" }, ["spec.name: Too long: may not be more than 5 bytes"]],
    [
      "a pattern is printed",
      { name: "AB" },
      ["spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'"],
    ],
    [
      "a short text is too short",
      { name: "a" },
      ['spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long'],
    ],
    ["an absent field is required", { name: undefined }, ["spec.name: Required value"]],
    [
      "too many items are counted",
      { tags: ["a", "b", "c", "d"] },
      ["spec.tags: Too many: 4: must have at most 3 items"],
    ],
    ["a set has no duplicates", { tags: ["a", "a"] }, ['spec.tags[1]: Duplicate value: "a"']],
    [
      "a list map has no duplicate keys",
      { items: [{ key: "a" }, { key: "a", on: false }] },
      ['spec.items[1]: Duplicate value: {"key":"a"}'],
    ],
    [
      "an item's field is named with its index",
      { items: [{ key: "a" }, { key: 7 }] },
      ['spec.items[1].key: Invalid value: "integer": spec.items[1].key in body must be of type string: "integer"'],
    ],
    [
      "int-or-string takes no boolean",
      { port: true },
      ['spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"'],
    ],
    [
      "maps are counted",
      { labels: { a: "1", b: "2", c: "3" } },
      ["spec.labels: Too many: 3: must have at most 2 items"],
    ],
    ["null passes where nullable", { maybe: null }, []],
    [
      "formats are checked",
      { when: "yesterday" },
      ['spec.when: Invalid value: "yesterday": spec.when in body must be of type date-time: "yesterday"'],
    ],
    ["an embedded object needs its kind", { template: { apiVersion: "v1" } }, ["spec.template.kind: Required value"]],
    [
      "exactly one alternative",
      { choice: { a: "1", b: "2" } },
      [
        '<nil>: Invalid value: "": "spec.choice" must validate one and only one schema (oneOf). Found 2 valid alternatives',
      ],
    ],
  ])("%s", ([, spec, expected]) => {
    expect(errors(spec)).toEqual(expected);
  });

  test("type errors come first", () => {
    expect(errors({ mode: "C", replicas: "x" })[0]).toContain("spec.replicas");
  });

  test("what was stored before and is left alone may stay", () => {
    expect(errors({ mode: "C", replicas: 2 }, { mode: "C" })).toEqual([]);
    expect(errors({ mode: "D" }, { mode: "C" })).toHaveLength(1);
    const items = [{ key: "a", on: "no" }];
    expect(errors({ items: [{ key: "b" }, ...items] }, { items })).toEqual([]);
  });

  test("metadata is always that of Kubernetes", () => {
    const object = { ...pooled({}), metadata: { name: "a", labels: { x: 1 } } } as unknown as KubeObject;
    expect(compiled.validate(object, undefined).map((e) => e.field)).toEqual(["metadata.labels.x"]);
  });
});

describe("applyDefaults", () => {
  test("fills absent fields, also in list items, and leaves given ones", () => {
    const object = pooled({ mode: "B", items: [{ key: "a" }, { key: "b", on: false }] });
    compiled.applyDefaults(object);
    expect(object["spec"]).toEqual({
      name: "abc",
      mode: "B",
      replicas: 3,
      items: [
        { key: "a", on: true },
        { key: "b", on: false },
      ],
    });
  });
  test("null is absent unless nullable", () => {
    const object = pooled({ mode: null, tags: null, maybe: null });
    compiled.applyDefaults(object);
    expect(object["spec"]).toEqual({ name: "abc", mode: "A", replicas: 3, maybe: null });
  });
});

describe("prune", () => {
  test("drops unknown fields and says where they were", () => {
    const object = pooled({
      foo: 1,
      items: [{ key: "a", bar: {} }],
      labels: { any: "x" },
      free: { other: { deep: 1 }, known: { b: 1 } },
    });
    (object.metadata as Record<string, unknown>)["wrong"] = 1;
    object["more"] = 1;
    expect(compiled.prune(object)).toEqual([
      "metadata.wrong",
      "more",
      "spec.foo",
      "spec.free.known.b",
      "spec.items[0].bar",
    ]);
    expect(object["spec"]).toEqual({
      name: "abc",
      items: [{ key: "a" }],
      labels: { any: "x" },
      free: { other: { deep: 1 }, known: {} },
    });
  });
  test("pruning and defaulting twice is the same as once", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom("name", "replicas", "mode", "items", "free", "junk"), fc.jsonValue()),
        (spec) => {
          const once = pooled(cloneJson(spec) as Record<string, unknown>);
          compiled.prune(once);
          compiled.applyDefaults(once);
          const twice = cloneJson(once);
          expect(compiled.prune(twice)).toEqual([]);
          compiled.applyDefaults(twice);
          expect(twice).toEqual(once);
        },
      ),
    );
  });
});

describe("rules", () => {
  const ruled = compileSchema({
    type: "object",
    "x-kubernetes-validations": [
      { rule: "self.metadata.name == self.spec.owner", message: "carries the name of its owner" },
    ],
    properties: {
      spec: {
        type: "object",
        properties: {
          owner: {
            type: "string",
            "x-kubernetes-validations": [{ rule: "self == oldSelf", message: "owner is immutable" }],
          },
          min: { type: "integer" },
          max: { type: "integer" },
          limit: { type: "string" },
        },
        "x-kubernetes-validations": [
          {
            rule: "!has(self.min) || !has(self.max) || self.min + 1 <= self.max",
            messageExpression: "'min %d is not below max %d'.format([self.min, self.max])",
            fieldPath: ".min",
          },
          {
            rule: "!has(self.limit) || quantity(self.limit).isLessThan(quantity('1Gi'))",
            reason: "FieldValueForbidden",
            message: "too much",
          },
        ],
      },
    },
  });
  const object = (spec: Record<string, unknown>): KubeObject => ({
    apiVersion: "x/v1",
    kind: "R",
    metadata: { name: "a" },
    spec,
  });
  const said = (spec: Record<string, unknown>, old?: Record<string, unknown>): string[] =>
    ruled.validate(object(spec), old === undefined ? undefined : object(old)).map((e) => `${e.field}: ${e.message}`);
  test.for<[string, Record<string, unknown>, Record<string, unknown> | undefined, string[]]>([
    ["pass", { owner: "a", min: 1, max: 2, limit: "5Mi" }, { owner: "a" }, []],
    [
      "speak of the whole object",
      { owner: "b" },
      undefined,
      ['<nil>: Invalid value: "object": carries the name of its owner'],
    ],
    [
      "count in integers and say so",
      { owner: "a", min: 2, max: 2 },
      undefined,
      ['spec.min: Invalid value: "object": min 2 is not below max 2'],
    ],
    ["carry their reason", { owner: "a", limit: "2Gi" }, undefined, ["spec: Forbidden: too much"]],
    ["see the change", { owner: "a" }, { owner: "c" }, ['spec.owner: Invalid value: "string": owner is immutable']],
    [
      "report what cannot be evaluated",
      { owner: "a", limit: "x" },
      undefined,
      [
        "spec: Invalid value: \"object\": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' evaluating rule: too much",
      ],
    ],
    [
      "wait until the schema is obeyed",
      { owner: 7 },
      undefined,
      [
        'spec.owner: Invalid value: "integer": spec.owner in body must be of type string: "integer"',
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
      ],
    ],
  ])("%s", ([, spec, old, expected]) => {
    expect(said(spec, old)).toEqual(expected);
  });
});

test("a new key that every object of the language has has no old value [apiserver-cel-5]", () => {
  const rule = { rule: "oldSelf.hasValue() || self == 'first'", optionalOldSelf: true };
  const values: Schema = { type: "string", "x-kubernetes-validations": [rule] };
  const compiled = compileSchema({
    type: "object",
    properties: { spec: { type: "object", additionalProperties: values } },
  });
  const thing = (spec: Readonly<Record<string, string>>): KubeObject => ({
    apiVersion: "a/v1",
    kind: "A",
    metadata: { name: "a" },
    spec,
  });
  const fieldsOf = (spec: Readonly<Record<string, string>>) =>
    compiled.validate(thing(spec), thing({})).map(({ field }) => field);

  expect(fieldsOf({ constructor: "first", other: "first" })).toEqual([]);
  expect(fieldsOf({ constructor: "second", other: "second" })).toEqual(["spec.constructor", "spec.other"]);
});

test.for<[unknown, boolean]>([
  ["a", true],
  [1, true],
  ["1", false],
  [{ y: [2], x: 1 }, true],
  [{ x: 1 }, false],
  [[1], false],
  [true, false],
])("an enum takes %j: %s [apiserver-enum-1]", ([value, isTaken]) => {
  const compiled = compileSchema({
    type: "object",
    properties: {
      spec: { "x-kubernetes-preserve-unknown-fields": true, enum: ["a", 1, { x: 1, y: [2] }] } as Schema,
    },
  });
  const object = { apiVersion: "x.io/v1", kind: "X", metadata: { name: "a" }, spec: value } as KubeObject;
  expect(compiled.validate(object, undefined).map(({ message }) => message)).toEqual(
    isTaken
      ? []
      : [`Unsupported value: ${JSON.stringify(value)}: supported values: "a", "1", "{\\"x\\":1,\\"y\\":[2]}"`],
  );
});

describe("a definition that combines very many parts", () => {
  const objectOf = (spec: unknown): KubeObject => ({
    apiVersion: "x.com/v1",
    kind: "A",
    metadata: { name: "o" },
    spec,
  });
  const free: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const compiled = (spec: Schema) => compileSchema({ type: "object", properties: { spec } });

  test("prints no problem that nobody reads [apiserver-validation-work-1]", () => {
    const schema = compiled({ ...free, allOf: Array.from({ length: 1500 }, () => ({ enum: ["x"] })) });
    const object = objectOf({ a: "x".repeat(1000) });
    const printing = vi.spyOn(JSON, "stringify");
    const errors = schema.validate(object, undefined);
    const calls = printing.mock.calls.length;
    printing.mockRestore();
    expect({ errors: errors.length, calls }).toEqual({ errors: 1500, calls: 0 });
    expect(errors.at(-1)).toMatchObject({
      reason: "FieldValueNotSupported",
      field: "spec",
      message: expect.stringMatching(/^Unsupported value: \{"a":"x+"\}: supported values: "x"$/) as string,
    });
  });

  test("has an end, and says so [apiserver-validation-work-2]", () => {
    const part: Schema = { anyOf: [{ type: "integer" }, { type: "string" }] };
    const items: Schema = { type: "string", allOf: Array.from({ length: 2000 }, () => part) };
    const schema = compiled({ type: "object", properties: { list: { type: "array", items } } });
    const few = objectOf({ list: Array.from({ length: 10 }, () => "a") });
    expect(schema.validate(few, undefined)).toEqual([]);
    const many = objectOf({ list: Array.from({ length: 10_000 }, () => "a") });
    for (const before of [undefined, many])
      expect(schema.validate(many, before)).toMatchObject([
        { field: "<nil>", message: expect.stringContaining("validation takes more than 20000000 steps") as string },
      ]);
  });

  test("counts characters, not units, where that decides [apiserver-validation-work-3]", () => {
    const schema = compiled({ type: "object", properties: { a: { type: "string", minLength: 3, maxLength: 4 } } });
    const verdict = (a: string) => schema.validate(objectOf({ a }), undefined).map(({ reason }) => reason);
    expect(
      ["𝒳".repeat(2), "𝒳".repeat(3), "𝒳".repeat(4), "𝒳".repeat(5), "ab", "abc", "abcd", "abcde"].map(verdict),
    ).toEqual([
      ["FieldValueInvalid"],
      [],
      [],
      ["FieldValueTooLong"],
      ["FieldValueInvalid"],
      [],
      [],
      ["FieldValueTooLong"],
    ]);
  });
});

test.for<unknown>([{ toString: 1 }, { valueOf: 1 }, ["1"], {}, true])(
  "a quantity is a text or a number, and not %j [apiserver-quantity-1]",
  (cpu) => {
    const schema = compileSchema({ type: "object", properties: { cpu: { format: "quantity" } } });
    const object = { apiVersion: "v1", kind: "A", metadata: { name: "o" }, cpu } as unknown as KubeObject;
    expect(schema.undecodable(object)).toMatch(/^quantities must match the regular expression/);
  },
);
