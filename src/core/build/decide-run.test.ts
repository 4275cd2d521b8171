import { describe, expect, test } from "vitest";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { type BuildFailure, failureClasses } from "./build-failures.ts";
import { type FailureRecord, retryAfterFailure } from "./build-retry.ts";
import { decideRun } from "./decide-run.ts";
import type { RunDecision, RunState, RunView } from "./run-decision.ts";

const now = Date.UTC(2030, 0, 1);
const repository = "r.example.com/os";
const digest = `sha256:${"1".repeat(64)}`;
const image = `${repository}@${digest}`;
const failure: BuildFailure = { class: "PushUnavailable", step: "push", cause: "503", excerpt: "" };

interface Wanted {
  readonly name?: string;
  readonly owner?: string;
  readonly phase?: string;
  readonly reason?: string;
  readonly strategy?: string;
  readonly has?: Readonly<Record<string, string>>;
  readonly deleted?: true;
}

const build = (wanted: Wanted = {}): MachineOSBuild => {
  const { name = "worker-1", owner = "worker", phase, reason = "Because", strategy = "build" } = wanted;
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineOSBuild",
    metadata: {
      name,
      ...(wanted.deleted === undefined ? {} : { deletionTimestamp: timestampOf(now) }),
      annotations: {
        [annotations.buildStrategy]: strategy,
        [annotations.contentKey]: "key",
        [annotations.keyInputs]: JSON.stringify({ arch: "amd64", base: "sha256:base" }),
        ...wanted.has,
      },
    },
    spec: {
      machineConfig: { name: "rendered-worker-1" },
      machineOSConfig: { name: owner },
      renderedImagePushSpec: `${repository}:${name}`,
    },
    ...(phase === undefined
      ? {}
      : {
          status: {
            conditions: [
              { type: phase, status: "True", reason, message: "as it is", lastTransitionTime: timestampOf(now) },
            ],
            ...(phase === "Succeeded" ? { digestedImagePushSpec: image } : {}),
          },
        }),
  };
};

const rendered: MachineConfig = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfig",
  metadata: { name: "rendered-worker-1" },
  spec: { osImageURL: `${repository}@sha256:${"0".repeat(64)}`, config: { ignition: { version: "3.5.0" } } },
};
const pool = (retries: string): Pick<MachineConfigPool, "metadata"> => ({
  metadata: { name: "worker", annotations: { [annotations.buildRetries]: retries } },
});

const view = (more: Partial<RunView> = {}): RunView => ({
  build: build(),
  running: [],
  now,
  atOnce: 1,
  builds: [],
  pool: undefined,
  isOwned: true,
  maxRetries: 5,
  rendered,
  ...more,
});

const started = (more: Wanted = {}) => build({ phase: "Building", reason: "Started", ...more });
const same = { inputs: { are: "same", isRebuild: false } } as const;
const requested = {
  ...same,
  request: { verdict: "request", request: { isolation: "userNamespace", containerfile: "FROM x" } },
} as const;
const weaker = {
  ...same,
  request: { verdict: "request", request: { isolation: "hostUsers", containerfile: "FROM x" } },
} as const;
const runs = (run: Partial<RunState> & Pick<RunState, "phase">, more: Partial<RunView> = {}): Partial<RunView> => ({
  build: started(),
  run,
  ...more,
});
/** What a build keeps of a failure and of what follows from it. */
const recorded = (follows: FailureRecord["follows"], retries = 0): Readonly<Record<string, string>> => {
  const facts = { failure, before: undefined, attempt: 1, retries, maxRetries: 5, now: timestampOf(now), chance: 0.5 };
  return { [annotations.buildFailure]: JSON.stringify({ ...retryAfterFailure(facts).record, follows }) };
};
const again = { do: "again", at: timestampOf(now + 30_000), message: "the registry is away" } as const;
const attached = (source?: Wanted): Partial<RunView> => ({
  build: build({ strategy: "reuse", has: { [annotations.reusedFrom]: "other" } }),
  builds: source === undefined ? [] : [build({ name: "other", ...source })],
});

const rows: readonly {
  readonly title: string;
  readonly seen: Partial<RunView>;
  readonly decision: Pick<RunDecision, "do"> & Readonly<Record<string, unknown>>;
}[] = [
  { title: "a build that has ended rests", seen: { build: build({ phase: "Failed" }) }, decision: { do: "rest" } },
  { title: "so does one that is being deleted", seen: { build: build({ deleted: true }) }, decision: { do: "rest" } },
  {
    title: "without a backend it is held",
    seen: { atOnce: undefined },
    decision: {
      do: "hold",
      state: { phase: "Initial", message: failureClasses.BuilderBinaryMissing.means },
      seconds: 5,
    },
  },
  {
    title: "an attached build takes the image of the other one",
    seen: attached({ phase: "Succeeded" }),
    decision: { do: "succeed", image, reason: "Reused", facts: undefined, run: undefined },
  },
  {
    title: "and waits for one that runs",
    seen: attached({ phase: "Building", reason: "Started" }),
    decision: {
      do: "reportAttached",
      state: { phase: "Building", reason: "Attached", message: "waits for other, which makes the same image" },
    },
  },
  {
    title: "it fails with one of its own owner",
    seen: attached({ phase: "Failed", reason: "PushUnavailable", has: recorded(undefined) }),
    decision: {
      do: "fail",
      reason: "PushUnavailable",
      message: "other, whose run it waited for: as it is",
      record: expect.objectContaining({ class: "PushUnavailable" }) as object,
    },
  },
  {
    title: "but not with one whose retries its owner has spent",
    seen: attached({ phase: "Failed", reason: "RetryLimitReached", has: recorded(undefined) }),
    decision: {
      do: "interrupt",
      because: "other, whose run it waited for, ended without an image (Failed RetryLimitReached)",
      reason: "Superseded",
    },
  },
  {
    title: "nor with one of another owner",
    seen: attached({ phase: "Failed", reason: "PushUnavailable", owner: "infra", has: recorded(undefined) }),
    decision: { do: "interrupt", reason: "Superseded" },
  },
  {
    title: "one that is gone supersedes it",
    seen: attached(),
    decision: { do: "interrupt", because: "other, whose run it waited for, is gone" },
  },
  {
    title: "a failure for good that was noted is carried out",
    seen: { build: build({ has: recorded({ do: "fail", reason: "PushUnavailable", message: "no more" }) }) },
    decision: { do: "fail", reason: "PushUnavailable", message: "no more", record: undefined },
  },
  {
    title: "a retry that was noted is scheduled, and counted",
    seen: { build: build({ has: recorded(again) }), pool: pool("0") },
    decision: {
      do: "retry",
      because: "the registry is away",
      at: again.at,
      charge: 1,
      state: {
        phase: "Building",
        reason: "RetryScheduled",
        message: `attempt 2 of 6 at ${again.at}; previous: PushUnavailable: 503`,
      },
    },
  },
  {
    title: "but not counted over a counter that a user changed",
    seen: { build: build({ has: recorded(again) }), pool: pool("3") },
    decision: { do: "retry", charge: undefined },
  },
  {
    title: "nor without a pool",
    seen: { build: build({ has: recorded(again) }) },
    decision: { do: "retry", charge: undefined },
  },
  {
    title: "the time of the next attempt is awaited",
    seen: {
      build: build({
        has: { ...recorded(again), [annotations.buildAttempt]: "2", [annotations.nextAttemptAt]: again.at },
      }),
    },
    decision: { do: "rest", seconds: 30 },
  },
  {
    title: "then its inputs are read again",
    seen: {
      build: build({
        phase: "Building",
        reason: "RetryScheduled",
        has: { ...recorded(again), [annotations.buildAttempt]: "2", [annotations.nextAttemptAt]: timestampOf(now) },
      }),
    },
    decision: { do: "readInputs" },
  },
  {
    title: "a build waits for others when its backend has no room",
    seen: { running: ["infra-1"] },
    decision: { do: "queue", because: "worker-1 waits for infra-1", seconds: 5 },
  },
  {
    title: "inputs that cannot be read hold it back",
    seen: { inputs: { are: "unreadable" } },
    decision: {
      do: "hold",
      state: {
        phase: "Prepared",
        reason: "InputChanged",
        message: "the inputs of the MachineOSConfig worker cannot be read; its conditions say why",
      },
      seconds: 30,
    },
  },
  {
    title: "inputs that have changed supersede it",
    seen: { inputs: { are: "changed" } },
    decision: { do: "interrupt", because: "its inputs have changed", reason: "Superseded", again: undefined },
  },
  {
    title: "with its inputs the request is made",
    seen: { inputs: { are: "same", isRebuild: true } },
    decision: { do: "makeRequest", moreMemory: false, noCache: true },
  },
  {
    title: "with more memory after a run that had too little",
    seen: {
      ...same,
      build: build({
        has: {
          [annotations.buildAttempt]: "2",
          [annotations.buildFailure]: JSON.stringify({ class: "OutOfMemory", attempt: 1, counts: { OutOfMemory: 1 } }),
        },
      }),
    },
    decision: { do: "makeRequest", moreMemory: true, noCache: false },
  },
  {
    title: "an image that cannot be read fails the attempt",
    seen: { ...same, request: { verdict: "failed", failure } },
    decision: { do: "noteFailure", because: "PushUnavailable at push: 503", failure },
  },
  { title: "with its request the run is started", seen: requested, decision: { do: "start" } },
  {
    title: "an input that was deleted meanwhile is no failure",
    seen: {
      ...requested,
      start: { verdict: "missing", kind: "Secret", name: "push", problem: "does not exist", isIsolation: false },
    },
    decision: {
      do: "hold",
      state: expect.objectContaining({
        message: expect.stringContaining(": Secret push: does not exist. ") as string,
      }) as object,
      seconds: 30,
    },
  },
  {
    title: "nor is an isolation that the cluster does not have",
    seen: {
      ...requested,
      build: started({ reason: "InputChanged" }),
      start: { verdict: "missing", kind: "", name: "", problem: "no user namespaces", isIsolation: true },
    },
    decision: { do: "hold", state: { phase: "Building", reason: "InputChanged", message: "no user namespaces" } },
  },
  {
    title: "a run that was begun is reported",
    seen: { ...requested, start: { verdict: "begun" } },
    decision: {
      do: "reportBegun",
      state: { phase: "Prepared", reason: "WaitingForPod", message: "attempt 1 was begun" },
      containerfile: "FROM x",
      wasScheduled: false,
      seconds: 10,
    },
  },
  {
    title: "and so is one of a later attempt, with what makes its pod weaker",
    seen: {
      ...weaker,
      build: build({
        phase: "Building",
        reason: "RetryScheduled",
        has: { [annotations.buildAttempt]: "2", [annotations.nextAttemptAt]: timestampOf(now) },
      }),
      start: { verdict: "begun" },
    },
    decision: {
      do: "reportBegun",
      state: {
        phase: "Building",
        reason: "Started",
        message: "attempt 2 was begun, with the users of the machine (buildIsolation: hostUsers)",
      },
      wasScheduled: true,
    },
  },
  { title: "a started run is observed", seen: { build: started() }, decision: { do: "observe" } },
  {
    title: "a pending run says why",
    seen: runs({ phase: "Pending", reason: "Unschedulable" }, { build: build({ phase: "Prepared" }) }),
    decision: {
      do: "reportRun",
      state: { phase: "Prepared", reason: "Unschedulable", message: "as it is" },
      isFirst: false,
      isNewStep: false,
      seconds: 10,
    },
  },
  {
    title: "a running one says its step",
    seen: runs({ phase: "Running", step: "user:2" }, { build: build({ phase: "Prepared" }) }),
    decision: {
      do: "reportRun",
      state: { phase: "Building", reason: "StepUser", message: "attempt 1: user:2" },
      isFirst: true,
      isNewStep: true,
    },
  },
  {
    title: "a failed run fails its attempt",
    seen: runs({ phase: "Failed", failure }),
    decision: { do: "noteFailure", failure },
  },
  {
    title: "even without a word",
    seen: runs({ phase: "Failed" }),
    decision: {
      do: "noteFailure",
      failure: { class: "Internal", step: "run", cause: "it failed without a word", excerpt: "" },
    },
  },
  {
    title: "so does a lost one",
    seen: runs({ phase: "Lost", step: "push" }),
    decision: {
      do: "noteFailure",
      failure: { class: "BuilderLost", step: "push", cause: failureClasses.BuilderLost.means, excerpt: "" },
    },
  },
  {
    title: "a run that was deleted is started once more, a minute later",
    seen: runs({ phase: "Gone" }),
    decision: {
      do: "interrupt",
      because: "its run was deleted; the builder starts it again once, in a minute",
      reason: "UserDeleted",
      again: timestampOf(now + 60_000),
      seconds: 60,
    },
  },
  {
    title: "and not twice",
    seen: runs({ phase: "Gone" }, { builds: [build({ name: "old", phase: "Interrupted", reason: "UserDeleted" })] }),
    decision: {
      do: "interrupt",
      because: "its run was deleted again; request a rebuild to start it once more",
      again: undefined,
    },
  },
  {
    title: "an image without a digest is none",
    seen: runs({ phase: "Succeeded", digest: "latest" }),
    decision: { do: "noteFailure", failure: expect.objectContaining({ class: "DigestMissing" }) as object },
  },
  {
    title: "an image is verified",
    seen: runs({ phase: "Succeeded", digest }),
    decision: { do: "verify", image, architecture: "amd64", baseDigest: "sha256:base" },
  },
  {
    title: "one that nodes cannot use fails the attempt",
    seen: runs({ phase: "Succeeded", digest }, { verification: { verdict: "failed", failure } }),
    decision: { do: "noteFailure", failure },
  },
  {
    title: "a registry that does not answer is asked again",
    seen: runs({ phase: "Succeeded", digest }, { verification: { verdict: "waits", message: "503" } }),
    decision: {
      do: "reportRun",
      state: { phase: "Building", reason: "RegistryUnreachable", message: "503" },
      seconds: 30,
    },
  },
  {
    title: "a verified image ends the build",
    seen: runs({ phase: "Succeeded", digest }, { verification: { verdict: "good", facts: { layers: 3 } } }),
    decision: { do: "succeed", image, reason: "Ready", facts: { layers: 3 }, run: { phase: "Succeeded" } },
  },
  {
    title: "one that nobody desires any more is not verified",
    seen: runs({ phase: "Succeeded", digest }, { isOwned: false, build: started({ strategy: "append" }) }),
    decision: { do: "succeed", image, reason: "Appended", facts: undefined },
  },
];

describe("decideRun", () => {
  test.for(rows)("$title [build-decide-run-1]", ({ seen, decision }) => {
    expect(decideRun(view(seen))).toMatchObject(decision);
  });

  test("the rows reach every decision, and each has a reason [build-decide-run-2]", () => {
    const every: Readonly<Record<RunDecision["do"], true>> = {
      readInputs: true,
      makeRequest: true,
      start: true,
      observe: true,
      verify: true,
      noteFailure: true,
      rest: true,
      queue: true,
      hold: true,
      reportBegun: true,
      reportRun: true,
      reportAttached: true,
      succeed: true,
      fail: true,
      retry: true,
      interrupt: true,
    };
    const decisions = rows.map(({ seen }) => decideRun(view(seen)));
    expect([...new Set(decisions.map((each) => each.do))].sort()).toEqual(Object.keys(every).sort());
    expect(decisions.filter(({ because }) => because === "")).toEqual([]);
  });
});
