import { describe, expect, test } from "vitest";
import { anyDefinition } from "../../test/support/any-definition.ts";
import { installed, lookedAgain, startOperator, until } from "../../test/support/operator-harness.ts";
import { ClusterOperator } from "../api/foreign/cluster-operator.ts";
import { type ConfigMap, type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations, labels, machineNamespace, namespace, objects } from "../api/names.ts";
import { type KubeObject, type Resource, conditionOf } from "../api/schema/object.ts";
import { encodeDataUrl } from "../ignition/data-url.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { machineApiRights } from "./rights.ts";

const operatorAccount = {
  name: `system:serviceaccount:${namespace}:${objects.operator}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
};
const address = "join.example.com:22623";

const machineApiNamespace = (kube: KubeClient) =>
  kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: machineNamespace } });

/** The machine API with its namespace, and what an administrator applies there. */
async function machineApi(kube: KubeClient, { withRights = true } = {}): Promise<void> {
  await kube.create(kubernetes.CustomResourceDefinition, anyDefinition(openshift.MachineSet));
  await machineApiNamespace(kube);
  if (withRights) await giveRights(kube);
}

async function giveRights(kube: KubeClient): Promise<void> {
  for (const manifest of machineApiRights()) {
    const resource: Resource<KubeObject> = manifest.kind === "Role" ? kubernetes.Role : kubernetes.RoleBinding;
    await kube.apply(resource, manifest, { owner: "administrator", force: true });
  }
}

const atAddress = async (kube: KubeClient) => {
  await until(kube, MachineConfiguration, { name: objects.machineConfiguration }, () => true);
  await kube.patch(
    MachineConfiguration,
    { name: objects.machineConfiguration },
    { type: "merge", body: { metadata: { annotations: { [annotations.configServerAddress]: address } } } },
  );
};

/** Waits for a pool's user data. */
const userDataOf = (kube: KubeClient, pool: string, isWanted: (text: string, secret: Secret) => boolean) =>
  until(kube, kubernetes.Secret, { name: `${pool}-user-data-managed`, namespace: machineNamespace }, (secret) =>
    isWanted(atob(secret.data?.["userData"] ?? ""), secret),
  );

/** Waits until the suite is degraded for a reason, and returns the message. */
const degraded = async (kube: KubeClient, reason: string) => {
  const { status } = await until(kube, ClusterOperator, { name: objects.clusterOperator }, (operator) => {
    const condition = conditionOf(operator.status?.conditions, "Degraded");
    return condition?.status === "True" && condition.reason === reason;
  });
  return conditionOf(status?.conditions, "Degraded")?.message;
};
const healthy = (kube: KubeClient) =>
  until(
    kube,
    ClusterOperator,
    { name: objects.clusterOperator },
    ({ status }) => conditionOf(status?.conditions, "Degraded")?.status === "False",
  );

describe("user data for the machine API", () => {
  test("is kept for each pool by the operator's own rights, and follows authority and address [operator-user-data-1]", async () => {
    const { kube } = await startOperator((admin) => machineApi(admin), { account: operatorAccount });
    await installed(kube);
    await atAddress(kube);
    const worker = await userDataOf(kube, "worker", (text) => text.includes(`https://${address}/config/worker`));
    const pool = await kube.get(MachineConfigPool, { name: "worker" });
    expect(worker.metadata).toMatchObject({
      labels: { [labels.managedUserData]: "" },
      ownerReferences: [{ kind: "MachineConfigPool", name: "worker", uid: pool?.metadata.uid }],
    });
    await userDataOf(kube, "master", (text) => text.includes(`https://${address}/config/master`));
    const { data } = await until(
      kube,
      kubernetes.ConfigMap,
      { name: objects.configServerCa, namespace },
      (map) => map.data?.["ca-bundle.crt"] !== undefined,
    );
    const trusted = encodeDataUrl(data?.["ca-bundle.crt"] ?? "");
    await userDataOf(kube, "worker", (text) => text.includes(trusted));
    await kube.patch(
      kubernetes.ConfigMap,
      { name: objects.configServerCa, namespace },
      { type: "merge", body: { data: { "ca-bundle.crt": "another" } } },
    );
    await userDataOf(kube, "worker", (text) => text.includes(encodeDataUrl("another")));
  });

  test("comes with the namespace: a cluster without it has none, and no error [operator-user-data-2]", async () => {
    const { kube } = await startOperator(() => Promise.resolve(), { account: operatorAccount });
    await installed(kube);
    await atAddress(kube);
    await lookedAgain(kube);
    await healthy(kube);
    expect((await kube.list(kubernetes.Secret, { namespace: machineNamespace })).items).toEqual([]);
    await machineApi(kube, { withRights: false });
    expect(await degraded(kube, "RightsOutdated")).toContain("kubectl apply -f install/machine-api.yaml");
    await giveRights(kube);
    await userDataOf(kube, "worker", (text) => text.includes(address));
    await healthy(kube);
  });

  test("comes with the machine API: a namespace that somebody gave its name asks for no rights [operator-user-data-7]", async () => {
    const { kube } = await startOperator((admin) => machineApiNamespace(admin), { account: operatorAccount });
    await installed(kube);
    await atAddress(kube);
    await lookedAgain(kube);
    await healthy(kube);
    await kube.create(kubernetes.CustomResourceDefinition, anyDefinition(openshift.MachineSet));
    expect(await degraded(kube, "RightsOutdated")).toContain("kubectl apply -f install/machine-api.yaml");
    await giveRights(kube);
    await userDataOf(kube, "worker", (text) => text.includes(address));
    await healthy(kube);
  });

  test("takes over what the reference's operator wrote, and tells what others did; other pools do not wait [operator-user-data-3]", async () => {
    const secret = (pool: string, userData: string, owner: string, kube: KubeClient) =>
      kube.apply(
        kubernetes.Secret,
        {
          metadata: { name: `${pool}-user-data-managed`, namespace: machineNamespace },
          type: "Opaque",
          data: { userData: btoa(userData) },
        },
        { owner },
      );
    const { kube } = await startOperator(async (admin) => {
      await machineApi(admin);
      await secret("worker", "[]", "machine-config-operator", admin);
      await secret("master", "no JSON", "somebody", admin);
    });
    await installed(kube);
    await atAddress(kube);
    await userDataOf(kube, "worker", (text) => text.includes(`https://${address}/config/worker`));
    expect(await degraded(kube, "UserDataFailed")).toBe(
      `UserData: the Secret ${machineNamespace}/master-user-data-managed does not hold the user data of this version, since it was written by somebody; delete the Secret, and the operator makes it`,
    );
    await userDataOf(kube, "master", (text) => text === "no JSON");
    await kube.delete(kubernetes.Secret, { name: "master-user-data-managed", namespace: machineNamespace });
    await userDataOf(kube, "master", (text) => text.includes(`https://${address}/config/master`));
    await healthy(kube);
  });

  test.for<[string, Partial<Secret>, string]>([
    ["is immutable", { immutable: true, type: "Opaque" }, "field is immutable"],
    ["has another type", { type: "example.com/user-data" }, "type: Invalid value"],
  ])(
    "says why a Secret that %s keeps its user data, and makes it when it is deleted [operator-user-data-4]",
    async ([, kept, says]) => {
      const { kube } = await startOperator(async (admin) => {
        await machineApi(admin);
        await admin.apply(
          kubernetes.Secret,
          {
            metadata: { name: "worker-user-data-managed", namespace: machineNamespace },
            data: { userData: btoa("[]") },
            ...kept,
          },
          // What the reference's operator wrote is taken over by force.
          { owner: "machine-config-operator" },
        );
      });
      await installed(kube);
      await atAddress(kube);
      await userDataOf(kube, "master", (text) => text.includes(`https://${address}/config/master`));
      const message = await degraded(kube, "UserDataFailed");
      expect(message).toContain(
        `the Secret ${machineNamespace}/worker-user-data-managed does not hold the user data of this version, since the API server refuses it`,
      );
      expect(message).toContain(says);
      expect(message).toContain("delete the Secret, and the operator makes it");
      await kube.delete(kubernetes.Secret, { name: "worker-user-data-managed", namespace: machineNamespace });
      await userDataOf(kube, "worker", (text) => text.includes(`https://${address}/config/worker`));
      await healthy(kube);
    },
  );

  const installers = (name: string, userData: unknown, more: Partial<Secret> = {}): Secret => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace: machineNamespace },
    data: { userData: btoa(JSON.stringify(userData)) },
    ...more,
  });
  const trusting = (...texts: readonly string[]) => ({
    ignition: {
      version: "3.2.0",
      config: { merge: [{ source: `https://${address}/config/worker` }] },
      security: { tls: { certificateAuthorities: texts.map((text) => ({ source: encodeDataUrl(text) })) } },
    },
  });
  const authorityOf = async (kube: KubeClient): Promise<string> => {
    const isThere = ({ data }: ConfigMap) => data?.["ca-bundle.crt"] !== undefined;
    const { data } = await until(kube, kubernetes.ConfigMap, { name: objects.configServerCa, namespace }, isThere);
    return data?.["ca-bundle.crt"] ?? "";
  };
  const installersUserData = (kube: KubeClient, name: string, authority: string) =>
    until(
      kube,
      kubernetes.Secret,
      { name, namespace: machineNamespace },
      ({ data }) => atob(data?.["userData"] ?? "") === JSON.stringify(trusting(authority)),
    );

  test("that the installer made follows the authority, by the operator's own rights [operator-user-data-5]", async () => {
    const { kube } = await startOperator(
      async (admin) => {
        await machineApi(admin);
        for (const name of ["master-user-data", "worker-user-data", "windows-user-data"])
          await admin.create(kubernetes.Secret, installers(name, trusting("the installer's")));
      },
      { account: operatorAccount },
    );
    await installed(kube);
    await atAddress(kube);
    const authority = await authorityOf(kube);
    await installersUserData(kube, "worker-user-data", authority);
    await installersUserData(kube, "master-user-data", authority);
    await kube.patch(
      kubernetes.ConfigMap,
      { name: objects.configServerCa, namespace },
      { type: "merge", body: { data: { "ca-bundle.crt": "another" } } },
    );
    await installersUserData(kube, "worker-user-data", "another");
    await installersUserData(kube, "windows-user-data", "the installer's");
    const renewed = (await kube.list(kubernetes.Event, {})).items.filter(({ reason }) => reason === "UserDataRenewed");
    expect(renewed.map(({ involvedObject }) => involvedObject.name)).toContain("worker-user-data");
  });

  test("of the installer that is not understood stays, with the remedy in the condition, and others do not wait [operator-user-data-6]", async () => {
    const { kube } = await startOperator(
      async (admin) => {
        await machineApi(admin);
        await admin.create(kubernetes.Secret, installers("arbiter-user-data", trusting("fixed"), { immutable: true }));
        await admin.create(kubernetes.Secret, installers("master-user-data", trusting("one", "two")));
        await admin.create(kubernetes.Secret, installers("worker-user-data", trusting("the installer's")));
      },
      { account: operatorAccount },
    );
    await installed(kube);
    await atAddress(kube);
    await installersUserData(kube, "worker-user-data", await authorityOf(kube));
    const message = await degraded(kube, "InstalledUserDataFailed");
    expect(message).toContain(
      `the Secret ${machineNamespace}/master-user-data does not trust the present authorities of the config server and is left as it is, since its userData names 2 authorities, and not one`,
    );
    expect(message).toContain(
      `the Secret ${machineNamespace}/arbiter-user-data does not trust the present authorities of the config server, since the API server refuses the change`,
    );
    await kube.delete(kubernetes.Secret, { name: "arbiter-user-data", namespace: machineNamespace });
    // As the message says.
    await kube.patch(
      kubernetes.Secret,
      { name: "master-user-data", namespace: machineNamespace },
      { type: "merge", body: { metadata: { labels: { [labels.managedUserData]: "" } } } },
    );
    await healthy(kube);
    const { data } = await until(
      kube,
      kubernetes.Secret,
      { name: "master-user-data", namespace: machineNamespace },
      () => true,
    );
    expect(JSON.parse(atob(data?.["userData"] ?? ""))).toEqual(trusting("one", "two"));
  });
});
