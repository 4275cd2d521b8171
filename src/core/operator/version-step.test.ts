import { expect, test } from "vitest";
import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import { timestampOf } from "../../api/schema/object.ts";
import type { TaskOutcome } from "./cluster-operator-status.ts";
import { type VersionStep, versionStep } from "./version-step.ts";

const done: TaskOutcome = { task: "RBAC", kind: "done" };
const waits: TaskOutcome = { task: "Admission", kind: "progressing", message: "waiting" };
const fails: TaskOutcome = { task: "Admission", kind: "failed", message: "refused" };

const at = (version: string | undefined, progressing?: string): ClusterOperator =>
  ({
    metadata: { name: "machine-config" },
    status: {
      ...(version === undefined ? {} : { versions: [{ name: "operator", version }] }),
      conditions: [
        {
          type: "Progressing",
          status: "True",
          reason: progressing ?? "AsExpected",
          lastTransitionTime: timestampOf(0),
        },
      ],
    },
  }) as unknown as ClusterOperator;

test.for<{ title: string; operator: ClusterOperator | undefined; outcomes: TaskOutcome[]; step: VersionStep }>([
  {
    title: "without a ClusterOperator the suite is being installed",
    operator: undefined,
    outcomes: [done, waits],
    step: { step: "installing", reached: undefined },
  },
  {
    title: "before the first version the suite is being installed",
    operator: at(undefined),
    outcomes: [done, fails],
    step: { step: "installing", reached: undefined },
  },
  {
    title: "an installation has arrived when every task is done",
    operator: at(undefined),
    outcomes: [done, done],
    step: { step: "arrived", reached: "2", from: undefined },
  },
  {
    title: "another version is being upgraded from",
    operator: at("1"),
    outcomes: [waits],
    step: { step: "upgrading", reached: "1", isBegun: false },
  },
  {
    title: "an upgrade that another process began goes on",
    operator: at("1", "Upgrading"),
    outcomes: [done, fails],
    step: { step: "upgrading", reached: "1", isBegun: true },
  },
  {
    title: "an upgrade has arrived when every task is done",
    operator: at("1", "Upgrading"),
    outcomes: [done],
    step: { step: "arrived", reached: "2", from: "1" },
  },
  {
    title: "a version that was reached stays so when a task fails later",
    operator: at("2"),
    outcomes: [fails],
    step: { step: "arrivedBefore", reached: "2" },
  },
])("$title", ({ operator, outcomes, step }) => {
  expect(versionStep("2", operator, outcomes)).toEqual(step);
});
