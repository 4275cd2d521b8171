import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { annotations } from "../api/names.ts";
import { isAttached } from "../core/build/build-plan.ts";
import { attemptOf, readFailure } from "../core/build/build-retry.ts";
import { timesOf } from "../core/build/build-state.ts";
import type { RunState } from "../core/build/run-decision.ts";
import type { Context } from "../kube/controller.ts";
import type { BuildBackend } from "./backend.ts";
import { backendOf, buildRunOf } from "./build-runs.ts";
import { poolOfBuild } from "./cluster-facts.ts";
import { clipped, writeBuildState } from "./write-objects.ts";

/** The end with an image. */
export async function succeed(
  build: MachineOSBuild,
  image: string,
  reason: "Ready" | "Appended" | "Reused",
  run: Pick<RunState, "startedAt" | "endedAt"> | undefined,
  context: Context,
): Promise<void> {
  const times =
    run === undefined ? {} : timesOf(build.status?.buildStart ?? run.startedAt, run.endedAt, context.clock.now());
  if (
    !(await writeBuildState(build, { phase: "Succeeded", reason, message: image }, context, {
      ...times,
      digestedImagePushSpec: image,
    }))
  )
    return;
  const { name } = build.metadata;
  const pool = poolOfBuild(build);
  const attempt = attemptOf(build);
  if (reason === "Reused")
    context.report({
      about: build,
      notice: "BuildReused",
      message: `takes the image of ${build.metadata.annotations?.[annotations.reusedFrom] ?? "an earlier build"}: ${image}`,
    });
  else
    context.report({
      about: build,
      book: `build/${name}`,
      chapter: "Building",
      run: String(attempt),
      path: `Attempt/${attempt}`,
      mark: "end",
      level: "boundary",
      reason: "ImageBuilt",
      message: image,
    });
  context.report({
    book: `build/${name}`,
    chapter: "Verified",
    path: "Verified",
    mark: "end",
    level: "boundary",
    reason: "ImageBuilt",
    message: `${image} (${reason})`,
  });
  context.report({
    book: `pool/${pool}`,
    chapter: "Build",
    run: name,
    path: "Built",
    mark: "end",
    level: "boundary",
    reason: "ImageBuilt",
    message: image,
    data: { chapter: `build/${name}`, image },
  });
}

/** The end without an image: the last attempt has failed. */
export async function fail(build: MachineOSBuild, reason: string, message: string, context: Context): Promise<void> {
  const { report, clock } = context;
  const { name } = build.metadata;
  const record = readFailure(build.metadata.annotations?.[annotations.buildFailure]);
  const times =
    build.status?.buildStart === undefined
      ? {}
      : { buildEnd: timesOf(build.status.buildStart, undefined, clock.now()).buildEnd };
  if (!(await writeBuildState(build, { phase: "Failed", reason, message: clipped(message) }, context, times))) return;
  const next = { action: record?.nextAction ?? "Read the message", actor: "administrator" };
  report({
    // The build has failed with its last attempt, and the Event is about that.
    about: undefined,
    book: `build/${name}`,
    chapter: "Building",
    run: String(attemptOf(build)),
    path: `Attempt/${attemptOf(build)}`,
    mark: "fail",
    level: "boundary",
    reason: "BuildStepFailed",
    message,
    data: { class: record?.class ?? reason, step: record?.step ?? "" },
    next,
  });
  report({
    about: build,
    book: `build/${name}`,
    chapter: "Failed",
    path: "Failed",
    mark: "fail",
    level: "boundary",
    reason: reason === "RetryLimitReached" ? "RetryLimitReached" : "BuildFailed",
    message,
    data: { class: record?.class ?? reason },
    next,
  });
  report({
    book: `pool/${poolOfBuild(build)}`,
    chapter: "Build",
    run: name,
    path: "Built",
    mark: "fail",
    level: "boundary",
    reason: "BuildFailed",
    message,
    data: { chapter: `build/${name}`, class: record?.class ?? reason },
    next,
  });
}

/** An end without an image that is no failure. */
export async function interrupt(
  build: MachineOSBuild,
  reason: "Superseded" | "OptedOut" | "UserDeleted",
  message: string,
  context: Context,
): Promise<void> {
  const times =
    build.status?.buildStart === undefined
      ? {}
      : { buildEnd: timesOf(build.status.buildStart, undefined, context.clock.now()).buildEnd };
  if (!(await writeBuildState(build, { phase: "Interrupted", reason, message: clipped(message) }, context, times)))
    return;
  const { name } = build.metadata;
  context.report({
    about: build,
    book: `build/${name}`,
    chapter: "Interrupted",
    path: "Interrupted",
    mark: "end",
    level: "boundary",
    outcome: "Interrupted",
    reason: "BuildInterrupted",
    message: `${reason}: ${message}`,
  });
  context.report({
    book: `pool/${poolOfBuild(build)}`,
    chapter: "Build",
    run: name,
    path: "Built",
    mark: "end",
    level: "boundary",
    outcome: "Interrupted",
    reason: "BuildFailed",
    message: `${reason}: ${message}`,
  });
}

/** Ends the run of a build that is no longer desired: first the run, then the build that records it. */
export async function cancelBuild(
  build: MachineOSBuild,
  reason: "Superseded" | "OptedOut",
  message: string,
  { context, backends }: { readonly context: Context; readonly backends: readonly BuildBackend[] },
): Promise<void> {
  const backend = isAttached(build) ? undefined : backendOf(build, backends);
  if (backend !== undefined) await backend.cancel(buildRunOf(build), message, context.signal);
  await interrupt(build, reason, message, context);
}
