import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations } from "../api/names.ts";

const change = (harness: Harness) => harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
const refuse = (harness: Harness, name: string, config: string, reason = "it did not boot") =>
  harness.act(() =>
    harness.kube.patch(
      MachineConfigNode,
      { name },
      {
        type: "merge",
        body: {
          metadata: {
            annotations: {
              [annotations.refusedTargets]: JSON.stringify([{ config, image: "", reason, at: "2030-01-01T00:00:00Z" }]),
            },
          },
        },
      },
    ),
  );
const quarantineOf = async (harness: Harness) =>
  (await harness.kube.get(MachineConfigPool, { name: "worker" }))?.metadata.annotations?.[annotations.quarantined];
const finishEach = async (harness: Harness, names: readonly string[]) => {
  for (const name of names) {
    await harness.act(() => harness.finish(name));
    await harness.pass(2000);
  }
};

describe("a machine that says that it went back from the target", () => {
  test("stops only itself, though it lies: the others get the target, and pool, book and event name it [refusals-1]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1", "w2"]);
    await change(harness);
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    await refuse(harness, "w2", target);
    await harness.pass(2000);
    expect(await quarantineOf(harness)).toBeUndefined();
    await finishEach(harness, ["w0", "w1"]);
    expect(await harness.desired("worker")).toEqual({ w0: target, w1: target, w2: first });
    expect((await harness.poolStatus("worker")).of("Updating")).toMatchObject({
      status: "False",
      reason: "MachineExcluded",
      message: expect.stringContaining(
        `w2 (MachineExcluded: it went back from ${target} (it did not boot), and is excluded from it alone)`,
      ) as string,
    });
    expect((await harness.poolStatus("worker")).of("Updating")?.message).toContain(annotations.refusedTargets);
    expect(await harness.events("MachineExcluded")).toEqual([expect.stringContaining(`w2 went back from ${target}`)]);
    expect(await harness.events("TargetQuarantined")).toEqual([]);
  });

  test("and is degraded takes its own place of the budget, and no other [refusals-2]", async () => {
    const { harness } = await updatedPool(["w0", "w1", "w2"]);
    await harness.act(() =>
      harness.kube.patch(
        MachineConfigPool,
        { name: "worker" },
        { type: "merge", body: { spec: { maxUnavailable: 2 } } },
      ),
    );
    await change(harness);
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    await refuse(harness, "w0", target);
    await harness.act(() =>
      harness.annotate("w0", { [annotations.state]: "Degraded", [annotations.reason]: "refused" }),
    );
    await harness.pass(2000);
    await finishEach(harness, ["w1", "w2"]);
    expect(await harness.desired("worker")).toEqual({ w0: target, w1: target, w2: target });
    const { pool, of } = await harness.poolStatus("worker");
    expect(pool?.status).toMatchObject({ updatedMachineCount: 2, degradedMachineCount: 1 });
    expect(of("Updating")?.message).toContain(`w0 alone is excluded from ${target}`);
  });

  test("is excluded from the canaries: another one goes first [refusals-3]", async () => {
    const { harness } = await updatedPool(["w0", "w1", "w2"]);
    await harness.act(() =>
      harness.kube.patch(
        MachineConfigPool,
        { name: "worker" },
        {
          type: "merge",
          body: { metadata: { annotations: { [annotations.rolloutCanary]: "1" } }, spec: { maxUnavailable: 2 } },
        },
      ),
    );
    await change(harness);
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    await refuse(harness, "w0", target);
    await harness.act(() =>
      harness.annotate("w0", { [annotations.state]: "Degraded", [annotations.reason]: "refused" }),
    );
    await harness.pass(2000);
    expect((await harness.desired("worker"))["w1"]).toBe(target);
  });

  test("and a second one that says so quarantine the target, until the annotation is removed [refusals-4]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1", "w2"]);
    await change(harness);
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    await refuse(harness, "w1", target);
    await refuse(harness, "w2", target);
    await harness.pass(2000);
    await finishEach(harness, ["w0"]);
    expect(JSON.parse((await quarantineOf(harness)) ?? "[]")).toMatchObject([{ config: target, nodes: ["w1", "w2"] }]);
    expect(await harness.desired("worker")).toEqual({ w0: target, w1: first, w2: first });
    expect((await harness.poolStatus("worker")).of("Updating")).toMatchObject({
      status: "False",
      reason: "RolloutBlocked",
    });
    await harness.act(() =>
      harness.kube.patch(
        MachineConfigPool,
        { name: "worker" },
        { type: "merge", body: { metadata: { annotations: { [annotations.quarantined]: null } } } },
      ),
    );
    await harness.pass(2000);
    await finishEach(harness, ["w1", "w2"]);
    expect(await harness.desired("worker")).toEqual({ w0: target, w1: target, w2: target });
  });
});
