import { pushAll } from "../../api/schema/push-all.ts";
import type { ClusterPolicies } from "../../api/kinds/machine-configuration.ts";
import { type Because, type Change, type Consequence, describeConsequence, sameConsequence } from "../config/change.ts";
import {
  type EffectivePolicies,
  type PolicyContext,
  consequencesOf,
  policiesAsk,
  takesAbsentUnit,
} from "../config/disruption-policy.ts";
import { compareNodeConfigs, type NodeConfig } from "../config/node-config.ts";
import type { Debt, ObservedNode } from "./observed-node.ts";

/** A debt of the ledger, or a consequence of a change, that the machine does not need. */
export interface DroppedDebt {
  readonly consequence: Consequence;
  /** A clause that completes "… is dropped: …". */
  readonly why: string;
}

export interface Debts {
  /** The ledger's debts that are still wanted, and what present policies ask for in place of those that are not. */
  readonly owed: readonly Because[];
  readonly dropped: readonly DroppedDebt[];
  /** Reasons are unknown, and one of the debts was dropped: what the target asks for has to be found again. */
  readonly isStale: boolean;
}

type Policies = ClusterPolicies | EffectivePolicies;

/** These take effect with the system of the next boot: the running one shows whether it is still needed. */
const ofSystem: ReadonlySet<Change["kind"]> = new Set(["osImage", "kernelArguments", "extensions", "kernelType"]);

/** A change by what it is about. */
export function changeSubjectOf(change: Change): string {
  switch (change.kind) {
    case "file":
      return `file ${change.path}`;
    case "unit":
      return `unit ${change.name}`;
    case "sshKeys":
    case "password":
      return `${change.kind} ${change.user}`;
    default:
      return change.kind;
  }
}

/** The debts that a ledger records: each consequence with the changes that a policy can be asked about again. */
export const debtsToRecord = (because: readonly Because[]): readonly Debt[] =>
  because.flatMap(({ consequence, changes }) =>
    consequence.kind === "none" ? [] : [{ consequence, changes: changes.filter(({ kind }) => !ofSystem.has(kind)) }],
  );

/**
 * The debts of an interrupted update that still follow from what is wanted: present policies are asked about the
 * changes that caused each debt. A reboot has paid them all: services start from the files that they find. A reboot for
 * another system, or for the force file, is not among them: the plan finds that again as long as it is needed.
 *
 * @param target name of the configuration that the machine gets now.
 * @param context what policies need to know of the present update.
 * @param paid what was done already for the target.
 */
export function unpaidDebts(
  { ledger, bootId }: Pick<ObservedNode, "ledger" | "bootId">,
  target: string,
  policies: Policies,
  { context, paid }: { readonly context: PolicyContext; readonly paid: readonly Consequence[] },
): Debts {
  if (ledger === undefined || ledger.bootId !== bootId) return { owed: [], dropped: [], isStale: false };
  const interrupted = `an update to ${ledger.target} was interrupted before this was done`;
  const owed: Because[] = [];
  const dropped: DroppedDebt[] = [];
  let isStale = false;
  for (const consequence of ledger.owes) {
    const causes = ledger.debts?.find((debt) => sameConsequence(debt.consequence, consequence))?.changes;
    if (causes === undefined) {
      // Recorded by a daemon that did not record reasons.
      if (policiesAsk(policies, consequence)) owed.push({ consequence, changes: [], why: interrupted });
      else {
        dropped.push({ consequence, why: "no disruption policy asks for it" });
        isStale = true;
      }
      continue;
    }
    // Without the texts every policy asks for the most that it can ask for.
    const kept = consequencesOf(causes, policies).because.find((one) => sameConsequence(one.consequence, consequence));
    if (kept !== undefined)
      owed.push({ ...kept, why: ledger.target === target ? kept.why : `${interrupted}: ${kept.why}` });
    else {
      dropped.push({
        consequence,
        why:
          causes.length === 0
            ? "nothing that differs asks for it any more"
            : "no disruption policy asks for it any more",
      });
      const instead = consequencesOf(causes, policies, context).because;
      pushAll(
        owed,
        instead.filter((one) => !paid.some((done) => sameConsequence(done, one.consequence))),
      );
    }
  }
  return { owed, dropped, isStale };
}

/**
 * Separates what the machine needs from reloads and restarts of units that it does not have, where every change that
 * asks for one only takes back what an unfinished update wrote: no such unit has read that.
 */
export function withoutMissingUnits(
  because: readonly Because[],
  node: Pick<ObservedNode, "ledger" | "previous" | "enablement">,
  target: NodeConfig,
): { readonly because: readonly Because[]; readonly dropped: readonly DroppedDebt[] } {
  const { ledger, previous } = node;
  if (ledger === undefined || previous === undefined) return { because, dropped: [] };
  const isMissing = (consequence: Consequence): boolean => {
    if (consequence.kind !== "reload" && consequence.kind !== "restart") return false;
    const is = node.enablement.get(consequence.unit);
    return is === "masked" || (is === "absent" && !takesAbsentUnit(consequence.unit));
  };
  if (!because.some(({ consequence }) => isMissing(consequence))) return { because, dropped: [] };
  const wanted = new Set(compareNodeConfigs(previous, target).map(changeSubjectOf));
  const isNeeded = ({ consequence, changes }: Because) =>
    !isMissing(consequence) || changes.some((change) => wanted.has(changeSubjectOf(change)));
  return {
    because: because.filter(isNeeded),
    dropped: because
      .filter((one) => !isNeeded(one))
      .map(({ consequence }) => ({
        consequence,
        why: "the machine has no such unit that could have read what is taken back",
      })),
  };
}

/** Dropped debts that nothing else asks for, as one sentence each. */
export const describeDropped = (dropped: readonly DroppedDebt[]): readonly string[] =>
  dropped.map(({ consequence, why }) => `${describeConsequence(consequence)} is not owed any more: ${why}`);
