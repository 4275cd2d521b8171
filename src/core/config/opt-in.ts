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

/** Whether any pool boots images, or will. */
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

/** Whether this suite created it for the switch of a pool or of the cluster. */
export const isMaterialised = ({ metadata }: Pick<MachineOSConfig, "metadata">): boolean =>
  metadata.annotations?.[annotations.optInSource] !== undefined;
