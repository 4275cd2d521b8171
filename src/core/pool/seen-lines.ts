import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import { annotations, machineConfigNodeConditions as types, nodeStates } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { JournalEntryIn } from "../../api/books/report-table.ts";
import { isReady, phaseOf } from "../books/phase.ts";

/** The last observed state of a node: kept small, because a cluster may have thousands of nodes. */
export interface NodeSeen {
  readonly uid: string;
  readonly pool: string;
  readonly desired: string;
  readonly current: string;
  readonly isDone: boolean;
  readonly isLost: boolean;
  /** Condition → status, for conditions that represent a section. */
  readonly statuses: Readonly<Record<string, string>>;
}

/** A line derived from objects, and the time of the change in milliseconds since the epoch. */
export interface SeenLine {
  readonly line: JournalEntryIn<"node">;
  readonly at: number;
}

export interface NodeLines {
  /** `undefined`: the node was deleted. */
  readonly seen: NodeSeen | undefined;
  readonly lines: readonly SeenLine[];
  /** When to check again without a change, in milliseconds. */
  readonly reconcileAfterMs?: number;
}

/** A node counts as lost if its kubelet reports nothing for longer than this without an announced reboot. */
export const lostAfterMs = 5 * 60_000;

type Reason<P extends keyof typeof updates> = (typeof updates)[P];
/** Condition → the section that it represents, with the reasons of its start and end. */
const updates = {
  [types.updatePrepared]: { path: "Prepared", begin: undefined, end: "Planned" },
  [types.imagePulledFromRegistry]: { path: "Executed/ImagePulled", begin: "Pulling", end: "Pulled" },
  [types.cordoned]: { path: "Executed/Cordoned", begin: undefined, end: "Cordoned" },
  [types.drained]: { path: "Executed/Drained", begin: "Draining", end: "Drained" },
  [types.appliedOSImage]: { path: "Executed/OS", begin: "Staging", end: "Staged" },
  [types.appliedFiles]: { path: "Executed/Files", begin: "Writing", end: "Written" },
  [types.rebootedNode]: { path: "PostAction/Rebooted", begin: "RebootRequested", end: "Rebooted" },
} as const;
const speaking = Object.keys(updates) as readonly (keyof typeof updates)[];

/**
 * Derives lines from the objects of a node: it appeared, disappeared, changed pools, its kubelet stopped reporting, or
 * its update advanced. The books use these lines where no writer reported the same first-hand.
 *
 * @param before the last observed state; `undefined`: first observation.
 * @param node `undefined`: deleted.
 * @param pool name of its pool; empty: it is in none.
 * @param now milliseconds since the epoch.
 * @param since when the observation began, in milliseconds since the epoch; older changes are ignored.
 */
export function linesFromNode(
  before: NodeSeen | undefined,
  node: Node | undefined,
  machineConfigNode: MachineConfigNode | undefined,
  pool: string,
  { now, since }: { readonly now: number; readonly since: number },
): NodeLines {
  if (node === undefined || node.metadata.deletionTimestamp !== undefined)
    return { seen: undefined, lines: before === undefined ? [] : [{ line: deletedLine(before.uid), at: now }] };
  const is = stateOf(node, machineConfigNode, now);
  const lines = [
    ...joinLines(before, node, pool, is, since),
    ...lostLines(before, is),
    ...(before === undefined ? [] : updateLines(before, machineConfigNode, is)),
  ].map(({ line, at = now }): SeenLine => ({ line, at: Number.isNaN(at) ? now : at }));
  const { uid, desired, isDone, isSilent, isLost, statuses } = is;
  const seen: NodeSeen = {
    uid,
    pool,
    desired,
    current: isDone || before === undefined ? is.current : before.current,
    isDone,
    isLost: isSilent && (isLost || before?.isLost === true),
    statuses,
  };
  return {
    seen,
    lines,
    ...(isSilent && !isLost ? { reconcileAfterMs: Math.max(1000, is.silentSince + lostAfterMs - now) } : {}),
  };
}

const boundary = { level: "boundary" } as const;

/** A line, and the time of the change in milliseconds since the epoch; absent: now. */
interface Noted {
  readonly line: JournalEntryIn<"node">;
  readonly at?: number;
}

/** What a node and its MachineConfigNode say now. */
interface NodeState {
  readonly uid: string;
  readonly desired: string;
  readonly current: string;
  readonly isDone: boolean;
  /** Its kubelet does not report, and no reboot was announced. */
  readonly isSilent: boolean;
  /** The kubelet has not reported for so long that the node counts as lost. */
  readonly isLost: boolean;
  /** Last transition of the kubelet's readiness; NaN: unknown. */
  readonly silentSince: number;
  readonly statuses: Readonly<Record<string, string>>;
}

function stateOf(node: Node, machineConfigNode: MachineConfigNode | undefined, now: number): NodeState {
  const has = node.metadata.annotations ?? {};
  const desired = has[annotations.desiredConfig] ?? "";
  const current = has[annotations.currentConfig] ?? "";
  const ready = conditionOf(
    node.status?.conditions as { type: string; lastTransitionTime?: string }[] | undefined,
    "Ready",
  );
  const silentSince = Date.parse(ready?.lastTransitionTime ?? node.metadata.creationTimestamp ?? "");
  const isSilent = phaseOf(node, machineConfigNode) === "Lost" && !isReady(node);
  const conditions = machineConfigNode?.status?.conditions;
  return {
    uid: node.metadata.uid ?? "",
    desired,
    current,
    isDone: current !== "" && current === desired && has[annotations.state] === nodeStates.done,
    isSilent,
    isLost: isSilent && now - silentSince >= lostAfterMs,
    silentSince,
    statuses: Object.fromEntries(speaking.map((type) => [type, conditionOf(conditions, type)?.status ?? "False"])),
  };
}

const deletedLine = (uid: string): JournalEntryIn<"node"> => ({
  ...boundary,
  chapter: "Leave",
  path: "Deleted",
  mark: "end",
  reason: "NodeDeleted",
  message: "the Node was deleted",
  run: uid,
});

/** Reports that a node is new, or changed its pool. */
function joinLines(
  before: NodeSeen | undefined,
  node: Node,
  pool: string,
  { uid, desired }: NodeState,
  since: number,
): readonly Noted[] {
  const created = Date.parse(node.metadata.creationTimestamp ?? "");
  const isNew = before === undefined ? created >= since : before.uid !== uid;
  if (isNew)
    return [
      {
        line: {
          ...boundary,
          chapter: "Join",
          path: "Registered",
          mark: "end",
          reason: "Registered",
          message: "the Node appeared",
          run: uid,
        },
        at: created,
      },
    ];
  const isMoved = before !== undefined && pool !== "" && before.pool !== "" && before.pool !== pool;
  if (!isMoved) return [];
  return [
    {
      line: {
        ...boundary,
        chapter: "PoolMove",
        path: "Moved",
        mark: "end",
        reason: "PoolChanged",
        message: `from pool ${before.pool} to ${pool}, as the labels of the node say`,
        data: { from: before.current, to: desired, pool, fromPool: before.pool },
      },
    },
  ];
}

function lostLines(before: NodeSeen | undefined, { isLost, isSilent, silentSince: at }: NodeState): readonly Noted[] {
  const here = { ...boundary, chapter: "Lost" } as const;
  if (isLost && before?.isLost !== true) {
    const message = "its kubelet stopped reporting, and no reboot was announced";
    return [{ line: { ...here, path: "Silent", mark: "begin", reason: "KubeletSilent", message }, at }];
  }
  if (!isSilent && before?.isLost === true) {
    const message = "its kubelet reports again";
    return [{ line: { ...here, path: "Back", mark: "end", reason: "KubeletBack", message }, at }];
  }
  return [];
}

/** Progress of an update since `before`. */
function updateLines(
  before: NodeSeen,
  machineConfigNode: MachineConfigNode | undefined,
  { desired, current, isDone }: NodeState,
): readonly Noted[] {
  const here = { ...boundary, chapter: "Update" } as const;
  const isUnderWay = desired !== "" && desired !== current;
  const requested: JournalEntryIn<"node"> = {
    ...here,
    run: desired,
    path: "Requested",
    mark: "begin",
    reason: "TargetSet",
    message: `it was given ${desired}`,
    data: { from: current, to: desired },
  };
  const updated: JournalEntryIn<"node"> = {
    ...here,
    run: current,
    path: "Updated",
    mark: "end",
    reason: "Succeeded",
    message: `the machine has ${current}`,
  };
  const isUpdated = isDone && !before.isDone && before.current !== "" && before.current !== current;
  return [
    ...(isUnderWay && desired !== before.desired && current !== "" ? [{ line: requested }] : []),
    ...(isUnderWay ? speaking.flatMap((type) => phaseLines(type, before, machineConfigNode, desired)) : []),
    ...(isUpdated ? [{ line: updated }] : []),
  ];
}

/** The line of one phase of an update, if its condition has changed. */
function phaseLines(
  type: (typeof speaking)[number],
  before: NodeSeen,
  machineConfigNode: MachineConfigNode | undefined,
  run: string,
): readonly Noted[] {
  // Until the daemon has seen a new target, the phases are of the one before.
  if ((machineConfigNode?.status?.configVersion?.desired ?? run) !== run) return [];
  const condition = conditionOf(machineConfigNode?.status?.conditions, type);
  if (condition === undefined || condition.status === before.statuses[type]) return [];
  const section: Reason<typeof type> = updates[type];
  const reason = condition.status === "Unknown" ? section.begin : condition.status === "True" ? section.end : undefined;
  if (reason === undefined) return [];
  const line = {
    ...boundary,
    chapter: "Update",
    run,
    path: section.path,
    mark: condition.status === "True" ? "end" : "begin",
    reason,
    message: condition.message,
  } as JournalEntryIn<"node">;
  return [{ line, at: Date.parse(condition.lastTransitionTime) }];
}
