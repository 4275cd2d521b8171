import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { startCluster } from "../../../test/support/controllers-harness.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { group, namespace } from "../../api/names.ts";
import { type KubeObject, resource } from "../../api/schema/object.ts";
import { parseIgnition } from "../../ignition/index.ts";
import { systemRandom } from "../../ports/node/index.ts";
import { issuePointer } from "./issue-pointer.ts";

const never = new AbortController().signal;
const tokens = resource<KubeObject & { spec: { pool: string; tokenHash: string; expiresAt: string; maxUses: number } }>(
  `${group}/v1alpha1`,
  "ProvisioningToken",
  "provisioningtokens",
  "Cluster",
);
const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `provisioningtokens.${group}` },
  spec: {
    group,
    scope: "Cluster",
    names: {
      plural: "provisioningtokens",
      singular: "provisioningtoken",
      kind: "ProvisioningToken",
      listKind: "ProvisioningTokenList",
    },
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

test("a pointer names the config server and a one-use token for one machine, and invalidates the previous one", async () => {
  const { kube, clock } = await startCluster();
  const issue = () =>
    issuePointer(
      kube,
      { name: "worker-9", pool: "worker" },
      { address: "127.1.2.3", hostAddress: "127.1.2.19", clock, random: systemRandom },
      never,
    );
  await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  expect(await issue()).toBeUndefined();

  await kube.create(kubernetes.CustomResourceDefinition, definition as never);
  await kube.create(kubernetes.ConfigMap, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "machine-config-server-ca", namespace },
    data: { "ca-bundle.crt": "-----BEGIN CERTIFICATE-----\n" },
  });
  const first = await issue();
  const [before] = (await kube.list(tokens)).items;
  const second = await issue();
  expect(second).not.toBe(first);
  const { items } = await kube.list(tokens);
  expect(items).toHaveLength(1);
  expect(items[0]?.metadata.name).not.toBe(before?.metadata.name);

  const parsed = parseIgnition(JSON.parse(second ?? ""));
  const merge = parsed.verdict === "valid" ? parsed.config.ignition.config?.merge?.[0] : undefined;
  expect(merge?.source).toBe("https://127.1.2.3:22623/config/worker");
  const [, id, secret = ""] =
    /^Bearer ([a-z0-9]{10})\.([a-z0-9]{32})$/.exec(merge?.httpHeaders?.[0]?.value ?? "") ?? [];
  expect(items[0]?.metadata.name).toBe(id);
  expect(items[0]?.spec).toMatchObject({
    pool: "worker",
    maxUses: 1,
    tokenHash: createHash("sha256").update(secret).digest("hex"),
  });
  expect(Date.parse(items[0]?.spec.expiresAt ?? "")).toBeGreaterThan(clock.now());
});
