import type { Node } from "../api/foreign/kubernetes.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { annotations, fieldManagers, notYetSet, taints } from "../api/names.ts";
import { isDigestPullspec, namedImage } from "../core/config/image-pair.ts";
import type { ClusterMembers } from "../core/pool/cluster-members.ts";
import { controlPlaneMarks } from "../core/pool/control-plane-marks.ts";
import { labelsOfFirstPool } from "../core/pool/pool-of-node.ts";
import type { PoolFacts } from "../core/pool/pool-progress.ts";
import type { Context } from "../kube/controller.ts";
import { isNotFound } from "../kube/kube-error.ts";
import { type NodeChanges, type NodeWrites, type Taints, type Written, writesAtOnce } from "./node-writes.ts";
import { eachAtOnce } from "../ports/each-at-once.ts";

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
}

/**
 * Marks for schedulers the machines that will be disrupted, shows daemons whether theirs is the only control plane, and
 * shows MachineConfigNodes the pool and the target of their nodes.
 *
 * @returns `more`: not every member was compared yet.
 */
export async function markMembers(
  { pool, members }: PoolFacts,
  topology: string,
  shared: Shared,
  memory: MarkMemory,
  context: Context,
): Promise<Written | "more"> {
  const { name } = pool.metadata;
  const marks: Marks = { target: members.target, paused: pool.spec.paused === true, topology };
  const waiting = memory.unmarked(name);
  const from = JSON.stringify([marks.target, marks.paused, topology]);
  if (memory.from.get(name) !== from) for (const member of members.all()) waiting.add(member.name);
  memory.from.set(name, from);
  let result: Written = "written";
  await eachAtOnce([...waiting].slice(0, marksAtOnce), writesAtOnce, async (node) => {
    waiting.delete(node);
    const known = shared.cluster.node(node);
    if (known?.membership.verdict !== "member" || known.membership.pool !== name) return;
    try {
      if ((await mark(known.node, marks, shared, context)) === "overtaken") {
        waiting.add(node);
        result = "overtaken";
      }
      await describeNode(name, node, shared.cluster, context);
    } catch (error) {
      waiting.add(node);
      throw error;
    }
  });
  return result === "written" && waiting.size > 0 ? "more" : result;
}

async function mark(node: Node, marks: Marks, { cluster, writes }: Shared, context: Context): Promise<Written> {
  const settings = context.caches.of(openshift.Scheduler).get("cluster");
  const schedulable = settings === undefined ? undefined : settings.spec?.mastersSchedulable === true;
  const changes = markChanges(node, marks, schedulable, labelsOfFirstPool(node, cluster.pools()));
  return changes === undefined ? "written" : writes.change(node, changes, context);
}

/** The changes of a node for its marks; `undefined`: it has them. */
function markChanges(
  node: Node,
  { target, paused, topology }: Marks,
  schedulable: boolean | undefined,
  first: Readonly<Record<string, string>> | undefined,
): NodeChanges | undefined {
  const has = node.metadata.annotations ?? {};
  const awaits =
    target !== "" && has[annotations.currentConfig] !== undefined && has[annotations.desiredConfig] !== target;
  const marks = controlPlaneMarks(node, schedulable);
  const base: Node = { ...node, spec: { ...node.spec, taints: marks.taints } };
  const changed = paused ? undefined : taintsOf(base, awaits);
  const wanted = changed ?? (marks.taints.length === (node.spec?.taints ?? []).length ? undefined : marks.taints);
  const sameTopology = has[annotations.controlPlaneTopology] === topology;
  const added = { ...marks.labels, ...first };
  const isComplete = wanted === undefined && sameTopology && Object.keys(added).length === 0;
  if (isComplete) return undefined;
  return {
    annotations: {
      ...(sameTopology ? {} : { [annotations.controlPlaneTopology]: topology }),
      ...(first === undefined ? {} : { [annotations.customPoolLabelsApplied]: "true" }),
    },
    ...(Object.keys(added).length === 0 ? {} : { labels: added }),
    ...(wanted === undefined ? {} : { taints: wanted }),
  };
}

/** Maintains pool and target of a MachineConfigNode. The operator creates the objects. */
export async function describeNode(
  pool: string,
  name: string,
  cluster: ClusterMembers,
  { caches, kube, signal }: Context,
): Promise<void> {
  const notes = cluster.node(name)?.node.metadata.annotations ?? {};
  const desired = notes[annotations.desiredConfig] ?? "";
  const wanted = namedImage(notes, "desired");
  const desiredImage = wanted.verdict === "image" && isDigestPullspec(wanted.image) ? wanted.image : undefined;
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
  const saysSo =
    has?.spec.pool.name === pool &&
    has.spec.configVersion.desired === spec.configVersion.desired &&
    has.spec.configImage?.desiredImage === desiredImage;
  if (has === undefined || saysSo) return;
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

/** The node's taints with or without ours; `undefined` if nothing changes. */
export function taintsOf(node: Node, wanted: boolean): Taints | undefined {
  const has = node.spec?.taints ?? [];
  const others = has.filter(({ key }) => key !== taints.updateInProgress);
  const isSet = others.length !== has.length;
  if (isSet === wanted) return undefined;
  return wanted ? [...others, { key: taints.updateInProgress, effect: "PreferNoSchedule" }] : others;
}
