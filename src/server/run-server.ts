import { metricsText } from "../core/metrics/metrics.ts";
import { journalFamilies } from "../core/metrics/section-meter.ts";
import type { TlsSettings } from "../core/certificates/tls-profile.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { metricsHandler } from "../kube/metrics-handler.ts";
import { localQuestionLimits, questionLimits } from "../kube/question-limits.ts";
import { type Report, createReport } from "../kube/report.ts";
import type { Files } from "../ports/files.ts";
import type { Ports } from "../ports/index.ts";
import { keepListening } from "../ports/keep-listening.ts";
import { whenAborted } from "../ports/when-aborted.ts";
import type {
  ConfigAnswer,
  ConfigHandler,
  ConfigListenLimits,
  Listen,
  ListenConfig,
  ListenPlain,
  TlsFiles,
} from "../ports/listener.ts";
import { answerRequest } from "./answer-request.ts";
import { type DeliveryReason, deliverConfig, isDelivery } from "./deliver-config.ts";
import { ResponseCache } from "./response-cache.ts";
import type { ConfigSource, MachineStore, PlaceStore, TokenStore } from "./config-source.ts";
import { type AccessMode, AccessControl } from "./credentials.ts";
import { sourceGroup } from "../core/join/source-group.ts";
import { Limits, type RequestLimits, defaultLimits } from "./limits.ts";
import { ServerMeter } from "./server-meter.ts";
import { RequestReports } from "./request-reports.ts";
import { type TlsPaths, followTlsMaterial, tlsMaterial, validityOf } from "./tls-material.ts";
import { bootstrapServerStarted, certificateNoted, serverStarted, serverStopped } from "./reports.ts";

export interface RunServerOptions extends Ports {
  /** Unique for each start of the process. */
  readonly identity: string;
  readonly version: string;
  readonly source: ConfigSource;
  /** Fills the source, until the signal aborts. */
  readonly runSource: (signal: AbortSignal) => Promise<void>;
  readonly tokens: TokenStore | undefined;
  readonly places: PlaceStore | undefined;
  /** How daemons get the configurations of their machines; absent: there is no cluster yet. */
  readonly deliveries?: { readonly kube: KubeClient; readonly machines: MachineStore };
  readonly access: AccessMode;
  readonly files: Pick<Files, "readText">;
  readonly listen: ListenConfig;
  readonly host: string;
  readonly port: number;
  readonly network?: boolean;
  readonly tls: { readonly paths: TlsPaths; readonly settings: TlsSettings };
  /** A port without TLS that only reports liveness; absent: none. */
  readonly plain?: {
    readonly listen: ListenPlain;
    readonly host: string;
    readonly port: number;
    readonly network?: boolean;
  };
  /**
   * A loopback port without TLS for probes alone: others' connections to the port of machines delay none. Absent: none.
   */
  readonly probes?: { readonly listen: ListenPlain; readonly host: string; readonly port: number };
  /** Where metrics are served; absent: not at all. */
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
  /** `false`: renders each response again, to measure the benefit of the cache. */
  readonly keeps?: boolean;
  readonly graceMs?: number;
  /** Called once, when the server listens. */
  readonly onListening?: (listening: { readonly port: number; readonly answers: ResponseCache }) => void;
}

/** Limits of connections to the port, from any client. */
export const defaultConnections: ConfigListenLimits = {
  connections: 4096,
  // More than answers of one source under way. Who has most gives way to others: see ConnectionShares.
  connectionsOfOneSource: 1024,
  headerBytes: 16 * 1024,
  headers: 64,
  headersMs: 10_000,
  idleMs: 15_000,
  takeMs: 30_000,
  leastBytesPerSecond: 16 * 1024,
};
/** How long responses in progress may take when the process stops. */
const defaultGraceMs = 10_000;
/** A certificate that expires sooner than this is reported once a day. */
const expiringMs = 7 * 86_400_000;
const dayMs = 86_400_000;

/**
 * Runs the config server until `signal` aborts: it serves joining machines the configuration of their pool. Above 60
 * lines, because it is the one place that shows in which order the parts start and stop.
 */
export async function runServer(options: RunServerOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, journal, source, identity, access, listen, files, tls } = options;
  const meter = new ServerMeter((pool) => source.pools().includes(pool));
  const answers = responseCache(options, meter);
  const credentials = new AccessControl({
    mode: access,
    tokens: options.tokens,
    places: options.places,
    clock,
    log,
    onGivenBack: (outcome) => meter.usesGivenBack(outcome),
  });
  const limits = new Limits(clock, { ...defaultLimits, ...options.limits });
  const report = createReport({ journal, log });
  const life = new ServerLife(options, report);
  const certificate = new ShownCertificate(options, life);
  const requestReports = new RequestReports({
    clock,
    report,
    log,
    run: identity,
    chapter: source.mode === "cluster" ? "Server" : "Bootstrap",
    isPool: (pool) => source.pools().includes(pool),
  });
  const unready = () => problemsOf(source, answers, certificate);

  warnOfInsecureAccess(options);
  const running = options.runSource(signal);
  answers.run(signal);
  const material = { files, clock, log, paths: tls.paths };
  const first = await tlsMaterial(material, signal);
  certificate.shown = first;
  const answer = answerRequest({
    answers,
    credentials,
    limits,
    clock,
    log,
    unready,
    troubles: () => troubles(answers.unready(), source.pools().length),
    onOutcome(outcome) {
      meter.request(outcome);
      requestReports.report(outcome);
    },
  });
  const listener = await listen(
    listenOptions(options, first, meter),
    withDeliveries(answer, options, limits, meter, signal),
  );
  life.started(listener.port, certificate.validity?.until);
  options.onListening?.({ port: listener.port, answers });

  const follow = followTlsMaterial(material, first, (fresh) => certificate.replaced(fresh, listener), signal);
  const text = () => {
    const families = meter.families({
      cacheBytes: answers.bytes,
      cacheEntries: answers.size,
      connections: listener.connections,
      answersUnderWay: limits.underWay,
      insecure: access === "insecure",
      ready: unready().length === 0,
      certificateEndsAt: certificate.validity?.until,
    });
    return metricsText([...families, ...journalFamilies("server", journal.counts?.dropped ?? 0)]);
  };
  const beside = [follow, certificate.watchEnd(signal), ...listenBeside(options, { text, answer }, signal)];
  await whenAborted(signal);
  await listener.close(options.graceMs ?? defaultGraceMs);
  const deadline = clock.deadline(2000);
  await credentials.flush(deadline.signal);
  deadline.cancel();
  requestReports.stop();
  life.stopped();
  await Promise.all([running, ...beside]);
}

/** Machines that join and machines that are in service ask at the same port. */
function withDeliveries(
  answer: ConfigHandler,
  { deliveries, clock, log }: RunServerOptions,
  limits: Limits,
  meter: ServerMeter,
  signal: AbortSignal,
): ConfigHandler {
  if (deliveries === undefined) return answer;
  const onOutcome = (reason: DeliveryReason) => meter.delivery(reason);
  const deliver = deliverConfig({ ...deliveries, limits, clock, log, onOutcome, signal });
  return (request, until) => (isDelivery(request.target) ? deliver(request, until) : answer(request, until));
}

function warnOfInsecureAccess({ access, log }: RunServerOptions): void {
  if (access === "insecure")
    log.warn(
      { access },
      "insecure access: configurations, with the secrets in them, are served to every client that can reach this port",
    );
}

const listenOptions = (
  options: RunServerOptions,
  first: TlsFiles,
  meter: ServerMeter,
): Parameters<ListenConfig>[0] => ({
  host: options.host,
  port: options.port,
  ...(options.network === undefined ? {} : { network: options.network }),
  tls: first,
  settings: options.tls.settings,
  limits: { ...defaultConnections, ...options.connections },
  sourceOf: sourceGroup,
  onRefused: (why) => meter.turnedAway(why),
});

const responseCache = ({ source, clock, log, mostCacheBytes, keeps }: RunServerOptions, meter: ServerMeter) =>
  new ResponseCache({
    source,
    clock,
    log,
    onRender: (_pool, _version, verdict, milliseconds) => meter.rendered(verdict, milliseconds),
    ...(mostCacheBytes === undefined ? {} : { mostBytes: mostCacheBytes }),
    ...(keeps === undefined ? {} : { keeps }),
  });

/** What keeps the server from serving; empty: nothing. */
function problemsOf(source: ConfigSource, answers: ResponseCache, certificate: ShownCertificate): readonly string[] {
  const missing = source.missing().map((what) => `not read yet: ${what}`);
  const poolsInTrouble = answers.unready();
  const all = source.pools().length;
  // One pool that cannot be served is no reason to send the machines of the others away.
  return [
    ...missing,
    ...certificate.problems(),
    ...(missing.length === 0 && poolsInTrouble.size >= all ? troubles(poolsInTrouble, all) : []),
  ];
}

/** Journal lines about the process itself: a cluster's server has a chapter of its own, bootstrap has one line. */
class ServerLife {
  readonly isCluster: boolean;
  readonly #options: RunServerOptions;
  readonly #report: Report;

  constructor(options: RunServerOptions, report: Report) {
    this.isCluster = options.source.mode === "cluster";
    this.#options = options;
    this.#report = report;
  }

  started(port: number, certificateEnds: number | undefined): void {
    const { access, identity, version, host, tls, log } = this.#options;
    if (this.isCluster) this.#report(serverStarted(identity, { version, port, access }, certificateEnds));
    else this.#report(bootstrapServerStarted(port, access));
    const { ciphers, minVersion } = tls.settings;
    log.info({ host, port, access, ciphers: ciphers.length, minVersion }, "serving configurations");
  }

  certificate(reason: "CertificateRotated" | "CertExpiring", message: string, until: string): void {
    this.#report(certificateNoted(this.#options.identity, reason, message, until));
  }

  stopped(): void {
    if (this.isCluster) this.#report(serverStopped(this.#options.identity));
  }
}

/** The certificate that clients see; `undefined` before the first one was read. */
class ShownCertificate {
  shown: TlsFiles | undefined;
  readonly #options: RunServerOptions;
  readonly #life: ServerLife;

  constructor(options: RunServerOptions, life: ServerLife) {
    this.#options = options;
    this.#life = life;
  }

  get validity(): ReturnType<typeof validityOf> {
    return this.shown === undefined ? undefined : validityOf(this.shown);
  }

  /** What is wrong with it; empty: nothing. */
  problems(): readonly string[] {
    const { validity } = this;
    const now = this.#options.clock.now();
    if (validity === undefined) return ["no certificate"];
    if (now < validity.from) return ["the certificate is not valid yet"];
    return now >= validity.until ? ["the certificate has ended"] : [];
  }

  replaced(fresh: TlsFiles, listener: { swap(tls: TlsFiles): void }): void {
    listener.swap(fresh);
    this.shown = fresh;
    const until = new Date(validityOf(fresh)?.until ?? 0).toISOString();
    if (this.#life.isCluster)
      this.#life.certificate("CertificateRotated", `another certificate is shown, good until ${until}`, until);
    else this.#options.log.info({ until }, "another certificate is shown from now on");
  }

  /** Reports once a day that it ends soon, until `signal` aborts. */
  async watchEnd(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    while (!signal.aborted) {
      const until = this.validity?.until;
      if (until !== undefined && until - clock.now() < expiringMs) {
        const end = new Date(until).toISOString();
        if (this.#life.isCluster)
          this.#life.certificate("CertExpiring", `the certificate ends at ${end}, and no other has come`, end);
        else log.warn({ end }, "the certificate ends soon");
      }
      await clock.sleep(dayMs, signal).catch(() => undefined);
    }
  }
}

/** The listeners for metrics and for liveness, where they are wanted. */
function listenBeside(
  options: RunServerOptions,
  { text, answer }: { readonly text: () => string; readonly answer: ConfigHandler },
  signal: AbortSignal,
): readonly Promise<void>[] {
  const { clock, log, metrics, plain, probes } = options;
  const limits = questionLimits;
  const listening: Promise<void>[] = [];
  if (metrics !== undefined) {
    const handle = metricsHandler({ kube: metrics.kube, clock, log, text });
    const listen = (until: AbortSignal) => metrics.listen({ ...metrics, limits }, handle, until);
    listening.push(keepListening(listen, "answering readers of metrics", options, signal));
  }
  if (plain !== undefined) {
    const listen = (until: AbortSignal) => plain.listen({ ...plain, limits }, answerPlain, until);
    listening.push(keepListening(listen, "answering whether it is alive", options, signal));
  }
  if (probes !== undefined) {
    const listen = (until: AbortSignal) =>
      probes.listen({ ...probes, limits: localQuestionLimits }, probesOf(answer), until);
    listening.push(keepListening(listen, "answering probes", options, signal));
  }
  return listening;
}

/** Probes are answered as on the port of machines; nothing else is. */
const probesOf =
  (answer: ConfigHandler): Parameters<ListenPlain>[1] =>
  async ({ method, target, headers }, _client, signal, from = "") => {
    if (target !== "/healthz" && target !== "/readyz") return { status: 404, headers: {}, body: "" };
    const given = await answer({ method, target, headers, from, client: undefined }, signal);
    given.onEnd?.("whole");
    return { status: given.status, headers: given.headers, body: wholeOf(given.body) };
  };

const wholeOf = (body: ConfigAnswer["body"] = []): Uint8Array<ArrayBuffer> =>
  Buffer.concat(body instanceof Uint8Array ? [body] : body);

const answerPlain: Parameters<ListenPlain>[1] = ({ method, target }) =>
  Promise.resolve({
    status: method !== "GET" && method !== "HEAD" ? 405 : target === "/healthz" ? 200 : 404,
    headers: { "content-type": "text/plain" },
    body: "",
  });

/** A readiness probe must not reveal which pools exist. */
function troubles(pools: ReadonlyMap<string, string>, all: number): readonly string[] {
  const reasons = new Map<string, number>();
  for (const reason of pools.values()) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  return [...reasons].map(([reason, count]) => `${reason}: ${count} of ${all} pools`);
}
