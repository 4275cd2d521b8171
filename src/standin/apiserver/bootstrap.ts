import { defaultRoles } from "./access/default-roles.ts";
import { type Engine, keyInStore } from "./requests/engine.ts";
import type { KubeObject, Served } from "./schema/contract.ts";
import { cloneJson } from "./schema/json-values.ts";
import { timestamp } from "./schema/timestamp.ts";

export interface FirstObjectsOptions {
  /** PEM; published to every namespace as ConfigMap `kube-root-ca.crt`, so that pods can trust this server. */
  readonly rootCertificates?: string;
}

const namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];

/**
 * Makes the initial objects: namespaces, roles and, with each namespace, its default service account and root
 * certificates. The last two are the controller manager's work on a real cluster; here they are created with the
 * namespace, so that the first pod does not have to wait for them.
 */
export function writeFirstObjects(engine: Engine, options: FirstObjectsOptions): void {
  const furnish = (namespace: string) => {
    establish(engine, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default", namespace } });
    if (options.rootCertificates !== undefined) {
      establish(engine, {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "kube-root-ca.crt", namespace },
        data: { "ca.crt": options.rootCertificates },
      });
    }
  };
  for (const { object } of engine.live.list("namespaces"))
    if (object.metadata.deletionTimestamp === undefined) furnish(object.metadata.name ?? "");
  engine.live.subscribe({ resource: "namespaces" }, ({ type, live }) => {
    if (type === "ADDED") furnish(live.key.name);
  });
  for (const name of namespaces)
    establish(engine, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name, labels: { "kubernetes.io/metadata.name": name } },
    });
  for (const role of defaultRoles) establish(engine, cloneJson(role));
}

/** Stores an object of our own making, unless there is one already. */
function establish(engine: Engine, object: KubeObject): void {
  const { apiVersion, kind, metadata } = object;
  const slash = apiVersion.indexOf("/");
  const served: Served | undefined = engine.catalog.findKind(
    slash < 0 ? "" : apiVersion.slice(0, slash),
    apiVersion.slice(slash + 1),
    kind,
  );
  if (served === undefined) return;
  const key = keyInStore(served, { namespace: metadata.namespace ?? "", name: metadata.name ?? "" });
  if (engine.live.get(key) !== undefined) return;
  metadata.uid = engine.random.uuid();
  metadata.creationTimestamp = timestamp(engine.clock.now());
  served.schema.applyDefaults(object);
  served.definition.prepare(object, undefined);
  engine.live.create(key, object);
}
