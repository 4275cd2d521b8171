import type { ClusterObjects } from "../../core/preview/plan-cluster.ts";
import type { PinForecastOfPool } from "../../core/preview/plan-pinned-images.ts";
import {
  type ImageSize,
  type SizedPool,
  architecturesIn,
  sizePinnedImages,
} from "../../core/preview/size-pinned-images.ts";
import { systemClock } from "../../ports/node/index.ts";
import { clusterImages } from "../cluster-images.ts";
import { connect } from "../connect.ts";
import { architecture } from "../pull-options.ts";
import type { PlanSource } from "./read-change.ts";
import { readImageSizes } from "./read-image-sizes.ts";

/**
 * What machines would fetch of images that sets bring, with the sizes that registries name.
 *
 * @param source of the cluster's credentials; `undefined`: no registry is asked, and no size is known.
 */
export async function sizedPinnedImages(
  pools: readonly PinForecastOfPool[],
  objects: ClusterObjects,
  source: PlanSource,
): Promise<readonly SizedPool[]> {
  const own = architecture();
  const wanted = new Map<string, Set<string>>();
  for (const pool of pools)
    for (const one of architecturesIn(pool, objects.nodes, own))
      wanted.set(one, new Set([...(wanted.get(one) ?? []), ...pool.fetched]));
  const isAsked = [...wanted.values()].some((images) => images.size > 0);
  const known =
    source === undefined || !isAsked
      ? new Map<string, ReadonlyMap<string, ImageSize>>()
      : await readSizes(wanted, objects, source);
  const unread: ImageSize = { verdict: "unread", problem: "no cluster is asked for its credentials" };
  return pools.map((pool) =>
    sizePinnedImages(pool, objects.nodes, (image, of) => known.get(of)?.get(image) ?? unread, own),
  );
}

/** By architecture and image. */
async function readSizes(
  wanted: ReadonlyMap<string, ReadonlySet<string>>,
  objects: ClusterObjects,
  { kubeconfig, dir }: NonNullable<PlanSource>,
): Promise<ReadonlyMap<string, ReadonlyMap<string, ImageSize>>> {
  const { kube, close } = await connect({ kubeconfig, directory: dir, component: "plan" });
  try {
    const images = await clusterImages(kube, objects);
    try {
      const sizes = new Map<string, ReadonlyMap<string, ImageSize>>();
      for (const [of, names] of wanted)
        sizes.set(
          of,
          await readImageSizes([...names].sort(), images.store(of), systemClock, new AbortController().signal),
        );
      return sizes;
    } finally {
      images.close();
    }
  } finally {
    close();
  }
}
