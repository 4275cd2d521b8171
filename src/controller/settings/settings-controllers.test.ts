import { expect, onTestFinished, test } from "vitest";
import { openshift } from "../../api/foreign/openshift.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels } from "../../api/names.ts";
import type { KubeObject, Resource } from "../../api/schema/object.ts";
import { kubeletDefaults } from "../../core/render/base-configs.ts";
import { fileText } from "../../core/render/config-file.ts";
import { generatedConfig } from "../../core/render/generated-config.ts";
import { runControllers } from "../../kube/controller.ts";
import { createEventRecorder } from "../../kube/event-recorder.ts";
import { memoryJournal } from "../../ports/journal.ts";
import { silentLogger } from "../../ports/logger.ts";
import { systemRandom } from "../../ports/node/index.ts";
import { startCluster } from "../../../test/support/controllers-harness.ts";
import { lenientKubernetesYaml } from "../../core/text/kubernetes-yaml.ts";
import { kubeletController } from "./kubelet-controller.ts";
import { kubeletDefaultsController } from "./kubelet-defaults-controller.ts";
import { runtimeController } from "./runtime-controller.ts";
import { mostTextCharacters } from "../../ignition/held-contents.ts";

const apiVersion = "machineconfiguration.openshift.io/v1";
const configDefinition = (kind: string, plural: string) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${plural}.config.openshift.io` },
  spec: {
    group: "config.openshift.io",
    names: { kind, plural, singular: kind.toLowerCase() },
    scope: "Cluster",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
});

/** A cluster with the pools, the base configurations and the controllers of settings. */
async function start() {
  const cluster = await startCluster({});
  const { kube, clock } = cluster;
  for (const kind of [KubeletConfig, ContainerRuntimeConfig, MachineConfig, MachineConfigPool])
    await kube.create(kubernetes.CustomResourceDefinition, kind.crd() as never);
  for (const [kind, plural] of [
    ["FeatureGate", "featuregates"],
    ["Node", "nodes"],
    ["APIServer", "apiservers"],
  ] as const)
    await kube.create(kubernetes.CustomResourceDefinition, configDefinition(kind, plural) as never);
  for (const name of ["master", "worker", "infra"])
    await kube.create(MachineConfigPool, {
      apiVersion,
      kind: "MachineConfigPool",
      metadata: { name, labels: { pool: name, all: "" } },
      spec: { paused: false, machineConfigSelector: { matchLabels: { [labels.role]: name } } },
    } as never);
  const owner: KubeObject = { apiVersion, kind: "ControllerConfig", metadata: { name: "c", uid: "c" } };
  for (const role of ["master", "worker"] as const)
    await kube.create(
      MachineConfig,
      generatedConfig({
        name: `01-${role}-kubelet`,
        role,
        owner,
        files: [
          {
            path: "/etc/kubernetes/kubelet.conf",
            mode: 0o644,
            text: JSON.stringify(kubeletDefaults(role, "10.0.0.10")),
          },
        ],
        generatorVersion: "g",
      }),
    );
  const end = run({ kube, clock }, "g");
  return { ...cluster, end };
}

/** Runs the controllers of a version. @returns what ends them. */
function run({ kube, clock }: Pick<Awaited<ReturnType<typeof startCluster>>, "kube" | "clock">, version: string) {
  const ports = { clock, random: systemRandom, log: silentLogger, journal: memoryJournal() };
  const ending = new AbortController();
  const given = { generatorVersion: version };
  const running = runControllers(
    [kubeletController(given), runtimeController(given), kubeletDefaultsController(given)],
    { ...ports, kube, events: createEventRecorder({ ...ports, kube, component: "controller" }), coalesceMs: 5 },
    ending.signal,
  );
  const end = async (): Promise<void> => {
    ending.abort();
    await running;
  };
  onTestFinished(end);
  return end;
}
type Cluster = Awaited<ReturnType<typeof start>>;

const kubeletConfig = (name: string, settings: object, selector: Record<string, string> = { pool: "worker" }) =>
  ({
    apiVersion,
    kind: "KubeletConfig",
    metadata: { name },
    spec: { machineConfigPoolSelector: { matchLabels: selector }, kubeletConfig: settings },
  }) as unknown as KubeletConfig;

const kubeletConf = (config: MachineConfig | undefined): Readonly<Record<string, unknown>> =>
  (lenientKubernetesYaml(fileText(config, "/etc/kubernetes/kubelet.conf", mostTextCharacters) ?? "")?.value ??
    {}) as never;

const configUntil = (cluster: Cluster, name: string, holds: (config: MachineConfig | undefined) => boolean) =>
  cluster.until(MachineConfig, { name }, holds);
const stateOf = (object: KubeletConfig | ContainerRuntimeConfig | undefined) =>
  object?.status?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
const judged = (cluster: Cluster, name: string, generation = 1) =>
  cluster.until(KubeletConfig, { name }, (one) => one?.status?.observedGeneration === generation);

const plain = "99-worker-generated-kubelet";

test("a KubeletConfig becomes a MachineConfig of its pool, follows its changes, and takes it with it [settings-controllers-1]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  await kube.create(KubeletConfig, kubeletConfig("a", { maxPods: 64 }));
  const made = await configUntil(cluster, plain, (one) => one !== undefined);
  expect(made?.metadata).toMatchObject({
    labels: { [labels.role]: "worker" },
    annotations: { [annotations.generatedByController]: "g" },
    ownerReferences: [{ kind: "KubeletConfig", name: "a", controller: true }],
  });
  expect(kubeletConf(made)).toMatchObject({ maxPods: 64, podPidsLimit: 4096 });
  const object = await judged(cluster, "a");
  expect(object?.metadata.finalizers).toEqual([plain]);
  expect(stateOf(object)).toEqual([
    "Effective True AsWritten",
    "Accepted True Applied",
    "Reconciling False UpToDate",
    "Stalled False UpToDate",
    "Success True Applied",
  ]);

  // A user's own label on the generated object stays.
  await kube.patch(MachineConfig, { name: plain }, { type: "merge", body: { metadata: { labels: { team: "a" } } } });
  await kube.patch(KubeletConfig, { name: "a" }, { type: "merge", body: { spec: { kubeletConfig: { maxPods: 65 } } } });
  const changed = await configUntil(cluster, plain, (one) => kubeletConf(one)["maxPods"] === 65);
  expect([changed?.metadata.uid, changed?.metadata.labels]).toEqual([
    made?.metadata.uid,
    { [labels.role]: "worker", team: "a" },
  ]);

  await kube.delete(KubeletConfig, { name: "a" });
  await configUntil(cluster, plain, (one) => one === undefined);
  await cluster.until(KubeletConfig, { name: "a" }, (one) => one === undefined);
});

test("an upgrade of the suite and a restart make no MachineConfig a second time, and keep what people added to it [settings-controllers-13]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  await kube.create(KubeletConfig, kubeletConfig("a", { maxPods: 64 }));
  await kube.create(ContainerRuntimeConfig, {
    apiVersion,
    kind: "ContainerRuntimeConfig",
    metadata: { name: "a" },
    spec: {
      machineConfigPoolSelector: { matchLabels: { pool: "worker" } },
      containerRuntimeConfig: { pidsLimit: 2048 },
    },
  } as never);
  const names = [plain, "99-worker-generated-containerruntime"];
  const all = (holds: (config: MachineConfig) => boolean) =>
    Promise.all(names.map((name) => configUntil(cluster, name, (one) => one !== undefined && holds(one))));
  const made = await all(() => true);
  for (const name of names)
    await kube.patch(
      MachineConfig,
      { name },
      { type: "merge", body: { metadata: { labels: { team: "a" }, annotations: { note: "ours" } } } },
    );
  await cluster.end();
  run(cluster, "h");
  const written = await all(({ metadata }) => metadata.annotations?.[annotations.generatedByController] === "h");
  expect(written.map((one) => one?.metadata)).toMatchObject(
    made.map((one) => ({
      uid: one?.metadata.uid,
      labels: { [labels.role]: "worker", team: "a" },
      annotations: { note: "ours" },
    })),
  );
});

test("one that a kubelet would refuse says so and leaves the machines what they have; repaired, it counts again [settings-controllers-2]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  const set = (maxPods: number) =>
    kube.patch(KubeletConfig, { name: "a" }, { type: "merge", body: { spec: { kubeletConfig: { maxPods } } } });
  await kube.create(KubeletConfig, kubeletConfig("a", { maxPods: 64 }));
  await judged(cluster, "a");
  await set(-5);
  const refused = await judged(cluster, "a", 2);
  expect(stateOf(refused)).toEqual([
    "Effective False Invalid",
    "Accepted False Invalid",
    "Reconciling False Invalid",
    "Stalled True Invalid",
    "Failure True Invalid",
  ]);
  expect(refused?.status?.conditions?.at(-1)?.message).toBe("spec.kubeletConfig.maxPods must be at least 0");
  expect(kubeletConf(await kube.get(MachineConfig, { name: plain }))).toMatchObject({ maxPods: 64 });
  await set(70);
  expect(stateOf(await judged(cluster, "a", 3))).toContain("Accepted True Applied");
  expect(kubeletConf(await kube.get(MachineConfig, { name: plain }))).toMatchObject({ maxPods: 70 });
});

test("of two for one pool the newer decides, the older says so, and decides again when the newer goes [settings-controllers-3]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  await kube.create(KubeletConfig, kubeletConfig("older", { maxPods: 64 }));
  await judged(cluster, "older");
  await kube.create(KubeletConfig, kubeletConfig("newer", { maxPods: 65 }));
  const newer = await judged(cluster, "newer");
  const [name = ""] = newer?.metadata.finalizers ?? [];
  expect(name > plain).toBe(true);
  expect(kubeletConf(await kube.get(MachineConfig, { name }))).toMatchObject({ maxPods: 65 });
  const isOverridden = (one: KubeletConfig | undefined) =>
    stateOf(one)?.includes("Effective False Overridden") === true;
  await cluster.until(KubeletConfig, { name: "older" }, isOverridden);
  await kube.delete(KubeletConfig, { name: "newer" });
  await cluster.until(KubeletConfig, { name: "older" }, (one) => stateOf(one)?.[0] === "Effective True AsWritten");
  await configUntil(cluster, name, (one) => one === undefined);
});

test("an object whose file a person's MachineConfig replaces says so, and counts again when that one goes [settings-controllers-10]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  await kube.create(KubeletConfig, kubeletConfig("a", { maxPods: 64 }));
  await judged(cluster, "a");
  const files = [
    { path: "/etc/kubernetes/kubelet.conf", contents: { source: "data:,kind%3A%20KubeletConfiguration" } },
  ];
  await kube.create(MachineConfig, {
    apiVersion,
    kind: "MachineConfig",
    metadata: { name: "99-worker-own", labels: { [labels.role]: "worker" } },
    spec: { config: { ignition: { version: "3.4.0" }, storage: { files } } },
  });
  const replaced = await cluster.until(
    KubeletConfig,
    { name: "a" },
    (one) => stateOf(one)?.includes("Effective False Replaced") === true,
  );
  expect(replaced?.status?.conditions?.find(({ type }) => type === "Effective")?.message).toBe(
    "machines of pool worker get /etc/kubernetes/kubelet.conf from 99-worker-own, which replaces it whole",
  );
  await kube.delete(MachineConfig, { name: "99-worker-own" });
  await cluster.until(KubeletConfig, { name: "a" }, (one) => stateOf(one)?.[0] === "Effective True AsWritten");
});

test("a pool that comes to match gets the settings; an object that matches none any more says so, and the machines keep them [settings-controllers-4]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  const label = (tuned: string | null) =>
    kube.patch(MachineConfigPool, { name: "infra" }, { type: "merge", body: { metadata: { labels: { tuned } } } });
  await kube.create(KubeletConfig, kubeletConfig("a", { maxPods: 64 }, { tuned: "yes" }));
  await cluster.until(KubeletConfig, { name: "a" }, (one) => stateOf(one)?.includes("Failure True Invalid") === true);
  await label("yes");
  const name = "99-infra-generated-kubelet";
  // A custom pool's kubelets begin with what workers have.
  expect(kubeletConf(await configUntil(cluster, name, (one) => one !== undefined))).toMatchObject({
    maxPods: 64,
    failSwapOn: false,
  });
  const made = (await kube.get(MachineConfig, { name }))?.metadata.resourceVersion;
  await label(null);
  await cluster.until(KubeletConfig, { name: "a" }, (one) => stateOf(one)?.includes("Failure True Invalid") === true);
  // What is current is not made again.
  expect((await kube.get(MachineConfig, { name }))?.metadata.resourceVersion).toBe(made);
});

test("nobody makes the controller delete or overwrite somebody else's MachineConfig [settings-controllers-5]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  const own = (name: string): MachineConfig =>
    ({
      apiVersion,
      kind: "MachineConfig",
      metadata: { name, labels: { [labels.role]: "worker" } },
      spec: { kernelArguments: ["mine"] },
    }) as unknown as MachineConfig;
  await kube.create(MachineConfig, own(plain));
  await kube.create(MachineConfig, own("99-worker-generated-kubelet-7"));
  const object = kubeletConfig("a", { maxPods: 64 });
  await kube.create(KubeletConfig, {
    ...object,
    metadata: { name: "a", finalizers: ["99-worker-generated-kubelet-7"] },
  });
  const seen = await judged(cluster, "a");
  expect(seen?.metadata.finalizers).toEqual([expect.stringMatching(/^99-worker-generated-kubelet-t[\da-z]{15}$/)]);
  await kube.delete(KubeletConfig, { name: "a" });
  await cluster.until(KubeletConfig, { name: "a" }, (one) => one === undefined);
  for (const name of [plain, "99-worker-generated-kubelet-7"])
    expect((await kube.get(MachineConfig, { name }))?.spec).toEqual({ kernelArguments: ["mine"] });
});

test("a ContainerRuntimeConfig becomes drop-ins of the container engine [settings-controllers-6]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  await kube.create(ContainerRuntimeConfig, {
    apiVersion,
    kind: "ContainerRuntimeConfig",
    metadata: { name: "a" },
    spec: {
      machineConfigPoolSelector: { matchLabels: { pool: "worker" } },
      containerRuntimeConfig: { pidsLimit: 2048, overlaySize: "8Gi" },
    },
  } as never);
  const name = "99-worker-generated-containerruntime";
  const made = await configUntil(cluster, name, (one) => one !== undefined);
  expect(fileText(made, "/etc/crio/crio.conf.d/01-ctrcfg-pidsLimit", mostTextCharacters)).toContain(
    "pids_limit = 2048",
  );
  expect(fileText(made, "/etc/containers/storage.conf", mostTextCharacters)).toContain('size = "8Gi"');
  await cluster.until(
    ContainerRuntimeConfig,
    { name: "a" },
    (one) => stateOf(one)?.includes("Success True Applied") === true,
  );
});

test("the config Node and the FeatureGate give every pool's kubelets what they say [settings-controllers-7]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  await kube.create(openshift.ConfigNode, {
    apiVersion: "config.openshift.io/v1",
    kind: "Node",
    metadata: { name: "cluster" },
    spec: { workerLatencyProfile: "MediumUpdateAverageReaction" },
  });
  const worker = await configUntil(cluster, "97-worker-generated-kubelet", (one) => one !== undefined);
  expect(kubeletConf(worker)).toMatchObject({ nodeStatusUpdateFrequency: "20s" });
  expect(worker?.spec.kernelArguments).toContain("systemd.unified_cgroup_hierarchy=1");
  const infra = await configUntil(cluster, "97-infra-generated-kubelet", (one) => one !== undefined);
  expect(infra?.spec.kernelArguments ?? []).toEqual([]);

  await kube.create(openshift.FeatureGate, {
    apiVersion: "config.openshift.io/v1",
    kind: "FeatureGate",
    metadata: { name: "cluster" },
    spec: { featureSet: "CustomNoUpgrade", customNoUpgrade: { enabled: ["NodeLogQuery", "NoSuchGate"] } },
  });
  const gates = { NodeLogQuery: true };
  const isOn = (one: MachineConfig | undefined) =>
    JSON.stringify(kubeletConf(one)["featureGates"]) === JSON.stringify(gates);
  await configUntil(cluster, "98-master-generated-kubelet", isOn);
  // With the gate, a KubeletConfig may use what it guards.
  await kube.create(KubeletConfig, kubeletConfig("a", { enableSystemLogQuery: true }));
  await configUntil(cluster, plain, (one) => isOn(one) && kubeletConf(one)["enableSystemLogQuery"] === true);
  const told = await cluster.untilAll(kubernetes.Event, {}, (events) =>
    events.some(({ reason }) => reason === "SettingsRefused"),
  );
  expect(told.find(({ reason }) => reason === "SettingsRefused")).toMatchObject({
    type: "Warning",
    message: expect.stringContaining("NoSuchGate is no gate of kubelet 1.34, and is left out") as string,
  });
});

const profile = (type: string | null) => ({ tlsSecurityProfile: type === null ? null : { type } });
const setProfile = (cluster: Cluster, type: string | null) =>
  cluster.kube.patch(openshift.APIServer, { name: "cluster" }, { type: "merge", body: { spec: profile(type) } });
const makeCluster = <T extends KubeObject>(cluster: Cluster, resource: Resource<T>, spec: object) =>
  cluster.kube.create(resource, {
    apiVersion: resource.apiVersion,
    kind: resource.kind,
    metadata: { name: "cluster" },
    spec,
  } as unknown as T);
const hasVersion = (version: string) => (one: MachineConfig | undefined) =>
  kubeletConf(one)["tlsMinVersion"] === version;
const pools = ["master", "worker", "infra"] as const;

test("the API server's TLS profile reaches every pool's kubelets without a KubeletConfig, and follows its changes [settings-controllers-8]", async () => {
  const cluster = await start();
  await makeCluster(cluster, openshift.ConfigNode, {});
  for (const pool of pools) await configUntil(cluster, `97-${pool}-generated-kubelet`, hasVersion("VersionTLS12"));
  await makeCluster(cluster, openshift.APIServer, profile("Modern"));
  for (const pool of pools) await configUntil(cluster, `97-${pool}-generated-kubelet`, hasVersion("VersionTLS13"));
  await setProfile(cluster, "Intermediate");
  for (const pool of pools) {
    const made = await configUntil(cluster, `97-${pool}-generated-kubelet`, hasVersion("VersionTLS12"));
    expect(kubeletConf(made)["tlsCipherSuites"]).toContain("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
  }
});

test("it does so where the cluster has neither a config Node nor a FeatureGate; these take over once they are there [settings-controllers-9]", async () => {
  const cluster = await start();
  await makeCluster(cluster, openshift.APIServer, profile("Modern"));
  for (const pool of pools) {
    const made = await configUntil(cluster, `96-${pool}-generated-kubelet`, hasVersion("VersionTLS13"));
    expect(made?.metadata.ownerReferences).toMatchObject([{ kind: "APIServer", name: "cluster" }]);
  }
  await setProfile(cluster, "Old");
  for (const pool of pools) await configUntil(cluster, `96-${pool}-generated-kubelet`, hasVersion("VersionTLS10"));
  // No profile of its own: kubelets have what their base configuration says.
  await setProfile(cluster, null);
  for (const pool of pools) await configUntil(cluster, `96-${pool}-generated-kubelet`, (one) => one === undefined);
  await setProfile(cluster, "Modern");
  await configUntil(cluster, "96-worker-generated-kubelet", hasVersion("VersionTLS13"));
  await makeCluster(cluster, openshift.ConfigNode, {});
  for (const pool of pools) {
    await configUntil(cluster, `97-${pool}-generated-kubelet`, hasVersion("VersionTLS13"));
    await configUntil(cluster, `96-${pool}-generated-kubelet`, (one) => one === undefined);
  }
});

test("somebody's MachineConfig under the name of the cluster's own settings is told of, and corrected by its deletion [settings-controllers-12]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  const name = "97-worker-generated-kubelet";
  const spec = { config: { ignition: { version: "3.4.0" } }, kernelArguments: ["quiet"] };
  await kube.create(MachineConfig, { apiVersion, kind: "MachineConfig", metadata: { name }, spec });
  await makeCluster(cluster, openshift.ConfigNode, {});
  await configUntil(cluster, "97-infra-generated-kubelet", (one) => one !== undefined);
  const told = await cluster.untilAll(kubernetes.Event, {}, (events) =>
    events.some(({ reason }) => reason === "SettingsRefused"),
  );
  expect(told.find(({ reason }) => reason === "SettingsRefused")?.message).toContain(
    `another writer made the MachineConfig ${name}; rename or delete that one`,
  );
  expect((await kube.get(MachineConfig, { name }))?.spec).toEqual(spec);
  await kube.delete(MachineConfig, { name });
  await configUntil(cluster, name, (one) => kubeletConf(one)["kind"] === "KubeletConfiguration");
});

test("a MachineConfig of another pool's role is no base of a pool, whatever its name [settings-controllers-20]", async () => {
  const cluster = await start();
  const { kube } = cluster;
  await kube.create(openshift.ConfigNode, {
    apiVersion: "config.openshift.io/v1",
    kind: "Node",
    metadata: { name: "cluster" },
    spec: {},
  });
  await configUntil(cluster, "97-infra-generated-kubelet", (one) => one !== undefined);
  const owner: KubeObject = { apiVersion, kind: "ControllerConfig", metadata: { name: "c", uid: "c" } };
  const text = JSON.stringify({
    ...kubeletDefaults("worker", "10.0.0.10"),
    authentication: { anonymous: { enabled: true } },
    authorization: { mode: "AlwaysAllow" },
  });
  await kube.create(
    MachineConfig,
    generatedConfig({
      name: "01-infra-kubelet",
      role: "other",
      owner,
      files: [{ path: "/etc/kubernetes/kubelet.conf", mode: 0o644, text }],
      generatorVersion: "g",
    }),
  );
  await kube.create(KubeletConfig, kubeletConfig("a", { maxPods: 64 }, { pool: "infra" }));
  const made = await configUntil(cluster, "99-infra-generated-kubelet", (one) => kubeletConf(one)["maxPods"] === 64);
  const defaults = await configUntil(cluster, "97-infra-generated-kubelet", (one) => one !== undefined);
  for (const config of [made, defaults])
    expect(kubeletConf(config)).toMatchObject({ authentication: { anonymous: { enabled: false } } });
});
