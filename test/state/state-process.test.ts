import { describe, expect, test } from "vitest";
import { StateScene, updateLines } from "./state-scene.ts";

describe("the books of nodes", () => {
  test("hold an update as one chapter, written once when it opens and once when it closes", async () => {
    const scene = await StateScene.make();
    const daemon = await scene.act(() => scene.node("worker-0"));
    scene.start();
    await scene.pass(30_000);
    const { begun, rest } = updateLines("worker-0", "rendered-worker-2");
    await scene.act(() => daemon.tell(...begun));
    await scene.pass(5000);
    expect(await scene.chapters("node/worker-0")).toMatchObject([{ number: 1, chapter: "Update", run: "rendered-worker-2", state: "Open", pool: "worker", confidence: "Told" }]);
    for (const line of rest) {
      await scene.act(() => daemon.tell(line));
      await scene.pass(20_000);
    }
    await scene.pass(60_000);
    const [chapter, ...others] = await scene.chapters("node/worker-0");
    expect(others).toEqual([]);
    expect(chapter).toMatchObject({ state: "Closed", outcome: "Succeeded", from: { config: "rendered-worker-1" }, to: { config: "rendered-worker-2" } });
    expect(chapter?.sections.length).toBeGreaterThanOrEqual(6);
    for (const { startedAt, endedAt } of chapter?.sections ?? []) expect(Date.parse(startedAt)).toBeLessThanOrEqual(Date.parse(endedAt ?? ""));
    expect(scene.writes.filter(({ kind, name }) => kind === "machinestatechapters" && name.startsWith("node.")).map(({ name }) => name)).toEqual(["node.worker-0.000001", "node.worker-0.000001"]);
    expect((await scene.index("node.worker-0"))?.subject).toMatchObject({ kind: "Node", name: "worker-0" });
  });
});
