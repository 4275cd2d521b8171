import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { annotations } from "../api/names.ts";
import { type BindingStay, bindingStay } from "../core/join/join-places.ts";
import { trimNode } from "../core/pool/trim.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { isConflict, isNotFound } from "../kube/kube-error.ts";
import { type Outcome, done } from "../kube/outcome.ts";

/**
 * Keeps NodeBindings: notes which Node a machine became, frees the name when that Node is deleted, and reports each
 * name that is free again, also where an administrator has freed it.
 */
export function bindingController(): Controller {
  const memory: BindingMemory = { released: new Map() };
  return {
    name: "binding",
    watches: [
      watching<NodeBinding>({
        resource: NodeBinding,
        concerns: ({ key, before, after }) => {
          if (before !== undefined && after === undefined) memory.released.set(key, before.spec.pool);
          return [key];
        },
      }),
      watching<Node>({
        resource: kubernetes.Node,
        keep: trimNode,
        concerns: ({ key, before, after }) =>
          before?.metadata.uid === after?.metadata.uid &&
          before?.metadata.annotations?.[annotations.joinedPool] ===
            after?.metadata.annotations?.[annotations.joinedPool]
            ? []
            : [key],
      }),
      watching<MachineConfigPool>({ resource: MachineConfigPool, concerns: () => [] }),
    ],
    owns: ["NodeBinding.spec.nodeUID", "NodeBinding.deletion"],

    async reconcile(name, context): Promise<Outcome> {
      const { caches } = context;
      const binding = caches.of(NodeBinding).get(name);
      reportReleased(name, memory, context);
      if (binding === undefined) return done();
      const now = context.clock.now();
      const stay = bindingStay(binding, caches.of(kubernetes.Node).get(name)?.metadata.uid, now);
      if (stay.verdict === "stays") return done(stay.until === undefined ? undefined : (stay.until - now) / 1000);
      return perform(binding, stay, context);
    },
  };
}

interface BindingMemory {
  /** Names whose release is to be reported, each with the pool that it belonged to. */
  readonly released: Map<string, string>;
}

async function perform(
  binding: NodeBinding,
  stay: Exclude<BindingStay, { verdict: "stays" }>,
  { kube, signal }: Context,
): Promise<Outcome> {
  const { name, uid, resourceVersion } = binding.metadata;
  const guard = {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  try {
    switch (stay.verdict) {
      case "registered":
        await kube.patch(
          NodeBinding,
          { name },
          { type: "merge", body: { metadata: { resourceVersion }, spec: { nodeUID: stay.nodeUID } } },
          { signal },
        );
        return done();
      case "goes":
        await kube.delete(NodeBinding, { name }, { ...guard, signal });
        return done();
    }
  } catch (error) {
    // Another writer was first: the watch shows what it wrote.
    if (!isConflict(error) && !isNotFound(error)) throw error;
    return done();
  }
}

function reportReleased(name: string, { released }: BindingMemory, { caches, report }: Context): void {
  const pool = caches.of(MachineConfigPool).get(released.get(name) ?? "");
  released.delete(name);
  if (pool !== undefined)
    report({
      about: pool,
      notice: "NameReleased",
      message: `The name ${name} is free: its NodeBinding was deleted, and another machine of any pool may join by it`,
    });
}

/** Removes JoinPlaces whose time is over. */
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
