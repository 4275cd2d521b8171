import { describe, expect, test } from "vitest";
import type { Node, Pod } from "../api/kubernetes.ts";
import { annotations } from "../api/names.ts";
import { describeDrain, drainStep, planDrain } from "./plan-drain.ts";

const node = (has: { desired?: string; applied?: string; ours?: string; cordoned?: boolean }): Pick<Node, "metadata" | "spec"> => ({
  metadata: {
    name: "w",
    annotations: {
      ...(has.desired === undefined ? {} : { [annotations.desiredDrain]: has.desired }),
      ...(has.applied === undefined ? {} : { [annotations.lastAppliedDrain]: has.applied }),
      ...(has.ours === undefined ? {} : { [annotations.cordonedFor]: has.ours }),
    },
  },
  spec: has.cordoned === true ? { unschedulable: true } : {},
});

describe("drainStep", () => {
  test.for([
    { title: "without a request there is nothing to do", has: {}, step: { do: "nothing" } },
    { title: "a new request cordons first", has: { desired: "drain-x" }, step: { do: "cordon", request: "drain-x", anew: false } },
    { title: "a cordoned node is emptied", has: { desired: "drain-x", cordoned: true, ours: "drain-x" }, step: { do: "evict", request: "drain-x" } },
    { title: "somebody else's cordon will do", has: { desired: "drain-x", cordoned: true }, step: { do: "evict", request: "drain-x" } },
    { title: "a request that is carried out rests", has: { desired: "drain-x", applied: "drain-x", cordoned: true }, step: { do: "nothing" } },
    { title: "a drained node that somebody put back is cordoned and drained anew", has: { desired: "drain-x", applied: "drain-x", ours: "drain-x" }, step: { do: "cordon", request: "drain-x", anew: true } },
    { title: "a request for another config drains again", has: { desired: "drain-y", applied: "drain-x", cordoned: true, ours: "drain-x" }, step: { do: "evict", request: "drain-y" } },
    { title: "our cordon is lifted", has: { desired: "uncordon-x", applied: "drain-x", cordoned: true, ours: "drain-x" }, step: { do: "uncordon", request: "uncordon-x", lift: true } },
    { title: "a cordon of somebody else stays", has: { desired: "uncordon-x", applied: "drain-x", cordoned: true }, step: { do: "uncordon", request: "uncordon-x", lift: false } },
    { title: "an uncordon that is carried out rests, though an administrator cordoned since", has: { desired: "uncordon-x", applied: "uncordon-x", cordoned: true }, step: { do: "nothing" } },
    { title: "other verbs are refused", has: { desired: "dance-x" }, step: { do: "refuse", request: "dance-x" } },
  ])("$title", ({ has, step }) => {
    expect(drainStep(node(has))).toMatchObject(step);
  });
});

const pod = (name: string, more: { metadata?: object; status?: object } = {}): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "n", ...more.metadata }, spec: { containers: [] }, status: { phase: "Running", ...more.status } }) as Pod;

describe("planDrain", () => {
  test("evicts all but pods of DaemonSets, mirror pods and ended ones, and waits for those that leave", () => {
    const plan = planDrain([
      pod("web", { metadata: { ownerReferences: [{ kind: "ReplicaSet", controller: true }] } }),
      pod("alone"),
      pod("daemon", { metadata: { ownerReferences: [{ kind: "DaemonSet", controller: true }] } }),
      pod("static", { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } }),
      pod("done", { status: { phase: "Succeeded" } }),
      pod("failed", { status: { phase: "Failed" } }),
      pod("going", { metadata: { deletionTimestamp: "2030-01-01T00:00:00Z" } }),
    ]);
    expect(plan.evict.map(({ metadata }) => metadata.name)).toEqual(["web", "alone"]);
    expect(plan.leaving.map(({ metadata }) => metadata.name)).toEqual(["going"]);
    expect(plan.staying.map(({ pod: each, why }) => `${each.metadata.name} ${why}`)).toEqual(["daemon DaemonSet", "static mirror", "done terminated", "failed terminated"]);
  });

  test("the description names blocked pods with what blocks them, then pods on their way", () => {
    expect(describeDrain([{ pod: pod("a"), why: "The disruption budget web needs 2 healthy pods and has 2 currently" }], [pod("b")])).toBe(
      "1 pod cannot be evicted: n/a (The disruption budget web needs 2 healthy pods and has 2 currently); waiting for n/b to end",
    );
    expect(describeDrain([], [])).toBe("all pods have left");
  });
});
