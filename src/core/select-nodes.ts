import { annotations } from "../api/names.ts";
import { type MemberFacts, isFailing, isInOurHands, isJoining, isOutOfService, whyOutOfService } from "./member-facts.ts";

export interface RolloutFacts {
  readonly target: string;
  readonly paused: boolean;
  readonly maxUnavailable: number | string | undefined;
  /** Rendered configs that no healthy machine may be given. */
  readonly quarantined: readonly string[];
  readonly members: readonly MemberFacts[];
  /** Control-plane machines of other pools. */
  readonly otherControlPlane: readonly MemberFacts[];
}

export type SkipReason = "Paused" | "TargetQuarantined" | "BudgetUsed" | "ControlPlaneBusy";

export interface Skip {
  readonly node: string;
  readonly reason: SkipReason;
  /** A sentence without a final full stop. */
  readonly message: string;
}

export interface Choice {
  readonly node: string;
  /** `healthy`: takes one from the budget. The others were out of service already and cost nothing. */
  readonly was: "healthy" | "outOfService" | "joining";
}

export interface NodeSelection {
  /** In the order in which they should get the target. */
  readonly chosen: readonly Choice[];
  /** Every member that should get the target and does not get it now. */
  readonly skipped: readonly Skip[];
  readonly budget: { readonly max: number; readonly unavailable: number; readonly free: number };
}

/**
 * How many machines of a pool may be out of service at once: 1 when nothing is said, never 0; percentages are rounded down.
 * Source: openshift/machine-config-operator pkg/controller/node/node_controller.go (main).
 */
export function budgetOf(maxUnavailable: number | string | undefined, members: number): number {
  const text = String(maxUnavailable ?? 1).trim();
  const percent = /^(\d+)%$/.exec(text)?.[1];
  const count = percent === undefined ? Number(text) : Math.floor((Number(percent) * members) / 100);
  return Number.isInteger(count) && count > 0 ? count : 1;
}

/**
 * Which members of a pool get its target now, and why the others have to wait.
 *
 * A machine that is out of service already costs nothing: it may have its repair at any time. A healthy one is taken only
 * while fewer machines than the budget are out of service, for whatever cause. Of the control plane, whatever the
 * budget, one machine at a time is in our hands, and a healthy one is not taken while another is out of service.
 */
export function selectNodes(facts: RolloutFacts): NodeSelection {
  const { target, members } = facts;
  const max = budgetOf(facts.maxUnavailable, members.length);
  const away = members.filter(isOutOfService);
  let free = max - away.length;
  const budget = { max, unavailable: away.length, free };
  const candidates = target === "" ? [] : inOrder(members.filter(({ desired }) => desired !== target));
  if (facts.paused) return { chosen: [], skipped: candidates.map(({ name }) => ({ node: name, reason: "Paused", message: "the pool is paused" })), budget };

  const chosen: Choice[] = [];
  const skipped: Skip[] = [];
  const controlPlane = [...members, ...facts.otherControlPlane].filter((member) => member.controlPlane);
  let takenNow: string | undefined;
  const taken: string[] = [];
  for (const member of candidates) {
    const { name } = member;
    const skip = (reason: SkipReason, message: string) => void skipped.push({ node: name, reason, message });
    const was = isJoining(member) ? "joining" : isOutOfService(member) ? "outOfService" : "healthy";
    if (member.controlPlane) {
      const others = controlPlane.filter((other) => other.name !== name);
      const busy = takenNow ?? others.find(isInOurHands)?.name;
      if (busy !== undefined) {
        skip("ControlPlaneBusy", `${busy} of the control plane is under way, and one at a time is`);
        continue;
      }
      const lost = was === "healthy" ? others.find((other) => isOutOfService(other)) : undefined;
      if (lost !== undefined) {
        skip("ControlPlaneBusy", `${lost.name} of the control plane is out of service (${whyOutOfService(lost)})`);
        continue;
      }
    }
    if (was === "healthy") {
      if (facts.quarantined.includes(target)) {
        skip("TargetQuarantined", `a machine went back from ${target}; a new target or removing the annotation ${annotations.quarantined} lifts it`);
        continue;
      }
      if (free < 1) {
        skip("BudgetUsed", `${away.length + taken.length} of ${max} allowed unavailable: ${listed([...away.map((other) => `${other.name} ${whyOutOfService(other)}`), ...taken.map((other) => `${other} updating`)])}`);
        continue;
      }
      free -= 1;
      taken.push(name);
    }
    if (member.controlPlane) takenNow = name;
    chosen.push({ node: name, was });
  }
  return { chosen, skipped, budget };
}

const listed = (items: readonly string[]) => (items.length <= 3 ? items.join(", ") : `${items.slice(0, 3).join(", ")} and ${items.length - 3} more`);

/** Broken machines first, so that their repair never waits; then zone by zone, the oldest first, machines without a zone last. */
function inOrder(members: readonly MemberFacts[]): readonly MemberFacts[] {
  const rank = (member: MemberFacts) => (isFailing(member) ? 0 : isOutOfService(member) ? 1 : 2);
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return members.toSorted((a, b) => rank(a) - rank(b) || Number(a.zone === "") - Number(b.zone === "") || compare(a.zone, b.zone) || compare(a.createdAt, b.createdAt) || compare(a.name, b.name));
}
