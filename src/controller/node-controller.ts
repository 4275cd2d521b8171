import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { type Node, type Pod, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, fieldManagers, namespace, notYetSet, objects, taints } from "../api/names.ts";
import { selectorIsEmpty } from "../api/schema/object.ts";
import type { StoryLineIn } from "../api/books/stories.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { type Facts, rolloutPolicy, etcdMembers, operatorNodeOf, poolFacts } from "../core/pool/answers.ts";
import { buildSettings } from "../core/build/build-settings.ts";
import { ClusterMembers } from "../core/pool/cluster-members.ts";
import { certificateExpiries } from "../core/render/controller-config-of.ts";
import { controlPlaneMarks } from "../core/pool/control-plane-marks.ts";
import { imageAnnotations, imageIn, isDigestPullspec, shortImage, stockTarget } from "../core/config/image-pair.ts";
import { labelsOfFirstPool } from "../core/pool/pool-of-node.ts";
import type { PoolFacts } from "../core/pool/pool-progress.ts";
import { causeOf, changedSources } from "../core/config/changed-sources.ts";
import type { PoolMembers } from "../core/pool/pool-members.ts";
import { poolStatus, poolStatusInputs, startsRollout } from "../core/pool/pool-status.ts";
import { poolTurns, rolloutBegins } from "../core/pool/pool-story.ts";
import { quarantineStep } from "../core/pool/quarantine.ts";
import { reconcile as reconcileConfigs } from "../core/config/reconcilable.ts";
import { type Choice, canaryFacts } from "../core/pool/select-nodes.ts";
import {
  relevantOfMachineConfigNode,
  relevantOfNode,
  slimBuild,
  slimMachineConfig,
  slimNode,
  slimReadiness,
} from "../core/pool/slim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Context, type Controller, watching } from "../kube/controller.ts";
import { type Selection, updateObject } from "../kube/kube-client.ts";
import { KubeError, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, settled, stalled } from "../kube/outcome.ts";
import type { Change } from "../kube/watch-cache.ts";
import type { Scribe } from "../ports/scribe.ts";
import { PatchedNodes } from "./patched-nodes.ts";

/** After a write that was overtaken: the news of what overtook it may be of a kind that nobody listens for. */
const overtakenSeconds = 1;
/** Machines that join are awaited for a while only; nobody tells when that is over. */
const joiningLookSeconds = 300;
/**
 * How many machines are written at the same time, and how many are marked in one look: the next target must not wait
 * for marks.
 */
const atOnce = 16;
const marksAtOnce = 200;

export const daemonPods: Selection = { namespace, labelSelector: `k8s-app=${objects.daemon}` };
/** ConfigMap with what holds for all pools that boot images. */
const buildConfig: Selection = { namespace, fieldSelector: `metadata.name=${objects.buildConfig}` };
export const operatorPods: Selection = { namespace, labelSelector: `k8s-app=${objects.operator}` };
/** Pods of etcd on OpenShift, and on clusters that kubeadm made. */
export const etcdPods: readonly Selection[] = [
  { namespace: "openshift-etcd", labelSelector: "app=etcd" },
  { namespace: "kube-system", labelSelector: "component=etcd" },
];

interface Standing {
  readonly pool: string;
  readonly target: string;
  readonly is: "updated" | "failed" | "other";
}

type Written = "written" | "overtaken";

/**
 * Gives machines of a pool its target, as many at a time as the pool allows, and says how the pool is. What it knows of
 * machines is kept from their single changes, so that a look at a pool costs what is under way there.
 */
export function nodeController(): Controller {
  const patched = new PatchedNodes();
  const cluster = new ClusterMembers();
  /** Pool → members whose marks and MachineConfigNodes were not looked at since they changed. */
  const unmarked = new Map<string, Set<string>>();
  /** What the marks of all members of a pool follow from besides themselves. */
  const marksFrom = new Map<string, string>();
  /** Pool → the target that its book knows of. */
  const storied = new Map<string, string>();
  const told = {
    contradictions: new Map<string, string>(),
    homeless: new Map<string, string>(),
    deferred: new Map<string, string>(),
    canary: new Map<string, string>(),
  };
  /** Findings between two rendered configs, which never change. The last few are kept. */
  const irreconcilable = new Map<string, readonly string[]>();
  let now: () => number = () => 0;
  let scribe: Scribe | undefined;
  let lookAt: (pool: string) => void = () => undefined;

  function toMark(pool: string): Set<string> {
    const found = unmarked.get(pool) ?? new Set();
    unmarked.set(pool, found);
    return found;
  }

  /** Takes in what is known of a node now: from the watch, or from our own patch. */
  function see(name: string, node: Node | undefined): readonly string[] {
    const wasControlPlane = cluster.controlPlane.has(name);
    const before = standingOf(name);
    const concerned = new Set(cluster.putNode(name, node, now()));
    tellStanding(name, before, standingOf(name));
    for (const pool of concerned) toMark(pool).add(name);
    // Machines of the control plane wait for each other across pools.
    if (wasControlPlane || cluster.controlPlane.has(name)) for (const pool of controlPlanePools()) concerned.add(pool);
    return [...concerned];
  }

  /** Where a machine stands in the roll-out of its pool. */
  function standingOf(name: string): Standing | undefined {
    const membership = cluster.node(name)?.membership;
    if (membership?.verdict !== "member") return undefined;
    const members = cluster.members(membership.pool);
    return {
      pool: membership.pool,
      target: members.target,
      is: members.degraded.has(name) ? "failed" : members.isUpdated(name) ? "updated" : "other",
    };
  }

  /** One line for each machine in the book of its pool; its own chapter has the rest. */
  function tellStanding(name: string, before: Standing | undefined, after: Standing | undefined): void {
    if (
      before === undefined ||
      after === undefined ||
      before.pool !== after.pool ||
      before.target !== after.target ||
      before.is === after.is ||
      after.target === "" ||
      after.is === "other"
    )
      return;
    // When every machine has had the target, what happens to one of them is no part of that any more.
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
      scribe?.line({ ...here, mark: "end", reason: "NodeUpdated", message: `${name} has ${after.target}` });
    else
      scribe?.line({
        ...here,
        mark: "fail",
        reason: "NodeFailed",
        message: `${name} cannot go on without help: ${cluster.node(name)?.facts.says ?? ""}`,
      });
  }

  function controlPlanePools(): readonly string[] {
    return [...cluster.controlPlane.keys()].flatMap((name) => {
      const membership = cluster.node(name)?.membership;
      return membership?.verdict === "member" ? [membership.pool] : [];
    });
  }

  function irreconcilableBetween(from: string, to: string, caches: Caches): readonly string[] {
    if (from === "" || to === "" || from === to) return [];
    const key = `${from} ${to}`;
    const known = irreconcilable.get(key);
    if (known !== undefined) return known;
    const [before, after] = [caches.of(MachineConfig).get(from), caches.of(MachineConfig).get(to)];
    if (before === undefined || after === undefined) return [];
    const found = reconcileConfigs(before, after).map(({ field, reason }) => `${field} ${reason}`);
    irreconcilable.set(key, found);
    const oldest = irreconcilable.keys().next();
    if (irreconcilable.size > 32 && oldest.done !== true) irreconcilable.delete(oldest.value);
    return found;
  }

  function factsIn(caches: Caches): Facts {
    const silentMs = Math.max(
      ...[MachineConfigPool, kubernetes.Node, MachineConfigNode].map((resource) =>
        caches.of(resource as typeof MachineConfigPool).silentForMs(),
      ),
    );
    return {
      now: now(),
      heardAt: now() - silentMs,
      members: cluster,
      machineConfig: (name) => caches.of(MachineConfig).get(name),
      etcd: etcdMembers(etcdPods.flatMap((selection) => caches.of(kubernetes.Pod, selection).list())),
      operatorNode: operatorNodeOf(caches.of(kubernetes.Pod, operatorPods).list()),
    };
  }

  /** Sends a patch that holds only while nobody else wrote the node. */
  async function send(name: string, body: object, { kube, caches, signal }: Context): Promise<Written> {
    try {
      const after = await kube.patch(
        kubernetes.Node,
        { name },
        { type: "merge", body },
        { owner: fieldManagers.node, signal },
      );
      patched.done(slimNode(after));
      return "written";
    } catch (error) {
      const isRefusal =
        error instanceof KubeError &&
        error.httpStatus >= 400 &&
        error.httpStatus < 500 &&
        error.httpStatus !== 408 &&
        error.httpStatus !== 429;
      if (!isRefusal) throw error;
      patched.drop(name);
      if (error.httpStatus === 409 || isNotFound(error)) return "overtaken";
      throw error;
    } finally {
      const cached = caches.of(kubernetes.Node).get(name);
      see(name, cached === undefined ? undefined : patched.view(cached));
    }
  }

  async function change(
    node: Node,
    changes: {
      readonly annotations?: Readonly<Record<string, string | null>>;
      readonly labels?: Readonly<Record<string, string | null>>;
      readonly taints?: NonNullable<Node["spec"]>["taints"];
    },
    context: Context,
  ): Promise<Written> {
    const { name, resourceVersion } = node.metadata;
    const body = {
      metadata: {
        resourceVersion,
        ...(changes.annotations === undefined ? {} : { annotations: changes.annotations }),
        ...(changes.labels === undefined ? {} : { labels: changes.labels }),
      },
      ...(changes.taints === undefined ? {} : { spec: { taints: changes.taints } }),
    };
    const assumed: Node = {
      ...node,
      metadata: {
        ...node.metadata,
        annotations: withChanges(node.metadata.annotations, changes.annotations),
        labels: withChanges(node.metadata.labels, changes.labels),
      },
      ...(changes.taints === undefined ? {} : { spec: { ...node.spec, taints: changes.taints } }),
    };
    patched.begin(node, assumed, body);
    return send(name, body, context);
  }

  return {
    name: "node",
    watches: [
      watching({
        resource: MachineConfigPool,
        concerns: ({ key, before, after }) => {
          const concerned = cluster.putPool(key, after, now());
          if (after === undefined) {
            storied.delete(key);
            scribe?.line({
              book: `pool/${key}`,
              chapter: "Deleted",
              path: "Deleted",
              mark: "end",
              level: "boundary",
              reason: "PoolDeleted",
              message: "the pool was deleted",
            });
            unmarked.delete(key);
            marksFrom.delete(key);
          }
          const moved =
            !equalValues(before?.spec.nodeSelector, after?.spec.nodeSelector) ||
            before === undefined ||
            after === undefined;
          if (moved)
            for (const pool of concerned) for (const { name } of cluster.members(pool).all()) toMark(pool).add(name);
          if (moved) return concerned;
          // What we wrote ourselves concerns nobody.
          const isSame =
            equalValues(before.spec.maxUnavailable, after.spec.maxUnavailable) &&
            before.spec.paused === after.spec.paused &&
            equalValues(poolStatusInputs(before), poolStatusInputs(after));
          return isSame ? [] : concerned;
        },
      }),
      watching({
        resource: kubernetes.Node,
        keep: slimNode,
        concerns: ({ key, before, after }) =>
          before !== undefined && after !== undefined && equalValues(relevantOfNode(before), relevantOfNode(after))
            ? []
            : see(key, after === undefined ? undefined : patched.view(after)),
      }),
      watching({
        resource: MachineConfigNode,
        concerns: ({ key, before, after }) => {
          if (
            before !== undefined &&
            after !== undefined &&
            equalValues(relevantOfMachineConfigNode(before), relevantOfMachineConfigNode(after))
          )
            return [];
          const standing = standingOf(key);
          const concerned = cluster.putMachineConfigNode(key, after, now());
          tellStanding(key, standing, standingOf(key));
          for (const pool of concerned) toMark(pool).add(key);
          return concerned;
        },
      }),
      watching({
        resource: kubernetes.Pod,
        selection: daemonPods,
        keep: slimReadiness,
        concerns: (change_) => seeDaemon(change_),
      }),
      watching({
        resource: kubernetes.Pod,
        selection: operatorPods,
        keep: slimReadiness,
        concerns: ({ before, after }) =>
          operatorNodeOf([before ?? []].flat()) === operatorNodeOf([after ?? []].flat()) ? [] : controlPlanePools(),
      }),
      ...etcdPods.map((selection) =>
        watching({
          resource: kubernetes.Pod,
          selection,
          keep: slimReadiness,
          concerns: ({ before, after }) =>
            equalValues(etcdMembers([before ?? []].flat()), etcdMembers([after ?? []].flat()))
              ? []
              : controlPlanePools(),
        }),
      ),
      watching({ resource: MachineConfig, keep: slimMachineConfig, concerns: () => [] }),
      watching({
        resource: ControllerConfig,
        concerns: ({ before, after }) =>
          equalValues(certificateExpiries(before), certificateExpiries(after))
            ? []
            : cluster.pools().map(({ metadata }) => metadata.name),
      }),
      watching({
        resource: MachineOSConfig,
        concerns: ({ key, after }) => cluster.putMachineOSConfig(key, after, now()),
      }),
      watching({
        resource: MachineOSBuild,
        keep: slimBuild,
        concerns: ({ key, before, after }) => cluster.putMachineOSBuild(key, after, before, now()),
      }),
      watching({
        resource: kubernetes.ConfigMap,
        selection: buildConfig,
        concerns: ({ after }) => cluster.setGrace(buildSettings(after?.data).optOutGraceMs, now()),
      }),
      watching({
        resource: openshift.Scheduler,
        optional: true,
        concerns: () => {
          for (const pool of controlPlanePools())
            for (const { name } of cluster.members(pool).all()) toMark(pool).add(name);
          return controlPlanePools();
        },
      }),
    ],
    owns: [
      "Node.metadata.annotations/desired",
      "Node.spec.taints/UpdateInProgress",
      "MachineConfigPool.status",
      "MachineConfigPool.metadata.annotations/quarantined",
      "MachineConfigNode.spec",
    ],
    // One at a time: the rule of the control plane looks over all pools.
    workers: 1,

    start(add, context) {
      now = () => context.clock.now();
      scribe = context.scribe;
      lookAt = add;
    },

    async reconcile(name, context): Promise<Outcome> {
      const pool = cluster.pool(name);
      if (pool === undefined) return settled();
      if (pool.spec.nodeSelector !== undefined && selectorIsEmpty(pool.spec.nodeSelector)) {
        context.events.event(pool, {
          type: "Warning",
          reason: "SelectingAll",
          message: "This machineconfigpool is selecting all nodes. A non-empty selector is required.",
        });
        return stalled("SelectingAll", "the nodeSelector is empty and would select every node");
      }
      // What is not due yet at this moment is looked at again when it is, also when that comes while something is being
      // written.
      const begunAt = now();
      let overtaken = false;
      for (const { name: node, body } of patched.unanswered())
        if ((await send(node, body, context)) === "overtaken") overtaken = true;
      for (const other of cluster.pass(begunAt)) if (other !== name) lookAt(other);

      const refused = await keepQuarantine(pool, context);
      const { target } = cluster.members(name);
      const look = (): PoolFacts | undefined =>
        poolFacts(factsIn(context.caches), name, {
          alsoQuarantined: refused ? [target] : [],
          irreconcilable: irreconcilableBetween(pool.status?.configuration?.name ?? "", target, context.caches),
        });
      const topology = cluster.controlPlane.size === 1 ? "SingleReplica" : "HighlyAvailable";
      const before = look();
      if (before === undefined) return settled();
      tellDeferred(before, context);
      if ((await giveTargets(before, topology, context)) === "overtaken") overtaken = true;
      const after = look();
      if (after === undefined) return settled();
      await writeStatus(
        {
          ...after,
          certificates: certificateExpiries(context.caches.of(ControllerConfig).get(objects.controllerConfig)),
        },
        context,
      );
      tellOddities(pool, context);
      // Whoever waits for these machines hears nothing of them by itself.
      if (after.members.image.byDefault && after.members.updated === after.members.size)
        for (const other of controlPlanePools())
          if (other !== name && cluster.members(other).image.byDefault) lookAt(other);
      const marked = await markMembers(after, topology, context);
      if (overtaken || marked === "overtaken") return settled(overtakenSeconds);
      if (marked === "more") return settled(0);
      const { canary } = rolloutPolicy(factsIn(context.caches), pool);
      const moments = [
        cluster.nextPass(begunAt),
        canary === undefined ? undefined : tellCanary(pool, after.members, canary, begunAt, context),
        ...[...after.members.skipped.values()].map(({ skippedUntil }) => Date.parse(skippedUntil)),
        after.members.joining.size > 0 ? now() + joiningLookSeconds * 1000 : undefined,
      ].filter((moment) => moment !== undefined && moment > begunAt) as readonly number[];
      return moments.length === 0 ? settled() : settled(Math.max(0, Math.min(...moments) - now()) / 1000);
    },
  };

  function seeDaemon({ before, after }: Change<Pod>): readonly string[] {
    const concerned = new Set<string>();
    const [had, has] = [before?.spec?.nodeName, after?.spec?.nodeName];
    if (had !== undefined && had !== has)
      for (const pool of cluster.putDaemonPod(had, undefined, now())) concerned.add(pool);
    if (has !== undefined && !equalValues(before?.status, after?.status))
      for (const pool of cluster.putDaemonPod(has, after, now())) concerned.add(pool);
    return [...concerned];
  }

  async function giveTargets(
    { pool, members, selection }: PoolFacts,
    topology: string,
    context: Context,
  ): Promise<Written> {
    const { events, log, scribe } = context;
    const { name } = pool.metadata;
    const { target } = members;
    // Who joins while its pool's image is being made starts without one.
    const pair = members.image.awaits === undefined ? members.image : stockTarget;
    const because =
      selection.chosen.length === 0
        ? {}
        : causeOf(changedSources(pool, (config) => context.caches.of(MachineConfig).get(config)));
    let result: Written = "written";
    const given: string[] = [];
    await eachAtOnce(selection.chosen, async ({ node: chosen, was }: Choice) => {
      const node = cluster.node(chosen)?.node;
      if (node === undefined) return;
      const withoutTaint = taintsOf(node, false);
      // Which pool it is in is said before what it gets from it.
      await describe(name, chosen, context);
      const written = await change(
        node,
        {
          annotations: {
            [annotations.desiredConfig]: target,
            ...imageAnnotations(pair, node),
            [annotations.controlPlaneTopology]: topology,
            ...(node.metadata.annotations?.[annotations.drainSkipped] === undefined
              ? {}
              : { [annotations.drainSkipped]: null }),
          },
          ...(withoutTaint === undefined ? {} : { taints: withoutTaint }),
        },
        context,
      );
      if (written === "overtaken") {
        result = written;
        return;
      }
      given.push(chosen);
      log.info(
        {
          pool: name,
          node: chosen,
          target,
          ...(pair.image === "" ? {} : { image: pair.image }),
          was,
          ...selection.budget,
        },
        "node targeted",
      );
      const has = node.metadata.annotations ?? {};
      const taken = has[annotations.desiredConfig] ?? "";
      const from = imageIn(has, "current");
      if (has[annotations.currentConfig] === target && from === pair.image) {
        // It has that already: what it was to go to was taken back.
        if (taken !== "" && taken !== target)
          scribe.line({
            book: `node/${chosen}`,
            chapter: "Update",
            run: taken,
            path: "Updated",
            mark: "end",
            level: "boundary",
            outcome: "Superseded",
            reason: "Superseded",
            message: `${taken} was taken back, and ${chosen} stays on ${target}`,
          });
        return;
      }
      scribe.line({
        book: `node/${chosen}`,
        chapter: "Update",
        run: target,
        path: "Requested",
        mark: "begin",
        level: "boundary",
        reason: "TargetSet",
        message: `${chosen} gets ${target}${pair.image === from ? "" : pair.image === "" ? " and goes back to the stock OS" : ` in image ${shortImage(pair.image)}`}`,
        data: {
          from: has[annotations.currentConfig] ?? "",
          to: target,
          ...(pair.image === from ? {} : { fromImage: from, toImage: pair.image }),
          pool: name,
          ...because,
          parent: `pool/${name} Rollout ${target}`,
        },
      });
    });
    given.sort();
    if (given.length === 1)
      events.event(pool, {
        type: "Normal",
        reason: "SetDesiredConfig",
        message: `Targeted node ${given[0] ?? ""} to MachineConfig ${target}`,
      });
    else if (given.length > 1)
      events.event(pool, {
        type: "Normal",
        reason: "SetDesiredConfig",
        message: `Set target for ${given.length} nodes to MachineConfig ${target}: ${given.slice(0, 5).join(", ")}${given.length > 5 ? ` and ${given.length - 5} more` : ""}`,
      });
    return result;
  }

  /**
   * @returns whether a machine has just gone back from the target, which the pool as it is known here need not say yet.
   */
  async function keepQuarantine(
    pool: MachineConfigPool,
    { kube, events, log, scribe, signal }: Context,
  ): Promise<boolean> {
    const { name } = pool.metadata;
    const { target, image } = cluster.members(name);
    const step = quarantineStep(target, image.image, pool, cluster.refusing(name));
    const annotate = (node: string, changes: Readonly<Record<string, string | null>>) =>
      kube.patch(
        MachineConfigNode,
        { name: node },
        { type: "merge", body: { metadata: { annotations: changes } } },
        { owner: fieldManagers.node, signal },
      );
    if (step.annotation !== undefined)
      await kube.patch(
        MachineConfigPool,
        { name },
        { type: "merge", body: { metadata: { annotations: { [annotations.quarantined]: step.annotation } } } },
        { owner: fieldManagers.node, signal },
      );
    // The pool first: a machine is noted as told only once the pool knows.
    for (const [node, at] of step.tell) {
      await annotate(node, { [annotations.quarantineTold]: at });
      log.info({ pool: name, node, target }, "target quarantined");
      events.event(pool, {
        type: "Warning",
        reason: "TargetQuarantined",
        message: `${node} went back from ${target}: no other healthy machine gets it until another target is rendered or the annotation ${annotations.quarantined} is removed`,
      });
      scribe.line({
        book: `pool/${name}`,
        chapter: "Rollout",
        run: target,
        path: `Blocked/${node}`,
        mark: "note",
        level: "boundary",
        reason: "TargetQuarantined",
        message: `${node} went back from ${target}`,
      });
    }
    for (const node of step.lift) {
      await annotate(node, { [annotations.refusedTargets]: null, [annotations.quarantineTold]: null });
      log.info({ pool: name, node, target }, "quarantine lifted");
    }
    return step.tell.size > 0;
  }

  async function writeStatus(facts: PoolFacts, { kube, caches, events, scribe, signal }: Context): Promise<void> {
    const { pool } = facts;
    const { name } = pool.metadata;
    let completed: string | undefined;
    let began = false;
    let turns: readonly StoryLineIn<"pool">[] = [];
    const because = (of: MachineConfigPool) =>
      causeOf(changedSources(of, (config) => caches.of(MachineConfig).get(config)));
    await updateObject(
      kube,
      MachineConfigPool,
      pool.metadata,
      (object) => {
        completed = undefined;
        began = false;
        turns = [];
        // A newer spec is judged by its own look.
        if (object.metadata.generation !== pool.metadata.generation) return undefined;
        const status = poolStatus({ ...facts, pool: object });
        if (equalValues(status, object.status)) return undefined;
        if (status.configuration?.name !== object.status?.configuration?.name) completed = status.configuration?.name;
        began = startsRollout(object.status, status);
        turns = poolTurns(object, status, () => because(object));
        return { status };
      },
      { subresource: "status", owner: fieldManagers.node, cached: pool, signal },
    );
    // A roll-out that a new target meets in its middle begins anew.
    const { target } = facts.members;
    const isAnother =
      storied.has(name) &&
      storied.get(name) !== target &&
      target !== "" &&
      !turns.some(({ chapter }) => chapter === "Rollout") &&
      facts.members.updated < facts.members.size;
    if (isAnother && pool.status?.configuration?.name !== target)
      turns = [...turns, rolloutBegins(pool, because(pool))];
    storied.set(name, target);
    for (const line of turns) scribe.line({ book: `pool/${name}`, ...line });
    if (began)
      events.event(pool, {
        type: "Normal",
        reason: "Updating",
        message: `Pool ${pool.metadata.name} is updating to MachineConfig ${facts.members.target}`,
      });
    if (completed !== undefined)
      events.event(pool, {
        type: "Normal",
        reason: "Completed",
        message: `Pool ${pool.metadata.name} has completed update to MachineConfig ${completed}`,
      });
  }

  /**
   * @param at milliseconds since the epoch. @returns milliseconds since the epoch of when the next machine that went
   * first will have kept well for long enough.
   */
  function tellCanary(
    pool: MachineConfigPool,
    members: PoolMembers,
    canary: { readonly count: number; readonly wellMs: number },
    at: number,
    { events, scribe: tells }: Context,
  ): number | undefined {
    const { name } = pool.metadata;
    const { count, gone, proven, failed, provenAt } = canaryFacts(members, canary, at);
    const { target } = members;
    const isProven = proven.length >= count;
    const stage = gone.length === 0 ? "" : failed.length > 0 ? "failed" : isProven ? "proven" : "gone";
    const before = told.canary.get(name);
    const text = `${target} ${members.image.image} ${stage}`;
    if (stage !== "" && before !== text && count < members.size) {
      told.canary.set(name, text);
      const here = {
        book: `pool/${name}`,
        chapter: "Rollout",
        run: target,
        path: "Canary",
        level: "boundary",
      } as const;
      // A controller that has just begun and finds them proven tells nothing that was not told before.
      if (stage === "gone") {
        events.event(pool, {
          type: "Normal",
          reason: "CanaryStarted",
          message: `${gone.join(", ")} got ${target} before all others`,
        });
        tells.line({ ...here, mark: "begin", reason: "Canary", message: `${gone.join(", ")} goes first` });
      } else if (stage === "failed") {
        events.event(pool, {
          type: "Warning",
          reason: "CanaryFailed",
          message: `${failed.join(", ")} went first with ${target} and failed: the others keep what they have`,
        });
        tells.line({
          ...here,
          mark: "fail",
          reason: "ProofFailed",
          message: `${failed.join(", ")} cannot go on without help`,
        });
      } else if (before !== undefined) {
        events.event(pool, {
          type: "Normal",
          reason: "CanaryPassed",
          message: `${proven.join(", ")} kept well with ${target}: the others follow`,
        });
        tells.line({ ...here, mark: "end", reason: "Proven", message: `${proven.join(", ")} kept well` });
      }
    }
    return isProven ? undefined : provenAt;
  }

  function tellDeferred({ pool, members, selection }: PoolFacts, { events }: Context): void {
    const text = `${members.target} ${selection.deferred.join(",")}`;
    if (selection.deferred.length === 0 || told.deferred.get(pool.metadata.name) === text) return;
    told.deferred.set(pool.metadata.name, text);
    events.event(pool, {
      type: "Normal",
      reason: "DeferringOperatorNodeUpdate",
      message: `The operator runs on ${selection.deferred.join(", ")}, which is updated last`,
    });
  }

  /**
   * What nobody would find otherwise: nodes in several pools, and machines of which two sources say different things.
   */
  function tellOddities(pool: MachineConfigPool, { events, log, scribe }: Context): void {
    for (const [name, membership] of cluster.homeless) {
      if (membership.verdict !== "ambiguous" || told.homeless.get(name) === membership.pools.join(",")) continue;
      told.homeless.set(name, membership.pools.join(","));
      const node = cluster.node(name)?.node;
      const message = `the pools ${membership.pools.join(" and ")} select ${name}, so that it belongs to none of them and is not updated; take a label away that only one of them selects by`;
      if (node !== undefined) events.event(node, { type: "Warning", reason: "SeveralPools", message });
      log.warn({ node: name, pools: membership.pools }, "node in several pools");
    }
    for (const name of told.homeless.keys())
      if (cluster.homeless.get(name)?.verdict !== "ambiguous") told.homeless.delete(name);
    const contradictions = cluster.contradictions(now());
    for (const [name, what] of contradictions) {
      if (told.contradictions.get(name) === what) continue;
      told.contradictions.set(name, what);
      log.warn({ node: name, what }, "node and MachineConfigNode disagree");
      scribe.line({
        book: `pool/${pool.metadata.name}`,
        chapter: "Rollout",
        run: cluster.members(pool.metadata.name).target,
        path: "StateMismatch",
        mark: "note",
        level: "boundary",
        reason: "StateMismatch",
        message: `${name}: ${what}`,
        data: { node: name },
      });
    }
    for (const name of told.contradictions.keys()) if (!contradictions.has(name)) told.contradictions.delete(name);
  }

  /**
   * Tells schedulers which machines will be disturbed, daemons whether theirs is the only control plane, and
   * MachineConfigNodes what the pool and the target of theirs are.
   */
  async function markMembers(
    { pool, members }: PoolFacts,
    topology: string,
    context: Context,
  ): Promise<Written | "more"> {
    const { name } = pool.metadata;
    const { target } = members;
    const paused = pool.spec.paused === true;
    const waiting = toMark(name);
    const from = JSON.stringify([target, paused, topology]);
    if (marksFrom.get(name) !== from) for (const member of members.all()) waiting.add(member.name);
    marksFrom.set(name, from);
    let result: Written = "written";
    await eachAtOnce([...waiting].slice(0, marksAtOnce), async (node) => {
      waiting.delete(node);
      const known = cluster.node(node);
      if (known?.membership.verdict !== "member" || known.membership.pool !== name) return;
      try {
        if ((await mark(known.node, { target, paused, topology }, context)) === "overtaken") {
          waiting.add(node);
          result = "overtaken";
        }
        await describe(name, node, context);
      } catch (error) {
        waiting.add(node);
        throw error;
      }
    });
    return result === "written" && waiting.size > 0 ? "more" : result;
  }

  async function mark(
    node: Node,
    { target, paused, topology }: { readonly target: string; readonly paused: boolean; readonly topology: string },
    context: Context,
  ): Promise<Written> {
    const has = node.metadata.annotations ?? {};
    const awaits =
      target !== "" && has[annotations.currentConfig] !== undefined && has[annotations.desiredConfig] !== target;
    const settings = context.caches.of(openshift.Scheduler).get("cluster");
    const marks = controlPlaneMarks(
      node,
      settings === undefined ? undefined : settings.spec?.mastersSchedulable === true,
    );
    const base: Node = { ...node, spec: { ...node.spec, taints: marks.taints } };
    const changed = paused ? undefined : taintsOf(base, awaits);
    const wanted = changed ?? (marks.taints.length === (node.spec?.taints ?? []).length ? undefined : marks.taints);
    const sameTopology = has[annotations.controlPlaneTopology] === topology;
    const first = labelsOfFirstPool(node, cluster.pools());
    const added = { ...marks.labels, ...first };
    if (wanted === undefined && sameTopology && Object.keys(added).length === 0) return "written";
    const notes = {
      ...(sameTopology ? {} : { [annotations.controlPlaneTopology]: topology }),
      ...(first === undefined ? {} : { [annotations.customPoolLabelsApplied]: "true" }),
    };
    return change(
      node,
      {
        annotations: notes,
        ...(Object.keys(added).length === 0 ? {} : { labels: added }),
        ...(wanted === undefined ? {} : { taints: wanted }),
      },
      context,
    );
  }

  /** Keeps what a MachineConfigNode says about pool and target. The operator makes them. */
  async function describe(pool: string, name: string, { caches, kube, signal }: Context): Promise<void> {
    const notes = cluster.node(name)?.node.metadata.annotations ?? {};
    const desired = notes[annotations.desiredConfig] ?? "";
    const image = imageIn(notes, "desired");
    const desiredImage = isDigestPullspec(image) ? image : undefined;
    const has = caches.of(MachineConfigNode).get(name);
    const spec = {
      pool: { name: pool },
      configVersion: { desired: desired === "" ? notYetSet : desired },
      ...(desiredImage === undefined
        ? has?.spec.configImage === undefined
          ? {}
          : { configImage: null }
        : { configImage: { desiredImage } }),
    };
    if (
      has === undefined ||
      (has.spec.pool.name === pool &&
        has.spec.configVersion.desired === spec.configVersion.desired &&
        has.spec.configImage?.desiredImage === desiredImage)
    )
      return;
    try {
      await kube.patch(
        MachineConfigNode,
        { name },
        { type: "merge", body: { spec } },
        { owner: fieldManagers.node, signal },
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

/** Does it for every item, some at a time. The first failure is thrown when those that were begun have ended. */
async function eachAtOnce<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]();
  const failures: unknown[] = [];
  const worker = async () => {
    for (const item of rest) {
      try {
        await work(item);
      } catch (error) {
        failures.push(error);
      }
      if (failures.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
}

/** Annotations or labels after a merge patch: `null` takes one away. */
function withChanges(
  before: Readonly<Record<string, string>> | undefined,
  changes: Readonly<Record<string, string | null>> = {},
): Record<string, string> {
  return Object.fromEntries(
    Object.entries({ ...before, ...changes }).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
  );
}

/** The node's taints with or without ours; `undefined` when they are so already. */
function taintsOf(node: Node, wanted: boolean): NonNullable<NonNullable<Node["spec"]>["taints"]> | undefined {
  const has = node.spec?.taints ?? [];
  const others = has.filter(({ key }) => key !== taints.updateInProgress);
  const isSet = others.length !== has.length;
  if (isSet === wanted) return undefined;
  return wanted ? [...others, { key: taints.updateInProgress, effect: "PreferNoSchedule" }] : others;
}
