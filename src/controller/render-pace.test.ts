import { expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { poolOfRendered } from "../core/config/is-rendered.ts";

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
