import { describe, expect, test } from "vitest";
import { type Job, type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import { namespace, startCluster, template } from "../../../../test/support/controllers-harness.ts";
import { planJob } from "./plan-job.ts";

const key = { name: "work", namespace };
const job = (more: Partial<NonNullable<Job["spec"]>> = {}): Job => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: key,
  spec: { template: { metadata: {}, spec: { ...template("work").spec, restartPolicy: "Never" } }, ...more },
});
const ended = (type: "Complete" | "Failed") => (object: Job | undefined) =>
  conditionOf(object?.status?.conditions, type)?.status === "True";

describe("Jobs", () => {
  test("a Job runs its completions within its parallelism, and reports when it is complete", async () => {
    const running = await startCluster({ nodes: [{}] });
    running.exitOf = () => 0;
    await running.kube.create(kubernetes.Job, job({ completions: 5, parallelism: 2 }));
    const done = await running.until(kubernetes.Job, key, ended("Complete"));
    expect(done?.status).toMatchObject({ succeeded: 5 });
    expect(done?.status?.completionTime).toBeDefined();
    expect(conditionOf(done?.status?.conditions, "Complete")).toMatchObject({ reason: "CompletionsReached" });
    const pods = (await running.kube.list(kubernetes.Pod, { namespace })).items;
    expect(pods).toHaveLength(5);
    expect(pods.every((pod) => pod.metadata.finalizers === undefined)).toBe(true);
  });

  test("failures are retried with growing delays, up to the limit", async () => {
    const running = await startCluster({ nodes: [{}] });
    running.exitOf = () => 1;
    await running.kube.create(kubernetes.Job, job({ backoffLimit: 2 }));
    await running.until(kubernetes.Job, key, (object) => object?.status?.failed === 1);
    const failed = await running.whileTimeFlies(running.until(kubernetes.Job, key, ended("Failed")));
    expect(failed?.status?.failed).toBe(3);
    expect(conditionOf(failed?.status?.conditions, "Failed")).toMatchObject({
      reason: "BackoffLimitExceeded",
      message: "Job has reached the specified backoff limit",
    });
  });

  test("a Job that takes too long fails and its pods end", async () => {
    const running = await startCluster({ nodes: [{}] });
    await running.kube.create(kubernetes.Job, job({ activeDeadlineSeconds: 60 }));
    await running.until(kubernetes.Job, key, (object) => object?.status?.ready === 1);
    const failed = await running.whileTimeFlies(running.until(kubernetes.Job, key, ended("Failed")));
    expect(conditionOf(failed?.status?.conditions, "Failed")).toMatchObject({ reason: "DeadlineExceeded" });
    await running.untilAll(kubernetes.Pod, { namespace }, (pods) => pods.length === 0);
  });

  test("a finished Job is deleted after its TTL, with its pods", async () => {
    const running = await startCluster({ nodes: [{}] });
    running.exitOf = () => 0;
    await running.kube.create(kubernetes.Job, job({ ttlSecondsAfterFinished: 100 }));
    await running.until(kubernetes.Job, key, ended("Complete"));
    const before = running.clock.now();
    await running.whileTimeFlies(running.until(kubernetes.Job, key, (object) => object === undefined));
    expect(running.clock.now() - before).toBeGreaterThan(90_000);
    await running.untilAll(kubernetes.Pod, { namespace }, (pods) => pods.length === 0);
    expect((await running.kube.list(kubernetes.Job, { namespace })).items).toEqual([]);
    expect(running.podsMade.size).toBe(1);
  });

  test("a pod deleted while it runs counts as failed and is replaced", async () => {
    const running = await startCluster({ nodes: [{}] });
    await running.kube.create(kubernetes.Job, job());
    const [first] = await running.untilAll<Pod>(
      kubernetes.Pod,
      { namespace },
      (pods) => pods.length === 1 && pods[0]?.status?.phase === "Running",
    );
    await running.kube.delete(kubernetes.Pod, first?.metadata ?? { name: "" });
    await running.untilAll<Pod>(
      kubernetes.Pod,
      { namespace },
      (pods) =>
        pods.some((pod) => pod.metadata.uid !== first?.metadata.uid && pod.status?.phase === "Running") &&
        pods.every((pod) => pod.metadata.uid !== first?.metadata.uid),
    );
    const work = await running.until(
      kubernetes.Job,
      key,
      (object) => object?.status?.failed === 1 && object.status.active === 1,
    );
    expect(conditionOf(work?.status?.conditions, "Failed")).toBeUndefined();
    expect((await running.kube.list(kubernetes.Pod, { namespace })).items).toHaveLength(1);
    expect(running.podsMade.size).toBe(2);
  });

  test("one pass makes and removes at most 500 pods, however many a Job asks for [cluster-jobs-1]", () => {
    const wide = (parallelism: number): Job => ({ ...job({ parallelism }), status: {} });
    expect(planJob(wide(2 ** 31 - 1), [], 0).create).toBe(500);
    const pods = Array.from({ length: 1200 }, (_, index): Pod => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: `work-${index}`, namespace, uid: `${index}` },
    }));
    const { remove, status } = planJob(wide(0), pods, 0);
    expect(remove).toHaveLength(500);
    expect(status).toMatchObject({ active: 700, terminating: 500 });
  });

  test("a Job of more pods than one pass makes gets and loses all of them [cluster-jobs-2]", async () => {
    const running = await startCluster({ nodes: [] });
    await running.kube.create(kubernetes.Job, job({ parallelism: 502 }));
    await running.until(kubernetes.Job, key, (object) => object?.status?.active === 502);
    await running.kube.patch(kubernetes.Job, key, { type: "merge", body: { spec: { parallelism: 0 } } });
    await running.untilAll(kubernetes.Pod, { namespace }, (pods) => pods.length === 0);
    expect(running.podsMade.size).toBe(502);
  });

  test("a suspended Job has no pods, and continues when it is resumed", async () => {
    const running = await startCluster({ nodes: [{}] });
    await running.kube.create(kubernetes.Job, job());
    await running.until(kubernetes.Job, key, (object) => object?.status?.ready === 1);
    await running.kube.patch(kubernetes.Job, key, { type: "merge", body: { spec: { suspend: true } } });
    await running.until(
      kubernetes.Job,
      key,
      (object) =>
        conditionOf(object?.status?.conditions, "Suspended")?.status === "True" && object?.status?.active === undefined,
    );
    await running.untilAll(kubernetes.Pod, { namespace }, (pods) => pods.length === 0);
    running.exitOf = () => 0;
    await running.kube.patch(kubernetes.Job, key, { type: "merge", body: { spec: { suspend: false } } });
    const done = await running.until(kubernetes.Job, key, ended("Complete"));
    expect(done?.status?.failed ?? 0).toBe(0);
  });
});
