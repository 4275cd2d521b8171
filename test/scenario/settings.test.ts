import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KubeletConfig, kubernetes } from "../../src/api/index.ts";
import { labels } from "../../src/api/names.ts";
import { nano, parseQuantity } from "../../src/api/schema/quantities.ts";
import { kubeletValues } from "../../src/core/kubelet/settings-causes.ts";
import { endScenario } from "../support/end-scenario.ts";
import { TestCluster, hasApiServer } from "../support/test-cluster.ts";

let cluster: TestCluster;

const worker = "worker-0";
const kubeletConf = "/etc/kubernetes/kubelet.conf";

const settings = (kind: "KubeletConfig" | "ContainerRuntimeConfig", name: string, values: object) =>
  JSON.stringify({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind,
    metadata: { name },
    spec: {
      machineConfigPoolSelector: { matchLabels: { [`${labels.poolPrefix}worker`]: "" } },
      [kind === "KubeletConfig" ? "kubeletConfig" : "containerRuntimeConfig"]: values,
    },
  });

const apply = (manifest: string) => cluster.kubectl(["apply", "-f", "-"], { input: manifest });
const remove = (kind: string, name: string) => cluster.kubectl(["delete", kind, name]);

/** Applies something as a person does, and waits until the workers have what it makes. */
async function followed(work: () => Promise<unknown>): Promise<void> {
  const before = await cluster.target("worker");
  await work();
  await cluster.untilRolledOut("worker", before);
}

const onMachine = (path: string) => kubeletValues(cluster.hostFile(worker, kubeletConf) ?? "").get(path);
const podsOfNode = (pods: string) =>
  cluster.until(
    kubernetes.Node,
    worker,
    ({ status }) => status?.capacity?.["pods"] === pods,
    `the Node takes ${pods} pods`,
  );
const effective = (name: string, is: string) =>
  cluster.until(
    KubeletConfig,
    name,
    ({ status }) => status?.conditions?.some(({ type, reason }) => type === "Effective" && reason === is) === true,
    `the KubeletConfig ${name} is ${is}`,
  );

describe.skipIf(!hasApiServer)("settings of kubelets and container engines on a cluster of real processes", () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 1 });
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test("machines follow a KubeletConfig as planned; one that a kubelet would refuse is not stored [scenario-settings-1]", async () => {
    const manifest = settings("KubeletConfig", "pods", { maxPods: 64, systemReserved: { "ephemeral-storage": "4Gi" } });
    const plan = await cluster.mco(["plan", "-f", "-"], { input: manifest });
    expect(plan).toMatchObject({ code: 2, stdout: expect.stringContaining("      maxPods: 250 → 64\n") as string });
    expect(plan.stdout).toContain("worker-0: drain, reboot");
    await followed(() => apply(manifest));
    expect(onMachine("maxPods")).toBe("64");
    expect(cluster.hostFile(worker, "/etc/node-sizing-enabled.env")).toContain("SYSTEM_RESERVED_ES=4Gi");
    await podsOfNode("64");
    const { status } = (await cluster.kube.get(kubernetes.Node, { name: worker })) ?? expect.fail();
    const storage = (of: Readonly<Record<string, string>> | undefined) =>
      parseQuantity(of?.["ephemeral-storage"] ?? "");
    expect(storage(status?.capacity)).toBeGreaterThanOrEqual(
      (storage(status?.allocatable) ?? 0n) + 4n * 2n ** 30n * nano,
    );
    const { stdout } = await cluster.mco(["blame", kubeletConf, "--pool", "worker"]);
    expect(stdout).toContain("maxPods: 64: KubeletConfig/pods spec.kubeletConfig.maxPods");

    const wrong = await apply(
      settings("KubeletConfig", "pods", { maxPods: 64, imageGCHighThresholdPercent: 75 }),
    ).catch((error: unknown) => String(error));
    expect(JSON.stringify(wrong)).toContain("spec.kubeletConfig.imageGCLowThresholdPercent");
    expect((await cluster.kube.get(KubeletConfig, { name: "pods" }))?.metadata.generation).toBe(1);
  }, 600_000);

  test("of two objects for one pool the newer decides; when it goes, the older does again [scenario-settings-2]", async () => {
    await followed(() => apply(settings("KubeletConfig", "more", { maxPods: 99 })));
    await podsOfNode("99");
    await effective("pods", "Overridden");
    expect((await cluster.mco(["explain", "kubeletconfig/pods"])).stdout).toContain(
      "newer objects decide kubelet.conf: pool worker by more",
    );
    await followed(() => remove("kubeletconfig", "more"));
    await podsOfNode("64");
    await effective("pods", "AsWritten");
    await followed(() => remove("kubeletconfig", "pods"));
    await podsOfNode("250");
  }, 600_000);

  test("machines follow a ContainerRuntimeConfig, and lose its files with it [scenario-settings-3]", async () => {
    const dropIn = "/etc/crio/crio.conf.d/01-ctrcfg-pidsLimit";
    await followed(() => apply(settings("ContainerRuntimeConfig", "pids", { pidsLimit: 2048, overlaySize: "8Gi" })));
    expect(cluster.hostFile(worker, dropIn)).toContain("pids_limit = 2048");
    expect(cluster.hostFile(worker, "/etc/containers/storage.conf")).toContain('size = "8Gi"');
    await followed(() => remove("containerruntimeconfig", "pids"));
    expect(cluster.hostFile(worker, dropIn)).toBeUndefined();
  }, 600_000);

  test("kubelets follow the config Node and the FeatureGate, without gates that they do not have [scenario-settings-4]", async () => {
    const config = (kind: string, spec: object) =>
      JSON.stringify({ apiVersion: "config.openshift.io/v1", kind, metadata: { name: "cluster" }, spec });
    await followed(() => apply(config("Node", { workerLatencyProfile: "MediumUpdateAverageReaction" })));
    expect(onMachine("nodeStatusUpdateFrequency")).toBe('"20s"');
    const gates = { featureSet: "CustomNoUpgrade", customNoUpgrade: { enabled: ["NodeLogQuery", "NoSuchGate"] } };
    await followed(() => apply(config("FeatureGate", gates)));
    expect([onMachine("featureGates.NodeLogQuery"), onMachine("featureGates.NoSuchGate")]).toEqual(["true", undefined]);
  }, 600_000);
});
