import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { PinnedImageSet } from "../api/kinds/pinned-image-set.ts";
import type { PinGrant, PinnedSetVersion } from "../core/images/pin-grant.ts";
import { type PinMachine, type PinTurn, type PoolPins, pinMachineOf, pinStateOf } from "../core/pool/pin-slots.ts";
import { selectsSet } from "../core/pool/pinned-sets.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import type { Caches } from "../kube/controller.ts";

/** What a pass computes of nodes and remembers: a node that did not change costs nothing. */
export class PinMachines {
  readonly #known = new WeakMap<
    Node,
    { readonly machine: PinMachine; readonly pools: string; readonly pool: string }
  >();

  /** By machine: the last turn that this process gave it, or found it in. */
  readonly #turns = new Map<string, PinTurn>();

  /** The turns of machines, with those that another process gave. Machines that are gone are forgotten. */
  turns(pools: readonly PoolPins[], caches: Caches, now: number): ReadonlyMap<string, PinTurn> {
    for (const { wanted, machines } of pools)
      for (const machine of machines) {
        if (this.#turns.has(machine.name)) continue;
        const state = pinStateOf(machine, wanted, now);
        if (state.is === "fetching") this.#turns.set(machine.name, { at: state.at, sets: undefined });
      }
    const nodes = caches.of(kubernetes.Node);
    for (const name of this.#turns.keys()) if (nodes.get(name) === undefined) this.#turns.delete(name);
    return this.#turns;
  }

  /** Remembers a turn that is given now. @returns has it forgotten again. */
  give(name: string, { at, sets }: PinGrant): () => void {
    const before = this.#turns.get(name);
    this.#turns.set(name, { at, sets });
    return () => {
      if (before === undefined) this.#turns.delete(name);
      else this.#turns.set(name, before);
    };
  }

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
