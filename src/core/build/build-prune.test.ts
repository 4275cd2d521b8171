import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations, labels } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { type PruneFacts, prunePlan, pruneRules } from "./build-prune.ts";

const start = Date.UTC(2026, 0, 1);
const day = 86_400_000;
const digest = (letter: string | number) => `sha256:${String(letter).repeat(64).slice(0, 64)}`;
const pullspec = (letter: string | number) => `r.example.com/os@${digest(letter)}`;

function build(
  name: string,
  more: {
    config?: string;
    phase?: string;
    image?: string;
    ageMs?: number;
    has?: Readonly<Record<string, string>>;
  } = {},
): MachineOSBuild {
  const { config = "worker", phase = "Succeeded", image, ageMs = 10 * day, has = {} } = more;
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineOSBuild",
    metadata: { name, creationTimestamp: timestampOf(start - ageMs), annotations: { ...has } },
    spec: {
      machineConfig: { name: "rendered-worker-1" },
      machineOSConfig: { name: config },
      renderedImagePushSpec: "r.example.com/os:x",
    },
    status: {
      conditions: [{ type: phase, status: "True", reason: "x", message: "", lastTransitionTime: timestampOf(start) }],
      ...(image === undefined ? {} : { digestedImagePushSpec: image }),
    },
  };
}

const facts = (builds: readonly MachineOSBuild[], more: Partial<PruneFacts> = {}): PruneFacts => ({
  builds,
  machineOSConfigs: new Map([["worker", { current: undefined, image: undefined }]]),
  used: [],
  now: start,
  rules: { ...pruneRules, succeeded: 0, failed: 0 },
  ...more,
});

describe("what is pruned", () => {
  test("an image that nothing uses is marked first, and deleted a quarter of an hour later if still nothing uses it", () => {
    const one = build("a", { image: pullspec(1) });
    const first = prunePlan(facts([one]));
    expect(first.mark).toEqual([{ build: "a", after: "2026-01-01T00:15:00Z" }]);
    expect(first.remove).toEqual([]);
    expect(first.nextAt).toBe(start + 15 * 60_000);
    const marked = build("a", { image: pullspec(1), has: { [annotations.pruneAfter]: first.mark[0]?.after ?? "" } });
    expect(prunePlan(facts([marked])).remove).toEqual([]);
    expect(prunePlan(facts([marked], { now: start + 15 * 60_000 })).remove.map(({ image }) => image)).toEqual([
      pullspec(1),
    ]);
    const back = prunePlan(facts([marked], { now: start + 15 * 60_000, used: [pullspec(1)] }));
    expect(back).toMatchObject({ remove: [], unmark: ["a"] });
  });

  test("of an image that came with an installation, the build goes alone [build-prune-adopted-1]", () => {
    const past = { has: { [annotations.pruneAfter]: timestampOf(start) } };
    const of = (name: string, image: string) => build(name, { image, ...past });
    const adopted = (name: string, image: string) => {
      const made = of(name, image);
      return { ...made, metadata: { ...made.metadata, labels: { [labels.preBuiltImage]: "true" } } };
    };
    const removed = (...builds: readonly MachineOSBuild[]) =>
      prunePlan(facts(builds)).remove.map((one) => [one.build.metadata.name, one.image]);
    expect(removed(adopted("a", pullspec(1)))).toEqual([["a", undefined]]);
    // One that pushed the same image removes it, whichever goes first.
    for (const names of [
      ["a", "b"],
      ["b", "a"],
    ] as const)
      expect(removed(adopted(names[0], pullspec(1)), of(names[1], pullspec(1))).sort()).toEqual(
        names.map((name, index) => [name, index === 0 ? undefined : pullspec(1)]).sort(),
      );
  });

  test.for([
    {
      title: "the current build",
      more: {},
      given: { machineOSConfigs: new Map([["worker", { current: "a", image: undefined }]]) },
      kept: "current",
    },
    {
      title: "an image that a node names, under whatever repository",
      more: { image: pullspec(1) },
      given: { used: [`mirror.example.com/x@${digest(1)}`] },
      kept: "inUse",
    },
    {
      title: "an image that some other MachineOSConfig rolls out",
      more: { image: pullspec(1) },
      given: {
        machineOSConfigs: new Map([
          ["worker", { current: undefined, image: undefined }],
          ["infra", { current: undefined, image: pullspec(1) }],
        ]),
      },
      kept: "inUse",
    },
    { title: "a build that runs", more: { phase: "Building" }, given: {}, kept: "running" },
    { title: "a build that is pinned", more: { has: { [annotations.keepBuild]: "true" } }, given: {}, kept: "pinned" },
    { title: "a young build", more: { ageMs: day - 1000 }, given: {}, kept: "young" },
    {
      title: "one of the last finished ones",
      more: {},
      given: { rules: { ...pruneRules, succeeded: 1 } },
      kept: "recent",
    },
    {
      title: "one of the last failed ones",
      more: { phase: "Failed" },
      given: { rules: { ...pruneRules, failed: 1 } },
      kept: "recent",
    },
  ])("$title is kept", ({ more, given, kept }) => {
    const plan = prunePlan(facts([build("a", more)], given as Partial<PruneFacts>));
    expect(plan).toMatchObject({ mark: [], remove: [] });
    expect(plan.kept.get("a")).toBe(kept);
  });

  test("a failed build without an image goes at once when it is old; interrupted ones have no place among the last", () => {
    expect(
      prunePlan(facts([build("a", { phase: "Failed" })])).remove.map(({ build: each, image }) => [
        each.metadata.name,
        image,
      ]),
    ).toEqual([["a", undefined]]);
    expect(prunePlan(facts([build("a", { phase: "Interrupted" })], { rules: pruneRules })).remove).toHaveLength(1);
  });

  test("a digest that a build which stays names is not deleted with another build", () => {
    const has = { [annotations.pruneAfter]: timestampOf(start) };
    const plan = prunePlan(
      facts([
        build("a", { image: pullspec(1), has }),
        build("b", { image: pullspec(1), has: { [annotations.keepBuild]: "true" } }),
      ]),
    );
    expect(plan.remove).toMatchObject([{ build: { metadata: { name: "a" } }, image: undefined }]);
  });

  test.for(["r.example.com:443", "R.Example.com"])(
    "an image that a build which stays names at %s is not deleted with another build [build-prune-2]",
    (host) => {
      const image = `${host}/os@${digest(1)}`;
      const has = { [annotations.pruneAfter]: timestampOf(start) };
      const going = build("a", { image: pullspec(1), has });
      const keeping = build("b", { image, has: { [annotations.keepBuild]: "true" } });
      expect(prunePlan(facts([going, keeping])).remove).toMatchObject([{ image: undefined }]);
      const both = prunePlan(facts([going, build("b", { image, has })]));
      expect(both.remove.flatMap(({ image: gone }) => gone ?? [])).toHaveLength(1);
    },
  );

  test("two builds that go and name one digest delete it once", () => {
    const has = { [annotations.pruneAfter]: timestampOf(start) };
    const plan = prunePlan(facts([build("a", { image: pullspec(1), has }), build("b", { image: pullspec(1), has })]));
    expect(plan.remove.flatMap(({ image }) => image ?? [])).toEqual([pullspec(1)]);
    expect(plan.remove).toHaveLength(2);
  });

  test("of a pool without images, only builds in use are kept", () => {
    const plan = prunePlan(
      facts([build("a", { image: pullspec(1), ageMs: 1000 }), build("b", { image: pullspec(2), ageMs: 1000 })], {
        machineOSConfigs: new Map(),
        used: [pullspec(2)],
        rules: pruneRules,
      }),
    );
    expect(plan.mark.map((each) => each.build)).toEqual(["a"]);
    expect(plan.kept.get("b")).toBe("inUse");
  });

  test("a build that others take their image from while they wait is kept", () => {
    const plan = prunePlan(
      facts([
        build("a", { image: pullspec(1) }),
        build("b", { phase: "Building", has: { [annotations.reusedFrom]: "a" } }),
      ]),
    );
    expect(plan.kept.get("a")).toBe("running");
  });

  test("whatever happened, no digest is deleted that a node, a MachineConfigNode, a rollback, a served image or a MachineOSConfig names [build-prune-1]", () => {
    const letters = ["1", "2", "3", "4"] as const;
    const letter = fc.constantFrom(...letters);
    const anyBuild = fc.record({
      phase: fc.constantFrom("Succeeded", "Failed", "Interrupted", "Building"),
      image: fc.option(letter, { nil: undefined }),
      ageMs: fc.integer({ min: 0, max: 3 * day }),
      config: fc.constantFrom("worker", "infra", "gone"),
      markedMs: fc.option(fc.integer({ min: -day, max: day }), { nil: undefined }),
      keep: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(anyBuild, { maxLength: 12 }),
        fc.array(letter),
        fc.option(letter, { nil: undefined }),
        fc.integer({ min: 0, max: 3 }),
        (made, uses, current, places) => {
          const builds = made.map(({ phase, image, ageMs, config, markedMs, keep }, index) =>
            build(`b${index}`, {
              phase,
              ageMs,
              config,
              ...(image === undefined ? {} : { image: pullspec(image) }),
              has: {
                ...(markedMs === undefined ? {} : { [annotations.pruneAfter]: timestampOf(start + markedMs) }),
                ...(keep ? { [annotations.keepBuild]: "true" } : {}),
              },
            }),
          );
          const machineOSConfigs = new Map([
            ["worker", { current: "b0", image: current === undefined ? undefined : pullspec(current) }],
            ["infra", { current: undefined, image: undefined }],
          ]);
          const plan = prunePlan({
            builds,
            machineOSConfigs,
            used: uses.map(pullspec),
            now: start,
            rules: { ...pruneRules, succeeded: places, failed: places },
          });
          const needed = new Set([...uses, ...(current === undefined ? [] : [current])].map(digest));
          const goes = new Set(plan.remove.map(({ build: each }) => each.metadata.name));
          for (const { build: each, image } of plan.remove) {
            if (image !== undefined) {
              expect(needed.has(image.slice(image.indexOf("@") + 1))).toBe(false);
              for (const other of builds)
                if (other.status?.digestedImagePushSpec === image) expect(goes.has(other.metadata.name)).toBe(true);
              expect(Date.parse(each.metadata.annotations?.[annotations.pruneAfter] ?? "")).toBeLessThanOrEqual(start);
            }
            expect(plan.kept.has(each.metadata.name)).toBe(false);
          }
          for (const { build: each } of plan.mark) expect(plan.kept.has(each)).toBe(false);
        },
      ),
      { numRuns: 300 },
    );
  });
});
