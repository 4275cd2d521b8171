import { greatestOf, leastOf } from "../api/schema/extremes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { OSImageStream } from "../api/kinds/os-image-stream.ts";
import { namespace, objects } from "../api/names.ts";
import { selectorProblem } from "../core/config/pool-selector.ts";
import { openshift } from "../api/foreign/openshift.ts";
import {
  type Facts,
  etcdMembers,
  etcdPods,
  operatorNodeOf,
  poolFacts,
  rolloutPolicy,
} from "../core/pool/pool-queries.ts";
import { buildSettings } from "../core/build/build-settings.ts";
import { certificateExpiries } from "../core/render/controller-config-of.ts";
import type { PoolFacts } from "../core/pool/pool-progress.ts";
import { poolStatusInputs } from "../core/pool/pool-status.ts";
import { isOpenShiftBy } from "../core/render/openshift-inputs.ts";
import { streamOfRendered } from "../core/render/os-streams.ts";
import { storageOverridesOf } from "../core/render/render-for-pool.ts";
import {
  relevantOfMachineConfigNode,
  relevantOfNode,
  trimBuild,
  trimMachineConfig,
  trimNode,
  trimReadiness,
} from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Context, type Controller, type Watch, watching } from "../kube/controller.ts";
import type { Selection } from "../kube/kube-client.ts";
import { type Outcome, done, stalled } from "../kube/outcome.ts";
import { giveTargets, keepQuarantine, reportDeferred } from "./choose-targets.ts";
import { markMembers } from "./mark-members.ts";
import { NodeMemory } from "./node-memory.ts";
import { writesOfMachine } from "./refused-writes.ts";
import { reportCanary, reportInconsistencies, writePoolStatus } from "./report-pool.ts";
import { poolSelectsAll } from "./reports.ts";

/** Delay after a write conflict: the conflicting write may be of a kind that no watch here reports. */
const overtakenSeconds = 1;
/** Between attempts to give a machine a target that its objects do not take. */
const refusedAgainMs = 60_000;
/** Joining machines are awaited for a limited time; no watch reports when it is over. */
const joiningAgainSeconds = 300;

export const daemonPods: Selection = { namespace, labelSelector: `k8s-app=${objects.daemon}` };
/** ConfigMap with the settings of all pools that boot images. */
const buildConfig: Selection = { namespace, fieldSelector: `metadata.name=${objects.buildConfig}` };
export const operatorPods: Selection = { namespace, labelSelector: `k8s-app=${objects.operator}` };

/**
 * Assigns targets to the machines of a pool, as many at a time as the pool allows (`choose-targets.ts`), marks its
 * machines (`mark-members.ts`), and reports the status of the pool (`report-pool.ts`).
 */
export function nodeController(): Controller {
  const memory = new NodeMemory();
  return {
    name: "node",
    watches: [...watchesOfMachines(memory), ...watchesOfPods(memory), ...watchesOfSettings(memory)],
    owns: [
      "Node.metadata.annotations/desired",
      "Node.spec.taints/UpdateInProgress",
      "MachineConfigPool.status",
      "MachineConfigPool.metadata.annotations/quarantined",
      "MachineConfigNode.spec",
    ],
    // One at a time: the rule of the control plane covers all pools.
    workers: 1,

    start(add, context) {
      memory.start(context, add);
    },

    async reconcile(name, context): Promise<Outcome> {
      const pool = memory.cluster.pool(name);
      if (pool === undefined) return done();
      const problem = pool.spec.nodeSelector === undefined ? undefined : selectorProblem(pool.spec.nodeSelector);
      if (problem?.is === "empty") {
        context.report(poolSelectsAll(pool, "nodes"));
        return stalled("SelectingAll", "the nodeSelector is empty and would select every node");
      }
      memory.faults.begin();
      const outcome = await reconcilePool(pool, memory, context);
      memory.faults.end();
      return outcome;
    },
  };
}

/** One pass over a pool: targets first, then its status, then the marks of its machines. */
async function reconcilePool(pool: MachineConfigPool, memory: NodeMemory, context: Context): Promise<Outcome> {
  const { cluster, writes } = memory;
  const { name } = pool.metadata;
  // Anything not due at this time is checked again when it is, also if that happens during a write.
  const begunAt = memory.now();
  const resent = await writes.resend(context, (machine, work) => {
    const node = { kind: "Node", name: machine } as const;
    return memory.faults.rests(node, begunAt)
      ? Promise.resolve("refused")
      : writesOfMachine(node, memory, context, work);
  });
  for (const other of cluster.pass(begunAt)) if (other !== name) memory.reconcile(other);

  const refused = await keepQuarantine(pool, memory, memory.choice, context);
  const { target } = cluster.members(name);
  const observe = (): PoolFacts | undefined =>
    poolFacts(factsIn(context.caches, memory), name, { alsoQuarantined: refused ? [target] : [] });
  const topology = cluster.controlPlane.size === 1 ? "SingleReplica" : "HighlyAvailable";
  const before = observe();
  if (before === undefined) return done();
  reportDeferred(before, memory.choice, context);
  const given = await giveTargets(before, topology, memory, context);
  const after = observe();
  if (after === undefined) return done();
  const certificates = certificateExpiries(context.caches.of(ControllerConfig).get(objects.controllerConfig));
  const stream = streamOfRendered(
    context.caches.of(MachineConfig).get(after.members.target),
    context.caches.of(OSImageStream).get(objects.clusterSingleton),
  );
  await writePoolStatus({ ...after, certificates, stream }, memory.reports, context);
  reportInconsistencies(pool, cluster, memory.now(), memory.reports, context);
  wakeOthersByDefault(after, memory);
  const marked = await markMembers(after, topology, memory, memory.marks, context);
  if ([resent, given, marked].includes("overtaken")) return done(overtakenSeconds);
  if (marked === "more") return done(0);
  const times = [
    nextPass(after, begunAt, memory, context),
    [resent, given, marked].includes("refused") ? begunAt + refusedAgainMs : undefined,
  ];
  const next = earliest(times);
  return next === undefined ? done() : done(Math.max(0, next - memory.now()) / 1000);
}

/** The control-plane pools that wait for this pool have no watch that wakes them: it is done, paused, or opted out. */
function wakeOthersByDefault({ pool, members }: PoolFacts, memory: NodeMemory): void {
  const isAwaited = members.image.byDefault && pool.spec.paused !== true && members.updated < members.size;
  const others = memory.controlPlanePools();
  // Nothing waits for a pool with machines of the control plane.
  if (isAwaited || others.includes(pool.metadata.name)) return;
  for (const other of others) if (memory.cluster.members(other).image.byDefault) memory.reconcile(other);
}

/** When time alone may change the result for a pool, in milliseconds since the epoch; `undefined`: never. */
function nextPass(
  { pool, members }: PoolFacts,
  begunAt: number,
  memory: NodeMemory,
  context: Context,
): number | undefined {
  const { canary } = rolloutPolicy(factsIn(context.caches, memory), pool);
  const times = [
    memory.cluster.nextPass(begunAt),
    canary === undefined ? undefined : reportCanary(pool, members, canary, begunAt, memory.reports, context),
    ...[...members.skipped.values()].map(({ skippedUntil }) => Date.parse(skippedUntil)),
    members.joining.size > 0 ? memory.now() + joiningAgainSeconds * 1000 : undefined,
  ];
  return earliest(times.filter((moment) => moment !== undefined && moment > begunAt));
}

function earliest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : leastOf(known);
}

function watchesOfMachines(memory: NodeMemory): readonly [Watch, ...Watch[]] {
  return [
    watching({
      resource: MachineConfigPool,
      concerns: ({ key, before, after }) => {
        const concerned = memory.putPool(key, after);
        const isMoved =
          before === undefined ||
          after === undefined ||
          !equalValues(before.spec.nodeSelector, after.spec.nodeSelector);
        if (isMoved) memory.markAll(concerned);
        // The controllers' own writes concern no pool, unless nothing was heard of one.
        return isMoved || !asksTheSame(before, after) || memory.reports.unanswered.has(key) ? concerned : [];
      },
    }),
    watching({
      resource: kubernetes.Node,
      keep: trimNode,
      concerns: ({ key, before, after }) =>
        before !== undefined && after !== undefined && equalValues(relevantOfNode(before), relevantOfNode(after))
          ? []
          : memory.putNode(key, after === undefined ? undefined : memory.writes.view(after)),
    }),
    watching({
      resource: MachineConfigNode,
      concerns: ({ key, before, after }) => {
        const isSame =
          before !== undefined &&
          after !== undefined &&
          equalValues(relevantOfMachineConfigNode(before), relevantOfMachineConfigNode(after));
        return isSame ? [] : memory.putMachineConfigNode(key, after);
      },
    }),
  ];
}

/** Whether a pool asks for the same roll-out as before. */
const asksTheSame = (before: MachineConfigPool, after: MachineConfigPool) =>
  equalValues(before.spec.maxUnavailable, after.spec.maxUnavailable) &&
  before.spec.paused === after.spec.paused &&
  equalValues(poolStatusInputs(before), poolStatusInputs(after));

/** Whether machines are managed, and which other components run on those of the control plane. */
function watchesOfPods(memory: NodeMemory): readonly Watch[] {
  return [
    watching({
      resource: kubernetes.Pod,
      selection: daemonPods,
      keep: trimReadiness,
      concerns: (change) => memory.putDaemonPod(change),
    }),
    watching({
      resource: kubernetes.Pod,
      selection: operatorPods,
      keep: trimReadiness,
      concerns: ({ before, after }) =>
        operatorNodeOf([before ?? []].flat()) === operatorNodeOf([after ?? []].flat())
          ? []
          : memory.controlPlanePools(),
    }),
    ...etcdPods.map((selection) =>
      watching({
        resource: kubernetes.Pod,
        selection,
        keep: trimReadiness,
        concerns: ({ before, after }) =>
          equalValues(etcdMembers([before ?? []].flat(), true), etcdMembers([after ?? []].flat(), true))
            ? []
            : memory.controlPlanePools(),
      }),
    ),
  ];
}

/** The other inputs of roll-outs. */
function watchesOfSettings(memory: NodeMemory): readonly Watch[] {
  const allPools = () => memory.cluster.pools().map(({ metadata }) => metadata.name);
  return [
    watching({ resource: MachineConfig, keep: trimMachineConfig, concerns: () => [] }),
    watching({
      resource: MachineConfiguration,
      concerns: ({ before, after }) =>
        equalValues(storageOverridesOf(before), storageOverridesOf(after)) ? [] : allPools(),
    }),
    watching({
      resource: ControllerConfig,
      concerns: ({ before, after }) =>
        equalValues(certificateExpiries(before), certificateExpiries(after)) &&
        isOpenShiftBy(before) === isOpenShiftBy(after)
          ? []
          : allPools(),
    }),
    watching({
      resource: MachineOSConfig,
      concerns: ({ key, after }) => memory.cluster.putMachineOSConfig(key, after, memory.now()),
    }),
    watching({
      resource: MachineOSBuild,
      keep: trimBuild,
      concerns: ({ key, before, after }) => memory.cluster.putMachineOSBuild(key, after, before, memory.now()),
    }),
    watching({
      resource: kubernetes.ConfigMap,
      selection: buildConfig,
      concerns: ({ after }) => memory.cluster.setGrace(buildSettings(after?.data).optOutGraceMs, memory.now()),
    }),
    watching({
      resource: OSImageStream,
      optional: true,
      concerns: ({ before, after }) => (equalValues(before?.status, after?.status) ? [] : allPools()),
    }),
    watching({
      resource: openshift.Scheduler,
      optional: true,
      concerns: () => {
        memory.markAll(memory.controlPlanePools());
        return memory.controlPlanePools();
      },
    }),
  ];
}

function factsIn(caches: Caches, memory: NodeMemory): Facts {
  const now = memory.now();
  const silentMs = greatestOf(
    [MachineConfigPool, kubernetes.Node, MachineConfigNode].map((resource) =>
      caches.of(resource as typeof MachineConfigPool).silentForMs(),
    ),
  );
  return {
    now,
    heardAt: now - silentMs,
    members: memory.cluster,
    machineConfig: (name) => caches.of(MachineConfig).get(name),
    storageOverrides: storageOverridesOf(caches.of(MachineConfiguration).get(objects.machineConfiguration)),
    etcd: etcdMembers(
      etcdPods.flatMap((selection) => caches.of(kubernetes.Pod, selection).list()),
      isOpenShiftBy(caches.of(ControllerConfig).get(objects.controllerConfig)),
    ),
    operatorNode: operatorNodeOf(caches.of(kubernetes.Pod, operatorPods).list()),
  };
}
