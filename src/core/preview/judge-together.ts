import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labels } from "../../api/names.ts";
import { type KubeObject, selectorMatches } from "../../api/schema/object.ts";
import type { Problem } from "../../ignition/problem.ts";
import { membersOf } from "../config/is-rendered.ts";
import { renderForPool } from "../render/render-for-pool.ts";

/** Pools that select their own role alone; every other pool selects that of workers too. */
const builtInRoles = ["master", "worker", "arbiter"];

/**
 * What is wrong with MachineConfigs beside each other, by the name of the object (`MachineConfig/99-worker-x`): a pool
 * would not render them together. Pools that are not among the manifests are taken to select by role, as pools do.
 */
export function problemsTogether(manifests: readonly KubeObject[]): ReadonlyMap<string, readonly Problem[]> {
  const configs = manifests.filter(isMachineConfig);
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
    ({ metadata }) => !given.some(({ spec }) => selectorMatches(spec.machineConfigSelector, metadata.labels)),
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
