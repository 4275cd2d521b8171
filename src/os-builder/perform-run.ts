import { McoError } from "../api/errors.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations } from "../api/names.ts";
import { timestampOf } from "../api/schema/object.ts";
import { type BuildFailure, boundedFailure, classifyImageError } from "../core/build/build-failures.ts";
import { activeRebuild } from "../core/build/build-rebuild.ts";
import { attemptOf, readFailure, readRetries, retryAfterFailure } from "../core/build/build-retry.ts";
import { maxRetriesOf } from "../core/build/build-settings.ts";
import type { RunCase, RunDecision, RunPass } from "../core/build/run-decision.ts";
import type { ContentMode } from "../core/config/node-config.ts";
import type { Context } from "../kube/controller.ts";
import type { BuildBackend, BuildRequest } from "./backend.ts";
import { buildRequest } from "./build-request.ts";
import { buildRunOf } from "./build-runs.ts";
import { buildSettingsIn, poolOfBuild } from "./cluster-facts.ts";
import { fail, interrupt, succeed } from "./end-build.ts";
import type { Want, WantObserver } from "./observe-want.ts";
import { reportAttached, reportBegun, reportRetry, reportRun } from "./report-run.ts";
import { verifyImage } from "./verify-image.ts";
import { annotateBuild, annotatePool, clipped, writeBuildState } from "./write-objects.ts";
import { buildQueued } from "./reports.ts";

/** What advances builds. */
export interface DriveContext {
  readonly context: Context;
  readonly backends: readonly BuildBackend[];
  readonly observer: WantObserver;
  /** The build's inputs, read again. `changed`: they differ by now. `waits`: they cannot be read at the moment. */
  readonly wantOf: (build: MachineOSBuild) => Promise<Want | "changed" | "waits">;
}

/** Seconds until the next pass; `undefined`: at the next event. */
export type NextPassMs = number | undefined;

/** What a pass over a build has found out, with the objects that it acts with. */
export interface DrivenRun extends RunPass {
  readonly want?: Want;
  readonly request?: { readonly verdict: "request"; readonly request: BuildRequest } | FailedRequest;
}

interface FailedRequest {
  readonly verdict: "failed";
  readonly failure: BuildFailure;
}

/** The end of a pass, or what it has found out when it decides again. */
export type RunPerformed = { readonly next: NextPassMs } | DrivenRun;

/** Carries one decision out. There is no `default`: a case that is missing here does not compile. */
export async function performRun(decision: RunDecision, pass: DrivenRun, drive: RunActs): Promise<RunPerformed> {
  const { build } = pass;
  const { context } = drive;
  switch (decision.do) {
    case "readInputs":
      return readInputs(pass, drive);
    case "makeRequest":
      return { ...pass, request: await makeRequest(decision, pass, drive) };
    case "start":
      return start(pass, drive);
    case "observe":
      return { ...pass, run: await backendIn(drive).observe(buildRunOf(build), context.signal) };
    case "verify":
      return verify(decision, pass, drive);
    case "noteFailure":
      return noteFailure(decision, pass, context);
    case "rest":
      break;
    case "queue":
      context.report(buildQueued(decision.because));
      break;
    case "hold":
      await writeBuildState(build, { ...decision.state, message: clipped(decision.state.message) }, context);
      break;
    case "reportBegun":
      await begun(decision, build, drive);
      break;
    case "reportRun":
      await reportRun(build, decision, context);
      break;
    case "reportAttached":
      await reportAttached(build, decision, context);
      return { next: undefined };
    case "succeed":
      await succeedWith(decision, build, context);
      return { next: undefined };
    case "fail":
      await failWith(decision, build, context);
      return { next: undefined };
    case "retry":
      return { next: await retry(decision, build, context) };
    case "interrupt":
      if (decision.again !== undefined)
        await annotateBuild(build, { [annotations.nextAttemptAt]: decision.again }, context);
      await interrupt(build, decision.reason, decision.because, context);
      break;
  }
  return { next: decision.seconds };
}

/** What one pass over a build acts with. */
export interface RunActs extends DriveContext {
  readonly backend: BuildBackend | undefined;
}

function backendIn({ backend }: RunActs): BuildBackend {
  if (backend === undefined) throw new Error("bug: a run was decided that no backend has");
  return backend;
}

async function readInputs(pass: DrivenRun, { wantOf }: RunActs): Promise<DrivenRun> {
  const want = await wantOf(pass.build);
  if (want === "changed") return { ...pass, inputs: { are: "changed" } };
  if (want === "waits") return { ...pass, inputs: { are: "unreadable" } };
  return { ...pass, want, inputs: { are: "same", isRebuild: activeRebuild(want.config) !== undefined } };
}

/** Everything that the present attempt needs; an image that cannot be read fails the attempt. */
async function makeRequest(
  how: RunCase<"makeRequest">,
  { build, want }: DrivenRun,
  { context, observer }: RunActs,
): Promise<NonNullable<DrivenRun["request"]>> {
  if (want === undefined) throw new Error("bug: a request was decided without its inputs");
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

async function start(pass: DrivenRun, drive: RunActs): Promise<DrivenRun> {
  if (pass.request?.verdict !== "request") throw new Error("bug: a start was decided without its request");
  try {
    await backendIn(drive).start(pass.request.request, drive.context.signal);
    return { ...pass, start: { verdict: "begun" } };
  } catch (error) {
    if (!(error instanceof McoError) || error.code !== "MCO_BUILD_INPUT_MISSING") throw error;
    const { kind, name, problem, for: purpose } = error.facts;
    return {
      ...pass,
      start: {
        verdict: "missing",
        kind: String(kind),
        name: String(name),
        problem: String(problem),
        isIsolation: purpose === "isolation",
      },
    };
  }
}

async function begun(decision: RunCase<"reportBegun">, build: MachineOSBuild, drive: RunActs): Promise<void> {
  const { context } = drive;
  if (decision.containerfile !== undefined)
    await annotateBuild(
      build,
      { [annotations.renderedContainerfile]: decision.containerfile.slice(0, 16_384) },
      context,
    );
  if (decision.wasScheduled) await annotateBuild(build, { [annotations.nextAttemptAt]: null }, context);
  await reportBegun(build, decision, backendIn(drive), context);
}

async function verify(
  { image, architecture, baseDigest, config: content }: RunCase<"verify">,
  pass: DrivenRun,
  { context, observer }: RunActs,
): Promise<DrivenRun> {
  const { caches, signal } = context;
  const config = caches.of(MachineOSConfig).get(pass.build.spec.machineOSConfig.name);
  if (config === undefined) throw new Error("bug: an image without an owner was to be verified");
  const access = observer.nodeAccess(observer.access(config, content, architecture, caches), caches);
  const base = content.osImage.includes("@sha256:") ? { base: content.osImage } : {};
  const expected = { architecture, mode: modeOf(pass.build), baseDigest, ...base };
  return { ...pass, verification: await verifyImage(image, expected, observer.open(access), signal) };
}

const modeOf = ({ metadata }: MachineOSBuild): ContentMode =>
  metadata.annotations?.[annotations.imageContent] === "full" ? "full" : "os-only";

async function succeedWith(
  { facts, image, reason, run }: RunCase<"succeed">,
  build: MachineOSBuild,
  context: Context,
): Promise<void> {
  const latest =
    facts === undefined
      ? build
      : ((await annotateBuild(build, { [annotations.imageFacts]: JSON.stringify(facts) }, context)) ?? build);
  await succeed(latest, image, reason, run, context);
}

async function failWith(
  { reason, message, record }: RunCase<"fail">,
  build: MachineOSBuild,
  context: Context,
): Promise<void> {
  if (record !== undefined)
    await annotateBuild(
      build,
      { [annotations.buildFailure]: JSON.stringify({ ...record, charge: undefined, follows: undefined }) },
      context,
    );
  await fail(build, reason, message, context);
}

/** Notes a failure of the present attempt and what follows from it; the pass goes on with that alone. */
async function noteFailure(
  { failure: unbounded }: RunCase<"noteFailure">,
  { build, running }: DrivenRun,
  context: Context,
): Promise<RunPerformed> {
  // It goes into an annotation, and images and registries have a part in its text.
  const failure = boundedFailure(unbounded);
  const { caches, clock, random } = context;
  const attempt = attemptOf(build);
  const pool = caches.of(MachineConfigPool).get(poolOfBuild(build));
  const config = caches.of(MachineOSConfig).get(build.spec.machineOSConfig.name);
  const chance = random.next();
  const written = await annotateBuild(
    build,
    (object) => {
      const before = readFailure(object.metadata.annotations?.[annotations.buildFailure]);
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
  const record = readFailure(written?.metadata.annotations?.[annotations.buildFailure]);
  return written === undefined || record?.follows === undefined ? { next: undefined } : { build: written, running };
}

async function retry(decision: RunCase<"retry">, build: MachineOSBuild, context: Context): Promise<NextPassMs> {
  const { caches, clock } = context;
  const attempt = attemptOf(build);
  const pool = caches.of(MachineConfigPool).get(poolOfBuild(build));
  if (decision.charge !== undefined && pool !== undefined)
    await annotatePool(pool, { [annotations.buildRetries]: String(decision.charge) }, context);
  await reportRetry(build, decision, context);
  await annotateBuild(
    build,
    (object) =>
      attemptOf(object) === attempt
        ? { [annotations.buildAttempt]: String(attempt + 1), [annotations.nextAttemptAt]: decision.at }
        : undefined,
    context,
  );
  return Math.max(0, (Date.parse(decision.at) - clock.now()) / 1000);
}
