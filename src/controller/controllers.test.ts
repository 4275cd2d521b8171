import { describe, expect, test } from "vitest";
import { Harness, updatedPool, version } from "../../test/support/control-plane-harness.ts";
import { currentGeneratorVersion } from "./run-controller.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { KubeletConfig } from "../api/kinds/kubelet-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations, labels, objects, taints } from "../api/names.ts";
import { fileText } from "../core/render/config-file.ts";
import { conditionOf } from "../api/schema/object.ts";
import { mostTextCharacters } from "../ignition/held-contents.ts";

const moreThan = (maxPods: number) => ({
  apiVersion: KubeletConfig.apiVersion,
  kind: "KubeletConfig",
  metadata: { name: "pods" },
  spec: {
    machineConfigPoolSelector: { matchLabels: { [`${labels.poolPrefix}worker`]: "" } },
    kubeletConfig: { maxPods },
  },
});

describe("base configurations and rendering", () => {
  test("the controller writes base configurations from the ControllerConfig, and renders pools once they are complete [controllers-2]", async () => {
    const harness = await Harness.make();
    harness.start();
    await harness.pass(5000);
    const { items } = await harness.act(() => harness.kube.list(MachineConfig));
    expect(items.map(({ metadata }) => metadata.name.replace(/[0-9a-f]{32}$/, "…")).toSorted()).toEqual([
      "00-master",
      "00-worker",
      "01-master-container-runtime",
      "01-master-kubelet",
      "01-worker-container-runtime",
      "01-worker-kubelet",
      "rendered-master-…",
      "rendered-worker-…",
    ]);
    const config = await harness.act(() => harness.kube.get(ControllerConfig, { name: objects.controllerConfig }));
    expect(config?.status?.observedGeneration).toBe(config?.metadata.generation);
    expect(conditionOf(config?.status?.conditions as { type: string }[], "TemplateControllerCompleted")).toMatchObject({
      status: "True",
    });
    const { pool, target, of } = await harness.poolStatus("worker");
    expect(
      (pool?.spec.configuration as { source?: { name: string }[] } | undefined)?.source?.map(({ name }) => name),
    ).toEqual(["00-worker", "01-worker-container-runtime", "01-worker-kubelet"]);
    expect(of("RenderDegraded")?.status).toBe("False");
    expect(of("Updated")?.status).toBe("True");
    expect(await harness.events("RenderedConfigGenerated")).toContain(
      `${target} successfully generated (release version: 1.0.0, controller version: ${currentGeneratorVersion})`,
    );
  });

  test("the controller recreates a deleted base configuration, and renders nothing without it [controllers-3]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    const rendered = async () =>
      (await harness.act(() => harness.kube.list(MachineConfig))).items
        .map(({ metadata }) => metadata.name)
        .filter((name) => name.startsWith("rendered-worker-"));
    const before = await rendered();
    // The API server takes a while to take what is written again.
    const { intercept } = harness;
    let refused = 0;
    harness.intercept = (handler) => (request, signal) => {
      const isWrite = request.method !== "GET" && request.target.includes("/controllerconfigs/");
      if (!isWrite || (refused += 1) % 3 === 0) return intercept(handler)(request, signal);
      return Promise.resolve({ status: 503, headers: {}, body: "{}" });
    };
    for (const name of ["01-worker-kubelet", "00-worker", "01-worker-container-runtime", "00-worker"]) {
      await harness.act(() => harness.kube.delete(MachineConfig, { name }));
      await harness.pass(20_000);
      expect((await harness.poolStatus("worker")).target).toBe(first);
      expect(await rendered()).toEqual(before);
    }
    expect(refused).toBeGreaterThanOrEqual(12);
  });

  test("on a cluster of kubeadm the kubelets keep what kubeadm gives them, also when its ConfigMap is gone [controllers-19]", async () => {
    const kubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 77\n";
    const { harness } = await updatedPool([]);
    const key = { name: "kubelet-config", namespace: "kube-system" };
    await harness.act(() =>
      harness.kube.create(kubernetes.ConfigMap, {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: key,
        data: { kubelet },
      }),
    );
    const base = () => harness.act(() => harness.kube.get(MachineConfig, { name: "01-worker-kubelet" }));
    await harness.pass(700_000);
    expect(fileText(await base(), "/var/lib/kubelet/config.yaml", mostTextCharacters)).toBe(kubelet);
    expect(fileText(await base(), "/etc/kubernetes/kubelet.conf", mostTextCharacters)).toBeUndefined();
    await harness.act(() => harness.kube.create(KubeletConfig, moreThan(64) as never));
    await harness.pass(3000);
    const made = await harness.act(() => harness.kube.get(MachineConfig, { name: "99-worker-generated-kubelet" }));
    expect(fileText(made, "/var/lib/kubelet/config.yaml", mostTextCharacters)).toContain("maxPods: 64\n");
    await harness.act(() => harness.kube.delete(kubernetes.ConfigMap, key));
    await harness.pass(700_000);
    expect(fileText(await base(), "/var/lib/kubelet/config.yaml", mostTextCharacters)).toBe(kubelet);
  });

  test("the controller renders nothing from a ControllerConfig of another version [controllers-7]", async () => {
    const harness = await Harness.make();
    await harness.act(() =>
      harness.kube.patch(
        ControllerConfig,
        { name: objects.controllerConfig },
        { type: "merge", body: { metadata: { annotations: { [annotations.generatedByVersion]: "0.9.0" } } } },
      ),
    );
    harness.start();
    await harness.pass(5000);
    const held = await harness.poolStatus("worker");
    expect(held.target).toBe("");
    expect(held.of("RenderDegraded")).toMatchObject({
      status: "False",
      reason: "ControllerConfigOfOtherVersion",
      message: "the ControllerConfig is of version 0.9.0, and this controller is 1.0.0",
    });
    expect(held.of("Updating")?.message).toContain("rendering waits: the ControllerConfig is of version 0.9.0");
    await harness.act(() =>
      harness.kube.patch(
        ControllerConfig,
        { name: objects.controllerConfig },
        { type: "merge", body: { metadata: { annotations: { [annotations.generatedByVersion]: version } } } },
      ),
    );
    await harness.pass(3000);
    expect((await harness.poolStatus("worker")).target).toMatch(/^rendered-worker-/);
  });

  test("a member that cannot be rendered degrades only its pool, with field and reason, until it is repaired [controllers-9]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    await harness.act(() => harness.config("99-bad", "worker", {}, { kernelType: "fast" }));
    await harness.pass(2000);
    const bad = await harness.poolStatus("worker");
    expect(bad.target).toBe(first);
    expect(bad.of("RenderDegraded")).toMatchObject({ status: "True", reason: "RenderRefused" });
    expect(bad.of("RenderDegraded")?.message).toContain("99-bad: spec.kernelType");
    expect(bad.of("Degraded")).toMatchObject({ status: "True", reason: "RenderDegraded" });
    expect((await harness.poolStatus("master")).of("Degraded")?.status).toBe("False");
    await harness.act(() => harness.kube.delete(MachineConfig, { name: "99-bad" }));
    await harness.pass(2000);
    expect((await harness.poolStatus("worker")).of("Degraded")?.status).toBe("False");
  });

  test("a MachineConfig and a KubeletConfig that are written together are rendered once, and rolled out [controllers-17]", async () => {
    const { harness } = await updatedPool(["w0"]);
    const before = (await harness.events("RenderedConfigGenerated")).length;
    await harness.act(async () => {
      await harness.kube.create(KubeletConfig, moreThan(64) as never);
      await harness.config("99-x", "worker", { "/etc/x": "1" });
    });
    await harness.pass(3000);
    expect((await harness.events("RenderedConfigGenerated")).length - before).toBe(1);
    const { pool } = await harness.poolStatus("worker");
    for (const name of ["99-worker-generated-kubelet", "99-x"])
      expect(JSON.stringify(pool?.spec.configuration)).toContain(`"${name}"`);
  });

  test("a KubeletConfig that is refused holds no pool up [controllers-18]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    await harness.act(async () => {
      await harness.kube.create(KubeletConfig, moreThan(-1) as never);
      await harness.config("99-x", "worker", { "/etc/x": "1" });
    });
    await harness.pass(3000);
    const { target, of } = await harness.poolStatus("worker");
    expect(target).not.toBe(first);
    expect(of("Degraded")?.status).toBe("False");
  });

  test("a user's configuration that is named like a rendered one is an ordinary member", async () => {
    const { harness, first } = await updatedPool([]);
    await harness.act(() => harness.config("rendered-x", "worker", { "/etc/x": "1" }));
    await harness.pass(2000);
    const { pool, target } = await harness.poolStatus("worker");
    expect(target).not.toBe(first);
    expect(JSON.stringify(pool?.spec.configuration)).toContain('"rendered-x"');
  });

  test("a change that running machines cannot apply degrades the pool until the administrator allows it [controllers-1]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    const stretched = {
      config: { ignition: { version: "3.4.0" }, storage: { disks: [{ device: "/dev/vdb", wipeTable: true }] } },
    };
    await harness.act(() => harness.config("99-disk", "worker", {}, stretched));
    await harness.pass(2000);
    const refused = await harness.poolStatus("worker");
    expect(refused.target).toBe(first);
    expect(refused.of("RenderDegraded")).toMatchObject({ status: "True", reason: "RenderRefused" });
    expect(refused.of("RenderDegraded")?.message).toMatch(
      /^Failed to render configuration for pool worker: 99-disk: the section disks changes/,
    );
    await harness.act(() =>
      harness.kube.apply(
        MachineConfiguration,
        {
          metadata: { name: objects.machineConfiguration },
          spec: { irreconcilableValidationOverrides: { storage: ["Disks"] } },
        },
        { owner: "people" },
      ),
    );
    await harness.pass(2000);
    const allowed = await harness.poolStatus("worker");
    expect(allowed.of("RenderDegraded")?.status).toBe("False");
    expect(allowed.target).not.toBe(first);
    expect(allowed.of("Updating")?.status).toBe("True");
    expect(JSON.stringify(allowed.pool?.status?.conditions)).not.toContain("cannot be applied");
  });

  test("a pool's status follows the administrator's override for changes that running machines cannot apply", async () => {
    const { harness } = await updatedPool(["w0"]);
    const allow = (...storage: readonly ("Disks" | "FileSystems" | "Raid")[]) =>
      harness.act(() =>
        harness.kube.apply(
          MachineConfiguration,
          {
            metadata: { name: objects.machineConfiguration },
            spec: storage.length === 0 ? {} : { irreconcilableValidationOverrides: { storage: [...storage] } },
          },
          { owner: "people" },
        ),
      );
    await allow("Disks");
    await harness.act(() =>
      harness.config(
        "99-disk",
        "worker",
        {},
        {
          config: { ignition: { version: "3.4.0" }, storage: { disks: [{ device: "/dev/vdb", wipeTable: true }] } },
        },
      ),
    );
    await harness.pass(2000);
    const said = async () => JSON.stringify((await harness.poolStatus("worker")).pool?.status?.conditions);
    expect(await said()).not.toContain("cannot be applied");
    // It is taken back while the machines are on their way: they refuse the target now.
    await allow();
    await harness.pass(2000);
    expect(await said()).toContain("cannot be applied to running machines: spec.config.storage.disks");
  });

  test("a new rendered config is reported with its changes and members; a waiting pool reports it and keeps its target [controllers-8]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    expect(await harness.events("RenderedConfigChanged")).toEqual([
      `${target} in place of ${first}: +/etc/b (60-worker)`,
    ]);
    await harness.act(() =>
      harness.kube.patch(
        ControllerConfig,
        { name: objects.controllerConfig },
        { type: "merge", body: { metadata: { annotations: { [annotations.generatedByVersion]: "0.9.0" } } } },
      ),
    );
    await harness.pass(2000);
    const waits = await harness.poolStatus("worker");
    expect(waits.target).toBe(target);
    expect(waits.of("RenderDegraded")).toMatchObject({ status: "False", reason: "ControllerConfigOfOtherVersion" });
    await harness.act(() =>
      harness.kube.patch(
        ControllerConfig,
        { name: objects.controllerConfig },
        { type: "merge", body: { metadata: { annotations: { [annotations.generatedByVersion]: version } } } },
      ),
    );
    await harness.pass(2000);
    expect((await harness.poolStatus("worker")).of("RenderDegraded")).toMatchObject({
      status: "False",
      reason: "AsExpected",
      message: "",
    });
  });

  test("a pool whose selector matches every MachineConfig is not rendered, and reports it [controllers-4]", async () => {
    const harness = await Harness.make();
    await harness.act(() => harness.pool("all", { machineConfigSelector: {} }));
    harness.start();
    await harness.pass(5000);
    const { target, of } = await harness.poolStatus("all");
    expect(target).toBe("");
    expect(of("RenderDegraded")).toMatchObject({ status: "True", reason: "SelectingAll" });
    expect(await harness.events("SelectingAll")).toContain(
      "This machineconfigpool is selecting all machineconfigs. A non-empty selector is required.",
    );
  });

  test.for([
    {
      field: "machineConfigSelector",
      says: "spec.machineConfigSelector.matchLabels has a value that no label can have",
    },
    { field: "nodeSelector", says: "spec.nodeSelector.matchLabels has a value that no label can have" },
  ])(
    "a pool whose $field nobody can read is not rendered, and says where it is wrong [controllers-28]",
    async ({ field, says }) => {
      const harness = await Harness.make();
      const infra = { matchLabels: { "machineconfiguration.openshift.io/role": "infra" } };
      const selectors = { machineConfigSelector: infra, nodeSelector: infra };
      await harness.act(() => harness.pool("infra", { ...selectors, [field]: { matchLabels: { a: "y; reboot #" } } }));
      harness.start();
      await harness.pass(5000);
      const { target, of } = await harness.poolStatus("infra");
      expect(target).toBe("");
      const condition = of("RenderDegraded");
      expect(condition).toMatchObject({ status: "True", reason: "RenderRefused" });
      expect(condition?.message).toContain(says);
    },
  );

  test("an added, changed, removed or relabelled member re-renders its pools; other metadata does not [controllers-6]", async () => {
    const { harness, first } = await updatedPool([]);
    const targets = async () =>
      [(await harness.poolStatus("worker")).target, (await harness.poolStatus("master")).target] as const;
    const [, master] = await targets();
    await harness.act(() => harness.config("60-x", "worker", { "/etc/x": "1" }));
    await harness.pass(1000);
    const [added] = await targets();
    expect(added).not.toBe(first);
    await harness.act(() =>
      harness.kube.patch(
        MachineConfig,
        { name: "60-x" },
        { type: "merge", body: { metadata: { labels: { "a.label": "of-somebody" } } } },
      ),
    );
    await harness.pass(1000);
    expect(await targets()).toEqual([added, master]);
    await harness.act(() =>
      harness.kube.patch(
        MachineConfig,
        { name: "60-x" },
        { type: "merge", body: { metadata: { labels: { [labels.role]: "master" } } } },
      ),
    );
    await harness.pass(1000);
    const [worker, moved] = await targets();
    expect(worker).toBe(first);
    expect(moved).not.toBe(master);
    await harness.act(() => harness.kube.delete(MachineConfig, { name: "60-x" }));
    await harness.pass(1000);
    expect(await targets()).toEqual([first, master]);
  });

  test("the controller recreates a deleted rendered config that a pool needs [controllers-10]", async () => {
    const { harness, first } = await updatedPool([]);
    await harness.act(() => harness.kube.delete(MachineConfig, { name: first }));
    await harness.pass(2000);
    expect(await harness.act(() => harness.kube.get(MachineConfig, { name: first }))).toBeDefined();
  });
});

describe("roll-out", () => {
  test("a written MachineConfig reaches the first machine within a second [controllers-5]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
    await harness.pass(1000);
    expect(Object.values(await harness.desired("worker")).filter((desired) => desired !== first)).toHaveLength(1);
  });

  test("machines get the target one by one, and the pool reports the roll-out [controllers-14]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    expect((await harness.poolStatus("worker")).of("Updated")).toMatchObject({
      status: "True",
      message: `All nodes are updated with MachineConfig ${first}`,
    });
    await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
    await harness.pass(2000);
    const { target, of } = await harness.poolStatus("worker");
    expect(target).not.toBe(first);
    expect(await harness.desired("worker")).toEqual({ w0: target, w1: first });
    expect(of("Updating")).toMatchObject({ status: "True", reason: "MaxUnavailableReached" });
    expect(of("Updating")?.message).toContain("waiting: w1 (BudgetUsed: 1 of 1 allowed unavailable: w0 updating)");
    expect((await harness.node_("w1")).spec?.taints).toEqual([
      { key: taints.updateInProgress, effect: "PreferNoSchedule" },
    ]);
    await harness.act(() => harness.finish("w0"));
    await harness.pass(2000);
    expect(await harness.desired("worker")).toEqual({ w0: target, w1: target });
    await harness.act(() => harness.finish("w1"));
    await harness.pass(2000);
    const done = await harness.poolStatus("worker");
    expect(done.of("Updated")?.status).toBe("True");
    expect(done.pool?.status).toMatchObject({
      configuration: { name: target },
      machineCount: 2,
      updatedMachineCount: 2,
      readyMachineCount: 2,
      unavailableMachineCount: 0,
      degradedMachineCount: 0,
      observedGeneration: done.pool?.metadata.generation,
    });
    expect((await harness.node_("w1")).spec?.taints ?? []).toEqual([]);
    expect(await harness.events("Completed")).toContain(`Pool worker has completed update to MachineConfig ${target}`);
    const described = await harness.act(() => harness.kube.get(MachineConfigNode, { name: "w0" }));
    expect(described?.spec).toEqual({
      node: { name: "w0" },
      pool: { name: "worker" },
      configVersion: { desired: target },
    });
    expect(described?.metadata.ownerReferences?.[0]).toMatchObject({ kind: "Node", name: "w0" });
  });

  test("a lost answer takes no second machine out of service [controllers-15]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1", "w2"]);
    let lost = 0;
    harness.intercept = (handler) => async (request, signal) => {
      const response = await handler(request, signal);
      // The write is carried out, and neither its answer nor, for a while, the news of it arrives.
      if (request.method === "PATCH" && request.target.startsWith("/api/v1/nodes/") && lost < 2) {
        lost += 1;
        throw new Error("connection reset");
      }
      return response;
    };
    await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
    await harness.pass(20_000);
    expect(lost).toBe(2);
    expect(Object.values(await harness.desired("worker")).filter((desired) => desired !== first)).toHaveLength(1);
  });

  test("a machine whose write was lost gets its target again [controllers-16]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    let lost = 0;
    harness.intercept = (handler) => async (request, signal) => {
      if (request.method === "PATCH" && request.target.startsWith("/api/v1/nodes/w0") && lost < 3) {
        lost += 1;
        throw new Error("connection refused");
      }
      return handler(request, signal);
    };
    await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
    await harness.pass(20_000);
    const { target } = await harness.poolStatus("worker");
    expect(await harness.desired("worker")).toEqual({ w0: target, w1: first });
  });

  test("a paused pool renders but updates no machine [controllers-12]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    await harness.act(() =>
      harness.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: { spec: { paused: true } } }),
    );
    await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
    await harness.pass(3000);
    const { target, of } = await harness.poolStatus("worker");
    expect(target).not.toBe(first);
    expect(await harness.desired("worker")).toEqual({ w0: first });
    expect(of("Updating")).toMatchObject({ status: "False", reason: "Paused" });
    await harness.act(() =>
      harness.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: { spec: { paused: false } } }),
    );
    await harness.pass(2000);
    expect(await harness.desired("worker")).toEqual({ w0: target });
  });

  test("an annotation says whether a control-plane machine is the only one [controllers-13]", async () => {
    const harness = await Harness.make();
    await harness.act(() => harness.node("m0", "master"));
    harness.start();
    await harness.pass(5000);
    expect((await harness.node_("m0")).metadata.annotations?.[annotations.controlPlaneTopology]).toBe("SingleReplica");
    await harness.act(() => harness.node("m1", "master"));
    await harness.pass(3000);
    expect((await harness.node_("m0")).metadata.annotations?.[annotations.controlPlaneTopology]).toBe(
      "HighlyAvailable",
    );
    expect(Object.values(await harness.desired("master")).filter((desired) => desired !== "")).toHaveLength(1);
  });

  test("kubelets' heartbeats cause no write [controllers-11]", async () => {
    const { harness } = await updatedPool(["w0", "w1"]);
    await harness.pass(5000);
    let writes = 0;
    harness.intercept = (handler) => (request, signal) => {
      if (request.method !== "GET" && !request.target.includes("/leases/")) writes += 1;
      return handler(request, signal);
    };
    for (let beat = 0; beat < 5; beat += 1) {
      await harness.act(() =>
        harness.kube.patch(
          kubernetes.Node,
          { name: "w0" },
          {
            type: "merge",
            body: {
              status: {
                conditions: [
                  {
                    type: "Ready",
                    status: "True",
                    lastHeartbeatTime: new Date(harness.kernel.clock.now()).toISOString(),
                  },
                ],
              },
            },
          },
          { subresource: "status" },
        ),
      );
      await harness.pass(10_000);
    }
    expect(writes).toBe(0);
  });
});
