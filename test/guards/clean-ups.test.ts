import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source-files.ts";

/** Hooks that a module registers when it is loaded. */
const ofModule = /^(?:before|after)(?:All|Each)\(/m;

test("no support of tests registers hooks as it is loaded: files that share a process load it once [guards-cleanups-1]", () => {
  const offences = globSync(["src/**/*.ts", "test/**/*.ts"], { cwd: root })
    .filter((path) => !path.endsWith(".test.ts") && path !== "test/support/each-file.ts")
    .filter((path) => ofModule.test(readFileSync(join(root, path), "utf8")));
  expect(offences).toEqual([]);
  expect(ofModule.test("const a = [];\nafterAll(() => {});\n")).toBe(true);
});
