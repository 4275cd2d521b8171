import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, machineConfigNodeConditions as types } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { decideDrain } from "../core/pool/decide-drain.ts";
import type { DrainMemory, DrainPass, DrainView } from "../core/pool/drain-decision.ts";
import { drainStep } from "../core/pool/drain-step.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import { poolPolicy } from "../core/pool/pool-policy.ts";
import { trimNode } from "../core/pool/trim.ts";
import { type Caches, type Context, type Controller, watching } from "../kube/controller.ts";
import type { Outcome } from "../kube/outcome.ts";
import { type Report, reportsOf } from "../kube/report.ts";
import { SourceBuckets } from "../ports/source-buckets.ts";
import { type DrainWatches, drainWatches } from "./drain-watches.ts";
import { type DrainActs, performDrain } from "./perform-drain.ts";
import { lineSource, ownLines } from "./report-pool.ts";

/**
 * Takes machines out of service and puts them back, as their daemons request by annotation. The state of a drain is on
 * the objects alone: a new process continues from there. Pods leave by eviction, and never against their budget unless
 * the pool's policy names it. Every drain has its own worker, so that none waits for another.
 */
export function drainController(): Controller {
  let watches: DrainWatches | undefined;
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
      watches = drainWatches(add, context);
    },

    async reconcile(name, everything): Promise<Outcome> {
      if (watches === undefined) throw new Error("bug: the drain controller was not started");
      return runPass({ name, watches, context: { ...everything, report: limited(name, lines, everything) } });
    },
  };
}

/**
 * Decides until a decision ends the pass: questions that a decision asks, and preparations, lead to another decision.
 */
async function runPass(acts: DrainActs): Promise<Outcome> {
  const { name, watches, context } = acts;
  let pass: DrainPass = { node: context.caches.of(kubernetes.Node).get(name) };
  for (;;) {
    const decision = decideDrain(observeDrain(name, pass, context), watches.memories.get(name) ?? nothingReported);
    context.log.debug({ node: name, decision: decision.do, because: decision.because }, "decided");
    const performed = await performDrain(decision, pass, acts);
    if ("kind" in performed) return performed;
    pass = performed;
  }
}

const nothingReported: DrainMemory = { held: undefined, reported: undefined };

/** What decides about the drain of a node: what the pass has found out, and what the caches show around it. */
function observeDrain(name: string, pass: DrainPass, { caches, clock }: Context): DrainView {
  const pool = pass.node === undefined ? undefined : poolOf(pass.node, caches);
  return {
    ...pass,
    now: clock.now(),
    monotonic: clock.monotonic(),
    pool: { name: pool?.metadata.name ?? "", drain: poolPolicy(pool).policy.drain },
    drained: conditionOf(caches.of(MachineConfigNode).get(name)?.status?.conditions, types.drained),
  };
}

function poolOf(node: Node, caches: Caches): MachineConfigPool | undefined {
  const member = poolOfNode(node, caches.of(MachineConfigPool).list());
  return member.verdict === "member" ? caches.of(MachineConfigPool).get(member.pool) : undefined;
}

/**
 * Reports what a drain of a machine makes of it, as often as a drain can be honest: root on the machine asks for drains and
 * takes them back without end. Each target of its pool, which no machine chooses, gives it as many again. What is done to
 * pods is always reported.
 */
function limited(name: string, lines: SourceBuckets, { caches, report, clock, log }: Context): Report {
  const pool = caches.of(MachineConfigNode).get(name)?.spec.pool.name ?? "";
  const target = caches.of(MachineConfigPool).get(pool)?.spec.configuration?.name ?? "";
  return (happening) => {
    const reports = reportsOf(happening);
    const isForced = reports.some((one) => "reason" in one && one.reason === "DrainForced");
    if (isForced || lines.take(lineSource(name, target), clock.now()) === 0) report(happening);
    else log.debug({ node: name, says: reports[0]?.message }, "not reported: it says so much of itself");
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
