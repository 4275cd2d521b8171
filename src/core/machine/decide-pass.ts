import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, hostPaths, nodeStates, objects } from "../../api/names.ts";
import { type Change, describeChange } from "../config/change.ts";
import { irreconcilableBetween } from "../config/reconcilable.ts";
import { decideUpdate, donePlan, stayBackPlan } from "./decide-update.ts";
import {
  type ChangePlan,
  describeDeployment,
  describeDrift,
  disrupts,
  firstFive,
  isSystemChange,
} from "./describe-plan.ts";
import { withdrawnDrain } from "./drain-requests.ts";
import {
  type ImagePair,
  contentMismatch,
  describeTarget,
  desiredImageOf,
  pairOf,
  samePair,
  sameTarget,
} from "./image-target.ts";
import { describeProblems, fitToAccounts, judgeTarget } from "./judge-target.ts";
import type { MachineDocuments, RefusedTarget } from "./machine-record.ts";
import type { ObservedNode } from "./observed-node.ts";
import type { HoldReason, MachineView, NoteChanges, PassCase, PassMemory, PassPlan } from "./pass-plan.ts";
import { type NodePlan, driftOf, planNode } from "./plan-node.ts";
import { type Wanted, readConfig, readTarget } from "./read-config.ts";

/** Drift that returns this soon after a repair is only reported. */
export const healAgainMs = 60_000;
/** How long the operator may take to merge disruption policies before the machine reports it. */
export const policiesPatienceMs = 120_000;

/**
 * Decides what one pass of the daemon does next. The cases are evaluated in this order, and the first that applies is
 * the answer: the machine's recorded state, its boot, targets that it rolled back from, its target, and finally the
 * comparison of both. A case that only prepares, or requires more data, is followed by another decision on the updated
 * view.
 */
export function decidePass(view: MachineView, memory: PassMemory): PassPlan {
  return decideKnown(view) ?? decideBoot(view, memory) ?? decideRefusals(view) ?? decideTarget(view, memory);
}

/** The recorded state of the machine, and the state in its Node. */
function decideKnown(view: MachineView): PassPlan | undefined {
  const { adoption, documents, forced, prepared } = view;
  if (adoption?.verdict === "unknown" && !forced)
    return {
      case: "currentConfigMissing",
      message: `the machine's annotations name ${adoption.config}, which neither its disk nor the cluster holds; bring the MachineConfig back, or create ${hostPaths.force} on the machine to apply its target over what is there`,
    };
  if (adoption?.verdict === "adopted" && !prepared.has("adopt")) {
    const { previous, originals, from } = adoption;
    return { case: "adopt", previous, originals, from };
  }
  if (prepared.has("correctAnnotations")) return undefined;
  const isUnnamed = notesOf(view)[annotations.currentConfig] === undefined;
  return {
    case: "correctAnnotations",
    annotations: correctionsFor(view),
    startedWith:
      documents.previous?.proven === false && isUnnamed ? documents.previous.config.metadata.name : undefined,
  };
}

/** Annotations from the config server, and records on disk that are newer than an old backup. */
function correctionsFor(view: MachineView): NoteChanges {
  const has = notesOf(view);
  const { ledger, previous } = view.documents;
  const missing = Object.fromEntries(Object.entries(view.served ?? {}).filter(([key]) => has[key] === undefined));
  if (ledger !== undefined || previous === undefined) return missing;
  const { name } = previous.config.metadata;
  return {
    ...missing,
    ...(has[annotations.currentConfig] === name ? {} : { [annotations.currentConfig]: name }),
    [annotations.currentImage]: previous.pair?.image,
    [annotations.currentOSImage]: previous.pair?.image,
  };
}

/** Whether the machine has just booted, is shutting down, or must boot once more. */
function decideBoot(view: MachineView, memory: PassMemory): PassPlan | undefined {
  const { os, now, rebootPatienceSeconds: seconds, prepared } = view;
  const isOver = (since: number) => now - since >= seconds * 1000;
  if (memory.tidiedBoot !== os.bootId)
    return view.finaliseFailure === undefined
      ? { case: "observe", what: { read: "finaliseFailure" } }
      : tidyAfterBoot(view, view.finaliseFailure.text);

  const asked = memory.rebootAsked?.bootId === os.bootId ? memory.rebootAsked : undefined;
  if (asked !== undefined && !isOver(asked.at))
    return { case: "awaitReboot", message: "the machine is going down", seconds };
  if (asked !== undefined && !prepared.has("reportOverdueReboot"))
    return {
      case: "reportOverdueReboot",
      problem: `has not gone down within ${seconds} s of the request; the reboot is requested again`,
    };

  const because = restartReason(view.documents, os.bootId);
  if (because === undefined) return undefined;
  const since = memory.restartAwaitedSince ?? now;
  return { case: "awaitRestart", because, since, asksAgain: isOver(since), seconds };
}

/** The first pass of a boot. */
function tidyAfterBoot(view: MachineView, failure: string | undefined): PassCase<"tidyAfterBoot"> {
  const has = notesOf(view);
  const { ledger, previous } = view.documents;
  const read = previous === undefined ? undefined : readConfig(previous.config);
  return {
    case: "tidyAfterBoot",
    config: read?.verdict === "read" ? read.wanted.config : undefined,
    failure,
    isNewFailure: has[annotations.finaliseFailure] !== failure,
    hasRebooted:
      has[annotations.postConfigAction] === "Rebooting" && ledger?.rebootsAsked?.includes(view.os.bootId) !== true,
  };
}

/** Why the machine must boot once more, if applying its image's content requires it. */
function restartReason({ settled: record, ledger }: MachineDocuments, bootId: string): string | undefined {
  if (record?.bootId !== bootId) return undefined;
  if (record.result === "rebooting")
    return "running programs have to read the applied content: the machine boots once more";
  return record.result === "failed" && ledger?.failed !== undefined
    ? "the image's content could not be applied: the machine boots its previous system"
    : undefined;
}

/**
 * Targets that the machine rolled back from: the force file, or removing them from the MachineConfigNode, clears them.
 */
function decideRefusals({ documents, forced, prepared, refusalsNamed }: MachineView): PassPlan | undefined {
  const { refused } = documents;
  if (refused.length === 0) return undefined;
  if (forced) return { case: "forgetRefusals" };
  if (!refused.every(({ reported }) => reported === true)) return { case: "reportRefusals", refused };
  if (prepared.has("reportRefusals")) return undefined;
  if (refusalsNamed === undefined) return { case: "observe", what: { read: "refusals" } };
  return refusalsNamed ? undefined : { case: "forgetRefusals" };
}

/** The target of the machine, before any comparison. */
interface Aim {
  readonly desired: string;
  readonly machineConfig: MachineConfig;
  readonly pair: ImagePair | undefined;
  /** If the machine rolled back from the desired target, it keeps its current one. */
  readonly wentBack: RefusedTarget | undefined;
}

function decideTarget(view: MachineView, memory: PassMemory): PassPlan {
  const has = notesOf(view);
  const { previous, refused, ledger } = view.documents;
  const desired = has[annotations.desiredConfig] ?? "";
  if (desired === "") return { case: "noTarget", message: "no configuration was chosen for this machine yet" };
  const desiredImage = desiredImageOf(has);
  if (desiredImage.verdict === "refused") return holdPlan(view, desiredImage.reason, desiredImage.message);

  const asked = desiredImage.verdict === "image" ? desiredImage.pair : undefined;
  const wentBack = refused.find(
    ({ config, image, content }) =>
      config === desired && samePair(asked, content === undefined ? undefined : { image, content }),
  );
  // The machine keeps its current target until an administrator decides.
  const kept = wentBack === undefined ? undefined : previous;
  if (kept === undefined && view.desired === undefined)
    return { case: "observe", what: { read: "config", name: desired } };
  const machineConfig = kept === undefined ? view.desired?.config : kept.config;
  if (machineConfig === undefined) return { case: "targetAbsent", message: `${desired} does not exist` };
  const pair = kept === undefined ? asked : kept.pair;

  const hasTarget =
    ledger === undefined &&
    previous?.config.metadata.name === machineConfig.metadata.name &&
    samePair(previous.pair, pair);
  if (wentBack === undefined && !hasTarget && !view.prepared.has("noticeTarget"))
    return { case: "noticeTarget", target: desired, from: previous?.config.metadata.name };
  return decideComparison(view, memory, { desired, machineConfig, pair, wentBack });
}

/** The inputs of the comparison of the machine and its target. */
interface Comparison {
  readonly aim: Aim;
  readonly target: Wanted;
  readonly observed: ObservedNode;
}

function decideComparison(view: MachineView, memory: PassMemory, aim: Aim): PassPlan {
  const { previous } = view.documents;
  const read = readTarget(aim.machineConfig, aim.pair);
  if (read.verdict === "refused") return refusePlan(view, aim.desired, read.reason);
  const had = previous === undefined ? undefined : readTarget(previous.config, previous.pair);
  if (had?.verdict === "refused") return { case: "previousUnreadable", problem: had.reason };
  const { config } = read.wanted;
  if (view.compared === undefined)
    return {
      case: "observe",
      what: {
        read: "machine",
        previous: had?.wanted.config,
        target: config,
        inService: previous?.proven === true,
      },
    };

  // Skip SSH keys and passwords of accounts that the machine does not have.
  const { node } = view.compared;
  const comparison: Comparison = {
    aim,
    target: { machineConfig: aim.machineConfig, config: fitToAccounts(config, node.users) },
    observed: node.previous === undefined ? node : { ...node, previous: fitToAccounts(node.previous, node.users) },
  };
  return objectionTo(view, comparison) ?? decidePlan(view, memory, comparison);
}

/** Why the machine cannot take its target, found before anything is changed. */
function objectionTo(view: MachineView, { aim, target, observed }: Comparison): PassPlan | undefined {
  const { previous } = view.documents;
  const { machineConfig, pair } = aim;
  const found = irreconcilableBetween(previous?.config, machineConfig, view.storageOverrides);
  if (found.length > 0) {
    const reasons = found.map(({ field, reason, remedy }) => `${field}: ${reason}; ${remedy}`);
    return refusePlan(view, aim.desired, reasons.join("; "));
  }
  const facts = view.compared?.facts ?? { sshFolder: undefined, freeBytes: undefined };
  const problems = judgeTarget(observed, target.config, facts);
  if (problems.length > 0) return refusePlan(view, aim.desired, describeProblems(problems));
  // The booted image already declares its content.
  const held = observed.payload === "image" ? "full" : "os-only";
  return pair !== undefined && pair.image === view.os.booted.image && pair.content !== held
    ? holdPlan(view, "ImageContentMismatch", contentMismatch(pair, held))
    : undefined;
}

function decidePlan(view: MachineView, memory: PassMemory, comparison: Comparison): PassPlan {
  const { aim, target, observed } = comparison;
  const plan = planNode(
    observed,
    target.config,
    view.configuration?.status?.nodeDisruptionPolicyStatus?.clusterPolicies,
  );
  switch (plan.verdict) {
    case "inSync":
      return aim.wentBack === undefined
        ? donePlan(view, memory, target, view.documents)
        : stayBackPlan(view, target, aim.wentBack);
    case "bootFails":
      if (view.finaliseFailure === undefined) return { case: "observe", what: { read: "finaliseFailure" } };
      return decideGoingBack(view, target, "BootFailed", bootFailure(plan, target, view.finaliseFailure.text));
    case "bootUndoes":
      return {
        case: "reportUndone",
        message: `after ${plan.tried} reboots for ${describeTarget(target.config)}, ${firstFive(plan.changes.map(describeChange))} ${plan.changes.length === 1 ? "differs" : "differ"} from it again: each boot of the machine undoes what was written before it; the machine is not rebooted again for this target`,
      };
    case "settleFailed": {
      const where = plan.path === undefined ? "" : ` at ${plan.path}`;
      const message = `the machine could not be made equal to ${describeTarget(target.config)}${where}: ${plan.cause}`;
      return decideGoingBack(view, target, "SettleFailed", message);
    }
    case "unsettled":
      return decideDrift(view, memory, comparison, driftOf(observed)) ?? unappliedPlan(plan, target);
    case "change":
      return (
        decideDrift(view, memory, comparison, unaskedChanges(plan, observed)) ??
        decidePolicies(view, memory, observed) ??
        decideUpdate(view, memory, { plan, target, observed, wentBack: aim.wentBack })
      );
  }
}

function bootFailure(
  { tried, booted, wanted }: NodePlan & { readonly verdict: "bootFails" },
  target: Wanted,
  failure: string | undefined,
): string {
  const cause = failure === undefined ? "" : `: ${failure}`;
  return `after ${tried} reboots for ${describeTarget(target.config)} the machine still boots ${describeDeployment(booted, wanted)}${cause}`;
}

/** Another boot would not help: the machine rolls back, or stays as it is if there is nothing to roll back to. */
function decideGoingBack(
  { documents: { previous, refused } }: MachineView,
  { config }: Wanted,
  reason: "BootFailed" | "SettleFailed",
  message: string,
): PassPlan {
  const pair = pairOf(config);
  const { name, osImage: image } = config;
  if (previous === undefined || (previous.config.metadata.name === name && samePair(previous.pair, pair)))
    return {
      case: "nothingToGoBackTo",
      reason,
      message: `${message}; there is nothing to go back to: look at the machine, then choose another configuration or create ${hostPaths.force} on it`,
    };
  return {
    case: "goBack",
    reason,
    message,
    to: previous.config.metadata.name,
    entry: {
      config: name,
      image,
      ...(pair === undefined ? {} : { content: pair.content }),
      reason: message,
      cause: reason,
    },
    others: refused.filter((one) => one.config !== name || one.image !== image),
  };
}

/**
 * The machine drifted from its last verified state, and no force file allows overwriting that. Nobody granted it a drain or a
 * reboot for this: its pool may be paused, or have as many machines away as it may.
 */
function decideDrift(
  view: MachineView,
  memory: PassMemory,
  { target, observed }: Comparison,
  changes: readonly Change[],
): PassPlan | undefined {
  if (observed.previous === undefined || !sameTarget(observed.previous, target.config) || observed.forced)
    return undefined;
  if (changes.length === 0) return undefined;
  const drift = changes.map(describeDrift);
  const has = notesOf(view);
  const { healedDrift } = memory;
  // Applying content changes nothing that only a boot decides, and only the pool grants a boot.
  const mayHeal =
    has[annotations.driftPolicy] === "settle" && target.config.imageContent === "full" && !changes.some(isSystemChange);
  if (mayHeal && (healedDrift?.drift !== drift.join() || view.now - healedDrift.at > healAgainMs))
    return {
      case: "healDrift",
      drift: drift.join(),
      message: `config drift: ${drift.slice(0, 5).join(", ")}; the machine is settled, as its drift policy says`,
      target,
      observed,
    };
  const message = `config drift: ${firstFive(drift)} differ from the applied configuration; undo the change, or create ${hostPaths.force} on the machine to apply the configuration again`;
  const { previous } = view.documents;
  const read = previous === undefined ? undefined : readTarget(previous.config, previous.pair);
  return {
    case: "reportDrift",
    event: memory.resumedBoot === view.os.bootId ? "ConfigDriftDetected" : "OnDiskStateValidationFailed",
    message,
    // Everything waits for an administrator: withdraw a requested drain.
    annotations: {
      [annotations.state]: nodeStates.degraded,
      [annotations.reason]: message,
      ...withdrawnDrain(has, previous?.config.metadata.name ?? ""),
    },
    watch: read?.verdict === "read" ? read.wanted.config : undefined,
  };
}

/**
 * Differences that the daemon must not repair on a machine that has its target: drift, and every difference whose repair would
 * disrupt the machine, such as the SSH keys of an account that somebody removed.
 */
function unaskedChanges(plan: ChangePlan, observed: ObservedNode): readonly Change[] {
  const drift = driftOf(observed);
  return drift.length > 0 || !observed.inService || observed.ledger !== undefined || !disrupts(plan)
    ? drift
    : plan.changes;
}

/** The machine runs its image but differs from the image's content. */
function unappliedPlan(
  { changes, path, cause }: NodePlan & { readonly verdict: "unsettled" },
  target: Wanted,
): PassPlan {
  const problem =
    cause === ""
      ? `${firstFive(changes.map(describeChange))} differ from what the image brings`
      : `${path === undefined ? "" : `${path}: `}${cause}`;
  return {
    case: "reportUnapplied",
    message: `the machine is not what ${describeTarget(target.config)} is to make of it: ${problem}; look at the systemd journal of ${hostPaths.settleUnit} on the machine, or create ${hostPaths.force} on it to have it booted and settled again`,
  };
}

/** An update that has not begun waits for policies that the operator has not merged yet. */
function decidePolicies(
  { configuration, now }: MachineView,
  { policiesAwaitedSince }: PassMemory,
  { ledger }: ObservedNode,
): PassPlan | undefined {
  const merged = configuration?.status?.observedGeneration;
  if (merged === undefined || merged === configuration?.metadata.generation || ledger !== undefined) return undefined;
  const since = policiesAwaitedSince ?? now;
  return {
    case: "awaitPolicies",
    message: `MachineConfiguration/${objects.machineConfiguration} has changed and the operator has not merged its disruption policies yet; nothing is done before it has`,
    since,
    isFirst: policiesAwaitedSince === undefined,
    isOverdue: now - since > policiesPatienceMs,
  };
}

/** A contradictory target is not applied: withdraws a requested drain. */
export const holdPlan = (view: MachineView, reason: HoldReason, message: string): PassCase<"hold"> => ({
  case: "hold",
  reason,
  message,
  annotations: withdrawnDrain(notesOf(view), view.documents.previous?.config.metadata.name ?? ""),
});

/** The machine cannot take its target. Nothing was changed: withdraws a requested drain. */
function refusePlan(view: MachineView, desired: string, reason: string): PassCase<"refuse"> {
  const message = `${desired} cannot be applied: ${reason}`;
  return {
    case: "refuse",
    message,
    annotations: {
      [annotations.state]: nodeStates.unreconcilable,
      [annotations.reason]: message,
      ...withdrawnDrain(notesOf(view), desired),
    },
  };
}

const notesOf = ({ node }: MachineView): Readonly<Record<string, string>> => node.metadata.annotations ?? {};
