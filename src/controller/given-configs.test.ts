import { expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, labels } from "../api/names.ts";
import { givenConfigs } from "../core/config/given-configs.ts";
import { describeNode } from "./mark-members.ts";

const machineOf = async (harness: Harness, name: string) => {
  const found = await harness.act(() => harness.kube.get(MachineConfigNode, { name }));
  if (found === undefined) throw new Error(`no MachineConfigNode ${name}`);
  return found;
};

test("the controller records a machine's configurations before and after it changes pools [controller-given-configs-1]", async () => {
  const { harness, first } = await updatedPool(["w0"]);
  await harness.act(() =>
    harness.pool("infra", {
      machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: "In", values: ["worker", "infra"] }] },
    }),
  );
  await harness.act(() => harness.config("60-infra", "infra", { "/etc/infra": "1" }));
  await harness.pass(3000);
  const infra = (await harness.poolStatus("infra")).target;
  const label = (value: string | null) =>
    harness.act(() =>
      harness.kube.patch(
        kubernetes.Node,
        { name: "w0" },
        { type: "merge", body: { metadata: { labels: { "node-role.kubernetes.io/infra": value } } } },
      ),
    );
  await label("");
  await harness.pass(3000);
  const moved = await machineOf(harness, "w0");
  expect(moved.spec).toMatchObject({ pool: { name: "infra" }, configVersion: { desired: infra } });
  expect(givenConfigs(moved)).toEqual([infra, first]);

  await harness.act(() => harness.finish("w0"));
  await harness.pass(3000);
  await label(null);
  await harness.pass(3000);
  const back = await machineOf(harness, "w0");
  expect(back.spec).toMatchObject({ pool: { name: "worker" }, configVersion: { desired: first } });
  expect(givenConfigs(back)).toEqual([first, infra]);
});

test("a configuration that a machine writes into its own Node is shown, and not recorded [controller-given-configs-2]", async () => {
  const { harness, first } = await updatedPool(["w0"]);
  const master = (await harness.poolStatus("master")).target;
  await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
  await harness.pass(3000);
  const { target } = await harness.poolStatus("worker");
  await harness.act(() =>
    harness.annotate("w0", { [annotations.currentConfig]: master, [annotations.desiredConfig]: master }),
  );
  await harness.pass(3000);
  const forged = await machineOf(harness, "w0");
  expect(givenConfigs(forged)).not.toContain(master);
  expect(givenConfigs(forged)).toEqual([target, first]);
});

test("what a machine was given last stays in its record, though the controller's cache is behind [controller-given-configs-3]", async () => {
  const { harness, first } = await updatedPool(["w0"]);
  const behind = structuredClone(await machineOf(harness, "w0"));
  const last = "rendered-worker-last";
  await harness.act(() =>
    harness.kube.patch(
      MachineConfigNode,
      { name: "w0" },
      {
        type: "merge",
        body: {
          metadata: { annotations: { [annotations.givenConfigs]: `${last} ${first}` } },
          spec: { configVersion: { desired: last } },
        },
      },
    ),
  );
  const notes = { [annotations.currentConfig]: first, [annotations.desiredConfig]: last };
  const isWritten = await describe(harness, { cached: behind, target: "rendered-worker-next", notes });
  expect(givenConfigs(await machineOf(harness, "w0"))).toEqual([last, first]);
  // An answer of the API server that took no write says nothing of whether it takes writes.
  expect(isWritten).toBe(false);
});

test("what a machine is about to get is recorded, though its pool has moved on meanwhile [controller-given-configs-4]", async () => {
  const { harness, first } = await updatedPool(["w0"]);
  const given = "rendered-worker-given";
  await describe(harness, {
    cached: await machineOf(harness, "w0"),
    target: "rendered-worker-next",
    notes: { [annotations.currentConfig]: first, [annotations.desiredConfig]: first },
    given,
  });
  const machine = await machineOf(harness, "w0");
  expect([givenConfigs(machine), machine.spec.configVersion.desired]).toEqual([[given, first], given]);
});

/** Describes w0 in the pool worker, as a controller with these facts does. */
async function describe(
  harness: Harness,
  {
    cached,
    target,
    notes,
    given,
  }: {
    readonly cached: MachineConfigNode;
    readonly target: string;
    readonly notes: Readonly<Record<string, string>>;
    readonly given?: string;
  },
): Promise<boolean> {
  const pool = await harness.act(() => harness.kube.get(MachineConfigPool, { name: "worker" }));
  const node = { metadata: { name: "w0", annotations: notes } };
  const context = {
    caches: { of: () => ({ get: () => cached }) },
    kube: harness.kube,
    signal: new AbortController().signal,
  };
  return harness.act(() =>
    describeNode(
      { pool, members: { target } } as never,
      "w0",
      { node: () => ({ node }) } as never,
      context as never,
      given,
    ),
  );
}
