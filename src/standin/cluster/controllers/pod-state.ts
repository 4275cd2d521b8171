import type { Pod } from "../../../api/foreign/kubernetes.ts";
import { type KubeObject, type OwnerReference, conditionOf } from "../../../api/schema/object.ts";
import { millisecondsOf } from "./timestamp.ts";

/** The reference to the one owner that controls an object. */
export const controllerOf = (object: KubeObject): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find(({ controller }) => controller === true);

export const isTerminal = (pod: Pod): boolean => pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";

/** Neither ended nor being deleted. */
export const isActive = (pod: Pod): boolean => !isTerminal(pod) && pod.metadata.deletionTimestamp === undefined;

export const isPodReady = (pod: Pod): boolean => conditionOf(pod.status?.conditions, "Ready")?.status === "True";

/** Milliseconds until a pod that is ready counts as available; 0: it does; `undefined`: it is not ready. */
export function availableInMs(pod: Pod, minReadySeconds: number, now: number): number | undefined {
  if (!isPodReady(pod)) return undefined;
  if (minReadySeconds === 0) return 0;
  const since = millisecondsOf(conditionOf(pod.status?.conditions, "Ready")?.lastTransitionTime);
  return since === undefined ? undefined : Math.max(0, since + minReadySeconds * 1000 - now);
}

export const isAvailable = (pod: Pod, minReadySeconds: number, now: number): boolean =>
  availableInMs(pod, minReadySeconds, now) === 0;

/** The indexes by which controllers find their objects. */
export const ownedIndexes = {
  /** uid of the controller */
  controller: (object: KubeObject): readonly string[] => {
    const uid = controllerOf(object)?.uid;
    return uid === undefined ? [] : [uid];
  },
  /** namespace of pods without a controller */
  orphan: (object: KubeObject): readonly string[] =>
    controllerOf(object) === undefined ? [object.metadata.namespace ?? ""] : [],
  namespace: (object: KubeObject): readonly string[] => [object.metadata.namespace ?? ""],
};

/** Those of pods; every watch of pods declares all of them, because one cache serves all. */
export const podIndexes = {
  ...ownedIndexes,
  /** name of the node; empty for pods without one */
  node: (pod: Pod): readonly string[] => [pod.spec?.nodeName ?? ""],
};
