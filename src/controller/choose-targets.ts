import type { Node } from "../api/foreign/kubernetes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, fieldManagers } from "../api/names.ts";
import { causeOf, changedSources } from "../core/config/changed-sources.ts";
import { imageAnnotations, imageText, namedImage, shortImage, stockTarget } from "../core/config/image-pair.ts";
import type { PoolFacts } from "../core/pool/pool-progress.ts";
import { quarantineStep } from "../core/pool/quarantine.ts";
import type { Context } from "../kube/controller.ts";
import { type Shared, describeMachine, taintsOf } from "./mark-members.ts";
import { type NodeChanges, type WrittenNode, writesAtOnce } from "./node-writes.ts";
import { lineSource } from "./report-pool.ts";
import { writesOfMachine } from "./refused-writes.ts";
import { eachAtOnce } from "../ports/each-at-once.ts";
import type { Happening } from "../kube/report.ts";
import {
  machineExcluded,
  machinesDeferred,
  machinesTargeted,
  targetGiven,
  targetQuarantined,
  targetWithdrawn,
} from "./reports.ts";

/** What choosing remembers between two passes. */
export class ChoiceMemory {
  /** Pool → the machines that its last events named as waiting for the operator's own. */
  readonly deferred = new Map<string, string>();
  /** Pool → the target and image that its machines were excluded from last, and how often each of them was reported. */
  readonly #excluded = new Map<string, { readonly of: string; readonly reports: Map<string, number> }>();

  /** Whether the exclusion of a machine is reported: it can claim it again and again. */
  reportsExclusion(pool: string, of: string, node: string): boolean {
    const known = this.#excluded.get(pool);
    const { reports } = known?.of === of ? known : { reports: new Map<string, number>() };
    const count = reports.get(node) ?? 0;
    reports.set(node, count + 1);
    this.#excluded.set(pool, { of, reports });
    return count < mostExclusionReports;
  }

  forget(pool: string): void {
    this.deferred.delete(pool);
    this.#excluded.delete(pool);
  }
}

/** Reports that one machine went back from one target: an administrator may have it tried again. */
const mostExclusionReports = 3;

/** What the chosen machines of a pool are given. */
interface Given {
  readonly pool: string;
  readonly target: string;
  /** The image of the target; empty: the stock operating system. */
  readonly image: string;
  /** The change of the pool, for books. */
  readonly because: Readonly<Record<string, unknown>>;
}

/** Assigns the target to every chosen machine. */
export async function giveTargets(
  { pool, members, selection }: PoolFacts,
  topology: string,
  shared: Shared,
  context: Context,
): Promise<WrittenNode> {
  const { cluster, writes } = shared;
  const { name } = pool.metadata;
  const { target } = members;
  // A machine that joins while the image of its pool is being built starts without one.
  const pair = members.image.awaits === undefined ? members.image : stockTarget;
  const because =
    selection.chosen.length === 0
      ? {}
      : causeOf(changedSources(pool, (config) => context.caches.of(MachineConfig).get(config)));
  const given: Given = { pool: name, target, image: pair.image, because };
  let result: WrittenNode = "written";
  const nodes: string[] = [];
  let isOver = false;
  const report = (node: Node, was: string) => {
    const { name: chosen } = node.metadata;
    const image = pair.image === "" ? {} : { image: pair.image };
    context.log.info({ pool: name, node: chosen, target, ...image, was, ...selection.budget }, "node targeted");
    // Root on a machine can put back each target that it is given.
    if (shared.reports.ownLines.take(lineSource(chosen, target), shared.now()) > 0) return;
    const told = givenTarget(node, given);
    if (told !== undefined) context.report(told);
    if (isOver) context.report(machinesTargeted(pool, target, [chosen]));
    else nodes.push(chosen);
  };
  try {
    await eachAtOnce(selection.chosen, writesAtOnce, async ({ node: chosen, was }) => {
      const node = cluster.node(chosen)?.node;
      if (node === undefined) return;
      const changes = targetChanges(node, target, imageAnnotations(pair, node), topology);
      // Write the pool, and what the daemon may read, before what follows from it.
      const described = await describeMachine({ pool, members }, chosen, shared, context, target);
      const written =
        described === "written"
          ? await writesOfMachine({ kind: "Node", name: chosen }, shared, context, () =>
              writes.change(node, changes, context, () => report(node, was)),
            )
          : described;
      if (written !== "written" && result !== "overtaken") result = written;
    });
  } finally {
    isOver = true;
    if (nodes.length > 0) context.report(machinesTargeted(pool, target, nodes.sort()));
  }
  return result;
}

function targetChanges(
  node: Node,
  target: string,
  image: Readonly<Record<string, string | null>>,
  topology: string,
): NodeChanges {
  const withoutTaint = taintsOf(node, false);
  return {
    annotations: {
      [annotations.desiredConfig]: target,
      ...image,
      [annotations.controlPlaneTopology]: topology,
      ...(node.metadata.annotations?.[annotations.drainSkipped] === undefined
        ? {}
        : { [annotations.drainSkipped]: null }),
    },
    ...(withoutTaint === undefined ? {} : { taints: withoutTaint }),
  };
}

/** The happening for the book of a machine that was given its target, if it needs that. @param node as it was before. */
function givenTarget(node: Node, { pool, target, image, because }: Given): Happening | undefined {
  const { name } = node.metadata;
  const has = node.metadata.annotations ?? {};
  const taken = has[annotations.desiredConfig] ?? "";
  const from = imageText(namedImage(has, "current"));
  // It has that configuration already: its previous target was withdrawn.
  if (has[annotations.currentConfig] === target && from === image)
    return taken === "" || taken === target ? undefined : targetWithdrawn(name, taken, target);
  const inImage =
    image === from ? "" : image === "" ? " and goes back to the stock OS" : ` in image ${shortImage(image)}`;
  const data = {
    from: has[annotations.currentConfig] ?? "",
    to: target,
    ...(image === from ? {} : { fromImage: from, toImage: image }),
    pool,
    ...because,
    parent: `pool/${pool} Rollout ${target}`,
  };
  return targetGiven(name, target, { inImage, data });
}

/** Reports once which machines wait because the operator runs there. */
export function reportDeferred(
  { pool, members, selection }: PoolFacts,
  memory: ChoiceMemory,
  { report }: Context,
): void {
  const text = `${members.target} ${selection.deferred.join(",")}`;
  if (selection.deferred.length === 0 || memory.deferred.get(pool.metadata.name) === text) return;
  memory.deferred.set(pool.metadata.name, text);
  report(machinesDeferred(pool, selection.deferred));
}

/**
 * Records the refusals of a pool's machines: one excludes its own machine, two of different machines quarantine the
 * target.
 *
 * @returns whether the target is quarantined, which the cached pool need not show yet.
 */
export async function keepQuarantine(
  pool: MachineConfigPool,
  shared: Shared,
  memory: ChoiceMemory,
  context: Context,
): Promise<boolean> {
  const { cluster } = shared;
  const { kube, log, report, signal } = context;
  const { name } = pool.metadata;
  const members = cluster.members(name);
  const { target } = members;
  const step = quarantineStep(
    target,
    members.image.image,
    { metadata: pool.metadata, members: members.size },
    cluster.refusing(name),
  );
  // A machine whose record its own object does not take is excluded all the same: what it says of itself decides.
  const annotate = (node: string, changes: Readonly<Record<string, string | null>>) => {
    const object = { kind: "MachineConfigNode", name: node } as const;
    return writesOfMachine(object, shared, context, async () => {
      await kube.patch(
        MachineConfigNode,
        { name: node },
        { type: "merge", body: { metadata: { annotations: changes } } },
        { owner: fieldManagers.node, signal },
      );
      shared.faults.wrote(object);
      return "written" as const;
    });
  };
  for (const [node, record] of step.excluded) {
    await annotate(node, { [annotations.quarantineReported]: record });
    if (!memory.reportsExclusion(name, `${target} ${members.image.image}`, node)) continue;
    report(machineExcluded(pool, target, node));
  }
  if (step.annotation !== undefined)
    await kube.patch(
      MachineConfigPool,
      { name },
      { type: "merge", body: { metadata: { annotations: { [annotations.quarantined]: step.annotation } } } },
      { owner: fieldManagers.node, signal },
    );
  // The pool first: a machine is recorded as reported only once the pool shows it.
  for (const [node, record] of step.quarantined) {
    const recorded = await annotate(node, { [annotations.quarantineReported]: record });
    // Without the record, only what the pool did not show before is new.
    if (recorded === "refused" && step.annotation === undefined) continue;
    report(targetQuarantined(pool, target, node, step.witnesses));
  }
  for (const node of step.remedy) {
    const changes = { [annotations.refusedTargets]: null, [annotations.quarantineReported]: null };
    if ((await annotate(node, changes)) === "written") log.info({ pool: name, node, target }, "quarantine lifted");
  }
  return step.quarantined.size > 0;
}
