import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import {
  type CertificateSigningRequest,
  ControllerConfig,
  JoinPlace,
  MachineConfigPool,
  NodeBinding,
  ProvisioningToken,
  kubernetes,
} from "../../src/api/index.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import { joinNamespace, labels, namespace, nodeIdentity, objects, signers } from "../../src/api/names.ts";
import { nodeCommand } from "../../src/cli/commands/node.ts";
import { connect } from "../../src/cli/connect.ts";
import { bindingController, placeController } from "../../src/controller/binding-controller.ts";
import { joinController } from "../../src/controller/join-controller.ts";
import { refusalController } from "../../src/controller/refusal-controller.ts";
import { requestCertificate } from "../../src/kube/certificates.ts";
import { runControllers } from "../../src/kube/controller.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import { isForbidden } from "../../src/kube/kube-error.ts";
import type { Connection } from "../../src/kube/kubeconfig.ts";
import { httpsTransport } from "../../src/kube/node/https-transport.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../../src/ports/node/index.ts";
import { admissionPolicies } from "../../src/operator/admission-policies.ts";
import { mintCredential } from "../../src/server/join-credential.ts";
import { hasKubernetes } from "../support/kubernetes/control-plane.ts";
import { joiningAccount, letWorkersJoin } from "../support/kubernetes/joining-account.ts";
import { untilSeen } from "../support/until-seen.ts";

const ports = { clock: systemClock, random: systemRandom, log: silentLogger, journal: memoryJournal() };
const kinds: readonly (Resource & { crd(): unknown })[] = [
  MachineConfigPool,
  ControllerConfig,
  JoinPlace,
  NodeBinding,
  ProvisioningToken,
];
const resourceOf = ({ kind }: KubeObject): Resource =>
  kind === "ValidatingAdmissionPolicy"
    ? kubernetes.ValidatingAdmissionPolicy
    : kubernetes.ValidatingAdmissionPolicyBinding;
const renewalsOfKubeadm = {
  metadata: { name: "kubeadm:node-autoapprove-certificate-rotation" },
  roleRef: {
    apiGroup: "rbac.authorization.k8s.io",
    kind: "ClusterRole",
    name: "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
  },
  subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: nodeIdentity.group }],
} as const;

/** Names of this file alone: other files use the same control plane. */
const prefix = "attack-join";

/** With the real API server and the real signer, whose reader of PEM is Go's. */
describe.skipIf(!hasKubernetes)("a machine that joins, on a real control plane", () => {
  let admin: Awaited<ReturnType<typeof connect>>;
  const closing: (() => void | Promise<void>)[] = [];

  const requestFor = (node: string) =>
    requestCertificate({ commonName: `${nodeIdentity.userPrefix}${node}`, organizations: [nodeIdentity.group] });

  /** @param who a client with the credential of a served configuration, or a node's. */
  async function ask(name: string, text: string, who: KubeClient): Promise<void> {
    await who.create(kubernetes.CertificateSigningRequest, {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name },
      spec: {
        request: Buffer.from(text).toString("base64"),
        signerName: signers.kubeletClient,
        usages: ["digital signature", "client auth"],
        expirationSeconds: 3600,
      },
    } as never);
  }

  const seen = (name: string, is: (request: CertificateSigningRequest | undefined) => boolean) =>
    untilSeen(`the request ${name}`, () => admin.kube.get(kubernetes.CertificateSigningRequest, { name }), is);
  const decided = async (name: string) =>
    (await seen(name, (request) => (request?.status?.conditions ?? []).length > 0))?.status?.conditions?.[0];
  const subjectOf = async (name: string) => {
    const request = await seen(name, (one) => (one?.status?.certificate ?? "") !== "");
    return new X509Certificate(Buffer.from(request?.status?.certificate ?? "", "base64")).subject;
  };
  /** A configuration was served. @param node the machine that its token names. @returns its machine, with the credential in it. */
  async function serve({ node, addresses }: Pick<JoinPlace["spec"], "node" | "addresses"> = {}): Promise<KubeClient> {
    const { token, id } = await mintCredential(admin.kube, "worker", AbortSignal.timeout(60_000));
    await admin.kube.create(JoinPlace, {
      apiVersion: JoinPlace.apiVersion,
      kind: JoinPlace.kind,
      metadata: { name: `${prefix}-${systemRandom.uuid()}` },
      spec: {
        pool: "worker",
        credential: id,
        expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
        ...(node === undefined ? {} : { node }),
        ...(addresses === undefined ? {} : { addresses }),
      },
    });
    const { server, ca } = admin.connection;
    return clientWith({ server, ...(ca === undefined ? {} : { ca }), token });
  }

  /** A client with a certificate or a token of its own. */
  function clientWith(connection: Connection): KubeClient {
    const transport = httpsTransport({
      connection,
      reread: undefined,
      clock: systemClock,
      files: systemFiles,
      processes: systemProcesses,
      environment: {},
    });
    closing.push(() => transport.close());
    return createKubeClient({ ...ports, transport: transport.exchange, userAgent: prefix });
  }

  /** Resolves once the controller reports that a request waits. */
  const waits = (name: string, reason: string) =>
    untilSeen(
      `${name} waits`,
      () => admin.kube.list(kubernetes.Event, { fieldSelector: `involvedObject.name=${name}` }),
      ({ items }) => items.some((event) => event.reason === reason),
    );

  beforeAll(async () => {
    const controlPlane = inject("controlPlane");
    if (controlPlane === undefined) throw new Error("there is no control plane");
    admin = await connect({ kubeconfig: join(controlPlane.directory, "kubeconfig"), component: prefix });
    closing.push(() => admin.close());
    const { kube } = admin;
    for (const kind of kinds)
      await kube.apply(kubernetes.CustomResourceDefinition, kind.crd() as never, { owner: prefix });
    for (const kind of kinds)
      await untilSeen(
        `${kind.plural} are served`,
        () =>
          kube.list(kind).then(
            () => true,
            () => false,
          ),
        (isServed) => isServed,
      );
    await kube.apply(
      MachineConfigPool,
      {
        metadata: { name: "worker" },
        spec: {
          nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
          machineConfigSelector: { matchLabels: { [labels.role]: "worker" } },
        },
      },
      { owner: prefix },
    );
    await letWorkersJoin(kube, prefix);
    for (const name of [joinNamespace, namespace]) {
      // Another test file may still be deleting it.
      await untilSeen(
        `${name} is not being deleted`,
        () => kube.get(kubernetes.Namespace, { name }),
        (found) => found?.metadata.deletionTimestamp === undefined,
      );
      await kube.apply(kubernetes.Namespace, { metadata: { name } }, { owner: prefix });
    }
    await kube.apply(
      kubernetes.ServiceAccount,
      { metadata: { name: joiningAccount, namespace: joinNamespace } },
      { owner: prefix },
    );
    const ending = new AbortController();
    const running = runControllers(
      [joinController(), bindingController(), placeController(), refusalController()],
      { ...ports, kube, events: createEventRecorder({ ...ports, kube, component: prefix }), coalesceMs: 5 },
      ending.signal,
    );
    closing.push(async () => {
      ending.abort();
      await running;
    });
  });

  afterAll(async () => {
    for (const close of closing.slice(1).toReversed()) await close();
    const { kube } = admin;
    for (const { metadata } of (await kube.list(kubernetes.CertificateSigningRequest)).items)
      if (metadata.name.startsWith(prefix))
        await kube.delete(kubernetes.CertificateSigningRequest, { name: metadata.name });
    await kube.delete(kubernetes.ClusterRoleBinding, { name: prefix });
    await kube.delete(kubernetes.ClusterRole, { name: prefix });
    await kube.delete(kubernetes.ServiceAccount, {
      name: joiningAccount,
      namespace: joinNamespace,
    });
    for (const kind of kinds)
      await kube.delete(kubernetes.CustomResourceDefinition, { name: `${kind.plural}.${kind.group}` });
    await closing[0]?.();
  });

  test("gets the certificate that its one block requests, from the real signer [attacks-joining-1]", async () => {
    await ask(`${prefix}-good`, (await requestFor(`${prefix}-w1`)).request, await serve());
    expect(await decided(`${prefix}-good`)).toMatchObject({ type: "Approved", reason: "NodeJoins" });
    expect(await subjectOf(`${prefix}-good`)).toContain(`CN=system:node:${prefix}-w1`);
  });

  test("gets no other node's identity by a second block, which the real signer would sign [attacks-joining-2]", async () => {
    const attacker = await serve();
    const [own, other] = [await requestFor(`${prefix}-w2`), await requestFor("master-0")];
    const [mine, master] = [own, other].map(({ request }) => `${request.trimEnd()}\n`);
    // The API server takes it; the signer reads the first block alone.
    const texts = {
      plain: `${master}${mine}`,
      headers: `${master?.replace("-----\n", "-----\nName: master\n\n")}${mine}`,
      blanks: `${master?.replaceAll("-----\n", "----- \t\n")}${mine}`,
    };
    for (const [how, text] of Object.entries(texts)) {
      await ask(`${prefix}-${how}`, text, attacker);
      expect(await decided(`${prefix}-${how}`), how).toMatchObject({ type: "Denied", reason: "Malformed" });
    }
    // What an approver would grant that judges the second block.
    await ask(`${prefix}-shown`, texts.plain, attacker);
    await decided(`${prefix}-shown`);
    const { request } = (await admin.kube.get(kubernetes.CertificateSigningRequest, { name: `${prefix}-shown` }))
      ?.spec ?? {
      request: "",
    };
    await admin.kube.create(kubernetes.CertificateSigningRequest, {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name: `${prefix}-by-hand` },
      spec: { request, signerName: signers.kubeletClient, usages: ["digital signature", "client auth"] },
    } as never);
    await admin.kube.patch(
      kubernetes.CertificateSigningRequest,
      { name: `${prefix}-by-hand` },
      {
        type: "merge",
        body: {
          status: { conditions: [{ type: "Approved", status: "True", reason: "ByHand", message: "shows the hole" }] },
        },
      },
      { subresource: "approval" },
    );
    expect(await subjectOf(`${prefix}-by-hand`)).toContain("CN=system:node:master-0");
  });

  test("gets no second key for a name, and no name without a served configuration [attacks-joining-3]", async () => {
    const one = await serve();
    await ask(`${prefix}-first`, (await requestFor(`${prefix}-w3`)).request, one);
    await decided(`${prefix}-first`);
    await ask(`${prefix}-second`, (await requestFor(`${prefix}-w3`)).request, await serve());
    await waits(`${prefix}-second`, "NameBound");
    // A configuration lets in one machine, although the API server takes requests by its credential for an hour.
    const two = await serve();
    await ask(`${prefix}-ghost-1`, (await requestFor(`${prefix}-g1`)).request, two);
    await decided(`${prefix}-ghost-1`);
    await ask(`${prefix}-ghost-2`, (await requestFor(`${prefix}-g2`)).request, two);
    await waits(`${prefix}-ghost-2`, "PlaceSpent");
    // Another token of the same account is no configuration.
    const { server, ca } = admin.connection;
    const { token } = await mintCredential(admin.kube, "worker", AbortSignal.timeout(60_000));
    const other = clientWith({ server, ...(ca === undefined ? {} : { ca }), token });
    await ask(`${prefix}-ghost-3`, (await requestFor(`${prefix}-g3`)).request, other);
    await waits(`${prefix}-ghost-3`, "NoPlace");
    for (const name of ["second", "ghost-2", "ghost-3"])
      expect(
        (await admin.kube.get(kubernetes.CertificateSigningRequest, { name: `${prefix}-${name}` }))?.status?.conditions,
      ).toBeUndefined();
  });

  test("gets its own addresses, in whatever order machines ask [attacks-joining-5]", async () => {
    const one = await serve({ addresses: ["192.0.2.1"] });
    const two = await serve({ addresses: ["192.0.2.2"] });
    for (const [name, machine] of [
      ["two", two],
      ["one", one],
    ] as const) {
      await ask(`${prefix}-${name}`, (await requestFor(`${prefix}-${name}`)).request, machine);
      expect(await decided(`${prefix}-${name}`)).toMatchObject({ type: "Approved" });
    }
    const addressesOf = async (name: string) =>
      (await admin.kube.get(NodeBinding, { name: `${prefix}-${name}` }))?.spec.addresses;
    expect([await addressesOf("one"), await addressesOf("two")]).toEqual([["192.0.2.1"], ["192.0.2.2"]]);
  });

  test("renews no certificate of a name that another machine took [attacks-joining-4]", async () => {
    const { kube } = admin;
    const node = `${prefix}-w4`;
    const metadata = { name: node };
    const register = () => kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata });
    const binding = (is: (binding: NodeBinding | undefined) => boolean) =>
      untilSeen("the binding", () => kube.get(NodeBinding, { name: node }), is);
    const joins = async (name: string) => {
      const machine = await serve({ node });
      const { request, key } = await requestFor(node);
      await ask(name, request, machine);
      const issued = await seen(name, (one) => (one?.status?.certificate ?? "") !== "");
      await register();
      await binding((one) => one?.spec.nodeUID !== undefined);
      const certificate = Buffer.from(issued?.status?.certificate ?? "", "base64").toString();
      return clientWith({ ...admin.connection, certificate, key });
    };
    const former = await joins(`${prefix}-former`);
    await kube.delete(kubernetes.Node, { name: node });
    await binding((one) => one?.spec.releasedAt !== undefined);
    const holder = await joins(`${prefix}-holder`);
    try {
      await ask(`${prefix}-stolen`, (await requestFor(node)).request, former);
      await waits(`${prefix}-stolen`, "NameRevoked");
      await ask(`${prefix}-renewal`, (await requestFor(node)).request, holder);
      expect(await decided(`${prefix}-renewal`)).toMatchObject({ type: "Approved", reason: "NodeRenews" });
      await binding((one) => one?.spec.certificates?.length === 2);
    } finally {
      await kube.delete(kubernetes.Node, { name: node });
    }
  });

  test("a former machine gets no certificate, also where every node may renew its own [attacks-joining-6]", async () => {
    const { kube } = admin;
    const node = `${prefix}-w5`;
    const binding = (is: (binding: NodeBinding | undefined) => boolean) =>
      untilSeen("the binding", () => kube.get(NodeBinding, { name: node }), is);
    const clientOf = async (name: string, key: string) => {
      const issued = await seen(name, (one) => (one?.status?.certificate ?? "") !== "");
      const certificate = Buffer.from(issued?.status?.certificate ?? "", "base64").toString();
      return clientWith({ ...admin.connection, certificate, key });
    };
    const joins = async (name: string) => {
      const { request, key } = await requestFor(node);
      await ask(name, request, await serve({ node }));
      const client = await clientOf(name, key);
      await kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: node } });
      await binding((one) => one?.spec.nodeUID !== undefined && (one.spec.certificates ?? []).length > 0);
      return client;
    };
    /** A certificate of a node that another approver than the suite's has admitted. */
    const clientOfAdministrator = async (name: string, to: typeof clientOf) => {
      const { request, key } = await requestFor(node);
      await ask(name, request, kube);
      const asked = await kube.get(kubernetes.CertificateSigningRequest, { name });
      const approved = { type: "Approved", status: "True", reason: "AutoApproved", message: "" };
      await kube.patch(
        kubernetes.CertificateSigningRequest,
        { name },
        {
          type: "merge",
          body: {
            status: { conditions: [{ ...approved, lastUpdateTime: asked?.metadata.creationTimestamp ?? "" }] },
          },
        },
        { subresource: "approval" },
      );
      return to(name, key);
    };
    let serial = 0;
    /** Renewals of a machine until one ends as it is to end: the API server sees policies and lists a moment later. */
    const untilRenewal = (who: KubeClient, outcome: "created" | "refused") =>
      untilSeen(
        `a renewal is ${outcome}`,
        async () =>
          ask(`${prefix}-again-${(serial += 1)}`, (await requestFor(node)).request, who).then(
            () => "created" as const,
            (error: unknown) => {
              if (!isForbidden(error)) throw error;
              return "refused" as const;
            },
          ),
        (is) => is === outcome,
      );
    const policies = admissionPolicies(
      { infrastructure: false, osImageStreams: false, internalReleaseImage: false },
      { image: "suite", isolation: "userNamespace", defaultOptIn: false },
    ).filter(({ metadata }) => metadata.name.startsWith("former-machines-of-nodes"));
    try {
      for (const object of policies) await kube.apply(resourceOf(object), object as never, { owner: prefix });
      // As kubeadm init makes it: cmd/kubeadm/app/phases/bootstraptoken/node/tlsbootstrap.go (v1.34).
      await kube.apply(kubernetes.ClusterRoleBinding, renewalsOfKubeadm as never, { owner: prefix });
      const former = await joins(`${prefix}-former-5`);
      // A machine has as many certificates as it likes, more than are recorded.
      const renews = async (name: string, who: KubeClient) => {
        const { request, key } = await requestFor(node);
        await ask(name, request, who);
        return clientOf(name, key);
      };
      const others: KubeClient[] = [];
      for (let index = 0; index < 10; index += 1) others.push(await renews(`${prefix}-own-${index}`, former));
      await binding((one) => one?.spec.certificates?.length === 8);
      await kube.delete(kubernetes.Node, { name: node });
      await binding((one) => one?.spec.releasedAt !== undefined);
      const holder = await joins(`${prefix}-holder-5`);
      await binding((one) => (one?.spec.formerCertificates ?? []).length > 0);
      await untilRenewal(former, "refused");
      for (const machine of others) await untilRenewal(machine, "refused");
      // Nobody but kube-controller-manager approves as it does.
      const { request, key } = await requestFor(node);
      await ask(`${prefix}-renewed-5`, request, holder);
      const next = await clientOf(`${prefix}-renewed-5`, key);
      await binding((one) => (one?.spec.certificates ?? []).length > 1);
      expect(await untilRenewal(next, "created")).toBe("created");
      await kube.patch(NodeBinding, { name: node }, { type: "merge", body: { spec: { revoked: true } } });
      for (const machine of [former, holder, next]) await untilRenewal(machine, "refused");
      // A node that kubeadm's account admitted: the suite has no record of its certificates.
      await kube.delete(kubernetes.Node, { name: node });
      await kube.delete(NodeBinding, { name: node });
      await binding((one) => one === undefined);
      const foreign = await clientOfAdministrator(`${prefix}-foreign-5`, clientOf);
      const io = { out: () => true, err: () => true, screen: undefined };
      await kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name: node } });
      expect(await untilRenewal(foreign, "created")).toBe("created");
      const release = { verb: "release", names: [node], isDeleted: false, json: false } as const;
      expect(await nodeCommand({ kube, io, now: Date.now }, release)).toBe(0);
      await untilRenewal(foreign, "refused");
      await kube.delete(kubernetes.Node, { name: node });
      await joins(`${prefix}-successor-5`);
      await untilRenewal(foreign, "refused");
      const spec = (await kube.get(NodeBinding, { name: node }))?.spec;
      expect(spec).toMatchObject({ exclusive: true, certificates: { length: 1 } });
    } finally {
      await kube.delete(kubernetes.ClusterRoleBinding, { name: renewalsOfKubeadm.metadata.name });
      for (const object of policies.toReversed()) await kube.delete(resourceOf(object), { name: object.metadata.name });
      await kube.delete(kubernetes.ConfigMap, { name: objects.refusedCertificates, namespace });
      await kube.delete(kubernetes.Node, { name: node });
    }
  });
});
