import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations } from "../api/names.ts";
import type { BuildOpening } from "../core/build/decide-build.ts";
import type { Context } from "../kube/controller.ts";
import type { BuilderContext } from "./builder-context.ts";
import { backendOf, buildRunOf } from "./build-runs.ts";
import { annotateConfig, annotatePool } from "./write-objects.ts";
import { failedBuildDeleted, rebuildRequested } from "./reports.ts";

/** Notes a request to build again on the MachineOSConfig: the key of what is wanted is another one from now on. */
export async function beginRebuild(
  pool: MachineConfigPool,
  config: MachineOSConfig,
  { serial, active, request }: Extract<BuildOpening, { readonly do: "rebuild" }>,
  context: Context,
): Promise<void> {
  const activeBefore = config.metadata.annotations?.[annotations.rebuildActive];
  await annotateConfig(
    config,
    { [annotations.rebuildSerial]: String(serial), [annotations.rebuildActive]: active },
    context,
    (object) => object.metadata.annotations?.[annotations.rebuildActive] !== activeBefore,
  );
  await annotatePool(pool, { [annotations.buildRetries]: null }, context);
  context.report(rebuildRequested(pool, request));
}

/** The requests and the mark of a rebuild are removed when it has ended, whatever the result. */
export async function endRebuild(
  pool: MachineConfigPool,
  config: MachineOSConfig,
  succeeded: boolean,
  context: Context,
): Promise<void> {
  await annotatePool(
    pool,
    { [annotations.rebuildImage]: null, ...(succeeded ? { [annotations.buildRetries]: null } : {}) },
    context,
    { [annotations.rebuildImage]: null },
  );
  await annotateConfig(config, { [annotations.rebuild]: null, [annotations.rebuildActive]: null }, context);
}

/** Removes a build that failed before the rebuild, and everything that was kept of it. */
export async function clearFailed(build: MachineOSBuild, context: BuilderContext): Promise<void> {
  const { backends, kube, report, signal } = context;
  const backend = backendOf(build, backends);
  await backend?.cancel(buildRunOf(build), "a rebuild was asked for", signal);
  await backend?.cleanup({ build: build.metadata.name }, { keepForInspection: false }, signal);
  await kube.delete(MachineOSBuild, build.metadata, { signal });
  report(failedBuildDeleted(build));
}
