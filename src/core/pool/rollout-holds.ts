import { leastOf } from "../../api/schema/extremes.ts";
import { annotations } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { type MemberFacts, isFailing, isUnderUpdate, isOutOfService, whyOutOfService } from "./member-facts.ts";
import { imageWaitReasons } from "../config/image-pair.ts";
import type { PoolMembers } from "./pool-members.ts";
import { listText } from "../text/list-text.ts";

/** The settings of a pool that control its roll-out. */
export interface RolloutPool {
  readonly paused: boolean;
  readonly maxUnavailable: number | string | undefined;
  /** Rendered configs that no healthy machine may get. */
  readonly quarantined: readonly string[];
}

/** A member of the API server's etcd cluster. */
export interface EtcdMember {
  readonly node: string;
  readonly ready: boolean;
}

/** Facts that hold for every machine of the cluster. */
export interface RolloutPolicy {
  /** Healthy machines are selected only in a zone that already has unavailable machines. */
  readonly oneZoneAtATime: boolean;
  /** Every control-plane machine of the cluster, in any pool. */
  readonly controlPlane: Iterable<MemberFacts>;
  /** Empty: etcd is not visible. */
  readonly etcd: readonly EtcdMember[];
  /** The node that the operator runs on; empty: unknown. */
  readonly operatorNode: string;
  /** How many canary machines get the target first, and how long they must stay healthy, in milliseconds. */
  readonly canary?: { readonly count: number; readonly wellMs: number };
  /** Why other pools go first; `undefined`: none does. */
  readonly afterOthers?: { readonly message: string; readonly remedy: string } | undefined;
}

/** The canaries of a new image, and their results. */
export interface CanaryFacts {
  readonly count: number;
  /** Canaries with the target. */
  readonly gone: readonly string[];
  /** Canaries that stayed healthy for the required time. */
  readonly proven: readonly string[];
  /** Canaries that need help. */
  readonly failed: readonly string[];
  /**
   * Milliseconds since the epoch: when the next canary will have been healthy for long enough; `undefined`: time alone
   * is not enough.
   */
  readonly provenAt: number | undefined;
}

/** @param now milliseconds since the epoch. */
export function canaryFacts(
  members: PoolMembers,
  { count, wellMs }: { readonly count: number; readonly wellMs: number },
  now: number,
): CanaryFacts {
  // A machine that went back from the target is no canary: its word alone does not stop the others.
  const gone = [...members.all()].filter((member) => members.isTargeted(member) && !members.excluded.has(member.name));
  const wellSince = (member: MemberFacts) =>
    members.isUpdated(member.name) && member.kubeletReady && member.cordoned === "no" && member.since !== ""
      ? Date.parse(member.since)
      : undefined;
  const recoveries = gone.map((member) => ({ name: member.name, since: wellSince(member) }));
  const coming = recoveries.flatMap(({ since }) =>
    since !== undefined && now - since < wellMs ? [since + wellMs] : [],
  );
  return {
    count: Math.min(count, members.size),
    gone: gone.map(({ name }) => name).sort(),
    proven: recoveries
      .flatMap(({ name, since }) => (since !== undefined && now - since >= wellMs ? [name] : []))
      .sort(),
    failed: gone
      .filter(isFailing)
      .map(({ name }) => name)
      .sort(),
    provenAt: coming.length === 0 ? undefined : leastOf(coming),
  };
}

export const waitReasons = [
  ...imageWaitReasons,
  "Canary",
  "CanaryFailed",
  "WorkersFirst",
  "Paused",
  "TargetQuarantined",
  "MachineExcluded",
  "BudgetUsed",
  "ControlPlaneBusy",
  "ControlPlaneAway",
  "EtcdUnhealthy",
  "ZoneBusy",
  "DrainSkipped",
] as const;
export type WaitReason = (typeof waitReasons)[number];

/** Reasons that do not end with time: an administrator must act. */
const needPeople: ReadonlySet<WaitReason> = new Set([
  "BuildFailed",
  "BuildInterrupted",
  "CanaryFailed",
  "Paused",
  "TargetQuarantined",
  "MachineExcluded",
  "ControlPlaneAway",
  "EtcdUnhealthy",
]);

/** Whether a wait ends by itself or an administrator must end it. */
export const resolvesItself = (reason: WaitReason): boolean => !needPeople.has(reason);

/**
 * Waits for something that earlier updates of the pool say nothing about: a build, a grace, other pools, the time that
 * the first machine has to stay healthy.
 */
const unforeseeable: ReadonlySet<WaitReason> = new Set(["WaitingForBuild", "OptOutGrace", "WorkersFirst", "Canary"]);

/** Whether the end of a wait follows from how long updates of the pool take. */
export const isForeseeable = (reason: WaitReason): boolean => !unforeseeable.has(reason);

/** The class of a machine that should get the target. */
export type MachineClass =
  /** In service. */
  | "healthy"
  /** In service: it got the target, but its drain was suspended. */
  | "drainSkipped"
  /** Out of service for any cause: the target may repair it. */
  | "outOfService"
  /** No configuration was applied to it or requested of it. */
  | "joining";

export type Hold =
  | "paused"
  | "image"
  | "otherPools"
  | "drainDelay"
  | "quarantine"
  | "excluded"
  | "controlPlaneBusy"
  | "controlPlaneAway"
  | "etcd"
  | "canary"
  | "budget"
  | "zone";

const [yes, no] = [true, false];

/**
 * Which hold applies to which class of machine, in the order of evaluation. Selecting a machine that is out of service
 * costs nothing: no budget, zone or canary delays a repair. A joining machine starts with the stock OS and gets the
 * image of its pool with the next update.
 */
export const holdTable: Readonly<Record<Hold, Readonly<Record<MachineClass, boolean>>>> = {
  paused: { healthy: yes, drainSkipped: yes, outOfService: yes, joining: yes },
  image: { healthy: yes, drainSkipped: yes, outOfService: yes, joining: no },
  otherPools: { healthy: yes, drainSkipped: yes, outOfService: yes, joining: no },
  drainDelay: { healthy: no, drainSkipped: yes, outOfService: no, joining: no },
  quarantine: { healthy: yes, drainSkipped: yes, outOfService: no, joining: no },
  excluded: { healthy: yes, drainSkipped: yes, outOfService: no, joining: no },
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
  /** The hold also stops every other healthy machine behind this one. */
  readonly all: boolean;
}

/** The first hold of its class that applies to a machine; `undefined`: it may update now. */
export function holdOf(member: MemberFacts, is: MachineClass, turn: Turn): Held | undefined {
  for (const hold of Object.keys(holdTable) as Hold[]) {
    const held = holdTable[hold][is] ? rules[hold](member, turn, is) : undefined;
    if (held !== undefined) return held;
  }
  return undefined;
}

/** Whether a hold stops the whole pool, so that no machine is selected. */
export const isPoolHeld = ({ pool, members, policy }: Turn): boolean =>
  pool.paused || members.image.awaits !== undefined || policy.afterOthers !== undefined;

/** The state of the holds while the machines of a pool are selected one by one. */
export class Turn {
  readonly pool: RolloutPool;
  readonly members: PoolMembers;
  readonly policy: RolloutPolicy;
  readonly now: number;
  /** Machines out of service at the start of the selection, by name. */
  readonly away: readonly MemberFacts[];
  readonly budget: { readonly max: number; readonly unavailable: number; readonly free: number };
  readonly canary: CanaryFacts | undefined;
  readonly controlPlane: readonly MemberFacts[];
  /** Selected machines in service. */
  readonly taken: MemberFacts[] = [];
  /** Zones with unavailable or selected machines. */
  readonly zonesAway: Set<string>;
  /** A selected machine of the control plane. */
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

  /** How many more canaries may go. A machine whose drain was suspended keeps its place, so it needs no second one. */
  canaryPlaces(is: MachineClass): number {
    const { canary } = this;
    if (canary === undefined || canary.proven.length >= canary.count) return Number.POSITIVE_INFINITY;
    const goneAgain = is === "drainSkipped" ? canary.gone.filter((name) => this.members.skipped.has(name)).length : 0;
    return Math.max(0, canary.count - (canary.gone.length - goneAgain)) - this.taken.length;
  }
}

/** What puts a machine back into the roll-out that it was excluded from. */
export const exclusionRemedy = `a new target or removing the annotation ${annotations.refusedTargets} of its MachineConfigNode lifts it`;

type Rule = (member: MemberFacts, turn: Turn, is: MachineClass) => Held | undefined;

const one = (reason: WaitReason, message: string, remedy: string): Held => ({ reason, message, remedy, all: false });
const all = (reason: WaitReason, message: string, remedy: string): Held => ({ reason, message, remedy, all: true });

/** How each hold is evaluated, for any class of machine. */
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
          "remove the obstacle that held the drain",
        )
      : undefined,
  quarantine: (_, { pool, members: { target } }) =>
    pool.quarantined.includes(target)
      ? all(
          "TargetQuarantined",
          `machines of the pool went back from ${target}`,
          `a new target or removing the annotation ${annotations.quarantined} of the pool lifts it`,
        )
      : undefined,
  excluded(member, { members }) {
    const refusal = members.refusalOf(member);
    return refusal === undefined
      ? undefined
      : one(
          "MachineExcluded",
          `it went back from ${members.target}${refusal.reason === "" ? "" : ` (${refusal.reason})`}, and is excluded from it alone`,
          exclusionRemedy,
        );
  },
  controlPlaneBusy(member, turn) {
    if (!member.controlPlane) return undefined;
    const busy = turn.busyControlPlane ?? others(member, turn).find(isUnderUpdate)?.name;
    return busy === undefined
      ? undefined
      : one(
          "ControlPlaneBusy",
          `${busy} of the control plane is under way, and one at a time is`,
          `it continues when ${busy} is done`,
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
      `it continues when the machines of that zone are back; ${annotations.oneZoneAtATime} of the pool asks for it`,
    );
  },
};

const others = ({ name }: MemberFacts, { controlPlane }: Turn) => controlPlane.filter((other) => other.name !== name);

function behindCanary({ canary, taken, members: { target } }: Turn): Held {
  const failed = canary?.failed ?? [];
  if (failed.length > 0)
    return all(
      "CanaryFailed",
      `${listed(failed)} went first with ${target} and cannot go on without help: the others keep their configuration`,
      `mco explain node/${failed[0] ?? ""}; a new target starts over`,
    );
  const first = [...new Set([...(canary?.gone ?? []), ...taken.map(({ name }) => name)])];
  const until = canary?.provenAt === undefined ? "" : `, and must stay healthy until ${timestampOf(canary.provenAt)}`;
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
    "it continues when one of them is back; maxUnavailable of the pool says how many may be away",
  );
}

const listed = (items: readonly string[]) => listText(items, 3);
