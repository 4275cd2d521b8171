import { describeChange, describeConsequence } from "../../core/config/change.ts";
import { maskChange } from "../../core/config/describe-diff.ts";
import { maskText } from "../../core/text/mask-secrets.ts";
import { type ClusterForecast, type PoolForecast, planCluster } from "../../core/preview/plan-cluster.ts";
import { readArguments, usageError } from "../arguments.ts";
import { objectsInCluster, objectsInManifests, overlaid, sourceOptions } from "../cluster-objects.ts";
import { exitCodes } from "../exit-codes.ts";
import { readManifests } from "../manifests.ts";
import { processIo } from "../io.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, {
    ...sourceOptions,
    from: { type: "string", multiple: true },
    offline: { type: "boolean" },
    delete: { type: "string", multiple: true },
    json: { type: "boolean" },
  });
  const files = values.filename ?? [];
  const deleted = values.delete ?? [];
  if (files.length === 0 && deleted.length === 0) throw usageError("name the change with -f or --delete");
  const manifests = readManifests(files);
  const isOffline = values.offline === true || values.from !== undefined;
  const before = isOffline
    ? objectsInManifests(readManifests(values.from ?? []))
    : await objectsInCluster({ kubeconfig: values.kubeconfig, directory: values.dir, component: "plan" });
  const overlay = overlaid(before, manifests, deleted);
  // Without a cluster, machines and the cluster's own values come with the manifests.
  const brought = objectsInManifests(manifests);
  const pools = [
    ...overlay.after.pools,
    ...brought.pools.filter(
      ({ metadata }) => !overlay.after.pools.some((pool) => pool.metadata.name === metadata.name),
    ),
  ];
  const after = isOffline
    ? {
        ...overlay.after,
        pools,
        controllerConfig: brought.controllerConfig ?? before.controllerConfig,
        nodes: before.nodes.length === 0 ? brought.nodes : before.nodes,
      }
    : overlay.after;
  const forecast = planCluster(before, after);
  const ignored = overlay.ignored.filter((kind) => !isOffline || (kind !== "ControllerConfig" && kind !== "Node"));
  const warnings = [...forecast.warnings, ...ignored.map((kind) => `${kind} objects are not part of this plan`)];
  const refused =
    forecast.refusals.length > 0 ||
    forecast.pools.some(
      (pool) => pool.verdict === "refused" || (pool.verdict === "changes" && pool.irreconcilable.length > 0),
    );
  const changes = forecast.pools.some((pool) => pool.verdict === "changes");
  if (values.json === true)
    processIo().out(
      `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Plan", ...forecast, pools: forecast.pools.map(printable), warnings })}\n`,
    );
  else processIo().out(`${describe({ ...forecast, warnings }).join("\n")}\n`);
  return refused ? exitCodes.failed : changes ? exitCodes.change : exitCodes.ok;
}

/** A forecast without secrets. */
const printable = (pool: PoolForecast): PoolForecast =>
  pool.verdict === "changes" ? { ...pool, changes: pool.changes.map(maskChange) } : pool;

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
      return [
        `pool ${pool.pool}: would not render`,
        ...pool.refusals.map(
          ({ reason, path, remedy }) =>
            `  ${path === undefined || reason.includes(path) ? "" : `${path}: `}${reason}${remedy === undefined ? "" : `; ${remedy}`}`,
        ),
      ];
    case "changes": {
      const lines = [
        `pool ${pool.pool}: ${pool.from === "" ? "renders " : `${pool.from} → `}${pool.to}${pool.paused ? "  (paused: machines keep what they have)" : ""}`,
      ];
      for (const change of pool.changes)
        lines.push(`  ${"op" in change ? sign[change.op] : "~"} ${maskText(describeChange(change))}`);
      lines.push("");
      for (const { consequence, why } of pool.because)
        lines.push(`  ${describeConsequence(consequence).padEnd(24)} because ${why}`);
      for (const { field, reason, remedy } of pool.irreconcilable)
        lines.push(`  refused by running machines: ${field}: ${reason}; ${remedy}`);
      // Findings about a changing MachineConfig by itself were printed above.
      for (const warning of pool.warnings)
        if (warning.code !== "Finding")
          lines.push(`  warning: ${warning.code === "Conflict" ? "conflict: " : ""}${warning.reason}`);
      const byFate = new Map<string, string[]>();
      const isRefused = pool.irreconcilable.length > 0;
      for (const node of pool.nodes) {
        const fate = isRefused
          ? "keeps what it has"
          : [node.drains ? "drain" : "", ...node.actions, node.reboots ? "reboot" : ""]
              .filter((word) => word !== "")
              .join(", ") || "nothing but the change on disk";
        byFate.set(fate, [...(byFate.get(fate) ?? []), node.node]);
      }
      for (const [fate, nodes] of byFate) lines.push(`  ${nodes.join(", ")}: ${fate}`);
      if (pool.nodes.length === 0) lines.push("  no machine is in this pool");
      return lines;
    }
  }
}
