import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import type { Node } from "../api/foreign/kubernetes.ts";
import { annotations } from "../api/names.ts";
import { foldBook } from "../core/books/fold-book.ts";
import { lineOf } from "../core/books/journal.ts";
import { reportsOf } from "../kube/report.ts";
import { nodeUncordoned } from "./reports.ts";

/** Lines as they are told, from here on. */
function listen(harness: Harness): (book: string) => readonly string[] {
  const from = harness.journal.lines.length;
  return (book) =>
    harness.journal.lines
      .slice(from)
      .flatMap((line) => (line.book === book ? [`${line.chapter} ${line.path} ${line.mark} ${line.reason}`] : []));
}

const patchPool = (harness: Harness, body: object) =>
  harness.act(() => harness.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body }));
const render = "Render Changed end RenderedConfigChanged";

describe("the journal lines of a roll-out", () => {
  test("name target, cause, each machine and the end once, regardless of the number of passes [controller-stories-1]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    await patchPool(harness, { spec: { maxUnavailable: 2 } });
    const told = listen(harness);
    await harness.act(() => harness.config("60-motd", "worker", { "/etc/motd": "hello" }));
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    for (const name of ["w0", "w1"]) {
      await harness.act(() => harness.annotate(name, { [annotations.state]: "Working" }));
      await harness.pass(1000);
      await harness.act(() => harness.finish(name));
      await harness.pass(2000);
    }
    expect(told("pool/worker")).toEqual([
      render,
      "Rollout Begun begin TargetChanged",
      "Rollout Node/w0 end NodeUpdated",
      "Rollout Node/w1 end NodeUpdated",
      "Rollout Finished end AllUpdated",
    ]);
    expect(told("node/w0").slice(0, 1)).toEqual(["Update Requested begin TargetSet"]);
    const asked = harness.journal.lines.find(
      (line) => line.book === "node/w1" && line.reason === "TargetSet" && line.run === target,
    );
    expect(asked?.data).toMatchObject({
      from: first,
      to: target,
      pool: "worker",
      cause: "MachineConfig 60-motd added",
      parent: `pool/worker Rollout ${target}`,
    });
    const lines = harness.journal.lines.map((line, index) =>
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

  test("name a new target, a pause and its end [controller-stories-2]", async () => {
    const { harness } = await updatedPool(["w0", "w1"]);
    const told = listen(harness);
    await harness.act(() => harness.config("60-motd", "worker", { "/etc/motd": "1" }));
    await harness.pass(2000);
    await harness.act(() => harness.config("60-motd", "worker", { "/etc/motd": "2" }));
    await harness.pass(2000);
    await patchPool(harness, { spec: { paused: true } });
    await harness.pass(2000);
    await patchPool(harness, { spec: { paused: false } });
    await harness.pass(2000);
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

  test("end a target withdrawn before its acceptance as superseded, and do not begin the old one again [controller-stories-3]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    const told = listen(harness);
    await harness.act(() => harness.config("60-motd", "worker", { "/etc/motd": "1" }));
    await harness.pass(2000);
    await harness.act(() => harness.kube.delete(MachineConfig, { name: "60-motd" }));
    await harness.pass(2000);
    expect((await harness.desired("worker"))["w0"]).toBe(first);
    expect(told("pool/worker")).toEqual([
      render,
      "Rollout Begun begin TargetChanged",
      "Render Changed end RenderedConfigChanged",
      "Rollout Finished end Superseded",
    ]);
    expect(told("node/w0")).toEqual(["Update Requested begin TargetSet", "Update Updated end Superseded"]);
    const lines = harness.journal.lines.map((line, index) =>
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

  test("name the end also where the answer to the change of the status was lost [controller-stories-6]", async () => {
    const { harness } = await updatedPool(["w0"]);
    const told = listen(harness);
    await harness.act(() => harness.config("60-motd", "worker", { "/etc/motd": "1" }));
    await harness.pass(2000);
    let lost = 0;
    harness.intercept = (handler) => async (request, signal) => {
      const answer = await handler(request, signal);
      if (lost > 0 || request.method === "GET" || !request.target.includes("/worker/status")) return answer;
      lost += 1;
      throw new Error("the connection broke before the answer came");
    };
    await harness.act(() => harness.finish("w0"));
    await harness.pass(10_000);
    expect(lost).toBe(1);
    expect(told("pool/worker").slice(-1)).toEqual(["Rollout Finished end AllUpdated"]);
  });

  test("name a pool that cannot be rendered and its recovery, once each [controller-stories-4]", async () => {
    const { harness } = await updatedPool(["w0"]);
    const told = listen(harness);
    await harness.act(() =>
      harness.kube.create(MachineConfig, {
        apiVersion: MachineConfig.apiVersion,
        kind: "MachineConfig",
        metadata: { name: "60-bad", labels: { "machineconfiguration.openshift.io/role": "worker" } },
        spec: { config: { ignition: { version: "9.9.0" } } },
      }),
    );
    await harness.pass(90_000);
    await harness.act(() => harness.kube.delete(MachineConfig, { name: "60-bad" }));
    await harness.pass(2000);
    expect(told("pool/worker")).toEqual(["Render Refused begin RenderRefused", "Render Refused end Recovered"]);
  });

  test("name a machine that fails during its update, and its pool [controller-stories-5]", async () => {
    const { harness } = await updatedPool(["w0"]);
    await harness.act(() => harness.config("60-motd", "worker", { "/etc/motd": "1" }));
    await harness.pass(2000);
    const told = listen(harness);
    await harness.act(() =>
      harness.annotate("w0", { [annotations.state]: "Degraded", [annotations.reason]: "a disk is full" }),
    );
    await harness.pass(2000);
    await harness.act(() => harness.finish("w0"));
    await harness.act(() => harness.annotate("w0", { [annotations.reason]: "" }));
    await harness.pass(2000);
    expect(told("pool/worker")).toEqual([
      "Rollout Node/w0 fail NodeFailed",
      "Degraded Degraded begin MachinesDegraded",
      "Rollout Node/w0 end NodeUpdated",
      "Degraded Ended end Recovered",
      "Rollout Finished end AllUpdated",
    ]);
    // Once all have the target, a machine that fails is a matter of its own.
    await harness.act(() =>
      harness.annotate("w0", { [annotations.state]: "Degraded", [annotations.reason]: "a disk is full" }),
    );
    await harness.pass(2000);
    expect(told("pool/worker").slice(5)).toEqual(["Degraded Degraded begin MachinesDegraded"]);
  });
});

/** An uncordon that a daemon asked for: nothing is claimed that did not happen. */
test.for([
  { is: "ours", cordon: { remedy: true, wasCordoned: true }, line: ["end", "Uncordoned", undefined] },
  { is: "another's", cordon: { remedy: false, wasCordoned: true }, line: ["end", "CordonStays", undefined] },
  { is: "none", cordon: { remedy: false, wasCordoned: false }, line: ["skip", "NotRequired", "NotRequired"] },
] as const)(
  "of a node whose cordon is $is, the section of its return ends so: $line [controller-stories-7]",
  (each) => {
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: "w0" } } as Node;
    const happening = nodeUncordoned(node, { request: "uncordon-rendered-worker-1", ...each.cordon });
    const lines = reportsOf(happening.lines).map((line) =>
      "notice" in line ? [] : [line.mark, line.reason, "outcome" in line ? line.outcome : undefined],
    );
    expect(lines).toEqual([each.line]);
  },
);
