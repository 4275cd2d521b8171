import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalQuantity, isQuantity, isZeroQuantity, parseQuantity } from "./quantities.ts";

const part = fc.constantFrom("", "-", "+", "0", "1", "9", "10", "512", "1000", "1024", ".", ".5", "00");
const suffix = fc.constantFrom(
  "",
  "n",
  "u",
  "m",
  "k",
  "M",
  "G",
  "T",
  "P",
  "E",
  "Ki",
  "Mi",
  "Gi",
  "Ti",
  "Pi",
  "Ei",
  "e3",
);
const texts = fc.oneof(
  fc.tuple(part, part, part, suffix).map((parts) => parts.join("")),
  fc.string({ maxLength: 6 }),
  fc.constantFrom("9".repeat(1024), "9".repeat(1025), " 1", "1 ", "1e1234", "K", "1ki", "1\n"),
);

test("a text is a quantity, or one of 0, exactly if it is read as one [schema-quantities-1]", () => {
  fc.assert(
    fc.property(texts, (text) => {
      expect([text, isQuantity(text), isZeroQuantity(text)]).toEqual([
        text,
        parseQuantity(text) !== undefined,
        parseQuantity(text) === 0n,
      ]);
    }),
    { numRuns: 5000 },
  );
});

test.each([
  ["1Gi", "1Gi"],
  ["999Mi", "999Mi"],
  ["1024Mi", "1Gi"],
  ["1000m", "1"],
  ["500m", "500m"],
  ["1000", "1k"],
  ["1001", "1001"],
  ["0Gi", "0"],
  ["0500m", "500m"],
  ["1.5Gi", "1536Mi"],
  ["100k", "100k"],
])("%s is written back as %s [schema-quantities-2]", (text, written) => {
  expect(canonicalQuantity(text)).toBe(written);
  expect(parseQuantity(written)).toBe(parseQuantity(text));
});
