import type { KubeObject, Resource } from "../../../api/schema/object.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";
import { mergeDifference } from "./merge-difference.ts";

/**
 * Writes the difference between an object's status and `status`, on condition that the object is unchanged; writes
 * nothing if there is no difference.
 */
export async function writeStatus<T extends KubeObject & { status?: unknown }>(
  kube: KubeClient,
  resource: Resource<T>,
  object: T,
  status: T["status"],
  signal: AbortSignal,
): Promise<T> {
  const difference = mergeDifference(object.status ?? {}, status ?? {});
  if (difference === undefined) return object;
  const body = {
    metadata: { uid: object.metadata.uid, resourceVersion: object.metadata.resourceVersion },
    status: difference,
  };
  return kube.patch(resource, object.metadata, { type: "merge", body }, { subresource: "status", signal });
}
