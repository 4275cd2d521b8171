import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { type ImageFacts, imageTargetOf, shortImage } from "../config/image-pair.ts";
import type { ImagePair } from "../machine/image-target.ts";
import { isQuarantined } from "../pool/quarantine.ts";

/** The inputs of the decision about a joining machine, beside its pool. */
export interface JoinFacts extends ImageFacts {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Whether a machine is known to run a configuration in an image. Absent: rely on the counts of the pool's status. */
  readonly runs?: (config: string, image: string) => boolean;
}

export type ChosenServed =
  | {
      readonly verdict: "serve";
      readonly config: string;
      /** `undefined`: the operating system that the configuration names. */ readonly image: ImagePair | undefined;
      /** A sentence without a final full stop. */ readonly because: string;
    }
  | {
      readonly verdict: "notReady";
      readonly reason: "NotRendered" | "NothingProven" | "Quarantined";
      /** The same. */ readonly message: string;
    };

/**
 * The configuration and the image of a machine that joins a pool now.
 *
 * The target as soon as one machine has it: an outdated configuration must not keep machines out. Before that, the last
 * one that every machine of the pool had. Counts for an earlier target prove nothing about this one, and a joining
 * machine cannot roll back, so it never gets a target that another machine rolled back from.
 */
export function chooseServed(pool: MachineConfigPool, facts: JoinFacts): ChosenServed {
  const { name } = pool.metadata;
  const target = pool.spec.configuration?.name ?? "";
  const last = pool.status?.configuration?.name ?? "";
  if (target === "" && last === "")
    return {
      verdict: "notReady",
      reason: "NotRendered",
      message: `no configuration has been rendered for the pool ${name} yet`,
    };
  const updated = countsTarget(pool) ? (pool.status?.updatedMachineCount ?? 0) : undefined;
  const candidates = servedCandidates(pool);
  if (candidates.length === 0)
    return {
      verdict: "notReady",
      reason: "NothingProven",
      message: `no machine of the pool ${name} has ${target} yet, and there is no configuration that one had before`,
    };

  const refused: string[] = [];
  for (const config of candidates) {
    const { image, why } = imageFor(pool, config, facts);
    const isRefused = isQuarantined(pool, config, image?.image ?? "");
    const because = `${whyThis(config)}${refused.length === 0 ? "" : `; machines went back from ${refused.join(", ")}`}`;
    if (!isRefused) return { verdict: "serve", config, image, because: `${because}; ${why}` };
    // Every machine has had the configuration; only its current image is at fault.
    if (image !== undefined && config === last && !isQuarantined(pool, config, stockOnly))
      return {
        verdict: "serve",
        config,
        image: undefined,
        because: `${because}; without its image, which machines went back from`,
      };
    refused.push(config);
  }
  return {
    verdict: "notReady",
    reason: "Quarantined",
    message: `machines of the pool ${name} went back from ${refused.join(" and ")}, and there is nothing else to give`,
  };

  function whyThis(config: string): string {
    if (config !== target)
      return `${config} is the last configuration of every machine of the pool: ${updated === undefined ? `the machines with ${target} are not counted yet` : `no machine has ${target} yet`}`;
    return config === last
      ? `every machine of the pool has ${config}`
      : `${config} is the pool's target, and ${updated} of its machines ${updated === 1 ? "has" : "have"} it`;
  }
}

/**
 * The configurations that a machine which joins a pool as it is now may be given, the first choice first: the target once a
 * machine has it, and the last one that every machine had.
 */
export function servedCandidates(pool: MachineConfigPool): readonly string[] {
  const target = pool.spec.configuration?.name ?? "";
  const last = pool.status?.configuration?.name ?? "";
  const isProven = target === last || (countsTarget(pool) && (pool.status?.updatedMachineCount ?? 0) > 0);
  return [...new Set([...(isProven ? [target] : []), last])].filter((name) => name !== "");
}

/** No image has that name: such a quarantine applies to every image. */
const stockOnly = "-";

/** Whether the pool's status is about the target in its spec. */
const countsTarget = ({ metadata, status }: MachineConfigPool): boolean =>
  status?.observedGeneration !== undefined && status.observedGeneration >= (metadata.generation ?? 1);

/** The image published for exactly that configuration, if a joining machine can boot it. */
function imageFor(
  pool: MachineConfigPool,
  config: string,
  facts: JoinFacts,
): { readonly image: ImagePair | undefined; readonly why: string } {
  const { image, content, awaits } = imageTargetOf(
    { metadata: pool.metadata, spec: { ...pool.spec, configuration: { name: config } } },
    facts,
    facts.now,
  );
  const stock = (why: string) => ({ image: undefined, why });
  if (image === "")
    return stock(
      awaits === undefined ? "the pool boots the stock operating system" : `without an image: ${awaits.message}`,
    );
  if (isInClusterRegistry(image))
    return stock(
      `without its image: machines that join cannot reach the cluster's own registry, where ${shortImage(image)} is`,
    );
  if (facts.runs?.(config, image) === false)
    return stock(`without its image: no machine runs ${shortImage(image)} yet`);
  if (facts.runs === undefined && config === pool.spec.configuration?.name) {
    // It may differ from the image that every machine had, for the same configuration.
    if (!countsTarget(pool))
      return stock(`without its image: the machines with ${shortImage(image)} are not counted yet`);
    if ((pool.status?.updatedMachineCount ?? 0) === 0)
      return stock(`without its image: no machine runs ${shortImage(image)} yet`);
  }
  return { image: { image, content }, why: `its image ${shortImage(image)} is published and runs` };
}

/** Service names resolve in pods, not on a machine that has not joined. */
const isInClusterRegistry = (image: string): boolean => /^[^/]*\.svc(\.[^/:]+)?(:\d+)?\//.test(image);
