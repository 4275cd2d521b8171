import { expect, test } from "vitest";
import { openshift } from "../../api/foreign/openshift.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { settingsOf, trimRegistryObject } from "./registry-objects.ts";
import { roomOf } from "./tenant-policies.ts";

const none = {
  image: undefined,
  digestMirrorSets: [],
  tagMirrorSets: [],
  contentSourcePolicies: [],
  clusterImagePolicies: [],
  imagePolicies: [],
  releaseImage: undefined,
};

test("of an image policy what decides is kept, and nothing that its author hangs on it [registry-objects-1]", () => {
  const conditions = [{ type: "Pending", status: "False", reason: "x", message: "", lastTransitionTime: "" }];
  const policy = {
    apiVersion: openshift.ImagePolicy.apiVersion,
    kind: openshift.ImagePolicy.kind,
    metadata: {
      name: "p",
      namespace: "tenant",
      uid: "u",
      resourceVersion: "7",
      generation: 2,
      annotations: { fill: "x".repeat(250_000) },
      labels: { fill: "x" },
    },
    spec: {
      scopes: ["quay.io/team"],
      policy: { rootOfTrust: { policyType: "PublicKey", publicKey: { keyData: btoa("a key") } } },
    },
    status: { conditions, other: "x".repeat(1000) },
  } as unknown as KubeObject;
  const kept = trimRegistryObject(policy);
  expect(JSON.stringify(kept).length).toBeLessThan(1000);
  expect(kept).toMatchObject({
    metadata: { name: "p", namespace: "tenant", uid: "u", resourceVersion: "7", generation: 2 },
    status: { conditions },
  });
  const settings = (object: KubeObject) => settingsOf({ ...none, imagePolicies: [object as never] });
  expect(settings(kept)).toEqual(settings(policy));
});

test("of a large policy of a namespace its size is kept, and not what it says [registry-objects-3]", () => {
  const large = {
    apiVersion: openshift.ImagePolicy.apiVersion,
    kind: openshift.ImagePolicy.kind,
    metadata: { name: "p", namespace: "tenant", uid: "u", generation: 2 },
    spec: {
      scopes: Array.from({ length: 256 }, (_, i) => `h${i}.example.com/${"a".repeat(490)}`),
      policy: { rootOfTrust: { policyType: "PublicKey", publicKey: { keyData: btoa("a key") } } },
    },
  };
  const kept = trimRegistryObject(large as KubeObject);
  expect(JSON.stringify(large).length).toBeGreaterThan(128_000);
  expect(JSON.stringify(kept).length).toBeLessThan(1000);
  expect(settingsOf({ ...none, imagePolicies: [kept as never] }).policies).toEqual([
    { object: "ImagePolicy/tenant/p", namespace: "tenant", spec: {}, room: roomOf(large) },
  ]);
  // Those of the cluster are the administrator's.
  const ofCluster = { ...large, kind: openshift.ClusterImagePolicy.kind };
  expect(trimRegistryObject(ofCluster as KubeObject)).toMatchObject({ spec: large.spec });
});

test("of the administrator's own objects everything is kept [registry-objects-2]", () => {
  const set = {
    apiVersion: openshift.ImageDigestMirrorSet.apiVersion,
    kind: openshift.ImageDigestMirrorSet.kind,
    metadata: { name: "a", annotations: { note: "x" } },
  };
  expect(trimRegistryObject(set)).toBe(set);
});

test("an ImageContentSourcePolicy of a file says nothing about contacting the source [registry-objects-4]", () => {
  const { kind, apiVersion } = openshift.ImageContentSourcePolicy;
  const rule = { source: "quay.io/team", mirrors: ["m.example.com/team"], mirrorSourcePolicy: "NeverContactSource" };
  const policy = { apiVersion, kind, metadata: { name: "old" }, spec: { repositoryDigestMirrors: [rule] } };
  expect(settingsOf({ ...none, contentSourcePolicies: [policy] }).rules).toMatchObject([{ policy: undefined }]);
});
