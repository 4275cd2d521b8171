import { describe, expect, test } from "vitest";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, labels } from "../../api/names.ts";
import { factsOf } from "../pool/pool-queries.ts";
import { drainReasons } from "../pool/drain-step.ts";
import { clusterMetrics, metricsText } from "./metrics.ts";

const pool = (
  name: string,
  { spec = {}, status = {} }: { readonly spec?: object; readonly status?: object } = {},
  label = `node-role.kubernetes.io/${name}`,
) =>
  ({
    metadata: { name },
    spec: { nodeSelector: { matchLabels: { [label]: "" } }, configuration: { name: "rendered-2" }, ...spec },
    status,
  }) as unknown as MachineConfigPool;
const node = (name: string, roles: readonly string[], has: Readonly<Record<string, string>> = {}) =>
  ({
    metadata: {
      name,
      labels: Object.fromEntries(roles.map((role) => [`node-role.kubernetes.io/${role}`, ""])),
      annotations: {
        [annotations.currentConfig]: "rendered-1",
        [annotations.desiredConfig]: "rendered-1",
        [annotations.state]: "Done",
        ...has,
      },
    },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  }) as unknown as Node;

function linesOf(
  objects: {
    readonly pools: readonly MachineConfigPool[];
    readonly nodes?: readonly Node[];
    readonly machineConfigNodes?: readonly MachineConfigNode[];
    readonly machineConfigs?: readonly MachineConfig[];
  },
  machineConfiguration?: object,
): readonly string[] {
  const { nodes = [], machineConfigNodes = [] } = objects;
  const facts = factsOf({ ...objects, nodes, machineConfigNodes }, Date.UTC(2030, 0, 1));
  return metricsText(
    clusterMetrics({
      facts,
      machineConfigNodes,
      machineConfiguration: { metadata: { name: "cluster" }, ...machineConfiguration } as MachineConfiguration,
    }),
  ).split("\n");
}

describe("metrics", () => {
  test("say of every pool how many machines it has and how they are, and name machines whose drain is late [metrics-2]", () => {
    const late = {
      metadata: { name: "worker-1" },
      status: {
        conditions: [
          { type: "Drained", status: "Unknown", reason: drainReasons.late, message: "", lastTransitionTime: "" },
        ],
      },
    } as unknown as MachineConfigNode;
    const lines = linesOf({
      pools: [
        pool("worker", {
          status: { machineCount: 3, updatedMachineCount: 2, degradedMachineCount: 1, unavailableMachineCount: 1 },
        }),
        pool("new", { spec: { paused: true } }),
      ],
      machineConfigNodes: [late],
    });
    for (const line of [
      'mco_machine_count{pool="worker"} 3',
      'mco_updated_machine_count{pool="worker"} 2',
      'mco_degraded_machine_count{pool="worker"} 1',
      'mco_unavailable_machine_count{pool="worker"} 1',
      'mco_machine_count{pool="new"} 0',
      'mco_pool_paused{pool="new"} 1',
      'mcc_drain_err{node="worker-1"} 1',
    ])
      expect(lines).toContain(line);
  });

  test("count the machines that wait by why, and each machine's phase [metrics-5]", () => {
    const nodes = [
      node("a", ["worker"], { [annotations.desiredConfig]: "rendered-2", [annotations.state]: "Working" }),
      node("b", ["worker"]),
      node("c", ["worker"]),
    ];
    const lines = linesOf({ pools: [pool("worker")], nodes });
    expect(lines).toContain('mco_waiting_machines{pool="worker",reason="BudgetUsed"} 2');
    expect(lines).toContain('mco_node_phase{pool="worker",phase="Updated"} 2');
    expect(linesOf({ pools: [pool("worker", { spec: { paused: true } })], nodes: nodes.slice(1) })).toContain(
      'mco_waiting_machines{pool="worker",reason="Paused"} 2',
    );
  });

  test("name machines of which two sources have said different things for a minute, and not before [metrics-1]", () => {
    const degraded = {
      metadata: { name: "a" },
      spec: {},
      status: {
        conditions: [{ type: "NodeDegraded", status: "True", reason: "x", message: "", lastTransitionTime: "" }],
      },
    } as unknown as MachineConfigNode;
    const facts = factsOf(
      {
        pools: [pool("worker")],
        nodes: [node("a", ["worker"]), node("b", ["worker"])],
        machineConfigNodes: [degraded],
      },
      Date.UTC(2030, 0, 1),
    );
    const mismatches = (ms: number) =>
      metricsText(
        clusterMetrics({
          facts: { ...facts, now: facts.now + ms },
          machineConfigNodes: [],
          machineConfiguration: undefined,
        }),
      )
        .split("\n")
        .filter((line) => line.startsWith("mco_state_mismatch{"));
    expect(mismatches(30_000)).toEqual([]);
    expect(mismatches(61_000)).toEqual(['mco_state_mismatch{node="a"} 1']);
  });

  test("name every machine once, and those only that are there [metrics-3]", () => {
    const states = (nodes: readonly Node[]) =>
      linesOf({ pools: [pool("worker")], nodes }).filter((line) => line.startsWith("mco_state{"));
    expect(states([node("a", ["worker"]), node("b", ["worker"])])).toHaveLength(2);
    expect(states([node("b", ["worker"])])).toEqual([expect.stringContaining('node="b",pool="worker",state="Done"')]);
  });

  test("report a control-plane machine in a custom pool, an overridden OS image, and unchecked boot images [metrics-4]", () => {
    const master = pool("master", {}, labels.masterRole);
    const overridden = {
      metadata: { name: "rendered-2", annotations: { [annotations.osImageURLOverridden]: "true" } },
      spec: {},
    } as unknown as MachineConfig;
    const lines = linesOf(
      {
        pools: [master, pool("worker"), pool("infra")],
        nodes: [node("m", ["master", "infra"]), node("w", ["worker", "infra"])],
        machineConfigs: [overridden],
      },
      { spec: { bootImageSkewEnforcement: { mode: "None" } } },
    );
    expect(lines.filter((line) => line.startsWith("mcc_pool_alert{"))).toEqual(['mcc_pool_alert{node="m"} 1']);
    expect(lines).toContain('os_image_url_override{pool="worker"} 1');
    expect(lines).toContain("mcc_boot_image_skew_enforcement_none 1");
    const plain = linesOf({ pools: [pool("worker")], nodes: [node("w", ["worker"])] });
    expect(plain).toContain('os_image_url_override{pool="worker"} 0');
    expect(plain).toContain("mcc_boot_image_skew_enforcement_none 0");
    expect(plain.filter((line) => line.startsWith("mcc_pool_alert{"))).toEqual([]);
  });

  test("say while every client is given configurations, by the annotation that has it so [metrics-8]", () => {
    const insecureAccess = (access: string | undefined) =>
      linesOf(
        { pools: [pool("worker")] },
        {
          metadata: {
            name: "cluster",
            annotations: access === undefined ? {} : { [annotations.configServerAccess]: access },
          },
        },
      ).filter((line) => line.startsWith("mcc_insecure_access "));
    expect(insecureAccess("insecure")).toEqual(["mcc_insecure_access 1"]);
    for (const access of [undefined, "required", "Insecure"])
      expect(insecureAccess(access)).toEqual(["mcc_insecure_access 0"]);
  });

  test("have exactly their documented labels", () => {
    const facts = factsOf({ pools: [pool("worker")], nodes: [node("a", ["worker"])], machineConfigNodes: [] }, 0);
    for (const { name, labels: known, samples } of clusterMetrics({
      facts,
      machineConfigNodes: [],
      machineConfiguration: undefined,
    }))
      for (const sample of samples) expect(Object.keys(sample.labels), name).toEqual(known);
  });

  test("are written as Prometheus reads them: help and type before the samples, label values escaped", () => {
    expect(
      metricsText([
        {
          name: "a",
          help: "one\nline",
          type: "summary",
          labels: [],
          samples: [
            { suffix: "_count", labels: {}, value: 2 },
            { labels: { x: 'q"\\\n' }, value: 0.5 },
          ],
        },
      ]),
    ).toBe('# HELP a one\\nline\n# TYPE a summary\na_count 2\na{x="q\\"\\\\\\n"} 0.5\n');
  });
});
