import { describe, expect, test } from "vitest";
import { type Scene, settledPool } from "../../test/support/control-plane-scene.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations } from "../api/names.ts";
import { poolOfRendered } from "../core/config/is-rendered.ts";

const hour = 3_600_000;
const policy = (scene: Scene, said: Readonly<Record<string, string | null>>) =>
  scene.act(() =>
    scene.kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { metadata: { annotations: said } } },
    ),
  );
const stored = async (scene: Scene, pool = "worker") =>
  (await scene.act(() => scene.kube.list(MachineConfig))).items
    .filter((config) => poolOfRendered(config) === pool)
    .map(({ metadata }) => metadata.name);

/** Gives the pool another target, which its machines get at once or not at all. */
async function next(scene: Scene, text: string, machines: readonly string[]): Promise<string> {
  const { target: before } = await scene.poolStatus("worker");
  await scene.act(() => scene.config("60-worker", "worker", { "/etc/b": text }));
  await scene.pass(1500);
  const { target } = await scene.poolStatus("worker");
  expect(target).not.toBe(before);
  for (const name of machines)
    await scene.act(() =>
      scene.annotate(name, {
        [annotations.desiredConfig]: target,
        [annotations.currentConfig]: target,
        [annotations.state]: "Done",
      }),
    );
  await scene.pass(1500);
  return target;
}

describe("rendered configs", () => {
  test("of which nothing is left go after the quiet time, but for the last ones that the pool has had [collect-controller-1]", async () => {
    const { scene, first } = await settledPool(["w0"]);
    await policy(scene, { [annotations.retainedConfigs]: "1" });
    const second = await next(scene, "2", ["w0"]);
    const third = await next(scene, "3", ["w0"]);
    // Nobody ever has this one.
    const passing = await next(scene, "4", []);
    const fifth = await next(scene, "5", ["w0"]);
    await scene.pass(hour - 60_000);
    expect((await stored(scene)).sort()).toEqual([first, second, third, passing, fifth].sort());
    await scene.pass(400_000);
    expect((await stored(scene)).sort()).toEqual([third, fifth].sort());
    const told = await scene.events("RenderedConfigsRemoved");
    for (const name of [first, second, passing]) expect(told.join()).toContain(name);
    expect(told.at(-1)).toMatch(/; kept: 1 in use, 1 for going back$/);
    // Nothing is left to do, and nothing is done.
    await scene.pass(2 * hour);
    expect(await stored(scene)).toHaveLength(2);
  });

  test("of a machine that is behind, or has yet to go back, stay as long as it names them [collect-controller-2]", async () => {
    const { scene, first } = await settledPool(["w0", "w1"]);
    await policy(scene, { [annotations.retainedConfigs]: "0", [annotations.retentionQuietSeconds]: "60" });
    const second = await next(scene, "2", ["w0"]);
    const third = await next(scene, "3", ["w0"]);
    await scene.act(() =>
      scene.annotate("w1", {
        [annotations.desiredConfig]: first,
        [annotations.currentConfig]: first,
        [annotations.state]: "Degraded",
        [annotations.firstPivotConfig]: second,
      }),
    );
    await scene.pass(hour);
    expect((await stored(scene)).sort()).toEqual([first, second, third].sort());
    await scene.act(() => scene.annotate("w1", { [annotations.firstPivotConfig]: null }));
    await scene.pass(600_000);
    expect((await stored(scene)).sort()).toEqual([first, third].sort());
  });

  test("that are deleted while something uses them come back the same: the target by its members, others as they were [collect-controller-3]", async () => {
    const { scene, first } = await settledPool(["w0", "w1"]);
    const second = await next(scene, "2", ["w0"]);
    await scene.act(() =>
      scene.annotate("w1", {
        [annotations.desiredConfig]: first,
        [annotations.currentConfig]: first,
        [annotations.state]: "Degraded",
      }),
    );
    for (const name of [first, second]) {
      const before = await scene.act(() => scene.kube.get(MachineConfig, { name }));
      await scene.act(() => scene.kube.delete(MachineConfig, { name }));
      await scene.pass(2000);
      const after = await scene.act(() => scene.kube.get(MachineConfig, { name }));
      expect(after?.spec).toEqual(before?.spec);
      expect(after?.metadata.ownerReferences).toEqual(before?.metadata.ownerReferences);
      expect(after?.metadata.annotations?.[annotations.generatedByController]).toBe(
        before?.metadata.annotations?.[annotations.generatedByController],
      );
    }
    expect(await scene.events("RenderedConfigRestored")).toEqual([
      expect.stringMatching(
        new RegExp(
          `^${first} was deleted while it is used by pool worker \\(status\\), node w1 \\(currentConfig\\).*: it is made again$`,
        ),
      ),
    ]);
  });

  test("that are deleted and not used stay away [collect-controller-4]", async () => {
    const { scene, first } = await settledPool([]);
    await next(scene, "2", []);
    await scene.act(() => scene.kube.delete(MachineConfig, { name: first }));
    await scene.pass(60_000);
    expect(await stored(scene)).not.toContain(first);
  });

  test("of a pool that is gone go when no machine has them any more [collect-controller-5]", async () => {
    const { scene, first } = await settledPool(["w0"]);
    // No collector of owners runs here: what remains is ours to remove.
    await scene.act(() => scene.kube.delete(MachineConfigPool, { name: "worker" }));
    await scene.pass(2 * hour);
    expect(await stored(scene)).toEqual([first]);
    await scene.act(() => scene.annotate("w0", { [annotations.desiredConfig]: "x", [annotations.currentConfig]: "x" }));
    await scene.act(() => scene.kube.delete(MachineConfigNode, { name: "w0" }));
    await scene.pass(2 * hour);
    expect(await stored(scene)).toEqual([]);
  });
});

test("annotations of a pool that are not understood count as absent, and are told once", async () => {
  const { scene } = await settledPool([]);
  await policy(scene, { [annotations.retainedConfigs]: "many" });
  await scene.pass(2 * hour);
  expect(await scene.events("PoolAnnotationIgnored")).toEqual([
    `metadata.annotations[${annotations.retainedConfigs}]: "many" is not understood; write a whole number from 0 to 1000; 5 are kept when the annotation is absent`,
  ]);
});
