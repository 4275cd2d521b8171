import { leastOf } from "../../../api/schema/extremes.ts";
import { type Job, type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import { workloads } from "../../../api/names.ts";
import { type Context, type Controller, watching } from "../../../kube/controller.ts";
import { isConflict, isNotFound } from "../../../kube/kube-error.ts";
import { type Outcome, done, stalled } from "../../../kube/outcome.ts";
import type { ObjectChange } from "../../../kube/watch-cache.ts";
import { eachAtOnce } from "../../../ports/each-at-once.ts";
import { Expectations } from "./expectations.ts";
import { createPods, deletePods, isTerminatingNamespace } from "./make-pods.ts";
import { jobEnd, planJob } from "./plan-job.ts";
import { podOfTemplate } from "./pod-of-template.ts";
import { controllerOf, ownedIndexes, podIndexes } from "./pod-state.ts";
import { nameByHash } from "./template-hash.ts";
import { millisecondsOf } from "./timestamp.ts";
import { writeStatus } from "./write-status.ts";

const releasesAtOnce = 20;

const ownerJob = (pod: Pod): readonly string[] => {
  const owner = controllerOf(pod);
  return owner?.kind === "Job" ? [`${pod.metadata.namespace}/${owner.name}`] : [];
};

/** Runs the pods of Jobs to their end, counts them, and removes Jobs whose time after the end is over. */
export function jobController(): Controller {
  const expectations = new Expectations();

  return {
    name: "job",
    watches: [
      watching<Job>({ resource: kubernetes.Job, indexes: ownedIndexes }),
      watching<Pod>({
        resource: kubernetes.Pod,
        indexes: { ...podIndexes, job: ownerJob },
        concerns: (change: ObjectChange<Pod>) => {
          expectations.observe(change);
          return [change.before, change.after].flatMap((pod) => (pod === undefined ? [] : ownerJob(pod)));
        },
      }),
    ],
    owns: ["Job.status", "Pod.metadata.finalizers[job-tracking]"],
    workers: 4,

    async reconcile(key, context): Promise<Outcome> {
      const { caches, kube, clock, events, signal } = context;
      const job = caches.of(kubernetes.Job).get(key);
      const found = caches.of(kubernetes.Pod).byIndex("job", key);
      const uid = job?.metadata.uid;
      // The pods of a deleted job are not counted.
      await release(
        found.filter((pod) => controllerOf(pod)?.uid !== uid),
        context,
      );
      if (job === undefined || uid === undefined) return done();
      if (job.metadata.deletionTimestamp !== undefined) {
        await release(
          found.filter((pod) => pod.metadata.deletionTimestamp !== undefined),
          context,
        );
        return done();
      }
      if (job.spec?.completionMode === "Indexed") {
        return stalled("IndexedNotSupported", "this cluster runs Jobs with completionMode NonIndexed only");
      }
      const pods = found.filter((pod) => controllerOf(pod)?.uid === uid);
      const now = clock.now();
      const pendingMs = expectations.pendingMs(uid, now);
      const before = jobEnd(job);
      const plan = planJob(job, pods, now);
      const written = await writeStatus(kube, kubernetes.Job, job, plan.status, signal);
      if (plan.finished !== undefined && before === undefined) {
        const condition = conditionOf(written.status?.conditions, plan.finished);
        events.event(
          job,
          plan.finished === "Complete"
            ? { type: "Normal", reason: "Completed", message: "Job completed" }
            : { type: "Warning", reason: condition?.reason ?? "Failed", message: condition?.message ?? "" },
        );
      }
      await release(plan.release, context);
      if (written !== job) return done(0.05); // The next decisions use the written status.

      let failure: unknown;
      if (pendingMs === undefined) {
        // Their end is our doing: released first, they do not count as failed.
        await release(plan.remove, context);
        failure = await deletePods(plan.remove, job, expectations, context);
        const made = Array.from({ length: plan.create }, () =>
          podOfTemplate(job.spec?.template, job, kubernetes.Job, {
            name: nameByHash(`${job.metadata.name}-`, context.random),
            finalizers: [workloads.jobTracking],
          }),
        );
        failure = (await createPods(made, job, expectations, context)) ?? failure;
      }
      if (failure !== undefined && !isTerminatingNamespace(failure)) throw failure;
      const waits = [pendingMs, plan.againInMs].filter((wait) => wait !== undefined);
      const expiry = expiresAt(job);
      if (expiry !== undefined) {
        if (expiry <= now) {
          await kube.delete(kubernetes.Job, job.metadata, {
            uid,
            ...(job.metadata.resourceVersion === undefined ? {} : { resourceVersion: job.metadata.resourceVersion }),
            signal,
          });
          return done();
        }
        waits.push(expiry - now);
      }
      return waits.length === 0 ? done() : done(leastOf(waits) / 1000);
    },
  };
}

function expiresAt(job: Job): number | undefined {
  const end = jobEnd(job);
  const after = job.spec?.ttlSecondsAfterFinished;
  if (end === undefined || after === undefined) return undefined;
  const at = millisecondsOf(conditionOf(job.status?.conditions, end)?.lastTransitionTime);
  return at === undefined ? undefined : at + after * 1000;
}

/** Takes our finalizer off pods, of all of them that the API server lets, and then throws the first failure. */
async function release(pods: readonly Pod[], { kube, signal }: Context): Promise<void> {
  const failures = await eachAtOnce(pods, releasesAtOnce, async ({ metadata }): Promise<unknown> => {
    if (signal.aborted || metadata.finalizers?.includes(workloads.jobTracking) !== true) return undefined;
    const finalizers = metadata.finalizers.filter((finalizer) => finalizer !== workloads.jobTracking);
    try {
      await kube.patch(
        kubernetes.Pod,
        metadata,
        {
          type: "merge",
          body: {
            metadata: {
              uid: metadata.uid,
              resourceVersion: metadata.resourceVersion,
              finalizers: finalizers.length === 0 ? null : finalizers,
            },
          },
        },
        { signal },
      );
      return undefined;
    } catch (error) {
      // It changed, and the change starts another pass, or it was deleted.
      return isConflict(error) || isNotFound(error) ? undefined : error;
    }
  });
  signal.throwIfAborted();
  const failure = failures.find((each) => each !== undefined);
  if (failure !== undefined) throw failure;
}
