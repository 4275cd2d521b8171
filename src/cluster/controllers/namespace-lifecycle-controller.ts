import { type Namespace, kubernetes } from "../../api/foreign/kubernetes.ts";
import { type Controller, watching } from "../../kube/controller.ts";
import { type KubeClient, pathOf } from "../../kube/kube-client.ts";
import { KubeError, isNotFound } from "../../kube/kube-error.ts";
import { done } from "../../kube/outcome.ts";
import { setCondition } from "../../api/schema/conditions.ts";
import { servedKinds } from "./served-kinds.ts";
import { writeStatus } from "./write-status.ts";

/** The finalizer in a namespace's spec that stands for its content: k8s.io/api core/v1 (master) FinalizerKubernetes. */
const contentFinalizer = "kubernetes";
/** Pods take their time to end, and so do finalizers of others. */
const reconcileAfterSeconds = 0.5;

/** Empties namespaces that are deleted, then lets them go. */
export function namespaceLifecycleController(): Controller {
  return {
    name: "namespace-lifecycle",
    watches: [
      watching<Namespace>({
        resource: kubernetes.Namespace,
        concerns: ({ key, after }) => (after?.metadata.deletionTimestamp === undefined ? [] : [key]),
      }),
    ],
    owns: ["Namespace.spec.finalizers", "Namespace.status"],
    workers: 2,

    async reconcile(name, { caches, kube, clock, signal }) {
      const namespace = caches.of(kubernetes.Namespace).get(name);
      if (namespace?.metadata.deletionTimestamp === undefined) return done();
      const finalizers = (namespace.spec as { finalizers?: string[] } | undefined)?.finalizers ?? [];
      if (!finalizers.includes(contentFinalizer)) return done();

      const left = await empty(kube, name, signal);
      if (left.size > 0) {
        const remaining = [...left].toSorted(([a], [b]) => (a < b ? -1 : 1));
        const held = new Map<string, number>();
        for (const [, { finalizers: holding }] of remaining)
          for (const [finalizer, count] of holding) held.set(finalizer, (held.get(finalizer) ?? 0) + count);
        const now = clock.now();
        let conditions = setCondition(
          namespace.status?.conditions,
          {
            type: "NamespaceContentRemaining",
            status: "True",
            reason: "SomeResourcesRemain",
            message: `Some resources are remaining: ${remaining.map(([kind, { count }]) => `${kind} has ${count} resource instances`).join(", ")}`,
          },
          now,
        );
        conditions = setCondition(
          conditions,
          held.size === 0
            ? {
                type: "NamespaceFinalizersRemaining",
                status: "False",
                reason: "ContentHasNoFinalizers",
                message: "All content-preserving finalizers finished",
              }
            : {
                type: "NamespaceFinalizersRemaining",
                status: "True",
                reason: "SomeFinalizersRemain",
                message: `Some content in the namespace has finalizers remaining: ${[...held].map(([finalizer, count]) => `${finalizer} in ${count} resource instances`).join(", ")}`,
              },
          now,
        );
        await writeStatus(kube, kubernetes.Namespace, namespace, { ...namespace.status, conditions }, signal);
        return done(reconcileAfterSeconds);
      }
      const body = {
        ...namespace,
        apiVersion: "v1",
        kind: "Namespace",
        spec: { ...namespace.spec, finalizers: finalizers.filter((finalizer) => finalizer !== contentFinalizer) },
      };
      await kube.request(
        {
          method: "PUT",
          target: pathOf(kubernetes.Namespace, { name }, "finalize"),
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        },
        { signal },
      );
      return done();
    },
  };
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
  await Promise.all(
    kinds.map(async ({ resource, verbs }) => {
      try {
        let { items } = await kube.list(resource, { namespace }, { signal });
        const fresh = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
        if (fresh.length > 0) {
          if (verbs.includes("deletecollection")) {
            const body = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background" };
            await kube.request(
              {
                method: "DELETE",
                target: pathOf(resource, { namespace }),
                headers: { "content-type": "application/json" },
                body: JSON.stringify(body),
              },
              { signal },
            );
          } else {
            for (const { metadata } of fresh) await kube.delete(resource, metadata, { signal });
          }
          ({ items } = await kube.list(resource, { namespace }, { signal }));
        }
        if (items.length === 0) return;
        const finalizers = new Map<string, number>();
        for (const { metadata } of items)
          for (const finalizer of metadata.finalizers ?? [])
            finalizers.set(finalizer, (finalizers.get(finalizer) ?? 0) + 1);
        left.set(resource.group === "" ? `${resource.plural}.` : `${resource.plural}.${resource.group}`, {
          count: items.length,
          finalizers,
        });
      } catch (error) {
        // The kind itself has gone, and its objects with it.
        if (!isNotFound(error) && !(error instanceof KubeError && error.httpStatus === 405)) throw error;
      }
    }),
  );
  return left;
}
