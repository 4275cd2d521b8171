import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { isAttached } from "../core/build/build-plan.ts";
import type { BuilderContext } from "./builder-context.ts";
import { backendOf } from "./build-runs.ts";

/**
 * Removes the objects that a build needed. Secrets go at once; after a failure the other objects stay for a while, for
 * inspection.
 */
export async function cleanUp(
  build: MachineOSBuild,
  keepForInspection: boolean,
  { backends, memory: { cleaned }, signal }: BuilderContext,
): Promise<void> {
  const backend = isAttached(build) ? undefined : backendOf(build, backends);
  const id = build.metadata.uid ?? build.metadata.name;
  if (backend === undefined || cleaned.has(id) || (keepForInspection && cleaned.has(`${id} but what people look at`)))
    return;
  await backend.cleanup({ build: build.metadata.name }, { keepForInspection }, signal);
  cleaned.add(keepForInspection ? `${id} but what people look at` : id);
}
