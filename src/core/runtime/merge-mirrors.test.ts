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

test("rules that disagree about the source are refused: each names one that says otherwise, and what to do [runtime-merge-mirrors-2]", () => {
  const rules = [rule(["a"], "NeverContactSource"), rule(["b"], undefined, "ImageTagMirrorSet/b")];
  const place = "spec.imageDigestMirrors[0]";
  const path = `${place}.mirrorSourcePolicy`;
  const same = "must be the same in every rule for source.example/app";
  expect(mirrorsOf(...rules)).toEqual([
    {
      object: "ImageDigestMirrorSet/a",
      path,
      reason: `${same}; ImageTagMirrorSet/b ${place} says otherwise`,
      remedy: "write AllowContactingSource here, or NeverContactSource there",
      against: "ImageTagMirrorSet/b",
    },
    {
      object: "ImageTagMirrorSet/b",
      path,
      reason: `${same}; ImageDigestMirrorSet/a ${place} says otherwise`,
      remedy: "write NeverContactSource here, or AllowContactingSource there",
      against: "ImageDigestMirrorSet/a",
    },
  ]);
});

test("a rule without mirrors disagrees like any other, and is to be taken out [runtime-merge-mirrors-5]", () => {
  const idle = rule([], undefined, "ImageDigestMirrorSet/idle");
  const rules = [idle, rule(["a"], "NeverContactSource"), rule(["b"], undefined, "ImageDigestMirrorSet/b")];
  expect(mirrorsOf(...rules)).toMatchObject([
    { object: "ImageDigestMirrorSet/a", against: "ImageDigestMirrorSet/b" },
    { object: "ImageDigestMirrorSet/idle", remedy: "take this rule out: it names no mirror" },
    { object: "ImageDigestMirrorSet/b", against: "ImageDigestMirrorSet/a" },
  ]);
  expect(mirrorsOf(idle, rule([], "NeverContactSource"))).toHaveLength(2);
});

test("an ImageContentSourcePolicy has no policy to change: another kind is named that has one [runtime-merge-mirrors-6]", () => {
  const old = { ...rule(["b"], undefined, "ImageContentSourcePolicy/old"), path: "spec.repositoryDigestMirrors[0]" };
  expect(mirrorsOf(rule(["a"]), old)).toEqual([["a", "b"]]);
  expect(mirrorsOf(rule(["a"], "NeverContactSource"), old)).toMatchObject([
    {
      object: "ImageDigestMirrorSet/a",
      remedy:
        "write AllowContactingSource here, or make the rule there one of an ImageDigestMirrorSet with NeverContactSource",
    },
    {
      object: "ImageContentSourcePolicy/old",
      path: "spec.repositoryDigestMirrors[0]",
      reason:
        "lets machines contact source.example/app, as every rule of an ImageContentSourcePolicy does; ImageDigestMirrorSet/a spec.imageDigestMirrors[0] forbids it",
      remedy:
        "write AllowContactingSource there, or make this rule one of an ImageDigestMirrorSet with NeverContactSource",
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
