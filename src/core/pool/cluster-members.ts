import { leastOf } from "../../api/schema/extremes.ts";
import type { Node, Pod } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations } from "../../api/names.ts";
import { isOfNode } from "../config/given-configs.ts";
import { type ImageTarget, imageTargetOf, stockTarget } from "../config/image-pair.ts";
import { type MemberFacts, contradiction, memberFacts, silentAfterMs } from "./member-facts.ts";
import { defaultBuildSettings } from "../build/build-settings.ts";
import { deletionTakesEffectAt, keepsImagesUntil, machineOSConfigOf } from "../config/opt-in.ts";
import { PoolMembers } from "./pool-members.ts";
import { type PoolOfNode, poolOfNode } from "./pool-of-node.ts";

/** Two sources that disagree for longer than this are reported: they are written one after the other. */
export const contradictionGraceMs = 60_000;

interface Known {
  readonly node: Node;
  readonly machineConfigNode: MachineConfigNode | undefined;
  readonly daemonPod: Pod | undefined;
  readonly membership: PoolOfNode;
  readonly facts: MemberFacts;
}

/**
 * Every machine of the cluster by pool, maintained incrementally: the cost of one node's change does not depend on the
 * number of nodes. It accepts changes of nodes, of their objects, and of pools, in any order.
 */
export class ClusterMembers {
  readonly #nodes = new Map<string, Known>();
  /** Of nodes that did not come yet. */
  readonly #early = new Map<
    string,
    { machineConfigNode?: MachineConfigNode | undefined; daemonPod?: Pod | undefined }
  >();
  readonly #pools = new Map<string, MachineConfigPool>();
  readonly #members = new Map<string, PoolMembers>();
  readonly #bare = new Set<string>();
  /** Nodes whose MachineConfigNode is of a former Node of that name. */
  readonly #succeeding = new Set<string>();
  readonly #controlPlane = new Map<string, MemberFacts>();
  readonly #unassigned = new Map<string, PoolOfNode>();
  readonly #refusing = new Map<string, MachineConfigNode>();
  readonly #daemonsAway = new Map<string, number>();
  readonly #imageConfigs = new Map<string, MachineOSConfig>();
  /** By the MachineOSConfig that they are of. */
  readonly #builds = new Map<string, Map<string, MachineOSBuild>>();
  #graceMs = defaultBuildSettings.optOutGraceMs;
  readonly #contradictions = new Map<string, { readonly since: number; readonly what: string }>();

  /** Everything at once, for a single read. */
  static of(
    objects: {
      readonly nodes: readonly Node[];
      readonly pools: readonly MachineConfigPool[];
      readonly machineConfigNodes: readonly MachineConfigNode[];
      readonly daemonPods?: readonly Pod[];
      readonly machineOSConfigs?: readonly MachineOSConfig[];
      readonly machineOSBuilds?: readonly MachineOSBuild[];
    },
    now: number,
  ): ClusterMembers {
    const made = new ClusterMembers();
    for (const object of objects.machineOSConfigs ?? []) made.putMachineOSConfig(object.metadata.name, object, now);
    for (const object of objects.machineOSBuilds ?? [])
      made.putMachineOSBuild(object.metadata.name, object, undefined, now);
    for (const pool of objects.pools) made.putPool(pool.metadata.name, pool, now);
    for (const object of objects.machineConfigNodes) made.putMachineConfigNode(object.metadata.name, object, now);
    for (const pod of objects.daemonPods ?? [])
      if (pod.spec?.nodeName !== undefined) made.putDaemonPod(pod.spec.nodeName, pod, now);
    for (const node of objects.nodes) made.putNode(node.metadata.name, node, now);
    return made;
  }

  /**
   * @param pool `undefined`: it is gone.
   * @returns names of the pools whose members or target changed by it, itself included.
   */
  putPool(name: string, pool: MachineConfigPool | undefined, now: number): readonly string[] {
    const before = this.#pools.get(name);
    if (pool === undefined) this.#pools.delete(name);
    else this.#pools.set(name, pool);
    const moved =
      JSON.stringify(before?.spec.nodeSelector) !== JSON.stringify(pool?.spec.nodeSelector) ||
      (before === undefined) !== (pool === undefined);
    const concerned = new Set([name]);
    if (pool === undefined) this.#members.delete(name);
    else this.#retarget(name, now);
    // Only a selector moves machines: everything else of a pool concerns itself.
    if (moved) for (const node of this.#nodes.keys()) for (const other of this.#judge(node, now)) concerned.add(other);
    return [...concerned];
  }

  /**
   * @param node `undefined`: it is gone.
   * @returns names of the pools that it is or was in.
   */
  putNode(name: string, node: Node | undefined, now: number): readonly string[] {
    if (node === undefined) return this.#forget(name);
    const known = this.#nodes.get(name) ?? this.#early.get(name);
    this.#early.delete(name);
    return this.#put(node, known?.machineConfigNode, known?.daemonPod, now);
  }

  /** @returns names of the pools that its node is in. */
  putMachineConfigNode(name: string, machineConfigNode: MachineConfigNode | undefined, now: number): readonly string[] {
    if (machineConfigNode?.metadata.annotations?.[annotations.refusedTargets] === undefined)
      this.#refusing.delete(name);
    else this.#refusing.set(name, machineConfigNode);
    const known = this.#nodes.get(name);
    if (known !== undefined) return this.#put(known.node, machineConfigNode, known.daemonPod, now);
    this.#await(name, { ...this.#early.get(name), machineConfigNode });
    return [];
  }

  /** @returns names of the pools that the node is in. */
  putDaemonPod(nodeName: string, daemonPod: Pod | undefined, now: number): readonly string[] {
    const known = this.#nodes.get(nodeName);
    if (known !== undefined) return this.#put(known.node, known.machineConfigNode, daemonPod, now);
    this.#await(nodeName, { ...this.#early.get(nodeName), daemonPod });
    return [];
  }

  /** @returns names of the pools whose target changed by it. */
  putMachineOSConfig(name: string, config: MachineOSConfig | undefined, now: number): readonly string[] {
    const concerned = new Set(
      [this.#imageConfigs.get(name), config].flatMap((one) => one?.spec.machineConfigPool.name ?? []),
    );
    if (config === undefined) this.#imageConfigs.delete(name);
    else this.#imageConfigs.set(name, config);
    return [...concerned].filter((pool) => this.#retarget(pool, now));
  }

  /**
   * @param build as it is now; `undefined`: it is gone. @param before as it was, where that is known.
   * @returns names of the pools whose target changed by it.
   */
  putMachineOSBuild(
    name: string,
    build: MachineOSBuild | undefined,
    before: MachineOSBuild | undefined,
    now: number,
  ): readonly string[] {
    const of = (build ?? before)?.spec.machineOSConfig.name;
    if (of === undefined) return [];
    const builds = this.#builds.get(of) ?? new Map<string, MachineOSBuild>();
    if (build === undefined) builds.delete(name);
    else builds.set(name, build);
    if (builds.size === 0) this.#builds.delete(of);
    else this.#builds.set(of, builds);
    const pool = this.#imageConfigs.get(of)?.spec.machineConfigPool.name;
    return pool !== undefined && this.#retarget(pool, now) ? [pool] : [];
  }

  /**
   * How long the deletion of a MachineOSConfig has no consequences for machines. @returns names of the pools whose
   * target changed by it.
   */
  setGrace(graceMs: number, now: number): readonly string[] {
    this.#graceMs = graceMs;
    return [...this.#pools.keys()].filter((pool) => this.#retarget(pool, now));
  }

  /** Builds of the MachineOSConfig that decides about a pool. */
  buildsOf(pool: string): readonly MachineOSBuild[] {
    const config = machineOSConfigOf(pool, this.#imageConfigs.values());
    return config === undefined ? [] : [...(this.#builds.get(config.metadata.name)?.values() ?? [])];
  }

  #imageTarget(pool: MachineConfigPool, now: number): ImageTarget {
    const { name } = pool.metadata;
    const config = machineOSConfigOf(name, this.#imageConfigs.values());
    return imageTargetOf(pool, { config, builds: this.buildsOf(name), graceMs: this.#graceMs }, now);
  }

  /** Works out again what the machines of a pool are to have. @returns whether it is another. */
  #retarget(name: string, now: number): boolean {
    const pool = this.#pools.get(name);
    return (
      pool !== undefined &&
      this.#membersOf(name, now).retarget(pool.spec.configuration?.name ?? "", now, this.#imageTarget(pool, now))
    );
  }

  /** Keeps what belongs to a node that is not there, or not yet. */
  #await(
    name: string,
    parts: { readonly machineConfigNode?: MachineConfigNode | undefined; readonly daemonPod?: Pod | undefined },
  ): void {
    if (parts.machineConfigNode === undefined && parts.daemonPod === undefined) this.#early.delete(name);
    else this.#early.set(name, parts);
  }

  #membersOf(pool: string, now: number): PoolMembers {
    const object = this.#pools.get(pool);
    const known =
      this.#members.get(pool) ??
      new PoolMembers(
        object?.spec.configuration?.name ?? "",
        object === undefined ? stockTarget : this.#imageTarget(object, now),
      );
    this.#members.set(pool, known);
    return known;
  }

  #put(
    node: Node,
    machineConfigNode: MachineConfigNode | undefined,
    daemonPod: Pod | undefined,
    now: number,
  ): readonly string[] {
    const { name } = node.metadata;
    const before = this.#nodes.get(name);
    const isSamePlace =
      before !== undefined && JSON.stringify(before.node.metadata.labels) === JSON.stringify(node.metadata.labels);
    const membership = isSamePlace ? before.membership : poolOfNode(node, [...this.#pools.values()]);
    const facts = memberFacts(node, { machineConfigNode, daemonPod });
    this.#nodes.set(name, { node, machineConfigNode, daemonPod, membership, facts });
    return this.#place(name, before?.membership, now);
  }

  /** Looks again which pool a known node is in. */
  #judge(name: string, now: number): readonly string[] {
    const known = this.#nodes.get(name);
    if (known === undefined) return [];
    this.#nodes.set(name, { ...known, membership: poolOfNode(known.node, [...this.#pools.values()]) });
    return this.#place(name, known.membership, now);
  }

  #place(name: string, before: PoolOfNode | undefined, now: number): readonly string[] {
    const known = this.#nodes.get(name);
    if (known === undefined) return [];
    const { facts, membership } = known;
    const concerned = new Set([...poolsIn(before), ...poolsIn(membership)]);
    if (before?.verdict === "member" && (membership.verdict !== "member" || membership.pool !== before.pool))
      this.#members.get(before.pool)?.drop(name);
    if (membership.verdict === "member") {
      this.#membersOf(membership.pool, now).put(facts, now);
      this.#unassigned.delete(name);
    } else this.#unassigned.set(name, membership);
    if (facts.controlPlane) this.#controlPlane.set(name, facts);
    else this.#controlPlane.delete(name);
    if (facts.daemonAwaySince === "") this.#daemonsAway.delete(name);
    else this.#daemonsAway.set(name, Date.parse(facts.daemonAwaySince));
    if (known.machineConfigNode === undefined && membership.verdict === "member") this.#bare.add(name);
    else this.#bare.delete(name);
    const { machineConfigNode, node } = known;
    if (machineConfigNode !== undefined && !isOfNode(machineConfigNode, node.metadata.uid)) this.#succeeding.add(name);
    else this.#succeeding.delete(name);
    const what = contradiction(facts);
    if (what === "") this.#contradictions.delete(name);
    else this.#contradictions.set(name, { since: this.#contradictions.get(name)?.since ?? now, what });
    return [...concerned];
  }

  #forget(name: string): readonly string[] {
    const known = this.#nodes.get(name);
    this.#nodes.delete(name);
    if (known?.membership.verdict === "member") this.#members.get(known.membership.pool)?.drop(name);
    for (const group of [
      this.#bare,
      this.#succeeding,
      this.#controlPlane,
      this.#unassigned,
      this.#daemonsAway,
      this.#contradictions,
    ])
      group.delete(name);
    if (known !== undefined)
      this.#await(name, { machineConfigNode: known.machineConfigNode, daemonPod: known.daemonPod });
    return poolsIn(known?.membership);
  }

  /**
   * Applies the passage of time: unready daemons become silent, and opt-outs take effect.
   *
   * @returns names of the pools that are concerned.
   */
  pass(now: number): readonly string[] {
    const concerned = new Set(
      this.#leaving()
        .filter(({ at }) => at <= now)
        .flatMap(({ pool }) => (this.#retarget(pool, now) ? [pool] : [])),
    );
    for (const [name, since] of this.#daemonsAway) {
      const known = this.#nodes.get(name);
      if (known?.membership.verdict !== "member" || now - since <= silentAfterMs) continue;
      const members = this.#membersOf(known.membership.pool, now);
      if (members.isSilent(name)) continue;
      members.put(known.facts, now);
      concerned.add(known.membership.pool);
    }
    return [...concerned];
  }

  /**
   * Milliseconds since the epoch of when {@link pass} or {@link contradictions} will find something new; `undefined`:
   * not by time alone.
   */
  nextPass(now: number): number | undefined {
    const times = [
      ...this.#leaving().map(({ at }) => at),
      ...[...this.#daemonsAway.values()].map((since) => since + silentAfterMs + 1),
      ...[...this.#contradictions.values()].map(({ since }) => since + contradictionGraceMs + 1),
    ].filter((at) => at > now);
    return times.length === 0 ? undefined : leastOf(times);
  }

  /** Pools whose MachineOSConfig is being deleted or gone, and when that takes effect. */
  #leaving(): readonly { readonly pool: string; readonly at: number }[] {
    const deleted = [...this.#imageConfigs.values()].flatMap((config) => {
      const at = deletionTakesEffectAt(config, this.#graceMs);
      return at === undefined ? [] : [{ pool: config.spec.machineConfigPool.name, at }];
    });
    const gone = [...this.#pools].flatMap(([pool, object]) => {
      const at = keepsImagesUntil(object);
      return at === undefined ? [] : [{ pool, at }];
    });
    return [...deleted, ...gone];
  }

  pool(name: string): MachineConfigPool | undefined {
    return this.#pools.get(name);
  }

  pools(): readonly MachineConfigPool[] {
    return [...this.#pools.values()];
  }

  /** The members of a pool that is there. */
  members(pool: string): PoolMembers {
    return this.#members.get(pool) ?? new PoolMembers("");
  }

  /** Every machine of the control plane, whatever its pool. */
  get controlPlane(): ReadonlyMap<string, MemberFacts> {
    return this.#controlPlane;
  }

  /** Nodes that belong to no pool, and why. */
  get unassigned(): ReadonlyMap<string, PoolOfNode> {
    return this.#unassigned;
  }

  /** MachineConfigNodes of this pool whose machines went back from a target. */
  refusing(pool: string): readonly MachineConfigNode[] {
    return [...this.#refusing.values()].filter(({ metadata }) => {
      const membership = this.#nodes.get(metadata.name)?.membership;
      return membership?.verdict === "member" && membership.pool === pool;
    });
  }

  /** Nodes of which annotations and MachineConfigNode have disagreed for longer than writing both takes. */
  contradictions(now: number): ReadonlyMap<string, string> {
    return new Map(
      [...this.#contradictions]
        .filter(([, { since }]) => now - since > contradictionGraceMs)
        .map(([name, { what }]) => [name, what]),
    );
  }

  node(name: string): Pick<Known, "node" | "machineConfigNode" | "membership" | "facts"> | undefined {
    return this.#nodes.get(name);
  }

  /** Nodes of pools that have no MachineConfigNode. */
  get withoutMachineConfigNode(): ReadonlySet<string> {
    return this.#bare;
  }

  /** MachineConfigNodes without a node, and those of a former Node in whose place another one is. */
  machineConfigNodesWithoutNode(): readonly MachineConfigNode[] {
    return [
      ...[...this.#early.values()].flatMap(({ machineConfigNode }) => machineConfigNode ?? []),
      ...[...this.#succeeding].flatMap((name) => this.#nodes.get(name)?.machineConfigNode ?? []),
    ];
  }

  get size(): number {
    return this.#nodes.size;
  }
}

const poolsIn = (membership: PoolOfNode | undefined): readonly string[] =>
  membership?.verdict === "member" ? [membership.pool] : membership?.verdict === "ambiguous" ? membership.pools : [];
