import { describe, expect, test } from "vitest";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations } from "../api/names.ts";
import type { BuildFailure } from "../core/build/build-failures.ts";
import { BuilderHarness } from "../../test/support/builder-harness.ts";
import { hasEnded, stateOfBuild } from "../core/config/build-phase.ts";

const unavailable: BuildFailure = { class: "PushUnavailable", step: "push", cause: "503", excerpt: "" };

/** A life with most that can happen in one: a failed attempt, a new configuration, a rebuild, a way back. */
const busyLife: readonly ((harness: BuilderHarness) => Promise<unknown>)[] = [
  (harness) => harness.optIn(),
  (harness) => harness.render("worker", { files: { "/etc/a": "2" } }, "rendered-worker-two"),
  (harness) => harness.annotatePool({ [annotations.rebuildImage]: "again" }),
  (harness) => harness.point("worker", "rendered-worker-1"),
];
const chapterMs = 45_000;

/** In, and out again while something runs. */
const shortLife: readonly ((harness: BuilderHarness) => Promise<unknown>)[] = [
  async (harness) => {
    await harness.buildConfig();
    await harness.labelPool({ [annotations.layeringEnabled]: "" });
  },
  async (harness) => {
    harness.backend.scripts = [[{ forMs: 600_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
    await harness.render("worker", { files: { "/etc/a": "2" } }, "rendered-worker-two");
    await harness.annotatePool({ [annotations.rebuildImage]: "again" });
  },
  (harness) => harness.labelPool({ [annotations.layeringEnabled]: null }),
];

async function live(
  chapters: typeof busyLife,
  killedAfterWrite: number,
): Promise<{ readonly harness: BuilderHarness; readonly writes: number }> {
  const harness = await BuilderHarness.make();
  harness.backend.scripts = [
    [
      { forMs: 1000, is: "running", step: "pull-base" },
      { is: "fails", failure: unavailable },
    ],
    [
      { forMs: 1000, is: "running", step: "pull-base" },
      { forMs: 1000, is: "running", step: "push" },
      { is: "succeeds" },
    ],
  ];
  let writes = 0;
  let process: AbortController | undefined;
  let lives = 0;
  const begin = () => {
    lives += 1;
    process = harness.start(`life-${lives}`);
  };
  // The backend and the objects of builds are external: each call to them is a step as well.
  const step = () => {
    writes += 1;
    if (writes !== killedAfterWrite) return;
    process?.abort();
    harness.kernel.schedule(500, "started again", begin);
  };
  harness.intercept = (handler) => async (request, signal) => {
    const isWrite =
      request.method !== "GET" && !request.target.includes("/leases") && !request.target.includes("/events");
    const answer = await handler(request, signal);
    if (isWrite) step();
    return answer;
  };
  harness.backend.onCall = step;
  begin();
  for (const chapter of chapters) {
    await harness.act(() => chapter(harness));
    await harness.pass(chapterMs);
  }
  await harness.pass(60_000);
  return { harness, writes };
}

/** The result of a run, without names of attempts and times. */
async function ending(harness: BuilderHarness) {
  const config = await harness.config();
  const { notes, of } = await harness.pool();
  const current = (await harness.builds()).find(
    ({ metadata }) => metadata.name === config.status?.machineOSBuild?.name,
  );
  return {
    image: config.status?.currentImagePullSpec,
    build: current?.spec.machineConfig.name,
    isNamed: config.metadata.annotations?.[annotations.currentMachineOSBuild] === current?.metadata.name,
    serial: config.metadata.annotations?.[annotations.rebuildSerial],
    active: config.metadata.annotations?.[annotations.rebuildActive],
    request: notes[annotations.rebuildImage],
    retries: notes[annotations.buildRetries],
    degraded: of("ImageBuildDegraded")?.status,
    upToDate: (await harness.condition("UpToDate"))?.status,
    objects: [...harness.backend.objects.keys()],
  };
}

describe("a builder that is killed", () => {
  test("after any write or backend call ends like one that was not killed, and leaves nothing behind [os-builder-killed-1]", async () => {
    const whole = await live(busyLife, -1);
    const expected = await ending(whole.harness);
    expect(expected).toMatchObject({
      isNamed: true,
      serial: "1",
      active: undefined,
      request: undefined,
      retries: undefined,
      degraded: "False",
      upToDate: "True",
      objects: [],
      build: "rendered-worker-1",
    });
    expect(whole.writes).toBeGreaterThan(40);
    // A spread of the steps here; the others with MCO_EVERY_KILL.
    const stride = process.env["MCO_EVERY_KILL"] === undefined ? 14 : 1;
    for (let at = 1; at <= whole.writes; at += stride) {
      const { harness } = await live(busyLife, at);
      expect(await ending(harness), `killed after step ${at}`).toEqual(expected);
    }
  });

  test("while a pool opts out, still ends its run and retracts its reports [os-builder-killed-2]", async () => {
    const left = async ({ harness }: Awaited<ReturnType<typeof live>>) => {
      const { notes, of } = await harness.pool();
      return {
        notes: Object.keys(notes).sort(),
        degraded: of("ImageBuildDegraded")?.reason,
        building: of("Building")?.status,
        objects: [...harness.backend.objects.keys()],
        cancelled: harness.backend.cancelled.length,
        configs: (await harness.act(() => harness.kube.list(MachineOSConfig))).items.length,
        running: (await harness.builds()).filter((build) => !hasEnded(stateOfBuild(build))).length,
      };
    };
    const whole = await live(shortLife, -1);
    const expected = await left(whole);
    expect(expected).toEqual({
      notes: [],
      degraded: "OptedOut",
      building: undefined,
      objects: [],
      cancelled: expected.cancelled,
      configs: 0,
      running: 0,
    });
    expect(expected.cancelled).toBeGreaterThan(0);
    const stride = process.env["MCO_EVERY_KILL"] === undefined ? 12 : 1;
    for (let at = 2; at <= whole.writes; at += stride)
      expect(await left(await live(shortLife, at)), `killed after step ${at}`).toMatchObject({
        ...expected,
        cancelled: expect.any(Number) as number,
      });
  });

  test("while retries are counted, counts none twice [os-builder-killed-3]", async () => {
    const always = [
      { forMs: 500, is: "running" as const, step: "push" },
      { is: "fails" as const, failure: unavailable },
    ];
    for (const at of [3, 5, 7, 9, 11, 13, 15, 17]) {
      const harness = await BuilderHarness.make();
      harness.backend.scripts = [always];
      let writes = 0;
      let process = harness.start("one");
      harness.intercept = (handler) => async (request, signal) => {
        const answer = await handler(request, signal);
        if (
          request.method !== "GET" &&
          !request.target.includes("/leases") &&
          !request.target.includes("/events") &&
          (writes += 1) === at
        ) {
          process.abort();
          harness.kernel.schedule(200, "started again", () => (process = harness.start("two")));
        }
        return answer;
      };
      await harness.act(() => harness.optIn());
      await harness.pass(20_000);
      expect((await harness.pool()).notes[annotations.buildRetries], `killed after write ${at}`).toBe("1");
      expect(harness.backend.started, `killed after write ${at}`).toHaveLength(1);
    }
  });

  test("leaves the runs of deleted builds for the next process to end [os-builder-killed-4]", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.scripts = [[{ forMs: 600_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
    await harness.act(() => harness.optIn());
    const process = harness.start();
    await harness.pass(5000);
    process.abort();
    await harness.pass(1000);
    for (const { metadata } of await harness.builds())
      await harness.act(() => harness.kube.delete(harness.buildKind, { name: metadata.name }));
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
    harness.start("two");
    await harness.pass(30_000);
    expect(harness.backend.cancelled).toHaveLength(1);
    expect(await harness.states()).toEqual(["rendered-worker-2 append Building/StepPullBase"]);
    expect(harness.backend.objects.size).toBe(1);
  });
});

test("of two builders one works; when it stops, the other continues its runs [os-builder-killed-5]", async () => {
  const harness = await BuilderHarness.make();
  harness.backend.scripts = [[{ forMs: 60_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
  await harness.act(() => harness.optIn());
  const first = harness.start("one");
  harness.start("two");
  await harness.pass(10_000);
  first.abort();
  await harness.pass(120_000);
  expect(harness.backend.started).toHaveLength(1);
  expect(harness.backend.cancelled).toEqual([]);
  expect(await harness.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
});

describe("failed requests", () => {
  test.for(["start", "observe", "cancel", "cleanup", "preflight"] as const)(
    "a %s that fails every other time changes nothing of the end",
    async (verb) => {
      const harness = await BuilderHarness.make();
      harness.backend.breaks = (called, call) => called === verb && call % 2 === 1;
      await harness.act(() => harness.optIn("worker", {}, harness.steps()));
      harness.start();
      await harness.pass(4000);
      await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
      await harness.pass(60_000);
      expect((await harness.states()).at(-1)).toBe("rendered-worker-2 build Succeeded/Ready");
      expect(await harness.condition("UpToDate")).toMatchObject({ status: "True" });
      expect(harness.backend.objects.size).toBe(0);
    },
  );

  test("an image is published before the cleanup: a cleanup that always fails does not block it", async () => {
    const harness = await BuilderHarness.make();
    harness.backend.breaks = (called) => called === "cleanup";
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(30_000);
    expect((await harness.config()).status?.currentImagePullSpec).toBeDefined();
  });
});
