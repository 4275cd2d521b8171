import type { Condition, KubeObject, Resource } from "../../api/schema/object.ts";
import { equalValues } from "../../ignition/canonical.ts";
import type { Context } from "../../kube/controller.ts";
import { updateObject } from "../../kube/kube-client.ts";
import { isNotFound } from "../../kube/kube-error.ts";

/** An object whose status has conditions, and nothing else that a controller of this suite writes. */
type WithConditions = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] | undefined } };

/**
 * Writes the conditions of an object where they differ. A newer generation is judged by its own pass, and an object that
 * was deleted in the meantime needs none.
 *
 * @param cached the object that was judged. @param conditionsOf the conditions of the object as it is when they are
 * written. @param owner the field manager.
 */
export async function writeConditions<T extends WithConditions>(
  resource: Resource<T>,
  cached: T,
  conditionsOf: (object: T) => readonly Condition[],
  owner: string,
  { kube, signal }: Pick<Context, "kube" | "signal">,
): Promise<void> {
  const wanted = (object: T): Partial<T> | undefined => {
    if (object.metadata.generation !== cached.metadata.generation) return undefined;
    const conditions = conditionsOf(object);
    if (equalValues(conditions, object.status?.conditions ?? [])) return undefined;
    return { status: { conditions } } as unknown as Partial<T>;
  };
  try {
    await updateObject(kube, resource, cached.metadata, wanted, { subresource: "status", owner, cached, signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
