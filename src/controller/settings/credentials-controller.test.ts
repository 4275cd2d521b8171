import { describe, expect, test } from "vitest";
import type { Harness } from "../../../test/support/control-plane-harness.ts";
import { openshiftHarness } from "../../../test/support/openshift-harness.ts";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { openshift } from "../../api/foreign/openshift.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labels } from "../../api/names.ts";
import type { KubeObject, Resource } from "../../api/schema/object.ts";
import { fileText } from "../../core/render/config-file.ts";
import { genericProviderPath, platformProviderPaths, tokenGate } from "../../core/runtime/credential-providers.ts";
import { credentialsConfigName } from "../../core/runtime/decide-credentials.ts";
import { mostTextCharacters } from "../../ignition/held-contents.ts";

const resource = openshift.CRIOCredentialProviderConfig;
const merge = (body: object) => ({ type: "merge", body }) as const;

class Credentials {
  readonly harness: Harness;

  private constructor(harness: Harness) {
    this.harness = harness;
  }

  static async make(): Promise<Credentials> {
    return new Credentials(await openshiftHarness());
  }

  /** Creates an object, or changes its spec, and lets the controllers see it. */
  async put<T extends KubeObject>(of: Resource<T>, spec: object, name = "cluster"): Promise<void> {
    await this.harness.act(async () => {
      const { apiVersion, kind } = of;
      const before = await this.harness.kube.get(of, { name });
      if (before === undefined)
        await this.harness.kube.create(of, { apiVersion, kind, metadata: { name }, spec } as unknown as T);
      else await this.harness.kube.patch(of, { name }, merge({ spec }));
    });
    await this.harness.pass(3000);
  }

  images = (...matchImages: readonly string[]) => this.put(resource, { matchImages });

  config(pool = "worker"): Promise<MachineConfig | undefined> {
    return this.harness.act(() => this.harness.kube.get(MachineConfig, { name: credentialsConfigName(pool) }));
  }

  async file(path = genericProviderPath, pool = "worker"): Promise<string | undefined> {
    return fileText(await this.config(pool), path, mostTextCharacters);
  }

  async conditions(): Promise<readonly string[]> {
    const found = await this.harness.act(() => this.harness.kube.get(resource, { name: "cluster" }));
    const { generation } = found?.metadata ?? {};
    return (found?.status?.conditions ?? []).map(
      ({ type, status, reason, message, observedGeneration }) =>
        `${type} ${status} ${reason}${observedGeneration === generation ? "" : " (old)"}: ${message}`,
    );
  }

  async events(): Promise<readonly string[]> {
    const { items } = await this.harness.act(() => this.harness.kube.list(kubernetes.Event));
    return items
      .filter(({ involvedObject }) => involvedObject.kind === resource.kind)
      .map(({ reason, message }) => `${reason}: ${message}`);
  }
}

const written = `written as ${credentialsConfigName("master")}, ${credentialsConfigName("worker")}`;

describe("a CRIOCredentialProviderConfig", () => {
  test("becomes a MachineConfig of each built-in pool, follows changes, and owns what is made [credentials-controller-1]", async () => {
    const cluster = await Credentials.make();
    expect(await cluster.config()).toBeUndefined();
    await cluster.images("quay.io/team");
    expect(await cluster.conditions()).toEqual([
      "Validated True Succeeded: all match images are valid",
      `MachineConfigRendered True MachineConfigRenderingSucceeded: ${written}`,
    ]);
    const before = await cluster.config();
    expect(before?.metadata).toMatchObject({
      labels: { [labels.role]: "worker" },
      ownerReferences: [{ kind: resource.kind, name: "cluster", controller: true }],
    });
    expect(await cluster.file(genericProviderPath, "master")).toContain("- quay.io/team\n");
    expect(await cluster.config("infra")).toBeUndefined();
    await cluster.images("quay.io/team", "docker.io");
    expect(await cluster.file()).toContain("matchImages:\n  - docker.io\n  - quay.io/team\n");
    expect((await cluster.config())?.metadata.uid).toBe(before?.metadata.uid);
    // Nothing is written while nothing changes.
    const version = (await cluster.config())?.metadata.resourceVersion;
    await cluster.harness.pass(120_000);
    expect((await cluster.config())?.metadata.resourceVersion).toBe(version);
    expect(await cluster.events()).toEqual([]);
    // The machines of the pool are to have it.
    const { target } = await cluster.harness.poolStatus("worker");
    const rendered = await cluster.harness.act(() => cluster.harness.kube.get(MachineConfig, { name: target }));
    expect(fileText(rendered, genericProviderPath, mostTextCharacters)).toBe(await cluster.file());
  });

  test("an empty one writes no file, and takes out what was written [credentials-controller-2]", async () => {
    const cluster = await Credentials.make();
    await cluster.images("quay.io/team");
    await cluster.put(resource, { matchImages: null });
    expect(await cluster.file()).toBeUndefined();
    expect((await cluster.conditions())[1]).toContain("MachineConfigRendered True");
  });

  test("images that the platform's provider answers are left out, in Validated and in an Event [credentials-controller-3]", async () => {
    const cluster = await Credentials.make();
    const [ecr = ""] = platformProviderPaths;
    const text = `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr-credential-provider
  matchImages: ["*.ecr.example.com"]
  defaultCacheDuration: 12h
  apiVersion: credentialprovider.kubelet.k8s.io/v1
`;
    // A built-in pool whose base configuration another generator made for its platform.
    await cluster.harness.act(async () => {
      await cluster.harness.config("00-infra", "infra", { [ecr]: text });
      const body = { metadata: { labels: { [labels.builtInPool]: "" } } };
      await cluster.harness.kube.patch(MachineConfigPool, { name: "infra" }, merge(body));
    });
    await cluster.images("quay.io", "a.ecr.example.com");
    const left =
      "spec.matchImages[1] a.ecr.example.com: ecr-credential-provider answers *.ecr.example.com; take it out of the list, or name what lies outside";
    expect((await cluster.conditions())[0]).toBe(`Validated False ConfigurationPartiallyApplied: ${left}`);
    expect(await cluster.events()).toEqual([`SettingsRefused: ${left}`]);
    expect(await cluster.file(ecr, "infra")).toContain("- quay.io\n");
    expect(await cluster.file(genericProviderPath, "infra")).toBeUndefined();
    // The others have no such provider.
    expect(await cluster.file()).toContain("- a.ecr.example.com\n");
    // A pool that is not built in any more keeps nothing of it.
    await cluster.images("quay.io");
    expect((await cluster.conditions())[0]).toContain("Validated True");
    await cluster.harness.act(() =>
      cluster.harness.kube.patch(
        MachineConfigPool,
        { name: "infra" },
        merge({ metadata: { labels: { [labels.builtInPool]: null } } }),
      ),
    );
    await cluster.harness.pass(3000);
    expect(await cluster.config("infra")).toBeUndefined();
  });

  test("with its gate off nothing is written, because no kubelet would start; on again, it is [credentials-controller-4]", async () => {
    const cluster = await Credentials.make();
    await cluster.images("quay.io");
    const gates = (...disabled: readonly string[]) =>
      cluster.put(openshift.FeatureGate, { featureSet: "CustomNoUpgrade", customNoUpgrade: { disabled } });
    await gates(tokenGate);
    await cluster.images("quay.io", "docker.io");
    expect((await cluster.conditions())[1]).toBe(
      `MachineConfigRendered False MachineConfigRenderingFailed: FeatureGate/cluster ${tokenGate} is off, and a kubelet would not start with this provider`,
    );
    expect(await cluster.file()).not.toContain("docker.io");
    await gates();
    expect((await cluster.conditions())[1]).toContain("MachineConfigRendered True");
    expect(await cluster.file()).toContain("docker.io");
  });

  test("a MachineConfig of somebody else with the name stays, and is named [credentials-controller-5]", async () => {
    const cluster = await Credentials.make();
    await cluster.harness.act(() =>
      cluster.harness.config(credentialsConfigName("worker"), "worker", { "/etc/own": "1" }),
    );
    await cluster.images("quay.io");
    expect((await cluster.conditions())[1]).toContain(
      `pool worker has the MachineConfig ${credentialsConfigName("worker")}, which another writer made`,
    );
    expect(await cluster.file("/etc/own")).toBe("1");
  });

  test.for([
    { spec: { matchImages: ["*"] }, says: "must name a registry" },
    { spec: { matchImages: ["Quay.io"] }, says: "must be a host name in lower case" },
    { spec: { matchImages: ["quay.io", "quay.io"] }, says: "Duplicate value" },
    { spec: { matchImages: [] }, says: "at least 1 items" },
    { spec: {}, name: "other", says: "must be named cluster" },
  ])("the API server refuses $spec $name [credentials-controller-6]", async ({ spec, name, says }) => {
    const cluster = await Credentials.make();
    await expect(cluster.put(resource, spec, name)).rejects.toThrow(says);
  });
});
