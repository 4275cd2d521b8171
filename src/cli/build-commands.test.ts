import { describe, expect, test } from "vitest";
import {
  MachineConfig,
  MachineConfigPool,
  MachineOSBuild,
  MachineOSConfig,
  definedResources,
  kubernetes,
} from "../api/index.ts";
import { annotations, buildNamespace, labels, namespace } from "../api/names.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import { encodeDataUrl } from "../ignition/data-url.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { type BuildOptions, buildCommand, run } from "./commands/build.ts";
import type { Io } from "./io.ts";
import { buildAnnotation } from "../os-builder/build-names.ts";
import { serverWithAdmin } from "../../test/support/server-with-admin.ts";

const rendered = `rendered-worker-${"b".repeat(32)}`;
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
const image = (letter: string) => `registry.example.com/os/worker@${digest(letter)}`;
const none: BuildOptions = { json: false, wait: false, follow: false, dryRun: false, step: undefined, tail: undefined };
const never = new AbortController().signal;

async function cluster(...objects: readonly KubeObject[]): Promise<KubeClient> {
  const { kube } = serverWithAdmin();
  for (const resource of definedResources)
    await kube.create(kubernetes.CustomResourceDefinition, resource.crd() as never);
  await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  for (const object of objects) {
    const resource = [...definedResources, kubernetes.Node].find(
      ({ kind }) => kind === object.kind,
    ) as unknown as Resource<KubeObject & { status?: unknown }>;
    const { status } = object as { readonly status?: unknown };
    await kube.create(resource, object);
    if (status !== undefined)
      await kube.patch(
        resource,
        { name: object.metadata.name },
        { type: "merge", body: { status } },
        { subresource: "status" },
      );
  }
  return kube;
}

function io(): Io & { readonly text: () => string; readonly complaints: () => string } {
  const said: string[] = [];
  const complained: string[] = [];
  return {
    out: (text) => said.push(text),
    err: (text) => complained.push(text),
    screen: undefined,
    text: () => said.join(""),
    complaints: () => complained.join(""),
  };
}

const at = (minutes: number) => new Date(Date.UTC(2030, 0, 1, 0, minutes)).toISOString().replace(".000", "");
const pool = (more: object = {}) =>
  ({
    apiVersion: MachineConfigPool.apiVersion,
    kind: "MachineConfigPool",
    metadata: { name: "worker", ...more },
    spec: {
      machineConfigSelector: { matchLabels: { [labels.role]: "worker" } },
      nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
      configuration: { name: rendered },
    },
  }) as unknown as KubeObject;
const config = (more: object = {}, published?: string) =>
  ({
    apiVersion: MachineOSConfig.apiVersion,
    kind: "MachineOSConfig",
    metadata: { name: "worker", ...more },
    spec: {
      machineConfigPool: { name: "worker" },
      imageBuilder: { imageBuilderType: "Job" },
      renderedImagePushSecret: { name: "push" },
      renderedImagePushSpec: "registry.example.com/os/worker:latest",
    },
    ...(published === undefined
      ? {}
      : {
          status: {
            currentImagePullSpec: image("a"),
            machineOSBuild: {
              group: "machineconfiguration.openshift.io",
              resource: "machineosbuilds",
              name: published,
            },
          },
        }),
  }) as unknown as KubeObject;
const build = (
  name: string,
  type: string,
  reason: string,
  {
    notes = {},
    message = "",
    image: of,
  }: { readonly notes?: Readonly<Record<string, string>>; readonly message?: string; readonly image?: string } = {},
) =>
  ({
    apiVersion: MachineOSBuild.apiVersion,
    kind: "MachineOSBuild",
    metadata: { name, annotations: notes },
    spec: {
      machineConfig: { name: rendered },
      machineOSConfig: { name: "worker" },
      renderedImagePushSpec: "registry.example.com/os/worker:t",
    },
    status: {
      conditions: [{ type, status: "True", reason, message, lastTransitionTime: at(2) }],
      buildStart: at(1),
      ...(of === undefined ? {} : { digestedImagePushSpec: of }),
    },
  }) as unknown as KubeObject;
const files = {
  ignition: { version: "3.4.0" },
  storage: { files: [{ path: "/etc/a", mode: 0o644, contents: { source: encodeDataUrl("a") } }] },
};
const machineConfig = (more: object = {}) =>
  ({
    apiVersion: MachineConfig.apiVersion,
    kind: "MachineConfig",
    metadata: { name: rendered },
    spec: { config: files, osImageURL: `registry.example.com/os/stock@${digest("0")}`, ...more },
  }) as unknown as KubeObject;
const failure = JSON.stringify({
  class: "PushRejected",
  step: "push",
  cause: "the registry refuses the image: quota exceeded",
  excerpt: "413 quota exceeded",
  attempt: 1,
  firstSeen: at(1),
  lastSeen: at(1),
  nextAction: "Make room",
  counts: {},
  infrastructure: 0,
});

const ask = async (
  kube: KubeClient,
  verb: Parameters<typeof buildCommand>[2],
  name?: string,
  options: Partial<BuildOptions> = {},
) => {
  const to = io();
  const code = await buildCommand(kube, to, verb, name, { ...none, ...options }, never);
  return { code, text: to.text(), complaints: to.complaints() };
};
const notesOf = async (kube: KubeClient) =>
  (await kube.get(MachineConfigPool, { name: "worker" }))?.metadata.annotations ?? {};

describe("mco build", () => {
  test("status has a row for each pool that boots images, and says what did not succeed [cli-build-commands-1]", async () => {
    const kube = await cluster(
      pool(),
      config(),
      build("worker-1", "Failed", "PushRejected", {
        message: "push failed on attempt 1/6: quota exceeded",
        notes: { [annotations.buildStrategy]: "append", [annotations.buildAttempt]: "1" },
      }),
    );
    const { code, text } = await ask(kube, "status");
    expect(code).toBe(0);
    expect(text).toMatch(
      /^POOL +BY +STATE +BUILD +STRATEGY +ATTEMPT +IMAGE +AGE\nworker +MachineOSConfig +Failed \(PushRejected\) +worker-1 +append +1 +- /,
    );
    expect(text).toContain("worker: push failed on attempt 1/6: quota exceeded");
    expect(JSON.parse((await ask(kube, "status", "worker", { json: true })).text)).toMatchObject({
      kind: "Builds",
      builds: [{ pool: "worker", build: "worker-1", state: "Failed (PushRejected)" }],
    });
    expect(await ask(kube, "status", "infra")).toMatchObject({
      code: 1,
      complaints: 'mco build: pool "infra" does not exist\n',
    });
    expect((await ask(await cluster(pool()), "status")).text).toContain("docs/os-images.md");
  });

  test("start asks for a rebuild on the pool, and says no where the pool has not opted in [cli-build-commands-2]", async () => {
    const kube = await cluster(pool(), config(), build("worker-1", "Succeeded", "Ready", { image: image("a") }));
    expect((await ask(kube, "start", "worker")).code).toBe(0);
    expect((await notesOf(kube))[annotations.rebuildImage]).toMatch(/^\d{4}-/);
    const out = await ask(await cluster(pool()), "start", "worker");
    expect(out).toMatchObject({ code: 1 });
    expect(out.complaints).toContain("has not opted in");
    expect((await ask(kube, "start", "nothing")).complaints).toContain("there are worker");
  });

  test("start --wait prints each phase and exits with the build's result [cli-build-commands-3]", async () => {
    const kube = await cluster(pool(), config());
    const waiting = ask(kube, "start", "worker", { wait: true });
    await kube.create(MachineOSBuild, build("worker-2", "Failed", "DiskFull") as MachineOSBuild);
    await kube.patch(
      MachineOSBuild,
      { name: "worker-2" },
      {
        type: "merge",
        body: {
          status: {
            conditions: [
              { type: "Failed", status: "True", reason: "DiskFull", message: "no space", lastTransitionTime: at(2) },
            ],
          },
        },
      },
      { subresource: "status" },
    );
    const { code, text } = await waiting;
    expect(code).toBe(1);
    expect(text).toContain("worker-2 Failed (DiskFull): no space");
  });

  test("retry resets the counter at the limit, rebuilds after other failures, and refuses without a failure [cli-build-commands-4]", async () => {
    const limited = await cluster(
      pool({ annotations: { [annotations.buildRetries]: "5" } }),
      config(),
      build("worker-1", "Failed", "RetryLimitReached"),
    );
    expect((await ask(limited, "retry", "worker")).text).toContain("the retry count is reset");
    expect(await notesOf(limited)).toEqual({});
    const permanent = await cluster(pool(), config(), build("worker-1", "Failed", "UserStepFailed"));
    await ask(permanent, "retry", "worker");
    expect(await notesOf(permanent)).toHaveProperty([annotations.rebuildImage]);
    const fine = await ask(await cluster(pool(), config(), build("worker-1", "Succeeded", "Ready")), "retry", "worker");
    expect(fine).toMatchObject({ code: 1 });
    expect(fine.complaints).toContain("mco build start worker builds again");
  });

  test("plan prints what would be built, its inputs, and why no cheaper way applies; exit 2 for a build, 0 for none, 1 for a failure [cli-build-commands-5]", async () => {
    const kube = await cluster(pool(), config(), machineConfig());
    const { code, text } = await ask(kube, "plan", "worker");
    expect(code).toBe(2);
    expect(text).toMatch(/strategy append: .*\n {2}not none: .*\n {2}not reuse: /);
    expect(text).toContain(`base         ${digest("0")}`);
    const custom = await cluster(pool(), machineConfig(), {
      ...config(),
      spec: {
        ...(config() as MachineOSConfig).spec,
        containerFile: [{ containerfileArch: "NoArch", content: "FROM configs\nRUN true\n" }],
      },
    } as unknown as KubeObject);
    const planned = await ask(custom, "plan", "worker");
    expect(planned.text).toContain("strategy build");
    expect(planned.text).toContain("RUN true");
    expect(await ask(await cluster(pool(), machineConfig()), "plan", "worker")).toMatchObject({ code: 0 });
    const broken = await ask(await cluster(pool(), config()), "plan", "worker");
    expect(broken).toMatchObject({ code: 1 });
    expect(broken.text).toContain("1. no configuration has been rendered");
  });

  test("explain answers how it was asked for, what is wanted, what failed, and what to do [cli-build-commands-6]", async () => {
    const kube = await cluster(
      pool(),
      machineConfig(),
      config(),
      build("worker-1", "Failed", "PushRejected", { notes: { [annotations.buildFailure]: failure } }),
    );
    const { code, text } = await ask(kube, "explain", "worker");
    expect(code).toBe(0);
    for (const part of [
      "The image of pool worker: Failed (PushRejected).",
      "opted in:",
      `an image of ${rendered}`,
      "append:",
      "PushRejected in push: the registry refuses the image: quota exceeded",
      "mco build start worker",
    ])
      expect(text).toContain(part);
  });

  test("logs of a build without a pod are its failure and its book [cli-build-commands-7]", async () => {
    const kube = await cluster(
      pool(),
      config(),
      build("worker-1", "Failed", "PushRejected", { notes: { [annotations.buildFailure]: failure } }),
    );
    const { code, text, complaints } = await ask(kube, "logs", "worker");
    expect(code).toBe(0);
    expect(text).toContain("push: the registry refuses the image: quota exceeded\n413 quota exceeded\nMake room");
    expect(complaints).toContain("worker-1 has no pod any more");
    expect((await ask(kube, "logs", "other")).complaints).toContain('neither a MachineOSBuild nor a pool "other"');
  });

  test("logs of a build are those of its pod's containers, in their order, and of no other pod [cli-build-commands-11]", async () => {
    const kube = await cluster(pool(), config(), build("worker-1", "Building", "Building"));
    await kube.create(kubernetes.Namespace, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: buildNamespace },
    });
    const container = (name: string) => ({ name, image: "registry.example.com/mco" });
    const begun = (name: string) => ({
      ...container(name),
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { running: {} },
    });
    const create = async (name: string, at: string, job?: string, of = "worker-1") => {
      await kube.create(kubernetes.Pod, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          name,
          namespace: at,
          labels: { [labels.machineOSBuild]: "worker-1" },
          annotations: { [buildAnnotation]: of },
          ...(job === undefined
            ? {}
            : { ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name: job, uid: "1", controller: true }] }),
        },
        spec: { initContainers: [container("image-build")], containers: [container("image-push")] },
      } as never);
      await kube.patch(
        kubernetes.Pod,
        { name, namespace: at },
        {
          type: "merge",
          body: { status: { initContainerStatuses: [begun("image-build")], containerStatuses: [begun("image-push")] } },
        } as never,
        { subresource: "status" },
      );
    };
    const asked: string[] = [];
    const lines = async function* (target: string) {
      asked.push(target);
      yield* target.includes("image-build") ? ["first", "second"] : ["third"];
    };
    const withLogs = new Proxy(kube, {
      get(of, name) {
        if (name === "lines") return lines;
        const value: unknown = Reflect.get(of, name, of);
        return typeof value === "function" ? (value.bind(of) as unknown) : value;
      },
    });
    await create("mirror", namespace, "build-worker-1-1");
    await create("other", buildNamespace);
    await create("another", buildNamespace, "build-worker-12-1", "worker-12");
    expect((await ask(withLogs, "logs", "worker")).complaints).toContain("worker-1 has no pod");
    await create("its-own", buildNamespace, "build-worker-1-1");
    expect(await ask(withLogs, "logs", "worker")).toMatchObject({ code: 0, text: "first\nsecond\nthird\n" });
    expect((await ask(withLogs, "logs", "worker", { tail: 2 })).text).toBe("second\nthird\n");
    expect((await ask(withLogs, "logs", "worker", { follow: true })).text).toBe("first\nsecond\nthird\n");
    expect(new Set(asked.map((target) => target.replace(/\?.*/, "")))).toEqual(
      new Set([`/api/v1/namespaces/${buildNamespace}/pods/its-own/log`]),
    );
  });

  test("prune prints why each build is kept and marks unused ones; --dry-run marks nothing [cli-build-commands-8]", async () => {
    const kube = await cluster(
      pool(),
      config({}, "worker-1"),
      build("worker-1", "Succeeded", "Ready", { image: image("a") }),
      {
        ...build("gone-1", "Succeeded", "Ready", { image: image("c") }),
        spec: {
          machineConfig: { name: rendered },
          machineOSConfig: { name: "gone" },
          renderedImagePushSpec: "registry.example.com/os/gone:t",
        },
      } as unknown as KubeObject,
    );
    const marked = async () =>
      (await kube.get(MachineOSBuild, { name: "gone-1" }))?.metadata.annotations?.[annotations.pruneAfter];
    const dry = await ask(kube, "prune", undefined, { dryRun: true });
    expect(dry.text).toMatch(/kept +worker-1 \(current\)\nwould go gone-1, not before /);
    expect(await marked()).toBeUndefined();
    await ask(kube, "prune");
    expect(await marked()).toMatch(/^\d{4}-/);
  });

  test("rollback restores the image before the last rebuild, and lists what else would have to be reverted [cli-build-commands-9]", async () => {
    const inputs = (more: object) => ({
      [annotations.keyInputs]: JSON.stringify({ base: digest("0"), serial: 1, user: "x", ...more }),
    });
    const kube = await cluster(
      pool(),
      config({ annotations: { [annotations.rebuildSerial]: "1" } }, "worker-2"),
      build("worker-1", "Succeeded", "Ready", { image: image("b"), notes: inputs({ serial: 0 }) }),
      build("worker-2", "Succeeded", "Ready", { image: image("a"), notes: inputs({}) }),
    );
    expect((await ask(kube, "rollback", "worker")).text).toContain("goes back to the image of worker-1");
    expect(
      (await kube.get(MachineOSConfig, { name: "worker" }))?.metadata.annotations?.[annotations.rebuildSerial],
    ).toBe("0");
    const other = await cluster(
      pool(),
      config({}, "worker-2"),
      build("worker-1", "Succeeded", "Ready", { image: image("b"), notes: inputs({ user: "y" }) }),
      build("worker-2", "Succeeded", "Ready", { image: image("a"), notes: inputs({}) }),
    );
    expect((await ask(other, "rollback", "worker")).complaints).toContain(
      "the custom Containerfile or its context; put that back as it was",
    );
    expect((await ask(await cluster(pool(), config()), "rollback", "worker")).complaints).toContain("no earlier image");
  });

  test.for(["frobnicate", "start", "start a b", "logs worker --tail x"])(
    "words that are not understood are a usage error: %s [cli-build-commands-10]",
    async (words) => {
      await expect(run(words.split(" "))).rejects.toMatchObject({ code: "MCO_USAGE" });
    },
  );
});
