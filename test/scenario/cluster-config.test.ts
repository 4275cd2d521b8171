import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import {
  ClusterOperator,
  ControllerConfig,
  MachineConfig,
  MachineConfigNode,
  MachineConfigPool,
  OSImageStream,
  MachineConfiguration,
  MachineStateJournal,
  type Resource,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { openshift } from "../../src/api/foreign/openshift.ts";
import type { CustomResourceDefinition } from "../../src/api/foreign/kubernetes.ts";
import { InternalReleaseImage } from "../../src/api/kinds/internal-release-image.ts";
import { version } from "../../src/cli/version.ts";
import { connect } from "../../src/cli/connect.ts";
import { KubeError } from "../../src/kube/kube-error.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { networkPolicyNames } from "../../src/operator/admission-policies.ts";
import { suiteImage } from "../../src/standin/cluster/host/pod-worker.ts";
import { stockOsImage } from "../../src/standin/cluster/stock-os.ts";
import { textOfBase64 } from "../../src/core/render/base-configs.ts";
import { installManifests } from "../../src/operator/install-manifests.ts";
import { selfSigned } from "../support/self-signed.ts";
import { TestCluster, annotation, hasApiServer, machineConfig } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";

const { annotations, hostPaths, namespace, objects } = names;
const worker = "worker-0";
const registry = "registry.example.com";
const certificateOf = (name: string) => `${hostPaths.registryCas}/${name}/ca.crt`;
let cluster: TestCluster;
let bundles: Readonly<Record<"one" | "two" | "user", string>>;

const release = `quay.io/release@sha256:${"1".repeat(64)}`;

const settings = (is: (config: ControllerConfig) => boolean, what: string) =>
  cluster.until(ControllerConfig, objects.controllerConfig, is, what);
const configMap = (where: string, name: string, data: Readonly<Record<string, string | null>>) =>
  cluster.kube.apply(
    kubernetes.ConfigMap,
    { metadata: { name, namespace: where }, data: data as Record<string, string> },
    { owner: "test", force: true },
  );
const completed = ({ status, metadata }: ControllerConfig) =>
  status?.observedGeneration === metadata.generation &&
  (status?.conditions ?? []).some(
    (condition) => condition["type"] === "TemplateControllerCompleted" && condition["status"] === "True",
  );

/** The kinds of OpenShift that say how a cluster is, and one object of each, before there is any operator. */
async function makeOpenShift(): Promise<void> {
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true } as const;
  // The settings of the suite are a kind of OpenShift's as well, without the rules of this suite's own definition.
  for (const resource of [...Object.values(openshift), MachineConfiguration]) {
    const { group, kind, plural, namespaced, version: served } = resource;
    const name = `${plural}.${group}`;
    const own: CustomResourceDefinition = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name },
      spec: {
        group,
        scope: namespaced ? "Namespaced" : "Cluster",
        names: { kind, plural, singular: kind.toLowerCase() },
        versions: [
          {
            name: served,
            served: true,
            storage: true,
            schema: { openAPIV3Schema: open },
            ...(resource === MachineConfiguration ? { subresources: { status: {} } } : {}),
          },
        ],
      },
    };
    await cluster.kube.create(kubernetes.CustomResourceDefinition, own);
    await cluster.until(
      kubernetes.CustomResourceDefinition,
      name,
      ({ status }) =>
        (status?.conditions ?? []).some(({ type, status: is }) => type === "Established" && is === "True"),
      `${name} is served`,
    );
  }
  const say = (resource: Resource, body: object, name = "cluster") =>
    cluster.kube.create(resource, {
      apiVersion: resource.apiVersion,
      kind: resource.kind,
      metadata: { name },
      ...body,
    });
  await say(openshift.ClusterVersion, { status: { desired: { image: release } } }, "version");
  for (const resource of [OSImageStream, InternalReleaseImage]) {
    await cluster.kube.apply(kubernetes.CustomResourceDefinition, resource.crd() as never, { owner: "test" });
    await cluster.until(
      kubernetes.CustomResourceDefinition,
      `${resource.plural}.${resource.group}`,
      ({ status }) =>
        (status?.conditions ?? []).some(({ type, status: is }) => type === "Established" && is === "True"),
      `${resource.plural} are served`,
    );
  }
  await say(OSImageStream, { spec: { defaultStream: "rhel-9" } });
  const extensions = `quay.io/os/image@sha256:${"a".repeat(64)}`;
  await cluster.kube.patch(
    OSImageStream,
    { name: "cluster" },
    {
      type: "merge",
      body: {
        status: {
          defaultStream: "rhel-9",
          availableStreams: [{ name: "rhel-9", osImage: stockOsImage, osExtensionsImage: extensions }],
        },
      },
    },
    { subresource: "status" },
  );
  const bundle = { name: "ocp-release-bundle-4.20.1-x86_64" };
  await say(InternalReleaseImage, { spec: { releases: [bundle] } });
  const image = release.replace("quay.io", "api-int.example.com:22625");
  await cluster.kube.patch(
    InternalReleaseImage,
    { name: "cluster" },
    { type: "merge", body: { status: { releases: [{ ...bundle, image }] } } },
    { subresource: "status" },
  );
  await say(openshift.Infrastructure, {
    spec: { cloudConfig: { name: "" } },
    status: { platformStatus: { type: "None" }, controlPlaneTopology: "SingleReplica" },
  });
  await say(openshift.Network, {
    spec: { serviceNetwork: ["172.31.0.0/16"] },
    status: { networkType: "OVNKubernetes" },
  });
  await say(openshift.Dns, { spec: { baseDomain: "example.com" } });
  await say(openshift.Proxy, { spec: { trustedCA: { name: "" } }, status: {} });
  for (const name of ["openshift-config", "openshift-config-managed"])
    await cluster.kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
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
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test(
    "the operator writes ControllerConfig once every setting exists, with their values [scenario-cluster-config-2]",
    { timeout: 150_000 },
    async () => {
      const told = await cluster.until(
        ClusterOperator,
        objects.clusterOperator,
        ({ status }) => conditionOf(status?.conditions, "Progressing")?.message?.includes("Image/cluster") === true,
        "the operator waits for a setting that is missing",
      );
      expect(conditionOf(told.status?.conditions, "Degraded")?.status).toBe("False");
      expect(await cluster.kube.get(ControllerConfig, { name: objects.controllerConfig })).toBeUndefined();
      await cluster.kube.create(openshift.Image, {
        apiVersion: openshift.Image.apiVersion,
        kind: "Image",
        metadata: { name: "cluster" },
        spec: { additionalTrustedCA: { name: "registries" } },
      } as never);
      await configMap("openshift-config", "registries", { [`${registry}..5000`]: bundles.one });
      const { spec } = await settings(completed, "the settings are written");
      expect(spec).toMatchObject({
        clusterDNSIP: "172.31.0.10",
        networkType: "OVNKubernetes",
        platform: "none",
        proxy: null,
        dns: { spec: { baseDomain: "example.com" } },
        infra: { status: { controlPlaneTopology: "SingleReplica" } },
      });
      expect(textOfBase64(spec.kubeAPIServerServingCAData)).toBe(bundles.one);
      for (const pool of ["master", "worker"]) await cluster.untilRolledOut(pool, "");
      const rendered = await cluster.kube.get(MachineConfig, { name: await cluster.target("worker") });
      expect(decodeURIComponent(JSON.stringify(rendered?.spec.config))).toContain("172.31.0.10");
      await cluster.until(
        ClusterOperator,
        objects.clusterOperator,
        ({ status }) => conditionOf(status?.conditions, "Available")?.status === "True",
        "the operator is available",
      );
    },
  );

  test(
    "certificates reach a machine whose pool is paused, without drain, reboot or another configuration [scenario-cluster-config-3]",
    { timeout: 150_000 },
    async () => {
      await cluster.kube.patch(
        MachineConfigPool,
        { name: "worker" },
        { type: "merge", body: { spec: { paused: true } } },
      );
      // Something waits: the pool is paused indeed.
      const before = await cluster.target("worker");
      await cluster.kube.create(
        MachineConfig,
        machineConfig("99-worker-waits", { "/etc/waits.conf": "x\n" }) as MachineConfig,
      );
      await cluster.until(
        MachineConfigPool,
        "worker",
        ({ spec }) => spec.configuration?.name !== undefined && spec.configuration.name !== before,
        "another target",
      );
      const boot = cluster.machineState(worker).bootId;
      await expect
        .poll(
          () => [
            cluster.hostFile(worker, hostPaths.kubeletCa),
            cluster.hostFile(worker, certificateOf(`${registry}:5000`)),
          ],
          { timeout: 300_000 },
        )
        .toEqual([bundles.one, bundles.one]);

      const writes: string[] = [];
      const stop = new AbortController();
      const list = await cluster.kube.list(kubernetes.Node);
      const watching = (async () => {
        for await (const event of cluster.kube.watch(
          kubernetes.Node,
          { fieldSelector: `metadata.name=${worker}` },
          { resourceVersion: list.resourceVersion, timeoutSeconds: 300 },
          stop.signal,
        )) {
          if (event.type !== "BOOKMARK")
            writes.push(
              `${event.object.spec?.unschedulable === true ? "cordoned" : annotation(event.object, annotations.state)}`,
            );
        }
      })().catch(() => undefined);
      // The cluster is through with its bring-up: kubelets get what the API server believes its clients by now.
      await configMap("openshift-config-managed", "kube-apiserver-client-ca", { "ca-bundle.crt": bundles.two });
      await configMap("kube-system", "bootstrap", { status: "complete" });
      await configMap("openshift-config", "registries", {
        [`${registry}..5000`]: bundles.two,
        "other.example.com": bundles.one,
      });
      await expect
        .poll(
          () =>
            [hostPaths.kubeletCa, certificateOf(`${registry}:5000`), certificateOf("other.example.com")].map((path) =>
              cluster.hostFile(worker, path),
            ),
          { timeout: 300_000 },
        )
        .toEqual([bundles.two, bundles.two, bundles.one]);
      const merged = await cluster.until(
        kubernetes.ConfigMap,
        "merged-trusted-image-registry-ca",
        ({ data }) => data?.["other.example.com"] !== undefined,
        "the union is published",
        { namespace: "openshift-config-managed" },
      );
      expect(merged.data).toEqual({ [`${registry}..5000`]: bundles.two, "other.example.com": bundles.one });
      await configMap("openshift-config", "registries", {});
      await expect
        .poll(
          () => [`${registry}:5000`, "other.example.com"].map((one) => cluster.hostFile(worker, certificateOf(one))),
          { timeout: 300_000 },
        )
        .toEqual([undefined, undefined]);
      await cluster.until(
        kubernetes.ConfigMap,
        "merged-trusted-image-registry-ca",
        ({ data }) => Object.keys(data ?? {}).length === 0,
        "the last one is gone from the union, too",
        { namespace: "openshift-config-managed" },
      );
      stop.abort();
      await watching;
      expect(new Set(writes.filter((state) => state !== "Done"))).toEqual(new Set());
      expect(cluster.machineState(worker).bootId).toBe(boot);
      expect(annotation(await cluster.untilNode(worker, () => true, "there"), annotations.currentConfig)).toBe(before);
      expect(cluster.hostFile(worker, "/etc/waits.conf")).toBeUndefined();
      await cluster.kube.delete(MachineConfig, { name: "99-worker-waits" });
      await cluster.kube.patch(
        MachineConfigPool,
        { name: "worker" },
        { type: "merge", body: { spec: { paused: false } } },
      );
    },
  );

  test(
    "the API server's authorities reach a machine's kubeconfig [scenario-cluster-config-11]",
    { timeout: 60_000 },
    async () => {
      const kubeconfig = (bundle: string) =>
        stringify(
          {
            clusters: [
              {
                name: "local",
                cluster: {
                  server: "https://api",
                  "certificate-authority-data": Buffer.from(bundle).toString("base64"),
                },
              },
            ],
          },
          { lineWidth: 0, indentSeq: false },
        );
      cluster.writeHostFile(worker, hostPaths.kubeconfig, kubeconfig(bundles.one));
      await configMap("openshift-config-managed", "kube-apiserver-server-ca", {
        "ca-bundle.crt": `${bundles.one}${bundles.two}`,
      });
      await expect
        .poll(() => cluster.hostFile(worker, hostPaths.kubeconfig), { timeout: 300_000 })
        .toBe(kubeconfig(`${bundles.one}${bundles.two}`));
    },
  );

  test(
    "the cluster registry's credentials are merged once it exists, readable by root only, and never reported [scenario-cluster-config-4]",
    { timeout: 90_000 },
    async () => {
      const secret = (name: string, where: string, type: string, data: Record<string, string>) =>
        cluster.kube.create(kubernetes.Secret, {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name, namespace: where },
          type,
          data,
        });
      await secret("puller-dockercfg", namespace, "kubernetes.io/dockercfg", {
        ".dockercfg": btoa(
          JSON.stringify({ "image-registry.openshift-image-registry.svc:5000": { auth: "Y2FuYXJ5OmNhbmFyeQ==" } }),
        ),
      });
      await cluster.kube.create(kubernetes.ServiceAccount, {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { name: objects.puller, namespace },
        imagePullSecrets: [{ name: "puller-dockercfg" }],
      });
      await cluster.kube.create(ClusterOperator, {
        apiVersion: ClusterOperator.apiVersion,
        kind: "ClusterOperator",
        metadata: { name: "image-registry" },
        spec: {},
      });
      await expect
        .poll(
          () =>
            Object.keys(
              (JSON.parse(cluster.hostFile(worker, hostPaths.internalPullSecret) ?? "{}") as { auths?: object })
                .auths ?? {},
            ),
          { timeout: 40_000 },
        )
        .toEqual([
          "default-route-openshift-image-registry.apps.example.com",
          "image-registry.openshift-image-registry.svc:5000",
        ]);
      const told = JSON.stringify([
        (await cluster.kube.list(kubernetes.Event)).items,
        (await cluster.kube.list(ClusterOperator)).items,
        (await cluster.kube.list(kubernetes.Node)).items,
        (await cluster.kube.list(MachineConfig)).items,
      ]);
      expect(told).not.toContain("Y2FuYXJ5OmNhbmFyeQ==");
      await cluster.kube.delete(ClusterOperator, { name: "image-registry" });
      await expect
        .poll(() => cluster.hostFile(worker, hostPaths.internalPullSecret), { timeout: 40_000 })
        .toBeUndefined();
      // From here on, since this test compares the registries of the pull secret.
      await cluster.plantCanaries();
    },
  );

  test(
    "a broken bundle changes no machine, is reported, and blocks nothing else [scenario-cluster-config-1]",
    { timeout: 90_000 },
    async () => {
      await configMap("openshift-config", "user-ca-bundle", { "ca-bundle.crt": bundles.user });
      await settings(
        ({ spec }) => spec.additionalTrustBundle !== null && textOfBase64(spec.additionalTrustBundle) === bundles.user,
        "the user's bundle is taken over",
      );
      await configMap("openshift-config", "user-ca-bundle", { "ca-bundle.crt": "canary words" });
      await configMap("openshift-config-managed", "kube-apiserver-client-ca", { "ca-bundle.crt": bundles.one });
      const degraded = await cluster.until(
        ClusterOperator,
        objects.clusterOperator,
        ({ status }) => conditionOf(status?.conditions, "Degraded")?.status === "True",
        "told",
      );
      expect(conditionOf(degraded.status?.conditions, "Degraded")?.message).toContain("user-ca-bundle");
      expect(JSON.stringify(degraded)).not.toContain("canary words");
      const { spec } = await settings(
        (config) => textOfBase64(config.spec.kubeAPIServerServingCAData) === bundles.one,
        "the kubelets' authority is taken over all the same",
      );
      expect(textOfBase64(spec.additionalTrustBundle ?? "")).toBe(bundles.user);
      await configMap("openshift-config", "user-ca-bundle", { "ca-bundle.crt": bundles.user });
      await cluster.until(
        ClusterOperator,
        objects.clusterOperator,
        ({ status }) => conditionOf(status?.conditions, "Degraded")?.status === "False",
        "well again",
      );
    },
  );

  describe("admission", () => {
    /** A person who may do everything, and is not the operator. */
    let stranger: KubeClient;
    const closing: (() => void)[] = [];

    async function clientOf(token: string, name: string): Promise<KubeClient> {
      const kubeconfig = parse(readFileSync(cluster.kubeconfig, "utf8")) as { users: { user: object }[] };
      for (const entry of kubeconfig.users) entry.user = { token };
      const path = join(cluster.directory, `${name}.kubeconfig`);
      writeFileSync(path, stringify(kubeconfig), { mode: 0o600 });
      const connected = await connect({ kubeconfig: path, component: "test" });
      closing.push(() => connected.close());
      return connected.kube;
    }
    const tokenOf = async (where: string, account: string, spec: object) => {
      const answer = (await cluster.kube.request({
        method: "POST",
        target: `/api/v1/namespaces/${where}/serviceaccounts/${account}/token`,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec }),
      })) as { status: { token: string } };
      return answer.status.token;
    };
    /**
     * `written`, or why not. The server reads policies a moment after they are made: what they refuse is asked for
     * again.
     */
    const answer = (work: () => Promise<unknown>) =>
      work().then(
        () => "written",
        (error: unknown) =>
          error instanceof KubeError
            ? error.message
            : Promise.reject(error instanceof Error ? error : new Error(String(error))),
      );
    const refused = (work: () => Promise<unknown>, says: string) =>
      expect.poll(() => answer(work), { timeout: 300_000 }).toContain(says);
    const allowed = (work: () => Promise<unknown>) =>
      expect.poll(() => answer(work), { timeout: 300_000 }).toBe("written");

    beforeAll(async () => {
      await cluster.kube.create(kubernetes.ServiceAccount, {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { name: "stranger", namespace: "default" },
      });
      await cluster.kube.create(kubernetes.ClusterRoleBinding, {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRoleBinding",
        metadata: { name: "stranger" },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
        subjects: [{ kind: "ServiceAccount", name: "stranger", namespace: "default" }],
      });
      stranger = await clientOf(await tokenOf("default", "stranger", {}), "stranger");
    });

    afterAll(() => {
      for (const close of closing) close();
    });

    const pool = (name: string, machineConfigSelector: object | undefined, more: object = {}) =>
      ({
        apiVersion: MachineConfigPool.apiVersion,
        kind: "MachineConfigPool",
        metadata: { name },
        spec: {
          nodeSelector: { matchLabels: { "node-role.kubernetes.io/nobody": "" } },
          ...(machineConfigSelector === undefined ? {} : { machineConfigSelector }),
          ...more,
        },
      }) as MachineConfigPool;
    const tryPool = (name: string, selector: object | undefined, more?: object) => () =>
      stranger.create(MachineConfigPool, pool(name, selector, more), { dryRun: true });
    const role = (operator: string, values: readonly string[]) => ({
      matchExpressions: [{ key: names.labels.role, operator, values: [...values] }],
    });

    test("a custom pool must select the worker pool's configurations [scenario-cluster-config-5]", async () => {
      for (const selector of [
        { matchLabels: { [names.labels.role]: "infra" } },
        role("In", ["infra"]),
        role("NotIn", ["worker"]),
        { matchLabels: { other: "worker" } },
        undefined,
      ])
        await refused(
          tryPool("infra", selector),
          "must select the MachineConfigs of machineconfiguration.openshift.io/role worker",
        );
      for (const selector of [
        role("In", ["worker", "infra"]),
        role("NotIn", ["master"]),
        { matchLabels: { [names.labels.role]: "worker" } },
      ])
        await allowed(tryPool("infra", selector));
      await refused(
        () =>
          stranger.patch(
            MachineConfigPool,
            { name: "worker" },
            {
              type: "merge",
              body: { spec: { machineConfigSelector: { matchLabels: { [names.labels.role]: "else" } } } },
            },
          ),
        "must select the MachineConfigs of machineconfiguration.openshift.io/role worker",
      );
    });

    test("a pool must name an existing stream [scenario-cluster-config-6]", async () => {
      await refused(
        tryPool("infra", role("In", ["worker", "infra"]), { osImageStream: { name: "rhel-7" } }),
        "spec.osImageStream.name: OSImageStream/cluster has no stream rhel-7; it has rhel-9",
      );
      await allowed(tryPool("infra", role("In", ["worker", "infra"]), { osImageStream: { name: "rhel-9" } }));
    });

    test("MachineConfiguration is a singleton, and manages boot images only where that is possible [scenario-cluster-config-7]", async () => {
      const settingsOf = (name: string, spec: object) => () =>
        stranger.apply(MachineConfiguration, { metadata: { name }, spec } as never, { owner: "test", dryRun: true });
      const machineManagers = (resource: string) => ({
        managedBootImages: {
          machineManagers: [{ resource, apiGroup: "machine.openshift.io", selection: { mode: "All" } }],
        },
      });
      await refused(settingsOf("another", {}), "it is called cluster");
      await allowed(settingsOf("cluster", { operatorLogLevel: "Normal" }));
      await refused(settingsOf("cluster", machineManagers("machinesets")), "on GCP, AWS, VSphere and Azure only");
      await cluster.kube.patch(
        openshift.Infrastructure,
        { name: "cluster" },
        { type: "merge", body: { status: { platformStatus: { type: "VSphere" } } } },
      );
      await allowed(settingsOf("cluster", machineManagers("machinesets")));
      await refused(
        settingsOf("cluster", machineManagers("controlplanemachinesets")),
        "controlplanemachinesets can be managed on GCP, AWS and Azure only",
      );
      await cluster.kube.patch(
        openshift.Infrastructure,
        { name: "cluster" },
        { type: "merge", body: { status: { platformStatus: { type: "None" } } } },
      );
    });

    test("a stream cannot be deleted, nor a bundle of releases while the cluster runs one of them [scenario-cluster-config-8]", async () => {
      await refused(() => stranger.delete(OSImageStream, { name: "cluster" }), "cannot be deleted");
      await refused(() => stranger.delete(InternalReleaseImage, { name: "cluster" }), "the cluster runs a release");
      await cluster.kube.patch(
        openshift.ClusterVersion,
        { name: "version" },
        { type: "merge", body: { status: { desired: { image: release.replaceAll("1", "2") } } } },
      );
      await allowed(() => stranger.delete(InternalReleaseImage, { name: "cluster" }));
    });

    test("only the operator changes the suite's NetworkPolicies; others in its namespace stay free [scenario-cluster-config-9]", async () => {
      const has = (await cluster.kube.list(kubernetes.NetworkPolicy, { namespace })).items.map(
        ({ metadata }) => metadata.name,
      );
      expect(has.sort()).toEqual([...networkPolicyNames].sort());
      for (const name of networkPolicyNames) {
        await refused(() => stranger.delete(kubernetes.NetworkPolicy, { name, namespace }), "cannot be deleted");
        await refused(
          () =>
            stranger.patch(
              kubernetes.NetworkPolicy,
              { name, namespace },
              { type: "merge", body: { spec: { ingress: [{}] } } },
            ),
          "cannot be changed",
        );
      }
      const own = { name: "own", namespace };
      await allowed(() =>
        stranger.apply(kubernetes.NetworkPolicy, { metadata: own, spec: { podSelector: {} } }, { owner: "test" }),
      );
      await allowed(() =>
        stranger.patch(kubernetes.NetworkPolicy, own, { type: "merge", body: { spec: { policyTypes: ["Ingress"] } } }),
      );
      await allowed(() => stranger.delete(kubernetes.NetworkPolicy, own));
    });

    test("a daemon's token may write its own machine's objects, and no other's [scenario-cluster-config-10]", async () => {
      const pods = await cluster.kube.list(kubernetes.Pod, { namespace, labelSelector: `k8s-app=${objects.daemon}` });
      const pod = pods.items.find(({ spec }) => spec?.nodeName === worker);
      const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: pod?.metadata.name, uid: pod?.metadata.uid };
      const daemon = await clientOf(await tokenOf(namespace, objects.daemon, { boundObjectRef }), "daemon");
      const unbound = await clientOf(await tokenOf(namespace, objects.daemon, {}), "unbound");
      // These refusals are the test's own.
      cluster.refusalsAreExpected();
      const annotate = (client: KubeClient, node: string) => () =>
        client.patch(
          kubernetes.Node,
          { name: node },
          { type: "merge", body: { metadata: { annotations: { "example.com/written-by-a-test": "x" } } } },
          { dryRun: true },
        );
      const tell = (client: KubeClient, node: string) => () =>
        client.patch(
          MachineConfigNode,
          { name: node },
          { type: "merge", body: { metadata: { annotations: { "example.com/written-by-a-test": "x" } } } },
          { dryRun: true },
        );
      await allowed(annotate(daemon, worker));
      await allowed(tell(daemon, worker));
      const writeJournal = (client: KubeClient, node: string) => () =>
        client.patch(
          MachineStateJournal,
          { name: `node-${node}` },
          { type: "merge", body: { metadata: { annotations: { "example.com/written-by-a-test": "x" } } } },
          { dryRun: true },
        );
      await allowed(writeJournal(daemon, worker));
      for (const write of [
        annotate(daemon, "master-0"),
        tell(daemon, "master-0"),
        writeJournal(daemon, "master-0"),
        annotate(unbound, worker),
        tell(unbound, worker),
        writeJournal(unbound, worker),
      ])
        await refused(write, "a daemon writes only about its own machine");
      await refused(
        () =>
          daemon.patch(kubernetes.Node, { name: worker }, { type: "merge", body: { spec: { unschedulable: true } } }),
        "not its spec",
      );
    });
  });
});
