import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { isAttached } from "../core/build/build-plan.ts";
import type { BuilderContext } from "./builder-context.ts";
import { backendOf } from "./drive-build.ts";

/** Removes what a build needed. Secrets go at once; of a failure the rest stays for a while, for people to look at. */
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
