import { metricsText } from "../core/metrics/metrics.ts";
import { journalFamilies } from "../core/metrics/section-meter.ts";
import type { TlsSettings } from "../core/certificates/tls-profile.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { metricsHandler } from "../kube/metrics-handler.ts";
import { createReport } from "../kube/report.ts";
import type { Files } from "../ports/files.ts";
import type { Ports } from "../ports/index.ts";
import type { ConfigListenLimits, Listen, ListenConfig, ListenPlain, TlsFiles } from "../ports/listener.ts";
import { type AnswerRequestOptions, answerRequest } from "./answer-request.ts";
import { ResponseCache } from "./response-cache.ts";
import type { ConfigSource, TokenStore } from "./config-source.ts";
import { type AccessMode, Credentials } from "./credentials.ts";
import { Limits, type RequestLimits, defaultLimits } from "./limits.ts";
import { ServerMeter } from "./server-meter.ts";
import { RequestReports } from "./request-reports.ts";
import { type TlsPaths, followTlsMaterial, tlsMaterial, validityOf } from "./tls-material.ts";

export interface RunServerOptions extends Ports {
  /** Unique for each start of the process. */
  readonly identity: string;
  readonly version: string;
  readonly source: ConfigSource;
  /** Fills the source, until the signal aborts. */
  readonly runSource: (signal: AbortSignal) => Promise<void>;
  readonly tokens: TokenStore | undefined;
  readonly access: AccessMode;
  readonly files: Pick<Files, "readText">;
  readonly listen: ListenConfig;
  readonly host: string;
  readonly port: number;
  readonly network?: boolean;
  readonly tls: { readonly paths: TlsPaths; readonly settings: TlsSettings };
  /** Without TLS, and only to say that the process is alive; nowhere when absent. */
  readonly plain?: {
    readonly listen: ListenPlain;
    readonly host: string;
    readonly port: number;
    readonly network?: boolean;
  };
  /** Where metrics are served; nowhere when absent. */
  readonly metrics?: {
    readonly kube: KubeClient;
    readonly listen: Listen;
    readonly host: string;
    readonly port: number;
    readonly network?: boolean;
    readonly tls: TlsFiles;
  };
  readonly limits?: Partial<RequestLimits>;
  readonly connections?: Partial<ConfigListenLimits>;
  readonly mostCacheBytes?: number;
  /** `false`: answers are made for each request, to measure what keeping them is worth. */
  readonly keeps?: boolean;
  readonly graceMs?: number;
  /** Told once, when it listens. */
  readonly onListening?: (listening: { readonly port: number; readonly answers: ResponseCache }) => void;
}

/** Limits of what reaches the port, from any client. */
export const defaultConnections: ConfigListenLimits = {
  connections: 4096,
  connectionsOfOneSource: 2048,
  headerBytes: 16 * 1024,
  headers: 64,
  headersMs: 10_000,
  idleMs: 15_000,
  takeMs: 30_000,
  leastBytesPerSecond: 16 * 1024,
};
/** What answers under way have to end when the process stops. */
const defaultGraceMs = 10_000;
const listenAgainMs = 5000;
/** A certificate that ends sooner than this is spoken of, once a day. */
const expiringMs = 7 * 86_400_000;
const dayMs = 86_400_000;

/** Runs the config server until `signal` aborts: machines that join are given the configuration of their pool. */
export async function runServer(options: RunServerOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, journal, source, identity, version, access, listen, files, tls, metrics, plain } = options;
  const isPool = (pool: string) => source.pools().includes(pool);
  const meter = new ServerMeter(isPool);
  const answers = new ResponseCache({
    source,
    clock,
    log,
    onRender: (_pool, _version, verdict, milliseconds) => meter.rendered(verdict, milliseconds),
    ...(options.mostCacheBytes === undefined ? {} : { mostBytes: options.mostCacheBytes }),
    ...(options.keeps === undefined ? {} : { keeps: options.keeps }),
  });
  const credentials = new Credentials({ mode: access, tokens: options.tokens, clock, log });
  const limits = new Limits(clock, { ...defaultLimits, ...options.limits });
  const isCluster = source.mode === "cluster";
  const report = createReport({ journal, log });
  const writer = new RequestReports({
    clock,
    report,
    log,
    run: identity,
    chapter: isCluster ? "Server" : "Bootstrap",
    isPool,
  });
  let shown: TlsFiles | undefined;

  const unready = (): readonly string[] => {
    const missing = source.missing().map((what) => `not read yet: ${what}`);
    const validity = shown === undefined ? undefined : validityOf(shown);
    const now = clock.now();
    const certificate =
      validity === undefined
        ? ["no certificate"]
        : now < validity.from
          ? ["the certificate is not valid yet"]
          : now >= validity.until
            ? ["the certificate has ended"]
            : [];
    const poolsInTrouble = answers.unready();
    const all = source.pools().length;
    // One pool that cannot be served is no reason to send the machines of the others away.
    return [
      ...missing,
      ...certificate,
      ...(missing.length === 0 && poolsInTrouble.size >= all ? troubles(poolsInTrouble, all) : []),
    ];
  };
  const requests: AnswerRequestOptions = {
    answers,
    credentials,
    limits,
    clock,
    log,
    unready,
    troubles: () => troubles(answers.unready(), source.pools().length),
    onOutcome(outcome) {
      meter.request(outcome);
      writer.tell(outcome);
    },
  };

  if (access === "insecure")
    log.warn(
      { access },
      "insecure access: configurations, with the secrets in them, are served to anybody who can reach this port",
    );
  const running = options.runSource(signal);
  answers.run(signal);
  const material = { files, clock, log, paths: tls.paths };
  shown = await tlsMaterial(material, signal);
  const listener = await listen(
    {
      host: options.host,
      port: options.port,
      ...(options.network === undefined ? {} : { network: options.network }),
      tls: shown,
      settings: tls.settings,
      limits: { ...defaultConnections, ...options.connections },
      onRefused: (why) => meter.turnedAway(why),
    },
    answerRequest(requests),
  );
  const life = { book: "cluster", run: identity } as const;
  if (isCluster)
    report({
      ...life,
      chapter: "Server",
      path: "Start",
      mark: "begin",
      level: "boundary",
      reason: "Started",
      message: `${identity}, version ${version}, port ${listener.port}, access ${access}`,
      data: { access, port: listener.port },
    });
  else
    report({
      ...life,
      chapter: "Bootstrap",
      path: "ServerUp",
      mark: "note",
      level: "boundary",
      reason: "ServerUp",
      message: `the config server answers on port ${listener.port}, access ${access}`,
      data: { access, port: listener.port },
    });
  log.info(
    {
      host: options.host,
      port: listener.port,
      access,
      ciphers: tls.settings.ciphers.length,
      minVersion: tls.settings.minVersion,
    },
    "serving configurations",
  );
  options.onListening?.({ port: listener.port, answers });

  const follow = followTlsMaterial(
    material,
    shown,
    (fresh) => {
      listener.swap(fresh);
      shown = fresh;
      const until = new Date(validityOf(fresh)?.until ?? 0).toISOString();
      if (isCluster)
        report({
          ...life,
          chapter: "Server",
          path: "Certificate",
          mark: "note",
          level: "boundary",
          reason: "CertificateRotated",
          message: `another certificate is shown, good until ${until}`,
          data: { until },
        });
      else log.info({ until }, "another certificate is shown from now on");
    },
    signal,
  );
  const text = () => {
    const gauges = {
      cacheBytes: answers.bytes,
      cacheEntries: answers.size,
      connections: listener.connections,
      answersUnderWay: limits.underWay,
      insecure: access === "insecure",
      ready: unready().length === 0,
      certificateEndsAt: shown === undefined ? undefined : validityOf(shown)?.until,
    };
    return metricsText([...meter.families(gauges), ...journalFamilies("server", journal.counts?.dropped ?? 0)]);
  };
  const beside = [
    follow,
    watchEnd(),
    ...(metrics === undefined
      ? []
      : [again((until) => metrics.listen(metrics, metricsHandler({ kube: metrics.kube, clock, log, text }), until))]),
    ...(plain === undefined
      ? []
      : [
          again((until) =>
            plain.listen(
              plain,
              ({ method, target }) =>
                Promise.resolve({
                  status: method !== "GET" && method !== "HEAD" ? 405 : target === "/healthz" ? 200 : 404,
                  headers: { "content-type": "text/plain" },
                  body: "",
                }),
              until,
            ),
          ),
        ]),
  ];
  await ended(signal);
  await listener.close(options.graceMs ?? defaultGraceMs);
  const deadline = clock.deadline(2000);
  await credentials.flush(deadline.signal);
  deadline.cancel();
  writer.stop();
  if (isCluster)
    report({
      ...life,
      chapter: "Server",
      path: "Start",
      mark: "end",
      level: "boundary",
      reason: "Stopped",
      message: `${identity} ended`,
    });
  await Promise.all([running, ...beside]);

  async function watchEnd(): Promise<void> {
    while (!signal.aborted) {
      const until = shown === undefined ? undefined : validityOf(shown)?.until;
      if (until !== undefined && until - clock.now() < expiringMs) {
        const end = new Date(until).toISOString();
        if (isCluster)
          report({
            ...life,
            chapter: "Server",
            path: "Certificate",
            mark: "note",
            level: "boundary",
            reason: "CertExpiring",
            message: `the certificate ends at ${end}, and no other has come`,
            data: { until: end },
          });
        else log.warn({ end }, "the certificate ends soon");
      }
      await clock.sleep(dayMs, signal).catch(() => undefined);
    }
  }

  async function again(start: (until: AbortSignal) => Promise<unknown>): Promise<void> {
    while (!signal.aborted) {
      try {
        await start(signal);
        return;
      } catch (error) {
        log.warn({ error }, "cannot listen, trying again");
        await clock.sleep(listenAgainMs, signal).catch(() => undefined);
      }
    }
  }
}

/** A readiness probe must not reveal which pools exist. */
function troubles(pools: ReadonlyMap<string, string>, all: number): readonly string[] {
  const reasons = new Map<string, number>();
  for (const reason of pools.values()) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  return [...reasons].map(([reason, count]) => `${reason}: ${count} of ${all} pools`);
}

const ended = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
