import { type Node, type Pod, type PodDisruptionBudget, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, fieldManagers, machineConfigNodeConditions as types } from "../api/names.ts";
import { conditionOf, timestampOf } from "../api/schema/object.ts";
import {
  type BlockedPod,
  type DrainPlan,
  describeBlocked,
  describeDrain,
  describeForecast,
  drainBegan,
  drainReasons,
  drainStep,
  heldForBuild,
  judgeDrain,
  planDrain,
  skippedUntil,
  trimBudget,
  trimPod,
  waitsForBuilds,
  whyStuck,
} from "../core/pool/plan-drain.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import { poolPolicy } from "../core/pool/pool-policy.ts";
import { trimNode } from "../core/pool/trim.ts";
import { type PhaseReport, childReason, withPhases } from "../core/books/update-conditions.ts";
import { type Caches, type Context, type Controller, watching } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { KubeError, isNotFound, isPassing, isTooManyRequests } from "../kube/kube-error.ts";
import { type Outcome, done, stalled, waiting } from "../kube/outcome.ts";
import type { Report } from "../kube/report.ts";
import { WatchesOnDemand } from "../kube/watches-on-demand.ts";
import { eachAtOnce } from "../ports/each-at-once.ts";
import { parseDrainRequest } from "../core/machine/drain-requests.ts";
import { SourceBuckets } from "../ports/source-buckets.ts";
import { lineSource, ownLines } from "./report-pool.ts";
import { updateNode } from "./update-node.ts";

/** A blocked eviction is tried again after this time, or as soon as a pod or budget changes. */
const retrySeconds = 5;
/** After the pool's deadline. */
const lateRetrySeconds = 30;
/** Requests that one drain has under way at once. */
const requestsAtOnce = 8;
/** Nodes whose pods are watched at once; the pods of further nodes are polled. */
const mostWatchedNodes = 64;
/** How often a drain's progress is reported at most, while only counts change. */
const progressMs = 15_000;

const reasons = { progress: childReason(types.updateExecuted, types.drained), ...drainReasons } as const;

/** Watched only while something drains: pods node by node, disruption budgets while one of them blocks. */
interface WatchSet {
  readonly pods: WatchesOnDemand<Pod>;
  readonly budgets: WatchesOnDemand<PodDisruptionBudget>;
  /** Nodes that a budget blocks. */
  readonly blocked: Set<string>;
  /** The last report of a drain and its time (monotonic milliseconds); a restart costs one more write. */
  readonly reported: Map<string, { readonly what: string; readonly at: number }>;
  /** Node → why its drain was last reported as held. */
  readonly held: Map<string, string>;
}
const allBudgets = "all";

/**
 * Takes machines out of service and puts them back, as their daemons request by annotation. The state of a drain is on
 * the objects alone: a new process continues from there. Pods leave by eviction, and never against their budget unless
 * the pool's policy names it. Every drain has its own worker, so that none waits for another.
 */
export function drainController(): Controller {
  let watchSet: WatchSet | undefined;
  const lines = new SourceBuckets(ownLines);
  return {
    name: "drain",
    watches: [
      watching({
        resource: kubernetes.Node,
        keep: trimNode,
        concerns: ({ key, before, after }) =>
          before !== undefined && after !== undefined && requestOf(before) === requestOf(after) ? [] : [key],
      }),
      watching({ resource: MachineConfigNode, concerns: () => [] }),
      watching({
        resource: MachineConfigPool,
        concerns: ({ before, after }, caches) =>
          before === undefined || after === undefined || policyOf(before) === policyOf(after)
            ? []
            : drainingNodes(caches, after),
      }),
    ],
    owns: ["Node.spec.unschedulable", "Node.metadata.annotations/drain", "MachineConfigNode.status/drain"],
    workers: Number.POSITIVE_INFINITY,

    start(add, context) {
      watchSet = watchSetOf(add, context);
    },

    async reconcile(name, everything): Promise<Outcome> {
      const context = { ...everything, report: limited(name, lines, everything) };
      if (watchSet === undefined) throw new Error("bug: the drain controller was not started");
      const node = context.caches.of(kubernetes.Node).get(name);
      const step =
        node === undefined || node.metadata.deletionTimestamp !== undefined
          ? ({ do: "nothing" } as const)
          : drainStep(node);
      if (step.do !== "evict") rest(name, watchSet);
      if (node === undefined) return done();
      switch (step.do) {
        case "nothing":
          return done();
        case "refuse":
          return stalled("UnknownRequest", step.reason);
        case "uncordon":
          return uncordon(node, context);
        case "cordon": {
          const cordoned = await cordon(node, context);
          return cordoned === undefined ? done() : empty(cordoned, context, watchSet);
        }
        case "evict":
          return empty(node, context, watchSet);
      }
    },
  };
}

/**
 * Reports what a drain of a machine makes of it, as often as a drain can be honest: root on the machine asks for drains and
 * takes them back without end. Each target of its pool, which no machine chooses, gives it as many again. What is done to
 * pods is always reported.
 */
function limited(name: string, lines: SourceBuckets, { caches, report, clock, log }: Context): Report {
  const pool = caches.of(MachineConfigNode).get(name)?.spec.pool.name ?? "";
  const target = caches.of(MachineConfigPool).get(pool)?.spec.configuration?.name ?? "";
  return (input) => {
    const isForced = "reason" in input && input.reason === "DrainForced";
    if (isForced || lines.take(lineSource(name, target), clock.now()) === 0) report(input);
    else log.debug({ node: name, says: input.message }, "not reported: it says so much of itself");
  };
}

function watchSetOf(
  add: (node: string) => void,
  { kube, clock, random, log, signal }: Omit<Context, "caches">,
): WatchSet {
  const blocked = new Set<string>();
  const ports = { kube, clock, random, log, signal };
  return {
    pods: new WatchesOnDemand({
      ...ports,
      resource: kubernetes.Pod,
      keep: trimPod,
      most: mostWatchedNodes,
      onChange: add,
    }),
    budgets: new WatchesOnDemand({
      ...ports,
      resource: kubernetes.PodDisruptionBudget,
      keep: trimBudget,
      most: 1,
      onChange: () => blocked.forEach((node) => add(node)),
    }),
    blocked,
    reported: new Map(),
    held: new Map(),
  };
}

const requestOf = ({ metadata, spec }: Node) =>
  JSON.stringify([
    metadata.uid,
    metadata.annotations?.[annotations.desiredDrain],
    metadata.annotations?.[annotations.lastAppliedDrain],
    metadata.annotations?.[annotations.cordonedFor],
    metadata.annotations?.[annotations.drainSkipped],
    spec?.unschedulable === true,
  ]);
const policyOf = (pool: MachineConfigPool) => JSON.stringify(poolPolicy(pool).policy.drain);
const drainingNodes = (caches: Caches, pool: MachineConfigPool) =>
  caches
    .of(kubernetes.Node)
    .list()
    .filter((node) => drainStep(node).do === "evict" && poolOf(node, caches)?.metadata.name === pool.metadata.name)
    .map(({ metadata }) => metadata.name);

/** Nothing needs to watch this node any more. */
function rest(name: string, { pods, budgets, blocked, reported, held }: WatchSet): void {
  pods.close(name);
  reported.delete(name);
  held.delete(name);
  blocked.delete(name);
  if (blocked.size === 0) budgets.close(allBudgets);
}

/** Asks for every pod; an eviction that fails keeps no other pod back, and is thrown at the end. */
async function evictEach(pods: readonly Pod[], context: Context, dryRun = false): Promise<readonly Evicted[]> {
  const failures: unknown[] = [];
  const results = await eachAtOnce(pods, requestsAtOnce, async (pod) => {
    try {
      return [await evict(pod, context, dryRun)];
    } catch (error) {
      failures.push(error);
      return [];
    }
  });
  if (failures.length > 0) throw failures[0];
  return results.flat();
}

const podsOn = async (name: string, { kube, signal }: Context): Promise<readonly Pod[]> =>
  (await kube.list(kubernetes.Pod, { fieldSelector: `spec.nodeName=${name}` }, { signal, keep: trimPod })).items;

/** The budgets of the namespaces of some pods, as the server has them now. */
async function budgetsFor(
  blocked: readonly BlockedPod[],
  { kube, signal }: Context,
): Promise<readonly PodDisruptionBudget[]> {
  const namespaces = [...new Set(blocked.flatMap(({ pod }) => pod.metadata.namespace ?? []))].sort();
  return (
    await eachAtOnce(namespaces, requestsAtOnce, (namespace) =>
      kube.list(kubernetes.PodDisruptionBudget, { namespace }, { signal, keep: trimBudget }),
    )
  ).flatMap(({ items }) => items);
}

interface Forecast {
  readonly plan: DrainPlan;
  readonly said: string | undefined;
  readonly blocked: readonly BlockedPod[];
}

/** Finds out by a dry run which pods would be evicted. A failed prediction blocks nothing. */
async function foresee(name: string, context: Context): Promise<Forecast | undefined> {
  const { log, signal } = context;
  try {
    const plan = planDrain(await podsOn(name, context));
    const blocked = (await evictEach(plan.evict, context, true)).flatMap((result) =>
      result.verdict === "blocked" ? [result] : [],
    );
    return { plan, blocked, said: describeForecast(plan, blocked, await budgetsFor(blocked, context)) };
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn({ node: name, error }, "what the drain will meet could not be foreseen");
    return undefined;
  }
}

/** @returns the node as it is afterwards, or `undefined` when it no longer requests this. */
async function cordon(node: Node, context: Context): Promise<Node | undefined> {
  const { kube, clock, report, signal } = context;
  const { name } = node.metadata;
  const forecast = await foresee(name, context);
  if (forecast?.said !== undefined)
    report({
      about: node,
      notice: "DrainForecast",
      type: forecast.blocked.length > 0 ? "Warning" : "Normal",
      message: `Before ${name} is drained, ${forecast.said}`,
    });
  const written = await updateNode(
    kube,
    node,
    (object) => {
      const step = drainStep(object);
      if (step.do !== "cordon") return { decision: { anew: false } };
      const { anew } = step;
      const removed = null as unknown as string;
      // A drain that was put back into service half-way is still the same drain; a completed one starts anew.
      const began = anew ? undefined : drainBegan(object);
      // Remove an earlier drain's "done" together with this cordon: the daemon would mistake it for the result of this
      // drain.
      const noted = {
        [annotations.cordonedFor]: step.request,
        [annotations.lastAppliedDrain]: removed,
        [annotations.drainBegan]: beganNote(step.request, began?.at ?? timestampOf(clock.now()), forecast?.plan),
        [annotations.drainSkipped]: removed,
      };
      return {
        decision: { anew },
        write: { metadata: { name, annotations: noted }, spec: { unschedulable: true } },
      };
    },
    context,
  );
  if (written === undefined || drainStep(written.object).do !== "evict") return undefined;
  reportCordon(written.object, written.decision.anew, context);
  reportBeginning(written.object, forecast?.plan, forecast?.said, context);
  return written.object;
}

function reportCordon(node: Node, anew: boolean, { report }: Context): void {
  const { name } = node.metadata;
  report({
    about: node,
    book: `node/${name}`,
    ...updateOf(node.metadata.annotations?.[annotations.desiredDrain] ?? ""),
    path: "Executed/Cordoned",
    mark: "end",
    level: "boundary",
    reason: anew ? "CordonedAgain" : "Cordoned",
    message: anew
      ? `Cordoned ${name} again: it had been put back into service while its drain was still needed`
      : `Cordoned ${name} to apply update`,
  });
}

const beganNote = (request: string, at: string, plan: DrainPlan | undefined) =>
  JSON.stringify({ request, at, pods: plan === undefined ? 0 : plan.evict.length + plan.leaving.length });

/** The context of a journal line of this request. */
/** The chapter of the update that a request belongs to; another form of request names the run by its whole text. */
const updateOf = (request: string) =>
  ({ chapter: "Update", run: parseDrainRequest(request)?.config ?? request }) as const;

function reportBeginning(
  node: Node,
  plan: DrainPlan | undefined,
  foreseen: string | undefined,
  { report }: Context,
): void {
  const pods = plan === undefined ? undefined : plan.evict.length + plan.leaving.length;
  const message = `${pods === undefined ? "pods have" : pods === 1 ? "1 pod has" : `${pods} pods have`} to leave${foreseen === undefined ? "" : `; foreseen: ${foreseen}`}`;
  report({
    book: `node/${node.metadata.name}`,
    ...updateOf(node.metadata.annotations?.[annotations.desiredDrain] ?? ""),
    path: "Executed/Drained",
    mark: "begin",
    level: "boundary",
    reason: "Draining",
    message,
    ...(pods === undefined ? {} : { data: { pods } }),
  });
}

/** Records when the drain of a node began that another client had cordoned. */
async function begin(node: Node, plan: DrainPlan, context: Context): Promise<Node | undefined> {
  const { kube, clock, report, signal } = context;
  const written = await updateNode(
    kube,
    node,
    (object) => {
      const step = drainStep(object);
      if (step.do !== "evict" || drainBegan(object) !== undefined) return { decision: "goesOn" };
      const noted = {
        [annotations.drainBegan]: beganNote(step.request, timestampOf(clock.now()), plan),
        [annotations.drainSkipped]: null as unknown as string,
      };
      return { decision: "begins", write: { metadata: { name: node.metadata.name, annotations: noted } } };
    },
    context,
  );
  if (written?.decision === "begins") {
    report({
      // The drain controller did not cordon it.
      about: undefined,
      book: `node/${node.metadata.name}`,
      ...updateOf(written.object.metadata.annotations?.[annotations.desiredDrain] ?? ""),
      path: "Executed/Cordoned",
      mark: "end",
      level: "boundary",
      reason: "Cordoned",
      message: "it was already cordoned",
    });
    reportBeginning(written.object, plan, undefined, context);
  }
  return written?.object;
}

/** The result of one round of evictions on a node. */
interface Round {
  readonly plan: DrainPlan;
  readonly blocked: readonly BlockedPod[];
  readonly leaving: readonly Pod[];
}

/** Requests the eviction of every pod of a node. */
async function evictRound(node: Node, context: Context, watchSet: WatchSet): Promise<Round> {
  const { name } = node.metadata;
  const seen = watchSet.pods.objects(name);
  const holdBuilds = waitsForBuilds(node, context.clock.now());
  const plan = planDrain(seen ?? (await podsOn(name, context)), holdBuilds);
  const results = await evictEach(plan.evict, context);
  const left = leftOf(plan, plan, results);
  const looksEmpty = left.leaving.length === 0 && results.every(({ verdict }) => verdict === "gone");
  if (seen === undefined || !looksEmpty) return left;
  // Ask the server: the watch may not have delivered a pod that was bound just before the cordon.
  const last = planDrain(await podsOn(name, context), holdBuilds);
  return leftOf({ ...plan, building: last.building }, last, await evictEach(last.evict, context));
}

const leftOf = (plan: DrainPlan, asked: DrainPlan, results: readonly Evicted[]): Round => ({
  plan,
  blocked: [
    ...plan.building.map(heldForBuild),
    ...results.flatMap((result) => (result.verdict === "blocked" ? [result] : [])),
  ],
  leaving: [...asked.leaving, ...results.flatMap((result) => (result.verdict === "leaving" ? [result.pod] : []))],
});

/** Continues the drain of a node as soon as a pod leaves, or a blocking budget changes. */
function lookOut(name: string, blocked: readonly BlockedPod[], watchSet: WatchSet): void {
  watchSet.pods.open(name, { fieldSelector: `spec.nodeName=${name}` });
  if (blocked.some(({ by }) => by === "pdb")) {
    watchSet.blocked.add(name);
    watchSet.budgets.open(allBudgets, {});
  } else watchSet.blocked.delete(name);
}

async function empty(node: Node, context: Context, watchSet: WatchSet): Promise<Outcome> {
  const { caches, clock } = context;
  const { name } = node.metadata;
  const request = node.metadata.annotations?.[annotations.desiredDrain] ?? "";
  const round = await evictRound(node, context, watchSet);
  if (round.blocked.length === 0 && round.leaving.length === 0) return confirm(node, request, context, watchSet);
  lookOut(name, round.blocked, watchSet);

  const began = drainBegan(node) ?? drainBegan((await begin(node, round.plan, context)) ?? node);
  if (began === undefined) return done();
  const pool = poolOf(node, caches);
  const { drain } = poolPolicy(pool).policy;
  const seconds = (clock.now() - Date.parse(began.at)) / 1000;
  const budgets = watchSet.budgets.objects(allBudgets) ?? (await budgetsFor(round.blocked, context));
  const verdict = judgeDrain(drain, seconds, round.blocked, budgets);
  if (verdict.do === "force")
    for (const held of verdict.pods) {
      const what = describeBlocked(held, budgets);
      await force(node, held, { pool: pool?.metadata.name ?? "", seconds, what }, context);
    }
  const [blocked, leaving] =
    verdict.do === "force"
      ? [verdict.kept, [...round.leaving, ...verdict.pods.map(({ pod }) => pod)]]
      : [round.blocked, round.leaving];
  const described = describeDrain({ pods: began.pods, blocked, leaving, budgets, now: clock.now() });
  const message = `${described}${verdict.do === "force" ? unforcedText(verdict.kept) : ""}`;
  if (verdict.do === "skip")
    return skip(node, { request, deadlineSeconds: drain.deadlineSeconds ?? 0, message }, context, watchSet);

  const late = verdict.do === "force" || verdict.late;
  const held = late ? reasons.late : blocked.length > 0 ? reasons.blocked : undefined;
  const progress = { reason: held ?? reasons.progress, message, blocked, leaving };
  if (held === undefined) watchSet.held.delete(name);
  else
    reportHeld(
      node,
      { reason: held, message },
      { forces: verdict.do === "force", deadlineSeconds: drain.deadlineSeconds },
      context,
      watchSet,
    );
  await reportProgress(name, progress, context, watchSet);
  const wait = late ? lateRetrySeconds : retrySeconds;
  const sooner =
    drain.deadlineSeconds === undefined || late ? wait : Math.min(wait, Math.max(1, drain.deadlineSeconds - seconds));
  return waiting("Draining", message, sooner);
}

function unforcedText(kept: readonly { readonly unnamed: readonly string[] }[]): string {
  if (kept.length === 0) return "";
  const unnamed = [...new Set(kept.flatMap(({ unnamed }) => unnamed))].sort().join(", ");
  return `; ${kept.length} not forced, because of what the pool's policy does not name: ${unnamed}`;
}

/** How far a drain is. */
interface Progress {
  readonly reason: string;
  readonly message: string;
  readonly blocked: readonly BlockedPod[];
  readonly leaving: readonly Pod[];
}

/**
 * Reports that a drain is late or blocked, unless that was reported already: by this process, or by another one, which the
 * MachineConfigNode shows. Root on the machine can write that one.
 */
function reportHeld(
  node: Node,
  { reason, message }: Pick<Progress, "message"> & { readonly reason: (typeof reasons)["blocked" | "late"] },
  { forces, deadlineSeconds }: { readonly forces: boolean; readonly deadlineSeconds: number | undefined },
  { caches, report }: Context,
  { held }: Pick<WatchSet, "held">,
): void {
  const { name } = node.metadata;
  if (held.get(name) === reason) return;
  held.set(name, reason);
  const before = conditionOf(caches.of(MachineConfigNode).get(name)?.status?.conditions, types.drained);
  if (before?.status === "Unknown" && before.reason === reason) return;
  const goesOn = forces ? "it overrides what the pool's policy names" : "it continues without force";
  report({
    about: node,
    book: `node/${name}`,
    ...updateOf(node.metadata.annotations?.[annotations.desiredDrain] ?? ""),
    path: "Executed/Drained",
    mark: "note",
    level: "boundary",
    reason,
    message:
      reason === reasons.late
        ? `The drain of ${name} takes longer than the ${deadlineSeconds} s that its pool gives it; ${goesOn}: ${message}`
        : `The drain of ${name} waits: ${message}`,
  });
}

/** Writes progress into the MachineConfigNode: news at once, and mere counts at intervals. */
async function reportProgress(
  name: string,
  { reason, message, blocked, leaving }: Progress,
  context: Context,
  watchSet: WatchSet,
): Promise<void> {
  const { clock, log } = context;
  const what = JSON.stringify([
    reason,
    blocked.map(({ pod }) => pod.metadata.uid),
    leaving.filter((pod) => whyStuck(pod, clock.now()) !== undefined).map(({ metadata }) => metadata.uid),
  ]);
  const last = watchSet.reported.get(name);
  if (last?.what !== what || clock.monotonic() - last.at >= progressMs) {
    watchSet.reported.set(name, { what, at: clock.monotonic() });
    await say(name, [cordonedPhase(name), { type: types.drained, status: "Unknown", reason, message }], context);
  }
  log.debug({ node: name, blocked: blocked.length, leaving: leaving.length }, "draining");
}

async function force(
  node: Node,
  { pod }: BlockedPod,
  pending: { readonly pool: string; readonly seconds: number; readonly what: string },
  { kube, report, signal }: Context,
): Promise<void> {
  const text = `${pending.what} is deleted: its node has drained for ${Math.round(pending.seconds)} s, and the policy of pool ${pending.pool} requires it`;
  report({
    about: node,
    book: `node/${node.metadata.name}`,
    ...updateOf(node.metadata.annotations?.[annotations.desiredDrain] ?? ""),
    path: "Executed/Drained",
    mark: "note",
    level: "boundary",
    reason: "DrainForced",
    message: text,
  });
  await kube
    .delete(
      kubernetes.Pod,
      { name: pod.metadata.name, namespace: pod.metadata.namespace ?? "" },
      { ...(pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }), signal },
    )
    .catch((error: unknown) => {
      // Another pod has this name by now.
      if (!(error instanceof KubeError) || error.httpStatus !== 409) throw error;
    });
}

/** Suspends the drain: the node serves again, and another node takes its slot. */
async function skip(
  node: Node,
  {
    request,
    deadlineSeconds,
    message,
  }: { readonly request: string; readonly deadlineSeconds: number; readonly message: string },
  context: Context,
  watchSet: WatchSet,
): Promise<Outcome> {
  const { kube, clock, signal } = context;
  const { name } = node.metadata;
  const again = timestampOf(skippedUntil(clock.now(), deadlineSeconds));
  const written = await updateNode(
    kube,
    node,
    (object) => {
      const step = drainStep(object);
      if (step.do !== "evict" || step.request !== request) return { decision: "overtaken" };
      const removed = null as unknown as string;
      const ours = object.metadata.annotations?.[annotations.cordonedFor] !== undefined;
      const note = JSON.stringify({
        request,
        at: timestampOf(clock.now()),
        again,
        why: message.length <= 512 ? message : `${message.slice(0, 511)}…`,
      });
      const noted = {
        [annotations.drainSkipped]: note,
        [annotations.drainBegan]: removed,
        [annotations.cordonedFor]: removed,
      };
      return {
        decision: "skipped",
        write: {
          metadata: { name, annotations: noted },
          ...(ours ? { spec: { unschedulable: null as unknown as boolean } } : {}),
        },
      };
    },
    context,
  );
  rest(name, watchSet);
  if (written?.decision !== "skipped") return done();
  const text = `The drain of ${name} is given up after the ${deadlineSeconds} s that its pool gives it; the node serves again and is tried again after ${again}: ${message}`;
  await reportSkipped(node, request, text, context);
  return done();
}

async function reportSkipped(node: Node, request: string, text: string, context: Context): Promise<void> {
  const { name } = node.metadata;
  context.report({
    about: node,
    book: `node/${name}`,
    ...updateOf(request),
    path: "Executed/Drained",
    mark: "end",
    level: "boundary",
    outcome: "Skipped",
    reason: reasons.skipped,
    message: text,
  });
  const notNow = { status: "False", reason: reasons.skipped } as const;
  await say(
    name,
    [
      { type: types.cordoned, ...notNow, message: "the drain was given up for now" },
      { type: types.drained, ...notNow, message: text },
    ],
    context,
  );
}

type Evicted =
  | { readonly verdict: "gone" }
  | { readonly verdict: "leaving"; readonly pod: Pod }
  | ({ readonly verdict: "blocked" } & BlockedPod);

async function evict(pod: Pod, { kube, signal }: Context, dryRun = false): Promise<Evicted> {
  try {
    await kube.evict(pod, { signal, dryRun });
    return { verdict: "leaving", pod };
  } catch (error) {
    if (isNotFound(error)) return { verdict: "gone" };
    // A busy server is no budget. 500 is what a pod with two budgets gets (pkg/registry/core/pod/storage/eviction.go,
    // v1.34).
    if (!(error instanceof KubeError) || (isPassing(error) && error.httpStatus !== 409 && error.httpStatus !== 500))
      throw error;
    // A replacement of the same name is another pod, and does not concern this one.
    if (error.httpStatus === 409) return { verdict: "leaving", pod };
    const { httpStatus } = error;
    const causes = (error.status.details?.causes ?? []).flatMap(({ message }) => message ?? []);
    const answer =
      isTooManyRequests(error) && causes.length > 0 ? causes.join(" ") : (error.status.message ?? error.message);
    const byBudget = httpStatus === 429 || (httpStatus === 500 && /more than one PodDisruptionBudget/.test(answer));
    return { verdict: "blocked", pod, by: byBudget ? "pdb" : httpStatus === 500 ? "failed" : "refused", why: answer };
  }
}

async function confirm(node: Node, request: string, context: Context, watchSet: WatchSet): Promise<Outcome> {
  const { kube, report, signal } = context;
  const { name } = node.metadata;
  const written = await updateNode(
    kube,
    node,
    (object) => {
      const step = drainStep(object);
      return step.do === "evict" && step.request === request
        ? {
            decision: "confirmed",
            write: { metadata: { name, annotations: { [annotations.lastAppliedDrain]: request } } },
          }
        : { decision: "overtaken" };
    },
    context,
  );
  rest(name, watchSet);
  if (written?.decision !== "confirmed") return done();
  report({
    book: `node/${name}`,
    ...updateOf(request),
    path: "Executed/Drained",
    mark: "end",
    level: "boundary",
    reason: "Drained",
    message: "all pods have left",
  });
  await say(
    name,
    [
      cordonedPhase(name),
      { type: types.drained, status: "True", reason: reasons.progress, message: "all pods have left" },
    ],
    context,
  );
  return done();
}

async function uncordon(node: Node, context: Context): Promise<Outcome> {
  const { kube, signal } = context;
  const { name } = node.metadata;
  const written = await updateNode(
    kube,
    node,
    (object) => {
      const step = drainStep(object);
      if (step.do !== "uncordon") return { decision: undefined };
      const removed = null as unknown as string;
      const lifted = { unschedulable: null as unknown as boolean };
      const noted = {
        [annotations.cordonedFor]: removed,
        [annotations.drainBegan]: removed,
        [annotations.lastAppliedDrain]: step.request,
      };
      return {
        decision: { ended: step, isCordoned: object.spec?.unschedulable === true },
        write: { metadata: { name, annotations: noted }, ...(step.remedy ? { spec: lifted } : {}) },
      };
    },
    context,
  );
  if (written?.decision === undefined) return done();
  await reportUncordon(node, written.decision.ended, written.decision.isCordoned, context);
  return done();
}

async function reportUncordon(
  node: Node,
  ended: { readonly remedy: boolean; readonly request: string },
  isCordoned: boolean,
  context: Context,
): Promise<void> {
  const { name } = node.metadata;
  const how = ended.remedy
    ? "back in service"
    : isCordoned
      ? "a cordon that is not ours stays"
      : "in service as it was";
  context.report({
    about: ended.remedy ? node : undefined,
    book: `node/${name}`,
    ...updateOf(ended.request),
    path: "Complete/Uncordoned",
    mark: "end",
    level: "boundary",
    reason: ended.remedy || !isCordoned ? "Uncordoned" : "CordonStays",
    message: ended.remedy ? `Update completed for ${name}: it is back in service` : how,
  });
  const message = `last: ${ended.remedy ? "uncordoned" : how} (${ended.request})`;
  await say(name, [{ type: types.uncordoned, status: "False", reason: "Done", message }], context);
}

const cordonedPhase = (name: string): PhaseReport => ({
  type: types.cordoned,
  status: "True",
  reason: childReason(types.updateExecuted, types.cordoned),
  message: `${name} takes no new pods`,
});

function poolOf(node: Node, caches: Caches): MachineConfigPool | undefined {
  const member = poolOfNode(node, caches.of(MachineConfigPool).list());
  return member.verdict === "member" ? caches.of(MachineConfigPool).get(member.pool) : undefined;
}

/** Reports it in the MachineConfigNode. The drain never waits for its report: a failed write is logged. */
async function say(
  name: string,
  reports: readonly PhaseReport[],
  { kube, clock, log, signal }: Context,
): Promise<void> {
  try {
    await updateObject(
      kube,
      MachineConfigNode,
      { name },
      (object) => {
        const before = object.status?.conditions ?? [];
        const conditions = withPhases(before, reports, clock.now());
        return conditions === before
          ? undefined
          : {
              status: {
                conditions: [...conditions],
                observedGeneration: Math.max(object.status?.observedGeneration ?? 1, object.metadata.generation ?? 1),
              },
            };
      },
      { subresource: "status", owner: fieldManagers.drain, signal, byItem: true },
    );
  } catch (error) {
    if (!signal.aborted) log.warn({ error }, "MachineConfigNode not written");
  }
}
