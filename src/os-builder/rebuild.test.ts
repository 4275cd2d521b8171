import { describe, expect, test } from "vitest";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, objects } from "../api/names.ts";
import type { BuildFailure } from "../core/build/build-failures.ts";
import type { FakeMoment } from "../../test/support/fake-backend.ts";
import { BuilderScene, builtPool } from "../../test/support/builder-scene.ts";
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
const fails = (failure: BuildFailure): readonly FakeMoment[] => [
  { forMs: 1000, is: "running", step: "pull-base" },
  { is: "fails", failure },
];
const works: readonly FakeMoment[] = [{ forMs: 1000, is: "running", step: "pull-base" }, { is: "succeeds" }];
const slow: readonly FakeMoment[] = [{ forMs: 30_000, is: "running", step: "pull-base" }, { is: "succeeds" }];

async function failedPool(failure: BuildFailure): Promise<BuilderScene> {
  const scene = await BuilderScene.make();
  scene.backend.scripts = [fails(failure)];
  await scene.act(() => scene.optIn());
  scene.start();
  await scene.pass(10_000);
  return scene;
}

describe("asking for a rebuild", () => {
  test("clears failed builds and what was kept of them, builds anew, and the request is there until that has succeeded [os-builder-rebuild-1]", async () => {
    const scene = await failedPool(wrong);
    const [failed] = await scene.builds();
    expect(stateOfBuild(failed ?? {}).reason).toBe("UserStepFailed");
    expect(scene.backend.objects.get(failed?.metadata.name ?? "")).toBe("kept");
    scene.backend.scripts = [slow];
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "for INC-1" }));
    await scene.pass(10_000);
    expect((await scene.pool()).notes[rebuildImage]).toBe("for INC-1");
    expect((await scene.pool()).of("ImageBuildDegraded")).toMatchObject({
      status: "False",
      reason: "RebuildRequested",
    });
    expect(await scene.states()).toEqual(["rendered-worker-1 append Building/StepPullBase"]);
    expect(scene.backend.objects.has(failed?.metadata.name ?? "")).toBe(false);
    await scene.pass(40_000);
    const { notes } = await scene.pool();
    expect(notes[rebuildImage]).toBeUndefined();
    expect((await scene.config()).metadata.annotations?.[rebuildActive]).toBeUndefined();
    expect((await scene.config()).metadata.annotations?.[rebuildSerial]).toBe("1");
    expect(await scene.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
    expect(await scene.events("RebuildRequested")).toHaveLength(1);
    expect(await scene.events("BuildDeleted")).toHaveLength(1);
  });

  test("the request goes after a failure too, and the image in use stays [os-builder-rebuild-5]", async () => {
    const { scene, image } = await builtPool();
    scene.backend.scripts = [fails(wrong)];
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "" }));
    await scene.pass(10_000);
    expect((await scene.pool()).notes[rebuildImage]).toBeUndefined();
    expect((await scene.states()).at(-1)).toBe("rendered-worker-1 append Failed/UserStepFailed");
    expect((await scene.config()).status?.currentImagePullSpec).toBe(image);
    expect((await scene.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "True", reason: "UserStepFailed" });
    expect(scene.registry.deleted).toEqual([]);
  });

  test("an image that comes out the same to the last byte is told so; its pullspec stays [os-builder-rebuild-9]", async () => {
    const { scene, image } = await builtPool();
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "" }));
    await scene.pass(10_000);
    expect(scene.backend.started).toHaveLength(2);
    expect((await scene.config()).status?.currentImagePullSpec).toBe(image);
    expect(await scene.events("RebuildUnchanged")).toHaveLength(1);
  });

  test("a label of the pool and the later annotation of the MachineOSConfig ask as well, and one build serves both [os-builder-rebuild-10]", async () => {
    const { scene } = await builtPool();
    scene.backend.scripts = [slow];
    await scene.act(() => scene.labelPool({ [rebuildImage]: "" }));
    await scene.act(() => scene.annotateConfig({ [annotations.rebuild]: "please" }));
    await scene.pass(60_000);
    expect(scene.backend.started).toHaveLength(2);
    expect((await scene.pool()).labels[rebuildImage]).toBeUndefined();
    expect((await scene.config()).metadata.annotations?.[annotations.rebuild]).toBeUndefined();
  });

  test("one that was there before the pool was opted in is told to be of no use, stays, and goes with the first build [os-builder-rebuild-3]", async () => {
    const scene = await BuilderScene.make();
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "x" }));
    scene.start();
    await scene.pass(5000);
    expect(await scene.events("RebuildIgnored")).toHaveLength(1);
    expect((await scene.pool()).notes[rebuildImage]).toBe("x");
    await scene.act(() => scene.optIn());
    await scene.pass(15_000);
    expect((await scene.pool()).notes[rebuildImage]).toBeUndefined();
    expect((await scene.config()).status?.currentImagePullSpec).toBeDefined();
    expect(scene.backend.started).toHaveLength(1);
  });

  test("one that comes while the builder is away is taken up when it starts [os-builder-rebuild-2]", async () => {
    const { scene, process } = await builtPool();
    process.abort();
    await scene.pass(2000);
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "x" }));
    scene.start("two");
    await scene.pass(20_000);
    expect(scene.backend.started).toHaveLength(2);
    expect((await scene.pool()).notes[rebuildImage]).toBeUndefined();
  });

  test("the same request again is none; another one begins anew; taken away, the build goes on [os-builder-rebuild-11]", async () => {
    const { scene } = await builtPool();
    scene.backend.scripts = [slow];
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "a" }));
    await scene.pass(5000);
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "a" }));
    await scene.pass(5000);
    expect(scene.backend.started).toHaveLength(2);
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "b" }));
    await scene.pass(5000);
    expect(scene.backend.started).toHaveLength(3);
    expect((await scene.config()).metadata.annotations?.[rebuildSerial]).toBe("2");
    await scene.act(() => scene.annotatePool({ [rebuildImage]: null }));
    await scene.pass(60_000);
    expect((await scene.states()).at(-1)).toBe("rendered-worker-1 append Succeeded/Appended");
    expect((await scene.config()).metadata.annotations?.[rebuildActive]).toBeUndefined();
  });

  test("while the first build runs, it counts as the rebuild [os-builder-rebuild-12]", async () => {
    const scene = await BuilderScene.make();
    scene.backend.scripts = [slow];
    await scene.act(() => scene.optIn());
    scene.start();
    await scene.pass(5000);
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "" }));
    await scene.pass(60_000);
    expect(scene.backend.started).toHaveLength(1);
    expect((await scene.pool()).notes[rebuildImage]).toBeUndefined();
  });

  test("a configuration that comes during a rebuild is built by force as well, and the request goes when that ends [os-builder-rebuild-13]", async () => {
    const { scene } = await builtPool();
    scene.backend.scripts = [slow];
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "" }));
    await scene.pass(5000);
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "2" } }));
    await scene.pass(10_000);
    expect((await scene.pool()).notes[rebuildImage]).toBe("");
    await scene.pass(60_000);
    expect((await scene.pool()).notes[rebuildImage]).toBeUndefined();
    expect((await scene.states()).at(-1)).toBe("rendered-worker-2 append Succeeded/Appended");
  });

  test("opting out during a rebuild takes all of it back [os-builder-rebuild-14]", async () => {
    const { scene } = await builtPool();
    scene.backend.scripts = [slow];
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "", [buildRetries]: "1" }));
    await scene.pass(5000);
    await scene.act(() => scene.labelPool({ [annotations.layeringEnabled]: "no" }));
    await scene.pass(10_000);
    const { notes } = await scene.pool();
    expect([notes[rebuildImage], notes[buildRetries]]).toEqual([undefined, undefined]);
    expect((await scene.config()).metadata.annotations?.[rebuildActive]).toBeUndefined();
    expect(scene.backend.cancelled).toHaveLength(1);
  });

  test("a pool that shares its image with another one rebuilds alone [os-builder-rebuild-15]", async () => {
    const { scene, image } = await builtPool({ pools: ["worker", "infra"] });
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "" }));
    await scene.pass(10_000);
    expect(scene.backend.started).toHaveLength(2);
    expect((await scene.config("infra")).status?.currentImagePullSpec).toBe(image);
    expect((await scene.builds()).filter((build) => build.spec.machineOSConfig.name === "infra")).toHaveLength(1);
  });

  test("a paused pool is built for [os-builder-rebuild-16]", async () => {
    const { scene } = await builtPool();
    await scene.act(() =>
      scene.kube.patch(scene.poolKind, { name: "worker" }, { type: "merge", body: { spec: { paused: true } } }),
    );
    await scene.act(() => scene.annotatePool({ [rebuildImage]: "" }));
    await scene.pass(10_000);
    expect(scene.backend.started).toHaveLength(2);
    expect((await scene.pool()).notes[rebuildImage]).toBeUndefined();
  });
});

describe("retries", () => {
  test("a registry that takes no pushes: the counter goes from 1 to 5, the sixth failure degrades the pool, and an end of that mends it [os-builder-rebuild-6]", async () => {
    const scene = await BuilderScene.make();
    scene.backend.scripts = [fails(unavailable)];
    await scene.act(() => scene.optIn());
    scene.start();
    const seen: string[] = [];
    for (let look = 0; look < 260 && scene.backend.started.length < 6; look += 1) {
      await scene.pass(5000);
      const count = (await scene.pool()).notes[buildRetries] ?? "0";
      if (seen.at(-1) !== count) seen.push(count);
    }
    await scene.pass(60_000);
    expect(seen.filter((count) => count !== "0")).toEqual(["1", "2", "3", "4", "5"]);
    expect(scene.backend.started).toHaveLength(6);
    expect(await scene.states()).toEqual(["rendered-worker-1 append Failed/RetryLimitReached"]);
    expect((await scene.pool()).of("ImageBuildDegraded")).toMatchObject({
      status: "True",
      reason: "RetryLimitReached",
      message: expect.stringContaining("PushUnavailable") as string,
    });
    expect(await scene.events("BuildRetryScheduled")).toHaveLength(5);
    expect(await scene.events("BuildDegraded")).toHaveLength(1);
    await scene.pass(660_000);
    expect(scene.backend.started).toHaveLength(6);

    // The counter goes: it is begun anew, and the failed build stays for the record.
    scene.backend.scripts = [works];
    await scene.act(() => scene.annotatePool({ [buildRetries]: null }));
    await scene.pass(20_000);
    expect(await scene.states()).toEqual([
      "rendered-worker-1 append Failed/RetryLimitReached",
      "rendered-worker-1 append Succeeded/Appended",
    ]);
    expect((await scene.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "False", reason: "AsExpected" });
    expect(await scene.events("BuildRecovered")).toHaveLength(1);
  });

  test("a success at the third attempt takes the counter away [os-builder-rebuild-8]", async () => {
    const scene = await BuilderScene.make();
    scene.backend.scripts = [fails(unavailable), fails(unavailable), works];
    await scene.act(() => scene.optIn());
    scene.start();
    await scene.pass(20_000);
    expect((await scene.pool()).notes[buildRetries]).toBe("1");
    const [waiting] = await scene.builds();
    expect(stateOfBuild(waiting ?? {})).toMatchObject({
      phase: "Building",
      reason: "RetryScheduled",
      message: expect.stringMatching(
        /^attempt 2 of 6 at .*; previous: PushUnavailable: r\.example\.com answered 503$/,
      ) as string,
    });
    await scene.pass(200_000);
    expect(scene.backend.started.map(({ id }) => id.slice(-2))).toEqual(["-1", "-2", "-3"]);
    expect(await scene.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
    expect((await scene.pool()).notes[buildRetries]).toBeUndefined();
  });

  test("a class that trying again does not help stops at once, and leaves the counter as it was [os-builder-rebuild-17]", async () => {
    const scene = await BuilderScene.make();
    scene.backend.scripts = [fails(unavailable), fails(wrong)];
    await scene.act(() => scene.optIn());
    scene.start();
    await scene.pass(120_000);
    expect(scene.backend.started).toHaveLength(2);
    expect((await scene.pool()).notes[buildRetries]).toBe("1");
    expect((await scene.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "True", reason: "UserStepFailed" });
    await scene.pass(660_000);
    expect(scene.backend.started).toHaveLength(2);
  });

  test("the limit is the MachineOSConfig's, else the cluster's; a counter that is no number is none, and is told [os-builder-rebuild-7]", async () => {
    const scene = await BuilderScene.make();
    scene.backend.scripts = [fails(unavailable)];
    await scene.act(() => scene.configMap(objects.buildConfig, { maxBuildRetries: "1" }));
    await scene.act(() => scene.annotatePool({ [buildRetries]: "lots" }));
    await scene.act(() => scene.optIn());
    scene.start();
    await scene.pass(300_000);
    expect(scene.backend.started).toHaveLength(2);
    expect((await scene.events("ConfigReconcileFailed")).some((message) => message.includes('"lots"'))).toBe(true);
    await scene.act(() => scene.annotateConfig({ [annotations.maxBuildRetries]: "2" }));
    await scene.pass(300_000);
    expect(scene.backend.started.length).toBeGreaterThan(2);
  });

  test("a new configuration counts from nothing [os-builder-rebuild-4]", async () => {
    const scene = await BuilderScene.make();
    scene.backend.scripts = [fails(unavailable), fails(unavailable), works];
    await scene.act(() => scene.optIn());
    scene.start();
    await scene.pass(60_000);
    expect((await scene.pool()).notes[buildRetries]).toBe("2");
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "2" } }));
    await scene.pass(2000);
    expect((await scene.pool()).notes[buildRetries]).toBeUndefined();
  });

  test("a node that goes away under a build costs no retry; a run that somebody deletes is begun once more after a minute [os-builder-rebuild-18]", async () => {
    const scene = await BuilderScene.make();
    scene.backend.scripts = [
      [
        { forMs: 1000, is: "running", step: "pull-base" },
        { is: "fails", failure: { class: "NodeLost", step: "run", cause: "the node went away", excerpt: "" } },
      ],
      [{ forMs: 3_600_000, is: "running", step: "pull-base" }, { is: "succeeds" }],
    ];
    await scene.act(() => scene.optIn());
    scene.start();
    await scene.pass(60_000);
    expect(scene.backend.started).toHaveLength(2);
    expect((await scene.pool()).notes[buildRetries]).toBeUndefined();
    scene.backend.deleteRun(scene.backend.started[1]?.id ?? "");
    await scene.pass(10_000);
    expect((await scene.states())[0]).toBe("rendered-worker-1 append Interrupted/UserDeleted");
    expect(scene.backend.started).toHaveLength(2);
    await scene.pass(90_000);
    expect(scene.backend.started).toHaveLength(3);
    scene.backend.deleteRun(scene.backend.started[2]?.id ?? "");
    await scene.pass(600_000);
    expect(scene.backend.started).toHaveLength(3);
    expect(await scene.condition("UpToDate")).toMatchObject({ status: "False", reason: "BuildInterrupted" });
  });

  test("a failure of an edited MachineOSConfig is behind it: the new key is built at once [os-builder-rebuild-19]", async () => {
    const scene = await BuilderScene.make();
    scene.backend.scripts = [fails(wrong), works];
    await scene.act(() => scene.optIn("worker", {}, scene.steps("FROM os\nRUN false")));
    scene.start();
    await scene.pass(20_000);
    expect((await scene.states())[0]).toBe("rendered-worker-1 build Failed/UserStepFailed");
    await scene.act(() =>
      scene.kube.patch(
        MachineOSConfig,
        { name: "worker" },
        { type: "merge", body: { spec: scene.steps("FROM os\nRUN true") } },
      ),
    );
    await scene.pass(20_000);
    expect((await scene.states())[1]).toBe("rendered-worker-1 build Succeeded/Ready");
  });
});
