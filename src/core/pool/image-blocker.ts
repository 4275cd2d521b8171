import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { annotations, labels } from "../../api/names.ts";
import { imageBuildDegraded } from "../build/build-conditions.ts";
import { hasEnded, stateOfBuild } from "../config/build-phase.ts";

export const upgradeBlockerReasons = [
  "RenderRefused",
  "DegradedPool",
  "BuildFailed",
  "InterruptedBuild",
  "BuildRunning",
  "PausedPool",
] as const;

/** What holds an upgrade back, and what to do. */
export interface UpgradeBlocker {
  readonly pool: string;
  readonly reason: (typeof upgradeBlockerReasons)[number];
  readonly message: string;
  readonly remedy: string;
}

/**
 * What an upgrade would break for a pool with images of its own: it needs an image on the new release's base, which a
 * pool whose builds fail or were ended does not get, and a control plane must not be amid one.
 */
export function imageBlocker(pool: MachineConfigPool, builds: readonly MachineOSBuild[]): readonly UpgradeBlocker[] {
  const { name, labels: has } = pool.metadata;
  if (has?.[labels.builtInPool] === undefined && has?.[labels.requiredForUpgrade] === undefined) return [];
  const failing = imageBuildDegraded(pool);
  const remedy = `mco build explain ${name}`;
  if (failing !== undefined)
    return [
      {
        pool: name,
        reason: "BuildFailed",
        message: `pool ${name}: its image cannot be built: ${failing.message}`,
        remedy,
      },
    ];
  const states = builds.map((build) => ({ build, state: stateOfBuild(build) }));
  const ended = states.find(
    ({ build, state }) =>
      state.phase === "Interrupted" &&
      state.reason !== "Superseded" &&
      build.metadata.annotations?.[annotations.nextAttemptAt] === undefined &&
      build.spec.machineConfig.name === pool.spec.configuration?.name,
  );
  if (ended !== undefined)
    return [
      {
        pool: name,
        reason: "InterruptedBuild",
        message: `pool ${name}: the build ${ended.build.metadata.name} was ended: ${ended.state.message}`,
        remedy,
      },
    ];
  const running = states.find(({ state }) => !hasEnded(state));
  return running === undefined || name !== "master"
    ? []
    : [
        {
          pool: name,
          reason: "BuildRunning",
          message: `pool ${name}: the build ${running.build.metadata.name} of the control plane's image has not ended`,
          remedy: "mco build status",
        },
      ];
}
