import { definedResources } from "../api/index.ts";
import { type ApiGate, allApiGates, apiGatesOf, defaultApiGates } from "../api/feature-sets.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { configGroup, fieldManagers, namespace, objects, operatorGroup } from "../api/names.ts";
import { runControllers } from "../kube/controller.ts";
import type { EventRecorder } from "../kube/event-recorder.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { isForbidden } from "../kube/kube-error.ts";
import { whileLeader } from "../kube/leader.ts";
import { createReport } from "../kube/report.ts";
import { rightsAwaitedMs } from "../kube/watch-cache.ts";
import type { Ports } from "../ports/index.ts";
import { operatorController } from "./operator-controller.ts";
import type { OperatorOptions } from "./operator-options.ts";
import { operatorStarted, operatorStopped } from "./reports.ts";

export interface RunOperatorOptions extends Ports, OperatorOptions {
  readonly kube: KubeClient;
  readonly events: EventRecorder;
  /** Unique per process. */
  readonly identity: string;
}

/** Runs the operator while it holds the lease, until `signal` aborts. */
export async function runOperator(options: RunOperatorOptions, signal: AbortSignal): Promise<void> {
  await whileLeader({ ...options, name: "machine-config", namespace }, signal, async (term) => {
    // The kinds must be there before anything can watch them.
    await installKinds(options, term);
    // Nothing that a term began is sent after it.
    const report = createReport({ journal: options.journal, log: options.log });
    report(operatorStarted(options.identity, options.version));
    await runControllers(
      [operatorController(options)],
      { ...options, kube: options.kube.within(term), coalesceMs: 100 },
      term,
    );
    report(operatorStopped(options.identity));
  });
}

async function installKinds(options: RunOperatorOptions, signal: AbortSignal): Promise<void> {
  const { kube, clock, log } = options;
  // Known before the first kind is written: what a definition lacks is lost in objects, too.
  let gates: ReadonlySet<ApiGate> | undefined;
  const rightsUntil = clock.monotonic() + rightsAwaitedMs;
  for (const resource of definedResources) {
    for (;;) {
      if (signal.aborted) return;
      try {
        gates ??= await gatesAtStart(options, rightsUntil, signal);
        const crd = resource.crd(gates);
        const foreign = resource.group === operatorGroup || resource.group === configGroup;
        const existing = foreign
          ? await kube.get(kubernetes.CustomResourceDefinition, crd.metadata, { signal })
          : undefined;
        if (existing === undefined)
          await kube.apply(kubernetes.CustomResourceDefinition, crd, { owner: fieldManagers.operator, signal });
        break;
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ error, kind: resource.kind }, "kind not installed, trying again");
        await clock.sleep(1000, signal).catch(() => undefined);
      }
    }
  }
}

/**
 * The features that the cluster chose. Where the operator has the rights of an earlier release, it may not read them: it goes
 * on with all of them, so that nothing is lost, and its first pass reports the right.
 *
 * @param rightsUntil when the rights must be in force (monotonic).
 */
async function gatesAtStart(
  { kube, clock, log }: RunOperatorOptions,
  rightsUntil: number,
  signal: AbortSignal,
): Promise<ReadonlySet<ApiGate>> {
  try {
    return apiGatesOf(await kube.get(openshift.FeatureGate, { name: objects.clusterSingleton }, { signal }));
  } catch (error) {
    if (!isForbidden(error)) throw error;
    // Without the right, a cluster that lacks the kind gives the same answer.
    const { plural, group } = openshift.FeatureGate;
    const only = { fieldSelector: `metadata.name=${plural}.${group}` };
    const { items } = await kube.list(kubernetes.CustomResourceDefinition, only, { signal });
    if (items.length === 0) return defaultApiGates;
    if (clock.monotonic() < rightsUntil) throw error;
    log.warn({ error }, "the features of the cluster may not be read: definitions have the fields of all features");
    return allApiGates;
  }
}
