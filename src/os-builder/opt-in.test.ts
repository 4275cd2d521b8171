import { describe, expect, test } from "vitest";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, finalizers, labels, namespace, objects } from "../api/names.ts";
import { BuilderScene, builtPool, repository } from "../../test/support/builder-scene.ts";

const layering = annotations.layeringEnabled;
const configs = (scene: BuilderScene) =>
  scene.act(() => scene.kube.list(MachineOSConfig)).then(({ items }) => items.map(({ metadata }) => metadata.name));
const deleteConfig = (scene: BuilderScene, name = "worker") =>
  scene.act(() => scene.kube.delete(MachineOSConfig, { name }));

describe("opting in", () => {
  test.for([
    {
      title: "a label of the pool",
      ask: (scene: BuilderScene) => scene.labelPool({ [layering]: "" }),
      source: "PoolLabel",
    },
    {
      title: "an annotation of the pool",
      ask: (scene: BuilderScene) => scene.annotatePool({ [layering]: "true" }),
      source: "PoolLabel",
    },
    {
      title: "the cluster's default",
      ask: (scene: BuilderScene) => scene.buildConfig({ defaultOptIn: "true" }),
      source: "ClusterDefault",
    },
    { title: "a MachineOSConfig", ask: (scene: BuilderScene) => scene.optIn(), source: undefined },
  ])(
    "by $title, without a word about what images hold, makes an image of all of the configuration [os-builder-opt-in-1]",
    async ({ ask, source }) => {
      const scene = await BuilderScene.make();
      await scene.act(() => scene.buildConfig());
      scene.start();
      await scene.pass(2000);
      await scene.act(async () => void (await ask(scene)));
      await scene.pass(15_000);
      const config = await scene.config();
      const [build] = await scene.builds();
      expect(config.metadata.annotations?.[annotations.optInSource]).toBe(source);
      expect(config.metadata.finalizers).toEqual([finalizers.osBuildCleanup]);
      expect(config.status?.currentImagePullSpec).toBe(build?.status?.digestedImagePushSpec);
      expect(build?.metadata.annotations?.[annotations.imageContent]).toBe("full");
      expect(await scene.condition("Accepted")).toMatchObject({ status: "True" });
      expect(scene.scribe.lines.filter(({ chapter }) => chapter === "OptIn")).toHaveLength(1);
      const { notes, of } = await scene.pool();
      expect(notes[annotations.newestImageEquivalentConfig]).toBe(
        source === "PoolLabel" ? config.status?.currentImagePullSpec : undefined,
      );
      expect(of("BuildSuccess")?.status).toBe(source === "PoolLabel" ? "True" : undefined);
      if (source !== undefined)
        expect(config.metadata.ownerReferences).toMatchObject([{ kind: "MachineConfigPool", name: "worker" }]);
    },
  );

  test("the cluster's default has images of all pools made when the builder starts, without any event of a pool [os-builder-opt-in-2]", async () => {
    const scene = await BuilderScene.make(["worker", "infra", "master"]);
    await scene.act(() => scene.buildConfig({ defaultOptIn: "true" }));
    scene.start();
    await scene.pass(20_000);
    expect((await configs(scene)).toSorted()).toEqual(["infra", "master", "worker"]);
    for (const pool of ["worker", "infra", "master"])
      expect((await scene.config(pool)).status?.currentImagePullSpec).toBeDefined();
    expect(scene.backend.started).toHaveLength(1);
  });

  test("what the ConfigMaps say is followed: another repository, another Containerfile", async () => {
    const scene = await BuilderScene.make();
    await scene.act(() => scene.buildConfig());
    await scene.act(() => scene.labelPool({ [layering]: "" }));
    scene.start();
    await scene.pass(10_000);
    await scene.act(() => scene.configMap(objects.customContainerfiles, { worker: "FROM os\nRUN true" }));
    await scene.pass(15_000);
    expect((await scene.config()).spec.containerFile).toEqual([
      { containerfileArch: "NoArch", content: "FROM os\nRUN true" },
    ]);
    expect((await scene.states()).at(-1)).toBe("rendered-worker-1 build Succeeded/Ready");
    await scene.act(() => scene.buildConfig({ finalImagePullspec: "r.example.com/elsewhere:x" }));
    await scene.pass(15_000);
    expect((await scene.config()).spec.renderedImagePushSpec).toBe("r.example.com/elsewhere:latest");
    expect((await scene.config()).status?.currentImagePullSpec).toMatch(/^r\.example\.com\/elsewhere@/);
  });

  test("a user adopts what was made by taking its annotation away; the switch of the pool does not take it back", async () => {
    const scene = await BuilderScene.make();
    await scene.act(() => scene.buildConfig());
    await scene.act(() => scene.labelPool({ [layering]: "" }));
    scene.start();
    await scene.pass(10_000);
    await scene.act(() => scene.annotateConfig({ [annotations.optInSource]: null }));
    await scene.act(() => scene.labelPool({ [layering]: null }));
    await scene.pass(10_000);
    expect(await configs(scene)).toEqual(["worker"]);
    expect(await scene.builds()).toHaveLength(1);
  });

  test("problems of the inputs are told all at once and nothing is begun; what is mended is built", async () => {
    const scene = await BuilderScene.make();
    await scene.act(() =>
      scene.optIn(
        "worker",
        {},
        {
          renderedImagePushSecret: { name: "nobody" },
          containerFile: [{ containerfileArch: "NoArch", content: "FROM fedora\nRUN true" }],
        },
      ),
    );
    scene.start();
    await scene.pass(5000);
    const condition = await scene.condition("InputsValid");
    expect(condition).toMatchObject({ status: "False", reason: "SecretMissing" });
    expect(condition?.message.split("\n").map((line) => line.split(":")[0])).toEqual([
      "1. SecretMissing",
      "2. ContainerfileInvalid",
    ]);
    expect(await scene.builds()).toEqual([]);
    expect((await scene.pool()).of("ImageBuildDegraded")?.status ?? "False").toBe("False");
    await scene.act(() =>
      scene.kube.patch(
        MachineOSConfig,
        { name: "worker" },
        { type: "merge", body: { spec: { renderedImagePushSecret: { name: "push" }, containerFile: null } } },
      ),
    );
    await scene.pass(15_000);
    expect(await scene.condition("InputsValid")).toMatchObject({ status: "True", reason: "AsExpected" });
    expect(await scene.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
  });

  test("a registry that gives no right to push is put up with three times, and then stops it", async () => {
    const { scene } = await builtPool();
    scene.registry.pushing = "denied";
    await scene.act(() => scene.secret("push-2", "r.example.com"));
    await scene.act(() =>
      scene.kube.patch(
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
    await scene.act(() =>
      scene.kube.patch(
        MachineOSConfig,
        { name: "worker" },
        { type: "merge", body: { spec: { renderedImagePushSecret: { name: "push-2" } } } },
      ),
    );
    await scene.pass(2000);
    expect(await scene.condition("InputsValid")).toMatchObject({ status: "True", reason: "PushTokenDenied" });
    await scene.pass(300_000);
    expect(await scene.condition("InputsValid")).toMatchObject({ status: "False", reason: "PushTokenDenied" });
    scene.registry.pushing = "yes";
    await scene.pass(120_000);
    expect(await scene.condition("InputsValid")).toMatchObject({ status: "True" });
  });

  test("MachineOSConfigs of the Go operator are stamped os-only, once, and no image is made for what is rolled out [os-builder-opt-in-7]", async () => {
    const scene = await BuilderScene.make();
    const image = `${repository}@sha256:${"9".repeat(64)}`;
    await scene.act(async () => {
      const { kube } = scene;
      await scene.optIn("worker", { [annotations.currentMachineOSBuild]: "worker-md5" });
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
    const first = scene.start();
    await scene.pass(10_000);
    expect((await scene.config()).metadata.annotations?.[annotations.imageContent]).toBe("os-only");
    expect(await scene.events("ImageContentStamped")).toHaveLength(1);
    expect(scene.backend.started).toEqual([]);
    expect((await scene.config()).status?.currentImagePullSpec).toBe(image);
    // The administrator decides otherwise: that is not undone.
    await scene.act(() => scene.annotateConfig({ [annotations.imageContent]: null }));
    first.abort();
    await scene.pass(2000);
    scene.start("two");
    await scene.pass(20_000);
    expect((await scene.config()).metadata.annotations?.[annotations.imageContent]).toBeUndefined();
    expect((await scene.builds()).at(-1)?.metadata.annotations?.[annotations.imageContent]).toBe("full");
  });

  test("of two MachineOSConfigs for one pool one decides, and the other is told so; one for a pool that there is not is told that", async () => {
    const scene = await BuilderScene.make();
    await scene.act(() => scene.optIn());
    await scene.act(() => scene.optIn("nowhere"));
    scene.start();
    await scene.pass(10_000);
    expect(await scene.condition("Accepted", "nowhere")).toMatchObject({ status: "False", reason: "PoolNotFound" });
    expect(await scene.condition("Accepted")).toMatchObject({ status: "True" });
  });

  test("an image that came with the installation is taken over once, and then what is wanted is made", async () => {
    const scene = await BuilderScene.make();
    const image = `${repository}@sha256:${"7".repeat(64)}`;
    scene.registry.images.set(image, scene.imageLabels("full"));
    await scene.act(() => scene.optIn("worker", { [annotations.preBuiltImage]: image }));
    scene.start();
    await scene.pass(10_000);
    const config = await scene.config();
    expect(config.status?.currentImagePullSpec).toBe(image);
    expect(config.metadata.annotations?.[annotations.preBuiltImage]).toBeUndefined();
    expect(await scene.condition("Seeded")).toMatchObject({ status: "True", reason: "PreBuiltImageSeeded" });
    expect((await scene.builds()).map(({ metadata }) => metadata.labels?.[labels.preBuiltImage])).toEqual(["true"]);
    expect(scene.backend.started).toEqual([]);
  });
});

describe("opting out", () => {
  test("a no ends the run, keeps the user's MachineOSConfig and says why; taking it away attaches again without a build [os-builder-opt-in-3]", async () => {
    const { scene, image } = await builtPool();
    scene.backend.scripts = [[{ forMs: 60_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "2" } }));
    await scene.pass(5000);
    await scene.act(() => scene.labelPool({ [layering]: "false" }));
    await scene.pass(5000);
    expect((await scene.states()).at(-1)).toBe("rendered-worker-2 append Interrupted/OptedOut");
    expect(scene.backend.cancelled).toHaveLength(1);
    expect(scene.backend.objects.size).toBe(0);
    expect(await scene.condition("Accepted")).toMatchObject({ status: "False", reason: "OptedOut" });
    expect(await scene.events("OptedOut")).not.toEqual([]);
    expect((await scene.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "False", reason: "OptedOut" });
    await scene.act(() => scene.point("worker", "rendered-worker-1"));
    await scene.act(() => scene.labelPool({ [layering]: null }));
    await scene.pass(10_000);
    expect(await scene.condition("Accepted")).toMatchObject({ status: "True" });
    expect((await scene.config()).status?.currentImagePullSpec).toBe(image);
    expect(scene.backend.started).toHaveLength(2);
  });

  test("a MachineOSConfig that is deleted after a no has nothing to wait for, and goes at once", async () => {
    const { scene } = await builtPool();
    await scene.act(() => scene.labelPool({ [layering]: "false" }));
    await scene.pass(5000);
    await scene.act(() => scene.kube.delete(MachineOSConfig, { name: "worker" }));
    await scene.pass(5000);
    expect(await scene.act(() => scene.kube.get(MachineOSConfig, { name: "worker" }))).toBeUndefined();
    const pool = await scene.act(() => scene.kube.get(MachineConfigPool, { name: "worker" }));
    expect(pool?.metadata.annotations?.[annotations.optOutAfter]).toBeUndefined();
  });

  test("a label that is taken away takes the MachineOSConfig with it that was made for it, and everything that was told on the pool [os-builder-opt-in-4]", async () => {
    const scene = await BuilderScene.make();
    await scene.act(() => scene.buildConfig());
    await scene.act(() => scene.labelPool({ [layering]: "" }));
    scene.start();
    await scene.pass(10_000);
    await scene.act(() => scene.annotatePool({ [annotations.buildRetries]: "2" }));
    await scene.act(() => scene.labelPool({ [layering]: null }));
    await scene.pass(5000);
    expect(await configs(scene)).toEqual([]);
    const { notes, of } = await scene.pool();
    expect(Object.keys(notes).filter((key) => key !== layering)).toEqual([]);
    expect(of("ImageBuildDegraded")).toMatchObject({ status: "False", reason: "OptedOut" });
    expect(of("BuildSuccess")).toBeUndefined();
    expect(scene.scribe.lines.filter(({ chapter }) => chapter === "OptOut")).toHaveLength(1);
  });

  test("a deleted ConfigMap takes nothing back: it is told as what is wrong with the inputs [os-builder-opt-in-5]", async () => {
    const scene = await BuilderScene.make(["worker", "infra"]);
    await scene.act(() => scene.buildConfig({ defaultOptIn: "true" }));
    await scene.act(() => scene.labelPool({ [layering]: "" }));
    scene.start();
    await scene.pass(15_000);
    await scene.act(() => scene.kube.delete(kubernetes.ConfigMap, { name: objects.buildConfig, namespace }));
    await scene.pass(10_000);
    expect((await configs(scene)).toSorted()).toEqual(["infra", "worker"]);
    for (const pool of ["worker", "infra"]) {
      expect(await scene.condition("InputsValid", pool)).toMatchObject({
        status: "False",
        reason: "BuildConfigMissing",
      });
      expect((await scene.config(pool)).status?.currentImagePullSpec).toBeDefined();
    }
  });

  test("a grace that is longer than a day is a day, and the MachineOSConfig says so", async () => {
    const { scene } = await builtPool();
    await scene.act(() => scene.configMap(objects.buildConfig, { optOutGraceSeconds: "100000" }));
    await scene.pass(5000);
    const valid = await scene.condition("InputsValid");
    expect(valid).toMatchObject({ status: "True", reason: "BuildSettingInvalid" });
    expect(valid?.message).toContain('optOutGraceSeconds "100000" is not a whole number from 0 to 86400: 86400 counts');
    const deleted = scene.kernel.clock.now();
    await deleteConfig(scene);
    await scene.pass(5000);
    const until = Date.parse((await scene.pool()).notes[annotations.optOutAfter] ?? "");
    expect(until - deleted).toBeGreaterThanOrEqual(86_399_000);
    expect(until - deleted).toBeLessThan(86_405_000);
  });

  test("a deleted MachineOSConfig leaves machines their images for a minute; made again in time it takes its image over without a build [os-builder-opt-in-6]", async () => {
    const { scene, image } = await builtPool();
    await deleteConfig(scene);
    await scene.pass(5000);
    expect(await configs(scene)).toEqual([]);
    const { notes, of } = await scene.pool();
    expect(Date.parse(notes[annotations.optOutAfter] ?? "")).toBeGreaterThan(scene.kernel.clock.now() + 50_000);
    expect(of("ImageBuildDegraded")?.reason).not.toBe("OptedOut");
    await scene.act(() => scene.optIn());
    await scene.pass(10_000);
    expect((await scene.config()).status?.currentImagePullSpec).toBe(image);
    expect((await scene.pool()).notes[annotations.optOutAfter]).toBeUndefined();
    expect(scene.backend.started).toHaveLength(1);
    await deleteConfig(scene);
    await scene.pass(70_000);
    expect((await scene.pool()).of("ImageBuildDegraded")).toMatchObject({ reason: "OptedOut" });
    expect((await scene.pool()).notes[annotations.optOutAfter]).toBeUndefined();
  });

  test("a MachineOSConfig that is deleted during a build, and a pool that is, leave nothing of the run [os-builder-opt-in-8]", async () => {
    for (const kind of ["config", "pool"] as const) {
      const scene = await BuilderScene.make();
      scene.backend.scripts = [[{ forMs: 600_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
      await scene.act(() => scene.optIn());
      scene.start();
      await scene.pass(5000);
      expect(scene.backend.objects.size).toBe(1);
      await scene.act(() =>
        kind === "config"
          ? scene.kube.delete(MachineOSConfig, { name: "worker" })
          : scene.kube.delete(MachineConfigPool, { name: "worker" }),
      );
      await scene.pass(60_000);
      expect(scene.backend.objects.size).toBe(0);
      expect(scene.backend.cancelled).toHaveLength(1);
      expect(await scene.states()).toEqual(kind === "config" ? [] : ["rendered-worker-1 append Interrupted/OptedOut"]);
      if (kind === "config") expect(await configs(scene)).toEqual([]);
      else expect(await scene.condition("Accepted")).toMatchObject({ status: "False", reason: "PoolNotFound" });
    }
  });

  test("images and builds of a pool that has none any more go once no machine names them", async () => {
    const { scene, image } = await builtPool();
    await scene.act(() => scene.node("w0", "worker", { annotations: { [annotations.currentImage]: image } }));
    await deleteConfig(scene);
    await scene.pass(2_000_000);
    expect(scene.registry.deleted).toEqual([]);
    await scene.act(() =>
      scene.kube.patch(
        kubernetes.Node,
        { name: "w0" },
        { type: "merge", body: { metadata: { annotations: { [annotations.currentImage]: null } } } },
      ),
    );
    await scene.pass(600_000);
    expect(scene.registry.deleted).toEqual([]);
    await scene.pass(600_000);
    expect(scene.registry.deleted).toEqual([image]);
    expect(await scene.builds()).toEqual([]);
    expect(await scene.events("ImagePruned")).toEqual([image]);
  });
});
