import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { type PinnedImageSet, mostPinnedSets } from "../../api/kinds/pinned-image-set.ts";
import { poolSelects } from "../config/pool-selector.ts";
import { listText } from "../text/list-text.ts";

/** The sets that the machines of a pool are to have, or why that is not known. */
export type SetsOfPool =
  | { readonly verdict: "sets"; readonly names: readonly string[] }
  | { readonly verdict: "refused"; readonly reason: "TooManySets"; readonly message: string };

/** Whether a pool's machines are to have a set: by the selector that also chooses its MachineConfigs. */
export function selectsSet({ spec }: Pick<MachineConfigPool, "spec">, set: Pick<PinnedImageSet, "metadata">): boolean {
  const { machineConfigSelector } = spec;
  return set.metadata.deletionTimestamp === undefined && poolSelects(machineConfigSelector, set.metadata.labels);
}

/** The names of a pool's sets, sorted. A pool that selects more than its spec can hold keeps the sets that it has. */
export function setsOfPool(pool: MachineConfigPool, sets: readonly PinnedImageSet[]): SetsOfPool {
  const names = sets
    .filter((set) => selectsSet(pool, set))
    .map(({ metadata }) => metadata.name)
    .sort();
  return names.length <= mostPinnedSets
    ? { verdict: "sets", names }
    : {
        verdict: "refused",
        reason: "TooManySets",
        message: `spec.machineConfigSelector selects ${names.length} PinnedImageSets, and spec.pinnedImageSets holds ${mostPinnedSets}: the pool keeps the sets that it has; put the images into fewer sets, of up to 500 images each (${listText(names, 3)})`,
      };
}

/** Pools that select a set, sorted by name. */
export const poolsOfSet = (
  set: Pick<PinnedImageSet, "metadata">,
  pools: readonly MachineConfigPool[],
): readonly string[] =>
  pools
    .filter((pool) => selectsSet(pool, set))
    .map(({ metadata }) => metadata.name)
    .sort();
