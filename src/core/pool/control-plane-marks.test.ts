import { expect, test } from "vitest";
import type { Node } from "../../api/foreign/kubernetes.ts";
import { labels } from "../../api/names.ts";
import { controlPlaneMarks } from "./control-plane-marks.ts";

const [master, controlPlane, worker] = [labels.masterRole, labels.controlPlaneRole, labels.workerRole];
const noSchedule = { key: "node-role.kubernetes.io/master", effect: "NoSchedule" };
const other = { key: "mine", effect: "NoExecute" };

test.for<{
  title: string;
  has: readonly string[];
  taints?: object[];
  schedulable: boolean | undefined;
  labels: Record<string, string | null>;
  after: object[];
}>([
  { title: "without settings nothing is touched", has: [master], schedulable: undefined, labels: {}, after: [] },
  { title: "workers are left alone", has: [worker], schedulable: false, labels: {}, after: [] },
  {
    title: "not schedulable: tainted, and no worker",
    has: [master, worker],
    taints: [other],
    schedulable: false,
    labels: { [controlPlane]: "", [worker]: null },
    after: [other, noSchedule],
  },
  {
    title: "not schedulable and so already",
    has: [master, controlPlane],
    taints: [noSchedule],
    schedulable: false,
    labels: {},
    after: [noSchedule],
  },
  {
    title: "schedulable: a worker too, without the taints of either name",
    has: [master],
    taints: [noSchedule, { key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" }, other],
    schedulable: true,
    labels: { [controlPlane]: "", [worker]: "" },
    after: [other],
  },
])("$title [pool-control-plane-marks-1]", ({ has, taints = [], schedulable, labels: wanted, after }) => {
  const node = {
    metadata: { name: "m", labels: Object.fromEntries(has.map((key) => [key, ""])) },
    spec: { taints },
  } as unknown as Node;
  expect(controlPlaneMarks(node, schedulable)).toEqual({ labels: wanted, taints: after });
});
