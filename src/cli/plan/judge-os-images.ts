import { type OSImageForecast, findingLines } from "../../core/preview/judge-stream.ts";
import { type OSImageFacts, judgeDemands } from "../../core/preview/os-image-demands.ts";
import type { ClusterForecast } from "../../core/preview/plan-cluster.ts";

/**
 * Whether the OS images of pools have what a plan newly needs of them. Each image is read once, and none that nothing is
 * asked of.
 *
 * @param except pools of which something else tells it. @param read what an image has.
 * @returns the pools with something to tell.
 */
export async function judgeOSImages(
  { pools }: Pick<ClusterForecast, "pools">,
  except: readonly string[],
  read: (image: string) => Promise<OSImageFacts>,
): Promise<readonly OSImageForecast[]> {
  const known = new Map<string, Promise<OSImageFacts>>();
  const factsOf = (image: string): Promise<OSImageFacts> => {
    const facts = known.get(image) ?? read(image);
    known.set(image, facts);
    return facts;
  };
  const forecasts: OSImageForecast[] = [];
  for (const pool of pools) {
    if (pool.verdict !== "changes" || pool.osImage === undefined || except.includes(pool.pool)) continue;
    const { image, demands } = pool.osImage;
    const findings = judgeDemands(demands, image.verdict === "named" ? await factsOf(image.name) : image);
    const nodes = pool.nodes.map(({ node }) => node);
    if (findings.length > 0) forecasts.push({ pool: pool.pool, nodes, findings });
  }
  return forecasts;
}

/** The findings as lines of text. */
export const osImageLines = (forecasts: readonly OSImageForecast[]): readonly string[] =>
  forecasts.flatMap((forecast) => findingLines(forecast).map((line) => `OS image of pool ${forecast.pool}: ${line}`));
