import { timestampOf } from "../../api/schema/object.ts";
import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import { labels } from "../../api/names.ts";
import { type Facts, poolFacts } from "../pool/pool-queries.ts";
import { type TaskOutcome, mostCharacters } from "./cluster-operator-status.ts";
import { clipText } from "../text/clip-text.ts";
import { poolLine, poolProgress } from "../pool/pool-progress.ts";

type Status = NonNullable<ClusterOperator["status"]>;

/**
 * Conditions of a ClusterOperator before the first sync: openshift/machine-config-operator
 * pkg/operator/status.go (main).
 */
export function initialConditions(now: number): NonNullable<Status["conditions"]> {
  const lastTransitionTime = timestampOf(now);
  return [
    ...["Available", "Progressing", "Degraded"].map((type) => ({ type, status: "False" as const, lastTransitionTime })),
    {
      type: "Upgradeable",
      status: "Unknown" as const,
      reason: "NoData",
      message: "nothing is known of the pools yet",
      lastTransitionTime,
    },
  ];
}

/**
 * The versions that a ClusterOperator is at: the release, and the image that the operator runs from. None while nothing
 * was ever reached.
 */
export function versionsOf(
  reached: string | undefined,
  before: Status["versions"],
  current: { readonly version: string; readonly image: string },
): NonNullable<Status["versions"]> | undefined {
  if (reached === undefined) return undefined;
  const image =
    reached === current.version ? current.image : before?.find(({ name }) => name === "operator-image")?.version;
  return [
    { name: "operator", version: reached },
    ...(image === undefined ? [] : [{ name: "operator-image", version: image }]),
  ];
}

/** One line on each pool, and what went wrong last: `status.extension`, the same source. */
export function extensionOf(facts: Facts, outcomes: readonly TaskOutcome[]): Readonly<Record<string, string>> {
  const lines = facts.members.pools().flatMap(({ metadata: { name } }) => {
    const about = poolFacts(facts, name);
    return about === undefined ? [] : [[name, poolLine(about, poolProgress(about))] as const];
  });
  const failed = outcomes.flatMap((outcome) =>
    outcome.kind === "failed" ? [`${outcome.task}: ${outcome.message}`] : [],
  );
  return {
    ...Object.fromEntries(lines.sort(([a], [b]) => (a < b ? -1 : 1))),
    ...(failed.length === 0 ? {} : { lastSyncError: clipText(failed.join("; "), mostCharacters) }),
  };
}

/**
 * Whether the pools that an upgrade waits for have reached the release. The answer is the current one: the function
 * waits for nothing.
 *
 * @param osImageOf the OS image that a rendered configuration asks for, and whether a MachineConfig chose it;
 * `undefined`: there is no such configuration.
 */
export function requiredPools(
  facts: Facts,
  release: { readonly osImage: string | undefined },
  osImageOf: (rendered: string) => { readonly image: string; readonly overridden: boolean } | undefined,
): TaskOutcome {
  const task = "RequiredPools";
  const waits: string[] = [];
  for (const pool of facts.members.pools()) {
    const { name } = pool.metadata;
    if (pool.metadata.labels?.[labels.requiredForUpgrade] === undefined) continue;
    const about = poolFacts(facts, name);
    if (about === undefined) continue;
    const progress = poolProgress(about);
    if (progress.verdict === "Paused")
      return {
        task,
        kind: "failed",
        message: `pool ${name} is required for the upgrade and paused, and updates wait for it: set its spec.paused to false`,
      };
    const line = poolLine(about, progress);
    if (progress.verdict !== "Done") {
      waits.push(`pool ${name}: ${line}`);
      continue;
    }
    const has = osImageOf(pool.spec.configuration?.name ?? "");
    if (has === undefined || (!has.overridden && release.osImage !== undefined && has.image !== release.osImage))
      waits.push(`pool ${name} has not been rendered for the release yet`);
  }
  return waits.length === 0 ? { task, kind: "done" } : { task, kind: "progressing", message: waits.join("; ") };
}
