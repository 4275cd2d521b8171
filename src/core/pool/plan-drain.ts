import type { Node, Pod } from "../../api/foreign/kubernetes.ts";
import { defined } from "../../api/schema/defined.ts";
import { buildNamespace, labels } from "../../api/names.ts";
import { drainBegan } from "./drain-step.ts";
import { isMirror, mirrorAnnotation } from "./mirror-pods.ts";

/** The pods of a node by what becomes of them. */
export interface DrainPlan {
  /** Pods to ask the eviction API for. */
  readonly evict: readonly Pod[];
  /** Pods that build an OS image, while that is waited for. */
  readonly building: readonly Pod[];
  /** Pods on their way out. */
  readonly leaving: readonly Pod[];
  /** Pods that stay, and why. */
  readonly staying: readonly { readonly pod: Pod; readonly why: "DaemonSet" | "mirror" | "terminated" }[];
}

/**
 * How long a drain waits for an image that is being built on its node, in milliseconds: to build it again costs more.
 */
export const buildPatienceMs = 600_000;

/** Whether a drain still waits for images that are being built there. */
export function waitsForBuilds(node: Pick<Node, "metadata">, now: number): boolean {
  const began = drainBegan(node);
  return began === undefined || now - Date.parse(began.at) < buildPatienceMs;
}

/**
 * Sorts the pods of a node: what must go, what goes already, what stays. Nothing is left to do when only those stay.
 * @param holdBuilds pods that build an OS image are let finish.
 */
export function planDrain(pods: readonly Pod[], holdBuilds = false): DrainPlan {
  const evict: Pod[] = [];
  const building: Pod[] = [];
  const leaving: Pod[] = [];
  const staying: DrainPlan["staying"][number][] = [];
  for (const pod of pods) {
    const { metadata, status } = pod;
    const why = isMirror(pod)
      ? "mirror"
      : metadata.ownerReferences?.some(({ kind, controller }) => controller === true && kind === "DaemonSet") === true
        ? "DaemonSet"
        : status?.phase === "Succeeded" || status?.phase === "Failed"
          ? "terminated"
          : undefined;
    if (why !== undefined) staying.push({ pod, why });
    else if (metadata.deletionTimestamp !== undefined) leaving.push(pod);
    else if (holdBuilds && isBuild(pod)) building.push(pod);
    else evict.push(pod);
  }
  return { evict, building, leaving, staying };
}

/** Anybody may label a pod so: those of the builds' own namespace alone build an image. */
const isBuild = ({ metadata }: Pod): boolean =>
  metadata.namespace === buildNamespace && metadata.labels?.[labels.ephemeralBuildObject] !== undefined;

/** Nothing recreates the pod elsewhere. */
export const isUnmanaged = ({ metadata }: Pod): boolean =>
  metadata.ownerReferences?.some(({ controller }) => controller === true) !== true;
/** A pod that is not gone this long after its grace period is stuck, in milliseconds. */
export const stuckAfterMs = 60_000;

/**
 * Why a pod that leaves does not get away, for people; `undefined` while it has time. `now`: milliseconds since the
 * epoch.
 */
export function whyStuck({ metadata }: Pod, now: number): string | undefined {
  // The time of deletion has the grace period in it.
  if (metadata.deletionTimestamp === undefined || now - Date.parse(metadata.deletionTimestamp) <= stuckAfterMs)
    return undefined;
  const held = metadata.finalizers ?? [];
  return held.length > 0 ? `held by its finalizers ${held.join(", ")}` : "its kubelet does not confirm its end";
}

/** A pod whose eviction the API refused. */
export interface BlockedPod {
  readonly pod: Pod;
  /**
   * `pdb`: by a disruption budget. `refused`: by something else, such as a webhook. `failed`: the server could not say.
   * `build`: by us, until its image is built.
   */
  readonly by: "pdb" | "refused" | "failed" | "build";
  /** What the API server said, with the disruption budget's name where it names one. */
  readonly why: string;
}

/** A pod that is let finish an image. */
export const heldForBuild = (pod: Pod): BlockedPod => ({
  pod,
  by: "build",
  why: "it builds an OS image, which is waited for, ten minutes at most",
});

/** What a drain needs to know of a pod: the rest is not kept. */
export function trimPod({ apiVersion, kind, metadata, spec, status }: Pod): Pod {
  const {
    name,
    namespace,
    uid,
    resourceVersion,
    labels,
    annotations: said,
    ownerReferences,
    finalizers,
    deletionTimestamp,
  } = metadata;
  const mirror = said?.[mirrorAnnotation];
  const volumes =
    spec?.volumes
      ?.filter(({ emptyDir }) => emptyDir !== undefined)
      .map(({ name: volume }) => ({ name: volume, emptyDir: {} })) ?? [];
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(mirror === undefined ? {} : { annotations: { [mirrorAnnotation]: mirror.slice(0, 64) } }),
      ...defined({ namespace, uid, resourceVersion, labels, ownerReferences, finalizers, deletionTimestamp }),
    },
    spec: { containers: [], ...(volumes.length === 0 ? {} : { volumes }) },
    status: status?.phase === undefined ? {} : { phase: status.phase },
  };
}
