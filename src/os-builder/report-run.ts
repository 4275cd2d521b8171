import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { attemptOf } from "../core/build/build-retry.ts";
import { timesOf } from "../core/build/build-state.ts";
import type { RunCase } from "../core/build/run-decision.ts";
import type { Context } from "../kube/controller.ts";
import type { BuildBackend } from "./backend.ts";
import { clipped, writeBuildState } from "./write-objects.ts";

/** Reports that a build waits for others, because its backend runs as many as it may. */
export function reportQueued(message: string, { report }: Context): void {
  report({
    book: "cluster",
    chapter: "OsBuilder",
    path: "Queue",
    mark: "note",
    level: "progress",
    reason: "BuildQueued",
    message,
  });
}

/** Reports that a build waits for the run of another one. */
export async function reportAttached(
  build: MachineOSBuild,
  { state }: RunCase<"reportAttached">,
  context: Context,
): Promise<void> {
  if (await writeBuildState(build, state, context))
    context.report({ about: build, notice: "BuildAttached", message: state.message });
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
  const line = { book: `build/${build.metadata.name}`, run: String(attempt), level: "boundary" } as const;
  report({
    ...line,
    chapter: "Prepared",
    path: "Prepared",
    mark: "end",
    reason: "BuildPrepared",
    message: `attempt ${attempt} has all of its inputs`,
  });
  report({
    about: build,
    ...line,
    chapter: "Building",
    path: `Attempt/${attempt}`,
    mark: "begin",
    reason: "BuildStarted",
    message: state.message,
  });
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
  const attempt = attemptOf(build);
  if (isFirst) context.report({ about: build, notice: "BuildBuilding", message: `attempt ${attempt} runs` });
  if (isNewStep)
    context.report({
      book: `build/${build.metadata.name}`,
      chapter: "Building",
      run: String(attempt),
      path: `Attempt/${attempt}`,
      mark: "note",
      level: "progress",
      reason: "BuildStepDone",
      message: `at ${run.step ?? state.reason}`,
      data: { step: run.step ?? "" },
    });
}

/** Writes that another attempt follows, and reports the failure of the present one. */
export async function reportRetry(
  build: MachineOSBuild,
  { state, because, record }: RunCase<"retry">,
  context: Context,
): Promise<void> {
  if (!(await writeBuildState(build, { ...state, message: clipped(state.message) }, context))) return;
  const attempt = attemptOf(build);
  context.report({
    about: build,
    book: `build/${build.metadata.name}`,
    chapter: "Building",
    run: String(attempt),
    path: `Attempt/${attempt}`,
    mark: "fail",
    level: "boundary",
    reason: "BuildStepFailed",
    message: because,
    data: { class: record.class, step: record.step },
    next: { action: record.nextAction, actor: "administrator" },
  });
}
