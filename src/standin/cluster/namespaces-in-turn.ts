import type { KubeObject } from "../../api/schema/object.ts";
import { clusterNamespaces } from "../apiserver/schema/shares.ts";

/**
 * Orders objects so that namespaces take turns, those of the cluster and the suite first: thousands of objects of one
 * tenant delay none of another tenant.
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
