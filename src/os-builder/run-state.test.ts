import { describe, expect, test } from "vitest";
import type { Job, Pod } from "../api/foreign/kubernetes.ts";
import { printOutcome } from "../core/build/image-build.ts";
import { runStateOf } from "./run-state.ts";

const digest = `sha256:${"a".repeat(64)}`;
const now = Date.parse("2026-01-01T01:00:00Z");
const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString().replace(/\.\d+/, "");
const job = (status: Job["status"] = {}, more: object = {}): Job => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name: "build-x-1", creationTimestamp: ago(1000), ...more },
  status,
});
const pod = (status: NonNullable<Pod["status"]>, creationTimestamp = ago(900)): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", creationTimestamp },
  status,
});
const container = (state: object) => ({
  containerStatuses: [{ name: "image-build", image: "", imageID: "", ready: false, restartCount: 0, state }],
});
const terminated = (exitCode: number, message = "", reason = exitCode === 0 ? "Completed" : "Error") =>
  container({ terminated: { exitCode, reason, message, startedAt: ago(800), finishedAt: ago(100) } });
/** Containers that have ended before one that was not begun. */
const before = (...ends: readonly (readonly [exitCode: number, message: string])[]) => ({
  ...container({ waiting: { reason: "PodInitializing" } }),
  initContainerStatuses: ends.flatMap(([exitCode, message]) => terminated(exitCode, message).containerStatuses),
});
const failedPod = (exitCode: number, message?: string, reason?: string, more: object = {}) =>
  pod({ phase: "Failed", ...terminated(exitCode, message, reason), ...more });
const told = printOutcome({
  failure: { class: "PushUnavailable", step: "push", exitCode: 1, cause: "the registry answered 503", excerpt: "tail" },
});
const pulling = container({ waiting: { reason: "ImagePullBackOff", message: "back-off" } });

describe("the state of a run from its Job and pods", () => {
  test.for<{ title: string; job?: Job | undefined; pods?: readonly Pod[]; step?: string; state: object }>([
    { title: "no Job", job: undefined, state: { phase: "Gone" } },
    { title: "no pod yet", state: { phase: "Pending", reason: "WaitingForPod" } },
    {
      title: "a pod that no node takes, for a moment",
      pods: [
        pod({
          conditions: [
            {
              type: "PodScheduled",
              status: "False",
              reason: "Unschedulable",
              message: "0/3 nodes",
              lastTransitionTime: ago(59),
            },
          ],
        }),
      ],
      state: { phase: "Pending", reason: "WaitingForPod" },
    },
    {
      title: "a pod that no node takes, for a minute",
      pods: [
        pod({
          conditions: [
            {
              type: "PodScheduled",
              status: "False",
              reason: "Unschedulable",
              message: "0/3 nodes",
              lastTransitionTime: ago(61),
            },
          ],
        }),
      ],
      state: { phase: "Pending", reason: "Unschedulable", message: "0/3 nodes" },
    },
    {
      title: "a pod whose volumes are being created",
      pods: [pod(container({ waiting: { reason: "ContainerCreating", message: "secret not found" } }))],
      state: { phase: "Pending", reason: "WaitingForPod", message: "secret not found" },
    },
    {
      title: "a missing builder image is no failure at first",
      pods: [pod({ startTime: ago(599), ...pulling })],
      state: { phase: "Pending", reason: "PullingBuilderImage", message: "back-off" },
    },
    {
      title: "a builder image that is missing for ten minutes",
      pods: [pod({ startTime: ago(601), ...pulling })],
      state: { phase: "Failed", failure: { class: "BuilderImagePull" } },
    },
    {
      title: "a running container",
      pods: [pod({ phase: "Running", ...container({ running: { startedAt: ago(800) } }) })],
      step: "push",
      state: { phase: "Running", step: "push", reason: "StepPush", startedAt: ago(800) },
    },
    {
      title: "a container that named its image",
      pods: [pod({ phase: "Succeeded", ...terminated(0, printOutcome({ digest })) })],
      state: { phase: "Succeeded", digest, startedAt: ago(800), endedAt: ago(100) },
    },
    {
      title: "a container that succeeded and named none",
      pods: [pod({ phase: "Succeeded", ...terminated(0, "last line") })],
      state: { phase: "Failed", failure: { class: "DigestMissing", excerpt: "last line" } },
    },
    {
      title: "a container that reports why it failed",
      pods: [failedPod(1, told)],
      state: {
        phase: "Failed",
        step: "push",
        failure: { class: "PushUnavailable", exitCode: 1, cause: "the registry answered 503", excerpt: "tail" },
      },
    },
    {
      title: "a container without a useful message",
      pods: [failedPod(1, "write /x: no space left on device")],
      state: { phase: "Failed", failure: { class: "DiskFull" } },
    },
    {
      title: "running out of memory outweighs the container's message",
      pods: [failedPod(137, told, "OOMKilled")],
      state: { phase: "Failed", failure: { class: "OutOfMemory" } },
    },
    {
      title: "an evicted pod",
      pods: [pod({ phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory" })],
      state: { phase: "Failed", failure: { class: "Evicted" } },
    },
    {
      title: "a pod that was evicted for its use of the disk",
      pods: [
        pod({
          phase: "Failed",
          reason: "Evicted",
          message: "Pod ephemeral local storage usage exceeds the total limit",
        }),
      ],
      state: { phase: "Failed", failure: { class: "DiskFull" } },
    },
    {
      title: "a drained pod is no failure of the build, whatever its message",
      pods: [
        failedPod(143, told, "Error", {
          conditions: [
            {
              type: "DisruptionTarget",
              status: "True",
              reason: "EvictionByEvictionAPI",
              message: "Eviction API: evicting",
            },
          ],
        }),
      ],
      state: { phase: "Failed", failure: { class: "Evicted" } },
    },
    {
      title: "a lost machine",
      pods: [pod({ phase: "Failed", reason: "NodeLost", message: "" })],
      state: { phase: "Failed", failure: { class: "NodeLost" } },
    },
    {
      title: "too long",
      job: job({
        conditions: [
          {
            type: "FailureTarget",
            status: "True",
            reason: "DeadlineExceeded",
            message: "Job was active longer than specified deadline",
          },
        ],
      }),
      pods: [pod({ phase: "Running", ...container({ running: { startedAt: ago(800) } }) })],
      step: "user:2",
      state: { phase: "Failed", step: "user:2", failure: { class: "Timeout" } },
    },
    {
      title: "a deleted pod",
      job: job({ failed: 1 }),
      state: { phase: "Lost", failure: { class: "BuilderLost" } },
    },
    {
      title: "a finished Job",
      job: job({}, { deletionTimestamp: ago(1) }),
      pods: [failedPod(143, "")],
      state: { phase: "Running", reason: "Ending" },
    },
    {
      title: "an image reported by the container that runs steps does not count",
      pods: [pod({ phase: "Pending", ...before([0, printOutcome({ digest })]) })],
      step: "user:2",
      state: { phase: "Running", step: "user:2" },
    },
    {
      title: "the container that failed before the push gives the reason",
      pods: [pod({ phase: "Failed", ...before([0, ""], [7, told]) })],
      state: { phase: "Failed", failure: { class: "PushUnavailable", cause: "the registry answered 503" } },
    },
    {
      title: "the newest pod counts",
      pods: [failedPod(1, told), pod({ phase: "Running", ...container({ running: { startedAt: ago(5) } }) }, ago(10))],
      state: { phase: "Running" },
    },
  ])("$title", ({ pods = [], step, state, ...given }) => {
    expect(runStateOf({ job: "job" in given ? given.job : job(), pods, step }, now)).toMatchObject(state);
  });

  test.for<{ status: Job["status"] }>([
    { status: { conditions: [{ type: "Complete", status: "True" }], succeeded: 1 } },
    { status: { succeeded: 1 } },
  ])(
    "a run whose pod was removed after its end is lost, and waits for no pod [os-builder-run-state-1]",
    ({ status }) => {
      expect(runStateOf({ job: job(status), pods: [], step: undefined }, now)).toMatchObject({
        phase: "Lost",
        failure: {
          class: "BuilderLost",
          step: "run",
          cause: "its pod was removed before it was read which image it made",
        },
      });
    },
  );
});
