import { labels } from "../../api/names.ts";
import { imagesOf } from "../images/pinned-images.ts";
import { pinsAtOnce } from "../pool/pin-slots.ts";
import { poolsOfSet, selectsSet, setsOfPool } from "../pool/pinned-sets.ts";
import { poolOfNode } from "../pool/pool-of-node.ts";
import type { ClusterObjects } from "./plan-cluster.ts";

/** What changed sets mean for the machines of one pool. Sizes are known to the registry alone: `size-pinned-images.ts`. */
export interface PinForecastOfPool {
  readonly pool: string;
  /** Machines, sorted by name. */
  readonly nodes: readonly string[];
  /** Images that machines fetch if they do not have them, sorted. */
  readonly fetched: readonly string[];
  /** Images that leave the list of pinned ones: the kubelet may collect them. */
  readonly unpinned: readonly string[];
}

export interface PinnedImagesPlan {
  readonly pools: readonly PinForecastOfPool[];
  readonly warnings: readonly string[];
  /** How many machines of the cluster fetch at the same time. */
  readonly atOnce: number;
}

/** What machines fetch, and what is no longer pinned, if the objects `before` become `after`: only pools that change. */
export function planPinnedImages(before: ClusterObjects, after: ClusterObjects): PinnedImagesPlan {
  const pinnedIn = (objects: ClusterObjects, name: string): readonly string[] => {
    const pool = objects.pools.find(({ metadata }) => metadata.name === name);
    const sets = objects.pinnedImageSets ?? [];
    return pool === undefined
      ? []
      : imagesOf(
          sets
            .filter((set) => selectsSet(pool, set))
            .map(({ spec }) => ({ images: spec.pinnedImages.map((image) => image.name) })),
        );
  };
  const pools = after.pools.flatMap((pool): readonly PinForecastOfPool[] => {
    const { name } = pool.metadata;
    const [had, wanted] = [pinnedIn(before, name), pinnedIn(after, name)];
    const [fetched, unpinned] = [without(wanted, had), without(had, wanted)];
    if (fetched.length + unpinned.length === 0) return [];
    const nodes = after.nodes
      .filter((node) => {
        const membership = poolOfNode(node, after.pools);
        return membership.verdict === "member" && membership.pool === name;
      })
      .map(({ metadata }) => metadata.name)
      .sort();
    return [{ pool: name, nodes, fetched, unpinned }];
  });
  const known = new Set(before.pinnedImageSets);
  const news = (after.pinnedImageSets ?? []).filter((set) => !known.has(set));
  return {
    pools,
    warnings: [
      ...news
        .filter((set) => poolsOfSet(set, after.pools).length === 0)
        .map(({ metadata }) => withoutPool(metadata.name)),
      ...after.pools.flatMap((pool) => {
        const sets = setsOfPool(pool, after.pinnedImageSets ?? []);
        return sets.verdict === "refused" ? [`MachineConfigPool/${pool.metadata.name}: ${sets.message}`] : [];
      }),
    ],
    atOnce: pinsAtOnce(after.machineConfiguration).most,
  };
}

const without = (images: readonly string[], others: readonly string[]): readonly string[] => {
  const known = new Set(others);
  return images.filter((image) => !known.has(image));
};

const withoutPool = (name: string): string =>
  `PinnedImageSet/${name}: metadata.labels: no pool selects it, and no machine fetches its images; give it the label ${labels.role} with the role of a pool`;
