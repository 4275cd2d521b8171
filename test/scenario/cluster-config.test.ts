import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ClusterOperator, ControllerConfig, type KubeObject, MachineConfig, MachineConfigPool, type Resource, kubernetes, names } from "../../src/api/index.ts";
import { conditionOf } from "../../src/api/object.ts";
import { openshift } from "../../src/api/openshift.ts";
import { version } from "../../src/cli/version.ts";
import { suiteImage } from "../../src/cluster/host/pod-worker.ts";
import { stockOsImage } from "../../src/cluster/stock-os.ts";
import { textOfBase64 } from "../../src/core/base-configs.ts";
import { installManifests } from "../../src/operator/install-manifests.ts";
import { selfSigned } from "../certificates/self-signed.ts";
import { TestCluster, annotation, hasApiServer, machineConfig } from "./test-cluster.ts";

const { annotations, hostPaths, namespace, objects } = names;
const worker = "worker-0";
const registry = "registry.example.com";
const certificateOf = (name: string) => `${hostPaths.registryCas}/${name}/ca.crt`;
let cluster: TestCluster;
let bundles: Readonly<Record<"one" | "two" | "user", string>>;

const settings = (is: (config: ControllerConfig) => boolean, what: string) => cluster.until(ControllerConfig, objects.controllerConfig, is, what);
const configMap = (where: string, name: string, data: Readonly<Record<string, string | null>>) => cluster.kube.apply(kubernetes.ConfigMap, { metadata: { name, namespace: where }, data: data as Record<string, string> }, { owner: "test", force: true });
const completed = ({ status, metadata }: ControllerConfig) => status?.observedGeneration === metadata.generation && (status?.conditions ?? []).some((condition) => condition["type"] === "TemplateControllerCompleted" && condition["status"] === "True");

/** The kinds of OpenShift that say how a cluster is, and one object of each, before there is any operator. */
async function makeOpenShift(): Promise<void> {
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true } as const;
  for (const { group, kind, plural, version: served } of Object.values(openshift)) {
    const name = `${plural}.${group}`;
    await cluster.kube.create(kubernetes.CustomResourceDefinition, {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name },
      spec: { group, scope: "Cluster", names: { kind, plural, singular: kind.toLowerCase() }, versions: [{ name: served, served: true, storage: true, schema: { openAPIV3Schema: open } }] },
    });
    await cluster.until(kubernetes.CustomResourceDefinition, name, ({ status }) => (status?.conditions ?? []).some(({ type, status: is }) => type === "Established" && is === "True"), `${name} is served`);
  }
  const say = <T extends KubeObject>(resource: Resource<T>, body: object) => cluster.kube.create(resource, { apiVersion: resource.apiVersion, kind: resource.kind, metadata: { name: "cluster" }, ...body } as T);
  await say(openshift.Infrastructure, { spec: { cloudConfig: { name: "" } }, status: { platformStatus: { type: "None" }, controlPlaneTopology: "SingleReplica" } });
  await say(openshift.Network, { spec: { serviceNetwork: ["172.31.0.0/16"] }, status: { networkType: "OVNKubernetes" } });
  await say(openshift.Dns, { spec: { baseDomain: "example.com" } });
  await say(openshift.Proxy, { spec: { trustedCA: { name: "" } }, status: {} });
  for (const name of ["openshift-config", "openshift-config-managed"]) await cluster.kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  await configMap("openshift-config", "initial-kube-apiserver-server-ca", { "ca-bundle.crt": bundles.one });
}

async function install(): Promise<void> {
  for (const manifest of installManifests({ image: suiteImage(version), osImage: stockOsImage, version })) {
    const resource = Object.values(kubernetes).find(({ kind }) => kind === manifest.kind) as Resource | undefined;
    if (resource !== undefined) await cluster.kube.apply(resource, manifest, { owner: "test" });
  }
}

describe.skipIf(!hasApiServer)("on a cluster with OpenShift's own settings", () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 1, operator: false });
    bundles = { one: await selfSigned("CN=one"), two: await selfSigned("CN=two"), user: await selfSigned("CN=user") };
    await makeOpenShift();
    await install();
  }, 180_000);

  afterAll(() => cluster?.stop());

  test("nothing is written before every setting is there, and then it is what they say", { timeout: 150_000 }, async () => {
    const told = await cluster.until(ClusterOperator, objects.clusterOperator, ({ status }) => conditionOf(status?.conditions, "Progressing")?.message?.includes("Image/cluster") === true, "the operator waits for a setting that is missing");
    expect(conditionOf(told.status?.conditions, "Degraded")?.status).toBe("False");
    expect(await cluster.kube.get(ControllerConfig, { name: objects.controllerConfig })).toBeUndefined();
    await cluster.kube.create(openshift.Image, { apiVersion: openshift.Image.apiVersion, kind: "Image", metadata: { name: "cluster" }, spec: { additionalTrustedCA: { name: "registries" } } } as never);
    await configMap("openshift-config", "registries", { [`${registry}..5000`]: bundles.one });
    const { spec } = await settings(completed, "the settings are written");
    expect(spec).toMatchObject({ clusterDNSIP: "172.31.0.10", networkType: "OVNKubernetes", platform: "none", proxy: null, dns: { spec: { baseDomain: "example.com" } }, infra: { status: { controlPlaneTopology: "SingleReplica" } } });
    expect(textOfBase64(spec.kubeAPIServerServingCAData)).toBe(bundles.one);
    for (const pool of ["master", "worker"]) await cluster.untilRolledOut(pool, "");
    const rendered = await cluster.kube.get(MachineConfig, { name: await cluster.target("worker") });
    expect(decodeURIComponent(JSON.stringify(rendered?.spec.config))).toContain("172.31.0.10");
    await cluster.until(ClusterOperator, objects.clusterOperator, ({ status }) => conditionOf(status?.conditions, "Available")?.status === "True", "the operator is available");
  });

  test("certificates reach a machine whose pool is paused, without drain, reboot or another configuration", { timeout: 150_000 }, async () => {
    await cluster.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: { spec: { paused: true } } });
    // Something waits: the pool is paused indeed.
    const before = await cluster.target("worker");
    await cluster.kube.create(MachineConfig, machineConfig("99-worker-waits", { "/etc/waits.conf": "x\n" }) as MachineConfig);
    await cluster.until(MachineConfigPool, "worker", ({ spec }) => spec.configuration?.name !== undefined && spec.configuration.name !== before, "another target");
    const boot = cluster.machineState(worker).bootId;
    await expect.poll(() => [cluster.hostFile(worker, hostPaths.kubeletCa), cluster.hostFile(worker, certificateOf(`${registry}:5000`))], { timeout: 30_000 }).toEqual([bundles.one, bundles.one]);

    const writes: string[] = [];
    const stop = new AbortController();
    const list = await cluster.kube.list(kubernetes.Node);
    const watching = (async () => {
      for await (const event of cluster.kube.watch(kubernetes.Node, { fieldSelector: `metadata.name=${worker}` }, { resourceVersion: list.resourceVersion, timeoutSeconds: 300 }, stop.signal)) {
        if (event.type !== "BOOKMARK") writes.push(`${event.object.spec?.unschedulable === true ? "cordoned" : annotation(event.object, annotations.state)}`);
      }
    })().catch(() => undefined);
    // The cluster is through with its bring-up: kubelets get what the API server believes its clients by now.
    await configMap("openshift-config-managed", "kube-apiserver-client-ca", { "ca-bundle.crt": bundles.two });
    await configMap("kube-system", "bootstrap", { status: "complete" });
    await configMap("openshift-config", "registries", { [`${registry}..5000`]: bundles.two, "other.example.com": bundles.one });
    await expect.poll(() => [hostPaths.kubeletCa, certificateOf(`${registry}:5000`), certificateOf("other.example.com")].map((path) => cluster.hostFile(worker, path)), { timeout: 30_000 }).toEqual([bundles.two, bundles.two, bundles.one]);
    const merged = await cluster.until(kubernetes.ConfigMap, "merged-trusted-image-registry-ca", ({ data }) => data?.["other.example.com"] !== undefined, "the union is published", { namespace: "openshift-config-managed" });
    expect(merged.data).toEqual({ [`${registry}..5000`]: bundles.two, "other.example.com": bundles.one });
    await configMap("openshift-config", "registries", {});
    await expect.poll(() => [`${registry}:5000`, "other.example.com"].map((one) => cluster.hostFile(worker, certificateOf(one))), { timeout: 30_000 }).toEqual([undefined, undefined]);
    await cluster.until(kubernetes.ConfigMap, "merged-trusted-image-registry-ca", ({ data }) => Object.keys(data ?? {}).length === 0, "the last one is gone from the union, too", { namespace: "openshift-config-managed" });
    stop.abort();
    await watching;
    expect(new Set(writes.filter((state) => state !== "Done"))).toEqual(new Set());
    expect(cluster.machineState(worker).bootId).toBe(boot);
    expect(annotation(await cluster.untilNode(worker, () => true, "there"), annotations.currentConfig)).toBe(before);
    expect(cluster.hostFile(worker, "/etc/waits.conf")).toBeUndefined();
    await cluster.kube.delete(MachineConfig, { name: "99-worker-waits" });
    await cluster.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: { spec: { paused: false } } });
  });

  test("credentials for the cluster's own registry are merged once there is one, reach the machine as root's alone, and are told to nobody", { timeout: 90_000 }, async () => {
    const secret = (name: string, where: string, type: string, data: Record<string, string>) => cluster.kube.create(kubernetes.Secret, { apiVersion: "v1", kind: "Secret", metadata: { name, namespace: where }, type, data });
    await secret("puller-dockercfg", namespace, "kubernetes.io/dockercfg", { ".dockercfg": btoa(JSON.stringify({ "image-registry.openshift-image-registry.svc:5000": { auth: "Y2FuYXJ5OmNhbmFyeQ==" } })) });
    await cluster.kube.create(kubernetes.ServiceAccount, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: objects.puller, namespace }, imagePullSecrets: [{ name: "puller-dockercfg" }] });
    await cluster.kube.create(ClusterOperator, { apiVersion: ClusterOperator.apiVersion, kind: "ClusterOperator", metadata: { name: "image-registry" }, spec: {} });
    await expect.poll(() => Object.keys((JSON.parse(cluster.hostFile(worker, hostPaths.internalPullSecret) ?? "{}") as { auths?: object }).auths ?? {}), { timeout: 40_000 }).toEqual([
      "default-route-openshift-image-registry.apps.example.com",
      "image-registry.openshift-image-registry.svc:5000",
    ]);
    const told = JSON.stringify([(await cluster.kube.list(kubernetes.Event)).items, (await cluster.kube.list(ClusterOperator)).items, (await cluster.kube.list(kubernetes.Node)).items, (await cluster.kube.list(MachineConfig)).items]);
    expect(told).not.toContain("Y2FuYXJ5OmNhbmFyeQ==");
    await cluster.kube.delete(ClusterOperator, { name: "image-registry" });
    await expect.poll(() => cluster.hostFile(worker, hostPaths.internalPullSecret), { timeout: 40_000 }).toBeUndefined();
  });

  test("a broken bundle changes no machine, is told of, and keeps nothing else waiting", { timeout: 90_000 }, async () => {
    await configMap("openshift-config", "user-ca-bundle", { "ca-bundle.crt": bundles.user });
    await settings(({ spec }) => spec.additionalTrustBundle !== null && textOfBase64(spec.additionalTrustBundle) === bundles.user, "the user's bundle is taken over");
    await configMap("openshift-config", "user-ca-bundle", { "ca-bundle.crt": "canary words" });
    await configMap("openshift-config-managed", "kube-apiserver-client-ca", { "ca-bundle.crt": bundles.one });
    const degraded = await cluster.until(ClusterOperator, objects.clusterOperator, ({ status }) => conditionOf(status?.conditions, "Degraded")?.status === "True", "told");
    expect(conditionOf(degraded.status?.conditions, "Degraded")?.message).toContain("user-ca-bundle");
    expect(JSON.stringify(degraded)).not.toContain("canary words");
    const { spec } = await settings((config) => textOfBase64(config.spec.kubeAPIServerServingCAData) === bundles.one, "the kubelets' authority is taken over all the same");
    expect(textOfBase64(spec.additionalTrustBundle ?? "")).toBe(bundles.user);
    await configMap("openshift-config", "user-ca-bundle", { "ca-bundle.crt": bundles.user });
    await cluster.until(ClusterOperator, objects.clusterOperator, ({ status }) => conditionOf(status?.conditions, "Degraded")?.status === "False", "well again");
  });
});
