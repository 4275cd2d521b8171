import { parse as parseToml } from "smol-toml";
import { describe, expect, test } from "vitest";
import type { Harness } from "../../../test/support/control-plane-harness.ts";
import { openshiftHarness } from "../../../test/support/openshift-harness.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { type ImagePolicySpec, openshift } from "../../api/foreign/openshift.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations, labels } from "../../api/names.ts";
import { type KubeObject, type Resource, conditionOf } from "../../api/schema/object.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { fileText } from "../../core/render/config-file.ts";
import {
  namespacePolicyPath,
  policyPath,
  registriesConfPath,
  searchRegistriesPath,
  sigstorePath,
} from "../../core/runtime/registries-config.ts";
import { mostTextCharacters } from "../../ignition/held-contents.ts";

const config = (pool: string) => `99-${pool}-generated-registries`;
const release = `quay.example.com/ocp/release@sha256:${"a".repeat(64)}`;
const base64 = (text: string) => Buffer.from(text).toString("base64");
const keyData = base64("-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n");
const policy = (...scopes: readonly string[]): ImagePolicySpec => ({
  scopes,
  policy: { rootOfTrust: { policyType: "PublicKey", publicKey: { keyData } } },
});

class Registries {
  readonly harness: Harness;

  private constructor(harness: Harness) {
    this.harness = harness;
  }

  static async make(): Promise<Registries> {
    return new Registries(await openshiftHarness());
  }

  /** Creates an object, or changes its spec, and lets the controllers see it. */
  async put<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    spec: object,
    namespace?: string,
  ): Promise<void> {
    const { apiVersion, kind } = resource;
    const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
    await this.harness.act(async () => {
      const before = await this.harness.kube.get(resource, metadata);
      if (before === undefined)
        await this.harness.kube.create(resource, { apiVersion, kind, metadata, spec } as unknown as T);
      else await this.harness.kube.patch(resource, metadata, { type: "merge", body: { spec } });
    });
    await this.harness.pass(3000);
  }

  async remove<T extends KubeObject>(resource: Resource<T>, name: string, namespace?: string): Promise<void> {
    const key = { name, ...(namespace === undefined ? {} : { namespace }) };
    await this.harness.act(() => this.harness.kube.delete(resource, key));
    await this.harness.pass(3000);
  }

  /** Gives machines of a role a file of registries.d. */
  async place(name: string, text: string, role = "worker"): Promise<void> {
    const { kube } = this.harness;
    const file = { path: "/etc/containers/registries.d/x.yaml", contents: { source: encodeDataUrl(text) } };
    const spec = { config: { ignition: { version: "3.5.0" }, storage: { files: [file] } } };
    await this.harness.act(async () => {
      const { apiVersion, kind } = MachineConfig;
      if ((await kube.get(MachineConfig, { name })) !== undefined)
        await kube.patch(MachineConfig, { name }, { type: "merge", body: { spec } });
      else
        await kube.create(MachineConfig, {
          apiVersion,
          kind,
          metadata: { name, labels: { [labels.role]: role } },
          spec,
        });
    });
    await this.harness.pass(3000);
  }

  async release(image: string): Promise<void> {
    const { harness } = this;
    await this.put(openshift.ClusterVersion, "version", { clusterID: "6d2e4b2c-7a13-4f4e-a1e0-0d3c7f7a5a11" });
    await harness.act(() =>
      harness.kube.patch(
        openshift.ClusterVersion,
        { name: "version" },
        {
          type: "merge",
          body: {
            status: {
              desired: { image, version: "4.20.0" },
              observedGeneration: 1,
              versionHash: "x",
              availableUpdates: [],
            },
          },
        },
        { subresource: "status" },
      ),
    );
    await harness.pass(3000);
  }

  async config(pool = "worker"): Promise<MachineConfig | undefined> {
    return this.harness.act(() => this.harness.kube.get(MachineConfig, { name: config(pool) }));
  }

  /** The text of a file that machines of a pool get. */
  async file(path: string, pool = "worker"): Promise<string | undefined> {
    const found = await this.config(pool);
    return found === undefined ? undefined : fileText(found, path, mostTextCharacters);
  }

  async registries(pool = "worker"): Promise<unknown> {
    return parseToml((await this.file(registriesConfPath, pool)) ?? "").registry;
  }

  async degraded(pool = "worker") {
    return (await this.harness.poolStatus(pool)).of("RegistriesDegraded");
  }

  /** Events about an object of a kind. */
  async events(kind: string): Promise<readonly string[]> {
    const { items } = await this.harness.act(() => this.harness.kube.list(kubernetes.Event));
    return items
      .filter(({ involvedObject }) => involvedObject.kind === kind)
      .map(({ reason, message }) => `${reason}: ${message}`);
  }

  async condition(type: string, name: string, namespace?: string) {
    const resource = namespace === undefined ? openshift.ClusterImagePolicy : openshift.ImagePolicy;
    const key = { name, ...(namespace === undefined ? {} : { namespace }) };
    const found = await this.harness.act(() => this.harness.kube.get(resource, key));
    return conditionOf(found?.status?.conditions, type);
  }
}

const mirrors = (source: string, ...mirrored: readonly string[]) => ({ source, mirrors: mirrored });

describe("mirror sets", () => {
  test("become registries.conf of the built-in pools, are followed, and leave nothing behind [registries-controller-1]", async () => {
    const cluster = await Registries.make();
    expect(await cluster.config()).toBeUndefined();
    await cluster.put(openshift.ImageDigestMirrorSet, "a", {
      imageDigestMirrors: [mirrors("quay.io/team", "mirror.example.com/team")],
    });
    await cluster.put(openshift.ImageTagMirrorSet, "b", {
      imageTagMirrors: [mirrors("docker.io/library", "mirror.example.com/hub")],
    });
    const wanted = [
      {
        location: "quay.io/team",
        mirror: [{ location: "mirror.example.com/team", "pull-from-mirror": "digest-only" }],
      },
      {
        location: "docker.io/library",
        mirror: [{ location: "mirror.example.com/hub", "pull-from-mirror": "tag-only" }],
      },
    ];
    expect(await cluster.registries("worker")).toEqual(wanted);
    expect(await cluster.registries("master")).toEqual(wanted);
    expect(await cluster.config("infra")).toBeUndefined();
    const { pool } = await cluster.harness.poolStatus("worker");
    expect(JSON.stringify(pool?.spec.configuration)).toContain(config("worker"));
    await cluster.remove(openshift.ImageDigestMirrorSet, "a");
    expect(await cluster.registries()).toEqual(wanted.slice(1));
    await cluster.remove(openshift.ImageTagMirrorSet, "b");
    expect(await cluster.file(registriesConfPath)).toBeUndefined();
    // Generated objects are not deleted and made again.
    expect(await cluster.config()).toBeDefined();
  });

  test("are merged with the lists of the Image config and with older policies over the base file [registries-controller-2]", async () => {
    const cluster = await Registries.make();
    await cluster.put(openshift.ImageContentSourcePolicy, "old", {
      repositoryDigestMirrors: [mirrors("quay.io/team", "old.example.com/team")],
    });
    await cluster.put(openshift.Image, "cluster", {
      registrySources: {
        insecureRegistries: ["old.example.com"],
        blockedRegistries: ["bad.example.com"],
        containerRuntimeSearchRegistries: ["search.example.com"],
      },
    });
    expect(parseToml((await cluster.file(registriesConfPath)) ?? "")).toEqual({
      "unqualified-search-registries": ["registry.access.redhat.com", "docker.io"],
      registry: [
        {
          location: "quay.io/team",
          mirror: [{ location: "old.example.com/team", insecure: true, "pull-from-mirror": "digest-only" }],
        },
        { location: "bad.example.com", blocked: true },
        { location: "old.example.com", insecure: true },
      ],
    });
    expect(await cluster.file(searchRegistriesPath)).toBe('unqualified-search-registries = ["search.example.com"]\n');
    expect(await cluster.file(policyPath)).toContain('"bad.example.com"');
    expect((await cluster.config())?.metadata.ownerReferences).toMatchObject([{ kind: "Image", name: "cluster" }]);
    // Without the Image config, what is left belongs to somebody who stays.
    await cluster.remove(openshift.Image, "cluster");
    expect((await cluster.config())?.metadata.ownerReferences).toMatchObject([{ kind: "ControllerConfig" }]);
    expect(await cluster.registries()).toMatchObject([{ location: "quay.io/team" }]);
  });

  test("write nothing when nothing changes, and keep what people add to the MachineConfig [registries-controller-3]", async () => {
    const cluster = await Registries.make();
    const { harness } = cluster;
    const spec = { imageDigestMirrors: [mirrors("quay.io/team", "mirror.example.com/team")] };
    await cluster.put(openshift.ImageDigestMirrorSet, "a", spec);
    await harness.act(() =>
      harness.kube.patch(
        MachineConfig,
        { name: config("worker") },
        { type: "merge", body: { metadata: { annotations: { note: "ours" }, labels: { team: "web" } } } },
      ),
    );
    await harness.pass(3000);
    const before = await cluster.config();
    await harness.act(() =>
      harness.kube.patch(
        openshift.ImageDigestMirrorSet,
        { name: "a" },
        { type: "merge", body: { metadata: { annotations: { seen: "yes" } } } },
      ),
    );
    await harness.pass(60_000);
    expect((await cluster.config())?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
    await cluster.put(openshift.ImageDigestMirrorSet, "b", {
      imageDigestMirrors: [mirrors("quay.io/other", "mirror.example.com/other")],
    });
    const after = await cluster.config();
    expect(after?.metadata.resourceVersion).not.toBe(before?.metadata.resourceVersion);
    expect(after?.metadata).toMatchObject({ annotations: { note: "ours" }, labels: { team: "web" } });
    expect(after?.metadata.uid).toBe(before?.metadata.uid);
  });

  test("that contradict each other degrade the pools by object and field, keep what was written, and recover [registries-controller-4]", async () => {
    const cluster = await Registries.make();
    const rule = mirrors("quay.io/team", "mirror.example.com/team");
    await cluster.put(openshift.ImageDigestMirrorSet, "a", { imageDigestMirrors: [rule] });
    const before = await cluster.file(registriesConfPath);
    await cluster.put(openshift.ImageTagMirrorSet, "b", {
      imageTagMirrors: [{ ...rule, mirrorSourcePolicy: "NeverContactSource" }],
    });
    const same = "must be the same in every rule for quay.io/team";
    const allowing = `spec.imageDigestMirrors[0].mirrorSourcePolicy ${same}; ImageTagMirrorSet/b spec.imageTagMirrors[0] says otherwise; write NeverContactSource here, or AllowContactingSource there`;
    const forbidding = `spec.imageTagMirrors[0].mirrorSourcePolicy ${same}; ImageDigestMirrorSet/a spec.imageDigestMirrors[0] says otherwise; write AllowContactingSource here, or NeverContactSource there`;
    expect(await cluster.degraded("worker")).toMatchObject({
      status: "True",
      reason: "RegistriesRefused",
      message: `ImageTagMirrorSet/b: ${forbidding}; ImageDigestMirrorSet/a: ${allowing}`,
    });
    expect((await cluster.degraded("master"))?.status).toBe("True");
    expect((await cluster.harness.poolStatus("worker")).of("Degraded")).toMatchObject({
      status: "True",
      reason: "RegistriesDegraded",
    });
    expect(await cluster.events("ImageDigestMirrorSet")).toEqual([`RegistriesRefused: ${allowing}`]);
    expect(await cluster.events("ImageTagMirrorSet")).toEqual([`RegistriesRefused: ${forbidding}`]);
    expect(await cluster.file(registriesConfPath)).toBe(before);
    await cluster.put(openshift.ImageTagMirrorSet, "b", { imageTagMirrors: [rule] });
    expect(await cluster.degraded("worker")).toMatchObject({ status: "False", reason: "AsExpected", message: "" });
    expect((await cluster.harness.poolStatus("worker")).of("Degraded")?.status).toBe("False");
    expect(await cluster.file(registriesConfPath)).toContain("tag-only");
  });

  test("that the Image config contradicts are written, and an Event says that they have no effect [registries-controller-18]", async () => {
    const cluster = await Registries.make();
    await cluster.put(openshift.ImageDigestMirrorSet, "a", {
      imageDigestMirrors: [mirrors("quay.io/team", "mirror.example.com/team")],
    });
    expect(await cluster.events("ImageDigestMirrorSet")).toEqual([]);
    await cluster.put(openshift.Image, "cluster", { registrySources: { blockedRegistries: ["quay.io"] } });
    expect(await cluster.registries()).toMatchObject([
      { location: "quay.io/team", blocked: true, mirror: [{ location: "mirror.example.com/team" }] },
      { location: "quay.io", blocked: true },
    ]);
    expect(await cluster.events("ImageDigestMirrorSet")).toEqual([
      expect.stringMatching(
        /^RegistriesNotAsWritten: spec\.imageDigestMirrors\[0\]\.source has no effect: .*; take the block out; /,
      ),
    ]);
    expect((await cluster.degraded())?.status).not.toBe("True");
  });

  test("without effect on the machines of one pool alone are told of once [registries-controller-19]", async () => {
    const cluster = await Registries.make();
    const { harness } = cluster;
    const contents = { source: encodeDataUrl('[[registry]]\nlocation = "mirror.example.com"\nblocked = true\n') };
    const file = { path: registriesConfPath, mode: 0o644, overwrite: true, contents };
    // The base stays as it is changed here.
    harness.intercept = (handler) => (request, signal) =>
      request.method !== "GET" && request.target.includes("/01-worker-container-runtime")
        ? Promise.resolve({ status: 503, headers: {}, body: "{}" })
        : handler(request, signal);
    await harness.act(() =>
      harness.kube.patch(
        MachineConfig,
        { name: "01-worker-container-runtime" },
        { type: "merge", body: { spec: { config: { storage: { files: [file] } } } } },
      ),
    );
    await cluster.put(openshift.ImageDigestMirrorSet, "a", {
      imageDigestMirrors: [mirrors("quay.io/team", "mirror.example.com/team")],
    });
    for (const name of ["b", "c", "d"])
      await cluster.put(openshift.ImageDigestMirrorSet, name, {
        imageDigestMirrors: [mirrors(`${name}.example.com/team`, "other.example.com/team")],
      });
    const told = async () => {
      const { items } = await harness.act(() => harness.kube.list(kubernetes.Event));
      return items
        .filter(({ involvedObject }) => involvedObject.kind === "ImageDigestMirrorSet")
        .map(({ message, count }) => [message, count]);
    };
    expect(await told()).toEqual([[expect.stringContaining("the base registries.conf blocks mirror.example.com"), 1]]);
  });

  test("that are refused hold no pool back after an update of the controller [registries-controller-5]", async () => {
    const cluster = await Registries.make();
    const { harness } = cluster;
    const rule = mirrors("quay.io/team", "mirror.example.com/team");
    await cluster.put(openshift.ImageDigestMirrorSet, "a", { imageDigestMirrors: [rule] });
    await cluster.put(openshift.ImageDigestMirrorSet, "b", {
      imageDigestMirrors: [{ ...rule, mirrorSourcePolicy: "NeverContactSource" }],
    });
    const { spec } = (await cluster.config()) ?? {};
    const version = (value: string) => ({ metadata: { annotations: { [annotations.generatedByController]: value } } });
    await harness.act(() =>
      harness.kube.patch(MachineConfig, { name: config("worker") }, { type: "merge", body: version("base-0") }),
    );
    await harness.pass(3000);
    const kept = await cluster.config();
    expect(kept?.metadata.annotations?.[annotations.generatedByController]).not.toBe("base-0");
    expect(kept?.spec).toEqual(spec);
  });
});

describe("the image of the release", () => {
  test("is never cut off by a mirror set; where only mirrors are left, an Event names it [registries-controller-6]", async () => {
    const cluster = await Registries.make();
    await cluster.release(release);
    await cluster.put(openshift.ImageTagMirrorSet, "tags", {
      imageTagMirrors: [
        { ...mirrors("quay.example.com/ocp", "mirror.example.com/ocp"), mirrorSourcePolicy: "NeverContactSource" },
      ],
    });
    expect(await cluster.config()).toBeUndefined();
    expect((await cluster.degraded())?.message).toMatch(
      /^ImageTagMirrorSet\/tags: spec\.imageTagMirrors\[0\]\.mirrorSourcePolicy cuts the cluster off from the image of its release, quay\.example\.com\/ocp\/release@sha256:a+: .*; name a mirror for its repository in an ImageDigestMirrorSet, or take the block out$/,
    );
    await cluster.put(openshift.ImageDigestMirrorSet, "digests", {
      imageDigestMirrors: [
        { ...mirrors("quay.example.com/ocp", "mirror.example.com/ocp"), mirrorSourcePolicy: "NeverContactSource" },
      ],
    });
    expect((await cluster.degraded())?.status).toBe("False");
    expect(await cluster.events("ImageDigestMirrorSet")).toEqual([
      expect.stringMatching(
        /^ReleaseAtRisk: spec\.imageDigestMirrors\[0\]\.mirrorSourcePolicy lets machines pull the image of the release, quay\.example\.com\/ocp\/release@sha256:a+, only as mirror\.example\.com\/ocp\/release@sha256:a+; make sure/,
      ),
    ]);
  });

  test("is pulled from a registry that the Image config blocks, as long as no mirror of it is named [registries-controller-7]", async () => {
    const cluster = await Registries.make();
    await cluster.release(release);
    await cluster.put(openshift.Image, "cluster", {
      registrySources: { blockedRegistries: ["quay.example.com", "bad.example.com"] },
    });
    expect(await cluster.registries()).toEqual([{ location: "bad.example.com", blocked: true }]);
    expect(await cluster.events("Image")).toEqual([
      expect.stringMatching(
        /^ReleaseAtRisk: spec\.registrySources\.blockedRegistries\[0\] has no effect: quay\.example\.com is not blocked/,
      ),
    ]);
    await cluster.put(openshift.Image, "cluster", {
      registrySources: { blockedRegistries: null, allowedRegistries: ["mirror.example.com"] },
    });
    expect(await cluster.events("Image")).toContainEqual(
      expect.stringMatching(
        /^ReleaseAtRisk: spec\.registrySources\.allowedRegistries leaves out the image of the release, .*; add quay\.example\.com\/ocp\/release$/,
      ),
    );
  });

  test("is not looked for on a cluster without a ClusterVersion: every block counts [registries-controller-8]", async () => {
    const cluster = await Registries.make();
    await cluster.put(openshift.Image, "cluster", { registrySources: { blockedRegistries: ["quay.example.com"] } });
    expect(await cluster.registries()).toEqual([{ location: "quay.example.com", blocked: true }]);
    expect(await cluster.events("Image")).toEqual([]);
  });
});

describe("image policies", () => {
  test("say whether machines get them; a conflict is said, and unsaid when it is gone [registries-controller-9]", async () => {
    const cluster = await Registries.make();
    await cluster.put(openshift.ClusterImagePolicy, "all", policy("quay.example.com/team"));
    await cluster.put(openshift.ImagePolicy, "own", policy("quay.example.com/team/app"), "default");
    expect(await cluster.condition("Applied", "all")).toMatchObject({ status: "True", reason: "AsWritten" });
    expect(await cluster.condition("Pending", "own", "default")).toMatchObject({
      status: "True",
      reason: "ConflictScopes",
      message: expect.stringMatching(/^quay\.example\.com\/team\/app: a ClusterImagePolicy decides/) as string,
    });
    expect(await cluster.condition("Applied", "own", "default")).toMatchObject({ status: "False" });
    expect(await cluster.file("/etc/crio/policies/default.json")).toBeUndefined();
    await cluster.put(openshift.ClusterImagePolicy, "all", policy("quay.example.com/other"));
    expect(await cluster.condition("Pending", "own", "default")).toMatchObject({
      status: "False",
      reason: "AsWritten",
    });
    expect(await cluster.condition("Applied", "own", "default")).toMatchObject({
      status: "True",
      observedGeneration: 1,
    });
    expect(await cluster.file("/etc/crio/policies/default.json")).toContain('"quay.example.com/team/app"');
  });

  test("outside of the allowed registries are refused on the object, with the field and what to do [registries-controller-10]", async () => {
    const cluster = await Registries.make();
    await cluster.put(openshift.Image, "cluster", { registrySources: { allowedRegistries: ["allowed.example.com"] } });
    const before = await cluster.file(policyPath);
    await cluster.put(openshift.ClusterImagePolicy, "all", policy("allowed.example.com/a", "quay.example.com/team"));
    await cluster.put(openshift.ImagePolicy, "own", policy("allowed.example.com/b"), "default");
    const problem =
      "spec.scopes[1] quay.example.com/team is in none of the allowed registries of the Image config cluster; add it to spec.registrySources.allowedRegistries there, or take the scope out";
    expect(await cluster.condition("Applied", "all")).toMatchObject({
      status: "False",
      reason: "Invalid",
      message: problem,
    });
    expect(await cluster.condition("Applied", "own", "default")).toMatchObject({
      status: "False",
      reason: "RegistriesRefused",
      message: `no settings of registries are written until ClusterImagePolicy/all: ${problem}`,
    });
    expect((await cluster.degraded())?.message).toBe(`ClusterImagePolicy/all: ${problem}`);
    expect(await cluster.file(policyPath)).toBe(before);
    await cluster.put(openshift.ClusterImagePolicy, "all", policy("allowed.example.com/a"));
    expect(await cluster.condition("Applied", "all")).toMatchObject({ status: "True" });
    expect(await cluster.condition("Applied", "own", "default")).toMatchObject({ status: "True" });
  });

  test("of a namespace that are wrong hold up nobody else's registries [registries-controller-11]", async () => {
    const cluster = await Registries.make();
    await cluster.put(openshift.Image, "cluster", { registrySources: { allowedRegistries: ["allowed.example.com"] } });
    await cluster.put(openshift.ImagePolicy, "wrong", policy("quay.example.com/team"), "default");
    await cluster.put(openshift.ImagePolicy, "right", policy("allowed.example.com/b"), "default");
    await cluster.put(openshift.Image, "cluster", {
      registrySources: { allowedRegistries: ["allowed.example.com", "more.example.com"] },
    });
    expect(await cluster.file(policyPath)).toContain("more.example.com");
    expect(await cluster.file("/etc/crio/policies/default.json")).toContain('"allowed.example.com/b"');
    expect(await cluster.condition("Applied", "right", "default")).toMatchObject({ status: "True" });
    expect(await cluster.condition("Applied", "wrong", "default")).toMatchObject({
      status: "False",
      reason: "Invalid",
      message: expect.stringContaining("is in none of the allowed registries") as string,
    });
    expect((await cluster.degraded())?.status).not.toBe("True");
    expect(await cluster.events("ImagePolicy")).toEqual([expect.stringContaining("RegistriesRefused: spec.scopes[0]")]);
  });

  test("of a namespace do not decide about an image by its tag or digest that a policy of the cluster covers [registries-controller-12]", async () => {
    const cluster = await Registries.make();
    await cluster.put(openshift.ClusterImagePolicy, "all", policy("quay.example.com/team/app"));
    const own = ["quay.example.com/team/app:v1", `quay.example.com/team/app@sha256:${"a".repeat(64)}`];
    await cluster.put(openshift.ImagePolicy, "own", policy(...own, "quay.example.com/mine/app:v1"), "default");
    const text = (await cluster.file("/etc/crio/policies/default.json")) ?? "";
    expect(own.filter((scope) => text.includes(`"${scope}"`))).toEqual([]);
    expect(text).toContain('"quay.example.com/mine/app:v1"');
    expect(await cluster.condition("Pending", "own", "default")).toMatchObject({ reason: "ConflictScopes" });
  });

  test("of a namespace take only so much room that the cluster's registries are still written [registries-controller-13]", async () => {
    const cluster = await Registries.make();
    const large: ImagePolicySpec = {
      scopes: Array.from({ length: 256 }, (_, i) => `h${i}.example.com/team`),
      policy: {
        rootOfTrust: {
          policyType: "PublicKey",
          publicKey: {
            keyData: base64(`-----BEGIN PUBLIC KEY-----\n${"x".repeat(6000)}\n-----END PUBLIC KEY-----\n`),
          },
        },
      },
    };
    await cluster.put(openshift.ImagePolicy, "large", large, "default");
    await cluster.put(openshift.ImagePolicy, "small", policy("quay.example.com/team"), "kube-public");
    await cluster.put(openshift.ImageDigestMirrorSet, "a", {
      imageDigestMirrors: [mirrors("quay.io/team", "mirror.example.com/team")],
    });
    expect(await cluster.file(registriesConfPath)).toContain("mirror.example.com/team");
    expect(await cluster.file("/etc/crio/policies/kube-public.json")).toContain("quay.example.com/team");
    expect(await cluster.condition("Applied", "small", "kube-public")).toMatchObject({ status: "True" });
    expect(await cluster.condition("Applied", "large", "default")).toMatchObject({
      status: "False",
      reason: "Invalid",
      message: expect.stringContaining("no room") as string,
    });
  });

  test("of a namespace name no place that another file of registries.d defines: engines then pull nothing at all [registries-controller-14]", async () => {
    const cluster = await Registries.make();
    await cluster.place(
      "99-worker-lookaside",
      "docker:\n  corp.example.com:\n    lookaside: https://corp.example.com/s\n",
    );
    const wrong = ["registry.redhat.io", "corp.example.com"];
    for (const [i, scope] of wrong.entries())
      await cluster.put(openshift.ImagePolicy, `wrong-${i}`, policy(scope), "default");
    await cluster.put(openshift.ImagePolicy, "right", policy("corp.example.com/team"), "default");
    const text = (await cluster.file(sigstorePath)) ?? "";
    expect(text.split("\n").map((line) => line.trim())).toContain("corp.example.com/team:");
    expect(wrong.filter((scope) => text.includes(`${scope}:`))).toEqual([]);
    for (const i of wrong.keys())
      expect(await cluster.condition("Applied", `wrong-${i}`, "default")).toMatchObject({
        status: "False",
        reason: "Invalid",
      });
    expect(await cluster.condition("Applied", "right", "default")).toMatchObject({ status: "True" });
  });

  test("of a namespace get no place while a file of registries.d is not read that their machines have, and say which MachineConfig brings it [registries-controller-20]", async () => {
    const cluster = await Registries.make();
    const applied = () => cluster.condition("Applied", "own", "default");
    const selectedBy = async (...values: readonly string[]) =>
      cluster.put(MachineConfigPool, "infra", {
        machineConfigSelector: { matchLabels: null, matchExpressions: [{ key: labels.role, operator: "In", values }] },
      });
    await selectedBy("infra");
    await cluster.place("99-infra-strange", "docker: [", "infra");
    await cluster.put(openshift.ImagePolicy, "own", policy("corp.example.com"), "default");
    expect(await applied()).toMatchObject({ status: "True" });
    await cluster.remove(openshift.ImagePolicy, "own", "default");
    await cluster.place("99-worker-strange", "docker: [");
    await cluster.put(openshift.ImagePolicy, "own", policy("corp.example.com"), "default");
    expect(await applied()).toMatchObject({
      status: "False",
      reason: "Invalid",
      message: expect.stringMatching(
        /99-worker-strange \(\/etc\/containers\/registries\.d\/x\.yaml: .*; correct MachineConfig 99-worker-strange: /s,
      ) as string,
    });
    expect(await cluster.file(sigstorePath)).toBeUndefined();
    expect(await cluster.file(sigstorePath, "master")).toContain("corp.example.com");
    expect((await cluster.degraded())?.status).not.toBe("True");
    await cluster.place("99-worker-strange", "docker:\n  other.example.com: {}\n");
    expect(await applied()).toMatchObject({ status: "True" });
    // From now on its machines have what those of worker have, and files of their own.
    await selectedBy("worker", "infra");
    await cluster.put(openshift.ImagePolicy, "own", policy("corp.example.com/other"), "default");
    expect(await applied()).toMatchObject({
      message: expect.stringContaining("MachineConfig 99-infra-strange") as string,
    });
  });

  test("of a namespace that machines have stay in force while a file of registries.d is not read: only what they have not waits, and what is deleted goes [registries-controller-21]", async () => {
    const cluster = await Registries.make();
    const applied = (namespace: string) => cluster.condition("Applied", "own", namespace);
    const scopes = async (namespace: string) => {
      const text = await cluster.file(namespacePolicyPath(namespace));
      const { transports } = JSON.parse(text ?? "{}") as { transports?: { docker?: object } };
      return Object.keys(transports?.docker ?? {});
    };
    await cluster.put(openshift.ImagePolicy, "own", policy("corp.example.com/a"), "kube-public");
    await cluster.put(openshift.ImagePolicy, "own", policy("corp.example.com/b"), "kube-system");
    const before = (await cluster.config())?.spec;
    await cluster.place("99-worker-strange", "- 1");
    expect((await cluster.config())?.spec).toEqual(before);
    expect(await applied("kube-public")).toMatchObject({ status: "True", reason: "AsWritten" });

    await cluster.put(openshift.ImagePolicy, "own", policy("corp.example.com/new"), "default");
    expect(await scopes("default")).toEqual([]);
    expect(await applied("default")).toMatchObject({
      status: "False",
      message: expect.stringContaining("correct MachineConfig 99-worker-strange: ") as string,
    });

    // Another scope waits; the one that machines have goes on being decided about.
    await cluster.put(openshift.ImagePolicy, "own", policy("corp.example.com/a", "corp.example.com/c"), "kube-public");
    expect(await scopes("kube-public")).toEqual(["corp.example.com/a"]);
    expect(await cluster.file(sigstorePath)).not.toContain("corp.example.com/c");
    expect(await applied("kube-public")).toMatchObject({
      status: "False",
      message: expect.stringContaining("Scopes that machines have already stay as they are") as string,
    });

    await cluster.remove(openshift.ImagePolicy, "own", "kube-system");
    expect(await scopes("kube-system")).toEqual([]);
    expect(await cluster.file(sigstorePath)).not.toContain("corp.example.com/b");

    await cluster.place("99-worker-strange", "docker: {other.example.com: {}}");
    expect(await scopes("kube-public")).toEqual(["corp.example.com/a", "corp.example.com/c"]);
    expect(await scopes("default")).toEqual(["corp.example.com/new"]);
    expect(await applied("default")).toMatchObject({ status: "True" });

    // A place that is known to be taken is another thing than one that may be.
    await cluster.place("99-worker-strange", "docker: {corp.example.com/new: {}}");
    expect(await scopes("default")).toEqual([]);
  });

  test("of a namespace that change without end change machines now and then; those of the cluster wait for nothing [registries-controller-15]", async () => {
    const cluster = await Registries.make();
    const written = new Set<string | undefined>();
    const look = async () => void written.add((await cluster.config())?.metadata.resourceVersion);
    for (let i = 0; i < 40; i += 1) {
      await cluster.put(openshift.ImagePolicy, "own", policy(`quay.example.com/team-${i}`), "default");
      await look();
    }
    expect(written.size).toBeLessThan(10);
    await cluster.put(openshift.ImageDigestMirrorSet, "a", {
      imageDigestMirrors: [mirrors("quay.io/team", "mirror.example.com/team")],
    });
    expect(await cluster.file(registriesConfPath)).toContain("mirror.example.com/team");
    await cluster.put(openshift.ImagePolicy, "own", policy("quay.example.com/last"), "default");
    await cluster.harness.pass(20 * 60_000);
    expect(await cluster.file("/etc/crio/policies/default.json")).toContain("quay.example.com/last");
    expect(await cluster.condition("Applied", "own", "default")).toMatchObject({ status: "True" });
  });

  test("of a namespace that are large and have room are written as they are, and as they become [registries-controller-17]", async () => {
    const cluster = await Registries.make();
    const scopes = (of: string) => Array.from({ length: 60 }, (_, i) => `${of}.example.com/${"a".repeat(200)}${i}`);
    await cluster.put(openshift.ImagePolicy, "large", policy(...scopes("one")), "default");
    await cluster.put(openshift.ImagePolicy, "small", policy("quay.example.com/team"), "default");
    const text = () => cluster.file("/etc/crio/policies/default.json");
    expect(await text()).toContain(`"${scopes("one")[59]}"`);
    expect(await text()).toContain('"quay.example.com/team"');
    expect(await cluster.condition("Applied", "large", "default")).toMatchObject({ status: "True" });
    let [reads, writes] = [0, 0];
    cluster.harness.intercept = (handler) => (request, signal) => {
      if (request.method === "GET" && /fieldSelector=.*large/.test(request.target)) reads += 1;
      if (request.method === "PATCH" && request.target.includes("imagepolicies/large/status")) writes += 1;
      return handler(request, signal);
    };
    await cluster.put(openshift.ImagePolicy, "large", policy(...scopes("two")), "default");
    expect(await text()).toContain(`"${scopes("two")[59]}"`);
    expect(await text()).not.toContain(`"${scopes("one")[59]}"`);
    // What did not change is not read again, nor written.
    const before = [reads, writes];
    await cluster.put(openshift.ImagePolicy, "small", policy("quay.example.com/other"), "default");
    expect(await text()).toContain('"quay.example.com/other"');
    expect(await text()).toContain(`"${scopes("two")[59]}"`);
    expect([before, reads, writes]).toEqual([[1, before[1]], 1, before[1]]);
  });

  test("of a namespace with many long problems keep no condition of others from being written [registries-controller-16]", async () => {
    const cluster = await Registries.make();
    await cluster.put(openshift.Image, "cluster", { registrySources: { allowedRegistries: ["allowed.example.com"] } });
    const long = Array.from({ length: 120 }, (_, i) => `quay.example.com/${"a".repeat(400)}${i}`);
    await cluster.put(openshift.ImagePolicy, "a", policy(...long), "default");
    await cluster.put(openshift.ImagePolicy, "b", policy("allowed.example.com/team"), "default");
    await cluster.harness.pass(10_000);
    expect(await cluster.condition("Applied", "b", "default")).toMatchObject({ status: "True" });
    expect(await cluster.condition("Applied", "a", "default")).toMatchObject({ status: "False", reason: "Invalid" });
  });
});
