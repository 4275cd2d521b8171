import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import { NodeBinding } from "../api/kinds/node-binding.ts";
import { fieldManagers, namespace, objects } from "../api/names.ts";
import { refusedCertificates } from "../core/join/refused-certificates.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import { refusalsLeftOut } from "./reports.ts";

const key = [objects.refusedCertificates];
const refusedMap = { namespace, fieldSelector: `metadata.name=${objects.refusedCertificates}` } as const;

/** The fields of a binding that decide about refusals. */
const decisiveOf = (binding: NodeBinding | undefined) =>
  binding === undefined
    ? undefined
    : [
        binding.spec.revoked,
        binding.spec.certificates,
        binding.spec.formerCertificates,
        binding.spec.formerExpiresAt,
        binding.spec.exclusive,
        binding.spec.joinedAt,
        ...(binding.spec.revoked === true ? [binding.spec.expiresAt] : []),
      ];

/**
 * Keeps the ConfigMap by which an admission policy refuses certificate requests of former machines. All of them are in one
 * object: a policy that had each NodeBinding as a parameter would be evaluated as often as there are bindings.
 */
export function refusalController(): Controller {
  const memory: RefusalMemory = { leftOut: 0 };
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

    async reconcile(name, context): Promise<Outcome> {
      const { caches, kube, clock, signal } = context;
      const now = clock.now();
      const present = caches.of(kubernetes.ConfigMap, refusedMap).list()[0];
      const { entries, until, leftOut } = refusedCertificates(caches.of(NodeBinding).list(), now, present?.data);
      reportLeftOut(leftOut, memory, context);
      if (!equalValues(present?.data ?? {}, entries))
        await kube.apply(
          kubernetes.ConfigMap,
          { metadata: { name, namespace }, data: entries },
          // An entry that was edited holds back no other one.
          { owner: fieldManagers.refusals, force: true, signal },
        );
      return done(until === undefined ? undefined : (until - now) / 1000 + 1);
    },
  };
}

interface RefusalMemory {
  /** Entries for which there was no room at the last pass. */
  leftOut: number;
}

/** Reports once that the object has no room for all entries. */
function reportLeftOut(leftOut: number, memory: RefusalMemory, { report }: Pick<Context, "report">): void {
  if (leftOut > 0 && memory.leftOut === 0) report(refusalsLeftOut(leftOut));
  memory.leftOut = leftOut;
}
