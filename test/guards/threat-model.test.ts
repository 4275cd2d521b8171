import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source-files.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");

test("every test that the threat model names exists [guards-threat-model-1]", () => {
  const model = read("docs/threat-model.md");
  const named = [...model.matchAll(/[[`]([a-z]+(?:-[a-z0-9]+)*-\d+)[\]`]/g)].map(([, id = ""]) => id);
  const titles = globSync("{src,test}/**/*.test.ts", { cwd: root }).map(read).join("\n");
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter((id) => !titles.includes(`[${id}]`))).toEqual([]);
});
