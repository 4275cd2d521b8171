import { kubernetes } from "../api/foreign/kubernetes.ts";
import { fieldManagers, namespace } from "../api/names.ts";
import { type KubeObject, type Resource, keyOf } from "../api/schema/object.ts";
import { ours, ownNamespaceObject } from "./cluster-sources.ts";
import { type TaskContext, managersInConflict } from "./operator-task.ts";

const owner = fieldManagers.operator;
/** An object that is not watched is applied again after this time, in case it was changed. */
export const reapplyMs = 10 * 60_000;
/** Cluster-scoped objects that outlive the operator. */
const stays: ReadonlySet<string> = new Set(["CustomResourceDefinition", "ControllerConfig"]);

/**
 * The reference's operator, and what lays down its first manifests on a new cluster, write under the names of their
 * processes: openshift/machine-config-operator cmd/machine-config-operator (main), openshift/cluster-bootstrap
 * cmd/cluster-bootstrap (main).
 */
const managersOfReference: ReadonlySet<string> = new Set(["machine-config-operator", "cluster-bootstrap"]);
const isOfReference = (error: unknown): boolean =>
  managersInConflict(error).length > 0 &&
  managersInConflict(error).every((manager) => managersOfReference.has(manager));

/**
 * Applies a manifest unless the object still has the content that was applied last.
 *
 * @param watched The kind is watched: the manifest is applied again as soon as its object is deleted.
 */
export async function applyManifest(
  resource: Resource,
  given: KubeObject,
  context: TaskContext,
  { watched }: { readonly watched: boolean } = { watched: false },
): Promise<void> {
  const { caches, clock, kube, log, memory, signal } = context;
  // Kinds and settings stay: they hold what administrators wrote.
  const manifest = resource.namespaced || stays.has(resource.kind) ? given : belonging(given, context);
  const id = idOf(resource.kind, keyOf(manifest));
  const text = JSON.stringify(manifest);
  const before = memory.applied.get(id);
  const gone =
    watched && caches.of(resource, resource.namespaced ? ours : undefined).get(keyOf(manifest)) === undefined;
  if (!gone && before?.text === text && clock.monotonic() - before.at < reapplyMs) return;
  try {
    await kube.apply(resource, manifest, { owner, signal });
  } catch (error) {
    // On a cluster that the reference's operator set up, objects with its names are taken over from that operator only.
    if (!isOfReference(error)) throw error;
    await kube.apply(resource, manifest, { owner, force: true, signal });
    log.info({ object: id }, "taken over from the reference's operator");
  }
  memory.applied.set(id, { text, at: clock.monotonic() });
}

/** Whether this process has applied a manifest, in whichever version. */
export const isApplied = (manifest: KubeObject, { memory }: Pick<TaskContext, "memory">): boolean =>
  memory.applied.has(idOf(manifest.kind, keyOf(manifest)));

const idOf = (kind: string, key: string) => `${kind}/${key}`;

/** Applies manifests of several kinds, in their order; a kind that is not among `kinds` is left out. */
export async function applyAll(
  kinds: readonly Resource[],
  manifests: readonly KubeObject[],
  context: TaskContext,
): Promise<void> {
  for (const manifest of manifests) {
    const resource = kinds.find(({ kind }) => kind === manifest.kind);
    if (resource !== undefined) await applyManifest(resource, manifest, context);
  }
}

/** The next pass applies a manifest again, even if it was applied before. */
export function forgetApplied(kind: string, key: string, { memory }: TaskContext): void {
  memory.applied.delete(idOf(kind, key));
}

/** The namespace owns objects outside of it, so that they are deleted with it. */
function belonging(manifest: KubeObject, { caches }: TaskContext): KubeObject {
  const uid = caches.of(kubernetes.Namespace, ownNamespaceObject).get(namespace)?.metadata.uid;
  if (uid === undefined) return manifest;
  return {
    ...manifest,
    metadata: {
      ...manifest.metadata,
      ownerReferences: [{ apiVersion: "v1", kind: "Namespace", name: namespace, uid }],
    },
  };
}
