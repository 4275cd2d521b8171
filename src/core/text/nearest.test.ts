import { describe, expect, test } from "vitest";
import { nearestOf } from "./nearest.ts";

describe("the word that was meant", () => {
  test.each([
    ["chornyd.service", "chronyd.service"],
    ["chronyd.servic", "chronyd.service"],
    ["crio.servicee", "crio.service"],
    ["krio.service", "crio.service"],
  ])("%s: %s [text-nearest-1]", (word, meant) => {
    expect(nearestOf(word, ["kubelet.service", "crio.service", "chronyd.service"])).toBe(meant);
  });

  test.each(["app-typo.service", "abc", ""])("none for %o [text-nearest-2]", (word) => {
    expect(nearestOf(word, ["kubelet.service", "crio.service", "xyz"])).toBe(undefined);
  });
});
