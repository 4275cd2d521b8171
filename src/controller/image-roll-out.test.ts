import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, machineOSBuildConditions as types, namespace, objects } from "../api/names.ts";
import { timestampOf } from "../api/schema/object.ts";

const image = (letter: string) => `registry.example.com/os@sha256:${letter.repeat(64)}`;
const keys = [annotations.desiredImage, annotations.desiredOSImage, annotations.desiredImageContent] as const;
const imagesOf = ({ metadata }: Node) => keys.map((key) => metadata.annotations?.[key]);

/** What the os-builder would do, by hand. */
function builder(harness: Harness, pool = "worker") {
  const stamp = () => timestampOf(harness.kernel.clock.now());
  const status = (name: string, body: object) =>
    harness.act(() =>
      harness.kube.patch(
        MachineOSBuild,
        { name },
        { type: "merge", body: { status: body } },
        { subresource: "status" },
      ),
    );
  return {
    optIn: (notes: Readonly<Record<string, string>> = {}) =>
      harness.act(() =>
        harness.kube.create(MachineOSConfig, {
          apiVersion: MachineOSConfig.apiVersion,
          kind: MachineOSConfig.kind,
          metadata: { name: pool, annotations: { ...notes } },
          spec: {
            machineConfigPool: { name: pool },
            imageBuilder: { imageBuilderType: "Job" },
            renderedImagePushSecret: { name: "push" },
            renderedImagePushSpec: "registry.example.com/os:x",
          },
        }),
      ),
    begin: (name: string, config: string, base = "sha256:base") =>
      harness.act(() =>
        harness.kube.create(MachineOSBuild, {
          apiVersion: MachineOSBuild.apiVersion,
          kind: MachineOSBuild.kind,
          metadata: {
            name,
            annotations: { [annotations.imageContent]: "full", [annotations.keyInputs]: JSON.stringify({ base }) },
          },
          spec: {
            machineConfig: { name: config },
            machineOSConfig: { name: pool },
            renderedImagePushSpec: "registry.example.com/os:x",
          },
        }),
      ),
    is: (name: string, type: string, reason: string, more: object = {}) =>
      status(name, {
        conditions: [{ type, status: "True", reason, message: "", lastTransitionTime: stamp() }],
        ...more,
      }),
    async publish(name: string, of: string) {
      await status(name, {
        conditions: [
          { type: types.succeeded, status: "True", reason: "Ready", message: "", lastTransitionTime: stamp() },
        ],
        digestedImagePushSpec: of,
      });
      await harness.act(() =>
        harness.kube.patch(
          MachineOSConfig,
          { name: pool },
          {
            type: "merge",
            body: {
              status: {
                currentImagePullSpec: of,
                machineOSBuild: { group: "machineconfiguration.openshift.io", resource: "machineosbuilds", name },
              },
            },
          },
          { subresource: "status" },
        ),
      );
    },
  };
}

const setPool = (
  harness: Harness,
  notes: Readonly<Record<string, string | null>>,
  spec: object = {},
  name = "worker",
) =>
  harness.act(() =>
    harness.kube.patch(
      MachineConfigPool,
      { name },
      { type: "merge", body: { metadata: { annotations: notes }, spec } },
    ),
  );
const withoutCanary = { [annotations.rolloutCanary]: "0" };

/** A pool whose machines run image a. */
async function layeredPool(machines: readonly string[]) {
  const made = await updatedPool(machines);
  const { harness, first } = made;
  await setPool(harness, withoutCanary, { maxUnavailable: machines.length });
  const build = builder(harness);
  await build.optIn();
  await build.begin("worker-1", first);
  await build.publish("worker-1", image("a"));
  await harness.pass(3000);
  for (const name of machines) await harness.act(() => harness.finish(name));
  await harness.pass(3000);
  return { ...made, build };
}

describe("a pool whose machines boot images", () => {
  test("machines get configuration, image and content mode in one patch once the image exists [controller-image-roll-out-1]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    await setPool(harness, withoutCanary, { maxUnavailable: 2 });
    const build = builder(harness);
    await build.optIn();
    await harness.pass(2000);
    expect(
      await harness
        .poolStatus("worker")
        .then(({ of }) => [of("Updated")?.status, of("Updating")?.status, of("Updating")?.reason]),
    ).toEqual(["False", "True", "WaitingForBuild"]);
    await build.begin("worker-1", first);
    await build.is("worker-1", types.building, "StepPush");
    await harness.pass(2000);
    expect(imagesOf(await harness.node_("w0"))).toEqual([undefined, undefined, undefined]);
    expect((await harness.poolStatus("worker")).of("Updating")?.message).toContain("worker-1 Building (StepPush)");

    const before = (await harness.node_("w0")).metadata.resourceVersion;
    await build.publish("worker-1", image("a"));
    await harness.pass(2000);
    for (const name of ["w0", "w1"])
      expect(imagesOf(await harness.node_(name))).toEqual([image("a"), image("a"), "full"]);
    expect((await harness.node_("w0")).metadata.resourceVersion).not.toBe(before);
    const described = await harness.act(() => harness.kube.get(MachineConfigNode, { name: "w0" }));
    expect(described?.spec).toMatchObject({
      configVersion: { desired: first },
      configImage: { desiredImage: image("a") },
    });
    expect((await harness.poolStatus("worker")).of("Updated")?.status).toBe("False");
    for (const name of ["w0", "w1"]) await harness.act(() => harness.finish(name));
    await harness.pass(2000);
    expect((await harness.poolStatus("worker")).of("Updated")).toMatchObject({
      status: "True",
      message: `All nodes are updated with MachineConfig ${first} in image sha256:aaaaaaaaaaaa`,
    });
  });

  test("a pool that opts in keeps its rendered configuration, byte for byte [controller-image-roll-out-2]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    const rendered = () => harness.act(() => harness.kube.get(MachineConfig, { name: first }));
    const before = await rendered();
    const build = builder(harness);
    await build.optIn();
    await build.begin("worker-1", first);
    await build.publish("worker-1", image("a"));
    await harness.pass(5000);
    expect(JSON.stringify(await rendered())).toBe(JSON.stringify(before));
    const { target, of } = await harness.poolStatus("worker");
    expect(target).toBe(first);
    expect(of("RenderDegraded")?.status).toBe("False");
    expect(
      (await harness.act(() => harness.kube.list(MachineConfig))).items.filter(({ metadata }) =>
        metadata.name.startsWith("rendered-worker"),
      ),
    ).toHaveLength(1);
  });

  test.for([3, 11, 29])(
    "every request writes a node's image under both names, with configuration and content mode (seed %i) [controller-image-roll-out-3]",
    async (seed) => {
      const { harness, first } = await updatedPool(["w0", "w1", "w2"]);
      const patches: Readonly<Record<string, string | null>>[] = [];
      harness.intercept = (handler) => (request, signal) => {
        const body: unknown =
          request.method === "PATCH" && /\/nodes\/[^/]+(\?|$)/.test(request.target) && typeof request.body === "string"
            ? JSON.parse(request.body)
            : undefined;
        const notes = (body as { metadata?: { annotations?: Readonly<Record<string, string | null>> } } | undefined)
          ?.metadata?.annotations;
        if (notes !== undefined && keys.some((key) => key in notes)) patches.push(notes);
        return handler(request, signal);
      };
      await setPool(harness, withoutCanary, { maxUnavailable: 2 });
      const build = builder(harness);
      await build.optIn();
      let made = 0;
      let state = seed;
      const next = (most: number) => (state = (state * 1103515245 + 12345) % 2147483648) % most;
      for (let turn = 0; turn < 25; turn += 1) {
        const { target } = await harness.poolStatus("worker");
        const act = next(5);
        if (act === 0) await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": String(next(3)) }));
        else if (act === 1) {
          made += 1;
          await build.begin(`worker-${made}`, target);
          await build.publish(`worker-${made}`, image("abcdef"[next(6)] ?? "a"));
        } else if (act === 2) await setPool(harness, { [annotations.layeringEnabled]: next(3) === 0 ? "false" : null });
        else await harness.act(() => harness.finish(`w${next(3)}`));
        await harness.pass(1500);
      }
      expect(patches.length).toBeGreaterThan(2);
      for (const notes of patches) {
        expect(notes[annotations.desiredImage]).toBe(notes[annotations.desiredOSImage]);
        expect(notes[annotations.desiredConfig]).toMatch(/^rendered-worker-/);
        expect(notes[annotations.desiredImageContent]).toBe(notes[annotations.desiredImage] === null ? null : "full");
      }
      expect(first).not.toBe("");
    },
  );

  test("a configuration waits for its image; a failed build is reported and changes no machine [controller-image-roll-out-5]", async () => {
    const { harness, first, build } = await layeredPool(["w0", "w1"]);
    await harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));
    await harness.pass(2000);
    const { target } = await harness.poolStatus("worker");
    expect(target).not.toBe(first);
    expect(Object.values(await harness.desired("worker"))).toEqual([first, first]);
    await build.begin("worker-2", target);
    await build.is("worker-2", types.failed, "DiskFull");
    await harness.pass(2000);
    const { of } = await harness.poolStatus("worker");
    expect([of("Updated")?.status, of("Updating")?.status, of("Updating")?.reason]).toEqual([
      "False",
      "False",
      "BuildFailed",
    ]);
    expect(of("Updating")?.message).toContain("worker-2 Failed (DiskFull)");
    expect(imagesOf(await harness.node_("w0"))).toEqual([image("a"), image("a"), "full"]);
    expect(Object.values(await harness.desired("worker"))).toEqual([first, first]);
  });

  test("an opt-out removes all three annotations with the configuration's patch, and the pool reports the return to stock", async () => {
    const { harness, first } = await layeredPool(["w0", "w1"]);
    await setPool(harness, { [annotations.layeringEnabled]: "false" }, { maxUnavailable: 1 });
    await harness.pass(2000);
    expect(imagesOf(await harness.node_("w0"))).toEqual([undefined, undefined, undefined]);
    expect((await harness.node_("w0")).metadata.annotations?.[annotations.desiredConfig]).toBe(first);
    expect(imagesOf(await harness.node_("w1"))).toEqual([image("a"), image("a"), "full"]);
    expect((await harness.poolStatus("worker")).of("Updating")?.message).toContain(
      "0 of 2 updated to MachineConfig " + first + ", reverting to stock",
    );
    expect(
      (await harness.act(() => harness.kube.get(MachineConfigNode, { name: "w0" })))?.spec.configImage,
    ).toBeUndefined();
    for (const name of ["w0", "w1"]) {
      await harness.act(() => harness.finish(name));
      await harness.pass(2000);
    }
    expect((await harness.poolStatus("worker")).of("Updated")?.status).toBe("True");
    expect((await harness.node_("w1")).metadata.annotations).not.toHaveProperty(annotations.currentImage);
  });

  test("a MachineOSConfig that is deleted and recreated within the grace period moves no machine", async () => {
    const { harness } = await layeredPool(["w0"]);
    await harness.act(() =>
      harness.kube.patch(
        MachineOSConfig,
        { name: "worker" },
        { type: "merge", body: { metadata: { finalizers: ["machineconfiguration.openshift.io/os-build-cleanup"] } } },
      ),
    );
    await harness.act(() => harness.kube.delete(MachineOSConfig, { name: "worker" }));
    await harness.pass(50_000);
    expect(imagesOf(await harness.node_("w0"))).toEqual([image("a"), image("a"), "full"]);
    expect((await harness.poolStatus("worker")).of("Updating")?.message).toContain("OptOutGrace");
    await harness.pass(15_000);
    expect(imagesOf(await harness.node_("w0"))).toEqual([undefined, undefined, undefined]);
  });

  test("a grace period of more than a day counts as a day for the machines too", async () => {
    const { harness } = await layeredPool(["w0"]);
    await harness.act(() =>
      harness.kube.apply(
        kubernetes.ConfigMap,
        { metadata: { name: objects.buildConfig, namespace }, data: { optOutGraceSeconds: "100000" } },
        { owner: "people" },
      ),
    );
    await harness.act(() =>
      harness.kube.patch(
        MachineOSConfig,
        { name: "worker" },
        { type: "merge", body: { metadata: { finalizers: ["machineconfiguration.openshift.io/os-build-cleanup"] } } },
      ),
    );
    await harness.act(() => harness.kube.delete(MachineOSConfig, { name: "worker" }));
    await harness.pass(2000);
    const config = await harness.act(() => harness.kube.get(MachineOSConfig, { name: "worker" }));
    const leaves = Date.parse(config?.metadata.deletionTimestamp ?? "") + 86_400_000;
    expect((await harness.poolStatus("worker")).of("Updating")?.message).toContain(
      `machines go back to the stock OS after ${new Date(leaves).toISOString()}`,
    );
    expect(imagesOf(await harness.node_("w0"))).toEqual([image("a"), image("a"), "full"]);
  });

  test("a pool's first image goes to a canary, and to the others after the canary stayed healthy [controller-image-roll-out-7]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1", "w2"]);
    await setPool(harness, { [annotations.canarySeconds]: "60" }, { maxUnavailable: 3 });
    const build = builder(harness);
    await build.optIn();
    await build.begin("worker-1", first);
    await build.publish("worker-1", image("a"));
    await harness.pass(2000);
    const given = async () =>
      (await Promise.all(["w0", "w1", "w2"].map((name) => harness.node_(name))))
        .filter((node) => imagesOf(node)[0] !== undefined)
        .map(({ metadata }) => metadata.name);
    expect(await given()).toEqual(["w0"]);
    expect(await harness.events("CanaryStarted")).toEqual([`w0 got ${first} before all others`]);
    await harness.act(() =>
      harness.annotate("w0", { [annotations.state]: "Degraded", [annotations.reason]: "it does not boot" }),
    );
    await harness.pass(2000);
    expect(await given()).toEqual(["w0"]);
    expect((await harness.poolStatus("worker")).of("Updating")).toMatchObject({
      status: "False",
      reason: "CanaryFailed",
    });
    expect(await harness.events("CanaryFailed")).toHaveLength(1);

    await build.begin("worker-2", first);
    await build.publish("worker-2", image("b"));
    await harness.act(() => harness.annotate("w0", { [annotations.state]: "Working" }));
    await harness.pass(2000);
    await harness.act(() => harness.finish("w0"));
    await harness.act(() =>
      harness.kube.patch(
        MachineConfigNode,
        { name: "w0" },
        {
          type: "merge",
          body: {
            status: {
              configVersion: { desired: first, current: first },
              configImage: { currentImage: image("b") },
              conditions: [
                {
                  type: "Updated",
                  status: "True",
                  reason: "Updated",
                  message: "",
                  lastTransitionTime: timestampOf(harness.kernel.clock.now()),
                },
              ],
            },
          },
        },
        { subresource: "status" },
      ),
    );
    await harness.pass(50_000);
    // A broken machine gets its repair, but that proves nothing: a healthy machine still goes first.
    expect(await given()).toEqual(["w0", "w1"]);
    expect((await harness.poolStatus("worker")).of("Updating")?.message).toContain("w0, w1 go first");
    await harness.pass(15_000);
    expect(await given()).toEqual(["w0", "w1", "w2"]);
    expect(await harness.events("CanaryPassed")).toEqual([`w0 stayed healthy with ${first}: the others follow`]);
  });

  test("the end of the canary's trial is noticed during other writes", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    await setPool(harness, { [annotations.canarySeconds]: "3" });
    const build = builder(harness);
    await build.optIn();
    await build.begin("worker-1", first);
    await build.publish("worker-1", image("a"));
    await harness.pass(3000);
    await harness.act(() =>
      harness.kube.patch(
        MachineConfigNode,
        { name: "w0" },
        {
          type: "merge",
          body: {
            status: {
              configVersion: { desired: first, current: first },
              configImage: { currentImage: image("a") },
              conditions: [
                {
                  type: "Updated",
                  status: "True",
                  reason: "Updated",
                  message: "",
                  lastTransitionTime: timestampOf(harness.kernel.clock.now()),
                },
              ],
            },
          },
        },
        { subresource: "status" },
      ),
    );
    // What is written of the pool in between takes longer than the machine still has to keep well.
    let slow = 1;
    harness.intercept = (handler) => async (request, signal) => {
      if (request.method === "PATCH" && request.target.includes("/machineconfigpools/worker/status") && slow-- > 0)
        await harness.kernel.clock.sleep(3000, signal);
      return handler(request, signal);
    };
    await harness.act(() => harness.finish("w0"));
    await harness.pass(8000);
    expect(imagesOf(await harness.node_("w1"))).toEqual([image("a"), image("a"), "full"]);
  });

  test("a machine that joins during the build starts on the stock OS", async () => {
    const { harness, first, build } = await layeredPool(["w0"]);
    await build.begin("worker-2", first);
    await harness.act(() => harness.node("w1", "worker"));
    await harness.pass(3000);
    expect((await harness.node_("w1")).metadata.annotations?.[annotations.desiredConfig]).toBe(first);
    expect(imagesOf(await harness.node_("w1"))).toEqual([undefined, undefined, undefined]);
    await build.publish("worker-2", image("b"));
    for (const name of ["w1", "w0"]) {
      await harness.act(() => harness.finish(name));
      await harness.pass(3000);
    }
    expect(imagesOf(await harness.node_("w1"))).toEqual([image("b"), image("b"), "full"]);
  });

  test("a pool that opts in by label reports at once what it waits for, and is not updated [controller-image-roll-out-8]", async () => {
    const { harness } = await updatedPool(["w0"]);
    await harness.act(() =>
      harness.kube.patch(
        MachineConfigPool,
        { name: "worker" },
        { type: "merge", body: { metadata: { labels: { [annotations.layeringEnabled]: "" } } } },
      ),
    );
    await harness.pass(2000);
    const { of } = await harness.poolStatus("worker");
    expect(of("Updated")?.status).toBe("False");
    expect(of("Updating")).toMatchObject({ status: "True", reason: "WaitingForBuild" });
  });

  test("the control plane gets its first image after the workers when all pools opt in at once [controller-image-roll-out-4]", async () => {
    const { harness, first } = await updatedPool(["w0", "w1"]);
    await harness.act(() => harness.config("50-master", "master", { "/etc/m": "1" }));
    await harness.pass(2000);
    const { target } = await harness.poolStatus("master");
    await harness.act(() =>
      harness.node("m0", "master", {
        [annotations.currentConfig]: target,
        [annotations.desiredConfig]: target,
        [annotations.state]: "Done",
      }),
    );
    await harness.pass(2000);
    for (const [pool, config, letter] of [
      ["master", target, "b"],
      ["worker", first, "a"],
    ] as const) {
      await setPool(harness, withoutCanary, {}, pool);
      const build = builder(harness, pool);
      await build.optIn({ [annotations.optInSource]: "ClusterDefault" });
      await build.begin(`${pool}-1`, config);
      await build.publish(`${pool}-1`, image(letter));
    }
    await harness.pass(3000);
    expect(imagesOf(await harness.node_("m0"))).toEqual([undefined, undefined, undefined]);
    expect((await harness.poolStatus("master")).of("Updating")?.message).toContain(
      "WorkersFirst: machines of the control plane get their first image when those of pool worker have theirs",
    );
    await harness.act(() => harness.finish("w0"));
    await harness.pass(3000);
    expect(imagesOf(await harness.node_("m0"))[0]).toBeUndefined();
    await harness.act(() => harness.finish("w1"));
    await harness.pass(3000);
    expect(imagesOf(await harness.node_("m0"))).toEqual([image("b"), image("b"), "full"]);
  });

  test("a paused pool builds, assigns nothing, and reports that its image is not ready [controller-image-roll-out-6]", async () => {
    const { harness, first, build } = await layeredPool(["w0"]);
    await setPool(harness, {}, { paused: true });
    await build.begin("worker-2", first);
    await harness.pass(2000);
    expect((await harness.poolStatus("worker")).of("Updating")).toMatchObject({ status: "False", reason: "Paused" });
    expect((await harness.poolStatus("worker")).of("Updating")?.message).toContain("worker-2 has not begun");
    await build.publish("worker-2", image("b"));
    await harness.pass(2000);
    expect(imagesOf(await harness.node_("w0"))[0]).toBe(image("a"));
  });
});
