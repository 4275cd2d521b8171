import { bytesText } from "../text/bytes-text.ts";
import { listText } from "../text/list-text.ts";
import type { MachinePins, SizedPool } from "./size-pinned-images.ts";

const count = (images: number): string => (images === 1 ? "1 image" : `${images} images`);
const shownImages = 5;

/** Sized pools as lines of text; none if no pool changes. @param atOnce machines of the cluster that fetch at a time. */
export function pinnedImagesLines(pools: readonly SizedPool[], atOnce: number): readonly string[] {
  return pools.flatMap((pool) => [
    `pool ${pool.pool}: pinned images change`,
    ...pool.fetched.map((image) => `  + ${image}`),
    ...pool.unpinned.map((image) => `  - ${image}`),
    ...(pool.nodes.length === 0 ? ["  no machine is in this pool"] : machineLines(pool, atOnce)),
  ]);
}

function machineLines(pool: SizedPool, atOnce: number): readonly string[] {
  const { nodes, fetched, unpinned, machines, unread } = pool;
  const byFate = Map.groupBy(machines, (machine) => fateOf(machine));
  return [
    `  ${nodes.join(", ")}: ${[
      ...(fetched.length === 0
        ? []
        : [
            `fetches ${count(fetched.length)} where it is missing (${atOnce} machines of the cluster at a time; each compares the sizes with its free disk before it begins)`,
          ]),
      ...(unpinned.length === 0 ? [] : [`unpins ${count(unpinned.length)}, which the kubelet may remove`]),
      "no drain, no reboot",
    ].join("; ")}`,
    ...(fetched.length === 0
      ? []
      : [...byFate].map(([fate, of]) => `  ${of.map(({ node }) => node).join(", ")}: ${fate}`)),
    ...unreadLines(unread),
  ];
}

/** What one machine fetches, in words. */
function fateOf({ missing, sized, fetchBytes, needBytes, offeredBytes, verdict }: MachinePins): string {
  if (missing.length === 0) return "has the images";
  const disk =
    offeredBytes === undefined
      ? "its kubelet does not say how large its disk is"
      : `its kubelet offers ${bytesText(offeredBytes)}`;
  const images = count(missing.length);
  if (sized === 0) return `${images}, of sizes that are not known; ${disk}`;
  const known = sized < missing.length ? ", as far as sizes are known" : "";
  const sizes = `${images}, ${bytesText(fetchBytes)} to fetch, ${bytesText(needBytes)} to be free${known}`;
  return verdict === "short"
    ? `too small: ${sizes}, and ${disk}: nothing would be fetched (MCO_IMAGE_NO_SPACE)`
    : `${sizes}; ${disk}`;
}

/** Why sizes are not known, each reason once. */
function unreadLines(unread: SizedPool["unread"]): readonly string[] {
  const byProblem = Map.groupBy(unread, ({ problem }) => problem);
  return [...byProblem].map(([problem, of]) => {
    const images = of.map(({ image }) => image);
    return `  not known: ${images.length === 1 ? "the size" : "the sizes"} of ${listText(images, shownImages)}: ${problem}`;
  });
}
