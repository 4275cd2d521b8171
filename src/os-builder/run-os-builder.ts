import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, namespace, objects } from "../api/names.ts";
import { type MetricFamily, metricsText } from "../core/metrics/metrics.ts";
import { readRetries } from "../core/build/build-retry.ts";
import { SectionMeter, journalFamilies } from "../core/metrics/section-meter.ts";
import { type Caches, type Controller, runControllers } from "../kube/controller.ts";
import type { EventRecorder } from "../kube/event-recorder.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { whileLeader } from "../kube/leader.ts";
import { meteredJournal } from "../kube/metered-journal.ts";
import { createReport } from "../kube/report.ts";
import { metricsHandler } from "../kube/metrics-handler.ts";
import { questionLimits } from "../kube/question-limits.ts";
import type { Ports } from "../ports/index.ts";
import { keepListening } from "../ports/keep-listening.ts";
import type { Listen, ListenPlain, ServerHandler, TlsFiles } from "../ports/listener.ts";
import type { Logger } from "../ports/logger.ts";
import type { BuildBackend } from "./backend.ts";
import { buildController } from "./build-controller.ts";
import { poolOfBuild } from "./cluster-facts.ts";
import { type OpenImages, withDeadlines } from "./images.ts";
import { optInController } from "./opt-in-controller.ts";
import { pruneController } from "./prune-controller.ts";
import { hasEnded, stateOfBuild } from "../core/config/build-phase.ts";
import { defined } from "../api/schema/defined.ts";
import { builderStarted, builderStopped } from "./reports.ts";

export interface OsBuilderOptions extends Ports {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  /** Unique for each start of the process. */
  readonly identity: string;
  readonly version: string;
  /** The backends, cheaper ones first. They are created per term and live as long as this process leads. */
  readonly backends: (kube: KubeClient, term: AbortSignal) => readonly BuildBackend[];
  readonly images: OpenImages;
  /** Address of the readiness endpoint, open to every client; absent: none. */
  readonly status?: {
    readonly listen: ListenPlain;
    readonly host: string;
    readonly port: number;
    readonly network?: boolean;
  };
  /** Where metrics are served; nowhere when absent. */
  readonly metrics?: {
    readonly listen: Listen;
    readonly host: string;
    readonly port: number;
    readonly network?: boolean;
    readonly tls: TlsFiles;
  };
  readonly lease?: { readonly leaseSeconds?: number; readonly renewSeconds?: number; readonly retrySeconds?: number };
  readonly coalesceMs?: number;
  readonly stillMs?: number;
}

/**
 * Figures about builds, as objects say. Names are the reference's where it has one (pkg/controller/build/metrics,
 * main).
 */
export function buildFamilies(
  builds: readonly MachineOSBuild[],
  configs: readonly MachineOSConfig[],
): readonly MetricFamily[] {
  const seconds = (time: string | undefined) => (time === undefined ? undefined : Date.parse(time) / 1000);
  const of = (build: MachineOSBuild) => ({ pool: poolOfBuild(build), build: build.metadata.name });
  const timed = (name: string, help: string, value: (build: MachineOSBuild) => number | undefined): MetricFamily => ({
    name,
    help,
    type: "gauge",
    labels: ["pool", "build"],
    samples: builds.flatMap((build) => {
      const found = value(build);
      return found === undefined || Number.isNaN(found) ? [] : [{ labels: of(build), value: found }];
    }),
  });
  const running = builds.filter((build) => !hasEnded(stateOfBuild(build)));
  return [
    {
      name: "mco_mosc_count",
      help: "MachineOSConfigs that there are.",
      type: "gauge",
      labels: [],
      samples: [{ labels: {}, value: configs.length }],
    },
    {
      name: "ocl_active_builds",
      help: "Builds that have not ended.",
      type: "gauge",
      labels: [],
      samples: [{ labels: {}, value: running.length }],
    },
    {
      name: "ocl_build_state",
      help: "Where each build is: 1 for the state that it is in.",
      type: "gauge",
      labels: ["pool", "build", "state", "strategy"],
      samples: builds.map((build) => ({
        labels: {
          ...of(build),
          state: stateOfBuild(build).phase,
          strategy: build.metadata.annotations?.[annotations.buildStrategy] ?? "",
        },
        value: 1,
      })),
    },
    timed("ocl_build_start_timestamp_seconds", "When a build began to run, in seconds since the epoch.", ({ status }) =>
      seconds(status?.buildStart),
    ),
    timed("ocl_build_end_timestamp_seconds", "When a build ended, in seconds since the epoch.", ({ status }) =>
      seconds(status?.buildEnd),
    ),
    timed("ocl_build_duration_seconds", "How long a build took.", ({ status }) =>
      status?.buildEnd === undefined ? undefined : (seconds(status.buildEnd) ?? 0) - (seconds(status.buildStart) ?? 0),
    ),
    timed("ocl_build_retries_total", "Attempts of a build beyond the first.", ({ metadata }) =>
      Math.max(0, readRetries(metadata.annotations?.[annotations.buildAttempt]).retries - 1),
    ),
  ];
}

/** The answers to probes and metrics requests. */
interface Progress {
  /** Of the present term, once everything was read. */
  caches: Caches | undefined;
  /** This process holds the lease. */
  leads: boolean;
}

/** Runs the os-builder until `signal` aborts: its children only while this process holds the lease. */
export async function runOsBuilder(options: OsBuilderOptions, signal: AbortSignal): Promise<void> {
  const { kube, clock, random, log, identity, version } = options;
  const sections = new SectionMeter();
  const journal = meteredJournal(options.journal, sections, clock);
  const progress: Progress = { caches: undefined, leads: false };
  // The lines of the process itself go past the meter of sections.
  const report = createReport({ journal: options.journal, log });
  report(builderStarted(identity, version));
  const text = () =>
    metricsText([
      ...sections.families(),
      ...journalFamilies("os-builder", journal.counts?.dropped ?? 0),
      ...(progress.caches === undefined
        ? []
        : buildFamilies(progress.caches.of(MachineOSBuild).list(), progress.caches.of(MachineOSConfig).list())),
    ]);
  const shows = showAll(options, text, progress, signal);
  await whileLeader(
    { kube, clock, random, log, name: objects.osBuilder, namespace, identity, ...options.lease },
    signal,
    (term) => runTerm({ ...options, journal }, progress, term),
  );
  report(builderStopped(identity));
  await Promise.all(shows);
}

/** Listens for requests for metrics and readiness, if configured. */
function showAll(
  options: OsBuilderOptions,
  text: () => string,
  progress: Progress,
  signal: AbortSignal,
): readonly Promise<void>[] {
  const { kube, clock, log, metrics, status } = options;
  const limits = questionLimits;
  const shows: Promise<void>[] = [];
  if (metrics !== undefined) {
    const handler = metricsHandler({ kube, clock, log, text });
    const listen = (listening: AbortSignal) => metrics.listen({ ...metrics, limits }, handler, listening);
    shows.push(keepListening(listen, "answering readers of metrics", options, signal));
  }
  if (status !== undefined) {
    // It is ready once it has read everything; one that waits for the lease is as good as it can be.
    const handler = readiness(() => progress.caches !== undefined || !progress.leads);
    const listen = (listening: AbortSignal) => status.listen({ ...status, limits }, handler, listening);
    shows.push(keepListening(listen, "answering whether it is ready", options, signal));
  }
  return shows;
}

export const osBuilderControllers = (
  backends: readonly BuildBackend[],
  images: OpenImages,
  stillMs?: number,
): readonly Controller[] => [
  optInController(),
  buildController({ backends, images, ...defined({ stillMs }) }),
  pruneController({ backends, images }),
];

/** Runs the children while this process holds the lease. Nothing that a term began is sent after it. */
async function runTerm(options: OsBuilderOptions, progress: Progress, term: AbortSignal): Promise<void> {
  progress.leads = true;
  const { log, stillMs } = options;
  const images = withDeadlines(options.images, options.clock, term);
  const kube = options.kube.within(term);
  const backends = options.backends(kube, term);
  const onSynced = (caches: Caches) => {
    progress.caches = caches;
    for (const backend of backends)
      void sweep(backend, caches, log, term).catch((error: unknown) =>
        log.warn({ error, backend: backend.kind }, "the search for unknown runs failed"),
      );
  };
  await runControllers(osBuilderControllers(backends, images, stillMs), { ...options, kube, onSynced }, term);
  progress.caches = undefined;
  progress.leads = false;
}

/** Ends runs whose build was deleted: nothing else would ever read their results. */
async function sweep(backend: BuildBackend, known: Caches, log: Logger, term: AbortSignal): Promise<void> {
  for (const run of await backend.list(term)) {
    if (known.of(MachineOSBuild).get(run.build) !== undefined) continue;
    await backend.cancel(run, "its MachineOSBuild is gone", term);
    await backend.cleanup(run, { keepForInspection: false }, term);
    log.info({ run: run.id }, "run without a build ended");
  }
}

/** `/readyz`: 200 once it is ready. */
const readiness =
  (isReady: () => boolean): ServerHandler =>
  async ({ method, target }) => {
    const is = (status: number, body: string) => ({
      status,
      headers: { "content-type": "text/plain" },
      body: `${body}\n`,
    });
    if (method !== "GET" || target.split("?", 1)[0] !== "/readyz") return Promise.resolve(is(404, "not found"));
    return Promise.resolve(isReady() ? is(200, "ok") : is(503, "reading the cluster"));
  };
