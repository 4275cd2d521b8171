import { parse as parseToml } from "smol-toml";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ImageMirrors, openshift } from "../../src/api/foreign/openshift.ts";
import { MachineConfigPool, kubernetes } from "../../src/api/index.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { endScenario } from "../support/end-scenario.ts";
import { untilSeen } from "../support/until-seen.ts";
import { TestCluster, hasApiServer } from "../support/test-cluster.ts";

let cluster: TestCluster;

const worker = "worker-0";
const registriesConf = "/etc/containers/registries.conf";

const digestMirrors = (name: string, ...imageDigestMirrors: readonly ImageMirrors[]) =>
  JSON.stringify({
    apiVersion: "config.openshift.io/v1",
    kind: "ImageDigestMirrorSet",
    metadata: { name },
    spec: { imageDigestMirrors },
  });

/** Applies a manifest as a person does, and waits until the machines of both pools have what it makes. */
async function followed(work: () => Promise<unknown>): Promise<void> {
  const [workers, masters] = [await cluster.target("worker"), await cluster.target("master")];
  await work();
  await Promise.all([cluster.untilRolledOut("worker", workers), cluster.untilRolledOut("master", masters)]);
}

const apply = (manifest: string) => cluster.kubectl(["apply", "-f", "-"], { input: manifest });
const remove = (kind: string, name: string) => cluster.kubectl(["delete", kind, name]);

/** The entries of the file as it is on a machine. */
const entries = (machine = worker): unknown => parseToml(cluster.hostFile(machine, registriesConf) ?? "")["registry"];
const entry = (location: string, ...mirrors: readonly string[]) => ({
  location,
  mirror: mirrors.map((mirror) => ({ location: mirror, "pull-from-mirror": "digest-only" })),
});

const degraded = (is: "True" | "False") =>
  cluster.until(
    MachineConfigPool,
    "worker",
    ({ status }) =>
      conditionOf(status?.conditions as { type: string; status: string }[], "RegistriesDegraded")?.status === is &&
      conditionOf(status?.conditions as { type: string; status: string }[], "Degraded")?.status === is,
    `the pool is degraded by its registries: ${is}`,
  );

describe.skipIf(!hasApiServer)("registries on a cluster of real processes", () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 1 });
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test("machines follow a mirror set that is created and changed, without a reboot [scenario-registries-1]", async () => {
    const { bootId } = cluster.machineState(worker);
    const manifest = digestMirrors("team", { source: "quay.io/team", mirrors: ["mirror.example.com/team"] });
    const plan = await cluster.mco(["plan", "-f", "-"], { input: manifest });
    expect(plan).toMatchObject({ code: 2, stdout: expect.stringContaining("worker-0: reload crio.service") as string });
    await followed(() => apply(manifest));
    expect(entries()).toEqual([entry("quay.io/team", "mirror.example.com/team")]);
    expect(entries("master-0")).toEqual(entries());
    const { stdout } = await cluster.mco(["blame", registriesConf, "--pool", "worker"]);
    expect(stdout).toContain("for digests: ImageDigestMirrorSet/team spec.imageDigestMirrors[0].mirrors[0]");
    await followed(() =>
      apply(
        digestMirrors("team", {
          source: "quay.io/team",
          mirrors: ["near.example.com/team", "mirror.example.com/team"],
        }),
      ),
    );
    expect(entries()).toEqual([entry("quay.io/team", "near.example.com/team", "mirror.example.com/team")]);
    expect(cluster.machineState(worker).bootId).toBe(bootId);
  }, 600_000);

  test("two mirror sets of one source are one list; machines keep it while a third contradicts them [scenario-registries-2]", async () => {
    await followed(() =>
      apply(
        digestMirrors("other", {
          source: "quay.io/team",
          mirrors: ["mirror.example.com/team", "far.example.com/team"],
        }),
      ),
    );
    const merged = [entry("quay.io/team", "near.example.com/team", "mirror.example.com/team", "far.example.com/team")];
    expect(entries()).toEqual(merged);
    const rule = { source: "quay.io/team", mirrors: ["far.example.com/team"] };
    const contradicting = await apply(digestMirrors("wrong", { ...rule, mirrorSourcePolicy: "NeverContactSource" }));
    expect(contradicting.stderr).toContain("must be the same in every rule for quay.io/team");
    const { status } = await degraded("True");
    expect(JSON.stringify(status?.conditions)).toContain(
      "ImageDigestMirrorSet/wrong: spec.imageDigestMirrors[0].mirrorSourcePolicy must be the same in every rule for quay.io/team",
    );
    expect(entries()).toEqual(merged);
    await untilSeen(
      "a Warning Event on the set",
      async () => (await cluster.kube.list(kubernetes.Event)).items,
      (items) =>
        items.some(({ reason, involvedObject }) => reason === "RegistriesRefused" && involvedObject.name === "wrong"),
    );
    const { stdout: pool } = await cluster.mco(["explain", "pool/worker"]);
    expect(pool).toContain("Registries are not written:\n  ImageDigestMirrorSet/wrong: spec.imageDigestMirrors[0]");
    const { stdout: wrong } = await cluster.mco(["explain", "imagedigestmirrorset/wrong"]);
    expect(wrong).toContain("ImageDigestMirrorSet/wrong is refused, and machines keep what they have");
    await apply(digestMirrors("wrong", rule));
    await degraded("False");
    const { stdout: right } = await cluster.mco(["explain", "imagedigestmirrorset/wrong"]);
    expect(right).toContain("ImageDigestMirrorSet/wrong is in 99-master-generated-registries");
    expect(entries()).toEqual(merged);
  }, 600_000);

  test("image policies say whether machines get them, and the machines do [scenario-registries-3]", async () => {
    const keyData = Buffer.from("-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n").toString("base64");
    const policy = (kind: string, metadata: object, scope: string) =>
      JSON.stringify({
        apiVersion: "config.openshift.io/v1",
        kind,
        metadata,
        spec: { scopes: [scope], policy: { rootOfTrust: { policyType: "PublicKey", publicKey: { keyData } } } },
      });
    await followed(async () => {
      const { stderr } = await apply(policy("ClusterImagePolicy", { name: "all" }, "quay.io/signed"));
      expect(stderr).toContain("Warning: pool worker gets rendered-worker-");
    });
    expect(cluster.hostFile(worker, "/etc/containers/policy.json")).toContain('"quay.io/signed"');
    expect(cluster.hostFile(worker, "/etc/containers/registries.d/sigstore-registries.yaml")).toContain(
      "quay.io/signed:",
    );
    const applied = await cluster.until(
      openshift.ClusterImagePolicy,
      "all",
      ({ status }) => conditionOf(status?.conditions, "Applied")?.status === "True",
      "the policy is applied",
    );
    expect(conditionOf(applied.status?.conditions, "Pending")?.status).toBe("False");
    await apply(policy("ImagePolicy", { name: "own", namespace: "default" }, "quay.io/signed/app"));
    const conflicting = await cluster.until(
      openshift.ImagePolicy,
      "own",
      ({ status }) => conditionOf(status?.conditions, "Pending")?.status === "True",
      "the policy of the namespace waits",
      { namespace: "default" },
    );
    expect(conditionOf(conflicting.status?.conditions, "Pending")?.reason).toBe("ConflictScopes");
    await followed(() => remove("clusterimagepolicy", "all"));
    expect(cluster.hostFile(worker, "/etc/crio/policies/default.json")).toContain('"quay.io/signed/app"');
    await followed(() => cluster.kubectl(["delete", "imagepolicy", "own", "-n", "default"]));
    expect(cluster.hostFile(worker, "/etc/crio/policies/default.json")).toBeUndefined();
  }, 600_000);

  test("lists of the Image config reach the machines, and nothing is left when all of it is deleted [scenario-registries-4]", async () => {
    await followed(() =>
      apply(
        JSON.stringify({
          apiVersion: "config.openshift.io/v1",
          kind: "Image",
          metadata: { name: "cluster" },
          spec: { registrySources: { blockedRegistries: ["bad.example.com"] } },
        }),
      ),
    );
    expect(entries()).toContainEqual({ location: "bad.example.com", blocked: true });
    await followed(() => remove("image.config.openshift.io", "cluster"));
    // The other sets name its mirrors too.
    await remove("imagedigestmirrorset", "wrong");
    await followed(() => remove("imagedigestmirrorset", "other"));
    await followed(() => remove("imagedigestmirrorset", "team"));
    expect(entries()).toBeUndefined();
    expect(cluster.hostFile(worker, registriesConf)).toContain("unqualified-search-registries");
  }, 600_000);

  test("a mirror set that cuts the cluster off from its release is refused when it is written [scenario-registries-6]", async () => {
    const release = `quay.io/openshift/release@sha256:${"a".repeat(64)}`;
    const version = {
      apiVersion: "config.openshift.io/v1",
      kind: "ClusterVersion",
      metadata: { name: "version" },
      spec: { clusterID: "4e9f4f3c-2d4d-4b52-8a52-6cd1c2f1b6c3" },
    };
    const desired = { version: "4.20.1", image: release, url: "" };
    const status = { availableUpdates: [], observedGeneration: 1, versionHash: "", desired };
    await apply(JSON.stringify(version));
    await cluster.kubectl([
      "patch",
      "clusterversion",
      "version",
      "--subresource=status",
      "--type=merge",
      "-p",
      JSON.stringify({ status }),
    ]);
    const rule = {
      source: "quay.io/openshift",
      mirrors: ["mirror.example.com/openshift"],
      mirrorSourcePolicy: "NeverContactSource",
    };
    const cutting = JSON.stringify({
      apiVersion: "config.openshift.io/v1",
      kind: "ImageTagMirrorSet",
      metadata: { name: "cutting" },
      spec: { imageTagMirrors: [rule] },
    });
    // The controller learns of the release a moment later.
    const said = `spec.imageTagMirrors[0].mirrorSourcePolicy: cuts the cluster off from the image of its release, ${release}`;
    await untilSeen(
      "the mirror set is refused",
      async () => (await cluster.kubectl(["apply", "--dry-run=server", "-f", "-"], { input: cutting })).stderr,
      (stderr) => stderr.includes(said),
    );
    expect((await apply(cutting)).stderr).toContain(said);
    expect(await cluster.kube.get(openshift.ImageTagMirrorSet, { name: "cutting" })).toBeUndefined();
    const old = {
      apiVersion: "operator.openshift.io/v1alpha1",
      kind: "ImageContentSourcePolicy",
      metadata: { name: "cutting" },
      spec: { repositoryDigestMirrors: [{ source: "quay.io/none", mirrors: ["mirror.example.com/openshift:v1"] }] },
    };
    const dry = await cluster.kubectl(["apply", "--dry-run=server", "-f", "-"], { input: JSON.stringify(old) });
    expect(dry.stderr).toContain("spec.repositoryDigestMirrors[0].mirrors[0]");
    await remove("clusterversion", "version");
  }, 600_000);

  test("kubelets follow a CRIOCredentialProviderConfig without a reboot, and nothing is left when it is deleted [scenario-registries-5]", async () => {
    const { bootId } = cluster.machineState(worker);
    const path = "/etc/kubernetes/credential-providers/generic-credential-provider.yaml";
    const dropIn = "/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf";
    const manifest = (...matchImages: readonly string[]) =>
      JSON.stringify({
        apiVersion: "config.openshift.io/v1",
        kind: "CRIOCredentialProviderConfig",
        metadata: { name: "cluster" },
        spec: { matchImages },
      });
    const plan = await cluster.mco(["plan", "-f", "-"], { input: manifest("quay.io/team") });
    expect(plan).toMatchObject({ code: 2, stdout: expect.stringContaining("restart kubelet.service") as string });
    await followed(() => apply(manifest("quay.io/team")));
    expect(cluster.hostFile(worker, path)).toContain("- quay.io/team\n");
    expect(cluster.hostFile("master-0", path)).toBe(cluster.hostFile(worker, path));
    expect(cluster.hostFile(worker, dropIn)).toContain(`--image-credential-provider-config=${path}`);
    const { stdout } = await cluster.mco(["explain", "criocredentialproviderconfig"]);
    expect(stdout).toContain("is written as 97-master-generated-credentialproviderconfig, 97-worker");
    const wrong = await apply(manifest("Quay.io"));
    expect(wrong.stderr).toContain("must be a host name in lower case");
    await followed(() => apply(manifest("docker.io")));
    expect(cluster.hostFile(worker, path)).toContain("matchImages:\n  - docker.io\n");
    await followed(() => remove("criocredentialproviderconfig", "cluster"));
    expect([cluster.hostFile(worker, path), cluster.hostFile(worker, dropIn)]).toEqual([undefined, undefined]);
    expect(cluster.machineState(worker).bootId).toBe(bootId);
  }, 600_000);
});
