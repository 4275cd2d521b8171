import { describe, expect, test } from "vitest";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, objects } from "../api/names.ts";
import type { BuildFailure } from "../core/build/build-failures.ts";
import type { FakeTime } from "../../test/support/fake-backend.ts";
import { BuilderHarness, builtPool } from "../../test/support/builder-harness.ts";
import { stateOfBuild } from "../core/config/build-phase.ts";

const { rebuildImage, buildRetries, rebuildActive, rebuildSerial } = annotations;
const unavailable: BuildFailure = {
  class: "PushUnavailable",
  step: "push",
  cause: "r.example.com answered 503",
  excerpt: "503",
};
const wrong: BuildFailure = {
  class: "UserStepFailed",
  step: "user:2",
  exitCode: 7,
  cause: "exit status 7",
  excerpt: "make: *** [all] Error 7",
};
const fails = (failure: BuildFailure): readonly FakeTime[] => [
  { forMs: 1000, is: "running", step: "pull-base" },
  { is: "fails", failure },
];
const works: readonly FakeTime[] = [{ forMs: 1000, is: "running", step: "pull-base" }, { is: "succeeds" }];
const slow: readonly FakeTime[] = [{ forMs: 30_000, is: "running", step: "pull-base" }, { is: "succeeds" }];

async function failedPool(failure: BuildFailure): Promise<BuilderHarness> {
  const harness = await BuilderHarness.make();
  harness.backend.scripts = [fails(failure)];
  await harness.act(() => harness.optIn());
  harness.start();
  await harness.pass(10_000);
  return harness;
}

describe("a rebuild request", () => {
  test("clears failed builds with their remains, builds again, and stays until that has succeeded [os-builder-rebuild-1]", async () => {
    const harness = await failedPool(wrong);
    const [failed] = await harness.builds();
    expect(stateOfBuild(failed ?? {}).reason).toBe("UserStepFailed");
    expect(harness.backend.objects.get(failed?.metadata.name ?? "")).toBe("kept");
    harness.backend.scripts = [slow];
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "for INC-1" }));
    await harness.pass(10_000);
    expect((await harness.pool()).notes[rebuildImage]).toBe("for INC-1");
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({
      status: "False",
      reason: "RebuildRequested",
    });
    expect(await harness.states()).toEqual(["rendered-worker-1 append Building/StepPullBase"]);
    expect(harness.backend.objects.has(failed?.metadata.name ?? "")).toBe(false);
    await harness.pass(40_000);
    const { notes } = await harness.pool();
    expect(notes[rebuildImage]).toBeUndefined();
    expect((await harness.config()).metadata.annotations?.[rebuildActive]).toBeUndefined();
    expect((await harness.config()).metadata.annotations?.[rebuildSerial]).toBe("1");
    expect(await harness.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
    expect(await harness.events("RebuildRequested")).toHaveLength(1);
    expect(await harness.events("BuildDeleted")).toHaveLength(1);
  });

  test("is removed after a failure too, and the image in use stays [os-builder-rebuild-5]", async () => {
    const { harness, image } = await builtPool();
    harness.backend.scripts = [fails(wrong)];
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "" }));
    await harness.pass(10_000);
    expect((await harness.pool()).notes[rebuildImage]).toBeUndefined();
    expect((await harness.states()).at(-1)).toBe("rendered-worker-1 append Failed/UserStepFailed");
    expect((await harness.config()).status?.currentImagePullSpec).toBe(image);
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "True", reason: "UserStepFailed" });
    expect(harness.registry.deleted).toEqual([]);
  });

  test("an identical image is reported as such; its pullspec stays [os-builder-rebuild-9]", async () => {
    const { harness, image } = await builtPool();
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "" }));
    await harness.pass(10_000);
    expect(harness.backend.started).toHaveLength(2);
    expect((await harness.config()).status?.currentImagePullSpec).toBe(image);
    expect(await harness.events("RebuildUnchanged")).toHaveLength(1);
  });

  test("by a pool's label or a MachineOSConfig's later annotation counts as well, and one build serves both [os-builder-rebuild-10]", async () => {
    const { harness } = await builtPool();
    harness.backend.scripts = [slow];
    await harness.act(() => harness.labelPool({ [rebuildImage]: "" }));
    await harness.act(() => harness.annotateConfig({ [annotations.rebuild]: "please" }));
    await harness.pass(60_000);
    expect(harness.backend.started).toHaveLength(2);
    expect((await harness.pool()).labels[rebuildImage]).toBeUndefined();
    expect((await harness.config()).metadata.annotations?.[annotations.rebuild]).toBeUndefined();
  });

  test("from before the opt-in is reported as without effect, and removed with the first build [os-builder-rebuild-3]", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "x" }));
    harness.start();
    await harness.pass(5000);
    expect(await harness.events("RebuildIgnored")).toHaveLength(1);
    expect((await harness.pool()).notes[rebuildImage]).toBe("x");
    await harness.act(() => harness.optIn());
    await harness.pass(15_000);
    expect((await harness.pool()).notes[rebuildImage]).toBeUndefined();
    expect((await harness.config()).status?.currentImagePullSpec).toBeDefined();
    expect(harness.backend.started).toHaveLength(1);
  });

  test("that arrives while the builder is down is served when it starts [os-builder-rebuild-2]", async () => {
    const { harness, process } = await builtPool();
    process.abort();
    await harness.pass(2000);
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "x" }));
    harness.start("two");
    await harness.pass(20_000);
    expect(harness.backend.started).toHaveLength(2);
    expect((await harness.pool()).notes[rebuildImage]).toBeUndefined();
  });

  test("that is repeated has no effect; a different one starts again; removing it does not stop the build [os-builder-rebuild-11]", async () => {
    const { harness } = await builtPool();
    harness.backend.scripts = [slow];
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "a" }));
    await harness.pass(5000);
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "a" }));
    await harness.pass(5000);
    expect(harness.backend.started).toHaveLength(2);
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "b" }));
    await harness.pass(5000);
    expect(harness.backend.started).toHaveLength(3);
    expect((await harness.config()).metadata.annotations?.[rebuildSerial]).toBe("2");
    await harness.act(() => harness.annotatePool({ [rebuildImage]: null }));
    await harness.pass(60_000);
    expect((await harness.states()).at(-1)).toBe("rendered-worker-1 append Succeeded/Appended");
    expect((await harness.config()).metadata.annotations?.[rebuildActive]).toBeUndefined();
  });

  test("during the first build is served by that build [os-builder-rebuild-12]", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [slow];
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(5000);
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "" }));
    await harness.pass(60_000);
    expect(harness.backend.started).toHaveLength(1);
    expect((await harness.pool()).notes[rebuildImage]).toBeUndefined();
  });

  test("also forces the build of a configuration that arrives during it, and is removed when that ends [os-builder-rebuild-13]", async () => {
    const { harness } = await builtPool();
    harness.backend.scripts = [slow];
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "" }));
    await harness.pass(5000);
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
    await harness.pass(10_000);
    expect((await harness.pool()).notes[rebuildImage]).toBe("");
    await harness.pass(60_000);
    expect((await harness.pool()).notes[rebuildImage]).toBeUndefined();
    expect((await harness.states()).at(-1)).toBe("rendered-worker-2 append Succeeded/Appended");
  });

  test("is cancelled completely by opting out [os-builder-rebuild-14]", async () => {
    const { harness } = await builtPool();
    harness.backend.scripts = [slow];
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "", [buildRetries]: "1" }));
    await harness.pass(5000);
    await harness.act(() => harness.labelPool({ [annotations.layeringEnabled]: "no" }));
    await harness.pass(10_000);
    const { notes } = await harness.pool();
    expect([notes[rebuildImage], notes[buildRetries]]).toEqual([undefined, undefined]);
    expect((await harness.config()).metadata.annotations?.[rebuildActive]).toBeUndefined();
    expect(harness.backend.cancelled).toHaveLength(1);
  });

  test("rebuilds only its own pool, even if another one shares the image [os-builder-rebuild-15]", async () => {
    const { harness, image } = await builtPool({ pools: ["worker", "infra"] });
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "" }));
    await harness.pass(10_000);
    expect(harness.backend.started).toHaveLength(2);
    expect((await harness.config("infra")).status?.currentImagePullSpec).toBe(image);
    expect((await harness.builds()).filter((build) => build.spec.machineOSConfig.name === "infra")).toHaveLength(1);
  });

  test("is served for a paused pool [os-builder-rebuild-16]", async () => {
    const { harness } = await builtPool();
    await harness.act(() =>
      harness.kube.patch(harness.poolKind, { name: "worker" }, { type: "merge", body: { spec: { paused: true } } }),
    );
    await harness.act(() => harness.annotatePool({ [rebuildImage]: "" }));
    await harness.pass(10_000);
    expect(harness.backend.started).toHaveLength(2);
    expect((await harness.pool()).notes[rebuildImage]).toBeUndefined();
  });
});

describe("retries", () => {
  test("refused pushes count from 1 to 5, the sixth failure degrades the pool, and a success recovers it [os-builder-rebuild-6]", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [fails(unavailable)];
    await harness.act(() => harness.optIn());
    harness.start();
    const seen: string[] = [];
    for (let look = 0; look < 260 && harness.backend.started.length < 6; look += 1) {
      await harness.pass(5000);
      const count = (await harness.pool()).notes[buildRetries] ?? "0";
      if (seen.at(-1) !== count) seen.push(count);
    }
    await harness.pass(60_000);
    expect(seen.filter((count) => count !== "0")).toEqual(["1", "2", "3", "4", "5"]);
    expect(harness.backend.started).toHaveLength(6);
    expect(await harness.states()).toEqual(["rendered-worker-1 append Failed/RetryLimitReached"]);
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({
      status: "True",
      reason: "RetryLimitReached",
      message: expect.stringContaining("PushUnavailable") as string,
    });
    expect(await harness.events("BuildRetryScheduled")).toHaveLength(5);
    expect(await harness.events("BuildDegraded")).toHaveLength(1);
    await harness.pass(660_000);
    expect(harness.backend.started).toHaveLength(6);

    // The counter is removed: the build starts again, and the failed build stays for the record.
    harness.backend.scripts = [works];
    await harness.act(() => harness.annotatePool({ [buildRetries]: null }));
    await harness.pass(20_000);
    expect(await harness.states()).toEqual([
      "rendered-worker-1 append Failed/RetryLimitReached",
      "rendered-worker-1 append Succeeded/Appended",
    ]);
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "False", reason: "AsExpected" });
    expect(await harness.events("BuildRecovered")).toHaveLength(1);
  });

  test("a success at the third attempt removes the counter [os-builder-rebuild-8]", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [fails(unavailable), fails(unavailable), works];
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(20_000);
    expect((await harness.pool()).notes[buildRetries]).toBe("1");
    const [waiting] = await harness.builds();
    expect(stateOfBuild(waiting ?? {})).toMatchObject({
      phase: "Building",
      reason: "RetryScheduled",
      message: expect.stringMatching(
        /^attempt 2 of 6 at .*; previous: PushUnavailable: r\.example\.com answered 503$/,
      ) as string,
    });
    await harness.pass(200_000);
    expect(harness.backend.started.map(({ id }) => id.slice(-2))).toEqual(["-1", "-2", "-3"]);
    expect(await harness.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
    expect((await harness.pool()).notes[buildRetries]).toBeUndefined();
  });

  test("a permanent failure stops at once, and leaves the counter unchanged [os-builder-rebuild-17]", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [fails(unavailable), fails(wrong)];
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(120_000);
    expect(harness.backend.started).toHaveLength(2);
    expect((await harness.pool()).notes[buildRetries]).toBe("1");
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "True", reason: "UserStepFailed" });
    await harness.pass(660_000);
    expect(harness.backend.started).toHaveLength(2);
  });

  test("the limit is the MachineOSConfig's, otherwise the cluster's; an invalid counter is ignored and reported [os-builder-rebuild-7]", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [fails(unavailable)];
    await harness.act(() => harness.configMap(objects.buildConfig, { maxBuildRetries: "1" }));
    await harness.act(() => harness.annotatePool({ [buildRetries]: "lots" }));
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(300_000);
    expect(harness.backend.started).toHaveLength(2);
    expect((await harness.events("ConfigReconcileFailed")).some((message) => message.includes('"lots"'))).toBe(true);
    await harness.act(() => harness.annotateConfig({ [annotations.maxBuildRetries]: "2" }));
    await harness.pass(300_000);
    expect(harness.backend.started.length).toBeGreaterThan(2);
  });

  test("a new configuration starts a new count [os-builder-rebuild-4]", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [fails(unavailable), fails(unavailable), works];
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(60_000);
    expect((await harness.pool()).notes[buildRetries]).toBe("2");
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
    await harness.pass(2000);
    expect((await harness.pool()).notes[buildRetries]).toBeUndefined();
  });

  test("a lost node costs no retry; a deleted run starts again after a minute [os-builder-rebuild-18]", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [
      [
        { forMs: 1000, is: "running", step: "pull-base" },
        { is: "fails", failure: { class: "NodeLost", step: "run", cause: "the node went away", excerpt: "" } },
      ],
      [{ forMs: 3_600_000, is: "running", step: "pull-base" }, { is: "succeeds" }],
    ];
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(60_000);
    expect(harness.backend.started).toHaveLength(2);
    expect((await harness.pool()).notes[buildRetries]).toBeUndefined();
    harness.backend.deleteRun(harness.backend.started[1]?.id ?? "");
    await harness.pass(10_000);
    expect((await harness.states())[0]).toBe("rendered-worker-1 append Interrupted/UserDeleted");
    expect(harness.backend.started).toHaveLength(2);
    await harness.pass(90_000);
    expect(harness.backend.started).toHaveLength(3);
    harness.backend.deleteRun(harness.backend.started[2]?.id ?? "");
    await harness.pass(600_000);
    expect(harness.backend.started).toHaveLength(3);
    expect(await harness.condition("UpToDate")).toMatchObject({ status: "False", reason: "BuildInterrupted" });
  });

  test("an edit of a failed MachineOSConfig builds the new key at once [os-builder-rebuild-19]", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [fails(wrong), works];
    await harness.act(() => harness.optIn("worker", {}, harness.steps("FROM os\nRUN false")));
    harness.start();
    await harness.pass(20_000);
    expect((await harness.states())[0]).toBe("rendered-worker-1 build Failed/UserStepFailed");
    await harness.act(() =>
      harness.kube.patch(
        MachineOSConfig,
        { name: "worker" },
        { type: "merge", body: { spec: harness.steps("FROM os\nRUN true") } },
      ),
    );
    await harness.pass(20_000);
    expect((await harness.states())[1]).toBe("rendered-worker-1 build Succeeded/Ready");
  });
});
