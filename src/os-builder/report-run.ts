import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { attemptOf } from "../core/build/build-retry.ts";
import { timesOf } from "../core/build/build-state.ts";
import type { RunCase } from "../core/build/run-decision.ts";
import type { Context } from "../kube/controller.ts";
import type { BuildBackend } from "./backend.ts";
import { clipped, writeBuildState } from "./write-objects.ts";
import { attemptFailed, buildAttached, runBegun, runSeen, stepReached } from "./reports.ts";

/** Reports that a build waits for the run of another one. */
export async function reportAttached(
  build: MachineOSBuild,
  { state }: RunCase<"reportAttached">,
  context: Context,
): Promise<void> {
  if (await writeBuildState(build, state, context)) context.report(buildAttached(build, state.message));
}

/** Reports that the run of an attempt was begun. */
export async function reportBegun(
  build: MachineOSBuild,
  { state }: RunCase<"reportBegun">,
  backend: BuildBackend,
  context: Context,
): Promise<void> {
  const { report, log } = context;
  const attempt = attemptOf(build);
  if (!(await writeBuildState(build, state, context))) return;
  log.info({ build: build.metadata.name, attempt, backend: backend.kind }, "run begun");
  report(runBegun(build, state.message));
}

/** Writes the state of a run, and reports what is new about it. */
export async function reportRun(
  build: MachineOSBuild,
  { state, run, isFirst, isNewStep }: RunCase<"reportRun">,
  context: Context,
): Promise<void> {
  const more =
    state.phase === "Building" && run.startedAt !== undefined
      ? { buildStart: timesOf(run.startedAt, undefined, context.clock.now()).buildStart }
      : {};
  if (!(await writeBuildState(build, { ...state, message: clipped(state.message) }, context, more))) return;
  if (isFirst) context.report(runSeen(build));
  if (isNewStep) context.report(stepReached(build, run.step, state.reason));
}

/** Writes that another attempt follows, and reports the failure of the present one. */
export async function reportRetry(
  build: MachineOSBuild,
  { state, because, record }: RunCase<"retry">,
  context: Context,
): Promise<void> {
  if (!(await writeBuildState(build, { ...state, message: clipped(state.message) }, context))) return;
  context.report(attemptFailed(build, because, record));
}
