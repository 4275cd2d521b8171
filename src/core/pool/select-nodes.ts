import { annotations } from "../../api/names.ts";
import {
  type MemberFacts,
  isFailing,
  isInOurHands,
  isJoining,
  isOutOfService,
  whyOutOfService,
} from "./member-facts.ts";
import type { ImageWaitReason } from "../config/image-pair.ts";
import type { PoolMembers } from "./pool-members.ts";

/** What of a pool decides about its roll-out. */
export interface RolloutPool {
  readonly paused: boolean;
  readonly maxUnavailable: number | string | undefined;
  /** Rendered configs that no healthy machine may be given. */
  readonly quarantined: readonly string[];
}

/** A member of the etcd cluster that the API server keeps everything in. */
export interface EtcdMember {
  readonly node: string;
  readonly ready: boolean;
}

/** What else holds for every machine of the cluster. */
export interface RolloutPolicy {
  /** Healthy machines are taken only in the zone in which machines are away already. */
  readonly oneZoneAtATime: boolean;
  /** Every control-plane machine of the cluster, whatever its pool. */
  readonly controlPlane: Iterable<MemberFacts>;
  /** Empty: etcd cannot be seen here. */
  readonly etcd: readonly EtcdMember[];
  /** The node that the operator runs on; empty: not known. */
  readonly operatorNode: string;
  /** How many machines get the target before all others, and for how long they must keep well, in milliseconds. */
  readonly canary?: { readonly count: number; readonly wellMs: number };
  /** Why other pools come first; `undefined`: none does. */
  readonly afterOthers?: { readonly message: string; readonly lift: string } | undefined;
}

export const plainPolicy: RolloutPolicy = { oneZoneAtATime: false, controlPlane: [], etcd: [], operatorNode: "" };

/** Who goes first with a new image, and how that went. */
export interface CanaryFacts {
  readonly count: number;
  /** Machines that were given the target. */
  readonly gone: readonly string[];
  /** Those that have kept well for as long as was asked for. */
  readonly proven: readonly string[];
  /** Those that cannot go on without help. */
  readonly failed: readonly string[];
  /**
   * Milliseconds since the epoch of when the next of them will have kept well for long enough; `undefined`: not by time
   * alone.
   */
  readonly provenAt: number | undefined;
}

/** @param now milliseconds since the epoch. */
export function canaryFacts(
  members: PoolMembers,
  { count, wellMs }: { readonly count: number; readonly wellMs: number },
  now: number,
): CanaryFacts {
  const gone = [...members.all()].filter((member) => members.isTargeted(member));
  const wellSince = (member: MemberFacts) =>
    members.isUpdated(member.name) && member.kubeletReady && member.cordoned === "no" && member.since !== ""
      ? Date.parse(member.since)
      : undefined;
  const moments = gone.map((member) => ({ name: member.name, since: wellSince(member) }));
  const coming = moments.flatMap(({ since }) => (since !== undefined && now - since < wellMs ? [since + wellMs] : []));
  return {
    count: Math.min(count, members.size),
    gone: gone.map(({ name }) => name).sort(),
    proven: moments.flatMap(({ name, since }) => (since !== undefined && now - since >= wellMs ? [name] : [])).sort(),
    failed: gone
      .filter(isFailing)
      .map(({ name }) => name)
      .sort(),
    provenAt: coming.length === 0 ? undefined : Math.min(...coming),
  };
}

export type WaitReason =
  | ImageWaitReason
  | "Canary"
  | "CanaryFailed"
  | "WorkersFirst"
  | "Paused"
  | "TargetQuarantined"
  | "BudgetUsed"
  | "ControlPlaneBusy"
  | "ControlPlaneAway"
  | "EtcdUnhealthy"
  | "ZoneBusy"
  | "DrainSkipped";

/** Reasons that no time takes away: somebody has to do something. */
const needPeople: ReadonlySet<WaitReason> = new Set([
  "BuildFailed",
  "BuildInterrupted",
  "CanaryFailed",
  "Paused",
  "TargetQuarantined",
  "ControlPlaneAway",
  "EtcdUnhealthy",
]);

/** Whether a wait ends by itself, or somebody has to end it. */
export const endsByItself = (reason: WaitReason): boolean => !needPeople.has(reason);

/** Machines that should get the target and do not get it now, all for the same reason. */
export interface Wait {
  readonly reason: WaitReason;
  /** A sentence without a final full stop. */
  readonly message: string;
  /** What would let them go on. */
  readonly lift: string;
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
  const { target } = nodes;
  const max = budgetOf(pool.maxUnavailable, nodes.size);
  const away = [...nodes.away.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const budget = { max, unavailable: away.length, free: max - away.length };
  const waits = new Waits(named);
  if (pool.paused) {
    for (const list of [nodes.urgent, nodes.waiting])
      waits.add("Paused", "the pool is paused", "set spec.paused of the pool to false", list, list.size);
    return { chosen: [], waits: waits.all(), budget, deferred: [] };
  }
  const { awaits } = nodes.image;
  if (awaits !== undefined || policy.afterOthers !== undefined) {
    const [reason, { message, lift }] =
      awaits === undefined
        ? (["WorkersFirst", policy.afterOthers ?? { message: "", lift: "" }] as const)
        : ([awaits.reason, awaits] as const);
    // A machine that joins gets the stock OS: its pool's image is its next update.
    const joining = [...nodes.urgent].filter((member) => isJoining(member) && member.desired === "");
    for (const list of [nodes.urgent, nodes.waiting]) {
      const others = [...list].filter((member) => !joining.includes(member));
      waits.add(reason, message, lift, others, others.length);
    }
    return {
      chosen: joining.map(({ name }) => ({ node: name, was: "joining" })),
      waits: waits.all(),
      budget,
      deferred: [],
    };
  }
  const chosen: Choice[] = [];
  const taken: MemberFacts[] = [];
  const canary = policy.canary === undefined ? undefined : canaryFacts(nodes, policy.canary, now);
  let canaryFree =
    canary === undefined || canary.proven.length >= canary.count
      ? Number.POSITIVE_INFINITY
      : Math.max(0, canary.count - canary.gone.length);
  const behindCanary = (): readonly [WaitReason, string, string] => {
    const first = [...(canary?.gone ?? []), ...taken.map(({ name }) => name)];
    if ((canary?.failed.length ?? 0) > 0)
      return [
        "CanaryFailed",
        `${listed(canary?.failed ?? [])} went first with ${target} and cannot go on without help: the others keep what they have`,
        `mco explain node/${canary?.failed[0] ?? ""}; a new target begins anew`,
      ];
    return [
      "Canary",
      `${listed(first)} ${first.length === 1 ? "goes" : "go"} first with ${target}${canary?.provenAt === undefined ? "" : `, and must keep well until ${new Date(canary.provenAt).toISOString()}`}`,
      `the annotation ${annotations.rolloutCanary} of the pool says how many go first`,
    ];
  };
  const controlPlane = [...policy.controlPlane];
  let busyControlPlane: string | undefined;

  /** What keeps a machine of the control plane waiting, besides the budget. */
  const heldBack = (member: MemberFacts, healthy: boolean): readonly [WaitReason, string, string] | undefined => {
    const others = controlPlane.filter(({ name }) => name !== member.name);
    const busy = busyControlPlane ?? others.find(isInOurHands)?.name;
    if (busy !== undefined)
      return [
        "ControlPlaneBusy",
        `${busy} of the control plane is under way, and one at a time is`,
        `it goes on when ${busy} is done`,
      ];
    if (!healthy) return undefined;
    const lost = others.find(isOutOfService);
    if (lost !== undefined)
      return [
        "ControlPlaneAway",
        `${lost.name} of the control plane is out of service (${whyOutOfService(lost)})`,
        `repair ${lost.name}, or put it back into service`,
      ];
    const sick = policy.etcd.find(({ node, ready }) => node !== member.name && !ready);
    if (sick !== undefined)
      return [
        "EtcdUnhealthy",
        `the etcd member on ${sick.node} is not ready, and taking ${member.name} away could cost etcd its quorum`,
        `see the etcd pod on ${sick.node}`,
      ];
    return undefined;
  };

  for (const member of nodes.urgent) {
    const held = member.controlPlane ? heldBack(member, false) : undefined;
    if (held !== undefined) {
      waits.add(...held, [member], 1);
      continue;
    }
    if (member.controlPlane) busyControlPlane = member.name;
    chosen.push({ node: member.name, was: isJoining(member) ? "joining" : "outOfService" });
  }

  const deferred: string[] = [];
  const isQuarantined = pool.quarantined.includes(target);
  const refusedTarget: readonly [WaitReason, string, string] = [
    "TargetQuarantined",
    `a machine went back from ${target}`,
    `a new target or removing the annotation ${annotations.quarantined} of the pool lifts it`,
  ];
  const { waiting } = nodes;
  let seen = 0;
  let { free } = budget;
  const turn = operatorLast(waiting, policy.operatorNode, deferred);
  /** Nobody from this one on can be taken, and all for the same reason. */
  const rest = (member: MemberFacts, reason: WaitReason, message: string, lift: string) =>
    waits.add(reason, message, lift, following(member, turn), waiting.size - seen);
  const noPlace = (): readonly [WaitReason, string, string] => {
    const names = [
      ...away.map((other) => `${other.name} ${whyOutOfService(other)}`),
      ...taken.map(({ name }) => `${name} updating`),
    ];
    return [
      "BudgetUsed",
      `${names.length} of ${max} allowed unavailable: ${listed(names)}`,
      "it goes on when one of them is back; maxUnavailable of the pool says how many may be away",
    ];
  };
  const zonesAway = new Set(away.map(({ zone }) => zone));
  for (let next = turn.next(); next.done !== true; next = turn.next()) {
    const member = next.value;
    if (isQuarantined) {
      rest(member, ...refusedTarget);
      break;
    }
    const held = member.controlPlane ? heldBack(member, true) : undefined;
    if (held !== undefined) {
      waits.add(...held, [member], 1);
      seen += 1;
      continue;
    }
    if (canaryFree < 1) {
      rest(member, ...behindCanary());
      break;
    }
    if (free < 1) {
      rest(member, ...noPlace());
      break;
    }
    if (policy.oneZoneAtATime) {
      const other = [...zonesAway].find((zone) => zone !== member.zone);
      if (other !== undefined) {
        const who = [...away, ...taken].find(({ zone }) => zone === other)?.name ?? "";
        waits.add(
          "ZoneBusy",
          `${who} of ${other === "" ? "no zone" : `zone ${other}`} is away, and the pool updates one zone at a time`,
          `it goes on when the machines of that zone are back; ${annotations.oneZoneAtATime} of the pool asks for it`,
          [member],
          1,
        );
        seen += 1;
        continue;
      }
      zonesAway.add(member.zone);
    }
    free -= 1;
    canaryFree -= 1;
    seen += 1;
    taken.push(member);
    if (member.controlPlane) busyControlPlane = member.name;
    chosen.push({ node: member.name, was: "healthy" });
  }
  for (const member of [...nodes.skipped.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const early = now < Date.parse(member.skippedUntil);
    const held: readonly [WaitReason, string, string] | undefined = early
      ? [
          "DrainSkipped",
          `its drain took longer than the pool gives it and is tried again after ${member.skippedUntil}: ${member.says}`,
          "let go what held the drain",
        ]
      : ((member.controlPlane ? heldBack(member, true) : undefined) ??
        (isQuarantined ? refusedTarget : free < 1 ? noPlace() : undefined));
    if (held !== undefined) {
      waits.add(...held, [member], 1);
      continue;
    }
    free -= 1;
    taken.push(member);
    if (member.controlPlane) busyControlPlane = member.name;
    chosen.push({ node: member.name, was: "healthy" });
  }
  return { chosen, waits: waits.all(), budget, deferred };
}

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
    { reason: WaitReason; message: string; lift: string; count: number; first: string[] }
  >();
  readonly #named: number;

  constructor(named: number) {
    this.#named = named;
  }

  /** @param members the first of `count`; no more of them are read than are named. */
  add(reason: WaitReason, message: string, lift: string, members: Iterable<MemberFacts>, count: number): void {
    if (count === 0) return;
    const id = `${reason} ${message}`;
    const group = this.#groups.get(id) ?? { reason, message, lift, count: 0, first: [] };
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

const listed = (items: readonly string[]) =>
  items.length <= 3 ? items.join(", ") : `${items.slice(0, 3).join(", ")} and ${items.length - 3} more`;
