import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { OSImageStream } from "../api/kinds/os-image-stream.ts";
import { imageLabels, namespace, objects, poolConditions } from "../api/names.ts";
import { McoError } from "../api/errors.ts";
import { problemsOfStreams } from "../core/render/os-streams.ts";
import type { ImageInfo } from "../registry/image-store.ts";

const merge = (body: object) => ({ type: "merge", body }) as const;
const at = (name: string, digit = "1") => `registry.example.com/${name}@sha256:${digit.repeat(64)}`;

/** A registry with images of streams, whose machines' settings are not looked at. */
class Registry {
  readonly images = new Map<string, Readonly<Record<string, string>>>();
  isAway = false;
  /** How long an answer takes. */
  answers: () => Promise<void> = () => Promise.resolve();

  put(stream: string, digit = "1"): void {
    const labels = { [imageLabels.streamClass]: stream, [imageLabels.bootc]: "1" };
    this.images.set(at(stream, digit), labels);
    this.images.set(at(`${stream}-ext`, digit), { ...labels, [imageLabels.osExtensions]: "true" });
  }

  open = () => ({
    resolve: (image: string) => Promise.resolve(image),
    inspect: async (image: string): Promise<ImageInfo | { is: "unreachable"; problem: string }> => {
      await this.answers();
      const labels = this.images.get(image);
      return this.isAway || labels === undefined
        ? { is: "unreachable", problem: "registry.example.com does not answer" }
        : { is: "image", digest: image, architecture: "amd64", created: 0, labels, layers: [], diffIds: [] };
    },
    readFiles: (image: string) => Promise.reject(new McoError("MCO_IMAGE_ABSENT", { image, retryable: false })),
  });
}

const imageStream = (...streams: readonly string[]) =>
  JSON.stringify({
    spec: {
      tags: streams.flatMap((stream) => [
        { name: `${stream}-coreos`, from: { kind: "DockerImage", name: at(stream) } },
        { name: `${stream}-coreos-extensions`, from: { kind: "DockerImage", name: at(`${stream}-ext`) } },
        { name: "etcd", from: { kind: "DockerImage", name: "ignored" } },
      ]),
    },
  });

class Streams {
  readonly harness: Harness;
  readonly registry: Registry;

  constructor(harness: Harness, registry: Registry) {
    this.harness = harness;
    this.registry = registry;
  }

  /** A cluster with one machine whose sources offer these streams. */
  static async of(...streams: readonly string[]): Promise<Streams> {
    const registry = new Registry();
    for (const stream of ["rhel-9", "rhel-10"]) registry.put(stream);
    const { harness } = await updatedPool(["w0"], { images: registry.open });
    const made = new Streams(harness, registry);
    if (streams.length > 0) await made.offer(...streams);
    return made;
  }

  act = <T>(work: () => Promise<T>): Promise<T> => this.harness.act(work);

  /** What the ConfigMap names. */
  async offer(...streams: readonly string[]): Promise<void> {
    await this.act(() =>
      this.harness.kube.apply(
        kubernetes.ConfigMap,
        { metadata: { name: objects.osImageConfigMap, namespace }, data: { imageStream: imageStream(...streams) } },
        { owner: "people" },
      ),
    );
    await this.harness.pass(5000);
  }

  object = () => this.act(() => this.harness.kube.get(OSImageStream, { name: "cluster" }));
  names = async () => (await this.object())?.status?.availableStreams.map(({ name }) => name);
  follow = (pool: string, name: string | null) =>
    this.act(() =>
      this.harness.kube.patch(
        MachineConfigPool,
        { name: pool },
        merge({ spec: { osImageStream: name === null ? null : { name } } }),
      ),
    );

  /** The OS image that a pool's machines are to have. */
  image = async (pool: string) => {
    const { target } = await this.harness.poolStatus(pool);
    return (await this.act(() => this.harness.kube.get(MachineConfig, { name: target })))?.spec?.osImageURL;
  };
}

describe("the streams of a cluster", () => {
  test("are those that its ConfigMap's ImageStream names, and what no source names goes [os-image-streams-1]", async () => {
    const streams = await Streams.of("rhel-9", "rhel-10");
    expect(await streams.object()).toMatchObject({
      spec: { defaultStream: "rhel-10" },
      status: {
        defaultStream: "rhel-10",
        availableStreams: [
          { name: "rhel-10", osImage: at("rhel-10"), osExtensionsImage: at("rhel-10-ext") },
          { name: "rhel-9", osImage: at("rhel-9"), osExtensionsImage: at("rhel-9-ext") },
        ],
      },
    });
    await streams.offer("rhel-10");
    expect(await streams.names()).toEqual(["rhel-10"]);
  });

  test("without a label there is no object, and pools have the ControllerConfig's image [os-image-streams-2]", async () => {
    const streams = await Streams.of();
    expect(await streams.object()).toBeUndefined();
    expect(await streams.image("worker")).toBe("os@sha256:0");
  });

  test("stay while a registry does not answer; the object and an Event say so, and it is tried again [os-image-streams-3]", async () => {
    const streams = await Streams.of("rhel-9");
    const { harness, registry } = streams;
    registry.isAway = true;
    await streams.offer("rhel-9", "rhel-10");
    expect(await streams.names()).toEqual(["rhel-9"]);
    const said = `ConfigMap/machine-config-osimageurl imageStream: ${at("rhel-10")}: registry.example.com does not answer`;
    const object = await streams.object();
    expect(object === undefined ? [] : problemsOfStreams(object)).toContain(said);
    expect(await harness.events("OSImageStreamsNotRead")).toEqual([expect.stringContaining(said) as string]);
    registry.isAway = false;
    await harness.pass(70_000);
    expect(await streams.names()).toEqual(["rhel-10", "rhel-9"]);
    const after = await streams.object();
    expect(after === undefined ? ["none"] : problemsOfStreams(after)).toEqual([]);
  });

  test.for([
    {
      title: "an unknown default",
      body: { spec: { defaultStream: "rhel-7" } },
      says: "there is no stream rhel-7; status.availableStreams lists",
    },
    { title: "a name that is none", body: { spec: { defaultStream: "RHEL_9" } }, says: "spec.defaultStream" },
  ])("the API server refuses $title [os-image-streams-4]", async ({ body, says }) => {
    const streams = await Streams.of("rhel-9", "rhel-10");
    await expect(
      streams.act(() => streams.harness.kube.patch(OSImageStream, { name: "cluster" }, merge(body))),
    ).rejects.toThrow(says);
  });

  test("the API server refuses a second object, and images without a digest [os-image-streams-5]", async () => {
    const streams = await Streams.of("rhel-9");
    const { kube } = streams.harness;
    const second = {
      apiVersion: OSImageStream.apiVersion,
      kind: OSImageStream.kind,
      metadata: { name: "other" },
      spec: { defaultStream: "a" },
    };
    await expect(streams.act(() => kube.create(OSImageStream, second))).rejects.toThrow("its name is cluster");
    const status = {
      defaultStream: "a",
      availableStreams: [{ name: "a", osImage: "registry.example.com/os:latest", osExtensionsImage: at("a-ext") }],
    };
    await expect(
      streams.act(() => kube.patch(OSImageStream, { name: "cluster" }, merge({ status }), { subresource: "status" })),
    ).rejects.toThrow("named by its digest");
  });
});

describe("the stream of a pool", () => {
  test("decides its OS image; the status names it once every machine has it [os-image-streams-6]", async () => {
    const streams = await Streams.of("rhel-9", "rhel-10");
    const { harness } = streams;
    expect(await streams.image("worker")).toBe(at("rhel-10"));
    await streams.follow("worker", "rhel-9");
    await harness.pass(5000);
    expect(await streams.image("worker")).toBe(at("rhel-9"));
    expect(await streams.image("master")).not.toBe(at("rhel-9"));
    expect((await harness.poolStatus("worker")).pool?.status?.osImageStream).toBeUndefined();
    await streams.act(() => harness.finish("w0"));
    await harness.pass(5000);
    expect((await harness.poolStatus("worker")).pool?.status?.osImageStream).toEqual({ name: "rhel-9" });
  });

  test("of an administrator follows the worker pool's [os-image-streams-7]", async () => {
    const streams = await Streams.of("rhel-9", "rhel-10");
    const { harness } = streams;
    await streams.act(() =>
      harness.pool("infra", {
        machineConfigSelector: { matchLabels: { "machineconfiguration.openshift.io/role": "worker" } },
      }),
    );
    await harness.pass(5000);
    expect(await streams.image("infra")).toBe(at("rhel-10"));
    await streams.follow("worker", "rhel-9");
    await harness.pass(5000);
    expect(await streams.image("infra")).toBe(at("rhel-9"));
  });

  test("that has gone leaves the pool its configuration, with the streams there are in its condition [os-image-streams-8]", async () => {
    const streams = await Streams.of("rhel-9", "rhel-10");
    const { harness } = streams;
    await streams.follow("worker", "rhel-9");
    await harness.pass(5000);
    await streams.offer("rhel-10");
    expect(await streams.image("worker")).toBe(at("rhel-9"));
    const condition = (await harness.poolStatus("worker")).of(poolConditions.renderDegraded);
    expect(condition).toMatchObject({ status: "True" });
    expect(condition?.message).toContain(
      "the pool worker names the OS image stream rhel-9, and the streams are rhel-10",
    );
    await streams.follow("worker", null);
    await harness.pass(5000);
    expect(await streams.image("worker")).toBe(at("rhel-10"));
    expect((await harness.poolStatus("worker")).of(poolConditions.renderDegraded)).toMatchObject({ status: "False" });
  });

  test("is that of the new images after an upgrade: the pool is rendered once [os-image-streams-9]", async () => {
    const streams = await Streams.of();
    const { harness, registry } = streams;
    registry.put("rhel-9", "2");
    const rendered = async () =>
      (await streams.act(() => harness.kube.list(MachineConfig))).items.filter(({ metadata }) =>
        metadata.name.startsWith("rendered-worker-"),
      ).length;
    const release = (digit: string) =>
      streams.act(() =>
        harness.kube.patch(
          ControllerConfig,
          { name: objects.controllerConfig },
          merge({
            spec: {
              baseOSContainerImage: at("rhel-9", digit),
              baseOSExtensionsContainerImage: at("rhel-9-ext", digit),
              // Another part of the release, which reaches machines in a file.
              additionalTrustBundle: btoa(`-- a bundle ${digit} --\n`),
            },
          }),
        ),
      );
    await release("1");
    await harness.pass(10_000);
    expect(await streams.image("worker")).toBe(at("rhel-9"));
    const before = await rendered();
    // Longer than the base configurations of the release take.
    registry.answers = () => harness.kernel.clock.sleep(25_000);
    await release("2");
    await harness.pass(120_000);
    expect(await streams.image("worker")).toBe(at("rhel-9", "2"));
    expect(await rendered()).toBe(before + 1);
  });
});
