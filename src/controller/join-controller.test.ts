import { X509Certificate } from "node:crypto";
import { onTestFinished, describe, expect, test } from "vitest";
import { type TestCluster, skippableClock, startCluster } from "../../test/support/controllers-harness.ts";
import type { UserInfo } from "../standin/apiserver/schema/contract.ts";
import { type CertificateSigningRequest, kubernetes } from "../api/foreign/kubernetes.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import {
  annotations,
  joinNamespace,
  machineNamespace,
  namespace,
  nodeIdentity,
  objects,
  signers,
} from "../api/names.ts";
import { createEventRecorder } from "../kube/event-recorder.ts";
import { certificateAuthority, requestCertificate } from "../kube/certificates.ts";
import { runControllers } from "../kube/controller.ts";
import { KubeError } from "../kube/kube-error.ts";
import { done } from "../kube/outcome.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemRandom } from "../ports/node/index.ts";
import { memoryJournal } from "../ports/journal.ts";
import { bindingController, placeController } from "./binding-controller.ts";
import { credentialKey } from "../core/join/certificate-holder.ts";
import { DecisionMeter } from "../core/metrics/decision-meter.ts";
import { joinController } from "./join-controller.ts";

const bootstrapper = (pool: string): UserInfo => ({
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

/** The machine API, as far as its objects are stored and served. */
const serveMachines = (kube: KubeClient) =>
  kube.create(kubernetes.CustomResourceDefinition, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "machines.machine.openshift.io" },
    spec: {
      group: "machine.openshift.io",
      scope: "Namespaced",
      names: { plural: "machines", singular: "machine", kind: "Machine", listKind: "MachineList" },
      versions: [
        {
          name: "v1beta1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  } as never);

interface JoinHarness extends TestCluster {
  /** How many requests were decided so. */
  decidedSoFar(verdict: string, reason: string): number | undefined;
  /** Asks for a certificate as somebody. */
  ask(
    who: UserInfo,
    name: string,
    more?: {
      readonly node?: string;
      readonly hosts?: readonly string[];
      readonly organization?: string;
      /** PEM of a request that was made before, in place of one with a new key. */
      readonly request?: string | undefined;
      readonly expirationSeconds?: number | undefined;
      /** The id of the token that it is sent with; absent: that of the account's oldest configuration that nobody used, or another. */
      readonly credential?: string | undefined;
    },
  ): Promise<void>;
  decided(name: string): Promise<CertificateSigningRequest["status"]>;
  /** A configuration of the pool was served. @returns the id of the token in it. */
  serve(pool: string, spec?: Partial<JoinPlace["spec"]>): Promise<string>;
  /** Resolves once the controller reports that a request waits, and why. */
  waits(name: string, reason: string): Promise<string>;
  /** An administrator approves a request. */
  approve(name: string): Promise<void>;
  binding(name: string): Promise<NodeBinding | undefined>;
  /** Signs an approved request for a client certificate in the place of the cluster's signer. */
  sign(name: string, lifeSeconds: number): Promise<void>;
}

/** @param signs whether the cluster's signer is up. */
async function joinHarness({ signs = true } = {}): Promise<JoinHarness> {
  const authority = await certificateAuthority({ name: "ca", clock: skippableClock(), random: systemRandom });
  const cluster = await startCluster({ controllers: signs ? { authority } : {} });
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
    rule("machineconfiguration.openshift.io", ["joinplaces/status"], ["patch"]),
    rule("machineconfiguration.openshift.io", ["nodebindings"], ["list", "watch", "create", "patch", "delete"]),
    rule("", ["services", "namespaces"], ["list", "watch"]),
    rule("", ["nodes"], ["list", "watch", "patch"]),
    rule("", ["events"], ["create", "patch"]),
    rule("machine.openshift.io", ["machines"], ["list"]),
  ]);
  const decisions = new DecisionMeter();
  const ending = new AbortController();
  const ports = { clock, random: systemRandom, log: silentLogger, journal: memoryJournal() };
  const own = cluster.as(controllerUser);
  const running = runControllers(
    [joinController(decisions), bindingController(), placeController()],
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
  /** Account → ids of the tokens in configurations that were served, and that no request used. */
  const served = new Map<string, string[]>();
  return Object.assign(cluster, {
    decidedSoFar: (verdict: string, reason: string) =>
      decisions
        .families()[0]
        ?.samples.find(({ labels }) => labels["verdict"] === verdict && labels["reason"] === reason)?.value,
    async ask(
      who: UserInfo,
      name: string,
      {
        node = "w9",
        hosts,
        organization = nodeIdentity.group,
        request = undefined as string | undefined,
        expirationSeconds = undefined as number | undefined,
        credential = served.get(who.name)?.shift() ??
          (who.name.startsWith("system:serviceaccount:") ? `JTI=${systemRandom.uuid()}` : undefined),
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
      const extra = credential === undefined ? who.extra : { [credentialKey]: [credential] };
      await cluster
        .as({ ...who, ...(extra === undefined ? {} : { extra }) })
        .create(kubernetes.CertificateSigningRequest, {
          apiVersion: "certificates.k8s.io/v1",
          kind: "CertificateSigningRequest",
          metadata: { name },
          spec,
        } as never);
    },
    async serve(name: string, spec: Partial<JoinPlace["spec"]> = {}) {
      const expiresAt = new Date(clock.now() + 3_600_000).toISOString();
      const credential = `JTI=${systemRandom.uuid()}`;
      const account = bootstrapper(name).name;
      served.set(account, [...(served.get(account) ?? []), credential]);
      const metadata = { name: `${name}-${systemRandom.uuid()}` };
      const place = {
        apiVersion: JoinPlace.apiVersion,
        kind: JoinPlace.kind,
        metadata,
        spec: { pool: name, expiresAt, credential, ...spec },
      };
      await kube.create(JoinPlace, place as never);
      return credential;
    },
    async waits(name: string, reason: string) {
      const events = await cluster.untilAll(kubernetes.Event, {}, (all) =>
        all.some((event) => event.reason === reason && event.involvedObject.name === name),
      );
      return events.find((event) => event.reason === reason && event.involvedObject.name === name)?.message ?? "";
    },
    async approve(name: string) {
      const conditions = [{ type: "Approved", status: "True", reason: "KubectlApprove", message: "by hand" }];
      await kube.patch(
        kubernetes.CertificateSigningRequest,
        { name },
        { type: "merge", body: { status: { conditions } } },
        { subresource: "approval" },
      );
    },
    binding: (name: string) => kube.get(NodeBinding, { name }),
    async sign(name: string, lifeSeconds: number) {
      const spec = (await kube.get(kubernetes.CertificateSigningRequest, { name }))?.spec;
      const certificate = await authority.sign({
        request: atob(spec?.request ?? ""),
        commonName: spec?.username ?? "",
        organizations: [nodeIdentity.group],
        dnsNames: [],
        ipAddresses: [],
        usages: spec?.usages ?? [],
        lifeSeconds,
      });
      const body = { status: { certificate: btoa(certificate ?? "") } };
      const key = { subresource: "status" } as const;
      await kube.patch(kubernetes.CertificateSigningRequest, { name }, { type: "merge", body }, key);
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

const newRequest = (node: string) =>
  requestCertificate({ commonName: `system:node:${node}`, organizations: [nodeIdentity.group] });

const eventsOf = async ({ kube }: TestCluster, name: string) =>
  (await kube.list(kubernetes.Event, {}, {})).items.filter(({ involvedObject }) => involvedObject.name === name);

describe("machines that join", () => {
  test("get a client certificate, the labels of their pool, and then a serving certificate [join-controller-1]", async () => {
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

    // A label that is removed afterwards was removed on purpose.
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

  test("are denied with a reason, and admitted once the reason is gone [join-controller-2]", async () => {
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

  test("are denied names that no machine may have [join-controller-3]", async () => {
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

  test("are counted once each by verdict and reason; the count of denials starts at zero [join-controller-11]", async () => {
    const harness = await joinHarness();
    expect(harness.decidedSoFar("deny", "Malformed")).toBe(0);
    await harness.ask(bootstrapper("worker"), "greedy", { organization: "system:masters" });
    await harness.decided("greedy");
    await harness.ask(bootstrapper("worker"), "early");
    await harness.untilAll(kubernetes.Event, {}, (events) =>
      events.some(({ reason, involvedObject }) => reason === "NoPlace" && involvedObject.name === "early"),
    );
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "late");
    await harness.decided("late");
    await harness.untilAll(kubernetes.Event, {}, (events) => events.some(({ reason }) => reason === "NodeJoins"));
    expect(
      [
        ["deny", "Malformed"],
        ["deny", "NotItsOwn"],
        ["wait", "NoPlace"],
        ["approve", "NodeJoins"],
      ].map(([verdict = "", reason = ""]) => harness.decidedSoFar(verdict, reason)),
    ).toEqual([1, 0, 1, 1]);
  });

  test("enter with one new name for each served configuration; others wait for theirs [join-controller-4]", async () => {
    const harness = await joinHarness();
    await harness.serve("worker");
    await harness.serve("master");
    await harness.ask(bootstrapper("worker"), "one", { node: "w1" });
    expect((await harness.decided("one"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
    await harness.ask(bootstrapper("worker"), "two", { node: "w2" });
    expect(await harness.waits("two", "NoPlace")).toContain("mco token create --pool worker --node w2 --pointer");
    // Ghosts take nobody's place: the next machine brings its own.
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "three", { node: "w2" });
    expect((await harness.decided("three"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
    expect((await harness.binding("w1"))?.spec.place).not.toBe((await harness.binding("w2"))?.spec.place);
  });

  test("are admitted by a pool created later; other users' requests are never decided [join-controller-5]", async () => {
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
  test("belongs to one key: a second one gets no certificate, the first gets another [join-controller-6]", async () => {
    const harness = await joinHarness();
    const own = await newRequest("w1");
    const credential = await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "own", { node: "w1", request: own.request, credential });
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
    await harness.ask(bootstrapper("worker"), "again", { node: "w1", request: own.request, credential });
    expect((await harness.decided("again"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
    for (const name of ["thief", "other-pool", "late-thief"])
      expect(
        (await harness.kube.get(kubernetes.CertificateSigningRequest, { name }))?.status?.conditions,
      ).toBeUndefined();
  });

  test("of the control plane that a token holds is refused to a worker's account [join-controller-7]", async () => {
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

  test("moves to the key of its node's renewal, and the old key is refused [join-controller-8]", async () => {
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

  test("is free once its Node or its binding is deleted, with an Event each [join-controller-9]", async () => {
    const harness = await joinHarness();
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "first", { node: "w1" });
    await harness.decided("first");
    await harness
      .as(asNode("w1"))
      .create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } });
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.nodeUID !== undefined);
    await harness.kube.delete(kubernetes.Node, { name: "w1" });
    await harness.until(
      NodeBinding,
      { name: "w1" },
      (binding) => binding?.spec.releasedAt !== undefined && binding.spec.nodeUID === undefined,
    );
    const released = (count: number) =>
      harness.untilAll(kubernetes.Event, {}, (events) => {
        const own = events.filter(({ reason, message }) => reason === "NameReleased" && message?.includes("w1"));
        return own.reduce((sum, event) => sum + (event.count ?? 1), 0) >= count;
      });
    await released(1);
    // The machine that is installed again has another key.
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "second", { node: "w1" });
    await harness.decided("second");
    await harness.kube.delete(NodeBinding, { name: "w1" });
    await released(2);
    await harness.serve("infra");
    await harness.ask(bootstrapper("infra"), "third", { node: "w1" });
    expect((await harness.decided("third"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
  });

  test("gets no serving certificate for a Service's address, or for one that only its Node claims [join-controller-10]", async () => {
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

  test("gets a serving certificate for its own machine's address in the machine API, not for another's [join-controller-19]", async () => {
    const harness = await joinHarness();
    await serveMachines(harness.kube);
    await harness.kube.create(kubernetes.Namespace, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: machineNamespace },
    });
    for (const [name, node, address] of [
      ["m1", "w1", "10.0.0.2"],
      ["m2", "w2", "10.0.0.3"],
    ] as const) {
      const made = {
        apiVersion: "machine.openshift.io/v1beta1",
        kind: "Machine",
        metadata: { name, namespace: machineNamespace },
      };
      await harness.kube.create(openshift.Machine, {
        ...made,
        status: { nodeRef: { name: node }, addresses: [{ type: "InternalIP", address }] },
      });
    }
    await harness.serve("worker", { addresses: ["10.0.0.1"] });
    await harness.ask(bootstrapper("worker"), "first", { node: "w1" });
    await harness.decided("first");
    await harness
      .as(asNode("w1"))
      .create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } });
    await harness.ask(asNode("w1"), "own", { node: "w1", hosts: ["w1", "10.0.0.1", "10.0.0.2"] });
    expect((await harness.decided("own"))?.conditions?.[0]).toMatchObject({ type: "Approved", reason: "NodeServes" });
    await harness.ask(asNode("w1"), "others", { node: "w1", hosts: ["w1", "10.0.0.3"] });
    await harness.waits("others", "AddressUnknown");
  });
});

test("a node whose join was not recorded is not ours, whatever its annotation says [attack-first-pool-2]", async () => {
  const harness = await joinHarness();
  const metadata = {
    name: "w5",
    labels: { "node-role.kubernetes.io/worker": "" },
    annotations: { [annotations.joinedPool]: "infra" },
  };
  await harness.kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata });
  await harness.ask(asNode("w5"), "renewal", { node: "w5" });
  await harness.serve("worker");
  await harness.ask(bootstrapper("worker"), "after", { node: "w6" });
  await harness.decided("after");
  expect((await harness.kube.get(kubernetes.CertificateSigningRequest, { name: "renewal" }))?.status ?? {}).toEqual({});
  expect(await harness.binding("w5")).toBeUndefined();
});

test("gets its certificate despite another node's report or a Service's author [attack-joining-9]", async () => {
  const harness = await joinHarness();
  for (const [node, address] of [
    ["w1", "10.0.0.1"],
    ["w2", "10.0.0.2"],
  ] as const) {
    await harness.serve("worker", { addresses: [address] });
    await harness.ask(bootstrapper("worker"), `first-${node}`, { node });
    await harness.decided(`first-${node}`);
    await harness
      .as(asNode(node))
      .create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: node } });
  }
  const claimed = [
    { type: "InternalIP", address: "10.0.0.1" },
    { type: "Hostname", address: "w1" },
  ];
  await harness
    .as(asNode("w2"))
    .patch(
      kubernetes.Node,
      { name: "w2" },
      { type: "merge", body: { status: { addresses: claimed } } },
      { subresource: "status" },
    );
  await harness.kube.create(kubernetes.Service, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "shop", namespace: "default" },
    spec: { clusterIP: "10.96.0.77", externalIPs: ["10.0.0.1"], ports: [{ port: 443 }] },
  } as never);
  await harness.ask(asNode("w1"), "own", { node: "w1", hosts: ["w1", "10.0.0.1"] });
  expect((await harness.decided("own"))?.conditions?.[0]).toMatchObject({ type: "Approved", reason: "NodeServes" });
  await harness.ask(asNode("w2"), "stolen", { node: "w2", hosts: ["w2", "10.0.0.1"] });
  expect((await harness.decided("stolen"))?.conditions?.[0]).toMatchObject({ type: "Denied", reason: "NotItsOwn" });
});

test("serves under no host of the API server, where no Infrastructure names it either [attack-joining-16]", async () => {
  const harness = await joinHarness();
  await harness.kube.create(ControllerConfig, {
    apiVersion: ControllerConfig.apiVersion,
    kind: ControllerConfig.kind,
    metadata: {
      name: objects.controllerConfig,
      annotations: { [annotations.apiServerHosts]: "cp.example.com,10.0.0.100" },
    },
    spec: {
      clusterDNSIP: "10.0.0.10",
      cloudProviderConfig: "",
      kubeAPIServerServingCAData: "",
      rootCAData: "",
      cloudProviderCAData: null,
      additionalTrustBundle: null,
      images: {},
      baseOSContainerImage: "os@sha256:0",
      releaseImage: "r",
      proxy: null,
      infra: null,
      dns: null,
      ipFamilies: "IPv4",
    },
  } as never);
  for (const [node, hosts] of [
    // The machine takes the name itself, or its kubelet reports it as the longer form of the machine's name.
    ["cp.example.com", ["cp.example.com"]],
    ["cp", ["cp", "cp.example.com"]],
  ] as const) {
    await harness.serve("worker", { addresses: ["10.0.0.1"] });
    await harness.ask(bootstrapper("worker"), `first-${node}`, { node });
    await harness.decided(`first-${node}`);
    const kubelet = harness.as(asNode(node));
    await kubelet.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: node } });
    const reported = [{ type: "Hostname", address: "cp.example.com" }];
    const body = { status: { addresses: reported } };
    await kubelet.patch(kubernetes.Node, { name: node }, { type: "merge", body }, { subresource: "status" });
    await harness.ask(asNode(node), `serving-${node}`, { node, hosts });
    expect((await harness.decided(`serving-${node}`))?.conditions?.[0]).toMatchObject({
      type: "Denied",
      message: "cp.example.com is the API server or the config server",
    });
    await harness.kube.delete(kubernetes.Node, { name: node });
    await harness.until(NodeBinding, { name: node }, (binding) => binding?.spec.releasedAt !== undefined);
  }
});

describe("a machine whose Node was deleted", () => {
  const byRole = (name: string) => `node-role.kubernetes.io/${name}`;

  /** A machine that has joined and is in its pool. */
  async function joined(harness: JoinHarness, pool: string, node: string) {
    const { request } = await newRequest(node);
    const credential = await harness.serve(pool);
    await harness.ask(bootstrapper(pool), `first-${node}`, { node, request, credential });
    await harness.decided(`first-${node}`);
    await register(harness, node);
    await harness.until(NodeBinding, { name: node }, (binding) => binding?.spec.lastPool === pool);
    return { request, credential };
  }
  /** Its kubelet registers, and says what it likes of itself. */
  const register = (harness: JoinHarness, node: string) =>
    harness.as(asNode(node)).create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name: node,
        annotations: {
          [annotations.currentConfig]: "rendered-master-0123456789abcdef0123456789abcdef",
          "machineconfiguration.openshift.io/customPoolLabelsApplied": "true",
        },
      },
    } as never);
  async function forget(harness: JoinHarness, node: string): Promise<void> {
    await harness.kube.delete(kubernetes.Node, { name: node });
    await harness.until(NodeBinding, { name: node }, (binding) => binding?.spec.releasedAt !== undefined);
  }
  const labelsOf = async (harness: JoinHarness, node: string) =>
    (await harness.kube.get(kubernetes.Node, { name: node }))?.metadata.labels ?? {};
  /** Resolves after the controllers have seen everything that was written before: another machine has returned. */
  async function caughtUp(harness: JoinHarness): Promise<void> {
    await forget(harness, "probe");
    await register(harness, "probe");
    await harness.until(NodeBinding, { name: "probe" }, (binding) => binding?.spec.nodeUID !== undefined);
  }

  test("or whose labels an administrator removed gets none back by removing an annotation [attack-joining-19]", async () => {
    const harness = await joinHarness();
    await joined(harness, "infra", "w1");
    await harness.until(
      kubernetes.Node,
      { name: "w1" },
      (node) => node?.metadata.annotations?.[annotations.joinedPool] === "infra",
    );
    const removed = { [byRole("infra")]: null, [byRole("worker")]: null };
    await harness.kube.patch(
      kubernetes.Node,
      { name: "w1" },
      { type: "merge", body: { metadata: { labels: removed } } },
    );
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.lastPool === "");
    await harness
      .as(asNode("w1"))
      .patch(
        kubernetes.Node,
        { name: "w1" },
        { type: "merge", body: { metadata: { annotations: { [annotations.joinedPool]: null } } } },
      );
    await joined(harness, "worker", "w2");
    expect(await labelsOf(harness, "w1")).toEqual({});
  });

  test("returns to its pool each time it registers with its certificate [join-controller-12]", async () => {
    const harness = await joinHarness();
    await joined(harness, "infra", "w1");
    for (const _ of [1, 2]) {
      await forget(harness, "w1");
      await register(harness, "w1");
      const node = await harness.until(
        kubernetes.Node,
        { name: "w1" },
        (object) => object?.metadata.labels?.[byRole("infra")] !== undefined,
      );
      expect(node?.metadata.labels).toEqual({ [byRole("infra")]: "", [byRole("worker")]: "" });
      const binding = await harness.until(
        NodeBinding,
        { name: "w1" },
        (object) => object?.spec.nodeUID === node?.metadata.uid,
      );
      expect(binding?.spec).toMatchObject({ pool: "infra", lastPool: "infra" });
      expect(binding?.spec.releasedAt).toBeUndefined();
    }
    const events = await eventsOf(harness, "w1");
    expect(events.find(({ reason }) => reason === "NodeReturned")?.message).toContain("pool infra as before");
  });

  test("gets no label of the control plane back, whatever it claims [join-controller-13]", async () => {
    const harness = await joinHarness();
    await joined(harness, "worker", "probe");
    await joined(harness, "master", "m1");
    await forget(harness, "m1");
    await register(harness, "m1");
    await caughtUp(harness);
    expect(await labelsOf(harness, "m1")).toEqual({});
    // A worker does not become a master by what it says, either.
    await joined(harness, "worker", "w1");
    await forget(harness, "w1");
    await register(harness, "w1");
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.nodeUID !== undefined);
    expect(await labelsOf(harness, "w1")).toEqual({ [byRole("worker")]: "" });
  });

  test("gets no label back after a move to another pool or out of every pool [join-controller-14]", async () => {
    const harness = await joinHarness();
    await joined(harness, "worker", "probe");
    for (const [node, change, last] of [
      ["w1", { [byRole("infra")]: "" }, "infra"],
      ["w2", { [byRole("worker")]: null }, ""],
    ] as const) {
      await joined(harness, "worker", node);
      await harness.kube.patch(
        kubernetes.Node,
        { name: node },
        { type: "merge", body: { metadata: { labels: change } } },
      );
      await harness.until(NodeBinding, { name: node }, (binding) => binding?.spec.lastPool === last);
      await forget(harness, node);
      await register(harness, node);
      await caughtUp(harness);
      expect(await labelsOf(harness, node)).toEqual({});
    }
    // The administrator's label counts from now on.
    await harness.kube.patch(
      kubernetes.Node,
      { name: "w1" },
      { type: "merge", body: { metadata: { labels: { [byRole("infra")]: "" } } } },
    );
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.nodeUID !== undefined);
  });

  test("leaves no label to a machine that takes its name with another key [join-controller-15]", async () => {
    const harness = await joinHarness();
    await joined(harness, "infra", "w1");
    await forget(harness, "w1");
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "thief", { node: "w1" });
    await harness.decided("thief");
    expect((await harness.binding("w1"))?.spec).toMatchObject({ pool: "worker" });
    expect((await harness.binding("w1"))?.spec.lastPool).toBeUndefined();
    await register(harness, "w1");
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.lastPool === "worker");
    expect(await labelsOf(harness, "w1")).toEqual({ [byRole("worker")]: "" });
  });

  test("gets no identity of the control plane from a machine of the control plane that has its name [attack-joining-43]", async () => {
    const harness = await joinHarness();
    await joined(harness, "worker", "w1");
    await forget(harness, "w1");
    // Its certificate is good for a year, so that the API server takes it for the node w1 of whatever pool.
    await harness.serve("master");
    await harness.ask(bootstrapper("master"), "next", { node: "w1" });
    expect(await harness.waits("next", "NameOfFormer")).toContain("a machine of the pool worker had the name w1");
    expect((await harness.binding("w1"))?.spec).toMatchObject({ pool: "worker" });
    await register(harness, "w1");
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.nodeUID !== undefined);
    expect(await labelsOf(harness, "w1")).toEqual({ [byRole("worker")]: "" });
    // An administrator knows that the former machine is gone.
    await forget(harness, "w1");
    harness.clock.skip(2000);
    await harness.serve("master");
    await harness.ask(bootstrapper("master"), "approved", { node: "w1" });
    await harness.waits("approved", "NameOfFormer");
    await harness.approve("approved");
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.pool === "master");
  });

  test("leaves an address to a machine that has taken it in another spelling [attack-joining-44]", async () => {
    const harness = await joinHarness();
    const { request } = await newRequest("w1");
    const credential = await harness.serve("worker", { addresses: ["fd00::5", "10.0.0.1"] });
    await harness.ask(bootstrapper("worker"), "first", { node: "w1", request, credential });
    await harness.decided("first");
    await register(harness, "w1");
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.lastPool === "worker");
    await forget(harness, "w1");
    const theirs = await harness.serve("worker", { addresses: ["FD00:0:0:0:0:0:0:5"] });
    await harness.ask(bootstrapper("worker"), "next", { node: "w2", credential: theirs });
    await harness.decided("next");
    await register(harness, "w1");
    const binding = await harness.until(NodeBinding, { name: "w1" }, (one) => one?.spec.nodeUID !== undefined);
    expect(binding?.spec.addresses).toEqual(["10.0.0.1"]);
  });

  test("keeps its name while it is back without labels: no other key gets it [join-controller-16]", async () => {
    const harness = await joinHarness();
    const own = await joined(harness, "master", "m1");
    await forget(harness, "m1");
    await harness
      .as(asNode("m1"))
      .create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "m1" } });
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "thief", { node: "m1" });
    expect(await harness.waits("thief", "NameBound")).toContain("was given to a machine of the pool master");
    // By its key and the account of its pool, the machine itself joins again.
    await harness.ask(bootstrapper("master"), "own", { node: "m1", ...own });
    await harness.until(
      kubernetes.Node,
      { name: "m1" },
      (object) => object?.metadata.labels?.[byRole("master")] !== undefined,
    );
  });
});

describe("a name that pods resolve as a Service's", () => {
  const createNamespace = (harness: JoinHarness, name: string) =>
    harness.kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  const createService = (harness: JoinHarness, namespace: string, name: string) =>
    harness.kube.create(kubernetes.Service, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace },
      spec: { clusterIP: "None", ports: [{ port: 443 }] },
    } as never);
  async function join(
    harness: JoinHarness,
    node: string,
    addresses: readonly { type: string; address: string }[],
    token: Parameters<JoinHarness["serve"]>[1] = {},
  ) {
    await harness.serve("worker", token);
    await harness.ask(bootstrapper("worker"), `first-${node}`, { node });
    await harness.decided(`first-${node}`);
    const kubelet = harness.as(asNode(node));
    await kubelet.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: node } });
    const body = { status: { addresses } };
    await kubelet.patch(kubernetes.Node, { name: node }, { type: "merge", body }, { subresource: "status" });
  }

  test("lets no machine join, unless its token names it and there is no such Service [attack-joining-10]", async () => {
    const harness = await joinHarness();
    await createNamespace(harness, "secrets");
    await createService(harness, "secrets", "vault");
    for (const [request, node, says] of [
      ["service", "vault.secrets", "as the Service secrets/vault"],
      ["namespace", "later.secrets", "--node later.secrets"],
    ] as const) {
      await harness.serve("worker");
      await harness.ask(bootstrapper("worker"), request, { node });
      expect(await harness.waits(request, "NameOfService")).toContain(says);
    }
    await harness.serve("worker", { node: "vault.secrets" });
    await harness.ask(bootstrapper("worker"), "named-service", { node: "vault.secrets" });
    await harness.waits("named-service", "NameOfService");
    await harness.serve("worker", { node: "named.secrets" });
    await harness.ask(bootstrapper("worker"), "named", { node: "named.secrets" });
    expect((await harness.decided("named"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "domain", { node: "vault-0.other.secrets" });
    expect((await harness.decided("domain"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
    expect(
      (await harness.kube.get(kubernetes.CertificateSigningRequest, { name: "service" }))?.status?.conditions,
    ).toBeUndefined();
  });

  test("gives a node no certificate to serve with [attack-joining-11]", async () => {
    const harness = await joinHarness();
    await join(harness, "db", [
      { type: "Hostname", address: "db" },
      { type: "InternalDNS", address: "db.SECRETS." },
      { type: "InternalDNS", address: "db.later" },
      { type: "InternalDNS", address: "db.example" },
    ]);
    for (const name of ["secrets", "later"]) await createNamespace(harness, name);
    await createService(harness, "secrets", "db");
    // The controller has seen the Service when it decides about a machine that joins.
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "probe", { node: "db.secrets" });
    expect(await harness.waits("probe", "NameOfService")).toContain("as the Service secrets/db");
    for (const [request, node, hosts] of [
      ["reported", "db", ["db", "db.SECRETS."]],
      ["namespace", "db", ["db.later"]],
    ] as const) {
      await harness.ask(asNode(node), request, { node, hosts });
      await harness.waits(request, "NameOfService");
    }
    await harness.ask(asNode("db"), "good", { node: "db", hosts: ["db"] });
    expect((await harness.decided("good"))?.conditions?.[0]).toMatchObject({ type: "Approved", reason: "NodeServes" });
    await harness.ask(asNode("db"), "longer", { node: "db", hosts: ["db", "db.example"] });
    await harness.waits("longer", "AddressUnknown");
  });

  test("because somebody named a Service like their domain, keeps no machines out [attack-joining-46]", async () => {
    const harness = await joinHarness();
    await join(harness, "w0.example.com", [], { node: "w0.example.com" });
    await join(harness, "w1.example", [], { node: "w1.example" });
    // It joined long before.
    const body = { spec: { joinedAt: "2020-01-01T00:00:00Z" } };
    await harness.kube.patch(NodeBinding, { name: "w1.example" }, { type: "merge", body });
    for (const namespace of ["com", "example"]) await createNamespace(harness, namespace);
    await createService(harness, "com", "example");
    await createService(harness, "example", "w1");
    await join(harness, "w2.example.com", []);
    await harness.ask(asNode("w2.example.com"), "chosen", { node: "w2.example.com", hosts: ["w2.example.com"] });
    expect(await harness.waits("chosen", "AddressUnknown")).toContain("as the Service com/example");
    for (const node of ["w0.example.com", "w1.example"]) {
      await harness.ask(asNode(node), `serving-${node}`, { node, hosts: [node] });
      expect((await harness.decided(`serving-${node}`))?.conditions?.[0]).toMatchObject({ reason: "NodeServes" });
    }
  });
});

test("addresses of Machines count only for the one Machine that names the node [attack-joining-12]", async () => {
  const harness = await joinHarness();
  await serveMachines(harness.kube);
  await harness.kube.create(kubernetes.Namespace, {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: machineNamespace },
  });
  // What links Machines with Nodes believes addresses that a kubelet reports: w1 has reported that of m2, too.
  for (const [name, address] of [
    ["m1", "10.0.0.2"],
    ["m2", "10.0.0.3"],
  ] as const)
    await harness.kube.create(openshift.Machine, {
      apiVersion: "machine.openshift.io/v1beta1",
      kind: "Machine",
      metadata: { name, namespace: machineNamespace },
      status: { nodeRef: { name: "w1" }, addresses: [{ type: "InternalIP", address }] },
    });
  await harness.serve("worker", { addresses: ["10.0.0.1"] });
  await harness.ask(bootstrapper("worker"), "first", { node: "w1" });
  await harness.decided("first");
  await harness.as(asNode("w1")).create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } });
  await harness.ask(asNode("w1"), "others", { node: "w1", hosts: ["w1", "10.0.0.3"] });
  expect(await harness.waits("others", "AddressUnknown")).toContain("the Machines m1, m2");
});

/** How many requests of one requester are judged at most by now: a minute's at once, and then one in two seconds. */
const mostJudged = (harness: JoinHarness, since: number) => 61 + Math.ceil((harness.clock.monotonic() - since) / 2000);

test("a node that floods the cluster with requests gets few of them judged, the newest, and others theirs [attack-joining-13]", async () => {
  const harness = await joinHarness();
  for (const node of ["w1", "w2"]) {
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), `first-${node}`, { node });
    await harness.decided(`first-${node}`);
    await harness
      .as(asNode(node))
      .create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: node } });
  }
  const began = harness.clock.monotonic();
  const flood = Array.from({ length: 150 }, (_, index) => `flood-${index}`);
  for (const name of flood) await harness.ask(asNode("w1"), name, { node: "w1", hosts: ["10.0.0.9"] });
  await harness.ask(asNode("w2"), "own", { node: "w2", hosts: ["w2"] });
  expect((await harness.decided("own"))?.conditions?.[0]).toMatchObject({ type: "Approved" });
  const judged = (await harness.kube.list(kubernetes.Event, {}, {})).items.filter(
    ({ reason, involvedObject }) => reason === "AddressUnknown" && involvedObject.name?.startsWith("flood-"),
  );
  expect(judged.length).toBeLessThanOrEqual(mostJudged(harness, began));
  // Its own next request is judged when it has waited.
  await harness.ask(asNode("w1"), "late", { node: "w1" });
  harness.clock.skip(600_000);
  expect((await harness.decided("late"))?.conditions?.[0]).toMatchObject({ type: "Approved", reason: "NodeRenews" });
});

test("a machine that joined floods the cluster with requests by its configuration, and few of them are judged [attack-joining-39]", async () => {
  const harness = await joinHarness();
  const credential = await harness.serve("worker");
  await harness.ask(bootstrapper("worker"), "first", { node: "w1", credential });
  await harness.decided("first");
  const { request } = await newRequest("w2");
  const began = harness.clock.monotonic();
  for (let index = 0; index < 150; index += 1)
    await harness.ask(bootstrapper("worker"), `flood-${index}`, { node: "w2", request, credential });
  // Others of its pool have their own, and their place alone brings their requests back.
  const { request: own } = await newRequest("w3");
  const theirs = `JTI=${systemRandom.uuid()}`;
  await harness.ask(bootstrapper("worker"), "own", { node: "w3", request: own, credential: theirs });
  await harness.waits("own", "NoPlace");
  await harness.serve("worker", { credential: theirs });
  expect((await harness.decided("own"))?.conditions?.[0]).toMatchObject({ type: "Approved", reason: "NodeJoins" });
  const judged = (await harness.kube.list(kubernetes.Event, {}, {})).items.filter(
    ({ reason, involvedObject }) => reason === "PlaceSpent" && involvedObject.name?.startsWith("flood-"),
  );
  expect(judged.length).toBeLessThanOrEqual(mostJudged(harness, began));
});

test("a name that an administrator released is not renewed by its old certificate [attack-joining-14]", async () => {
  const harness = await joinHarness();
  await harness.serve("worker");
  await harness.ask(bootstrapper("worker"), "first", { node: "w1" });
  await harness.decided("first");
  const metadata = { name: "w1", annotations: { [annotations.joinedPool]: "worker" } };
  await harness.kube.create(kubernetes.Node, {
    apiVersion: "v1",
    kind: "Node",
    metadata: { ...metadata, labels: { "node-role.kubernetes.io/worker": "" } },
  });
  await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.lastPool === "worker");
  // mco node release w1
  await harness.kube.patch(NodeBinding, { name: "w1" }, { type: "merge", body: { spec: { revoked: true } } });
  await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.releasedAt !== undefined);
  await harness.ask(asNode("w1"), "renewal", { node: "w1" });
  expect(await harness.waits("renewal", "NameRevoked")).toContain("kubectl delete nodebinding w1");
  await harness.ask(asNode("w1"), "serving", { node: "w1", hosts: ["w1"] });
  await harness.waits("serving", "NameRevoked");
  // Nor does it come back by registering again.
  await harness.kube.delete(kubernetes.Node, { name: "w1" });
  await harness.as(asNode("w1")).create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata } as never);
  await harness.ask(asNode("w1"), "again", { node: "w1" });
  await harness.waits("again", "NameRevoked");
  expect((await harness.kube.get(kubernetes.Node, { name: "w1" }))?.metadata.labels ?? {}).toEqual({});
  // The name is free: the machine that is installed again gets it, by its own key.
  await harness.kube.delete(kubernetes.Node, { name: "w1" });
  await harness.serve("infra");
  await harness.ask(bootstrapper("infra"), "anew", { node: "w1" });
  expect((await harness.decided("anew"))?.conditions?.[0]).toMatchObject({ type: "Approved", reason: "NodeJoins" });
  expect((await harness.binding("w1"))?.spec).toMatchObject({ pool: "infra" });
  expect((await harness.binding("w1"))?.spec).not.toHaveProperty("revoked");
});

describe("a served configuration", () => {
  const first = async (harness: JoinHarness, name: string) => (await harness.decided(name))?.conditions?.[0];
  /** A machine registers, and an administrator deletes its Node. */
  async function comesAndGoes(harness: JoinHarness, name: string): Promise<void> {
    await harness.as(asNode(name)).create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name } });
    await harness.until(NodeBinding, { name }, (binding) => binding?.spec.nodeUID !== undefined);
    await harness.kube.delete(kubernetes.Node, { name });
    await harness.until(NodeBinding, { name }, (binding) => binding?.spec.releasedAt !== undefined);
  }

  test("gives its machine its own addresses, in whatever order machines ask [attack-joining-28]", async () => {
    const harness = await joinHarness();
    const one = await harness.serve("worker", { addresses: ["10.0.0.1"] });
    const two = await harness.serve("worker", { addresses: ["10.0.0.2"] });
    await harness.ask(bootstrapper("worker"), "two", { node: "w2", credential: two });
    expect(await first(harness, "two")).toMatchObject({ type: "Approved" });
    await harness.ask(bootstrapper("worker"), "one", { node: "w1", credential: one });
    expect(await first(harness, "one")).toMatchObject({ type: "Approved" });
    expect((await harness.binding("w1"))?.spec.addresses).toEqual(["10.0.0.1"]);
    expect((await harness.binding("w2"))?.spec.addresses).toEqual(["10.0.0.2"]);
  });

  test("lets in one machine, whatever becomes of its Node, its binding and its name [attack-joining-27]", async () => {
    const harness = await joinHarness();
    const credential = await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "one", { node: "w1", credential });
    expect(await first(harness, "one")).toMatchObject({ type: "Approved" });
    await comesAndGoes(harness, "w1");
    await harness.ask(bootstrapper("worker"), "other-name", { node: "w2", credential });
    expect(await harness.waits("other-name", "PlaceSpent")).toContain("let in w1");
    await harness.ask(bootstrapper("worker"), "other-key", { node: "w1", credential });
    await harness.waits("other-key", "PlaceSpent");
    await harness.kube.delete(NodeBinding, { name: "w1" });
    await harness.ask(bootstrapper("worker"), "again", { node: "w1", credential });
    await harness.waits("again", "PlaceSpent");
    const [place] = (await harness.kube.list(JoinPlace)).items;
    expect(place?.status).toMatchObject({ machine: "w1" });
    // Who may write its status cannot make it free again.
    await expect(
      harness.kube.patch(
        JoinPlace,
        { name: place?.metadata.name ?? "" },
        { type: "merge", body: { status: { machine: "w9" } } },
        { subresource: "status" },
      ),
    ).rejects.toThrow(/lets in one machine/);
  });

  test("lets its machine in no more once an administrator has released the name [attack-joining-32]", async () => {
    const harness = await joinHarness();
    const credential = await harness.serve("worker");
    const { request } = await newRequest("w1");
    await harness.ask(bootstrapper("worker"), "first", { node: "w1", request, credential });
    expect(await first(harness, "first")).toMatchObject({ type: "Approved" });
    // mco node release w1
    await harness.kube.patch(NodeBinding, { name: "w1" }, { type: "merge", body: { spec: { revoked: true } } });
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.releasedAt !== undefined);
    await harness.ask(bootstrapper("worker"), "again", { node: "w1", request, credential });
    expect(await harness.waits("again", "PlaceSpent")).toContain("which has lost its name since");
    // By a configuration that it is served after that, it joins again.
    const next = await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "anew", { node: "w1", request, credential: next });
    expect(await first(harness, "anew")).toMatchObject({ type: "Approved" });
    // Nor once another machine has had the name.
    await harness.kube.patch(NodeBinding, { name: "w1" }, { type: "merge", body: { spec: { revoked: true } } });
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.releasedAt !== undefined);
    harness.clock.skip(2000);
    const others = await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "other", { node: "w1", credential: others });
    expect(await first(harness, "other")).toMatchObject({ type: "Approved" });
    await comesAndGoes(harness, "w1");
    await harness.ask(bootstrapper("worker"), "back", { node: "w1", request, credential: next });
    await harness.waits("back", "PlaceSpent");
  });

  test("of a token for one machine is for this name alone, and the name for it [attack-joining-29]", async () => {
    const harness = await joinHarness();
    await harness.kube.create(ProvisioningToken, {
      apiVersion: ProvisioningToken.apiVersion,
      kind: ProvisioningToken.kind,
      metadata: { name: "a".repeat(10) },
      spec: { pool: "worker", tokenHash: "0".repeat(64), maxUses: 1, node: "w1", addresses: ["10.0.0.1"] },
    });
    const named = await harness.serve("worker", { node: "w1", addresses: ["10.0.0.9", "10.0.0.1"] });
    const other = await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "thief", { node: "w1", credential: other });
    expect(await harness.waits("thief", "NameReserved")).toContain("was not served its configuration by that token");
    await harness.ask(bootstrapper("worker"), "wrong", { node: "w2", credential: named });
    expect(await harness.waits("wrong", "NameReserved")).toContain("is for w1");
    await harness.ask(bootstrapper("worker"), "right", { node: "w1", credential: named });
    expect(await first(harness, "right")).toMatchObject({ type: "Approved" });
    expect((await harness.binding("w1"))?.spec.addresses).toEqual(["w1", "10.0.0.9", "10.0.0.1"]);
  });

  test("is recognised by its token alone: without its id, a request waits for an administrator [attack-joining-30]", async () => {
    const harness = await joinHarness();
    await harness.serve("worker");
    const { request } = await newRequest("w1");
    await harness.ask(bootstrapper("worker"), "old", { node: "w1", request, credential: "JTI=" });
    await harness.waits("old", "NoPlace");
    await harness.approve("old");
    // The name is bound as if its configuration had let the machine in.
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.pool === "worker");
    await harness
      .as(asNode("w1"))
      .create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } });
    const node = await harness.until(
      kubernetes.Node,
      { name: "w1" },
      (one) => one?.metadata.labels?.["node-role.kubernetes.io/worker"] !== undefined,
    );
    expect(node?.metadata.annotations).toMatchObject({ [annotations.joinedPool]: "worker" });
    expect((await harness.binding("w1"))?.spec).not.toHaveProperty("addresses");
  });
});

test("an approval by hand binds no name of a Node that was there before it [attack-joining-34]", async () => {
  const harness = await joinHarness();
  await harness.ask(bootstrapper("master"), "old", { node: "k0" });
  await harness.waits("old", "NoPlace");
  harness.clock.skip(2000);
  // Another installer's machine takes the name meanwhile.
  await harness.kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "k0" } });
  await harness.waits("old", "NodeNotOurs");
  harness.clock.skip(2000);
  await harness.approve("old");
  await harness.serve("worker");
  await harness.ask(bootstrapper("worker"), "probe", { node: "w1" });
  await harness.decided("probe");
  expect(await harness.binding("k0")).toBeUndefined();
});

test("a request waits for one of its name that was approved by hand and is bound later [attack-joining-37]", async () => {
  // As after a start: the approval is not bound yet, and the queue has the other one first.
  const text = btoa((await newRequest("w1")).request);
  const requests = [
    { name: "other", reason: undefined },
    { name: "by-hand", reason: "KubectlApprove" },
  ].map(({ name, reason }) => ({
    metadata: { name },
    spec: { request: text, signerName: signers.kubeletClient, username: bootstrapper("worker").name },
    status: { conditions: reason === undefined ? [] : [{ type: "Approved", status: "True", reason }] },
  }));
  const cache = {
    get: (key: string) => requests.find(({ metadata }) => metadata.name === key),
    byIndex: () => requests,
  };
  const context = { clock: skippableClock(), caches: { of: () => cache } };
  expect(await joinController().reconcile("other", context as never)).toEqual(done(1));
});

test("a record that changed before the answer to its own write is read again [join-controller-22]", async () => {
  const { request } = await newRequest("w1");
  const credential = "JTI=own";
  const requests = ["first", "again"].map((name) => ({
    metadata: { name, creationTimestamp: "2026-01-01T00:00:00Z" },
    spec: {
      request: btoa(request),
      signerName: signers.kubeletClient,
      usages: ["digital signature", "client auth"],
      username: bootstrapper("worker").name,
      extra: { [credentialKey]: [credential] },
    },
    status: {} as CertificateSigningRequest["status"],
  }));
  const place = {
    metadata: { name: "p", resourceVersion: "1" },
    spec: { pool: "worker", expiresAt: "2100-01-01T00:00:00Z", credential },
  };
  /** What the watch brought: the write of this process, and another one after it. */
  let record: NodeBinding | undefined;
  const listOf = (kind: unknown): readonly { readonly metadata: { readonly name: string } }[] =>
    kind === kubernetes.CertificateSigningRequest
      ? requests
      : kind === JoinPlace
        ? [place]
        : kind === MachineConfigPool
          ? [pool("worker")]
          : kind === NodeBinding && record !== undefined
            ? [record]
            : [];
  const context = {
    clock: skippableClock(),
    log: silentLogger,
    report: () => undefined,
    caches: {
      of: (kind: unknown) => ({
        get: (key: string) => listOf(kind).find(({ metadata }) => metadata.name === key),
        list: () => listOf(kind),
        byIndex: (index: string) => (index === "held" ? [] : listOf(kind)),
      }),
    },
    kube: {
      create: (_: unknown, object: NodeBinding) => {
        record = { ...object, metadata: { ...object.metadata, resourceVersion: "2" } };
        return Promise.resolve({ ...object, metadata: { ...object.metadata, resourceVersion: "1" } });
      },
      patch: (kind: unknown, _: unknown, { body }: { body: { metadata: { resourceVersion?: string } } }) =>
        kind === NodeBinding && body.metadata.resourceVersion !== "2"
          ? Promise.reject(new KubeError(409, { reason: "Conflict" }, "PATCH"))
          : Promise.resolve(record),
    },
  };
  const controller = joinController();
  for (const after of requests)
    controller.watches[0].concerns?.(
      { key: after.metadata.name, before: undefined, after } as never,
      context.caches as never,
    );
  expect(await controller.reconcile("first", context as never)).toEqual(done());
  expect(await controller.reconcile("again", context as never)).toEqual(done(1));
  expect(await controller.reconcile("again", context as never)).toEqual(done());
});

test("a machine gets its labels by its record, with its request gone or its key renewed [join-controller-20]", async () => {
  const harness = await joinHarness();
  await harness.serve("infra");
  await harness.ask(bootstrapper("infra"), "first", { node: "w1" });
  await harness.until(
    kubernetes.CertificateSigningRequest,
    { name: "first" },
    (object) => object?.status?.certificate !== undefined,
  );
  await harness.kube.delete(kubernetes.CertificateSigningRequest, { name: "first" });
  await harness.serve("worker");
  await harness.ask(bootstrapper("worker"), "probe", { node: "w2" });
  await harness.decided("probe");
  await harness.as(asNode("w1")).create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } });
  const node = await harness.until(
    kubernetes.Node,
    { name: "w1" },
    (one) => one?.metadata.annotations?.[annotations.joinedPool] !== undefined,
  );
  expect(node?.metadata.labels).toEqual({ "node-role.kubernetes.io/infra": "", "node-role.kubernetes.io/worker": "" });
  await harness.untilAll(kubernetes.Event, {}, (events) =>
    events.some(({ reason, involvedObject }) => reason === "NodeJoined" && involvedObject.name === "w1"),
  );
});

test("a Node that changes while it gets its labels gets them a second later [join-controller-21]", async () => {
  const binding = {
    metadata: { name: "w1", resourceVersion: "1" },
    spec: { pool: "worker", publicKey: "", expiresAt: "2100-01-01T00:00:00Z", nodeUID: "u" },
  };
  const node = { metadata: { name: "w1", uid: "u", resourceVersion: "1" } };
  const objectsOf = new Map<unknown, { readonly metadata: { readonly name: string } }>([
    [NodeBinding, binding],
    [kubernetes.Node, node],
    [MachineConfigPool, pool("worker")],
  ]);
  const cacheOf = (kind: unknown) => {
    const list = [objectsOf.get(kind)].filter((one) => one !== undefined);
    return { get: (key: string) => list.find(({ metadata }) => metadata.name === key), list: () => list };
  };
  const context = {
    clock: skippableClock(),
    caches: { of: cacheOf },
    kube: { patch: () => Promise.reject(new KubeError(409, { reason: "Conflict" }, "PATCH")) },
  };
  // The watch reports no change of a Node's status.
  expect(await bindingController().reconcile("w1", context as never)).toEqual(done(1));
});

test("an approved request of a former machine gives the next one of its name no label [attack-joining-31]", async () => {
  const harness = await joinHarness();
  // A machine of the control plane was approved by hand, and never registered.
  await harness.ask(bootstrapper("master"), "former", { node: "w1" });
  await harness.waits("former", "NoPlace");
  await harness.approve("former");
  await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.pool === "master");
  await harness.kube.delete(NodeBinding, { name: "w1" });
  harness.clock.skip(60_000);
  await harness.serve("worker");
  await harness.ask(bootstrapper("worker"), "next", { node: "w1" });
  expect((await harness.decided("next"))?.conditions?.[0]).toMatchObject({ reason: "NodeJoins" });
  await harness.as(asNode("w1")).create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } });
  const node = await harness.until(
    kubernetes.Node,
    { name: "w1" },
    (one) => one?.metadata.labels?.["node-role.kubernetes.io/worker"] !== undefined,
  );
  expect(Object.keys(node?.metadata.labels ?? {})).toEqual(["node-role.kubernetes.io/worker"]);
  expect((await harness.binding("w1"))?.spec.pool).toBe("worker");
});

describe("a name that another machine took while the certificate of the former one was valid", () => {
  const node = (name: string) => ({
    apiVersion: "v1" as const,
    kind: "Node" as const,
    metadata: { name, annotations: { [annotations.joinedPool]: "worker" } },
  });

  /** The node as the API server knows it by the certificate of a request. */
  async function withCertificateOf(harness: JoinHarness, request: string, name: string) {
    const issued = await harness.until(
      kubernetes.CertificateSigningRequest,
      { name: request },
      (object) => (object?.status?.certificate ?? "") !== "",
    );
    const { fingerprint256 } = new X509Certificate(Buffer.from(issued?.status?.certificate ?? "", "base64"));
    const credential = `X509SHA256=${fingerprint256.replaceAll(":", "").toLowerCase()}`;
    return { ...asNode(name), extra: { "authentication.kubernetes.io/credential-id": [credential] } };
  }

  /**
   * The machine of w1 is gone or is not, and another one has joined by its name. @returns both as their nodes.
   *
   * @param before what the former machine does while the name is its own.
   */
  async function takenOver(
    harness: JoinHarness,
    before: (former: UserInfo) => Promise<unknown> = () => Promise.resolve(),
  ) {
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "first", { node: "w1", expirationSeconds: 86_400 });
    const former = await withCertificateOf(harness, "first", "w1");
    await harness.kube.create(kubernetes.Node, node("w1") as never);
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.nodeUID !== undefined);
    await before(former);
    await harness.kube.delete(kubernetes.Node, { name: "w1" });
    await harness.until(
      NodeBinding,
      { name: "w1" },
      (binding) => binding === undefined || binding.spec.releasedAt !== undefined,
    );
    await harness.serve("infra");
    await harness.ask(bootstrapper("infra"), "second", { node: "w1" });
    const holder = await withCertificateOf(harness, "second", "w1");
    await harness.kube.create(kubernetes.Node, node("w1") as never);
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.nodeUID !== undefined);
    return { former, holder };
  }

  test("is not bound back by a renewal with the old certificate [attack-joining-21]", async () => {
    const harness = await joinHarness();
    const { former, holder } = await takenOver(harness);
    const before = (await harness.binding("w1"))?.spec;
    await harness.ask(former, "stolen", { node: "w1" });
    expect(await harness.waits("stolen", "NameRevoked")).toContain(
      "was not issued for the machine to which the name w1 belongs",
    );
    await harness.ask(former, "stolen-serving", { node: "w1", hosts: ["w1"] });
    await harness.waits("stolen-serving", "NameRevoked");
    expect((await harness.binding("w1"))?.spec.publicKey).toBe(before?.publicKey);
    // The machine that has the name gets its certificates, also by the one that it renewed to, and with its requests gone.
    await harness.ask(holder, "serving", { node: "w1", hosts: ["w1"] });
    expect((await harness.decided("serving"))?.conditions?.[0]).toMatchObject({ reason: "NodeServes" });
    await harness.ask(holder, "renewal", { node: "w1" });
    const renewed = await withCertificateOf(harness, "renewal", "w1");
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.certificates?.length === 2);
    for (const name of ["second", "renewal"]) await harness.kube.delete(kubernetes.CertificateSigningRequest, { name });
    for (const [index, who] of [renewed, holder].entries()) {
      await harness.ask(who, `later-${index}`, { node: "w1" });
      expect((await harness.decided(`later-${index}`))?.conditions?.[0]).toMatchObject({ reason: "NodeRenews" });
    }
    const stolen = await harness.kube.get(kubernetes.CertificateSigningRequest, { name: "stolen" });
    expect(stolen?.status?.conditions).toBeUndefined();
  });

  test("is not bound back by one that had renewed to another key for ten minutes before [attack-joining-24]", async () => {
    const harness = await joinHarness();
    const { former } = await takenOver(harness, async (node) => {
      const before = (await harness.binding("w1"))?.spec;
      await harness.ask(node, "short", { node: "w1", expirationSeconds: 600 });
      await harness.decided("short");
      const after = (await harness.binding("w1"))?.spec;
      expect(after?.publicKey).not.toBe(before?.publicKey);
      harness.clock.skip(1_200_000);
    });
    await harness.ask(former, "stolen", { node: "w1" });
    expect(await harness.waits("stolen", "NameRevoked")).toContain(
      "was not issued for the machine to which the name w1 belongs",
    );
  });

  test("is not bound back where an administrator deleted its record, before or after a certificate of the next machine [attack-joining-33]", async () => {
    const harness = await joinHarness({ signs: false });
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "first", { node: "w1" });
    await harness.decided("first");
    await harness.sign("first", 86_400);
    const former = await withCertificateOf(harness, "first", "w1");
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.certificates?.length === 1);
    await harness.kube.delete(NodeBinding, { name: "w1" });
    harness.clock.skip(2000);
    await harness.serve("infra");
    await harness.ask(bootstrapper("infra"), "second", { node: "w1" });
    expect((await harness.decided("second"))?.conditions?.[0]).toMatchObject({ reason: "NodeJoins" });
    const publicKey = (await harness.binding("w1"))?.spec.publicKey;
    // The signer is late, and the former machine is faster.
    await harness.kube.create(kubernetes.Node, node("w1") as never);
    await harness.ask(former, "early", { node: "w1" });
    await harness.waits("early", "NameRevoked");
    await harness.sign("second", 86_400);
    const holder = await withCertificateOf(harness, "second", "w1");
    await harness.ask(holder, "renewal", { node: "w1", expirationSeconds: 7200 });
    expect((await harness.decided("renewal"))?.conditions?.[0]).toMatchObject({ reason: "NodeRenews" });
    await harness.ask(former, "late", { node: "w1" });
    await harness.waits("late", "NameRevoked");
    expect((await harness.binding("w1"))?.spec.publicKey).not.toBe(publicKey);
    expect((await harness.binding("w1"))?.spec.certificates).toHaveLength(1);
  });

  test("is not bound back by a request that is older than the join of the next machine [attack-joining-36]", async () => {
    const harness = await joinHarness();
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "first", { node: "w1", expirationSeconds: 3600 });
    await harness.decided("first");
    await harness.kube.delete(NodeBinding, { name: "w1" });
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding === undefined);
    await harness.kube.create(kubernetes.Node, node("w1") as never);
    // Nothing says whose it is, so that it stays open. The API server names no certificates.
    await harness.ask(asNode("w1"), "pending", { node: "w1" });
    await harness.kube.delete(kubernetes.Node, { name: "w1" });
    harness.clock.skip(2000);
    await harness.serve("infra");
    await harness.ask(bootstrapper("infra"), "second", { node: "w1" });
    expect((await harness.decided("second"))?.conditions?.[0]).toMatchObject({ reason: "NodeJoins" });
    await harness.kube.create(kubernetes.Node, node("w1") as never);
    await harness.waits("pending", "NameRevoked");
  });

  test("is bound until the end of a certificate of an earlier key that was signed later, and for longer than assumed [attack-joining-25]", async () => {
    const harness = await joinHarness({ signs: false });
    await harness.serve("worker");
    await harness.ask(bootstrapper("worker"), "first", { node: "w1" });
    await harness.decided("first");
    await harness.kube.create(kubernetes.Node, node("w1") as never);
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.nodeUID !== undefined);
    // A renewal is later than the join.
    harness.clock.skip(2000);
    for (const name of ["long", "next"]) {
      await harness.ask(asNode("w1"), name, { node: "w1" });
      await harness.decided(name);
    }
    const seconds = 700 * 86_400;
    await harness.sign("long", seconds);
    const end = harness.clock.now() + (seconds - 60) * 1000;
    const isLonger = (binding: NodeBinding | undefined) => Date.parse(binding?.spec.expiresAt ?? "") > end;
    const bound = await harness.until(NodeBinding, { name: "w1" }, isLonger);
    expect(bound?.spec.certificates).toHaveLength(1);
  });

  test("is renewed after the old certificate has ended, where the API server names no certificates [attack-joining-22]", async () => {
    const harness = await joinHarness();
    await takenOver(harness);
    await harness.ask(asNode("w1"), "early", { node: "w1" });
    expect(await harness.waits("early", "NameRevoked")).toContain("names no certificates");
    // Its first certificate to serve with does not wait: without it, the node is of little use.
    await harness.ask(asNode("w1"), "serving", { node: "w1", hosts: ["w1"] });
    expect((await harness.decided("serving"))?.conditions?.[0]).toMatchObject({ reason: "NodeServes" });
    harness.clock.skip(86_401_000);
    await harness.ask(asNode("w1"), "late", { node: "w1" });
    expect((await harness.decided("late"))?.conditions?.[0]).toMatchObject({ reason: "NodeRenews" });
    // Which of the two machines made that request is never known.
    const early = await harness.kube.get(kubernetes.CertificateSigningRequest, { name: "early" });
    expect(early?.status?.conditions).toBeUndefined();
  });
});

describe("a machine with many certificates of one key", () => {
  test("has each of them recorded once, and the approver does nothing else for it [attack-joining-23]", async () => {
    const harness = await joinHarness();
    const credential = await harness.serve("worker");
    const { request } = await newRequest("w1");
    const names = Array.from({ length: 12 }, (_, index) => `again-${index}`);
    for (const name of names) await harness.ask(bootstrapper("worker"), name, { node: "w1", request, credential });
    for (const name of names)
      await harness.until(
        kubernetes.CertificateSigningRequest,
        { name },
        (object) => (object?.status?.certificate ?? "") !== "",
      );
    await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.certificates?.length === 8);
    // Requests of others go through the same queue: one of them that is decided was behind all that is due.
    const others = async (turn: number) => {
      for (const index of [0, 1, 2]) {
        await harness.serve("infra");
        await harness.ask(bootstrapper("infra"), `other-${turn}-${index}`, { node: `w-${turn}-${index}` });
        await harness.decided(`other-${turn}-${index}`);
      }
    };
    await others(0);
    const before = (await harness.binding("w1"))?.metadata.resourceVersion;
    await others(1);
    expect((await harness.binding("w1"))?.metadata.resourceVersion).toBe(before);
  });
});

test("a request that is sent again by another configuration takes no certificate from the record of its machine [attack-joining-49]", async () => {
  const harness = await joinHarness();
  await harness.serve("worker");
  const { request } = await newRequest("w1");
  await harness.ask(bootstrapper("worker"), "first", { node: "w1", request });
  const issued = await harness.until(
    kubernetes.CertificateSigningRequest,
    { name: "first" },
    (object) => (object?.status?.certificate ?? "") !== "",
  );
  const { fingerprint256 } = new X509Certificate(Buffer.from(issued?.status?.certificate ?? "", "base64"));
  const own = fingerprint256.replaceAll(":", "").toLowerCase();
  await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.certificates?.includes(own) === true);
  // Requests can be read by every machine that joins. One configuration that nobody joined by is enough.
  const credential = await harness.serve("worker");
  const again = Array.from({ length: 8 }, (_, index) => `again-${index}`);
  for (const name of again) await harness.ask(bootstrapper("worker"), name, { node: "w1", request, credential });
  // Another machine comes after these in the queue.
  await harness.serve("infra");
  await harness.ask(bootstrapper("infra"), "other", { node: "w2" });
  await harness.until(NodeBinding, { name: "w2" }, (binding) => binding?.spec.certificates !== undefined);
  await harness.kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: "w1" } } as never);
  await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.nodeUID !== undefined);
  // Requests are kept for an hour.
  for (const name of ["first", ...again]) await harness.kube.delete(kubernetes.CertificateSigningRequest, { name });
  harness.clock.skip(3_700_000);
  const sentWith = { ...asNode("w1"), extra: { [credentialKey]: [`X509SHA256=${own}`] } };
  await harness.ask(sentWith, "renewal", { node: "w1" });
  await harness.until(NodeBinding, { name: "w1" }, (binding) => binding?.spec.certificates?.includes(own) === true);
  expect((await harness.decided("renewal"))?.conditions?.[0]).toMatchObject({ reason: "NodeRenews" });
});
