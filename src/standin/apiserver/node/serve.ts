import { getHeapStatistics } from "node:v8";
import type { Clock } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { Random } from "../../../ports/random.ts";
import type { StartThread } from "../../../ports/threads.ts";
import type { LogSource } from "../requests/pods.ts";
import type { KubeObject, UserInfo } from "../schema/contract.ts";
import { createApiServer, type ApiServer } from "../server.ts";
import { roomIn } from "../storage/room.ts";
import { kubeletLogs } from "./kubelet-logs.ts";
import { listen, type Listener } from "./listener.ts";
import { sqliteStore } from "./sqlite-store.ts";
import { pemTokenKeys } from "./token-keys.ts";
import { Turns, eventLoop } from "./turns.ts";
import { httpsWebhookCaller } from "./webhook-caller.ts";
import { yamlInThreads } from "./yaml-threads.ts";

export interface ServeOptions {
  /** Database file; made when absent. */
  readonly file: string;
  readonly survives?: "processKill" | "powerCut";
  readonly host: string;
  readonly port: number;
  /** PEM of this server. */
  readonly tls: { readonly certificate: string; readonly key: string };
  /** PEM; signs client certificates and the kubelets' servers. Also the authority that pods trust. */
  readonly clusterCA: string;
  /** PEM of a private key (P-256 or RSA) that signs service-account tokens. */
  readonly tokenKey: string;
  readonly issuer?: string;
  readonly staticTokens?: Readonly<Record<string, UserInfo>>;
  /** PEM with which this server presents itself to kubelets; without it logs cannot be read. */
  readonly kubeletClient?: { readonly certificate: string; readonly key: string };
  /** Instead of the kubelets. */
  readonly logs?: LogSource;
  /** Starts threads of this program, which read long YAML; without it, the server does, and others wait. */
  readonly startThread?: StartThread;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Aborting closes everything. */
  readonly signal: AbortSignal;
}

export interface RunningApiServer {
  readonly url: string;
  readonly port: number;
  /** For components in the same process. */
  readonly server: ApiServer;
  readonly replaceCertificates: Listener["replaceCertificates"];
  close(): Promise<void>;
  /** Resolves when it is closed, by {@link close} or by the signal. */
  readonly closed: Promise<void>;
}

/**
 * The API server as a process runs it: SQLite file, TLS listener, webhooks over HTTPS, logs from the kubelets. Prints
 * nothing.
 */
export async function serveApiServer(options: ServeOptions): Promise<RunningApiServer> {
  const { clock, random, log, signal, clusterCA, kubeletClient } = options;
  signal.throwIfAborted();
  const store = sqliteStore({
    file: options.file,
    ...(options.survives === undefined ? {} : { survives: options.survives }),
  });
  let listener: Listener;
  let server: ApiServer;
  try {
    const logs =
      options.logs ??
      (kubeletClient === undefined
        ? undefined
        : kubeletLogs({
            tls: { ca: clusterCA, ...kubeletClient },
            nodeOf: (name) => {
              const stored = store.get({ resource: "nodes", namespace: "", name });
              return stored === undefined ? undefined : (JSON.parse(stored.value) as KubeObject);
            },
          }));
    const turns = new Turns(eventLoop(() => clock.monotonic()));
    server = createApiServer({
      store,
      clock,
      random,
      log,
      tokenKeys: pemTokenKeys(options.tokenKey),
      webhooks: httpsWebhookCaller,
      turns,
      ...(options.startThread === undefined ? {} : { readYaml: yamlInThreads(options.startThread, clock) }),
      room: roomIn(getHeapStatistics().heap_size_limit),
      bootstrap: { rootCertificates: clusterCA },
      ...(logs === undefined ? {} : { logs }),
      ...(options.issuer === undefined ? {} : { issuer: options.issuer }),
      ...(options.staticTokens === undefined ? {} : { staticTokens: options.staticTokens }),
    });
    listener = await listen({
      server,
      host: options.host,
      port: options.port,
      tls: options.tls,
      clientCA: clusterCA,
      clock,
    });
  } catch (error) {
    store.close();
    throw error;
  }

  const { promise: closed, resolve, reject } = Promise.withResolvers<void>();
  let closing: Promise<void> | undefined;
  const close = () =>
    (closing ??= listener.close().then(() => {
      store.close();
      signal.removeEventListener("abort", onAbort);
    }));
  const onAbort = () => {
    close().then(resolve, reject);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  log.info({ url: listener.url }, "API server listens");
  return {
    url: listener.url,
    port: listener.port,
    server,
    replaceCertificates: listener.replaceCertificates,
    async close() {
      await close();
      resolve();
    },
    closed,
  };
}
