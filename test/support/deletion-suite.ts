import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../../src/api/kinds/machine-os-build.ts";
import { annotations, labels } from "../../src/api/names.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { isForbidden } from "../../src/kube/kube-error.ts";
import { admissionPolicies } from "../../src/operator/admission-policies.ts";
import { untilSeen } from "./until-seen.ts";

const kinds: readonly (Resource & { crd(): unknown })[] = [
  MachineConfig,
  MachineConfigPool,
  MachineConfigNode,
  MachineOSBuild,
];
const owner = "attack-deletion";
const none = { infrastructure: false, osImageStreams: false, osImageStream: false, internalReleaseImage: false };
const inUse = (name: string) => name.startsWith("rendered-config-in-use-");
const nameOf = (letter: string) => `rendered-worker-${letter.repeat(32)}`;

async function refusalOf(kube: KubeClient, name: string): Promise<string> {
  try {
    await kube.delete(MachineConfig, { name });
    return "";
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return (error as Error).message;
  }
}

/** The kinds, one object of each that uses a config, and the policies; no controller, and no webhook. */
async function prepare(kube: KubeClient): Promise<void> {
  for (const kind of kinds) await kube.apply(kubernetes.CustomResourceDefinition, kind.crd() as never, { owner });
  for (const kind of kinds)
    await untilSeen(
      `${kind.plural} are served`,
      () =>
        kube.list(kind).then(
          () => true,
          () => false,
        ),
      (isServed) => isServed,
    );
  const apply = <T extends KubeObject>(resource: Resource<T>, manifest: object, subresource?: "status") =>
    kube.apply(resource, manifest as never, { owner, ...(subresource === undefined ? {} : { subresource }) });
  for (const letter of "abcdef") await apply(MachineConfig, { metadata: { name: nameOf(letter) }, spec: {} });
  await apply(MachineConfig, { metadata: { name: "99-own" }, spec: {} });
  const selector = { matchLabels: { [labels.role]: "worker" } };
  await apply(MachineConfigPool, {
    metadata: { name: "worker", annotations: { [annotations.quarantined]: JSON.stringify([nameOf("e")]) } },
    spec: { machineConfigSelector: selector, nodeSelector: selector, configuration: { name: nameOf("a") } },
  });
  // A machine that has no MachineConfigNode yet.
  await apply(kubernetes.Node, {
    metadata: { name: "attack-deletion-0", annotations: { [annotations.currentConfig]: nameOf("b") } },
  });
  await apply(MachineConfigNode, {
    metadata: { name: "attack-deletion-1" },
    spec: {
      node: { name: "attack-deletion-1" },
      pool: { name: "worker" },
      configVersion: { desired: nameOf("c") },
    },
  });
  await apply(MachineOSBuild, {
    metadata: { name: "attack-deletion" },
    spec: {
      machineConfig: { name: nameOf("d") },
      machineOSConfig: { name: "worker" },
      renderedImagePushSpec: "registry.example/os:1",
    },
  });
  const manifests = admissionPolicies(none, { image: "suite", isolation: "userNamespace", defaultOptIn: false }).filter(
    ({ metadata }) => inUse(metadata.name),
  );
  for (const manifest of manifests)
    await kube.apply(
      manifest.kind === "ValidatingAdmissionPolicy"
        ? kubernetes.ValidatingAdmissionPolicy
        : kubernetes.ValidatingAdmissionPolicyBinding,
      manifest,
      { owner },
    );
  // A real API server takes up a policy a moment after it is stored.
  for (const letter of "abcde")
    await untilSeen(
      `the policy for ${letter}`,
      async () => {
        await apply(MachineConfig, { metadata: { name: nameOf(letter) }, spec: {} });
        return refusalOf(kube, nameOf(letter));
      },
      (told) => told.includes("is in use by"),
    );
}

/** A config → what uses it. */
const users = {
  a: "pool worker (target)",
  b: "node attack-deletion-0 (currentConfig)",
  c: "MachineConfigNode attack-deletion-1 (spec)",
  d: "MachineOSBuild attack-deletion (spec)",
  e: "pool worker (quarantined)",
};
/** How each refusal begins, and what it says to do. */
export const refusals = Object.entries(users).map(
  ([letter, user]) => `${nameOf(letter)} is in use by ${user}: bring them to another configuration first`,
);

/**
 * Makes objects that use configs, on an API server of the test's own, and attempts to delete the configs.
 *
 * @returns the refusals, and the configs that could be deleted.
 */
export async function attackDeletions(
  kube: KubeClient,
): Promise<{ readonly refused: readonly string[]; readonly gone: readonly string[] }> {
  await prepare(kube);
  const refused: string[] = [];
  for (const letter of Object.keys(users)) {
    const told = await refusalOf(kube, nameOf(letter));
    const [, who, remedy] =
      /(rendered-\S+ is in use by [^:]*: ).*(bring them to another configuration first)/.exec(told) ?? [];
    refused.push(`${who}${remedy}`);
  }
  // A rendered one without a user, and a user's own.
  for (const name of [nameOf("f"), "99-own"]) await refusalOf(kube, name);
  // And one whose last user goes.
  await kube.delete(MachineOSBuild, { name: "attack-deletion" });
  await untilSeen(
    "the config of the build goes",
    () => refusalOf(kube, nameOf("d")).catch(String),
    (told) => told === "",
  );
  const left = (await kube.list(MachineConfig)).items.map(({ metadata }) => metadata.name);
  return { refused, gone: [...Array.from("abcdef", nameOf), "99-own"].filter((name) => !left.includes(name)) };
}
/** Those that nothing uses, or nothing any more. */
export const deletable = [nameOf("d"), nameOf("f"), "99-own"];

/** Removes the kinds, after {@link attackDeletions}. @returns the kinds that are left. */
export async function removeKinds(kube: KubeClient): Promise<readonly string[]> {
  const own = kinds.map(({ plural, group }) => `${plural}.${group}`);
  for (const name of own) await kube.delete(kubernetes.CustomResourceDefinition, { name });
  return untilSeen(
    "the kinds are gone",
    async () =>
      (await kube.list(kubernetes.CustomResourceDefinition)).items
        .map(({ metadata }) => metadata.name)
        .filter((name) => own.includes(name)),
    (left) => left.length === 0,
  );
}
