import { type Node, type Pod, kubernetes } from "../api/kubernetes.ts";
import { MachineConfigNode } from "../api/machine-config-node.ts";
import { MachineConfigPool } from "../api/machine-config-pool.ts";
import { annotations, fieldManagers, machineConfigNodeConditions as types } from "../api/names.ts";
import { conditionOf } from "../api/object.ts";
import { type BlockedPod, describeDrain, drainReasons, drainStep, planDrain } from "../core/plan-drain.ts";
import { poolPolicy } from "../core/pool-policy.ts";
import { poolOfNode } from "../core/pool-of-node.ts";
import { type PhaseReport, childReason, withPhases } from "../core/update-conditions.ts";
import { type Caches, type Context, type Controller, watching } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { KubeError, isNotFound, isPassing, isTooManyRequests } from "../kube/kube-error.ts";
import { type Outcome, settled, stalled, waiting } from "../kube/outcome.ts";

/** A blocked eviction is tried again after this time, or as soon as a pod or budget changes. */
const retrySeconds = 5;
/** After the pool's deadline. */
const lateRetrySeconds = 30;

const reasons = { progress: childReason(types.updateExecuted, types.drained), ...drainReasons } as const;
const isDraining = (node: Node | undefined) => node !== undefined && drainStep(node).do === "evict";

/**
 * Takes machines out of service and puts them back, as their daemons ask by annotation. Where a drain stands is on the
 * objects alone: a new process goes on with what it finds. Pods leave by eviction and never against their budget.
 */
export function drainController(): Controller {
  return {
    name: "drain",
    watches: [
      watching({ resource: kubernetes.Node, concerns: ({ key, before, after }) => (before !== undefined && after !== undefined && requestOf(before) === requestOf(after) ? [] : [key]) }),
      watching({
        resource: kubernetes.Pod,
        concerns: ({ before, after }, caches) => {
          const name = (after ?? before)?.spec?.nodeName;
          return name !== undefined && isDraining(caches.of(kubernetes.Node).get(name)) ? [name] : [];
        },
      }),
      watching({ resource: kubernetes.PodDisruptionBudget, concerns: (_change, caches) => caches.of(kubernetes.Node).list().filter(isDraining).map(({ metadata }) => metadata.name) }),
      watching({ resource: MachineConfigNode, concerns: () => [] }),
      watching({ resource: MachineConfigPool, concerns: () => [] }),
    ],
    owns: ["Node.spec.unschedulable", "Node.metadata.annotations/drain", "MachineConfigNode.status/drain"],
    workers: 5,

    async reconcile(name, context): Promise<Outcome> {
      const node = context.caches.of(kubernetes.Node).get(name);
      if (node === undefined || node.metadata.deletionTimestamp !== undefined) return settled();
      const step = drainStep(node);
      switch (step.do) {
        case "nothing":
          return settled();
        case "refuse":
          return stalled("UnknownRequest", step.reason);
        case "uncordon":
          return uncordon(node, context);
        case "cordon": {
          const cordoned = await cordon(node, context);
          return cordoned === undefined ? settled() : empty(cordoned, context);
        }
        case "evict":
          return empty(node, context);
      }
    },
  };
}

const requestOf = ({ metadata, spec }: Node) => JSON.stringify([metadata.uid, metadata.annotations?.[annotations.desiredDrain], metadata.annotations?.[annotations.lastAppliedDrain], metadata.annotations?.[annotations.cordonedFor], spec?.unschedulable === true]);

/** @returns the node as it is afterwards, or `undefined` when it no longer asks for it. */
async function cordon(node: Node, { kube, events, log, scribe, signal }: Context): Promise<Node | undefined> {
  const { name } = node.metadata;
  let anew = false;
  const written = await updateObject(
    kube,
    kubernetes.Node,
    { name },
    (object) => {
      const step = drainStep(object);
      if (step.do !== "cordon") return undefined;
      anew = step.anew;
      // An earlier drain's "done" must not stand beside this cordon: the daemon would take it for this one's.
      return { metadata: { name, annotations: { [annotations.cordonedFor]: step.request, [annotations.lastAppliedDrain]: null as unknown as string } }, spec: { unschedulable: true } };
    },
    { cached: node, owner: fieldManagers.drain, signal },
  );
  if (written === undefined || drainStep(written).do !== "evict") return undefined;
  log.info({ node: name, request: written.metadata.annotations?.[annotations.desiredDrain], anew }, "node cordoned");
  events.event(node, { type: "Normal", reason: "Cordon", message: anew ? `Cordoned ${name} again: it had been put back into service while its drain was still needed` : `Cordoned ${name} to apply update` });
  scribe.line({ book: `node/${name}`, chapter: "Update", path: "Executed/Cordoned", mark: "end", level: "progress", reason: "Cordoned", message: anew ? "cordoned again" : "cordoned" });
  return written;
}

async function empty(node: Node, context: Context): Promise<Outcome> {
  const { kube, caches, clock, events, log, scribe, signal } = context;
  const { name } = node.metadata;
  const request = node.metadata.annotations?.[annotations.desiredDrain] ?? "";
  // Asked of the server: a pod that was bound just before the cordon may not have come through the watch yet.
  const { items } = await kube.list(kubernetes.Pod, { fieldSelector: `spec.nodeName=${name}` }, { signal });
  const plan = planDrain(items);
  const results = await Promise.all(plan.evict.map((pod) => evict(pod, context)));
  const blocked = results.flatMap((result) => (result.verdict === "blocked" ? [result] : []));
  const leaving = [...plan.leaving, ...results.flatMap((result) => (result.verdict === "leaving" ? [result.pod] : []))];
  if (blocked.length === 0 && leaving.length === 0) return confirm(node, request, context);

  const message = describeDrain(blocked, leaving);
  const before = conditionOf(caches.of(MachineConfigNode).get(name)?.status?.conditions, types.drained);
  const since = before?.status === "Unknown" ? Date.parse(before.lastTransitionTime) : clock.now();
  const deadline = poolPolicy(poolOf(node, caches)).policy.drain.deadlineSeconds;
  const late = deadline !== undefined && clock.now() - since > deadline * 1000;
  const reason = late ? reasons.late : blocked.length > 0 ? reasons.blocked : reasons.progress;
  if (reason !== reasons.progress && before?.reason !== reason) {
    events.event(node, { type: "Warning", reason: late ? reasons.late : "DrainBlocked", message: late ? `The drain of ${name} takes longer than the ${deadline} s that its pool gives it; it goes on without force: ${message}` : `The drain of ${name} waits: ${message}` });
    scribe.line({ book: `node/${name}`, chapter: "Update", path: "Executed/Drained", mark: "note", level: "progress", reason, message });
  }
  await say(name, [cordonedPhase(name), { type: types.drained, status: "Unknown", reason, message }], context);
  log.debug({ node: name, blocked: blocked.length, leaving: leaving.length }, "draining");
  const wait = late ? lateRetrySeconds : retrySeconds;
  const sooner = deadline === undefined || late ? wait : Math.min(wait, Math.max(1, deadline - (clock.now() - since) / 1000));
  return waiting("Draining", message, sooner);
}

async function evict(pod: Pod, { kube, signal }: Context): Promise<{ readonly verdict: "gone" } | { readonly verdict: "leaving"; readonly pod: Pod } | ({ readonly verdict: "blocked" } & BlockedPod)> {
  try {
    await kube.evict(pod, { signal });
    return { verdict: "leaving", pod };
  } catch (error) {
    if (isNotFound(error)) return { verdict: "gone" };
    // A busy server is no budget. 500 is what a pod with two budgets gets (pkg/registry/core/pod/storage/eviction.go, v1.34).
    if (!(error instanceof KubeError) || (isPassing(error) && error.httpStatus !== 409 && error.httpStatus !== 500)) throw error;
    const causes = (error.status.details?.causes ?? []).flatMap(({ message }) => message ?? []);
    const said = isTooManyRequests(error) && causes.length > 0 ? causes.join(" ") : (error.status.message ?? error.message);
    // A replacement of the same name is another pod, and not this one's matter.
    return error.httpStatus === 409 ? { verdict: "leaving", pod } : { verdict: "blocked", pod, why: said };
  }
}

async function confirm(node: Node, request: string, context: Context): Promise<Outcome> {
  const { kube, log, scribe, signal } = context;
  const { name } = node.metadata;
  let confirmed = false;
  await updateObject(
    kube,
    kubernetes.Node,
    { name },
    (object) => {
      const step = drainStep(object);
      confirmed = step.do === "evict" && step.request === request;
      return confirmed ? { metadata: { name, annotations: { [annotations.lastAppliedDrain]: request } } } : undefined;
    },
    { cached: node, owner: fieldManagers.drain, signal },
  );
  if (!confirmed) return settled();
  log.info({ node: name, request }, "node drained");
  scribe.line({ book: `node/${name}`, chapter: "Update", path: "Executed/Drained", mark: "end", level: "boundary", reason: "Drained", message: "all pods have left" });
  await say(name, [cordonedPhase(name), { type: types.drained, status: "True", reason: reasons.progress, message: "all pods have left" }], context);
  return settled();
}

async function uncordon(node: Node, context: Context): Promise<Outcome> {
  const { kube, events, log, scribe, signal } = context;
  const { name } = node.metadata;
  let done: { readonly lift: boolean; readonly request: string } | undefined;
  await updateObject(
    kube,
    kubernetes.Node,
    { name },
    (object) => {
      const step = drainStep(object);
      done = step.do === "uncordon" ? step : undefined;
      if (done === undefined) return undefined;
      const removed = null as unknown as string;
      const lifted = { unschedulable: null as unknown as boolean };
      return { metadata: { name, annotations: { [annotations.cordonedFor]: removed, [annotations.lastAppliedDrain]: done.request } }, ...(done.lift ? { spec: lifted } : {}) };
    },
    { cached: node, owner: fieldManagers.drain, signal },
  );
  if (done === undefined) return settled();
  log.info({ node: name, ...done }, done.lift ? "node uncordoned" : "node left as it was");
  if (done.lift) events.event(node, { type: "Normal", reason: "Uncordon", message: `Update completed for ${name}: it is back in service` });
  scribe.line({ book: `node/${name}`, chapter: "Update", path: "Complete/Uncordoned", mark: "end", level: "progress", reason: "Uncordoned", message: done.lift ? "back in service" : "somebody else's cordon stays" });
  await say(name, [{ type: types.uncordoned, status: "False", reason: "Done", message: done.lift ? `last update: uncordoned (${done.request})` : `last update: the cordon of somebody else stays (${done.request})` }], context);
  return settled();
}

const cordonedPhase = (name: string): PhaseReport => ({ type: types.cordoned, status: "True", reason: childReason(types.updateExecuted, types.cordoned), message: `${name} takes no new pods` });

function poolOf(node: Node, caches: Caches): MachineConfigPool | undefined {
  const member = poolOfNode(node, caches.of(MachineConfigPool).list());
  return member.verdict === "member" ? caches.of(MachineConfigPool).get(member.pool) : undefined;
}

/** Tells it in the MachineConfigNode. The work never waits for its own story: what cannot be written is logged. */
async function say(name: string, reports: readonly PhaseReport[], { kube, clock, log, signal }: Context): Promise<void> {
  try {
    await updateObject(
      kube,
      MachineConfigNode,
      { name },
      (object) => {
        const before = object.status?.conditions ?? [];
        const conditions = withPhases(before, reports, clock.now());
        return conditions === before ? undefined : { status: { conditions: [...conditions], observedGeneration: Math.max(object.status?.observedGeneration ?? 1, object.metadata.generation ?? 1) } };
      },
      { subresource: "status", owner: fieldManagers.drain, signal },
    );
  } catch (error) {
    if (!signal.aborted) log.warn({ error }, "MachineConfigNode not written");
  }
}
