import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations } from "../../api/names.ts";

/** Values that switch images off; every other value switches them on, the empty text included. */
export const falseValues: ReadonlySet<string> = new Set(["false", "False", "0", "no", "off", "disabled"]);

/** The pool's own switch, a label or an annotation: off in either place counts. `undefined`: it has none. */
export function switchOf({ metadata }: Pick<MachineConfigPool, "metadata">): boolean | undefined {
  const values = [
    metadata.annotations?.[annotations.layeringEnabled],
    metadata.labels?.[annotations.layeringEnabled],
  ].filter((value) => value !== undefined);
  return values.length === 0 ? undefined : !values.some((value) => falseValues.has(value));
}

type Deciding = Pick<MachineOSConfig, "metadata" | "spec">;

/**
 * The MachineOSConfig that decides about a pool: one that stays before one that is being deleted, a user's before the
 * suite's own, then the one with the pool's name, then the oldest.
 */
export function machineOSConfigOf<T extends Deciding>(pool: string, configs: Iterable<T>): T | undefined {
  const rank = ({ metadata }: T): readonly string[] => [
    metadata.deletionTimestamp === undefined ? "0" : "1",
    isMaterialised({ metadata }) ? "1" : "0",
    metadata.name === pool ? "0" : "1",
    metadata.creationTimestamp ?? "",
    metadata.name,
  ];
  const isBefore = (a: readonly string[], b: readonly string[]): boolean => {
    const at = a.findIndex((part, index) => part !== b[index]);
    return at >= 0 && (a[at] ?? "") < (b[at] ?? "");
  };
  return [...configs]
    .filter(({ spec }) => spec.machineConfigPool.name === pool)
    .reduce<T | undefined>(
      (first, one) => (first === undefined || isBefore(rank(one), rank(first)) ? one : first),
      undefined,
    );
}

/** Whether this suite created it for the switch of a pool or of the cluster. */
export const isMaterialised = ({ metadata }: Pick<MachineOSConfig, "metadata">): boolean =>
  metadata.annotations?.[annotations.optInSource] !== undefined;

export type OptInSource = "MachineOSConfig" | "PoolLabel" | "ClusterDefault";

export interface OptInFacts<T extends Deciding> {
  /** All of the cluster. */
  readonly configs: Iterable<T>;
  /**
   * Whether the cluster opts in every pool; `undefined`: no ConfigMap sets it, and pools that it opted in before keep
   * their MachineOSConfig and stay opted in.
   */
  readonly defaultOptIn: boolean | undefined;
  /** Milliseconds after the deletion of a user's MachineOSConfig during which machines keep their images. */
  readonly graceMs: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type OptIn<T> =
  | {
      readonly opted: "in";
      readonly source: OptInSource;
      /** The deciding MachineOSConfig; absent until the builder creates it. */
      readonly config: T | undefined;
    }
  /** The MachineOSConfig is deleted: machines keep their images for a time, and get no others. */
  | {
      readonly opted: "leaving";
      /** Absent: it is gone. */
      readonly config: T | undefined;
      /** Milliseconds since the epoch. */
      readonly until: number;
    }
  | { readonly opted: "out"; readonly reason: "OptedOut" | "NotAsked" };

/** Whether machines of a pool boot images that are built on the cluster, and by which rule; the first one decides. */
export function optInOf<T extends Deciding>(
  pool: Pick<MachineConfigPool, "metadata">,
  { configs, defaultOptIn, graceMs, now }: OptInFacts<T>,
): OptIn<T> {
  const asked = switchOf(pool);
  if (asked === false) return { opted: "out", reason: "OptedOut" };
  const deciding = machineOSConfigOf(pool.metadata.name, configs);
  const config = deciding?.metadata.deletionTimestamp === undefined ? deciding : undefined;
  if (config !== undefined && !isMaterialised(config)) return { opted: "in", source: "MachineOSConfig", config };
  if (asked === true) return { opted: "in", source: "PoolLabel", config };
  const staysDefault = config?.metadata.annotations?.[annotations.optInSource] === "ClusterDefault";
  if (defaultOptIn ?? staysDefault) return { opted: "in", source: "ClusterDefault", config };
  const until =
    deciding === undefined
      ? keepsImagesUntil(pool)
      : config === undefined
        ? deletionTakesEffectAt(deciding, graceMs)
        : undefined;
  return until !== undefined && until > now
    ? { opted: "leaving", config: deciding, until }
    : { opted: "out", reason: "NotAsked" };
}

/**
 * When the deletion of a MachineOSConfig takes effect, in milliseconds since the epoch; `undefined`: it is not being
 * deleted.
 */
export function deletionTakesEffectAt(
  { metadata }: Pick<MachineOSConfig, "metadata">,
  graceMs: number,
): number | undefined {
  if (metadata.deletionTimestamp === undefined) return undefined;
  // The suite created this one for the switch: the switch was turned off.
  return Date.parse(metadata.deletionTimestamp) + (isMaterialised({ metadata }) ? 0 : graceMs);
}

/**
 * Until when machines keep their images although the MachineOSConfig is deleted, in milliseconds since the epoch:
 * time to recreate one that was deleted by mistake.
 */
export function keepsImagesUntil({ metadata }: Pick<MachineConfigPool, "metadata">): number | undefined {
  const until = Date.parse(metadata.annotations?.[annotations.optOutAfter] ?? "");
  return Number.isNaN(until) ? undefined : until;
}

/** Whether any pool is opted in. */
export function wantsImages(
  pools: readonly Pick<MachineConfigPool, "metadata">[],
  configs: readonly Deciding[],
  { defaultOptIn }: Pick<OptInFacts<Deciding>, "defaultOptIn">,
): boolean {
  const facts = { configs, defaultOptIn, graceMs: 0, now: 0 };
  return pools.some((pool) => optInOf(pool, facts).opted === "in");
}
