import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { type MemberFacts, isSkipped, looksDegraded } from "./member-facts.ts";
import { drainReasons } from "./drain-step.ts";
import type { PoolMembers } from "./pool-members.ts";
import { type Estimate, type Past, estimateMachine, estimateRollOut, pastLike } from "../books/past.ts";
import type { NodeSelection, Wait } from "./select-nodes.ts";
import type { Phase } from "../books/phase.ts";
import { type WaitReason, resolvesItself, isForeseeable } from "./rollout-holds.ts";
import { andMore } from "../text/list-text.ts";

/** Everything that is known of one pool at one moment. */
export interface PoolFacts {
  readonly pool: MachineConfigPool;
  readonly members: PoolMembers;
  readonly selection: NodeSelection;
  /** Why the target cannot be applied to running machines; empty when it can. */
  readonly irreconcilable: readonly string[];
  /** Nodes that this pool and others select, so that they belong to none of them, with the pools. */
  readonly ambiguous: ReadonlyMap<string, readonly string[]>;
  /** API server certificates that machines trust, and their expiry; `undefined`: unknown. */
  readonly certificates?: readonly { readonly bundle: string; readonly subject: string; readonly expiry: string }[];
  /** The OS image stream of the target; absent: none, or a MachineConfig names an image of its own. */
  readonly stream?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A machine that is updating, or that needs an administrator. */
export interface Mover {
  readonly node: string;
  readonly phase: Phase;
  /** RFC 3339; empty: not known. */
  readonly since: string;
  /** Its own words; empty: none. */
  readonly says: string;
}

/** Where a pool is on the way to its target. Lists are in the order of names, or of turns where that is meant. */
export interface PoolProgress {
  /** Empty: nothing has been rendered yet. */
  readonly target: string;
  /** Image that goes with it; empty: the one that it names. */
  readonly image: string;
  /** Where the image is, while there is none to give; empty: there is one, or none is wanted. */
  readonly awaits: string;
  /** What gets the pool its image; empty: nothing has to be done for it. */
  readonly awaitsRemedy: string;
  /** Machines leave their images for the operating system that the configuration names. */
  readonly reverting: boolean;
  readonly paused: boolean;
  readonly verdict: "NotRendered" | "Done" | "Paused" | "Blocked" | "RollingOut";
  readonly total: number;
  readonly done: number;
  /** Under way, and going on. */
  readonly working: readonly Mover[];
  /** Under way, and kept from going on by something that they name. */
  readonly blocked: readonly Mover[];
  /** Cannot go on without help. */
  readonly failed: readonly Mover[];
  /** The kubelet does not report, without an announced reboot. */
  readonly lost: readonly Mover[];
  /** The kubelet works and the daemon does not. */
  readonly silent: readonly Mover[];
  /** Went back from the target, which the others still get; empty in a quarantine. */
  readonly excluded: readonly string[];
  readonly joining: readonly string[];
  readonly cordonedByOthers: readonly string[];
  readonly ambiguous: PoolFacts["ambiguous"];
  /** Machines that should get the target and do not get it now, by reason. */
  readonly waiting: readonly Wait[];
  readonly budget: NodeSelection["budget"];
  readonly irreconcilable: readonly string[];
  /**
   * The likely end, from the durations of earlier updates; absent: no update of this pool is known to have ended, or
   * none is running.
   */
  readonly eta?: RollOutEta;
}

export interface RollOutEta {
  /** Machines under way, by name. */
  readonly machines: ReadonlyMap<string, Estimate>;
  /** The end of the last machine; `undefined`: an administrator has to act first. */
  readonly whole: Estimate | undefined;
  /** Machines that it excludes, because they need an administrator first. */
  readonly without: readonly string[];
}

/** A machine that applied nothing yet holds its pool back only after this time. */
export const joiningGraceMs = 30 * 60_000;

const byName = (members: ReadonlyMap<string, MemberFacts>): readonly MemberFacts[] =>
  [...members.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
const moverOf = ({ name, phase, since, says }: MemberFacts, words: string = says): Mover => ({
  node: name,
  phase,
  since,
  says: words,
});

/** Something that its drain names keeps the machine from going on: pods that it may not evict, or a deadline. */
export const isBlocked = (member: MemberFacts): boolean =>
  isSkipped(member) || (member.phase === "Draining" && blockedReasons.has(member.saysReason));
const blockedReasons = new Set<string>([drainReasons.blocked, drainReasons.late]);

/** Why the roll-out is blocked until an administrator acts. */
const stopReasons = new Set<WaitReason>([
  "TargetQuarantined",
  "MachineExcluded",
  "BuildFailed",
  "BuildInterrupted",
  "CanaryFailed",
]);

/** Where a pool is: the one fold that its status, its metrics and `mco explain` come from. */
export function poolProgress(
  { pool, members, selection, irreconcilable, ambiguous, now }: PoolFacts,
  past?: Past,
): PoolProgress {
  const { target } = members;
  const underUpdate = byName(members.underUpdate).filter((member) => !looksDegraded(member));
  const silent = byName(members.silent);
  const failed = byName(members.degraded);
  const lost = byName(members.away).filter((member) => member.phase === "Lost" && !looksDegraded(member));
  const joining = byName(members.joining);
  const isYoung = (member: MemberFacts) => now - Date.parse(member.createdAt) < joiningGraceMs;
  // A pool of which no machine has anything yet is at its beginning, not at its end.
  const begun = members.size === 0 || members.updated > 0;
  const allUpdated = target !== "" && begun && members.unfinished === joining.filter(isYoung).length;
  const stopped =
    underUpdate.length === 0 &&
    selection.chosen.length === 0 &&
    selection.waits.length > 0 &&
    selection.waits.every(({ reason }) => stopReasons.has(reason));
  const verdict =
    target === ""
      ? "NotRendered"
      : allUpdated
        ? "Done"
        : pool.spec.paused === true
          ? "Paused"
          : stopped
            ? "Blocked"
            : "RollingOut";
  const progress: PoolProgress = {
    target,
    image: members.image.image,
    awaits: members.image.awaits?.message ?? "",
    awaitsRemedy: members.image.awaits?.goesOn === true ? "" : (members.image.awaits?.remedy ?? ""),
    reverting:
      members.image.image === "" &&
      members.image.awaits === undefined &&
      [...members.underUpdate.values(), ...members.urgent, ...members.waiting.slice(0, 1)].some(
        ({ currentImage }) => currentImage !== "",
      ),
    paused: pool.spec.paused === true,
    verdict,
    total: members.size,
    done: members.updated,
    working: underUpdate
      .filter((member) => member.phase !== "Lost" && !isBlocked(member))
      .map((member) => moverOf(member)),
    blocked: underUpdate.filter(isBlocked).map((member) => moverOf(member)),
    failed: failed.map((member) => moverOf(member, member.says === "" ? member.reason : member.says)),
    lost: lost.map((member) => moverOf(member, member.kubeletReason)),
    silent: silent.map((member) => ({
      ...moverOf(member),
      since: member.daemonAwaySince,
      says: "its daemon's pod is not ready, so the machine is not managed",
    })),
    excluded: selection.waits.some(({ reason }) => reason === "TargetQuarantined")
      ? []
      : byName(members.excluded).map(({ name }) => name),
    joining: joining.map(({ name }) => name),
    cordonedByOthers: byName(members.cordonedByOthers).map(({ name }) => name),
    ambiguous,
    waiting: selection.waits,
    budget: selection.budget,
    irreconcilable,
  };
  const eta = past === undefined ? undefined : etaOf(progress, selection.chosen.length, past, now);
  return eta === undefined ? progress : { ...progress, eta };
}

function etaOf(progress: PoolProgress, chosen: number, all: Past, now: number): RollOutEta | undefined {
  const past = pastLike(all, progress.target);
  if (past.updates.length === 0 || (progress.working.length === 0 && progress.verdict !== "RollingOut"))
    return undefined;
  const estimates = progress.working.map(
    ({ node, phase, since }) =>
      [node, estimateMachine(past, phase, since === "" ? undefined : Date.parse(since), now)] as const,
  );
  const { max, unavailable } = progress.budget;
  // An unavailable machine without progress holds its place until an administrator helps.
  const places = Math.max(0, max - Math.max(0, unavailable - progress.working.length));
  const waiting =
    chosen + progress.waiting.reduce((sum, { reason, count }) => sum + (resolvesItself(reason) ? count : 0), 0);
  const without = [...progress.blocked, ...progress.failed, ...progress.lost].map(({ node }) => node);
  const mayEnd =
    progress.verdict === "RollingOut" &&
    without.length === 0 &&
    progress.irreconcilable.length === 0 &&
    progress.waiting.every(({ reason }) => resolvesItself(reason) && isForeseeable(reason));
  return {
    machines: new Map(
      estimates.flatMap(([node, estimate]) => (estimate === undefined ? [] : [[node, estimate] as const])),
    ),
    whole: mayEnd
      ? estimateRollOut(past, { working: estimates.map(([, estimate]) => estimate), waiting, places }, now)
      : undefined,
    without,
  };
}

/** Whether all that a pool lacks is machines that have its target and are degraded: nothing is being updated. */
export function isMereDrift({ members, selection }: PoolFacts, progress: PoolProgress): boolean {
  const { target } = members;
  const others = [
    progress.working,
    progress.blocked,
    progress.lost,
    progress.silent,
    progress.joining,
    progress.waiting,
  ];
  return (
    members.degraded.size > 0 &&
    selection.chosen.length === 0 &&
    others.every(({ length }) => length === 0) &&
    [...members.degraded.values()].every(({ current, desired }) => current === target && desired === target)
  );
}

export const poolBlockerReasons = [
  "BuildFailed",
  "BuildInterrupted",
  "CanaryFailed",
  "NotRendered",
  "Paused",
  "TargetQuarantined",
  "Irreconcilable",
  "RenderRefused",
] as const;

/** What keeps a whole pool from going on: nothing means that it may. */
export type PoolBlocker = {
  readonly reason: (typeof poolBlockerReasons)[number];
  readonly message: string;
  readonly remedy: string;
};

/** Causes that hold for a pool as a whole, not those of single machines. */
export function poolBlockers(progress: PoolProgress): readonly PoolBlocker[] {
  const { verdict, target } = progress;
  const quarantined = progress.waiting.find(({ reason }) => reason === "TargetQuarantined");
  return [
    ...(verdict === "NotRendered"
      ? [
          {
            reason: "NotRendered" as const,
            message: "no configuration has been rendered for the pool yet",
            remedy: "see the condition RenderDegraded of the pool, and whether some MachineConfig has its role",
          },
        ]
      : []),
    ...(verdict === "Paused"
      ? [
          {
            reason: "Paused" as const,
            message: `the pool is paused and will not go to ${target}`,
            remedy: "set spec.paused of the pool to false",
          },
        ]
      : []),
    ...(quarantined === undefined
      ? []
      : [{ reason: "TargetQuarantined" as const, message: quarantined.message, remedy: quarantined.remedy }]),
    ...progress.waiting.flatMap(({ reason, message, remedy }) =>
      reason === "BuildFailed" || reason === "BuildInterrupted" || reason === "CanaryFailed"
        ? [{ reason, message, remedy }]
        : [],
    ),
    ...(progress.irreconcilable.length === 0
      ? []
      : [
          {
            reason: "Irreconcilable" as const,
            message: `${target} cannot be applied to running machines: ${progress.irreconcilable.join("; ")}`,
            remedy: "take the change back, or replace the machines",
          },
        ]),
  ];
}

/**
 * One line on a pool, as the ClusterOperator's extension shows it; the wording is the reference's
 * (pkg/operator/status.go, main).
 */
export function poolLine({ pool, members }: PoolFacts, progress: PoolProgress): string {
  const [first] = progress.failed;
  if (first !== undefined)
    return `pool is degraded because ${first.node}: ${first.says}${progress.failed.length > 1 ? ` (${andMore(progress.failed.length - 1)})` : ""}`;
  switch (progress.verdict) {
    case "NotRendered":
      return "pool has no configuration yet";
    case "Done":
      return `all ${progress.total} nodes are at latest configuration ${progress.target}`;
    case "Paused":
      return `pool is paused; ${progress.done} out of ${progress.total} nodes are at latest configuration ${progress.target}`;
    case "Blocked":
    case "RollingOut":
      return `${progress.done} (ready ${members.ready}) out of ${progress.total} nodes are updating to latest configuration ${pool.spec.configuration?.name ?? ""}`;
  }
}
