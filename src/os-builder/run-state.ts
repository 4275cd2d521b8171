import type { Job, Pod } from "../api/foreign/kubernetes.ts";
import { conditionOf } from "../api/schema/object.ts";
import { type BuildFailure, classifyPodEnd } from "../core/build/build-failures.ts";
import { readOutcome } from "../core/build/image-build.ts";
import type { RunState } from "../core/build/run-decision.ts";
import { defined } from "../api/schema/defined.ts";

export interface ObservedRun {
  /** `undefined`: there is none. */
  readonly job: Job | undefined;
  /** Of this Job. */
  readonly pods: readonly Pod[];
  /** Step that the log of the newest pod speaks of last. */
  readonly step: string | undefined;
}

/** Grace times: short for a scheduler, longer for a registry. */
const schedulingMs = 60_000;
export const builderImageMs = 600_000;

const pullReasons: ReadonlySet<string> = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "RegistryUnavailable",
  "ImageInspectError",
]);

const at = (time: string | undefined): number => Date.parse(time ?? "");

/** The state of a run, from its Job and its pods. @param now milliseconds since the epoch. */
export function runStateOf({ job, pods, step }: ObservedRun, now: number): RunState {
  if (job === undefined) return { phase: "Gone" };
  const pod = pods.toSorted((a, b) => at(b.metadata.creationTimestamp) - at(a.metadata.creationTimestamp))[0];
  const containers = containersOf(pod);
  const terminated = endOf(pod);
  const begun = containers.find(({ state }) => state?.terminated !== undefined || state?.running !== undefined)?.state;
  const startedAt =
    begun?.terminated?.startedAt ??
    begun?.running?.startedAt ??
    job.status?.startTime ??
    job.metadata.creationTimestamp;
  const times = startedAt === undefined ? {} : { startedAt };
  const endedAt = terminated?.finishedAt;
  const ended = { ...times, ...defined({ endedAt }) };
  // Only the pushing container reports the image: a build step may have forged the message of an earlier container.
  const pushed = pod?.status?.containerStatuses?.[0]?.state?.terminated;
  const outcome = readOutcome(pushed?.message ?? "");
  if (outcome !== undefined && "digest" in outcome && pushed?.exitCode === 0)
    return { phase: "Succeeded", step: "verify", digest: outcome.digest, ...ended };
  if (job.metadata.deletionTimestamp !== undefined)
    return {
      phase: "Running",
      reason: "Ending",
      message: "the run was asked to end",
      ...defined({ step }),
      ...times,
    };

  const failed = (failure: BuildFailure): RunState => ({ phase: "Failed", step: failure.step, failure, ...ended });
  const deadline = ["FailureTarget", "Failed"]
    .map((type) => conditionOf(job.status?.conditions, type))
    .find((condition) => condition?.status === "True" && condition.reason === "DeadlineExceeded");
  if (deadline !== undefined)
    return failed(
      classifyPodEnd({
        reason: "DeadlineExceeded",
        message: deadline.message ?? "",
        ...defined({ step }),
      }),
    );
  if (terminated !== undefined || pod?.status?.phase === "Failed") return failed(failureOf(pod, step));

  const lost = whyLost(job, pod);
  if (lost !== undefined)
    return {
      phase: "Lost",
      failure: { class: "BuilderLost", step: step ?? "run", cause: lost, excerpt: "" },
      ...ended,
    };
  if (begun !== undefined)
    return {
      phase: "Running",
      ...(step === undefined ? {} : { step, reason: `Step${step.slice(0, 1).toUpperCase()}${step.slice(1)}` }),
      ...times,
    };
  return pendingState(pod, job, now);
}

/** Why nobody says any more what a run made: its Job has ended, and the pod that said it was removed. */
function whyLost({ status }: Job, pod: Pod | undefined): string | undefined {
  const isTrue = (type: string) => conditionOf(status?.conditions, type)?.status === "True";
  if (isTrue("Failed")) return conditionOf(status?.conditions, "Failed")?.message ?? "its pod is gone";
  if (pod !== undefined) return undefined;
  if ((status?.failed ?? 0) > 0) return "its pod is gone";
  return isTrue("Complete") || (status?.succeeded ?? 0) > 0
    ? "its pod was removed before it was read which image it made"
    : undefined;
}

type Status = NonNullable<NonNullable<Pod["status"]>["containerStatuses"]>[number];

/** In the order in which they run. */
const containersOf = (pod: Pod | undefined): readonly Status[] => [
  ...(pod?.status?.initContainerStatuses ?? []),
  ...(pod?.status?.containerStatuses ?? []),
];

/** The end of the container that failed, else that of the last one. */
const endOf = (pod: Pod | undefined) =>
  containersOf(pod)
    .flatMap(({ state }) => state?.terminated ?? [])
    .find(({ exitCode }) => exitCode !== 0) ?? pod?.status?.containerStatuses?.[0]?.state?.terminated;

/** Why a pod ended without its own message: killed, evicted, or its machine lost. */
function failureOf(pod: Pod | undefined, step: string | undefined): BuildFailure {
  const status = pod?.status;
  const terminated = endOf(pod);
  const message = terminated?.message ?? "";
  const outcome = readOutcome(message);
  const killed = terminated?.reason === "OOMKilled";
  const disruption = conditionOf(status?.conditions, "DisruptionTarget");
  const reported = outcome !== undefined && "failure" in outcome ? outcome.failure : undefined;
  const exit = {
    ...(terminated === undefined ? {} : { exitCode: terminated.exitCode }),
    ...defined({ step }),
  };
  if (killed)
    return classifyPodEnd({
      reason: "OOMKilled",
      message: message || "the container used more memory than it may",
      ...exit,
    });
  if (disruption?.status === "True")
    return classifyPodEnd({ reason: disruption.reason ?? "Evicted", message: disruption.message ?? "", ...exit });
  if (status?.reason !== undefined && status.reason !== "")
    return classifyPodEnd({ reason: status.reason, message: status.message ?? "", ...exit });
  if (reported !== undefined) return reported;
  if (outcome !== undefined || terminated?.exitCode === 0)
    return {
      class: "DigestMissing",
      step: step ?? "verify",
      ...(terminated === undefined ? {} : { exitCode: terminated.exitCode }),
      cause: "it ended without naming the image",
      excerpt: message.slice(-2048),
    };
  return classifyPodEnd({ reason: terminated?.reason ?? "Error", message, ...exit });
}

function pendingState(pod: Pod | undefined, job: Job, now: number): RunState {
  if (pod === undefined) return { phase: "Pending", reason: "WaitingForPod", message: "its pod is not made yet" };
  const scheduled = conditionOf(pod.status?.conditions, "PodScheduled");
  if (scheduled?.status === "False") {
    const waits = now - at(scheduled.lastTransitionTime ?? pod.metadata.creationTimestamp);
    return waits > schedulingMs
      ? {
          phase: "Pending",
          reason: "Unschedulable",
          message: (scheduled.message ?? "no node takes its pod").slice(0, 500),
        }
      : { phase: "Pending", reason: "WaitingForPod", message: "its pod has no node yet" };
  }
  const waiting = containersOf(pod)[0]?.state?.waiting;
  const message = (waiting?.message ?? "").slice(0, 500);
  if (!pullReasons.has(waiting?.reason ?? ""))
    return { phase: "Pending", reason: "WaitingForPod", message: message === "" ? "its pod starts" : message };
  const since = at(pod.status?.startTime ?? pod.metadata.creationTimestamp ?? job.metadata.creationTimestamp);
  if (now - since < builderImageMs) return { phase: "Pending", reason: "PullingBuilderImage", message };
  return {
    phase: "Failed",
    step: "run",
    failure: classifyPodEnd({ reason: waiting?.reason ?? "ErrImagePull", message }),
  };
}
