import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ControllerConfig } from "../../../src/api/kinds/controller-config.ts";
import { definedResources, kubernetes, names } from "../../../src/api/index.ts";
import { MachineConfig } from "../../../src/api/kinds/machine-config.ts";
import { MachineConfigNode } from "../../../src/api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../../../src/api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../../../src/api/kinds/machine-configuration.ts";
import { version } from "../../../src/cli/version.ts";
import { mergePolicies } from "../../../src/core/config/disruption-policy.ts";
import { encodeDataUrl } from "../../../src/ignition/data-url.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import type { TestAuthority } from "../../../test/support/test-pki.ts";

export const osImage =
  "registry.example.com/os@sha256:0000000000000000000000000000000000000000000000000000000000000000";
export const pool = "worker";

export const machineName = (index: number) => `worker-${String(index).padStart(4, "0")}`;

/** Writes what a server of a cluster needs into a folder. */
export async function writeServerFiles(folder: string, authority: TestAuthority): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const server = await authority.server("127.0.0.1");
  const files = {
    "server.crt": server.certificate,
    "server.key": server.key,
    "ca.crt": authority.certificate,
    "tokens.key": await authority.signingKey(),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
}

/** Writes credentials of an administrator and returns where. */
export async function writeKubeconfig(folder: string, url: string, authority: TestAuthority): Promise<string> {
  const admin = await authority.client("admin", ["system:masters"]);
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const file = join(folder, "kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "bench",
    clusters: [
      { name: "bench", cluster: { server: url, "certificate-authority-data": base64(authority.certificate) } },
    ],
    users: [
      {
        name: "admin",
        user: { "client-certificate-data": base64(admin.certificate), "client-key-data": base64(admin.key) },
      },
    ],
    contexts: [{ name: "bench", context: { cluster: "bench", user: "admin" } }],
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** A MachineConfig of the pool with some files. */
export function machineConfig(name: string, files: Readonly<Record<string, string>>): MachineConfig {
  return {
    apiVersion: MachineConfig.apiVersion,
    kind: "MachineConfig",
    metadata: { name, labels: { [names.labels.role]: pool } },
    spec: {
      config: {
        ignition: { version: "3.4.0" },
        storage: {
          files: Object.entries(files).map(([path, text]) => ({
            path,
            mode: 0o644,
            overwrite: true,
            contents: { source: encodeDataUrl(text) },
          })),
        },
      },
    },
  };
}

/** What the operator would install and keep. */
export async function install(kube: KubeClient): Promise<void> {
  for (const resource of definedResources)
    await kube.apply(kubernetes.CustomResourceDefinition, resource.crd(), { owner: "bench" });
  await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: names.namespace } });
  await kube.create(MachineConfigPool, {
    apiVersion: MachineConfigPool.apiVersion,
    kind: "MachineConfigPool",
    metadata: { name: pool, labels: { [names.labels.builtInPool]: "" } },
    spec: {
      machineConfigSelector: { matchLabels: { [names.labels.role]: pool } },
      nodeSelector: { matchLabels: { [names.labels.workerRole]: "" } },
      maxUnavailable: "10%",
      paused: false,
    },
  } as MachineConfigPool);
  await kube.create(MachineConfiguration, {
    apiVersion: MachineConfiguration.apiVersion,
    kind: "MachineConfiguration",
    metadata: { name: "cluster" },
    spec: {},
  } as MachineConfiguration);
  await kube.patch(
    MachineConfiguration,
    { name: "cluster" },
    {
      type: "merge",
      body: { status: { observedGeneration: 1, nodeDisruptionPolicyStatus: { clusterPolicies: mergePolicies({}) } } },
    },
    { subresource: "status" },
  );
  await kube.create(ControllerConfig, {
    apiVersion: ControllerConfig.apiVersion,
    kind: "ControllerConfig",
    metadata: {
      name: names.objects.controllerConfig,
      annotations: { [names.annotations.generatedByVersion]: version },
    },
    spec: {
      clusterDNSIP: "10.0.0.10",
      cloudProviderConfig: "",
      kubeAPIServerServingCAData: "",
      rootCAData: "",
      cloudProviderCAData: null,
      additionalTrustBundle: null,
      images: {},
      baseOSContainerImage: osImage,
      releaseImage: "release",
      proxy: null,
      infra: null,
      dns: null,
      ipFamilies: "IPv4",
    },
  } as unknown as ControllerConfig);
  await kube.create(MachineConfig, machineConfig("50-worker", { "/etc/bench/base": "base" }));
}

/** The MachineConfigNode of each machine, which the operator makes. */
export async function introduce(kube: KubeClient): Promise<void> {
  const { items } = await kube.list(kubernetes.Node);
  for (const { metadata } of items) {
    await kube.create(MachineConfigNode, {
      apiVersion: MachineConfigNode.apiVersion,
      kind: "MachineConfigNode",
      metadata: {
        name: metadata.name,
        ownerReferences: [{ apiVersion: "v1", kind: "Node", name: metadata.name, uid: metadata.uid ?? "" }],
      },
      spec: { node: { name: metadata.name }, pool: { name: pool }, configVersion: { desired: names.notYetSet } },
    });
  }
}

/** Pods of daemon sets, which stay through every drain: what a controller that watches pods has to hold. */
export async function fill(kube: KubeClient, machines: number, podsEach: number): Promise<void> {
  const numbers = Array.from({ length: machines * podsEach }, (_, index) => index);
  const lane = async () => {
    for (let index = numbers.shift(); index !== undefined; index = numbers.shift()) {
      const set = `agent-${index % podsEach}`;
      await kube.create(kubernetes.Pod, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          name: `${set}-${Math.floor(index / podsEach)}`,
          namespace: "default",
          labels: { app: set },
          ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: set, uid: set, controller: true }],
        },
        spec: {
          nodeName: machineName(Math.floor(index / podsEach)),
          containers: [
            {
              name: "agent",
              image: "registry.example.com/agent:1",
              env: Array.from({ length: 8 }, (_, at) => ({
                name: `SETTING_${at}`,
                value: "some value of a usual length",
              })),
              volumeMounts: [{ name: "data", mountPath: "/data" }],
            },
          ],
          volumes: [{ name: "data", emptyDir: {} }],
          tolerations: [{ operator: "Exists" }],
        },
      } as never);
    }
  };
  await Promise.all(Array.from({ length: 16 }, lane));
}
