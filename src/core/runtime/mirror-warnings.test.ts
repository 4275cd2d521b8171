import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { RegistrySources } from "../../api/foreign/openshift.ts";
import { parseImageReference, printImageReference } from "../images/image-reference.ts";
import { parseRegistriesConf, pullSources } from "../images/registries-conf.ts";
import { acceptsAnything } from "../images/signature-policy.ts";
import { ownPolicy, ownRegistriesConf } from "../render/base-configs.ts";
import type { MirrorRule } from "./merge-mirrors.ts";
import { mirrorWarnings } from "./mirror-warnings.ts";
import { policyPath, registriesConfPath, registriesConfig } from "./registries-config.ts";

const digest = `sha256:${"a".repeat(64)}`;
const releaseImage = `quay.io/ocp/release@${digest}`;

/** A rule of a set of its own, which has its name from where it stands. */
type Given = Pick<MirrorRule, "source" | "mirrors"> & Partial<Pick<MirrorRule, "of" | "policy">>;
const rulesOf = (given: readonly Given[]): readonly MirrorRule[] =>
  given.map((one, i) => ({ of: "digest", policy: undefined, ...one, object: `Set/${i}`, path: "spec.rules[0]" }));

/** What machines get, and what is said about it. */
function made(given: readonly Given[], sources: RegistrySources, release?: string) {
  const rules = rulesOf(given);
  const result = registriesConfig({
    registries: ownRegistriesConf,
    policy: ownPolicy,
    sources,
    releaseImage: release,
    rules,
    policies: [],
  });
  if (result.verdict === "refused") return undefined;
  const textOf = (path: string) => result.files.find((file) => file.path === path)?.text;
  return {
    conf: parseRegistriesConf(textOf(registriesConfPath) ?? ""),
    policy: textOf(policyPath),
    warnings: mirrorWarnings(rules, sources, result.made),
  };
}

const warned = (...given: Parameters<typeof made>): readonly string[] =>
  made(...given)?.warnings.map(
    ({ object, path, reason, remedy }) => `${object}: ${path} ${reason}; ${remedy ?? "no remedy"}`,
  ) ?? ["refused"];

const team = { source: "quay.io/team", mirrors: ["m.example.com/team"] };
const never = { policy: "NeverContactSource" } as const;

describe("settings that do not do what they say are told", () => {
  test.for([
    { title: "nothing of a mirror that is asked", rules: [team], sources: {}, says: [] },
    {
      title: "a mirror of a blocked source: policies are for the name of an image, wherever it comes from",
      rules: [team],
      sources: { blockedRegistries: ["bad.example.com", "quay.io"] },
      says: [
        "Set/0: spec.rules[0].source has no effect: machines refuse images of quay.io/team, from mirrors as well, because Image/cluster spec.registrySources.blockedRegistries[1] blocks quay.io; take the block out; NeverContactSource of a mirror set forbids the source and no mirror",
      ],
    },
    {
      title: "nothing of a block that is for a part of the source",
      rules: [team],
      sources: { blockedRegistries: ["quay.io/team/bad"] },
      says: [],
    },
    {
      title: "a mirror of a source that is not allowed",
      rules: [team, { ...team, source: "quay.io/other" }],
      sources: { allowedRegistries: ["quay.io/other/part"] },
      says: [
        "Set/0: spec.rules[0].source has no effect: machines refuse images of quay.io/team, from mirrors as well, because Image/cluster spec.registrySources.allowedRegistries leaves it out; add quay.io/team there",
      ],
    },
    {
      title: "a mirror in a blocked registry",
      rules: [{ ...team, mirrors: ["m.example.com/team", "n.example.com/team"] }],
      sources: { blockedRegistries: ["*.example.com"] },
      says: ["m", "n"].map(
        (name, i) =>
          `Set/0: spec.rules[0].mirrors[${i}] is never asked: Image/cluster spec.registrySources.blockedRegistries[0] blocks *.example.com; take the mirror out, or the block`,
      ),
    },
    {
      title: "a mirror in a source that another rule forbids",
      rules: [team, { source: "m.example.com", mirrors: ["n.example.com"], ...never }],
      sources: {},
      says: [
        "Set/0: spec.rules[0].mirrors[0] is never asked: Set/1 spec.rules[0].mirrorSourcePolicy forbids to contact m.example.com; take the mirror out, or write AllowContactingSource there",
      ],
    },
    {
      title: "nothing of one that is in a forbidden source, but has a rule of its own",
      rules: [
        team,
        { source: "m.example.com", mirrors: ["n.example.com"], ...never },
        { source: "m.example.com/team", mirrors: ["n.example.com/team"] },
      ],
      sources: {},
      says: [],
    },
    {
      title: "a policy of a rule without mirrors",
      rules: [{ source: "quay.io/team", mirrors: [], ...never }],
      sources: {},
      says: [
        "Set/0: spec.rules[0].mirrorSourcePolicy has no effect: a rule that names no mirror is left out, and does not keep machines from quay.io/team; name a mirror, or add quay.io/team to spec.registrySources.blockedRegistries of the Image config cluster",
      ],
    },
    {
      title: "nothing of one whose source another rule has mirrors for",
      rules: [
        { source: "quay.io/team", mirrors: [], ...never },
        { ...team, ...never },
      ],
      sources: {},
      says: [],
    },
    {
      title: "an order that another rule contradicts",
      rules: [
        { source: "quay.io/team", mirrors: ["b.example.com", "a.example.com"] },
        { source: "quay.io/team", mirrors: ["a.example.com", "b.example.com"] },
      ],
      sources: {},
      says: [
        "Set/0: spec.rules[0].mirrors are asked in another order: a.example.com before b.example.com, because Set/1 spec.rules[0] says so; name them in one order, and each once, in every rule for quay.io/team",
      ],
    },
    {
      title: "nothing of an order for tags and another one for digests",
      rules: [
        { source: "quay.io/team", mirrors: ["b.example.com", "a.example.com"] },
        { of: "tag", source: "quay.io/team", mirrors: ["a.example.com", "b.example.com"] },
      ],
      sources: {},
      says: [],
    },
    {
      title: "an order that no single rule contradicts",
      rules: [
        { source: "quay.io/team", mirrors: ["c.example.com", "a.example.com"] },
        { source: "quay.io/team", mirrors: ["a.example.com", "b.example.com"] },
        { source: "quay.io/team", mirrors: ["b.example.com", "c.example.com"] },
      ],
      sources: {},
      says: [
        "Set/0: spec.rules[0].mirrors are asked in another order: a.example.com before c.example.com, because rules for quay.io/team contradict each other; name them in one order, and each once, in every rule for quay.io/team",
      ],
    },
    {
      title: "a source that comes before a mirror of a rule that does not name it",
      rules: [
        { source: "quay.io/team", mirrors: ["a.example.com"] },
        { source: "quay.io/team", mirrors: ["quay.io/team", "z.example.com"] },
        { source: "quay.io/team", mirrors: ["z.example.com"] },
      ],
      sources: {},
      says: [
        "Set/2: spec.rules[0].mirrors are asked in another order: quay.io/team before z.example.com, because Set/1 spec.rules[0] says so; name them in one order, and each once, in every rule for quay.io/team",
      ],
    },
  ] satisfies readonly {
    title: string;
    rules: readonly Given[];
    sources: RegistrySources;
    says: readonly string[];
  }[])("$title [mirror-warnings-1]", ({ rules, sources, says }) => {
    expect(warned(rules, sources)).toEqual(says);
  });

  test("a block of the release's own repository that leaves machines its images alone [mirror-warnings-2]", () => {
    const mirrored = { source: "quay.io/ocp/release", mirrors: ["m.example.com/ocp"] };
    const only = made([mirrored], { blockedRegistries: ["quay.io/ocp/release"] }, releaseImage);
    expect(only?.warnings).toMatchObject([
      {
        object: "Image/cluster",
        path: "spec.registrySources.blockedRegistries[0]",
        reason: expect.stringContaining("leaves machines no images but those of quay.io/ocp/release") as string,
        remedy: expect.stringContaining("NeverContactSource") as string,
      },
    ]);
    expect(accepts(only?.policy, `quay.io/ocp/release@${digest}`)).toBe(true);
    expect(accepts(only?.policy, `quay.io/team@${digest}`)).toBe(false);
    const others = made([mirrored], { blockedRegistries: ["quay.io/ocp/release", "bad.example.com"] }, releaseImage);
    expect(others?.warnings).toEqual([]);
    expect(accepts(others?.policy, `quay.io/team@${digest}`)).toBe(true);
  });
});

function read(text: string) {
  const reading = parseImageReference(text);
  if (reading.verdict === "refused") throw new Error(reading.problem);
  return reading.reference;
}
const accepts = (policy: string | undefined, image: string): boolean => acceptsAnything(policy, read(image));

const scopes = ["a.example", "a.example/t", "a.example/t/u", "x.b.example", "x.b.example/t", "c.example:5000/t"];
const anyScope = fc.constantFrom(...scopes);
const anyList = fc.uniqueArray(fc.constantFrom(...scopes, "*.b.example", "d.example"), { maxLength: 3 });
const anySources: fc.Arbitrary<RegistrySources> = fc.oneof(
  anyList.map((blockedRegistries) => ({ blockedRegistries })),
  anyList.map((allowedRegistries) => ({ allowedRegistries })),
);
const anyRule: fc.Arbitrary<Given> = fc.record({
  source: anyScope,
  mirrors: fc.uniqueArray(fc.constantFrom(...scopes, "d.example/t"), { minLength: 1, maxLength: 3 }),
  of: fc.constantFrom("digest", "tag"),
  policy: fc.constantFrom(undefined, "NeverContactSource"),
});

test("what is told is what machines do: a mirror that is never asked, a source that is refused [mirror-warnings-3]", () => {
  fc.assert(
    fc.property(fc.array(anyRule, { maxLength: 4 }), anySources, (given, sources) => {
      const allowed = sources.allowedRegistries ?? [];
      const result = made(given, sources);
      if (result === undefined) return;
      for (const [i, { source, mirrors, of }] of given.entries()) {
        if (mirrors.every((mirror) => mirror === source)) continue;
        const told = result.warnings.filter(({ object }) => object === `Set/${i}`).map(({ path }) => path);
        // Of a path that nothing else names.
        const end = of === "digest" ? `/own@${digest}` : "/own:v1";
        const asked = pullSources(result.conf, read(`${source}${end}`));
        const places =
          asked.verdict === "sources" ? asked.sources.map((one) => printImageReference(one.reference)) : [];
        for (const [at, mirror] of mirrors.entries())
          if (mirror !== source)
            expect(told.includes(`spec.rules[0].mirrors[${at}]`)).toBe(!places.includes(`${mirror}${end}`));
        expect(told.includes("spec.rules[0].source")).toBe(
          !accepts(result.policy, `${source}${end}`) && !allowed.some((scope) => scope.startsWith(`${source}/`)),
        );
      }
    }),
    { numRuns: 500 },
  );
});

test("tens of thousands of rules, and of entries in the lists, take time in proportion [mirror-warnings-4]", () => {
  const names = Array.from({ length: 20_000 }, (_, i) => `${"h".repeat(40)}${i}.example/app`);
  const rules = names.map((source) => ({ source, mirrors: [`${source}/m`, "m.example/a"], ...never }));
  const began = process.cpuUsage();
  expect(made(rules, { blockedRegistries: names })?.warnings).toHaveLength(names.length * 2);
  const many = Array.from({ length: 20_000 }, (_, i) => `m${i}.example`);
  expect(
    made(
      [
        { source: "s.example", mirrors: many },
        { source: "s.example", mirrors: many.toReversed() },
      ],
      {},
    )?.warnings,
  ).not.toEqual([]);
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(20);
});
