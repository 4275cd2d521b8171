import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bodyObject, duplicateFields } from "../../../src/standin/apiserver/http/request-body.ts";
import { Refusal } from "../../../src/standin/apiserver/schema/status.ts";
import { repeatedField } from "../../../src/core/text/repeated-field.ts";
import type { HttpRequest } from "../../../src/ports/http.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";
import { mutated, mutatedBytes, withFields } from "./mutate.ts";
import { runs } from "./runs.ts";

const program = goReadersProgram();
const sample = runs(600, 3000);

const document = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", labels: { b: "c" } },
  data: { d: [{ e: 1 }, [true, null, -0.5e-3]] },
};
const whole = fc.oneof(
  fc.constantFrom(JSON.stringify(document), JSON.stringify(document, undefined, "\t")),
  fc.jsonValue({ noUnicodeString: false }).map((data) => JSON.stringify({ ...document, data })),
);
const fields = [
  '"a":1',
  '"A":2',
  '"\\u0061":3',
  '"kind":"Secret"',
  '"Kind":"Secret"',
  '"metadata":{"name":"b"}',
  '"name":"b"',
  '"__proto__":{"x":1}',
  '"constructor":1',
  '"":0',
  '"a.b":1',
  '"e":[{"f":1,"f":2}]',
];
const puts = [
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  '"',
  "null",
  "NaN",
  "Infinity",
  "-",
  "01",
  "+1",
  "1.",
  ".5",
  "1e400",
  "-1e400",
  "1e-400",
  "9007199254740993",
  "18446744073709551616",
  "-0",
  "\\ud800",
  "\\udc00\\ud800",
  "\\ud83d\\ude00",
  "\\u0000",
  "\\x",
  "\u0000",
  "\t",
  "\n",
  "\ufeff",
  "\u2028",
  "//x\n",
  "/**/",
  "[".repeat(12_000),
  '{"a":'.repeat(300),
  "é",
  "'",
];
const texts = fc.oneof(withFields(whole, fields), mutated(withFields(whole, fields), puts));

/**
 * Two differences that stay. A number beyond 2^53 becomes the nearest number of JavaScript, where the real server keeps 64
 * bits: no field of our kinds needs them. For bytes that are no UTF-8, and for halves of
 * characters, U+FFFD is read, of which Go puts another number.
 */
const merged = (text: string) => text.toWellFormed().replaceAll(/\ufffd+/g, "\ufffd");
const comparable = (json: unknown): unknown =>
  Array.isArray(json)
    ? json.map(comparable)
    : typeof json === "object" && json !== null
      ? Object.fromEntries(Object.entries(json).map(([name, value]) => [merged(name), comparable(value)]))
      : typeof json === "string"
        ? merged(json)
        : Object.is(json, -0)
          ? 0
          : json;

const request = (body: Uint8Array): HttpRequest => ({
  method: "POST",
  target: "/api/v1/namespaces/a/configmaps",
  headers: { "content-type": "application/json" },
  body,
});

describe.skipIf(program === undefined)("JSON, as Kubernetes reads it", () => {
  let go: GoReaders;

  beforeAll(() => {
    go = startGoReaders(program ?? "");
  });
  afterAll(() => go.close());

  test(
    "a body that is read is the object that kube-apiserver reads, with the same fields named twice [readers-json-1]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(
            texts.map((text) => Buffer.from(text)),
            mutatedBytes(texts),
          ),
          async (bytes) => {
            const mine = bodyObject(request(bytes));
            if (mine instanceof Refusal) return;
            const { json, error, strict = [] } = await go.ask("kubeJson", bytes);
            expect(error).toBeUndefined();
            both += 1;
            expect(comparable(mine)).toEqual(comparable(json));
            // A path shows halves of characters as they are written, and Go's as what they became.
            expect(duplicateFields(request(bytes)).length > 0).toBe(strict.length > 0);
            if (/^[\t\n\x20-\x5b\x5d-\x7e]*$/.test(Buffer.from(bytes).toString("latin1")))
              expect([...new Set(duplicateFields(request(bytes)))].sort()).toEqual(
                [...new Set(strict.map((one) => /"(.*)"/s.exec(one)?.[1] ?? ""))].sort(),
              );
            expect(repeatedField(Buffer.from(bytes).toString()) === undefined).toBe(strict.length === 0);
          },
        ),
        sample,
      );
      expect(both).toBeGreaterThan(sample.numRuns / 20);
    },
  );

  test("a whole body is not refused [readers-json-2]", async () => {
    await fc.assert(
      fc.asyncProperty(whole, async (text) => {
        expect((await go.ask("kubeJson", text)).error).toBeUndefined();
        expect(bodyObject(request(Buffer.from(text)))).not.toBeInstanceOf(Refusal);
      }),
      { ...sample, numRuns: Math.min(sample.numRuns, 500) },
    );
  });
});
