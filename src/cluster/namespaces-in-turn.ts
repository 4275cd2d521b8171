import type { KubeObject } from "../api/schema/object.ts";
import { clusterNamespaces } from "../apiserver/schema/shares.ts";

/**
 * Objects in an order in which namespaces take turns, those of the cluster and of the suite before all others: thousands of
 * one tenant keep none of another one waiting.
 */
export function namespacesInTurn<T extends KubeObject>(objects: readonly T[]): readonly T[] {
  const counts = new Map<string, number>();
  const ranked = objects.map((object) => {
    const { namespace = "" } = object.metadata;
    const before = counts.get(namespace) ?? 0;
    counts.set(namespace, before + 1);
    return { object, turn: clusterNamespaces.has(namespace) ? -1 : before };
  });
  ranked.sort((a, b) => a.turn - b.turn);
  return ranked.map(({ object }) => object);
}
