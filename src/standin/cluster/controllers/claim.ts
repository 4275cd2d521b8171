import { type KubeObject, type Resource, controlledBy } from "../../../api/schema/object.ts";
import type { Context } from "../../../kube/controller.ts";
import { type Selector, selects, selectsNothingInParticular } from "./selects.ts";
import { isConflict, isInvalid, isNotFound } from "../../../kube/kube-error.ts";

export interface ClaimOptions<O extends KubeObject, T extends KubeObject> {
  readonly owner: O;
  readonly ownerResource: Resource<O>;
  readonly resource: Resource<T>;
  readonly selector: Selector | undefined;
}

/**
 * The objects that belong to an owner: adopts orphans of its namespace that its selector matches, and releases objects
 * that it no longer matches. Their kind is watched with `ownedIndexes`.
 */
export async function claim<O extends KubeObject, T extends KubeObject>(
  options: ClaimOptions<O, T>,
  { kube, caches, signal }: Context,
): Promise<readonly T[]> {
  const { owner, ownerResource, resource, selector } = options;
  const cached = caches.of(resource);
  const owned = cached.byIndex("controller", owner.metadata.uid ?? "");
  const orphans = cached.byIndex("orphan", owner.metadata.namespace ?? "");
  const mine: T[] = [];
  const deleting = owner.metadata.deletionTimestamp !== undefined;
  for (const object of owned) {
    if (selects(selector, object.metadata.labels)) mine.push(object);
    else if (!deleting && object.metadata.deletionTimestamp === undefined) {
      const references = (object.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== owner.metadata.uid);
      await tolerant(() =>
        kube.patch(
          resource,
          object.metadata,
          { type: "merge", body: { metadata: { ...precondition(object), ownerReferences: references } } },
          { signal },
        ),
      );
    }
  }
  if (deleting || selectsNothingInParticular(selector)) return mine;
  const wanted = orphans.filter(
    (object) => object.metadata.deletionTimestamp === undefined && selects(selector, object.metadata.labels),
  );
  if (wanted.length === 0) return mine;
  // Only an existing owner may adopt: the cache may not yet show that the owner is being deleted.
  const fresh = await kube.get(ownerResource, owner.metadata, { signal });
  if (
    fresh === undefined ||
    fresh.metadata.uid !== owner.metadata.uid ||
    fresh.metadata.deletionTimestamp !== undefined
  )
    return mine;
  for (const object of wanted) {
    const reference = controlledBy({ ...owner, apiVersion: ownerResource.apiVersion, kind: ownerResource.kind });
    const ownerReferences = [
      ...(object.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== owner.metadata.uid),
      reference,
    ];
    const adopted = await tolerant(() =>
      kube.patch(
        resource,
        object.metadata,
        { type: "merge", body: { metadata: { ...precondition(object), ownerReferences } } },
        { signal },
      ),
    );
    if (adopted !== undefined) mine.push(adopted);
  }
  return mine;
}

const precondition = ({ metadata }: KubeObject) => ({ uid: metadata.uid, resourceVersion: metadata.resourceVersion });

/** Another controller claimed the object first, or it was deleted; its next change leads to a new pass. */
async function tolerant<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isConflict(error) || isNotFound(error) || isInvalid(error)) return undefined;
    throw error;
  }
}
