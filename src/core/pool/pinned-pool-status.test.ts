import { expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { poolConditions } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { PinProgress } from "./pin-slots.ts";
import { pinnedPoolStatus } from "./pinned-pool-status.ts";

const pool = (status: object, sets: readonly string[] = ["a"]): MachineConfigPool =>
  ({
    metadata: { name: "worker", generation: 3 },
    spec: { pinnedImageSets: sets.map((name) => ({ name })) },
    status,
  }) as unknown as MachineConfigPool;
const progress = (also: Partial<PinProgress> = {}): PinProgress => ({
  machines: 2,
  have: 1,
  fetching: 1,
  failed: [],
  ...also,
});
const failed = progress({
  failed: [
    { node: "w0", answer: { of: 1, is: "failed", set: "a", field: "f", code: "MCO_IMAGE_ABSENT", problem: "no" } },
  ],
});
const sets = { verdict: "sets", names: ["a"] } as const;
const of = (status: ReturnType<typeof pinnedPoolStatus>, type: string) =>
  conditionOf(status?.conditions as { type: string; status?: string; message?: string }[] | undefined, type);

test("a failure degrades the pool in the same write, and its end ends that [pinned-pool-status-1]", () => {
  const well = pool({ conditions: [{ type: "Degraded", status: "False", reason: "AsExpected", message: "" }] });
  const degraded = pinnedPoolStatus(well, sets, failed, 0);
  expect(of(degraded, poolConditions.pinnedImageSetsDegraded)?.status).toBe("True");
  expect(of(degraded, poolConditions.degraded)).toMatchObject({
    status: "True",
    reason: "PinnedImageSetsDegraded",
    message: expect.stringContaining("PinnedImageSet a f: MCO_IMAGE_ABSENT: no (w0)") as string,
  });
  const corrected = pinnedPoolStatus(pool(degraded ?? {}), sets, progress({ have: 2 }), 1000);
  expect([
    of(corrected, poolConditions.pinnedImageSetsDegraded)?.status,
    of(corrected, poolConditions.degraded)?.status,
  ]).toEqual(["False", "False"]);
});

test("other parts of Degraded stay, and a pool that nobody judged gets none [pinned-pool-status-2]", () => {
  const other = { type: "RenderDegraded", status: "True", reason: "x", message: "broken" };
  const both = pinnedPoolStatus(
    pool({ conditions: [other, { type: "Degraded", status: "True" }] }),
    sets,
    progress(),
    0,
  );
  expect(of(both, poolConditions.degraded)).toMatchObject({ status: "True", message: "broken" });
  expect(of(pinnedPoolStatus(pool({}), sets, failed, 0), poolConditions.degraded)).toBeUndefined();
});

test("the counts never exceed each other, whatever the pool's own say [pinned-pool-status-3]", () => {
  const counts = (ready: number, unavailable: number) =>
    pinnedPoolStatus(pool({ readyMachineCount: ready, unavailableMachineCount: unavailable }), sets, progress(), 0)
      ?.poolSynchronizersStatus?.[0];
  expect(counts(9, 0)).toMatchObject({ machineCount: 2, readyMachineCount: 2, availableMachineCount: 2 });
  expect(counts(9, 1)).toMatchObject({ readyMachineCount: 1, unavailableMachineCount: 1, availableMachineCount: 1 });
  expect(counts(0, 9)).toMatchObject({ readyMachineCount: 0, unavailableMachineCount: 2, availableMachineCount: 0 });
});

test("a pool that never had a set says nothing, and nothing is written twice [pinned-pool-status-4]", () => {
  expect(pinnedPoolStatus(pool({}, []), sets, progress({ machines: 2, have: 2 }), 0)).toBeUndefined();
  const once = pinnedPoolStatus(pool({}), sets, progress(), 0);
  expect(pinnedPoolStatus(pool(once ?? {}), sets, progress(), 9000)).toBeUndefined();
});
