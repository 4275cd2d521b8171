import { onTestFinished, describe, expect, test } from "vitest";
import { type TestCluster, skippableClock, startCluster } from "../../test/support/controllers-harness.ts";
import { type CertificateSigningRequest, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { annotations, joinNamespace, namespace, nodeIdentity, objects, signers } from "../api/names.ts";
import { mostUnderWay } from "../core/join/judge-csr.ts";
import { createEventRecorder } from "../kube/event-recorder.ts";
import { certificateAuthority, requestCertificate } from "../kube/certificates.ts";
import { runControllers } from "../kube/controller.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemRandom } from "../ports/node/index.ts";
import { memoryJournal } from "../ports/journal.ts";
import { joinController } from "./join-controller.ts";

const bootstrapper = (pool: string) => ({
  name: `system:serviceaccount:${joinNamespace}:${objects.nodeBootstrapperPrefix}${pool}`,
  groups: ["system:serviceaccounts", "system:authenticated"],
});
const asNode = (name: string) => ({
  name: `system:node:${name}`,
  groups: [nodeIdentity.group, "system:authenticated"],
});

function pool(name: string): MachineConfigPool {
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfigPool",
    metadata: { name },
    spec: {
      nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } },
      machineConfigSelector: { matchLabels: {} },
    },
  } as unknown as MachineConfigPool;
}

/** The suite's account, with the rights that it needs and no others. */
const controllerUser = {
  name: `system:serviceaccount:${namespace}:${objects.controller}`,
  groups: ["system:serviceaccounts", "system:authenticated"],
};
const rule = (
  apiGroup: string,
  resources: readonly string[],
  verbs: readonly string[],
  resourceNames?: readonly string[],
) => ({ apiGroups: [apiGroup], resources, verbs, ...(resourceNames === undefined ? {} : { resourceNames }) });

async function allow(
  kube: KubeClient,
  name: string,
  user: string,
  rules: readonly ReturnType<typeof rule>[],
): Promise<void> {
  const group = "rbac.authorization.k8s.io";
  await kube.create(kubernetes.ClusterRole, {
    apiVersion: `${group}/v1`,
    kind: "ClusterRole",
    metadata: { name },
    rules,
  } as never);
  await kube.create(kubernetes.ClusterRoleBinding, {
    apiVersion: `${group}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup: group, kind: "ClusterRole", name },
    subjects: [{ kind: "User", apiGroup: group, name: user }],
  } as never);
}

interface JoinHarness extends TestCluster {
  /** Asks for a certificate as somebody. */
  ask(
    who: { readonly name: string; readonly groups: readonly string[] },
    name: string,
    more?: { readonly node?: string; readonly hosts?: readonly string[]; readonly organization?: string },
  ): Promise<void>;
  decided(name: string): Promise<CertificateSigningRequest["status"]>;
}

async function joinHarness(): Promise<JoinHarness> {
  const authority = await certificateAuthority({ name: "ca", clock: skippableClock(), random: systemRandom });
  const cluster = await startCluster({ controllers: { authority } });
  const { kube, clock } = cluster;
  await kube.create(kubernetes.CustomResourceDefinition, MachineConfigPool.crd() as never);
  for (const name of ["master", "worker", "infra"]) await kube.create(MachineConfigPool, pool(name));
  for (const name of ["master", "worker", "infra"])
    await allow(kube, `bootstrap-${name}`, bootstrapper(name).name, [
      rule("certificates.k8s.io", ["certificatesigningrequests"], ["create", "get", "list", "watch"]),
    ]);
  await allow(kube, "controller", controllerUser.name, [
    rule("certificates.k8s.io", ["certificatesigningrequests"], ["list", "watch"]),
    rule("certificates.k8s.io", ["certificatesigningrequests/approval"], ["patch"]),
    rule("certificates.k8s.io", ["signers"], ["approve"], [signers.kubeletClient, signers.kubeletServing]),
    rule("machineconfiguration.openshift.io", ["machineconfigpools"], ["list", "watch"]),
    rule("", ["nodes"], ["list", "watch", "patch"]),
    rule("", ["events"], ["create", "patch"]),
  ]);
  const ending = new AbortController();
  const ports = { clock, random: systemRandom, log: silentLogger, journal: memoryJournal() };
  const own = cluster.as(controllerUser);
  const running = runControllers(
    [joinController()],
    {
      ...ports,
      kube: own,
      events: createEventRecorder({ ...ports, kube: own, component: "controller" }),
      coalesceMs: 5,
    },
    ending.signal,
  );
  onTestFinished(async () => {
    ending.abort();
    await running;
  });
  return Object.assign(cluster, {
    async ask(
      who: { readonly name: string; readonly groups: readonly string[] },
      name: string,
      {
        node = "w9",
        hosts,
        organization = nodeIdentity.group,
      }: { readonly node?: string; readonly hosts?: readonly string[]; readonly organization?: string } = {},
    ) {
      const { request } = await requestCertificate({
        commonName: `system:node:${node}`,
        organizations: [organization],
        ...(hosts === undefined ? {} : { hosts }),
      });
      const spec = {
        request: btoa(request),
        signerName: hosts === undefined ? signers.kubeletClient : signers.kubeletServing,
        usages: ["digital signature", hosts === undefined ? "client auth" : "server auth"],
      };
      await cluster.as(who).create(kubernetes.CertificateSigningRequest, {
        apiVersion: "certificates.k8s.io/v1",
        kind: "CertificateSigningRequest",
        metadata: { name },
        spec,
      } as never);
    },
    async decided(name: string) {
      return (
        await cluster.until(
          kubernetes.CertificateSigningRequest,
          { name },
          (object) => (object?.status?.conditions ?? []).length > 0,
        )
      )?.status;
    },
  });
}

const eventsOf = async ({ kube }: TestCluster, name: string) =>
  (await kube.list(kubernetes.Event, {}, {})).items.filter(({ involvedObject }) => involvedObject.name === name);

describe("machines that join", () => {
  test("get their certificate, the labels of their pool, and then one to serve with [join-controller-1]", async () => {
    const harness = await joinHarness();
    await harness.ask(bootstrapper("infra"), "first");
    await harness.until(
      kubernetes.CertificateSigningRequest,
      { name: "first" },
      (object) => object?.status?.certificate !== undefined,
    );
    expect((await harness.decided("first"))?.conditions?.[0]).toMatchObject({
      type: "Approved",
      reason: "NodeJoins",
      message: "w9 joins pool infra",
    });

    const kubelet = harness.as(asNode("w9"));
    await kubelet.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "w9", labels: { "kubernetes.io/hostname": "w9" } },
    });
    const node = await harness.until(
      kubernetes.Node,
      { name: "w9" },
      (object) => object?.metadata.annotations?.[annotations.joinedPool] === "infra",
    );
    expect(node?.metadata.labels).toEqual({
      "kubernetes.io/hostname": "w9",
      "node-role.kubernetes.io/infra": "",
      "node-role.kubernetes.io/worker": "",
    });

    // It may serve under an address once it has reported that as its own.
    await harness.ask(asNode("w9"), "serving", { hosts: ["w9", "10.0.0.9"] });
    await kubelet.patch(
      kubernetes.Node,
      { name: "w9" },
      {
        type: "merge",
        body: {
          status: {
            addresses: [
              { type: "InternalIP", address: "10.0.0.9" },
              { type: "Hostname", address: "w9" },
            ],
            conditions: [{ type: "Ready", status: "True" }],
          },
        },
      },
      { subresource: "status" },
    );
    await harness.until(
      kubernetes.CertificateSigningRequest,
      { name: "serving" },
      (object) => object?.status?.certificate !== undefined,
    );

    // Whoever takes a label away afterwards means it.
    await harness.kube.patch(
      kubernetes.Node,
      { name: "w9" },
      { type: "merge", body: { metadata: { labels: { "node-role.kubernetes.io/infra": null } } } },
    );
    await harness.ask(asNode("w9"), "renewal");
    await harness.decided("renewal");
    expect((await harness.kube.get(kubernetes.Node, { name: "w9" }))?.metadata.labels).not.toHaveProperty([
      "node-role.kubernetes.io/infra",
    ]);
  });

  test("are told why not, and are let in as soon as nothing speaks against it [join-controller-2]", async () => {
    const harness = await joinHarness();
    await harness.kube.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "w9", labels: { "node-role.kubernetes.io/worker": "" } },
    });
    await harness.kube.patch(
      kubernetes.Node,
      { name: "w9" },
      { type: "merge", body: { status: { conditions: [{ type: "Ready", status: "True" }] } } },
      { subresource: "status" },
    );
    await harness.ask(bootstrapper("worker"), "again");
    await harness.untilAll(kubernetes.Event, {}, (events) =>
      events.some(({ reason, involvedObject }) => reason === "NodeInService" && involvedObject.name === "again"),
    );
    expect(
      (await harness.kube.get(kubernetes.CertificateSigningRequest, { name: "again" }))?.status?.conditions,
    ).toBeUndefined();
    await harness.kube.delete(kubernetes.Node, { name: "w9" });
    expect((await harness.decided("again"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
  });

  test("are denied what nobody may have [join-controller-3]", async () => {
    const harness = await joinHarness();
    await harness.ask(bootstrapper("worker"), "greedy", { organization: "system:masters" });
    expect((await harness.decided("greedy"))?.conditions?.[0]).toMatchObject({ type: "Denied", reason: "Malformed" });
    expect(
      (
        await harness.untilAll(kubernetes.Event, {}, (events) =>
          events.some(({ involvedObject }) => involvedObject.name === "greedy"),
        )
      )
        .filter(({ involvedObject }) => involvedObject.name === "greedy")
        .map(({ type }) => type),
    ).toEqual(["Warning"]);
  });

  test("more at once than may be under way are let in as others come [join-controller-4]", async () => {
    const harness = await joinHarness();
    const names = Array.from({ length: mostUnderWay + 5 }, (_, index) => `w${index}`);
    for (const name of names) await harness.ask(bootstrapper("worker"), `join-${name}`, { node: name });
    const approved = async () =>
      (await harness.kube.list(kubernetes.CertificateSigningRequest)).items.filter(({ status }) =>
        (status?.conditions ?? []).some(({ type }) => type === "Approved"),
      );
    await harness.untilAll(
      kubernetes.Event,
      {},
      (events) =>
        new Set(
          events.filter(({ reason }) => reason === "TooManyUnderWay").map(({ involvedObject }) => involvedObject.name),
        ).size === 5,
    );
    const first = await approved();
    expect(first).toHaveLength(mostUnderWay);
    for (const { metadata } of first.slice(0, 5))
      await harness.kube.create(kubernetes.Node, {
        apiVersion: "v1",
        kind: "Node",
        metadata: { name: metadata.name.slice("join-".length) },
      });
    for (const name of names) await harness.decided(`join-${name}`);
    expect(await approved()).toHaveLength(names.length);
  });

  test("a pool that comes later lets its machines in; requests of others are never touched [join-controller-5]", async () => {
    const harness = await joinHarness();
    await allow(harness.kube, "bootstrap-late", bootstrapper("late").name, [
      rule("certificates.k8s.io", ["certificatesigningrequests"], ["create"]),
    ]);
    await harness.ask(bootstrapper("late"), "late", { node: "l0" });
    await harness.ask({ name: "admin", groups: ["system:masters"] }, "other", { node: "l1" });
    await harness.untilAll(kubernetes.Event, {}, (events) => events.some(({ reason }) => reason === "PoolUnknown"));
    await harness.kube.create(MachineConfigPool, pool("late"));
    expect((await harness.decided("late"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
    expect(
      (await harness.kube.get(kubernetes.CertificateSigningRequest, { name: "other" }))?.status?.conditions,
    ).toBeUndefined();
    expect(await eventsOf(harness, "other")).toEqual([]);
  });
});
