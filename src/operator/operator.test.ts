import { describe, expect, test, vi } from "vitest";
import { untilSeen } from "../../test/support/until-seen.ts";
import { installed, lookedAgain, startOperator as start, until } from "../../test/support/operator-harness.ts";
import { ClusterOperator } from "../api/foreign/cluster-operator.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { type DaemonSet, type Deployment, type Event, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, finalizers, joinNamespace, labels, namespace, objects } from "../api/names.ts";
import { type KubeObject, conditionOf } from "../api/schema/object.ts";
import { openshift } from "../api/foreign/openshift.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { isForbidden } from "../kube/kube-error.ts";

describe("the operator", () => {
  test("installs kinds, rights, settings, pools and components, and says how far it is [operator-1]", async () => {
    const { kube } = await start();
    await installed(kube);
    const operator = await until(
      kube,
      ClusterOperator,
      { name: objects.clusterOperator },
      ({ status }) => conditionOf(status?.conditions, "Progressing")?.status === "True",
    );
    expect(conditionOf(operator.status?.conditions, "Available")?.status).toBe("False");
    const settings = await until(
      kube,
      MachineConfiguration,
      { name: "cluster" },
      ({ status }) => status?.observedGeneration !== undefined,
    );
    expect(
      settings.status?.nodeDisruptionPolicyStatus?.clusterPolicies?.files?.some(
        ({ path }) => path === "/etc/containers/registries.conf",
      ),
    ).toBe(true);
    await until(
      kube,
      MachineConfigPool,
      { name: "master" },
      ({ metadata }) => metadata.labels?.[labels.requiredForUpgrade] === "",
    );
    const config = await until(kube, ControllerConfig, { name: objects.controllerConfig }, () => true);
    expect(config.spec.baseOSContainerImage).toBe("os@sha256:0");
    expect(config.metadata.annotations?.[annotations.generatedByVersion]).toBe("1.0.0");
    const node = await until(kube, MachineConfigNode, { name: "worker-0" }, () => true);
    expect(node.spec.pool.name).toBe("worker");
    const deployment = await until(kube, kubernetes.Deployment, { name: objects.controller, namespace }, () => true);
    expect(deployment.spec?.template.spec?.containers[0]?.image).toBe("suite:1");
    await until(kube, kubernetes.DaemonSet, { name: objects.daemon, namespace }, () => true);
  });

  test("notes the API server's hosts that kubeadm publishes, for the approver of certificates [attack-joining-18]", async () => {
    const { kube } = await start();
    await installed(kube);
    const server = "clusters: [{cluster: {server: https://cp.example.com:6443}}]";
    await kube.create(kubernetes.ConfigMap, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "cluster-info", namespace: "kube-public" },
      data: { kubeconfig: server },
    });
    const noted = ({ metadata }: ControllerConfig) => metadata.annotations?.[annotations.apiServerHosts];
    const config = await until(kube, ControllerConfig, { name: objects.controllerConfig }, (one) => noted(one) !== "");
    expect(noted(config)).toBe("cp.example.com");
  });

  test("notes the addresses that API servers publish of themselves [attack-joining-38]", async () => {
    const { group, version, kind, plural } = kubernetes.EndpointSlice;
    const slices: Readonly<Record<string, string>> = { kubernetes: "192.0.2.7", "of-a-tenant": "192.0.2.8" };
    const { kube } = await start(async (admin) => {
      // The API server of a cluster on one machine does not serve the kind.
      await admin.create(kubernetes.CustomResourceDefinition, {
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: {
          name: `${plural}.${group}`,
          annotations: { "api-approved.kubernetes.io": "unapproved, for a test" },
        },
        spec: {
          group,
          scope: "Namespaced",
          names: { kind, plural, singular: "endpointslice", listKind: "EndpointSliceList" },
          versions: [
            {
              name: version,
              served: true,
              storage: true,
              schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
            },
          ],
        },
      } as never);
      for (const [name, address] of Object.entries(slices))
        await untilSeen(
          "EndpointSlices are served",
          () =>
            admin
              .create(kubernetes.EndpointSlice, {
                apiVersion: `${group}/${version}`,
                kind,
                metadata: { name, namespace: "default" },
                endpoints: [{ addresses: [address] }],
              })
              .then(
                () => true,
                () => false,
              ),
          (isMade) => isMade,
        );
    });
    await installed(kube);
    const noted = ({ metadata }: ControllerConfig) => metadata.annotations?.[annotations.apiServerHosts];
    const config = await until(kube, ControllerConfig, { name: objects.controllerConfig }, (one) => noted(one) !== "");
    expect(noted(config)).toBe("192.0.2.7");
  });

  test("is degraded for as long as the base configurations cannot be made, and says why [operator-7]", async () => {
    const { kube } = await start();
    await installed(kube);
    await until(kube, ControllerConfig, { name: objects.controllerConfig }, () => true);
    const condition = (status: "True" | "False") => ({
      type: "TemplateControllerFailing",
      status,
      reason: "",
      message: "secrets is forbidden",
      lastTransitionTime: "2030-01-01T00:00:00Z",
    });
    const say = (status: "True" | "False") =>
      kube.patch(
        ControllerConfig,
        { name: objects.controllerConfig },
        { type: "merge", body: { status: { observedGeneration: 1, conditions: [condition(status)] } } },
        { subresource: "status" },
      );
    await say("True");
    const degraded = await until(
      kube,
      ClusterOperator,
      { name: objects.clusterOperator },
      ({ status }) => conditionOf(status?.conditions, "Degraded")?.status === "True",
    );
    expect(conditionOf(degraded.status?.conditions, "Degraded")).toMatchObject({
      reason: "ControllerConfigFailed",
      message: "ControllerConfig: the base configurations cannot be made: secrets is forbidden",
    });
    await say("False");
    await until(
      kube,
      ClusterOperator,
      { name: objects.clusterOperator },
      ({ status }) => conditionOf(status?.conditions, "Degraded")?.status === "False",
    );
  });

  test("a new version rolls out its controller, then its settings, then the daemons, and takes nothing of a release that is not its own [operator-2]", async () => {
    const { kube, replaceOperator } = await start();
    await installed(kube);
    const controller = { name: objects.controller, namespace };
    const rolledOut = async (image: string) => {
      const { metadata } = await until(
        kube,
        kubernetes.Deployment,
        controller,
        ({ spec }) => spec?.template.spec?.containers[0]?.image === image,
      );
      await kube.patch(
        kubernetes.Deployment,
        controller,
        {
          type: "merge",
          body: {
            status: {
              observedGeneration: metadata.generation,
              replicas: 1,
              updatedReplicas: 1,
              readyReplicas: 1,
              availableReplicas: 1,
            },
          },
        },
        { subresource: "status" },
      );
    };
    const settings = (is: (config: ControllerConfig) => boolean) =>
      until(kube, ControllerConfig, { name: objects.controllerConfig }, is);
    const byVersion = ({ metadata }: ControllerConfig) => metadata.annotations?.[annotations.generatedByVersion];
    const daemonImage = async () =>
      (await kube.get(kubernetes.DaemonSet, { name: objects.daemon, namespace }))?.spec?.template.spec?.containers[0]
        ?.image;
    const says = (words: string) =>
      until(
        kube,
        ClusterOperator,
        { name: objects.clusterOperator },
        ({ status }) => conditionOf(status?.conditions, "Progressing")?.message?.includes(words) === true,
      );
    await rolledOut("suite:1");
    await settings((config) => byVersion(config) === "1.0.0");
    await until(kube, kubernetes.DaemonSet, { name: objects.daemon, namespace }, () => true);

    // The images of the next release come first: the old operator does not touch them.
    await kube.patch(
      kubernetes.ConfigMap,
      { name: objects.osImageConfigMap, namespace },
      { type: "merge", body: { data: { releaseVersion: "2.0.0", baseOSContainerImage: "os@sha256:2" } } },
    );
    await says("release 2.0.0");
    expect((await settings(() => true)).spec.baseOSContainerImage).toBe("os@sha256:0");

    await replaceOperator("2.0.0", "suite:2");
    await until(
      kube,
      kubernetes.Deployment,
      controller,
      ({ spec }) => spec?.template.spec?.containers[0]?.image === "suite:2",
    );
    await says("the controller is being started");
    const before = await settings(() => true);
    expect([byVersion(before), before.spec.baseOSContainerImage, await daemonImage()]).toEqual([
      "1.0.0",
      "os@sha256:0",
      "suite:1",
    ]);

    await rolledOut("suite:2");
    const after = await settings((config) => byVersion(config) === "2.0.0");
    expect(after.spec.baseOSContainerImage).toBe("os@sha256:2");
    await until(
      kube,
      kubernetes.DaemonSet,
      { name: objects.daemon, namespace },
      ({ spec }) => spec?.template.spec?.containers[0]?.image === "suite:2",
    );
  });

  test("the level of logs that the settings ask for is the operator's own and its components' [operator-8]", async () => {
    const { kube, logLevel } = await start();
    await installed(kube);
    const levelOf = ({
      spec,
    }: {
      readonly spec?: {
        readonly template: {
          readonly spec?: {
            readonly containers: readonly {
              readonly env?: readonly { readonly name: string; readonly value?: string }[];
            }[];
          };
        };
      };
    }) => spec?.template.spec?.containers[0]?.env?.find(({ name }) => name === "MCO_LOG_LEVEL")?.value;
    const components = (level: string | undefined) =>
      Promise.all([
        until(kube, kubernetes.Deployment, { name: objects.controller, namespace }, (one) => levelOf(one) === level),
        until(kube, kubernetes.DaemonSet, { name: objects.daemon, namespace }, (one) => levelOf(one) === level),
      ]);
    await components(undefined);
    await kube.patch(
      MachineConfiguration,
      { name: "cluster" },
      { type: "merge", body: { spec: { operatorLogLevel: "Trace" } } },
    );
    await components("debug");
    expect(logLevel()).toBe("debug");
    await kube.patch(
      MachineConfiguration,
      { name: "cluster" },
      { type: "merge", body: { spec: { operatorLogLevel: "Normal" } } },
    );
    await components(undefined);
    expect(logLevel()).toBe("info");
  });

  test("the API server's authorities are handed on at once the first time, and later once they have stayed the same for a while [operator-9]", async () => {
    const { kube } = await start();
    await installed(kube);
    const publish = (bundle: string) =>
      kube.apply(
        kubernetes.ConfigMap,
        {
          metadata: { name: "kube-apiserver-server-ca", namespace },
          data: { "ca-bundle.crt": bundle },
        },
        { owner: "test" },
      );
    const handed: string[] = [];
    const stop = new AbortController();
    const watching = (async () => {
      for await (const event of kube.watch(
        kubernetes.ConfigMap,
        { namespace },
        { resourceVersion: (await kube.list(kubernetes.ConfigMap)).resourceVersion, timeoutSeconds: 60 },
        stop.signal,
      )) {
        if (event.type !== "BOOKMARK" && event.object.metadata.name === objects.kubeconfigData)
          handed.push(event.object.data?.["ca-bundle.crt"] ?? "");
      }
    })().catch(() => undefined);
    const handedOn = (bundle: string) =>
      until(
        kube,
        kubernetes.ConfigMap,
        { name: objects.kubeconfigData, namespace },
        ({ data }) => data?.["ca-bundle.crt"] === bundle,
      );
    await publish("one");
    await handedOn("one");
    await publish("step");
    await publish("two");
    await handedOn("two");
    await until(
      kube,
      ControllerConfig,
      { name: objects.controllerConfig },
      ({ metadata }) => metadata.annotations?.[annotations.serviceCaRotate] === "false",
    );
    stop.abort();
    await watching;
    expect(handed).toEqual(["one", "two"]);
  });

  test("shows its image, one line on each pool, and writes nothing while nothing changes [operator-6]", async () => {
    const { kube } = await start();
    await installed(kube);
    const operator = await until(
      kube,
      ClusterOperator,
      { name: objects.clusterOperator },
      ({ status }) => Object.keys(status?.extension ?? {}).join() === "master,worker",
    );
    expect(operator.status?.extension).toMatchObject({ worker: "pool has no configuration yet" });
    await until(
      kube,
      ClusterOperator,
      { name: objects.clusterOperator },
      ({ status }) => conditionOf(status?.conditions, "Progressing")?.message === "the controller is being started",
    );
    const settled = async () =>
      [
        await kube.get(MachineConfiguration, { name: "cluster" }),
        await kube.get(ClusterOperator, { name: objects.clusterOperator }),
        await kube.get(ControllerConfig, { name: objects.controllerConfig }),
      ].map((object) => object?.metadata.resourceVersion);
    const before = await settled();
    // A change that starts passes and changes nothing, until the operator's next write, which is the pool's label.
    await kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { metadata: { labels: { [labels.builtInPool]: null } } } },
    );
    await until(
      kube,
      MachineConfigPool,
      { name: "worker" },
      ({ metadata }) => metadata.labels?.[labels.builtInPool] === "",
    );
    await kube.patch(
      MachineConfigPool,
      { name: "master" },
      { type: "merge", body: { metadata: { labels: { [labels.builtInPool]: null } } } },
    );
    await until(
      kube,
      MachineConfigPool,
      { name: "master" },
      ({ metadata }) => metadata.labels?.[labels.builtInPool] === "",
    );
    expect(await settled()).toEqual(before);
  });

  test("keeps the labels of its pools and leaves their spec alone [operator-5]", async () => {
    const { kube } = await start();
    await installed(kube);
    await until(kube, MachineConfigPool, { name: "worker" }, () => true);
    await kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { metadata: { labels: { [labels.builtInPool]: null } }, spec: { maxUnavailable: 3 } } },
    );
    const pool = await until(
      kube,
      MachineConfigPool,
      { name: "worker" },
      ({ metadata }) => metadata.labels?.[labels.builtInPool] === "",
    );
    expect(pool.spec.maxUnavailable).toBe(3);
  });

  test("a policy of the administrator comes into force [operator-3]", async () => {
    const { kube } = await start();
    await installed(kube);
    await until(kube, MachineConfiguration, { name: "cluster" }, () => true);
    await kube.patch(
      MachineConfiguration,
      { name: "cluster" },
      {
        type: "merge",
        body: { spec: { nodeDisruptionPolicy: { files: [{ path: "/etc/a", actions: [{ type: "None" }] }] } } },
      },
    );
    const settings = await until(
      kube,
      MachineConfiguration,
      { name: "cluster" },
      ({ status, metadata }) =>
        status?.observedGeneration === metadata.generation &&
        status?.nodeDisruptionPolicyStatus?.clusterPolicies?.files?.some(({ path }) => path === "/etc/a") === true,
    );
    expect(settings.status?.nodeDisruptionPolicyStatus?.clusterPolicies?.files).toContainEqual({
      path: "/etc/a",
      actions: [{ type: "None" }],
    });
  });

  test.for([
    { hostIP: "127.9.9.10", reached: { url: "https://127.9.9.10:9443/validate" }, services: 0 },
    {
      hostIP: "192.0.2.7",
      reached: { service: { namespace, name: objects.controller, path: "/validate", port: 443 } },
      services: 4,
    },
  ])("the controller on $hostIP is asked before objects are stored", async ({ hostIP, reached, services }) => {
    const { kube } = await start();
    await installed(kube);
    const deployment = await until(kube, kubernetes.Deployment, { name: objects.controller, namespace }, () => true);
    await kube.create(kubernetes.Pod, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "controller", namespace, labels: deployment.spec?.template.metadata?.labels ?? {} },
      spec: { containers: [{ name: "c", image: "i" }] },
    });
    await kube.patch(
      kubernetes.Pod,
      { name: "controller", namespace },
      { type: "merge", body: { status: { phase: "Running", hostIP } } },
      { subresource: "status" },
    );
    const { webhooks = [] } = await until(
      kube,
      kubernetes.ValidatingWebhookConfiguration,
      { name: "machine-config-admission" },
      () => true,
    );
    expect(webhooks).toMatchObject([{ clientConfig: reached, failurePolicy: "Ignore", timeoutSeconds: 5 }]);
    const { items } = await kube.list(kubernetes.Service, { namespace });
    expect(items).toHaveLength(services);
    const serving = items.map(({ metadata, spec }) => [
      metadata.name,
      spec?.selector,
      spec?.ports?.map(({ port, targetPort }) => [port, targetPort]),
    ]);
    if (services > 0)
      expect(serving).toEqual([
        [objects.controller, deployment.spec?.selector.matchLabels, [[443, 9443]]],
        [objects.configServer, { "k8s-app": objects.configServer }, [[443, 9447]]],
        [objects.osBuilder, { "k8s-app": objects.osBuilder }, [[443, 9446]]],
        [objects.state, { "k8s-app": objects.state }, [[443, 9444]]],
      ]);
  });

  test("on plain Kubernetes installs the policies whose kinds are there, those that only warn, and the NetworkPolicies [operator-11]", async () => {
    const { kube } = await start();
    await installed(kube);
    await until(kube, kubernetes.NetworkPolicy, { name: "allow-machine-state-controller", namespace }, () => true);
    const policies = (await kube.list(kubernetes.ValidatingAdmissionPolicy)).items
      .map(({ metadata }) => metadata.name)
      .sort();
    expect(policies).toEqual([
      "custom-machine-config-pool-selector",
      "disruption-policy-without-file",
      "former-machines-of-nodes",
      "image-build-jobs",
      "image-build-pods",
      "internalreleaseimage-without-effect",
      "machine-config-daemon-own-node",
      "machine-configuration-guards",
      "machine-state-conditions",
      "machineconfigpool-osimagestream-reference-validation",
      "machineosconfig-push-spec",
      "networkpolicy-prevent-deletion",
      "networkpolicy-prevent-update",
      "os-builder-config-maps",
      "os-builder-deletions",
      "os-builder-machine-os-configs",
      "os-builder-opt-in",
      "os-builder-pool-status",
      "os-builder-pools",
      "osimagestream-prevent-deletion",
      "pinned-image-names",
      "pinned-image-set-without-pool",
      "rendered-and-generated-config-names",
      "rendered-config-in-use-by-build",
      "rendered-config-in-use-by-machine",
      "rendered-config-in-use-by-node",
      "rendered-config-in-use-by-pool",
    ]);
    expect((await kube.list(kubernetes.ValidatingAdmissionPolicyBinding)).items).toHaveLength(policies.length);
    expect((await kube.list(kubernetes.NetworkPolicy, { namespace })).items).toHaveLength(7);
  });

  test.for([
    { manager: "machine-config-operator", becomes: "taken over", names: "worker" },
    { manager: "somebody", becomes: "left alone", names: "theirs" },
  ])("a policy of its name that $manager made is $becomes [operator-12]", async ({ manager, names: word }) => {
    const name = "custom-machine-config-pool-selector";
    const { kube } = await start((admin) =>
      admin.apply(
        kubernetes.ValidatingAdmissionPolicy,
        {
          metadata: { name },
          spec: {
            matchConstraints: {
              resourceRules: [
                { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] },
              ],
            },
            validations: [{ expression: "true", message: "theirs" }],
          },
        },
        { owner: manager },
      ),
    );
    await installed(kube);
    await until(kube, kubernetes.NetworkPolicy, { name: "allow-machine-state-controller", namespace }, () => true);
    expect(JSON.stringify((await kube.get(kubernetes.ValidatingAdmissionPolicy, { name }))?.spec)).toContain(word);
    const told = await until(
      kube,
      ClusterOperator,
      { name: objects.clusterOperator },
      ({ status }) => status?.relatedObjects !== undefined,
    );
    const says = conditionOf(told.status?.conditions, "Degraded")?.message ?? "";
    if (manager === "somebody") expect(says).toMatch(/AdmissionPolicies: [^]*conflicts? with "somebody"/);
    else expect(says).not.toContain("conflict");
  });

  test("a pool that selects otherwise since before there was a policy goes on, as long as its selector stays [operator-10]", async () => {
    const { kube } = await start();
    await installed(kube);
    await until(kube, MachineConfigPool, { name: "worker" }, () => true);
    const selecting = (role: string) => ({ matchLabels: { [labels.role]: role } });
    const pool = (name: string) =>
      ({
        apiVersion: MachineConfigPool.apiVersion,
        kind: "MachineConfigPool",
        metadata: { name },
        spec: { machineConfigSelector: selecting("odd") },
      }) as MachineConfigPool;
    const policy = await until(
      kube,
      kubernetes.ValidatingAdmissionPolicyBinding,
      { name: "custom-machine-config-pool-selector-binding" },
      () => true,
    );
    await kube.delete(kubernetes.ValidatingAdmissionPolicyBinding, policy.metadata);
    await kube.create(MachineConfigPool, pool("odd"));
    const { resourceVersion: _, uid: __, managedFields: ___, creationTimestamp: ____, ...metadata } = policy.metadata;
    await kube.create(kubernetes.ValidatingAdmissionPolicyBinding, { ...policy, metadata });
    await expect(kube.create(MachineConfigPool, pool("odder"))).rejects.toThrow("must select");
    await kube.patch(MachineConfigPool, { name: "odd" }, { type: "merge", body: { spec: { paused: true } } });
    await expect(
      kube.patch(
        MachineConfigPool,
        { name: "odd" },
        { type: "merge", body: { spec: { machineConfigSelector: selecting("odder") } } },
      ),
    ).rejects.toThrow("must select");
  });

  test("a MachineConfigNode without a node goes [operator-4]", async () => {
    const { kube } = await start();
    await installed(kube);
    await until(kube, MachineConfigPool, { name: "worker" }, () => true);
    await kube.create(MachineConfigNode, {
      apiVersion: MachineConfigNode.apiVersion,
      kind: MachineConfigNode.kind,
      metadata: { name: "gone" },
      spec: { node: { name: "gone" }, pool: { name: "worker" }, configVersion: { desired: "x" } },
    });
    // The operator hears of it in this pass or in the next one.
    await lookedAgain(kube);
    expect(await kube.get(MachineConfigNode, { name: "gone" })).toBeUndefined();
  });

  test("a MachineConfigNode of a former Node is replaced, with what it recorded [attack-configs-6]", async () => {
    const { kube } = await start();
    await installed(kube);
    const key = { name: "worker-0" };
    const node = await kube.get(kubernetes.Node, key);
    const uid = node?.metadata.uid ?? "";
    await until(kube, MachineConfigNode, key, () => true);
    // The garbage collector has not removed it yet.
    const body = {
      metadata: {
        annotations: { [annotations.givenConfigs]: "rendered-master-0" },
        ownerReferences: [{ apiVersion: "v1", kind: "Node", ...key, uid: "former" }],
      },
    };
    await kube.patch(MachineConfigNode, key, { type: "merge", body });
    const made = await until(kube, MachineConfigNode, key, ({ metadata }) =>
      (metadata.ownerReferences ?? []).some((owner) => owner.uid === uid),
    );
    expect(made.metadata.annotations?.[annotations.givenConfigs]).toBeUndefined();
  });

  test("makes a journal for each component and each node, which goes with its node", async () => {
    const { kube } = await start();
    await installed(kube);
    for (const name of ["operator", "controller", "server", "os-builder", "node-master-0"])
      await until(kube, MachineStateJournal, { name }, ({ spec }) => spec.lines.length === 0);
    const journal = await until(kube, MachineStateJournal, { name: "node-worker-0" }, () => true);
    const node = await kube.get(kubernetes.Node, { name: "worker-0" });
    expect(journal.metadata.ownerReferences).toEqual([
      { apiVersion: "v1", kind: "Node", name: "worker-0", uid: node?.metadata.uid },
    ]);
    expect(await kube.get(MachineStateJournal, { name: "bootstrap" })).toBeUndefined();
  });

  test("the state process follows its switch, and its absence degrades nothing [operator-14]", async () => {
    const { kube } = await start();
    await installed(kube);
    const deployment = { name: objects.state, namespace };
    const made = await until(kube, kubernetes.Deployment, deployment, ({ spec }) => spec?.replicas === 1);
    expect(made.spec?.template.spec?.containers[0]?.args?.slice(0, 2)).toEqual(["state", "start"]);
    const settings = (data: Record<string, string>) =>
      kube.apply(
        kubernetes.ConfigMap,
        { metadata: { name: objects.stateConfig, namespace }, data },
        { owner: "people" },
      );
    await settings({ mode: "off" });
    await until(kube, kubernetes.Deployment, deployment, ({ spec }) => spec?.replicas === 0);
    const told = await until(
      kube,
      ClusterOperator,
      { name: objects.clusterOperator },
      ({ status }) => conditionOf(status?.conditions, "Progressing")?.message === "the controller is being started",
    );
    expect(conditionOf(told.status?.conditions, "Degraded")?.status).toBe("False");
    await settings({ mode: "on" });
    await until(kube, kubernetes.Deployment, deployment, ({ spec }) => spec?.replicas === 1);
  });

  test("the builder is a pod of its own, there while some pool boots images and until it has cleaned up after the last [operator-16]", async () => {
    const { kube } = await start();
    await installed(kube);
    const deployment = { name: objects.osBuilder, namespace };
    await until(kube, MachineConfigPool, { name: "worker" }, () => true);
    expect(await kube.get(kubernetes.Deployment, deployment)).toBeUndefined();
    const label = (value: string | null) =>
      kube.patch(
        MachineConfigPool,
        { name: "worker" },
        { type: "merge", body: { metadata: { labels: { [annotations.layeringEnabled]: value } } } },
      );
    await label("");
    const made = await until(kube, kubernetes.Deployment, deployment, () => true);
    expect(made.spec?.template.spec?.containers[0]?.args?.slice(0, 2)).toEqual(["os-builder", "start"]);
    expect(made.spec?.template.spec?.serviceAccountName).toBe(objects.osBuilder);
    const finalizer = finalizers.osBuildCleanup;
    await kube.create(MachineOSConfig, {
      apiVersion: MachineOSConfig.apiVersion,
      kind: MachineOSConfig.kind,
      metadata: { name: "worker", finalizers: [finalizer] },
      spec: {
        machineConfigPool: { name: "worker" },
        imageBuilder: { imageBuilderType: "Job" },
        renderedImagePushSecret: { name: "push" },
        renderedImagePushSpec: "registry.example.com/os:x",
      },
    });
    await label(null);
    await kube.delete(MachineOSConfig, { name: "worker" });
    // The operator has seen the deletion once it has acted on a later change.
    await kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: { spec: { maxUnavailable: 2 } } });
    await kube.apply(
      kubernetes.ConfigMap,
      { metadata: { name: objects.stateConfig, namespace }, data: { mode: "off" } },
      { owner: "people" },
    );
    await until(kube, kubernetes.Deployment, { name: objects.state, namespace }, ({ spec }) => spec?.replicas === 0);
    expect(await kube.get(kubernetes.Deployment, deployment)).toBeDefined();
    await kube.patch(MachineOSConfig, { name: "worker" }, { type: "merge", body: { metadata: { finalizers: null } } });
    await vi.waitFor(async () => expect(await kube.get(kubernetes.Deployment, deployment)).toBeUndefined(), {
      timeout: 300_000,
      interval: 20,
    });
    // A no in one place counts more than a yes in the other.
    await kube.patch(
      MachineConfigPool,
      { name: "worker" },
      {
        type: "merge",
        body: {
          metadata: {
            labels: { [annotations.layeringEnabled]: "" },
            annotations: { [annotations.layeringEnabled]: "off" },
          },
        },
      },
    );
    await kube.apply(
      kubernetes.ConfigMap,
      { metadata: { name: objects.stateConfig, namespace }, data: { mode: "on" } },
      { owner: "people" },
    );
    await until(kube, kubernetes.Deployment, { name: objects.state, namespace }, ({ spec }) => spec?.replicas === 1);
    expect(await kube.get(kubernetes.Deployment, deployment)).toBeUndefined();
    // For a pool that has opted out, the builder only releases objects that are being deleted.
    await kube.create(MachineOSConfig, {
      apiVersion: MachineOSConfig.apiVersion,
      kind: MachineOSConfig.kind,
      metadata: { name: "worker", finalizers: [finalizer] },
      spec: {
        machineConfigPool: { name: "worker" },
        imageBuilder: { imageBuilderType: "Job" },
        renderedImagePushSecret: { name: "push" },
        renderedImagePushSpec: "registry.example.com/os:x",
      },
    });
    await kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: { spec: { maxUnavailable: 3 } } });
    await kube.apply(
      kubernetes.ConfigMap,
      { metadata: { name: objects.stateConfig, namespace }, data: { mode: "off" } },
      { owner: "people" },
    );
    await until(kube, kubernetes.Deployment, { name: objects.state, namespace }, ({ spec }) => spec?.replicas === 0);
    expect(await kube.get(kubernetes.Deployment, deployment)).toBeUndefined();
    await kube.delete(MachineOSConfig, { name: "worker" });
    await until(kube, kubernetes.Deployment, deployment, () => true);
  });

  test("wrong inputs of an image stay with its pool, whose own condition degrades the operator [operator-17]", async () => {
    const { kube } = await start();
    await installed(kube);
    await until(kube, MachineConfigPool, { name: "worker" }, () => true);
    await kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { metadata: { labels: { [annotations.layeringEnabled]: "" } } } },
    );
    const invalid = (type: string) => ({
      type: "merge" as const,
      body: {
        status: {
          conditions: [
            {
              type,
              status: "False",
              reason: "SecretMissing",
              message: "1. the Secret push is missing",
              lastTransitionTime: "2020-01-01T00:00:00Z",
            },
          ],
        },
      },
    });
    for (const name of ["infra", "worker"]) {
      await kube.create(MachineOSConfig, {
        apiVersion: MachineOSConfig.apiVersion,
        kind: MachineOSConfig.kind,
        metadata: { name },
        spec: {
          machineConfigPool: { name },
          imageBuilder: { imageBuilderType: "Job" },
          renderedImagePushSecret: { name: "push" },
          renderedImagePushSpec: "registry.example.com/os:x",
        },
      });
      await kube.patch(MachineOSConfig, { name }, invalid("InputsValid"), { subresource: "status" });
    }
    await until(kube, kubernetes.Deployment, { name: objects.osBuilder, namespace }, () => true);
    const degraded = async (is: "True" | "False") => {
      const { status } = await until(
        kube,
        ClusterOperator,
        { name: objects.clusterOperator },
        (operator) => conditionOf(operator.status?.conditions, "Degraded")?.status === is,
      );
      return conditionOf(status?.conditions, "Degraded");
    };
    await lookedAgain(kube);
    await degraded("False");
    await kube.patch(MachineConfigPool, { name: "worker" }, invalid("ImageInputsValid"), { subresource: "status" });
    expect(await degraded("True")).toMatchObject({
      reason: "DegradedPool",
      message: "pool worker: its image cannot be planned since 2020-01-01T00:00:00Z: 1. the Secret push is missing",
    });
  });

  test("reports a failing task and its recovery to the cluster's book, once each [operator-15]", async () => {
    const { kube, lines } = await start();
    await installed(kube);
    const { metadata } = await until(kube, ControllerConfig, { name: objects.controllerConfig }, () => true);
    const condition = (type: string, status: "True" | "False") => ({
      type,
      status,
      reason: "",
      message: "secrets is forbidden",
      lastTransitionTime: "2030-01-01T00:00:00Z",
    });
    for (const status of ["True", "False"] as const) {
      await kube.patch(
        ControllerConfig,
        { name: objects.controllerConfig },
        {
          type: "merge",
          body: {
            status: {
              observedGeneration: metadata.generation,
              conditions: [
                condition("TemplateControllerFailing", status),
                condition("TemplateControllerCompleted", status === "True" ? "False" : "True"),
              ],
            },
          },
        },
        { subresource: "status" },
      );
      await until(
        kube,
        ClusterOperator,
        { name: objects.clusterOperator },
        ({ status: is }) =>
          conditionOf(is?.conditions, "Degraded")?.status === status &&
          (status === "True" || lines().some(({ reason }) => reason === "SyncMended")),
      );
    }
    const told = lines().map(({ chapter, path, mark, reason }) => `${chapter} ${path} ${mark} ${reason}`);
    expect(told).toEqual([
      "Operator Start begin Started",
      "Install Begun begin InstallBegan",
      "Operator Sync/ControllerConfig fail SyncFailed",
      "Operator Sync/ControllerConfig end SyncMended",
    ]);
  });

  test("daemons wait for the policy that keeps each of them to its own machine [attack-rights-4]", async () => {
    const policy = { name: "machine-config-daemon-own-node" };
    const { kube } = await start(async (admin) => {
      const rule = { apiGroups: [""], apiVersions: ["v1"], operations: ["UPDATE"], resources: ["nodes"] };
      const matchConstraints = { resourceRules: [rule] };
      const spec = { failurePolicy: "Ignore", matchConstraints, validations: [{ expression: "true" }] };
      const manifest = { metadata: policy, spec } as unknown as KubeObject;
      await admin.apply(kubernetes.ValidatingAdmissionPolicy, manifest, { owner: "somebody" });
    });
    await installed(kube);
    const operator = { name: objects.clusterOperator };
    const degraded = ({ status }: ClusterOperator) => conditionOf(status?.conditions, "Degraded");
    await until(kube, ClusterOperator, operator, (one) => degraded(one)?.reason === "RBACFailed");
    await until(kube, ControllerConfig, { name: objects.controllerConfig }, () => true);
    await lookedAgain(kube);
    const daemons = { name: objects.daemon, namespace };
    expect(await kube.get(kubernetes.DaemonSet, daemons)).toBeUndefined();
    await kube.delete(kubernetes.ValidatingAdmissionPolicy, policy);
    await until(kube, kubernetes.DaemonSet, daemons, () => true);
  });

  test("a daemon writes Events about its own machine, and about nothing else [operator-events-1]", async () => {
    const { kube, as } = await start();
    await installed(kube);
    await until(kube, kubernetes.DaemonSet, { name: objects.daemon, namespace }, () => true);
    const account = `system:serviceaccount:${namespace}:${objects.daemon}`;
    const groups = ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
    const daemon = as({ name: account, groups, extra: { "authentication.kubernetes.io/node-name": ["worker-0"] } });
    const anywhere = as({ name: account, groups });
    const refused = async (work: Promise<unknown>) =>
      work.then(
        () => "written",
        (error: unknown) => (isForbidden(error) ? "forbidden" : String(error)),
      );
    let number = 0;
    const write = (client: KubeClient, involvedObject: object, inNamespace = "default", more: object = {}) =>
      client.create(kubernetes.Event, {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name: `e${(number += 1)}`, namespace: inNamespace },
        involvedObject,
        type: "Normal",
        reason: "Test",
        message: "x",
        ...more,
      } as unknown as Event);
    const about = (kind: string, name: string, more: object = {}) => ({ apiVersion: "v1", kind, name, ...more });

    expect(await refused(write(daemon, about("Node", "worker-0")))).toBe("written");
    expect(await refused(write(daemon, about("MachineConfigNode", "worker-0")))).toBe("written");
    // Counting an Event is an update of it.
    const count = (name: string) =>
      daemon.patch(kubernetes.Event, { name, namespace: "default" }, { type: "merge", body: { count: 2 } });
    expect(await refused(count("e1"))).toBe("written");
    const [e3, e4] = [about("Node", "master-0"), about("MachineConfigPool", "worker")];
    expect(await refused(write(daemon, e3))).toBe("forbidden");
    expect(await refused(write(daemon, e4))).toBe("forbidden");
    expect(await refused(write(daemon, about("MachineConfigNode", "master-0")))).toBe("forbidden");
    expect(await refused(write(daemon, about("Pod", "worker-0", { namespace: "default" })))).toBe("forbidden");
    expect(await refused(write(daemon, about("Node", "worker-0"), "default", { related: e3 }))).toBe("forbidden");
    for (const other of ["kube-system", namespace])
      expect(await refused(write(daemon, about("Node", "worker-0"), other))).toBe("forbidden");
    expect(await refused(write(anywhere, about("Node", "worker-0")))).not.toBe("written");
    // Nor may it turn another's Event into one about itself, or its own into one about another.
    await write(kube, e3, "default", { metadata: { name: "of-master", namespace: "default" } });
    expect(await refused(count("of-master"))).toBe("forbidden");
    const turn = (name: string, involvedObject: object) =>
      daemon.patch(kubernetes.Event, { name, namespace: "default" }, { type: "merge", body: { involvedObject } });
    expect(await refused(turn("of-master", about("Node", "worker-0")))).toBe("forbidden");
    expect(await refused(turn("e1", e3))).toBe("forbidden");
  });

  test("a daemon writes about its own machine and about no other, and nothing but annotations of its node [operator-13]", async () => {
    const { kube, as } = await start();
    await installed(kube);
    await until(kube, MachineConfigNode, { name: "worker-0" }, () => true);
    await until(kube, kubernetes.DaemonSet, { name: objects.daemon, namespace }, () => true);
    const account = `system:serviceaccount:${namespace}:${objects.daemon}`;
    const groups = ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
    const daemon = as({ name: account, groups, extra: { "authentication.kubernetes.io/node-name": ["worker-0"] } });
    const anywhere = as({ name: account, groups });
    const annotate = (client: KubeClient, name: string) =>
      client.patch(
        kubernetes.Node,
        { name },
        { type: "merge", body: { metadata: { annotations: { [annotations.state]: "Done" } } } },
      );
    const refused = async (work: Promise<unknown>) =>
      work.then(
        () => "written",
        (error: unknown) => (isForbidden(error) ? "forbidden" : String(error)),
      );

    expect(await refused(annotate(daemon, "worker-0"))).toBe("written");
    expect(await refused(annotate(daemon, "master-0"))).toBe("forbidden");
    expect(await refused(annotate(anywhere, "worker-0"))).not.toBe("written");
    expect(
      await refused(
        daemon.patch(kubernetes.Node, { name: "worker-0" }, { type: "merge", body: { spec: { unschedulable: true } } }),
      ),
    ).toBe("forbidden");
    // A label could move the machine into another pool.
    expect(
      await refused(
        daemon.patch(
          kubernetes.Node,
          { name: "worker-0" },
          { type: "merge", body: { metadata: { labels: { [labels.masterRole]: "" } } } },
        ),
      ),
    ).toBe("forbidden");
    const say = (name: string) =>
      daemon.patch(
        MachineConfigNode,
        { name },
        { type: "merge", body: { status: { observedGeneration: 1 } } },
        { subresource: "status" },
      );
    expect(await refused(say("worker-0"))).toBe("written");
    expect(await refused(say("master-0"))).toBe("forbidden");
    expect(await refused(daemon.list(kubernetes.Secret, { namespace }))).toBe("forbidden");
    const tell = (client: KubeClient, journal: string) =>
      client.patch(
        MachineStateJournal,
        { name: journal },
        { type: "json", operations: [{ op: "add", path: "/spec/dropped", value: 1 }] },
      );
    for (const name of ["node-worker-0", "node-master-0", "controller"])
      await until(kube, MachineStateJournal, { name }, () => true);
    expect(await refused(tell(daemon, "node-worker-0"))).toBe("written");
    expect(await refused(tell(daemon, "node-master-0"))).toBe("forbidden");
    expect(await refused(tell(daemon, "controller"))).toBe("forbidden");
    expect(await refused(tell(anywhere, "node-worker-0"))).not.toBe("written");
    const { apiVersion, kind } = MachineStateJournal;
    expect(
      await refused(
        daemon.create(MachineStateJournal, {
          apiVersion,
          kind,
          metadata: { name: "node-worker-0x" },
          spec: { lines: [], last: [] },
        }),
      ),
    ).toBe("forbidden");
    // A component's journal is that of its account.
    const controller = as({ name: `system:serviceaccount:${namespace}:${objects.controller}`, groups });
    expect(await refused(tell(controller, "controller"))).toBe("written");
    expect(await refused(tell(controller, "operator"))).toBe("forbidden");
    expect(await refused(tell(controller, "node-worker-0"))).toBe("forbidden");
    const state = as({ name: `system:serviceaccount:${namespace}:${objects.state}`, groups });
    for (const journal of ["controller", "node-worker-0"])
      expect(await refused(tell(state, journal))).toBe("forbidden");
    expect(
      await refused(
        state.patch(
          kubernetes.Node,
          { name: "worker-0" },
          { type: "merge", body: { metadata: { annotations: { [annotations.state]: "Done" } } } },
        ),
      ),
    ).toBe("forbidden");
    expect(
      await refused(
        state.patch(
          MachineConfigNode,
          { name: "worker-0" },
          { type: "merge", body: { status: { observedGeneration: 1 } } },
          { subresource: "status" },
        ),
      ),
    ).toBe("forbidden");
  });
});

describe("the operator's config server", () => {
  const annotate = (kube: KubeClient, access: string | null) =>
    kube.patch(
      MachineConfiguration,
      { name: "cluster" },
      { type: "merge", body: { metadata: { annotations: { [annotations.configServerAccess]: access } } } },
    );

  test("insecure access is named in the settings' status for as long as it lasts, and a word that is neither is refused", async () => {
    const { kube } = await start();
    await installed(kube);
    const condition = (is: string, reason: string) =>
      until(
        kube,
        MachineConfiguration,
        { name: "cluster" },
        ({ status }) =>
          conditionOf(status?.conditions, "ConfigServerInsecure")?.status === is &&
          conditionOf(status?.conditions, "ConfigServerInsecure")?.reason === reason,
      );
    await condition("False", "CredentialsRequired");
    await annotate(kube, "insecure");
    await condition("True", "CompatibilityMode");
    await annotate(kube, null);
    await condition("False", "CredentialsRequired");
    const policy = await until(
      kube,
      kubernetes.ValidatingAdmissionPolicyBinding,
      { name: "machine-configuration-guards-binding" },
      () => true,
    );
    await expect(annotate(kube, "Insecure")).rejects.toThrow("is required or insecure");
    await annotate(kube, "required");

    // An invalid value that was stored before the policy existed counts as required, and is reported.
    await kube.delete(kubernetes.ValidatingAdmissionPolicyBinding, policy.metadata);
    await annotate(kube, "Insecure");
    await condition("False", "NotUnderstood");
    const { resourceVersion: _, uid: __, managedFields: ___, creationTimestamp: ____, ...metadata } = policy.metadata;
    await kube.create(kubernetes.ValidatingAdmissionPolicyBinding, { ...policy, metadata });
    await kube.patch(
      MachineConfiguration,
      { name: "cluster" },
      { type: "merge", body: { spec: { operatorLogLevel: "Normal" } } },
    );
    await expect(annotate(kube, "open")).rejects.toThrow("is required or insecure");
  });

  const server = { name: objects.configServer, namespace };
  const argsOf = ({ spec }: DaemonSet) => spec?.template.spec?.containers[0]?.args ?? [];
  const valueOf = (one: DaemonSet, flag: string) =>
    argsOf(one).includes(flag) ? argsOf(one)[argsOf(one).indexOf(flag) + 1] : undefined;
  const serves = (kube: KubeClient, isWanted: (one: DaemonSet) => boolean) =>
    until(kube, kubernetes.DaemonSet, server, isWanted);

  test("runs on every control-plane machine, on the host network, and gives machines the API server's address", async () => {
    const { kube } = await start();
    const made = await serves(kube, () => true);
    const pod = made.spec?.template.spec as unknown as {
      readonly hostNetwork?: boolean;
      readonly serviceAccountName?: string;
      readonly affinity?: unknown;
      readonly volumes?: readonly { readonly name: string; readonly secret?: { readonly secretName?: string } }[];
    };
    expect(pod).toMatchObject({ hostNetwork: true, serviceAccountName: objects.configServer });
    expect(JSON.stringify(pod.affinity)).toContain(labels.masterRole);
    expect(pod.volumes).toContainEqual({
      name: "tls",
      secret: expect.objectContaining({ secretName: objects.configServerTls }) as object,
    });
    expect(argsOf(made).slice(0, 2)).toEqual(["server", "start"]);
    expect(
      ["--apiserver-url", "--access", "--tls-min-version", "--client-ca"].map((flag) => valueOf(made, flag)),
    ).toEqual(["https://127.9.9.1:6443", "required", "VersionTLS12", undefined]);
    // The config server's certificate comes first.
    expect(await kube.get(kubernetes.Secret, { name: objects.configServerTls, namespace })).toBeDefined();
  });

  test("answers everybody only while the settings say so", async () => {
    const { kube } = await start();
    const accessOf = (one: DaemonSet) => valueOf(one, "--access");
    expect(accessOf(await serves(kube, () => true))).toBe("required");
    await annotate(kube, "insecure");
    expect(accessOf(await serves(kube, (one) => accessOf(one) !== "required"))).toBe("insecure");
    await annotate(kube, null);
    expect(accessOf(await serves(kube, (one) => accessOf(one) !== "insecure"))).toBe("required");
  });

  test("takes client certificates while there is a ConfigMap with their authorities", async () => {
    const { kube } = await start();
    await serves(kube, (one) => valueOf(one, "--client-ca") === undefined);
    const map = { name: objects.configServerClientCa, namespace };
    await kube.apply(
      kubernetes.ConfigMap,
      { metadata: map, data: { "ca-bundle.crt": "-----BEGIN CERTIFICATE-----\n" } },
      { owner: "people" },
    );
    const asking = await serves(kube, (one) => valueOf(one, "--client-ca") !== undefined);
    const pod = asking.spec?.template.spec as unknown as {
      readonly containers: readonly {
        readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
      }[];
      readonly volumes: readonly object[];
    };
    const mount = pod.containers[0]?.volumeMounts?.find(({ name }) => name === "client-ca");
    expect(valueOf(asking, "--client-ca")).toBe(`${mount?.mountPath}/ca-bundle.crt`);
    expect(pod.volumes).toContainEqual({
      name: "client-ca",
      configMap: expect.objectContaining({ name: objects.configServerClientCa }) as object,
    });
    await kube.delete(kubernetes.ConfigMap, map);
    await serves(kube, (one) => valueOf(one, "--client-ca") === undefined);
  });

  test("has the controller demand the API server's certificate while a ConfigMap names its authority [operator-admission-1]", async () => {
    const { kube } = await start();
    const controller = { name: objects.controller, namespace };
    const argsIn = (one: Deployment) => one.spec?.template.spec?.containers[0]?.args ?? [];
    const asks = (one: Deployment) => argsIn(one).includes("--admission-client-ca");
    const deployed = (isWanted: (one: Deployment) => boolean) =>
      until(kube, kubernetes.Deployment, controller, isWanted);
    await deployed((one) => !asks(one));
    const map = { name: objects.admissionClientCa, namespace };
    const apply = (data: Readonly<Record<string, string>>) =>
      kube.apply(kubernetes.ConfigMap, { metadata: map, data }, { owner: "people" });
    await apply({ "ca-bundle.crt": "one", names: "kube-apiserver, other" });
    const first = await deployed(asks);
    expect(argsIn(first).slice(-6)).toEqual([
      "--admission-client-ca",
      "/etc/machine-config-admission-client-ca/ca-bundle.crt",
      "--admission-client-name",
      "kube-apiserver",
      "--admission-client-name",
      "other",
    ]);
    const pod = first.spec?.template.spec as unknown as { readonly volumes: readonly object[] };
    expect(pod.volumes).toContainEqual({
      name: "client-ca",
      configMap: expect.objectContaining({ name: map.name }) as object,
    });
    // Another authority needs another pod: the controller reads the file when it starts.
    await apply({ "ca-bundle.crt": "two" });
    const second = await deployed((one) => asks(one) && !argsIn(one).includes("--admission-client-name"));
    expect(second.spec?.template.metadata?.annotations).not.toEqual(first.spec?.template.metadata?.annotations);
    await kube.delete(kubernetes.ConfigMap, map);
    await deployed((one) => !asks(one));
  });

  test("has an account to join with for each pool, as long as there is the pool, which may ask for a certificate and nothing else", async () => {
    const { kube, as } = await start();
    await installed(kube);
    const accountsAre = (...pools: readonly string[]) =>
      expect
        .poll(
          async () =>
            (await kube.list(kubernetes.ServiceAccount, { labelSelector: labels.nodeBootstrapper })).items
              .filter(({ metadata }) => metadata.namespace === joinNamespace)
              .map(({ metadata }) => metadata.name)
              .sort(),
          { timeout: 300_000 },
        )
        .toEqual(pools.map((pool) => account(pool).name));
    const account = (pool: string) => ({ name: `${objects.nodeBootstrapperPrefix}${pool}`, namespace: joinNamespace });
    await accountsAre("master", "worker");
    for (const pool of ["master", "worker"]) await until(kube, kubernetes.ServiceAccount, account(pool), () => true);

    const { apiVersion } = MachineConfigPool;
    await kube.create(MachineConfigPool, {
      apiVersion,
      kind: "MachineConfigPool",
      metadata: { name: "infra" },
      spec: {
        machineConfigSelector: {
          matchExpressions: [{ key: labels.role, operator: "In", values: ["worker", "infra"] }],
        },
        nodeSelector: { matchLabels: { "node-role.kubernetes.io/infra": "" } },
      },
    });
    await accountsAre("infra", "master", "worker");
    const first = await until(kube, kubernetes.ServiceAccount, account("infra"), () => true);

    const joining = as({
      name: `system:serviceaccount:${joinNamespace}:${account("infra").name}`,
      groups: ["system:serviceaccounts", `system:serviceaccounts:${joinNamespace}`, "system:authenticated"],
    });
    expect((await joining.list(kubernetes.CertificateSigningRequest)).items).toEqual([]);
    for (const forbidden of [
      () => joining.list(kubernetes.Secret, { namespace }),
      () => joining.list(kubernetes.Node),
      () => joining.list(MachineConfigPool),
    ])
      await expect(forbidden()).rejects.toSatisfy(isForbidden);
    // The config server issues tokens for these accounts, and for no others.
    const server = as({ name: `system:serviceaccount:${namespace}:${objects.configServer}`, groups: [] });
    const token = ({ name, namespace: where }: { readonly name: string; readonly namespace: string }) =>
      server.request({
        method: "POST",
        target: `/api/v1/namespaces/${where}/serviceaccounts/${name}/token`,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} }),
      });
    for (const pool of ["infra", "master", "worker"]) await token(account(pool));
    await expect(token({ name: objects.operator, namespace })).rejects.toSatisfy(isForbidden);

    // A removed account is recreated, even if nothing else changes.
    await kube.delete(kubernetes.ServiceAccount, account("infra"));
    await until(
      kube,
      kubernetes.ServiceAccount,
      account("infra"),
      ({ metadata }) => metadata.uid !== first.metadata.uid,
    );

    // Other accounts with similar names are not touched.
    for (const metadata of [
      { name: "node-bootstrapper-theirs", namespace: joinNamespace },
      { name: "somebody", namespace: joinNamespace, labels: { [labels.nodeBootstrapper]: "" } },
    ])
      await kube.create(kubernetes.ServiceAccount, { apiVersion: "v1", kind: "ServiceAccount", metadata });
    await kube.delete(MachineConfigPool, { name: "infra" });
    await lookedAgain(kube);
    const left = (await kube.list(kubernetes.ServiceAccount, { namespace: joinNamespace })).items.map(
      ({ metadata }) => metadata.name,
    );
    expect(left).not.toContain(account("infra").name);
    expect(left).toEqual(
      expect.arrayContaining([account("master").name, account("worker").name, "node-bootstrapper-theirs", "somebody"]),
    );
  });

  test("speaks TLS as the cluster wants it, and as before while that cannot be followed", async () => {
    const { plural, group, kind, version: served } = openshift.APIServer;
    const name = `${plural}.${group}`;
    const { kube } = await start();
    await serves(kube, (one) => valueOf(one, "--tls-min-version") === "VersionTLS12");
    await kube.create(kubernetes.CustomResourceDefinition, {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name },
      spec: {
        group,
        scope: "Cluster",
        names: { kind, plural, singular: "apiserver" },
        versions: [
          {
            name: served,
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
          },
        ],
      },
    });
    await until(
      kube,
      kubernetes.CustomResourceDefinition,
      { name },
      ({ status }) => conditionOf(status?.conditions, "Established")?.status === "True",
    );
    const profile = (tlsSecurityProfile: object) =>
      kube.apply(
        openshift.APIServer,
        { metadata: { name: "cluster" }, spec: { tlsSecurityProfile } },
        { owner: "people" },
      );
    await profile({ type: "Modern" });
    // The operator checks for new kinds now and then; a pass requests such a check.
    await lookedAgain(kube);
    const modern = await serves(kube, (one) => valueOf(one, "--tls-min-version") === "VersionTLS13");
    expect(valueOf(modern, "--tls-cipher-suites")).toBe(
      "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256",
    );

    await profile({ type: "Custom", custom: { ciphers: ["NULL-MD5"], minTLSVersion: "VersionTLS12" } });
    await lookedAgain(kube);
    const degraded = await until(
      kube,
      ClusterOperator,
      { name: objects.clusterOperator },
      ({ status }) => conditionOf(status?.conditions, "Degraded")?.status === "True",
    );
    expect(conditionOf(degraded.status?.conditions, "Degraded")).toMatchObject({
      reason: "ConfigServerFailed",
      message: expect.stringMatching(/ConfigServer: APIServer cluster: .*none is left/) as string,
    });
    expect(argsOf(await serves(kube, () => true))).toEqual(argsOf(modern));

    await profile({
      type: "Custom",
      custom: { ciphers: ["ECDHE-ECDSA-AES128-GCM-SHA256"], minTLSVersion: "VersionTLS12" },
    });
    await lookedAgain(kube);
    const custom = await serves(kube, (one) => valueOf(one, "--tls-min-version") === "VersionTLS12");
    expect(valueOf(custom, "--tls-cipher-suites")).toBe("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
    await until(
      kube,
      ClusterOperator,
      { name: objects.clusterOperator },
      ({ status }) => conditionOf(status?.conditions, "Degraded")?.status === "False",
    );
  });
});
