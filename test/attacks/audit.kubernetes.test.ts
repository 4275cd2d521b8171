import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CertificateSigningRequest,
  ControllerConfig,
  JoinPlace,
  MachineConfig,
  MachineConfigPool,
  MachineConfiguration,
  NodeBinding,
  ProvisioningToken,
  kubernetes,
} from "../../src/api/index.ts";
import { annotations, joinNamespace, labels, nodeIdentity, signers } from "../../src/api/names.ts";
import type { Resource } from "../../src/api/schema/object.ts";
import { bindingController, placeController } from "../../src/controller/binding-controller.ts";
import { joinController } from "../../src/controller/join-controller.ts";
import { tokenHash } from "../../src/core/join/provisioning-token.ts";
import { requestCertificate } from "../../src/kube/certificates.ts";
import { runControllers } from "../../src/kube/controller.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import { httpsTransport } from "../../src/kube/node/https-transport.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../../src/ports/node/index.ts";
import { canariesOf, leaksIn, newCanaries } from "../support/canary.ts";
import { startBareControlPlane } from "../support/kubernetes/bare-control-plane.ts";
import { mintCredential } from "../../src/server/join-credential.ts";
import { authorityOf, hasKubernetes } from "../support/kubernetes/control-plane.ts";
import { joiningAccount, joiningUser, letWorkersJoin } from "../support/kubernetes/joining-account.ts";
import { untilSeen } from "../support/until-seen.ts";

const policy = readFileSync(new URL("../../install/monitoring/audit-policy.yaml", import.meta.url), "utf8");
const ports = { clock: systemClock, random: systemRandom, log: silentLogger, journal: memoryJournal() };
const kinds: readonly (Resource & { crd(): unknown })[] = [
  MachineConfig,
  MachineConfigPool,
  MachineConfiguration,
  ControllerConfig,
  JoinPlace,
  NodeBinding,
  ProvisioningToken,
];

/** The fields of an `audit.k8s.io/v1` Event that are read. */
interface AuditEvent {
  readonly level: string;
  readonly stage: string;
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string; readonly name?: string };
  readonly requestObject?: unknown;
  readonly responseObject?: unknown;
}

const inWords = ({ level, verb, objectRef = {} }: AuditEvent) =>
  `${level} ${verb} ${objectRef.resource}${objectRef.subresource === undefined ? "" : `/${objectRef.subresource}`} ${objectRef.name ?? ""}`;

/** The policy of `install/monitoring`, loaded by the real API server, while one machine joins. */
describe.skipIf(!hasKubernetes)("the audit log of a join", () => {
  let controlPlane: Awaited<ReturnType<typeof startBareControlPlane>>;
  const closing: (() => void | Promise<void>)[] = [];
  const canaries = newCanaries();
  let events: readonly AuditEvent[] = [];
  let text = "";
  /** The credential that the config server makes for the machine. */
  let minted = "";

  async function clientFor(commonName: string, organizations: readonly string[] = []): Promise<KubeClient> {
    const authority = await authorityOf(controlPlane);
    return clientBy(await authority.issue({ commonName, organizations, usage: "client" }));
  }

  async function clientBy(
    identity: { readonly certificate: string; readonly key: string } | { readonly token: string },
  ): Promise<KubeClient> {
    const authority = await authorityOf(controlPlane);
    const transport = httpsTransport({
      connection: { server: controlPlane.url, ca: authority.certificate, ...identity },
      reread: undefined,
      clock: systemClock,
      files: systemFiles,
      processes: systemProcesses,
      environment: {},
    });
    closing.push(() => transport.close());
    return createKubeClient({ ...ports, transport: transport.exchange, userAgent: "audit-test" });
  }

  beforeAll(async () => {
    controlPlane = await startBareControlPlane({ auditPolicy: policy });
    const kube = await clientFor("admin", ["system:masters"]);
    for (const kind of kinds)
      await kube.apply(kubernetes.CustomResourceDefinition, kind.crd() as never, { owner: "test" });
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
    await oneJoin(kube);
    text = await untilSeen(
      "the log has the last line",
      () => Promise.resolve(readFileSync(join(controlPlane.directory, "logs", "audit.log"), "utf8")),
      (log) => log.includes('"verb":"delete"') && log.includes("audited000"),
    );
    events = text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as AuditEvent);
  }, 600_000);

  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
    await controlPlane?.stop();
  });

  /** What an administrator, the config server, the machine and the controllers do while one machine joins. */
  async function oneJoin(kube: KubeClient): Promise<void> {
    const metadata = (name: string) => ({ name });
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: metadata(joinNamespace) });
    await kube.create(kubernetes.ServiceAccount, {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: joiningAccount, namespace: joinNamespace },
    });
    await letWorkersJoin(kube, "joins");
    await kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: MachineConfigPool.kind,
      metadata: metadata("worker"),
      spec: {
        nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
        machineConfigSelector: { matchLabels: { [labels.role]: "worker" } },
      },
    });
    await kube.create(MachineConfig, {
      apiVersion: MachineConfig.apiVersion,
      kind: MachineConfig.kind,
      metadata: { name: "99-secret", labels: { [labels.role]: "worker" } },
      spec: {
        config: {
          ignition: { version: "3.4.0" },
          passwd: { users: [{ name: "core", passwordHash: `$6$salt$${canaries["password hash"]}` }] },
          storage: {
            files: [{ path: "/etc/secret", mode: 0o600, contents: { source: `data:,${canaries["file content"]}` } }],
          },
        },
      },
    } as never);
    await kube.create(kubernetes.Secret, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "push", namespace: joinNamespace },
      data: { key: btoa(canaries["push credential"]) },
    });
    await kube.create(MachineConfiguration, {
      apiVersion: MachineConfiguration.apiVersion,
      kind: MachineConfiguration.kind,
      metadata: { name: "cluster", annotations: { [annotations.configServerAccess]: "insecure" } },
      spec: { managementState: "Managed" },
    } as never);
    await kube.patch(
      MachineConfiguration,
      { name: "cluster" },
      { type: "merge", body: { metadata: { annotations: { [annotations.configServerAccess]: "required" } } } },
    );
    await kube.create(ProvisioningToken, {
      apiVersion: ProvisioningToken.apiVersion,
      kind: ProvisioningToken.kind,
      metadata: metadata("audited000"),
      spec: {
        pool: "worker",
        tokenHash: tokenHash(canaries["provisioning token"]),
        expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      },
    });
    const credential = await mintCredential(kube, "worker", AbortSignal.timeout(60_000));
    minted = credential.token;
    await kube.create(JoinPlace, {
      apiVersion: JoinPlace.apiVersion,
      kind: JoinPlace.kind,
      metadata: metadata("place-1"),
      spec: { pool: "worker", credential: credential.id, expiresAt: new Date(Date.now() + 3_600_000).toISOString() },
    });
    const ending = new AbortController();
    const running = runControllers(
      [joinController(), bindingController(), placeController()],
      { ...ports, kube, events: createEventRecorder({ ...ports, kube, component: "audit" }), coalesceMs: 5 },
      ending.signal,
    );
    closing.push(async () => {
      ending.abort();
      await running;
    });
    const machine = await clientBy({ token: minted });
    const { request } = await requestCertificate({
      commonName: `${nodeIdentity.userPrefix}audited-w1`,
      organizations: [nodeIdentity.group],
    });
    await machine.create(kubernetes.CertificateSigningRequest, {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: metadata("audited"),
      spec: {
        request: btoa(request),
        signerName: signers.kubeletClient,
        usages: ["digital signature", "client auth"],
        expirationSeconds: 3600,
      },
    } as never);
    await untilSeen(
      "the request is approved",
      () => kube.get(kubernetes.CertificateSigningRequest, { name: "audited" }),
      (one: CertificateSigningRequest | undefined) => one?.status?.conditions?.[0]?.type === "Approved",
    );
    await kube.delete(ProvisioningToken, { name: "audited000" });
  }
  test("says who made and revoked the token, asked, approved, let in, and changed the access [attack-audit-1]", () => {
    const lines = events.map(inWords);
    for (const line of [
      "Metadata create provisioningtokens audited000",
      "Metadata delete provisioningtokens audited000",
      `Metadata create serviceaccounts/token ${joiningAccount}`,
      "Metadata create joinplaces place-1",
      "Metadata create nodebindings audited-w1",
      "Metadata create certificatesigningrequests audited",
      "Metadata patch certificatesigningrequests/approval audited",
      "Metadata create machineconfigs 99-secret",
      "Metadata create secrets push",
      "Request create machineconfigurations cluster",
      "Request patch machineconfigurations cluster",
    ])
      expect(lines).toContain(line);
    const asked = events.find((event) => inWords(event) === "Metadata create certificatesigningrequests audited");
    expect(asked?.user.username).toBe(joiningUser);
    const access = events.filter(({ objectRef }) => objectRef?.resource === "machineconfigurations");
    expect(JSON.stringify(access)).toContain(`"${annotations.configServerAccess}":"insecure"`);
  });

  test("holds no body but those of MachineConfigurations, and no secret [attack-audit-2]", () => {
    expect(
      events.filter(
        ({ objectRef, requestObject, responseObject }) =>
          responseObject !== undefined ||
          (requestObject !== undefined && objectRef?.resource !== "machineconfigurations"),
      ),
    ).toEqual([]);
    expect(minted.length).toBeGreaterThan(100);
    expect(
      leaksIn([{ where: "the audit log", text }], canariesOf(canaries), [
        { name: "token of the joining account", text: minted.slice(-80) },
        { name: "hash of the token", text: tokenHash(canaries["provisioning token"]) },
      ]),
    ).toEqual([]);
  });

  test("holds what its rules name and nothing else [attack-audit-3]", () => {
    const resources = new Set(events.map(({ objectRef }) => objectRef?.resource));
    expect([...resources].sort()).toEqual(
      [
        "certificatesigningrequests",
        "joinplaces",
        "machineconfigs",
        "controllerconfigs",
        "machineconfigurations",
        "nodebindings",
        "provisioningtokens",
        "secrets",
        "serviceaccounts",
      ].sort(),
    );
  });
});
