import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import { annotations, machineConfigNodeConditions as types, nodeStates } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { StoryLineIn } from "../../api/books/stories.ts";
import { isReady, phaseOf } from "../books/phase.ts";

/** What was last seen of a node: a few words, so that thousands cost little. */
export interface NodeSeen {
  readonly uid: string;
  readonly pool: string;
  readonly desired: string;
  readonly current: string;
  readonly isDone: boolean;
  readonly isLost: boolean;
  /** Condition → status, of those that speak for a section. */
  readonly statuses: Readonly<Record<string, string>>;
}

/** A line that follows from objects, and when what it tells of happened, in milliseconds since the epoch. */
export interface SeenLine {
  readonly line: StoryLineIn<"node">;
  readonly at: number;
}

export interface NodeLook {
  /** `undefined`: the node is gone. */
  readonly seen: NodeSeen | undefined;
  readonly lines: readonly SeenLine[];
  /** When to look again though nothing changes, in milliseconds. */
  readonly lookAgainMs?: number;
}

/** A node whose kubelet is silent for longer than this without an announced reboot is lost. */
export const lostAfterMs = 5 * 60_000;

type Reason<P extends keyof typeof updates> = (typeof updates)[P];
/** Condition → the section that it speaks for, with the reasons of its beginning and its end. */
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
 * What an onlooker can say of a node from its objects, without anybody telling: it came, it went, it changed pools, its
 * kubelet fell silent, and where it is in its update. The books take it where nobody who was there told of it.
 *
 * @param before what was seen last; `undefined`: it is seen for the first time.
 * @param node `undefined`: it is gone.
 * @param pool name of its pool; empty: it is in none.
 * @param now milliseconds since the epoch.
 * @param since when the onlooker began, in milliseconds since the epoch: what is older was there before.
 */
export function seeNode(
  before: NodeSeen | undefined,
  node: Node | undefined,
  machineConfigNode: MachineConfigNode | undefined,
  pool: string,
  { now, since }: { readonly now: number; readonly since: number },
): NodeLook {
  const lines: SeenLine[] = [];
  const say = (line: StoryLineIn<"node">, at: number = now) => lines.push({ line, at: Number.isNaN(at) ? now : at });
  const boundary = { level: "boundary" } as const;
  if (node === undefined || node.metadata.deletionTimestamp !== undefined) {
    if (before !== undefined)
      say({
        ...boundary,
        chapter: "Leave",
        path: "Deleted",
        mark: "end",
        reason: "NodeDeleted",
        message: "the Node was deleted",
        run: before.uid,
      });
    return { seen: undefined, lines };
  }
  const has = node.metadata.annotations ?? {};
  const uid = node.metadata.uid ?? "";
  const desired = has[annotations.desiredConfig] ?? "";
  const current = has[annotations.currentConfig] ?? "";
  const isDone = current !== "" && current === desired && has[annotations.state] === nodeStates.done;
  const created = Date.parse(node.metadata.creationTimestamp ?? "");
  if ((before === undefined && created >= since) || (before !== undefined && before.uid !== uid))
    say(
      {
        ...boundary,
        chapter: "Join",
        path: "Registered",
        mark: "end",
        reason: "Registered",
        message: "the Node appeared",
        run: uid,
      },
      created,
    );
  if (before !== undefined && before.uid === uid && pool !== "" && before.pool !== "" && before.pool !== pool)
    say({
      ...boundary,
      chapter: "PoolMove",
      path: "Moved",
      mark: "end",
      reason: "PoolChanged",
      message: `from pool ${before.pool} to ${pool}, as the labels of the node say`,
      data: { from: before.current, to: desired, pool, fromPool: before.pool },
    });

  const ready = conditionOf(
    node.status?.conditions as { type: string; lastTransitionTime?: string }[] | undefined,
    "Ready",
  );
  const silentSince = Date.parse(ready?.lastTransitionTime ?? node.metadata.creationTimestamp ?? "");
  const isSilent = phaseOf(node, machineConfigNode) === "Lost" && !isReady(node);
  const isLost = isSilent && now - silentSince >= lostAfterMs;
  if (isLost && before?.isLost !== true)
    say(
      {
        ...boundary,
        chapter: "Lost",
        path: "Silent",
        mark: "begin",
        reason: "KubeletSilent",
        message: "its kubelet stopped reporting, and no reboot was announced",
      },
      silentSince,
    );
  if (!isSilent && before?.isLost === true)
    say(
      {
        ...boundary,
        chapter: "Lost",
        path: "Back",
        mark: "end",
        reason: "KubeletBack",
        message: "its kubelet reports again",
      },
      silentSince,
    );

  const conditions = machineConfigNode?.status?.conditions;
  const statuses = Object.fromEntries(speaking.map((type) => [type, conditionOf(conditions, type)?.status ?? "False"]));
  if (before !== undefined) {
    if (desired !== before.desired && desired !== "" && desired !== current && current !== "")
      say({
        ...boundary,
        chapter: "Update",
        run: desired,
        path: "Requested",
        mark: "begin",
        reason: "TargetSet",
        message: `it was given ${desired}`,
        data: { from: current, to: desired },
      });
    if (desired !== "" && desired !== current) {
      for (const type of speaking) {
        const condition = conditionOf(conditions, type);
        if (condition === undefined || condition.status === before.statuses[type]) continue;
        const at = Date.parse(condition.lastTransitionTime);
        const section: Reason<typeof type> = updates[type];
        const here = { ...boundary, chapter: "Update", run: desired } as const;
        if (condition.status === "Unknown" && section.begin !== undefined)
          say(
            {
              ...here,
              path: section.path,
              mark: "begin",
              reason: section.begin,
              message: condition.message,
            } as StoryLineIn<"node">,
            at,
          );
        if (condition.status === "True")
          say(
            {
              ...here,
              path: section.path,
              mark: "end",
              reason: section.end,
              message: condition.message,
            } as StoryLineIn<"node">,
            at,
          );
      }
    }
    if (isDone && !before.isDone && before.current !== "" && before.current !== current)
      say({
        ...boundary,
        chapter: "Update",
        run: current,
        path: "Updated",
        mark: "end",
        reason: "Succeeded",
        message: `the machine has ${current}`,
      });
  }
  const seen: NodeSeen = {
    uid,
    pool,
    desired,
    current: isDone || before === undefined ? current : before.current,
    isDone,
    isLost: isSilent && (isLost || before?.isLost === true),
    statuses,
  };
  return {
    seen,
    lines,
    ...(isSilent && !isLost ? { lookAgainMs: Math.max(1000, silentSince + lostAfterMs - now) } : {}),
  };
}
