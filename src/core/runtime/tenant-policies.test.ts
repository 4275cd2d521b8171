import { expect, test } from "vitest";
import { type ImagePolicy, type ImagePolicySpec, openshift } from "../../api/foreign/openshift.ts";
import { ownPolicy, ownRegistriesConf } from "../render/base-configs.ts";
import { decideRegistries, policyStatuses } from "./decide-registries.ts";
import type { RegistryObjects } from "./registry-objects.ts";
import { roomOf } from "./tenant-policies.ts";
import { noneTaken } from "./uncertain-places.ts";

const policy = (namespace: string, name: string, scopes: readonly string[], keyData: string): ImagePolicy => ({
  apiVersion: openshift.ImagePolicy.apiVersion,
  kind: "ImagePolicy",
  metadata: { name, namespace },
  spec: { scopes, policy: { rootOfTrust: { policyType: "PublicKey", publicKey: { keyData } } } },
});

const objectsOf = (...imagePolicies: readonly ImagePolicy[]): RegistryObjects => ({
  image: undefined,
  digestMirrorSets: [],
  tagMirrorSets: [],
  contentSourcePolicies: [],
  clusterImagePolicies: [],
  imagePolicies,
  releaseImage: undefined,
});

const decide = (objects: RegistryObjects) =>
  decideRegistries({
    pool: "worker",
    objects,
    base: { registries: ownRegistriesConf, policy: ownPolicy, taken: noneTaken },
    present: undefined,
    owner: { apiVersion: "v1", kind: "ControllerConfig", metadata: { name: "owner", uid: "1" } },
    generatorVersion: "1",
  });

const scopes = (count: number, of = "a") => Array.from({ length: count }, (_, i) => `${of}.example.com/team-${i}`);

test.for([
  { title: "keys of any size", policies: [100, 1000, 3000, 8000].map((size) => ({ count: 60, size })) },
  { title: "many scopes", policies: Array.from({ length: 40 }, () => ({ count: 256, size: 60 })) },
  { title: "many namespaces", policies: Array.from({ length: 2000 }, () => ({ count: 1, size: 60 })) },
])(
  "policies of namespaces take 512 Ki characters of a configuration: $title [runtime-tenant-policies-1]",
  ({ policies }) => {
    const objects = policies.map(({ count, size }, i) =>
      policy(`ns-${i}`, "p", scopes(count, `h${i}`), "+".repeat(size)),
    );
    const decision = decide(objectsOf(...objects));
    if (decision.do !== "write") throw new Error(decision.do);
    expect(JSON.stringify(decision.config).length).toBeLessThan(600 * 1024);
    expect(decision.leftOut.length).toBeGreaterThan(0);
    expect(decision.leftOut.length).toBeLessThan(objects.length);
  },
);

test("policies of every kind of key have the room that they are counted with [runtime-tenant-policies-4]", () => {
  const roots: readonly ImagePolicySpec["policy"][] = [
    {
      rootOfTrust: {
        policyType: "FulcioCAWithRekor",
        fulcioCAWithRekor: {
          fulcioCAData: "k",
          rekorKeyData: "k",
          fulcioSubject: { oidcIssuer: "https://a.example", signedEmail: "a@b" },
        },
      },
      signedIdentity: {
        matchPolicy: "RemapIdentity",
        remapIdentity: { prefix: "a.example", signedPrefix: "b.example" },
      },
    },
    {
      rootOfTrust: {
        policyType: "PKI",
        pki: { caRootsData: "k", caIntermediatesData: "k", pkiCertificateSubject: { email: "a@b", hostname: "a.b" } },
      },
    },
    { rootOfTrust: { policyType: "PublicKey", publicKey: { keyData: "k", rekorKeyData: "k" } } },
  ];
  for (const root of roots) {
    const one = policy("ns", "p", scopes(200), "");
    const spec: ImagePolicySpec = { scopes: one.spec?.scopes ?? [], ...(root === undefined ? {} : { policy: root }) };
    const decision = decide(objectsOf({ ...one, spec }));
    if (decision.do !== "write") throw new Error(decision.do);
    expect(decision.leftOut).toEqual([]);
    expect(JSON.stringify(decision.config).length).toBeLessThan(roomOf({ spec }) + 3000);
  }
});

test("a namespace that needs less keeps its policies beside one that needs much [runtime-tenant-policies-2]", () => {
  const large = Array.from({ length: 30 }, (_, i) => policy("a-large", `p-${i}`, scopes(256), "k".repeat(100)));
  const decision = decide(objectsOf(...large, policy("z-small", "p", scopes(20, "b"), "k".repeat(200))));
  if (decision.do !== "write") throw new Error(decision.do);
  expect(decision.leftOut.length).toBeGreaterThan(0);
  expect(decision.leftOut.map(({ object }) => object)).not.toContain("ImagePolicy/z-small/p");
});

test("thousands of policies that are wrong in the same way are judged together [runtime-tenant-policies-3]", () => {
  const many = Array.from({ length: 3000 }, (_, i) => policy(`ns-${i}`, "p", ["a.example.com/team"], ""));
  const nameless = Array.from({ length: 400 }, (_, i) => policy(`ms-${i}`, "p", ["b.example.com/team"], "k"));
  const objects: RegistryObjects = {
    ...objectsOf(...many, ...nameless),
    digestMirrorSets: [
      {
        apiVersion: openshift.ImageDigestMirrorSet.apiVersion,
        kind: "ImageDigestMirrorSet",
        metadata: { name: "m" },
        spec: { imageDigestMirrors: [{ source: "b.example.com/team/app", mirrors: ["mirror.example.com"] }] },
      },
    ],
  };
  const started = process.cpuUsage();
  const decision = decide(objects);
  if (decision.do !== "write") throw new Error(decision.do);
  const conditionsOf = policyStatuses(objects, { problems: decision.leftOut, isWritten: true });
  const reasons = new Set(objects.imagePolicies.map((one) => conditionsOf(one, 0)[0]?.reason));
  expect([...reasons]).toEqual(["Invalid"]);
  expect(process.cpuUsage(started).user / 1e6).toBeLessThan(4);
});
