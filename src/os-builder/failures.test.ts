import { describe, expect, test } from "vitest";
import { McoError } from "../api/errors.ts";
import { annotations, imageLabels, machineOSBuildConditions, objects } from "../api/names.ts";
import { type BuildFailure, type FailureClass, failureClasses, nextActionOf } from "../core/build/build-failures.ts";
import { readFailure } from "../core/build/build-retry.ts";
import { BuilderHarness, builtPool } from "../../test/support/builder-harness.ts";
import { hasEnded, stateOfBuild } from "../core/config/build-phase.ts";
import { progressTypes } from "../api/schema/progress-conditions.ts";

/** Classes that a run can end with; the others are reported before a run starts, or after the last retry. */
const ofRuns = (Object.keys(failureClasses) as FailureClass[]).filter(
  (class_) => !["RetryLimitReached", "ExtensionUnknown", "BuilderBinaryMissing"].includes(class_),
);

describe("every way to fail", () => {
  test.for(ofRuns)(
    "%s is reported on the build, the pool, in events and in the book, with a remedy [os-builder-failures-5]",
    async (class_) => {
      const failure: BuildFailure = {
        class: class_,
        step: "user:2",
        exitCode: 1,
        cause: "something went wrong",
        excerpt: "the last\nlines",
      };
      const harness = await BuilderHarness.make();
      harness.backend.scripts = [
        [
          { forMs: 500, is: "running", step: "user:2" },
          { is: "fails", failure },
        ],
        [{ forMs: 3_600_000, is: "running", step: "user:2" }, { is: "succeeds" }],
      ];
      await harness.act(() => harness.optIn());
      harness.start();
      await harness.pass(4000);
      const [build] = await harness.builds();
      const state = stateOfBuild(build ?? {});
      const { retry } = failureClasses[class_];
      const action = nextActionOf(failure, retry === "permanent" ? "end" : "again");
      const says = `user:2 failed on attempt 1/6: something went wrong. ${action}.`;
      const record = readFailure(build?.metadata.annotations?.[annotations.buildFailure]);
      expect(record).toMatchObject({
        class: class_,
        step: "user:2",
        attempt: 1,
        exitCode: 1,
        excerpt: "the last\nlines",
        nextAction: action,
        firstSeen: expect.stringMatching(/^2026-/) as string,
        lastSeen: expect.stringMatching(/^2026-/) as string,
      });
      const { notes, of } = await harness.pool();
      const told = await harness.events(retry === "permanent" ? "BuildFailed" : "BuildRetryScheduled");
      expect(told[0]).toContain(says);
      if (retry === "permanent") {
        expect(state).toMatchObject({ phase: "Failed", reason: class_, message: says });
        expect(of("ImageBuildDegraded")).toMatchObject({ status: "True", reason: class_, message: says });
        expect(notes[annotations.buildRetries]).toBeUndefined();
      } else {
        expect(state).toMatchObject({ phase: "Building", reason: "RetryScheduled" });
        expect(state.message).toContain(`previous: ${class_}: something went wrong`);
        expect(notes[annotations.buildRetries]).toBe(retry === "infrastructure" || retry === "wait" ? undefined : "1");
      }
      const lines = harness.journal.lines.filter(
        ({ book, mark }) => book === `build/${build?.metadata.name}` && mark === "fail",
      );
      expect(lines[0]).toMatchObject({
        chapter: "Building",
        reason: "BuildStepFailed",
        message: expect.stringContaining(says) as string,
        data: { class: class_, step: "user:2" },
        next: { action },
      });
      if (retry === "permanent") expect(lines.at(-1)).toMatchObject({ chapter: "Failed", reason: "BuildFailed" });
    },
  );
});

test("a Secret deleted during a build is named, counts no retry, and the build continues when it is back", async () => {
  const harness = await BuilderHarness.make();
  harness.backend.startFails = new McoError("MCO_BUILD_INPUT_MISSING", {
    kind: "Secret",
    name: "push",
    problem: "there is no such Secret",
  });
  await harness.act(() => harness.optIn());
  harness.start();
  await harness.pass(60_000);
  const [build] = await harness.builds();
  expect(stateOfBuild(build ?? {})).toMatchObject({
    phase: "Prepared",
    reason: "InputChanged",
    message: expect.stringContaining("Secret push: there is no such Secret") as string,
  });
  expect((await harness.pool()).notes[annotations.buildRetries]).toBeUndefined();
  harness.backend.startFails = undefined;
  await harness.pass(60_000);
  expect(await harness.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
});

describe("conditions of a build", () => {
  test("are written in legal order, one True at a time, and do not change after the end", async () => {
    const seen: string[][] = [];
    const judging: readonly string[] = Object.values(progressTypes);
    const harness = await BuilderHarness.make();
    harness.intercept = (handler) => async (request, signal) => {
      if (request.method === "PATCH" && /machineosbuilds\/[^/]+\/status/.test(request.target)) {
        const body = JSON.parse(String(request.body)) as {
          status?: { conditions?: { type: string; status: string; reason: string }[] };
        };
        seen.push(
          (body.status?.conditions ?? [])
            .filter(({ type, status }) => status === "True" && !judging.includes(type))
            .map(({ type, reason }) => `${type}/${reason}`),
        );
      }
      return handler(request, signal);
    };
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(20_000);
    expect(seen).toEqual([
      [],
      ["Prepared/WaitingForPod"],
      ["Building/StepPullBase"],
      ["Building/StepPush"],
      ["Succeeded/Appended"],
    ]);
    const [build] = await harness.builds();
    expect(build?.status?.conditions?.map(({ type }) => type)).toEqual([
      ...Object.values(machineOSBuildConditions),
      ...judging,
    ]);
    expect(Date.parse(build?.status?.buildEnd ?? "")).toBeGreaterThan(Date.parse(build?.status?.buildStart ?? ""));
  });

  test("messages contain no time, so they stay the same while nothing changes", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [[{ forMs: 600_000, is: "running", step: "user:1" }, { is: "succeeds" }]];
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(10_000);
    const before = (await harness.builds())[0]?.metadata.resourceVersion;
    const config = (await harness.config()).metadata.resourceVersion;
    await harness.pass(120_000);
    expect((await harness.builds())[0]?.metadata.resourceVersion).toBe(before);
    expect((await harness.config()).metadata.resourceVersion).toBe(config);
  });
});

describe("an image is verified as machines will pull it", () => {
  const after = async (spoil: (harness: BuilderHarness) => void) => {
    const harness = await BuilderHarness.make();
    spoil(harness);
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(6000);
    const [build] = await harness.builds();
    return {
      harness,
      state: stateOfBuild(build ?? {}),
      failure: readFailure(build?.metadata.annotations?.[annotations.buildFailure]),
    };
  };

  test.for([
    {
      title: "that nodes may not pull",
      spoil: (harness: BuilderHarness) => void (harness.registry.is = "denying"),
      says: /nodes may not pull/,
    },
    {
      title: "that the registry does not have",
      spoil: (harness: BuilderHarness) => void (harness.backend.onImage = () => undefined),
      says: /does not have/,
    },
    {
      title: "for another architecture",
      spoil: (harness: BuilderHarness) => void (harness.registry.architecture = "arm64"),
      says: /arm64/,
    },
    {
      title: "with content other than requested",
      spoil: (harness: BuilderHarness) =>
        void (harness.backend.onImage = (image, request) =>
          harness.registry.images.set(image, { ...request.labels, [imageLabels.content]: "os-only" })),
      says: /content=os-only/,
    },
    {
      title: "on another base",
      spoil: (harness: BuilderHarness) =>
        void (harness.backend.onImage = (image, request) =>
          harness.registry.images.set(image, { ...request.labels, [imageLabels.baseDigest]: "sha256:0" })),
      says: /stands on sha256:0/,
    },
    {
      title: "that is no longer bootable",
      spoil: (harness: BuilderHarness) =>
        void (harness.backend.onImage = (image, request) => harness.registry.images.set(image, request.labels)),
      says: /can be booted/,
    },
  ])("one $title fails as VerifyFailed, and is not rolled out [os-builder-failures-1]", async ({ spoil, says }) => {
    const { harness, state, failure } = await after(spoil);
    expect(state.reason).toBe("RetryScheduled");
    expect(failure).toMatchObject({
      class: "VerifyFailed",
      step: "verify",
      cause: expect.stringMatching(says) as string,
    });
    expect((await harness.config()).status?.currentImagePullSpec).toBeUndefined();
  });

  test("with the machines' credentials: the cluster's own, and none of the builds' [os-builder-failures-2]", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.secret("base", "base-only.example.com"));
    await harness.act(() => harness.optIn("worker", {}, { baseImagePullSecret: { name: "base" } }));
    harness.start();
    await harness.pass(15_000);
    expect((await harness.config()).status?.currentImagePullSpec).toBeDefined();
    const [asNode] = harness.accesses.filter(({ push }) => push === undefined);
    expect(Object.keys((JSON.parse(asNode?.pull ?? "{}") as { auths: object }).auths)).toEqual(["b.example.com"]);
  });

  test("a registry that does not answer proves nothing: the builder waits, and counts no retry [os-builder-failures-3]", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.optIn());
    harness.backend.onImage = () => undefined;
    harness.start();
    await harness.pass(2000);
    harness.registry.is = "down";
    await harness.pass(120_000);
    const [build] = await harness.builds();
    expect(stateOfBuild(build ?? {})).toMatchObject({ phase: "Building", reason: "RegistryUnreachable" });
    expect((await harness.pool()).notes[annotations.buildRetries]).toBeUndefined();
    const digest = build?.metadata.annotations?.[annotations.contentKey];
    expect(digest).toBeDefined();
    harness.backend.onImage = (image, request) =>
      harness.registry.images.set(image, { ...request.labels, "containers.bootc": "1" });
    harness.registry.is = "up";
    await harness.pass(60_000);
    expect((await harness.config()).status?.currentImagePullSpec).toBeDefined();
    expect(harness.backend.started).toHaveLength(1);
  });

  test("a run that does not report its image is retried [os-builder-failures-4]", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [[{ is: "succeeds", digest: "latest" }], [{ is: "succeeds" }]];
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(60_000);
    expect(await harness.events("BuildRetryScheduled")).toHaveLength(1);
    expect(await harness.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
  });
});

test("pruning deletes old unused images after two checks and reports it; a refusing registry is reported daily", async () => {
  const { harness, image } = await builtPool();
  const images = [image];
  for (const text of ["2", "3", "4", "5", "6"]) {
    await harness.act(() => harness.render("worker", { files: { "/etc/a": text } }));
    await harness.pass(8000);
    images.push((await harness.config()).status?.currentImagePullSpec ?? "");
  }
  expect(new Set(images).size).toBe(6);
  await harness.act(() =>
    harness.node("w0", "worker", { annotations: { [annotations.desiredImage]: images[1] ?? "" } }),
  );
  harness.registry.deletes = "denied";
  await harness.act(() => harness.configMap(objects.buildConfig, { pruneDryRun: "true" }));
  await harness.skip(86_400_000);
  await harness.pass(20_000);
  expect(await harness.builds()).toHaveLength(6);
  expect(await harness.condition("Pruned")).toMatchObject({
    status: "False",
    reason: "DryRun",
    message: expect.stringMatching(/^would go: worker-/) as string,
  });
  await harness.act(() => harness.configMap(objects.buildConfig, { pruneDryRun: "false" }));
  // A day and a quarter of an hour, with few looks in between.
  await harness.skip(86_400_000);
  await harness.pass(20_000);
  await harness.skip(900_000);
  await harness.pass(20_000);
  expect(await harness.events("ImageNotPruned")).toHaveLength(2);
  expect((await harness.builds()).map(({ status }) => images.indexOf(status?.digestedImagePushSpec ?? ""))).toEqual([
    1, 3, 4, 5,
  ]);
  expect(await harness.condition("Pruned")).toMatchObject({ status: "True" });
  expect((await harness.builds()).every((build) => hasEnded(stateOfBuild(build)))).toBe(true);
});
