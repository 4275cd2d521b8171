import { leastOf } from "../../../api/schema/extremes.ts";
import {
  type ControllerRevision,
  type DaemonSet,
  type Node,
  type Pod,
  kubernetes,
} from "../../../api/foreign/kubernetes.ts";
import { conditionOf, controlledBy, keyOf } from "../../../api/schema/object.ts";
import { workloads } from "../../../api/names.ts";
import { type Caches, type Context, type Controller, watching } from "../../../kube/controller.ts";
import { isAlreadyExists } from "../../../kube/kube-error.ts";
import { type Outcome, done } from "../../../kube/outcome.ts";
import type { ObjectChange } from "../../../kube/watch-cache.ts";
import { claim } from "./claim.ts";
import { Expectations } from "./expectations.ts";
import { createPods, deletePods, isTerminatingNamespace } from "./make-pods.ts";
import { sameJson } from "./merge-difference.ts";
import { daemonPodSpec, nodeOfDaemon, planDaemonSet } from "./plan-daemon-set.ts";
import { plainTemplate } from "./plain-template.ts";
import { podOfTemplate } from "./pod-of-template.ts";
import { availableInMs, controllerOf, ownedIndexes, podIndexes } from "./pod-state.ts";
import { selects } from "./selects.ts";
import { nameByHash, templateHash } from "./template-hash.ts";
import { writeStatus } from "./write-status.ts";

const burst = 250;
const defaultHistory = 10;
/** First wait before a node's pod that ended on its own is created again; doubles up to the last. */
const firstBackoffMs = 1_000;
const lastBackoffMs = 900_000;

/** Keeps one pod of a DaemonSet on every node that it is for. */
export function daemonSetController(): Controller {
  const expectations = new Expectations();
  const backoffs = new Map<string, { readonly waitMs: number; readonly until: number }>();

  function concernsOfPod(change: ObjectChange<Pod>, caches: Caches): readonly string[] {
    expectations.observe(change);
    const keys = new Set<string>();
    for (const pod of [change.before, change.after]) {
      if (pod === undefined) continue;
      const owner = controllerOf(pod);
      const namespace = pod.metadata.namespace ?? "";
      if (owner?.kind === "DaemonSet") keys.add(`${namespace}/${owner.name}`);
      if (owner === undefined && pod.metadata.deletionTimestamp === undefined) {
        for (const set of caches.of(kubernetes.DaemonSet).byIndex("namespace", namespace))
          if (selects(set.spec?.selector, pod.metadata.labels)) keys.add(keyOf(set));
      }
    }
    return [...keys];
  }

  function concernsOfNode({ before, after }: ObjectChange<Node>, caches: Caches): readonly string[] {
    const matters = (node: Node | undefined) =>
      node === undefined
        ? undefined
        : {
            labels: node.metadata.labels,
            taints: node.spec?.taints,
            unschedulable: node.spec?.unschedulable,
            ready: conditionOf(node.status?.conditions, "Ready")?.status,
          };
    return sameJson(matters(before), matters(after)) ? [] : caches.of(kubernetes.DaemonSet).list().map(keyOf);
  }

  return {
    name: "daemon-set",
    watches: [
      watching<DaemonSet>({ resource: kubernetes.DaemonSet, indexes: ownedIndexes }),
      watching<Pod>({ resource: kubernetes.Pod, indexes: podIndexes, concerns: concernsOfPod }),
      watching<Node>({ resource: kubernetes.Node, concerns: concernsOfNode }),
      watching<ControllerRevision>({
        resource: kubernetes.ControllerRevision,
        indexes: ownedIndexes,
        concerns: () => [],
      }),
    ],
    owns: ["DaemonSet.status", "ControllerRevision"],
    workers: 4,

    async reconcile(key, context): Promise<Outcome> {
      const { caches, kube, signal, clock, events } = context;
      const set = caches.of(kubernetes.DaemonSet).get(key);
      if (set === undefined) return done();
      const uid = set.metadata.uid ?? "";
      const pods = await claim(
        { owner: set, ownerResource: kubernetes.DaemonSet, resource: kubernetes.Pod, selector: set.spec?.selector },
        context,
      );
      const deleting = set.metadata.deletionTimestamp !== undefined;
      const hash = deleting ? "" : await currentRevision(set, pods, context);
      if (hash === undefined) return done(0.1);
      const now = clock.now();
      const plan = planDaemonSet(set, hash, caches.of(kubernetes.Node).list(), pods, now);
      const pendingMs = expectations.pendingMs(uid, now);
      let failure: unknown;
      const waits: number[] = [];
      if (!deleting && pendingMs === undefined) {
        const failed = plan.failed.filter((pod) => {
          const node = nodeOfDaemon(pod) ?? "";
          const wait = backoff(`${uid}/${node}`, now);
          if (wait > 0) waits.push(wait);
          else
            events.event(set, {
              type: "Warning",
              reason: "FailedDaemonPod",
              message: `Found failed daemon pod ${pod.metadata.namespace}/${pod.metadata.name} on node ${node}, will try to kill it`,
            });
          return wait === 0;
        });
        failure = await deletePods([...plan.remove, ...failed].slice(0, burst), set, expectations, context);
        const labels = {
          [workloads.controllerRevisionHash]: hash,
          [workloads.podTemplateGeneration]:
            set.metadata.annotations?.[workloads.daemonSetTemplateGeneration] ?? String(set.metadata.generation ?? 1),
        };
        const made = plan.create.slice(0, burst).map((node) =>
          podOfTemplate(set.spec?.template, set, kubernetes.DaemonSet, {
            name: nameByHash(`${set.metadata.name}-`, context.random),
            labels,
            spec: daemonPodSpec(set.spec?.template?.spec, node),
          }),
        );
        failure = (await createPods(made, set, expectations, context)) ?? failure;
      }
      if (pendingMs !== undefined) waits.push(pendingMs);
      for (const pod of pods) {
        const wait = availableInMs(pod, set.spec?.minReadySeconds ?? 0, now);
        if (wait !== undefined && wait > 0) waits.push(wait);
      }
      await writeStatus(
        kube,
        kubernetes.DaemonSet,
        set,
        { ...set.status, ...plan.metrics, observedGeneration: set.metadata.generation ?? 0 },
        signal,
      );
      if (failure !== undefined && !isTerminatingNamespace(failure)) throw failure;
      return waits.length === 0 ? done() : done(leastOf(waits) / 1000);
    },
  };

  /** Milliseconds to wait before a failed pod is replaced; 0: do it now, and wait longer the next time. */
  function backoff(place: string, now: number): number {
    const before = backoffs.get(place);
    if (before !== undefined && now < before.until) return before.until - now;
    const forgotten = before === undefined || now > before.until + 2 * lastBackoffMs;
    const waitMs = forgotten ? firstBackoffMs : Math.min(lastBackoffMs, before.waitMs * 2);
    backoffs.set(place, { waitMs, until: now + waitMs });
    if (backoffs.size > 1000)
      for (const [key, { until }] of backoffs) if (until + 2 * lastBackoffMs < now) backoffs.delete(key);
    return 0;
  }
}

/**
 * Keeps the history of templates. @returns the hash of the current one, or `undefined` when its name is taken by
 * another.
 */
async function currentRevision(
  set: DaemonSet,
  pods: readonly Pod[],
  { caches, kube, signal }: Context,
): Promise<string | undefined> {
  const template = plainTemplate(set.spec?.template);
  const data = { spec: { template: { ...template, $patch: "replace" } } };
  const history = [...caches.of(kubernetes.ControllerRevision).byIndex("controller", set.metadata.uid ?? "")].sort(
    (a, b) => a.revision - b.revision,
  );
  const newest = history.at(-1)?.revision ?? 0;
  const known = history.find((revision) => sameJson(revision.data, data));
  const collisions = set.status?.collisionCount ?? 0;
  const hash = known?.metadata.labels?.[workloads.controllerRevisionHash] ?? templateHash(template, collisions);
  if (known === undefined) {
    const name = `${set.metadata.name}-${hash}`;
    const namespace = set.metadata.namespace ?? "";
    const revision: ControllerRevision = {
      apiVersion: "apps/v1",
      kind: "ControllerRevision",
      metadata: {
        name,
        namespace,
        labels: { ...template.metadata?.labels, [workloads.controllerRevisionHash]: hash },
        ...(set.metadata.annotations === undefined ? {} : { annotations: set.metadata.annotations }),
        ownerReferences: [controlledBy({ ...set, apiVersion: "apps/v1", kind: "DaemonSet" })],
      },
      data,
      revision: newest + 1,
    };
    try {
      await kube.create(kubernetes.ControllerRevision, revision, { signal });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const there = await kube.get(kubernetes.ControllerRevision, { name, namespace }, { signal });
      if (there !== undefined && (controllerOf(there)?.uid !== set.metadata.uid || !sameJson(there.data, data))) {
        await writeStatus(
          kube,
          kubernetes.DaemonSet,
          set,
          {
            currentNumberScheduled: 0,
            desiredNumberScheduled: 0,
            numberMisscheduled: 0,
            numberReady: 0,
            ...set.status,
            collisionCount: collisions + 1,
          },
          signal,
        );
        return undefined;
      }
    }
  } else if (known.revision < newest) {
    await kube.patch(
      kubernetes.ControllerRevision,
      known.metadata,
      { type: "merge", body: { metadata: { resourceVersion: known.metadata.resourceVersion }, revision: newest + 1 } },
      { signal },
    );
  }
  const inUse = new Set(pods.map((pod) => pod.metadata.labels?.[workloads.controllerRevisionHash]));
  const old = history.filter(
    (revision) => revision !== known && !inUse.has(revision.metadata.labels?.[workloads.controllerRevisionHash]),
  );
  for (const revision of old.slice(0, Math.max(0, old.length - (set.spec?.revisionHistoryLimit ?? defaultHistory)))) {
    await kube.delete(kubernetes.ControllerRevision, revision.metadata, {
      ...(revision.metadata.uid === undefined ? {} : { uid: revision.metadata.uid }),
      signal,
    });
  }
  return hash;
}
