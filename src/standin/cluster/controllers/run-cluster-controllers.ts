import { clusterNamespaces } from "../../apiserver/schema/shares.ts";
import type { Authority } from "../../../kube/certificates.ts";
import type { EventRecorder } from "../../../kube/event-recorder.ts";
import { type Controller, runControllers } from "../../../kube/controller.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";
import { isConflict, isNotFound } from "../../../kube/kube-error.ts";
import { done } from "../../../kube/outcome.ts";
import type { Ports } from "../../../ports/index.ts";
import { daemonSetController } from "./daemon-set-controller.ts";
import { deploymentController } from "./deployment-controller.ts";
import { disruptionBudgetController } from "./disruption-budget-controller.ts";
import { runGarbageCollector } from "./garbage-collector.ts";
import { namespaceDefaultsController } from "./namespace-defaults-controller.ts";
import { namespaceLifecycleController } from "./namespace-lifecycle-controller.ts";
import { jobController } from "./job-controller.ts";
import { nodeLifecycleController } from "./node-lifecycle-controller.ts";
import { endedPodsController } from "./ended-pods-controller.ts";
import { replicaSetController } from "./replica-set-controller.ts";
import { signingController } from "./signing-controller.ts";
import { scheduler } from "./scheduler.ts";

export interface ClusterControllersOptions extends Ports {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  /** PEM that every namespace gets as ConfigMap `kube-root-ca.crt`. */
  readonly rootCa: string;
  /** Signs certificates of kubelets; without it none are signed. */
  readonly authority?: Authority;
  /** A node that gives no sign of life for this long is unreachable. */
  readonly nodeMonitorGraceSeconds?: number;
  /** As many pods that have ended are kept in each namespace. */
  readonly endedPods?: number;
}

/** k8s.io/kubernetes pkg/controller/nodelifecycle (release-1.31) node-monitor-grace-period. */
const defaultGraceSeconds = 40;
/** Of a namespace, on one machine: Kubernetes keeps 12,500 of all. */
const defaultEndedPods = 500;
/** Events within this time are combined into one pass: a chain of four controllers must not take a second. */
const coalesceMs = 10;
/** After a conflict the cache is about to change; this long at most it is waited for. */
const conflictRetrySeconds = 0.1;

/**
 * Does the work of kube-controller-manager and kube-scheduler, as far as a cluster of one machine needs it. Runs until
 * `signal` aborts.
 */
export async function runClusterControllers(options: ClusterControllersOptions, signal: AbortSignal): Promise<void> {
  const controllers = [
    scheduler(),
    deploymentController(),
    replicaSetController(),
    daemonSetController(),
    jobController(),
    namespaceDefaultsController(options.rootCa),
    disruptionBudgetController(),
    namespaceLifecycleController(),
    nodeLifecycleController(options.nodeMonitorGraceSeconds ?? defaultGraceSeconds),
    endedPodsController(options.endedPods ?? defaultEndedPods),
    signingController(options.authority),
  ];
  const partial = new Set(
    controllers.flatMap(({ watches }) =>
      watches.filter(({ selection }) => selection !== undefined).map(({ resource }) => resource.plural),
    ),
  );
  let collector: Promise<void> | undefined;
  await runControllers(
    controllers.map(patient),
    {
      ...options,
      coalesceMs,
      preferredNamespaces: clusterNamespaces,
      onSynced(caches) {
        collector = runGarbageCollector(
          {
            ...options,
            log: options.log.child({ controller: "garbage-collector" }),
            coalesceMs,
            shared: caches.all().filter(({ resource }) => !partial.has(resource.plural)),
          },
          signal,
        );
      },
    },
    signal,
  );
  await collector;
}

/**
 * The controller. It runs passes only once every cache has its first list, and treats a conflict as a pending watch
 * event.
 */
function patient(controller: Controller): Controller {
  return {
    ...controller,
    async reconcile(key, context) {
      await Promise.all(context.caches.all().map((cache) => cache.synced));
      try {
        return await controller.reconcile(key, context);
      } catch (error) {
        if (isConflict(error) || isNotFound(error)) return done(conflictRetrySeconds);
        throw error;
      }
    },
  };
}
