import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { annotations } from "../api/names.ts";
import { timestampOf } from "../api/schema/object.ts";
import { canonicalHost } from "../core/join/canonical-host.ts";
import {
  type BindingStay,
  type BoundNode,
  bindingStay,
  isReleased,
  mostKeptBindings,
} from "../core/join/join-places.ts";
import { labelsOfJoin, labelsOfReturn, poolOfNode } from "../core/pool/pool-of-node.ts";
import { trimNode } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { isConflict, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import { machineLabelled, nameReleased } from "./reports.ts";

/**
 * Keeps NodeBindings: gives the Node of a machine that joined the labels of its pool, notes which Node it became and which
 * pool it is in, frees the name when that Node is deleted, and reports each name that is free again, also where an
 * administrator has freed it. A machine that registers again by the key of its name gets back the labels of the pool that
 * it was in.
 */
export function bindingController(): Controller {
  const memory: BindingMemory = { released: new Map() };
  return {
    name: "binding",
    watches: [
      watching<NodeBinding>({
        resource: NodeBinding,
        concerns: ({ key, before, after }) => {
          const isFree = after === undefined || isReleased(after.spec);
          if (before !== undefined && !isReleased(before.spec) && isFree) memory.released.set(key, before.spec.pool);
          return [key];
        },
      }),
      watching<Node>({
        resource: kubernetes.Node,
        keep: trimNode,
        concerns: ({ key, before, after }) =>
          before?.metadata.uid === after?.metadata.uid && equalValues(before?.metadata.labels, after?.metadata.labels)
            ? []
            : [key],
      }),
      watching<MachineConfigPool>({
        resource: MachineConfigPool,
        concerns: ({ before, after }, caches) =>
          equalValues(before?.spec.nodeSelector, after?.spec.nodeSelector)
            ? []
            : caches
                .of(NodeBinding)
                .list()
                .map(({ metadata }) => metadata.name),
      }),
    ],
    owns: [
      "Node.metadata.labels/role",
      "Node.metadata.annotations/joined-pool",
      "NodeBinding.spec.nodeUID",
      "NodeBinding.spec.lastPool",
      "NodeBinding.spec.releasedAt",
      "NodeBinding.deletion",
    ],

    async reconcile(name, context): Promise<Outcome> {
      const { caches } = context;
      const binding = caches.of(NodeBinding).get(name);
      reportReleased(name, memory, context);
      if (binding === undefined) return done();
      const now = context.clock.now();
      const isCrowded = caches.of(NodeBinding).size > mostKeptBindings;
      const stay = bindingStay(binding, boundNode(binding, context), { now, isCrowded });
      if (stay.verdict === "stays") return done(stay.until === undefined ? undefined : (stay.until - now) / 1000);
      return perform(binding, stay, context);
    },
  };
}

interface BindingMemory {
  /** Names whose release is to be reported, each with the pool that it belonged to. */
  readonly released: Map<string, string>;
}

function boundNode({ metadata, spec }: NodeBinding, { caches }: Pick<Context, "caches">): BoundNode | undefined {
  const node = caches.of(kubernetes.Node).get(metadata.name);
  if (node === undefined) return undefined;
  const pools = caches.of(MachineConfigPool).list();
  const membership = poolOfNode(node, pools);
  const pool = membership.verdict === "member" ? membership.pool : undefined;
  return {
    uid: node.metadata.uid,
    createdAt: node.metadata.creationTimestamp,
    pool,
    joins:
      membership.verdict === "ambiguous" || (pool ?? spec.pool) !== spec.pool
        ? undefined
        : labelsOfPool(spec, node, pools),
    returns: membership.verdict === "none" ? labelsOfReturn(node, spec, pools) : undefined,
  };
}

/** The labels of the pool that a machine joined; `undefined`: its Node has them, or the pool is gone. */
function labelsOfPool(
  spec: NodeBinding["spec"],
  node: Node,
  pools: readonly MachineConfigPool[],
): Readonly<Record<string, string>> | undefined {
  const pool = pools.find(({ metadata }) => metadata.name === spec.pool);
  if (pool === undefined) return undefined;
  const { labels = {}, annotations: marks = {} } = node.metadata;
  const given = labelsOfJoin(pool, node, pools);
  const hasAll = Object.entries(given).every(([key, value]) => labels[key] === value);
  return hasAll && marks[annotations.joinedPool] === spec.pool ? undefined : given;
}

async function perform(
  binding: NodeBinding,
  stay: Exclude<BindingStay, { verdict: "stays" }>,
  context: Context,
): Promise<Outcome> {
  const { kube, clock, signal } = context;
  const { name, uid, resourceVersion } = binding.metadata;
  const guard = {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  const change = (spec: Readonly<Record<string, unknown>>) =>
    kube.patch(NodeBinding, { name }, { type: "merge", body: { metadata: { resourceVersion }, spec } }, { signal });
  try {
    switch (stay.verdict) {
      case "registered":
        await change({ nodeUID: stay.nodeUID, ...keptAddresses(binding, context) });
        return done();
      case "moved":
        await change({ lastPool: stay.lastPool });
        return done();
      case "released":
        await change({ releasedAt: timestampOf(clock.now()), nodeUID: null });
        return done();
      case "joins":
        await giveLabels(
          binding,
          stay.labels,
          { notice: "NodeJoined", message: `Joined pool ${binding.spec.pool}` },
          context,
        );
        return done();
      case "returns":
        await giveLabels(
          binding,
          stay.labels,
          {
            notice: "NodeReturned",
            message: `Registered again after its Node was deleted, and is in pool ${binding.spec.pool} as before`,
          },
          context,
        );
        return done();
      case "goes":
        await kube.delete(NodeBinding, { name }, { ...guard, signal });
        return done();
    }
  } catch (error) {
    // Another writer was first. Of a Node, the watch reports only some changes.
    if (!isConflict(error) && !isNotFound(error)) throw error;
    return done(1);
  }
}

/** A released binding that is in use again, without the addresses that another machine has taken meanwhile. */
function keptAddresses({ metadata, spec }: NodeBinding, { caches }: Context): Readonly<Record<string, unknown>> {
  if (spec.releasedAt === undefined) return {};
  const taken = new Set(
    caches
      .of(NodeBinding)
      .list()
      .filter((other) => other.metadata.name !== metadata.name && !isReleased(other.spec))
      .flatMap((other) => (other.spec.addresses ?? []).map(canonicalHost)),
  );
  return { releasedAt: null, addresses: (spec.addresses ?? []).filter((one) => !taken.has(canonicalHost(one))) };
}

/**
 * Gives a Node the labels of its machine's pool. The record of the join decides, and nothing that the Node says of itself.
 * The binding follows when the watch shows the labels: after a crash between the two writes, nothing is missing.
 */
async function giveLabels(
  { metadata: { name }, spec }: NodeBinding,
  labels: Readonly<Record<string, string>>,
  { notice, message }: { readonly notice: "NodeJoined" | "NodeReturned"; readonly message: string },
  { caches, kube, report, signal }: Context,
): Promise<void> {
  const node = caches.of(kubernetes.Node).get(name);
  if (node === undefined) return;
  const { resourceVersion } = node.metadata;
  const metadata = { resourceVersion, labels, annotations: { [annotations.joinedPool]: spec.pool } };
  await kube.patch(kubernetes.Node, { name }, { type: "merge", body: { metadata } }, { signal });
  report(machineLabelled(node, notice, message));
}

function reportReleased(name: string, { released }: BindingMemory, { caches, report }: Context): void {
  const pool = caches.of(MachineConfigPool).get(released.get(name) ?? "");
  released.delete(name);
  if (pool !== undefined) report(nameReleased(pool, name));
}

/** Removes JoinPlaces whose time is over: the credentials of their configurations have ended by then. */
export function placeController(): Controller {
  return {
    name: "place",
    watches: [watching<JoinPlace>({ resource: JoinPlace })],
    owns: ["JoinPlace.deletion"],

    async reconcile(name, { caches, kube, clock, signal }): Promise<Outcome> {
      const place = caches.of(JoinPlace).get(name);
      if (place === undefined) return done();
      const left = Date.parse(place.spec.expiresAt) - clock.now();
      if (left > 0) return done(left / 1000);
      await kube.delete(JoinPlace, { name }, { signal });
      return done();
    },
  };
}
