import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations } from "../api/names.ts";
import { poolOfRendered } from "../core/config/is-rendered.ts";

const hour = 3_600_000;
const policy = (harness: Harness, said: Readonly<Record<string, string | null>>) =>
  harness.act(() =>
    harness.kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { metadata: { annotations: said } } },
    ),
  );
const stored = async (harness: Harness, pool = "worker") =>
  (await harness.act(() => harness.kube.list(MachineConfig))).items
    .filter((config) => poolOfRendered(config) === pool)
    .map(({ metadata }) => metadata.name);

/** Gives the pool another target, which its machines get at once or not at all. */
async function next(harness: Harness, text: string, machines: readonly string[]): Promise<string> {
  const { target: before } = await harness.poolStatus("worker");
  await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": text }));
  await harness.pass(1500);
  const { target } = await harness.poolStatus("worker");
  expect(target).not.toBe(before);
  for (const name of machines)
    await harness.act(() =>
      harness.annotate(name, {
        [annotations.desiredConfig]: target,
        [annotations.currentConfig]: target,
        [annotations.state]: "Done",
      }),
    );
  await harness.pass(1500);
  return target;
}

describe("rendered configs", () => {
  test("that are unused are deleted after the quiet time, except the pool's last ones [collect-controller-1]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    await policy(harness, { [annotations.retainedConfigs]: "1" });
    const second = await next(harness, "2", ["w0"]);
    const third = await next(harness, "3", ["w0"]);
    // The machine was given this one, and never has it.
    const passing = await next(harness, "4", []);
    const fifth = await next(harness, "5", ["w0"]);
    await harness.pass(hour - 60_000);
    expect((await stored(harness)).sort()).toEqual([first, second, third, passing, fifth].sort());
    await harness.pass(400_000);
    expect((await stored(harness)).sort()).toEqual([third, fifth].sort());
    const told = await harness.events("RenderedConfigsRemoved");
    for (const name of [first, second, passing]) expect(told.join()).toContain(name);
    expect(told.at(-1)).toMatch(/; kept: 1 in use, 1 for going back$/);
    // Nothing is left to do, and nothing is done.
    await harness.pass(2 * hour);
    expect(await stored(harness)).toHaveLength(2);
  });

  test("of a machine that is behind or goes back stay while the machine names them [collect-controller-2]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    await policy(harness, { [annotations.retainedConfigs]: "0", [annotations.retentionQuietSeconds]: "60" });
    const second = await next(harness, "2", ["w0"]);
    const third = await next(harness, "3", ["w0"]);
    await harness.act(() =>
      harness.annotate("w1", {
        [annotations.desiredConfig]: first,
        [annotations.currentConfig]: first,
        [annotations.state]: "Degraded",
        [annotations.firstPivotConfig]: second,
      }),
    );
    await harness.pass(hour);
    expect((await stored(harness)).sort()).toEqual([first, second, third].sort());
    await harness.act(() => harness.annotate("w1", { [annotations.firstPivotConfig]: null }));
    await harness.pass(600_000);
    expect((await stored(harness)).sort()).toEqual([first, third].sort());
  });

  test("that no machine was given go after a minute, and take no place from those to go back to [collect-controller-6]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    await policy(harness, { [annotations.retainedConfigs]: "1" });
    const second = await next(harness, "2", ["w0"]);
    // No machine of a paused pool is given anything.
    const pause = (paused: boolean) =>
      harness.act(() =>
        harness.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: { spec: { paused } } }),
      );
    await pause(true);
    const passing = [await next(harness, "3", []), await next(harness, "4", [])];
    const last = await next(harness, "5", []);
    await harness.pass(40_000);
    expect((await stored(harness)).sort()).toEqual([first, second, ...passing, last].sort());
    await harness.pass(30_000);
    expect((await stored(harness)).sort()).toEqual([first, second, last].sort());
    // What a machine is given later is what the pool points to.
    await pause(false);
    await harness.pass(90_000);
    expect((await stored(harness)).sort()).toEqual([first, second, last].sort());
  });

  test("of a pool without machines stay for the quiet time: a machine that joins may have been served each [collect-controller-7]", async () => {
    const { harness, first } = await updatedPool([]);
    await policy(harness, { [annotations.retainedConfigs]: "0" });
    const second = await next(harness, "2", []);
    const third = await next(harness, "3", []);
    await harness.pass(hour - 60_000);
    expect((await stored(harness)).sort()).toEqual([first, second, third].sort());
    await harness.pass(400_000);
    expect(await stored(harness)).toEqual([third]);
  });

  test("that are deleted while in use are recreated identically [collect-controller-3]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    const second = await next(harness, "2", ["w0"]);
    await harness.act(() =>
      harness.annotate("w1", {
        [annotations.desiredConfig]: first,
        [annotations.currentConfig]: first,
        [annotations.state]: "Degraded",
      }),
    );
    for (const name of [first, second]) {
      const before = await harness.act(() => harness.kube.get(MachineConfig, { name }));
      await harness.act(() => harness.kube.delete(MachineConfig, { name }));
      await harness.pass(2000);
      const after = await harness.act(() => harness.kube.get(MachineConfig, { name }));
      expect(after?.spec).toEqual(before?.spec);
      expect(after?.metadata.ownerReferences).toEqual(before?.metadata.ownerReferences);
      expect(after?.metadata.annotations?.[annotations.generatedByController]).toBe(
        before?.metadata.annotations?.[annotations.generatedByController],
      );
    }
    expect(await harness.events("RenderedConfigRestored")).toEqual([
      expect.stringMatching(
        new RegExp(
          `^${first} was deleted while it is used by pool worker \\(status\\), node w1 \\(currentConfig\\).*: it is made again$`,
        ),
      ),
    ]);
  });

  test("that are deleted and unused are not recreated [collect-controller-4]", async () => {
    const { harness, first } = await updatedPool([]);
    await next(harness, "2", []);
    await harness.act(() => harness.kube.delete(MachineConfig, { name: first }));
    await harness.pass(60_000);
    expect(await stored(harness)).not.toContain(first);
  });

  test("of a deleted pool are removed when no machine has them [collect-controller-5]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    // No collector of owners runs here: what remains is ours to remove.
    await harness.act(() => harness.kube.delete(MachineConfigPool, { name: "worker" }));
    await harness.pass(2 * hour);
    expect(await stored(harness)).toEqual([first]);
    await harness.act(() =>
      harness.annotate("w0", { [annotations.desiredConfig]: "x", [annotations.currentConfig]: "x" }),
    );
    await harness.act(() => harness.kube.delete(MachineConfigNode, { name: "w0" }));
    await harness.pass(2 * hour);
    expect(await stored(harness)).toEqual([]);
  });
});

test("invalid annotations of a pool count as absent and are reported once", async () => {
  const { harness } = await updatedPool([]);
  await policy(harness, { [annotations.retainedConfigs]: "many" });
  await harness.pass(2 * hour);
  expect(await harness.events("PoolAnnotationIgnored")).toEqual([
    `metadata.annotations[${annotations.retainedConfigs}]: "many" is not understood; write a whole number from 0 to 1000; 5 are kept when the annotation is absent`,
  ]);
});
