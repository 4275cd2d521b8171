import { expect, test } from "vitest";
import { installed, startOperator, until } from "../../test/support/operator-harness.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { buildNamespace, joinNamespace, labels, namespace, objects } from "../api/names.ts";
import type { KubeClient } from "../kube/kube-client.ts";

/** Before all others of its kind. */
const longest = "a".repeat(253);

const pool = (kube: KubeClient, name: string) =>
  kube.create(MachineConfigPool, {
    apiVersion: MachineConfigPool.apiVersion,
    kind: MachineConfigPool.kind,
    metadata: { name },
    spec: {
      machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: "In", values: ["worker"] }] },
      nodeSelector: { matchLabels: { [`node-role.kubernetes.io/x`]: "" } },
    },
  });

test("a pool of the longest name keeps no other pool from its joining account [attack-operator-names-1]", async () => {
  const { kube } = await startOperator();
  await installed(kube);
  await pool(kube, longest);
  await pool(kube, "infra");
  const account = { name: `${objects.nodeBootstrapperPrefix}infra`, namespace: joinNamespace };
  expect((await until(kube, kubernetes.ServiceAccount, account, () => true)).metadata.name).toBe(account.name);
  // What comes behind the accounts.
  const server = { name: objects.configServer, namespace };
  expect((await until(kube, kubernetes.DaemonSet, server, () => true)).metadata.name).toBe(server.name);
});

test("a MachineOSConfig of the longest name keeps no build from its credentials [attack-operator-names-2]", async () => {
  const { kube } = await startOperator();
  await installed(kube);
  const secret = (name: string, where: string, type: string, key: string) =>
    kube.create(kubernetes.Secret, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: where },
      type,
      data: { [key]: btoa("{}") },
    });
  await secret("etc-pki-entitlement", namespace, "Opaque", "entitlement.pem");
  await secret("push", namespace, "kubernetes.io/dockerconfigjson", ".dockerconfigjson");
  await until(kube, MachineConfigPool, { name: "worker" }, () => true);
  for (const name of [longest, "worker"])
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
  for (const name of ["push", `${objects.entitlementPrefix}worker`]) {
    const copy = { name, namespace: buildNamespace };
    expect((await until(kube, kubernetes.Secret, copy, () => true)).metadata.name).toBe(name);
  }
  const builder = { name: objects.osBuilder, namespace };
  expect((await until(kube, kubernetes.Deployment, builder, () => true)).metadata.name).toBe(builder.name);
});
