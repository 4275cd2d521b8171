import { poolSelects } from "../config/pool-selector.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labels } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import type { Problem } from "../../ignition/problem.ts";
import { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { membersOf } from "../config/is-rendered.ts";
import { problemsOfServices } from "../config/policy-services.ts";
import { readConfig } from "../machine/read-config.ts";
import { renderForPool } from "../render/render-for-pool.ts";

/** Pools that select their own role alone; every other pool selects that of workers too. */
const builtInRoles = ["master", "worker", "arbiter"];

/** What is wrong with manifests beside each other, by the name of the object (`MachineConfig/99-worker-x`). */
export function problemsTogether(manifests: readonly KubeObject[]): ReadonlyMap<string, readonly Problem[]> {
  const configs = manifests.filter(isMachineConfig);
  return new Map([...refusedTogether(manifests, configs), ...withoutServices(manifests, configs)]);
}

/** Disruption policies that act on services which none of the MachineConfigs brings; without any nothing is known. */
function withoutServices(
  manifests: readonly KubeObject[],
  configs: readonly MachineConfig[],
): readonly (readonly [string, readonly Problem[]])[] {
  if (configs.length === 0) return [];
  const read = configs.flatMap((config) => {
    const result = readConfig(config);
    return result.verdict === "read" ? [result.wanted.config] : [];
  });
  return manifests.filter(isMachineConfiguration).map((object) => {
    const problems = problemsOfServices(object.spec?.nodeDisruptionPolicy, read, "the given manifests");
    return [`${MachineConfiguration.kind}/${object.metadata.name}`, problems];
  });
}

/**
 * MachineConfigs that a pool would not render together. Pools that are not among the manifests are taken to select by
 * role, as pools do.
 */
function refusedTogether(
  manifests: readonly KubeObject[],
  configs: readonly MachineConfig[],
): ReadonlyMap<string, readonly Problem[]> {
  const given = poolsIn(manifests);
  const found = new Map<string, Map<string, Problem>>();
  for (const pool of [...given, ...poolsOfRoles(configs, given)]) {
    const members = membersOf(pool, given, configs);
    const rendered = renderForPool({ pool, members, controllerConfig: { spec: {} } }, undefined);
    for (const { member, path = "", reason, remedy } of rendered.verdict === "refused" ? rendered.refusals : []) {
      // What is wrong with no object in particular, such as a pool without members, may stand in other files.
      if (member === undefined) continue;
      const object = `${MachineConfig.kind}/${member}`;
      const problems = found.get(object) ?? new Map<string, Problem>();
      found.set(object, problems);
      problems.set(reason, { severity: "error", path, reason, ...(remedy === undefined ? {} : { remedy }) });
    }
  }
  return new Map([...found].map(([object, problems]) => [object, [...problems.values()]]));
}

const isMachineConfig = (object: KubeObject): object is MachineConfig =>
  object.kind === MachineConfig.kind && object.apiVersion === MachineConfig.apiVersion;
const isMachineConfiguration = (object: KubeObject): object is MachineConfiguration =>
  object.kind === MachineConfiguration.kind && object.apiVersion === MachineConfiguration.apiVersion;
const poolsIn = (manifests: readonly KubeObject[]): readonly MachineConfigPool[] =>
  manifests.flatMap((one) =>
    one.kind === MachineConfigPool.kind && one.apiVersion === MachineConfigPool.apiVersion
      ? [one as MachineConfigPool]
      : [],
  );

type SelectingPool = Pick<MachineConfigPool, "metadata" | "spec">;

/** The pools of the roles for which no pool is given. */
function poolsOfRoles(configs: readonly MachineConfig[], given: readonly SelectingPool[]): readonly SelectingPool[] {
  const unselected = configs.filter(
    ({ metadata }) => !given.some(({ spec }) => poolSelects(spec.machineConfigSelector, metadata.labels)),
  );
  const roles = new Set(unselected.flatMap(({ metadata }) => metadata.labels?.[labels.role] ?? []));
  return [...roles].map((role) => ({
    metadata: { name: role },
    spec: {
      machineConfigSelector: {
        matchExpressions: [
          { key: labels.role, operator: "In", values: builtInRoles.includes(role) ? [role] : ["worker", role] },
        ],
      },
    },
  }));
}
