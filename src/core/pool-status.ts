import type { MachineConfigPool } from "../api/machine-config-pool.ts";
import { poolConditions as types } from "../api/names.ts";
import type { Phase } from "./cluster-status.ts";
import { type MemberFacts, isDegraded, isDone, isFailing, isInOurHands, isJoining, isOutOfService } from "./member-facts.ts";
import type { NodeSelection, Skip } from "./select-nodes.ts";

export type PoolStatusFields = NonNullable<MachineConfigPool["status"]>;
type PoolCondition = NonNullable<PoolStatusFields["conditions"]>[number];

export interface PoolStatusFacts {
  readonly pool: MachineConfigPool;
  readonly members: readonly MemberFacts[];
  /** Where each member is in its update, and what it says about that. */
  readonly phases: ReadonlyMap<string, { readonly phase: Phase; readonly message: string }>;
  readonly selection: NodeSelection;
  /** Why the target cannot be applied to running machines; empty when it can. */
  readonly irreconcilable: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A machine that applied nothing yet holds its pool back only after this time. */
const joiningGraceMs = 30 * 60_000;
const shownNodes = 5;
const textLimit = 200;

const clip = (text: string) => (text.length <= textLimit ? text : `${text.slice(0, textLimit - 1)}…`);

/**
 * The status of a pool from facts about its members. A machine that somebody else cordoned or that has just joined does
 * not make a pool outdated; it is named in the message. Conditions of other writers are kept as they are.
 */
export function poolStatus(facts: PoolStatusFacts): PoolStatusFields {
  const { pool, members, now } = facts;
  const target = pool.spec.configuration?.name ?? "";
  const before = pool.status ?? {};
  const updated = members.filter((member) => target !== "" && isDone(member) && member.desired === target);
  const ready = updated.filter((member) => member.kubeletReady && member.cordoned !== "byUs");
  const degraded = members.filter(isDegraded);
  const unavailable = members.filter((member) => isOutOfService(member) && !isFailing(member));
  const awaited = members.filter((member) => !(isJoining(member) && now - Date.parse(member.createdAt) < joiningGraceMs));
  // A pool of which no machine has anything yet is at its beginning, not at its end.
  const begun = members.length === 0 || updated.length > 0;
  const allUpdated = target !== "" && begun && awaited.every((member) => updated.includes(member) && !isInOurHands(member));

  const conditions = new Map((before.conditions ?? []).map((condition) => [condition.type ?? "", condition]));
  const stamp = `${new Date(now).toISOString().slice(0, 19)}Z`;
  const set = (type: string, is: boolean, reason: string, message: string) => {
    const status = is ? "True" : "False";
    const old = conditions.get(type);
    const lastTransitionTime = old?.status === status ? (old.lastTransitionTime ?? stamp) : stamp;
    conditions.set(type, { type, status, reason, message, lastTransitionTime });
  };
  const rollout = rolloutOf(facts, { target, updated: updated.length, allUpdated });
  set(types.updated, rollout.updated, rollout.updated ? "AllNodesUpdated" : rollout.reason, rollout.updated ? rollout.message : "");
  set(types.updating, rollout.updating, rollout.reason, rollout.updated ? "" : rollout.message);
  // The reason and the wording of single nodes are what consoles and scripts know from the reference.
  set(types.nodeDegraded, degraded.length > 0, degraded.length > 0 ? `${degraded.length} nodes are reporting degraded status on sync` : "AsExpected", degraded.length > 0 ? degradedMessage(degraded, facts) : "");
  if (!conditions.has(types.renderDegraded)) set(types.renderDegraded, false, "AsExpected", "");
  const parts: readonly PoolCondition[] = [...conditions.values()].filter(({ type, status }) => type !== types.degraded && type?.endsWith("Degraded") === true && status === "True");
  set(types.degraded, parts.length > 0, parts.length > 0 ? parts.map(({ type }) => type).join(",") : "AsExpected", parts.map(({ message }) => message ?? "").filter((message) => message !== "").join("; "));

  return {
    ...before,
    observedGeneration: pool.metadata.generation ?? 1,
    machineCount: members.length,
    updatedMachineCount: updated.length,
    readyMachineCount: ready.length,
    unavailableMachineCount: unavailable.length,
    degradedMachineCount: degraded.length,
    conditions: [...conditions.values()],
    ...(allUpdated && pool.spec.configuration !== undefined ? { configuration: pool.spec.configuration } : {}),
  };
}

interface Rollout {
  readonly updated: boolean;
  readonly updating: boolean;
  readonly reason: string;
  readonly message: string;
}

function rolloutOf({ pool, members, phases, selection, irreconcilable }: PoolStatusFacts, { target, updated, allUpdated }: { readonly target: string; readonly updated: number; readonly allUpdated: boolean }): Rollout {
  if (target === "") return { updated: false, updating: false, reason: "NotRendered", message: "no configuration has been rendered for the pool yet" };
  const asides = members.flatMap((member) => {
    if (member.cordoned === "byOthers") return [`${member.name} was cordoned by somebody else`];
    if (isJoining(member)) return [`${member.name} is joining`];
    return [];
  });
  const also = asides.length === 0 ? "" : `; ${listed(asides)}`;
  if (allUpdated) return { updated: true, updating: false, reason: "NothingToDo", message: `All nodes are updated with MachineConfig ${target}${also}` };
  const now = members.filter(isInOurHands).map((member) => {
    const at = phases.get(member.name);
    return `${member.name} ${at?.phase ?? "Unknown"}${at === undefined || at.message === "" ? "" : ` (${clip(at.message)})`}`;
  });
  if (pool.spec.paused === true) {
    const finishing = now.length === 0 ? "" : `; finishing: ${listed(now)}`;
    return { updated: false, updating: false, reason: "Paused", message: `Pool is paused; will not update to MachineConfig ${target}${finishing}` };
  }
  const waiting = grouped(selection.skipped);
  const stopped = now.length === 0 && selection.chosen.length === 0 && selection.skipped.length > 0 && selection.skipped.every(({ reason }) => reason === "TargetQuarantined");
  const message = [
    `${updated} of ${members.length} updated to MachineConfig ${target}`,
    ...(now.length === 0 ? [] : [`now: ${listed(now)}`]),
    ...(waiting.length === 0 ? [] : [`waiting: ${waiting.join(", ")}`]),
    ...(irreconcilable.length === 0 ? [] : [`cannot be applied to running machines: ${listed(irreconcilable.map(clip))}`]),
    ...(asides.length === 0 ? [] : [listed(asides)]),
  ].join("; ");
  if (stopped) return { updated: false, updating: false, reason: "RolloutBlocked", message };
  const reason = selection.skipped.some((skip) => skip.reason === "BudgetUsed") ? "MaxUnavailableReached" : "RollingOut";
  return { updated: false, updating: true, reason, message };
}

function listed(items: readonly string[]): string {
  return items.length <= shownNodes ? items.join(", ") : `${items.slice(0, shownNodes).join(", ")} and ${items.length - shownNodes} more`;
}

/** Nodes that wait for the same thing are named together. */
function grouped(skipped: readonly Skip[]): readonly string[] {
  const groups = new Map<string, string[]>();
  for (const { node, reason, message } of skipped) {
    const why = `${reason}: ${message}`;
    groups.set(why, [...(groups.get(why) ?? []), node]);
  }
  return [...groups].map(([why, nodes]) => `${listed(nodes)} (${why})`);
}

function degradedMessage(degraded: readonly MemberFacts[], { phases }: PoolStatusFacts): string {
  const shown = degraded.slice(0, shownNodes).map((member) => {
    const said = phases.get(member.name)?.message ?? "";
    return `Node ${member.name} is reporting: ${JSON.stringify(said === "" ? member.reason : said)}`;
  });
  return `${shown.join(", ")}${degraded.length > shownNodes ? ` and ${degraded.length - shownNodes} more` : ""}`;
}
