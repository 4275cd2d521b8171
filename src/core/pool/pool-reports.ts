import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { poolConditions as types } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { JournalEntryIn } from "../../api/books/report-table.ts";
import { type PoolStatusFields, startsRollout } from "./pool-status.ts";

interface Said {
  readonly type: string;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
}

const sayingOf = (status: PoolStatusFields | undefined, type: string): Said | undefined =>
  conditionOf(status?.conditions as readonly Said[] | undefined, type);

/** A state of a pool that opens a chapter in its book, before and after a status change. */
interface Turn {
  readonly was: boolean;
  readonly is: boolean;
  readonly begin: JournalEntryIn<"pool">;
  readonly end: JournalEntryIn<"pool">;
}

const boundary = { level: "boundary" } as const;

/**
 * The lines for the pool's book that follow from a change of its status: first what ended, then what began.
 *
 * @param pool as it was before.
 * @param after its new status.
 * @param causeOf what changed its target, and the author, as data of a line; called only when a roll-out begins.
 */
export function poolTurns(
  pool: MachineConfigPool,
  after: PoolStatusFields,
  causeOf: () => Readonly<Record<string, string>> = () => ({}),
): readonly JournalEntryIn<"pool">[] {
  const before = pool.status;
  const target = pool.spec.configuration?.name ?? "";
  const from = before?.configuration?.name ?? "";
  const [paused, blocked, failing] = [pausedTurn, blockedTurn, failingTurn].map((turnOf) =>
    turnOf(before, after, target),
  );
  const ends = (turn: Turn | undefined) => (turn !== undefined && turn.was && !turn.is ? [turn.end] : []);
  const begins = (turn: Turn | undefined) => (turn !== undefined && turn.is && !turn.was ? [turn.begin] : []);
  // A pool whose machines already have the target is not rolling out: one of its machines fails, or is new.
  const isBegun = startsRollout(before, after) && target !== from;
  return [
    ...((before?.conditions ?? []).length === 0 ? [created(after)] : []),
    ...ends(paused),
    ...ends(blocked),
    ...(isBegun ? [rolloutBegins(pool, causeOf())] : []),
    ...begins(paused),
    ...begins(blocked),
    ...begins(failing),
    ...ends(failing),
    ...finished(from, after),
  ];
}

function pausedTurn(before: PoolStatusFields | undefined, after: PoolStatusFields, target: string): Turn {
  const updating = sayingOf(after, types.updating);
  const here = { ...boundary, chapter: "Paused" } as const;
  return {
    was: sayingOf(before, types.updating)?.reason === "Paused",
    is: updating?.reason === "Paused",
    begin: { ...here, path: "Paused", mark: "begin", reason: "PoolPaused", message: updating?.message ?? "" },
    end: { ...here, path: "Ended", mark: "end", reason: "PoolResumed", message: `the pool continues to ${target}` },
  };
}

function blockedTurn(before: PoolStatusFields | undefined, after: PoolStatusFields, target: string): Turn {
  const updating = sayingOf(after, types.updating);
  const here = { ...boundary, chapter: "Blocked" } as const;
  return {
    was: sayingOf(before, types.updating)?.reason === "RolloutBlocked",
    is: updating?.reason === "RolloutBlocked",
    begin: { ...here, path: "Blocked", mark: "begin", reason: "TargetQuarantined", message: updating?.message ?? "" },
    end: {
      ...here,
      path: "Ended",
      mark: "end",
      reason: "QuarantineLifted",
      message: `the pool continues to ${target}`,
    },
  };
}

function failingTurn(before: PoolStatusFields | undefined, after: PoolStatusFields): Turn {
  const degraded = sayingOf(after, types.nodeDegraded);
  const here = { ...boundary, chapter: "Degraded" } as const;
  return {
    was: sayingOf(before, types.nodeDegraded)?.status === "True",
    is: degraded?.status === "True",
    begin: { ...here, path: "Degraded", mark: "begin", reason: "MachinesDegraded", message: degraded?.message ?? "" },
    end: {
      ...here,
      path: "Ended",
      mark: "end",
      reason: "Recovered",
      message: "no machine of the pool is degraded any more",
    },
  };
}

const created = ({ machineCount }: PoolStatusFields): JournalEntryIn<"pool"> => ({
  ...boundary,
  chapter: "Created",
  path: "Created",
  mark: "end",
  reason: "PoolCreated",
  message: `with ${machineCount ?? 0} machines`,
});

/** @param from what all machines of the pool had before. */
function finished(
  from: string,
  { configuration, machineCount: machines = 0 }: PoolStatusFields,
): readonly JournalEntryIn<"pool">[] {
  const completed = configuration?.name ?? "";
  if (completed === "" || completed === from) return [];
  return [
    {
      ...boundary,
      chapter: "Rollout",
      run: completed,
      path: "Finished",
      mark: "end",
      reason: "AllUpdated",
      message: `all ${machines} machines have ${completed}`,
      data: { from, to: completed, machines },
    },
  ];
}

/** A chapter of a pool's book that has begun and not ended. */
export interface OpenChapter {
  readonly chapter: string;
  /** Of a roll-out: its target. */
  readonly run: string;
  /** Of a roll-out: what the machines had before; empty where the book does not say. */
  readonly from: string;
}

/** The open chapters after lines that are boundaries of chapters; of each chapter, one is open at most. */
export function openAfter(
  open: readonly OpenChapter[],
  lines: readonly JournalEntryIn<"pool">[],
): readonly OpenChapter[] {
  let now = open;
  for (const { chapter, run = "", path, mark, data } of lines) {
    if (!begins.has(path) && !ends.has(path)) continue;
    now = now.filter((one) => one.chapter !== chapter);
    const from = data?.["from"];
    if (begins.has(path) && mark === "begin")
      now = [...now, { chapter, run, from: typeof from === "string" ? from : "" }];
  }
  return now;
}

const begins: ReadonlySet<string> = new Set(["Begun", "Paused", "Blocked", "Degraded"]);
const ends: ReadonlySet<string> = new Set(["Finished", "Ended"]);

/**
 * Lines that the book of a pool misses. A process that ends before it has sent its lines, or that cannot tell whether
 * its change of a status was taken, leaves chapters that the pool's status contradicts, and nothing later would end
 * them.
 *
 * @param pool with its status as it is now.
 * @param open the open chapters of its book.
 * @param causeOf see {@link poolTurns}.
 */
export function owedLines(
  pool: MachineConfigPool,
  open: readonly OpenChapter[],
  causeOf: () => Readonly<Record<string, string>> = () => ({}),
): readonly JournalEntryIn<"pool">[] {
  const status = pool.status ?? {};
  const target = pool.spec.configuration?.name ?? "";
  const isOpen = (name: string) => open.some(({ chapter }) => chapter === name);
  const turns = [pausedTurn, blockedTurn, failingTurn].map((turnOf) => turnOf(undefined, status, target));
  return [
    ...turns.filter(({ is, end }) => !is && isOpen(end.chapter)).map(({ end }) => end),
    ...owedOfRollout(
      pool,
      open.find(({ chapter }) => chapter === "Rollout"),
      causeOf,
    ),
    ...turns.filter(({ is, begin }) => is && !isOpen(begin.chapter)).map(({ begin }) => begin),
  ];
}

function owedOfRollout(
  pool: MachineConfigPool,
  open: OpenChapter | undefined,
  causeOf: () => Readonly<Record<string, string>>,
): readonly JournalEntryIn<"pool">[] {
  const status = pool.status ?? {};
  const target = pool.spec.configuration?.name ?? "";
  const has = status.configuration?.name ?? "";
  if (target === "") return [];
  // All its machines had it once: one that fails since, or is new, begins no roll-out.
  if (has === target) {
    if (open === undefined) return [];
    if (open.run === target) return finished("", status);
    return open.from === target
      ? rolloutWithdrawn(pool, open.run)
      : [rolloutBegins(pool, causeOf()), ...finished("", status)];
  }
  const isUnderWay = sayingOf(status, types.updating)?.status === "True";
  return isUnderWay && open?.run !== target ? [rolloutBegins(pool, causeOf())] : [];
}

/**
 * A pool that gets the target back that all its machines had last: the roll-out that began in between ends, and none
 * begins.
 *
 * @param before the target that the pool had until now.
 */
function rolloutWithdrawn({ spec, status }: MachineConfigPool, before: string): readonly JournalEntryIn<"pool">[] {
  const target = spec.configuration?.name ?? "";
  if (before === "" || before === target || status?.configuration?.name !== target) return [];
  return [
    {
      ...boundary,
      chapter: "Rollout",
      run: before,
      path: "Finished",
      mark: "end",
      outcome: "Superseded",
      reason: "Superseded",
      message: `the pool goes back to ${target}`,
    },
  ];
}

/** The pool moves to a target, possibly in the middle of a roll-out to another one. */
export function rolloutBegins(
  pool: MachineConfigPool,
  cause: Readonly<Record<string, string>> = {},
): JournalEntryIn<"pool"> {
  const target = pool.spec.configuration?.name ?? "";
  const had = pool.status?.configuration?.name ?? "";
  const from = had === target ? "" : had;
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
