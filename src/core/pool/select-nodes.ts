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

/** Machines that should get the target and do not get it now, all for the same reason. */
export interface Wait {
  readonly reason: WaitReason;
  /** A sentence without a final full stop. */
  readonly message: string;
  /** What would let them go on. */
  readonly remedy: string;
  readonly count: number;
  /** The first of them, in the order in which they will get it. */
  readonly first: readonly string[];
}

export interface Choice {
  readonly node: string;
  /** `healthy`: takes one from the budget. The others were out of service already and cost nothing. */
  readonly was: "healthy" | "outOfService" | "joining";
}

export interface NodeSelection {
  /** In the order in which they should get the target. */
  readonly chosen: readonly Choice[];
  /** Every other member that should get the target, by why it does not get it now. */
  readonly waits: readonly Wait[];
  readonly budget: { readonly max: number; readonly unavailable: number; readonly free: number };
  /** Machines of the control plane that were moved behind the others because the operator runs there. */
  readonly deferred: readonly string[];
}

/**
 * How many machines of a pool may be out of service at once: 1 when nothing is said, never 0; percentages are rounded
 * down. Source: openshift/machine-config-operator pkg/controller/node/node_controller.go (main).
 */
export function budgetOf(maxUnavailable: number | string | undefined, members: number): number {
  const text = String(maxUnavailable ?? 1).trim();
  const percent = /^(\d+)%$/.exec(text)?.[1];
  const count = percent === undefined ? Number(text) : Math.floor((Number(percent) * members) / 100);
  return Number.isInteger(count) && count > 0 ? count : 1;
}

/** How many machines a wait names where nobody asks for more. */
const namedInWait = 5;

/**
 * Which members of a pool get its target now, and why the others have to wait.
 *
 * A machine that is out of service already costs nothing: it may have its repair at any time. A healthy one is taken
 * only while fewer machines than the budget are out of service, for whatever cause. Of the control plane, whatever the
 * budget, one machine at a time is in our hands, and a healthy one is not taken while another is out of service or a
 * member of etcd elsewhere is not ready. The operator's own machine is the last of them.
 *
 * The cost follows from how many machines are away, chosen or named, not from how many wait.
 *
 * A machine whose drain was given up serves, and comes after all others when its time is over.
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
  /** @returns whether the hold keeps all healthy machines behind this one back. */
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

/** Machines that a hold keeps back together; no more of them are read than are named. */
interface Behind {
  readonly members: Iterable<MemberFacts>;
  readonly count: number;
}

const isFirst = (member: MemberFacts) => isJoining(member) && member.desired === "";

const wasOf = (member: MemberFacts, is: MachineClass): Choice["was"] =>
  is === "healthy" || is === "drainSkipped" ? "healthy" : isJoining(member) ? "joining" : "outOfService";

/** The same order, but the operator's own machine behind the others of the control plane. */
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

/** Collects machines that wait by why they do. */
class Waits {
  readonly #groups = new Map<
    string,
    { reason: WaitReason; message: string; remedy: string; count: number; first: string[] }
  >();
  readonly #named: number;

  constructor(named: number) {
    this.#named = named;
  }

  /** @param members the first of `count`; no more of them are read than are named. */
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
