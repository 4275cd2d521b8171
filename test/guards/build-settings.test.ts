import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { buildConfigKeys } from "../../src/core/build/build-settings.ts";
import { buildSettings } from "../../src/core/build/build-settings.ts";
import { root } from "./source-files.ts";

/** The rows of the page on image builds, one for each key. */
const rows = readFileSync(join(root, "docs/os-images.md"), "utf8")
  .split("\n")
  .flatMap((line) => {
    const [, keys = "", value = "", byDefault = "", example = "", meaning = ""] = line
      .split("|")
      .map((cell) => cell.trim());
    const words = (cell: string) => [...cell.matchAll(/`([^`]*)`/g)].map(([, word = ""]) => word);
    return words(keys).map((key, place) => ({
      key,
      value,
      // A default that is no word is a sentence.
      byDefault: words(byDefault)[place],
      example: words(example)[place] ?? "",
      meaning,
    }));
  })
  .filter(({ key }) => Object.values<string>(buildConfigKeys).includes(key));

test("the page on image builds names every key of their ConfigMap once, with its value, default and example [guards-build-settings-1]", () => {
  expect(rows.map(({ key }) => key).toSorted()).toEqual(Object.values(buildConfigKeys).toSorted());
  for (const row of rows) for (const cell of [row.value, row.example, row.meaning]) expect(cell, row.key).not.toBe("");
});

test("each example is accepted, and each default is what counts without the key [guards-build-settings-2]", () => {
  const without = buildSettings(undefined);
  for (const { key, example, byDefault } of rows) {
    expect(buildSettings({ [key]: example }).problems, key).toEqual([]);
    if (byDefault !== undefined) expect(buildSettings({ [key]: byDefault }), key).toEqual(without);
  }
});
