import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import { poolConditions as types } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { stuckBuild } from "../build/build-queue.ts";

/** How long images of a pool may fail, lack inputs or stand still before the operator is degraded by it. */
const patienceMs = 600_000;

type Conditions =
  | readonly {
      readonly type: string;
      readonly status: string;
      readonly message?: string;
      readonly lastTransitionTime?: string;
    }[]
  | undefined;

/**
 * Why a pool that is opted in to images gets none, once that has lasted ten minutes; `undefined`: nothing holds it up.
 *
 * @param builds of this pool. @param now milliseconds since the epoch.
 */
export function imageTrouble(
  { metadata: { name }, status }: Pick<MachineConfigPool, "metadata" | "status">,
  builds: readonly MachineOSBuild[],
  now: number,
): string | undefined {
  const isOld = (since: string | undefined) => now - Date.parse(since ?? "") >= patienceMs;
  const conditions = status?.conditions as Conditions;
  const failed = conditionOf(conditions, types.imageBuildDegraded);
  if (failed?.status === "True" && isOld(failed.lastTransitionTime))
    return `pool ${name}: its image cannot be built since ${failed.lastTransitionTime ?? ""}: ${failed.message ?? ""}; mco build explain ${name} says what to do`;
  const inputs = conditionOf(conditions, types.imageInputsValid);
  if (inputs?.status === "False" && isOld(inputs.lastTransitionTime))
    return `pool ${name}: its image cannot be planned since ${inputs.lastTransitionTime ?? ""}: ${inputs.message ?? ""}`;
  const stuck = stuckBuild(builds);
  return stuck !== undefined && isOld(stuck.since)
    ? `pool ${name}: the build ${stuck.name} waits since ${stuck.since}, and none runs${stuck.message === "" ? "" : `: ${stuck.message}`}`
    : undefined;
}
