import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { labels } from "../../api/names.ts";
import { ownPolicy, ownRegistriesConf } from "../render/base-configs.ts";
import { baseConfigOf, baseFileText, basePartOf } from "../render/base-config-of.ts";
import { policyPath, registriesConfPath, registriesConfigName } from "./registries-config.ts";
import { type PlacesView, takenPlaces } from "./taken-places.ts";
import type { TakenPlaces } from "./uncertain-places.ts";

/** The texts that the cluster's settings are laid over. */
export interface RegistriesBase {
  readonly registries: string;
  readonly policy: string;
  /** Places whose signatures other files of the machines define. */
  readonly taken: TakenPlaces;
}

/** Whether the settings of registries are laid over a MachineConfig of a name. */
export const isRegistriesBase = (name: string): boolean =>
  ["container-runtime", "files"].includes(basePartOf(name) ?? "");

/**
 * The texts of a pool's base configuration, whichever generator made it; this suite's own where it lacks a file.
 * `baseConfigOf` says which one is the pool's.
 *
 * @param configOf a MachineConfig by its name. @param cluster all pools and MachineConfigs.
 * @returns `undefined`: neither is there yet.
 */
export function registriesBase(
  pool: string,
  configOf: (name: string) => MachineConfig | undefined,
  cluster: Omit<PlacesView, "labels">,
): RegistriesBase | undefined {
  if (baseConfigOf("container-runtime", pool, configOf) === undefined) return undefined;
  return {
    registries: baseFileText(registriesConfPath, pool, configOf) ?? ownRegistriesConf,
    policy: baseFileText(policyPath, pool, configOf) ?? ownPolicy,
    taken: takenByPool(pool, configOf, cluster),
  };
}

/** Places that other files define on machines that get the registries of a pool. */
export const takenByPool = (
  pool: string,
  configOf: (name: string) => MachineConfig | undefined,
  cluster: Omit<PlacesView, "labels">,
): TakenPlaces =>
  // People's own labels stay.
  takenPlaces({
    ...cluster,
    labels: { ...configOf(registriesConfigName(pool))?.metadata.labels, [labels.role]: pool },
  });
