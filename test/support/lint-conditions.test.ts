import { expect, test } from "vitest";
import { conditionProblems } from "./lint-conditions.ts";

const condition = (type: string, status: string, more = {}) =>
  ({ type, status, reason: "", message: "", lastTransitionTime: "2026-01-01T00:00:00Z", ...more }) as never;
const pool = (conditions: readonly never[], more: { generation?: number; observedGeneration?: number } = {}) => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name: "worker", generation: more.generation ?? 1 },
  status: { observedGeneration: more.observedGeneration ?? 1, conditions },
});

test.for([
  {
    title: "a pool that reports itself updated passes",
    object: pool([condition("Updated", "True"), condition("Degraded", "False")]),
    problems: [],
  },
  {
    title: "a generation from the future is refused",
    object: pool([], { generation: 1, observedGeneration: 2 }),
    problems: ["MachineConfigPool/worker has observed generation 2 of 1"],
  },
  {
    title: "a condition without a type is refused",
    object: pool([condition("", "True")]),
    problems: ["MachineConfigPool/worker has a condition without a type"],
  },
  {
    title: "Updated beside Degraded is refused",
    object: pool([condition("Updated", "True"), condition("Degraded", "True", { message: "x" })]),
    problems: ["MachineConfigPool/worker is Updated and Degraded"],
  },
  {
    title: "Updated beside Updating is refused",
    object: pool([condition("Updated", "True"), condition("Updating", "True")]),
    problems: ["MachineConfigPool/worker is Updated and Updating"],
  },
  {
    title: "Reconciling beside Stalled is refused",
    object: pool([condition("Reconciling", "True"), condition("Stalled", "True")]),
    problems: ["MachineConfigPool/worker is Reconciling and Stalled"],
  },
  {
    title: "a failure without a reason is refused",
    object: pool([condition("RenderDegraded", "True")]),
    problems: ["MachineConfigPool/worker: RenderDegraded does not say why"],
  },
  {
    title: "a status that Kubernetes does not know is refused",
    object: pool([condition("Updated", "yes")]),
    problems: ['MachineConfigPool/worker: Updated is "yes"'],
  },
])("$title", ({ object, problems }) => {
  expect(conditionProblems(object)).toEqual(problems);
});
