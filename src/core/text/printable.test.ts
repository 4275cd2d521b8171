import { expect, test } from "vitest";
import { parse } from "yaml";
import { printable, printableLine, printableYaml } from "./printable.ts";

const hidden = String.fromCodePoint(
  0xad,
  0x34f,
  0x61c,
  0x115f,
  0x17b4,
  0x180e,
  0x200b,
  0x2028,
  0x206a,
  0x206f,
  0x3164,
  0xfe0f,
  0xfeff,
  0xffa0,
  0xfff9,
  0xfffb,
  0x1d173,
  0xe0001,
  0xe0041,
  0xe007f,
  0xe0100,
);

test("what a terminal obeys or shows as nothing is written as an escape, and other text stays [text-printable-1]", () => {
  expect(printable(`a${hidden}b`)).toMatch(/^a(\\u[0-9a-f]{4})+b$/);
  expect(printable("\u001b[2J\u0085\r")).toBe("\\u001b[2J\\u0085\\u000d");
  const plain = "tab\t, line\n, ä, 한국어, עברית, 日本, 🙂, e\u0301, \u00a0";
  expect(printable(plain)).toBe(plain);
  expect(printableLine("a\n\tb")).toBe("a\\u000a\\u0009b");
});

test("JSON and YAML in quotes are the same value with escapes [text-printable-2]", () => {
  expect(JSON.parse(printable(JSON.stringify(hidden)))).toBe(hidden);
  expect(parse(printableYaml(`"${hidden}"`))).toBe(hidden);
  // Readers of YAML in Go take no halves of a character.
  expect(printableYaml('"\u{e0041}"')).toBe('"\\U000e0041"');
});
