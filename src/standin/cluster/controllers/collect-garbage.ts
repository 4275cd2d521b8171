import type { KubeObject, OwnerReference, Resource } from "../../../api/schema/object.ts";
import { workloads } from "../../../api/names.ts";

/** What the collector keeps of an object. */
export interface Item {
  readonly resource: Resource<KubeObject>;
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly resourceVersion: string;
  readonly owners: readonly OwnerReference[];
  readonly finalizers: readonly string[];
  readonly deleting: boolean;
}

export type OwnerState =
  /** It is there and stays. */
  | "solid"
  /** It is not there. */
  | "absent"
  /** It is removed as soon as its dependents are. */
  | "waiting"
  /** Its kind is not served, or it could not be there: nothing follows from that. */
  | "unknown";

export type GarbageStep =
  | { readonly do: "nothing" }
  | { readonly do: "delete"; readonly propagation: "Background" | "Foreground" | "Orphan" }
  | { readonly do: "dropOwners"; readonly uids: ReadonlySet<string> }
  | { readonly do: "dropFinalizer"; readonly finalizer: string }
  /** Take the reference off all dependents, then drop the `orphan` finalizer. */
  | { readonly do: "orphanDependents" }
  /** Its dependents block it: they are checked, and it is checked again when they are gone. */
  | { readonly do: "waitForDependents"; readonly blocking: readonly Item[] }
  /** A cycle, in which every object waits for the others: unblock its owners first. */
  | { readonly do: "unblockAndDelete" };

/** Whether it was deleted in the foreground: it goes after its dependents. */
export const isWaitingForDependents = (item: Item): boolean =>
  item.deleting && item.finalizers.includes(workloads.foregroundDeletion);

/**
 * Decides what to do with one object: k8s.io/kubernetes pkg/controller/garbagecollector (master) attemptToDeleteItem,
 * as a decision.
 */
export function collectGarbage(
  item: Item,
  dependents: readonly Item[],
  stateOf: (owner: OwnerReference) => OwnerState,
): GarbageStep {
  if (item.deleting) {
    if (item.finalizers.includes(workloads.orphan)) return { do: "orphanDependents" };
    if (!isWaitingForDependents(item)) return { do: "nothing" };
    const blocking = dependents.filter(({ owners }) =>
      owners.some(({ uid, blockOwnerDeletion }) => uid === item.uid && blockOwnerDeletion === true),
    );
    return blocking.length === 0
      ? { do: "dropFinalizer", finalizer: workloads.foregroundDeletion }
      : { do: "waitForDependents", blocking };
  }
  if (item.owners.length === 0) return { do: "nothing" };
  const states = item.owners.map((owner) => ({ owner, state: stateOf(owner) }));
  const gone = new Set(
    states.filter(({ state }) => state === "absent" || state === "waiting").map(({ owner }) => owner.uid),
  );
  if (gone.size === 0) return { do: "nothing" };
  if (states.some(({ state }) => state === "unknown")) return { do: "nothing" };
  if (states.some(({ state }) => state === "solid")) return { do: "dropOwners", uids: gone };
  const waiting = states.some(({ state }) => state === "waiting");
  if (waiting && dependents.length > 0)
    return dependents.some(isWaitingForDependents)
      ? { do: "unblockAndDelete" }
      : { do: "delete", propagation: "Foreground" };
  if (item.finalizers.includes(workloads.orphan)) return { do: "delete", propagation: "Orphan" };
  return {
    do: "delete",
    propagation: item.finalizers.includes(workloads.foregroundDeletion) ? "Foreground" : "Background",
  };
}
