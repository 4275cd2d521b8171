import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { poolOfNode } from "../pool/pool-of-node.ts";
import { renderPool } from "../render/render-pool.ts";
import {
  type ExtensionFacts,
  type OSImageFacts,
  type OSImageFinding,
  demandsOf,
  judgeDemands,
  judgeExtensions,
} from "./os-image-demands.ts";
import { judgeBootImages } from "./judge-boot-images.ts";
import { type ClusterObjects, renderInputsOf } from "./plan-cluster.ts";
import { planSettings } from "./plan-settings.ts";

/** What an OS image means for the machines of one pool. */
export interface OSImageForecast {
  readonly pool: string;
  /** Sorted. */
  readonly nodes: readonly string[];
  readonly findings: readonly OSImageFinding[];
}

/**
 * The objects with these pools on a stream.
 *
 * @param names of pools; empty: all of them.
 */
export function onStream(
  objects: ClusterObjects,
  stream: string,
  names: readonly string[],
):
  | {
      readonly verdict: "objects";
      readonly objects: ClusterObjects;
      readonly image: string;
      readonly extensionsImage: string;
      readonly pools: readonly string[];
    }
  | { readonly verdict: "refused"; readonly reason: string } {
  const known = objects.pools.map(({ metadata }) => metadata.name);
  const missing = names.find((name) => !known.includes(name));
  if (missing !== undefined)
    return { verdict: "refused", reason: `there is no pool ${missing}; there are ${known.join(", ")}` };
  const streams = objects.osImageStream?.status?.availableStreams ?? [];
  const found = streams.find(({ name }) => name === stream);
  if (found === undefined)
    return {
      verdict: "refused",
      reason: `there is no OS image stream ${stream}; ${streams.length === 0 ? "the cluster has none" : `the streams are ${streams.map(({ name }) => name).join(", ")}`}`,
    };
  const pools = names.length === 0 ? known : names;
  return {
    verdict: "objects",
    image: found.osImage,
    extensionsImage: found.osExtensionsImage,
    pools,
    objects: {
      ...objects,
      pools: objects.pools.map((pool) =>
        pools.includes(pool.metadata.name)
          ? { ...pool, spec: { ...pool.spec, osImageStream: { name: stream } } }
          : pool,
      ),
    },
  };
}

/** The facts of the two images of a stream. */
export interface StreamFacts {
  readonly os: OSImageFacts;
  /** Asked for only where a configuration names extensions. */
  extensions(): Promise<ExtensionFacts>;
}

/**
 * The meaning of the images of a stream for the machines of pools.
 *
 * @param before the present objects. @param changed the objects with the pools on the stream.
 */
export async function forecastStream(
  before: ClusterObjects,
  changed: ClusterObjects,
  pools: readonly string[],
  facts: StreamFacts,
): Promise<readonly OSImageForecast[]> {
  const objects = { ...changed, machineConfigs: planSettings(before, changed).machineConfigs };
  const rendered = objects.pools
    .filter(({ metadata }) => pools.includes(metadata.name))
    .map((pool) => ({ pool, result: renderPool(renderInputsOf(pool, objects)) }));
  const asksForExtensions = rendered.some(
    ({ result }) => result.verdict !== "refused" && (result.config.spec?.extensions ?? []).length > 0,
  );
  const extensions = asksForExtensions ? await facts.extensions() : undefined;
  return rendered.map(({ pool, result }) => ({
    pool: pool.metadata.name,
    nodes: objects.nodes
      .filter((node) => {
        const membership = poolOfNode(node, objects.pools);
        return membership.verdict === "member" && membership.pool === pool.metadata.name;
      })
      .map(({ metadata }) => metadata.name)
      .sort(),
    // A pool that would not render says why itself.
    findings:
      result.verdict === "refused"
        ? []
        : judgeStream(result.config, facts.os, { extensions, boots: objects.machineConfiguration }),
  }));
}

/**
 * The meaning of other images for machines with a rendered configuration, those that join later included.
 *
 * @param extensions absent: no configuration names one. @param boots says from which boot images machines start.
 */
export function judgeStream(
  rendered: Pick<MachineConfig, "metadata" | "spec">,
  facts: OSImageFacts,
  {
    extensions: packages,
    boots,
  }: { readonly extensions?: ExtensionFacts | undefined } & {
    readonly boots?: ClusterObjects["machineConfiguration"];
  } = {},
): readonly OSImageFinding[] {
  const asked = rendered.spec?.extensions ?? [];
  const unasked: ExtensionFacts = { verdict: "unread", problem: "it was not asked for" };
  const extensions = asked.length === 0 ? [] : judgeExtensions(asked, packages ?? unasked);
  return [...judgeDemands(demandsOf(rendered), facts), ...extensions, ...judgeBootImages(boots)];
}

/** The forecast as lines of text. */
export const streamLines = (
  stream: string,
  image: string,
  forecasts: readonly OSImageForecast[],
): readonly string[] => [
  `OS image stream ${stream}: ${image}`,
  ...forecasts.flatMap((forecast) => {
    const { pool, nodes, findings } = forecast;
    return [
      `pool ${pool}: ${nodes.length === 0 ? "no machine is in this pool" : nodes.join(", ")}`,
      ...findingLines(forecast).map((line) => `  ${line}`),
      ...(findings.some(({ verdict }) => verdict === "breaks") ? [] : ["  nothing that was compared breaks a machine"]),
    ];
  }),
];

/** Which machines an OS image breaks, and what is not known of it. */
export const findingLines = ({ nodes, findings }: OSImageForecast): readonly string[] =>
  findings.map(({ verdict, reason, remedy, whom = nodes.length === 0 ? "every machine" : nodes.join(", ") }) =>
    verdict === "breaks"
      ? `breaks ${whom}: ${reason}${remedy === undefined ? "" : `; ${remedy}`}`
      : `not known: ${reason}`,
  );
