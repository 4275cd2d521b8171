import type { Pod } from "../../../api/foreign/kubernetes.ts";
import { isSuiteNamespace } from "../suite-namespaces.ts";
import { sizeProblem } from "./pod-problem.ts";

/** Why a kubelet does not run a pod, as the pod's status has it. */
export interface Rejection {
  readonly reason: string;
  readonly message: string;
}

const isOfSuite = ({ metadata: { namespace = "" } }: Pod): boolean => isSuiteNamespace(namespace);

/** Only a kubelet writes it, and none for a pod that it rejects: the pod ran before this process, or this boot. */
const wasAdmitted = ({ status }: Pod): boolean => status?.startTime !== undefined;

/**
 * Whether a machine runs one pod more. What it once admitted it keeps. The suite's pods always have a place: a kubelet
 * preempts others for critical pods, and tenants could otherwise take the place of each that is replaced.
 *
 * Reasons and messages: kubernetes/kubernetes pkg/kubelet/lifecycle/predicate.go, kubelet.go rejectPod (v1.34).
 *
 * @param active pods that run, or are on their way to it or to their end; none that never ran.
 */
export function rejectionOf(pod: Pod, active: number, maxPods: number): Rejection | undefined {
  const rejected = (reason: string, message: string) => ({ reason, message: `Pod was rejected: ${message}` });
  if (wasAdmitted(pod)) return undefined;
  const tooLarge = sizeProblem(pod);
  if (tooLarge !== undefined) return rejected("PodTooLarge", tooLarge);
  if (active < maxPods || isOfSuite(pod)) return undefined;
  return rejected(
    "OutOfpods",
    `Node didn't have enough resource: pods, requested: 1, used: ${active}, capacity: ${maxPods}`,
  );
}

/** Pods in the order in which a machine that starts admits them: a kubelet takes the older ones first. */
export function inAdmissionOrder(pods: readonly Pod[]): readonly Pod[] {
  const rank = (pod: Pod) => (wasAdmitted(pod) ? 0 : isOfSuite(pod) ? 1 : 2);
  const ranked = pods.map((pod) => ({ pod, rank: rank(pod), since: pod.metadata.creationTimestamp ?? "" }));
  ranked.sort((a, b) => a.rank - b.rank || (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
  return ranked.map(({ pod }) => pod);
}
