import { Agent, request as httpsRequest } from "node:https";
import type { TLSSocket } from "node:tls";
import { onTestFinished } from "vitest";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { createApiServer } from "../../src/standin/apiserver/server.ts";
import { sharedSecretKeys } from "../../src/standin/apiserver/access/service-account-tokens.ts";
import { ControllerConfig } from "../../src/api/kinds/controller-config.ts";
import { definedResources, kubernetes } from "../../src/api/index.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { hostPaths, joinNamespace, namespace, objects } from "../../src/api/names.ts";
import { ProvisioningToken } from "../../src/api/kinds/provisioning-token.ts";
import { tokenHash } from "../../src/core/join/provisioning-token.ts";
import { tlsOfFlags } from "../../src/core/certificates/tls-profile.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";
import type { RequestOutcome } from "../../src/server/answer-request.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import type { ConfigListenLimits, Listen, ListenPlain } from "../../src/ports/listener.ts";
import type { Logger } from "../../src/ports/logger.ts";
import { configListen, systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import { bootstrapperOf } from "../../src/server/join-credential.ts";
import { ClusterSource } from "../../src/server/cluster-source.ts";
import type { ResponseCache } from "../../src/server/response-cache.ts";
import type { AccessMode } from "../../src/server/credentials.ts";
import type { RequestLimits } from "../../src/server/limits.ts";
import { runServer } from "../../src/server/run-server.ts";
import { type Identity, type TestAuthority, testAuthority } from "./test-pki.ts";
import { untilSeen } from "./until-seen.ts";

/** What must never appear in a refusal, a log or a journal. */
export const pullSecret = "c2VjcmV0LXB1bGwtc2VjcmV0LW9mLXRoZS1jbHVzdGVy";
export const ignition = (version: string) => `application/vnd.coreos.ignition+json;version=${version}, */*;q=0.1`;

export interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  readonly text: string;
}

export interface Ask {
  readonly path?: string;
  readonly method?: string;
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly agent?: Agent;
  readonly client?: Identity;
  readonly body?: string;
}

/** A log that can be searched. */
export function keptLog(lines: string[]): Logger {
  const put = (level: string) => (fields: object, message: string) =>
    void lines.push(
      `${level} ${message} ${JSON.stringify(fields, (_key, value: unknown) => (value instanceof Error ? `${value.message} ${String(value.cause)}` : value))}`,
    );
  const log: Logger = {
    debug: put("debug"),
    info: put("info"),
    warn: put("warn"),
    error: put("error"),
    child: () => log,
  };
  return log;
}

/** Tokens: a name of ten and a secret of 32 characters. */
export const tokenText = (name: string, letter: string) => ({
  id: name.padEnd(10, "0"),
  secret: letter.repeat(32),
  text: `${name.padEnd(10, "0")}.${letter.repeat(32)}`,
});

export interface ServerOptions {
  readonly access?: AccessMode;
  readonly limits?: Partial<RequestLimits>;
  readonly connections?: Partial<ConfigListenLimits>;
  readonly clientCa?: boolean;
  readonly tls?: { readonly minVersion?: string; readonly ciphers?: readonly string[] };
  readonly graceMs?: number;
  readonly mostCacheBytes?: number;
  readonly clock?: Clock;
  /** Serves its metrics; absent: nothing does. */
  readonly metrics?: Listen;
  /** Listens for its probes; absent: nothing does. */
  readonly probes?: ListenPlain;
  /** Intercepts requests of this server to the API server. */
  readonly intercept?: (handler: HttpHandler) => HttpHandler;
}

export interface RunningServer {
  readonly port: number;
  readonly answers: ResponseCache;
  readonly source: ClusterSource;
  readonly log: readonly string[];
  readonly journal: ReturnType<typeof memoryJournal>;
  /** Files of its certificate, by path. */
  readonly files: Map<string, string>;
  get(ask?: Ask): Promise<Got>;
  /** Repeats the request until the answer is as wanted. */
  until(ask: Ask, wanted: (got: Got) => boolean): Promise<Got>;
  stop(): Promise<void>;
}

/** An API server in this process with two pools, and config servers in front of it, over TLS on loopback. */
export class ServerHarness {
  readonly kube: KubeClient;
  readonly transport: HttpHandler;
  readonly authority: TestAuthority;
  #renders = 0;

  private constructor(kube: KubeClient, transport: HttpHandler, authority: TestAuthority) {
    this.kube = kube;
    this.transport = transport;
    this.authority = authority;
  }

  static async make(): Promise<ServerHarness> {
    const keys = sharedSecretKeys(systemRandom.bytes(32));
    const api = createApiServer({
      store: memoryStore(),
      clock: systemClock,
      random: systemRandom,
      log: keptLog([]),
      tokenKeys: keys,
    });
    onTestFinished(() => api.close());
    const transport = api.as({ name: "admin", groups: ["system:masters"] });
    const kube = createKubeClient({ transport, clock: systemClock, random: systemRandom, userAgent: "test" });
    return ServerHarness.over(kube, await testAuthority(), transport);
  }

  /** The same two pools on an API server that a test brings. */
  static async over(
    kube: KubeClient,
    authority: TestAuthority,
    transport: HttpHandler = () => Promise.reject(new Error("no server runs in this process")),
  ): Promise<ServerHarness> {
    for (const resource of definedResources)
      await kube.apply(kubernetes.CustomResourceDefinition, resource.crd(), { owner: "test" });
    const harness = new ServerHarness(kube, transport, authority);
    for (const name of [namespace, joinNamespace])
      await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    await kube.create(ControllerConfig, {
      apiVersion: ControllerConfig.apiVersion,
      kind: "ControllerConfig",
      metadata: { name: objects.controllerConfig },
      spec: {
        clusterDNSIP: "10.0.0.10",
        cloudProviderConfig: "",
        kubeAPIServerServingCAData: btoa("kubelet-ca-1\n"),
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
    });
    await harness.authorities("ca-1");
    for (const pool of ["master", "worker"]) await harness.pool(pool);
    return harness;
  }

  authorities(pem: string) {
    return this.kube.apply(
      kubernetes.ConfigMap,
      { metadata: { name: objects.kubeconfigData, namespace }, data: { "ca-bundle.crt": pem } },
      { owner: "test", force: true },
    );
  }

  async pool(name: string, files: Readonly<Record<string, string>> = { "/etc/a": "1" }): Promise<void> {
    await this.kube.create(kubernetes.ServiceAccount, {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: bootstrapperOf(name), namespace: joinNamespace },
    });
    await this.kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name },
      spec: { nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } } },
    });
    await this.point(name, await this.render(name, files));
  }

  /** A rendered configuration, with the cluster's pull secret, as always. */
  async render(pool: string, files: Readonly<Record<string, string>>, more: object = {}): Promise<string> {
    const name = `rendered-${pool}-${String((this.#renders += 1)).padStart(32, "0")}`;
    const all = { "/var/lib/kubelet/config.json": pullSecret, ...files };
    await this.kube.create(MachineConfig, {
      apiVersion: MachineConfig.apiVersion,
      kind: "MachineConfig",
      metadata: { name },
      spec: {
        config: {
          ignition: { version: "3.4.0" },
          storage: {
            files: Object.entries(all).map(([path, text]) => ({
              path,
              mode: 0o600,
              contents: { source: encodeDataUrl(text) },
            })),
          },
          ...more,
        },
      },
    });
    return name;
  }

  /** Puts a pool into the state in which the controllers leave it when all its machines have this configuration. */
  async point(pool: string, config: string): Promise<void> {
    const { metadata } = await this.kube.patch(
      MachineConfigPool,
      { name: pool },
      { type: "merge", body: { spec: { configuration: { name: config } } } },
    );
    await this.kube.patch(
      MachineConfigPool,
      { name: pool },
      {
        type: "merge",
        body: {
          status: {
            configuration: { name: config },
            observedGeneration: metadata.generation,
            machineCount: 1,
            updatedMachineCount: 1,
          },
        },
      },
      { subresource: "status" },
    );
  }

  /** @returns its text. */
  async token(
    name: string,
    letter: string,
    spec: Partial<Omit<ProvisioningToken["spec"], "tokenHash">>,
  ): Promise<string> {
    const { id, secret, text } = tokenText(name, letter);
    await this.kube.create(ProvisioningToken, {
      apiVersion: ProvisioningToken.apiVersion,
      kind: "ProvisioningToken",
      metadata: { name: id },
      spec: { pool: "worker", tokenHash: tokenHash(secret), ...spec },
    });
    return text;
  }

  uses(text: string): Promise<number> {
    return this.kube.get(ProvisioningToken, { name: text.slice(0, 10) }).then((token) => token?.status?.uses ?? 0);
  }

  async start(options: ServerOptions = {}): Promise<RunningServer> {
    const stopping = new AbortController();
    const clock = options.clock ?? systemClock;
    const lines: string[] = [];
    const log = keptLog(lines);
    const journal = memoryJournal();
    const shown = await this.authority.server("127.0.0.1");
    const files = new Map([
      ["tls.crt", shown.certificate],
      ["tls.key", shown.key],
      ["clients.crt", this.authority.certificate],
    ]);
    const transport = (options.intercept ?? ((handler: HttpHandler) => handler))(this.transport);
    const kube = createKubeClient({ transport, clock: systemClock, random: systemRandom, userAgent: "server" });
    const source = new ClusterSource({
      kube,
      clock,
      random: systemRandom,
      log,
      apiServerUrl: "https://api.example.com:6443",
      fallbackCa: undefined,
      signal: stopping.signal,
    });
    const decided = tlsOfFlags(options.tls?.minVersion, options.tls?.ciphers);
    if (decided.verdict === "refused") throw new Error(decided.reason);
    let running: Promise<void> = Promise.resolve();
    const listening = await new Promise<{ readonly port: number; readonly answers: ResponseCache }>(
      (resolve, reject) => {
        running = runServer(
          {
            clock,
            random: systemRandom,
            log,
            journal,
            identity: `server-${systemRandom.uuid().slice(0, 4)}`,
            version: "1.0.0",
            source,
            runSource: () => source.run(),
            tokens: source,
            places: source,
            access: options.access ?? "required",
            files: { readText: (path) => Promise.resolve(files.get(path)) },
            listen: configListen,
            host: "127.0.0.1",
            port: 0,
            tls: {
              paths: {
                certificate: "tls.crt",
                key: "tls.key",
                ...(options.clientCa === true ? { clientCa: "clients.crt" } : {}),
              },
              settings: decided.settings,
            },
            ...(options.limits === undefined ? {} : { limits: options.limits }),
            ...(options.connections === undefined ? {} : { connections: options.connections }),
            ...(options.mostCacheBytes === undefined ? {} : { mostCacheBytes: options.mostCacheBytes }),
            ...(options.metrics === undefined
              ? {}
              : { metrics: { kube, listen: options.metrics, host: "127.0.0.1", port: 0, network: true, tls: shown } }),
            ...(options.probes === undefined ? {} : { probes: { listen: options.probes, host: "127.0.0.1", port: 0 } }),
            graceMs: options.graceMs ?? 200,
            onListening: resolve,
          },
          stopping.signal,
        );
        running.catch(reject);
      },
    );
    const stop = () => {
      stopping.abort(new Error("the test is over"));
      return running;
    };
    onTestFinished(stop);
    const get = (ask: Ask = {}) => send(listening.port, this.authority.certificate, ask);
    const server: RunningServer = {
      ...listening,
      source,
      log: lines,
      journal,
      files,
      get,
      until: (ask, wanted) =>
        untilSeen(
          `the answer to ${JSON.stringify(ask.path ?? "/config/worker")} is as wanted`,
          () => get(ask),
          wanted,
          {
            seconds: 20,
            everyMs: 5,
          },
        ),
      stop,
    };
    await server.until({ path: "/readyz" }, ({ status }) => status === 200);
    return server;
  }
}

/** One request over a connection of its own, unless an agent keeps it. */
export function send(
  port: number,
  ca: string,
  { path = "/config/worker", method = "GET", token, headers = {}, agent, client, body }: Ask,
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const call = httpsRequest(
      {
        host: "127.0.0.1",
        port,
        path,
        method,
        ca,
        agent: agent ?? false,
        ...(client === undefined ? {} : { cert: client.certificate, key: client.key }),
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...headers,
          ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
        },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.once("error", reject);
        answer.once("end", () => {
          const whole = Buffer.concat(chunks);
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            body: whole,
            text: whole.toString("utf8"),
          });
        });
      },
    );
    call.once("error", reject);
    call.end(body);
  });
}

/** The server certificate of a connection, as a text that differs between certificates. */
export const shownBy = (socket: TLSSocket): string => socket.getPeerCertificate().fingerprint256;

/** The text of a problem. */
export const problemOf = ({ text }: Got) =>
  (
    JSON.parse(text) as {
      readonly error: { readonly reason: string; readonly message: string } & Readonly<Record<string, unknown>>;
    }
  ).error;

/** The kubeconfig in an answer. */
export const kubeconfigIn = (text: string): string => {
  const { storage } = JSON.parse(text) as {
    readonly storage: {
      readonly files: readonly { readonly path: string; readonly contents: { readonly source: string } }[];
    };
  };
  return decodeURIComponent(
    (storage.files.find(({ path }) => path === hostPaths.kubeconfig)?.contents.source ?? "").slice("data:,".length),
  );
};

/** The credential in an answer, with the id that the API server records of requests that are sent with it. */
export function credentialIn(text: string): { readonly token: string; readonly id: string } {
  const token = /token: (\S+)/.exec(kubeconfigIn(text))?.[1] ?? "";
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as { readonly jti: string };
  return { token, id: `JTI=${claims.jti}` };
}

/** What a config server notes of a request that it answered with a configuration. */
export const servedOutcome: RequestOutcome = {
  is: "served",
  status: 200,
  reason: "Served",
  requester: "192.0.2.1",
  pool: "worker",
  config: "rendered-worker-1",
  version: "3.4.0",
  sizeBytes: 10,
  durationMs: 5,
  by: "token",
  node: "",
};
