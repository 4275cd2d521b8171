import { describeChange, describeConsequence } from "../../core/config/change.ts";
import { maskChange } from "../../core/config/describe-diff.ts";
import { isOfDaemon, whyNothingHappens } from "../../core/preview/forecast-summary.ts";
import type { ClusterForecast, NodeForecast, PoolForecast } from "../../core/preview/plan-cluster.ts";
import { settingLines } from "../../core/preview/setting-lines.ts";
import { andMore } from "../../core/text/list-text.ts";
import { maskText } from "../../core/text/mask-secrets.ts";

/** A forecast without secrets. */
export const forecastWithoutSecrets = (pool: PoolForecast): PoolForecast =>
  pool.verdict === "changes" ? { ...pool, changes: pool.changes.map(maskChange) } : pool;

const sign = { create: "+", update: "~", delete: "-" } as const;

/** A forecast as lines of text: what is said of objects, then of each pool. */
export interface DescribedPlan {
  readonly objects: readonly string[];
  readonly pools: readonly { readonly pool: PoolForecast; readonly lines: readonly string[] }[];
}

/** Describes a forecast. */
export function describePlan(forecast: ClusterForecast): DescribedPlan {
  const objects: string[] = [];
  for (const { object, path, reason, remedy } of forecast.refusals) {
    objects.push(`refused: ${object}: ${path}: ${reason}`);
    if (remedy !== undefined) objects.push(`         ${remedy}`);
  }
  for (const warning of forecast.warnings) objects.push(`warning: ${warning}`);
  const alone = new Set(forecast.refusals.map(({ object }) => object));
  return { objects, pools: forecast.pools.map((pool) => ({ pool, lines: describePool(pool, alone) })) };
}

/** How many reasons are told for which a pool would not render; the JSON output has them all. */
const mostRefusals = 100;

/** @param alone objects that are refused by themselves, with all that is wrong with each. */
function describePool(pool: PoolForecast, alone: ReadonlySet<string>): readonly string[] {
  switch (pool.verdict) {
    case "unchanged":
      return [`pool ${pool.pool}: nothing changes (${pool.rendered})`];
    case "refused":
      return [
        `pool ${pool.pool}: would not render`,
        ...new Set(
          pool.refusals
            .slice(0, mostRefusals)
            .map(({ member, involves = [], reason, path, remedy }) =>
              member !== undefined && involves.length < 2 && alone.has(`MachineConfig/${member}`)
                ? `  ${member} is refused, as said above`
                : `  ${path === undefined || reason.includes(path) ? "" : `${path}: `}${reason}${remedy === undefined ? "" : `; ${remedy}`}`,
            ),
        ),
        ...(pool.refusals.length > mostRefusals ? [`  ${andMore(pool.refusals.length - mostRefusals)}`] : []),
      ];
    case "changes":
      return describeChanges(pool);
  }
}

type ChangingPool = Extract<PoolForecast, { readonly verdict: "changes" }>;

function describeChanges(pool: ChangingPool): readonly string[] {
  const paused = pool.paused ? "  (paused: machines keep their configuration)" : "";
  return [
    `pool ${pool.pool}: ${pool.from === "" ? "renders " : `${pool.from} → `}${pool.to}${paused}`,
    ...pool.changes.flatMap((change) => [
      `  ${"op" in change ? sign[change.op] : "~"} ${maskText(describeChange(change))}${isOfDaemon(change) ? "  (no effect: the daemon writes it itself)" : ""}`,
      ...settingLines(change).map((line) => `      ${line}`),
    ]),
    "",
    // Machines that refuse a change do none of what it would ask for.
    ...(pool.irreconcilable.length > 0 ? [] : pool.because).map(
      ({ consequence, why }) => `  ${describeConsequence(consequence).padEnd(24)} because ${why}`,
    ),
    ...pool.irreconcilable.map(
      ({ field, reason, remedy }) => `  refused by running machines: ${field}: ${reason}; ${remedy}`,
    ),
    // Findings about a changing MachineConfig by itself were printed above.
    ...pool.warnings
      .filter(({ code }) => code !== "Finding")
      .map(({ code, reason }) => `  warning: ${code === "Conflict" ? "conflict: " : ""}${reason}`),
    ...machineLines(pool),
  ];
}

/** The fates of machines as lines, with the machines of one fate in one line. */
function machineLines(pool: ChangingPool): readonly string[] {
  if (pool.nodes.length === 0) return ["  no machine is in this pool"];
  return fatesOf(pool).map(({ fate, nodes }) => `  ${nodes.map(({ node }) => node).join(", ")}: ${fate}`);
}

/** The fates of the machines of a pool, each with its machines. */
export function fatesOf({
  nodes,
  irreconcilable,
  changes,
}: ChangingPool): readonly { readonly fate: string; readonly nodes: readonly NodeForecast[] }[] {
  const byFate = Map.groupBy(nodes, (node) => (irreconcilable.length > 0 ? "stays as it is" : fateOf(node, changes)));
  return [...byFate].map(([fate, those]) => ({ fate, nodes: those }));
}

function fateOf({ drains, actions, reboots }: NodeForecast, changes: ChangingPool["changes"]): string {
  const words = [...(drains ? ["drain"] : []), ...actions, ...(reboots ? ["reboot"] : [])];
  if (words.length > 0) return words.join(", ");
  return whyNothingHappens(changes) ?? "nothing but the change on disk";
}
