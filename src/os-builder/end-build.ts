import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { annotations } from "../api/names.ts";
import { isAttached } from "../core/build/build-plan.ts";
import { readFailure } from "../core/build/build-retry.ts";
import { timesOf } from "../core/build/build-state.ts";
import type { RunState } from "../core/build/run-decision.ts";
import type { Context } from "../kube/controller.ts";
import type { BuildBackend } from "./backend.ts";
import { backendOf, buildRunOf } from "./build-runs.ts";
import { buildFailed, buildInterrupted, imageBuilt } from "./reports.ts";
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
  context.report(imageBuilt(build, image, reason));
}

/** The end without an image: the last attempt has failed. */
export async function fail(build: MachineOSBuild, reason: string, message: string, context: Context): Promise<void> {
  const { clock } = context;
  const record = readFailure(build.metadata.annotations?.[annotations.buildFailure]);
  const times =
    build.status?.buildStart === undefined
      ? {}
      : { buildEnd: timesOf(build.status.buildStart, undefined, clock.now()).buildEnd };
  if (!(await writeBuildState(build, { phase: "Failed", reason, message: clipped(message) }, context, times))) return;
  context.report(buildFailed(build, reason, message, record));
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
  context.report(buildInterrupted(build, reason, message));
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
