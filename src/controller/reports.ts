/**
 * Everything that the controllers report, as a function for each happening: its lines in books, its Events and all of their
 * texts. Callers give the facts, and pass the result to `report`.
 */
import type { MachineSet } from "../api/foreign/openshift.ts";
import type { CertificateSigningRequest, Node } from "../api/foreign/kubernetes.ts";
import type { ControllerConfig } from "../api/kinds/controller-config.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import type { OSImageStream } from "../api/kinds/os-image-stream.ts";
import type { PinnedImageSet } from "../api/kinds/pinned-image-set.ts";
import type { EventSubject, ReportedLine, ReportedNotice } from "../api/books/reports.ts";
import type { JournalEntryIn } from "../api/books/report-table.ts";
import { annotations, labels, machineConfigNodeConditions as types, namespace, objects } from "../api/names.ts";
import { type PhaseReport, childReason } from "../core/books/update-conditions.ts";
import type { CsrReason } from "../core/join/judge-csr.ts";
import { parseDrainRequest } from "../core/machine/drain-requests.ts";
import { drainProgressReason } from "../core/pool/decide-drain.ts";
import type { Uncordoned } from "../core/pool/drain-changes.ts";
import type { DrainReport } from "../core/pool/drain-decision.ts";
import { drainReasons } from "../core/pool/drain-step.ts";
import { exclusionRemedy } from "../core/pool/rollout-holds.ts";
import { listText } from "../core/text/list-text.ts";
import { type Happening, noticed } from "../kube/report.ts";

// The process

const life = (identity: string) => ({ book: "cluster", run: identity }) as const;

export const controllerStarted = (identity: string, version: string): Happening => ({
  ...life(identity),
  chapter: "Controller",
  path: "Start",
  mark: "begin",
  reason: "Started",
  message: `${identity}, version ${version}`,
  data: { toVersion: version },
});

export const leadTaken = (identity: string): Happening => ({
  ...life(identity),
  mark: "begin",
  reason: "Leading",
  message: `${identity} leads`,
});

export const leadLost = (identity: string): Happening => ({
  ...life(identity),
  mark: "end",
  reason: "LeadLost",
  message: `${identity} does not lead any more`,
});

/** A part of the process: a controller, or the threads of admission. */
interface Child {
  readonly identity: string;
  readonly name: string;
}
const inChild = ({ identity, name }: Child) => ({ ...life(identity), path: `Child/${name}` }) as const;

/** @param isFirst it worked before, for all that it sees to. */
export const childFailed = (child: Child, message: string, isFirst: boolean): Happening => ({
  ...inChild(child),
  mark: isFirst ? "begin" : "retry",
  reason: "ChildFailing",
  message,
});

export const childRecovered = (child: Child, message: string): Happening => ({
  ...inChild(child),
  chapter: "Controller",
  mark: "end",
  reason: "Recovered",
  message,
});

// Rendering

export const poolSelectsAll = (pool: MachineConfigPool, objects: "machineconfigs" | "nodes"): Happening =>
  noticed(
    pool,
    "SelectingAll",
    `This machineconfigpool is selecting all ${objects}. A non-empty selector is required.`,
  );

export const configGenerated = (
  pool: MachineConfigPool,
  rendered: string,
  { version, generatorVersion }: { readonly version: string; readonly generatorVersion: string },
): Happening =>
  noticed(
    pool,
    "RenderedConfigGenerated",
    `${rendered} successfully generated (release version: ${version}, controller version: ${generatorVersion})`,
  );

const inRender = (pool: string, run: string) => ({ book: `pool/${pool}`, run, mark: "end" }) as const;

/** A pool has its first target. @param members how many MachineConfigs it was merged from. */
export const firstTargetRendered = (pool: string, to: string, members: number): Happening => ({
  ...inRender(pool, to),
  reason: "RenderedConfigGenerated",
  message: `rendered from ${members} MachineConfigs`,
  data: { to, members },
});

/** A change of a pool's target. */
export interface TargetChange {
  readonly from: string;
  readonly to: string;
  /** The difference of both, for people. */
  readonly changes: string;
  readonly members: number;
}

/** @param isKnown the pool's book tells of it already. */
export const targetChanged = (
  pool: MachineConfigPool,
  { from, to, changes, members }: TargetChange,
  isKnown: boolean,
): Happening => {
  const message = `${to} in place of ${from}: ${changes}`;
  return isKnown
    ? noticed(pool, "RenderedConfigChanged", message)
    : {
        about: pool,
        ...inRender(pool.metadata.name, to),
        reason: "RenderedConfigChanged",
        message,
        data: { from, to, members },
      };
};

export const renderRefused = (
  pool: string,
  reason: "RenderRefused" | "RenderedNameTaken" | "RenderedConfigNotKept",
  message: string,
): Happening => ({ book: `pool/${pool}`, mark: "begin", reason, message });

export const renderRecovered = (pool: string): Happening => ({
  book: `pool/${pool}`,
  chapter: "Render",
  path: "Refused",
  mark: "end",
  reason: "Recovered",
  message: "the pool can be rendered again",
});

export const registriesRefused = (pool: string, message: string): Happening => ({
  book: `pool/${pool}`,
  mark: "begin",
  reason: "RegistriesRefused",
  message,
});

export const registriesRecovered = (pool: string): Happening => ({
  book: `pool/${pool}`,
  chapter: "Render",
  path: "Registries",
  mark: "end",
  reason: "Recovered",
  message: "the registries of the pool's machines are written again",
});

/** Unused configurations were removed. @param kept how many others are still used, and how many are kept to go back to. */
export const configsRemoved = (
  pool: MachineConfigPool,
  removed: readonly string[],
  kept: { readonly used: number; readonly recent: number },
): Happening =>
  noticed(
    pool,
    "RenderedConfigsRemoved",
    `Removed ${removed.length} rendered ${removed.length === 1 ? "config" : "configs"} that nothing uses: ${listText(removed, 5)}; kept: ${kept.used} in use, ${kept.recent} for going back`,
  );

/** @param users of the configuration, which somebody deleted. */
export const configRestored = (pool: MachineConfigPool, config: string, users: readonly string[]): Happening =>
  noticed(
    pool,
    "RenderedConfigRestored",
    `${config} was deleted while it is used by ${users.slice(0, 5).join(", ")}: it is made again`,
  );

export const poolAnnotationIgnored = (pool: MachineConfigPool, problems: string): Happening =>
  noticed(pool, "PoolAnnotationIgnored", problems);

// Settings, streams and images

export const settingsApplied = (object: EventSubject, configs: readonly string[]): ReportedNotice =>
  noticed(object, "SettingsApplied", `written as ${configs.join(", ")}`);

export const settingsRefused = (object: EventSubject, why: string): ReportedNotice =>
  noticed(object, "SettingsRefused", why);

/** @param notice what is wrong with an object about registries. */
export const registriesNoticed = (
  object: EventSubject,
  notice: "RegistriesRefused" | "RegistriesNotAsWritten" | "ReleaseAtRisk",
  message: string,
): Happening => noticed(object, notice, message);

export const pinnedImagesUnmatched = (set: PinnedImageSet): Happening =>
  noticed(
    set,
    "PinnedImageSetWithoutPool",
    `No pool selects metadata.labels of PinnedImageSet ${set.metadata.name}: no machine fetches its images; give it a label that the machineConfigSelector of a pool selects, such as ${labels.role}: worker`,
  );

export const streamsNotRead = (about: ControllerConfig | OSImageStream, problems: string): Happening =>
  noticed(about, "OSImageStreamsNotRead", problems);

export const bootImageUpdated = (set: MachineSet, from: string, to: string): Happening =>
  noticed(set, "BootImageUpdated", `new machines start from ${to}, and no longer from ${from}`);

// Joining

/** @param verdict on a request for a certificate. */
export const requestJudged = (
  request: CertificateSigningRequest,
  verdict: "Approved" | "Not approved" | "Denied",
  reason: CsrReason,
  because: string,
): Happening => ({
  ...noticed(request, reason, `${verdict}: ${because}`),
  type: verdict === "Approved" ? "Normal" : "Warning",
});

export const machineLabelled = (node: Node, notice: "NodeJoined" | "NodeReturned", message: string): Happening =>
  noticed(node, notice, message);

export const nameReleased = (pool: MachineConfigPool, name: string): Happening =>
  noticed(
    pool,
    "NameReleased",
    `The name ${name} is free: its Node or its NodeBinding was deleted, and another machine of any pool may join by it`,
  );

/** @param count of entries for which the ConfigMap has no room. */
export const refusalsLeftOut = (count: number): Happening =>
  noticed(
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: objects.refusedCertificates, namespace } },
    "RefusalsLeftOut",
    `${count} entries about former machines have no room here: where another approver lets all nodes renew, these machines renew their certificates until then. Let the suite alone approve renewals of its nodes (docs/joining.md), or deny the machines access`,
  );

// Roll-outs

const inRollout = (pool: string, target: string) => ({ book: `pool/${pool}`, run: target }) as const;

export const poolDeleted = (pool: string): Happening => ({
  book: `pool/${pool}`,
  mark: "end",
  reason: "PoolDeleted",
  message: "the pool was deleted",
});

/** A line that a decision about the pool's book made. */
export const poolTurned = (pool: string, line: JournalEntryIn<"pool">): ReportedLine => ({
  about: undefined,
  book: `pool/${pool}`,
  ...line,
});

export const updateBegun = (pool: MachineConfigPool, target: string): Happening =>
  noticed(pool, "Updating", `Pool ${pool.metadata.name} is updating to MachineConfig ${target}`);

export const updateCompleted = (pool: MachineConfigPool, target: string): Happening =>
  noticed(pool, "Completed", `Pool ${pool.metadata.name} has completed update to MachineConfig ${target}`);

/** A machine in the roll-out of its pool. */
interface MachineInRollout {
  readonly pool: string;
  readonly target: string;
  readonly name: string;
}
const ofMachine = ({ pool, target, name }: MachineInRollout) =>
  ({
    ...inRollout(pool, target),
    path: `Node/${name}`,
    data: { chapter: `node/${name} Update ${target}` },
  }) as const;

export const machineUpdated = (machine: MachineInRollout): Happening => ({
  ...ofMachine(machine),
  mark: "end",
  reason: "NodeUpdated",
  message: `${machine.name} has ${machine.target}`,
});

/** @param says what the machine says of it. */
export const machineFailed = (machine: MachineInRollout, says: string): Happening => ({
  ...ofMachine(machine),
  mark: "fail",
  reason: "NodeFailed",
  message: `${machine.name} cannot go on without help: ${says}`,
});

const inCanary = (pool: MachineConfigPool, target: string) =>
  ({ about: pool, ...inRollout(pool.metadata.name, target) }) as const;

/** @param machines that go first. */
export const canaryBegun = (pool: MachineConfigPool, target: string, machines: readonly string[]): Happening => ({
  ...inCanary(pool, target),
  mark: "begin",
  reason: "Canary",
  message: `${machines.join(", ")} got ${target} before all others`,
});

export const canaryFailed = (pool: MachineConfigPool, target: string, machines: readonly string[]): Happening => ({
  ...inCanary(pool, target),
  mark: "fail",
  reason: "ProofFailed",
  message: `${machines.join(", ")} went first with ${target} and failed: the others keep their configuration`,
});

export const canaryProven = (pool: MachineConfigPool, target: string, machines: readonly string[]): Happening => ({
  ...inCanary(pool, target),
  mark: "end",
  reason: "Proven",
  message: `${machines.join(", ")} stayed healthy with ${target}: the others follow`,
});

/** A machine went back from its target, and it alone gets it no more. */
export const machineExcluded = (pool: MachineConfigPool, target: string, node: string): Happening => ({
  about: pool,
  ...inRollout(pool.metadata.name, target),
  path: `Excluded/${node}`,
  mark: "note",
  reason: "MachineExcluded",
  message: `${node} went back from ${target}: it alone is excluded, and the other machines get the target; ${exclusionRemedy}`,
});

/** @param witnesses machines that went back from the target. */
export const targetQuarantined = (
  pool: MachineConfigPool,
  target: string,
  node: string,
  witnesses: readonly string[],
): Happening => ({
  about: pool,
  ...inRollout(pool.metadata.name, target),
  chapter: "Rollout",
  path: `Blocked/${node}`,
  mark: "note",
  reason: "TargetQuarantined",
  message: `${listText(witnesses, 5)} went back from ${target}: no other healthy machine gets it until another target is rendered or the annotation ${annotations.quarantined} is removed`,
});

export const nodeInSeveralPools = (node: Node, pools: readonly string[]): Happening => {
  const { name } = node.metadata;
  return noticed(
    node,
    "SeveralPools",
    `the pools ${pools.join(" and ")} select ${name}, so that it belongs to none of them and is not updated; take a label away that only one of them selects by`,
  );
};

/** Two sources about a machine disagree. */
export const stateMismatched = ({ pool, target, name }: MachineInRollout, difference: string): Happening => ({
  ...inRollout(pool, target),
  mark: "note",
  reason: "StateMismatch",
  message: `${name}: ${difference}`,
  data: { node: name },
});

/** @param given names of the machines. */
export const machinesTargeted = (pool: MachineConfigPool, target: string, given: readonly string[]): Happening =>
  noticed(
    pool,
    "SetDesiredConfig",
    given.length === 1
      ? `Targeted node ${given[0]} to MachineConfig ${target}`
      : `Set target for ${given.length} nodes to MachineConfig ${target}: ${listText(given, 5)}`,
  );

/** @param nodes that the operator runs on. */
export const machinesDeferred = (pool: MachineConfigPool, nodes: readonly string[]): Happening =>
  noticed(pool, "DeferringOperatorNodeUpdate", `The operator runs on ${nodes.join(", ")}, which is updated last`);

const inUpdate = (node: string, run: string) => ({ book: `node/${node}`, run }) as const;

/** @param taken the target that the machine had been given, and did not need. */
export const targetWithdrawn = (node: string, taken: string, target: string): Happening => ({
  ...inUpdate(node, taken),
  mark: "end",
  outcome: "Superseded",
  reason: "Superseded",
  message: `${taken} was taken back, and ${node} stays on ${target}`,
});

/** @param inImage the words about the image that it gets, if it gets another one. */
export const targetGiven = (
  node: string,
  target: string,
  { inImage, data }: { readonly inImage: string; readonly data: Readonly<Record<string, string>> },
): Happening => ({
  ...inUpdate(node, target),
  mark: "begin",
  reason: "TargetSet",
  message: `${node} gets ${target}${inImage}`,
  data,
});

export const machineNotWritten = (node: Node): Happening =>
  noticed(
    node,
    "MachineNotWritten",
    `The API server refuses what is written of ${node.metadata.name}, so that it gets nothing new: its objects are too large, or name what cannot exist, or change faster than they are written; the controller's log has the answer`,
  );

// Drains

/** In the chapter of a drain's request; one of another form names the run by its whole text. */
const inDrain = (node: string, request: string) => inUpdate(node, parseDrainRequest(request)?.config ?? request);

const inDrainOf = ({ metadata }: Node) =>
  inDrain(metadata.name, metadata.annotations?.[annotations.desiredDrain] ?? "");

/** @param forecast what the drain will meet, before the machine is cordoned. */
export const drainForecast = (
  node: Node,
  forecast: { readonly type?: "Normal" | "Warning"; readonly message: string },
): Happening => ({ about: node, notice: "DrainForecast", ...forecast });

/** @param again it was put back into service while its drain was needed. */
export const nodeCordoned = (node: Node, again: boolean): Happening => {
  const { name } = node.metadata;
  return {
    about: node,
    ...inDrainOf(node),
    mark: "end",
    reason: again ? "CordonedAgain" : "Cordoned",
    message: again
      ? `Cordoned ${name} again: it had been put back into service while its drain was still needed`
      : `Cordoned ${name} to apply update`,
  };
};

/** Another client cordoned the node. */
export const cordonFound = (node: Node): Happening => ({
  about: undefined,
  ...inDrainOf(node),
  mark: "end",
  reason: "Cordoned",
  message: "it was already cordoned",
});

/** Pods begin to leave. @param foreseen what they will meet, as far as that could be foreseen. */
export const drainBegun = (
  node: Node,
  { pods, foreseen }: { readonly pods: number | undefined; readonly foreseen: string | undefined },
): Happening => ({
  ...inDrainOf(node),
  mark: "begin",
  reason: "Draining",
  message: `${pods === undefined ? "pods have" : pods === 1 ? "1 pod has" : `${pods} pods have`} to leave${foreseen === undefined ? "" : `; foreseen: ${foreseen}`}`,
  ...(pods === undefined ? {} : { data: { pods } }),
});

/** A drain is blocked or late, or deletes a pod against its protections. */
export const drainHeld = (
  node: Node,
  { reason, message }: DrainReport | { readonly reason: "DrainForced"; readonly message: string },
): Happening => ({
  about: node,
  ...inDrainOf(node),
  mark: "note",
  reason,
  message,
});

/** A happening, and the same as conditions of the MachineConfigNode. */
export interface DrainHappening {
  readonly lines: Happening;
  readonly phases: readonly PhaseReport[];
}

const cordonedPhase = (node: string): PhaseReport => ({
  type: types.cordoned,
  status: "True",
  reason: childReason(types.updateExecuted, types.cordoned),
  message: `${node} takes no new pods`,
});

/** Pods leave, or are held: conditions alone, because the book has what is worth a line already. */
export const drainProgressed = (
  node: string,
  { reason, message }: { readonly reason: string; readonly message: string },
): readonly PhaseReport[] => [cordonedPhase(node), { type: types.drained, status: "Unknown", reason, message }];

/** A drain was given up for now. */
export const drainGivenUp = (node: Node, request: string, message: string): DrainHappening => {
  const notNow = { status: "False", reason: drainReasons.skipped } as const;
  return {
    lines: {
      about: node,
      ...inDrain(node.metadata.name, request),
      mark: "end",
      outcome: "Skipped",
      reason: drainReasons.skipped,
      message,
    },
    phases: [
      { type: types.cordoned, ...notNow, message: "the drain was given up for now" },
      { type: types.drained, ...notNow, message },
    ],
  };
};

export const nodeDrained = (node: string, request: string): DrainHappening => {
  const message = "all pods have left";
  return {
    lines: { ...inDrain(node, request), mark: "end", reason: "Drained", message },
    phases: [cordonedPhase(node), { type: types.drained, status: "True", reason: drainProgressReason, message }],
  };
};

export const nodeUncordoned = (node: Node, uncordoned: Uncordoned): DrainHappening => {
  const { request, remedy, wasCordoned } = uncordoned;
  const how = wasCordoned ? "a cordon that is not ours stays" : "in service as it was";
  const message = `last: ${remedy ? "uncordoned" : how} (${request})`;
  return {
    lines: cordonEnded(node, uncordoned, how),
    phases: [{ type: types.uncordoned, status: "False", reason: "Done", message }],
  };
};

const cordonEnded = (node: Node, { request, remedy, wasCordoned }: Uncordoned, how: string): Happening => {
  const drain = inDrain(node.metadata.name, request);
  if (remedy)
    return {
      about: node,
      ...drain,
      mark: "end",
      reason: "Uncordoned",
      message: `Update completed for ${node.metadata.name}: it is back in service`,
    };
  return wasCordoned
    ? { ...drain, mark: "end", reason: "CordonStays", message: how }
    : {
        ...drain,
        chapter: "Update",
        path: "Complete/Uncordoned",
        mark: "skip",
        outcome: "NotRequired",
        reason: "NotRequired",
        message: how,
      };
};
