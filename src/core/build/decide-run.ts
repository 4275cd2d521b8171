import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { type BuildState, hasEnded, stateOfBuild } from "../config/build-phase.ts";
import { readComponents } from "../config/key-components.ts";
import { type BuildFailure, type FailureClass, failureClasses } from "./build-failures.ts";
import { readRendered } from "./build-inputs.ts";
import { imageOf, isAttached, isWaitedFor } from "./build-plan.ts";
import { isStarted } from "./build-queue.ts";
import { type FailureRecord, attemptOf, readFailure, readRetries, retrySentence } from "./build-retry.ts";
import { stepReason } from "./build-state.ts";
import type { MissingInput, RunDecision, RunState, RunView } from "./run-decision.ts";

/** How soon a build is checked again when no event arrives, in seconds. */
const looks = { running: 10, queued: 5, registry: 30 } as const;
/** A run that a user deleted is restarted after this. */
const deletedAgainMs = 60_000;

const noted = (build: MachineOSBuild, annotation: string) => build.metadata.annotations?.[annotation];

/**
 * Decides what a pass over an unfinished build does next. The cases are evaluated in this order: another build's run that
 * it waits for, a failure that was noted, the time of the next attempt, and the run of the present attempt. A case that
 * reads, starts or notes something is followed by another decision on the updated view.
 */
export function decideRun(view: RunView): RunDecision {
  const { build, atOnce } = view;
  const state = stateOfBuild(build);
  if (hasEnded(state)) return { do: "rest", because: `the build has ended: ${state.phase}` };
  if (build.metadata.deletionTimestamp !== undefined) return { do: "rest", because: "the build is being deleted" };
  if (isAttached(build)) return decideAttached(view);
  if (atOnce === undefined) {
    const message = failureClasses.BuilderBinaryMissing.means;
    return { do: "hold", because: message, state: { ...state, message }, seconds: looks.queued };
  }
  const recorded = readFailure(noted(build, annotations.buildFailure));
  // The consequences of a failure were only partly written.
  if (recorded?.attempt === attemptOf(build) && recorded.follows !== undefined)
    return decideConsequence(view, recorded, recorded.follows);
  const due = Date.parse(noted(build, annotations.nextAttemptAt) ?? "");
  const waitsFor = due - view.now;
  if (!Number.isNaN(waitsFor) && waitsFor > 0)
    return { do: "rest", because: "the time of the next attempt has not come", seconds: waitsFor / 1000 };
  return isStarted(build, state)
    ? decideStarted(view, state)
    : decideStart(view, state, { atOnce, moreMemory: (recorded?.counts.OutOfMemory ?? 0) > 0 });
}

/** A build that waits for another one's run. */
function decideAttached({ build, builds }: RunView): RunDecision {
  const from = noted(build, annotations.reusedFrom) ?? "";
  const source = builds.find(({ metadata }) => metadata.name === from);
  const image = source === undefined ? undefined : imageOf(source);
  if (image !== undefined)
    return {
      do: "succeed",
      because: `${from} has the image`,
      image,
      reason: "Reused",
      facts: undefined,
      run: undefined,
    };
  const of = source === undefined ? undefined : stateOfBuild(source);
  const owner = build.spec.machineOSConfig.name;
  if (source !== undefined && isWaitedFor(source, owner)) {
    const message = `waits for ${from}, which makes the same image`;
    return { do: "reportAttached", because: message, state: { phase: "Building", reason: "Attached", message } };
  }
  const record = source === undefined ? undefined : readFailure(noted(source, annotations.buildFailure));
  const isOwn = source?.spec.machineOSConfig.name === owner;
  if (isOwn && of?.phase === "Failed" && record !== undefined && of.reason !== "RetryLimitReached") {
    const message = `${from}, whose run it waited for: ${of.message}`;
    return { do: "fail", because: `${from} has failed, which has the same owner`, reason: of.reason, message, record };
  }
  // It may have failed for reasons of its owner: plan the desired image again.
  const how = of === undefined ? "is gone" : hasEnded(of) ? "ended without an image" : "does not go on";
  return {
    do: "interrupt",
    because: `${from}, whose run it waited for, ${how}${of === undefined ? "" : ` (${of.phase} ${of.reason})`}`,
    reason: "Superseded",
    again: undefined,
  };
}

/** What was noted about a failure is carried out; every step of it may be repeated. */
function decideConsequence(
  { build, pool, maxRetries }: RunView,
  record: FailureRecord,
  follows: NonNullable<FailureRecord["follows"]>,
): RunDecision {
  if (follows.do === "fail")
    return {
      do: "fail",
      because: `attempt ${record.attempt} has failed for good`,
      reason: follows.reason,
      message: follows.message,
      record: undefined,
    };
  const { retries } = readRetries(pool?.metadata.annotations?.[annotations.buildRetries]);
  // A change of the counter in between was intended.
  const counts = pool !== undefined && record.charge?.from === retries;
  const message = retrySentence(attemptOf(build) + 1, maxRetries, follows.at, record);
  return {
    do: "retry",
    because: follows.message,
    at: follows.at,
    charge: counts ? record.charge.to : undefined,
    state: { phase: "Building", reason: "RetryScheduled", message },
    record,
  };
}

interface Beginning {
  readonly atOnce: number;
  readonly moreMemory: boolean;
}

/** The run of the present attempt begins when there is room and its inputs are what they were. */
function decideStart(view: RunView, state: BuildState, { atOnce, moreMemory }: Beginning): RunDecision {
  const { build, running, inputs, request, start } = view;
  if (running.length >= atOnce)
    return { do: "queue", because: `${build.metadata.name} waits for ${running.join(", ")}`, seconds: looks.queued };
  if (inputs === undefined) return { do: "readInputs", because: "the run begins only with the inputs of its build" };
  if (inputs.are === "unreadable")
    return holdBack(
      state,
      `the inputs of the MachineOSConfig ${build.spec.machineOSConfig.name} cannot be read; its conditions say why`,
    );
  // Another build follows for the currently desired image, and for builds that wait for this one.
  if (inputs.are === "changed")
    return { do: "interrupt", because: "its inputs have changed", reason: "Superseded", again: undefined };
  if (request === undefined)
    return { do: "makeRequest", because: "there is room for the run", moreMemory, noCache: inputs.isRebuild };
  if (request.verdict === "failed") return noteFailure(request.failure);
  if (start === undefined) return { do: "start", because: `attempt ${attemptOf(build)} has all of its inputs` };
  if (start.verdict === "missing") return holdBack(state, describeMissing(start));
  const { isolation, containerfile } = request.request;
  // The one choice that makes the pod of a build weaker is named where the build is.
  const weaker =
    containerfile !== undefined && isolation === "hostUsers"
      ? ", with the users of the machine (buildIsolation: hostUsers)"
      : "";
  const message = `attempt ${attemptOf(build)} was begun${weaker}`;
  return {
    do: "reportBegun",
    because: message,
    state:
      state.phase === "Initial"
        ? { phase: "Prepared", reason: "WaitingForPod", message }
        : { phase: "Building", reason: "Started", message },
    containerfile,
    wasScheduled: noted(build, annotations.nextAttemptAt) !== undefined,
    seconds: looks.running,
  };
}

/** Builds of other pools do not wait for one that is held back. */
const holdBack = ({ phase }: BuildState, message: string): RunDecision => ({
  do: "hold",
  because: message,
  state: { phase: phase === "Building" ? "Building" : "Prepared", reason: "InputChanged", message },
  seconds: looks.registry,
});

/** A Secret or ConfigMap was deleted while the run was starting: that is not a failure of the attempt. */
function describeMissing({ kind, name, problem, isIsolation }: MissingInput): string {
  const { means, next } = failureClasses.InputChanged;
  return isIsolation ? problem : `${means}: ${kind} ${name}: ${problem}. ${next}.`;
}

const noteFailure = (failure: BuildFailure): RunDecision => ({
  do: "noteFailure",
  because: `${failure.class} at ${failure.step}: ${failure.cause}`,
  failure,
});

/** Reports where a run is, and ends the build or its attempt with it. */
function decideStarted(view: RunView, state: BuildState): RunDecision {
  const { build, run } = view;
  if (run === undefined) return { do: "observe", because: "the run of the present attempt was started" };
  switch (run.phase) {
    case "Pending": {
      const phase = state.phase === "Building" ? "Building" : "Prepared";
      const reason = run.reason ?? "WaitingForPod";
      return reportRun({ phase, reason, message: run.message ?? state.message }, run, state);
    }
    case "Running": {
      const step = run.step ?? "context";
      const message = run.message ?? `attempt ${attemptOf(build)}: ${step}`;
      return reportRun({ phase: "Building", reason: stepReason(step), message }, run, state);
    }
    case "Succeeded":
      return decideImage(view, state, run);
    case "Failed":
      return noteFailure(run.failure ?? failureOf("Internal", run, "it failed without a word"));
    case "Lost":
      return noteFailure(run.failure ?? failureOf("BuilderLost", run, failureClasses.BuilderLost.means));
    case "Gone":
      return decideDeleted(view);
  }
}

const reportRun = (
  state: BuildState,
  run: RunState,
  before: BuildState,
  seconds: number = looks.running,
): RunDecision => ({
  do: "reportRun",
  because: state.message,
  state,
  run,
  isFirst: before.phase !== "Building" && state.phase === "Building",
  isNewStep: state.phase === "Building" && before.reason !== state.reason,
  seconds,
});

/** The failure of a run that names none itself. */
const failureOf = (failureClass: FailureClass, { step = "run", message }: RunState, means: string): BuildFailure => ({
  class: failureClass,
  step,
  cause: message ?? means,
  excerpt: "",
});

/** A run reports an image: only a verified image counts. */
function decideImage(view: RunView, state: BuildState, run: RunState): RunDecision {
  const { build, verification } = view;
  const { digest } = run;
  if (digest === undefined || !/^sha256:[0-9a-f]{64}$/.test(digest))
    return noteFailure({
      class: "DigestMissing",
      step: "push",
      cause: failureClasses.DigestMissing.means,
      excerpt: "",
    });
  const pushed = build.spec.renderedImagePushSpec;
  const image = `${pushed.slice(0, pushed.lastIndexOf(":"))}@${digest}`;
  const checks = verification === undefined ? verify(view, image) : undefined;
  if (checks !== undefined) return checks;
  if (verification?.verdict === "failed") return noteFailure(verification.failure);
  if (verification?.verdict === "waits")
    return reportRun(
      { phase: "Building", reason: "RegistryUnreachable", message: verification.message },
      run,
      state,
      looks.registry,
    );
  return {
    do: "succeed",
    because: verification === undefined ? "nobody desires the image any more" : "nodes can use the image",
    image,
    reason: noted(build, annotations.buildStrategy) === "append" ? "Appended" : "Ready",
    facts: verification?.facts,
    run,
  };
}

/** An image that is no longer desired has no owner whose credentials could be used to verify it. */
function verify({ build, isOwned, rendered }: RunView, image: string): RunDecision | undefined {
  const read = rendered === undefined ? undefined : readRendered(rendered);
  const components = readComponents(noted(build, annotations.keyInputs));
  if (!isOwned || read?.verdict !== "read" || components === undefined) return undefined;
  return {
    do: "verify",
    because: "nodes must be able to use the image",
    image,
    architecture: String(components["arch"]),
    baseDigest: String(components["base"]),
    config: read.config,
  };
}

/** The run of a build was deleted, and not by the builder: it is begun again once. */
function decideDeleted({ build, builds, now }: RunView): RunDecision {
  const wasDeleted = builds.some(
    (other) =>
      noted(other, annotations.contentKey) === noted(build, annotations.contentKey) &&
      other.spec.machineConfig.name === build.spec.machineConfig.name &&
      stateOfBuild(other).reason === "UserDeleted",
  );
  return wasDeleted
    ? {
        do: "interrupt",
        because: "its run was deleted again; request a rebuild to start it once more",
        reason: "UserDeleted",
        again: undefined,
      }
    : {
        do: "interrupt",
        because: "its run was deleted; the builder starts it again once, in a minute",
        reason: "UserDeleted",
        again: timestampOf(now + deletedAgainMs),
        seconds: deletedAgainMs / 1000,
      };
}
