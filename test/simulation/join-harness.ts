import { X509Certificate } from "node:crypto";
import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import type { Store, StoredObject } from "../../src/standin/apiserver/storage/store.ts";
import { type ApiServer, createApiServer } from "../../src/standin/apiserver/server.ts";
import type { UserInfo } from "../../src/standin/apiserver/schema/contract.ts";
import {
  ControllerConfig,
  JoinPlace,
  MachineConfigPool,
  NodeBinding,
  ProvisioningToken,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { bindingController, placeController } from "../../src/controller/binding-controller.ts";
import { joinController } from "../../src/controller/join-controller.ts";
import { type Authority, certificateAuthority } from "../../src/kube/certificates.ts";
import { runControllers } from "../../src/kube/controller.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import type { HttpHandler, HttpRequest } from "../../src/ports/http.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { Kernel } from "./kernel.ts";
import { type NetworkFaults, calm, simulatedTransport } from "./network.ts";
import { Life } from "./process.ts";

const { annotations, joinNamespace, nodeIdentity, objects, signers } = names;

export const administrator: UserInfo = { name: "admin", groups: ["system:masters"] };
export const pools = ["worker", "infra", "master"] as const;
const credentialKey = "authentication.kubernetes.io/credential-id";

export const bootstrapper = (pool: string): UserInfo => ({
  name: `system:serviceaccount:${joinNamespace}:${objects.nodeBootstrapperPrefix}${pool}`,
  groups: ["system:serviceaccounts", "system:authenticated"],
});
export const asNode = (name: string): UserInfo => ({
  name: `${nodeIdentity.userPrefix}${name}`,
  groups: [nodeIdentity.group, "system:authenticated"],
});
/** A user as the API server knows it by a credential. */
export const withCredential = (user: UserInfo, id: string | undefined): UserInfo =>
  id === undefined ? user : { ...user, extra: { [credentialKey]: [id] } };

/** Hosts of the API server, as the operator notes them. */
export const apiServerHosts = ["api.corp.example", "10.0.0.100"] as const;

/** A network that is slow, late and torn, as far as every answer still arrives. */
const rough: NetworkFaults = {
  ...calm,
  delayMs: [0.5, 20],
  slow: 0.05,
  slowMs: [50, 800],
  cutWatch: 0.004,
  lagWatch: 0.05,
  lagMs: [200, 3000],
};

/** The pools, the accounts and the kinds: the same in each history. */
async function commonObjects(): Promise<readonly StoredObject[]> {
  const kernel = new Kernel(1);
  const store = memoryStore();
  const server = createApiServer({ store, clock: kernel.clock, random: kernel.random, log: silentLogger });
  const kube = client(kernel, server.as(administrator));
  for (const kind of [MachineConfigPool, ControllerConfig, JoinPlace, NodeBinding, ProvisioningToken])
    await kube.create(kubernetes.CustomResourceDefinition, kind.crd() as never);
  const group = "rbac.authorization.k8s.io";
  for (const name of pools) {
    await kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: MachineConfigPool.kind,
      metadata: { name },
      spec: {
        nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } },
        machineConfigSelector: { matchLabels: {} },
      },
    } as never);
    await kube.create(kubernetes.ClusterRoleBinding, {
      apiVersion: `${group}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: `join-${name}` },
      roleRef: { apiGroup: group, kind: "ClusterRole", name: "join" },
      subjects: [{ kind: "User", apiGroup: group, name: bootstrapper(name).name }],
    } as never);
  }
  await kube.create(kubernetes.ClusterRole, {
    apiVersion: `${group}/v1`,
    kind: "ClusterRole",
    metadata: { name: "join" },
    rules: [
      {
        apiGroups: ["certificates.k8s.io"],
        resources: ["certificatesigningrequests"],
        verbs: ["create", "get", "list", "watch"],
      },
    ],
  } as never);
  await kube.create(ControllerConfig, {
    apiVersion: ControllerConfig.apiVersion,
    kind: ControllerConfig.kind,
    metadata: {
      name: objects.controllerConfig,
      annotations: { [annotations.apiServerHosts]: apiServerHosts.join(",") },
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
  await kernel.untilIdle();
  server.close();
  return store.list({}).items;
}

const client = (kernel: Kernel, transport: HttpHandler, clock = kernel.clock) =>
  createKubeClient({ transport, clock, random: kernel.random, userAgent: "test" });

function storeWith(all: readonly StoredObject[]): Store {
  const store = memoryStore();
  for (const { key, value } of all) store.create(key, value);
  return store;
}

let common: Promise<readonly StoredObject[]> | undefined;
let authority: Promise<Authority> | undefined;

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
type Keys = Awaited<ReturnType<typeof newKeys>>;
const newKeys = () => crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
/** Made once in a process: histories use the first ones again. */
const keys: Promise<Keys>[] = [];
const requests = new Map<string, Promise<string>>();

/** PEM of a certificate request by the key of a number. */
export function requestBy(key: number, node: string, hosts: readonly string[]): Promise<string> {
  const id = JSON.stringify([key, node, hosts]);
  const known = requests.get(id);
  if (known !== undefined) return known;
  while (keys.length <= key) keys.push(newKeys());
  const made = (async () => {
    const request = await x509.Pkcs10CertificateRequestGenerator.create({
      name: new x509.Name([{ O: [nodeIdentity.group] }, { CN: [`${nodeIdentity.userPrefix}${node}`] }]).toString(),
      keys: await (keys[key] ?? newKeys()),
      signingAlgorithm: algorithm,
      extensions:
        hosts.length === 0
          ? []
          : [
              new x509.SubjectAlternativeNameExtension(
                hosts.map((value) => ({
                  type: /^[\d.]+$|:/.test(value) ? ("ip" as const) : ("dns" as const),
                  value,
                })),
              ),
            ],
    });
    return `${request.toString("pem")}\n`;
  })();
  requests.set(id, made);
  return made;
}

/** What a controller wrote and the API server took. */
export type ControllerWrite =
  | { readonly what: "decision"; readonly request: string; readonly type: string }
  | { readonly what: "labels"; readonly node: string; readonly labels: readonly string[] };

export type Plant = (transport: HttpHandler) => HttpHandler;

/** An API server in memory and the real controllers that admit machines, in virtual time. */
export class JoinHarness {
  readonly kernel: Kernel;
  readonly kube: KubeClient;
  readonly isRough: boolean;
  readonly #server: ApiServer;
  readonly #authority: Authority;
  readonly #plant: Plant;
  readonly #onWrite: (write: ControllerWrite) => void;
  #life: Life | undefined;
  #lives = 0;
  #writesUntilCrash = Infinity;

  private constructor(
    options: Omit<JoinHarnessOptions, "plant"> & { readonly plant: Plant },
    kernel: Kernel,
    store: Store,
    signer: Authority,
  ) {
    this.kernel = kernel;
    this.isRough = options.isRough;
    this.#plant = options.plant;
    this.#onWrite = options.onWrite;
    this.#authority = signer;
    this.#server = createApiServer({ store, clock: kernel.clock, random: kernel.random, log: silentLogger });
    this.kube = this.as(administrator);
  }

  static async start(options: JoinHarnessOptions): Promise<JoinHarness> {
    common ??= commonObjects();
    authority ??= (({ clock, random }) => certificateAuthority({ name: "ca", clock, random }))(new Kernel(1));
    const kernel = new Kernel(options.seed);
    const { certificate, key } = await authority;
    const signer = await certificateAuthority({
      name: "ca",
      clock: kernel.clock,
      random: kernel.random,
      existing: { certificate, key },
    });
    const harness = new JoinHarness({ plant: (to) => to, ...options }, kernel, storeWith(await common), signer);
    await kernel.untilIdle();
    harness.startControllers();
    return harness;
  }

  /** Milliseconds since the epoch. */
  get now(): number {
    return this.kernel.clock.now();
  }

  as(user: UserInfo): KubeClient {
    return client(this.kernel, this.#server.as(user));
  }

  get isRunning(): boolean {
    return this.#life?.alive === true;
  }

  startControllers(): void {
    if (this.isRunning) return;
    this.#writesUntilCrash = Infinity;
    const life = new Life(this.kernel, `controller/${(this.#lives += 1)}`);
    this.#life = life;
    const transport = simulatedTransport({
      life,
      kernel: this.kernel,
      faults: () => (this.isRough ? rough : calm),
      server: () => this.#observed(life),
      happened: () => undefined,
      disturb: () => Promise.resolve(),
    });
    const kube = client(this.kernel, this.#plant(transport), life.ports.clock);
    const events = createEventRecorder({ ...life.ports, kube, component: "controller" });
    void runControllers(
      [joinController(), bindingController(), placeController()],
      { ...life.ports, kube, events, coalesceMs: 5 },
      life.signal,
    ).catch(() => undefined);
  }

  stopControllers(): void {
    this.#life?.kill();
  }

  /** The process of the controllers ends at once, right after one of its next writes. */
  crashAfter(writes: number): void {
    this.#writesUntilCrash = writes;
  }

  /** Reports what controllers wrote, in the order in which the API server took it. */
  #observed(life: Life): HttpHandler {
    const server = this.#server.as(administrator);
    return async (request, signal) => {
      const node = /^\/api\/v1\/nodes\/([^/?]+)(\?|$)/.exec(request.target)?.[1];
      const isPatch = request.method === "PATCH";
      const before = isPatch && node !== undefined ? await this.kube.get(kubernetes.Node, { name: node }) : undefined;
      const response = await server(request, signal);
      if (request.method === "GET" || request.target.includes("/events") || response.status >= 300) return response;
      const csr = /\/certificatesigningrequests\/([^/?]+)\/approval/.exec(request.target)?.[1];
      if (csr !== undefined) {
        const { status } = bodyOf(request) as { status?: { conditions?: readonly { type: string }[] } };
        for (const { type } of status?.conditions?.slice(-1) ?? [])
          this.#onWrite({ what: "decision", request: csr, type });
      }
      if (isPatch && node !== undefined) {
        const { metadata } = bodyOf(request) as { metadata?: { labels?: Readonly<Record<string, string>> } };
        const labels = Object.keys(metadata?.labels ?? {}).filter(
          (label) => before?.metadata.labels?.[label] === undefined,
        );
        if (labels.length > 0) this.#onWrite({ what: "labels", node, labels });
      }
      this.#writesUntilCrash -= 1;
      if (this.#writesUntilCrash === 0) {
        life.kill();
        this.kernel.schedule(1000, "the controllers start again", () => this.startControllers());
      }
      return response;
    };
  }

  /** Lets virtual time pass. */
  async pass(milliseconds: number): Promise<void> {
    let isOver = false;
    this.kernel.schedule(milliseconds, "wait", () => {
      isOver = true;
    });
    await this.kernel.run({ until: () => isOver, maxMs: milliseconds + 1 });
  }

  /**
   * Signs one approved request in the place of the cluster's signer. @returns SHA-256 and the end of the certificate;
   * `undefined`: the request is gone.
   */
  async sign(name: string, node: string): Promise<{ readonly sha256: string; readonly endsAt: number } | undefined> {
    const request = await this.kube.get(kubernetes.CertificateSigningRequest, { name });
    if (request === undefined) return undefined;
    const { spec } = request;
    const pem = atob(spec.request);
    const certificate = await this.#authority.sign({
      request: pem,
      commonName: `${nodeIdentity.userPrefix}${node}`,
      organizations: [nodeIdentity.group],
      dnsNames: [],
      ipAddresses: [],
      usages: spec.usages ?? [],
      lifeSeconds: spec.expirationSeconds ?? 365 * 86_400,
    });
    if (certificate === undefined) throw new Error(`the request ${name} is not signed with its key`);
    const body = { status: { certificate: btoa(certificate) } };
    await this.kube.patch(
      kubernetes.CertificateSigningRequest,
      { name },
      { type: "merge", body },
      { subresource: "status" },
    );
    const { fingerprint256, validTo } = new X509Certificate(certificate);
    return { sha256: fingerprint256.replaceAll(":", "").toLowerCase(), endsAt: Date.parse(validTo) };
  }

  async ask(
    user: UserInfo,
    request: {
      readonly id: string;
      readonly pem: string;
      readonly isServing: boolean;
      readonly expirationSeconds: number | undefined;
    },
  ): Promise<void> {
    const { id, pem, isServing, expirationSeconds } = request;
    await this.as(user).create(kubernetes.CertificateSigningRequest, {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name: id },
      spec: {
        request: btoa(pem),
        ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
        signerName: isServing ? signers.kubeletServing : signers.kubeletClient,
        usages: ["digital signature", isServing ? "server auth" : "client auth"],
      },
    } as never);
  }

  close(): void {
    this.stopControllers();
    this.#server.close();
  }
}

export interface JoinHarnessOptions {
  readonly seed: number;
  readonly isRough: boolean;
  readonly onWrite: (write: ControllerWrite) => void;
  /** A bug between the controllers and the API server. */
  readonly plant?: Plant;
}

const bodyOf = ({ body }: HttpRequest): unknown => (typeof body === "string" ? (JSON.parse(body) as unknown) : {});
