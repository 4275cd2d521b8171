import type { JournalEntryIn } from "../api/books/report-table.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { fieldManagers } from "../api/names.ts";
import { causeOf, changedSources } from "../core/config/changed-sources.ts";
import type { ClusterMembers } from "../core/pool/cluster-members.ts";
import type { PoolMembers } from "../core/pool/pool-members.ts";
import type { PoolFacts } from "../core/pool/pool-progress.ts";
import { poolStatus, startsRollout } from "../core/pool/pool-status.ts";
import { poolTurns, rolloutBegins } from "../core/pool/pool-reports.ts";
import { type CanaryFacts, canaryFacts } from "../core/pool/rollout-holds.ts";
import { equalValues } from "../ignition/canonical.ts";
import type { Context } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import type { Report } from "../kube/report.ts";

/** What was last reported, so that nothing is reported twice. */
export class ReportMemory {
  /** Pool → the target in its book. */
  readonly targets = new Map<string, string>();
  /** Pool → how far its machines that go first were. */
  readonly canary = new Map<string, string>();
  /** Node → the pools that select it. */
  readonly severalPools = new Map<string, string>();
  /** Node → the disagreement between its annotations and its MachineConfigNode. */
  readonly contradictions = new Map<string, string>();

  forget(pool: string): void {
    this.targets.delete(pool);
  }
}

/** The state of a machine in the roll-out of its pool. */
export interface Standing {
  readonly pool: string;
  readonly target: string;
  readonly is: "updated" | "failed" | "other";
}

export function standingOf(name: string, cluster: ClusterMembers): Standing | undefined {
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
const hasEnded = (before: Standing | undefined, after: Standing | undefined): after is Standing =>
  before !== undefined &&
  after !== undefined &&
  before.pool === after.pool &&
  before.target === after.target &&
  before.is !== after.is &&
  after.target !== "" &&
  after.is !== "other";

/** One line for each machine in the book of its pool; the machine's own chapter has the details. */
export function reportStanding(
  name: string,
  before: Standing | undefined,
  after: Standing | undefined,
  cluster: ClusterMembers,
  report: Report | undefined,
): void {
  if (!hasEnded(before, after)) return;
  // Once every machine has had the target, later events of a machine are not part of the roll-out.
  if (cluster.pool(after.pool)?.status?.configuration?.name === after.target) return;
  const here = {
    book: `pool/${after.pool}`,
    chapter: "Rollout",
    run: after.target,
    path: `Node/${name}`,
    level: "boundary",
    data: { chapter: `node/${name} Update ${after.target}` },
  } as const;
  if (after.is === "updated")
    report?.({ ...here, mark: "end", reason: "NodeUpdated", message: `${name} has ${after.target}` });
  else
    report?.({
      ...here,
      mark: "fail",
      reason: "NodeFailed",
      message: `${name} cannot go on without help: ${cluster.node(name)?.facts.says ?? ""}`,
    });
}

/** The news of a pool's status, compared with the previous one. */
interface News {
  /** The target that every machine has now. */
  readonly completed?: string | undefined;
  readonly began: boolean;
  readonly turns: readonly JournalEntryIn<"pool">[];
}

export async function writeStatus(facts: PoolFacts, memory: ReportMemory, context: Context): Promise<void> {
  const { kube, caches, report, signal } = context;
  const { pool } = facts;
  const { name } = pool.metadata;
  const because = (of: MachineConfigPool) =>
    causeOf(changedSources(of, (config) => caches.of(MachineConfig).get(config)));
  let news: News = { began: false, turns: [] };
  await updateObject(
    kube,
    MachineConfigPool,
    pool.metadata,
    (object) => {
      news = { began: false, turns: [] };
      // A newer spec is judged by its own pass.
      if (object.metadata.generation !== pool.metadata.generation) return undefined;
      const status = poolStatus({ ...facts, pool: object });
      if (equalValues(status, object.status)) return undefined;
      const isCompleted = status.configuration?.name !== object.status?.configuration?.name;
      news = {
        completed: isCompleted ? status.configuration?.name : undefined,
        began: startsRollout(object.status, status),
        turns: poolTurns(object, status, () => because(object)),
      };
      return { status };
    },
    { subresource: "status", owner: fieldManagers.node, cached: pool, signal },
  );
  // A roll-out that a new target interrupts begins anew.
  const { target } = facts.members;
  const begins = meetsAnotherTarget(facts, news, memory.targets.get(name)) ? [rolloutBegins(pool, because(pool))] : [];
  memory.targets.set(name, target);
  for (const line of [...news.turns, ...begins]) report({ about: undefined, book: `pool/${name}`, ...line });
  if (news.began)
    report({
      about: pool,
      notice: "Updating",
      message: `Pool ${name} is updating to MachineConfig ${target}`,
    });
  if (news.completed !== undefined)
    report({
      about: pool,
      notice: "Completed",
      message: `Pool ${name} has completed update to MachineConfig ${news.completed}`,
    });
}

/** @param known the target in the pool's book; `undefined`: none since this process began. */
function meetsAnotherTarget({ pool, members }: PoolFacts, { turns }: News, known: string | undefined): boolean {
  const isAnother = known !== undefined && known !== members.target && members.target !== "";
  const isUnderWay = members.updated < members.size && pool.status?.configuration?.name !== members.target;
  return isAnother && isUnderWay && !turns.some(({ chapter }) => chapter === "Rollout");
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
    if (stage !== "proven" || before !== undefined) reportStage(pool, members.target, stage, facts, context);
  }
  return isProven ? undefined : facts.provenAt;
}

type Stage = "none" | "gone" | "failed" | "proven";

const stageOf = ({ gone, failed, proven, count }: CanaryFacts): Stage =>
  gone.length === 0 ? "none" : failed.length > 0 ? "failed" : proven.length >= count ? "proven" : "gone";

function reportStage(
  pool: MachineConfigPool,
  target: string,
  stage: Exclude<Stage, "none">,
  { gone, failed, proven }: CanaryFacts,
  { report }: Context,
): void {
  const here = {
    about: pool,
    book: `pool/${pool.metadata.name}`,
    chapter: "Rollout",
    run: target,
    path: "Canary",
    level: "boundary",
  } as const;
  switch (stage) {
    case "gone": {
      const message = `${gone.join(", ")} got ${target} before all others`;
      return report({ ...here, mark: "begin", reason: "Canary", message });
    }
    case "failed": {
      const message = `${failed.join(", ")} went first with ${target} and failed: the others keep what they have`;
      return report({ ...here, mark: "fail", reason: "ProofFailed", message });
    }
    case "proven": {
      const message = `${proven.join(", ")} kept well with ${target}: the others follow`;
      return report({ ...here, mark: "end", reason: "Proven", message });
    }
  }
}

/** Inconsistencies that nothing else reports: nodes in several pools, and machines on which two sources disagree. */
export function reportOddities(
  pool: MachineConfigPool,
  cluster: ClusterMembers,
  now: number,
  memory: ReportMemory,
  context: Context,
): void {
  reportSeveralPools(cluster, memory, context);
  reportContradictions(pool.metadata.name, cluster, now, memory, context);
}

function reportSeveralPools(cluster: ClusterMembers, memory: ReportMemory, { report, log }: Context): void {
  for (const [name, membership] of cluster.unassigned) {
    if (membership.verdict !== "ambiguous" || memory.severalPools.get(name) === membership.pools.join(",")) continue;
    memory.severalPools.set(name, membership.pools.join(","));
    const node = cluster.node(name)?.node;
    const message = `the pools ${membership.pools.join(" and ")} select ${name}, so that it belongs to none of them and is not updated; take a label away that only one of them selects by`;
    if (node === undefined) log.warn({ node: name, pools: membership.pools }, "node in several pools");
    else report({ about: node, notice: "SeveralPools", message });
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
    if (memory.contradictions.get(name) === what) continue;
    memory.contradictions.set(name, what);
    report({
      book: `pool/${pool}`,
      chapter: "Rollout",
      run: cluster.members(pool).target,
      path: "StateMismatch",
      mark: "note",
      level: "boundary",
      reason: "StateMismatch",
      message: `${name}: ${what}`,
      data: { node: name },
    });
  }
  for (const name of memory.contradictions.keys()) if (!contradictions.has(name)) memory.contradictions.delete(name);
}
