import { type Node, type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { conditionOf, keyOf } from "../../../api/schema/object.ts";
import { type Caches, type Context, type Controller, watching } from "../../../kube/controller.ts";
import { isConflict, isNotFound } from "../../../kube/kube-error.ts";
import { type Outcome, done } from "../../../kube/outcome.ts";
import type { ObjectChange } from "../../../kube/watch-cache.ts";
import { chooseNode } from "./choose-node.ts";
import { changeStatus } from "./each-pod.ts";
import { sameJson } from "./merge-difference.ts";
import { isTerminal, podIndexes } from "./pod-state.ts";
import { setCondition } from "../../../api/schema/conditions.ts";

const schedulerName = "default-scheduler";

const waitsForNode = (pod: Pod): boolean =>
  (pod.spec?.nodeName ?? "") === "" &&
  pod.metadata.deletionTimestamp === undefined &&
  !isTerminal(pod) &&
  (pod.spec?.schedulerName ?? schedulerName) === schedulerName &&
  (pod.spec?.schedulingGates ?? []).length === 0;

/** What a node's heartbeat leaves as it is. */
const whatMatters = (node: Node | undefined) =>
  node === undefined
    ? undefined
    : {
        labels: node.metadata.labels,
        taints: node.spec?.taints,
        unschedulable: node.spec?.unschedulable,
        ready: conditionOf(node.status?.conditions, "Ready")?.status,
        pods: node.status?.allocatable?.["pods"],
      };

/** Gives every pod that has none a node. */
export function scheduler(): Controller {
  /** Pods that were bound and that the cache shows without a node still: they take their place at once. */
  const assumed = new Map<string, { readonly uid: string | undefined; readonly node: string; readonly pod: Pod }>();
  /** Why pods have no node whose status the API server refused to take: said once, and not again with each pass. */
  const unwritten = new Map<string, { readonly uid: string | undefined; readonly message: string }>();

  const waitingPods = (caches: Caches): readonly string[] =>
    caches.of(kubernetes.Pod).byIndex("node", "").filter(waitsForNode).map(keyOf);

  function concernsOfPod({ key, before, after }: ObjectChange<Pod>, caches: Caches): readonly string[] {
    const place = assumed.get(key);
    if (
      place !== undefined &&
      (after === undefined || after.metadata.uid !== place.uid || (after.spec?.nodeName ?? "") !== "")
    )
      assumed.delete(key);
    if (after === undefined || after.metadata.uid !== unwritten.get(key)?.uid || !waitsForNode(after))
      unwritten.delete(key);
    if (after !== undefined && waitsForNode(after)) return [key];
    // A place becomes free.
    const held = before !== undefined && (before.spec?.nodeName ?? "") !== "" && !isTerminal(before);
    return held && (after === undefined || isTerminal(after)) ? waitingPods(caches) : [];
  }

  function concernsOfNode({ before, after }: ObjectChange<Node>, caches: Caches): readonly string[] {
    return after === undefined || sameJson(whatMatters(before), whatMatters(after)) ? [] : waitingPods(caches);
  }

  /** Says in the status and an Event why a pod has no node, unless that was said before. */
  async function sayUnschedulable(key: string, pod: Pod, message: string, context: Context): Promise<void> {
    const { events, clock, log } = context;
    const { uid } = pod.metadata;
    const wanted = { type: "PodScheduled", status: "False", reason: "Unschedulable", message };
    const before = conditionOf(pod.status?.conditions, "PodScheduled");
    if (before?.status === wanted.status && before.message === message) return;
    const refused = unwritten.get(key);
    if (refused?.uid === uid && refused?.message === message) return;
    const error = await changeStatus(
      pod,
      (fresh) =>
        waitsForNode(fresh) ? { conditions: setCondition(fresh.status?.conditions, wanted, clock.now()) } : undefined,
      context,
    );
    if (error === undefined) unwritten.delete(key);
    else {
      log.warn({ error }, "the API server refused to say in the pod's status why it has no node");
      unwritten.set(key, { uid, message });
    }
    events.event(pod, { type: "Warning", reason: "FailedScheduling", message });
  }

  return {
    name: "scheduler",
    watches: [
      watching<Pod>({ resource: kubernetes.Pod, indexes: podIndexes, concerns: concernsOfPod }),
      watching<Node>({ resource: kubernetes.Node, concerns: concernsOfNode }),
    ],
    owns: ["Pod.spec.nodeName", "Pod.status.conditions[PodScheduled]"],

    async reconcile(key, context): Promise<Outcome> {
      const { caches, kube, events, signal } = context;
      const pods = caches.of(kubernetes.Pod);
      const nodes = caches.of(kubernetes.Node);
      const pod = pods.get(key);
      if (pod === undefined || !waitsForNode(pod) || assumed.has(key)) return done();
      const coming = new Map<string, Pod[]>();
      for (const { node, pod: taken } of assumed.values()) {
        const before = coming.get(node);
        if (before === undefined) coming.set(node, [taken]);
        else before.push(taken);
      }
      const choice = chooseNode(pod, {
        nodes: nodes.list(),
        node: (name) => nodes.get(name),
        podsOn: (name) => [...pods.byIndex("node", name), ...(coming.get(name) ?? [])],
      });
      const { name, namespace = "", uid } = pod.metadata;

      if (choice.verdict === "nowhere") {
        await sayUnschedulable(key, pod, choice.message, context);
        return done();
      }

      assumed.set(key, { uid, node: choice.node, pod });
      try {
        await kube.request(
          {
            method: "POST",
            target: `/api/v1/namespaces/${namespace}/pods/${name}/binding`,
            headers: { "content-type": "application/json" },
            body: JSON.stringify({
              apiVersion: "v1",
              kind: "Binding",
              metadata: { name, namespace, ...(uid === undefined ? {} : { uid }) },
              target: { apiVersion: "v1", kind: "Node", name: choice.node },
            }),
          },
          { signal },
        );
      } catch (error) {
        assumed.delete(key);
        if (isConflict(error) || isNotFound(error)) return done();
        throw error;
      }
      const shown = pods.get(key);
      // The watch may have been faster than the response; then nothing would remove the entry.
      if (shown === undefined || shown.metadata.uid !== uid || (shown.spec?.nodeName ?? "") !== "") assumed.delete(key);
      events.event(pod, {
        type: "Normal",
        reason: "Scheduled",
        message: `Successfully assigned ${namespace}/${name} to ${choice.node}`,
      });
      return done();
    },
  };
}
