/**
 * The process that `largest.ts` measures: decides about the one MachineConfig on its standard input, prints what it
 * cost.
 */
import { readFileSync } from "node:fs";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { type ClusterObjects, planCluster } from "../../src/core/preview/plan-cluster.ts";
import { renderPool } from "../../src/core/render/render-pool.ts";

const member = JSON.parse(readFileSync(0, "utf8")) as MachineConfig;
const pool: ClusterObjects["pools"][number] = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name: "worker" },
  spec: {
    machineConfigSelector: { matchLabels: { "machineconfiguration.openshift.io/role": "worker" } },
    nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
  },
};
const empty: MachineConfig = { ...member, metadata: { ...member.metadata, name: "00-worker" }, spec: {} };
const before = {
  pools: [pool],
  machineConfigs: [empty],
  machineConfiguration: undefined,
  controllerConfig: undefined,
  nodes: [],
};

const began = performance.now();
const rendered = renderPool({ pool, members: [empty, member], controllerConfig: { spec: {} } });
const forecast = planCluster(before, { ...before, machineConfigs: [empty, member] });
const milliseconds = Math.round(performance.now() - began);

const [planned] = forecast.pools;
const refusal = planned?.verdict === "changes" ? planned.irreconcilable[0]?.reason : undefined;
const outcome =
  rendered.verdict === "refused" ? "refused" : refusal === undefined ? "rendered" : "rendered, refused by machines";
// getrusage(2) counts what the parent had before exec; proc(5) does not.
const peakKiB = Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
process.stdout.write(JSON.stringify({ outcome, milliseconds, peak: Math.round(peakKiB / 102.4) / 10 }));
