import { type ConfigMap, type Namespace, type ServiceAccount, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { type Controller, watching } from "../../../kube/controller.ts";
import { isAlreadyExists, isNotFound } from "../../../kube/kube-error.ts";
import { done } from "../../../kube/outcome.ts";
import type { ObjectChange } from "../../../kube/watch-cache.ts";
import type { KubeObject } from "../../../api/schema/object.ts";
import { isTerminatingNamespace } from "./make-pods.ts";

const accountName = "default";
const rootCaName = "kube-root-ca.crt";
const rootCaKey = "ca.crt";

/** Gives every namespace its default ServiceAccount and the certificate that its pods trust the API server by. */
export function namespaceDefaultsController(rootCa: string): Controller {
  const concerns = <T extends KubeObject>({ before, after }: ObjectChange<T>): readonly string[] => [
    (after ?? before)?.metadata.namespace ?? "",
  ];
  return {
    name: "namespace-furniture",
    watches: [
      watching<Namespace>({ resource: kubernetes.Namespace }),
      watching<ServiceAccount>({
        resource: kubernetes.ServiceAccount,
        selection: { fieldSelector: `metadata.name=${accountName}` },
        concerns,
      }),
      watching<ConfigMap>({
        resource: kubernetes.ConfigMap,
        selection: { fieldSelector: `metadata.name=${rootCaName}` },
        concerns,
      }),
    ],
    owns: ["ServiceAccount/default", "ConfigMap/kube-root-ca.crt"],

    async reconcile(namespace, { caches, kube, signal }) {
      const there = caches.of(kubernetes.Namespace).get(namespace);
      if (there === undefined || there.metadata.deletionTimestamp !== undefined) return done();
      try {
        if (caches.of(kubernetes.ServiceAccount).get(`${namespace}/${accountName}`) === undefined) {
          await unlessThere(
            kube.create(
              kubernetes.ServiceAccount,
              { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: accountName, namespace } },
              { signal },
            ),
          );
        }
        if (rootCa === "") return done();
        const data = { [rootCaKey]: rootCa };
        const published = caches.of(kubernetes.ConfigMap).get(`${namespace}/${rootCaName}`);
        if (published === undefined)
          await unlessThere(
            kube.create(
              kubernetes.ConfigMap,
              { apiVersion: "v1", kind: "ConfigMap", metadata: { name: rootCaName, namespace }, data },
              { signal },
            ),
          );
        else if (published.data?.[rootCaKey] !== rootCa)
          await kube.patch(
            kubernetes.ConfigMap,
            published.metadata,
            { type: "merge", body: { metadata: { resourceVersion: published.metadata.resourceVersion }, data } },
            { signal },
          );
      } catch (error) {
        if (!isTerminatingNamespace(error) && !isNotFound(error)) throw error;
      }
      return done();
    },
  };
}

async function unlessThere(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
