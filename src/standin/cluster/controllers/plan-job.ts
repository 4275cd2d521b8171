import { greatestOf, leastOf } from "../../../api/schema/extremes.ts";
import type { Job, Pod } from "../../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import { workloads } from "../../../api/names.ts";
import { isActive, isPodReady } from "./pod-state.ts";
import { setCondition } from "../../../api/schema/conditions.ts";
import { millisecondsOf, timestamp } from "./timestamp.ts";

type JobStatus = NonNullable<Job["status"]>;

/** k8s.io/kubernetes pkg/controller/job (master) DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff. */
const firstBackoffMs = 10_000;
const lastBackoffMs = 600_000;
const defaultBackoffLimit = 6;
/** The most pods that one pass creates or deletes: k8s.io/kubernetes pkg/controller/job (master) MaxPodCreateDeletePerSync. */
const mostPodsInPass = 500;
/** Says that an end is decided: k8s.io/api batch/v1 (master). */
const targets = { Complete: "SuccessCriteriaMet", Failed: "FailureTarget" } as const;

/** The changes of pods that exceed one pass are those of the next, which starts when the watch shows this one's. */
export interface JobPlan {
  readonly status: JobStatus;
  readonly create: number;
  readonly remove: readonly Pod[];
  /** Pods whose end the status recorded before this plan: their finalizer can be removed. */
  readonly release: readonly Pod[];
  /** The job has ended: no more pods are created. */
  readonly finished: "Complete" | "Failed" | undefined;
  /** Milliseconds until time alone changes the plan. */
  readonly againInMs: number | undefined;
}

const isHeld = (pod: Pod): boolean => pod.metadata.finalizers?.includes(workloads.jobTracking) === true;

export const jobEnd = (job: Job): "Complete" | "Failed" | undefined =>
  (["Complete", "Failed"] as const).find((type) => conditionOf(job.status?.conditions, type)?.status === "True");

/**
 * The next actions of a Job. A pod that has ended is counted in three writes, each safe to repeat: its uid is recorded
 * in the status, its finalizer is removed, and then the uid becomes a number. So no end is lost and none counts twice.
 *
 * @param pods all pods of the job
 */
export function planJob(job: Job, pods: readonly Pod[], now: number): JobPlan {
  const { spec } = job;
  const before = job.status ?? {};
  const suspended = spec?.suspend === true;
  const end = jobEnd(job);
  const byUid = new Map(pods.map((pod) => [pod.metadata.uid ?? "", pod]));

  // Noted before: released by now, or to be released.
  const noted = {
    succeeded: new Set(before.uncountedTerminatedPods?.succeeded),
    failed: new Set(before.uncountedTerminatedPods?.failed),
  };
  const counted = { succeeded: before.succeeded ?? 0, failed: before.failed ?? 0 };
  const release: Pod[] = [];
  for (const outcome of ["succeeded", "failed"] as const) {
    for (const uid of noted[outcome]) {
      const pod = byUid.get(uid);
      if (pod !== undefined && isHeld(pod)) release.push(pod);
      else {
        noted[outcome].delete(uid);
        counted[outcome] += 1;
      }
    }
  }
  // Newly ended: noted now, released after the status is written.
  for (const pod of pods) {
    const uid = pod.metadata.uid ?? "";
    if (!isHeld(pod) || noted.succeeded.has(uid) || noted.failed.has(uid)) continue;
    const deleted = pod.metadata.deletionTimestamp !== undefined;
    if (pod.status?.phase === "Succeeded") noted.succeeded.add(uid);
    else if (pod.status?.phase === "Failed" || (deleted && !suspended && end === undefined)) noted.failed.add(uid);
    else if (deleted) release.push(pod);
  }
  const succeeded = counted.succeeded + noted.succeeded.size;
  const failed = counted.failed + noted.failed.size;
  const active = pods.filter(isActive);
  const terminating = pods.filter(
    (pod) =>
      pod.metadata.deletionTimestamp !== undefined &&
      pod.status?.phase !== "Succeeded" &&
      pod.status?.phase !== "Failed",
  ).length;
  const waits: number[] = [];
  const startTime = suspended ? undefined : (before.startTime ?? timestamp(now));

  let conditions = before.conditions ?? [];
  let finished = end;
  const finish = (type: "Complete" | "Failed", reason: string, message: string) => {
    conditions = setCondition(
      conditions,
      { type: targets[type], status: "True", reason, message, lastProbeTime: timestamp(now) },
      now,
    );
  };
  const target = () =>
    (["Complete", "Failed"] as const).find((type) => conditionOf(conditions, targets[type])?.status === "True");
  if (end === undefined && target() === undefined) {
    const limit = spec?.backoffLimit ?? defaultBackoffLimit;
    const deadline =
      spec?.activeDeadlineSeconds === undefined || startTime === undefined
        ? undefined
        : (millisecondsOf(startTime) ?? now) + spec.activeDeadlineSeconds * 1000;
    if (failed > limit || restartsExceed(active, spec?.template.spec?.restartPolicy, limit))
      finish("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    else if (deadline !== undefined && deadline <= now)
      finish("Failed", "DeadlineExceeded", "Job was active longer than specified deadline");
    else if (spec?.completions === undefined ? succeeded > 0 && active.length === 0 : succeeded >= spec.completions)
      finish("Complete", "CompletionsReached", "Reached expected number of succeeded pods");
    else if (deadline !== undefined) waits.push(deadline - now);
  }
  // The decision is reported at once, and carried out when the last pod is gone and counted.
  const ending = target();
  if (
    end === undefined &&
    ending !== undefined &&
    active.length + terminating + noted.succeeded.size + noted.failed.size === 0
  ) {
    const { reason = "", message = "" } = conditionOf(conditions, targets[ending]) ?? {};
    finished = ending;
    conditions = setCondition(
      conditions,
      { type: ending, status: "True", reason, message, lastProbeTime: timestamp(now) },
      now,
    );
  }
  if (finished === undefined && ending === undefined) {
    const was = conditionOf(conditions, "Suspended");
    if (suspended && was?.status !== "True")
      conditions = setCondition(
        conditions,
        { type: "Suspended", status: "True", reason: "JobSuspended", message: "Job suspended" },
        now,
      );
    if (!suspended && was?.status === "True")
      conditions = setCondition(
        conditions,
        { type: "Suspended", status: "False", reason: "JobResumed", message: "Job resumed" },
        now,
      );
  }

  const parallelism = spec?.parallelism ?? 1;
  const wanted =
    finished !== undefined || ending !== undefined || suspended
      ? 0
      : spec?.completions === undefined
        ? succeeded > 0
          ? Math.min(active.length, parallelism)
          : parallelism
        : Math.min(parallelism, Math.max(0, spec.completions - succeeded));
  let create = Math.min(mostPodsInPass, Math.max(0, wanted - active.length));
  const remove =
    active.length > wanted
      ? [...active]
          .sort((a, b) => Number(isPodReady(a)) - Number(isPodReady(b)))
          .slice(0, Math.min(mostPodsInPass, active.length - wanted))
      : [];
  const removed = new Set(remove);
  if (create > 0) {
    const wait = backoffMs(pods, now);
    if (wait > 0) {
      waits.push(wait);
      create = 0;
    }
  }
  const uncounted = {
    ...(noted.succeeded.size === 0 ? {} : { succeeded: [...noted.succeeded] }),
    ...(noted.failed.size === 0 ? {} : { failed: [...noted.failed] }),
  };
  const activeAfter = active.length - remove.length;
  const { startTime: _start, active: _active, uncountedTerminatedPods: _uncounted, ...kept } = before;
  const status: JobStatus = {
    ...kept,
    ...(startTime === undefined ? {} : { startTime }),
    ...(activeAfter === 0 ? {} : { active: activeAfter }),
    ready: active.filter((pod) => isPodReady(pod) && !removed.has(pod)).length,
    terminating: terminating + remove.length,
    ...(counted.succeeded === 0 ? {} : { succeeded: counted.succeeded }),
    ...(counted.failed === 0 ? {} : { failed: counted.failed }),
    uncountedTerminatedPods: uncounted,
    ...(conditions.length === 0 ? {} : { conditions }),
    ...(finished === "Complete" ? { completionTime: before.completionTime ?? timestamp(now) } : {}),
  };
  return { status, create, remove, release, finished, againInMs: waits.length === 0 ? undefined : leastOf(waits) };
}

/** With restartPolicy OnFailure it is containers that fail, not pods. */
function restartsExceed(active: readonly Pod[], policy: string | undefined, limit: number): boolean {
  if (policy !== "OnFailure") return false;
  let restarts = 0;
  for (const pod of active)
    for (const { restartCount } of [
      ...(pod.status?.initContainerStatuses ?? []),
      ...(pod.status?.containerStatuses ?? []),
    ])
      restarts += restartCount;
  return limit === 0 ? restarts > 0 : restarts >= limit;
}

function endedAt(pod: Pod): number {
  const times = (pod.status?.containerStatuses ?? []).flatMap(
    ({ state }) => millisecondsOf(state?.terminated?.finishedAt) ?? [],
  );
  return times.length > 0
    ? greatestOf(times)
    : (millisecondsOf(
        conditionOf(pod.status?.conditions, "Ready")?.lastTransitionTime ?? pod.metadata.creationTimestamp,
      ) ?? 0);
}

/** How long to wait before the next pod: after failures in a row, longer each time. */
function backoffMs(pods: readonly Pod[], now: number): number {
  const lastSuccess = greatestOf(pods.filter(({ status }) => status?.phase === "Succeeded").map(endedAt), 0);
  const failures = pods
    .filter(({ status }) => status?.phase === "Failed")
    .map(endedAt)
    .filter((at) => at > lastSuccess);
  if (failures.length === 0) return 0;
  return Math.max(0, greatestOf(failures) + Math.min(lastBackoffMs, firstBackoffMs * 2 ** (failures.length - 1)) - now);
}
