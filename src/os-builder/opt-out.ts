import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, fieldManagers, finalizers, machineOSConfigConditions as types } from "../api/names.ts";
import { timestampOf } from "../api/schema/object.ts";
import { reportedLayering } from "../core/build/build-conditions.ts";
import { attachedTo, superseded } from "../core/build/build-plan.ts";
import { rebuildRequest } from "../core/build/build-rebuild.ts";
import { hasEnded, stateOfBuild } from "../core/config/build-phase.ts";
import { lackingInputsOf } from "../core/config/image-pair.ts";
import { isMaterialised } from "../core/config/opt-in.ts";
import { updateObject } from "../kube/kube-client.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import type { BuilderContext } from "./builder-context.ts";
import { cleanUp } from "./clean-up.ts";
import { buildSettingsIn, poolOfBuild } from "./cluster-facts.ts";
import { cancelBuild } from "./end-build.ts";
import { reportToPool } from "./report-image.ts";
import { annotateConfig, annotatePool, writeConfigStatus } from "./write-objects.ts";
import { configDeleted, poolOptedOut, rebuildIgnored } from "./reports.ts";

const optOutAfterOf = ({ metadata }: MachineConfigPool) => metadata.annotations?.[annotations.optOutAfter];

/** Lets a MachineOSConfig go that is being deleted: its runs end, and machines get their time. */
export async function releaseConfig(
  config: MachineOSConfig,
  pool: MachineConfigPool | undefined,
  context: BuilderContext,
): Promise<void> {
  const { kube, report, signal } = context;
  const { name } = config.metadata;
  await endRuns(name, `the MachineOSConfig ${name} was deleted`, context);
  await grantGrace(config, pool, context);
  await updateObject(
    kube,
    MachineOSConfig,
    config.metadata,
    (object) =>
      object.metadata.uid === config.metadata.uid
        ? ({
            metadata: {
              finalizers: (object.metadata.finalizers ?? []).filter((each) => each !== finalizers.osBuildCleanup),
            },
          } as unknown as Partial<MachineOSConfig>)
        : undefined,
    { owner: fieldManagers.osBuilder, cached: config, signal },
  );
  report(configDeleted(config));
}

/** Machines that already have the request to roll back need no delay. */
async function grantGrace(
  config: MachineOSConfig,
  pool: MachineConfigPool | undefined,
  context: BuilderContext,
): Promise<void> {
  if (
    pool === undefined ||
    pool.metadata.deletionTimestamp !== undefined ||
    isMaterialised(config) ||
    config.status?.currentImagePullSpec === undefined ||
    reportedLayering(pool) !== "layered" ||
    optOutAfterOf(pool) !== undefined
  )
    return;
  const until = timestampOf(context.clock.now() + buildSettingsIn(context.caches).optOutGraceMs);
  await annotatePool(pool, { [annotations.optOutAfter]: until }, context);
}

/** Ends every run of a MachineOSConfig but those that others wait for. */
async function endRuns(machineOSConfig: string, message: string, context: BuilderContext): Promise<void> {
  const builds = context.caches.of(MachineOSBuild).list();
  for (const { build } of superseded(machineOSConfig, undefined, builds)) {
    if (attachedTo(build.metadata.name, builds).some((other) => other.spec.machineOSConfig.name !== machineOSConfig))
      continue;
    await cancelBuild(build, "OptedOut", message, { context, backends: context.backends });
  }
  for (const build of builds)
    if (build.spec.machineOSConfig.name === machineOSConfig && hasEnded(stateOfBuild(build)))
      await cleanUp(build, false, context);
}

/** Moves a pool off images: ends pending builds, and removes what was reported of images. */
export async function leavePool(
  name: string,
  pool: MachineConfigPool | undefined,
  configs: readonly MachineOSConfig[],
  context: BuilderContext,
): Promise<Outcome> {
  context.memory.still.delete(name);
  const why = pool === undefined ? `there is no pool ${name}` : `the pool ${name} is not opted in to images`;
  for (const machineOSConfig of configsOf(name, configs, context)) await endRuns(machineOSConfig, why, context);
  const reason = pool === undefined ? "PoolNotFound" : "OptedOut";
  for (const config of configs) {
    if (config.metadata.deletionTimestamp !== undefined || isMaterialised(config)) continue;
    await annotateConfig(config, { [annotations.rebuild]: null, [annotations.rebuildActive]: null }, context);
    await writeConfigStatus(config, [{ type: types.upToDate, status: "False", reason, message: why }], context);
  }
  if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) return done();
  if (lackingInputsOf(pool) !== undefined)
    await reportToPool(pool, { inputs: { areValid: true, reason: "OptedOut", message: "" } }, context);
  if (reportedLayering(pool) !== "layered") {
    await ignoreRebuild(pool, context);
    return done();
  }
  // A MachineOSConfig that is made again in time changes nothing.
  const after = Date.parse(optOutAfterOf(pool) ?? "");
  const now = context.clock.now();
  if (!Number.isNaN(after) && after > now) return done((after - now) / 1000);
  await goBackToStock(pool, context, configsOf(name, configs, context).size > 0);
  return done();
}

/** Names of the MachineOSConfigs of a pool: those that exist, and those that builds of the pool are of. */
const configsOf = (
  pool: string,
  configs: readonly MachineOSConfig[],
  { caches }: BuilderContext,
): ReadonlySet<string> =>
  new Set([
    ...configs.map(({ metadata }) => metadata.name),
    ...caches
      .of(MachineOSBuild)
      .list()
      .filter((build) => poolOfBuild(build) === pool)
      .map(({ spec }) => spec.machineOSConfig.name),
  ]);

/** A request to build again is of no use where nothing is built. */
async function ignoreRebuild(pool: MachineConfigPool, context: BuilderContext): Promise<void> {
  noteRebuild(pool, "it is opted in", context);
  if (optOutAfterOf(pool) !== undefined) await annotatePool(pool, { [annotations.optOutAfter]: null }, context);
}

/** Reports a request to build again where there is nothing to build from, once for each request. */
export function noteRebuild(pool: MachineConfigPool, until: string, { report, memory }: BuilderContext): void {
  const { name } = pool.metadata;
  const request = rebuildRequest({ pool, config: undefined });
  if (request !== undefined && memory.ignored.get(name) !== request) report(rebuildIgnored(pool, until));
  if (request === undefined) memory.ignored.delete(name);
  else memory.ignored.set(name, request);
}

/** @param hadImages whether anything was built, or was to be built, for the pool. */
async function goBackToStock(pool: MachineConfigPool, context: BuilderContext, hadImages: boolean): Promise<void> {
  const { report, clock } = context;
  await annotatePool(
    pool,
    {
      [annotations.newestImageEquivalentConfig]: null,
      [annotations.rebuildImage]: null,
      [annotations.buildRetries]: null,
      [annotations.optOutAfter]: null,
    },
    context,
    { [annotations.rebuildImage]: null },
  );
  await reportToPool(pool, { degraded: { is: false, reason: "OptedOut", message: "" } }, context);
  if (!hadImages) return;
  report(poolOptedOut(pool, timestampOf(clock.now())));
}
