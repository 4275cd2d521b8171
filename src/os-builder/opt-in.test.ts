import { describe, expect, test } from "vitest";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, buildNamespace, finalizers, labels, namespace, objects } from "../api/names.ts";
import { BuilderHarness, builtPool, repository } from "../../test/support/builder-harness.ts";

const layering = annotations.layeringEnabled;
const configs = (harness: BuilderHarness) =>
  harness.act(() => harness.kube.list(MachineOSConfig)).then(({ items }) => items.map(({ metadata }) => metadata.name));
const deleteConfig = (harness: BuilderHarness, name = "worker") =>
  harness.act(() => harness.kube.delete(MachineOSConfig, { name }));

describe("opting in", () => {
  test.for([
    {
      title: "a label of the pool",
      ask: (harness: BuilderHarness) => harness.labelPool({ [layering]: "" }),
      source: "PoolLabel",
    },
    {
      title: "an annotation of the pool",
      ask: (harness: BuilderHarness) => harness.annotatePool({ [layering]: "true" }),
      source: "PoolLabel",
    },
    {
      title: "the cluster's default",
      ask: (harness: BuilderHarness) => harness.buildConfig({ defaultOptIn: "true" }),
      source: "ClusterDefault",
    },
    { title: "a MachineOSConfig", ask: (harness: BuilderHarness) => harness.optIn(), source: undefined },
  ])(
    "by $title, without a word about what images hold, makes an image of all of the configuration [os-builder-opt-in-1]",
    async ({ ask, source }) => {
      const harness = await BuilderHarness.make();
      await harness.act(() => harness.buildConfig());
      harness.start();
      await harness.pass(2000);
      await harness.act(async () => void (await ask(harness)));
      await harness.pass(15_000);
      const config = await harness.config();
      const [build] = await harness.builds();
      expect(config.metadata.annotations?.[annotations.optInSource]).toBe(source);
      expect(config.metadata.finalizers).toEqual([finalizers.osBuildCleanup]);
      expect(config.status?.currentImagePullSpec).toBe(build?.status?.digestedImagePushSpec);
      expect(build?.metadata.annotations?.[annotations.imageContent]).toBe("full");
      expect(await harness.condition("Accepted")).toMatchObject({ status: "True" });
      expect(harness.journal.lines.filter(({ chapter }) => chapter === "OptIn")).toHaveLength(1);
      const { notes, of } = await harness.pool();
      expect(notes[annotations.newestImageEquivalentConfig]).toBe(
        source === "PoolLabel" ? config.status?.currentImagePullSpec : undefined,
      );
      expect(of("BuildSuccess")?.status).toBe(source === "PoolLabel" ? "True" : undefined);
      if (source !== undefined)
        expect(config.metadata.ownerReferences).toMatchObject([{ kind: "MachineConfigPool", name: "worker" }]);
    },
  );

  test("the cluster's default opts in all pools when the builder starts, without an event of a pool [os-builder-opt-in-2]", async () => {
    const harness = await BuilderHarness.make(["worker", "infra", "master"]);
    await harness.act(() => harness.buildConfig({ defaultOptIn: "true" }));
    harness.start();
    await harness.pass(20_000);
    expect((await configs(harness)).toSorted()).toEqual(["infra", "master", "worker"]);
    for (const pool of ["worker", "infra", "master"])
      expect((await harness.config(pool)).status?.currentImagePullSpec).toBeDefined();
    expect(harness.backend.started).toHaveLength(1);
  });

  test("changes of the ConfigMaps take effect: another repository, another Containerfile", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.buildConfig());
    await harness.act(() => harness.labelPool({ [layering]: "" }));
    harness.start();
    await harness.pass(10_000);
    await harness.act(() => harness.configMap(objects.customContainerfiles, { worker: "FROM os\nRUN true" }));
    await harness.pass(15_000);
    expect((await harness.config()).spec.containerFile).toEqual([
      { containerfileArch: "NoArch", content: "FROM os\nRUN true" },
    ]);
    expect((await harness.states()).at(-1)).toBe("rendered-worker-1 build Succeeded/Ready");
    await harness.act(() => harness.buildConfig({ finalImagePullspec: "r.example.com/elsewhere:x" }));
    await harness.pass(15_000);
    expect((await harness.config()).spec.renderedImagePushSpec).toBe("r.example.com/elsewhere:latest");
    expect((await harness.config()).status?.currentImagePullSpec).toMatch(/^r\.example\.com\/elsewhere@/);
  });

  test("a user adopts a generated MachineOSConfig by removing its annotation; the pool's switch does not remove it", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.buildConfig());
    await harness.act(() => harness.labelPool({ [layering]: "" }));
    harness.start();
    await harness.pass(10_000);
    await harness.act(() => harness.annotateConfig({ [annotations.optInSource]: null }));
    await harness.act(() => harness.labelPool({ [layering]: null }));
    await harness.pass(10_000);
    expect(await configs(harness)).toEqual(["worker"]);
    expect(await harness.builds()).toHaveLength(1);
  });

  test("a MachineOSConfig that names a Secret of another pool has nothing built with it [attack-builds-11]", async () => {
    const harness = await BuilderHarness.make();
    const keepFor = (pools: string) =>
      harness.kube.patch(
        kubernetes.Secret,
        { name: "push", namespace: buildNamespace },
        { type: "merge", body: { metadata: { annotations: { [annotations.secretPools]: pools } } } },
      );
    await harness.act(() => keepFor("infra, master"));
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(5000);
    expect(await harness.condition("InputsValid")).toMatchObject({
      status: "False",
      reason: "SecretOfOtherPools",
      message: expect.stringContaining("builds of infra, master; name another one") as string,
    });
    expect(await harness.builds()).toEqual([]);
    await harness.act(() => keepFor("infra,worker"));
    await harness.pass(10_000);
    expect(await harness.condition("InputsValid")).toMatchObject({ status: "True" });
    expect(await harness.builds()).toHaveLength(1);
  });

  test("all input errors are reported at once and nothing starts; fixed inputs are built", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() =>
      harness.optIn(
        "worker",
        {},
        {
          renderedImagePushSecret: { name: "nobody" },
          containerFile: [{ containerfileArch: "NoArch", content: "FROM fedora\nRUN true" }],
        },
      ),
    );
    harness.start();
    await harness.pass(5000);
    const condition = await harness.condition("InputsValid");
    expect(condition).toMatchObject({ status: "False", reason: "SecretMissing" });
    expect(condition?.message.split("\n").map((line) => line.split(":")[0])).toEqual([
      "1. SecretMissing",
      "2. ContainerfileInvalid",
    ]);
    expect(await harness.builds()).toEqual([]);
    const says = { reason: "SecretMissing", message: condition?.message };
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "True", ...says });
    expect((await harness.pool()).of("ImageInputsValid")).toMatchObject({ status: "False", ...says });
    await harness.act(() =>
      harness.kube.patch(
        MachineOSConfig,
        { name: "worker" },
        { type: "merge", body: { spec: { renderedImagePushSecret: { name: "push" }, containerFile: null } } },
      ),
    );
    await harness.pass(15_000);
    expect(await harness.condition("InputsValid")).toMatchObject({ status: "True", reason: "AsExpected" });
    expect(await harness.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
    expect((await harness.pool()).of("ImageInputsValid")).toMatchObject({ status: "True", reason: "AsExpected" });
  });

  test("a pool whose push secret is missing is degraded until it is there, also while its image is the wanted one [os-builder-opt-in-23]", async () => {
    const { harness } = await builtPool();
    const push = { name: "push", namespace };
    await harness.act(() => harness.kube.delete(kubernetes.Secret, push));
    await harness.pass(5000);
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "True", reason: "SecretMissing" });
    expect(await harness.events("BuildDegraded")).toEqual([expect.stringContaining("names the Secret push") as string]);
    harness.registry.is = "down";
    await harness.act(() => harness.secret("push", "r.example.com"));
    await harness.pass(5000);
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "False" });
    expect(await harness.events("BuildRecovered")).toHaveLength(1);
  });

  test("without the ConfigMap of settings the pool reports what is missing, a request to rebuild is answered, and the image is made once the ConfigMap is there [os-builder-opt-in-21]", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.labelPool({ [layering]: "" }));
    await harness.act(() => harness.annotatePool({ [annotations.rebuildImage]: "now" }));
    harness.start();
    await harness.pass(5000);
    expect((await harness.pool()).of("ImageInputsValid")).toMatchObject({
      status: "False",
      reason: "BuildConfigMissing",
      message: expect.stringContaining("bring it back") as string,
    });
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({
      status: "True",
      reason: "BuildConfigMissing",
    });
    expect(await harness.events("ConfigReconcileFailed")).toHaveLength(1);
    expect(await harness.events("RebuildIgnored")).toEqual([
      expect.stringContaining("once an image can be made from its inputs") as string,
    ]);
    await harness.act(() => harness.buildConfig());
    await harness.pass(15_000);
    expect((await harness.pool()).of("ImageInputsValid")).toMatchObject({ status: "True" });
    expect((await harness.config()).status?.currentImagePullSpec).toBeDefined();
    expect((await harness.pool()).notes[annotations.rebuildImage]).toBeUndefined();
  });

  test("a pool that opts out before it had an image goes back to nothing [os-builder-opt-in-22]", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.labelPool({ [layering]: "" }));
    harness.start();
    await harness.pass(5000);
    await harness.act(() => harness.labelPool({ [layering]: null }));
    await harness.pass(5000);
    expect((await harness.pool()).of("ImageInputsValid")).toMatchObject({ status: "True", reason: "OptedOut" });
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "False", reason: "OptedOut" });
    expect(await harness.events("BuildRecovered")).toEqual([]);
    expect(harness.journal.lines.filter(({ chapter }) => chapter === "OptOut")).toEqual([]);
  });

  test("a registry that refuses pushes is tried three times, and then stops the build", async () => {
    const { harness } = await builtPool();
    harness.registry.pushing = "denied";
    await harness.act(() => harness.secret("push-2", "r.example.com"));
    await harness.act(() =>
      harness.kube.patch(
        kubernetes.Secret,
        { name: "push-2", namespace },
        {
          type: "merge",
          body: {
            data: { ".dockerconfigjson": btoa(JSON.stringify({ auths: { "r.example.com": { auth: btoa("a:b") } } })) },
          },
        },
      ),
    );
    await harness.act(() =>
      harness.kube.patch(
        MachineOSConfig,
        { name: "worker" },
        { type: "merge", body: { spec: { renderedImagePushSecret: { name: "push-2" } } } },
      ),
    );
    await harness.pass(2000);
    expect(await harness.condition("InputsValid")).toMatchObject({ status: "True", reason: "PushTokenDenied" });
    await harness.pass(300_000);
    expect(await harness.condition("InputsValid")).toMatchObject({ status: "False", reason: "PushTokenDenied" });
    harness.registry.pushing = "yes";
    await harness.pass(120_000);
    expect(await harness.condition("InputsValid")).toMatchObject({ status: "True" });
  });

  test("MachineOSConfigs of the Go operator are marked os-only once, and images in use are not rebuilt [os-builder-opt-in-7]", async () => {
    const harness = await BuilderHarness.make();
    const image = `${repository}@sha256:${"9".repeat(64)}`;
    await harness.act(async () => {
      const { kube } = harness;
      await harness.optIn("worker", { [annotations.currentMachineOSBuild]: "worker-md5" });
      await kube.create(MachineOSBuild, {
        apiVersion: MachineOSBuild.apiVersion,
        kind: MachineOSBuild.kind,
        metadata: { name: "worker-md5" },
        spec: {
          machineConfig: { name: "rendered-worker-1" },
          machineOSConfig: { name: "worker" },
          renderedImagePushSpec: `${repository}:worker-md5`,
        },
      });
      await kube.patch(
        MachineOSBuild,
        { name: "worker-md5" },
        {
          type: "merge",
          body: {
            status: {
              digestedImagePushSpec: image,
              conditions: [
                {
                  type: "Succeeded",
                  status: "True",
                  reason: "Ready",
                  message: "",
                  lastTransitionTime: "2026-01-01T00:00:00Z",
                },
              ],
            },
          },
        },
        { subresource: "status" },
      );
      await kube.patch(
        MachineOSConfig,
        { name: "worker" },
        { type: "merge", body: { status: { currentImagePullSpec: image, observedGeneration: 1 } } },
        { subresource: "status" },
      );
    });
    const first = harness.start();
    await harness.pass(10_000);
    expect((await harness.config()).metadata.annotations?.[annotations.imageContent]).toBe("os-only");
    expect(await harness.events("ImageContentStamped")).toHaveLength(1);
    expect(harness.backend.started).toEqual([]);
    expect((await harness.config()).status?.currentImagePullSpec).toBe(image);
    // The administrator decides otherwise: that is not undone.
    await harness.act(() => harness.annotateConfig({ [annotations.imageContent]: null }));
    first.abort();
    await harness.pass(2000);
    harness.start("two");
    await harness.pass(20_000);
    expect((await harness.config()).metadata.annotations?.[annotations.imageContent]).toBeUndefined();
    expect((await harness.builds()).at(-1)?.metadata.annotations?.[annotations.imageContent]).toBe("full");
  });

  test("one of two MachineOSConfigs for a pool decides, the other reports it; one for an unknown pool reports that", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.optIn());
    await harness.act(() => harness.optIn("nowhere"));
    harness.start();
    await harness.pass(10_000);
    expect(await harness.condition("Accepted", "nowhere")).toMatchObject({ status: "False", reason: "PoolNotFound" });
    // It was never deleted.
    expect(await harness.condition("UpToDate", "nowhere")).toMatchObject({ message: "there is no pool nowhere" });
    expect(await harness.condition("Accepted")).toMatchObject({ status: "True" });
  });

  test("an image from the installation is adopted once, and then the desired image is built", async () => {
    const harness = await BuilderHarness.make();
    const image = `${repository}@sha256:${"7".repeat(64)}`;
    harness.registry.images.set(image, harness.imageLabels("full"));
    await harness.act(() => harness.optIn("worker", { [annotations.preBuiltImage]: image }));
    harness.start();
    await harness.pass(10_000);
    const config = await harness.config();
    expect(config.status?.currentImagePullSpec).toBe(image);
    expect(config.metadata.annotations?.[annotations.preBuiltImage]).toBeUndefined();
    expect(await harness.condition("Seeded")).toMatchObject({ status: "True", reason: "PreBuiltImageSeeded" });
    expect((await harness.builds()).map(({ metadata }) => metadata.labels?.[labels.preBuiltImage])).toEqual(["true"]);
    expect(harness.backend.started).toEqual([]);
  });
});

describe("opting out", () => {
  test("an opt-out ends the run and keeps the user's MachineOSConfig with the reason; undoing it needs no build [os-builder-opt-in-3]", async () => {
    const { harness, image } = await builtPool();
    harness.backend.scripts = [[{ forMs: 60_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
    await harness.pass(5000);
    await harness.act(() => harness.labelPool({ [layering]: "false" }));
    await harness.pass(5000);
    expect((await harness.states()).at(-1)).toBe("rendered-worker-2 append Interrupted/OptedOut");
    expect(harness.backend.cancelled).toHaveLength(1);
    expect(harness.backend.objects.size).toBe(0);
    expect(await harness.condition("Accepted")).toMatchObject({ status: "False", reason: "OptedOut" });
    expect(await harness.events("OptedOut")).not.toEqual([]);
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "False", reason: "OptedOut" });
    await harness.act(() => harness.point("worker", "rendered-worker-1"));
    await harness.act(() => harness.labelPool({ [layering]: null }));
    await harness.pass(10_000);
    expect(await harness.condition("Accepted")).toMatchObject({ status: "True" });
    expect((await harness.config()).status?.currentImagePullSpec).toBe(image);
    expect(harness.backend.started).toHaveLength(2);
  });

  test("a MachineOSConfig deleted after an opt-out is removed at once", async () => {
    const { harness } = await builtPool();
    await harness.act(() => harness.labelPool({ [layering]: "false" }));
    await harness.pass(5000);
    await harness.act(() => harness.kube.delete(MachineOSConfig, { name: "worker" }));
    await harness.pass(5000);
    expect(await harness.act(() => harness.kube.get(MachineOSConfig, { name: "worker" }))).toBeUndefined();
    const pool = await harness.act(() => harness.kube.get(MachineConfigPool, { name: "worker" }));
    expect(pool?.metadata.annotations?.[annotations.optOutAfter]).toBeUndefined();
  });

  test("removing the label removes its generated MachineOSConfig, and everything reported on the pool [os-builder-opt-in-4]", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.buildConfig());
    await harness.act(() => harness.labelPool({ [layering]: "" }));
    harness.start();
    await harness.pass(10_000);
    await harness.act(() => harness.annotatePool({ [annotations.buildRetries]: "2" }));
    await harness.act(() => harness.labelPool({ [layering]: null }));
    await harness.pass(5000);
    expect(await configs(harness)).toEqual([]);
    const { notes, of } = await harness.pool();
    expect(Object.keys(notes).filter((key) => key !== layering)).toEqual([]);
    expect(of("ImageBuildDegraded")).toMatchObject({ status: "False", reason: "OptedOut" });
    expect(of("BuildSuccess")).toBeUndefined();
    expect(harness.journal.lines.filter(({ chapter }) => chapter === "OptOut")).toHaveLength(1);
  });

  test("a deleted ConfigMap opts no pool out: it is reported as an input error [os-builder-opt-in-5]", async () => {
    const harness = await BuilderHarness.make(["worker", "infra"]);
    await harness.act(() => harness.buildConfig({ defaultOptIn: "true" }));
    await harness.act(() => harness.labelPool({ [layering]: "" }));
    harness.start();
    await harness.pass(15_000);
    await harness.act(() => harness.kube.delete(kubernetes.ConfigMap, { name: objects.buildConfig, namespace }));
    await harness.pass(10_000);
    expect((await configs(harness)).toSorted()).toEqual(["infra", "worker"]);
    for (const pool of ["worker", "infra"]) {
      expect(await harness.condition("InputsValid", pool)).toMatchObject({
        status: "False",
        reason: "BuildConfigMissing",
      });
      expect((await harness.config(pool)).status?.currentImagePullSpec).toBeDefined();
    }
  });

  test("a grace period is at most a day, and the MachineOSConfig reports a longer one", async () => {
    const { harness } = await builtPool();
    await harness.act(() => harness.configMap(objects.buildConfig, { optOutGraceSeconds: "100000" }));
    await harness.pass(5000);
    const valid = await harness.condition("InputsValid");
    expect(valid).toMatchObject({ status: "True", reason: "BuildSettingInvalid" });
    expect(valid?.message).toContain('optOutGraceSeconds "100000" is not a whole number from 0 to 86400: 86400 counts');
    const deleted = harness.kernel.clock.now();
    await deleteConfig(harness);
    await harness.pass(5000);
    const until = Date.parse((await harness.pool()).notes[annotations.optOutAfter] ?? "");
    expect(until - deleted).toBeGreaterThanOrEqual(86_399_000);
    expect(until - deleted).toBeLessThan(86_405_000);
  });

  test("machines keep images for a minute after a MachineOSConfig is deleted; recreated in time it needs no build [os-builder-opt-in-6]", async () => {
    const { harness, image } = await builtPool();
    await deleteConfig(harness);
    await harness.pass(5000);
    expect(await configs(harness)).toEqual([]);
    const { notes, of } = await harness.pool();
    expect(Date.parse(notes[annotations.optOutAfter] ?? "")).toBeGreaterThan(harness.kernel.clock.now() + 50_000);
    expect(of("ImageBuildDegraded")?.reason).not.toBe("OptedOut");
    await harness.act(() => harness.optIn());
    await harness.pass(10_000);
    expect((await harness.config()).status?.currentImagePullSpec).toBe(image);
    expect((await harness.pool()).notes[annotations.optOutAfter]).toBeUndefined();
    expect(harness.backend.started).toHaveLength(1);
    await deleteConfig(harness);
    await harness.pass(70_000);
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({ reason: "OptedOut" });
    expect((await harness.pool()).notes[annotations.optOutAfter]).toBeUndefined();
  });

  test("deleting a MachineOSConfig or a pool during a build leaves nothing of the run [os-builder-opt-in-8]", async () => {
    for (const kind of ["config", "pool"] as const) {
      const harness = await BuilderHarness.make();
      harness.backend.scripts = [[{ forMs: 600_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
      await harness.act(() => harness.optIn());
      harness.start();
      await harness.pass(5000);
      expect(harness.backend.objects.size).toBe(1);
      await harness.act(() =>
        kind === "config"
          ? harness.kube.delete(MachineOSConfig, { name: "worker" })
          : harness.kube.delete(MachineConfigPool, { name: "worker" }),
      );
      await harness.pass(60_000);
      expect(harness.backend.objects.size).toBe(0);
      expect(harness.backend.cancelled).toHaveLength(1);
      expect(await harness.states()).toEqual(
        kind === "config" ? [] : ["rendered-worker-1 append Interrupted/OptedOut"],
      );
      if (kind === "config") expect(await configs(harness)).toEqual([]);
      else expect(await harness.condition("Accepted")).toMatchObject({ status: "False", reason: "PoolNotFound" });
    }
  });

  test("images and builds of an opted-out pool are removed once no machine names them", async () => {
    const { harness, image } = await builtPool();
    await harness.act(() => harness.node("w0", "worker", { annotations: { [annotations.currentImage]: image } }));
    await deleteConfig(harness);
    await harness.pass(2_000_000);
    expect(harness.registry.deleted).toEqual([]);
    await harness.act(() =>
      harness.kube.patch(
        kubernetes.Node,
        { name: "w0" },
        { type: "merge", body: { metadata: { annotations: { [annotations.currentImage]: null } } } },
      ),
    );
    await harness.pass(600_000);
    expect(harness.registry.deleted).toEqual([]);
    await harness.pass(600_000);
    expect(harness.registry.deleted).toEqual([image]);
    expect(await harness.builds()).toEqual([]);
    expect(await harness.events("ImagePruned")).toEqual([image]);
  });

  test.for(["worker", "infra"] as const)(
    "a registry that does not answer keeps no image in other registries from being removed: that of %s [os-builder-prune-1]",
    async (slow) => {
      const harness = await BuilderHarness.make(["worker", "infra"]);
      const hosts = { worker: "r.example.com", infra: "s.example.com" } as const;
      await harness.act(() => harness.secret("push-infra", hosts.infra));
      await harness.act(() => harness.optIn("worker"));
      await harness.act(() =>
        harness.optIn(
          "infra",
          {},
          {
            renderedImagePushSecret: { name: "push-infra" },
            renderedImagePushSpec: `${hosts.infra}/team/os:x`,
          },
        ),
      );
      harness.start();
      await harness.pass(20_000);
      const asked: string[] = [];
      const answer = harness.registry.delete.bind(harness.registry);
      harness.registry.delete = (image, signal = new AbortController().signal) => {
        if (!image.startsWith(hosts[slow])) return answer(image);
        asked.push(image);
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
      };
      for (const pool of ["worker", "infra"] as const) {
        const { metadata } = await harness.config(pool);
        await harness.act(() => harness.kube.delete(MachineOSConfig, { name: metadata.name }));
      }
      await harness.pass(1_300_000);
      const other = slow === "worker" ? "infra" : "worker";
      expect(harness.registry.deleted.map((image) => image.split("/")[0])).toEqual([hosts[other]]);
      expect(asked.length).toBeGreaterThan(0);
      expect((await harness.builds()).map(({ spec }) => spec.machineOSConfig.name)).toEqual([slow]);
      harness.registry.delete = answer;
      await harness.pass(3_700_000);
      expect(await harness.builds()).toEqual([]);
    },
  );
});
