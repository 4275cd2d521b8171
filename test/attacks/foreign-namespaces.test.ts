import { expect, test } from "vitest";
import { ClusterOperator } from "../../src/api/foreign/cluster-operator.ts";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { ControllerConfig } from "../../src/api/kinds/controller-config.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { namespace, objects } from "../../src/api/names.ts";
import { textOfBase64 } from "../../src/core/render/base-configs.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { installed, lookedAgain, startOperator, until } from "../support/operator-harness.ts";
import { selfSigned } from "../support/self-signed.ts";

const rbac = "rbac.authorization.k8s.io";
const tenant = { name: "tenant", groups: ["system:authenticated"] };
const operator = {
  name: `system:serviceaccount:${namespace}:${objects.operator}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
};

/** The tenant may create namespaces, and gets `edit` in those that it creates. */
async function selfService(kube: KubeClient, ofTenant: KubeClient, names: readonly string[]): Promise<void> {
  const subjects = [{ apiGroup: rbac, kind: "User", name: tenant.name }];
  const roleRef = (name: string) => ({ apiGroup: rbac, kind: "ClusterRole", name });
  const apiVersion = `${rbac}/v1`;
  await kube.create(kubernetes.ClusterRole, {
    apiVersion,
    kind: "ClusterRole",
    metadata: { name: "namespaces-of-their-own" },
    rules: [{ apiGroups: [""], resources: ["namespaces"], verbs: ["create"] }],
  } as never);
  await kube.create(kubernetes.ClusterRoleBinding, {
    apiVersion,
    kind: "ClusterRoleBinding",
    metadata: { name: "namespaces-of-their-own" },
    roleRef: roleRef("namespaces-of-their-own"),
    subjects,
  } as never);
  for (const name of names) {
    await ofTenant.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    await kube.create(kubernetes.RoleBinding, {
      apiVersion,
      kind: "RoleBinding",
      metadata: { name: "owner", namespace: name },
      roleRef: roleRef("edit"),
      subjects,
    } as never);
  }
}

test("a tenant who creates OpenShift's namespaces on another cluster becomes no authority of its machines, and what counts lies in the suite's namespace [attack-namespaces-1]", async () => {
  const { kube, as } = await startOperator(undefined, { account: operator });
  await installed(kube);
  const settings = (isWanted: (spec: ControllerConfig["spec"]) => boolean) =>
    until(kube, ControllerConfig, { name: objects.controllerConfig }, ({ spec }) => isWanted(spec));
  const { spec: before } = await settings(() => true);
  const ofTenant = as(tenant);
  await selfService(kube, ofTenant, ["openshift-config", "openshift-config-managed"]);
  const [ofTheTenant, ofTheCluster] = [await selfSigned("CN=tenant"), await selfSigned("CN=administrator")];
  const put = (by: KubeClient, where: string, name: string, data: Readonly<Record<string, string>>) =>
    by.create(kubernetes.ConfigMap, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, namespace: where },
      data: { ...data },
    });
  const bundle = { "ca-bundle.crt": ofTheTenant };
  await put(ofTenant, "openshift-config-managed", "kube-apiserver-client-ca", bundle);
  await put(ofTenant, "openshift-config-managed", "kube-apiserver-server-ca", bundle);
  await put(ofTenant, "openshift-config-managed", "image-registry-ca", { "quay.io": ofTheTenant });
  await put(ofTenant, "openshift-config", "initial-kube-apiserver-server-ca", bundle);
  await put(ofTenant, "openshift-config", "user-ca-bundle", bundle);
  // The operator has seen all of it, and says where it would count.
  await until(kube, MachineConfigPool, { name: "worker" }, () => true);
  await lookedAgain(kube);
  const { spec: after } = await settings(() => true);
  expect(after).toEqual(before);
  expect(after.pullSecret).toMatchObject({ namespace, name: "pull-secret" });
  expect(await kube.get(kubernetes.ConfigMap, { name: objects.kubeconfigData, namespace })).toBeUndefined();
  expect(
    await kube.get(kubernetes.ConfigMap, {
      name: "merged-trusted-image-registry-ca",
      namespace: "openshift-config-managed",
    }),
  ).toBeUndefined();
  const { metadata } = await until(kube, ClusterOperator, { name: objects.clusterOperator }, () => true);
  const { items: events } = await kube.list(kubernetes.Event, { namespace: "default" });
  const told = events.filter(({ reason }) => reason === "InputNotRead").map(({ message }) => message ?? "");
  expect([metadata.name, told.at(-1)]).toEqual([
    objects.clusterOperator,
    expect.stringContaining(`${namespace}/user-ca-bundle is read in its place`),
  ]);
  // What an administrator writes counts.
  await put(kube, namespace, "user-ca-bundle", { "ca-bundle.crt": ofTheCluster });
  await put(kube, namespace, "image-registry-ca", { "quay.io": ofTheCluster });
  const counted = await settings(
    ({ additionalTrustBundle, imageRegistryBundleData }) =>
      (additionalTrustBundle ?? "") !== "" && (imageRegistryBundleData ?? []).length > 0,
  );
  expect(textOfBase64(counted.spec.additionalTrustBundle ?? "")).toBe(ofTheCluster);
  expect(counted.spec.imageRegistryBundleData?.map(({ data }) => textOfBase64(data))).toEqual([ofTheCluster]);
});
