import { describe, expect, test } from "vitest";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, labels, namespace, objects } from "../api/names.ts";
import { BuilderScene, builtPool } from "../../test/support/builder-scene.ts";

const none = { [annotations.imageContent]: "os-only" };

describe("what makes an image", () => {
  test("the first image of a pool is published: on the MachineOSConfig, by digest, with the build that it is from [os-builder-strategies-1]", async () => {
    const { scene, image } = await builtPool();
    expect(scene.failures).toEqual([]);
    expect(await scene.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
    const [build] = await scene.builds();
    const config = await scene.config();
    expect(image).toMatch(/^r\.example\.com\/team\/os@sha256:[0-9a-f]{64}$/);
    expect(build?.status?.digestedImagePushSpec).toBe(image);
    expect(config.status?.machineOSBuild).toEqual({
      group: "machineconfiguration.openshift.io",
      resource: "machineosbuilds",
      name: build?.metadata.name,
    });
    expect(config.metadata.annotations?.[annotations.currentMachineOSBuild]).toBe(build?.metadata.name);
    expect(config.status?.observedGeneration).toBe(config.metadata.generation);
    expect(await scene.condition("UpToDate")).toMatchObject({ status: "True", reason: "UpToDate" });
    expect((await scene.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "False", reason: "AsExpected" });
    expect(scene.backend.objects.size).toBe(0);
    expect(
      scene.scribe.lines.filter(({ book }) => book === `build/${build?.metadata.name}`).map(({ chapter }) => chapter),
    ).toEqual(["Planned", "Prepared", "Building", "Building", "Building", "Building", "Verified", "Published"]);
  });

  test("an os-only image of a file change is taken again: no run [os-builder-strategies-4]", async () => {
    const { scene, image } = await builtPool({ has: none });
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "2" } }));
    await scene.pass(5000);
    expect(await scene.states()).toEqual([
      "rendered-worker-1 append Succeeded/Appended",
      "rendered-worker-2 reuse Succeeded/Reused",
    ]);
    expect(scene.backend.started).toHaveLength(1);
    expect((await scene.config()).status?.currentImagePullSpec).toBe(image);
    expect((await scene.config()).status?.machineOSBuild?.name).toBe((await scene.builds())[1]?.metadata.name);
  });

  test("kernel arguments make no image [os-builder-strategies-5]", async () => {
    const { scene, image } = await builtPool();
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "1" }, spec: { kernelArguments: ["quiet"] } }));
    await scene.pass(5000);
    expect((await scene.states())[1]).toBe("rendered-worker-2 reuse Succeeded/Reused");
    expect(scene.backend.started).toHaveLength(1);
    expect((await scene.config()).status?.currentImagePullSpec).toBe(image);
  });

  test("a file of a full image is laid on what custom steps have made; a repository that steps see has them run again [os-builder-strategies-2]", async () => {
    const { scene } = await builtPool({
      spec: { containerFile: [{ containerfileArch: "NoArch", content: "FROM os\nRUN true" }] },
    });
    expect(await scene.states()).toEqual(["rendered-worker-1 build Succeeded/Ready"]);
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "2" } }));
    await scene.pass(8000);
    expect((await scene.states())[1]).toBe("rendered-worker-2 append Succeeded/Appended");
    expect(scene.backend.started[1]?.parent).toMatchObject({
      image: (await scene.builds())[0]?.status?.digestedImagePushSpec,
      hasConfigLayer: true,
    });
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "2", "/etc/yum.repos.d/a.repo": "[a]" } }));
    await scene.pass(15_000);
    expect((await scene.states())[2]).toBe("rendered-worker-3 build Succeeded/Ready");
  });

  test("the renamed push secret makes no image, another repository does [os-builder-strategies-3]", async () => {
    const { scene } = await builtPool();
    await scene.act(() => scene.secret("push-2", "r.example.com"));
    const patch = (spec: object) =>
      scene.act(() => scene.kube.patch(MachineOSConfig, { name: "worker" }, { type: "merge", body: { spec } }));
    await patch({ renderedImagePushSecret: { name: "push-2" } });
    await scene.pass(5000);
    expect(await scene.states()).toHaveLength(1);
    await patch({ renderedImagePushSpec: "r.example.com/other/os:x" });
    await scene.pass(8000);
    expect((await scene.states())[1]).toBe("rendered-worker-1 append Succeeded/Appended");
    expect((await scene.config()).status?.currentImagePullSpec).toMatch(/^r\.example\.com\/other\/os@/);
  });

  test("two pools with equal content and one repository make one image in one run; superseding the first pool's build does not end it [os-builder-strategies-6]", async () => {
    const scene = await BuilderScene.make(["worker", "infra"]);
    for (const pool of ["worker", "infra"])
      await scene.act(() => scene.optIn(pool, {}, scene.steps("FROM os\nRUN true")));
    scene.backend.scripts = [[{ forMs: 60_000, is: "running", step: "user:1" }, { is: "succeeds" }]];
    scene.start();
    await scene.pass(20_000);
    expect((await scene.states()).toSorted()).toEqual(
      ["rendered-infra-2 build Building/StepUser", "rendered-worker-1 reuse Building/Attached"].map(
        (text) => expect.stringMatching(text.replace(/rendered-(infra|worker)-\d (build|reuse)/, ".*")) as string,
      ),
    );
    expect(scene.backend.started).toHaveLength(1);
    const [owner] = (await scene.builds()).filter(
      (build) => build.metadata.annotations?.[annotations.buildStrategy] === "build",
    );
    const ownerPool = owner?.spec.machineOSConfig.name ?? "";
    const other = ownerPool === "worker" ? "infra" : "worker";
    await scene.act(() => scene.render(ownerPool, { files: { "/etc/b": "b" } }));
    await scene.pass(60_000);
    expect(scene.backend.cancelled).toEqual([]);
    const attached = (await scene.builds()).find((build) => build.spec.machineOSConfig.name === other);
    const made = (await scene.builds()).find(({ metadata }) => metadata.name === owner?.metadata.name);
    expect(made?.status?.digestedImagePushSpec).toBe(attached?.status?.digestedImagePushSpec);
    expect((await scene.config(other)).status?.currentImagePullSpec).toBe(attached?.status?.digestedImagePushSpec);
    expect((await scene.config(ownerPool)).status?.currentImagePullSpec).not.toBe(made?.status?.digestedImagePushSpec);
  });

  test("a run that fails for good fails those that wait for it as well; one that is given up has them plan anew", async () => {
    for (const [class_, follows] of [
      ["UserStepFailed", "reuse Failed/UserStepFailed"],
      ["PushUnavailable", "build Building/StepUser"],
    ] as const) {
      const scene = await BuilderScene.make(["worker", "infra"]);
      await scene.act(() => scene.configMap(objects.buildConfig, { maxBuildRetries: "0" }));
      await scene.act(() => scene.optIn("worker", {}, scene.steps("FROM os\nRUN true")));
      scene.backend.scripts = [
        [
          { forMs: 15_000, is: "running", step: "user:1" },
          { is: "fails", failure: { class: class_, step: "user:2", cause: "no", excerpt: "" } },
        ],
        [{ forMs: 600_000, is: "running", step: "user:1" }, { is: "succeeds" }],
      ];
      scene.start();
      await scene.pass(8000);
      await scene.act(() => scene.optIn("infra", {}, scene.steps("FROM os\nRUN true")));
      await scene.pass(30_000);
      expect((await scene.states()).at(-1)).toMatch(new RegExp(`^rendered-infra-2 ${follows}$`));
    }
  });

  test("a run that others wait for and whose inputs are others by now is not begun again: those who wait plan anew", async () => {
    const scene = await BuilderScene.make(["worker", "infra"]);
    const steps = scene.steps("FROM os\nRUN true");
    await scene.act(() => scene.optIn("worker", {}, steps));
    scene.backend.scripts = [
      [
        { forMs: 20_000, is: "running", step: "user:1" },
        { is: "fails", failure: { class: "PushUnavailable", step: "push", cause: "503", excerpt: "" } },
      ],
      [{ forMs: 1000, is: "running", step: "user:1" }, { is: "succeeds" }],
    ];
    scene.start();
    await scene.pass(8000);
    await scene.act(() => scene.optIn("infra", {}, steps));
    await scene.pass(4000);
    await scene.act(() =>
      scene.kube.patch(MachineOSConfig, { name: "worker" }, { type: "merge", body: { spec: { containerFile: null } } }),
    );
    await scene.pass(120_000);
    expect(await scene.states()).toContain("rendered-worker-1 build Interrupted/Superseded");
    for (const pool of ["worker", "infra"])
      expect(await scene.condition("UpToDate", pool)).toMatchObject({ status: "True" });
    expect((await scene.states()).at(-1)).toBe("rendered-infra-2 build Succeeded/Ready");
  });

  test("when every machine runs an image, the book of its build is told so, once", async () => {
    const { scene, process, image } = await builtPool();
    const has = { [annotations.currentImage]: image, [annotations.currentConfig]: "rendered-worker-1" };
    await scene.act(() => scene.node("w0", "worker", { annotations: has }));
    await scene.act(() => scene.node("w1", "worker"));
    await scene.pass(3000);
    const rolledOut = () => scene.scribe.lines.filter(({ chapter }) => chapter === "RolledOut");
    expect(rolledOut()).toEqual([]);
    await scene.act(() =>
      scene.kube.patch(kubernetes.Node, { name: "w1" }, { type: "merge", body: { metadata: { annotations: has } } }),
    );
    await scene.pass(3000);
    expect(rolledOut()).toMatchObject([
      { reason: "ImageRolledOut", message: expect.stringContaining("all 2 machines") as string },
    ]);
    process.abort();
    await scene.pass(1000);
    scene.start("two");
    await scene.pass(20_000);
    expect(rolledOut()).toHaveLength(1);
  });

  test("ConfigMaps with digests that the Go operator left go, and nobody else's", async () => {
    const scene = await BuilderScene.make();
    const make = (name: string, has: Readonly<Record<string, string>>) =>
      scene.act(() =>
        scene.kube.create(kubernetes.ConfigMap, {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name, namespace, labels: { ...has } },
          data: { digest: "sha256:1" },
        }),
      );
    await make("digest-worker-1", { [labels.onClusterLayering]: "" });
    await make("digest-of-somebody", {});
    await scene.act(() => scene.optIn());
    scene.start();
    await scene.pass(15_000);
    const { items } = await scene.act(() => scene.kube.list(kubernetes.ConfigMap, { namespace }));
    expect(items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith("digest-"))).toEqual([
      "digest-of-somebody",
    ]);
  });

  test("a pool with two architectures is refused by name [os-builder-strategies-7]", async () => {
    const scene = await BuilderScene.make();
    await scene.act(() => scene.optIn());
    await scene.act(() => scene.node("w0", "worker"));
    await scene.act(() => scene.node("w1", "worker", { labels: { "kubernetes.io/arch": "arm64" } }));
    scene.start();
    await scene.pass(5000);
    expect(await scene.condition("InputsValid")).toMatchObject({
      status: "False",
      reason: "PoolMixedArchitectures",
      message: expect.stringContaining("(amd64: w0; arm64: w1)") as string,
    });
    expect(await scene.builds()).toEqual([]);
  });

  test("after A, B, A the image of A is rolled out again, without a run [os-builder-strategies-8]", async () => {
    const { scene, image } = await builtPool();
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "2" } }));
    await scene.pass(10_000);
    expect((await scene.config()).status?.currentImagePullSpec).not.toBe(image);
    await scene.act(() => scene.point("worker", "rendered-worker-1"));
    await scene.pass(5000);
    expect(scene.backend.started).toHaveLength(2);
    expect((await scene.config()).status?.currentImagePullSpec).toBe(image);
    expect(await scene.builds()).toHaveLength(2);
  });

  test("an image that the registry lost is built again once; a registry that is down has nothing built, and that is said [os-builder-strategies-9]", async () => {
    const { scene, image } = await builtPool({ has: none });
    await scene.act(() => scene.render("worker", { base: "c" }));
    await scene.pass(10_000);
    expect(scene.backend.started).toHaveLength(2);
    scene.registry.is = "down";
    await scene.act(() => scene.render("worker", { files: { "/etc/x": "1" } }, "rendered-worker-9"));
    await scene.pass(60_000);
    expect(scene.backend.started).toHaveLength(2);
    expect(await scene.condition("UpToDate")).toMatchObject({ status: "False", reason: "RegistryUnreachable" });
    scene.registry.is = "up";
    scene.registry.images.delete(image);
    await scene.pass(60_000);
    expect(scene.backend.started).toHaveLength(3);
    expect((await scene.states()).at(-1)).toBe("rendered-worker-9 append Succeeded/Appended");
    const [first] = await scene.builds();
    expect(first?.metadata.annotations?.[annotations.imageLost]).toBeDefined();
    await scene.pass(60_000);
    expect(scene.backend.started).toHaveLength(3);
  });

  test("A, then B with an extension, then C without it: C gets the image of A [os-builder-strategies-10]", async () => {
    const { scene, image } = await builtPool({ has: none });
    const extended = {
      extensions: ["usbguard"],
      baseOSExtensionsContainerImage: `b.example.com/ext@sha256:${"e".repeat(64)}`,
    };
    await scene.act(() => scene.render("worker", { spec: extended }));
    await scene.pass(20_000);
    const b = (await scene.config()).status?.currentImagePullSpec;
    expect(b).not.toBe(image);
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "3" } }));
    await scene.pass(10_000);
    expect((await scene.config()).status?.currentImagePullSpec).toBe(image);
    expect((await scene.states()).at(-1)).toBe("rendered-worker-3 reuse Succeeded/Reused");
  });

  test("a burst of configurations begins one build of steps, for the last of them", async () => {
    const { scene } = await builtPool({
      spec: { containerFile: [{ containerfileArch: "NoArch", content: "FROM configs\nRUN true" }] },
    });
    for (const text of ["2", "3", "4"]) {
      await scene.act(() => scene.render("worker", { files: { "/etc/a": text } }));
      await scene.pass(2000);
    }
    await scene.pass(20_000);
    expect(scene.backend.started).toHaveLength(2);
    expect((await scene.states()).at(-1)).toBe("rendered-worker-4 build Succeeded/Ready");
  });

  test("a new configuration ends the run for the old one, and says which one it is; a run that pushes is let finish and not published [os-builder-strategies-11]", async () => {
    const scene = await BuilderScene.make();
    await scene.act(() => scene.optIn());
    scene.backend.scripts = [
      [{ forMs: 30_000, is: "running", step: "pull-base" }, { is: "succeeds" }],
      [{ forMs: 30_000, is: "running", step: "push" }, { is: "succeeds" }],
    ];
    scene.start();
    await scene.pass(5000);
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "2" } }));
    await scene.pass(5000);
    expect(await scene.states()).toEqual([
      "rendered-worker-1 append Interrupted/Superseded",
      "rendered-worker-2 append Building/StepPush",
    ]);
    expect(scene.backend.cancelled).toHaveLength(1);
    expect((await scene.events("BuildInterrupted"))[0]).toContain("rendered-worker-2");
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "3" } }));
    await scene.pass(60_000);
    expect(await scene.states()).toEqual([
      "rendered-worker-1 append Interrupted/Superseded",
      "rendered-worker-2 append Succeeded/Appended",
      "rendered-worker-3 append Succeeded/Appended",
    ]);
    expect((await scene.config()).status?.machineOSBuild?.name).toBe((await scene.builds())[2]?.metadata.name);
  });

  test("a new configuration with the same image attaches to the run, and becomes the one that is published [os-builder-strategies-12]", async () => {
    const scene = await BuilderScene.make();
    await scene.act(() => scene.optIn("worker", none));
    scene.backend.scripts = [[{ forMs: 20_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
    scene.start();
    await scene.pass(5000);
    await scene.act(() => scene.render("worker", { spec: { kernelArguments: ["quiet"] } }));
    await scene.pass(5000);
    expect((await scene.states())[1]).toBe("rendered-worker-2 reuse Building/Attached");
    await scene.pass(30_000);
    expect(await scene.states()).toEqual([
      "rendered-worker-1 append Succeeded/Appended",
      "rendered-worker-2 reuse Succeeded/Reused",
    ]);
    expect(scene.backend.started).toHaveLength(1);
    expect((await scene.config()).status?.machineOSBuild?.name).toBe((await scene.builds())[1]?.metadata.name);
  });

  test("a pool whose machines are degraded is built for; one that cannot be rendered waits, and says so", async () => {
    const { scene } = await builtPool();
    const condition = (type: string, status: string) =>
      scene.act(() =>
        scene.kube.patch(
          scene.poolKind,
          { name: "worker" },
          {
            type: "merge",
            body: {
              status: {
                conditions: [
                  {
                    type,
                    status,
                    reason: "x",
                    message: "99-bad: spec.kernelType",
                    lastTransitionTime: "2026-01-01T00:00:00Z",
                  },
                ],
              },
            },
          },
          { subresource: "status" },
        ),
      );
    await condition("NodeDegraded", "True");
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "2" } }));
    await scene.pass(10_000);
    expect(await scene.builds()).toHaveLength(2);
    await condition("RenderDegraded", "True");
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "3" } }));
    await scene.pass(10_000);
    expect(await scene.builds()).toHaveLength(2);
    expect(await scene.condition("UpToDate")).toMatchObject({
      reason: "WaitingForRender",
      message: expect.stringContaining("99-bad") as string,
    });
    await condition("RenderDegraded", "False");
    await scene.pass(10_000);
    expect(await scene.builds()).toHaveLength(3);
  });

  test("a build that somebody deletes though its image is rolled out is told again, without a run [os-builder-strategies-13]", async () => {
    const { scene, image } = await builtPool();
    const [build] = await scene.builds();
    await scene.act(() => scene.kube.delete(MachineOSBuild, { name: build?.metadata.name ?? "" }));
    await scene.pass(5000);
    expect(await scene.states()).toEqual(["rendered-worker-1 reuse Succeeded/Reused"]);
    expect(scene.backend.started).toHaveLength(1);
    expect((await scene.config()).status?.currentImagePullSpec).toBe(image);
  });

  test("no more runs at once than the backend takes; the others wait for their turn, and that is in the book of the cluster", async () => {
    const scene = await BuilderScene.make(["worker", "infra"]);
    scene.backend.atOnce = 1;
    scene.backend.scripts = [[{ forMs: 20_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
    await scene.act(() => scene.optIn("worker", {}));
    await scene.act(() => scene.optIn("infra", none));
    scene.start();
    await scene.pass(10_000);
    expect(scene.backend.started).toHaveLength(1);
    expect(scene.scribe.lines.some(({ reason }) => reason === "BuildQueued")).toBe(true);
    await scene.pass(60_000);
    expect((await scene.states()).every((state) => state.endsWith("Succeeded/Appended"))).toBe(true);
  });

  test("where nothing can run steps, images without any are made all the same", async () => {
    const scene = await BuilderScene.make(["worker", "infra"]);
    scene.backend.canRun = false;
    await scene.act(() => scene.optIn("worker"));
    await scene.act(() => scene.optIn("infra", {}, scene.steps()));
    scene.start();
    await scene.pass(20_000);
    expect(await scene.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
    expect(await scene.condition("UpToDate", "infra")).toMatchObject({
      status: "False",
      reason: "BuilderBinaryMissing",
    });
  });

  test("what an image holds is told with its build, for the machines that get it", async () => {
    const { scene } = await builtPool({ has: none });
    expect((await scene.builds()).map(({ metadata }) => metadata.annotations?.[annotations.imageContent])).toEqual([
      "os-only",
    ]);
    expect(scene.backend.started[0]?.configLayer).toBeUndefined();
    await scene.act(() => scene.annotateConfig({ [annotations.imageContent]: "full" }));
    await scene.pass(8000);
    expect((await scene.builds()).map(({ metadata }) => metadata.annotations?.[annotations.imageContent])).toEqual([
      "os-only",
      "full",
    ]);
    expect(scene.backend.started[1]?.configLayer?.digest).toMatch(/^sha256:/);
  });

  test("an owner that the base image does not know is refused with the file; a known one is laid down by number", async () => {
    const scene = await BuilderScene.make();
    const owned = {
      config: {
        ignition: { version: "3.4.0" },
        storage: { files: [{ path: "/etc/owned", mode: 420, user: { name: "bob" }, contents: { source: "data:,x" } }] },
      },
    };
    await scene.act(() => scene.render("worker", { spec: owned }));
    await scene.act(() => scene.optIn());
    scene.start();
    await scene.pass(5000);
    expect(await scene.condition("InputsValid")).toMatchObject({
      status: "False",
      reason: "OwnerUnknown",
      message: expect.stringContaining("/etc/owned") as string,
    });
    expect(await scene.builds()).toEqual([]);
  });

  test("secrets of a pull are those that are named, else the cluster's own, else those of the push", async () => {
    const { scene } = await builtPool();
    expect(scene.backend.started[0]?.auth).toEqual({ pull: objects.globalPullSecret, push: "push" });
    await scene.act(() => scene.kube.delete(kubernetes.Secret, { name: objects.globalPullSecret, namespace }));
    await scene.act(() => scene.render("worker", { files: { "/etc/a": "2" } }));
    await scene.pass(8000);
    expect(scene.backend.started[1]?.auth).toEqual({ pull: "push", push: "push" });
  });
});
