import { describe, expect, test } from "vitest";
import type { MachineConfigNode } from "../api/machine-config-node.ts";
import type { MachineConfigPool } from "../api/machine-config-pool.ts";
import { drainReasons } from "./plan-drain.ts";
import { clusterMetrics, metricsText } from "./metrics.ts";

const pool = (name: string, more: object) => ({ metadata: { name }, spec: {}, ...more }) as MachineConfigPool;

describe("metrics", () => {
  test("say of every pool how many machines it has and how they are, and name machines whose drain is late", () => {
    const late = { metadata: { name: "worker-1" }, status: { conditions: [{ type: "Drained", status: "Unknown", reason: drainReasons.late, message: "", lastTransitionTime: "" }] } } as unknown as MachineConfigNode;
    const text = metricsText(clusterMetrics([pool("worker", { status: { machineCount: 3, updatedMachineCount: 2, degradedMachineCount: 1, unavailableMachineCount: 1 } }), pool("new", { spec: { paused: true } })], [late]));
    for (const line of ['mco_machine_count{pool="worker"} 3', 'mco_updated_machine_count{pool="worker"} 2', 'mco_degraded_machine_count{pool="worker"} 1', 'mco_unavailable_machine_count{pool="worker"} 1', 'mco_machine_count{pool="new"} 0', 'mco_pool_paused{pool="new"} 1', 'mcc_drain_err{node="worker-1"} 1']) expect(text.split("\n")).toContain(line);
  });

  test("are written as Prometheus reads them: help and type before the samples, label values escaped", () => {
    expect(metricsText([{ name: "a", help: "one\nline", type: "summary", samples: [{ suffix: "_count", labels: {}, value: 2 }, { labels: { x: 'q"\\\n' }, value: 0.5 }] }])).toBe('# HELP a one\\nline\n# TYPE a summary\na_count 2\na{x="q\\"\\\\\\n"} 0.5\n');
  });
});
