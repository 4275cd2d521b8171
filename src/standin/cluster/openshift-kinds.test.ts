import { beforeAll, describe, expect, test } from "vitest";
import { type TestCluster, testCluster } from "../../../test/support/controllers-harness.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { openshift } from "../../api/foreign/openshift.ts";
import { InternalReleaseImage } from "../../api/kinds/internal-release-image.ts";
import type { KubeObject, Resource } from "../../api/schema/object.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { McoError } from "../../api/errors.ts";
import { openshiftKinds } from "./openshift-kinds.ts";

const byName = new Map(openshiftKinds.map((definition) => [definition.metadata.name, definition]));

describe("OpenShift's kinds of a new cluster", () => {
  test.for(
    Object.values(openshift).flatMap((resource) => {
      const definition = byName.get(`${resource.plural}.${resource.group}`);
      return definition === undefined ? [] : [{ kind: resource.kind, resource: resource as Resource, definition }];
    }),
  )("$kind: the definition and what the suite reads name it alike [openshift-kinds-1]", ({ resource, definition }) => {
    const { group, kind, plural, namespaced, version } = resource;
    expect(definition.spec).toMatchObject({
      group,
      names: { kind, plural },
      scope: namespaced ? "Namespaced" : "Cluster",
      versions: expect.arrayContaining([
        expect.objectContaining({ name: version, served: true, storage: true }) as unknown,
      ]) as unknown,
    });
  });

  test("every definition is of a kind that the suite reads, and holds no prose [openshift-kinds-2]", () => {
    const read = new Set(Object.values(openshift).map(({ plural, group }) => `${plural}.${group}`));
    expect(openshiftKinds.map(({ metadata }) => metadata.name).filter((name) => !read.has(name))).toEqual([]);
    expect(openshiftKinds.length).toBe(11);
    // A property may have this name; its value is a schema then.
    expect(JSON.stringify(openshiftKinds)).not.toMatch(/"description":"/);
  });
});

describe("a server with OpenShift's kinds", () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await testCluster();
    for (const definition of openshiftKinds) await cluster.kube.create(kubernetes.CustomResourceDefinition, definition);
    // OpenShift has it too, and this suite defines it.
    const own = InternalReleaseImage.crd();
    await cluster.kube.apply(kubernetes.CustomResourceDefinition, own as never, { owner: "test" });
    for (const { metadata } of [...openshiftKinds, own])
      await cluster.until(
        kubernetes.CustomResourceDefinition,
        metadata,
        (one) => conditionOf(one?.status?.conditions, "Established")?.status === "True",
      );
    return () => cluster.close();
  });

  const create = async <T extends KubeObject>(resource: Resource<T>, object: Omit<T, "apiVersion" | "kind">) => {
    const { apiVersion, kind } = resource;
    return cluster.kube.create(resource, { apiVersion, kind, ...object } as T);
  };
  const mirror = (source: string, mirrors: readonly string[]) => ({ source, mirrors });
  const policy = (keyData: string) => ({
    scopes: ["quay.example.com/team"],
    policy: { rootOfTrust: { policyType: "PublicKey", publicKey: { keyData } } },
  });
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const key = base64("-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n");

  test("takes objects of every kind that settings come from [openshift-kinds-3]", async () => {
    const metadata = { name: "one" };
    await create(openshift.ImageDigestMirrorSet, {
      metadata,
      spec: { imageDigestMirrors: [mirror("quay.io/a", ["mirror.example.com/a"])] },
    });
    await create(openshift.ImageTagMirrorSet, {
      metadata,
      spec: { imageTagMirrors: [mirror("*.quay.io", ["mirror.example.com:5000/a"])] },
    });
    await create(openshift.ImageContentSourcePolicy, {
      metadata,
      spec: { repositoryDigestMirrors: [mirror("quay.io/a", ["mirror.example.com/a"])] },
    });
    await create(openshift.ClusterImagePolicy, { metadata, spec: policy(key) });
    await create(openshift.ImagePolicy, { metadata: { ...metadata, namespace: "default" }, spec: policy(key) });
    const named = { name: "cluster" };
    await create(openshift.Image, {
      metadata: named,
      spec: { registrySources: { blockedRegistries: ["bad.example.com"], insecureRegistries: ["*.lab.example.com"] } },
    });
    await create(openshift.APIServer, { metadata: named, spec: { tlsSecurityProfile: { type: "Modern" } as never } });
    await create(openshift.ConfigNode, { metadata: named, spec: { workerLatencyProfile: "Default" } });
    await create(openshift.FeatureGate, { metadata: named, spec: {} });
    await create(openshift.ClusterVersion, {
      metadata: { name: "version" },
      spec: { clusterID: "6d2e4b2c-7a13-4f4e-a1e0-0d3c7f7a5a11" },
    } as never);
    expect((await cluster.kube.list(openshift.ImageDigestMirrorSet)).items).toHaveLength(1);
  });

  test("takes a bundle of releases, and what a controller reports of it [openshift-kinds-5]", async () => {
    const named = { name: "cluster" };
    const name = "ocp-release-bundle-4.20.1-x86_64";
    await create(InternalReleaseImage, { metadata: named, spec: { releases: [{ name }] } } as never);
    const report = (image: string) =>
      cluster.kube.patch(
        InternalReleaseImage,
        named,
        { type: "merge", body: { status: { releases: [{ name, image }] } } },
        { subresource: "status" },
      );
    const digest = `sha256:${"a".repeat(64)}`;
    await report(`api-int.example.com:22625/openshift/release-images@${digest}`);
    await expect(report(`localhost:22625/openshift/release-images@${digest}`)).rejects.toThrow(
      "must begin with a host name that has a dot",
    );
    await expect(report("api-int.example.com:22625/openshift/release-images:4.20.1")).rejects.toThrow(
      "must be named by its digest",
    );
  });

  test.for([
    {
      title: "a mirror with a tag",
      resource: openshift.ImageDigestMirrorSet,
      spec: { imageDigestMirrors: [mirror("quay.io/a", ["mirror.example.com/a:v1"])] },
      says: "spec.imageDigestMirrors[0].mirrors[0]",
    },
    {
      title: "two lists that exclude each other",
      resource: openshift.Image,
      spec: { registrySources: { blockedRegistries: ["a.example.com"], allowedRegistries: ["b.example.com"] } },
      says: "blockedRegistries and allowedRegistries must not both be set",
    },
    {
      title: "a blocked registry with a digest",
      resource: openshift.Image,
      spec: { registrySources: { blockedRegistries: ["a.example.com/b@sha256:0"] } },
      says: "without tag and digest",
    },
    {
      title: "a key that is no PEM",
      resource: openshift.ClusterImagePolicy,
      spec: policy(base64("a key")),
      says: "must begin with a PEM public key",
    },
    {
      title: "a scope without a domain",
      resource: openshift.ClusterImagePolicy,
      spec: { ...policy(key), scopes: ["busybox"] },
      says: "must begin with a domain, or with localhost",
    },
    {
      title: "a bundle of releases under another name than cluster",
      resource: InternalReleaseImage,
      spec: { releases: [{ name: "ocp-release-bundle-4.20.1-x86_64" }] },
      says: "must be named cluster",
    },
    {
      title: "a bundle that is no release",
      resource: InternalReleaseImage,
      spec: { releases: [{ name: "one" }] },
      says: "must be ocp-release-bundle-VERSION-ARCHITECTURE",
    },
  ] as readonly { title: string; resource: Resource; spec: object; says: string }[])(
    "refuses $title, and says where [openshift-kinds-4]",
    async ({ resource, spec, says }) => {
      const refused: unknown = await create(resource, { metadata: { name: "wrong" }, spec } as never).then(
        () => "accepted",
        (error: unknown) => error,
      );
      expect(refused).toBeInstanceOf(McoError);
      expect((refused as McoError).message).toContain(says);
    },
  );
});
