import { describe, expect, test } from "vitest";
import { McoError } from "../api/errors.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations, hostPaths, objects } from "../api/names.ts";
import { mergePolicies } from "../core/config/disruption-policy.ts";
import { describeConsequence } from "../core/config/change.ts";
import { type Content, MachineHarness } from "../../test/support/machine-harness.ts";
import type { Ledger } from "../core/machine/observed-node.ts";

const { signal } = new AbortController();
const unit = "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n";
const policies = {
  files: [
    { path: "/etc/none", actions: [{ type: "None" as const }] },
    { path: "/etc/reload", actions: [{ type: "Reload" as const, reload: { serviceName: "crio.service" } }] },
    {
      path: "/etc/restart",
      actions: [
        { type: "DaemonReload" as const },
        { type: "Restart" as const, restart: { serviceName: "crio.service" } },
      ],
    },
    {
      path: "/etc/drain",
      actions: [{ type: "Drain" as const }, { type: "Restart" as const, restart: { serviceName: "crio.service" } }],
    },
  ],
  units: [
    {
      name: "a.service",
      actions: [{ type: "DaemonReload" as const }, { type: "Restart" as const, restart: { serviceName: "a.service" } }],
    },
  ],
};

async function settled(
  content: Content = {},
  options: Parameters<typeof MachineHarness.make>[0] = {},
): Promise<MachineHarness> {
  const harness = await MachineHarness.make({ policies, ...options });
  await harness.updatedTo("rendered-1", content);
  return harness;
}

async function goTo(harness: MachineHarness, name: string, content: Content): Promise<void> {
  await harness.config(name, content);
  await harness.desire(name);
}

const steps = (harness: MachineHarness) => harness.effects.filter((effect) => !effect.startsWith("ledger."));

describe("an update", () => {
  test.for([
    {
      title: "of a file without consequences: written, and that is all",
      files: { "/etc/none": "2" },
      actions: [],
      reason: "None",
      event: "SkipReboot",
    },
    {
      title: "of a file with a reload: the service reads it",
      files: { "/etc/reload": "2" },
      actions: ["units.reload"],
      reason: "ServiceReloaded",
      event: "ServiceReload",
    },
    {
      title: "of a file with a daemon-reload and a restart: in this order, once each",
      files: { "/etc/restart": "2" },
      actions: ["units.daemonReload", "units.restart"],
      reason: "ServiceRestarted",
      event: "ServiceRestart",
    },
    {
      title: "of files that ask for the same restart: the service restarts once, and is not reloaded besides",
      files: { "/etc/restart/one": "2", "/etc/reload": "2", "/etc/restart/more": "2" },
      actions: ["units.daemonReload", "units.restart"],
      reason: "ServiceRestarted",
      event: "ServiceRestart",
    },
  ])("$title [daemon-update-16]", async ({ files, actions, reason, event }) => {
    const harness = await settled();
    await goTo(harness, "rendered-2", { files });
    await harness.untilDone("rendered-2");
    for (const [path, text] of Object.entries(files)) expect(await harness.file(path)).toBe(text);
    // Once for the files, once for currentconfig.
    expect(steps(harness)).toEqual(["files.write", ...actions, "files.remove", "files.write"]);
    expect(await harness.events()).toContain(event);
    expect(await harness.events()).not.toContain("Drain");
    expect(harness.reboots).toEqual([]);
    expect(harness.history.find(({ path, mark }) => path === "Prepared" && mark === "end")).toMatchObject({
      reason: "Planned",
    });
    expect(await harness.condition("UpdatePostActionComplete")).toBe("False Done");
    expect(reason).not.toBe("");
  });

  test("with action Drain drains the machine, acts, and uncordons it, without a reboot [daemon-update-9]", async () => {
    const harness = await settled();
    await harness.pod("a-pod");
    await goTo(harness, "rendered-2", { files: { "/etc/drain": "2" } });
    await harness.until(
      async () => (await harness.kube.get(kubernetes.Node, { name: harness.name }))?.spec?.unschedulable === true,
      "cordoned",
    );
    expect(harness.effects).toEqual([]);
    await harness.act(() =>
      harness.kube.delete(kubernetes.Pod, { name: "a-pod", namespace: "default" }, { gracePeriodSeconds: 0 }),
    );
    await harness.untilDone("rendered-2");
    expect(steps(harness)).toContain("units.restart");
    expect(harness.reboots).toEqual([]);
  });

  test("that reboots records its pending actions before any change, and closes the ledger last [daemon-update-6]", async () => {
    const harness = await settled();
    await goTo(harness, "rendered-2", {
      files: { "/etc/app.conf": "2" },
      units: [{ name: "a.service", enabled: true, contents: unit }],
      spec: { kernelArguments: ["nosmt"] },
    });
    await harness.until(async () => harness.reboots.length === 1, "the reboot");
    const ledger = await harness.ledgerDocument<Ledger>("ledger.json");
    expect(ledger?.owes.map(describeConsequence)).toContain("reboot");
    expect(ledger).toMatchObject({
      target: "rendered-2",
      rebootsAsked: [(await harness.host.os.status(signal)).bootId],
    });
    expect(harness.effects).toEqual([
      "ledger.write",
      "ledger.write",
      "ledger.write",
      "os.stage",
      "files.write",
      "units.enable",
      "ledger.write",
      "os.reboot",
    ]);
    // Until it is proven the machine says what it was proven to have.
    expect(await harness.annotation(annotations.currentConfig)).toBe("rendered-1");
    expect(await harness.file(hostPaths.currentConfig)).toContain("rendered-1");
    harness.effects.length = 0;
    await harness.untilDone("rendered-2");
    expect(harness.effects).toEqual([
      "files.remove",
      "files.write",
      "ledger.write",
      "ledger.write",
      "ledger.remove",
      "ledger.remove",
    ]);
    expect(await harness.file(hostPaths.currentConfig)).toContain("rendered-2");
    expect(harness.reboots).toHaveLength(1);
    const events = await harness.events();
    for (const reason of [
      "Cordon",
      "Drain",
      "OSUpdateStarted",
      "OSUpdateStaged",
      "Reboot",
      "Rebooted",
      "NodeDone",
      "Uncordon",
      "ConfigDriftMonitorStopped",
      "ConfigDriftMonitorStarted",
    ])
      expect(events).toContain(reason);
  });

  test("of two hundred files is one pass over the disk; two hundred unchanged files cost nothing [daemon-update-22]", async () => {
    const many = (text: string) =>
      Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`/etc/none/${index}`, text]));
    const harness = await settled({ files: many("1") });
    await goTo(harness, "rendered-2", { files: many("2") });
    await harness.untilDone("rendered-2");
    expect(steps(harness)).toEqual(["files.write", "files.remove", "files.write"]);
    harness.effects.length = 0;
    await harness.pass(3_600_000);
    expect(harness.effects).toEqual([]);
  });

  test("whose target changes during a drain applies the newer one; back at the old one, it returns to service unchanged [daemon-update-12]", async () => {
    const harness = await settled({ files: { "/etc/app.conf": "1" } });
    await harness.pod("a-pod");
    await goTo(harness, "rendered-2", { files: { "/etc/app.conf": "2" } });
    await harness.until(
      async () => (await harness.kube.get(kubernetes.Node, { name: harness.name }))?.spec?.unschedulable === true,
      "cordoned",
    );
    await harness.desire("rendered-1");
    await harness.untilDone("rendered-1");
    expect(harness.effects).toEqual([]);
    expect(harness.reboots).toEqual([]);
  });

  test("keeps a foreign cordon [daemon-update-10]", async () => {
    const harness = await settled();
    await harness.act(() =>
      harness.kube.patch(
        kubernetes.Node,
        { name: harness.name },
        { type: "merge", body: { spec: { unschedulable: true } } },
      ),
    );
    await goTo(harness, "rendered-2", { files: { "/etc/app.conf": "2" } });
    await harness.until(
      async () =>
        (await harness.kube.get(kubernetes.Node, { name: harness.name }))?.metadata.annotations?.[annotations.state] ===
          "Done" && harness.reboots.length === 1,
      "done",
    );
    await harness.pass(60_000);
    expect((await harness.node()).spec?.unschedulable).toBe(true);
    expect(await harness.annotation(annotations.currentConfig)).toBe("rendered-2");
  });

  test.each([
    { watch: "its watch says so", behind: false },
    { watch: "its watch is behind", behind: true },
  ])(
    "drains again if the machine is uncordoned between its drain and its reboot: $watch [daemon-update-24]",
    async ({ behind }) => {
      const harness = await settled();
      let announced = 0;
      const stall = Promise.withResolvers<undefined>();
      const whileBehind = async function* whileBehind(body: AsyncIterable<string | Uint8Array>) {
        for await (const chunk of body) {
          if (announced === 1) await stall.promise;
          yield chunk;
        }
      };
      harness.intercept = (next) => async (request, signal) => {
        const answer = await next(request, signal);
        if (
          request.method === "PATCH" &&
          request.target.includes("/nodes/") &&
          String(request.body).includes('"Rebooting"')
        ) {
          announced += 1;
          if (announced > 1) return answer;
          await harness.kube.patch(
            kubernetes.Node,
            { name: harness.name },
            { type: "merge", body: { spec: { unschedulable: null } } },
          );
          await harness.kube.create(kubernetes.Pod, {
            apiVersion: "v1",
            kind: "Pod",
            metadata: { name: "came-since", namespace: "default" },
            spec: { nodeName: harness.name, terminationGracePeriodSeconds: 0, containers: [{ name: "c", image: "i" }] },
          });
        }
        // The watch goes on once the daemon has stepped back.
        if (
          request.method === "PATCH" &&
          request.target.includes("/nodes/") &&
          String(request.body).includes(`"${annotations.postConfigAction}":""`)
        )
          stall.resolve(undefined);
        return behind &&
          request.target.startsWith("/api/v1/nodes?") &&
          typeof answer.body !== "string" &&
          !(answer.body instanceof Uint8Array)
          ? { ...answer, body: whileBehind(answer.body) }
          : answer;
      };
      harness.kill();
      harness.start();
      await goTo(harness, "rendered-2", { files: { "/etc/app.conf": "2" } });
      await harness.until(() => Promise.resolve(harness.reboots.length === 1), "it reboots");
      // The first time it looked once more, and let be.
      expect(announced).toBe(2);
      expect((await harness.node()).spec?.unschedulable).toBe(true);
      const { items } = await harness.act(() => harness.kube.list(kubernetes.Pod));
      expect(items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toEqual([]);
      await harness.untilDone("rendered-2");
      expect(harness.reboots).toHaveLength(1);
    },
  );

  test("does not start before the operator has merged new policies [daemon-update-15]", async () => {
    const harness = await settled();
    const more = { files: [...policies.files, { path: "/etc/app.conf", actions: [{ type: "None" as const }] }] };
    await harness.act(() =>
      harness.kube.patch(
        MachineConfiguration,
        { name: objects.machineConfiguration },
        { type: "merge", body: { spec: { nodeDisruptionPolicy: more } } },
      ),
    );
    await goTo(harness, "rendered-2", { files: { "/etc/app.conf": "2" } });
    await harness.pass(60_000);
    expect(harness.effects).toEqual([]);
    expect(await harness.condition("UpdatePrepared")).toBe("Unknown PoliciesNotMerged");
    await harness.untilState("Degraded");
    await harness.act(async () => {
      const generation = (await harness.kube.get(MachineConfiguration, { name: objects.machineConfiguration }))
        ?.metadata.generation;
      await harness.kube.patch(
        MachineConfiguration,
        { name: objects.machineConfiguration },
        {
          type: "merge",
          body: {
            status: {
              observedGeneration: generation,
              nodeDisruptionPolicyStatus: { clusterPolicies: mergePolicies(more) },
            },
          },
        },
        { subresource: "status" },
      );
    });
    await harness.untilDone("rendered-2");
    expect(harness.reboots).toEqual([]);
  });

  test("requested by the force file is applied again with a reboot, and the file is removed [daemon-update-7]", async () => {
    const harness = await settled({ files: { "/etc/app.conf": "1" } });
    await harness.put("/etc/app.conf", "drifted");
    await harness.untilState("Degraded");
    await harness.put(hostPaths.force, "");
    await harness.untilDone("rendered-1");
    expect(await harness.file("/etc/app.conf")).toBe("1");
    expect(await harness.file(hostPaths.force)).toBeUndefined();
    expect(harness.reboots).toHaveLength(1);
    await harness.pass(600_000);
    expect(harness.reboots).toHaveLength(1);
  });

  test("whose end could not be reported is reported soon after, not with the next sweep", async () => {
    const harness = await settled();
    let isAway = true;
    harness.intercept = (next) => async (request, signal) => {
      if (isAway && request.method === "PATCH" && request.target.includes("/machineconfignodes/"))
        throw new Error("the connection was cut");
      return next(request, signal);
    };
    await goTo(harness, "rendered-2", { files: { "/etc/none": "2" } });
    await harness.untilDone("rendered-2");
    await harness.pass(25_000);
    isAway = false;
    await harness.pass(15_000);
    const object = await harness.act(() => harness.kube.get(MachineConfigNode, { name: harness.name }));
    expect(object?.status?.configVersion?.current).toBe("rendered-2");
    expect(await harness.condition("Updated")).toBe("True Updated");
    expect(await harness.condition("UpdatePostActionComplete")).toBe("False Done");
  });

  test("whose daemon ends before it could report the end is reported as over by the next one [daemon-update-25]", async () => {
    const harness = await settled();
    let isAway = false;
    harness.intercept = (next) => async (request, signal) => {
      if (isAway && request.method === "PATCH" && request.target.includes("/machineconfignodes/"))
        throw new Error("the connection was cut");
      return next(request, signal);
    };
    await harness.config("rendered-2", { files: { "/etc/app.conf": "2" } });
    await harness.desire("rendered-2");
    await harness.until(
      async () => (await harness.condition("RebootedNode")).startsWith("Unknown"),
      "the reboot is announced",
    );
    isAway = true;
    await harness.untilDone("rendered-2");
    harness.kill();
    isAway = false;
    expect(await harness.condition("RebootedNode")).toMatch(/^Unknown/);
    harness.start();
    await harness.pass(20_000);
    expect(await harness.condition("Updated")).toBe("True Updated");
    for (const type of ["UpdatePrepared", "Drained", "AppliedFiles", "UpdatePostActionComplete", "RebootedNode"])
      expect(`${type} ${await harness.condition(type)}`).toBe(`${type} False Done`);
  });

  test("goes through its conditions in order, each once, in at most eight writes [daemon-update-5]", async () => {
    const harness = await settled();
    const before = harness.requests.length;
    await goTo(harness, "rendered-2", { files: { "/etc/app.conf": "2" }, spec: { osImageURL: "os@sha256:2" } });
    await harness.until(async () => harness.reboots.length === 1, "the reboot");
    await harness.pass(2_000);
    expect(await harness.condition("UpdatePrepared")).toBe("True UpdatePrepared");
    expect(await harness.condition("ImagePulledFromRegistry")).toBe("True Pulled");
    expect(await harness.condition("Cordoned")).toMatch(/^True/);
    expect(await harness.condition("Drained")).toMatch(/^True/);
    expect(await harness.condition("AppliedFiles")).toMatch(/^True/);
    expect(await harness.condition("AppliedOSImage")).toMatch(/^True/);
    expect(await harness.condition("UpdateExecuted")).toMatch(/^True/);
    expect(await harness.condition("RebootedNode")).toBe("Unknown Rebooting");
    expect(await harness.condition("Updated")).toBe("False UpdateRequested");
    await harness.untilDone("rendered-2");
    expect(await harness.condition("Updated")).toBe("True Updated");
    expect(await harness.condition("Resumed")).toBe("True Resumed");
    expect(await harness.condition("NodeDegraded")).toBe("False AsExpected");
    const writes = harness.requests
      .slice(before)
      .filter(({ what }) => what.startsWith("PATCH") && what.includes("machineconfignodes"));
    expect(writes.length).toBeLessThanOrEqual(8);
    const order = harness.history
      .filter(({ chapter, level }) => chapter === "Update" && level === "boundary")
      .map(({ path, mark }) => `${path} ${mark}`);
    expect(order).toEqual([
      "Requested end",
      "Prepared begin",
      "Prepared end",
      "Executed/ImagePulled begin",
      "Executed/ImagePulled end",
      "Executed/Cordoned begin",
      "Executed/OS begin",
      "Executed/OS end",
      "Executed/Files begin",
      "Executed/Files end",
      "PostAction/Rebooted begin",
      "PostAction/Rebooted end",
      "Resumed end",
      "Complete/Uncordoned begin",
      "Updated end",
    ]);
  });
});

describe("what a machine cannot apply", () => {
  test.for<{ title: string; content: Content; options?: Parameters<typeof MachineHarness.make>[0]; says: string }>([
    {
      title: "disks",
      content: { ignition: { storage: { disks: [{ device: "/dev/sda", wipeTable: true }] } } },
      says: "spec.config.storage.disks",
    },
    {
      title: "a directory that is added later",
      content: { ignition: { storage: { directories: [{ path: "/etc/late" }] } } },
      says: "spec.config.storage.directories",
    },
    {
      title: "a link that is added later",
      content: { ignition: { storage: { links: [{ path: "/etc/late", target: "/etc/app.conf" }] } } },
      says: "spec.config.storage.links",
    },
    {
      title: "a file that is appended to",
      content: { ignition: { storage: { files: [{ path: "/etc/app.conf", append: [{ source: "data:,x" }] }] } } },
      says: "append",
    },
    { title: "the force file", content: { files: { [hostPaths.force]: "" } }, says: "force file" },
    {
      title: "contents from elsewhere",
      content: {
        ignition: { storage: { files: [{ path: "/etc/far", contents: { source: "https://example.com/x" } }] } },
      },
      says: "/etc/far",
    },
    {
      title: "another user than core",
      content: { ignition: { passwd: { users: [{ name: "somebody", sshAuthorizedKeys: ["ssh-ed25519 A"] }] } } },
      says: "somebody",
    },
    { title: "groups", content: { ignition: { passwd: { groups: [{ name: "g" }] } } }, says: "groups" },
    {
      title: "LUKS, which the reference ignores",
      content: { ignition: { storage: { luks: [{ name: "x", device: "/dev/sda" }] } } },
      says: "luks",
    },
    {
      title: "an owner that it does not have",
      content: {
        ignition: {
          storage: { files: [{ path: "/etc/o", user: { name: "nobody-here" }, contents: { source: "data:,x" } }] },
        },
      },
      says: "user nobody-here",
    },
    { title: "FIPS mode, switched", content: { spec: { fips: true } }, says: "FIPS" },
    {
      title: "a kernel that it cannot have",
      content: { spec: { kernelType: "64k-pages" } },
      options: { can: { images: true, kernelArguments: true, packages: true, kernelTypes: ["default", "realtime"] } },
      says: "64k-pages",
    },
    {
      title: "extensions, where packages cannot be layered",
      content: { spec: { extensions: ["usbguard"] } },
      options: { can: { images: true, kernelArguments: true, packages: false, kernelTypes: ["default"] } },
      says: "spec.extensions",
    },
    {
      title: "more bytes than are free",
      content: { files: { "/etc/none": "x".repeat(2048) } },
      options: { freeBytes: 16 * 1024 * 1024 + 1024 },
      says: "are free",
    },
  ])(
    "$title: refused by name before anything is touched, and healed by another target [daemon-update-13]",
    async ({ content, options, says }) => {
      const harness = await settled({}, options);
      await goTo(harness, "rendered-2", content);
      expect(await harness.untilState("Unreconcilable")).toContain(says);
      expect(await harness.condition("UpdatePrepared")).toBe("Unknown UpdatePreparedFailed");
      expect(await harness.condition("NodeDegraded")).toBe("True Unreconcilable");
      expect(await harness.events()).toContain("FailedToReconcile");
      expect(harness.effects).toEqual([]);
      expect((await harness.node()).spec?.unschedulable).toBeUndefined();
      await harness.desire("rendered-1");
      await harness.untilDone("rendered-1");
      expect(harness.effects).toEqual([]);
    },
  );

  test("keys in a directory of another owner [daemon-update-18]", async () => {
    const harness = await settled();
    await harness.host.files.makeFolder("/home/core/.ssh", { mode: 0o700, uid: 4711, gid: 4711 }, signal);
    await goTo(harness, "rendered-2", { keys: ["ssh-ed25519 A"] });
    expect(await harness.untilState("Unreconcilable")).toContain(".ssh of core belongs to user 4711");
    expect(harness.effects.filter((effect) => effect !== "files.makeFolder")).toEqual([]);
  });

  test("is refused where it would replace a kubeconfig that kubeadm left, whose bytes stay; another path is taken [daemon-update-kubeconfig-1]", async () => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", {});
    const path = "/etc/kubernetes/kubelet.conf";
    // As `kubeadm join` writes it.
    const kubeconfig = [
      "apiVersion: v1",
      "clusters:",
      "- cluster:",
      "    server: https://10.0.0.1:6443",
      "  name: default-cluster",
      "contexts: []",
      "kind: Config",
      "users:",
      "- name: default-auth",
      "  user: { client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem }",
      "",
    ].join("\n");
    await harness.put(path, kubeconfig, 0o600);
    await harness.config("rendered-2", { files: { [path]: "kind: KubeletConfiguration\n" } });
    await harness.desire("rendered-2");
    expect(await harness.untilState("Unreconcilable")).toContain(
      `${path}: is a kubeconfig on this machine that no MachineConfig brought`,
    );
    expect(await harness.file(path)).toBe(kubeconfig);
    await harness.config("rendered-3", { files: { "/var/lib/kubelet/config.yaml": "kind: KubeletConfiguration\n" } });
    await harness.desire("rendered-3");
    await harness.untilDone("rendered-3");
    expect(await harness.file(path)).toBe(kubeconfig);
  });

  test("a change of disks that the administrator allowed is accepted, and the disks stay [daemon-update-14]", async () => {
    const harness = await settled();
    await harness.act(async () => {
      const { metadata } = await harness.kube.patch(
        MachineConfiguration,
        { name: objects.machineConfiguration },
        { type: "merge", body: { spec: { irreconcilableValidationOverrides: { storage: ["Disks"] } } } },
      );
      await harness.kube.patch(
        MachineConfiguration,
        { name: objects.machineConfiguration },
        { type: "merge", body: { status: { observedGeneration: metadata.generation } } },
        { subresource: "status" },
      );
    });
    await goTo(harness, "rendered-2", { ignition: { storage: { disks: [{ device: "/dev/sda" }] } } });
    await harness.untilDone("rendered-2");
    expect(await harness.annotation(annotations.currentConfig)).toBe("rendered-2");
    expect(harness.effects.filter((effect) => !/^(files|ledger)\./.test(effect))).toEqual([]);
    expect(harness.reboots).toEqual([]);
  });
});

describe("the system of a machine", () => {
  test("an image is fetched before the drain; an unavailable one evicts no pod, and is retried [daemon-update-20]", async () => {
    const harness = await settled();
    let away = true;
    harness.tamper = (host) => ({
      ...host,
      os: {
        ...host.os,
        prefetch: async (image, until) => {
          if (away) throw new McoError("MCO_IMAGE_UNREACHABLE", { image, retryable: true });
          await host.os.prefetch(image, until);
        },
      },
    });
    harness.kill();
    harness.start();
    await goTo(harness, "rendered-2", { spec: { osImageURL: "os@sha256:2" } });
    await harness.untilState("Degraded");
    expect(await harness.condition("ImagePulledFromRegistry")).toBe("False PullFailed");
    expect(await harness.condition("NodeDegraded")).toBe("True ImagePullFailed");
    expect(harness.facts.osFailures).toBeGreaterThan(0);
    expect((await harness.node()).spec?.unschedulable).toBeUndefined();
    away = false;
    await harness.untilDone("rendered-2");
    expect(harness.effects.indexOf("os.prefetch")).toBeLessThan(harness.effects.indexOf("os.stage"));
    expect(harness.facts.osFailures).toBe(0);
    expect((await harness.host.os.status(signal)).booted.image).toBe("os@sha256:2");
  });

  test("an image that was removed after the fetch is fetched again", async () => {
    const harness = await settled();
    let fetches = 0;
    harness.tamper = (host) => ({
      ...host,
      os: {
        ...host.os,
        async prefetch(image, until) {
          fetches += 1;
          await host.os.prefetch(image, until);
        },
        async stage(deployment, packagesFrom, until) {
          if (fetches === 1) throw new McoError("MCO_HOST_IMAGE_UNKNOWN", { image: deployment.image });
          await host.os.stage(deployment, packagesFrom, until);
        },
      },
    });
    harness.kill();
    harness.start();
    await goTo(harness, "rendered-2", { spec: { osImageURL: "os@sha256:2" } });
    await harness.untilDone("rendered-2");
    expect(fetches).toBe(2);
  });

  test("extensions and a kernel type install their packages in one reboot; removing them uninstalls both [daemon-update-21]", async () => {
    const harness = await settled();
    await goTo(harness, "rendered-2", {
      spec: { extensions: ["kerberos", "usbguard"], kernelType: "realtime", kernelArguments: ["nosmt", 'a="x y"'] },
    });
    await harness.untilDone("rendered-2");
    expect((await harness.host.os.status(signal)).booted).toEqual({
      image: "os@sha256:1",
      kernelArguments: ["root=x", "nosmt", 'a="x y"'],
      packages: ["krb5-workstation", "libkadm5", "usbguard"],
      kernelType: "realtime",
    });
    expect(harness.reboots).toHaveLength(1);
    await harness.desire("rendered-1");
    await harness.untilDone("rendered-1");
    expect((await harness.host.os.status(signal)).booted).toEqual({
      image: "os@sha256:1",
      kernelArguments: ["root=x"],
      packages: [],
      kernelType: "default",
    });
  });

  test("missing packages keep the machine from reporting Done [daemon-update-8]", async () => {
    const harness = await settled();
    let arrived = false;
    harness.tamper = (host) => ({
      ...host,
      os: { ...host.os, installed: async (names, until) => (arrived ? host.os.installed(names, until) : []) },
    });
    await goTo(harness, "rendered-2", { spec: { extensions: ["usbguard"] } });
    harness.kill();
    harness.start();
    expect(await harness.untilState("Degraded")).toContain("usbguard");
    expect(await harness.annotation(annotations.currentConfig)).toBe("rendered-1");
    arrived = true;
    await harness.untilDone("rendered-2");
  });

  test("of a machine with a foreign OS stays as it is, while files and units are applied [daemon-update-23]", async () => {
    const harness = await settled(
      {},
      { can: { images: false, kernelArguments: false, packages: false, kernelTypes: [] } },
    );
    await goTo(harness, "rendered-2", { files: { "/etc/none": "2" }, spec: { osImageURL: "os@sha256:2" } });
    await harness.untilDone("rendered-2");
    expect(harness.reboots).toEqual([]);
    expect(await harness.file("/etc/none")).toBe("2");
  });

  test("a staged system that is superseded before the reboot is discarded [daemon-update-19]", async () => {
    const harness = await settled({ files: { "/etc/app.conf": "1" } });
    harness.goesDown = false;
    await goTo(harness, "rendered-2", { files: { "/etc/app.conf": "1" }, spec: { osImageURL: "os@sha256:2" } });
    await harness.until(async () => harness.reboots.length === 1, "the reboot is asked for");
    await harness.desire("rendered-1");
    await harness.pass(300_000);
    expect((await harness.host.os.status(signal)).staged).toBeUndefined();
  });
});

describe("a service that fails", () => {
  test("a reload needs more than systemctl's success; the files stay, and it is retried until it works [daemon-update-17]", async () => {
    const harness = await settled();
    await harness.host.breakUnits?.(["crio.service"]);
    await goTo(harness, "rendered-2", { files: { "/etc/reload": "2", "/etc/none": "2" } });
    expect(await harness.untilState("Degraded")).toContain("crio.service");
    expect(await harness.events()).toContain("FailedServiceReload");
    // The phase that failed says so, and is under way still: it is tried again.
    expect(await harness.condition("UpdatePostActionComplete")).toBe("Unknown UpdatePostActionCompleteFailed");
    expect(await harness.file("/etc/reload")).toBe("2");
    expect(await harness.annotation(annotations.currentConfig)).toBe("rendered-1");
    expect((await harness.ledgerDocument<Ledger>("ledger.json"))?.owes.map(describeConsequence)).toEqual([
      "reload crio.service",
    ]);
    await harness.host.breakUnits?.([]);
    await harness.act(() => harness.host.units.restart("crio.service", signal));
    await harness.untilDone("rendered-2");
  });

  test("actions done before it are not repeated [daemon-update-4]", async () => {
    const harness = await settled({ units: [{ name: "a.service", enabled: true, contents: unit }] });
    // It joined without a reboot, by a restart.
    const restarts = () => harness.host.counts("a.service").restarts - joined;
    const joined = harness.host.counts("a.service").restarts;
    await harness.host.breakUnits?.(["crio.service"]);
    await goTo(harness, "rendered-2", {
      files: { "/etc/restart": "2" },
      units: [{ name: "a.service", enabled: true, contents: `${unit}# 2\n` }],
    });
    await harness.untilState("Degraded");
    const requests = harness.requests.length;
    await harness.pass(600_000);
    expect(harness.effects.filter((effect) => effect === "units.daemonReload")).toHaveLength(1);
    expect(restarts()).toBeLessThanOrEqual(1);
    // Nor does trying again become a storm: its own words do not wake it.
    expect(harness.effects.filter((effect) => effect === "units.restart").length).toBeLessThan(25);
    expect(harness.requests.length - requests).toBeLessThan(60);
    expect(await harness.annotation(annotations.state)).toBe("Degraded");
    await harness.host.breakUnits?.([]);
    await harness.untilDone("rendered-2");
    expect(restarts()).toBe(1);
  });
});

describe("a reboot", () => {
  test("that does not come is requested again, reported, and counted [daemon-update-1]", async () => {
    const harness = await settled();
    harness.goesDown = false;
    await goTo(harness, "rendered-2", { files: { "/etc/app.conf": "2" } });
    await harness.until(async () => harness.reboots.length === 2, "asked again");
    expect(harness.facts.rebootFailures).toBe(1);
    expect(await harness.events()).toContain("RebootFailed");
    harness.goesDown = true;
    await harness.untilDone("rendered-2");
  });

  test("is not considered done by a daemon that starts before the machine goes down [daemon-update-3]", async () => {
    const harness = await settled();
    harness.goesDown = false;
    await goTo(harness, "rendered-2", { files: { "/etc/app.conf": "2" } });
    await harness.until(async () => harness.reboots.length === 1, "asked");
    harness.kill();
    harness.goesDown = true;
    harness.start();
    await harness.pass(500);
    expect(await harness.condition("RebootedNode")).toBe("Unknown Rebooting");
    await harness.untilDone("rendered-2");
  });
});

test("an API server that wrongly refuses a request does not degrade the machine", async () => {
  const harness = await settled();
  let refuses = true;
  harness.intercept = (next) => async (request, until) =>
    refuses && request.target.includes("/machineconfigs/")
      ? {
          status: 403,
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            kind: "Status",
            apiVersion: "v1",
            status: "Failure",
            reason: "Forbidden",
            code: 403,
            message: "not yet",
          }),
        }
      : next(request, until);
  await goTo(harness, "rendered-2", { files: { "/etc/none": "2" } });
  await harness.pass(30_000);
  expect(await harness.annotation(annotations.state)).toBe("Done");
  refuses = false;
  await harness.untilDone("rendered-2");
});

describe("an idle machine", () => {
  test("hardly uses the API server, reads only its own node and configurations, and writes nothing [daemon-update-2]", async () => {
    const harness = await settled({ files: { "/etc/app.conf": "1" } });
    await harness.pass(60_000);
    const before = harness.requests.length;
    const hours = 6;
    await harness.pass(hours * 3_600_000);
    expect((harness.requests.length - before) / (hours * 3600)).toBeLessThanOrEqual(0.02);
    expect(harness.effects).toEqual([]);
    const paths = new Set(
      harness.requests.map(({ what }) => what.replace(/\/((?:node-)?worker-0|rendered-1)(\/status)?$/, "/OWN$2")),
    );
    expect([...paths].filter((path) => !path.includes("/events")).sort()).toEqual([
      "GET /api/v1/nodes",
      "GET /api/v1/nodes/OWN",
      "GET /apis/machineconfiguration.openshift.io/v1/machineconfignodes/OWN",
      "GET /apis/machineconfiguration.openshift.io/v1/machineconfigs/OWN",
      "GET /apis/machineconfiguration.openshift.io/v1alpha1/machinestatejournals/OWN",
      "GET /apis/operator.openshift.io/v1/machineconfigurations",
      "PATCH /api/v1/nodes/OWN",
      "PATCH /apis/machineconfiguration.openshift.io/v1/machineconfignodes/OWN/status",
      "PATCH /apis/machineconfiguration.openshift.io/v1alpha1/machinestatejournals/OWN",
    ]);
  });

  test("that is edited reports the difference at once, and recovers when the edit is undone [daemon-update-11]", async () => {
    const harness = await settled({
      files: { "/etc/app.conf": "1" },
      units: [{ name: "a.service", enabled: true, contents: unit }],
    });
    await harness.put("/etc/app.conf", "2");
    expect(await harness.untilState("Degraded")).toContain("/etc/app.conf");
    expect(await harness.events()).toContain("ConfigDriftDetected");
    expect(harness.facts.driftSince).toBeGreaterThan(0);
    await harness.put("/etc/app.conf", "1");
    await harness.untilDone("rendered-1");
    expect(harness.facts.driftSince).toBeUndefined();
    // Not only bytes: a unit that somebody disabled is drift too.
    await harness.act(() => harness.host.units.disable("a.service", signal));
    expect(await harness.untilState("Degraded")).toContain("unit a.service (enablement)");
  });
});
