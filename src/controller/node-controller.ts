import { type Node, kubernetes } from "../api/kubernetes.ts";
import { MachineConfig } from "../api/machine-config.ts";
import { MachineConfigNode } from "../api/machine-config-node.ts";
import { MachineConfigPool } from "../api/machine-config-pool.ts";
import { annotations, fieldManagers, machineConfigNodeConditions as phases, notYetSet, poolConditions, taints } from "../api/names.ts";
import { conditionOf, selectorIsEmpty } from "../api/object.ts";
import { type Phase, phaseOf } from "../core/cluster-status.ts";
import { isControlPlane, isJoining, kubeletVerdict, memberFacts } from "../core/member-facts.ts";
import { type PoolOfNode, poolOfNode } from "../core/pool-of-node.ts";
import { poolStatus } from "../core/pool-status.ts";
import { reconcile as reconcileConfigs } from "../core/reconcilable.ts";
import { quarantinedTargets, quarantineStep } from "../core/quarantine.ts";
import { type NodeSelection, selectNodes } from "../core/select-nodes.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Caches, type Context, type Controller, watching } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { KubeError, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, settled, stalled } from "../kube/outcome.ts";
import type { Change } from "../kube/watch-cache.ts";
import { PatchedNodes } from "./patched-nodes.ts";

/** After a write that was overtaken: the news of what overtook it may be of a kind that nobody listens for. */
const overtakenSeconds = 1;
/** Machines that join are awaited for a while only; nobody tells when that is over. */
const joiningLookSeconds = 300;

/** Gives machines of a pool its target, as many at a time as the pool allows, and says how the pool is. */
export function nodeController(): Controller {
  const patched = new PatchedNodes();
  const membership = memberships();
  /** Findings between two rendered configs, which never change. The last few are kept. */
  const irreconcilable = new Map<string, readonly string[]>();

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

  /** Sends a patch that holds only while nobody else wrote the node. */
  async function send(name: string, body: object, { kube, signal }: Context): Promise<"written" | "overtaken"> {
    try {
      patched.done(await kube.patch(kubernetes.Node, { name }, { type: "merge", body }, { owner: fieldManagers.node, signal }));
      return "written";
    } catch (error) {
      const isRefusal = error instanceof KubeError && error.httpStatus >= 400 && error.httpStatus < 500 && error.httpStatus !== 408 && error.httpStatus !== 429;
      if (!isRefusal) throw error;
      patched.drop(name);
      if (error.httpStatus === 409 || isNotFound(error)) return "overtaken";
      throw error;
    }
  }

  async function change(node: Node, changes: { readonly annotations?: Readonly<Record<string, string>>; readonly taints?: NonNullable<Node["spec"]>["taints"] }, context: Context): Promise<"written" | "overtaken"> {
    const { name, resourceVersion } = node.metadata;
    const body = {
      metadata: { resourceVersion, ...(changes.annotations === undefined ? {} : { annotations: changes.annotations }) },
      ...(changes.taints === undefined ? {} : { spec: { taints: changes.taints } }),
    };
    const assumed: Node = {
      ...node,
      metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, ...changes.annotations } },
      ...(changes.taints === undefined ? {} : { spec: { ...node.spec, taints: changes.taints } }),
    };
    patched.begin(node, assumed, body);
    return send(name, body, context);
  }

  return {
    name: "node",
    watches: [
      watching({ resource: MachineConfigPool, concerns: (event, caches) => poolsOfPoolChange(event, caches) }),
      watching({ resource: kubernetes.Node, concerns: (event, caches) => poolsOfNodeChange(event, caches, membership) }),
      watching({
        resource: MachineConfigNode,
        concerns: ({ key, before, after }, caches) => {
          if (before !== undefined && after !== undefined && equalValues(before.spec, after.spec) && equalValues(before.status?.conditions, after.status?.conditions) && equalValues(before.metadata.annotations, after.metadata.annotations)) return [];
          const node = caches.of(kubernetes.Node).get(key);
          const member = node === undefined ? undefined : membership(node, caches.of(MachineConfigPool).list());
          return member?.verdict === "member" ? [member.pool] : [];
        },
      }),
      watching({ resource: MachineConfig, concerns: () => [] }),
    ],
    owns: ["Node.metadata.annotations/desired", "Node.spec.taints/UpdateInProgress", "MachineConfigPool.status", "MachineConfigPool.metadata.annotations/quarantined", "MachineConfigNode.spec"],
    // One at a time: the rule of the control plane looks over all pools.
    workers: 1,

    async reconcile(name, context): Promise<Outcome> {
      const { caches, events, log, scribe } = context;
      const pools = caches.of(MachineConfigPool).list();
      const pool = caches.of(MachineConfigPool).get(name);
      if (pool === undefined) return settled();
      if (pool.spec.nodeSelector !== undefined && selectorIsEmpty(pool.spec.nodeSelector)) {
        events.event(pool, { type: "Warning", reason: "SelectingAll", message: "This machineconfigpool is selecting all nodes. A non-empty selector is required." });
        return stalled("SelectingAll", "the nodeSelector is empty and would select every node");
      }
      let overtaken = false;
      for (const { name: node, body } of patched.unanswered()) if ((await send(node, body, context)) === "overtaken") overtaken = true;

      const target = pool.spec.configuration?.name ?? "";
      const observe = () => {
        const nodes = caches.of(kubernetes.Node).list().map((node) => patched.view(node));
        const members = nodes.filter((node) => {
          const member = membership(node, pools);
          return member.verdict === "member" && member.pool === name;
        });
        const isMember = new Set(members);
        return { members, controlPlane: nodes.filter(isControlPlane), otherControlPlane: nodes.filter((node) => !isMember.has(node) && isControlPlane(node)) };
      };
      const seen = observe();
      const refused = await keepQuarantine(pool, seen.members, target, context);
      const select = ({ members, otherControlPlane }: ReturnType<typeof observe>) =>
        selectNodes({
          target,
          paused: pool.spec.paused === true || pool.metadata.deletionTimestamp !== undefined,
          maxUnavailable: pool.spec.maxUnavailable,
          quarantined: refused ? [target] : quarantinedTargets(pool),
          members: members.map(memberFacts),
          otherControlPlane: otherControlPlane.map(memberFacts),
        });

      const topology = seen.controlPlane.length === 1 ? "SingleReplica" : "HighlyAvailable";
      const selection = select(seen);
      const byName = new Map(seen.members.map((node) => [node.metadata.name, node]));
      for (const { node: chosen, was } of selection.chosen) {
        const node = byName.get(chosen);
        if (node === undefined) continue;
        const withoutTaint = taintsOf(node, false);
        const written = await change(node, { annotations: { [annotations.desiredConfig]: target, [annotations.controlPlaneTopology]: topology }, ...(withoutTaint === undefined ? {} : { taints: withoutTaint }) }, context);
        if (written === "overtaken") {
          overtaken = true;
          continue;
        }
        log.info({ pool: name, node: chosen, target, was, ...selection.budget }, "node targeted");
        events.event(pool, { type: "Normal", reason: "SetDesiredConfig", message: `Targeted node ${chosen} to MachineConfig ${target}` });
        scribe.line({ book: `pool/${name}`, chapter: "RollOut", run: target, path: "Targeted", mark: "note", level: "progress", reason: "SetDesiredConfig", message: `${chosen} gets ${target}`, data: { node: chosen, was } });
      }
      const after = observe();
      await writeStatus(pool, after, select(after), context);
      if ((await mark(pool, after.members, target, topology, context)) === "overtaken") overtaken = true;
      await describe(name, after.members, context);
      if (overtaken) return settled(overtakenSeconds);
      return after.members.some((node) => isJoining(memberFacts(node))) ? settled(joiningLookSeconds) : settled();
    },
  };

  /** @returns whether a machine has just gone back from the target, which the pool as it is known here need not say yet. */
  async function keepQuarantine(pool: MachineConfigPool, members: readonly Node[], target: string, { caches, kube, events, log, scribe, signal }: Context): Promise<boolean> {
    const { name } = pool.metadata;
    const machines = members.flatMap(({ metadata }) => caches.of(MachineConfigNode).get(metadata.name) ?? []);
    const step = quarantineStep(target, pool, machines);
    const annotate = (node: string, changes: Readonly<Record<string, string | null>>) => kube.patch(MachineConfigNode, { name: node }, { type: "merge", body: { metadata: { annotations: changes } } }, { owner: fieldManagers.node, signal });
    if (step.annotation !== undefined) await kube.patch(MachineConfigPool, { name }, { type: "merge", body: { metadata: { annotations: { [annotations.quarantined]: step.annotation } } } }, { owner: fieldManagers.node, signal });
    // The pool first: a machine is noted as told only once the pool knows.
    for (const [node, at] of step.tell) {
      await annotate(node, { [annotations.quarantineTold]: at });
      log.info({ pool: name, node, target }, "target quarantined");
      events.event(pool, { type: "Warning", reason: "TargetQuarantined", message: `${node} went back from ${target}: no other healthy machine gets it until another target is rendered or the annotation ${annotations.quarantined} is removed` });
      scribe.line({ book: `pool/${name}`, chapter: "RollOut", run: target, path: "Blocked", mark: "note", level: "boundary", reason: "TargetQuarantined", message: `${node} went back from ${target}` });
    }
    for (const node of step.lift) {
      await annotate(node, { [annotations.refusedTargets]: null, [annotations.quarantineTold]: null });
      log.info({ pool: name, node, target }, "quarantine lifted");
    }
    return step.tell.size > 0;
  }

  async function writeStatus(pool: MachineConfigPool, { members }: { readonly members: readonly Node[] }, selection: NodeSelection, { caches, kube, clock, events, signal }: Context): Promise<void> {
    const at = new Map<string, { phase: Phase; message: string }>();
    for (const node of members) {
      const said = caches.of(MachineConfigNode).get(node.metadata.name);
      const phase = phaseOf(node, said);
      at.set(node.metadata.name, { phase, message: messageOf(phase, said) });
    }
    const facts = members.map(memberFacts);
    const irreconcilableNow = irreconcilableBetween(pool.status?.configuration?.name ?? "", pool.spec.configuration?.name ?? "", caches);
    let completed: string | undefined;
    await updateObject(
      kube,
      MachineConfigPool,
      pool.metadata,
      (object) => {
        completed = undefined;
        // A newer spec is judged by its own look.
        if (object.metadata.generation !== pool.metadata.generation) return undefined;
        const status = poolStatus({ pool: object, members: facts, phases: at, selection, irreconcilable: irreconcilableNow, now: clock.now() });
        if (equalValues(status, object.status)) return undefined;
        if (status.configuration?.name !== object.status?.configuration?.name) completed = status.configuration?.name;
        return { status };
      },
      { subresource: "status", owner: fieldManagers.node, cached: pool, signal },
    );
    if (completed !== undefined) events.event(pool, { type: "Normal", reason: "Completed", message: `Pool ${pool.metadata.name} has completed update to MachineConfig ${completed}` });
  }

  /** Tells schedulers which machines will be disturbed, and daemons whether theirs is the only control plane. */
  async function mark(pool: MachineConfigPool, members: readonly Node[], target: string, topology: string, context: Context): Promise<"written" | "overtaken"> {
    let result: "written" | "overtaken" = "written";
    for (const node of members) {
      const has = node.metadata.annotations ?? {};
      const awaits = target !== "" && has[annotations.currentConfig] !== undefined && has[annotations.desiredConfig] !== target;
      const wanted = pool.spec.paused === true ? undefined : taintsOf(node, awaits);
      const sameTopology = has[annotations.controlPlaneTopology] === topology;
      if (wanted === undefined && sameTopology) continue;
      const written = await change(node, { ...(sameTopology ? {} : { annotations: { [annotations.controlPlaneTopology]: topology } }), ...(wanted === undefined ? {} : { taints: wanted }) }, context);
      if (written === "overtaken") result = written;
    }
    return result;
  }

  /** Keeps what MachineConfigNodes say about pool and target. The operator makes them. */
  async function describe(pool: string, members: readonly Node[], { caches, kube, signal }: Context): Promise<void> {
    for (const node of members) {
      const { name } = node.metadata;
      const desired = node.metadata.annotations?.[annotations.desiredConfig];
      const spec = { pool: { name: pool }, configVersion: { desired: desired === undefined || desired === "" ? notYetSet : desired } };
      const has = caches.of(MachineConfigNode).get(name);
      if (has !== undefined && (has.spec.pool.name !== pool || has.spec.configVersion.desired !== spec.configVersion.desired)) {
        try {
          await kube.patch(MachineConfigNode, { name }, { type: "merge", body: { spec } }, { owner: fieldManagers.node, signal });
        } catch (error) {
          if (!isNotFound(error)) throw error;
        }
      }
    }
  }
}

function messageOf(phase: Phase, said: MachineConfigNode | undefined): string {
  const type = { Draining: phases.drained, Rebooting: phases.rebootedNode, PostAction: phases.updatePostActionComplete, Degraded: phases.nodeDegraded, Unreconcilable: phases.nodeDegraded }[phase as string];
  const condition = type === undefined ? undefined : conditionOf(said?.status?.conditions, type);
  return condition === undefined || condition.status === "False" ? "" : condition.message;
}

/** The node's taints with or without ours; `undefined` when they are so already. */
function taintsOf(node: Node, wanted: boolean): NonNullable<NonNullable<Node["spec"]>["taints"]> | undefined {
  const has = node.spec?.taints ?? [];
  const others = has.filter(({ key }) => key !== taints.updateInProgress);
  const isSet = others.length !== has.length;
  if (isSet === wanted) return undefined;
  return wanted ? [...others, { key: taints.updateInProgress, effect: "PreferNoSchedule" }] : others;
}

/** Which pool a node belongs to, worked out once for each version of a node as long as no pool's selector changes. */
function memberships(): (node: Node, pools: readonly MachineConfigPool[]) => PoolOfNode {
  let known = new WeakMap<object, PoolOfNode>();
  let selectors = "";
  let judged: readonly MachineConfigPool[] = [];
  return (node, pools) => {
    if (pools.length !== judged.length || pools.some((pool, index) => pool !== judged[index])) {
      judged = pools;
      const now = JSON.stringify(pools.map(({ metadata, spec }) => [metadata.name, spec.nodeSelector]));
      if (now !== selectors) known = new WeakMap();
      selectors = now;
    }
    const found = known.get(node) ?? poolOfNode(node, pools);
    known.set(node, found);
    return found;
  };
}

const namesOf = (pools: readonly MachineConfigPool[]) => pools.map(({ metadata }) => metadata.name);

/** A change of the status by ourselves concerns nobody; one of a selector moves nodes between pools. */
function poolsOfPoolChange({ key, before, after }: Change<MachineConfigPool>, caches: Caches): readonly string[] {
  if (before === undefined || after === undefined || !equalValues(before.spec.nodeSelector, after.spec.nodeSelector)) return namesOf(caches.of(MachineConfigPool).list());
  const rendering = (pool: MachineConfigPool) => conditionOf(pool.status?.conditions as { type: string }[] | undefined, poolConditions.renderDegraded);
  const isSame = before.metadata.generation === after.metadata.generation && equalValues(before.metadata.annotations, after.metadata.annotations) && equalValues(rendering(before), rendering(after)) && before.metadata.deletionTimestamp === after.metadata.deletionTimestamp;
  return isSame ? [] : [key];
}

/** What of a node decisions depend on: not the kubelet's heartbeats. */
const relevant = ({ metadata, spec, status }: Node) => [metadata.uid, metadata.labels, metadata.annotations, metadata.deletionTimestamp, spec?.unschedulable, spec?.taints, kubeletVerdict({ status: status ?? {} })];

function poolsOfNodeChange({ before, after }: Change<Node>, caches: Caches, membership: ReturnType<typeof memberships>): readonly string[] {
  if (before !== undefined && after !== undefined && equalValues(relevant(before), relevant(after))) return [];
  const pools = caches.of(MachineConfigPool).list();
  const concerned = new Set<string>();
  const versions = [before, after].flatMap((node) => node ?? []);
  // Machines of the control plane wait for each other across pools.
  const others = versions.some(isControlPlane) ? caches.of(kubernetes.Node).list().filter(isControlPlane) : [];
  for (const node of [...versions, ...others]) {
    const member = membership(node, pools);
    if (member.verdict === "member") concerned.add(member.pool);
  }
  return [...concerned];
}
