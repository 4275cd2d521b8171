import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { poolConditions as types } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { StoryLineIn } from "../../api/books/stories.ts";
import { type PoolStatusFields, startsRollout } from "./pool-status.ts";

interface Said {
  readonly type: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
}

const sayingOf = (status: PoolStatusFields | undefined, type: string): Said | undefined =>
  conditionOf(status?.conditions as readonly Said[] | undefined, type);

/**
 * What the book of a pool has to say about a change of its status.
 *
 * @param pool as it was before.
 * @param after its new status.
 * @param causeOf what changed its target, and by whom, as data of a line; asked only where a roll-out begins.
 */
export function poolTurns(
  pool: MachineConfigPool,
  after: PoolStatusFields,
  causeOf: () => Readonly<Record<string, string>> = () => ({}),
): readonly StoryLineIn<"pool">[] {
  const before = pool.status;
  const target = pool.spec.configuration?.name ?? "";
  const from = before?.configuration?.name ?? "";
  const boundary = { level: "boundary" } as const;
  const lines: StoryLineIn<"pool">[] = [];
  const because = (type: string, reason: string) => ({
    was: sayingOf(before, type)?.reason === reason,
    is: sayingOf(after, type)?.reason === reason,
  });
  const paused = because(types.updating, "Paused");
  const blocked = because(types.updating, "RolloutBlocked");
  const failing = {
    was: sayingOf(before, types.nodeDegraded)?.status === "True",
    is: sayingOf(after, types.nodeDegraded)?.status === "True",
  };
  const saysUpdating = sayingOf(after, types.updating)?.message ?? "";
  if ((before?.conditions ?? []).length === 0)
    lines.push({
      ...boundary,
      chapter: "Created",
      path: "Created",
      mark: "end",
      reason: "PoolCreated",
      message: `with ${after.machineCount ?? 0} machines`,
    });
  if (paused.was && !paused.is)
    lines.push({
      ...boundary,
      chapter: "Paused",
      path: "Ended",
      mark: "end",
      reason: "PoolResumed",
      message: `the pool goes on to ${target}`,
    });
  if (blocked.was && !blocked.is)
    lines.push({
      ...boundary,
      chapter: "Blocked",
      path: "Ended",
      mark: "end",
      reason: "QuarantineLifted",
      message: `the pool goes on to ${target}`,
    });
  // One whose machines have the target already only looks so: a machine of it fails, or is new.
  if (startsRollout(before, after) && target !== from) lines.push(rolloutBegins(pool, causeOf()));
  if (paused.is && !paused.was)
    lines.push({
      ...boundary,
      chapter: "Paused",
      path: "Paused",
      mark: "begin",
      reason: "PoolPaused",
      message: saysUpdating,
    });
  if (blocked.is && !blocked.was)
    lines.push({
      ...boundary,
      chapter: "Blocked",
      path: "Blocked",
      mark: "begin",
      reason: "TargetQuarantined",
      message: saysUpdating,
    });
  if (failing.is && !failing.was)
    lines.push({
      ...boundary,
      chapter: "Degraded",
      path: "Degraded",
      mark: "begin",
      reason: "MachinesDegraded",
      message: sayingOf(after, types.nodeDegraded)?.message ?? "",
    });
  if (failing.was && !failing.is)
    lines.push({
      ...boundary,
      chapter: "Degraded",
      path: "Ended",
      mark: "end",
      reason: "Recovered",
      message: "no machine of the pool is degraded any more",
    });
  const completed = after.configuration?.name ?? "";
  if (completed !== "" && completed !== from)
    lines.push({
      ...boundary,
      chapter: "Rollout",
      run: completed,
      path: "Finished",
      mark: "end",
      reason: "AllUpdated",
      message: `all ${after.machineCount ?? 0} machines have ${completed}`,
      data: { from, to: completed, machines: after.machineCount ?? 0 },
    });
  return lines;
}

/** The pool goes to a target: also to another one in the middle of a roll-out. */
export function rolloutBegins(
  pool: MachineConfigPool,
  cause: Readonly<Record<string, string>> = {},
): StoryLineIn<"pool"> {
  const target = pool.spec.configuration?.name ?? "";
  const from = pool.status?.configuration?.name ?? "";
  return {
    level: "boundary",
    chapter: "Rollout",
    run: target,
    path: "Begun",
    mark: "begin",
    reason: "TargetChanged",
    message: `the pool goes ${from === "" ? "" : `from ${from} `}to ${target}`,
    data: { from, to: target, pool: pool.metadata.name, ...cause },
  };
}
