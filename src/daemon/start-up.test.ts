import { describe, expect, test } from "vitest";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { annotations, hostPaths } from "../api/names.ts";
import { MachineScene, machineConfigOf } from "../../test/support/machine-scene.ts";
import type { Previous } from "../core/machine/machine-record.ts";

const { signal } = new AbortController();
const one = { files: { "/etc/app.conf": "one", "/etc/new.conf": "one" } };
const two = { files: { "/etc/app.conf": "two" } };

describe("a machine that joins", () => {
  test("with annotations from the config server takes them over, and the file is put aside once it is done [daemon-start-up-1]", async () => {
    const scene = await MachineScene.make();
    await scene.config("rendered-1", one);
    // As Ignition leaves a machine: files written, the rest told.
    for (const [path, text] of Object.entries(one.files)) await scene.put(path, text);
    await scene.put(
      hostPaths.nodeAnnotations,
      JSON.stringify({
        [annotations.currentConfig]: "rendered-1",
        [annotations.desiredConfig]: "rendered-1",
        [annotations.state]: "Done",
        other: "x",
      }),
    );
    await scene.put(hostPaths.encapsulated, "{}");
    await scene.put(hostPaths.ignitionPreset, "enable x.service\n");
    scene.start();
    await scene.untilDone("rendered-1");
    expect(scene.reboots).toEqual([]);
    expect(await scene.annotation("other")).toBeUndefined();
    expect(await scene.file(hostPaths.nodeAnnotations)).toBeUndefined();
    expect(await scene.file(hostPaths.nodeAnnotationsDone)).toContain("rendered-1");
    expect(await scene.file(hostPaths.encapsulated)).toBeUndefined();
    expect(await scene.file(hostPaths.encapsulatedDone)).toBe("{}");
    expect(await scene.file(hostPaths.ignitionPreset)).toBeUndefined();
    // What Ignition wrote is not taken for what was there before.
    await scene.config("rendered-0", {});
    await scene.desire("rendered-0");
    await scene.untilDone("rendered-0");
    expect(await scene.file("/etc/app.conf")).toBe("vendor");
    expect(await scene.file("/etc/new.conf")).toBeUndefined();
  });

  test("whose first boot did not get to the system gets it undrained, and is drained from then on [daemon-start-up-7]", async () => {
    const scene = await MachineScene.make();
    await scene.config("rendered-1", { ...one, spec: { osImageURL: "os@sha256:2", kernelArguments: ["nosmt"] } });
    for (const [path, text] of Object.entries(one.files)) await scene.put(path, text);
    await scene.put(
      hostPaths.nodeAnnotations,
      JSON.stringify({ [annotations.currentConfig]: "rendered-1", [annotations.desiredConfig]: "rendered-1" }),
    );
    scene.start();
    await scene.untilDone("rendered-1");
    expect(scene.reboots).toHaveLength(1);
    expect((await scene.host.os.status(signal)).booted).toMatchObject({
      image: "os@sha256:2",
      kernelArguments: ["root=x", "nosmt"],
    });
    expect(await scene.events()).not.toContain("Drain");
    await scene.config("rendered-2", { ...two, spec: { osImageURL: "os@sha256:2", kernelArguments: ["nosmt"] } });
    await scene.desire("rendered-2");
    await scene.untilDone("rendered-2");
    expect(await scene.events()).toContain("Drain");
  });

  test("with a bootstrap configuration that the cluster does not have goes on to the one it should have [daemon-start-up-5]", async () => {
    const scene = await MachineScene.make();
    for (const [path, text] of Object.entries(one.files)) await scene.put(path, text);
    await scene.put(
      hostPaths.nodeAnnotations,
      JSON.stringify({
        [annotations.currentConfig]: "rendered-bootstrap",
        [annotations.desiredConfig]: "rendered-bootstrap",
      }),
    );
    await scene.put(hostPaths.servedConfig, JSON.stringify(machineConfigOf("rendered-bootstrap", one)));
    await scene.config("rendered-2", two);
    await scene.desire("rendered-2");
    scene.start();
    await scene.untilDone("rendered-2");
    expect(await scene.file("/etc/app.conf")).toBe("two");
    expect(await scene.file("/etc/new.conf")).toBeUndefined();
  });

  test("without anything meets its first configuration through the daemon, folders, links and appended files too [daemon-start-up-15]", async () => {
    const scene = await MachineScene.make();
    const ignition = {
      storage: {
        files: [{ path: "/etc/app.conf", append: [{ source: "data:,%0Amore" }] }],
        directories: [{ path: "/var/lib/app", mode: 0o700 }],
        links: [{ path: "/etc/link", target: "/etc/app.conf" }],
      },
    };
    await scene.settledOn("rendered-1", { ignition });
    expect(await scene.file("/etc/app.conf")).toBe("vendor\nmore");
    expect(await scene.file("/etc/link")).toBe("→ /etc/app.conf");
    expect(await scene.host.files.read("/var/lib/app", signal)).toMatchObject({ kind: "folder", mode: 0o700 });
    // Later they are nobody's: another look, or another boot, changes nothing.
    await scene.put("/etc/app.conf", "somebody's");
    await scene.boot({ orderly: true });
    await scene.untilDone("rendered-1");
    expect(await scene.file("/etc/app.conf")).toBe("somebody's");
    expect(scene.reboots).toEqual([]);
  });
});

describe("a machine that another daemon kept", () => {
  test("is taken over from its disk, with the originals that the other one kept [daemon-start-up-13]", async () => {
    const scene = await MachineScene.make();
    await scene.put("/etc/app.conf", "one");
    await scene.put("/etc/new.conf", "one");
    await scene.put(`${hostPaths.referenceOriginals}/etc/app.conf.mcdorig`, "the vendor's of another day");
    await scene.put(`${hostPaths.referenceNoOriginals}/etc/new.conf.mcdnoorig`, "");
    await scene.put(hostPaths.currentConfig, JSON.stringify(machineConfigOf("rendered-1", one)));
    await scene.put(hostPaths.kubeconfig, "token: secret");
    await scene.config("rendered-0", {});
    await scene.annotate({
      [annotations.currentConfig]: "rendered-from-a-backup",
      [annotations.desiredConfig]: "rendered-0",
      [annotations.state]: "Done",
    });
    scene.start();
    await scene.untilDone("rendered-0");
    expect(await scene.file("/etc/app.conf")).toBe("the vendor's of another day");
    expect(await scene.file("/etc/new.conf")).toBeUndefined();
    // Whole configurations and credentials are nobody else's to read.
    for (const path of [hostPaths.currentConfig, hostPaths.kubeconfig])
      expect(await scene.host.files.read(path, signal)).toMatchObject({ mode: 0o600 });
  });

  test("is taken over by its annotation when the disk says nothing [daemon-start-up-6]", async () => {
    const scene = await MachineScene.make();
    for (const [path, text] of Object.entries(one.files)) await scene.put(path, text);
    await scene.config("rendered-1", one);
    await scene.annotate({
      [annotations.currentConfig]: "rendered-1",
      [annotations.desiredConfig]: "rendered-1",
      [annotations.state]: "Done",
    });
    scene.start();
    await scene.untilDone("rendered-1");
    expect(scene.effects.filter((effect) => effect !== "ledger.write")).toEqual([]);
    expect(await scene.ledgerDocument<Previous>("previous.json")).toMatchObject({
      proven: true,
      config: { metadata: { name: "rendered-1" } },
    });
  });

  test("and whose configuration nobody can show says so, and touches nothing until somebody decides [daemon-start-up-3]", async () => {
    const scene = await MachineScene.make();
    await scene.config("rendered-2", two);
    await scene.annotate({ [annotations.currentConfig]: "rendered-lost", [annotations.desiredConfig]: "rendered-2" });
    scene.start();
    expect(await scene.untilState("Degraded")).toContain("rendered-lost, which neither its disk nor the cluster holds");
    expect(scene.effects).toEqual([]);
    await scene.put(hostPaths.force, "");
    await scene.untilDone("rendered-2");
    expect(await scene.file("/etc/app.conf")).toBe("two");
    expect(await scene.file(hostPaths.force)).toBeUndefined();
  });
});

describe("a machine with a history", () => {
  test("believes its disk, not annotations that came back from an old backup [daemon-start-up-8]", async () => {
    const scene = await MachineScene.make();
    await scene.settledOn("rendered-1", one);
    await scene.config("rendered-2", two);
    await scene.desire("rendered-2");
    await scene.untilDone("rendered-2");
    scene.kill();
    await scene.annotate({ [annotations.currentConfig]: "rendered-1", [annotations.desiredConfig]: "rendered-1" });
    scene.start();
    await scene.untilDone("rendered-1");
    // It went from what it had, so that what only that had is gone, and what only the other has is back.
    expect(await scene.file("/etc/new.conf")).toBe("one");
    expect(await scene.file("/etc/app.conf")).toBe("one");
  });

  test("gets its annotations back when they are lost [daemon-start-up-2]", async () => {
    const scene = await MachineScene.make();
    await scene.settledOn("rendered-1", one);
    scene.kill();
    await scene.annotate({ [annotations.currentConfig]: null, [annotations.state]: null });
    scene.start();
    await scene.untilDone("rendered-1");
    expect(scene.reboots).toEqual([]);
  });

  test("that drifted while it was down says so, and keeps what somebody did [daemon-start-up-9]", async () => {
    const scene = await MachineScene.make();
    await scene.settledOn("rendered-1", one);
    scene.kill();
    await scene.put("/etc/app.conf", "somebody's");
    await scene.boot({ orderly: true });
    expect(await scene.untilState("Degraded")).toContain("config drift: /etc/app.conf");
    expect(await scene.events()).toContain("OnDiskStateValidationFailed");
    expect(await scene.file("/etc/app.conf")).toBe("somebody's");
    expect(scene.facts).toMatchObject({ state: "Degraded", reason: "ConfigDrift" });
    // A new target does not wait for a person.
    await scene.config("rendered-2", two);
    await scene.desire("rendered-2");
    await scene.untilDone("rendered-2");
    expect(scene.facts.driftSince).toBeUndefined();
  });

  test("that was told of another target while it rebooted goes straight on to it, still out of service [daemon-start-up-12]", async () => {
    const scene = await MachineScene.make();
    await scene.settledOn("rendered-1", one);
    await scene.config("rendered-2", two);
    await scene.config("rendered-3", { files: { "/etc/app.conf": "three" } });
    await scene.desire("rendered-2");
    await scene.until(async () => scene.reboots.length === 1, "it reboots");
    await scene.desire("rendered-3");
    await scene.untilDone("rendered-3");
    expect(await scene.file("/etc/app.conf")).toBe("three");
    // It joined undrained: this was its one time out of service.
    expect((await scene.events()).filter((reason) => reason === "Uncordon")).toHaveLength(1);
  });
});

describe("a boot that is not the one that was asked for", () => {
  test("because what was staged was not finalised: it is staged again, and the failure is told [daemon-start-up-4]", async () => {
    const scene = await MachineScene.make();
    await scene.settledOn("rendered-1", one);
    await scene.config("rendered-2", { ...two, spec: { osImageURL: "os@sha256:2" } });
    await scene.host.failToFinalise?.("error: no space left on /boot");
    await scene.desire("rendered-2");
    await scene.untilDone("rendered-2");
    expect(scene.reboots).toHaveLength(2);
    expect((await scene.host.os.status(signal)).booted.image).toBe("os@sha256:2");
    const events = await scene.events();
    expect(events).toContain("FailedFinalization");
    expect(events).toContain("OSUpgradeApplied");
    expect(await scene.annotation(annotations.finaliseFailure)).toBeUndefined();
  });

  test("again and again: after three reboots the machine goes back, config and system together, and says why [daemon-start-up-11]", async () => {
    const scene = await MachineScene.make();
    await scene.settledOn("rendered-1", one);
    await scene.config("rendered-2", { ...two, spec: { osImageURL: "os@sha256:2" } });
    const stage = scene.host.os.stage.bind(scene.host.os);
    scene.tamper = (host) => ({
      ...host,
      os: {
        ...host.os,
        stage: async (...args) => {
          await scene.host.failToFinalise?.("error: the disk is broken");
          await stage(...args);
        },
      },
    });
    scene.kill();
    scene.start();
    await scene.desire("rendered-2");
    const reason = await scene.untilState("Degraded");
    expect(reason).toContain(
      "rendered-2 is refused: after 3 reboots for rendered-2 the machine still boots os@sha256:1 in place of os@sha256:2: error: the disk is broken; the machine stays on rendered-1",
    );
    expect(await scene.condition("NodeDegraded")).toBe("True TargetRefused");
    await scene.until(
      async () => (await scene.annotation(annotations.desiredDrain)) === "uncordon-rendered-1",
      "back in service",
    );
    expect(await scene.file("/etc/app.conf")).toBe("one");
    expect(await scene.file("/etc/new.conf")).toBe("one");
    expect(await scene.annotation(annotations.currentConfig)).toBe("rendered-1");
    // Three for the target, one to leave it: services had read its files.
    expect(scene.reboots).toHaveLength(4);
    const object = await scene.act(() => scene.kube.get(MachineConfigNode, { name: scene.name }));
    expect(JSON.parse(object?.metadata.annotations?.[annotations.refusedTargets] ?? "[]")).toMatchObject([
      { config: "rendered-2", image: "os@sha256:2" },
    ]);
    // Nothing more happens by itself, whoever restarts.
    scene.kill();
    scene.start();
    await scene.pass(3_600_000);
    expect(scene.reboots).toHaveLength(4);

    // Somebody takes the refusal away: it is tried again, and this time it boots.
    scene.tamper = (host) => host;
    scene.kill();
    await scene.act(() =>
      scene.kube.patch(
        MachineConfigNode,
        { name: scene.name },
        { type: "merge", body: { metadata: { annotations: { [annotations.refusedTargets]: null } } } },
      ),
    );
    scene.start();
    await scene.untilDone("rendered-2");
    expect(await scene.ledgerDocument("refused.json")).toBeUndefined();
  });

  test("another target lifts a refusal by itself [daemon-start-up-16]", async () => {
    const scene = await MachineScene.make();
    await scene.settledOn("rendered-1", one);
    await scene.host.ledger.write(
      "refused.json",
      JSON.stringify({
        v: 1,
        targets: [{ config: "rendered-2", image: "", reason: "it did not boot", at: "2026-01-01T00:00:00Z" }],
      }),
      signal,
    );
    await scene.config("rendered-2", two);
    await scene.config("rendered-3", { files: { "/etc/app.conf": "three" } });
    scene.kill();
    await scene.desire("rendered-2");
    scene.start();
    expect(await scene.untilState("Degraded")).toContain("rendered-2 is refused: it did not boot");
    expect(scene.reboots).toEqual([]);
    await scene.desire("rendered-3");
    await scene.untilDone("rendered-3");
    await scene.pass(600_000);
    expect(await scene.ledgerDocument("refused.json")).toBeUndefined();
    const object = await scene.act(() => scene.kube.get(MachineConfigNode, { name: scene.name }));
    expect(object?.metadata.annotations?.[annotations.refusedTargets]).toBeUndefined();
  });

  test("because somebody chose another system in the boot menu: it comes back by itself, drained, with all that belongs to it [daemon-start-up-10]", async () => {
    const scene = await MachineScene.make();
    await scene.settledOn("rendered-1", { ...one, spec: { osImageURL: "os@sha256:2", kernelArguments: ["nosmt"] } });
    scene.kill();
    await scene.host.bootOther({
      image: "os@sha256:1",
      kernelArguments: ["root=x"],
      packages: [],
      kernelType: "default",
    });
    scene.start();
    await scene.untilState("Working");
    await scene.untilDone("rendered-1");
    expect((await scene.host.os.status(signal)).booted).toMatchObject({
      image: "os@sha256:2",
      kernelArguments: ["root=x", "nosmt"],
    });
    expect(await scene.file("/etc/new.conf")).toBe("one");
    expect(await scene.events()).toEqual(expect.arrayContaining(["BootResync", "Drain"]));
  });

  test("on a machine that has nothing to go back to ends in a sentence, not in a loop of reboots [daemon-start-up-17]", async () => {
    const scene = await MachineScene.make();
    await scene.config("rendered-1", { ...one, spec: { osImageURL: "os@sha256:2" } });
    const stage = scene.host.os.stage.bind(scene.host.os);
    scene.tamper = (host) => ({
      ...host,
      os: {
        ...host.os,
        stage: async (...args) => (await scene.host.failToFinalise?.("error: broken"), stage(...args)),
      },
    });
    await scene.desire("rendered-1");
    scene.start();
    await scene.untilState("Degraded");
    await scene.pass(3_600_000);
    expect(await scene.annotation(annotations.reason)).toContain("there is nothing to go back to");
    expect(scene.reboots).toHaveLength(3);
  });
});

test("documents of a newer daemon stop this one before it touches anything [daemon-start-up-14]", async () => {
  const scene = await MachineScene.make();
  await scene.config("rendered-1", one);
  await scene.host.ledger.write("ledger.json", JSON.stringify({ v: 3 }), signal);
  await scene.desire("rendered-1");
  scene.start();
  await scene.untilState("Degraded");
  expect(await scene.condition("NodeDegraded")).toBe("True WrittenByNewerVersion");
  await scene.pass(600_000);
  expect(scene.effects).toEqual([]);
});
