import { describe, expect, test } from "vitest";
import { McoError } from "../api/errors.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, labels, namespace, objects } from "../api/names.ts";
import { BuilderHarness, type FakeRegistry, baseImage, builtPool } from "../../test/support/builder-harness.ts";

const none = { [annotations.imageContent]: "os-only" };

describe("how an image is made", () => {
  test("the first image of a pool is published on the MachineOSConfig, by digest, with its build [os-builder-strategies-1]", async () => {
    const { harness, image } = await builtPool();
    expect(harness.failures).toEqual([]);
    expect(await harness.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
    const [build] = await harness.builds();
    const config = await harness.config();
    expect(image).toMatch(/^r\.example\.com\/team\/os@sha256:[0-9a-f]{64}$/);
    expect(build?.status?.digestedImagePushSpec).toBe(image);
    expect(config.status?.machineOSBuild).toEqual({
      group: "machineconfiguration.openshift.io",
      resource: "machineosbuilds",
      name: build?.metadata.name,
    });
    expect(config.metadata.annotations?.[annotations.currentMachineOSBuild]).toBe(build?.metadata.name);
    expect(config.status?.observedGeneration).toBe(config.metadata.generation);
    expect(await harness.condition("UpToDate")).toMatchObject({ status: "True", reason: "UpToDate" });
    expect((await harness.pool()).of("ImageBuildDegraded")).toMatchObject({ status: "False", reason: "AsExpected" });
    expect(harness.backend.objects.size).toBe(0);
    expect(
      harness.journal.lines
        .filter(({ book }) => book === `build/${build?.metadata.name}`)
        .map(({ chapter }) => chapter),
    ).toEqual(["Planned", "Prepared", "Building", "Building", "Building", "Building", "Verified", "Published"]);
  });

  test("an os-only image is reused after a file change, without a run [os-builder-strategies-4]", async () => {
    const { harness, image } = await builtPool({ has: none });
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
    await harness.pass(5000);
    expect(await harness.states()).toEqual([
      "rendered-worker-1 append Succeeded/Appended",
      "rendered-worker-2 reuse Succeeded/Reused",
    ]);
    expect(harness.backend.started).toHaveLength(1);
    expect((await harness.config()).status?.currentImagePullSpec).toBe(image);
    expect((await harness.config()).status?.machineOSBuild?.name).toBe((await harness.builds())[1]?.metadata.name);
  });

  test("kernel arguments need no image [os-builder-strategies-5]", async () => {
    const { harness, image } = await builtPool();
    await harness.act(() =>
      harness.render("worker", { files: { "/etc/a": "1" }, spec: { kernelArguments: ["quiet"] } }),
    );
    await harness.pass(5000);
    expect((await harness.states())[1]).toBe("rendered-worker-2 reuse Succeeded/Reused");
    expect(harness.backend.started).toHaveLength(1);
    expect((await harness.config()).status?.currentImagePullSpec).toBe(image);
  });

  test("a changed file of a full image is appended; a changed package source runs the custom steps again [os-builder-strategies-2]", async () => {
    const { harness } = await builtPool({
      spec: { containerFile: [{ containerfileArch: "NoArch", content: "FROM os\nRUN true" }] },
    });
    expect(await harness.states()).toEqual(["rendered-worker-1 build Succeeded/Ready"]);
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
    await harness.pass(8000);
    expect((await harness.states())[1]).toBe("rendered-worker-2 append Succeeded/Appended");
    expect(harness.backend.started[1]?.parent).toMatchObject({
      image: (await harness.builds())[0]?.status?.digestedImagePushSpec,
      hasConfigLayer: true,
    });
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2", "/etc/yum.repos.d/a.repo": "[a]" } }));
    await harness.pass(15_000);
    expect((await harness.states())[2]).toBe("rendered-worker-3 build Succeeded/Ready");
  });

  test("a renamed push secret needs no image, another repository does [os-builder-strategies-3]", async () => {
    const { harness } = await builtPool();
    await harness.act(() => harness.secret("push-2", "r.example.com"));
    const patch = (spec: object) =>
      harness.act(() => harness.kube.patch(MachineOSConfig, { name: "worker" }, { type: "merge", body: { spec } }));
    await patch({ renderedImagePushSecret: { name: "push-2" } });
    await harness.pass(5000);
    expect(await harness.states()).toHaveLength(1);
    await patch({ renderedImagePushSpec: "r.example.com/other/os:x" });
    await harness.pass(8000);
    expect((await harness.states())[1]).toBe("rendered-worker-1 append Succeeded/Appended");
    expect((await harness.config()).status?.currentImagePullSpec).toMatch(/^r\.example\.com\/other\/os@/);
  });

  test("two pools with equal content and one repository make one image in one run; superseding the first pool's build does not end it [os-builder-strategies-6]", async () => {
    const harness = await BuilderHarness.make(["worker", "infra"]);
    for (const pool of ["worker", "infra"])
      await harness.act(() => harness.optIn(pool, {}, harness.steps("FROM os\nRUN true")));
    harness.backend.scripts = [[{ forMs: 60_000, is: "running", step: "user:1" }, { is: "succeeds" }]];
    harness.start();
    await harness.pass(20_000);
    expect((await harness.states()).toSorted()).toEqual(
      ["rendered-infra-2 build Building/StepUser", "rendered-worker-1 reuse Building/Attached"].map(
        (text) => expect.stringMatching(text.replace(/rendered-(infra|worker)-\d (build|reuse)/, ".*")) as string,
      ),
    );
    expect(harness.backend.started).toHaveLength(1);
    const [owner] = (await harness.builds()).filter(
      (build) => build.metadata.annotations?.[annotations.buildStrategy] === "build",
    );
    const ownerPool = owner?.spec.machineOSConfig.name ?? "";
    const other = ownerPool === "worker" ? "infra" : "worker";
    await harness.act(() => harness.render(ownerPool, { files: { "/etc/b": "b" } }));
    await harness.pass(60_000);
    expect(harness.backend.cancelled).toEqual([]);
    const attached = (await harness.builds()).find((build) => build.spec.machineOSConfig.name === other);
    const made = (await harness.builds()).find(({ metadata }) => metadata.name === owner?.metadata.name);
    expect(made?.status?.digestedImagePushSpec).toBe(attached?.status?.digestedImagePushSpec);
    expect((await harness.config(other)).status?.currentImagePullSpec).toBe(attached?.status?.digestedImagePushSpec);
    expect((await harness.config(ownerPool)).status?.currentImagePullSpec).not.toBe(
      made?.status?.digestedImagePushSpec,
    );
  });

  test.for([
    [
      "accepts whatever has its name",
      [{ type: "insecureAcceptAnything" }],
      ["rendered-worker-2 append Succeeded/Appended"],
    ],
    ["demands a signature", [{ type: "sigstoreSigned", keyData: btoa("key") }], []],
  ] as const)(
    "a base that is named by its digest needs no registry where the pool's policy %s [os-builder-strategies-19]",
    async ([, requirements, states]) => {
      const harness = await BuilderHarness.make();
      const asked: string[] = [];
      const away = Object.create(harness.registry) as FakeRegistry;
      away.resolve = (image) => {
        asked.push(image);
        return Promise.reject(new McoError("MCO_IMAGE_UNREACHABLE", { image, problem: "away", retryable: true }));
      };
      harness.registry.as = () => away;
      const policy = JSON.stringify({ default: requirements });
      await harness.act(() => harness.render("worker", { files: { "/etc/containers/policy.json": policy } }));
      await harness.act(() => harness.optIn("worker"));
      harness.start();
      await harness.pass(20_000);
      expect(await harness.states()).toEqual(states);
      expect(asked.length > 0).toBe(states.length === 0);
    },
  );

  test.for(["PushDenied", "BaseImagePullDenied", "UserStepFailed", "EntitlementMissing", "PushUnavailable"] as const)(
    "what a run fails with (%s) is not passed on to another pool that waits for it: that pool plans again [os-builder-strategies-16]",
    async (class_) => {
      const harness = await BuilderHarness.make(["worker", "infra"]);
      const steps = harness.steps("FROM os\nRUN true");
      await harness.act(() => harness.optIn("infra", {}, steps));
      harness.backend.scripts = [
        [
          { forMs: 15_000, is: "running", step: "user:1" },
          { is: "fails", failure: { class: class_, step: "user:2", cause: "no", excerpt: "" } },
        ],
        [{ forMs: 1000, is: "running", step: "user:1" }, { is: "succeeds" }],
      ];
      harness.start();
      await harness.pass(8000);
      await harness.act(() => harness.optIn("worker", {}, steps));
      await harness.pass(2000);
      expect((await harness.states()).at(-1)).toBe("rendered-worker-1 reuse Building/Attached");
      await harness.pass(22_000);
      expect((await harness.states()).at(-1)).toBe("rendered-worker-1 build Succeeded/Ready");
      expect((await harness.states())[0]).toMatch(
        new RegExp(`^rendered-infra-2 build (Failed/${class_}|Building/RetryScheduled)$`),
      );
      expect(harness.backend.started.map(({ pool }) => pool)).toEqual(["infra", "worker"]);
      expect(await harness.condition("UpToDate", "worker")).toMatchObject({ status: "True" });
    },
  );

  test("a pool does not wait for a run that lacks an input of its own pool [os-builder-strategies-17]", async () => {
    const harness = await BuilderHarness.make(["worker", "infra"]);
    const steps = harness.steps("FROM os\nRUN true");
    await harness.act(() => harness.secret("push-infra", "r.example.com"));
    await harness.act(() => harness.optIn("infra", {}, { ...steps, renderedImagePushSecret: { name: "push-infra" } }));
    harness.backend.atOnce = 0;
    harness.start();
    await harness.pass(10_000);
    await harness.act(() => harness.optIn("worker", {}, steps));
    await harness.pass(5000);
    expect(await harness.states()).toEqual([
      "rendered-infra-2 build Initial",
      "rendered-worker-1 reuse Building/Attached",
    ]);
    await harness.act(() => harness.kube.delete(kubernetes.Secret, { name: "push-infra", namespace }));
    await harness.pass(2000);
    harness.backend.atOnce = 4;
    await harness.pass(60_000);
    expect(await harness.states()).toEqual([
      "rendered-infra-2 build Prepared/InputChanged",
      "rendered-worker-1 reuse Interrupted/Superseded",
      "rendered-worker-1 build Succeeded/Ready",
    ]);
    // The image exists, and infra takes it once its inputs are whole.
    await harness.act(() => harness.secret("push-infra", "r.example.com"));
    await harness.pass(120_000);
    expect(await harness.condition("UpToDate", "infra")).toMatchObject({ status: "True" });
  });

  test("a permanent failure fails a build of the same pool that waits for the run [os-builder-strategies-18]", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.optIn("worker", none, harness.steps("FROM os\nRUN true")));
    const failure = { class: "UserStepFailed", step: "user:2", cause: "no", excerpt: "" } as const;
    harness.backend.scripts = [
      [
        { forMs: 15_000, is: "running", step: "user:1" },
        { is: "fails", failure },
      ],
    ];
    harness.start();
    await harness.pass(8000);
    await harness.act(() => harness.render("worker", { spec: { kernelArguments: ["quiet"] } }));
    await harness.pass(30_000);
    expect(await harness.states()).toEqual([
      "rendered-worker-1 build Failed/UserStepFailed",
      "rendered-worker-2 reuse Failed/UserStepFailed",
    ]);
    expect(harness.backend.started).toHaveLength(1);
  });

  test("a run with outdated inputs does not start again: builds that wait for it plan again", async () => {
    const harness = await BuilderHarness.make(["worker", "infra"]);
    const steps = harness.steps("FROM os\nRUN true");
    await harness.act(() => harness.optIn("worker", {}, steps));
    harness.backend.scripts = [
      [
        { forMs: 20_000, is: "running", step: "user:1" },
        { is: "fails", failure: { class: "PushUnavailable", step: "push", cause: "503", excerpt: "" } },
      ],
      [{ forMs: 1000, is: "running", step: "user:1" }, { is: "succeeds" }],
    ];
    harness.start();
    await harness.pass(8000);
    await harness.act(() => harness.optIn("infra", {}, steps));
    await harness.pass(4000);
    await harness.act(() =>
      harness.kube.patch(
        MachineOSConfig,
        { name: "worker" },
        { type: "merge", body: { spec: { containerFile: null } } },
      ),
    );
    await harness.pass(120_000);
    expect(await harness.states()).toContain("rendered-worker-1 build Interrupted/Superseded");
    for (const pool of ["worker", "infra"])
      expect(await harness.condition("UpToDate", pool)).toMatchObject({ status: "True" });
    expect((await harness.states()).at(-1)).toBe("rendered-infra-2 build Succeeded/Ready");
  });

  test("when every machine runs an image, the book of its build records it once", async () => {
    const { harness, process, image } = await builtPool();
    const has = { [annotations.currentImage]: image, [annotations.currentConfig]: "rendered-worker-1" };
    await harness.act(() => harness.node("w0", "worker", { annotations: has }));
    await harness.act(() => harness.node("w1", "worker"));
    await harness.pass(3000);
    const rolledOut = () => harness.journal.lines.filter(({ chapter }) => chapter === "RolledOut");
    expect(rolledOut()).toEqual([]);
    await harness.act(() =>
      harness.kube.patch(kubernetes.Node, { name: "w1" }, { type: "merge", body: { metadata: { annotations: has } } }),
    );
    await harness.pass(3000);
    expect(rolledOut()).toMatchObject([
      { reason: "ImageRolledOut", message: expect.stringContaining("all 2 machines") as string },
    ]);
    process.abort();
    await harness.pass(1000);
    harness.start("two");
    await harness.pass(20_000);
    expect(rolledOut()).toHaveLength(1);
  });

  test("the Go operator's leftover ConfigMaps with digests are removed, and no others", async () => {
    const harness = await BuilderHarness.make();
    const make = (name: string, has: Readonly<Record<string, string>>) =>
      harness.act(() =>
        harness.kube.create(kubernetes.ConfigMap, {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name, namespace, labels: { ...has } },
          data: { digest: "sha256:1" },
        }),
      );
    await make("digest-worker-1", { [labels.onClusterLayering]: "" });
    await make("digest-of-somebody", {});
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(15_000);
    const { items } = await harness.act(() => harness.kube.list(kubernetes.ConfigMap, { namespace }));
    expect(items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith("digest-"))).toEqual([
      "digest-of-somebody",
    ]);
  });

  test("a pool with two architectures is refused by name [os-builder-strategies-7]", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.optIn());
    await harness.act(() => harness.node("w0", "worker"));
    await harness.act(() => harness.node("w1", "worker", { labels: { "kubernetes.io/arch": "arm64" } }));
    harness.start();
    await harness.pass(5000);
    expect(await harness.condition("InputsValid")).toMatchObject({
      status: "False",
      reason: "PoolMixedArchitectures",
      message: expect.stringContaining("(amd64: w0; arm64: w1)") as string,
    });
    expect(await harness.builds()).toEqual([]);
  });

  test("after A, B, A the image of A is rolled out again, without a run [os-builder-strategies-8]", async () => {
    const { harness, image } = await builtPool();
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
    await harness.pass(10_000);
    expect((await harness.config()).status?.currentImagePullSpec).not.toBe(image);
    await harness.act(() => harness.point("worker", "rendered-worker-1"));
    await harness.pass(5000);
    expect(harness.backend.started).toHaveLength(2);
    expect((await harness.config()).status?.currentImagePullSpec).toBe(image);
    expect(await harness.builds()).toHaveLength(2);
  });

  test("a lost image is rebuilt once; while the registry is down, nothing is built, which is reported [os-builder-strategies-9]", async () => {
    const { harness, image } = await builtPool({ has: none });
    await harness.act(() => harness.render("worker", { base: "c" }));
    await harness.pass(10_000);
    expect(harness.backend.started).toHaveLength(2);
    harness.registry.is = "down";
    await harness.act(() => harness.render("worker", { files: { "/etc/x": "1" } }, "rendered-worker-9"));
    await harness.pass(60_000);
    expect(harness.backend.started).toHaveLength(2);
    expect(await harness.condition("UpToDate")).toMatchObject({ status: "False", reason: "RegistryUnreachable" });
    harness.registry.is = "up";
    harness.registry.images.delete(image);
    await harness.pass(60_000);
    expect(harness.backend.started).toHaveLength(3);
    expect((await harness.states()).at(-1)).toBe("rendered-worker-9 append Succeeded/Appended");
    const [first] = await harness.builds();
    expect(first?.metadata.annotations?.[annotations.imageLost]).toBeDefined();
    await harness.pass(60_000);
    expect(harness.backend.started).toHaveLength(3);
  });

  test("A, then B with an extension, then C without it: C gets the image of A [os-builder-strategies-10]", async () => {
    const { harness, image } = await builtPool({ has: none });
    const extended = {
      extensions: ["usbguard"],
      baseOSExtensionsContainerImage: `b.example.com/ext@sha256:${"e".repeat(64)}`,
    };
    await harness.act(() => harness.render("worker", { spec: extended }));
    await harness.pass(20_000);
    const b = (await harness.config()).status?.currentImagePullSpec;
    expect(b).not.toBe(image);
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "3" } }));
    await harness.pass(10_000);
    expect((await harness.config()).status?.currentImagePullSpec).toBe(image);
    expect((await harness.states()).at(-1)).toBe("rendered-worker-3 reuse Succeeded/Reused");
  });

  test("steps without custom ones see no file of a configuration: another pool may take what they make [os-builder-strategies-14]", async () => {
    const harness = await BuilderHarness.make(["infra", "worker"]);
    const extended = {
      extensions: ["usbguard"],
      baseOSExtensionsContainerImage: `b.example.com/ext@sha256:${"e".repeat(64)}`,
    };
    // Who writes the configuration of one pool has its packages taken from elsewhere.
    const files = { "/etc/yum.repos.d/mine.repo": "[mine]\nbaseurl=http://mine.example.com\npriority=1\ngpgcheck=0" };
    await harness.act(() => harness.render("infra", { files, spec: extended }));
    await harness.act(() => harness.render("worker", { spec: extended }));
    await harness.act(() => harness.optIn("infra"));
    harness.start();
    await harness.pass(20_000);
    await harness.act(() => harness.optIn("worker"));
    await harness.pass(20_000);
    expect((await harness.states()).map((state) => state.split(" ")[1])).toEqual(["build", "append"]);
    expect(harness.backend.started.map(({ buildVisible }) => buildVisible)).toEqual([undefined, undefined]);
  });

  test("what a tag means by the mirrors of one pool's configuration is not what it means to another pool [os-builder-strategies-15]", async () => {
    const harness = await BuilderHarness.make(["infra", "worker"]);
    const osImageURL = "b.example.com/os:4";
    // Who writes the configuration of one pool has the tag looked up where an older system has it.
    const files = {
      "/etc/containers/registries.conf":
        '[[registry]]\nlocation = "b.example.com"\n[[registry.mirror]]\nlocation = "mine.example.com"\npull-from-mirror = "tag-only"\n',
    };
    harness.registry.tagged = ({ registries = "" }) => (registries.includes("mine.example.com") ? "0" : "4");
    await harness.act(() => harness.render("infra", { files, spec: { osImageURL } }));
    await harness.act(() => harness.render("worker", { spec: { osImageURL } }));
    await harness.act(() => harness.optIn("infra"));
    harness.start();
    await harness.pass(20_000);
    await harness.act(() => harness.optIn("worker"));
    await harness.pass(20_000);
    const baseOf = (pool: string) => harness.backend.started.find((request) => request.pool === pool)?.base;
    expect(baseOf("infra")).toBe(baseImage("0"));
    expect(baseOf("worker")).toBe(baseImage("4"));
  });

  test("a burst of configurations starts one build with steps, for the last of them", async () => {
    const { harness } = await builtPool({
      spec: { containerFile: [{ containerfileArch: "NoArch", content: "FROM configs\nRUN true" }] },
    });
    for (const text of ["2", "3", "4"]) {
      await harness.act(() => harness.render("worker", { files: { "/etc/a": text } }));
      await harness.pass(2000);
    }
    await harness.pass(20_000);
    expect(harness.backend.started).toHaveLength(2);
    expect((await harness.states()).at(-1)).toBe("rendered-worker-4 build Succeeded/Ready");
  });

  test("a new configuration cancels the old run by name; a run that already pushes finishes unpublished [os-builder-strategies-11]", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.optIn());
    harness.backend.scripts = [
      [{ forMs: 30_000, is: "running", step: "pull-base" }, { is: "succeeds" }],
      [{ forMs: 30_000, is: "running", step: "push" }, { is: "succeeds" }],
    ];
    harness.start();
    await harness.pass(5000);
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
    await harness.pass(5000);
    expect(await harness.states()).toEqual([
      "rendered-worker-1 append Interrupted/Superseded",
      "rendered-worker-2 append Building/StepPush",
    ]);
    expect(harness.backend.cancelled).toHaveLength(1);
    expect((await harness.events("BuildInterrupted"))[0]).toContain("rendered-worker-2");
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "3" } }));
    await harness.pass(60_000);
    expect(await harness.states()).toEqual([
      "rendered-worker-1 append Interrupted/Superseded",
      "rendered-worker-2 append Succeeded/Appended",
      "rendered-worker-3 append Succeeded/Appended",
    ]);
    expect((await harness.config()).status?.machineOSBuild?.name).toBe((await harness.builds())[2]?.metadata.name);
  });

  test("a new configuration with the same image attaches to the run, and is published [os-builder-strategies-12]", async () => {
    const harness = await BuilderHarness.make();
    await harness.act(() => harness.optIn("worker", none));
    harness.backend.scripts = [[{ forMs: 20_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
    harness.start();
    await harness.pass(5000);
    await harness.act(() => harness.render("worker", { spec: { kernelArguments: ["quiet"] } }));
    await harness.pass(5000);
    expect((await harness.states())[1]).toBe("rendered-worker-2 reuse Building/Attached");
    await harness.pass(30_000);
    expect(await harness.states()).toEqual([
      "rendered-worker-1 append Succeeded/Appended",
      "rendered-worker-2 reuse Succeeded/Reused",
    ]);
    expect(harness.backend.started).toHaveLength(1);
    expect((await harness.config()).status?.machineOSBuild?.name).toBe((await harness.builds())[1]?.metadata.name);
  });

  test("a pool with degraded machines gets its image; one that cannot be rendered waits and reports it", async () => {
    const { harness } = await builtPool();
    const condition = (type: string, status: string) =>
      harness.act(() =>
        harness.kube.patch(
          harness.poolKind,
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
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
    await harness.pass(10_000);
    expect(await harness.builds()).toHaveLength(2);
    await condition("RenderDegraded", "True");
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "3" } }));
    await harness.pass(10_000);
    expect(await harness.builds()).toHaveLength(2);
    expect(await harness.condition("UpToDate")).toMatchObject({
      reason: "WaitingForRender",
      message: expect.stringContaining("99-bad") as string,
    });
    await condition("RenderDegraded", "False");
    await harness.pass(10_000);
    expect(await harness.builds()).toHaveLength(3);
  });

  test("a deleted build whose image is in use is recreated without a run [os-builder-strategies-13]", async () => {
    const { harness, image } = await builtPool();
    const [build] = await harness.builds();
    await harness.act(() => harness.kube.delete(MachineOSBuild, { name: build?.metadata.name ?? "" }));
    await harness.pass(5000);
    expect(await harness.states()).toEqual(["rendered-worker-1 reuse Succeeded/Reused"]);
    expect(harness.backend.started).toHaveLength(1);
    expect((await harness.config()).status?.currentImagePullSpec).toBe(image);
  });

  test("runs beyond the backend's limit wait for their turn, which the cluster's book records", async () => {
    const harness = await BuilderHarness.make(["worker", "infra"]);
    harness.backend.atOnce = 1;
    harness.backend.scripts = [[{ forMs: 20_000, is: "running", step: "pull-base" }, { is: "succeeds" }]];
    await harness.act(() => harness.optIn("worker", {}));
    await harness.act(() => harness.optIn("infra", none));
    harness.start();
    await harness.pass(10_000);
    expect(harness.backend.started).toHaveLength(1);
    expect(harness.journal.lines.some(({ reason }) => reason === "BuildQueued")).toBe(true);
    await harness.pass(60_000);
    expect((await harness.states()).every((state) => state.endsWith("Succeeded/Appended"))).toBe(true);
  });

  test("without a backend for steps, images without steps are still made", async () => {
    const harness = await BuilderHarness.make(["worker", "infra"]);
    harness.backend.canRun = false;
    await harness.act(() => harness.optIn("worker"));
    await harness.act(() => harness.optIn("infra", {}, harness.steps()));
    harness.start();
    await harness.pass(20_000);
    expect(await harness.states()).toEqual(["rendered-worker-1 append Succeeded/Appended"]);
    expect(await harness.condition("UpToDate", "infra")).toMatchObject({
      status: "False",
      reason: "BuilderBinaryMissing",
    });
  });

  test("the build records the content of its image, for the machines that get it", async () => {
    const { harness } = await builtPool({ has: none });
    expect((await harness.builds()).map(({ metadata }) => metadata.annotations?.[annotations.imageContent])).toEqual([
      "os-only",
    ]);
    expect(harness.backend.started[0]?.configLayer).toBeUndefined();
    await harness.act(() => harness.annotateConfig({ [annotations.imageContent]: "full" }));
    await harness.pass(8000);
    expect((await harness.builds()).map(({ metadata }) => metadata.annotations?.[annotations.imageContent])).toEqual([
      "os-only",
      "full",
    ]);
    expect(harness.backend.started[1]?.configLayer?.digest).toMatch(/^sha256:/);
  });

  test("a file's unknown owner is refused by name; a known one is stored as a number", async () => {
    const harness = await BuilderHarness.make();
    const owned = {
      config: {
        ignition: { version: "3.4.0" },
        storage: { files: [{ path: "/etc/owned", mode: 420, user: { name: "bob" }, contents: { source: "data:,x" } }] },
      },
    };
    await harness.act(() => harness.render("worker", { spec: owned }));
    await harness.act(() => harness.optIn());
    harness.start();
    await harness.pass(5000);
    expect(await harness.condition("InputsValid")).toMatchObject({
      status: "False",
      reason: "OwnerUnknown",
      message: expect.stringContaining("/etc/owned") as string,
    });
    expect(await harness.builds()).toEqual([]);
  });

  test("the pull secret is the named one, otherwise the cluster's, otherwise the push secret", async () => {
    const { harness } = await builtPool();
    expect(harness.backend.started[0]?.auth).toEqual({ pull: objects.globalPullSecret, push: "push" });
    await harness.act(() => harness.kube.delete(kubernetes.Secret, { name: objects.globalPullSecret, namespace }));
    await harness.act(() => harness.render("worker", { files: { "/etc/a": "2" } }));
    await harness.pass(8000);
    expect(harness.backend.started[1]?.auth).toEqual({ pull: "push", push: "push" });
  });
});
