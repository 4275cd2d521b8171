import { expect, test } from "vitest";
import { installed, startOperator, until } from "../../../test/support/operator-harness.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { buildNamespace, namespace, objects } from "../../api/names.ts";

const entitlement = { name: "etc-pki-entitlement", namespace } as const;
const account = {
  name: `system:serviceaccount:${namespace}:${objects.operator}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
};

test("a Secret that is made again with another type is copied, and keeps no build from its credentials [operator-copied-secrets-1]", async () => {
  const { kube } = await startOperator(undefined, { account });
  await installed(kube);
  const secret = (metadata: { readonly name: string; readonly namespace: string }, type: string, key: string) =>
    kube.create(kubernetes.Secret, {
      apiVersion: "v1",
      kind: "Secret",
      metadata,
      type,
      data: { [key]: btoa("{}") },
    });
  await secret(entitlement, "Opaque", "entitlement.pem");
  await secret({ name: "push", namespace }, "kubernetes.io/dockerconfigjson", ".dockerconfigjson");
  await until(kube, MachineConfigPool, { name: "worker" }, () => true);
  const config = (push: string) => ({
    apiVersion: MachineOSConfig.apiVersion,
    kind: MachineOSConfig.kind,
    metadata: { name: "worker" },
    spec: {
      machineConfigPool: { name: "worker" },
      imageBuilder: { imageBuilderType: "Job" as const },
      renderedImagePushSecret: { name: push },
      renderedImagePushSpec: "registry.example.com/os:x",
    },
  });
  await kube.create(MachineOSConfig, config("push"));
  const copy = { name: `${objects.entitlementPrefix}worker`, namespace };
  await until(kube, kubernetes.Secret, copy, ({ type }) => type === "Opaque");
  await kube.delete(kubernetes.Secret, entitlement);
  await secret(entitlement, "example.com/entitlement", "next.pem");
  // Another credential starts the next pass.
  await secret({ name: "next", namespace }, "kubernetes.io/dockerconfigjson", ".dockerconfigjson");
  await kube.patch(
    MachineOSConfig,
    { name: "worker" },
    { type: "merge", body: { spec: { renderedImagePushSecret: { name: "next" } } } },
  );
  const copied = await until(kube, kubernetes.Secret, copy, ({ data }) => data?.["next.pem"] !== undefined);
  expect([copied.type, copied.data]).toEqual(["Opaque", { "next.pem": btoa("{}") }]);
  expect(
    (await until(kube, kubernetes.Secret, { name: "next", namespace: buildNamespace }, () => true)).metadata.name,
  ).toBe("next");
});
