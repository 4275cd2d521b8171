import { expect, test } from "vitest";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { openshift } from "../../src/api/foreign/openshift.ts";
import { machineNamespace, namespace, objects } from "../../src/api/names.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import { isForbidden, isNotFound } from "../../src/kube/kube-error.ts";
import { machineApiRights } from "../../src/operator/rights.ts";
import { startOperator } from "../support/operator-harness.ts";

test("a compromised controller reads no credentials of the cloud, and patches no MachineSet where nobody lets it [attack-boot-images-1]", async () => {
  const { kube, as } = await startOperator();
  const controller = as({
    name: `system:serviceaccount:${namespace}:${objects.controller}`,
    groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
  });
  await kube.create(kubernetes.Namespace, {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: machineNamespace },
  });
  for (const name of ["aws-cloud-credentials", "worker-user-data"])
    await kube.create(kubernetes.Secret, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: machineNamespace },
      data: { userData: btoa("{}") },
    });
  const secret = (name: string) => controller.get(kubernetes.Secret, { name, namespace: machineNamespace });
  const change = (name: string) =>
    controller.patch(kubernetes.Secret, { name, namespace: machineNamespace }, { type: "merge", body: {} });
  const update = () =>
    controller.patch(
      openshift.MachineSet,
      { name: "workers", namespace: machineNamespace },
      { type: "merge", body: { spec: { replicas: 0 } } },
    );
  await expect(secret("worker-user-data")).rejects.toSatisfy(isForbidden);
  await expect(update()).rejects.toSatisfy(isForbidden);
  for (const manifest of machineApiRights()) {
    const resource: Resource<KubeObject> = manifest.kind === "Role" ? kubernetes.Role : kubernetes.RoleBinding;
    await kube.apply(resource, manifest, { owner: "administrator" });
  }
  expect((await secret("worker-user-data"))?.metadata.name).toBe("worker-user-data");
  // There are no MachineSets here.
  await expect(update()).rejects.toSatisfy(isNotFound);
  for (const attack of [
    () => secret("aws-cloud-credentials"),
    () => change("aws-cloud-credentials"),
    () => controller.list(kubernetes.Secret, { namespace: machineNamespace }),
    () =>
      controller.patch(
        openshift.MachineSet,
        { name: "workers", namespace: "elsewhere" },
        { type: "merge", body: { spec: { replicas: 0 } } },
      ),
  ])
    await expect(attack()).rejects.toSatisfy(isForbidden);
});
