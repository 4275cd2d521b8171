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
  registriesProblems,
} from "../runtime/decide-registries.ts";
import type { ObjectProblem } from "../runtime/merge-mirrors.ts";
import { registriesBase, takenByPool } from "../runtime/registries-base.ts";
import { registriesConfigName } from "../runtime/registries-config.ts";
import type { RegistryObjects } from "../runtime/registry-objects.ts";
import { noneTaken } from "../runtime/uncertain-places.ts";
import { listText } from "../text/list-text.ts";
import { shown } from "./explanation.ts";

/** What the registries of pools are made with. */
export interface AroundRegistries {
  readonly pools: readonly MachineConfigPool[];
  readonly machineConfigs: readonly MachineConfig[];
  readonly controllerConfig: ControllerConfig | undefined;
}

export interface PlannedRegistries {
  /** All MachineConfigs, with those that the controller would write. */
  readonly machineConfigs: readonly MachineConfig[];
  /** What keeps all settings of registries from machines. */
  readonly refusals: readonly ObjectProblem[];
  /** What keeps single policies of namespaces from machines, which get everything else. */
  readonly leftOut: readonly ObjectProblem[];
  readonly warnings: readonly string[];
}

/** What the controller of registries would decide for each pool that gets them, by the pool's name. */
export function registriesByPool(
  objects: RegistryObjects,
  { pools, machineConfigs, controllerConfig }: AroundRegistries,
): ReadonlyMap<string, RegistriesDecision> {
  const configOf = (name: string) => machineConfigs.find(({ metadata }) => metadata.name === name);
  const cluster = { pools, configs: machineConfigs };
  const builtIn = pools.filter(({ metadata }) => metadata.labels?.[labels.builtInPool] !== undefined);
  return new Map(
    builtIn.map(({ metadata: { name: pool } }) => {
      const present = configOf(registriesConfigName(pool));
      const decision = decideRegistries({
        pool,
        objects,
        present,
        base: registriesBase(pool, configOf, cluster) ?? {
          registries: ownRegistriesConf,
          policy: ownPolicy,
          taken: takenByPool(pool, configOf, cluster),
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

/** The base configuration of this suite. */
const ownBase = { registries: ownRegistriesConf, policy: ownPolicy, taken: noneTaken };

/** What is wrong with objects on machines that have this suite's base configuration, whatever the cluster's release. */
export const problemsByThemselves = (objects: RegistryObjects): readonly ObjectProblem[] =>
  registriesProblems(objects, ownBase);

/** What these objects mean to machines that have this suite's base configuration. */
export const registriesByThemselves = (objects: RegistryObjects): RegistriesDecision =>
  decideRegistries({
    pool: "worker",
    objects,
    base: ownBase,
    present: undefined,
    owner: ownerless,
    generatorVersion: "",
  });

/** The objects of a cluster, and what a change makes of them. */
export interface RegistriesChange {
  readonly before: RegistryObjects;
  readonly after: RegistryObjects;
  /** The names of objects that the change writes, as they were or not: what is wrong with them is said all the same. */
  readonly written?: ReadonlySet<string>;
}

/**
 * The MachineConfigs that the controller would write for the objects after a change. Where no pool gets them, what is
 * wrong with them is said all the same. What was wrong before, and is not of an object that the change writes, is counted
 * in one warning; what keeps all settings from machines is always said, because it keeps the change from them too.
 */
export function planRegistries(
  { before, after, written }: RegistriesChange,
  around: AroundRegistries,
): PlannedRegistries {
  const configs = new Map(around.machineConfigs.map((config) => [config.metadata.name, config]));
  const byPool = registriesByPool(after, around);
  const decisions = byPool.size === 0 ? [registriesByThemselves(after)] : [...byPool.values()];
  const stood = textsOf(
    byPool.size === 0 ? [registriesByThemselves(before)] : registriesByPool(before, around).values(),
  );
  const isStanding = (problem: ObjectProblem) => written?.has(problem.object) !== true && stood.has(problemOf(problem));
  const refusals = uniqueProblems(decisions.flatMap((decision) => (decision.do === "refuse" ? decision.problems : [])));
  const writes = decisions.filter((decision) => decision.do === "write");
  const leftOut = uniqueProblems(writes.flatMap((decision) => decision.leftOut));
  const warnings = uniqueProblems(writes.flatMap((decision) => decision.warnings));
  for (const { config } of byPool.size === 0 ? [] : writes) {
    const { name } = config.metadata;
    const present = configs.get(name);
    // People's own labels and annotations stay.
    configs.set(name, present === undefined ? config : { ...present, spec: config.spec });
  }
  return {
    machineConfigs: [...configs.values()],
    refusals,
    leftOut: leftOut.filter((problem) => !isStanding(problem)),
    warnings: [
      ...warnings.filter((problem) => !isStanding(problem)).map(problemOf),
      ...standingText([...leftOut, ...warnings].filter(isStanding)),
    ],
  };
}

const textsOf = (decisions: Iterable<RegistriesDecision>): ReadonlySet<string> =>
  new Set(
    [...decisions].flatMap((decision) =>
      decision.do === "write" ? [...decision.leftOut, ...decision.warnings].map(problemOf) : [],
    ),
  );

/** Problems of one text, each once. */
export const uniqueProblems = (problems: readonly ObjectProblem[]): readonly ObjectProblem[] => [
  ...new Map(problems.map((one) => [problemOf(one), one])).values(),
];

/** How many problems of other objects stood before a change. */
function standingText(problems: readonly ObjectProblem[]): readonly string[] {
  if (problems.length === 0) return [];
  const objects = [...new Set(problems.map(({ object }) => object))].toSorted();
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return [`${count} with registries stood before this change (mco explain tells more): ${listText(objects, shown)}`];
}
