import { withTransition } from "../../api/schema/conditions.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import { labels } from "../../api/names.ts";
import { clipText } from "../text/clip-text.ts";
import { imageTrouble } from "./image-trouble.ts";
import { type Facts, clusterMayUpgrade, poolFacts, renderRefusal } from "../pool/pool-queries.ts";
import { type PoolFacts, type PoolProgress, isMereDrift, poolLine, poolProgress } from "../pool/pool-progress.ts";

/** What one sync function of the operator found. */
export type TaskOutcome =
  | { readonly task: string; readonly kind: "done" }
  | { readonly task: string; readonly kind: "progressing"; readonly message: string }
  | {
      readonly task: string;
      readonly kind: "failed";
      readonly message: string;
      /** Of the condition Degraded; without it, the task's name and `Failed`. */
      readonly reason?: "RightsOutdated";
    };

/**
 * Characters of a text about the whole suite (k8s.io/apimachinery pkg/apis/meta/v1 Condition, master): what the API server
 * says of a refused object, and what MachineConfigs are refused for, may be as long as they are.
 */
export const mostCharacters = 32_768;

export interface OperatorFacts {
  readonly version: string;
  /** The version that every component was last seen running, or `undefined` before the first time. */
  readonly reached: string | undefined;
  readonly outcomes: readonly TaskOutcome[];
  readonly cluster: Facts;
  /** The approver of renewals of nodes beside the suite; absent: there is none. */
  readonly otherApprover?: string | undefined;
}

type Conditions = NonNullable<NonNullable<ClusterOperator["status"]>["conditions"]>;
type Condition = Conditions[number];

/** A pool as it was looked at once. */
interface Looked {
  readonly about: PoolFacts;
  readonly progress: PoolProgress;
}

const lookedAt = (cluster: Facts): readonly Looked[] =>
  cluster.members.pools().flatMap(({ metadata }) => {
    const about = poolFacts(cluster, metadata.name);
    return about === undefined ? [] : [{ about, progress: poolProgress(about) }];
  });

/** Pools whose machines go to a target, and how far they are. */
export const poolsUnderWay = (cluster: Facts): readonly { readonly pool: string; readonly line: string }[] =>
  underWayOf(lookedAt(cluster));
const underWayOf = (looked: readonly Looked[]) =>
  looked.flatMap(({ about, progress }) =>
    progress.verdict === "RollingOut" && !isMereDrift(about, progress)
      ? [{ pool: about.pool.metadata.name, line: poolLine(about, progress) }]
      : [],
  );

/**
 * A problem of a standard pool, which upgrades wait for, degrades the operator. A problem of a custom pool stays that
 * pool's own, and blocks nothing else.
 */
function troubleOf({ about, progress }: Looked, cluster: Facts, now: number): readonly string[] {
  const { name, labels: has = {} } = about.pool.metadata;
  if (has[labels.builtInPool] === undefined && has[labels.requiredForUpgrade] === undefined) return [];
  const refused = renderRefusal(about.pool);
  if (refused !== undefined) return [`pool ${name} cannot be rendered: ${refused}`];
  if (progress.failed.length > 0) return [`pool ${name}: ${poolLine(about, progress)}`];
  const images = imageTrouble(about.pool, cluster.members.buildsOf(name), now);
  return images === undefined ? [] : [images];
}

/**
 * The conditions of the ClusterOperator: a pure fold over what the sync functions found and how the pools are. The time
 * of a transition moves only with its status.
 *
 * @param now milliseconds since the epoch.
 */
export function clusterOperatorConditions(facts: OperatorFacts, before: Conditions, now: number): Conditions {
  const failed = facts.outcomes.filter((outcome) => outcome.kind === "failed");
  const progressing = facts.outcomes.filter((outcome) => outcome.kind === "progressing");
  const looked = lookedAt(facts.cluster);
  const trouble = looked.flatMap((each) => troubleOf(each, facts.cluster, now));
  const underWay = underWayOf(looked).map(({ pool, line }) => `${pool} (${line})`);
  const mayUpgrade = clusterMayUpgrade(facts.cluster);
  const upToDate = facts.reached === facts.version;
  const [firstFailed] = failed;

  const wanted: readonly Omit<Condition, "lastTransitionTime">[] = [
    facts.reached === undefined
      ? { type: "Available", status: "False", reason: "BringUp", message: `Cluster is bootstrapping ${facts.version}` }
      : {
          type: "Available",
          status: "True",
          reason: "AsExpected",
          message: `Cluster has deployed [{operator ${facts.reached}}]`,
        },
    !upToDate
      ? {
          type: "Progressing",
          status: "True",
          reason: facts.reached === undefined ? "BringUp" : "Upgrading",
          message: progressing[0]?.message ?? firstFailed?.message ?? `Working towards ${facts.version}`,
        }
      : progressing.length > 0
        ? {
            type: "Progressing",
            status: "True",
            reason: progressing[0]?.task ?? "",
            message: progressing.map(({ message }) => message).join("; "),
          }
        : {
            type: "Progressing",
            status: "False",
            reason: "AsExpected",
            message: `Cluster version is ${facts.version}${underWay.length === 0 ? "" : `; pools under way: ${underWay.join(", ")}`}`,
          },
    firstFailed !== undefined
      ? {
          type: "Degraded",
          status: "True",
          reason: firstFailed.reason ?? `${firstFailed.task}Failed`,
          message: failed.map(({ task, message }) => `${task}: ${message}`).join("; "),
        }
      : trouble.length > 0
        ? { type: "Degraded", status: "True", reason: "DegradedPool", message: trouble.join("; ") }
        : { type: "Degraded", status: "False", reason: "AsExpected", message: "" },
    {
      type: "Upgradeable",
      status: mayUpgrade.value.may === "No" ? "False" : "True",
      reason: mayUpgrade.because.reason,
      message: mayUpgrade.because.message,
    },
    ...(facts.otherApprover === undefined
      ? []
      : [
          {
            type: "OtherApprovers",
            status: "True" as const,
            reason: "NodesMayRenew",
            message: facts.otherApprover,
          },
        ]),
  ];
  return wanted.map(({ message = "", ...condition }) =>
    withTransition(
      conditionOf(before, condition.type),
      { ...condition, message: clipText(message, mostCharacters) },
      now,
    ),
  );
}
