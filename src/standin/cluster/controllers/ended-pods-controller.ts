import { type Pod, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { keyOf } from "../../../api/schema/object.ts";
import { type Controller, watching } from "../../../kube/controller.ts";
import { isConflict } from "../../../kube/kube-error.ts";
import { done } from "../../../kube/outcome.ts";
import { isTerminal } from "./pod-state.ts";

const namespaceOf = ({ metadata }: Pod): string => metadata.namespace ?? "";

/**
 * Keeps pods that have ended from filling the store: beyond `limit` the oldest of a namespace go. No namespace loses pods
 * because of those of another: Jobs, builds among them, read from these how they ended.
 */
export function endedPodsController(limit: number): Controller {
  return {
    name: "ended-pods",
    watches: [
      watching<Pod>({
        resource: kubernetes.Pod,
        indexes: { ended: (pod) => (isTerminal(pod) ? [namespaceOf(pod)] : []) },
        concerns: ({ before, after }) =>
          after !== undefined && isTerminal(after) && (before === undefined || !isTerminal(before))
            ? [namespaceOf(after)]
            : [],
      }),
    ],
    owns: [],

    async reconcile(namespace, { caches, kube, signal }) {
      const ended = caches.of(kubernetes.Pod).byIndex("ended", namespace);
      if (ended.length <= limit) return done();
      const age = (pod: Pod) => `${pod.metadata.creationTimestamp ?? ""} ${keyOf(pod)}`;
      for (const pod of ended.toSorted((a, b) => (age(a) < age(b) ? -1 : 1)).slice(0, ended.length - limit)) {
        if (pod.metadata.deletionTimestamp !== undefined) continue;
        try {
          await kube.delete(kubernetes.Pod, pod.metadata, {
            ...(pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }),
            signal,
          });
        } catch (error) {
          if (!isConflict(error)) throw error;
        }
      }
      return done();
    },
  };
}
