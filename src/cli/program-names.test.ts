import { expect, test } from "vitest";
import { verbOf } from "./program-names.ts";

test.for<[program: string, words: readonly string[], read: readonly string[]]>([
  ["/usr/bin/machine-config-daemon", ["start"], ["daemon", "start"]],
  ["mco.mjs", ["machine-config-server", "start"], ["server", "start"]],
  ["mco.mjs", ["toString"], ["toString"]],
  ["/bin/constructor", ["up"], ["up"]],
])("%s %j is %j [program-names-1]", ([program, words, read]) => {
  expect(verbOf(program, words)).toEqual(read);
});
