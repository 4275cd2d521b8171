import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { repeatedField } from "./repeated-field.ts";

describe("a field that a JSON object has twice", () => {
  const cases = [
    { title: "at the top", text: '{"a":1,"a":2}', is: "a" },
    { title: "in a list of objects", text: '[{"b":{"c":1 , "c" :2}}]', is: "c" },
    { title: "written with an escape", text: '{"a":1,"\\u0061":2}', is: "a" },
    { title: "behind a string that looks like the end", text: '{"a":"}\\\\\\"","a":2}', is: "a" },
    { title: "named like a part of every object", text: '{"__proto__":1,"__proto__":2}', is: "__proto__" },
    { title: "in two objects", text: '[{"a":1},{"a":{"a":"a"}}]', is: undefined },
    { title: "as a value", text: '["a","a",{"a":"a"}]', is: undefined },
  ];
  test.for(cases)("$title", ({ text, is }) => expect(repeatedField(text)).toBe(is));

  test("is not found where JSON.stringify wrote the text", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(repeatedField(text)).toBeUndefined();
      }),
    );
  });

  test("strings of any length are passed over", () => {
    expect(repeatedField(JSON.stringify({ a: '\\"'.repeat(800_000) }))).toBeUndefined();
  });
});
