import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { poolConditions as types } from "../../api/names.ts";
import { setCondition } from "../../api/schema/conditions.ts";
import { conditionOf } from "../../api/schema/object.ts";
import {
  type Progress,
  type ProgressCondition,
  progressTypes,
  withProgress,
} from "../../api/schema/progress-conditions.ts";
import { shortImage } from "../config/image-pair.ts";
import { type Mover, type PoolFacts, type PoolProgress, poolProgress } from "./pool-progress.ts";
import { type WaitReason, exclusionRemedy } from "./rollout-holds.ts";
import { clipText } from "../text/clip-text.ts";
import { listText } from "../text/list-text.ts";

export type PoolStatusFields = NonNullable<MachineConfigPool["status"]>;
type PoolCondition = NonNullable<PoolStatusFields["conditions"]>[number];

const shownNodes = 5;
const textLimit = 200;

const clip = (text: string) => clipText(text, textLimit);
/** Of one condition: all of them are written together, and what machines say is in several. */
const messageLimit = 32_768;

/** The fields of a pool that determine its status: includes conditions of other writers, but not its own. */
export function poolStatusInputs(pool: MachineConfigPool): readonly unknown[] {
  const { metadata, spec, status } = pool;
  const own = new Set<string>([
    types.updated,
    types.updating,
    types.nodeDegraded,
    types.degraded,
    ...Object.values(progressTypes),
  ]);
  return [
    metadata.generation,
    metadata.annotations,
    // Pools opt in to images by label.
    metadata.labels,
    metadata.deletionTimestamp,
    spec.configuration?.name,
    (status?.conditions ?? []).filter(({ type }) => !own.has(type ?? "")),
  ];
}

/** Whether a pool that stood still, or had another target, now moves to a target. */
export function startsRollout(before: PoolStatusFields | undefined, after: PoolStatusFields): boolean {
  const updating = (status: PoolStatusFields | undefined) =>
    conditionOf(status?.conditions as { type: string; status?: string }[] | undefined, types.updating)?.status ===
    "True";
  return updating(after) && !updating(before);
}

/**
 * The status of a pool, computed from facts about its members. A machine that was cordoned by another party, or that
 * has just joined, does not make a pool outdated; the message names it. Conditions of other writers are preserved.
 */
export function poolStatus(facts: PoolFacts): PoolStatusFields {
  const { pool, members, now } = facts;
  const before = pool.status ?? {};
  const progress = poolProgress(facts);
  const { failed } = progress;
  let conditions: readonly PoolCondition[] = before.conditions ?? [];
  const set = (type: string, is: boolean, reason: string, message: string) => {
    const text = clipText(message, messageLimit);
    conditions = setCondition(conditions, { type, status: is ? "True" : "False", reason, message: text }, now);
  };
  const rendering = conditionOf(
    before.conditions as { type: string; status?: string; reason?: string; message?: string }[] | undefined,
    types.renderDegraded,
  );
  const rollout = rolloutOf(progress, rendering);
  set(
    types.updated,
    rollout.updated,
    rollout.updated ? "AllNodesUpdated" : rollout.reason,
    rollout.updated ? rollout.message : "",
  );
  set(types.updating, rollout.updating, rollout.reason, rollout.updated ? "" : rollout.message);
  // Reason and wording for single nodes match the reference, because consoles and scripts know them.
  set(
    types.nodeDegraded,
    failed.length > 0,
    failed.length > 0 ? `${failed.length} nodes are reporting degraded status on sync` : "AsExpected",
    failed.length > 0 ? degradedMessage(failed) : "",
  );
  if (rendering === undefined) set(types.renderDegraded, false, "AsExpected", "");
  conditions = withSums(conditions, now);

  const { osImageStream: _, ...kept } = before;
  const runs = progress.verdict === "Done" && failed.length === 0 ? facts.stream : undefined;
  return {
    ...kept,
    ...(runs === undefined ? {} : { osImageStream: { name: runs } }),
    observedGeneration: pool.metadata.generation ?? 1,
    machineCount: members.size,
    updatedMachineCount: members.updated,
    readyMachineCount: members.ready,
    unavailableMachineCount: members.unavailable,
    degradedMachineCount: failed.length,
    conditions: [...conditions],
    ...(facts.certificates === undefined || (facts.certificates.length === 0 && before.certExpirys === undefined)
      ? {}
      : { certExpirys: facts.certificates.map((each) => ({ ...each })) }),
    ...(progress.verdict === "Done" && pool.spec.configuration !== undefined
      ? { configuration: pool.spec.configuration }
      : {}),
  };
}

/** The condition that sums up which parts of a pool are degraded. */
function overallDegraded(conditions: readonly PoolCondition[]): ProgressCondition {
  const parts = conditions.filter(
    ({ type, status }) => type !== types.degraded && type?.endsWith("Degraded") === true && status === "True",
  );
  const message = parts
    .map((part) => part.message ?? "")
    .filter((text) => text !== "")
    .join("; ");
  return {
    type: types.degraded,
    status: parts.length > 0 ? "True" : "False",
    reason: parts.length > 0 ? parts.map(({ type }) => type).join(",") : "AsExpected",
    message: clipText(message, messageLimit),
  };
}

/** Of a condition that repeats another one. */
const repeatedLimit = 1024;

/** How far a pool is, as its other conditions say. */
function progressOf(conditions: readonly PoolCondition[]): Progress {
  const of = (type: string) => conditions.find((condition) => condition.type === type);
  const as = (verdict: "reconciling" | "stalled", { reason, message }: PoolCondition = {}): Progress => ({
    verdict,
    reason: reason ?? "",
    message: clipText(message ?? "", repeatedLimit),
  });
  const [updated, updating, degraded] = [of(types.updated), of(types.updating), of(types.degraded)];
  if (degraded?.status === "True") return as("stalled", degraded);
  if (updated?.status === "True") return { verdict: "current" };
  const isStopped = updating?.status === "False" && stopReasons.has(updating.reason ?? "");
  return as(isStopped ? "stalled" : "reconciling", updating);
}

/** The conditions of a pool with those that follow from others: its degraded parts, and how far it is. */
function withSums<Condition extends PoolCondition>(
  conditions: readonly Condition[],
  now: number,
): readonly (Condition | ProgressCondition)[] {
  const summed = setCondition<Condition | ProgressCondition>(conditions, overallDegraded(conditions), now);
  return withProgress(summed, progressOf(summed), now);
}

/**
 * The conditions of a pool with up-to-date sums. A controller that changes one part writes them at once, so that nobody sees
 * a degraded part of a pool that is well. A pool without sums was never judged, and gets none.
 *
 * @param now milliseconds since the epoch.
 */
export function withOverallDegraded<Condition extends PoolCondition>(
  conditions: readonly Condition[],
  now: number,
): readonly (Condition | ProgressCondition)[] {
  const isJudged = conditions.some(({ type }) => type === types.degraded);
  return isJudged ? withSums(conditions, now) : conditions;
}

/** Reasons of a stalled roll-out without a quarantine. */
const stops = ["BuildFailed", "BuildInterrupted", "CanaryFailed"] as const satisfies readonly WaitReason[];
/** Reasons of `Updating` for a roll-out that does not go on by itself. */
const stopReasons: ReadonlySet<string> = new Set([...stops, "MachineExcluded", "RolloutBlocked"]);

interface Rollout {
  readonly updated: boolean;
  readonly updating: boolean;
  readonly reason: string;
  readonly message: string;
}

type Rendering = { readonly status?: string; readonly reason?: string; readonly message?: string } | undefined;

function rolloutOf(progress: PoolProgress, rendering: Rendering): Rollout {
  const { target, total, done } = progress;
  const also = asidesOf(progress, rendering);
  switch (progress.verdict) {
    case "NotRendered":
      return {
        updated: false,
        updating: false,
        reason: "NotRendered",
        message: `no configuration has been rendered for the pool yet${rendererWaits(rendering)}`,
      };
    case "Done":
      return {
        updated: true,
        updating: false,
        reason: "NothingToDo",
        message: `${total === 0 ? `The pool has no nodes; new ones get MachineConfig ${target}` : `All nodes are updated with MachineConfig ${target}${progress.image === "" ? "" : ` in image ${shortImage(progress.image)}`}`}${also}`,
      };
    case "Paused": {
      const now = underWay(progress);
      const finishing = now.length === 0 ? "" : `; finishing: ${listed(now)}`;
      return {
        updated: false,
        updating: false,
        reason: "Paused",
        message: `Pool is paused; will not update to MachineConfig ${target} (${done} of ${total} have it)${finishing}${progress.awaits === "" ? "" : `; ${progress.awaits}`}${also}`,
      };
    }
    case "Blocked":
    case "RollingOut":
      return { updated: false, ...courseOf(progress), message: `${rolloutMessage(progress)}${also}` };
  }
}

/** A False condition carries what the renderer waits for. */
const rendererWaits = (rendering: Rendering) =>
  rendering?.status !== "True" && (rendering?.message ?? "") !== ""
    ? `; rendering waits: ${rendering?.message ?? ""}`
    : "";

/** What else there is to say of a pool, however far its roll-out is. */
function asidesOf(progress: PoolProgress, rendering: Rendering): string {
  const asides = [
    ...progress.lost.map(
      ({ node, since, says }) => `${node} is out of reach${since === "" ? "" : ` since ${since}`} (${clip(says)})`,
    ),
    ...progress.silent.map(({ node, since }) => `the daemon of ${node} is silent since ${since}`),
    ...progress.excluded.map(
      (node) => `${node} alone is excluded from ${progress.target}, because it went back from it; ${exclusionRemedy}`,
    ),
    ...progress.cordonedByOthers.map((node) => `${node} was cordoned outside the suite`),
    ...progress.joining.map((node) => `${node} is joining`),
    ...[...progress.ambiguous].map(
      ([node, pools]) => `${node} is selected by ${pools.join(" and ")} and so belongs to none of them`,
    ),
  ];
  const isPausedToo =
    progress.paused && progress.verdict === "Done"
      ? "; the pool is paused: it will not follow a new configuration"
      : "";
  return `${isPausedToo}${asides.length === 0 ? "" : `; ${listed(asides)}`}${rendererWaits(rendering)}`;
}

/** Machines in the middle of their update, sorted. */
const underWay = ({ working, blocked }: PoolProgress): readonly string[] =>
  [...working, ...blocked].sort((a, b) => (a.node < b.node ? -1 : 1)).map(describeMover);

function rolloutMessage(progress: PoolProgress): string {
  const { target, total, done, waiting, irreconcilable } = progress;
  const now = underWay(progress);
  return [
    `${done} of ${total} updated to MachineConfig ${target}${progress.reverting ? ", reverting to stock" : ""}`,
    ...(now.length === 0 ? [] : [`now: ${listed(now)}`]),
    ...(waiting.length === 0
      ? []
      : [
          `waiting: ${waiting.map(({ reason, message: why, count, first }) => `${named(first, count)} (${reason}: ${why})`).join(", ")}`,
        ]),
    ...(irreconcilable.length === 0
      ? []
      : [`cannot be applied to running machines: ${listed(irreconcilable.map(clip))}`]),
  ].join("; ");
}

/** Whether an unfinished roll-out advances, and the reason of its condition. */
function courseOf({ verdict, waiting }: PoolProgress): Pick<Rollout, "updating" | "reason"> {
  const has = (wait: WaitReason) => waiting.some(({ reason }) => reason === wait);
  if (verdict === "Blocked")
    return {
      updating: false,
      reason:
        stops.find(has) ?? (has("MachineExcluded") && !has("TargetQuarantined") ? "MachineExcluded" : "RolloutBlocked"),
    };
  if (has("WaitingForBuild")) return { updating: true, reason: "WaitingForBuild" };
  return { updating: true, reason: has("BudgetUsed") ? "MaxUnavailableReached" : "RollingOut" };
}

const describeMover = ({ node, phase, since, says }: Mover) =>
  `${node} ${phase}${since === "" ? "" : ` since ${since}`}${says === "" ? "" : ` (${clip(says)})`}`;

const named = (first: readonly string[], count: number) => listText(first, shownNodes, count);
const listed = (items: readonly string[]) => named(items, items.length);

function degradedMessage(failed: readonly Mover[]): string {
  return listed(failed.map(({ node, says }) => `Node ${node} is reporting: ${JSON.stringify(says)}`));
}
