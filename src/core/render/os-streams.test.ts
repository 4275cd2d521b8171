import { describe, expect, test } from "vitest";
import { annotations, imageLabels, labels } from "../../api/names.ts";
import {
  type InspectedImage,
  type StreamView,
  decideStreams,
  isCurrentStream,
  problemsOfStreams,
  renderStreamOf,
  streamInputs,
  streamOfPool,
  streamOfRendered,
  streamsOf,
} from "./os-streams.ts";
import { renderPool } from "./render-pool.ts";

const at = (name: string, digit = "1") => `registry.example.com/${name}@sha256:${digit.repeat(64)}`;
const os = (stream: string, image = at(stream)): InspectedImage => ({
  image,
  labels: { [imageLabels.streamClass]: stream, [imageLabels.bootc]: "1" },
});
const extensions = (stream: string, image = at(`${stream}-extensions`)): InspectedImage => ({
  image,
  labels: { [imageLabels.streamClass]: stream, [imageLabels.bootc]: "1", [imageLabels.osExtensions]: "true" },
});
const source = (name: string, ...images: readonly InspectedImage[]) => ({ name, images, problems: [] });
const stream = (name: string, image = at(name)) => ({
  name,
  osImage: image,
  osExtensionsImage: at(`${name}-extensions`),
});
const pair = (name: string) => [os(name), extensions(name)];

describe("the streams of sources", () => {
  test("a later source replaces a stream of the same name, both images of it; others stay [os-streams-1]", () => {
    const found = streamsOf([
      source("ConfigMap", ...pair("rhel-9")),
      source("payload", ...pair("rhel-10"), os("rhel-9", at("newer", "2")), extensions("rhel-9", at("newer-ext", "2"))),
    ]);
    expect(found).toEqual({
      streams: [
        stream("rhel-10"),
        { name: "rhel-9", osImage: at("newer", "2"), osExtensionsImage: at("newer-ext", "2") },
      ],
      problems: [],
      isComplete: true,
    });
  });

  test.for([
    {
      title: "without its image with extensions",
      images: [os("rhel-9")],
      says: /the stream rhel-9 has no image with extensions/,
    },
    { title: "without its OS image", images: [extensions("rhel-9")], says: /the stream rhel-9 has no OS image/ },
    { title: "with two OS images", images: [...pair("rhel-9"), os("rhel-9", at("other"))], says: /several images/ },
    { title: "with an impossible name", images: pair("RHEL_9"), says: /RHEL_9 is no name of a stream/ },
  ])("a stream $title is none, and the source is named [os-streams-2]", ({ images, says }) => {
    const { streams, problems } = streamsOf([source("payload", ...images)]);
    expect(streams).toEqual([]);
    expect(problems).toEqual([expect.stringMatching(says)]);
    expect(problems[0]).toMatch(/^payload: /);
  });

  test("an image without the label of a stream belongs to none, and that is no problem [os-streams-3]", () => {
    const plain = { image: at("os"), labels: { [imageLabels.bootc]: "1" } };
    expect(streamsOf([source("ConfigMap", plain)])).toEqual({ streams: [], problems: [], isComplete: true });
  });
});

describe("the status of the object", () => {
  const view = (given: Partial<StreamView>): StreamView => ({
    existing: undefined,
    found: { streams: [], problems: [], isComplete: true },
    presentImage: "",
    installedVersion: "",
    inputs: "[]",
    ...given,
  });
  const found = (...names: readonly string[]) => ({
    streams: names.map((name) => stream(name)),
    problems: [],
    isComplete: true,
  });
  const existing = (spec: string, status?: string, ...names: readonly string[]) => ({
    metadata: { name: "cluster" },
    spec: { defaultStream: spec },
    ...(status === undefined
      ? {}
      : { status: { defaultStream: status, availableStreams: names.map((name) => stream(name)) } }),
  });
  const defaultOf = (given: Partial<StreamView>) => {
    const decision = decideStreams(view(given));
    return decision.do === "write" ? decision.status?.defaultStream : undefined;
  };

  test.for([
    {
      title: "what the object wants",
      given: { existing: existing("b", "a", "a", "b"), found: found("a", "b") },
      is: "b",
    },
    {
      title: "what it has, where what it wants is gone",
      given: { existing: existing("x", "b", "b"), found: found("a", "b") },
      is: "b",
    },
    { title: "the only one", given: { found: found("a") }, is: "a" },
    {
      title: "rhel-9 on a cluster that was installed with 4",
      given: { found: found("a", "rhel-10", "rhel-9"), installedVersion: "4.20.1" },
      is: "rhel-9",
    },
    {
      title: "rhel-10 from 5 on",
      given: { found: found("rhel-10", "rhel-9"), installedVersion: "5.0.0" },
      is: "rhel-10",
    },
    {
      title: "centos-10 of the community's",
      given: { found: found("centos-10", "centos-9"), installedVersion: "4.20.0-okd-scos.1" },
      is: "centos-10",
    },
    {
      title: "the stream of the image that machines have",
      given: { found: found("a", "b"), presentImage: at("b") },
      is: "b",
    },
    { title: "the first", given: { found: found("a", "b") }, is: "a" },
    { title: "nothing without a stream", given: {}, is: undefined },
  ])("its default is $title [os-streams-4]", ({ given, is }) => {
    expect(defaultOf(given)).toBe(is);
  });

  test("streams of a source that cannot be read stay, and the object says what could not be read [os-streams-5]", () => {
    const decision = decideStreams(
      view({
        existing: existing("a", "a", "a", "b"),
        found: { streams: [stream("a", at("newer"))], problems: ["payload: unreachable"], isComplete: false },
      }),
    );
    expect(decision).toMatchObject({
      do: "write",
      create: undefined,
      status: { defaultStream: "a", availableStreams: [stream("a", at("newer")), stream("b")] },
    });
    expect(
      problemsOfStreams({
        metadata: { name: "cluster", annotations: decision.do === "write" ? decision.annotations : {} },
      }),
    ).toEqual(["payload: unreachable"]);
  });

  test("a stream that no source names any more is gone; a default that is gone is told with the streams there are [os-streams-6]", () => {
    const decision = decideStreams(view({ existing: existing("b", "b", "a", "b"), found: found("a", "c") }));
    expect(decision).toMatchObject({
      status: { availableStreams: [stream("a"), stream("c")] },
      problems: [
        expect.stringMatching(/^spec\.defaultStream: there is no stream b; the streams are a, c, and .* follow a$/),
      ],
    });
  });

  test("is current for the images that it was read for, and an object of another suite always is [os-streams-7]", () => {
    const read = {
      metadata: {
        name: "cluster",
        annotations: {
          [annotations.streamInputs]: streamInputs(
            { baseOSContainerImage: "os", baseOSExtensionsContainerImage: "ext" },
            "payload",
          ),
        },
      },
    };
    expect(isCurrentStream(read, { baseOSContainerImage: "os", baseOSExtensionsContainerImage: "ext" })).toBe(true);
    expect(isCurrentStream(read, { baseOSContainerImage: "next", baseOSExtensionsContainerImage: "ext" })).toBe(false);
    expect(isCurrentStream({ metadata: { name: "cluster" } }, { baseOSContainerImage: "next" })).toBe(true);
  });
});

describe("the stream of a pool", () => {
  const streams = { status: { defaultStream: "a", availableStreams: [stream("a"), stream("b")] } };
  const pool = (name: string, of?: string) => ({
    metadata: { name },
    spec: of === undefined ? {} : { osImageStream: { name: of } },
  });

  test.for([
    { title: "its own", it: pool("infra", "b"), workers: pool("worker"), is: ["b", "pool"] },
    {
      title: "the worker pool's for a pool of an administrator",
      it: pool("infra"),
      workers: pool("worker", "b"),
      is: ["b", "worker"],
    },
    {
      title: "the default, for the control plane whatever the worker pool has",
      it: pool("master"),
      workers: pool("worker", "b"),
      is: ["a", "default"],
    },
    { title: "the default", it: pool("infra"), workers: pool("worker"), is: ["a", "default"] },
  ])("is $title [os-streams-8]", ({ it, workers, is }) => {
    const found = streamOfPool(it, [workers, it], streams);
    expect(found.verdict === "stream" ? [found.stream.name, found.from] : found).toEqual(is);
  });

  test("that does not exist is refused with the field, the streams there are, and whom to correct [os-streams-9]", () => {
    const members = [{ metadata: { name: "00-a", labels: {} }, spec: {} }];
    const refusal = (it: ReturnType<typeof pool>, workers: ReturnType<typeof pool>) => {
      const result = renderPool({
        pool: it,
        members,
        controllerConfig: { spec: {} },
        ...renderStreamOf(it, [workers, it], streams),
      });
      return result.verdict === "refused" ? result.refusals : result;
    };
    expect(refusal(pool("infra", "x"), pool("worker"))).toEqual([
      expect.objectContaining({
        code: "UnknownStream",
        path: "spec.osImageStream.name",
        reason: "the pool infra names the OS image stream x, and the streams are a, b",
      }),
    ]);
    expect(refusal(pool("infra"), pool("worker", "x"))).toEqual([
      expect.objectContaining({
        code: "UnknownStream",
        remedy: expect.stringContaining("of the pool worker") as unknown,
      }),
    ]);
  });

  test("brings both of its images; a MachineConfig's image wins over an inherited one, with a warning that names the stream [os-streams-10]", () => {
    const render = (it: ReturnType<typeof pool>, osImageURL?: string) =>
      renderPool({
        pool: it,
        members: [
          {
            metadata: { name: "00-a", labels: { [labels.role]: "infra" } },
            spec: osImageURL === undefined ? {} : { osImageURL },
          },
        ],
        controllerConfig: {
          spec: { baseOSContainerImage: at("cluster"), baseOSExtensionsContainerImage: at("cluster-ext") },
        },
        ...renderStreamOf(it, [it], streams),
      });
    const own = render(pool("infra", "b"));
    expect(own).toMatchObject({
      config: { spec: { osImageURL: at("b"), baseOSExtensionsContainerImage: at("b-extensions") } },
    });
    expect(own.verdict === "rendered" ? streamOfRendered(own.config, streams) : own).toBe("b");
    const overridden = render(pool("infra"), at("mine"));
    expect(overridden).toMatchObject({
      config: { spec: { osImageURL: at("mine") } },
      warnings: [
        {
          code: "ImageOverridden",
          member: "00-a",
          reason: `00-a replaces the image of the OS image stream a with ${at("mine")}`,
        },
      ],
    });
    expect(
      overridden.verdict === "rendered" ? streamOfRendered(overridden.config, streams) : overridden,
    ).toBeUndefined();
  });
});
