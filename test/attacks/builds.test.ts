import { describe, expect, test } from "vitest";
import { type ConfigMap, type Job, type Pod, type Secret, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineOSConfig } from "../../src/api/kinds/machine-os-config.ts";
import { annotations, buildNamespace, namespace, objects } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/schema/object.ts";
import { isForbidden } from "../../src/kube/kube-error.ts";
import { suiteRights } from "../../src/operator/rights.ts";
import { startOperator } from "../support/operator-harness.ts";
import { readBuildContext } from "../../src/build-image/build-context.ts";
import type { Files } from "../../src/ports/files.ts";
import { systemFiles } from "../../src/ports/node/index.ts";
import { buildJob, objectsOfBuild } from "../support/pod-templates.ts";
import { untilSeen } from "../support/until-seen.ts";
import { allAre, allowedWrites, optIn, outcomesOf, prepareBuilderWrites, refusedWrites } from "./builder-writes.ts";
import { attackingJob, attackingPod, platformAnnotations, podAttacks, refusedFor } from "./build-pods.ts";

interface Binding extends KubeObject {
  readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

/** What the operator of {@link startOperator} has builds run. */
const image = "suite:1";

/** An operator that has bound the builder, and objects that a builder writes. */
async function startBound() {
  const { kube, as } = await startOperator();
  await untilSeen(
    "the policies of the builder",
    () => kube.get(kubernetes.ValidatingAdmissionPolicyBinding, { name: "os-builder-config-maps-binding" }),
    (binding) => binding !== undefined,
  );
  await prepareBuilderWrites(kube);
  return { kube, builder: as({ name: `system:serviceaccount:${namespace}:${objects.osBuilder}`, groups: [] }) };
}

describe("an attacker with the builder or a build step reaches no Secret of a component", () => {
  test("the builder can create no pod or Secret in the suite's namespace, and read none in other namespaces [attack-builds-1]", async () => {
    const { kube, as } = await startOperator();
    const builder = as({ name: `system:serviceaccount:${namespace}:${objects.osBuilder}`, groups: [] });
    const secret = (name: string, where: string): Secret => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: where },
    });
    await kube.create<Secret>(kubernetes.Secret, secret("certificate", namespace));
    const job = buildJob();
    const stealing = { ...job, metadata: { ...job.metadata, namespace } } as Job;
    for (const attack of [
      () => builder.create<Job>(kubernetes.Job, stealing),
      () =>
        builder.create(kubernetes.Pod, {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name: "thief", namespace: buildNamespace },
          spec: job.spec?.template.spec ?? { containers: [] },
        }),
      () => builder.create<Secret>(kubernetes.Secret, secret("planted", namespace)),
      () =>
        builder.patch<Secret>(
          kubernetes.Secret,
          { name: "certificate", namespace },
          { type: "merge", body: { data: {} } },
        ),
      () => builder.delete(kubernetes.Secret, { name: "certificate", namespace }),
      () => builder.list(kubernetes.Secret, { namespace: "kube-system" }),
      () => builder.list(kubernetes.Secret),
    ])
      await expect(attack()).rejects.toSatisfy(isForbidden);
    // Its work it can do.
    await builder.create<Job>(kubernetes.Job, buildJob(image));
  });

  test("the builder creates no Job, and nobody a pod, that could leave the confinement of builds [attack-builds-8]", async () => {
    const { kube, as } = await startOperator();
    const builder = as({ name: `system:serviceaccount:${namespace}:${objects.osBuilder}`, groups: [] });
    await untilSeen(
      "the policies of builds",
      () => kube.get(kubernetes.ValidatingAdmissionPolicyBinding, { name: "image-build-pods-binding" }),
      (binding) => binding !== undefined,
    );
    const refusal = (create: Promise<unknown>) =>
      create.then(
        () => "it was created",
        (error: unknown) => (isForbidden(error) && error instanceof Error ? error.message : String(error)),
      );
    const told = await Promise.all(
      podAttacks.map(async ({ title, says, ...attack }) => [
        title,
        says,
        await refusal(builder.create<Job>(kubernetes.Job, attackingJob(attack, image), { dryRun: true })),
        await refusal(kube.create<Pod>(kubernetes.Pod, attackingPod(attack, image), { dryRun: true })),
      ]),
    );
    expect(told).toEqual(podAttacks.map(({ title, says }) => [title, says, refusedFor(says), refusedFor(says)]));
    // A build's own Job and pod are none of them.
    await builder.create<Job>(kubernetes.Job, buildJob(image));
    const pod = await kube.create<Pod>(kubernetes.Pod, attackingPod({ annotations: platformAnnotations }, image));
    // What is there is written: its status, its labels and its finalizers, and what its network says of it.
    const annotations = { "k8s.ovn.org/pod-networks": "{}", "cni.projectcalico.org/podIP": "192.0.2.1" };
    await kube.patch<Pod>(kubernetes.Pod, pod.metadata, {
      type: "merge",
      body: { metadata: { labels: { a: "b" }, annotations, finalizers: ["example.com/f"] } },
    });
    await expect(
      kube.patch<Pod>(kubernetes.Pod, pod.metadata, {
        type: "json",
        operations: [{ op: "replace", path: "/spec/containers/0/image", value: "attacker.example.com/root" }],
      }),
    ).rejects.toSatisfy(isForbidden);
  });

  test("builds with the users of the machine are created only where its administrator allows them [attack-builds-9]", async () => {
    const { kube, as } = await startOperator();
    const builder = as({ name: `system:serviceaccount:${namespace}:${objects.osBuilder}`, groups: [] });
    const { job } = objectsOfBuild({ isolation: "hostUsers" }, image);
    const create = () =>
      builder.create<Job>(kubernetes.Job, job, { dryRun: true }).then(
        () => "created",
        (error: unknown) => (isForbidden(error) ? "refused" : String(error)),
      );
    const untilIs = (outcome: string) => untilSeen(`such a Job is ${outcome}`, create, (is) => is === outcome);
    await untilIs("refused");
    const settings = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: objects.buildConfig, namespace } };
    await kube.create<ConfigMap>(kubernetes.ConfigMap, { ...settings, data: { buildIsolation: "hostUsers" } });
    await untilIs("created");
    // Not even then as root, or with more.
    for (const context of [
      { runAsUser: 0, runAsNonRoot: false },
      { privileged: true },
      { capabilities: { drop: ["ALL"], add: ["SYS_ADMIN"] } },
    ])
      await expect(
        builder.create<Job>(kubernetes.Job, attackingJob({ pod: { hostUsers: true }, context }, image), {
          dryRun: true,
        }),
      ).rejects.toSatisfy(isForbidden);
  });

  test("the builder reads no Secret of the suite's namespace, not even by naming one in a MachineOSConfig [attack-builds-4]", async () => {
    const { kube, as } = await startOperator();
    const builder = as({ name: `system:serviceaccount:${namespace}:${objects.osBuilder}`, groups: [] });
    const registry: Secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "push", namespace },
      type: "kubernetes.io/dockerconfigjson",
      data: { ".dockerconfigjson": btoa('{"auths":{}}') },
    };
    await kube.create<Secret>(kubernetes.Secret, registry);
    const authority = await untilSeen(
      "the operator's own authority",
      () => kube.get(kubernetes.Secret, { name: objects.configServerCa, namespace }),
      (secret) => secret !== undefined,
    );
    expect(authority?.data).toHaveProperty("tls.key");
    for (const attack of [
      () => builder.get(kubernetes.Secret, { name: objects.configServerCa, namespace }),
      () => builder.get(kubernetes.Secret, { name: "push", namespace }),
      () => builder.list(kubernetes.Secret, { namespace }),
      () => builder.list(kubernetes.Secret, { namespace, fieldSelector: `metadata.name=${objects.configServerCa}` }),
    ])
      await expect(attack()).rejects.toSatisfy(isForbidden);

    // For a pool that is opted in it writes the MachineOSConfig, and the operator copies what this names.
    const pool = await untilSeen(
      "the worker pool",
      () => kube.get(MachineConfigPool, { name: "worker" }),
      (found): found is MachineConfigPool => found !== undefined,
    );
    await kube.patch(MachineConfigPool, pool.metadata, {
      type: "merge",
      body: { metadata: { labels: { [annotations.layeringEnabled]: "" } } },
    });
    await builder.create(MachineOSConfig, {
      apiVersion: MachineOSConfig.apiVersion,
      kind: MachineOSConfig.kind,
      metadata: { name: "worker", annotations: { [annotations.optInSource]: "PoolLabel" } },
      spec: {
        machineConfigPool: { name: "worker" },
        imageBuilder: { imageBuilderType: "Job" },
        baseImagePullSecret: { name: objects.configServerCa },
        renderedImagePushSecret: { name: "push" },
        renderedImagePushSpec: "registry.example.com/os:latest",
      },
    });
    const copy = (name: string) =>
      untilSeen(
        `the copy of ${name}`,
        () => builder.get(kubernetes.Secret, { name, namespace: buildNamespace }),
        (secret): secret is Secret => secret !== undefined,
      );
    expect((await copy("push")).data).toEqual(registry.data);
    const stolen = await copy(objects.configServerCa);
    expect([stolen.data ?? {}, stolen.metadata.annotations]).toEqual([
      {},
      { [annotations.secretType]: "kubernetes.io/tls" },
    ]);
  });

  test("the builder writes of pools and MachineOSConfigs what its work needs, and opts in no pool that nobody opted in [attack-builds-13]", async () => {
    const { kube, builder } = await startBound();
    expect(await outcomesOf(refusedWrites, builder)).toEqual(allAre(refusedWrites, "refused"));
    expect(await outcomesOf(allowedWrites, builder)).toEqual(allAre(allowedWrites, "written"));
    // They bind the builder alone.
    const asked = refusedWrites.filter(({ title }) => !title.includes("as a user"));
    expect((await outcomesOf(asked, kube)).filter(([, outcome]) => outcome === "refused")).toEqual([]);
  });

  test("the builder opts every pool in while the cluster's default does, but for those that say no [attack-builds-14]", async () => {
    const { kube, builder } = await startBound();
    const outcome = async (pool: "plain" | "refusing") =>
      (await outcomesOf([optIn(pool, "ClusterDefault")], builder)).map(([, told]) => told).join();
    const untilIs = (wanted: string) =>
      untilSeen(
        `an opt-in by default is ${wanted}`,
        () => outcome("plain"),
        (told) => told === wanted,
      );
    await untilIs("refused");
    const settings = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: objects.buildConfig, namespace } };
    await kube.create<ConfigMap>(kubernetes.ConfigMap, { ...settings, data: { defaultOptIn: "true" } });
    await untilIs("written");
    expect(await outcome("refusing")).toBe("refused");
    await kube.delete(kubernetes.ConfigMap, settings.metadata);
    await untilIs("refused");
  });

  test("a build's pod runs as an account that no binding names, and has no token [attack-builds-2]", async () => {
    const spec = buildJob().spec?.template.spec;
    expect([spec?.serviceAccountName, spec?.automountServiceAccountToken]).toEqual([objects.buildAccount, false]);
    const subjects = suiteRights().flatMap((one) => (one as Binding).subjects ?? []);
    expect(subjects.filter(({ name }) => name === objects.buildAccount || name.endsWith(buildNamespace))).toEqual([]);
    const { kube } = await startOperator();
    const account = await kube.get(kubernetes.ServiceAccount, {
      name: objects.buildAccount,
      namespace: buildNamespace,
    });
    expect(account?.automountServiceAccountToken).toBe(false);
  });

  test("a build's pod mounts only the copies for this build and the cache of its pool [attack-builds-3]", () => {
    const { metadata, spec } = buildJob();
    expect(metadata.namespace).toBe(buildNamespace);
    const [, build = ""] = /^build-(.*)-1$/.exec(metadata.name) ?? [];
    for (const { secret, configMap, hostPath } of spec?.template.spec?.volumes ?? []) {
      const name = secret?.secretName ?? configMap?.name;
      if (name !== undefined) expect(name).toMatch(new RegExp(`-${build}$`));
      if (hostPath !== undefined) expect(hostPath.path).toMatch(/\/worker$/);
    }
  });

  test("the password of the cluster's proxy is in no object of a build but a Secret, and the build reads it there [attack-builds-7]", async () => {
    const proxy = { httpsProxy: "http://user:proxy-pa55word@proxy.example.com:3128", noProxy: ".svc" };
    const { configMaps, secrets, job } = objectsOfBuild({ proxy });
    expect(JSON.stringify([configMaps, job])).not.toContain("proxy-pa55word");
    const { spec } = job.spec?.template ?? {};
    for (const container of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]) {
      const mounted = new Map<string, Uint8Array>();
      for (const { name, mountPath } of container.volumeMounts ?? []) {
        const { secret, configMap } = spec?.volumes?.find((volume) => volume.name === name) ?? {};
        const map = configMaps.find(({ metadata }) => metadata.name === configMap?.name);
        for (const [key, text] of Object.entries(map?.data ?? {}))
          mounted.set(`${mountPath}/${key}`, Buffer.from(text));
        const held = secrets.find(({ metadata }) => metadata.name === secret?.secretName)?.data ?? {};
        for (const [key, text] of Object.entries(held)) mounted.set(`${mountPath}/${key}`, Buffer.from(text, "base64"));
      }
      const files: Files = {
        ...systemFiles,
        read: async (path) => mounted.get(path),
        readText: async (path) => (mounted.has(path) ? Buffer.from(mounted.get(path) ?? []).toString() : undefined),
      };
      expect((await readBuildContext(files, (path) => path)).proxy).toEqual(proxy);
    }
  });
});
