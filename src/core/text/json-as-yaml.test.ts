import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readJsonOfYaml } from "./json-as-yaml.ts";
import { kubernetesYaml } from "./kubernetes-yaml.ts";

const asYaml = (text: string): unknown => {
  const document = kubernetesYaml(text);
  return document.errors.length === 0 ? { value: document.toJS({ maxAliasCount: 100 }) as unknown } : undefined;
};

describe("JSON under YAML's name", () => {
  test("is read as JSON where YAML's reader finds the same value [text-json-as-yaml-1]", () => {
    let read = 0;
    const strings = fc.string({
      unit: fc.oneof(fc.constantFrom("é", "\n", '"', "\\", "#", ": "), fc.string()),
    });
    const objects = fc.dictionary(
      strings,
      fc.anything({
        key: strings,
        values: [strings, fc.double({ noNaN: true }).map((number) => number + 0), fc.integer()],
      }),
    );
    fc.assert(
      fc.property(objects, (object) => {
        const text = JSON.stringify(object);
        const mine = readJsonOfYaml(text);
        if (mine === undefined) return;
        read += 1;
        expect(mine).toEqual(asYaml(text));
      }),
      { numRuns: 300, seed: 34 },
    );
    expect(read).toBeGreaterThan(100);
  });

  test("of an apply is read as JSON [text-json-as-yaml-2]", () => {
    const object = { kind: "ConfigMap", metadata: { name: "a" }, data: { text: 'line\nof "text"', n: [1, 2.5, null] } };
    expect(readJsonOfYaml(JSON.stringify(object))).toEqual({ value: object });
  });

  test.for([
    { what: "a key that stands there twice", text: '{"a":1,"a":2}' },
    { what: "a key that YAML merges", text: '{"<<":{"a":1}}' },
    { what: "half of a character", text: '{"a":"\\ud800"}' },
    { what: "a slash behind a backslash", text: '{"a":"\\/"}' },
    { what: "the negative zero", text: '{"a":-0}' },
    { what: "several lines", text: '{\n"a":1}' },
    { what: "a character that YAML wants escaped", text: '{"a":"\u0085"}' },
    { what: "a key of more than a thousand characters", text: `{"${'\\"'.repeat(600)}":1}` },
    { what: "YAML", text: "{a: 1}" },
    { what: "a list", text: "[1]" },
  ])("$what is left to YAML's reader [text-json-as-yaml-3]", ({ text }) => {
    expect(readJsonOfYaml(text)).toBeUndefined();
  });
});
