import { describe, expect, test } from "vitest";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations, labels } from "../../api/names.ts";
import { buildName, repeatName } from "./build-key.ts";
import { type PlanFacts, attachedTo, currentBuildOf, nextBuildName, planBuild, superseded } from "./build-plan.ts";

const key = "a".repeat(32);
const otherKey = "c".repeat(32);
const parentKey = "b".repeat(32);
const digest = (letter: string) => `r.example.com/os@sha256:${letter.repeat(64)}`;

function build(
  name: string,
  more: {
    phase?: string;
    rendered?: string;
    config?: string;
    image?: string;
    has?: Readonly<Record<string, string>>;
    created?: string;
  } = {},
): MachineOSBuild {
  const {
    phase = "Succeeded",
    rendered = "rendered-worker-1",
    config = "worker",
    has = {},
    created = "2026-01-01T00:00:00Z",
  } = more;
  const image = more.image ?? (phase === "Succeeded" ? digest("1") : undefined);
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineOSBuild",
    metadata: {
      name,
      creationTimestamp: created,
      annotations: {
        [annotations.contentKey]: key,
        [annotations.parentKey]: parentKey,
        [annotations.imageContent]: "full",
        [annotations.buildStrategy]: "build",
        ...has,
      },
    },
    spec: {
      machineConfig: { name: rendered },
      machineOSConfig: { name: config },
      renderedImagePushSpec: `r.example.com/os:${name}`,
    },
    status: {
      ...(phase === "Initial"
        ? {}
        : { conditions: [{ type: phase, status: "True", reason: "x", message: "", lastTransitionTime: created }] }),
      ...(image === undefined ? {} : { digestedImagePushSpec: image }),
    },
  };
}

const facts = (builds: readonly MachineOSBuild[], more: Partial<PlanFacts> = {}): PlanFacts => ({
  machineOSConfig: "worker",
  rendered: "rendered-worker-1",
  repository: "r.example.com/os",
  key,
  parentKey,
  base: `b.example.com/os@sha256:${"b".repeat(64)}`,
  isBaseParent: false,
  holdsConfiguration: true,
  current: undefined,
  builds,
  forced: false,
  ...more,
});

describe("the cheapest way to an image", () => {
  test("nothing, where it is rolled out already for this configuration", () => {
    expect(planBuild(facts([build("x")], { current: "x" }))).toMatchObject({
      strategy: "none",
      build: { metadata: { name: "x" } },
    });
  });

  test.for([
    { title: "of the same MachineOSConfig", more: {} },
    { title: "of another pool", more: { config: "infra" } },
    { title: "that is rolled out for another configuration", more: { rendered: "rendered-worker-0" }, current: "x" },
  ])("a finished image of the key $title", ({ more, current }) => {
    expect(planBuild(facts([build("x", more)], current === undefined ? {} : { current }))).toMatchObject({
      strategy: "reuse",
      state: "finished",
      from: { metadata: { name: "x" } },
    });
  });

  test("a run for the same key, of any pool, is waited for", () => {
    expect(planBuild(facts([build("x", { phase: "Building", config: "infra" })]))).toMatchObject({
      strategy: "reuse",
      state: "running",
    });
  });

  test.for([
    { title: "failed once", has: { [annotations.buildFailure]: "{}" } },
    { title: "is to be tried again", has: { [annotations.nextAttemptAt]: "2026-01-01T00:00:00Z" } },
    { title: "lacks an input", reason: "InputChanged" },
  ])("a run of another pool that $title is not waited for, and one of the same pool is [build-plan-waits-1]", (one) => {
    const { has = {}, reason = "x" } = one;
    const running = (config: string) => {
      const made = build("x", { phase: "Building", config, has });
      const conditions = made.status?.conditions?.map((condition) => ({ ...condition, reason }));
      return { ...made, status: { ...made.status, ...(conditions === undefined ? {} : { conditions }) } };
    };
    expect(planBuild(facts([running("infra")])).strategy).toBe("build");
    expect(planBuild(facts([running("worker")]))).toMatchObject({ strategy: "reuse", state: "running" });
  });

  test("a build that was waited for in vain is not waited for once more [build-plan-waits-2]", () => {
    const waited = (from: string) =>
      build("w", {
        phase: "Interrupted",
        has: { [annotations.buildStrategy]: "reuse", [annotations.reusedFrom]: from },
      });
    const running = build("x", { phase: "Building", config: "infra" });
    expect(planBuild(facts([running, waited("x")])).strategy).toBe("build");
    expect(planBuild(facts([running, waited("y")]))).toMatchObject({ strategy: "reuse", state: "running" });
  });

  test("one that only waits for another is no run", () => {
    expect(
      planBuild(facts([build("x", { phase: "Building", has: { [annotations.buildStrategy]: "reuse" } })])).strategy,
    ).toBe("build");
  });

  test("after A, B, A the image of A is reused", () => {
    const a = build("a");
    const b = build("b", { image: digest("2"), has: { [annotations.contentKey]: otherKey } });
    expect(planBuild(facts([a, b], { current: "b" }))).toMatchObject({
      strategy: "reuse",
      from: { metadata: { name: "a" } },
    });
  });

  test("the base image is the parent where no step runs", () => {
    expect(planBuild(facts([], { isBaseParent: true }))).toMatchObject({
      strategy: "append",
      parent: { image: `b.example.com/os@sha256:${"b".repeat(64)}`, hasConfigLayer: false },
    });
  });

  test("the last image with the same packages and steps is the parent, without its configuration", () => {
    const builds = [
      build("old", { has: { [annotations.contentKey]: otherKey }, image: digest("1") }),
      build("new", {
        has: { [annotations.contentKey]: otherKey },
        image: digest("2"),
        created: "2026-01-02T00:00:00Z",
      }),
    ];
    expect(planBuild(facts(builds))).toMatchObject({
      strategy: "append",
      parent: { image: digest("2"), hasConfigLayer: true },
    });
    expect(
      planBuild(
        facts(
          builds.map((each) => ({
            ...each,
            metadata: {
              ...each.metadata,
              annotations: { ...each.metadata.annotations, [annotations.imageContent]: "os-only" },
            },
          })),
        ),
      ),
    ).toMatchObject({ parent: { hasConfigLayer: false } });
  });

  test("an image of another repository is no parent", () => {
    expect(
      planBuild(
        facts([
          build("x", { has: { [annotations.contentKey]: otherKey }, image: `elsewhere/os@sha256:${"1".repeat(64)}` }),
        ]),
      ).strategy,
    ).toBe("build");
  });

  describe("an image that came with an installation, which the author of one MachineOSConfig chose,", () => {
    const chosen = (more: Parameters<typeof build>[1] = {}) => {
      const made = build("chosen", { config: "infra", ...more, has: { [annotations.buildStrategy]: "reuse" } });
      return { ...made, metadata: { ...made.metadata, labels: { [labels.preBuiltImage]: "true" } } };
    };
    const onIt = (name: string, has: Readonly<Record<string, string>>, config = "infra") =>
      build(name, { config, image: digest("2"), created: "2026-01-02T00:00:00Z", has });
    const parent = JSON.stringify({ parent: { image: digest("1"), hasConfigLayer: false } });
    const appended = onIt("appended", { [annotations.buildStrategy]: "append", [annotations.buildBecause]: parent });
    const again = onIt("again", { [annotations.buildStrategy]: "reuse", [annotations.reusedFrom]: "chosen" });
    const recalled = onIt("recalled", { [annotations.buildStrategy]: "reuse" });
    const other = { [annotations.contentKey]: otherKey };

    test.for([
      { title: "itself", builds: [chosen()] },
      { title: "taken once more", builds: [chosen(), again] },
      { title: "taken once more, after the first build was deleted", builds: [again] },
      { title: "published again", builds: [recalled] },
      { title: "below a configuration", builds: [chosen(), appended] },
      { title: "below a configuration, after its build was deleted", builds: [appended] },
      {
        title: "below what another pool took",
        builds: [chosen(), onIt("taken", { ...again.metadata.annotations }, "edge")],
      },
    ])("counts for no other pool: $title [attack-builds-12]", ({ builds }) => {
      expect(planBuild(facts(builds)).strategy).toBe("build");
      // Nor is it what another configuration is laid on.
      const parents = builds.map((each) => ({
        ...each,
        metadata: { ...each.metadata, annotations: { ...each.metadata.annotations, ...other } },
      }));
      const plan = planBuild(facts(parents));
      expect(plan.strategy).toBe("build");
      expect(planBuild(facts(builds)).turnedDown).toContainEqual({
        strategy: "reuse",
        because: expect.stringContaining("came with an installation") as string,
      });
    });

    test("counts for its own pool", () => {
      expect(planBuild(facts([chosen({ config: "worker" })]))).toMatchObject({ strategy: "reuse" });
    });
  });

  test.for([
    { title: "laid on the base", parent: `mirror.example.com/os@sha256:${"b".repeat(64)}` },
    { title: "laid on an image whose packages the cluster installed", parent: digest("1") },
  ])("an image of another pool that was $title counts", ({ parent }) => {
    const below = build("below", { config: "infra", has: { [annotations.contentKey]: otherKey } });
    const made = build("made", {
      config: "infra",
      image: digest("2"),
      has: {
        [annotations.buildStrategy]: "append",
        [annotations.buildBecause]: JSON.stringify({ parent: { image: parent, hasConfigLayer: false } }),
      },
    });
    expect(planBuild(facts([below, made]))).toMatchObject({ strategy: "reuse", from: { metadata: { name: "made" } } });
  });

  test("what the registry lost is neither taken again nor a parent, and that is said", () => {
    const plan = planBuild(facts([build("x", { has: { [annotations.imageLost]: "true" } })]));
    expect(plan.strategy).toBe("build");
    expect(plan.turnedDown.find(({ strategy }) => strategy === "reuse")?.because).toContain(
      "does not have the image of x",
    );
  });

  test("a forced rebuild takes nothing that others made", () => {
    expect(planBuild(facts([build("x", { config: "infra" })], { forced: true, isBaseParent: true }))).toMatchObject({
      strategy: "append",
    });
    expect(planBuild(facts([build("x")], { forced: true }))).toMatchObject({ strategy: "reuse" });
  });

  test("every cheaper way is turned down with a reason", () => {
    const plan = planBuild(facts([]));
    expect(plan.strategy).toBe("build");
    expect(plan.turnedDown.map(({ strategy }) => strategy)).toEqual(["none", "reuse", "append"]);
    for (const { because } of plan.turnedDown) expect(because).not.toBe("");
  });
});

describe("names of builds", () => {
  const of = (builds: readonly MachineOSBuild[]) => ({
    machineOSConfig: "worker",
    key,
    rendered: "rendered-worker-1",
    builds,
  });
  const first = buildName("worker", key);
  const again = (generation: number) => repeatName("worker", key, "rendered-worker-1", generation);

  test("the first build has the key's name; later ones follow the existing builds", () => {
    expect(nextBuildName(of([]))).toBe(first);
    expect(nextBuildName(of([build(first)]))).toBe(again(0));
    expect(nextBuildName(of([build(first), build(again(0))]))).toBe(again(1));
    expect(nextBuildName(of([build(first), build(again(2))]))).toBe(again(3));
  });

  test("a build of the key for another configuration takes the first name, and is not the current one", () => {
    const other = build(first, { rendered: "rendered-worker-0" });
    expect(currentBuildOf(of([other]))).toBeUndefined();
    expect(nextBuildName(of([other]))).toBe(again(0));
  });

  test("the current build is the last one that was begun, though earlier ones were pruned", () => {
    expect(currentBuildOf(of([build(first), build(again(0)), build(again(3))]))?.metadata.name).toBe(again(3));
  });
});

test("builds that wait for a run hold on to it, and those that ended do not", () => {
  const builds = [
    build("x", { phase: "Building" }),
    build("y", { phase: "Building", has: { [annotations.reusedFrom]: "x" } }),
    build("z", { phase: "Interrupted", has: { [annotations.reusedFrom]: "x" } }),
  ];
  expect(attachedTo("x", builds).map(({ metadata }) => metadata.name)).toEqual(["y"]);
});

test("builds of the same MachineOSConfig that run for something else are superseded", () => {
  const builds = [
    build("a", { phase: "Building" }),
    build("b", { phase: "Prepared" }),
    build("c"),
    build("d", { phase: "Building", config: "infra" }),
    build("e", { phase: "Initial" }),
  ];
  expect(superseded("worker", "b", builds).map(({ build: each }) => each.metadata.name)).toEqual(["a", "e"]);
});
