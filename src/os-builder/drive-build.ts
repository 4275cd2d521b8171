import { McoError } from "../api/errors.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations } from "../api/names.ts";
import { timestampOf } from "../api/schema/object.ts";
import {
  type BuildFailure,
  type FailureClass,
  boundedFailure,
  classifyImageError,
  failureClasses,
} from "../core/build/build-failures.ts";
import { buildSettingsIn, poolOfBuild } from "./cluster-facts.ts";
import { readRendered } from "../core/build/build-inputs.ts";
import { imageOf, isAttached, isWaitedFor } from "../core/build/build-plan.ts";
import { isStarted } from "../core/build/build-queue.ts";
import { retryAfterFailure, readFailure, readRetries, retrySentence } from "../core/build/build-retry.ts";
import { activeRebuild } from "../core/build/build-rebuild.ts";
import { timesOf, stepReason } from "../core/build/build-state.ts";
import type { Context } from "../kube/controller.ts";
import type { BuildBackend, BuildRequest, RunRef, RunState } from "./backend.ts";
import { buildRequest } from "./build-request.ts";
import type { Want, WantObserver } from "./observe-want.ts";
import { verifyImage } from "./verify-image.ts";
import { annotateBuild, annotatePool, writeBuildState } from "./write-objects.ts";
import { readComponents } from "../core/config/key-components.ts";
import type { ContentMode } from "../core/config/node-config.ts";
import { type BuildState, hasEnded, stateOfBuild } from "../core/config/build-phase.ts";
import { maxRetriesOf } from "../core/build/build-settings.ts";

/** How soon a build is checked again when no event arrives. */
const looks = { running: 10, queued: 5, registry: 30 } as const;
/** A run that a user deleted is restarted after this. */
const deletedAgainMs = 60_000;
/** Longest message of a condition. */
const conditionText = 1024;

export interface DriveContext {
  readonly context: Context;
  readonly backends: readonly BuildBackend[];
  readonly observer: WantObserver;
  /** The build's inputs, read again. `changed`: they differ by now. `waits`: they cannot be read at the moment. */
  readonly wantOf: (build: MachineOSBuild) => Promise<Want | "changed" | "waits">;
}

/** Seconds until the next pass; `undefined`: at the next event. */
export type NextPassMs = number | undefined;

const noted = (build: MachineOSBuild, annotation: string) => build.metadata.annotations?.[annotation];
export const attemptOf = (build: MachineOSBuild): number => Number(noted(build, annotations.buildAttempt) ?? "1") || 1;
export const buildRunOf = (build: MachineOSBuild, attempt = attemptOf(build)): RunRef => ({
  id: `${build.metadata.name}-${attempt}`,
  build: build.metadata.name,
  attempt,
});

/** The backend of a build: the one that runs steps if there are any, otherwise the first that needs none. */
export function backendOf(build: MachineOSBuild, backends: readonly BuildBackend[]): BuildBackend | undefined {
  const runs = noted(build, annotations.buildStrategy) === "build";
  return runs
    ? backends.find((backend) => backend.capabilities().run)
    : (backends.find((backend) => !backend.capabilities().run) ?? backends[0]);
}

const clipped = (text: string) => (text.length <= conditionText ? text : `${text.slice(0, conditionText - 1)}…`);

/** Advances an unfinished build by one step: starts its run, or reports the state of the run. */
export async function driveBuild(build: MachineOSBuild, drive: DriveContext): Promise<NextPassMs> {
  const state = stateOfBuild(build);
  if (hasEnded(state) || build.metadata.deletionTimestamp !== undefined) return undefined;
  if (isAttached(build)) return follow(build, drive);
  const backend = backendOf(build, drive.backends);
  if (backend === undefined) {
    await writeBuildState(
      build,
      { phase: state.phase, reason: state.reason, message: failureClasses.BuilderBinaryMissing.means },
      drive.context,
    );
    return looks.queued;
  }
  const recorded = readFailure(noted(build, annotations.buildFailure));
  // The consequences of a failure were only partly written.
  if (recorded?.attempt === attemptOf(build) && recorded.follows !== undefined) return concludeFailure(build, drive);
  const due = Date.parse(noted(build, annotations.nextAttemptAt) ?? "");
  const waitsFor = due - drive.context.clock.now();
  if (!Number.isNaN(waitsFor) && waitsFor > 0) return waitsFor / 1000;
  return isStarted(build, state) ? watchRun(build, state, backend, drive) : startRun(build, state, backend, drive);
}

/** Begins the run of the present attempt, when there is room and its inputs are what they were. */
async function startRun(
  build: MachineOSBuild,
  state: BuildState,
  backend: BuildBackend,
  drive: DriveContext,
): Promise<NextPassMs> {
  const { context } = drive;
  if (isQueued(build, backend, drive)) return looks.queued;
  const want = await drive.wantOf(build);
  if (want === "waits") {
    await reportHeldBack(
      build,
      state,
      `the inputs of the MachineOSConfig ${build.spec.machineOSConfig.name} cannot be read; its conditions say why`,
      context,
    );
    return looks.registry;
  }
  if (want === "changed") {
    // Another build follows for the currently desired image, and for builds that wait for this one.
    await interrupt(build, "Superseded", "its inputs have changed", context);
    return undefined;
  }
  const requested = await requestFor(build, want, drive);
  if (requested.verdict === "failed") return failAttempt(build, requested.failure, drive);
  const { request } = requested;
  try {
    await backend.start(request, context.signal);
  } catch (error) {
    if (!(error instanceof McoError) || error.code !== "MCO_BUILD_INPUT_MISSING") throw error;
    await reportMissingInput(build, state, error, context);
    return looks.registry;
  }
  if (request.containerfile !== undefined)
    await annotateBuild(
      build,
      { [annotations.renderedContainerfile]: request.containerfile.slice(0, 16_384) },
      context,
    );
  if (noted(build, annotations.nextAttemptAt) !== undefined)
    await annotateBuild(build, { [annotations.nextAttemptAt]: null }, context);
  await reportBegun(build, state, backend, request, context);
  return looks.running;
}

/** Whether a build waits for others, because the backend runs as many as it may. */
function isQueued(build: MachineOSBuild, backend: BuildBackend, { context, backends }: DriveContext): boolean {
  const running = context.caches
    .of(MachineOSBuild)
    .list()
    .filter(
      (other) =>
        other.metadata.name !== build.metadata.name &&
        !isAttached(other) &&
        backendOf(other, backends) === backend &&
        isStarted(other, stateOfBuild(other)) &&
        !hasEnded(stateOfBuild(other)),
    );
  if (running.length < backend.capabilities().atOnce) return false;
  context.report({
    book: "cluster",
    chapter: "OsBuilder",
    path: "Queue",
    mark: "note",
    level: "progress",
    reason: "BuildQueued",
    message: `${build.metadata.name} waits for ${running.map(({ metadata }) => metadata.name).join(", ")}`,
  });
  return true;
}

type Requested =
  | { readonly verdict: "request"; readonly request: BuildRequest }
  | { readonly verdict: "failed"; readonly failure: BuildFailure };

/** Everything that the present attempt needs; an image that cannot be read fails the attempt. */
async function requestFor(build: MachineOSBuild, want: Want, { context, observer }: DriveContext): Promise<Requested> {
  const seen = readFailure(noted(build, annotations.buildFailure));
  const how = { moreMemory: (seen?.counts.OutOfMemory ?? 0) > 0, noCache: activeRebuild(want.config) !== undefined };
  const { caches, signal } = context;
  try {
    const request = await buildRequest(build, attemptOf(build), want, observer, caches, how, signal);
    return { verdict: "request", request };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof McoError) || !error.code.startsWith("MCO_IMAGE_")) throw error;
    return { verdict: "failed", failure: classifyImageError("pull-base", error) };
  }
}

/** A Secret or ConfigMap was deleted while the run was starting: that is not a failure of the attempt. */
async function reportMissingInput(
  build: MachineOSBuild,
  state: BuildState,
  { facts }: McoError,
  context: Context,
): Promise<void> {
  const { means, next } = failureClasses.InputChanged;
  const problem = String(facts["problem"]);
  const what = `${String(facts["kind"])} ${String(facts["name"])}: ${problem}`;
  const message = facts["for"] === "isolation" ? problem : `${means}: ${what}. ${next}.`;
  await reportHeldBack(build, state, message, context);
}

/** Builds of other pools do not wait for one that is held back. */
async function reportHeldBack(
  build: MachineOSBuild,
  { phase }: BuildState,
  message: string,
  context: Context,
): Promise<void> {
  const now = phase === "Building" ? "Building" : "Prepared";
  await writeBuildState(build, { phase: now, reason: "InputChanged", message: clipped(message) }, context);
}

async function reportBegun(
  build: MachineOSBuild,
  { phase }: BuildState,
  backend: BuildBackend,
  { isolation, containerfile }: BuildRequest,
  context: Context,
): Promise<void> {
  const { report, log } = context;
  const attempt = attemptOf(build);
  // The one choice that makes the pod of a build weaker is named where the build is.
  const weaker =
    containerfile !== undefined && isolation === "hostUsers"
      ? ", with the users of the machine (buildIsolation: hostUsers)"
      : "";
  const message = `attempt ${attempt} was begun${weaker}`;
  const next: BuildState =
    phase === "Initial"
      ? { phase: "Prepared", reason: "WaitingForPod", message }
      : { phase: "Building", reason: "Started", message };
  if (!(await writeBuildState(build, next, context))) return;
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
    message,
  });
}

/** Reports where a run is, and ends the build or its attempt with it. */
async function watchRun(
  build: MachineOSBuild,
  state: BuildState,
  backend: BuildBackend,
  drive: DriveContext,
): Promise<NextPassMs> {
  const { context } = drive;
  const run = buildRunOf(build);
  const now = await backend.observe(run, context.signal);
  switch (now.phase) {
    case "Pending": {
      const phase = state.phase === "Building" ? "Building" : "Prepared";
      const reason = now.reason ?? "WaitingForPod";
      await reportState(build, state, { phase, reason, message: now.message ?? state.message }, now, context);
      return looks.running;
    }
    case "Running": {
      const step = now.step ?? "context";
      const message = now.message ?? `attempt ${run.attempt}: ${step}`;
      await reportState(build, state, { phase: "Building", reason: stepReason(step), message }, now, context);
      return looks.running;
    }
    case "Succeeded":
      return finish(build, state, now, drive);
    case "Failed":
      return failAttempt(build, now.failure ?? failureOf("Internal", now, "it failed without a word"), drive);
    case "Lost":
      return failAttempt(build, now.failure ?? failureOf("BuilderLost", now, failureClasses.BuilderLost.means), drive);
    case "Gone":
      return takeBack(build, context);
  }
}

/** The failure of a run that names none itself. */
const failureOf = (failureClass: FailureClass, { step = "run", message }: RunState, means: string): BuildFailure => ({
  class: failureClass,
  step,
  cause: message ?? means,
  excerpt: "",
});

/** The run of a build was deleted, and not by the builder: it is begun again once. */
async function takeBack(build: MachineOSBuild, context: Context): Promise<NextPassMs> {
  const wasDeleted = context.caches
    .of(MachineOSBuild)
    .list()
    .some(
      (other) =>
        noted(other, annotations.contentKey) === noted(build, annotations.contentKey) &&
        other.spec.machineConfig.name === build.spec.machineConfig.name &&
        stateOfBuild(other).reason === "UserDeleted",
    );
  if (wasDeleted) {
    const message = "its run was deleted again; request a rebuild to start it once more";
    await interrupt(build, "UserDeleted", message, context);
    return undefined;
  }
  const again = timestampOf(context.clock.now() + deletedAgainMs);
  await annotateBuild(build, { [annotations.nextAttemptAt]: again }, context);
  const message = "its run was deleted; the builder starts it again once, in a minute";
  await interrupt(build, "UserDeleted", message, context);
  return deletedAgainMs / 1000;
}

/** Writes the state of a run, and reports what is new about it. */
async function reportState(
  build: MachineOSBuild,
  before: BuildState,
  state: BuildState,
  run: RunState,
  context: Context,
): Promise<void> {
  const more =
    state.phase === "Building" && run.startedAt !== undefined
      ? { buildStart: timesOf(run.startedAt, undefined, context.clock.now()).buildStart }
      : {};
  if (!(await writeBuildState(build, { ...state, message: clipped(state.message) }, context, more))) return;
  const attempt = attemptOf(build);
  if (before.phase !== "Building" && state.phase === "Building")
    context.report({ about: build, notice: "BuildBuilding", message: `attempt ${attempt} runs` });
  if (state.phase === "Building" && before.reason !== state.reason)
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

/** A run reports an image: verify the image as nodes will; only then it counts. */
async function finish(
  build: MachineOSBuild,
  state: BuildState,
  run: RunState,
  drive: DriveContext,
): Promise<NextPassMs> {
  const { context, observer } = drive;
  const { caches, signal } = context;
  const { digest } = run;
  if (digest === undefined || !/^sha256:[0-9a-f]{64}$/.test(digest))
    return failAttempt(
      build,
      { class: "DigestMissing", step: "push", cause: failureClasses.DigestMissing.means, excerpt: "" },
      drive,
    );
  const image = `${build.spec.renderedImagePushSpec.slice(0, build.spec.renderedImagePushSpec.lastIndexOf(":"))}@${digest}`;
  let latest = build;
  const config = configOf(build, context);
  const rendered = caches.of(MachineConfig).get(build.spec.machineConfig.name);
  const read = rendered === undefined ? undefined : readRendered(rendered);
  const components = readComponents(noted(build, annotations.keyInputs));
  // An image that is no longer desired has no owner whose credentials could be used to verify it.
  if (config !== undefined && read?.verdict === "read" && components !== undefined) {
    const architecture = String(components["arch"]);
    const access = observer.nodeAccess(observer.access(config, read.config, architecture, caches), caches);
    const base = read.config.osImage.includes("@sha256:") ? { base: read.config.osImage } : {};
    const verified = await verifyImage(
      image,
      { architecture, mode: modeOf(build), baseDigest: String(components["base"]), ...base },
      observer.open(access),
      signal,
    );
    if (verified.verdict === "failed") return failAttempt(build, verified.failure, drive);
    if (verified.verdict === "waits") {
      await reportState(
        build,
        state,
        { phase: "Building", reason: "RegistryUnreachable", message: verified.message },
        run,
        context,
      );
      return looks.registry;
    }
    latest =
      (await annotateBuild(build, { [annotations.imageFacts]: JSON.stringify(verified.facts) }, context)) ?? build;
  }
  await succeed(
    latest,
    image,
    noted(build, annotations.buildStrategy) === "append" ? "Appended" : "Ready",
    run,
    context,
  );
  return undefined;
}

const modeOf = (build: MachineOSBuild): ContentMode =>
  noted(build, annotations.imageContent) === "full" ? "full" : "os-only";

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
      message: `takes the image of ${noted(build, annotations.reusedFrom) ?? "an earlier build"}: ${image}`,
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

/** A build that waits for another one's run. */
async function follow(build: MachineOSBuild, drive: DriveContext): Promise<NextPassMs> {
  const { context } = drive;
  const from = noted(build, annotations.reusedFrom) ?? "";
  const source = context.caches.of(MachineOSBuild).get(from);
  const image = source === undefined ? undefined : imageOf(source);
  if (image !== undefined) {
    await succeed(build, image, "Reused", undefined, context);
    return undefined;
  }
  const of = source === undefined ? undefined : stateOfBuild(source);
  const owner = build.spec.machineOSConfig.name;
  if (source !== undefined && isWaitedFor(source, owner)) {
    if (
      await writeBuildState(
        build,
        { phase: "Building", reason: "Attached", message: `waits for ${from}, which makes the same image` },
        context,
      )
    )
      context.report({
        about: build,
        notice: "BuildAttached",
        message: `waits for ${from}, which makes the same image`,
      });
    return undefined;
  }
  const record = source === undefined ? undefined : readFailure(noted(source, annotations.buildFailure));
  const isOwn = source?.spec.machineOSConfig.name === owner;
  if (isOwn && of?.phase === "Failed" && record !== undefined && of.reason !== "RetryLimitReached") {
    await annotateBuild(
      build,
      { [annotations.buildFailure]: JSON.stringify({ ...record, charge: undefined, follows: undefined }) },
      context,
    );
    await fail(build, of.reason, `${from}, whose run it waited for: ${of.message}`, context);
    return undefined;
  }
  // It may have failed for reasons of its owner: plan the desired image again.
  const how = of === undefined ? "is gone" : hasEnded(of) ? "ended without an image" : "does not go on";
  await interrupt(
    build,
    "Superseded",
    `${from}, whose run it waited for, ${how}${of === undefined ? "" : ` (${of.phase} ${of.reason})`}`,
    context,
  );
  return undefined;
}

/** Notes a failure of the present attempt and what follows from it, and does that. */
export async function failAttempt(
  build: MachineOSBuild,
  unbounded: BuildFailure,
  drive: DriveContext,
): Promise<NextPassMs> {
  const { context } = drive;
  // It goes into an annotation, and images and registries have a part in its text.
  const failure = boundedFailure(unbounded);
  const { caches, clock, random } = context;
  const attempt = attemptOf(build);
  const pool = caches.of(MachineConfigPool).get(poolOfBuild(build));
  const config = configOf(build, context);
  const chance = random.next();
  const written = await annotateBuild(
    build,
    (object) => {
      const before = readFailure(noted(object, annotations.buildFailure));
      if (attemptOf(object) !== attempt || before?.attempt === attempt) return undefined;
      const decision = retryAfterFailure({
        failure,
        before,
        attempt,
        retries: readRetries(pool?.metadata.annotations?.[annotations.buildRetries]).retries,
        maxRetries: maxRetriesOf(config, buildSettingsIn(caches)),
        now: timestampOf(clock.now()),
        chance,
      });
      const follows =
        decision.decision === "failed"
          ? { do: "fail", reason: decision.reason, message: decision.message }
          : { do: "again", at: timestampOf(clock.now() + decision.afterMs), message: decision.message };
      return { [annotations.buildFailure]: JSON.stringify({ ...decision.record, follows }) };
    },
    context,
  );
  return written === undefined ? undefined : concludeFailure(written, drive);
}

const configOf = (build: MachineOSBuild, { caches }: Context) =>
  caches.of(MachineOSConfig).get(build.spec.machineOSConfig.name);

/** Carries out what was noted about a failure; every step of it may be repeated. */
async function concludeFailure(build: MachineOSBuild, drive: DriveContext): Promise<NextPassMs> {
  const { context } = drive;
  const { caches, clock, report } = context;
  const record = readFailure(noted(build, annotations.buildFailure));
  if (record?.follows === undefined) return undefined;
  const { follows } = record;
  const attempt = attemptOf(build);
  const book = `build/${build.metadata.name}` as const;
  if (follows.do === "fail") {
    await fail(build, follows.reason, follows.message, context);
    return undefined;
  }
  const pool = caches.of(MachineConfigPool).get(poolOfBuild(build));
  if (record.charge !== undefined && pool !== undefined) {
    const { from, to } = record.charge;
    // A change of the counter in between was intended.
    const { retries } = readRetries(pool.metadata.annotations?.[annotations.buildRetries]);
    if (retries === from) await annotatePool(pool, { [annotations.buildRetries]: String(to) }, context);
  }
  const max = maxRetriesOf(configOf(build, context), buildSettingsIn(caches));
  const message = retrySentence(attempt + 1, max, follows.at, record);
  if (
    await writeBuildState(build, { phase: "Building", reason: "RetryScheduled", message: clipped(message) }, context)
  ) {
    report({
      about: build,
      book,
      chapter: "Building",
      run: String(attempt),
      path: `Attempt/${attempt}`,
      mark: "fail",
      level: "boundary",
      reason: "BuildStepFailed",
      message: follows.message,
      data: { class: record.class, step: record.step },
      next: { action: record.nextAction, actor: "administrator" },
    });
  }
  await annotateBuild(
    build,
    (object) =>
      attemptOf(object) === attempt
        ? { [annotations.buildAttempt]: String(attempt + 1), [annotations.nextAttemptAt]: follows.at }
        : undefined,
    context,
  );
  return Math.max(0, (Date.parse(follows.at) - clock.now()) / 1000);
}

async function fail(build: MachineOSBuild, reason: string, message: string, context: Context): Promise<void> {
  const { report, clock } = context;
  const { name } = build.metadata;
  const record = readFailure(noted(build, annotations.buildFailure));
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
  { context, backends }: Pick<DriveContext, "context" | "backends">,
): Promise<void> {
  const backend = isAttached(build) ? undefined : backendOf(build, backends);
  if (backend !== undefined) await backend.cancel(buildRunOf(build), message, context.signal);
  await interrupt(build, reason, message, context);
}
