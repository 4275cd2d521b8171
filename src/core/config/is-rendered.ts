import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { poolSelects } from "./pool-selector.ts";

type Named = Pick<MachineConfig, "metadata">;

/** The form of the name of a rendered config, in a syntax that admission policies understand too. */
export const renderedNameForm = /^rendered-(.+)-[0-9a-f]{32}$/;

/**
 * The pool in the name of a rendered config: `rendered-POOL-HASH`. The name alone proves nothing, since
 * users choose names, too. Source: openshift/machine-config-operator pkg/controller/common/helpers.go (main).
 */
export const poolInRenderedName = (name: string): string | undefined => renderedNameForm.exec(name)?.[1];

/**
 * The pool that controls a rendered config, whether that pool still exists or not; `undefined`: the config is not
 * rendered, or came with the installation and no controller has taken it over yet.
 */
export function poolOfRendered({ metadata }: Named): string | undefined {
  const pool = poolInRenderedName(metadata.name);
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  return pool !== undefined && owner?.kind === "MachineConfigPool" && owner.name === pool ? pool : undefined;
}

/**
 * Whether a MachineConfig is what some pool's members were merged into, and so never a member itself: it has the name
 * of a rendered config, and the pool of that name controls it. A config that came with the installation has no owner
 * yet, because only the cluster knows the uid of the pool: its pool points to it. A config that a deleted pool left
 * behind stays rendered.
 */
export function isRendered(config: Named, pools: readonly Pick<MachineConfigPool, "metadata" | "spec">[]): boolean {
  if (poolOfRendered(config) !== undefined) return true;
  const { name, ownerReferences = [] } = config.metadata;
  const pool = poolInRenderedName(name);
  if (pool === undefined || ownerReferences.some(({ controller }) => controller === true)) return false;
  return pools.some(({ metadata, spec }) => metadata.name === pool && spec.configuration?.name === name);
}

/** The MachineConfigs that a pool's rendered config is merged from, in no order; those being deleted no longer count. */
export const membersOf = (
  { spec }: Pick<MachineConfigPool, "spec">,
  pools: readonly Pick<MachineConfigPool, "metadata" | "spec">[],
  machineConfigs: readonly MachineConfig[],
): readonly MachineConfig[] =>
  machineConfigs.filter(
    (config) =>
      config.metadata.deletionTimestamp === undefined &&
      poolSelects(spec.machineConfigSelector, config.metadata.labels) &&
      !isRendered(config, pools),
  );
