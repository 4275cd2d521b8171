import { type MemberFacts, isJoining } from "./member-facts.ts";
import type { PoolMembers } from "./pool-members.ts";
import {
  type Held,
  type MachineClass,
  type RolloutPolicy,
  type RolloutPool,
  Turn,
  type WaitReason,
  holdOf,
  isPoolHeld,
} from "./rollout-holds.ts";

export const plainPolicy: RolloutPolicy = { oneZoneAtATime: false, controlPlane: [], etcd: [], operatorNode: "" };

/** Machines that should get the target but wait, all for the same reason. */
export interface Wait {
  readonly reason: WaitReason;
  /** A sentence without a final full stop. */
  readonly message: string;
  /** The remedy. */
  readonly remedy: string;
  readonly count: number;
  /** The first of them, in update order. */
  readonly first: readonly string[];
}

export interface Choice {
  readonly node: string;
  /** `healthy`: uses one place of the budget. The others were already out of service and cost nothing. */
  readonly was: "healthy" | "outOfService" | "joining";
}

export interface NodeSelection {
  /** In update order. */
  readonly chosen: readonly Choice[];
  /** All other members that should get the target, grouped by the reason to wait. */
  readonly waits: readonly Wait[];
  readonly budget: { readonly max: number; readonly unavailable: number; readonly free: number };
  /** Control-plane machines that were moved to the end because the operator runs there. */
  readonly deferred: readonly string[];
}

/**
 * A number or a percentage of `maxUnavailable`; `undefined`: it is neither, and counts as one machine. A number in quotes
 * is neither, as it is for Kubernetes: k8s.io/apimachinery pkg/util/intstr/intstr.go (master).
 */
export function parseBudget(
  maxUnavailable: number | string,
): { readonly count: number } | { readonly percent: number } | undefined {
  if (typeof maxUnavailable === "number")
    return Number.isSafeInteger(maxUnavailable) && maxUnavailable >= 0 ? { count: maxUnavailable } : undefined;
  const digits = /^(\d{1,9})%$/.exec(maxUnavailable)?.[1];
  return digits === undefined ? undefined : { percent: Number(digits) };
}

/**
 * How many machines of a pool may be unavailable at once: 1 by default, never 0; percentages are rounded down. Source:
 * openshift/machine-config-operator pkg/controller/node/node_controller.go (main).
 */
export function budgetOf(maxUnavailable: number | string | undefined, members: number): number {
  const budget = parseBudget(maxUnavailable ?? 1) ?? { count: 1 };
  return Math.max(1, "count" in budget ? budget.count : Math.floor((budget.percent * members) / 100));
}

/** Default number of machines that a wait names. */
const namedInWait = 5;

/**
 * Which members of a pool get its target now, and why the others wait.
 *
 * A machine that is already out of service costs nothing and may be repaired at any time. A healthy one is selected
 * only while fewer machines than the budget are unavailable, for any cause. In the control plane, only one machine
 * updates at a time, whatever the budget. A healthy one is not selected while another is out of service, or while an
 * etcd member elsewhere is not ready. The operator's own machine goes last.
 *
 * The cost depends on how many machines are unavailable, selected or named, not on how many wait.
 *
 * A machine whose drain was suspended is in service, and goes after all others when its wait is over.
 *
 * @param now milliseconds since the epoch.
 * @param named how many machines of each wait are named.
 */
export function selectNodes(
  pool: RolloutPool,
  nodes: PoolMembers,
  policy: RolloutPolicy,
  now: number,
  named: number = namedInWait,
): NodeSelection {
  const turn = new Turn(pool, nodes, policy, budgetOf(pool.maxUnavailable, nodes.size), now);
  const waits = new Waits(named);
  const chosen: Choice[] = [];
  /** @returns whether the hold stops all healthy machines behind this one. */
  const judge = (member: MemberFacts, is: MachineClass, behind?: () => Behind): boolean => {
    const held = holdOf(member, is, turn);
    if (held === undefined) {
      turn.take(member, is);
      chosen.push({ node: member.name, was: wasOf(member, is) });
      return false;
    }
    const rest = held.all ? behind?.() : undefined;
    waits.add(held, rest?.members ?? [member], rest?.count ?? 1);
    return rest !== undefined;
  };

  for (const member of nodes.urgent) judge(member, isFirst(member) ? "joining" : "outOfService");

  const deferred: string[] = [];
  const inTurn = operatorLast(nodes.waiting, isPoolHeld(turn) ? "" : policy.operatorNode, deferred);
  let seen = 0;
  for (let next = inTurn.next(); next.done !== true; next = inTurn.next()) {
    const member = next.value;
    const behind = () => ({ members: following(member, inTurn), count: nodes.waiting.size - seen });
    if (judge(member, "healthy", behind)) break;
    seen += 1;
  }

  for (const member of [...nodes.skipped.values()].sort((a, b) => (a.name < b.name ? -1 : 1)))
    judge(member, "drainSkipped");
  return { chosen, waits: waits.all(), budget: turn.budget, deferred };
}

/** Machines that one hold stops; reads no more of them than are named. */
interface Behind {
  readonly members: Iterable<MemberFacts>;
  readonly count: number;
}

const isFirst = (member: MemberFacts) => isJoining(member) && member.desired === "";

const wasOf = (member: MemberFacts, is: MachineClass): Choice["was"] =>
  is === "healthy" || is === "drainSkipped" ? "healthy" : isJoining(member) ? "joining" : "outOfService";

/** The same order, with the operator's own machine last in the control plane. */
function* operatorLast(
  members: Iterable<MemberFacts>,
  operatorNode: string,
  deferred: string[],
): Generator<MemberFacts, undefined> {
  let own: MemberFacts | undefined;
  for (const member of members) {
    if (member.name === operatorNode && member.controlPlane) own = member;
    else {
      if (own !== undefined && deferred.length === 0) deferred.push(own.name);
      yield member;
    }
  }
  if (own !== undefined) yield own;
  return undefined;
}

function* following(first: MemberFacts, others: Iterable<MemberFacts>): Iterable<MemberFacts> {
  yield first;
  yield* others;
}

/** Groups waiting machines by reason. */
class Waits {
  readonly #groups = new Map<
    string,
    { reason: WaitReason; message: string; remedy: string; count: number; first: string[] }
  >();
  readonly #named: number;

  constructor(named: number) {
    this.#named = named;
  }

  /** @param members the first of `count`; reads no more of them than are named. */
  add({ reason, message, remedy }: Held, members: Iterable<MemberFacts>, count: number): void {
    if (count === 0) return;
    const id = `${reason} ${message}`;
    const group = this.#groups.get(id) ?? { reason, message, remedy, count: 0, first: [] };
    group.count += count;
    this.#groups.set(id, group);
    if (group.first.length >= this.#named) return;
    for (const { name } of members) {
      group.first.push(name);
      if (group.first.length >= this.#named) return;
    }
  }

  all(): readonly Wait[] {
    return [...this.#groups.values()];
  }
}
