import { annotations } from "../../api/names.ts";
import { type MemberFacts, isFailing, isUnderUpdate, isOutOfService, whyOutOfService } from "./member-facts.ts";
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
  readonly afterOthers?: { readonly message: string; readonly remedy: string } | undefined;
}

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

/** What a machine that should get the target is to the roll-out. */
export type MachineClass =
  /** In service. */
  | "healthy"
  /** In service: it was given the target, and its drain was given up for now. */
  | "drainSkipped"
  /** Out of service for whatever cause: the target may be its repair. */
  | "outOfService"
  /** Nothing was applied to it, and nothing was asked of it. */
  | "joining";

export type Hold =
  | "paused"
  | "image"
  | "otherPools"
  | "drainDelay"
  | "quarantine"
  | "controlPlaneBusy"
  | "controlPlaneAway"
  | "etcd"
  | "canary"
  | "budget"
  | "zone";

const [yes, no] = [true, false];

/**
 * Which hold keeps which class of machines waiting, in the order in which the holds are asked. Taking a machine that is
 * out of service costs nothing: no budget, zone or canary keeps a repair back. A machine that joins starts with the stock
 * OS: the image of its pool is its next update.
 */
export const holdTable: Readonly<Record<Hold, Readonly<Record<MachineClass, boolean>>>> = {
  paused: { healthy: yes, drainSkipped: yes, outOfService: yes, joining: yes },
  image: { healthy: yes, drainSkipped: yes, outOfService: yes, joining: no },
  otherPools: { healthy: yes, drainSkipped: yes, outOfService: yes, joining: no },
  drainDelay: { healthy: no, drainSkipped: yes, outOfService: no, joining: no },
  quarantine: { healthy: yes, drainSkipped: yes, outOfService: no, joining: no },
  controlPlaneBusy: { healthy: yes, drainSkipped: yes, outOfService: yes, joining: yes },
  controlPlaneAway: { healthy: yes, drainSkipped: yes, outOfService: no, joining: no },
  etcd: { healthy: yes, drainSkipped: yes, outOfService: no, joining: no },
  canary: { healthy: yes, drainSkipped: yes, outOfService: no, joining: no },
  budget: { healthy: yes, drainSkipped: yes, outOfService: no, joining: no },
  zone: { healthy: yes, drainSkipped: yes, outOfService: no, joining: no },
};

/** Why a machine waits. */
export interface Held {
  readonly reason: WaitReason;
  readonly message: string;
  readonly remedy: string;
  /** The hold keeps every other healthy machine behind this one back, too. */
  readonly all: boolean;
}

/** The first hold of its class that keeps a machine waiting; `undefined`: it may go now. */
export function holdOf(member: MemberFacts, is: MachineClass, turn: Turn): Held | undefined {
  for (const hold of Object.keys(holdTable) as Hold[]) {
    const held = holdTable[hold][is] ? rules[hold](member, turn, is) : undefined;
    if (held !== undefined) return held;
  }
  return undefined;
}

/** Whether a hold keeps the pool as a whole: nobody is in turn. */
export const isPoolHeld = ({ pool, members, policy }: Turn): boolean =>
  pool.paused || members.image.awaits !== undefined || policy.afterOthers !== undefined;

/** What the holds look at while the machines of a pool are chosen one after the other. */
export class Turn {
  readonly pool: RolloutPool;
  readonly members: PoolMembers;
  readonly policy: RolloutPolicy;
  readonly now: number;
  /** Out of service when the choice began, by name. */
  readonly away: readonly MemberFacts[];
  readonly budget: { readonly max: number; readonly unavailable: number; readonly free: number };
  readonly canary: CanaryFacts | undefined;
  readonly controlPlane: readonly MemberFacts[];
  /** Machines in service that were chosen. */
  readonly taken: MemberFacts[] = [];
  /** Zones in which machines are away or were taken. */
  readonly zonesAway: Set<string>;
  /** A machine of the control plane that was chosen. */
  busyControlPlane: string | undefined;

  constructor(pool: RolloutPool, members: PoolMembers, policy: RolloutPolicy, max: number, now: number) {
    this.pool = pool;
    this.members = members;
    this.policy = policy;
    this.now = now;
    this.away = [...members.away.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    this.budget = { max, unavailable: this.away.length, free: max - this.away.length };
    this.canary = policy.canary === undefined ? undefined : canaryFacts(members, policy.canary, now);
    this.controlPlane = [...policy.controlPlane];
    this.zonesAway = new Set(this.away.map(({ zone }) => zone));
  }

  take(member: MemberFacts, is: MachineClass): void {
    if (member.controlPlane) this.busyControlPlane = member.name;
    if (is === "outOfService" || is === "joining") return;
    this.taken.push(member);
    this.zonesAway.add(member.zone);
  }

  /**
   * How many more machines may go before the others. One whose drain was given up counts among those that went, and
   * needs no second place when it goes again.
   */
  canaryPlaces(is: MachineClass): number {
    const { canary } = this;
    if (canary === undefined || canary.proven.length >= canary.count) return Number.POSITIVE_INFINITY;
    const goneAgain = is === "drainSkipped" ? canary.gone.filter((name) => this.members.skipped.has(name)).length : 0;
    return Math.max(0, canary.count - (canary.gone.length - goneAgain)) - this.taken.length;
  }
}

type Rule = (member: MemberFacts, turn: Turn, is: MachineClass) => Held | undefined;

const one = (reason: WaitReason, message: string, remedy: string): Held => ({ reason, message, remedy, all: false });
const all = (reason: WaitReason, message: string, remedy: string): Held => ({ reason, message, remedy, all: true });

/** How each hold is judged, whatever the class of the machine. */
const rules: Readonly<Record<Hold, Rule>> = {
  paused: (_, { pool }) =>
    pool.paused ? all("Paused", "the pool is paused", "set spec.paused of the pool to false") : undefined,
  image(_, { members }) {
    const { awaits } = members.image;
    return awaits === undefined ? undefined : all(awaits.reason, awaits.message, awaits.remedy);
  },
  otherPools: (_, { policy: { afterOthers } }) =>
    afterOthers === undefined ? undefined : all("WorkersFirst", afterOthers.message, afterOthers.remedy),
  drainDelay: ({ skippedUntil, says }, { now }) =>
    now < Date.parse(skippedUntil)
      ? one(
          "DrainSkipped",
          `its drain took longer than the pool gives it and is tried again after ${skippedUntil}: ${says}`,
          "let go what held the drain",
        )
      : undefined,
  quarantine: (_, { pool, members: { target } }) =>
    pool.quarantined.includes(target)
      ? all(
          "TargetQuarantined",
          `a machine went back from ${target}`,
          `a new target or removing the annotation ${annotations.quarantined} of the pool lifts it`,
        )
      : undefined,
  controlPlaneBusy(member, turn) {
    if (!member.controlPlane) return undefined;
    const busy = turn.busyControlPlane ?? others(member, turn).find(isUnderUpdate)?.name;
    return busy === undefined
      ? undefined
      : one(
          "ControlPlaneBusy",
          `${busy} of the control plane is under way, and one at a time is`,
          `it goes on when ${busy} is done`,
        );
  },
  controlPlaneAway(member, turn) {
    const lost = member.controlPlane ? others(member, turn).find(isOutOfService) : undefined;
    return lost === undefined
      ? undefined
      : one(
          "ControlPlaneAway",
          `${lost.name} of the control plane is out of service (${whyOutOfService(lost)})`,
          `repair ${lost.name}, or put it back into service`,
        );
  },
  etcd(member, { policy }) {
    const sick = member.controlPlane
      ? policy.etcd.find(({ node, ready }) => node !== member.name && !ready)
      : undefined;
    return sick === undefined
      ? undefined
      : one(
          "EtcdUnhealthy",
          `the etcd member on ${sick.node} is not ready, and taking ${member.name} away could cost etcd its quorum`,
          `see the etcd pod on ${sick.node}`,
        );
  },
  canary: (_, turn, is) => (turn.canaryPlaces(is) < 1 ? behindCanary(turn) : undefined),
  budget: (_, turn) => (turn.budget.free - turn.taken.length < 1 ? noPlace(turn) : undefined),
  zone(member, { policy, zonesAway, away, taken }) {
    const other = policy.oneZoneAtATime ? [...zonesAway].find((zone) => zone !== member.zone) : undefined;
    if (other === undefined) return undefined;
    const who = [...away, ...taken].find(({ zone }) => zone === other)?.name ?? "";
    return one(
      "ZoneBusy",
      `${who} of ${other === "" ? "no zone" : `zone ${other}`} is away, and the pool updates one zone at a time`,
      `it goes on when the machines of that zone are back; ${annotations.oneZoneAtATime} of the pool asks for it`,
    );
  },
};

const others = ({ name }: MemberFacts, { controlPlane }: Turn) => controlPlane.filter((other) => other.name !== name);

function behindCanary({ canary, taken, members: { target } }: Turn): Held {
  const failed = canary?.failed ?? [];
  if (failed.length > 0)
    return all(
      "CanaryFailed",
      `${listed(failed)} went first with ${target} and cannot go on without help: the others keep what they have`,
      `mco explain node/${failed[0] ?? ""}; a new target begins anew`,
    );
  const first = [...new Set([...(canary?.gone ?? []), ...taken.map(({ name }) => name)])];
  const until =
    canary?.provenAt === undefined ? "" : `, and must keep well until ${new Date(canary.provenAt).toISOString()}`;
  return all(
    "Canary",
    `${listed(first)} ${first.length === 1 ? "goes" : "go"} first with ${target}${until}`,
    `the annotation ${annotations.rolloutCanary} of the pool says how many go first`,
  );
}

function noPlace({ away, taken, budget }: Turn): Held {
  const names = [
    ...away.map((other) => `${other.name} ${whyOutOfService(other)}`),
    ...taken.map(({ name }) => `${name} updating`),
  ];
  return all(
    "BudgetUsed",
    `${names.length} of ${budget.max} allowed unavailable: ${listed(names)}`,
    "it goes on when one of them is back; maxUnavailable of the pool says how many may be away",
  );
}

const listed = (items: readonly string[]) =>
  items.length <= 3 ? items.join(", ") : `${items.slice(0, 3).join(", ")} and ${items.length - 3} more`;
