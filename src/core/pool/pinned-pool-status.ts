import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { poolConditions } from "../../api/names.ts";
import { setCondition } from "../../api/schema/conditions.ts";
import { equalValues } from "../../ignition/canonical.ts";
import type { PinAnswer } from "../images/pin-grant.ts";
import { clipText } from "../text/clip-text.ts";
import { listText } from "../text/list-text.ts";
import { withOverallDegraded } from "./pool-status.ts";
import type { PinProgress } from "./pin-slots.ts";
import type { SetsOfPool } from "./pinned-sets.ts";

const shownFailures = 3;
const messageLimit = 4096;
const ours = "PinnedImageSets";

type PoolStatus = NonNullable<MachineConfigPool["status"]>;

/**
 * How many machines of a pool have its sets, and what keeps the others from having them; `undefined`: the status says so
 * already. A pool that never had a set says nothing.
 *
 * @param now milliseconds since the epoch.
 */
export function pinnedPoolStatus(
  pool: MachineConfigPool,
  sets: SetsOfPool,
  progress: PinProgress,
  now: number,
): Pick<PoolStatus, "conditions" | "poolSynchronizersStatus"> | undefined {
  const before = pool.status ?? {};
  const synchronizers = before.poolSynchronizersStatus ?? [];
  const trouble = troubleOf(sets, progress);
  const isKnown = synchronizers.some(({ poolSynchronizerType }) => poolSynchronizerType === ours);
  if ((pool.spec.pinnedImageSets ?? []).length === 0 && !isKnown && trouble === undefined) return undefined;
  const own = setCondition(
    before.conditions,
    {
      type: poolConditions.pinnedImageSetsDegraded,
      status: trouble === undefined ? "False" : "True",
      reason: trouble?.reason ?? "AsExpected",
      message: clipText(trouble?.message ?? "", messageLimit),
    },
    now,
  );
  const conditions = [...withOverallDegraded(own, now)];
  const poolSynchronizersStatus = [
    ...synchronizers.filter(({ poolSynchronizerType }) => poolSynchronizerType !== ours),
    synchronizerOf(pool, progress),
  ];
  const isSame = equalValues(conditions, before.conditions) && equalValues(poolSynchronizersStatus, synchronizers);
  return isSame ? undefined : { conditions, poolSynchronizersStatus };
}

/** What keeps a pool's machines from having its sets; `undefined`: nothing does. */
function troubleOf(
  sets: SetsOfPool,
  progress: PinProgress,
): { readonly reason: string; readonly message: string } | undefined {
  if (sets.verdict === "refused") return sets;
  return progress.failed.length === 0 ? undefined : { reason: "PrefetchFailed", message: failedText(progress) };
}

/** The counts that openshift/api machineconfiguration/v1/types.go (master) has for it: available is never below ready. */
function synchronizerOf(
  { metadata, status }: MachineConfigPool,
  { machines, have }: PinProgress,
): NonNullable<PoolStatus["poolSynchronizersStatus"]>[number] {
  const unavailable = Math.min(status?.unavailableMachineCount ?? 0, machines);
  return {
    poolSynchronizerType: ours,
    machineCount: machines,
    updatedMachineCount: have,
    readyMachineCount: Math.min(status?.readyMachineCount ?? 0, machines - unavailable),
    unavailableMachineCount: unavailable,
    availableMachineCount: machines - unavailable,
    observedGeneration: metadata.generation ?? 1,
  };
}

/** The first failures, with object and field: a PinnedImageSet has no status of its own. */
function failedText({ failed, machines }: PinProgress): string {
  const byWhat = Map.groupBy(failed, ({ answer }) => whatOf(answer));
  const parts = [...byWhat].map(
    ([what, nodes]) =>
      `${what} (${listText(
        nodes.map(({ node }) => node),
        shownFailures,
      )})`,
  );
  return `${failed.length} of ${machines} machines cannot fetch their pinned images, and try again with growing delays: ${listText(parts, shownFailures)}`;
}

const whatOf = ({ set, field, code, problem }: PinAnswer): string =>
  `${set === undefined ? "the sets" : `PinnedImageSet ${set}`}${field === undefined ? "" : ` ${field}`}: ${code ?? "failed"}: ${problem ?? ""}`;
