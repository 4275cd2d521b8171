import type { Json } from "../api-target.ts";
import { type Call, exchanges } from "./exchange.ts";
import { check, checks } from "./fixtures.ts";
const at = "contract.example.com/v1:checks";
const made = (spec: Json): readonly Call[] => [["POST", at, check(spec)]];
/** A definition with another schema of its spec, tried and not stored. */
const defining = (spec: Json, more: Json = {}): Call => {
  const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
  const names = { plural: "trials", singular: "trial", kind: "Trial", listKind: "TrialList" };
  return [
    "POST",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All",
    {
      ...checks,
      metadata: { name: "trials.{ns}.example.com" },
      spec: {
        ...checks.spec,
        group: "{ns}.example.com",
        names,
        versions: [{ name: "v1", served: true, storage: true, schema }],
        ...more,
      },
    },
  ];
};
/** What schemas and rules of custom resources refuse, default and drop, and which definitions are refused. */
export const schemaCases = exchanges([
  // refusals of a schema
  {
    title: "a string is not too short",
    call: ["POST", at, check({ text: "a" })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: spec.text: Invalid value: "a": spec.text in body should be at least 2 chars long',
    causes: ["FieldValueInvalid spec.text"],
  },
  {
    title: "a string is not too long",
    call: ["POST", at, check({ text: "abcdefghijk" })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: [spec.text: Too long: may not be more than 10 bytes, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
    causes: ["FieldValueTooLong spec.text", "FieldValueInvalid <nil>"],
  },
  {
    title: "a string matches its pattern",
    call: ["POST", at, check({ text: "ABC" })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: spec.text: Invalid value: "ABC": spec.text in body should match \'^[a-z]+$\'',
    causes: ["FieldValueInvalid spec.text"],
  },
  {
    title: "a string is not a value of another type",
    call: ["POST", at, check({ text: 5 })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.text: Invalid value: "integer": spec\.text in body must be of type string: "integer", <nil>: Invalid v/,
    causes: ["FieldValueTypeInvalid spec.text", "FieldValueInvalid <nil>"],
  },
  {
    title: "an integer is not below its minimum",
    call: ["POST", at, check({ count: 0 })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1',
    causes: ["FieldValueInvalid spec.count"],
  },
  {
    title: "an integer is not above its maximum",
    call: ["POST", at, check({ count: 11 })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: spec.count: Invalid value: 11: spec.count in body should be less than or equal to 10',
    causes: ["FieldValueInvalid spec.count"],
  },
  {
    title: "an integer has no fraction",
    call: ["POST", at, check({ count: 1.5 })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.count: Invalid value: "number": spec\.count in body must be of type integer: "number", <nil>: Invalid /,
    causes: ["FieldValueTypeInvalid spec.count", "FieldValueInvalid <nil>"],
  },
  {
    title: "a number with a zero fraction is an integer",
    call: ["POST", `${at}?dryRun=All`, check({ count: 2.0 })],
    status: 201,
    has: { "spec.count": 2 },
  },
  {
    title: "an integer is a multiple",
    call: ["POST", at, check({ even: 3 })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: spec.even: Invalid value: 3: spec.even in body should be a multiple of 2',
    causes: ["FieldValueInvalid spec.even"],
  },
  {
    title: "an integer is below an exclusive maximum",
    call: ["POST", at, check({ below: 5 })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: spec.below: Invalid value: 5: spec.below in body should be less than 5',
    causes: ["FieldValueInvalid spec.below"],
  },
  {
    title: "a number is an integer or not",
    call: ["POST", `${at}?dryRun=All`, check({ ratio: 0.25 })],
    status: 201,
    has: { "spec.ratio": 0.25 },
  },
  {
    title: "a boolean is not a string",
    call: ["POST", at, check({ flag: "true" })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.flag: Invalid value: "string": spec\.flag in body must be of type boolean: "string", <nil>: Invalid va/,
    causes: ["FieldValueTypeInvalid spec.flag", "FieldValueInvalid <nil>"],
  },
  {
    title: "a value is one of its enumeration",
    call: ["POST", at, check({ color: "blue" })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.color: Unsupported value: "blue": supported values: "red", "green", <nil>: Invalid value: null: some /,
    causes: ["FieldValueNotSupported spec.color", "FieldValueInvalid <nil>"],
  },
  {
    title: "a format is checked: ipv4",
    call: ["POST", at, check({ address: "1.2.3" })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.address: Invalid value: "1\.2\.3": spec\.address in body must be of type ipv4: "1\.2\.3", <nil>: Invalid v/,
    causes: ["FieldValueTypeInvalid spec.address", "FieldValueInvalid <nil>"],
  },
  {
    title: "a format is checked: date-time",
    call: ["POST", at, check({ at: "yesterday" })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.at: Invalid value: "yesterday": spec\.at in body must be of type date-time: "yesterday", <nil>: Invali/,
    causes: ["FieldValueTypeInvalid spec.at", "FieldValueInvalid <nil>"],
  },
  {
    title: "a format is checked: duration",
    call: ["POST", at, check({ lasting: "long" })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.lasting: Invalid value: "long": spec\.lasting in body must be of type duration: "long", <nil>: Invalid/,
    causes: ["FieldValueTypeInvalid spec.lasting", "FieldValueInvalid <nil>"],
  },
  {
    title: "a list has not too many items",
    call: ["POST", at, check({ few: ["a", "b", "c"] })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: [spec.few: Too many: 3: must have at most 2 items, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
    causes: ["FieldValueTooMany spec.few", "FieldValueInvalid <nil>"],
  },
  {
    title: "a list has not too few items",
    call: ["POST", at, check({ few: [] })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: spec.few: Invalid value: 0: spec.few in body should have at least 1 items',
    causes: ["FieldValueInvalid spec.few"],
  },
  {
    title: "a list's items have their type",
    call: ["POST", at, check({ few: [1] })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.few\[0\]: Invalid value: "integer": spec\.few\[0\] in body must be of type string: "integer", <nil>: Inval/,
    causes: ["FieldValueTypeInvalid spec.few[0]", "FieldValueInvalid <nil>"],
  },
  {
    title: "a set has each item once",
    call: ["POST", at, check({ tags: ["a", "b", "a"] })],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.tags[2]: Duplicate value: "a"',
    causes: ["FieldValueDuplicate spec.tags[2]"],
  },
  {
    title: "a list map has each key once",
    call: ["POST", at, check({ entries: [{ name: "a" }, { name: "a" }] })],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.entries[1]: Duplicate value: {"name":"a"}',
    causes: ["FieldValueDuplicate spec.entries[1]"],
  },
  {
    title: "a list map's items have their key",
    call: ["POST", at, check({ entries: [{ value: 1 }] })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: [spec.entries[0].name: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
    causes: ["FieldValueRequired spec.entries[0].name", "FieldValueInvalid <nil>"],
  },
  {
    title: "a map has not too many entries",
    call: ["POST", at, check({ options: { a: "1", b: "2", c: "3" } })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: [spec.options: Too many: 3: must have at most 2 items, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
    causes: ["FieldValueTooMany spec.options", "FieldValueInvalid <nil>"],
  },
  {
    title: "a map's values are checked",
    call: ["POST", at, check({ options: { a: "long" } })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: [spec.options.a: Too long: may not be more than 3 bytes, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
    causes: ["FieldValueTooLong spec.options.a", "FieldValueInvalid <nil>"],
  },
  {
    title: "one of two alternatives holds",
    call: ["POST", at, check({ choice: { a: "1", b: "2" } })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: <nil>: Invalid value: "": "spec.choice" must validate one and only one schema (oneOf). Found 2 valid alternatives',
    causes: ["FieldValueInvalid <nil>"],
  },
  {
    title: "a null is dropped if it is not allowed",
    call: ["POST", `${at}?dryRun=All`, check({ text: null })],
    status: 201,
    has: { "spec.text": undefined },
  },
  {
    title: "a null stays if it is allowed",
    call: ["POST", `${at}?dryRun=All`, check({ maybe: null })],
    status: 201,
    has: { "spec.maybe": null },
  },
  {
    title: "a null of a field with a default becomes the default",
    call: ["POST", `${at}?dryRun=All`, check({ usually: null })],
    status: 201,
    has: { "spec.usually": "so" },
  },
  {
    title: "either an integer or a string",
    call: ["POST", `${at}?dryRun=All`, check({ either: "50%" })],
    status: 201,
    has: { "spec.either": "50%" },
  },
  {
    title: "either an integer or a string, nothing else",
    call: ["POST", at, check({ either: true })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.either: Invalid value: "boolean": spec\.either in body must be of type integer,string: "boolean", <nil/,
    causes: ["FieldValueTypeInvalid spec.either", "FieldValueInvalid <nil>"],
  },
  {
    title: "an embedded object has apiVersion and kind",
    call: ["POST", at, check({ embedded: { metadata: { name: "x" } } })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.embedded\.apiVersion: Required value, spec\.embedded\.kind: Required value, <nil>: Invalid value: null: /,
    causes: [
      "FieldValueRequired spec.embedded.apiVersion",
      "FieldValueRequired spec.embedded.kind",
      "FieldValueInvalid <nil>",
    ],
  },
  {
    title: "an embedded object keeps what it has",
    call: [
      "POST",
      `${at}?dryRun=All`,
      check({ embedded: { apiVersion: "v1", kind: "X", metadata: { name: "x", labels: { a: "b" } }, more: 1 } }),
    ],
    status: 201,
    has: { "spec.embedded": { apiVersion: "v1", kind: "X", metadata: { labels: { a: "b" }, name: "x" }, more: 1 } },
  },
  // defaults and pruning
  {
    title: "defaults are filled in at every depth",
    call: ["POST", `${at}?dryRun=All`, check({ given: { two: {} } })],
    status: 201,
    has: { "spec.given": { one: 1, two: { three: "3" } }, "spec.usually": "so" },
  },
  {
    title: "a default object gets its own defaults",
    call: ["POST", `${at}?dryRun=All`, check({})],
    status: 201,
    has: { "spec.given": { one: 1 } },
  },
  {
    title: "items get defaults",
    call: ["POST", `${at}?dryRun=All`, check({ entries: [{ name: "a" }, { name: "b", value: 1 }] })],
    status: 201,
    has: {
      "spec.entries": [
        { name: "a", value: 5 },
        { name: "b", value: 1 },
      ],
    },
  },
  {
    title: "unknown fields are dropped",
    call: [
      "POST",
      `${at}?dryRun=All&fieldValidation=Ignore`,
      { ...check({ colour: "red", given: { three: 3 } }), more: 1 },
    ],
    status: 201,
    has: { "spec.colour": undefined, more: undefined, "spec.given": { one: 1 } },
  },
  {
    title: "preserved fields are kept, and the known ones are checked",
    call: ["POST", `${at}?dryRun=All`, check({ free: { known: 1, other: { deep: [1] } } })],
    status: 201,
    has: { "spec.free": { known: 1, other: { deep: [1] } } },
  },
  {
    title: "known fields of a preserving object have their type",
    call: ["POST", at, check({ free: { known: "x" } })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.free\.known: Invalid value: "string": spec\.free\.known in body must be of type integer: "string", <nil>/,
    causes: ["FieldValueTypeInvalid spec.free.known", "FieldValueInvalid <nil>"],
  },
  {
    title: "creation ignores status",
    call: ["POST", `${at}?dryRun=All`, { ...check(), status: { phase: "Good" } }],
    status: 201,
    has: { status: undefined },
  },
  // subresources
  {
    title: "status is written by its endpoint",
    before: made({}),
    call: ["merge", `${at}/c/status`, { status: { phase: "Good" }, spec: { text: "ignored" } }],
    status: 200,
    has: { status: { phase: "Good" }, "spec.text": undefined, "metadata.generation": 1 },
  },
  {
    title: "status is checked by its schema",
    before: made({}),
    call: ["merge", `${at}/c/status`, { status: { phase: "Ugly" } }],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[status\.phase: Unsupported value: "Ugly": supported values: "Good", "Bad", <nil>: Invalid value: null: some/,
    causes: ["FieldValueNotSupported status.phase", "FieldValueInvalid <nil>"],
  },
  {
    title: "a status endpoint does not write labels",
    before: made({}),
    call: ["merge", `${at}/c/status`, { metadata: { labels: { a: "b" } }, status: { phase: "Good" } }],
    status: 200,
    has: { "metadata.labels": undefined, status: { phase: "Good" } },
  },
  {
    title: "a changed spec is another generation",
    before: made({ text: "one" }),
    call: ["merge", `${at}/c`, { spec: { text: "two" } }],
    status: 200,
    has: { "metadata.generation": 2 },
  },
  {
    title: "changed labels are the same generation",
    before: made({ text: "one" }),
    call: ["merge", `${at}/c`, { metadata: { labels: { a: "b" } } }],
    status: 200,
    has: { "metadata.generation": 1 },
  },
  {
    title: "a scale reads replicas and selector by their paths",
    before: [...made({ replicas: 3 }), ["merge", `${at}/c/status`, { status: { replicas: 2, selector: "a=b" } }]],
    call: ["GET", `${at}/c/scale`],
    status: 200,
    has: {
      kind: "Scale",
      apiVersion: "autoscaling/v1",
      spec: { replicas: 3 },
      status: { replicas: 2, selector: "a=b" },
      "metadata.name": "c",
    },
  },
  {
    title: "a scale writes replicas by their path",
    before: made({ replicas: 3 }),
    call: ["merge", `${at}/c/scale`, { spec: { replicas: 5 } }],
    status: 200,
    has: { spec: { replicas: 5 }, status: { replicas: 0 } },
  },
  {
    title: "a scale without replicas reads none",
    before: made({}),
    call: ["GET", `${at}/c/scale`],
    status: 500,
    message: 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
    causes: [""],
    has: { spec: undefined, status: "Failure" },
  },
  // rules
  {
    title: "a rule refuses with its message and the value",
    call: ["POST", at, check({ minimum: 5, maximum: 4 })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: spec.minimum: Invalid value: "object": minimum is above maximum',
    causes: ["FieldValueInvalid spec.minimum"],
  },
  {
    title: "a rule without a message is its own message",
    call: ["POST", at, check({ plain: 13 })],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.plain: Invalid value: "integer": failed rule: self != 13',
    causes: ["FieldValueInvalid spec.plain"],
  },
  {
    title: "a rule has its own reason and path",
    call: ["POST", at, check({ reasoned: { x: 3 } })],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.reasoned.x: Forbidden: too much',
    causes: ["FieldValueForbidden spec.reasoned.x"],
  },
  {
    title: "a rule at the root sees the name",
    call: ["POST", at, check({}, "forbidden")],
    status: 422,
    message: 'Check.contract.example.com "forbidden" is invalid: <nil>: Invalid value: "object": that name is taken',
    causes: ["FieldValueInvalid <nil>"],
  },
  {
    title: "a transition rule does not apply to a creation",
    call: ["POST", `${at}?dryRun=All`, check({ frozen: "a", upwards: 3 })],
    status: 201,
    has: { "spec.frozen": "a" },
  },
  {
    title: "a transition rule refuses the change",
    before: made({ frozen: "a" }),
    call: ["merge", `${at}/c`, { spec: { frozen: "b" } }],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.frozen: Invalid value: "string": frozen may not change',
    causes: ["FieldValueInvalid spec.frozen"],
  },
  {
    title: "a transition rule lets a field go",
    before: made({ frozen: "a" }),
    call: ["merge", `${at}/c`, { spec: { frozen: null } }],
    status: 200,
    has: { "spec.frozen": undefined },
  },
  {
    title: "a transition rule lets a field come",
    before: made({}),
    call: ["merge", `${at}/c`, { spec: { frozen: "a" } }],
    status: 200,
    has: { "spec.frozen": "a" },
  },
  {
    title: "a message is an expression's value",
    before: made({ upwards: 7 }),
    call: ["merge", `${at}/c`, { spec: { upwards: 6 } }],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: spec.upwards: Invalid value: "integer": from high only upwards',
    causes: ["FieldValueInvalid spec.upwards"],
  },
  {
    title: "a rule with optionalOldSelf also applies to a creation",
    call: ["POST", at, check({ first: 2 })],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.first: Invalid value: "integer": first begins with 1',
    causes: ["FieldValueInvalid spec.first"],
  },
  {
    title: "optionalOldSelf has the old value of a change",
    before: made({ first: 1 }),
    call: ["merge", `${at}/c`, { spec: { first: 2 } }],
    status: 200,
    has: { "spec.first": 2 },
  },
  {
    title: "a rule over a list",
    call: ["POST", at, check({ unique: ["a", "b", "a"] })],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.unique: Invalid value: "array": each once',
    causes: ["FieldValueInvalid spec.unique"],
  },
  {
    title: "a rule over a quantity",
    call: ["POST", at, check({ amount: "3Gi" })],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.amount: Invalid value: "string": below 2Gi',
    causes: ["FieldValueInvalid spec.amount"],
  },
  {
    title: "a rule over an invalid quantity fails",
    call: ["POST", at, check({ amount: "lots" })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: spec.amount: Invalid value: "string": quantities must match the regular expression \'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$\' evaluating rule: below 2Gi',
    causes: ["FieldValueInvalid spec.amount"],
  },
  {
    title: "a rule over a URL",
    call: ["POST", at, check({ link: "http://example.com" })],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.link: Invalid value: "string": an https URL',
    causes: ["FieldValueInvalid spec.link"],
  },
  {
    title: "a rule over a URL that holds",
    call: ["POST", `${at}?dryRun=All`, check({ link: "https://example.com/x" })],
    status: 201,
    has: { "spec.link": "https://example.com/x" },
  },
  {
    title: "a rule over a duration",
    call: ["POST", at, check({ within: "61m" })],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.within: Invalid value: "string": an hour at most',
    causes: ["FieldValueInvalid spec.within"],
  },
  {
    title: "int32 alone bounds no integer of a custom object",
    call: ["POST", `${at}?dryRun=All`, check({ small: 2_147_483_648 })],
    status: 201,
    has: { "spec.small": 2_147_483_648 },
  },
  {
    title: "a number beyond 64 bits is not an integer",
    call: ["POST", at, check({ small: 1e30 })],
    status: 422,
    message: /spec\.small: Invalid value: "number": spec\.small in body must be of type integer: "number"/,
    causes: ["FieldValueTypeInvalid spec.small", "FieldValueInvalid <nil>"],
  },
  {
    title: "a rule over words",
    call: ["POST", at, check({ words: "One two" })],
    status: 422,
    message: 'Check.contract.example.com "c" is invalid: spec.words: Invalid value: "string": three small words',
    causes: ["FieldValueInvalid spec.words"],
  },
  {
    title: "a rule that fails refuses",
    call: ["POST", at, check({ broken: "x" })],
    status: 422,
    message:
      "Check.contract.example.com \"c\" is invalid: spec.broken: Invalid value: \"string\": type conversion error from 'string' to 'int' evaluating rule: above nothing",
    causes: ["FieldValueInvalid spec.broken"],
  },
  {
    title: "a rule is not evaluated on an object that violates the schema",
    call: ["POST", at, check({ color: "blue", minimum: 5, maximum: 4 })],
    status: 422,
    message:
      /^Check\.contract\.example\.com "c" is invalid: \[spec\.color: Unsupported value: "blue": supported values: "red", "green", <nil>: Invalid value: null: some /,
    causes: ["FieldValueNotSupported spec.color", "FieldValueInvalid <nil>"],
  },
  {
    title: "a rule is evaluated on an object with values out of range",
    call: ["POST", at, check({ count: 0, minimum: 5, maximum: 4 })],
    status: 422,
    message:
      'Check.contract.example.com "c" is invalid: [spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1, spec.minimum: Invalid value: "object": minimum is above maximum]',
    causes: ["FieldValueInvalid spec.count", "FieldValueInvalid spec.minimum"],
  },
  {
    title: "an invalid value that does not change may stay",
    before: made({ text: "fine" }),
    call: ["merge", `${at}/c`, { metadata: { labels: { a: "b" } } }],
    status: 200,
    has: { "metadata.labels": { a: "b" } },
  },
  // tables
  {
    title: "a custom table has the definition's columns",
    before: made({ text: "abc", count: 2, flag: true, ratio: 0.5, entries: [{ name: "a" }, { name: "b" }] }),
    call: ["GET", at, undefined, { headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } }],
    status: 200,
    has: {
      "columnDefinitions.1": {
        name: "Text",
        type: "string",
        format: "",
        description: "Custom resource definition column (in JSONPath format): .spec.text",
        priority: 0,
      },
      "columnDefinitions.4": {
        name: "Names",
        type: "string",
        format: "",
        description: "Custom resource definition column (in JSONPath format): .spec.entries[*].name",
        priority: 1,
      },
      "columnDefinitions.6": { name: "Ratio", type: "number", format: "", description: "A share.", priority: 0 },
      "rows.0.cells.0": "c",
      "rows.0.cells.1": "abc",
      "rows.0.cells.2": 2,
      "rows.0.cells.3": null,
      "rows.0.cells.4": "a",
      "rows.0.cells.5": true,
    },
  },
  {
    title: "a custom table has empty cells",
    before: made({}),
    call: ["GET", `${at}/c`, undefined, { headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } }],
    status: 200,
    has: {
      "rows.0.cells.0": "c",
      "rows.0.cells.1": null,
      "rows.0.cells.2": null,
      "rows.0.cells.3": null,
      "rows.0.cells.4": null,
      "rows.0.cells.5": null,
    },
  },
  {
    title: "custom objects are selected by their selectable fields",
    before: [
      ["POST", at, check({ color: "red", count: 1 }, "one")],
      ["POST", at, check({ color: "green", count: 1 }, "two")],
    ],
    call: ["GET", `${at}?fieldSelector=spec.color%3Dred,spec.count%3D1`],
    status: 200,
    has: { "items.0.metadata.name": "one", "items.1": undefined },
  },
  {
    title: "custom objects are not selected by other fields",
    call: ["GET", `${at}?fieldSelector=spec.text%3Da`],
    status: 400,
    message: "field label not supported: spec.text",
  },
  // definitions
  {
    title: "a definition's name is made of plural and group",
    call: [
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All",
      { ...checks, metadata: { name: "other" } },
    ],
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "other" is invalid: metadata.name: Invalid value: "other": must be spec.names.plural+"."+spec.group',
    causes: ["FieldValueInvalid metadata.name"],
  },
  {
    title: "a definition's scope is one of two",
    call: defining({ type: "object" }, { scope: "Global" }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"',
    causes: ["FieldValueNotSupported spec.scope"],
  },
  {
    title: "a definition has a version",
    call: defining({ type: "object" }, { versions: [] }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: [spec.versions: Invalid value: []: must have exactly one version marked as storage version, status.storedVersions: Invalid value: null: must have at least one stored version]',
    causes: ["FieldValueInvalid spec.versions", "FieldValueInvalid status.storedVersions"],
  },
  {
    title: "a definition stores one version",
    call: defining(
      { type: "object" },
      { versions: [{ name: "v1", served: true, storage: false, schema: { openAPIV3Schema: { type: "object" } } }] },
    ),
    status: 422,
    message:
      /^CustomResourceDefinition\.apiextensions\.k8s\.io "trials\.\{ns\}\.example\.com" is invalid: \[spec\.versions: Invalid value: \[\{"Name":"v1","Served":true,"Storag/,
    causes: ["FieldValueInvalid spec.versions", "FieldValueInvalid status.storedVersions"],
  },
  {
    title: "a definition has a schema",
    call: defining({ type: "object" }, { versions: [{ name: "v1", served: true, storage: true }] }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.versions[0].schema.openAPIV3Schema: Required value',
    causes: ["FieldValueRequired spec.versions[0].schema.openAPIV3Schema"],
  },
  {
    title: "a schema has a type for every field",
    call: defining({ type: "object", properties: { a: {} } }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[a].type: Required value: must not be empty for specified object fields',
    causes: ["FieldValueRequired spec.validation.openAPIV3Schema.properties[spec].properties[a].type"],
  },
  {
    title: "a list has a schema of its items",
    call: defining({ type: "object", properties: { a: { type: "array" } } }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[a].items: Required value: must be specified',
    causes: ["FieldValueRequired spec.validation.openAPIV3Schema.properties[spec].properties[a].items"],
  },
  {
    title: "a list map's keys are fields of its items",
    call: defining({
      type: "object",
      properties: {
        a: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: { type: "object", properties: { other: { type: "string" } } },
        },
      },
    }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-map-keys: Invalid value: ["name"]: entries must all be names of item properties',
    causes: [
      "FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-map-keys",
    ],
  },
  {
    title: "a list map's keys are required or have a default",
    call: defining({
      type: "object",
      properties: {
        a: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: { type: "object", properties: { name: { type: "string" } } },
        },
      },
    }),
    status: 422,
    message:
      /^CustomResourceDefinition\.apiextensions\.k8s\.io "trials\.\{ns\}\.example\.com" is invalid: spec\.validation\.openAPIV3Schema\.properties\[spec\]\.properties\[a\]\.ite/,
    causes: [
      "FieldValueRequired spec.validation.openAPIV3Schema.properties[spec].properties[a].items.properties[name].default",
    ],
  },
  {
    title: "a list type is one of three",
    call: defining({
      type: "object",
      properties: { a: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "bag" } },
    }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"',
    causes: [
      "FieldValueNotSupported spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-type",
    ],
  },
  {
    title: "a default is of its field's type",
    call: defining({ type: "object", properties: { a: { type: "integer", default: "x" } } }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[a].default: Invalid value: "string":  in body must be of type integer: "string"',
    causes: ["FieldValueTypeInvalid spec.validation.openAPIV3Schema.properties[spec].properties[a].default"],
  },
  {
    title: "a default is what its schema allows",
    call: defining({ type: "object", properties: { a: { type: "integer", minimum: 3, default: 1 } } }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[a].default: Invalid value: 1:  in body should be greater than or equal to 3',
    causes: ["FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].properties[a].default"],
  },
  {
    title: "a default has no unknown fields",
    call: defining({ type: "object", properties: { a: { type: "object", default: { b: 1 } } } }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[a].default: Invalid value: {"b":1}: must not have unknown fields',
    causes: ["FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].properties[a].default"],
  },
  {
    title: "uniqueItems is not supported",
    call: defining({
      type: "object",
      properties: { a: { type: "array", items: { type: "string" }, uniqueItems: true } },
    }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
    causes: ["FieldValueForbidden spec.validation.openAPIV3Schema.properties[spec].properties[a].uniqueItems"],
  },
  {
    title: "fields and additional fields exclude each other",
    call: defining({ type: "object", properties: { a: { type: "string" } }, additionalProperties: { type: "string" } }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive',
    causes: ["FieldValueForbidden spec.validation.openAPIV3Schema.properties[spec].additionalProperties"],
  },
  {
    title: "a type is one of the known types",
    call: defining({ type: "object", properties: { a: { type: "text" } } }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
    causes: ["FieldValueNotSupported spec.validation.openAPIV3Schema.properties[spec].properties[a].type"],
  },
  {
    title: "a rule must compile",
    call: defining({ type: "object", "x-kubernetes-validations": [{ rule: "self.", message: "x" }] }),
    status: 422,
    message:
      /^CustomResourceDefinition\.apiextensions\.k8s\.io "trials\.\{ns\}\.example\.com" is invalid: spec\.validation\.openAPIV3Schema\.properties\[spec\]\.x-kubernetes-validations\[0\]\.rule: Invalid value: \{"Rule":"self\.","Message":"x","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null\}: compilation failed: ERROR: <input>:1:/,
    causes: ["FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"],
  },
  {
    title: "a rule names existing fields",
    call: defining({
      type: "object",
      properties: { a: { type: "string" } },
      "x-kubernetes-validations": [{ rule: "self.b == 'x'" }],
    }),
    status: 422,
    message:
      /^CustomResourceDefinition\.apiextensions\.k8s\.io "trials\.\{ns\}\.example\.com" is invalid: spec\.validation\.openAPIV3Schema\.properties\[spec\]\.x-kubernetes-vali/,
    causes: ["FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"],
  },
  {
    title: "a rule is true or false",
    call: defining({
      type: "object",
      properties: { a: { type: "string" } },
      "x-kubernetes-validations": [{ rule: "self.a" }],
    }),
    status: 422,
    message:
      /^CustomResourceDefinition\.apiextensions\.k8s\.io "trials\.\{ns\}\.example\.com" is invalid: spec\.validation\.openAPIV3Schema\.properties\[spec\]\.x-kubernetes-vali/,
    causes: ["FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"],
  },
  {
    title: "a rule is not empty",
    call: defining({ type: "object", "x-kubernetes-validations": [{ rule: "" }] }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Required value: rule is not specified',
    causes: ["FieldValueRequired spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"],
  },
  {
    title: "a rule's message is one line",
    call: defining({ type: "object", "x-kubernetes-validations": [{ rule: "true", message: "a\nb" }] }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].message: Invalid value: "a\\nb": must not contain line breaks',
    causes: ["FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].message"],
  },
  {
    title: "a rule's reason is one of a few",
    call: defining({ type: "object", "x-kubernetes-validations": [{ rule: "true", reason: "Because" }] }),
    status: 422,
    message:
      /^CustomResourceDefinition\.apiextensions\.k8s\.io "trials\.\{ns\}\.example\.com" is invalid: spec\.validation\.openAPIV3Schema\.properties\[spec\]\.x-kubernetes-vali/,
    causes: [
      "FieldValueNotSupported spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].reason",
    ],
  },
  {
    title: "preserveUnknownFields is no longer supported",
    call: defining({ type: "object" }, { preserveUnknownFields: true }),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
    causes: ["FieldValueInvalid spec.preserveUnknownFields"],
  },
  {
    title: "a column is of a known type",
    call: defining(
      { type: "object" },
      {
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object" } },
            additionalPrinterColumns: [{ name: "A", type: "text", jsonPath: ".a" }],
          },
        ],
      },
    ),
    status: 422,
    message:
      'CustomResourceDefinition.apiextensions.k8s.io "trials.{ns}.example.com" is invalid: spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string',
    causes: ["FieldValueInvalid spec.additionalPrinterColumns[0].type"],
  },
  {
    title: "a scale's paths lead into spec and status",
    call: defining(
      { type: "object" },
      {
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object" } },
            subresources: { scale: { specReplicasPath: ".a", statusReplicasPath: ".b" } },
          },
        ],
      },
    ),
    status: 422,
    message:
      /^CustomResourceDefinition\.apiextensions\.k8s\.io "trials\.\{ns\}\.example\.com" is invalid: \[spec\.subresources\.scale\.specReplicasPath: Invalid value: "\.a": sh/,
    causes: [
      "FieldValueInvalid spec.subresources.scale.specReplicasPath",
      "FieldValueInvalid spec.subresources.scale.statusReplicasPath",
    ],
  },
]);
