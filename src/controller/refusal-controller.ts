import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { fieldManagers, namespace, objects } from "../api/names.ts";
import { refusedCertificates } from "../core/join/refused-certificates.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Controller, watching } from "../kube/controller.ts";
import { type Outcome, done } from "../kube/outcome.ts";

const key = [objects.refusedCertificates];
const refusedMap = { namespace, fieldSelector: `metadata.name=${objects.refusedCertificates}` } as const;

/** The fields of a binding that decide about refusals. */
const decisiveOf = (binding: NodeBinding | undefined) =>
  binding === undefined || (binding.spec.revoked !== true && binding.spec.formerCertificates === undefined)
    ? undefined
    : [binding.spec.revoked, binding.spec.formerCertificates, binding.spec.expiresAt, binding.spec.formerExpiresAt];

/**
 * Keeps the ConfigMap by which an admission policy refuses certificate requests of former machines. All of them are in one
 * object: a policy that had each NodeBinding as a parameter would be evaluated as often as there are bindings.
 */
export function refusalController(): Controller {
  return {
    name: "refusals",
    watches: [
      watching<NodeBinding>({
        resource: NodeBinding,
        concerns: ({ before, after }) => (equalValues(decisiveOf(before), decisiveOf(after)) ? [] : key),
      }),
      watching<ConfigMap>({ resource: kubernetes.ConfigMap, selection: refusedMap, concerns: () => key }),
    ],
    owns: ["ConfigMap/refused-node-certificates"],

    async reconcile(name, { caches, kube, clock, signal }): Promise<Outcome> {
      const now = clock.now();
      const { entries, until } = refusedCertificates(caches.of(NodeBinding).list(), now);
      const present = caches.of(kubernetes.ConfigMap, refusedMap).list()[0];
      if (!equalValues(present?.data ?? {}, entries))
        await kube.apply(
          kubernetes.ConfigMap,
          { metadata: { name, namespace }, data: entries },
          { owner: fieldManagers.refusals, signal },
        );
      return done(until === undefined ? undefined : (until - now) / 1000 + 1);
    },
  };
}
