import { ControllerConfig } from "../api/controller-config.ts";
import { kubernetes } from "../api/kubernetes.ts";
import { MachineConfig } from "../api/machine-config.ts";
import { MachineConfigPool } from "../api/machine-config-pool.ts";
import { MachineConfiguration } from "../api/machine-configuration.ts";
import { namespace, objects } from "../api/names.ts";
import type { ClusterObjects } from "../core/plan-cluster.ts";
import { type Caches, type Controller, runControllers } from "../kube/controller.ts";
import type { EventRecorder } from "../kube/event-recorder.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { whileLeader } from "../kube/leader.ts";
import type { Ports } from "../ports/index.ts";
import type { Listen, TlsFiles } from "../ports/listener.ts";
import { admissionHandler } from "./admission-handler.ts";
import { drainController } from "./drain-controller.ts";
import { nodeController } from "./node-controller.ts";
import { renderController } from "./render-controller.ts";
import { templateController } from "./template-controller.ts";

export const controllerNames = ["template", "render", "node", "drain"] as const;
export type ControllerName = (typeof controllerNames)[number];

/** Lease that this process leads by; the name is the reference's. */
export const controllerLease = objects.controller;

/** Written into what is generated. Changes only when generated content does, so that a release neither holds rendering back nor re-renders. */
export const currentGeneratorVersion = "base-1";

export interface ControllerOptions extends Ports {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  /** Unique for each start of the process. */
  readonly identity: string;
  readonly version: string;
  readonly generatorVersion?: string;
  /** All of them when absent. */
  readonly controllers?: readonly ControllerName[];
  /** Where AdmissionReviews are answered; nowhere when absent. Every process answers, leading or not. */
  readonly admission?: { readonly listen: Listen; readonly host: string; readonly port: number; readonly network?: boolean; readonly tls: TlsFiles };
  readonly lease?: { readonly leaseSeconds?: number; readonly renewSeconds?: number; readonly retrySeconds?: number };
  readonly coalesceMs?: number;
}

/** What decides about the machines, as the controllers see it. */
function clusterIn(caches: Caches): ClusterObjects {
  return {
    pools: caches.of(MachineConfigPool).list(),
    machineConfigs: caches
      .of(MachineConfig)
      .list()
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined),
    machineConfiguration: caches.of(MachineConfiguration).get(objects.machineConfiguration),
    controllerConfig: caches.of(ControllerConfig).get(objects.controllerConfig),
    nodes: caches.of(kubernetes.Node).list(),
  };
}

/** The address may still be taken by the process that this one replaces. */
const listenAgainMs = 5000;

/** Runs the control plane until `signal` aborts or the lease is lost. */
export async function runController(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const { kube, clock, log, identity, version, admission } = options;
  const generatorVersion = options.generatorVersion ?? currentGeneratorVersion;
  const chosen = options.controllers ?? controllerNames;
  const make: Readonly<Record<ControllerName, () => Controller>> = {
    template: () => templateController({ version, generatorVersion }),
    render: () => renderController({ version, generatorVersion, baseConfigs: chosen.includes("template") ? "awaited" : "absent" }),
    node: nodeController,
    drain: drainController,
  };

  /** Those of this term; a process that does not lead reads nothing and answers without a plan. */
  let caches: Caches | undefined;
  // A plan needs what both of these watch.
  const isWatching = chosen.includes("render") && chosen.includes("node");

  async function answerReviews(listener: NonNullable<ControllerOptions["admission"]>): Promise<void> {
    while (!signal.aborted) {
      try {
        const { port } = await listener.listen(listener, admissionHandler({ log: log.child({ controller: "admission" }), facts: () => (caches === undefined ? undefined : clusterIn(caches)) }), signal);
        log.info({ host: listener.host, port }, "answering admission reviews");
        return;
      } catch (error) {
        log.warn({ error, host: listener.host, port: listener.port }, "cannot listen for admission reviews, trying again");
        await clock.sleep(listenAgainMs, signal).catch(() => undefined);
      }
    }
  }

  const answering = admission === undefined ? undefined : answerReviews(admission);
  await whileLeader({ kube, clock, log, name: controllerLease, namespace, identity, ...options.lease }, signal, async (term) => {
    const onSynced = (synced: Caches) => void (caches = isWatching ? synced : undefined);
    await runControllers(
      chosen.map((name) => make[name]()),
      { ...options, onSynced },
      term,
    );
    caches = undefined;
  });
  if (signal.aborted) await answering;
}
