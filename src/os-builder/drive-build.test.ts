import { describe, expect, test } from "vitest";
import { BuilderHarness } from "../../test/support/builder-harness.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { annotations } from "../api/names.ts";
import { timestampOf } from "../api/schema/object.ts";
import type { RunState } from "../core/build/run-decision.ts";
import type { Context } from "../kube/controller.ts";
import { silentLogger } from "../ports/logger.ts";
import { driveBuild } from "./drive-build.ts";
import type { BuildBackend } from "./backend.ts";
import type { NextPassMs } from "./perform-run.ts";

const failed: RunState = {
  phase: "Failed",
  failure: { class: "PushUnavailable", step: "push", cause: "503", excerpt: "" },
};

/** A build whose first run is under way, in a cluster whose builder has ended. */
async function startedBuild(): Promise<{ readonly harness: BuilderHarness; readonly build: MachineOSBuild }> {
  const harness = await BuilderHarness.make();
  harness.backend.scripts = [[{ forMs: 3_600_000, is: "running", step: "push" }]];
  await harness.act(() => harness.optIn());
  const process = harness.start();
  await harness.pass(20_000);
  process.abort(new Error("this one ends"));
  const [build] = await harness.builds();
  if (build === undefined) throw new Error("no build was created");
  return { harness, build };
}

/** One pass over a build as a watch showed it, whose run has failed. */
const pass = ({ kube, kernel }: BuilderHarness, build: MachineOSBuild): Promise<NextPassMs> => {
  const context = {
    kube,
    clock: kernel.clock,
    random: kernel.random,
    log: silentLogger,
    signal: new AbortController().signal,
    report: () => undefined,
    caches: { of: () => ({ get: () => undefined, list: () => [build] }) },
  } as unknown as Context;
  const backend = {
    capabilities: () => ({ run: true, atOnce: 1 }),
    observe: () => Promise.resolve(failed),
  } as unknown as BuildBackend;
  return driveBuild(build, {
    context,
    backends: [backend],
    observer: undefined as never,
    wantOf: () => Promise.resolve("waits"),
  });
};

const note = (harness: BuilderHarness, { metadata }: MachineOSBuild, notes: Readonly<Record<string, string>>) =>
  harness.act(() =>
    harness.kube.patch(MachineOSBuild, metadata, { type: "merge", body: { metadata: { annotations: notes } } }),
  );
const attempt = async (harness: BuilderHarness) =>
  (await harness.builds())[0]?.metadata.annotations?.[annotations.buildAttempt];

describe("a pass over a build whose run has failed", () => {
  test("notes the failure, and what follows from it, once [os-builder-drive-1]", async () => {
    const { harness, build } = await startedBuild();
    expect(await harness.act(() => pass(harness, build))).toBeGreaterThan(0);
    expect(await attempt(harness)).toBe("2");
  });

  test("leaves a build that is at a later attempt by now as it is [os-builder-drive-2]", async () => {
    const { harness, build } = await startedBuild();
    const at = timestampOf(harness.kernel.clock.now() + 30_000);
    await note(harness, build, {
      [annotations.buildAttempt]: "2",
      [annotations.nextAttemptAt]: at,
      [annotations.buildFailure]: JSON.stringify({ ...failed.failure, attempt: 1, follows: { do: "again", at } }),
    });
    const next = await harness.act(() => pass(harness, build));
    expect(next).toBeGreaterThan(0);
    expect(next).toBeLessThanOrEqual(30);
    expect(await attempt(harness)).toBe("2");
  });

  test("ends with a failure of the attempt from which nothing follows [os-builder-drive-3]", async () => {
    const { harness, build } = await startedBuild();
    const text = JSON.stringify({ ...failed.failure, attempt: 1 });
    await note(harness, build, { [annotations.buildFailure]: text });
    const [noted = build] = await harness.builds();
    expect(await harness.act(() => pass(harness, noted))).toBeUndefined();
    expect(await attempt(harness)).toBe("1");
  });
});
