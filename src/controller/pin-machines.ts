import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { PinnedImageSet } from "../api/kinds/pinned-image-set.ts";
import type { PinnedSetVersion } from "../core/images/pin-grant.ts";
import { type PinMachine, type PoolPins, pinMachineOf } from "../core/pool/pin-slots.ts";
import { selectsSet } from "../core/pool/pinned-sets.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import type { Caches } from "../kube/controller.ts";

/** What a pass computes of nodes and remembers: a node that did not change costs nothing. */
export class PinMachines {
  readonly #known = new WeakMap<
    Node,
    { readonly machine: PinMachine; readonly pools: string; readonly pool: string }
  >();

  /** Each pool with its sets, as they are now, and its machines. */
  pools(caches: Caches): readonly PoolPins[] {
    const pools = caches.of(MachineConfigPool).list();
    const selectors = JSON.stringify(pools.map(({ metadata, spec }) => [metadata.name, spec.nodeSelector]));
    const members = new Map<string, PinMachine[]>();
    for (const node of caches.of(kubernetes.Node).list()) {
      const { machine, pool } = this.#of(node, pools, selectors);
      if (pool === "") continue;
      const own = members.get(pool);
      if (own === undefined) members.set(pool, [machine]);
      else own.push(machine);
    }
    return pools
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map((pool) => ({
        pool: pool.metadata.name,
        wanted: wantedOf(pool, caches),
        machines: members.get(pool.metadata.name) ?? [],
      }));
  }

  #of(node: Node, pools: readonly MachineConfigPool[], selectors: string) {
    const known = this.#known.get(node);
    if (known?.pools === selectors) return known;
    const membership = poolOfNode(node, pools);
    const made = {
      machine: known?.machine ?? pinMachineOf(node),
      pools: selectors,
      pool: membership.verdict === "member" ? membership.pool : "",
    };
    this.#known.set(node, made);
    return made;
  }
}

/** The states of a pool's sets, sorted by name. A set that is gone leaves the pool's spec soon. */
const wantedOf = (pool: MachineConfigPool, caches: Caches): readonly PinnedSetVersion[] =>
  (pool.spec.pinnedImageSets ?? [])
    .flatMap(({ name }): readonly PinnedSetVersion[] => {
      const set = caches.of(PinnedImageSet).get(name);
      return set === undefined || !selectsSet(pool, set)
        ? []
        : [{ name, uid: set.metadata.uid ?? "", generation: set.metadata.generation ?? 1 }];
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
