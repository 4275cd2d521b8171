import { describe, expect, test } from "vitest";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations, objects } from "../api/names.ts";
import { type UserPolicies, mergePolicies } from "../core/config/disruption-policy.ts";
import { type Content, MachineHarness } from "../../test/support/machine-harness.ts";
import type { Ledger } from "../core/machine/observed-node.ts";

const path = "/etc/app/x.conf";
const asks = (serviceName: string): UserPolicies => ({
  files: [{ path, actions: [{ type: "Restart", restart: { serviceName } }] }],
});
const changed: Content = { files: { [path]: "1" } };

/** The operator has merged other policies. */
async function policies(harness: MachineHarness, user: UserPolicies | undefined): Promise<void> {
  await harness.act(async () => {
    const { kube } = harness;
    const at = { name: objects.machineConfiguration };
    const spec = { nodeDisruptionPolicy: user ?? null };
    const { metadata } = await kube.patch(MachineConfiguration, at, { type: "merge", body: { spec } });
    const status = {
      observedGeneration: metadata.generation,
      nodeDisruptionPolicyStatus: { clusterPolicies: mergePolicies(user) },
    };
    await kube.patch(MachineConfiguration, at, { type: "merge", body: { status } }, { subresource: "status" });
  });
}

/** A machine that could not restart the unit of its policy. */
async function failed(unit: string): Promise<MachineHarness> {
  const harness = await MachineHarness.make({ policies: asks(unit) });
  await harness.updatedTo("rendered-1", {});
  await harness.config("rendered-2", changed);
  await harness.desire("rendered-2");
  await harness.untilState("Degraded");
  return harness;
}

const dropped = (harness: MachineHarness) =>
  harness.history.filter(({ reason }) => reason === "DebtDropped").map(({ message }) => message);

describe("a restart of a unit that does not exist", () => {
  test("fails and names the policy; the file is written [daemon-debts-1]", async () => {
    const harness = await failed("app-typo.service");
    const reason = await harness.annotation(annotations.reason);
    expect(reason).toContain("systemctl restart app-typo.service");
    expect(reason).toContain("nodeDisruptionPolicy of MachineConfiguration/cluster: the policy for /etc/app/x.conf");
    expect(await harness.condition("NodeDegraded")).toBe("True ServiceFailed");
    expect(await harness.file(path)).toBe("1");
    // A further attempt says the same: it is no news.
    await harness.pass(600_000);
    expect(await harness.annotation(annotations.reason)).toBe(reason);
  });

  test("is not owed any more once the policy names another unit, which is restarted instead [daemon-debts-2]", async () => {
    const harness = await failed("app-typo.service");
    const { restarts } = harness.host.counts("crio.service");
    await policies(harness, asks("crio.service"));
    await harness.untilDone("rendered-2");
    expect(harness.host.counts("crio.service").restarts).toBe(restarts + 1);
    expect(harness.reboots).toEqual([]);
    expect(await harness.ledgerDocument("ledger.json")).toBeUndefined();
    expect(dropped(harness)).toEqual([
      "restart app-typo.service is not owed any more: no disruption policy asks for it any more",
    ]);
  });

  test("is not owed any more without the policy: the file then needs a reboot [daemon-debts-3]", async () => {
    const harness = await failed("app-typo.service");
    await policies(harness, undefined);
    await harness.untilDone("rendered-2");
    expect(harness.reboots).toHaveLength(1);
    expect(dropped(harness)).toHaveLength(1);
  });

  test("is not owed any more once the MachineConfig is taken back [daemon-debts-4]", async () => {
    const harness = await failed("app-typo.service");
    await harness.desire("rendered-1");
    await harness.untilDone("rendered-1");
    expect(await harness.file(path)).toBeUndefined();
    expect(harness.reboots).toEqual([]);
    expect(await harness.ledgerDocument("ledger.json")).toBeUndefined();
    expect(dropped(harness)).toEqual([
      "restart app-typo.service is not owed any more: the machine has no such unit that could have read what is taken back",
    ]);
    expect(await harness.condition("NodeDegraded")).toBe("False AsExpected");
  });

  test("is not owed any more where the ledger does not say why it is [daemon-debts-5]", async () => {
    const harness = await failed("app-typo.service");
    harness.kill();
    const ledger = await harness.ledgerDocument<Ledger>("ledger.json");
    const { debts: _debts, ...old } = ledger ?? {};
    await harness.act(() =>
      harness.host.ledger.write("ledger.json", JSON.stringify(old), new AbortController().signal),
    );
    const { restarts } = harness.host.counts("crio.service");
    await policies(harness, asks("crio.service"));
    harness.start();
    await harness.untilDone("rendered-2");
    expect(harness.host.counts("crio.service").restarts).toBe(restarts + 1);
  });
});

test("a service that an unfinished update stopped is restarted with what was there before [daemon-debts-6]", async () => {
  const harness = await MachineHarness.make({ policies: asks("crio.service") });
  await harness.updatedTo("rendered-1", {});
  await harness.host.breakUnits?.(["crio.service"]);
  await harness.config("rendered-2", changed);
  await harness.desire("rendered-2");
  await harness.untilState("Degraded");
  await harness.host.breakUnits?.([]);
  const { restarts } = harness.host.counts("crio.service");
  await harness.desire("rendered-1");
  await harness.untilDone("rendered-1");
  expect(harness.host.counts("crio.service").restarts).toBe(restarts + 1);
  expect(dropped(harness)).toEqual([]);
});

test("another system that is not wanted any more leaves no reboot behind [daemon-debts-7]", async () => {
  const harness = await MachineHarness.make();
  await harness.updatedTo("rendered-1", {});
  harness.goesDown = false;
  await harness.config("rendered-2", { spec: { osImageURL: "os@sha256:2", kernelArguments: ["nosmt"] } });
  await harness.desire("rendered-2");
  await harness.until(async () => harness.reboots.length === 1, "the reboot is asked for");
  harness.kill();
  harness.start();
  await harness.desire("rendered-1");
  await harness.untilDone("rendered-1");
  expect(harness.reboots).toHaveLength(1);
  expect(dropped(harness)).toEqual(["reboot is not owed any more: nothing that differs asks for it any more"]);
});
