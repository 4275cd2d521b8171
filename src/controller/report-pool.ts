import type { JournalEntryIn } from "../api/books/report-table.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { fieldManagers, journals } from "../api/names.ts";
import { foldBook } from "../core/books/fold-book.ts";
import { linesForBook } from "../core/books/journal.ts";
import { causeOf, changedSources } from "../core/config/changed-sources.ts";
import type { ClusterMembers } from "../core/pool/cluster-members.ts";
import type { PoolMembers } from "../core/pool/pool-members.ts";
import type { PoolFacts } from "../core/pool/pool-progress.ts";
import { poolStatus, startsRollout } from "../core/pool/pool-status.ts";
import { type OpenChapter, openAfter, owedLines, poolTurns } from "../core/pool/pool-reports.ts";
import { type CanaryFacts, canaryFacts } from "../core/pool/rollout-holds.ts";
import { equalValues } from "../ignition/canonical.ts";
import type { Context } from "../kube/controller.ts";
import { type Decided, updateByDecision } from "../kube/kube-client.ts";
import { isRefusal } from "../kube/kube-error.ts";
import { type BucketLimits, SourceBuckets } from "../ports/source-buckets.ts";
import type { Happening, Report } from "../kube/report.ts";
import {
  canaryBegun,
  canaryFailed,
  canaryProven,
  machineFailed,
  machineUpdated,
  nodeInSeveralPools,
  poolTurned,
  stateMismatched,
  updateBegun,
  updateCompleted,
} from "./reports.ts";

/**
 * How often what a machine says of itself enters the book of its pool. Root on it changes that many times a second, and
 * each change is a line of the controller's journal, which has room for few.
 */
export const claims: BucketLimits = { burst: 5, perSecond: 1 / 600, sources: 20_000 };

/**
 * How often a change that a machine causes, by asking for a drain or by putting a target back, enters its own book: far more
 * often than by one update. All books share the journal of the controller, which has room for few lines.
 */
export const ownLines: BucketLimits = { burst: 60, perSecond: 1 / 30, sources: 20_000 };

/** Whose lines they are: those of a machine on its way to one target of its pool. */
export const lineSource = (node: string, target: string): string => `${node} ${target}`;

/** The last reports, so that each is made once. */
export class ReportMemory {
  /** Pool → how far its machines that go first were. */
  readonly canary = new Map<string, string>();
  /** Pools whose status was changed without an answer: the change may still arrive, and is looked at then. */
  readonly unanswered = new Set<string>();
  /** Pool → the chapters that are open in its book; absent until its book was read. */
  readonly open = new Map<string, readonly OpenChapter[]>();
  /** Node → the pools that select it. */
  readonly severalPools = new Map<string, string>();
  /** Node → the disagreement between its annotations and its MachineConfigNode. */
  readonly contradictions = new Map<string, string>();
  /** By node. */
  readonly claims = new SourceBuckets(claims);
  /** By node and target of its pool, of the lines in its own book. */
  readonly ownLines = new SourceBuckets(ownLines);

  forget(pool: string): void {
    this.open.delete(pool);
    this.unanswered.delete(pool);
  }
}

/** The state of a machine in the roll-out of its pool. */
export interface PoolStanding {
  readonly pool: string;
  readonly target: string;
  readonly is: "updated" | "failed" | "other";
}

export function standingOf(name: string, cluster: ClusterMembers): PoolStanding | undefined {
  const membership = cluster.node(name)?.membership;
  if (membership?.verdict !== "member") return undefined;
  const members = cluster.members(membership.pool);
  return {
    pool: membership.pool,
    target: members.target,
    is: members.degraded.has(name) ? "failed" : members.isUpdated(name) ? "updated" : "other",
  };
}

/** Whether the pool's roll-out has finished a machine, or lost it, since `before`. */
const hasEnded = (before: PoolStanding | undefined, after: PoolStanding | undefined): after is PoolStanding =>
  before !== undefined &&
  after !== undefined &&
  before.pool === after.pool &&
  before.target === after.target &&
  before.is !== after.is &&
  after.target !== "" &&
  after.is !== "other";

/** One line for each machine in the book of its pool; the machine's own chapter has the details. */
export function reportPoolStanding(
  name: string,
  before: PoolStanding | undefined,
  after: PoolStanding | undefined,
  memory: { readonly cluster: ClusterMembers; readonly reports: ReportMemory; now(): number },
  report: Report | undefined,
): void {
  const { cluster, reports } = memory;
  if (!hasEnded(before, after)) return;
  // Once every machine has had the target, later events of a machine are not part of the roll-out.
  if (cluster.pool(after.pool)?.status?.configuration?.name === after.target) return;
  if (reports.claims.take(name, memory.now()) > 0) return;
  const machine = { ...after, name };
  if (after.is === "updated") report?.(machineUpdated(machine));
  else report?.(machineFailed(machine, cluster.node(name)?.facts.says ?? ""));
}

/** The news of a pool's status, compared with the previous one. */
interface News {
  /** The target that every machine has now. */
  readonly completed?: string | undefined;
  readonly began: boolean;
  readonly turns: readonly JournalEntryIn<"pool">[];
}

/** The news of a pool's status, and the pool with it; `undefined`: a newer spec is judged by its own pass. */
interface Judged {
  readonly news: News;
  readonly latest: MachineConfigPool | undefined;
}

const noNews: News = { began: false, turns: [] };

export async function writePoolStatus(facts: PoolFacts, memory: ReportMemory, context: Context): Promise<void> {
  const { kube, caches, report, signal } = context;
  const { pool } = facts;
  const { name } = pool.metadata;
  const because = (of: MachineConfigPool) =>
    causeOf(changedSources(of, (config) => caches.of(MachineConfig).get(config)));
  const written = await updateByDecision(
    kube,
    MachineConfigPool,
    pool.metadata,
    (object): Decided<MachineConfigPool, Judged> => {
      if (object.metadata.generation !== pool.metadata.generation)
        return { decision: { news: noNews, latest: undefined } };
      const status = poolStatus({ ...facts, pool: object });
      const latest = { ...object, status };
      if (equalValues(status, object.status)) return { decision: { news: noNews, latest } };
      const isCompleted = status.configuration?.name !== object.status?.configuration?.name;
      const news: News = {
        completed: isCompleted ? status.configuration?.name : undefined,
        began: startsRollout(object.status, status),
        turns: poolTurns(object, status, () => because(object)),
      };
      return { decision: { news, latest }, write: { status } };
    },
    { subresource: "status", owner: fieldManagers.node, cached: pool, signal },
  ).catch((error: unknown) => {
    if (!isRefusal(error)) memory.unanswered.add(name);
    throw error;
  });
  if (written === undefined) return;
  // A change that names an older version is refused from now on.
  if (written.isWritten) memory.unanswered.delete(name);
  const { news, latest } = written.decision;
  if (latest !== undefined)
    for (const line of await boundaries(latest, news.turns, because, memory, context)) report(poolTurned(name, line));
  if (news.began) report(updateBegun(pool, facts.members.target));
  if (news.completed !== undefined) report(updateCompleted(pool, news.completed));
}

/**
 * The lines for the book of a pool after a look at its status: what this look changed, and what the book misses, because
 * an earlier process could not send it or the answer to a change was lost.
 */
async function boundaries(
  pool: MachineConfigPool,
  turns: readonly JournalEntryIn<"pool">[],
  because: (of: MachineConfigPool) => Readonly<Record<string, string>>,
  memory: ReportMemory,
  context: Context,
): Promise<readonly JournalEntryIn<"pool">[]> {
  const { name } = pool.metadata;
  const open = memory.open.get(name) ?? (await openInBook(name, context));
  // It is read again at the next look.
  if (open === undefined) return turns;
  const lines = [...turns, ...owedLines(pool, openAfter(open, turns), () => because(pool))];
  memory.open.set(name, openAfter(open, lines));
  return lines;
}

async function openInBook(
  name: string,
  { kube, clock, log, signal }: Context,
): Promise<readonly OpenChapter[] | undefined> {
  const book = `pool/${name}`;
  try {
    const journal = await kube.get(MachineStateJournal, { name: journals.controller }, { signal });
    return foldBook(book, linesForBook(journal === undefined ? [] : [journal], book), { now: clock.now() })
      .filter(({ state }) => state === "Open")
      .map(({ chapter, run, from }) => ({ chapter, run, from: typeof from === "object" ? (from.config ?? "") : "" }));
  } catch (error) {
    log.debug({ error, pool: name }, "the journal could not be read; it is tried again");
    return undefined;
  }
}

/**
 * @param at milliseconds since the epoch. @returns milliseconds since the epoch at which the next machine that went
 * first will have been healthy for long enough.
 */
export function reportCanary(
  pool: MachineConfigPool,
  members: PoolMembers,
  canary: { readonly count: number; readonly wellMs: number },
  at: number,
  memory: ReportMemory,
  context: Context,
): number | undefined {
  const { name } = pool.metadata;
  const facts = canaryFacts(members, canary, at);
  const isProven = facts.proven.length >= facts.count;
  const stage = stageOf(facts);
  const before = memory.canary.get(name);
  const text = `${members.target} ${members.image.image} ${stage}`;
  if (stage !== "none" && before !== text && facts.count < members.size) {
    memory.canary.set(name, text);
    // A newly started controller that finds them proven has nothing new to report.
    if (stage !== "proven" || before !== undefined) context.report(canaryReached(pool, members.target, stage, facts));
  }
  return isProven ? undefined : facts.provenAt;
}

type Stage = "none" | "gone" | "failed" | "proven";

const stageOf = ({ gone, failed, proven, count }: CanaryFacts): Stage =>
  gone.length === 0 ? "none" : failed.length > 0 ? "failed" : proven.length >= count ? "proven" : "gone";

/** @param stage that the machines which go first have reached. */
function canaryReached(
  pool: MachineConfigPool,
  target: string,
  stage: Exclude<Stage, "none">,
  { gone, failed, proven }: CanaryFacts,
): Happening {
  switch (stage) {
    case "gone":
      return canaryBegun(pool, target, gone);
    case "failed":
      return canaryFailed(pool, target, failed);
    case "proven":
      return canaryProven(pool, target, proven);
  }
}

/** Inconsistencies that nothing else reports: nodes in several pools, and machines on which two sources disagree. */
export function reportInconsistencies(
  pool: MachineConfigPool,
  cluster: ClusterMembers,
  now: number,
  memory: ReportMemory,
  context: Context,
): void {
  reportSeveralPools(cluster, now, memory, context);
  reportContradictions(pool.metadata.name, cluster, now, memory, context);
}

function reportSeveralPools(
  cluster: ClusterMembers,
  now: number,
  memory: ReportMemory,
  { report, log }: Context,
): void {
  for (const [name, membership] of cluster.unassigned) {
    if (membership.verdict !== "ambiguous" || memory.severalPools.get(name) === membership.pools.join(",")) continue;
    memory.severalPools.set(name, membership.pools.join(","));
    // A kubelet may set some labels, and one of them may be what a pool selects by.
    if (memory.claims.take(`pools ${name}`, now) > 0) continue;
    const node = cluster.node(name)?.node;
    if (node === undefined) log.warn({ node: name, pools: membership.pools }, "node in several pools");
    else report(nodeInSeveralPools(node, membership.pools));
  }
  for (const name of memory.severalPools.keys())
    if (cluster.unassigned.get(name)?.verdict !== "ambiguous") memory.severalPools.delete(name);
}

function reportContradictions(
  pool: string,
  cluster: ClusterMembers,
  now: number,
  memory: ReportMemory,
  { report }: Context,
): void {
  const contradictions = cluster.contradictions(now);
  for (const [name, what] of contradictions) {
    const membership = cluster.node(name)?.membership;
    // Each machine is the business of its own pool's pass, and of its own pool's book.
    if (membership?.verdict !== "member" || membership.pool !== pool) continue;
    if (memory.contradictions.get(name) === what) continue;
    memory.contradictions.set(name, what);
    if (memory.claims.take(name, now) > 0) continue;
    report(stateMismatched({ pool, target: cluster.members(pool).target, name }, what));
  }
  for (const name of memory.contradictions.keys()) if (!contradictions.has(name)) memory.contradictions.delete(name);
}
