import { expect, test } from "vitest";
import { installed, startOperator, until } from "../../../test/support/operator-harness.ts";
import { type Secret, kubernetes } from "../../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { buildNamespace, fieldManagers, namespace, objects } from "../../api/names.ts";
import type { KubeClient } from "../../kube/kube-client.ts";

const entitlement = "etc-pki-entitlement";
const copy = { name: `${objects.entitlementPrefix}worker`, namespace };
const keyPair = { "tls.crt": btoa("{}"), "tls.key": btoa("{}") };
const account = {
  name: `system:serviceaccount:${namespace}:${objects.operator}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
};

const makeSecret = (kube: KubeClient, name: string, type: string, data: Readonly<Record<string, string>>) =>
  kube.create<Secret>(kubernetes.Secret, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace },
    type,
    data: { ...data },
  });

const makeCredential = (kube: KubeClient, name: string) =>
  makeSecret(kube, name, "kubernetes.io/dockerconfigjson", { ".dockerconfigjson": btoa("{}") });

/** A cluster whose operator runs, without a Secret for builds. */
async function emptyCluster(): Promise<KubeClient> {
  const { kube } = await startOperator(undefined, { account });
  await installed(kube);
  return kube;
}

/** Builds images of the pool worker, with the credential `push`. */
async function buildImages(kube: KubeClient): Promise<void> {
  await makeCredential(kube, "push");
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
}

/** Makes the entitlement again with another type. Another credential starts the next pass of the operator. */
async function makeAgain(kube: KubeClient, type: string): Promise<void> {
  await kube.delete(kubernetes.Secret, { name: entitlement, namespace });
  await makeSecret(kube, entitlement, type, { "next.pem": btoa("{}") });
  await makeCredential(kube, "next");
  await kube.patch(
    MachineOSConfig,
    { name: "worker" },
    { type: "merge", body: { spec: { renderedImagePushSecret: { name: "next" } } } },
  );
}

const hasNext = ({ data }: Secret) => data?.["next.pem"] !== undefined;
const nextOfBuilds = { name: "next", namespace: buildNamespace };

test("a Secret that is made again with another type is copied, and keeps no build from its credentials [operator-copied-secrets-1]", async () => {
  const kube = await emptyCluster();
  await makeSecret(kube, entitlement, "Opaque", { "entitlement.pem": btoa("{}") });
  await buildImages(kube);
  await until(kube, kubernetes.Secret, copy, ({ type }) => type === "Opaque");
  await makeAgain(kube, "example.com/entitlement");
  const copied = await until(kube, kubernetes.Secret, copy, hasNext);
  expect([copied.type, copied.data]).toEqual(["Opaque", { "next.pem": btoa("{}") }]);
  expect((await until(kube, kubernetes.Secret, nextOfBuilds, () => true)).metadata.name).toBe("next");
});

test.for([
  ["example.com/entitlement", { "entitlement.pem": btoa("{}") }],
  ["kubernetes.io/tls", keyPair],
] as const)(
  "an entitlement that first was of type %s, and is made again as Opaque, reaches the builds [operator-copied-secrets-2]",
  async ([first, data]) => {
    const kube = await emptyCluster();
    await makeSecret(kube, entitlement, first, data);
    await buildImages(kube);
    await until(kube, kubernetes.Secret, copy, () => true);
    await makeAgain(kube, "Opaque");
    await until(kube, kubernetes.Secret, copy, hasNext);
    await until(kube, kubernetes.Secret, nextOfBuilds, () => true);
    const beside = await until(kube, kubernetes.Secret, { name: copy.name, namespace: buildNamespace }, hasNext);
    expect([beside.type, beside.data?.["next.pem"]]).toEqual(["Opaque", btoa("{}")]);
  },
);

test("a copy that cannot become the new one keeps no other credential from the builds [operator-copied-secrets-3]", async () => {
  const kube = await emptyCluster();
  // An earlier version copied an entitlement of this type; the API server refuses one without a pair of keys.
  await kube.apply<Secret>(
    kubernetes.Secret,
    { apiVersion: "v1", kind: "Secret", metadata: copy, type: "kubernetes.io/tls", data: keyPair },
    { owner: fieldManagers.operator },
  );
  await makeSecret(kube, entitlement, "Opaque", { "entitlement.pem": btoa("{}") });
  await buildImages(kube);
  const pushed = await until(kube, kubernetes.Secret, { name: "push", namespace: buildNamespace }, () => true);
  expect(pushed.data).toEqual({ ".dockerconfigjson": btoa("{}") });
});
