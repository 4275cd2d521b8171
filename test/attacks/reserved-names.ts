import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { labels, namespace, objects } from "../../src/api/names.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { isForbidden } from "../../src/kube/kube-error.ts";
import { admissionPolicies } from "../../src/operator/admission-policies.ts";
import { untilSeen } from "../support/until-seen.ts";

/** Somebody who may write MachineConfigs: a policy of the cluster demands the role of one pool in them. */
export const author = "infra-author";
export const controller = `system:serviceaccount:${namespace}:${objects.controller}`;
const owner = "attack-names";
const none = { infrastructure: false, osImageStreams: false, internalReleaseImage: false };
const hash = "a".repeat(32);
const reserved = [
  `rendered-worker-${hash}`,
  "96-worker-generated-kubelet",
  "97-master-generated-credentialproviderconfig",
  "99-worker-generated-kubelet",
  "99-worker-generated-kubelet-1",
  "99-worker-generated-containerruntime",
  "99-master-generated-registries",
  "00-worker",
  "00-master",
  "01-worker-kubelet",
  "01-master-container-runtime",
  "00-arbiter",
  "01-arbiter-kubelet",
  "01-arbiter-container-runtime",
];
const free = [
  "99-own",
  "rendered-own",
  "50-worker-generated-kubelet",
  "99-worker-registries",
  "01-infra-kubelet",
  "00-worker-own",
];

const configOf = (name: string, kernelArguments: readonly string[] = []): MachineConfig => ({
  apiVersion: MachineConfig.apiVersion,
  kind: MachineConfig.kind,
  metadata: { name, labels: { [labels.role]: "infra" } },
  spec: { config: { ignition: { version: "3.4.0" } }, kernelArguments: [...kernelArguments] },
});

async function outcomeOf(work: Promise<unknown>): Promise<"done" | "refused"> {
  try {
    await work;
    return "done";
  } catch (error) {
    if (!isForbidden(error) || !(error as Error).message.includes("names of this form")) throw error;
    return "refused";
  }
}

const resourceOf = (object: KubeObject): Resource =>
  Object.values<Resource>(kubernetes).find(({ kind }) => kind === object.kind) ?? (MachineConfig as Resource);

/** The kind, the policy, and two accounts that may write MachineConfigs. */
export async function prepareReservedNames(kube: KubeClient): Promise<void> {
  await kube.apply(kubernetes.CustomResourceDefinition, MachineConfig.crd() as never, { owner });
  await untilSeen(
    "MachineConfigs are served",
    () =>
      kube.list(MachineConfig).then(
        () => true,
        () => false,
      ),
    (isServed) => isServed,
  );
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: owner };
  const objectsToMake = [
    {
      apiVersion,
      kind: "ClusterRole",
      metadata: { name: owner },
      rules: [{ apiGroups: [MachineConfig.group], resources: [MachineConfig.plural], verbs: ["*"] }],
    },
    {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: { name: owner },
      roleRef,
      subjects: [
        { apiGroup: "rbac.authorization.k8s.io", kind: "User", name: author },
        { apiGroup: "rbac.authorization.k8s.io", kind: "User", name: controller },
      ],
    },
    ...admissionPolicies(none, { image: "suite", isolation: "userNamespace", defaultOptIn: false }).filter(
      ({ metadata }) => metadata.name.startsWith("rendered-and-generated-config-names"),
    ),
  ] as readonly KubeObject[];
  for (const object of objectsToMake) await kube.create(resourceOf(object), object);
}

/**
 * Has the author take names of the controller, and change what the controller has made.
 *
 * @returns each attempt, and what came of it.
 */
export async function takeReservedNames({
  admin,
  as,
}: {
  readonly admin: KubeClient;
  readonly as: (user: string) => KubeClient;
}): Promise<readonly (readonly [attempt: string, outcome: string])[]> {
  const [of, ours] = [as(author), as(controller)];
  const [first = ""] = reserved;
  // A real API server takes up a policy a moment after it is stored.
  await untilSeen(
    "the policy is in force",
    async () => {
      const outcome = await outcomeOf(of.create(MachineConfig, configOf(first)));
      if (outcome === "done") await admin.delete(MachineConfig, { name: first });
      return outcome;
    },
    (outcome) => outcome === "refused",
  );
  const found: (readonly [string, string])[] = [];
  const attempt = async (what: string, work: Promise<unknown>) => found.push([what, await outcomeOf(work)]);
  for (const name of [...reserved, ...free])
    await attempt(`author makes ${name}`, of.create(MachineConfig, configOf(name)));
  for (const name of reserved) await attempt(`controller makes ${name}`, ours.create(MachineConfig, configOf(name)));
  const patch = (body: object) => ({ type: "merge", body }) as const;
  const init = { spec: { kernelArguments: ["init=/evil"] } };
  const [role, note] = [
    { metadata: { labels: { [labels.role]: "master" } } },
    { metadata: { annotations: { "example.com/seen": "yes" } } },
  ];
  await attempt("author changes contents", of.patch(MachineConfig, { name: first }, patch(init)));
  await attempt("author changes the role", of.patch(MachineConfig, { name: first }, patch(role)));
  await attempt("author notes something", of.patch(MachineConfig, { name: first }, patch(note)));
  await attempt("controller changes contents", ours.patch(MachineConfig, { name: first }, patch(init)));
  await attempt("administrator changes contents", admin.patch(MachineConfig, { name: first }, patch(role)));
  return found;
}

/** What {@link takeReservedNames} is to find. */
export const outcomes: readonly (readonly [string, string])[] = [
  ...reserved.map((name) => [`author makes ${name}`, "refused"] as const),
  ...free.map((name) => [`author makes ${name}`, "done"] as const),
  ...reserved.map((name) => [`controller makes ${name}`, "done"] as const),
  ["author changes contents", "refused"],
  ["author changes the role", "refused"],
  ["author notes something", "done"],
  ["controller changes contents", "done"],
  ["administrator changes contents", "done"],
];
