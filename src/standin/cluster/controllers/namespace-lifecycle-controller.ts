import { type Namespace, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { type Controller, watching } from "../../../kube/controller.ts";
import { type KubeClient, metadataListType, mostMetadataBytes, pathOf } from "../../../kube/kube-client.ts";
import { KubeError, isNotFound } from "../../../kube/kube-error.ts";
import { done } from "../../../kube/outcome.ts";
import { setCondition } from "../../../api/schema/conditions.ts";
import type { KubeObject, Resource } from "../../../api/schema/object.ts";
import { andMore } from "../../../core/text/list-text.ts";
import { eachAtOnce } from "../../../ports/each-at-once.ts";
import { AnswerTooLong } from "../../../ports/http.ts";
import { onlyMetadata } from "./only-metadata.ts";
import { type ServedKind, servedKinds } from "./served-kinds.ts";
import { writeStatus } from "./write-status.ts";

/** The finalizer in a namespace's spec that stands for its content: k8s.io/api core/v1 (master) FinalizerKubernetes. */
const contentFinalizer = "kubernetes";
/**
 * Pods take their time to end, and so do finalizers of others: the wait is this part of the time that nothing has left
 * the namespace, within these limits. Each pass reads all that is left, which nobody may ever let go.
 */
const again = { part: 1 / 4, firstSeconds: 0.5, lastSeconds: 60 };
/** Kinds that are read at once: each has a page of its objects in memory. */
const kindsAtOnce = 4;
/** Finalizers that a condition names. Their number is up to whoever wrote the objects. */
const shownFinalizers = 20;

/** How long a namespace has held the same number of objects. */
interface Standstill {
  readonly uid: string | undefined;
  readonly count: number;
  /** Monotonic time. */
  readonly since: number;
}

/** Empties namespaces that are deleted, then lets them go. */
export function namespaceLifecycleController(): Controller {
  const standstills = new Map<string, Standstill>();

  /** Seconds until the next pass. */
  function waitOf(name: string, uid: string | undefined, count: number, now: number): number {
    const before = standstills.get(name);
    const stands = before?.uid === uid && before !== undefined && count >= before.count;
    const since = stands ? before.since : now;
    standstills.set(name, { uid, count, since });
    return Math.min(again.lastSeconds, Math.max(again.firstSeconds, (again.part * (now - since)) / 1000));
  }

  return {
    name: "namespace-lifecycle",
    watches: [
      watching<Namespace>({
        resource: kubernetes.Namespace,
        // Once, when the deletion begins: the controller's own conditions are no reason to look again.
        concerns: ({ key, before, after }) =>
          isDeleted(after) && !(isDeleted(before) && before?.metadata.uid === after?.metadata.uid) ? [key] : [],
      }),
    ],
    owns: ["Namespace.spec.finalizers", "Namespace.status"],
    workers: 2,

    async reconcile(name, { caches, kube, clock, signal }) {
      const namespace = caches.of(kubernetes.Namespace).get(name);
      const finalizers = (namespace?.spec as { finalizers?: string[] } | undefined)?.finalizers ?? [];
      if (namespace === undefined || !isDeleted(namespace) || !finalizers.includes(contentFinalizer)) {
        standstills.delete(name);
        return done();
      }
      const left = await empty(kube, name, signal);
      if (left.size > 0) {
        const conditions = conditionsFor(namespace, left, clock.now());
        await writeStatus(kube, kubernetes.Namespace, namespace, { ...namespace.status, conditions }, signal);
        const count = [...left.values()].reduce((sum, kind) => sum + kind.count, 0);
        return done(waitOf(name, namespace.metadata.uid, count, clock.monotonic()));
      }
      await finalize(kube, namespace, finalizers, signal);
      standstills.delete(name);
      return done();
    },
  };
}

const isDeleted = (namespace: Namespace | undefined): boolean => namespace?.metadata.deletionTimestamp !== undefined;

/** What a namespace waits for, as its conditions say it. */
function conditionsFor(namespace: Namespace, left: ReadonlyMap<string, Left>, now: number) {
  const remaining = [...left].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const held = new Map<string, number>();
  for (const [, { finalizers }] of remaining)
    for (const [finalizer, count] of finalizers) held.set(finalizer, (held.get(finalizer) ?? 0) + count);
  const kinds = remaining.map(([kind, { count }]) => `${kind} has ${count} resource instances`);
  const conditions = setCondition(
    namespace.status?.conditions,
    {
      type: "NamespaceContentRemaining",
      status: "True",
      reason: "SomeResourcesRemain",
      message: `Some resources are remaining: ${kinds.join(", ")}`,
    },
    now,
  );
  if (held.size === 0)
    return setCondition(
      conditions,
      {
        type: "NamespaceFinalizersRemaining",
        status: "False",
        reason: "ContentHasNoFinalizers",
        message: "All content-preserving finalizers finished",
      },
      now,
    );
  const shown = [...held]
    .slice(0, shownFinalizers)
    .map(([finalizer, count]) => `${finalizer} in ${count} resource instances`);
  if (held.size > shown.length) shown.push(andMore(held.size - shown.length));
  return setCondition(
    conditions,
    {
      type: "NamespaceFinalizersRemaining",
      status: "True",
      reason: "SomeFinalizersRemain",
      message: `Some content in the namespace has finalizers remaining: ${shown.join(", ")}`,
    },
    now,
  );
}

/** Lets an empty namespace go. */
async function finalize(
  kube: KubeClient,
  namespace: Namespace,
  finalizers: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const body = {
    ...namespace,
    apiVersion: "v1",
    kind: "Namespace",
    spec: { ...namespace.spec, finalizers: finalizers.filter((finalizer) => finalizer !== contentFinalizer) },
  };
  await kube.request(
    {
      method: "PUT",
      target: pathOf(kubernetes.Namespace, { name: namespace.metadata.name }, "finalize"),
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    },
    { signal },
  );
}

interface Left {
  readonly count: number;
  /** Finalizer → objects that it holds. */
  readonly finalizers: ReadonlyMap<string, number>;
}

/** Deletes everything in a namespace. @returns the remaining objects, by `plural.group`. */
async function empty(kube: KubeClient, namespace: string, signal: AbortSignal): Promise<ReadonlyMap<string, Left>> {
  const left = new Map<string, Left>();
  const kinds = (await servedKinds(kube, signal)).filter(
    ({ resource, verbs }) => resource.namespaced && verbs.includes("list") && verbs.includes("delete"),
  );
  const failures: unknown[] = [];
  await eachAtOnce(kinds, kindsAtOnce, async (kind) => {
    try {
      const items = await emptyKind(kube, kind, namespace, signal);
      if (items.length > 0) left.set(`${kind.resource.plural}.${kind.resource.group}`, leftOf(items));
    } catch (error) {
      // The kind itself has gone, and its objects with it. A kind that fails keeps no other one.
      if (!isNotFound(error) && !(error instanceof KubeError && error.httpStatus === 405)) failures.push(error);
    }
  });
  if (failures.length > 0) throw failures[0];
  return left;
}

function leftOf(items: readonly KubeObject[]): Left {
  const finalizers = new Map<string, number>();
  for (const { metadata } of items)
    for (const finalizer of metadata.finalizers ?? []) finalizers.set(finalizer, (finalizers.get(finalizer) ?? 0) + 1);
  return { count: items.length, finalizers };
}

/** Deletes the objects of one kind. @returns what is left of the remaining ones' metadata. */
async function emptyKind(
  kube: KubeClient,
  { resource, verbs }: ServedKind,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly KubeObject[]> {
  const list = async () =>
    (await kube.list(resource, { namespace }, { signal, metadataOnly: true, keep: deletionOnly })).items;
  const items = await list();
  const fresh = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (fresh.length === 0) return items;
  if (verbs.includes("deletecollection")) await deleteAll(kube, resource, namespace, signal);
  else for (const { metadata } of fresh) await kube.delete(resource, metadata, { signal });
  return list();
}

/** The answer shows all objects that were there; the controller needs none of them. */
async function deleteAll(
  kube: KubeClient,
  resource: Resource<KubeObject>,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const body = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background" };
  try {
    await kube.request(
      {
        method: "DELETE",
        target: pathOf(resource, { namespace }),
        headers: { "content-type": "application/json", accept: `${metadataListType},application/json` },
        body: JSON.stringify(body),
        mostBytes: mostMetadataBytes,
      },
      { signal },
    );
  } catch (error) {
    // The server answers once they are deleted.
    if (!(error instanceof AnswerTooLong)) throw error;
  }
}

/** Bounds memory: how an object is being deleted is all that counts here. */
const deletionOnly = onlyMetadata("namespace", "deletionTimestamp", "finalizers");
