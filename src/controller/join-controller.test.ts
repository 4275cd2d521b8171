import { onTestFinished, describe, expect, test } from "vitest";
import { type TestCluster, skippableClock, startCluster } from "../../test/support/controllers-harness.ts";
import { type CertificateSigningRequest, kubernetes } from "../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { annotations, joinNamespace, namespace, nodeIdentity, objects, signers } from "../api/names.ts";
import { createEventRecorder } from "../kube/event-recorder.ts";
import { certificateAuthority, requestCertificate } from "../kube/certificates.ts";
import { runControllers } from "../kube/controller.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemRandom } from "../ports/node/index.ts";
import { memoryJournal } from "../ports/journal.ts";
import { bindingController, placeController } from "./binding-controller.ts";
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
    more?: {
      readonly node?: string;
      readonly hosts?: readonly string[];
      readonly organization?: string;
      /** PEM of a request that was made before, in place of one with a new key. */
      readonly request?: string | undefined;
      readonly expirationSeconds?: number | undefined;
    },
  ): Promise<void>;
  decided(name: string): Promise<CertificateSigningRequest["status"]>;
  /** A configuration of the pool was served. */
  serve(pool: string, spec?: Partial<JoinPlace["spec"]>): Promise<string>;
  /** Resolves once the controller says of a request that it waits, and why. */
  waits(name: string, reason: string): Promise<string>;
  binding(name: string): Promise<NodeBinding | undefined>;
}

async function joinHarness(): Promise<JoinHarness> {
  const authority = await certificateAuthority({ name: "ca", clock: skippableClock(), random: systemRandom });
  const cluster = await startCluster({ controllers: { authority } });
  const { kube, clock } = cluster;
  for (const kind of [MachineConfigPool, ControllerConfig, JoinPlace, NodeBinding, ProvisioningToken])
    await kube.create(kubernetes.CustomResourceDefinition, kind.crd() as never);
  for (const name of ["master", "worker", "infra"]) await kube.create(MachineConfigPool, pool(name));
  for (const name of ["master", "worker", "infra"])
    await allow(kube, `bootstrap-${name}`, bootstrapper(name).name, [
      rule("certificates.k8s.io", ["certificatesigningrequests"], ["create", "get", "list", "watch"]),
    ]);
  await allow(kube, "controller", controllerUser.name, [
    rule("certificates.k8s.io", ["certificatesigningrequests"], ["list", "watch"]),
    rule("certificates.k8s.io", ["certificatesigningrequests/approval"], ["patch"]),
    rule("certificates.k8s.io", ["signers"], ["approve"], [signers.kubeletClient, signers.kubeletServing]),
    rule("machineconfiguration.openshift.io", ["machineconfigpools", "controllerconfigs"], ["list", "watch"]),
    rule("machineconfiguration.openshift.io", ["provisioningtokens", "joinplaces"], ["list", "watch", "delete"]),
    rule("machineconfiguration.openshift.io", ["nodebindings"], ["list", "watch", "create", "patch", "delete"]),
    rule("", ["services"], ["list", "watch"]),
    rule("", ["nodes"], ["list", "watch", "patch"]),
    rule("", ["events"], ["create", "patch"]),
  ]);
  const ending = new AbortController();
  const ports = { clock, random: systemRandom, log: silentLogger, journal: memoryJournal() };
  const own = cluster.as(controllerUser);
  const running = runControllers(
    [joinController(), bindingController(), placeController()],
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
        request = undefined as string | undefined,
        expirationSeconds = undefined as number | undefined,
      }: Parameters<JoinHarness["ask"]>[2] = {},
    ) {
      const text =
        request ??
        (
          await requestCertificate({
            commonName: `system:node:${node}`,
            organizations: [organization],
            ...(hosts === undefined ? {} : { hosts }),
          })
        ).request;
      const spec = {
        request: btoa(text),
        ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
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
    async serve(name: string, spec: Partial<JoinPlace["spec"]> = {}) {
      const expiresAt = new Date(clock.now() + 3_600_000).toISOString();
      const metadata = { name: `${name}-${systemRandom.uuid()}` };
      const place = {
        apiVersion: JoinPlace.apiVersion,
        kind: JoinPlace.kind,
        metadata,
        spec: { pool: name, expiresAt, ...spec },
      };
      return (await kube.create(JoinPlace, place as never)).metadata.name;
    },
    async waits(name: string, reason: string) {
      const events = await cluster.untilAll(kubernetes.Event, {}, (all) =>
        all.some((event) => event.reason === reason && event.involvedObject.name === name),
      );
      return events.find((event) => event.reason === reason && event.involvedObject.name === name)?.message ?? "";
    },
    binding: (name: string) => kube.get(NodeBinding, { name }),
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
    await harness.serve("infra", { addresses: ["10.0.0.9"] });
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

    // It may serve under the address that it fetched its configuration from.
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
    await harness.serve("worker");
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

  test("each served configuration lets one new name in, and others wait for theirs [join-controller-4]", async () => {
    const harness = await joinHarness();
    await harness.serve("worker");
    await harness.serve("master");
    await harness.ask(bootstrapper("worker"), "one", { node: "w1" });
    expect((await harness.decided("one"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
    await harness.ask(bootstrapper("worker"), "two", { node: "w2" });
    expect(await harness.waits("two", "NoPlace")).toContain("mco token create --pool worker --node w2 --pointer");
    // Ghosts take nobody's place: the next machine brings its own.
    await harness.serve("worker");
    expect((await harness.decided("two"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
    expect((await harness.binding("w1"))?.spec.place).not.toBe((await harness.binding("w2"))?.spec.place);
  });

  test("a pool that comes later lets its machines in; requests of others are never touched [join-controller-5]", async () => {
    const harness = await joinHarness();
    await allow(harness.kube, "bootstrap-late", bootstrapper("late").name, [
      rule("certificates.k8s.io", ["certificatesigningrequests"], ["create"]),
    ]);
    await harness.serve("late");
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

describe("a name", () => {
  const newRequest = (node: string) =>
    requestCertificate({ commonName: `system:node:${node}`, organizations: [nodeIdentity.group] });

  test("belongs to one key: a second one gets no certificate, the first gets another [join-controller-6]", async () => {
    const harness = await joinHarness();
    const own = await newRequest("w1");
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "own", { node: "w1", request: own.request });
    await harness.decided("own");
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "thief", { node: "w1" });
    expect(await harness.waits("thief", "NameBound")).toContain("mco node release w1");
    // Also of another pool, and after the machine has registered.
    await harness.serve("master");
    await harness.ask(bootstrapper("master"), "other-pool", { node: "w1" });
    expect(await harness.waits("other-pool", "NameBound")).toContain("of the pool worker");
    await harness
      .as(asNode("w1"))
      .create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } });
    await harness.ask(bootstrapper("worker"), "late-thief", { node: "w1" });
    await harness.waits("late-thief", "NameBound");
    await harness.ask(bootstrapper("worker"), "again", { node: "w1", request: own.request });
    expect((await harness.decided("again"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
    for (const name of ["thief", "other-pool", "late-thief"])
      expect(
        (await harness.kube.get(kubernetes.CertificateSigningRequest, { name }))?.status?.conditions,
      ).toBeUndefined();
  });

  test("of the control plane is not for a worker's account, where a token holds it [join-controller-7]", async () => {
    const harness = await joinHarness();
    await harness.kube.create(ProvisioningToken, {
      apiVersion: ProvisioningToken.apiVersion,
      kind: ProvisioningToken.kind,
      metadata: { name: "abcdefghij" },
      spec: { pool: "master", tokenHash: "0".repeat(64), maxUses: 1, node: "master-3" },
    });
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "thief", { node: "master-3" });
    expect(await harness.waits("thief", "NameReserved")).toContain("pool master");
    await harness.serve("master", { node: "master-3" });
    await harness.ask(bootstrapper("master"), "own", { node: "master-3" });
    expect((await harness.decided("own"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
  });

  test("moves with the key that its node renews by, and the old key is good no more [join-controller-8]", async () => {
    const harness = await joinHarness();
    const [old, next] = [await newRequest("w1"), await newRequest("w1")];
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "old", { node: "w1", request: old.request, expirationSeconds: 3600 });
    await harness.decided("old");
    const before = await harness.binding("w1");
    await harness
      .as(asNode("w1"))
      .create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } });
    await harness.ask(asNode("w1"), "next", { node: "w1", request: next.request });
    expect((await harness.decided("next"))?.conditions?.[0]).toMatchObject({ reason: "NodeRenews" });
    const after = await harness.binding("w1");
    expect(after?.spec.publicKey).not.toBe(before?.spec.publicKey);
    expect(Date.parse(after?.spec.expiresAt ?? "")).toBeGreaterThan(Date.parse(before?.spec.expiresAt ?? ""));
    expect(after?.spec.place).toBe(before?.spec.place);
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "old-again", { node: "w1", request: old.request });
    await harness.waits("old-again", "NameBound");
  });

  test("is free when its Node is deleted, and when its binding is, with an Event each [join-controller-9]", async () => {
    const harness = await joinHarness();
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "first", { node: "w1" });
    await harness.decided("first");
    await harness
      .as(asNode("w1"))
      .create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } });
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.nodeUID !== undefined);
    await harness.kube.delete(kubernetes.Node, { name: "w1" });
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding === undefined);
    const released = (count: number) =>
      harness.untilAll(kubernetes.Event, {}, (events) => {
        const own = events.filter(({ reason, message }) => reason === "NameReleased" && message?.includes("w1"));
        return own.reduce((sum, event) => sum + (event.count ?? 1), 0) >= count;
      });
    await released(1);
    // The machine that is installed anew has another key.
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "second", { node: "w1" });
    await harness.decided("second");
    await harness.kube.delete(NodeBinding, { name: "w1" });
    await released(2);
    await harness.serve("infra");
    await harness.ask(bootstrapper("infra"), "third", { node: "w1" });
    expect((await harness.decided("third"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
  });

  test("serves under no address of a Service, and under none that only its Node claims [join-controller-10]", async () => {
    const harness = await joinHarness();
    await harness.kube.create(kubernetes.Service, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "shop", namespace: "default" },
      spec: { clusterIP: "10.96.0.77", ports: [{ port: 443 }] },
    } as never);
    await harness.serve("worker", { addresses: ["10.0.0.1", "10.96.0.77"] });
    await harness.ask(bootstrapper("worker"), "first", { node: "w1" });
    await harness.decided("first");
    const kubelet = harness.as(asNode("w1"));
    await kubelet.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } });
    const addresses = ["10.0.0.1", "10.0.0.2", "10.96.0.77"].map((address) => ({ type: "InternalIP", address }));
    await kubelet.patch(
      kubernetes.Node,
      { name: "w1" },
      { type: "merge", body: { status: { addresses } } },
      { subresource: "status" },
    );
    await harness.ask(asNode("w1"), "service", { node: "w1", hosts: ["w1", "10.96.0.77"] });
    expect((await harness.decided("service"))?.conditions?.[0]).toMatchObject({
      type: "Denied",
      reason: "NotItsOwn",
      message: expect.stringContaining("default/shop") as string,
    });
    await harness.ask(asNode("w1"), "claimed", { node: "w1", hosts: ["w1", "10.0.0.2"] });
    expect(await harness.waits("claimed", "AddressUnknown")).toContain("mco node address w1 10.0.0.2");
    await harness.kube.patch(
      NodeBinding,
      { name: "w1" },
      { type: "merge", body: { spec: { addresses: ["10.0.0.1", "10.0.0.2"] } } },
    );
    expect((await harness.decided("claimed"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
  });
});
