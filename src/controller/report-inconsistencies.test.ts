import { expect, test } from "vitest";
import type { Node } from "../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import type { ReportInput } from "../api/books/reports.ts";
import { annotations, machineConfigNodeConditions } from "../api/names.ts";
import { ClusterMembers } from "../core/pool/cluster-members.ts";
import type { Context } from "../kube/controller.ts";
import { silentLogger } from "../ports/logger.ts";
import { ReportMemory, reportInconsistencies } from "./report-pool.ts";

const poolOf = (name: string) =>
  ({
    metadata: { name },
    spec: {
      nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } },
      configuration: { name: `rendered-${name}` },
    },
  }) as unknown as MachineConfigPool;
const nodeOf = (name: string, ...pools: readonly string[]) =>
  ({
    metadata: {
      name,
      labels: Object.fromEntries(pools.map((pool) => [`node-role.kubernetes.io/${pool}`, ""])),
      annotations: {
        [annotations.currentConfig]: "rendered-infra",
        [annotations.desiredConfig]: "rendered-infra",
        [annotations.state]: "Done",
      },
    },
  }) as unknown as Node;
const updating = (name: string) =>
  ({
    metadata: { name },
    spec: { node: { name }, pool: { name: "infra" }, configVersion: { desired: "rendered-infra" } },
    status: {
      configVersion: { current: "old", desired: "rendered-infra" },
      conditions: [{ type: machineConfigNodeConditions.updated, status: "False", reason: "", message: "" }],
    },
  }) as unknown as MachineConfigNode;

function reporting() {
  const said: ReportInput[] = [];
  const context = { report: (input: ReportInput) => said.push(input), log: silentLogger } as unknown as Context;
  return { said, context, memory: new ReportMemory() };
}

test("a machine's contradiction is in the book of its own pool alone, whichever pool is looked at first [report-pool-1]", () => {
  const pools = [poolOf("infra"), poolOf("master")];
  const cluster = ClusterMembers.of({ nodes: [nodeOf("i0", "infra")], pools, machineConfigNodes: [updating("i0")] }, 0);
  const { said, context, memory } = reporting();
  const [infra, master] = pools;
  for (const pool of [master, infra, master, infra])
    if (pool !== undefined) reportInconsistencies(pool, cluster, 120_000, memory, context);
  expect(said).toMatchObject([{ book: "pool/infra", run: "rendered-infra", reason: "StateMismatch" }]);
});

test("a node that is selected by a second pool again and again is told of as often as what machines say [report-pool-2]", () => {
  const pools = ["infra", "gpu"].map(poolOf);
  const cluster = ClusterMembers.of({ nodes: [], pools, machineConfigNodes: [] }, 0);
  const { said, context, memory } = reporting();
  const [infra] = pools;
  for (let turn = 0; turn < 40; turn += 1) {
    cluster.putNode("x", turn % 2 === 0 ? nodeOf("x", "infra", "gpu") : nodeOf("x", "infra"), turn);
    if (infra !== undefined) reportInconsistencies(infra, cluster, turn, memory, context);
  }
  expect(said).toHaveLength(5);
  expect(said[0]).toMatchObject({ notice: "SeveralPools" });
});
