import { expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import type { Node, Pod } from "../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, labels, machineConfigNodeConditions, nodeStates } from "../api/names.ts";
import { createReport } from "../kube/report.ts";
import { memoryJournal } from "../ports/journal.ts";
import { silentLogger } from "../ports/logger.ts";
import { NodeMemory } from "./node-memory.ts";

const pool = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name: "worker", labels: { [labels.builtInPool]: "" } },
  spec: { nodeSelector: { matchLabels: { role: "worker" } }, configuration: { name: "new" } },
  status: { configuration: { name: "old" } },
} as unknown as MachineConfigPool;

const node = {
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name: "w0",
    labels: { role: "worker" },
    annotations: {
      [annotations.currentConfig]: "new",
      [annotations.desiredConfig]: "new",
      [annotations.state]: nodeStates.done,
    },
  },
  status: { conditions: [{ type: "Ready", status: "True" }] },
} as unknown as Node;

const machineConfigNode = (updated: "True" | "False", current: string) =>
  ({
    metadata: { name: "w0" },
    spec: { node: { name: "w0" }, pool: { name: "worker" }, configVersion: { desired: "new" } },
    status: {
      configVersion: { current, desired: "new" },
      conditions: [{ type: machineConfigNodeConditions.updated, status: updated, reason: "", message: "" }],
    },
  }) as unknown as MachineConfigNode;

const daemon = (ready: "True" | "False") =>
  ({
    metadata: { name: "daemon-w0" },
    spec: { nodeName: "w0" },
    status: { conditions: [{ type: "Ready", status: ready, lastTransitionTime: "2030-01-01T12:00:00Z" }] },
  }) as unknown as Pod;

test("a machine whose daemon stops being ready before it reports the update is in the pool's book once [node-memory-1]", () => {
  const journal = memoryJournal();
  const memory = new NodeMemory();
  const report = createReport({ journal, log: silentLogger });
  memory.start({ clock: new Kernel(1).clock, report }, () => undefined);
  memory.putPool("worker", pool);
  memory.putDaemonPod({ key: "daemon-w0", before: undefined, after: daemon("True") });
  memory.putMachineConfigNode("w0", machineConfigNode("False", "old"));
  memory.putNode("w0", node);
  const lines = () => journal.lines.map(({ path, reason }) => `${path} ${reason}`);
  expect(lines()).toEqual([]);
  // Without the daemon its Node alone counts, and that says that the machine has the target.
  memory.putDaemonPod({ key: "daemon-w0", before: daemon("True"), after: daemon("False") });
  expect(lines()).toEqual(["Node/w0 NodeUpdated"]);
  memory.putMachineConfigNode("w0", machineConfigNode("True", "new"));
  memory.putDaemonPod({ key: "daemon-w0", before: daemon("False"), after: daemon("True") });
  expect(lines()).toEqual(["Node/w0 NodeUpdated"]);
});
