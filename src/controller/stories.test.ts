import { describe, expect, test } from "vitest";
import { type Scene, settledPool } from "../../test/support/control-plane-scene.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations } from "../api/names.ts";
import { foldBook } from "../core/books/fold-book.ts";
import { lineOf } from "../core/books/journal.ts";

/** Lines as they are told, from here on. */
function listen(scene: Scene): (book: string) => readonly string[] {
  const from = scene.scribe.lines.length;
  return (book) =>
    scene.scribe.lines
      .slice(from)
      .flatMap((line) => (line.book === book ? [`${line.chapter} ${line.path} ${line.mark} ${line.reason}`] : []));
}

const patchPool = (scene: Scene, body: object) =>
  scene.act(() => scene.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body }));
const render = "Render Changed end RenderedConfigChanged";

describe("what controllers tell of a roll-out", () => {
  test("its target with the MachineConfig that brought it, each machine, and its end; each once, however often they look [controller-stories-1]", async () => {
    const { scene, first } = await settledPool(["w0", "w1"]);
    await patchPool(scene, { spec: { maxUnavailable: 2 } });
    const told = listen(scene);
    await scene.act(() => scene.config("60-motd", "worker", { "/etc/motd": "hello" }));
    await scene.pass(2000);
    const { target } = await scene.poolStatus("worker");
    for (const name of ["w0", "w1"]) {
      await scene.act(() => scene.annotate(name, { [annotations.state]: "Working" }));
      await scene.pass(1000);
      await scene.act(() => scene.finish(name));
      await scene.pass(2000);
    }
    expect(told("pool/worker")).toEqual([
      render,
      "Rollout Begun begin TargetChanged",
      "Rollout Node/w0 end NodeUpdated",
      "Rollout Node/w1 end NodeUpdated",
      "Rollout Finished end AllUpdated",
    ]);
    expect(told("node/w0").slice(0, 1)).toEqual(["Update Requested begin TargetSet"]);
    const asked = scene.scribe.lines.find(
      (line) => line.book === "node/w1" && line.reason === "TargetSet" && line.run === target,
    );
    expect(asked?.data).toMatchObject({
      from: first,
      to: target,
      pool: "worker",
      cause: "MachineConfig 60-motd added",
      parent: `pool/worker Rollout ${target}`,
    });
    const lines = scene.scribe.lines.map((line, index) =>
      lineOf(line, {
        writer: { component: "controller", instance: "c" },
        boot: "b",
        number: { seq: index + 1 },
        at: 1_767_225_600_000 + index,
        mono: index,
      }),
    );
    expect(foldBook("pool/worker", lines, { now: 1_767_225_700_000 }).at(-1)).toMatchObject({
      chapter: "Rollout",
      run: target,
      state: "Closed",
      outcome: "Succeeded",
      cause: { text: "MachineConfig 60-motd added" },
      from: { config: first },
      to: { config: target },
    });
  });

  test("a new target in the middle of one, a pause and its end [controller-stories-2]", async () => {
    const { scene } = await settledPool(["w0", "w1"]);
    const told = listen(scene);
    await scene.act(() => scene.config("60-motd", "worker", { "/etc/motd": "1" }));
    await scene.pass(2000);
    await scene.act(() => scene.config("60-motd", "worker", { "/etc/motd": "2" }));
    await scene.pass(2000);
    await patchPool(scene, { spec: { paused: true } });
    await scene.pass(2000);
    await patchPool(scene, { spec: { paused: false } });
    await scene.pass(2000);
    expect(told("pool/worker")).toEqual([
      render,
      "Rollout Begun begin TargetChanged",
      render,
      "Rollout Begun begin TargetChanged",
      "Paused Paused begin PoolPaused",
      "Paused Ended end PoolResumed",
      "Rollout Begun begin TargetChanged",
    ]);
  });

  test("a target that is taken back before the machine took it on ends as superseded, and the old one does not begin again [controller-stories-3]", async () => {
    const { scene, first } = await settledPool(["w0"]);
    const told = listen(scene);
    await scene.act(() => scene.config("60-motd", "worker", { "/etc/motd": "1" }));
    await scene.pass(2000);
    await scene.act(() => scene.kube.delete(MachineConfig, { name: "60-motd" }));
    await scene.pass(2000);
    expect((await scene.desired("worker"))["w0"]).toBe(first);
    expect(told("node/w0")).toEqual(["Update Requested begin TargetSet", "Update Updated end Superseded"]);
    const lines = scene.scribe.lines.map((line, index) =>
      lineOf(line, {
        writer: { component: "controller", instance: "c" },
        boot: "b",
        number: { seq: index + 1 },
        at: 1_767_225_600_000 + index,
        mono: index,
      }),
    );
    expect(foldBook("node/w0", lines, { now: 1_767_225_700_000 })).toMatchObject([
      { chapter: "Update", state: "Closed", outcome: "Superseded" },
    ]);
  });

  test("a pool that cannot be rendered, once, and that it can again [controller-stories-4]", async () => {
    const { scene } = await settledPool(["w0"]);
    const told = listen(scene);
    await scene.act(() =>
      scene.kube.create(MachineConfig, {
        apiVersion: MachineConfig.apiVersion,
        kind: "MachineConfig",
        metadata: { name: "60-bad", labels: { "machineconfiguration.openshift.io/role": "worker" } },
        spec: { config: { ignition: { version: "9.9.0" } } },
      }),
    );
    await scene.pass(90_000);
    await scene.act(() => scene.kube.delete(MachineConfig, { name: "60-bad" }));
    await scene.pass(2000);
    expect(told("pool/worker")).toEqual(["Render Refused begin RenderRefused", "Render Refused end Recovered"]);
  });

  test("a machine that fails on its way, and the pool with it [controller-stories-5]", async () => {
    const { scene } = await settledPool(["w0"]);
    await scene.act(() => scene.config("60-motd", "worker", { "/etc/motd": "1" }));
    await scene.pass(2000);
    const told = listen(scene);
    await scene.act(() =>
      scene.annotate("w0", { [annotations.state]: "Degraded", [annotations.reason]: "a disk is full" }),
    );
    await scene.pass(2000);
    await scene.act(() => scene.finish("w0"));
    await scene.act(() => scene.annotate("w0", { [annotations.reason]: "" }));
    await scene.pass(2000);
    expect(told("pool/worker")).toEqual([
      "Rollout Node/w0 fail NodeFailed",
      "Degraded Degraded begin MachinesDegraded",
      "Rollout Node/w0 end NodeUpdated",
      "Degraded Ended end Recovered",
      "Rollout Finished end AllUpdated",
    ]);
    // Once all have the target, a machine that fails is a matter of its own.
    await scene.act(() =>
      scene.annotate("w0", { [annotations.state]: "Degraded", [annotations.reason]: "a disk is full" }),
    );
    await scene.pass(2000);
    expect(told("pool/worker").slice(5)).toEqual(["Degraded Degraded begin MachinesDegraded"]);
  });
});
