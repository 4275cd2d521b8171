import { expect, test } from "vitest";
import { installed, startOperator, until } from "../../../test/support/operator-harness.ts";
import { type Secret, kubernetes } from "../../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { buildNamespace, fieldManagers, namespace, objects } from "../../api/names.ts";

const entitlement = { name: "etc-pki-entitlement", namespace } as const;
const account = {
  name: `system:serviceaccount:${namespace}:${objects.operator}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
};

const keyPair = { "tls.crt": btoa("{}"), "tls.key": btoa("{}") };

test.for([
  ["example.com/entitlement", { "entitlement.pem": btoa("{}") }],
  ["kubernetes.io/tls", keyPair],
] as const)(
  "an entitlement that first was of type %s, and is made again as Opaque, reaches the builds [operator-copied-secrets-2]",
  async ([first, data]) => {
    const { kube } = await startOperator(undefined, { account });
    await installed(kube);
    const secret = (metadata: KubeObject["metadata"], type: string, key: string | Readonly<Record<string, string>>) =>
      kube.create(kubernetes.Secret, {
        apiVersion: "v1",
        kind: "Secret",
        metadata,
        type,
        data: typeof key === "string" ? { [key]: btoa("{}") } : { ...key },
      });
    await secret(entitlement, first, data);
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
    await until(kube, kubernetes.Secret, copy, () => true);
    await kube.delete(kubernetes.Secret, entitlement);
    await secret(entitlement, "Opaque", "next.pem");
    // Another credential starts the next pass.
    await secret({ name: "next", namespace }, "kubernetes.io/dockerconfigjson", ".dockerconfigjson");
    await kube.patch(
      MachineOSConfig,
      { name: "worker" },
      { type: "merge", body: { spec: { renderedImagePushSecret: { name: "next" } } } },
    );
    await until(kube, kubernetes.Secret, copy, ({ data }) => data?.["next.pem"] !== undefined);
    await until(kube, kubernetes.Secret, { name: "next", namespace: buildNamespace }, () => true);
    const beside = await until(
      kube,
      kubernetes.Secret,
      { name: copy.name, namespace: buildNamespace },
      ({ data }) => data?.["next.pem"] !== undefined,
    );
    expect([beside.type, beside.data?.["next.pem"]]).toEqual(["Opaque", btoa("{}")]);
  },
);

test("a copy that cannot become the new one keeps no other credential from the builds [operator-copied-secrets-3]", async () => {
  const { kube } = await startOperator(undefined, { account });
  await installed(kube);
  const create = (metadata: KubeObject["metadata"], type: string, data: Readonly<Record<string, string>>) =>
    kube.create<Secret>(kubernetes.Secret, { apiVersion: "v1", kind: "Secret", metadata, type, data: { ...data } });
  // An earlier version copied an entitlement of this type; the API server refuses one without a pair of keys.
  const copy = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: `${objects.entitlementPrefix}worker`, namespace },
  };
  await kube.apply<Secret>(
    kubernetes.Secret,
    { ...copy, type: "kubernetes.io/tls", data: keyPair },
    { owner: fieldManagers.operator },
  );
  await create(entitlement, "Opaque", { "entitlement.pem": btoa("{}") });
  await create({ name: "push", namespace }, "kubernetes.io/dockerconfigjson", { ".dockerconfigjson": btoa("{}") });
  await until(kube, MachineConfigPool, { name: "worker" }, () => true);
  await kube.create(MachineOSConfig, {
    apiVersion: MachineOSConfig.apiVersion,
    kind: MachineOSConfig.kind,
    metadata: { name: "worker" },
    spec: {
      machineConfigPool: { name: "worker" },
      imageBuilder: { imageBuilderType: "Job" },
      renderedImagePushSecret: { name: "push" },
      renderedImagePushSpec: "registry.example.com/os:x",
    },
  });
  const pushed = await until(kube, kubernetes.Secret, { name: "push", namespace: buildNamespace }, () => true);
  expect(pushed.data).toEqual({ ".dockerconfigjson": btoa("{}") });
});
