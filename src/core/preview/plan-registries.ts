import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { ownPolicy, ownRegistriesConf } from "../render/base-configs.ts";
import {
  type RegistriesDecision,
  decideRegistries,
  problemOf,
  registriesConfigName,
} from "../runtime/decide-registries.ts";
import type { ObjectProblem } from "../runtime/merge-mirrors.ts";
import { registriesBase } from "../runtime/registries-base.ts";
import type { RegistryObjects } from "../runtime/registry-objects.ts";
import { takenPlaces } from "../runtime/taken-places.ts";

/** What the registries of pools are made with. */
export interface AroundRegistries {
  readonly pools: readonly MachineConfigPool[];
  readonly machineConfigs: readonly MachineConfig[];
  readonly controllerConfig: ControllerConfig | undefined;
}

export interface PlannedRegistries {
  /** All MachineConfigs, with those that the controller would write. */
  readonly machineConfigs: readonly MachineConfig[];
  readonly refusals: readonly ObjectProblem[];
  readonly warnings: readonly string[];
}

/** What the controller of registries would decide for each pool that gets them, by the pool's name. */
export function registriesByPool(
  objects: RegistryObjects,
  { pools, machineConfigs, controllerConfig }: AroundRegistries,
): ReadonlyMap<string, RegistriesDecision> {
  const configOf = (name: string) => machineConfigs.find(({ metadata }) => metadata.name === name);
  const builtIn = pools.filter(({ metadata }) => metadata.labels?.[labels.builtInPool] !== undefined);
  return new Map(
    builtIn.map(({ metadata: { name: pool } }) => {
      const present = configOf(registriesConfigName(pool));
      const decision = decideRegistries({
        pool,
        objects,
        present,
        base: registriesBase(pool, configOf, machineConfigs) ?? {
          registries: ownRegistriesConf,
          policy: ownPolicy,
          taken: takenPlaces(machineConfigs),
        },
        owner: controllerConfig ?? ownerless,
        generatorVersion: versionOf(present ?? configOf(`01-${pool}-container-runtime`)),
      });
      return [pool, decision] as const;
    }),
  );
}

/** Without a cluster, nothing owns what is planned. */
const ownerless: KubeObject = { apiVersion: "v1", kind: "ControllerConfig", metadata: { name: "" } };

/** A plan changes no generator. */
const versionOf = (config: MachineConfig | undefined) =>
  config?.metadata.annotations?.[annotations.generatedByController] ?? "";

/** What these objects mean to machines that have this suite's base configuration. */
export const registriesByThemselves = (objects: RegistryObjects): RegistriesDecision =>
  decideRegistries({
    pool: "worker",
    objects,
    base: { registries: ownRegistriesConf, policy: ownPolicy, taken: new Set() },
    present: undefined,
    owner: ownerless,
    generatorVersion: "",
  });

/**
 * The MachineConfigs that the controller would write for these objects. Where no pool gets them, what is wrong with them
 * is said all the same.
 */
export function planRegistries(objects: RegistryObjects, around: AroundRegistries): PlannedRegistries {
  const configs = new Map(around.machineConfigs.map((config) => [config.metadata.name, config]));
  const refusals = new Map<string, ObjectProblem>();
  const warnings = new Set<string>();
  const byPool = registriesByPool(objects, around);
  for (const decision of byPool.size === 0 ? [registriesByThemselves(objects)] : byPool.values()) {
    switch (decision.do) {
      case "nothing":
        break;
      case "refuse":
        for (const problem of decision.problems) refusals.set(problemOf(problem), problem);
        break;
      case "write": {
        for (const warning of decision.warnings) warnings.add(problemOf(warning));
        if (byPool.size === 0) break;
        const { name } = decision.config.metadata;
        const before = configs.get(name);
        // People's own labels and annotations stay.
        configs.set(name, before === undefined ? decision.config : { ...before, spec: decision.config.spec });
      }
    }
  }
  return { machineConfigs: [...configs.values()], refusals: [...refusals.values()], warnings: [...warnings] };
}
