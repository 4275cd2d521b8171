import { describe, expect, test } from "vitest";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { annotations, labels, namespace, objects, signers } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { credentialKey } from "../core/join/certificate-holder.ts";
import { compileAdmissionPolicy, policyRequest } from "../standin/apiserver/schema/validation/cel-policies.ts";
import {
  type ConfigUse,
  usesOfBuild,
  usesOfMachineConfigNode,
  usesOfNode,
  usesOfPool,
} from "../core/pool/retained-configs.ts";
import { admissionPolicies } from "./admission-policies.ts";
import { certificateDigits } from "../core/join/refused-certificates.ts";

interface Manifest extends KubeObject {
  readonly spec: { readonly paramKind?: { readonly kind: string } };
}
const builds = { image: "suite", isolation: "userNamespace", defaultOptIn: false } as const;
const manifests = admissionPolicies(
  { infrastructure: false, osImageStreams: false, internalReleaseImage: false },
  builds,
) as readonly Manifest[];
const name = (letter: string) => `rendered-worker-${letter.repeat(32)}`;

/** Why the policies refuse the deletion of a config while there is one object that might use it; empty: they do not. */
function refusal(config: string, user: KubeObject): string {
  const own = manifests.filter(
    ({ spec, metadata }) => spec.paramKind?.kind === user.kind && metadata.name.includes("in-use"),
  );
  return own
    .flatMap(({ spec }) => {
      const compiled = compileAdmissionPolicy(spec);
      if (compiled.verdict === "refused") throw new Error(JSON.stringify(compiled.errors));
      const decision = compiled.policy.decide(
        policyRequest({
          object: null,
          oldObject: { metadata: { name: config }, spec: {} },
          request: {},
          namespaceObject: null,
        }),
        user,
      );
      if (decision.verdict === "failed") throw new Error(decision.message);
      return decision.verdict === "denied" ? [decision.message] : [];
    })
    .join();
}

const kinds = {
  pool: { ...MachineConfigPool, uses: usesOfPool },
  node: { apiVersion: "v1", kind: "Node", uses: usesOfNode },
  machine: { ...MachineConfigNode, uses: usesOfMachineConfigNode },
  build: { ...MachineOSBuild, uses: usesOfBuild },
} as unknown as Readonly<
  Record<
    string,
    { readonly apiVersion: string; readonly kind: string; readonly uses: (user: KubeObject) => readonly ConfigUse[] }
  >
>;
const noted = (values: object) => ({ metadata: { name: "it", annotations: values } });
const desired = (config: string) => ({ configVersion: { desired: config } });

describe("the API server and the collector agree on what uses a rendered config", () => {
  test.for<readonly [kind: string, user: object]>([
    ["pool", { spec: {} }],
    ["pool", { spec: { configuration: {} }, status: {} }],
    ["pool", { spec: { configuration: { name: name("a") } }, status: { configuration: { name: name("b") } } }],
    [
      "pool",
      {
        ...noted({ [annotations.quarantined]: JSON.stringify([{ config: name("a"), nodes: [] }, name("b")]) }),
        spec: {},
      },
    ],
    ["pool", { ...noted({ [annotations.quarantined]: "" }), spec: { configuration: { name: name("c") } } }],
    ["node", {}],
    ["node", noted({ [annotations.currentConfig]: name("a"), [annotations.desiredConfig]: name("b") })],
    ["node", noted({ [annotations.firstPivotConfig]: name("c"), another: name("a") })],
    ["machine", { spec: desired("NotYetSet") }],
    ["machine", { spec: desired(name("a")), status: {} }],
    ["machine", { spec: desired("x"), status: desired(name("b")) }],
    ["machine", { spec: desired("x"), status: { configVersion: { desired: "x", current: name("c") } } }],
    [
      "machine",
      { ...noted({ [annotations.refusedTargets]: JSON.stringify([{ config: name("a") }]) }), spec: desired("x") },
    ],
    ["build", { spec: { machineConfig: { name: name("b") } } }],
  ])("%s %j [config-in-use-1]", ([kind, given]) => {
    const { apiVersion, kind: named, uses } = kinds[kind] ?? { apiVersion: "", kind: "", uses: () => [] };
    const user = { apiVersion, kind: named, metadata: { name: "it" }, ...given } as KubeObject;
    const used = uses(user);
    for (const config of ["a", "b", "c"].map(name)) {
      const [first] = used.filter((use) => use.config === config);
      const told = refusal(config, user);
      if (first === undefined) expect(told).toBe("");
      else expect(told).toContain(`${config} is in use by ${first.user}: `);
    }
  });
});

test("a user's own config goes, whatever names it [config-in-use-2]", () => {
  const node = { apiVersion: "v1", kind: "Node", ...noted({ [annotations.currentConfig]: "99-own" }) } as KubeObject;
  expect(refusal("99-own", node)).toBe("");
});

/** What a policy answers to an object that replaces another one. */
function answerOf(name: string, object: KubeObject, oldObject: KubeObject | null = null) {
  const policy = manifests.find(({ metadata }) => metadata.name === name) ?? expect.fail();
  const compiled = compileAdmissionPolicy(policy.spec);
  if (compiled.verdict === "refused") throw new Error(JSON.stringify(compiled.errors));
  return compiled.policy.decide(
    policyRequest({
      object: object,
      oldObject: oldObject,
      request: {},
      namespaceObject: null,
    }),
    null,
  );
}

test("a set of pinned images without labels is warned of, with a label to give [admission-policies-pins-1]", () => {
  const set = (has?: Readonly<Record<string, string>>) =>
    ({ metadata: { name: "a", ...(has === undefined ? {} : { labels: has }) }, spec: {} }) as unknown as KubeObject;
  const name = "pinned-image-set-without-pool";
  expect(answerOf(name, set())).toMatchObject({
    verdict: "denied",
    message: expect.stringContaining(`${labels.role}: worker`) as string,
  });
  expect(answerOf(name, set({})).verdict).toBe("denied");
  expect(answerOf(name, set({ [labels.role]: "worker" })).verdict).toBe("allowed");
});

test("names of images that no registry has are warned of, and no other ones [admission-policies-names-1]", () => {
  const pushTo = (name: string) =>
    answerOf("machineosconfig-push-spec", { spec: { renderedImagePushSpec: name } } as unknown as KubeObject).verdict;
  for (const name of [
    "registry.example.com/os:latest",
    "registry:5000/a/b.c_d__e--f/g:v1.2-3_A",
    `localhost:5000/os:${"a".repeat(128)}`,
    "image-registry.openshift-image-registry.svc:5000/openshift-machine-config-operator/os-image:latest",
  ])
    expect([name, pushTo(name)]).toEqual([name, "allowed"]);
  const pinned = (...names: readonly string[]) =>
    answerOf("pinned-image-names", {
      spec: { pinnedImages: names.map((name) => ({ name: `${name}@sha256:${"1".repeat(64)}` })) },
    } as unknown as KubeObject);
  expect(pinned("quay.io/a/b", "r:5000/a").verdict).toBe("allowed");
  expect(pinned("quay.io/a/b", "quay.io/a/B")).toMatchObject({
    verdict: "denied",
    message: expect.stringContaining("the name quay.io/a/B@sha256:") as string,
  });
});

test.for([
  {
    title: "runs a release of it",
    status: { desired: { image: `quay.io/release@sha256:${"1".repeat(64)}` } },
    is: "denied",
  },
  {
    title: "runs another release",
    status: { desired: { image: `quay.io/release@sha256:${"2".repeat(64)}` } },
    is: "allowed",
  },
  { title: "was installed by a tag", status: { desired: { image: "quay.io/release:4.20.1" } }, is: "allowed" },
  { title: "is new, and says nothing yet", status: undefined, is: "allowed" },
])("the deletion of a bundle where the cluster $title: $is [admission-policies-bundle-1]", ({ status, is }) => {
  const all = admissionPolicies({ infrastructure: false, osImageStreams: false, internalReleaseImage: true }, builds);
  const policy = (all as readonly Manifest[]).find(
    ({ metadata }) => metadata.name === "internalreleaseimage-deletion-guard",
  );
  const compiled = compileAdmissionPolicy((policy ?? expect.fail()).spec);
  if (compiled.verdict === "refused") throw new Error(JSON.stringify(compiled.errors));
  const image = `api-int.example.com:22625/openshift/release@sha256:${"1".repeat(64)}`;
  const bundle = {
    metadata: { name: "cluster" },
    spec: {},
    status: { releases: [{ name: "old" }, { name: "a", image }] },
  };
  const decision = compiled.policy.decide(
    policyRequest({
      object: null,
      oldObject: bundle,
      request: {},
      namespaceObject: null,
    }),
    { metadata: { name: "version" }, ...(status === undefined ? {} : { status }) },
  );
  expect(decision.verdict).toBe(is);
});

test("a bundle of releases is warned of: machines serve no registry [admission-policies-bundle-2]", () => {
  const bundle = { metadata: { name: "cluster" }, spec: {} } as unknown as KubeObject;
  expect(answerOf("internalreleaseimage-without-effect", bundle)).toMatchObject({
    verdict: "denied",
    message: expect.stringContaining("name it in an ImageDigestMirrorSet") as string,
  });
  const binding = manifests.find(({ metadata }) => metadata.name === "internalreleaseimage-without-effect-binding");
  expect(binding?.spec).toMatchObject({ validationActions: ["Warn"] });
});

test.for([
  ["1", "allowed"],
  ["50", "allowed"],
  ["1000", "allowed"],
  ["0", "denied"],
  ["1001", "denied"],
  ["many", "denied"],
] as const)("%s machines that fetch at the same time: %s [admission-policies-pins-2]", ([most, verdict]) => {
  const settings = (value?: string) =>
    ({
      metadata: {
        name: objects.machineConfiguration,
        ...(value === undefined ? {} : { annotations: { [annotations.pinnedImagesAtOnce]: value } }),
      },
      spec: {},
    }) as unknown as KubeObject;
  expect(answerOf("machine-configuration-guards", settings(most)).verdict).toBe(verdict);
  // A value that was stored while admission was off blocks no other change.
  expect(answerOf("machine-configuration-guards", settings(most), settings(most)).verdict).toBe("allowed");
  expect(answerOf("machine-configuration-guards", settings(), settings(most)).verdict).toBe("allowed");
});

test.for([
  ["mcs.example.com", "allowed"],
  ["mcs.example.com:443", "allowed"],
  ["192.0.2.1", "allowed"],
  ["2001:db8::1", "allowed"],
  ["[2001:db8::1]:22623", "allowed"],
  ["", "allowed"],
  ["not valid/x", "denied"],
  ["https://mcs.example.com", "denied"],
  ["mcs.example.com/config", "denied"],
  ["user@mcs.example.com", "denied"],
  ["mcs.example.com:", "denied"],
] as const)("%j as the address of the config server: %s [admission-policies-address-1]", ([address, verdict]) => {
  const settings = (value: string) =>
    ({
      metadata: { name: objects.machineConfiguration, annotations: { [annotations.configServerAddress]: value } },
      spec: {},
    }) as unknown as KubeObject;
  expect(answerOf("machine-configuration-guards", settings(address)).verdict).toBe(verdict);
  // A value that was stored while admission was off blocks no other change.
  expect(answerOf("machine-configuration-guards", settings(address), settings(address)).verdict).toBe("allowed");
});

describe("requests of former machines of a node", () => {
  const policy = manifests.find(({ metadata }) => metadata.name === "former-machines-of-nodes") ?? expect.fail();
  const compiled = compileAdmissionPolicy(policy.spec);
  if (compiled.verdict === "refused") throw new Error(JSON.stringify(compiled.errors));
  const [former, holder] = ["f".repeat(64), "a".repeat(64)];
  const end = "2031-01-01T00:00:00Z";
  const own = (digits: string) => `${end} ${digits.slice(0, certificateDigits)} ${"c".repeat(certificateDigits)}`;
  const listed = {
    data: { [former]: end, "node.released": end, "only.taken": own(holder), "only.joining": end },
  };
  const sentWith = (...ids: readonly string[]) => ({ [credentialKey]: ids });

  test.for<{
    title: string;
    node?: string;
    signer?: string;
    extra?: Readonly<Record<string, readonly string[]>>;
    params?: object;
    is: "denied" | "allowed" | "skipped";
  }>([
    { title: "by a certificate of a former machine", extra: sentWith(`X509SHA256=${former}`), is: "denied" },
    { title: "by any other certificate", extra: sentWith(`X509SHA256=${holder}`), is: "allowed" },
    { title: "of a released name", node: "released", extra: sentWith(`X509SHA256=${holder}`), is: "denied" },
    { title: "of a released name, where nothing names certificates", node: "released", is: "denied" },
    { title: "where nothing names certificates", is: "allowed" },
    { title: "by a token", extra: sentWith("JTI=f"), is: "allowed" },
    {
      title: "of a name that another machine had, by a certificate of the holder",
      node: "taken",
      extra: sentWith(`X509SHA256=${holder}`),
      is: "allowed",
    },
    {
      title: "of a name that another machine had, by any other certificate",
      node: "taken",
      extra: sentWith(`X509SHA256=${"b".repeat(64)}`),
      is: "denied",
    },
    { title: "of a name that another machine had, by a token", node: "taken", extra: sentWith("JTI=f"), is: "denied" },
    { title: "of a name that another machine had, where nothing names certificates", node: "taken", is: "allowed" },
    {
      title: "of a name whose new machine has no certificate yet",
      node: "joining",
      extra: sentWith(`X509SHA256=${holder}`),
      is: "denied",
    },
    {
      title: "for a certificate to serve with",
      signer: signers.kubeletServing,
      extra: sentWith(`X509SHA256=${former}`),
      is: "denied",
    },
    { title: "to another signer", signer: "example.com/own", extra: sentWith(`X509SHA256=${former}`), is: "skipped" },
    { title: "where the list is empty", extra: sentWith(`X509SHA256=${former}`), params: {}, is: "allowed" },
  ])("$title: $is [admission-policies-former-1]", ({ node = "w0", signer, extra, params = listed, is }) => {
    const username = `system:node:${node}`;
    const decision = compiled.policy.decide(
      policyRequest({
        object: { spec: { signerName: signer ?? signers.kubeletClient } },
        oldObject: null,
        request: { userInfo: { username, ...(extra === undefined ? {} : { extra }) } },
        namespaceObject: null,
      }),
      { metadata: { name: objects.refusedCertificates }, ...params },
    );
    expect(decision.verdict).toBe(is);
  });

  test("nothing that is missing keeps a machine from renewing [admission-policies-former-2]", () => {
    const binding = manifests.find(({ metadata }) => metadata.name === `${policy.metadata.name}-binding`);
    expect(policy.spec).toMatchObject({ failurePolicy: "Ignore" });
    expect(binding?.spec).toMatchObject({
      validationActions: ["Deny"],
      paramRef: { name: objects.refusedCertificates, namespace, parameterNotFoundAction: "Allow" },
    });
  });
});
