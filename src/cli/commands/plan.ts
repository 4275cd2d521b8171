import { ControllerConfig, type KubeObject, MachineConfig, MachineConfigPool, MachineConfiguration, kubernetes } from "../../api/index.ts";
import { objects } from "../../api/names.ts";
import { describeChange, describeConsequence } from "../../core/change.ts";
import { type ClusterForecast, type ClusterObjects, type PoolForecast, planCluster } from "../../core/plan-cluster.ts";
import { readArguments, usageError } from "../arguments.ts";
import { connect } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { readManifests } from "../manifests.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, {
    filename: { type: "string", short: "f", multiple: true },
    delete: { type: "string", multiple: true },
    json: { type: "boolean" },
    dir: { type: "string" },
    kubeconfig: { type: "string" },
  });
  const files = values.filename ?? [];
  const deleted = values.delete ?? [];
  if (files.length === 0 && deleted.length === 0) throw usageError("name the change with -f or --delete");
  const manifests = await readManifests(files);
  const { kube, close } = await connect({ kubeconfig: values.kubeconfig, directory: values.dir, component: "plan" });
  try {
    const [pools, machineConfigs, nodes, machineConfiguration, controllerConfig] = await Promise.all([
      kube.list(MachineConfigPool),
      kube.list(MachineConfig),
      kube.list(kubernetes.Node),
      kube.get(MachineConfiguration, { name: objects.machineConfiguration }),
      kube.get(ControllerConfig, { name: objects.controllerConfig }),
    ]);
    const before: ClusterObjects = { pools: pools.items, machineConfigs: machineConfigs.items, nodes: nodes.items, machineConfiguration, controllerConfig };
    const { after, ignored } = overlaid(before, manifests, deleted);
    const forecast = planCluster(before, after);
    const warnings = [...forecast.warnings, ...ignored.map((kind) => `${kind} objects are not part of this plan`)];
    const refused = forecast.refusals.length > 0 || forecast.pools.some((pool) => pool.verdict === "refused" || (pool.verdict === "changes" && pool.irreconcilable.length > 0));
    const changes = forecast.pools.some((pool) => pool.verdict === "changes");
    if (values.json === true) process.stdout.write(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Plan", ...forecast, warnings })}\n`);
    else process.stdout.write(`${describe({ ...forecast, warnings }).join("\n")}\n`);
    return refused ? exitCodes.failed : changes ? exitCodes.change : exitCodes.ok;
  } finally {
    close();
  }
}

function overlaid(before: ClusterObjects, manifests: readonly KubeObject[], deleted: readonly string[]): { after: ClusterObjects; ignored: readonly string[] } {
  const named = <T extends KubeObject>(list: readonly T[], kind: string): readonly T[] => {
    const changed = new Map(manifests.filter((manifest) => manifest.kind === kind).map((manifest) => [manifest.metadata.name, manifest as T]));
    // The server keeps what a manifest does not say of metadata, and fills in what only it knows.
    const merged = list.map((object) => {
      const change = changed.get(object.metadata.name);
      changed.delete(object.metadata.name);
      return change === undefined ? object : { ...change, metadata: { ...object.metadata, ...change.metadata, labels: { ...object.metadata.labels, ...change.metadata.labels } } };
    });
    return [...merged, ...changed.values()];
  };
  const machineConfigs = named(before.machineConfigs, "MachineConfig").filter((config) => !deleted.includes(config.metadata.name));
  for (const name of deleted) if (!before.machineConfigs.some((config) => config.metadata.name === name)) throw usageError(`there is no MachineConfig "${name}" to delete`);
  const [machineConfiguration] = named(before.machineConfiguration === undefined ? [] : [before.machineConfiguration], "MachineConfiguration");
  const planned = ["MachineConfig", "MachineConfigPool", "MachineConfiguration"];
  return {
    after: { ...before, pools: named(before.pools, "MachineConfigPool"), machineConfigs, machineConfiguration },
    ignored: [...new Set(manifests.map(({ kind }) => kind).filter((kind) => !planned.includes(kind)))],
  };
}

const sign = { create: "+", update: "~", delete: "-" } as const;

function describe(forecast: ClusterForecast): readonly string[] {
  const lines: string[] = [];
  for (const { object, path, reason, remedy } of forecast.refusals) {
    lines.push(`refused: ${object}: ${path}: ${reason}`);
    if (remedy !== undefined) lines.push(`         ${remedy}`);
  }
  for (const warning of forecast.warnings) lines.push(`warning: ${warning}`);
  for (const pool of forecast.pools) lines.push(...(lines.length === 0 ? [] : [""]), ...describePool(pool));
  return lines;
}

function describePool(pool: PoolForecast): readonly string[] {
  switch (pool.verdict) {
    case "unchanged":
      return [`pool ${pool.pool}: nothing changes (${pool.rendered})`];
    case "refused":
      return [`pool ${pool.pool}: would not render`, ...pool.refusals.map(({ reason, member, path, remedy }) => `  ${[member, path].filter((part) => part !== undefined).join(" ")}: ${reason}${remedy === undefined ? "" : `; ${remedy}`}`)];
    case "changes": {
      const lines = [`pool ${pool.pool}: ${pool.from === "" ? "renders" : `${pool.from} → `}${pool.to}${pool.paused ? "  (paused: machines keep what they have)" : ""}`];
      for (const change of pool.changes) lines.push(`  ${"op" in change ? sign[change.op] : "~"} ${describeChange(change)}`);
      lines.push("");
      for (const { consequence, why } of pool.because) lines.push(`  ${describeConsequence(consequence).padEnd(24)} because ${why}`);
      for (const { field, reason, remedy } of pool.irreconcilable) lines.push(`  refused by running machines: ${field}: ${reason}; ${remedy}`);
      for (const warning of pool.warnings) lines.push(`  warning: ${warning.member === undefined ? "" : `${warning.member}: `}${warning.reason}`);
      const byFate = new Map<string, string[]>();
      for (const node of pool.nodes) {
        const fate = [node.drains ? "drain" : "", ...node.actions, node.reboots ? "reboot" : ""].filter((word) => word !== "").join(", ") || "nothing but the change on disk";
        byFate.set(fate, [...(byFate.get(fate) ?? []), node.node]);
      }
      for (const [fate, nodes] of byFate) lines.push(`  ${nodes.join(", ")}: ${fate}`);
      if (pool.nodes.length === 0) lines.push("  no machine is in this pool");
      return lines;
    }
  }
}
