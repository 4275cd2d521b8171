import { describe, expect, onTestFinished, test } from "vitest";
import { createApiServer } from "../standin/apiserver/server.ts";
import { memoryStore } from "../standin/apiserver/storage/memory-store.ts";
import { sharedSecretKeys } from "../standin/apiserver/access/service-account-tokens.ts";
import { type ConfigMap, type Job, type Pod, type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import { annotations, buildNamespace, labels, namespace } from "../api/names.ts";
import { buildPaths, printOutcome, readBuildFile } from "../core/build/image-build.ts";
import { type KubeClient, createKubeClient } from "../kube/kube-client.ts";
import { isAlreadyExists } from "../kube/kube-error.ts";
import { AnswerTooLong } from "../ports/http.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import type { BuildRequest } from "./backend.ts";
import { jobNameOf } from "./build-names.ts";
import { pieceBytes } from "./build-objects.ts";
import { type JobBackendOptions, jobBackend } from "./job-backend.ts";

const never = new AbortController().signal;
const build = "worker-0123456789abcdef0123456789abcdef";
const request: BuildRequest = {
  id: `${build}-1`,
  build: {
    metadata: { name: build, uid: "u1" },
    spec: {
      machineConfig: { name: "rendered-worker-1" },
      machineOSConfig: { name: "worker" },
      renderedImagePushSpec: "registry.example:5000/os:worker",
    },
  },
  attempt: 1,
  pool: "worker",
  mode: "full",
  architecture: "amd64",
  base: `registry.example:5000/os/stock@sha256:${"1".repeat(64)}`,
  containerfile: "FROM configs\nCOPY a /a\n",
  context: [{ path: "a", contents: Buffer.from("in the context"), mode: 0o640 }],
  configLayer: { bytes: Buffer.from("layer"), digest: "sha256:l", diffId: "sha256:d" },
  mounts: [{ kind: "entitlement", source: { kind: "Secret", name: "etc-pki-entitlement-worker" } }],
  auth: { pull: "pull", push: "push" },
  trust: ["PEM"],
  registryCertificates: {},
  policy: "{}",
  target: { repository: "registry.example:5000/os", tag: build },
  epoch: 7,
  noCache: false,
  isolation: "userNamespace",
  limits: { seconds: 3600, pushSeconds: 600, cpu: "500m", memory: "1Gi", storage: "20Gi" },
  labels: {},
};
const base64 = (text: string) => Buffer.from(text).toString("base64");
const auth = (user: string) => JSON.stringify({ "registry.example:5000": { auth: base64(`${user}:s3cret`) } });

/** An API server with the two secrets, and a backend that uses it. */
async function harness(more: Partial<JobBackendOptions> = {}) {
  const server = createApiServer({
    store: memoryStore(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    tokenKeys: sharedSecretKeys(systemRandom.bytes(32)),
  });
  onTestFinished(() => server.close());
  const kube = createKubeClient({
    transport: server.as({ name: "admin", groups: ["system:masters"] }),
    clock: systemClock,
    random: systemRandom,
    userAgent: "test",
  });
  for (const name of [namespace, buildNamespace])
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  const secret = (name: string, type: string, key: string, text: string) =>
    kube.create<Secret>(kubernetes.Secret, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: buildNamespace },
      type,
      data: { [key]: base64(text) },
    });
  await secret("pull", "kubernetes.io/dockercfg", ".dockercfg", auth("puller"));
  await secret("push", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", `{"auths":${auth("builder")}}`);
  const backend = jobBackend({
    kube,
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    image: "suite",
    hasProgram: async () => true,
    ...more,
  });
  const names = async () => {
    const of = async (resource: typeof kubernetes.ConfigMap | typeof kubernetes.Secret | typeof kubernetes.Job) =>
      (await kube.list(resource, { namespace: buildNamespace, labelSelector: labels.ephemeralBuildObject })).items
        .map(({ metadata }) => metadata.name)
        .sort();
    return {
      configMaps: await of(kubernetes.ConfigMap),
      secrets: await of(kubernetes.Secret),
      jobs: await of(kubernetes.Job),
    };
  };
  /** The pod of the Job, as a kubelet would report it. */
  const pod = async (status: Pod["status"]) => {
    const job = await kube.get(kubernetes.Job, { name: jobNameOf({ build, attempt: 1 }), namespace: buildNamespace });
    const made: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name: "pod",
        namespace: buildNamespace,
        labels: job?.spec?.template.metadata?.labels ?? {},
        ownerReferences: [
          { apiVersion: "batch/v1", kind: "Job", name: job?.metadata.name ?? "", uid: job?.metadata.uid ?? "" },
        ],
      },
      spec: { nodeName: "worker-3", containers: [{ name: "image-push", image: "suite" }] },
    };
    await kube.create(kubernetes.Pod, made);
    await kube.patch(kubernetes.Pod, made.metadata, { type: "merge", body: { status } }, { subresource: "status" });
  };
  return { kube, backend, names, pod };
}

describe("builds in Jobs", () => {
  test("a run has everything it needs, owned by its MachineOSBuild, and secrets nowhere but in Secrets", async () => {
    const { kube, backend, names } = await harness({ cacheFolder: "/var/cache/builds" });
    expect(await backend.start(request, never)).toEqual({ id: request.id, build, attempt: 1 });
    expect(await names()).toEqual({
      configMaps: [`additionaltrustbundle-${build}`, `containerfile-${build}`, `etc-policy-${build}`, `mc-${build}`],
      secrets: [`base-${build}`, `final-${build}`],
      jobs: [`build-${build}-1`],
    });
    const job = await kube.get<Job>(kubernetes.Job, { name: `build-${build}-1`, namespace: buildNamespace });
    expect(job).toMatchObject({
      metadata: {
        ownerReferences: [{ kind: "MachineOSBuild", name: build, uid: "u1", controller: true }],
        labels: {
          [labels.machineOSBuild]: build,
          [labels.machineOSConfig]: "worker",
          [labels.targetPool]: "worker",
          [labels.renderedConfig]: "rendered-worker-1",
        },
      },
      spec: {
        backoffLimit: 0,
        activeDeadlineSeconds: 3600,
        template: {
          metadata: { annotations: { "cluster-autoscaler.kubernetes.io/safe-to-evict": "false" } },
          spec: {
            restartPolicy: "Never",
            automountServiceAccountToken: false,
            nodeSelector: { "kubernetes.io/arch": "amd64" },
            initContainers: (["pull", "steps"] as const).map((part) => ({
              image: "suite",
              args: ["build-image", "--context", buildPaths.context, "--part", part],
              resources: { requests: { cpu: "500m", memory: "1Gi", "ephemeral-storage": "20Gi" } },
              securityContext: { readOnlyRootFilesystem: true },
              terminationMessagePolicy: "FallbackToLogsOnError",
            })),
            containers: [
              {
                image: "suite",
                args: ["build-image", "--context", buildPaths.context, "--part", "push"],
                resources: { requests: { cpu: "500m", memory: "1Gi", "ephemeral-storage": "20Gi" } },
                securityContext: { readOnlyRootFilesystem: true },
                terminationMessagePolicy: "FallbackToLogsOnError",
              },
            ],
          },
        },
      },
    });
    expect(job?.spec?.template.spec?.tolerations).toBeUndefined();
    const mountedBy = [
      ...(job?.spec?.template.spec?.initContainers ?? []),
      ...(job?.spec?.template.spec?.containers ?? []),
    ].map(({ volumeMounts = [] }) => volumeMounts.map(({ mountPath }) => mountPath));
    expect(mountedBy.map((paths) => [buildPaths.pull, buildPaths.push].filter((path) => paths.includes(path)))).toEqual(
      [[buildPaths.pull], [], [buildPaths.pull, buildPaths.push]],
    );
    const mounted = new Map(
      job?.spec?.template.spec?.initContainers?.[1]?.volumeMounts?.map(({ name, mountPath }) => [
        mountPath,
        job.spec?.template.spec?.volumes?.find((volume) => volume.name === name),
      ]),
    );
    expect(mounted.get(buildPaths.cache)).toMatchObject({
      hostPath: { path: "/var/cache/builds/worker", type: "DirectoryOrCreate" },
    });
    expect(mounted.get(`${buildPaths.mounts}/entitlement`)).toMatchObject({
      secret: { secretName: `entitlement-${build}`, optional: true },
    });
    const { items: maps } = await kube.list<ConfigMap>(kubernetes.ConfigMap, { namespace: buildNamespace });
    expect(JSON.stringify([maps, job])).not.toContain(base64("builder:s3cret"));
    const { items: secrets } = await kube.list<Secret>(kubernetes.Secret, { namespace: buildNamespace });
    expect(
      secrets
        .filter(({ metadata }) => metadata.name.startsWith("base-"))
        .map(({ data }) => Buffer.from(data?.[".dockerconfigjson"] ?? "", "base64").toString()),
    ).toEqual([`{"auths":${auth("puller")}}`]);
    const told = maps.find(({ metadata }) => metadata.name === `containerfile-${build}`);
    expect(readBuildFile(told?.data?.["build.json"] ?? "")).toMatchObject({
      id: request.id,
      base: request.base,
      pieces: { configLayer: 1, buildVisible: 0 },
      files: [{ path: "a", key: "context-0", mode: 0o640 }],
      mounts: ["entitlement"],
    });
    expect(Buffer.from(told?.binaryData?.["context-0"] ?? "", "base64").toString()).toBe("in the context");
  });

  test("an existing run is adopted, with the current secrets", async () => {
    const { kube, backend } = await harness();
    await backend.start(request, never);
    const uid = (await kube.get(kubernetes.Job, { name: `build-${build}-1`, namespace: buildNamespace }))?.metadata.uid;
    await kube.patch(
      kubernetes.Secret,
      { name: "push", namespace: buildNamespace },
      { type: "merge", body: { data: { ".dockerconfigjson": base64(`{"auths":${auth("rotated")}}`) } } },
    );
    await backend.start(request, never);
    expect(
      (await kube.get(kubernetes.Job, { name: `build-${build}-1`, namespace: buildNamespace }))?.metadata.uid,
    ).toBe(uid);
    expect(
      Buffer.from(
        (await kube.get<Secret>(kubernetes.Secret, { name: `final-${build}`, namespace: buildNamespace }))?.data?.[
          ".dockerconfigjson"
        ] ?? "",
        "base64",
      ).toString(),
    ).toContain(base64("rotated:s3cret"));
    expect(await backend.list(never)).toEqual([{ id: request.id, build, attempt: 1 }]);
  });

  test("a Job and objects of another build whose short names are the same are not this build's [os-builder-job-backend-4]", async () => {
    const { kube, backend, names } = await harness();
    const run = await backend.start(request, never);
    // As if another build's name had the same first digits of its hash.
    const other = { metadata: { annotations: { [labels.machineOSBuild]: "another" } } };
    const before = await names();
    for (const [resource, found] of [
      [kubernetes.Job, before.jobs],
      [kubernetes.ConfigMap, before.configMaps],
      [kubernetes.Secret, before.secrets],
    ] as const)
      for (const name of found)
        await kube.patch(resource, { name, namespace: buildNamespace }, { type: "merge", body: other });
    expect(await backend.observe(run, never)).toEqual({ phase: "Gone" });
    await backend.cancel(run, "superseded", never);
    await backend.cleanup({ build }, { keepForInspection: false }, never);
    expect(await names()).toEqual(before);
    for (const name of before.configMaps) await kube.delete(kubernetes.ConfigMap, { name, namespace: buildNamespace });
    for (const name of before.secrets) await kube.delete(kubernetes.Secret, { name, namespace: buildNamespace });
    await expect(backend.start(request, never)).rejects.toSatisfy(isAlreadyExists);
  });

  test("a configuration too large for one ConfigMap is split, and the parts join to the original", async () => {
    const { kube, backend, names } = await harness();
    const bytes = Buffer.alloc(pieceBytes * 2 + 5, "0123456789");
    await backend.start({ ...request, configLayer: { bytes, digest: "sha256:l", diffId: "sha256:d" } }, never);
    const { configMaps } = await names();
    expect(configMaps.filter((name) => name.startsWith("mc-"))).toEqual([0, 1, 2].map((i) => `mc-${build}-${i}`));
    const { items } = await kube.list<ConfigMap>(kubernetes.ConfigMap, { namespace: buildNamespace });
    const pieces = new Map(
      items
        .flatMap(({ binaryData }) => Object.entries(binaryData ?? {}))
        .filter(([name]) => name.startsWith("config-layer.")),
    );
    expect(
      Buffer.concat([...pieces.keys()].sort().map((name) => Buffer.from(pieces.get(name) ?? "", "base64"))).equals(
        bytes,
      ),
    ).toBe(true);
    const job = await kube.get<Job>(kubernetes.Job, { name: `build-${build}-1`, namespace: buildNamespace });
    expect(
      job?.spec?.template.spec?.containers[0]?.volumeMounts
        ?.map(({ mountPath }) => mountPath)
        .filter((path) => path.startsWith(buildPaths.content)),
    ).toEqual([0, 1, 2].map((i) => `${buildPaths.content}-${i}`));
  });

  test("builds run on the control plane if there are no other machines", async () => {
    const { kube, backend } = await harness();
    await kube.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "master-0", labels: { "kubernetes.io/arch": "amd64", [labels.masterRole]: "" } },
    });
    await backend.start(request, never);
    expect(
      (await kube.get<Job>(kubernetes.Job, { name: `build-${build}-1`, namespace: buildNamespace }))?.spec?.template
        .spec?.tolerations,
    ).toMatchObject([{ key: labels.masterRole }, { key: labels.controlPlaneRole }]);
  });

  test("the result of a run is read from its pod", async () => {
    const { backend, pod } = await harness();
    const run = await backend.start(request, never);
    expect(await backend.observe(run, never)).toMatchObject({ phase: "Pending", reason: "WaitingForPod" });
    const digest = `sha256:${"a".repeat(64)}`;
    await pod({
      phase: "Succeeded",
      containerStatuses: [
        {
          name: "image-push",
          image: "",
          imageID: "",
          ready: false,
          restartCount: 0,
          state: { terminated: { exitCode: 0, reason: "Completed", message: printOutcome({ digest }) } },
        },
      ],
    });
    expect(await backend.observe(run, never)).toMatchObject({ phase: "Succeeded", digest });
  });

  test("the next build of a pool prefers the node with the layers of the previous one", async () => {
    const { kube, backend, pod } = await harness({ cacheFolder: "/var/cache/builds" });
    const run = await backend.start(request, never);
    await pod({ phase: "Running" });
    await backend.observe(run, never);
    await backend.start({ ...request, id: `${build}-2`, attempt: 2 }, never);
    const next = await kube.get<Job>(kubernetes.Job, { name: `build-${build}-2`, namespace: buildNamespace });
    expect(
      next?.spec?.template.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution,
    ).toMatchObject([{ preference: { matchExpressions: [{ key: "kubernetes.io/hostname", values: ["worker-3"] }] } }]);
    const first = await kube.get<Job>(kubernetes.Job, { name: `build-${build}-1`, namespace: buildNamespace });
    expect(first?.spec?.template.spec?.affinity).toBeUndefined();
  });

  test("a cancelled run is removed without remains; repeating the cleanup is no error [os-builder-job-backend-1]", async () => {
    const { kube, backend, names } = await harness();
    const run = await backend.start(request, never);
    await kube.create<ConfigMap>(kubernetes.ConfigMap, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `digest-${build}`, namespace },
    });
    await backend.cancel(run, "superseded", never);
    await kube
      .patch(
        kubernetes.Job,
        { name: `build-${build}-1`, namespace: buildNamespace },
        { type: "merge", body: { metadata: { finalizers: null } } },
      )
      .catch(() => undefined); // In place of the garbage collector.
    expect(await backend.observe(run, never)).toEqual({ phase: "Gone" });
    await backend.cleanup({ build }, { keepForInspection: true }, never);
    expect(await names()).toMatchObject({
      secrets: [],
      configMaps: [{}, {}, {}, {}].map(() => expect.any(String) as string),
    });
    for (let times = 0; times < 2; times += 1) await backend.cleanup({ build }, { keepForInspection: false }, never);
    expect(await names()).toEqual({ configMaps: [], secrets: [], jobs: [] });
    expect(await kube.get(kubernetes.ConfigMap, { name: `digest-${build}`, namespace })).toBeUndefined();
  });

  test("a pool's cache is its own, whatever its name looks like in a label [os-builder-job-backend-3]", async () => {
    const folderOf = async (pool: string) => {
      const { kube, backend } = await harness({ cacheFolder: "/var/cache/builds" });
      await backend.start({ ...request, pool }, never);
      const job = await kube.get<Job>(kubernetes.Job, { name: `build-${build}-1`, namespace: buildNamespace });
      return job?.spec?.template.spec?.volumes
        ?.map(({ hostPath }) => hostPath?.path)
        .find((path) => path !== undefined);
    };
    const pool = "p".repeat(70);
    const folder = (await folderOf(pool)) ?? "";
    expect(await folderOf(folder.slice("/var/cache/builds/".length, "/var/cache/builds/".length + 63))).not.toBe(
      folder,
    );
    expect(folder).toBe(`/var/cache/builds/${pool}`);
  });

  test("a build's pod has its own user namespace, and the machine's users only if configured [os-builder-job-backend-2]", async () => {
    const { kube, backend } = await harness();
    const specOf = async (attempt: number) =>
      (await kube.get<Job>(kubernetes.Job, { name: `build-${build}-${attempt}`, namespace: buildNamespace }))?.spec
        ?.template.spec;
    await backend.start(request, never);
    await backend.start({ ...request, id: `${build}-2`, attempt: 2, isolation: "hostUsers" }, never);
    const [own, machine] = [await specOf(1), await specOf(2)];
    expect([own?.hostUsers, machine?.hostUsers]).toEqual([false, undefined]);
    const contexts = (spec: typeof own) =>
      [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ name, securityContext: has }) => [
        name,
        has?.privileged ?? false,
        has?.allowPrivilegeEscalation,
        has?.seccompProfile?.type,
      ]);
    expect(contexts(own)).toEqual([
      ["image-pull", false, false, "RuntimeDefault"],
      ["image-build", false, false, "RuntimeDefault"],
      ["image-push", false, false, "RuntimeDefault"],
    ]);
    expect(contexts(machine)).toEqual([
      ["image-pull", false, true, "Unconfined"],
      ["image-build", false, true, "Unconfined"],
      ["image-push", false, false, "RuntimeDefault"],
    ]);
  });

  test("if the API server drops the user namespace, no build starts, and the setting to allow it is named", async () => {
    const { kube, names } = await harness();
    const dropping: KubeClient = {
      get: (...given) => kube.get(...given),
      list: (...given) => kube.list(...given),
      apply: (...given) => kube.apply(...given),
      create: (resource, object, options) => {
        const { spec } = (object as Job).spec?.template ?? {};
        if (spec !== undefined) delete spec.hostUsers;
        return kube.create(resource, object, options);
      },
    } as KubeClient;
    const { clock, random, log } = { clock: systemClock, random: systemRandom, log: silentLogger };
    const backend = jobBackend({ kube: dropping, clock, random, log, image: "suite", hasProgram: async () => true });
    await expect(backend.start(request, never)).rejects.toMatchObject({
      code: "MCO_BUILD_INPUT_MISSING",
      facts: { problem: expect.stringMatching(/^UserNamespacesUnsupported: .*"buildIsolation":"hostUsers"/) as string },
    });
    expect((await names()).jobs).toEqual([]);
    await backend.start({ ...request, isolation: "hostUsers" }, never);
    expect((await names()).jobs).toHaveLength(1);
  });

  test("a log that is longer than asked for is not read: root on a machine of builds speaks for its kubelet [builder-log-1]", async () => {
    const { kube, backend, pod } = await harness();
    const asked: number[] = [];
    const answering: Partial<KubeClient> = {
      get: (...given) => kube.get(...given),
      list: (...given) => kube.list(...given),
      request: ({ mostBytes = Infinity }) => {
        asked.push(mostBytes);
        return Promise.reject(new AnswerTooLong(mostBytes));
      },
    };
    const { clock, random, log } = { clock: systemClock, random: systemRandom, log: silentLogger };
    const reading = jobBackend({
      kube: answering as KubeClient,
      clock,
      random,
      log,
      image: "suite",
      hasProgram: async () => true,
    });
    const run = await backend.start(request, never);
    const state = { running: { startedAt: "2026-01-01T00:00:00Z" } };
    await pod({
      phase: "Running",
      containerStatuses: [{ name: "image-push", image: "", imageID: "", ready: true, restartCount: 0, state }],
    });
    expect(await reading.observe(run, never)).toMatchObject({ phase: "Running" });
    expect(asked).toEqual([8 * 1024 * 1024]);
  });

  test("missing inputs are reported before anything is created", async () => {
    const { kube, backend, names } = await harness({ hasProgram: async () => false });
    await kube.delete(kubernetes.Secret, { name: "pull", namespace: buildNamespace });
    await kube.patch(
      kubernetes.Secret,
      { name: "push", namespace: buildNamespace },
      { type: "merge", body: { data: { ".dockerconfigjson": base64(JSON.stringify({ auths: "s3cret" })) } } },
    );
    const problems = await backend.preflight(
      { ...request, configLayer: { bytes: new Uint8Array(33 * 1024 * 1024), digest: "", diffId: "" } },
      never,
    );
    expect(problems.map(({ code }) => code)).toEqual([
      "BuilderBinaryMissing",
      "InputTooLarge",
      "SecretMissing",
      "SecretFormat",
    ]);
    expect(JSON.stringify(problems)).not.toContain("s3cret");
    await expect(backend.start(request, never)).rejects.toMatchObject({
      code: "MCO_BUILD_INPUT_MISSING",
      facts: { name: "pull" },
    });
    expect(await names()).toEqual({ configMaps: [], secrets: [], jobs: [] });
  });

  test.for(["pull", "push"])("a build of another pool than the %s secret is for is not started", async (name) => {
    const { kube, backend, names } = await harness();
    await kube.patch(
      kubernetes.Secret,
      { name, namespace: buildNamespace },
      { type: "merge", body: { metadata: { annotations: { [annotations.secretPools]: "infra" } } } },
    );
    await expect(backend.start(request, never)).rejects.toMatchObject({
      code: "MCO_BUILD_INPUT_MISSING",
      facts: { name, problem: expect.stringContaining(annotations.secretPools) as string },
    });
    expect(await names()).toEqual({ configMaps: [], secrets: [], jobs: [] });
  });

  test("watchers are notified of objects that belong to builds", async () => {
    const { backend } = await harness();
    const told: string[] = [];
    let tell: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => (tell = resolve));
    const stop = backend.watch((name) => {
      told.push(name);
      tell();
    });
    await backend.start(request, never);
    await heard;
    stop();
    expect(told[0]).toBe(build);
  });
});

test("the name of a Job fits its pods' labels, however long the pool's name is, and stays the same", () => {
  const long = { build: `${"a-very-long-name-of-a-pool-".repeat(3)}0123456789abcdef`, attempt: 12 };
  expect(jobNameOf(long)).toMatch(/^build-a-very[a-z0-9-]*[a-z0-9]-[0-9a-f]{10}-12$/);
  expect(jobNameOf(long).length).toBeLessThanOrEqual(63);
  expect(jobNameOf(long)).not.toBe(jobNameOf({ ...long, build: `${long.build}0` }));
});
