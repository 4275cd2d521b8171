import { certificatePaths } from "../certificates/machine-certificates.ts";
import { countText } from "../text/count-text.ts";
import { maskText } from "../text/mask-secrets.ts";
import { type ClusterForecast, type PoolForecast, missingServiceText } from "./plan-cluster.ts";
import { andMore } from "../text/list-text.ts";

/** How many warnings users still read below a command. */
export const mostWarnings = 5;
/** Clients truncate longer ones. */
export const warningLimit = 250;

/** A text as a warning: one line, no longer than `warningLimit`, in ASCII, because it travels in an HTTP header. */
export function clipWarning(text: string): string {
  const line = text
    .replaceAll(/\s+/g, " ")
    .trim()
    .replaceAll("…", "...")
    .replaceAll(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return line.length <= warningLimit ? line : `${line.slice(0, warningLimit - 3).trimEnd()}...`;
}

/** The machines of a pool by the consequence for them, the worst first. */
function fates({ nodes, changes }: Changing): string {
  const byFate = new Map<string, number>();
  const worst = [...nodes].toSorted((a, b) => rank[b.disruption] - rank[a.disruption]);
  for (const { actions, drains, reboots } of worst) {
    const fate =
      [
        reboots ? (drains ? "drain and reboot" : "reboot without a drain") : drains ? "drain" : "",
        ...(reboots ? [] : actions),
      ]
        .filter((part) => part !== "")
        .join(", ") ||
      (whyNothingHappens(changes) ?? "only take the change");
    byFate.set(fate, (byFate.get(fate) ?? 0) + 1);
  }
  return [...byFate].map(([fate, number]) => `${countText(number, "machine")}: ${fate}`).join("; ");
}
const rank = { nothing: 0, services: 1, reboot: 2 } as const;

type Changing = Extract<PoolForecast, { readonly verdict: "changes" }>;

/** Whether a change is of a file that the daemon maintains itself, whatever MachineConfigs say. */
export const isOfDaemon = (change: Changing["changes"][number]): boolean =>
  change.kind === "file" && certificatePaths.has(change.path);

/** Why running machines do nothing at all for such changes; `undefined`: they write what changes to their disks. */
export function whyNothingHappens(changes: Changing["changes"]): string | undefined {
  const others = changes.filter((change) => !isOfDaemon(change));
  if (changes.length === 0 || others.some(({ kind }) => kind !== "storage")) return undefined;
  return others.length === 0
    ? "nothing: the machine config daemon writes these files itself"
    : "running machines keep what they have, and new ones follow";
}

function ofPool(pool: Changing): string {
  const machines = pool.nodes.length === 0 ? "no machine is in it" : fates(pool);
  const [why] = pool.because.filter(({ consequence }) => consequence.kind === "reboot" || consequence.kind === "drain");
  const paused = pool.paused ? ", paused: its machines keep their configuration until it is resumed" : "";
  return `pool ${pool.pool} gets ${pool.to}${paused}; ${machines}${why === undefined || pool.nodes.length === 0 ? "" : `, because ${why.why}`}`;
}

/**
 * What a change would do, in at most `mostWarnings` sentences: for the `Warning:` lines that kubectl prints. Pools that
 * would not render come first, then machines that cannot have what their pool gets, then services that they do not have, then pools that change, then
 * conflicts that `changed` brings or meets.
 */
export function forecastSummary(
  forecast: Pick<ClusterForecast, "pools" | "unfitMachines">,
  changed: string | undefined,
): readonly string[] {
  const refused = forecast.pools.flatMap((pool) =>
    pool.verdict === "refused"
      ? [
          `pool ${pool.pool} would not render: ${pool.refusals
            .slice(0, mostWarnings)
            .map(({ reason, remedy }) => (remedy === undefined ? reason : `${reason} (${remedy})`))
            .join("; ")}`,
        ]
      : [],
  );
  const changing = forecast.pools.filter((pool) => pool.verdict === "changes");
  const unreachable = changing.flatMap((pool) =>
    pool.irreconcilable.map(
      ({ field, reason }) => `machines of pool ${pool.pool} would refuse it: ${field}: ${reason}`,
    ),
  );
  const conflicts = changing.flatMap((pool) =>
    pool.warnings.flatMap(({ code, member, over, reason }) =>
      code === "Conflict" && changed !== undefined && (member === changed || over === changed)
        ? [`conflict in pool ${pool.pool}: ${reason}`]
        : [],
    ),
  );
  const all = [
    ...refused,
    ...unreachable,
    ...(forecast.unfitMachines ?? []),
    ...changing.flatMap(({ pool, services }) => services.map((one) => missingServiceText(pool, one))),
    ...changing.filter(({ irreconcilable }) => irreconcilable.length === 0).map(ofPool),
    ...conflicts,
  ].map((text) => clipWarning(maskText(text)));
  if (all.length <= mostWarnings) return all;
  return [...all.slice(0, mostWarnings - 1), `${andMore(all.length - mostWarnings + 1)}; mco plan says everything`];
}
