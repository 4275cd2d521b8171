import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations, namespace, objects } from "../api/names.ts";
import { etcdPods, factsOf } from "../core/pool/pool-queries.ts";
import {
  type MetricFacts,
  type MetricFamily,
  type Sample,
  clusterMetrics,
  metricsText,
} from "../core/metrics/metrics.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import { DecisionMeter } from "../core/metrics/decision-meter.ts";
import { RolloutMeter } from "../core/metrics/rollout-meter.ts";
import { SectionMeter, journalFamilies } from "../core/metrics/section-meter.ts";
import { ServiceMeter, unavailableCause } from "../core/metrics/service-meter.ts";
import { type Caches, type Controller, type RunOptions, runControllers } from "../kube/controller.ts";
import type { EventRecorder } from "../kube/event-recorder.ts";
import type { KubeClient, Selection } from "../kube/kube-client.ts";
import { whileLeader } from "../kube/leader.ts";
import { type Report, createReport } from "../kube/report.ts";
import { meteredJournal } from "../kube/metered-journal.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ports } from "../ports/index.ts";
import type { ServerHandler } from "../ports/listener.ts";
import type { AdmissionReports, RunAdmission } from "./admission-endpoint.ts";
import { bootImageController } from "./boot-image-controller.ts";
import { collectController } from "./collect-controller.ts";
import { parseDrainRequest } from "../core/machine/drain-requests.ts";
import { drainController } from "./drain-controller.ts";
import { joinController } from "./join-controller.ts";
import { metricsHandler } from "../kube/metrics-handler.ts";
import { daemonPods, nodeController, operatorPods } from "./node-controller.ts";
import { reportingFailures } from "./report-failing.ts";
import { credentialsController } from "./settings/credentials-controller.ts";
import { refusalController } from "./refusal-controller.ts";
import { registriesController } from "./settings/registries-controller.ts";
import { renderController } from "./render-controller.ts";
import { templateController } from "./template-controller.ts";
import { bindingController, placeController } from "./binding-controller.ts";
import { tokenController } from "./token-controller.ts";
import { kubeletController } from "./settings/kubelet-controller.ts";
import { kubeletDefaultsController } from "./settings/kubelet-defaults-controller.ts";
import { runtimeController } from "./settings/runtime-controller.ts";
import { type OpenStreamImages, osImageStreamController } from "./os-image-stream-controller.ts";
import { pinnedImageSlotsController } from "./pinned-image-slots-controller.ts";
import { pinnedImagesController } from "./pinned-images-controller.ts";
import { childFailed, childRecovered, controllerStarted, leadLost, leadTaken } from "./reports.ts";

export const controllerNames = [
  "template",
  "render",
  "node",
  "drain",
  "collect",
  "join",
  "binding",
  "token",
  "place",
  "refusals",
  "kubelet",
  "kubelet-defaults",
  "runtime",
  "registries",
  "credentials",
  "pinned-images",
  "pinned-image-slots",
  "os-image-streams",
  "boot-images",
] as const;
export type ControllerName = (typeof controllerNames)[number];

/** Lease that this process leads by; the name is the reference's. */
export const controllerLease = objects.controller;

/**
 * Written into generated objects. It changes only when generated content does, so that a release neither holds
 * rendering back nor re-renders.
 */
export const currentGeneratorVersion = "base-2";

export interface ControllerOptions extends Ports {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  /** Unique for each start of the process. */
  readonly identity: string;
  readonly version: string;
  readonly generatorVersion?: string;
  /** All of them when absent. */
  readonly controllers?: readonly ControllerName[];
  /** Answers AdmissionReviews and serves metrics; absent: nothing does. Every process answers, leading or not. */
  readonly admission?: RunAdmission;
  /** Reads images of registries; absent: the streams of OS images are not read. */
  readonly images?: OpenStreamImages;
  /** Of this machine, which is of the control plane, as Kubernetes calls it. */
  readonly architecture?: string;
  readonly lease?: { readonly leaseSeconds?: number; readonly renewSeconds?: number; readonly retrySeconds?: number };
  readonly coalesceMs?: number;
}

/** The sources of all metrics, as in the controllers' caches. */
function metricFacts(caches: Caches, now: number): MetricFacts {
  const pods = (...selections: readonly Selection[]) =>
    selections.flatMap((selection) => caches.of(kubernetes.Pod, selection).list());
  const machineConfigNodes = caches.of(MachineConfigNode).list();
  const objects_ = {
    pools: caches.of(MachineConfigPool).list(),
    nodes: caches.of(kubernetes.Node).list(),
    machineConfigNodes,
    machineConfigs: caches.of(MachineConfig).list(),
    machineConfiguration: caches.of(MachineConfiguration).get(objects.machineConfiguration),
    machineOSConfigs: caches.of(MachineOSConfig).list(),
    machineOSBuilds: caches.of(MachineOSBuild).list(),
    daemonPods: pods(daemonPods),
    etcdPods: pods(...etcdPods),
    controllerConfig: caches.of(ControllerConfig).get(objects.controllerConfig),
    operatorPods: pods(operatorPods),
  };
  return {
    facts: factsOf(objects_, now),
    machineConfigNodes,
    machineConfiguration: objects_.machineConfiguration,
  };
}

interface Meters {
  readonly decisions: DecisionMeter;
  readonly rollouts: RolloutMeter;
  readonly service: ServiceMeter;
  readonly sections: SectionMeter;
}

/** Reports the state of pools and machines to meters from now on. */
function follow(caches: Caches, { rollouts: meter, service, sections }: Meters, clock: Clock): void {
  const pools = caches.of(MachineConfigPool);
  for (const pool of pools.list()) meter.putPool(pool.metadata.name, pool);
  pools.onChange(({ key, after }) => meter.putPool(key, after));
  const nodes = caches.of(kubernetes.Node);
  const serves = (name: string, node: Node | undefined) => {
    const membership = node === undefined ? undefined : poolOfNode(node, pools.list());
    service.putNode(name, node, membership?.verdict === "member" ? membership.pool : "", clock.now());
  };
  for (const node of nodes.list()) if (unavailableCause(node) !== undefined) serves(node.metadata.name, node);
  nodes.onChange(({ key, before, after }) => {
    if (
      after === undefined ||
      (before === undefined ? undefined : unavailableCause(before)) !== unavailableCause(after)
    )
      serves(key, after);
    const [had, has] = [before, after].map((node) => node?.metadata.annotations?.[annotations.desiredDrain] ?? "");
    const request = parseDrainRequest(has);
    // The daemon requests it, and the drain controller does it.
    if (
      has !== undefined &&
      has !== had &&
      request?.verb === "uncordon" &&
      after?.metadata.annotations?.[annotations.lastAppliedDrain] !== has
    )
      sections.began(
        { book: `node/${key}`, chapter: "Update", path: "Complete/Uncordoned", run: request.config },
        clock.monotonic(),
      );
  });
  nodes.onChange(({ before, after }) => {
    const [was, is] = [before, after].map((node) => node?.metadata.annotations?.[annotations.desiredConfig] ?? "");
    if (after === undefined || was === undefined || is === undefined || was === "" || is === "" || was === is) return;
    const membership = poolOfNode(after, pools.list());
    if (membership.verdict === "member") meter.retargeted(membership.pool, was, is);
  });
}

/** Counts the actions of this process's controllers since it started. */
export function reconcileMeter(now: () => number): {
  readonly count: NonNullable<RunOptions["onReconcile"]>;
  families(): readonly MetricFamily[];
} {
  const ended = new Map<string, { readonly labels: Sample["labels"]; value: number }>();
  const last = new Map<string, Sample>();
  const taken = new Map<string, { count: number; seconds: number }>();
  return {
    count({ controller, outcome, seconds }) {
      const id = `${controller}/${outcome}`;
      const one = ended.get(id) ?? { labels: { subcontroller: controller, outcome }, value: 0 };
      one.value += 1;
      ended.set(id, one);
      last.set(id, { labels: { subcontroller: controller, state: outcome }, value: Math.floor(now() / 1000) });
      const all = taken.get(controller) ?? { count: 0, seconds: 0 };
      taken.set(controller, { count: all.count + 1, seconds: all.seconds + seconds });
    },
    families: () => [
      {
        name: "mcc_reconcile_total",
        help: "Looks at one object, by how they ended.",
        type: "counter",
        labels: ["subcontroller", "outcome"],
        samples: [...ended.values()],
      },
      {
        name: "mcc_sub_controller_state",
        help: "When a controller's look at an object last ended so, in seconds since the epoch.",
        type: "gauge",
        labels: ["subcontroller", "state"],
        samples: [...last.values()],
      },
      {
        name: "mcc_reconcile_seconds",
        help: "How long these looks took.",
        type: "summary",
        labels: ["subcontroller"],
        samples: [...taken].flatMap(([subcontroller, { count, seconds }]) => [
          { suffix: "_count", labels: { subcontroller }, value: count },
          { suffix: "_sum", labels: { subcontroller }, value: seconds },
        ]),
      },
    ],
  };
}

/** What the process reports about itself, leading or not. */
export const sectionFamilies = ({ sections }: Pick<Meters, "sections">, dropped: number): readonly MetricFamily[] => [
  ...sections.families(),
  ...sections.mismatchFamilies(),
  ...journalFamilies("controller", dropped),
];

export function controllersOf(
  chosen: readonly ControllerName[],
  options: Pick<ControllerOptions, "version" | "generatorVersion" | "images" | "architecture">,
  { decisions }: Pick<Meters, "decisions"> = { decisions: new DecisionMeter() },
): readonly Controller[] {
  const { version, generatorVersion = currentGeneratorVersion } = options;
  const make: Readonly<Record<ControllerName, () => Controller>> = {
    template: () => templateController({ version, generatorVersion }),
    render: () =>
      renderController({
        version,
        generatorVersion,
        baseConfigs: chosen.includes("template") ? "awaited" : "absent",
        settings: chosen.includes("kubelet") && chosen.includes("runtime") ? "awaited" : "absent",
        registries: chosen.includes("registries") ? "awaited" : "absent",
      }),
    node: nodeController,
    drain: drainController,
    collect: collectController,
    join: () => joinController(decisions),
    binding: bindingController,
    token: tokenController,
    place: placeController,
    refusals: refusalController,
    kubelet: () => kubeletController({ generatorVersion }),
    "kubelet-defaults": () => kubeletDefaultsController({ generatorVersion }),
    runtime: () => runtimeController({ generatorVersion }),
    registries: () => registriesController({ generatorVersion }),
    credentials: () => credentialsController({ generatorVersion }),
    "pinned-images": pinnedImagesController,
    "pinned-image-slots": pinnedImageSlotsController,
    "os-image-streams": () => osImageStreamController(options.images),
    "boot-images": () => bootImageController({ architecture: options.architecture }),
  };
  return chosen.map((name) => make[name]());
}

/** The memory of a process while it leads. */
interface Term {
  /** The controllers' caches, if they hold what metrics need. */
  caches: Caches | undefined;
}

/** Counts of this process, leading or not. */
interface Counts extends Meters {
  readonly looks: ReturnType<typeof reconcileMeter>;
}

function metricsOf(
  term: Readonly<Term>,
  counts: Counts,
  { kube, clock, log, journal }: Ports & Pick<ControllerOptions, "kube">,
): ServerHandler {
  return metricsHandler({
    kube,
    clock,
    log: log.child({ controller: "metrics" }),
    // A process that does not lead has no view of pools, and reports none.
    text: () =>
      metricsText([
        ...counts.looks.families(),
        ...counts.decisions.families(),
        ...sectionFamilies(counts, journal.counts?.dropped ?? 0),
        ...(term.caches === undefined
          ? []
          : [
              ...clusterMetrics(metricFacts(term.caches, clock.now())),
              ...counts.rollouts.families(clock.now()),
              ...counts.service.families(clock.now()),
            ]),
      ]),
  });
}

/** Reports in the book of the cluster that the endpoint's threads end, and that they run again. */
function admissionReports(report: Report, identity: string): AdmissionReports {
  const child = { identity, name: "admission" };
  const memory = { isFailing: false };
  return {
    ended: (message) => {
      report(childFailed(child, message, !memory.isFailing));
      memory.isFailing = true;
    },
    ready: () => {
      if (memory.isFailing) report(childRecovered(child, "the planner of changes runs again"));
      memory.isFailing = false;
    },
  };
}

/** Runs the control plane until `signal` aborts; the controllers only while it holds the lease. */
export async function runController(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const { kube, clock, random, log, identity, version, admission } = options;
  const chosen = options.controllers ?? controllerNames;
  const term: Term = { caches: undefined };
  const counts: Counts = {
    looks: reconcileMeter(() => clock.now()),
    rollouts: new RolloutMeter(),
    service: new ServiceMeter(),
    decisions: new DecisionMeter(),
    sections: new SectionMeter(),
  };
  const journal = meteredJournal(options.journal, counts.sections, clock);
  // The lines of the process itself go past the meter of sections.
  const report = createReport({ journal: options.journal, log });
  report(controllerStarted(identity, version));
  const metrics = metricsOf(term, counts, { ...options, journal });
  const answering = admission?.(metrics, admissionReports(report, identity), options, signal);
  await whileLeader(
    { kube, clock, random, log, name: controllerLease, namespace, identity, ...options.lease },
    signal,
    async (until) => {
      report(leadTaken(identity));
      until.addEventListener("abort", () => report(leadLost(identity)), { once: true });
      const onSynced = (synced: Caches) => {
        // The metrics need what both of these watch.
        term.caches = chosen.includes("render") && chosen.includes("node") ? synced : undefined;
        if (term.caches !== undefined) follow(term.caches, counts, clock);
      };
      // Nothing from a previous term is sent after it.
      const within = { ...options, journal, kube: kube.within(until), onSynced, onReconcile: counts.looks.count };
      const reporting = controllersOf(chosen, options, counts).map((one) => reportingFailures(one, report, identity));
      await runControllers(reporting, within, until);
      term.caches = undefined;
      counts.service.forget();
    },
  );
  await answering;
}
