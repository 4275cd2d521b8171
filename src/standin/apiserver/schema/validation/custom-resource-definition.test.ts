import { RE2JS } from "re2js";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { KubeObject } from "../contract.ts";
import { definitionsOf, establish } from "./custom-resource-definition.ts";
import { cloneJson } from "../json-values.ts";

function crd(
  properties: Record<string, unknown>,
  edit: (object: KubeObject & { spec: Record<string, unknown> }) => void = () => undefined,
): KubeObject {
  const object = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "things.x.io" },
    spec: {
      group: "x.io",
      scope: "Cluster",
      names: { plural: "things", kind: "Thing", shortNames: ["th"], categories: ["all"] },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties } } } },
          subresources: {
            status: {},
            scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
          },
          additionalPrinterColumns: [{ name: "Mode", type: "string", jsonPath: ".spec.mode" }],
        },
      ],
    },
  };
  edit(object);
  return object;
}
function refusals(object: KubeObject): string[] {
  const result = definitionsOf(object);
  return result.verdict === "refused" ? result.errors.map((error) => `${error.field}: ${error.message}`) : [];
}
const root = "spec.validation.openAPIV3Schema.properties[spec]";

test("a good definition is served", () => {
  const result = definitionsOf(
    crd({
      mode: { type: "string", enum: ["a"] },
      port: { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] },
    }),
  );
  expect(result).toMatchObject({
    verdict: "served",
    storageVersion: "v1",
    definitions: [
      {
        group: "x.io",
        version: "v1",
        kind: "Thing",
        listKind: "ThingList",
        singular: "thing",
        hasStatus: true,
        custom: true,
        namespaced: false,
        scale: { specReplicasPath: ".spec.replicas" },
      },
    ],
  });
});

describe("a definition is refused", () => {
  test.for<[string, Record<string, unknown>, string]>([
    [
      "for a field without type",
      { a: {} },
      `${root}.properties[a].type: Required value: must not be empty for specified object fields`,
    ],
    [
      "for items without type",
      { a: { type: "array", items: {} } },
      `${root}.properties[a].items.type: Required value: must not be empty for specified array items`,
    ],
    [
      "for a list without items",
      { a: { type: "array" } },
      `${root}.properties[a].items: Required value: must be specified`,
    ],
    [
      "for an unknown type",
      { a: { type: "text" } },
      `${root}.properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"`,
    ],
    [
      "for const",
      { a: { type: "string", const: "x" } },
      `${root}.properties[a].const: Forbidden: const is not supported`,
    ],
    [
      "for patternProperties",
      { a: { type: "object", patternProperties: {} } },
      `${root}.properties[a].patternProperties: Forbidden: patternProperties is not supported`,
    ],
    [
      "for $ref",
      { a: { type: "object", $ref: "#/x" } },
      `${root}.properties[a].$ref: Forbidden: $ref is not supported`,
    ],
    [
      "for a list map whose key may be absent",
      {
        a: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["k"],
          items: { type: "object", properties: { k: { type: "string" } } },
        },
      },
      `${root}.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
    ],
    [
      "for a list map without keys",
      { a: { type: "array", "x-kubernetes-list-type": "map", items: { type: "object" } } },
      `${root}.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`,
    ],
    [
      "for types inside anyOf",
      { a: { type: "string", anyOf: [{ type: "string" }] } },
      `${root}.properties[a].anyOf[0].type: Forbidden: must be empty to be structural`,
    ],
    [
      "for fields that stand only inside oneOf",
      { a: { type: "object", oneOf: [{ properties: { b: { minLength: 1 } } }] } },
      `${root}.properties[a].properties[b]: Required value: because it is defined in ${root}.properties[a].oneOf[0].properties[b]`,
    ],
    [
      "for a default that breaks the schema",
      { a: { type: "string", enum: ["x"], default: "y" } },
      `${root}.properties[a].default: Unsupported value: "y": supported values: "x"`,
    ],
    [
      "for a pattern that RE2 does not know",
      { a: { type: "string", pattern: "(?=x)" } },
      `${root}.properties[a].pattern: Invalid value: "(?=x)": must be a valid regular expression, but isn't: error parsing regexp: invalid or unsupported Perl syntax: \`(?=\``,
    ],
    [
      "for properties beside additionalProperties",
      { a: { type: "object", properties: { b: { type: "string" } }, additionalProperties: { type: "string" } } },
      `${root}.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`,
    ],
  ])("%s", ([, properties, refusal]) => {
    expect(refusals(crd(properties))).toEqual([refusal]);
  });

  test.for<[string, string, RegExp]>([
    ["for a rule that does not parse", "self.a ==", /rule: Invalid value: .*compilation failed: ERROR: <input>:1:1: /],
    ["for an unknown function", "whatever(self.a)", /compilation failed: .*undeclared reference to 'whatever'/],
    ["for an unknown field", "self.b == 'x'", /compilation failed: .*undefined field 'b'/],
    ["for a rule that is no bool", "size(self.a)", /cel expression must evaluate to a bool/],
  ])("%s", ([, rule, text]) => {
    const object = crd({ a: { type: "string" } }, ({ spec }) => {
      const [version] = spec["versions"] as {
        schema: { openAPIV3Schema: { properties: { spec: Record<string, unknown> } } };
      }[];
      if (version !== undefined)
        version.schema.openAPIV3Schema.properties.spec["x-kubernetes-validations"] = [{ rule }];
    });
    const [first = ""] = refusals(object);
    expect(first).toContain(`${root}.x-kubernetes-validations[0].rule`);
    expect(first).toMatch(text);
  });

  test("for a rule on labels: of the metadata rules see the names", () => {
    const ruled = (rule: string): string[] =>
      refusals(
        crd({}, ({ spec }) => {
          const [version] = spec["versions"] as { schema: { openAPIV3Schema: Record<string, unknown> } }[];
          if (version !== undefined) version.schema.openAPIV3Schema["x-kubernetes-validations"] = [{ rule }];
        }),
      );
    expect(ruled("self.metadata.name == 'cluster'")).toEqual([]);
    expect(ruled("self.metadata.labels.x == 'y'")[0]).toContain("undefined field 'labels'");
  });

  test("for names and versions that do not fit", () => {
    expect(refusals(crd({}, (object) => (object.metadata.name = "wrong")))).toEqual([
      'metadata.name: Invalid value: "wrong": must be spec.names.plural+"."+spec.group',
    ]);
    expect(refusals(crd({}, ({ spec }) => (spec["versions"] = [])))).toEqual([
      "spec.versions: Invalid value: []: must have exactly one version marked as storage version",
      "status.storedVersions: Invalid value: null: must have at least one stored version",
    ]);
    expect(refusals(crd({}, ({ spec }) => (spec["scope"] = "ObservedCluster")))).toEqual([
      'spec.scope: Unsupported value: "ObservedCluster": supported values: "Cluster", "Namespaced"',
    ]);
  });
});

describe("establish", () => {
  test("accepts free names and keeps the time of the first acceptance", () => {
    const once = establish(crd({}), [], "2026-01-01T00:00:00Z");
    expect(once["status"]).toMatchObject({
      conditions: [
        { type: "NamesAccepted", status: "True", reason: "NoConflicts", lastTransitionTime: "2026-01-01T00:00:00Z" },
        { type: "Established", status: "True", reason: "InitialNamesAccepted" },
      ],
      acceptedNames: { plural: "things", singular: "thing", kind: "Thing", listKind: "ThingList", shortNames: ["th"] },
      storedVersions: ["v1"],
    });
    expect(establish(once, [], "2027-01-01T00:00:00Z")).toEqual(once);
  });
  test("refuses names that another kind of the group has", () => {
    const other = definitionsOf(
      crd({}, (object) => {
        object.metadata.name = "others.x.io";
        object.spec["names"] = { plural: "others", singular: "other", kind: "Thing" };
      }),
    );
    const definitions = other.verdict === "served" ? other.definitions : [];
    const status = cloneJson(establish(crd({}), definitions, "t")["status"]);
    expect(status).toMatchObject({
      conditions: [
        {
          type: "NamesAccepted",
          status: "False",
          reason: "ListKindConflict",
          message: '"ThingList" is already in use',
        },
        { type: "Established", status: "False", reason: "NotAccepted" },
      ],
    });
  });
});

describe("patterns of a definition", () => {
  /** How often expressions are compiled from now on. */
  function compilations(): () => number {
    const compile = vi.spyOn(RE2JS, "compile");
    onTestFinished(() => compile.mockRestore());
    return () => compile.mock.calls.length;
  }
  const text = { type: "string" };
  const tooLarge = "must not compile to more than 50000 instructions";

  test.for([
    ["repeats", "a{1000}".repeat(60)],
    ["repeated groups", "(ab?c?){1000}".repeat(15)],
    ["classes", `[${"\\p{L}".repeat(200)}]`],
    ["folded classes", `(?i)[${"b-\u{10fffe}".repeat(20)}]`],
  ] as const)("are refused before they are compiled: %s [apiserver-expressions-10]", ([, pattern]) => {
    const counted = compilations();
    const field = `${root}.properties[a].pattern`;
    expect(refusals(crd({ a: { ...text, pattern } }))).toEqual([`${field}: Forbidden: ${tooLarge}`]);
    expect(counted()).toBe(0);
  });

  test("are refused together: those of fields and of rules [apiserver-expressions-11]", () => {
    const counted = compilations();
    const large = (index: number) => `${index}${"a{1000}".repeat(21)}`;
    const rule = (index: number) => ({
      ...text,
      "x-kubernetes-validations": [{ rule: `self.matches('${large(index)}')` }],
    });
    const field = (index: number) => ({ ...text, allOf: [{ pattern: large(index) }] });
    const five = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`r${index}`, rule(index)]));
    const more = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`f${index}`, field(5 + index)]));
    expect(refusals(crd({ ...five, ...more }))).toEqual([
      "spec.versions: Forbidden: different patterns must not compile to more than 200000 instructions together",
    ]);
    expect(counted()).toBe(0);
  });

  test("count once, however often they are used [apiserver-expressions-12]", () => {
    const pattern = "^[a-z]([a-z0-9-]{0,120}[.]){8}$";
    const fields = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`f${index}`, { ...text, pattern }]));
    expect(refusals(crd(fields))).toEqual([]);
  });
});

describe("paths of a definition", () => {
  const withPaths = (columns: readonly string[], fields: readonly string[] = []): KubeObject =>
    crd({}, (object) => {
      const [version] = object.spec["versions"] as Record<string, unknown>[];
      if (version === undefined) return;
      version["additionalPrinterColumns"] = columns.map((jsonPath, index) => ({
        name: `C${index}`,
        type: "string",
        jsonPath,
      }));
      version["selectableFields"] = fields.map((jsonPath) => ({ jsonPath }));
    });
  test.for<[string, KubeObject, string]>([
    [
      "a path of many steps",
      withPaths([`.spec${"..a".repeat(32)}`]),
      "spec.additionalPrinterColumns[0].jsonPath: Invalid value",
    ],
    [
      "many steps together",
      withPaths(Array.from({ length: 129 }, () => ".spec..a")),
      "spec.additionalPrinterColumns: Forbidden: the paths must not have more than 256 steps together: remove columns",
    ],
    ["a search of a selectable field", withPaths([], [".spec..a"]), "spec.selectableFields[0].jsonPath: Invalid value"],
    ["a selectable field of a list", withPaths([], [".spec.l[0]"]), "spec.selectableFields[0].jsonPath: Invalid value"],
    [
      "many selectable fields",
      withPaths(
        [],
        Array.from({ length: 9 }, (_, index) => `.spec.a${index}`),
      ),
      "spec.selectableFields: Too many: 9: must have at most 8 items",
    ],
  ])("%s: refused [apiserver-json-path-4]", ([, object, refusal]) => {
    expect(refusals(object)).toEqual([expect.stringContaining(refusal)]);
  });
  test("columns and selectable fields of the usual size are served [apiserver-json-path-5]", () => {
    const conditions = Array.from({ length: 25 }, () => '.status.conditions[?(@.type=="Ready")].status');
    expect(refusals(withPaths(conditions, [".spec.mode", ".spec.color-of-all"]))).toEqual([]);
  });
});

describe("rules of a definition", () => {
  const text = { type: "string" };
  const rules = (count: number, rule: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => ({ rule: rule(index) }));
  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, text]));
  /** Objects within objects, each of whose fields has the same name as another one. */
  const tree = (depth: number): Record<string, unknown> =>
    depth === 0
      ? text
      : {
          type: "object",
          properties: Object.fromEntries(["a", "b", "c", "d"].map((name) => [name, tree(depth - 1)])),
        };
  const beyond = "the rules of a definition must not weigh more than 100000";

  test("are refused together where they are many [apiserver-rule-weight-1]", () => {
    const many = crd({ many: { ...text, "x-kubernetes-validations": rules(5_001, (index) => `self != '${index}'`) } });
    expect(refusals(many)).toEqual([
      expect.stringMatching(`^spec[.]versions.*[.]many[.].*validations: Forbidden: ${beyond}`),
    ]);
  });

  test("are refused together where each looks at many properties [apiserver-rule-weight-2]", () => {
    const wide = {
      ...tree(5),
      "x-kubernetes-validations": rules(
        100,
        (index) => `has(self.a) && has(self.b) && has(self.c) && has(self.d) || ${index} > 0`,
      ),
    };
    expect(refusals(crd({ wide }))).toEqual([expect.stringContaining(beyond)]);
  });

  test("one that looks at too many is refused at its field [apiserver-rule-weight-3]", () => {
    const rule = "has(self.a) && has(self.b) && has(self.c) && has(self.d)";
    const large = { ...tree(8), "x-kubernetes-validations": [{ rule }] };
    expect(refusals(crd({ large }))).toEqual([expect.stringContaining("its names occur too often in the schema")]);
  });

  test("look at the properties that they name, of however many [apiserver-rule-weight-4]", () => {
    const wide = {
      type: "object",
      properties: fields(5_000),
      "x-kubernetes-validations": rules(1_000, (index) => `self.a1 != '${index % 10}'`),
    };
    expect(refusals(crd({ wide }))).toEqual([]);
  });
});
