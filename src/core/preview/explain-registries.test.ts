import { describe, expect, test } from "vitest";
import { type ImageMirrors, type ImagePolicySpec, type RegistrySources } from "../../api/foreign/openshift.ts";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labels } from "../../api/names.ts";
import { type KubeObject, keyOf } from "../../api/schema/object.ts";
import { type RegistryObjects, noRegistries } from "../runtime/registry-objects.ts";
import { explainRegistryObject } from "./explain-registries.ts";
import { explanationText } from "./explanation.ts";
import { planRegistries } from "./plan-registries.ts";

const object = (kind: string, name: string, spec: object, namespace?: string) => ({
  apiVersion: "config.openshift.io/v1",
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  spec,
});
const digests = (name: string, ...imageDigestMirrors: readonly ImageMirrors[]) =>
  object("ImageDigestMirrorSet", name, { imageDigestMirrors });
const image = (registrySources: RegistrySources) => object("Image", "cluster", { registrySources });
const policy = (...scopes: readonly string[]): ImagePolicySpec => ({
  scopes,
  policy: { rootOfTrust: { policyType: "PublicKey", publicKey: { keyData: "a2V5" } } },
});
const clusterPolicy = object("ClusterImagePolicy", "all", policy("quay.io/team"));
const ownPolicy = object("ImagePolicy", "own", policy("quay.io/team/app"), "web");

const pools = ["master", "worker"].map(
  (name) =>
    ({
      metadata: { name, labels: { [labels.builtInPool]: "" } },
      spec: { machineConfigSelector: { matchLabels: { [labels.role]: name } } },
    }) as unknown as MachineConfigPool,
);
const theirs = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfig",
  metadata: { name: "99-worker-mirror", labels: { [labels.role]: "worker" } },
  spec: {
    config: {
      ignition: { version: "3.4.0" },
      storage: { files: [{ path: "/etc/containers/registries.conf", contents: { source: "data:,theirs" } }] },
    },
  },
} as MachineConfig;
const strange = {
  ...theirs,
  metadata: { ...theirs.metadata, name: "99-worker-strange" },
  spec: {
    config: {
      ignition: { version: "3.4.0" },
      storage: { files: [{ path: "/etc/containers/registries.d/x.yaml", contents: { source: "data:,docker:%20x" } }] },
    },
  },
} as MachineConfig;
const controllerConfig = { kind: "ControllerConfig", metadata: { name: "c", uid: "1" } } as ControllerConfig;
const team = { source: "quay.io/team", mirrors: ["mirror.example.com/team"] };

/** How the first object is explained in a cluster that has all of them. */
function explained(
  objects: readonly [KubeObject, ...KubeObject[]],
  cluster: { readonly written?: boolean; readonly release?: string; readonly others?: readonly MachineConfig[] } = {},
): string {
  const of = <T>(kind: string) => objects.filter((one) => one.kind === kind) as unknown as readonly T[];
  const all: RegistryObjects = {
    image: of<KubeObject>("Image")[0],
    digestMirrorSets: of("ImageDigestMirrorSet"),
    tagMirrorSets: of("ImageTagMirrorSet"),
    contentSourcePolicies: [],
    clusterImagePolicies: of("ClusterImagePolicy"),
    imagePolicies: of("ImagePolicy"),
    releaseImage: cluster.release,
  };
  const around = { pools, machineConfigs: [], controllerConfig };
  const { machineConfigs } =
    cluster.written === false ? around : planRegistries({ before: noRegistries, after: all }, around);
  return explanationText(
    explainRegistryObject(
      objects[0],
      all,
      { ...around, machineConfigs: [...machineConfigs, ...(cluster.others ?? [])] },
      0,
    ),
  );
}

describe("an object about registries", () => {
  test.for([
    {
      title: "is on machines, and which lines it writes",
      objects: [digests("a", team)],
      says: [
        "ImageDigestMirrorSet/a is in 99-master-generated-registries, 99-worker-generated-registries",
        "/etc/containers/registries.conf: quay.io/team: mirror mirror.example.com/team for digests (spec.imageDigestMirrors[0].mirrors[0])",
        "What to do: nothing",
      ],
    },
    {
      title: "is in a MachineConfig whose file a person's replaces",
      objects: [digests("a", team)],
      cluster: { others: [theirs] },
      says: [
        "99-worker-generated-registries, but machines of pool worker get /etc/containers/registries.conf from 99-worker-mirror, which replaces it whole.",
        "take /etc/containers/registries.conf out of the MachineConfig 99-worker-mirror",
      ],
    },
    {
      title: "is not written yet",
      objects: [digests("a", team)],
      cluster: { written: false },
      says: ["is not yet in the MachineConfigs of pool master, worker", "What happens next:", "What to do: nothing"],
    },
    {
      title: "is wrong: the field, and what to do",
      objects: [clusterPolicy, image({ allowedRegistries: ["allowed.example.com"] })],
      says: [
        "ClusterImagePolicy/all is refused, and machines keep what they have: spec.scopes[0] quay.io/team is in none of the allowed registries",
        "What to do:\n  add it to spec.registrySources.allowedRegistries there, or take the scope out",
      ],
    },
    {
      title: "contradicts another one: both are told",
      objects: [
        digests("a", team),
        object("ImageTagMirrorSet", "b", { imageTagMirrors: [{ ...team, mirrorSourcePolicy: "NeverContactSource" }] }),
      ],
      says: [
        "ImageDigestMirrorSet/a is refused, and machines keep what they have: spec.imageDigestMirrors[0].mirrorSourcePolicy must be the same in every rule for quay.io/team; ImageTagMirrorSet/b",
        "What to do:\n  write NeverContactSource here, or AllowContactingSource there",
      ],
    },
    {
      title: "waits for another one",
      objects: [digests("a", team), clusterPolicy, image({ allowedRegistries: ["allowed.example.com"] })],
      says: ["ImageDigestMirrorSet/a waits", "What to do:\n  correct ClusterImagePolicy/all: spec.scopes[0]"],
    },
    {
      title: "has no say, because a policy of the cluster has",
      objects: [ownPolicy, clusterPolicy],
      says: [
        "ImagePolicy/web/own does not decide about quay.io/team/app: a ClusterImagePolicy does",
        "What to do:\n  take these scopes out",
      ],
    },
    {
      title: "has no place while files of machines are not read, and whose they are",
      objects: [ownPolicy],
      cluster: { others: [strange], written: false },
      says: [
        "ImagePolicy/web/own is refused",
        "of MachineConfig 99-worker-strange (/etc/containers/registries.d/x.yaml: docker is no object)",
        "What to do:\n  correct MachineConfig 99-worker-strange: write it as plain YAML",
      ],
    },
    {
      title: "stays on machines that have it while their files are not read",
      objects: [ownPolicy],
      cluster: { others: [strange] },
      says: ["ImagePolicy/web/own is in 99-master-generated-registries, 99-worker-generated-registries"],
    },
    {
      title: "says nothing",
      objects: [digests("a", { source: "quay.io/team", mirrors: ["quay.io/team"] })],
      says: ["says nothing that machines would follow"],
    },
    {
      title: "is written, and has no effect",
      objects: [digests("a", team), image({ blockedRegistries: ["quay.io"] })],
      says: [
        "Warnings:\n  spec.imageDigestMirrors[0].source has no effect: machines refuse images of quay.io/team, from mirrors as well, because Image/cluster",
      ],
    },
    {
      title: "leaves only mirrors for the release",
      objects: [digests("a", { ...team, mirrorSourcePolicy: "NeverContactSource" })],
      cluster: { release: `quay.io/team/release@sha256:${"a".repeat(64)}` },
      says: ["Warnings:", "lets machines pull the image of the release", "only as mirror.example.com/team/release@"],
    },
  ] as const satisfies readonly {
    title: string;
    objects: readonly KubeObject[];
    cluster?: object;
    says: readonly string[];
  }[])("$title [explain-registries-1]", ({ objects, says, ...given }) => {
    const text = explained(objects, "cluster" in given ? given.cluster : {});
    for (const words of says) expect(text).toContain(words);
  });

  test("writes nothing for the scopes that a policy of the cluster decides about [explain-registries-3]", () => {
    expect(explained([ownPolicy, clusterPolicy])).not.toContain("Writes:");
    const both = object("ImagePolicy", "own", policy("quay.io/team/app", "quay.io/other"), "web");
    const text = explained([both, clusterPolicy]);
    expect(text).toContain("/etc/crio/policies/web.json: quay.io/other: signed (spec.scopes[1])");
    expect(text).not.toContain("quay.io/team/app: sign");
  });

  test("is named as it is asked for [explain-registries-2]", () => {
    const all: RegistryObjects = {
      image: undefined,
      digestMirrorSets: [],
      tagMirrorSets: [],
      contentSourcePolicies: [],
      clusterImagePolicies: [],
      imagePolicies: [ownPolicy],
      releaseImage: undefined,
    };
    const explanation = explainRegistryObject(ownPolicy, all, { pools: [], machineConfigs: [], controllerConfig }, 0);
    expect(explanation.subject).toBe(`imagepolicy/${keyOf(ownPolicy)}`);
    expect(explanation.reason).toBe("NoPool");
  });
});
