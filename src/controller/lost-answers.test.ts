import { expect, test } from "vitest";
import { updatedPool } from "../../test/support/control-plane-harness.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";

/**
 * The first change of a pool's status waits in the API server, as with a slow admission webhook, for longer than the controller
 * waits for its answer; it is carried out once `arrive` was called.
 */
test("a change of a pool's status that arrives after it was given up, and was taken back, is corrected [lost-answers-1]", async () => {
  const { harness } = await updatedPool(["w0"]);
  const { intercept } = harness;
  let arrive: (() => Promise<unknown>) | undefined;
  let isLost = false;
  harness.intercept = (handler) => (request, signal) => {
    const isStatus = request.method === "PATCH" && request.target.includes("/machineconfigpools/worker/status");
    if (!isStatus || isLost) return intercept(handler)(request, signal);
    isLost = true;
    arrive = () => Promise.resolve(intercept(handler)(request, new AbortController().signal));
    return Promise.reject(new Error("connection reset"));
  };
  const cordon = (unschedulable: true | null) =>
    harness.act(() =>
      harness.kube.patch(kubernetes.Node, { name: "w0" }, { type: "merge", body: { spec: { unschedulable } } }),
    );
  const count = async () =>
    (await harness.act(() => harness.kube.get(MachineConfigPool, { name: "worker" })))?.status?.unavailableMachineCount;
  await cordon(true);
  await harness.kernel.run({ until: () => isLost, maxMs: 60_000 });
  await cordon(null);
  await harness.pass(60_000);
  expect(await count()).toBe(0);
  expect(await harness.act(() => arrive?.() ?? Promise.reject(new Error("nothing was lost")))).toMatchObject({
    status: 200,
  });
  expect(await count()).toBe(1);
  await harness.pass(60_000);
  expect(await count()).toBe(0);
});
