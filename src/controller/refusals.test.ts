import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, fieldManagers } from "../api/names.ts";

const change = (harness: Harness) => harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
const refuse = (
  harness: Harness,
  name: string,
  config: string,
  { reason = "it did not boot", at = "2030-01-01T00:00:00Z" } = {},
) =>
  harness.act(() =>
    harness.kube.patch(
      MachineConfigNode,
      { name },
      {
        type: "merge",
        body: {
          metadata: {
            annotations: {
              [annotations.refusedTargets]: JSON.stringify([{ config, image: "", reason, at }]),
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

describe("a machine that reports a refused target", () => {
  test("holds back only itself: the others get the target, and pool, book and Event name it [refusals-1]", async () => {
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

  test("again and again fills neither the book of its pool nor its Events [refusals-5]", async () => {
    const { harness } = await updatedPool(["w0", "w1", "w2"]);
    await change(harness);
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    for (let minute = 10; minute < 40; minute += 1) {
      await refuse(harness, "w2", target, { at: `2030-01-01T00:${minute}:00Z` });
      await harness.pass(500);
    }
    const lines = harness.journal.lines.filter(({ reason }) => reason === "MachineExcluded");
    expect(lines.length).toBe(3);
    expect(await harness.desired("worker")).not.toMatchObject({ w2: target });
  });

  test("or fails and has it again and again, fills the book of its pool as little [refusals-6]", async () => {
    const { harness } = await updatedPool(["w0", "w1", "w2"]);
    await change(harness);
    await harness.pass(2000);
    for (let turn = 0; turn < 40; turn += 1) {
      const state = turn % 2 === 0 ? "Degraded" : "Done";
      await harness.act(() => harness.annotate("w2", { [annotations.state]: state }));
      await harness.pass(500);
    }
    const lines = harness.journal.lines.filter(({ path }) => path === "Node/w2");
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThanOrEqual(5);
  });

  test("and says of itself more than a status can hold, has its pool report it in short [refusals-7]", async () => {
    const { harness } = await updatedPool(["w0", "w1", "w2"]);
    await harness.act(() =>
      harness.annotate("w2", { [annotations.state]: "Degraded", [annotations.reason]: "\u0001".repeat(250_000) }),
    );
    await harness.pass(2000);
    const { pool, of } = await harness.poolStatus("worker");
    expect(pool?.status?.degradedMachineCount).toBe(1);
    expect(of("NodeDegraded")).toMatchObject({ status: "True" });
    expect(JSON.stringify(pool?.status).length).toBeLessThan(200_000);
  });

  test("and leaves no room for a target in its annotations, does not keep the others from theirs [refusals-8]", async () => {
    const { harness } = await updatedPool(["w0", "w1", "w2"]);
    const { metadata } = await harness.node_("w0");
    const used = Object.entries(metadata.annotations ?? {}).reduce((sum, [a, b]) => sum + a.length + b.length, 0);
    const fill = "x".repeat(256 * 1024 - used);
    await harness.act(() => harness.annotate("w0", { [annotations.desiredConfig]: null, fill }));
    await harness.act(() =>
      harness.kube.patch(
        MachineConfigPool,
        { name: "worker" },
        { type: "merge", body: { spec: { maxUnavailable: 2 } } },
      ),
    );
    await change(harness);
    await harness.pass(5000);
    const { target } = await harness.poolStatus("worker");
    await finishEach(harness, ["w1"]);
    await harness.pass(120_000);
    expect(await harness.desired("worker")).toEqual({ w0: "", w1: target, w2: target });
    const { pool, of } = await harness.poolStatus("worker");
    expect(of("Updating")).toMatchObject({ status: "True" });
    expect(pool?.status?.updatedMachineCount).toBe(1);
    expect(await harness.events("MachineNotWritten")).toEqual([expect.stringContaining("written of w0")]);
  });

  test("and names a target that cannot exist, does not have the controller report a failure [refusals-9]", async () => {
    const { harness } = await updatedPool(["w0", "w1", "w2"]);
    const patch = (body: object) =>
      harness.act(() => harness.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body }));
    await patch({ spec: { paused: true } });
    await change(harness);
    await harness.pass(2000);
    await harness.act(() => harness.annotate("w0", { [annotations.desiredConfig]: "No Such Thing" }));
    await harness.pass(300_000);
    expect(harness.journal.lines.filter(({ reason }) => reason === "ChildFailing")).toEqual([]);
    expect(await harness.events("MachineNotWritten")).toEqual([expect.stringContaining("written of w0")]);
  });

  test("and is Degraded uses one place of the budget [refusals-2]", async () => {
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

  test("is no canary: another machine is [refusals-3]", async () => {
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

  test("and a second one quarantine the target until the annotation is removed [refusals-4]", async () => {
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

/** How an API server answers what it does not write of a machine; the second is etcd's, as kube-apiserver hands it on. */
const answers = [
  { title: "finds invalid", status: 422, message: "metadata.annotations: Too long: may not be more than 262144 bytes" },
  { title: "finds too large for etcd", status: 500, message: "etcdserver: request is too large" },
  { title: "fails at", status: 500, message: "Internal error occurred" },
  { title: "overtakes again and again", status: 409, message: "the object has been modified", reason: "Conflict" },
];

describe.for([
  { plural: "nodes", excluded: false },
  { plural: "machineconfignodes", excluded: false },
  { plural: "machineconfignodes", excluded: true },
])("writes of one machine's objects ($plural, excluded: $excluded)", ({ plural, excluded }) => {
  test.for(answers)(
    "that the API server $title keep no other machine from its target [refusals-10]",
    async (answer) => {
      const { harness, first } = await updatedPool(["w0", "w1", "w2"]);
      const patch = (name: string, body: object) =>
        harness.act(() => harness.kube.patch(MachineConfigPool, { name }, { type: "merge", body }));
      await patch("worker", { spec: { maxUnavailable: 2, paused: true } });
      await change(harness);
      await harness.pass(3000);
      const { target } = await harness.poolStatus("worker");
      if (excluded) await refuse(harness, "w0", target);
      let refused = 0;
      harness.intercept = (handler) => async (request, signal) => {
        if (request.method !== "PATCH" || !request.target.includes(`/${plural}/w0`)) return handler(request, signal);
        refused += 1;
        const { status, message, reason } = answer;
        const body = {
          kind: "Status",
          apiVersion: "v1",
          metadata: {},
          status: "Failure",
          message,
          reason,
          code: status,
        };
        return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
      };
      await patch("worker", { spec: { paused: false } });
      await harness.pass(60_000);
      await finishEach(harness, ["w1", "w2"]);
      await harness.pass(120_000);
      expect(refused).toBeGreaterThan(0);
      expect(await harness.desired("worker")).toEqual({ w0: first, w1: target, w2: target });
      const { pool } = await harness.poolStatus("worker");
      expect(pool?.status?.updatedMachineCount).toBe(2);
      // Nor does a pool of other machines wait for it.
      await harness.act(() => harness.config("50-master", "master", { "/etc/a": "1" }));
      await harness.pass(5000);
      const { target: has } = await harness.poolStatus("master");
      const done = { [annotations.currentConfig]: has, [annotations.desiredConfig]: has, [annotations.state]: "Done" };
      await harness.act(() => harness.node("m0", "master", done));
      await harness.pass(3000);
      await harness.act(() => harness.config("60-master", "master", { "/etc/b": "1" }));
      await harness.pass(60_000);
      const { target: next } = await harness.poolStatus("master");
      expect(next).not.toBe(has);
      expect(await harness.desired("master")).toEqual({ m0: next });
      expect(harness.journal.lines.filter(({ reason }) => reason === "ChildFailing")).toEqual([]);
      // A Node that somebody else writes all the time is compared again, as after any other change of it.
      if (plural !== "nodes" || answer.status !== 409)
        expect(await harness.events("MachineNotWritten")).toContainEqual(expect.stringContaining("written of w0"));
    },
  );
});

test("a machine whose Node takes every write and whose MachineConfigNode takes none ends no pass of its pool with a failure [refusals-12]", async () => {
  const { harness, first } = await updatedPool(["w0", "w1", "w2"]);
  const patch = (body: object) =>
    harness.act(() => harness.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body }));
  await patch({ spec: { maxUnavailable: 2 } });
  harness.intercept = (handler) => async (request, signal) => {
    if (request.method !== "PATCH" || !request.target.includes("/machineconfignodes/w0"))
      return handler(request, signal);
    const body = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "no", code: 403 };
    return { status: 403, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  };
  await change(harness);
  for (let turn = 0; turn < 8; turn += 1) {
    await harness.act(() => harness.annotate("w0", { [annotations.controlPlaneTopology]: null }));
    await harness.pass(30_000);
  }
  await finishEach(harness, ["w1", "w2"]);
  const { target } = await harness.poolStatus("worker");
  expect(await harness.desired("worker")).toEqual({ w0: first, w1: target, w2: target });
  expect((await harness.node_("w0")).metadata.annotations).toHaveProperty([annotations.controlPlaneTopology]);
  expect(harness.journal.lines.filter(({ reason }) => reason === "ChildFailing")).toEqual([]);
  expect(await harness.events("MachineNotWritten")).toContainEqual(expect.stringContaining("written of w0"));
});

test("a machine that lets a write of its MachineConfigNode succeed now and then does not fail the passes of its pool [refusals-13]", async () => {
  const { harness, first } = await updatedPool(["w0", "w1", "w2"]);
  let asked = 0;
  harness.intercept = (handler) => async (request, signal) => {
    const isController = request.target.includes(`fieldManager=${fieldManagers.node}`);
    if (request.method !== "PATCH" || !isController || !request.target.includes("/machineconfignodes/w0"))
      return handler(request, signal);
    asked += 1;
    if (asked % 3 === 0) return handler(request, signal);
    const body = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "no", code: 403 };
    return { status: 403, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  };
  const undo = (name: string) =>
    harness.act(() =>
      harness.kube.patch(
        MachineConfigNode,
        { name },
        { type: "merge", body: { spec: { configVersion: { desired: "another" } } } },
      ),
    );
  for (let turn = 0; turn < 3; turn += 1) {
    await undo("w0");
    await undo("w1");
    await harness.pass(30_000);
  }
  expect(asked).toBeGreaterThan(3);
  expect(await harness.events("MachineNotWritten")).toContainEqual(expect.stringContaining("written of w0"));
  expect(await harness.desired("worker")).toEqual({ w0: first, w1: first, w2: first });
});

test("a machine that puts back each target that it is given fills its own book no more than machines that update [refusals-11]", async () => {
  const { harness, first } = await updatedPool(["w0", "w1"]);
  await change(harness);
  await harness.pass(2000);
  for (let turn = 0; turn < 150; turn += 1) {
    await harness.act(() => harness.annotate("w0", { [annotations.desiredConfig]: first }));
    await harness.pass(400);
  }
  const { target } = await harness.poolStatus("worker");
  expect((await harness.desired("worker"))["w0"]).toBe(target);
  const lines = harness.journal.lines.filter(({ book }) => book === "node/w0");
  expect(lines.length).toBeGreaterThan(5);
  expect(lines.length).toBeLessThanOrEqual(65);
});
