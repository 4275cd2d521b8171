import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations } from "../../api/names.ts";

/** Values of the switch that say no; everything else, the empty text too, says yes. */
const falseValues: ReadonlySet<string> = new Set(["false", "False", "0", "no", "off", "disabled"]);

/** What a pool's own switch says, label or annotation: a no in either place counts. `undefined`: it has none. */
export function switchOf({ metadata }: Pick<MachineConfigPool, "metadata">): boolean | undefined {
  const values = [
    metadata.annotations?.[annotations.layeringEnabled],
    metadata.labels?.[annotations.layeringEnabled],
  ].filter((value) => value !== undefined);
  return values.length === 0 ? undefined : !values.some((value) => falseValues.has(value));
}

/** The MachineOSConfig that decides about a pool: the one with its name, else the oldest that names it. */
export function machineOSConfigOf<T extends Pick<MachineOSConfig, "metadata" | "spec">>(
  pool: string,
  configs: Iterable<T>,
): T | undefined {
  const naming = [...configs].filter(({ spec }) => spec.machineConfigPool.name === pool);
  const created = ({ metadata }: T) => metadata.creationTimestamp ?? "";
  const oldest = naming.reduce<T | undefined>(
    (first, one) =>
      first === undefined ||
      created(one) < created(first) ||
      (created(one) === created(first) && one.metadata.name < first.metadata.name)
        ? one
        : first,
    undefined,
  );
  return naming.find(({ metadata }) => metadata.name === pool) ?? oldest;
}

/** Whether some pool boots images, or is to. */
export function wantsImages(
  pools: readonly Pick<MachineConfigPool, "metadata">[],
  configs: readonly Pick<MachineOSConfig, "metadata" | "spec">[],
  { defaultOptIn }: { readonly defaultOptIn: boolean },
): boolean {
  return pools.some((pool) => {
    const asked = switchOf(pool);
    if (asked !== undefined) return asked;
    const config = machineOSConfigOf(pool.metadata.name, configs);
    return (config !== undefined && config.metadata.deletionTimestamp === undefined) || defaultOptIn;
  });
}

/** Whether this suite made it, from what a pool or the cluster was switched to. */
export const isMaterialised = ({ metadata }: Pick<MachineOSConfig, "metadata">): boolean =>
  metadata.annotations?.[annotations.optInSource] !== undefined;
