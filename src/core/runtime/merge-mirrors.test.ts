import { expect, test } from "vitest";
import { type MirrorRule, mergeMirrors } from "./merge-mirrors.ts";
import { registriesConfig } from "./registries-config.ts";

const rule = (
  mirrors: readonly string[],
  policy?: MirrorRule["policy"],
  object = "ImageDigestMirrorSet/a",
): MirrorRule => ({
  object,
  path: "spec.imageDigestMirrors[0]",
  of: "digest",
  source: "source.example/app",
  mirrors,
  policy,
});
const mirrorsOf = (...rules: readonly MirrorRule[]) => {
  const merged = mergeMirrors(rules);
  return merged.verdict === "merged" ? merged.merged.map(({ mirrors }) => mirrors) : merged.problems;
};

test.for([
  { title: "in the order of one rule", rules: [["c", "a", "b"]], is: ["c", "a", "b"] },
  { title: "of two rules by name where neither says more", rules: [["b"], ["a"]], is: ["a", "b"] },
  {
    title: "of rules that contradict each other by name",
    rules: [
      ["b", "a"],
      ["a", "b"],
    ],
    is: ["a", "b"],
  },
  {
    title: "with the source where a rule has it before others",
    rules: [["source.example/app", "a"]],
    is: ["source.example/app", "a"],
  },
])("mirrors come $title [runtime-merge-mirrors-1]", ({ rules, is }) => {
  expect(mirrorsOf(...rules.map((mirrors) => rule(mirrors)))).toEqual([is]);
});

test("rules that disagree about the source are refused, and both are named [runtime-merge-mirrors-2]", () => {
  expect(mirrorsOf(rule(["a"], "NeverContactSource"), rule(["b"], undefined, "ImageTagMirrorSet/b"))).toEqual([
    {
      object: "ImageDigestMirrorSet/a",
      path: "spec.imageDigestMirrors[0].mirrorSourcePolicy",
      reason:
        "must be the same in every rule for source.example/app; ImageTagMirrorSet/b spec.imageDigestMirrors[0] says otherwise",
    },
  ]);
});

test("a set of the largest size is merged in little time [runtime-merge-mirrors-3]", () => {
  const mirrors = Array.from({ length: 50_000 }, (_, i) => `m${i}.example`);
  expect(mirrorsOf(rule(mirrors), rule(mirrors.toReversed()))).toHaveLength(1);
});

test("forty thousand sources and as many other lists take time in proportion [runtime-merge-mirrors-4]", () => {
  const names = Array.from({ length: 40_000 }, (_, i) => `${"h".repeat(60)}${i}.example/app`);
  const began = process.cpuUsage();
  const config = registriesConfig({
    registries: "",
    policy: "{}",
    sources: { blockedRegistries: names.map((name) => `${name}/blocked`), insecureRegistries: names },
    releaseImage: undefined,
    rules: names.map((source) => ({ ...rule(["m.example/a"]), source })),
    policies: [],
  });
  expect(config.verdict).toBe("files");
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(20);
});
