import type { Node } from "../api/foreign/kubernetes.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { annotations, fieldManagers, notYetSet, taints } from "../api/names.ts";
import { givenConfigsAfter, givenConfigs } from "../core/config/given-configs.ts";
import { isDigestPullspec, namedImage } from "../core/config/image-pair.ts";
import type { ClusterMembers } from "../core/pool/cluster-members.ts";
import { controlPlaneMarks } from "../core/pool/control-plane-marks.ts";
import type { PoolFacts } from "../core/pool/pool-progress.ts";
import type { Context } from "../kube/controller.ts";
import { updateByDecision } from "../kube/kube-client.ts";
import { isNotFound } from "../kube/kube-error.ts";
import { type NodeChanges, type NodeWrites, type Taints, type WrittenNode, writesAtOnce } from "./node-writes.ts";
import { eachAtOnce } from "../ports/each-at-once.ts";
import { type WriteFaults, writesOfMachine } from "./refused-writes.ts";
import type { ReportMemory } from "./report-pool.ts";

/** How many machines are marked in one pass: marks must not delay the next target. */
const marksAtOnce = 200;

/** What marking remembers between two passes. */
export class MarkMemory {
  /** Pool → members whose marks and MachineConfigNodes were not compared since they changed. */
  readonly #unmarked = new Map<string, Set<string>>();
  /** Pool → the inputs of its members' marks, besides the members themselves. */
  readonly from = new Map<string, string>();

  /** Members of a pool that are still to be compared. */
  unmarked(pool: string): Set<string> {
    const found = this.#unmarked.get(pool) ?? new Set();
    this.#unmarked.set(pool, found);
    return found;
  }

  forget(pool: string): void {
    this.#unmarked.delete(pool);
    this.from.delete(pool);
  }
}

/** The inputs of the marks of a pool's machines. */
interface Marks {
  readonly target: string;
  readonly paused: boolean;
  /** Whether there is one control-plane machine or several, in the daemons' terms. */
  readonly topology: string;
}

/** What the parts of the node controller share. */
export interface Shared {
  readonly cluster: ClusterMembers;
  readonly writes: NodeWrites;
  readonly reports: ReportMemory;
  readonly faults: WriteFaults;
  /** Milliseconds since the epoch. */
  now(): number;
}

/**
 * Taints the machines that will be disrupted, records on nodes whether theirs is the only control-plane machine, and
 * writes the pool and the target of each node to its MachineConfigNode.
 *
 * @returns `more`: not every member was compared yet. `refused`: writes of some of them fail, and are tried again.
 */
export async function markMembers(
  facts: PoolFacts,
  topology: string,
  shared: Shared,
  memory: MarkMemory,
  context: Context,
): Promise<WrittenNode | "more"> {
  const { pool, members } = facts;
  const { name } = pool.metadata;
  const marks: Marks = { target: members.target, paused: pool.spec.paused === true, topology };
  const waiting = memory.unmarked(name);
  const from = JSON.stringify([marks.target, marks.paused, topology]);
  if (memory.from.get(name) !== from) for (const member of members.all()) waiting.add(member.name);
  memory.from.set(name, from);
  let result: WrittenNode = "written";
  let failing = 0;
  await eachAtOnce([...waiting].slice(0, marksAtOnce), writesAtOnce, async (node) => {
    waiting.delete(node);
    const known = shared.cluster.node(node);
    if (known?.membership.verdict !== "member" || known.membership.pool !== name) return;
    try {
      const marked = await writesOfMachine({ kind: "Node", name: node }, shared, context, () =>
        mark(known.node, marks, shared, context),
      );
      if (marked === "overtaken") {
        waiting.add(node);
        result = "overtaken";
      }
      const described = marked === "refused" ? marked : await describeMachine(facts, node, shared, context);
      // A refused write of a node has it compared again, which must not be at once.
      if (described !== "refused") return;
      failing += 1;
      waiting.add(node);
    } catch (error) {
      waiting.add(node);
      throw error;
    }
  });
  if (result !== "written") return result;
  return waiting.size > failing ? "more" : failing > 0 ? "refused" : result;
}

async function mark(node: Node, marks: Marks, { writes }: Shared, context: Context): Promise<WrittenNode> {
  const settings = context.caches.of(openshift.Scheduler).get("cluster");
  const schedulable = settings === undefined ? undefined : settings.spec?.mastersSchedulable === true;
  const changes = markChanges(node, marks, schedulable);
  return changes === undefined ? "written" : writes.change(node, changes, context);
}

/** The changes of a node for its marks; `undefined`: it has them. */
function markChanges(
  node: Node,
  { target, paused, topology }: Marks,
  schedulable: boolean | undefined,
): NodeChanges | undefined {
  const has = node.metadata.annotations ?? {};
  const awaits =
    target !== "" && has[annotations.currentConfig] !== undefined && has[annotations.desiredConfig] !== target;
  const marks = controlPlaneMarks(node, schedulable);
  const base: Node = { ...node, spec: { ...node.spec, taints: marks.taints } };
  const changed = paused ? undefined : taintsOf(base, awaits);
  const wanted = changed ?? (marks.taints.length === (node.spec?.taints ?? []).length ? undefined : marks.taints);
  const sameTopology = has[annotations.controlPlaneTopology] === topology;
  const added = marks.labels;
  const isComplete = wanted === undefined && sameTopology && Object.keys(added).length === 0;
  if (isComplete) return undefined;
  return {
    annotations: sameTopology ? {} : { [annotations.controlPlaneTopology]: topology },
    ...(Object.keys(added).length === 0 ? {} : { labels: added }),
    ...(wanted === undefined ? {} : { taints: wanted }),
  };
}

/** Has a MachineConfigNode say what is right of its machine, as {@link describeNode} does, and counts how that ended. */
export function describeMachine(
  facts: Pick<PoolFacts, "pool" | "members">,
  name: string,
  shared: Shared,
  context: Context,
  given?: string,
): Promise<"written" | "refused"> {
  const object = { kind: "MachineConfigNode", name } as const;
  return writesOfMachine(object, shared, context, async () => {
    if (await describeNode(facts, name, shared.cluster, context, given)) shared.faults.wrote(object);
    return "written" as const;
  });
}

/**
 * Maintains pool and target of a MachineConfigNode, and the record of the configurations that the machine was given.
 * The operator creates the objects. The node's own annotations prove nothing: only the target of the node's pool is
 * recorded.
 *
 * @param given the target that the node is about to get. The MachineConfigNode shows and records it first, so that the
 *   daemon may read it even if the pool moves on before the daemon asks. Without `given`, the MachineConfigNode shows a
 *   target that was recorded last, and otherwise the node's annotation.
 * @returns whether anything was written.
 */
export async function describeNode(
  { pool: { metadata }, members }: Pick<PoolFacts, "pool" | "members">,
  name: string,
  cluster: ClusterMembers,
  { caches, kube, signal }: Context,
  given?: string,
): Promise<boolean> {
  const pool = metadata.name;
  const notes = cluster.node(name)?.node.metadata.annotations ?? {};
  const cached = caches.of(MachineConfigNode).get(name);
  if (cached === undefined) return false;
  const decide = (has: MachineConfigNode) => ({
    write: describedAs(has, { pool, target: members.target, notes, given }),
    decision: undefined,
  });
  try {
    // The record adds to the one before: a cache that is behind must not undo what was given last.
    const options = { cached, owner: fieldManagers.node, signal };
    // After a conflict, another writer may have said it, or removed the object.
    return (await updateByDecision(kube, MachineConfigNode, { name }, decide, options))?.isWritten === true;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return false;
  }
}

/** What a MachineConfigNode is to say of pool, target and record; `undefined`: it says so. */
function describedAs(
  has: MachineConfigNode,
  {
    pool,
    target,
    notes,
    given,
  }: {
    readonly pool: string;
    readonly target: string;
    readonly notes: Readonly<Record<string, string>>;
    readonly given: string | undefined;
  },
): Partial<MachineConfigNode> | undefined {
  const isAhead = target !== "" && has.spec.configVersion.desired === target && givenConfigs(has)[0] === target;
  // A write of the node that fails must not make the two callers overwrite each other's target.
  const desired = given ?? (isAhead ? target : (notes[annotations.desiredConfig] ?? ""));
  const wanted = namedImage(notes, "desired");
  const desiredImage = wanted.verdict === "image" && isDigestPullspec(wanted.image) ? wanted.image : undefined;
  const spec = {
    pool: { name: pool },
    configVersion: { desired: desired === "" ? notYetSet : desired },
    ...(desiredImage === undefined
      ? has.spec.configImage === undefined
        ? {}
        : { configImage: null as unknown as undefined }
      : { configImage: { desiredImage } }),
  } as MachineConfigNode["spec"];
  const record = recordOf(has, given ?? (desired === target ? desired : ""), notes, pool);
  const saysSo =
    has.spec.pool.name === pool &&
    has.spec.configVersion.desired === spec.configVersion.desired &&
    has.spec.configImage?.desiredImage === desiredImage &&
    record === (has.metadata.annotations?.[annotations.givenConfigs] ?? "");
  if (saysSo) return undefined;
  const { name } = has.metadata;
  return {
    ...(record === "" ? {} : { metadata: { name, annotations: { [annotations.givenConfigs]: record } } }),
    spec,
  };
}

/** What a machine was given, with the target of its pool if it has that; empty: nothing. */
const recordOf = (
  has: MachineConfigNode,
  target: string,
  notes: Readonly<Record<string, string>>,
  pool: string,
): string =>
  givenConfigsAfter(
    givenConfigs(has),
    target === "" ? undefined : target,
    { name: notes[annotations.currentConfig] ?? "", pools: [pool, has.spec.pool.name] },
    notes[annotations.desiredConfig],
  ).join(" ");

/** The node's taints with or without ours; `undefined` if nothing changes. */
export function taintsOf(node: Node, wanted: boolean): Taints | undefined {
  const has = node.spec?.taints ?? [];
  const others = has.filter(({ key }) => key !== taints.updateInProgress);
  const isSet = others.length !== has.length;
  if (isSet === wanted) return undefined;
  return wanted ? [...others, { key: taints.updateInProgress, effect: "PreferNoSchedule" }] : others;
}
