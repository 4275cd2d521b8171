import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { PinnedImageSet } from "../api/kinds/pinned-image-set.ts";
import type { PinGrant, PinnedSetVersion } from "../core/images/pin-grant.ts";
import { type PinMachine, type PinTurn, type PoolPins, pinMachineOf, pinStateOf } from "../core/pool/pin-slots.ts";
import { selectsSet } from "../core/pool/pinned-sets.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import { equalValues } from "../ignition/canonical.ts";
import type { Caches } from "../kube/controller.ts";

/** Pools, and the turns of machines by name. */
export interface PinTurnsView {
  readonly pools: readonly PoolPins[];
  readonly turns: ReadonlyMap<string, PinTurn>;
}

/** How the write of a turn ended. One that had no answer, or that the Node did not take, counts as a turn. */
export interface GivenTurn {
  written(): void;
  /**
   * Another writer was faster: the first time, the turn counts as not given.
   *
   * @returns how often in a row.
   */
  overtaken(): number;
}

/** What a pass computes of nodes and remembers: a node that did not change costs nothing. */
export class PinMachines {
  readonly #known = new WeakMap<
    Node,
    { readonly machine: PinMachine; readonly pools: string; readonly pool: string }
  >();

  /** By machine: the last turn that this process gave it, or found it in. */
  readonly #turns = new Map<string, PinTurn>();

  /** By machine: how often in a row another writer of its Node was faster than a turn. */
  readonly #overtaken = new Map<string, number>();

  /** By machine: the grants that lay on the Nodes at the first look; another process gave them. */
  #found: ReadonlyMap<string, PinGrant> | undefined;

  /**
   * Each pool with its sets and machines, and the turns of machines: also those that another process gave, if they were
   * there at the first look. A turn that is on a Node later, and that nobody gave, is its machine's own and counts as none.
   * Machines that are gone are forgotten.
   */
  observe(caches: Caches, now: number): PinTurnsView {
    const pools = this.pools(caches);
    this.#found ??= new Map(
      pools.flatMap(({ machines }) =>
        machines.flatMap(({ name, grant }) => (grant === undefined ? [] : [[name, grant] as const])),
      ),
    );
    const known = pools.map((pool) => ({
      ...pool,
      machines: pool.machines.map((machine) => this.#ofGiver(machine, pool.wanted, now)),
    }));
    const nodes = caches.of(kubernetes.Node);
    for (const names of [this.#turns, this.#overtaken])
      for (const name of names.keys()) if (nodes.get(name) === undefined) names.delete(name);
    return { pools: known, turns: this.#turns };
  }

  /** Remembers a turn that is given now. */
  give(name: string, { at, sets }: PinGrant): GivenTurn {
    const before = this.#turns.get(name);
    this.#turns.set(name, { at, sets });
    return {
      written: () => void this.#overtaken.delete(name),
      overtaken: () => {
        const count = (this.#overtaken.get(name) ?? 0) + 1;
        this.#overtaken.set(name, count);
        // A machine writes its own Node as often as it likes, and would be the next one for ever.
        if (count > 1) return count;
        if (before === undefined) this.#turns.delete(name);
        else this.#turns.set(name, before);
        return count;
      },
    };
  }

  /** A machine without the turn that it wrote itself. */
  #ofGiver(machine: PinMachine, wanted: readonly PinnedSetVersion[], now: number): PinMachine {
    const { name, grant } = machine;
    if (grant === undefined || this.#turns.has(name)) return machine;
    const state = pinStateOf(machine, wanted, now);
    if (state.is !== "fetching") return machine;
    // Its number stays: an answer to it must not count for the next one.
    if (!equalValues(this.#found?.get(name), grant)) return { ...machine, grant: { ...grant, at: 0, sets: [] } };
    // No process gave one of a time to come.
    this.#turns.set(name, { at: Math.min(state.at, now), sets: undefined });
    return machine;
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
