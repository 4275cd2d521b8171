import { describe, expect, test } from "vitest";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { annotations, hostPaths } from "../api/names.ts";
import { MachineHarness, machineConfigOf } from "../../test/support/machine-harness.ts";
import type { Previous } from "../core/machine/machine-record.ts";

const { signal } = new AbortController();
const one = { files: { "/etc/app.conf": "one", "/etc/new.conf": "one" } };
const two = { files: { "/etc/app.conf": "two" } };

/** A machine that has refused rendered-2. */
async function refusing(): Promise<MachineHarness> {
  const harness = await MachineHarness.make();
  await harness.updatedTo("rendered-1", one);
  await harness.host.ledger.write(
    "refused.json",
    JSON.stringify({
      v: 1,
      targets: [{ config: "rendered-2", image: "", reason: "it did not boot", at: "2026-01-01T00:00:00Z" }],
    }),
    signal,
  );
  await harness.config("rendered-2", two);
  return harness;
}

/** Starts the daemon on a machine as Ignition leaves it: the files of rendered-1 written, the rest told. */
async function joinsWithOne(harness: MachineHarness): Promise<void> {
  for (const [path, text] of Object.entries(one.files)) await harness.put(path, text);
  await harness.put(
    hostPaths.nodeAnnotations,
    JSON.stringify({ [annotations.currentConfig]: "rendered-1", [annotations.desiredConfig]: "rendered-1" }),
  );
  harness.start();
  await harness.untilDone("rendered-1");
}

describe("a machine that joins", () => {
  test("with annotations from the config server adopts them, and removes their file when it is done [daemon-start-up-1]", async () => {
    const harness = await MachineHarness.make();
    await harness.config("rendered-1", one);
    // As Ignition leaves a machine: files written, the rest told.
    for (const [path, text] of Object.entries(one.files)) await harness.put(path, text);
    await harness.put(
      hostPaths.nodeAnnotations,
      JSON.stringify({
        [annotations.currentConfig]: "rendered-1",
        [annotations.desiredConfig]: "rendered-1",
        [annotations.state]: "Done",
        other: "x",
      }),
    );
    await harness.put(hostPaths.encapsulated, "{}");
    await harness.put(hostPaths.ignitionPreset, "enable x.service\n");
    harness.start();
    await harness.untilDone("rendered-1");
    expect(harness.reboots).toEqual([]);
    expect(await harness.annotation("other")).toBeUndefined();
    expect(await harness.file(hostPaths.nodeAnnotations)).toBeUndefined();
    expect(await harness.file(hostPaths.nodeAnnotationsDone)).toContain("rendered-1");
    expect(await harness.file(hostPaths.encapsulated)).toBeUndefined();
    expect(await harness.file(hostPaths.encapsulatedDone)).toBe("{}");
    expect(await harness.file(hostPaths.ignitionPreset)).toBeUndefined();
    // What Ignition wrote is not taken for what was there before.
    await harness.config("rendered-0", {});
    await harness.desire("rendered-0");
    await harness.untilDone("rendered-0");
    expect(await harness.file("/etc/app.conf")).toBe("vendor");
    expect(await harness.file("/etc/new.conf")).toBeUndefined();
  });

  test("is told at once that it goes back to the configuration that it joined with [daemon-start-up-21]", async () => {
    const harness = await MachineHarness.make();
    await harness.config("rendered-1", one);
    await joinsWithOne(harness);
    await harness.config("rendered-2", { ...one, keys: ["ssh-ed25519 A"] });
    await harness.desire("rendered-2");
    await harness.untilDone("rendered-2");
    const asked = harness.kernel.clock.now();
    await harness.desire("rendered-1");
    await harness.untilDone("rendered-1");
    expect(harness.kernel.clock.now() - asked).toBeLessThan(60_000);
    expect(harness.reboots).toEqual([]);
  });

  test("whose first boot did not apply the system gets it undrained, and is drained from then on [daemon-start-up-7]", async () => {
    const harness = await MachineHarness.make();
    await harness.config("rendered-1", { ...one, spec: { osImageURL: "os@sha256:2", kernelArguments: ["nosmt"] } });
    await joinsWithOne(harness);
    expect(harness.reboots).toHaveLength(1);
    expect((await harness.host.os.status(signal)).booted).toMatchObject({
      image: "os@sha256:2",
      kernelArguments: ["root=x", "nosmt"],
    });
    expect(await harness.events()).not.toContain("Drain");
    await harness.config("rendered-2", { ...two, spec: { osImageURL: "os@sha256:2", kernelArguments: ["nosmt"] } });
    await harness.desire("rendered-2");
    await harness.untilDone("rendered-2");
    expect(await harness.events()).toContain("Drain");
  });

  test("with a bootstrap configuration unknown to the cluster moves to the one it should have [daemon-start-up-5]", async () => {
    const harness = await MachineHarness.make();
    for (const [path, text] of Object.entries(one.files)) await harness.put(path, text);
    await harness.put(
      hostPaths.nodeAnnotations,
      JSON.stringify({
        [annotations.currentConfig]: "rendered-bootstrap",
        [annotations.desiredConfig]: "rendered-bootstrap",
      }),
    );
    await harness.put(hostPaths.servedConfig, JSON.stringify(machineConfigOf("rendered-bootstrap", one)));
    await harness.config("rendered-2", two);
    await harness.desire("rendered-2");
    harness.start();
    await harness.untilDone("rendered-2");
    expect(await harness.file("/etc/app.conf")).toBe("two");
    expect(await harness.file("/etc/new.conf")).toBeUndefined();
  });

  test("without a history gets its first configuration from the daemon, folders, links and appended files too [daemon-start-up-15]", async () => {
    const harness = await MachineHarness.make();
    const ignition = {
      storage: {
        files: [{ path: "/etc/app.conf", append: [{ source: "data:,%0Amore" }] }],
        directories: [{ path: "/var/lib/app", mode: 0o700 }],
        links: [{ path: "/etc/link", target: "/etc/app.conf" }],
      },
    };
    await harness.updatedTo("rendered-1", { ignition });
    expect(await harness.file("/etc/app.conf")).toBe("vendor\nmore");
    expect(await harness.file("/etc/link")).toBe("→ /etc/app.conf");
    expect(await harness.host.files.read("/var/lib/app", signal)).toMatchObject({ kind: "folder", mode: 0o700 });
    // Later they are nobody's: another look, or another boot, changes nothing.
    await harness.put("/etc/app.conf", "somebody's");
    await harness.boot({ orderly: true });
    await harness.untilDone("rendered-1");
    expect(await harness.file("/etc/app.conf")).toBe("somebody's");
    expect(harness.reboots).toEqual([]);
  });
});

describe("a machine of another daemon", () => {
  test("is adopted from its disk, with the originals that the other daemon kept [daemon-start-up-13]", async () => {
    const harness = await MachineHarness.make();
    await harness.put("/etc/app.conf", "one");
    await harness.put("/etc/new.conf", "one");
    await harness.put(`${hostPaths.referenceOriginals}/etc/app.conf.mcdorig`, "the vendor's of another day");
    await harness.put(`${hostPaths.referenceNoOriginals}/etc/new.conf.mcdnoorig`, "");
    await harness.put(hostPaths.currentConfig, JSON.stringify(machineConfigOf("rendered-1", one)));
    await harness.put(hostPaths.kubeconfig, "token: secret");
    await harness.config("rendered-0", {});
    await harness.annotate({
      [annotations.currentConfig]: "rendered-from-a-backup",
      [annotations.desiredConfig]: "rendered-0",
      [annotations.state]: "Done",
    });
    harness.start();
    await harness.untilDone("rendered-0");
    expect(await harness.file("/etc/app.conf")).toBe("the vendor's of another day");
    expect(await harness.file("/etc/new.conf")).toBeUndefined();
    // Whole configurations and credentials are nobody else's to read.
    for (const path of [hostPaths.currentConfig, hostPaths.kubeconfig])
      expect(await harness.host.files.read(path, signal)).toMatchObject({ mode: 0o600 });
  });

  test("is adopted by its annotation if its disk has no record [daemon-start-up-6]", async () => {
    const harness = await MachineHarness.make();
    for (const [path, text] of Object.entries(one.files)) await harness.put(path, text);
    await harness.config("rendered-1", one);
    await harness.annotate({
      [annotations.currentConfig]: "rendered-1",
      [annotations.desiredConfig]: "rendered-1",
      [annotations.state]: "Done",
    });
    harness.start();
    await harness.untilDone("rendered-1");
    expect(harness.effects.filter((effect) => effect !== "ledger.write")).toEqual([]);
    expect(await harness.ledgerDocument<Previous>("previous.json")).toMatchObject({
      proven: true,
      config: { metadata: { name: "rendered-1" } },
    });
  });

  test("and whose configuration is unavailable reports it, and changes nothing until an administrator decides [daemon-start-up-3]", async () => {
    const harness = await MachineHarness.make();
    await harness.config("rendered-2", two);
    await harness.annotate({ [annotations.currentConfig]: "rendered-lost", [annotations.desiredConfig]: "rendered-2" });
    harness.start();
    expect(await harness.untilState("Degraded")).toContain(
      "rendered-lost, which neither its disk nor the cluster holds",
    );
    expect(harness.effects).toEqual([]);
    await harness.put(hostPaths.force, "");
    await harness.untilDone("rendered-2");
    expect(await harness.file("/etc/app.conf")).toBe("two");
    expect(await harness.file(hostPaths.force)).toBeUndefined();
  });
});

describe("a machine with a history", () => {
  test("trusts its disk, not annotations restored from an old backup [daemon-start-up-8]", async () => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", one);
    await harness.config("rendered-2", two);
    await harness.desire("rendered-2");
    await harness.untilDone("rendered-2");
    harness.kill();
    await harness.annotate({ [annotations.currentConfig]: "rendered-1", [annotations.desiredConfig]: "rendered-1" });
    harness.start();
    await harness.untilDone("rendered-1");
    // It went from what it had, so that what only that had is gone, and what only the other has is back.
    expect(await harness.file("/etc/new.conf")).toBe("one");
    expect(await harness.file("/etc/app.conf")).toBe("one");
  });

  test("gets its annotations back when they are lost [daemon-start-up-2]", async () => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", one);
    harness.kill();
    await harness.annotate({ [annotations.currentConfig]: null, [annotations.state]: null });
    harness.start();
    await harness.untilDone("rendered-1");
    expect(harness.reboots).toEqual([]);
  });

  test("that drifted while it was down reports it, and keeps the edits [daemon-start-up-9]", async () => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", one);
    harness.kill();
    await harness.put("/etc/app.conf", "somebody's");
    await harness.boot({ orderly: true });
    expect(await harness.untilState("Degraded")).toContain("config drift: /etc/app.conf");
    expect(await harness.events()).toContain("OnDiskStateValidationFailed");
    expect(await harness.file("/etc/app.conf")).toBe("somebody's");
    expect(harness.facts).toMatchObject({ state: "Degraded", reason: "ConfigDrift" });
    // A new target does not wait for a person.
    await harness.config("rendered-2", two);
    await harness.desire("rendered-2");
    await harness.untilDone("rendered-2");
    expect(harness.facts.driftSince).toBeUndefined();
  });

  test("that got another target during its reboot applies it at once, still out of service [daemon-start-up-12]", async () => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", one);
    await harness.config("rendered-2", two);
    await harness.config("rendered-3", { files: { "/etc/app.conf": "three" } });
    await harness.desire("rendered-2");
    await harness.until(async () => harness.reboots.length === 1, "it reboots");
    await harness.desire("rendered-3");
    await harness.untilDone("rendered-3");
    expect(await harness.file("/etc/app.conf")).toBe("three");
    // It joined undrained: this was its one time out of service.
    expect((await harness.events()).filter((reason) => reason === "Uncordon")).toHaveLength(1);
  });
});

describe("a boot of another system than requested", () => {
  test("because the staged system was not finalised: it is staged again, and the failure is reported [daemon-start-up-4]", async () => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", one);
    await harness.config("rendered-2", { ...two, spec: { osImageURL: "os@sha256:2" } });
    await harness.host.failToFinalise?.("error: no space left on /boot");
    await harness.desire("rendered-2");
    await harness.untilDone("rendered-2");
    expect(harness.reboots).toHaveLength(2);
    expect((await harness.host.os.status(signal)).booted.image).toBe("os@sha256:2");
    const events = await harness.events();
    expect(events).toContain("FailedFinalization");
    expect(events).toContain("OSUpgradeApplied");
    expect(await harness.annotation(annotations.finaliseFailure)).toBeUndefined();
  });

  test("repeatedly: after three reboots the machine rolls back config and system together, and reports why [daemon-start-up-11]", async () => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", one);
    await harness.config("rendered-2", { ...two, spec: { osImageURL: "os@sha256:2" } });
    const stage = harness.host.os.stage.bind(harness.host.os);
    harness.tamper = (host) => ({
      ...host,
      os: {
        ...host.os,
        stage: async (...args) => {
          await harness.host.failToFinalise?.("error: the disk is broken");
          await stage(...args);
        },
      },
    });
    harness.kill();
    harness.start();
    await harness.desire("rendered-2");
    const reason = await harness.untilState("Degraded");
    expect(reason).toContain(
      "rendered-2 is refused: after 3 reboots for rendered-2 the machine still boots os@sha256:1 in place of os@sha256:2: error: the disk is broken; the machine stays on rendered-1",
    );
    expect(await harness.condition("NodeDegraded")).toBe("True TargetRefused");
    await harness.until(
      async () => (await harness.annotation(annotations.desiredDrain)) === "uncordon-rendered-1",
      "back in service",
    );
    expect(await harness.file("/etc/app.conf")).toBe("one");
    expect(await harness.file("/etc/new.conf")).toBe("one");
    expect(await harness.annotation(annotations.currentConfig)).toBe("rendered-1");
    // Three for the target, one to leave it: services had read its files.
    expect(harness.reboots).toHaveLength(4);
    const object = await harness.act(() => harness.kube.get(MachineConfigNode, { name: harness.name }));
    expect(JSON.parse(object?.metadata.annotations?.[annotations.refusedTargets] ?? "[]")).toMatchObject([
      { config: "rendered-2", image: "os@sha256:2" },
    ]);
    // Nothing more happens by itself, whoever restarts.
    harness.kill();
    harness.start();
    await harness.pass(3_600_000);
    expect(harness.reboots).toHaveLength(4);

    // Somebody takes the refusal away: it is tried again, and this time it boots.
    harness.tamper = (host) => host;
    harness.kill();
    await harness.act(() =>
      harness.kube.patch(
        MachineConfigNode,
        { name: harness.name },
        { type: "merge", body: { metadata: { annotations: { [annotations.refusedTargets]: null } } } },
      ),
    );
    harness.start();
    await harness.untilDone("rendered-2");
    expect(await harness.ledgerDocument("refused.json")).toBeUndefined();
  });

  test("another target ends a refusal automatically [daemon-start-up-16]", async () => {
    const harness = await refusing();
    await harness.config("rendered-3", { files: { "/etc/app.conf": "three" } });
    harness.kill();
    await harness.desire("rendered-2");
    harness.start();
    expect(await harness.untilState("Degraded")).toContain("rendered-2 is refused: it did not boot");
    expect(harness.reboots).toEqual([]);
    await harness.desire("rendered-3");
    await harness.untilDone("rendered-3");
    await harness.pass(600_000);
    expect(await harness.ledgerDocument("refused.json")).toBeUndefined();
    const object = await harness.act(() => harness.kube.get(MachineConfigNode, { name: harness.name }));
    expect(object?.metadata.annotations?.[annotations.refusedTargets]).toBeUndefined();
  });

  test("the force file ends a refusal in both places, though the daemon ends between them [daemon-start-up-20]", async () => {
    const harness = await refusing();
    harness.kill();
    await harness.desire("rendered-2");
    let removals = 0;
    harness.tamper = (host) => ({
      ...host,
      ledger: {
        ...host.ledger,
        remove: async (name, until) => {
          await host.ledger.remove(name, until);
          if (name !== "refused.json" || (removals += 1) > 1) return;
          harness.kill();
          await new Promise(() => undefined);
        },
      },
    });
    harness.start();
    await harness.untilState("Degraded");
    const refusedTargets = async () =>
      (await harness.act(() => harness.kube.get(MachineConfigNode, { name: harness.name })))?.metadata.annotations?.[
        annotations.refusedTargets
      ];
    expect(await refusedTargets()).toContain("rendered-2");
    await harness.put(hostPaths.force, "");
    await harness.until(() => Promise.resolve(removals === 1), "the daemon was killed");
    harness.start();
    await harness.untilDone("rendered-2");
    expect([await harness.ledgerDocument("refused.json"), await refusedTargets()]).toEqual([undefined, undefined]);
  });

  test("because another system was chosen in the boot menu: the machine says so, and returns once the force file asks, after a drain [daemon-start-up-10]", async () => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", { ...one, spec: { osImageURL: "os@sha256:2", kernelArguments: ["nosmt"] } });
    harness.kill();
    await harness.host.bootOther({
      image: "os@sha256:1",
      kernelArguments: ["root=x"],
      packages: [],
      kernelType: "default",
    });
    harness.effects.length = 0;
    harness.start();
    expect(await harness.untilState("Degraded")).toContain(
      "OS image (os@sha256:1 in place of os@sha256:2), kernel arguments (without nosmt) differ",
    );
    // Nobody granted the machine a drain or a reboot.
    await harness.pass(3_600_000);
    expect(await harness.events()).not.toContain("Drain");
    expect(harness.effects.filter((effect) => !effect.startsWith("ledger."))).toEqual([]);
    await harness.put(hostPaths.force, "");
    await harness.untilDone("rendered-1");
    expect((await harness.host.os.status(signal)).booted).toMatchObject({
      image: "os@sha256:2",
      kernelArguments: ["root=x", "nosmt"],
    });
    expect(await harness.file("/etc/new.conf")).toBe("one");
    expect(await harness.events()).toEqual(expect.arrayContaining(["BootResync", "Drain"]));
  });

  test("on a machine without a previous system ends in a report, not in a reboot loop [daemon-start-up-17]", async () => {
    const harness = await MachineHarness.make();
    await harness.config("rendered-1", { ...one, spec: { osImageURL: "os@sha256:2" } });
    const stage = harness.host.os.stage.bind(harness.host.os);
    harness.tamper = (host) => ({
      ...host,
      os: {
        ...host.os,
        stage: async (...args) => (await harness.host.failToFinalise?.("error: broken"), stage(...args)),
      },
    });
    await harness.desire("rendered-1");
    harness.start();
    await harness.untilState("Degraded");
    await harness.pass(3_600_000);
    expect(await harness.annotation(annotations.reason)).toContain("there is nothing to go back to");
    expect(harness.reboots).toHaveLength(3);
  });
});

test("documents of a newer daemon stop this one before it touches anything [daemon-start-up-14]", async () => {
  const harness = await MachineHarness.make();
  await harness.config("rendered-1", one);
  await harness.host.ledger.write("ledger.json", JSON.stringify({ v: 3 }), signal);
  await harness.desire("rendered-1");
  harness.start();
  await harness.untilState("Degraded");
  expect(await harness.condition("NodeDegraded")).toBe("True WrittenByNewerVersion");
  await harness.pass(600_000);
  expect(harness.effects).toEqual([]);
});
