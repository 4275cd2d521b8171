import { expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { annotations } from "../api/names.ts";
import type { Clock } from "../ports/clock.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { controlledBy } from "../api/schema/object.ts";
import { poolOfRendered } from "../core/config/is-rendered.ts";
import type { Caches } from "../kube/controller.ts";
import { pacedTarget, renderPace } from "./render-pace.ts";

const change = (harness: Harness, text: string) =>
  harness.act(() => harness.config("60-worker", "worker", { "/etc/b": text }));

const renderedOf = async (harness: Harness) =>
  (await harness.act(() => harness.kube.list(MachineConfig))).items
    .filter((config) => poolOfRendered(config) === "worker")
    .map(({ metadata }) => metadata.name);

test("the first changes of a pool are rendered at once, then one in ten seconds, and the last one in the end [render-pace-1]", async () => {
  const { harness } = await updatedPool(["w0"]);
  const before = await renderedOf(harness);
  for (let i = 1; i <= 5; i++) {
    await change(harness, String(i));
    await harness.pass(1000);
    expect(await renderedOf(harness)).toHaveLength(before.length + i);
  }
  for (let i = 6; i <= 35; i++) {
    await change(harness, String(i));
    await harness.pass(1000);
  }
  expect((await renderedOf(harness)).length).toBeLessThan(before.length + 12);
  expect((await harness.poolStatus("worker")).of("RenderDegraded")).toMatchObject({
    status: "False",
    reason: "ChangesPaced",
  });
  await harness.pass(11_000);
  const { target } = await harness.poolStatus("worker");
  const rendered = await harness.act(() => harness.kube.get(MachineConfig, { name: target }));
  expect(JSON.stringify(rendered?.spec)).toContain("data:,35");
});

test("a pool without machines whose configuration changes without end has few that nothing uses [render-pace-2]", async () => {
  const { harness } = await updatedPool([]);
  for (let i = 1; i <= 40; i++) {
    await change(harness, String(i));
    await harness.pass(11_000);
  }
  // The target, those to go back to, and fifteen others; from then on one in three minutes.
  expect((await renderedOf(harness)).length).toBeLessThan(25);
  expect((await harness.poolStatus("worker")).of("Updated")?.message).toContain(
    "; rendering waits: the pool's configuration changes often",
  );
  await harness.pass(180_000);
  const { target } = await harness.poolStatus("worker");
  const rendered = await harness.act(() => harness.kube.get(MachineConfig, { name: target }));
  expect(JSON.stringify(rendered?.spec)).toContain("data:,40");
});

test("configurations that Nodes name, of whichever pool, are none that nothing uses [render-pace-3]", () => {
  const nameOf = (i: number) => `rendered-master-${i.toString(16).padStart(32, "0")}`;
  const pool: MachineConfigPool = {
    apiVersion: MachineConfigPool.apiVersion,
    kind: MachineConfigPool.kind,
    metadata: { name: "master" },
    spec: { configuration: { name: nameOf(0) } },
  };
  const rendered = Array.from({ length: 21 }, (_, i) => ({
    metadata: { name: nameOf(i), ownerReferences: [controlledBy(pool)] },
  }));
  /** How long the pool's next target waits while a Node names so many of its configurations. */
  const waits = (named: number) => {
    const names = new Set(rendered.slice(1, named + 1).map(({ metadata }) => metadata.name));
    const worker = { metadata: { name: "w0", annotations: {} } };
    const caches = {
      of: (resource: unknown) => ({
        get: () => undefined,
        list: () => (resource === MachineConfig ? rendered : []),
        byIndex: (_index: string, config: string) => {
          if (resource === MachineConfigPool) return config === nameOf(0) ? [pool] : [];
          if (resource !== kubernetes.Node || !names.has(config)) return [];
          return [{ metadata: { ...worker.metadata, annotations: { [annotations.currentConfig]: config } } }];
        },
      }),
    } as unknown as Caches;
    const pace = renderPace();
    pace.lastTarget.set("master", { name: nameOf(0), at: 0 });
    return pacedTarget(pool, nameOf(99), pace, { caches, clock: { monotonic: () => 1000 } as Clock })?.seconds;
  };
  expect([waits(0), waits(1), waits(20)]).toEqual([179, undefined, undefined]);
});
