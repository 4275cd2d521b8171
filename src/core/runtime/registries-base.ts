import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { ownPolicy, ownRegistriesConf } from "../render/base-configs.ts";
import { baseConfigOf, baseFileText, basePartOf } from "../render/base-config-of.ts";
import { policyPath, registriesConfPath } from "./registries-config.ts";
import { takenPlaces } from "./taken-places.ts";

/** The texts that the cluster's settings are laid over. */
export interface RegistriesBase {
  readonly registries: string;
  readonly policy: string;
  /** Places whose signatures other files of the machines define. */
  readonly taken: ReadonlySet<string>;
}

/** Whether the settings of registries are laid over a MachineConfig of a name. */
export const isRegistriesBase = (name: string): boolean =>
  ["container-runtime", "files"].includes(basePartOf(name) ?? "");

/**
 * The texts of a pool's base configuration, whichever generator made it; this suite's own where it lacks a file.
 * `baseConfigOf` says which one is the pool's.
 *
 * @param configOf a MachineConfig by its name. @param configs all of them.
 * @returns `undefined`: neither is there yet.
 */
export function registriesBase(
  pool: string,
  configOf: (name: string) => MachineConfig | undefined,
  configs: readonly MachineConfig[],
): RegistriesBase | undefined {
  if (baseConfigOf("container-runtime", pool, configOf) === undefined) return undefined;
  return {
    registries: baseFileText(registriesConfPath, pool, configOf) ?? ownRegistriesConf,
    policy: baseFileText(policyPath, pool, configOf) ?? ownPolicy,
    taken: takenPlaces(configs),
  };
}
