import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { annotations } from "../api/names.ts";
import { isAttached } from "../core/build/build-plan.ts";
import { isStarted } from "../core/build/build-queue.ts";
import { attemptOf } from "../core/build/build-retry.ts";
import { hasEnded, stateOfBuild } from "../core/config/build-phase.ts";
import type { BuildBackend, RunRef } from "./backend.ts";

/** The run of an attempt of a build: of the present one, unless it is given. */
export const buildRunOf = (build: MachineOSBuild, attempt = attemptOf(build)): RunRef => ({
  id: `${build.metadata.name}-${attempt}`,
  build: build.metadata.name,
  attempt,
});

/** The backend of a build: the one that runs steps if there are any, otherwise the first that needs none. */
export function backendOf(build: MachineOSBuild, backends: readonly BuildBackend[]): BuildBackend | undefined {
  const runs = build.metadata.annotations?.[annotations.buildStrategy] === "build";
  return runs
    ? backends.find((backend) => backend.capabilities().run)
    : (backends.find((backend) => !backend.capabilities().run) ?? backends[0]);
}

/** Names of the other builds whose runs the backend of a build has under way. */
export function runningBeside(
  build: MachineOSBuild,
  builds: readonly MachineOSBuild[],
  backends: readonly BuildBackend[],
): readonly string[] {
  const backend = backendOf(build, backends);
  return builds
    .filter(
      (other) =>
        other.metadata.name !== build.metadata.name &&
        !isAttached(other) &&
        backendOf(other, backends) === backend &&
        isStarted(other, stateOfBuild(other)) &&
        !hasEnded(stateOfBuild(other)),
    )
    .map(({ metadata }) => metadata.name);
}
