import { describe, expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations } from "../../api/names.ts";
import {
  type ImageFacts,
  imageAnnotations,
  imageTargetOf,
  imageText,
  imagesNamed,
  namedImage,
  stockTarget,
} from "./image-pair.ts";
import { machineOSConfigOf, switchOf, wantsImages } from "./opt-in.ts";

const now = Date.UTC(2030, 0, 1);
const at = "2030-01-01T00:00:00Z";
const image = (letter: string) => `registry.example.com/os@sha256:${letter.repeat(64)}`;
const pool = (
  config = "rendered-worker-b",
  notes: Readonly<Record<string, string>> = {},
  labels: Readonly<Record<string, string>> = {},
): MachineConfigPool =>
  ({
    apiVersion: "x",
    kind: "MachineConfigPool",
    metadata: { name: "worker", annotations: notes, labels },
    spec: { configuration: { name: config } },
  }) as MachineConfigPool;
const build = (
  name: string,
  of: string,
  is: string | undefined,
  more: { image?: string; reason?: string; notes?: Readonly<Record<string, string>>; created?: string } = {},
): MachineOSBuild =>
  ({
    apiVersion: "x",
    kind: "MachineOSBuild",
    metadata: { name, creationTimestamp: more.created ?? at, annotations: more.notes ?? {} },
    spec: {
      machineConfig: { name: of },
      machineOSConfig: { name: "worker" },
      renderedImagePushSpec: "registry.example.com/os:t",
    },
    status: {
      conditions:
        is === undefined
          ? []
          : [{ type: is, status: "True", reason: more.reason ?? "Ready", message: "", lastTransitionTime: at }],
      ...(more.image === undefined ? {} : { digestedImagePushSpec: more.image }),
    },
  }) as unknown as MachineOSBuild;
const config = (published?: { build: string; image: string }, more: object = {}): MachineOSConfig =>
  ({
    apiVersion: "x",
    kind: "MachineOSConfig",
    metadata: { name: "worker", ...more },
    spec: { machineConfigPool: { name: "worker" } },
    ...(published === undefined
      ? {}
      : { status: { currentImagePullSpec: published.image, machineOSBuild: { name: published.build } } }),
  }) as unknown as MachineOSConfig;
const target = (of: MachineConfigPool, facts: Partial<ImageFacts>, when = now) =>
  imageTargetOf(of, { config: undefined, builds: [], graceMs: 60_000, ...facts }, when);

describe("imageTargetOf", () => {
  const full = {
    notes: { [annotations.imageContent]: "full", [annotations.keyInputs]: JSON.stringify({ base: "sha256:base" }) },
    image: image("b"),
  };
  const published = { build: "worker-1", image: image("b") };

  test("configuration, image and content mode come from the one build that is published [config-image-pair-1]", () => {
    expect(
      target(pool(), {
        config: config(published),
        builds: [build("worker-1", "rendered-worker-b", "Succeeded", full)],
      }),
    ).toEqual({ image: image("b"), content: "full", awaits: undefined, base: "sha256:base", byDefault: false });
    const bare = target(pool(), {
      config: config(published),
      builds: [build("worker-1", "rendered-worker-b", "Succeeded", { image: image("b") })],
    });
    expect(bare.content).toBe("os-only");
  });

  test.for([
    { what: "no build yet", builds: [], published: undefined, reason: "WaitingForBuild" },
    {
      what: "the published one is for another configuration",
      builds: [build("worker-1", "rendered-worker-a", "Succeeded", full)],
      published,
      reason: "WaitingForBuild",
    },
    {
      what: "a newer one runs",
      builds: [
        build("worker-1", "rendered-worker-a", "Succeeded", full),
        build("worker-2", "rendered-worker-b", "Building"),
      ],
      published,
      reason: "WaitingForBuild",
    },
    {
      what: "the one for it failed",
      builds: [build("worker-2", "rendered-worker-b", "Failed", { reason: "DiskFull" })],
      published: undefined,
      reason: "BuildFailed",
    },
    {
      what: "it succeeded and is not published",
      builds: [build("worker-2", "rendered-worker-b", "Succeeded", { image: image("c") })],
      published,
      reason: "WaitingForBuild",
    },
    {
      what: "its digest is another than the published one",
      builds: [build("worker-1", "rendered-worker-b", "Succeeded", { image: image("c") })],
      published,
      reason: "WaitingForBuild",
    },
    {
      what: "somebody ended it",
      builds: [build("worker-2", "rendered-worker-b", "Interrupted", { reason: "UserDeleted" })],
      published: undefined,
      reason: "BuildInterrupted",
    },
    {
      what: "it ended and is tried again",
      builds: [
        build("worker-2", "rendered-worker-b", "Interrupted", {
          reason: "UserDeleted",
          notes: { [annotations.nextAttemptAt]: at },
        }),
      ],
      published: undefined,
      reason: "WaitingForBuild",
    },
    {
      what: "the newest of several failed",
      builds: [
        build("worker-2", "rendered-worker-b", "Interrupted", { created: "2029-01-01T00:00:00Z" }),
        build("worker-3", "rendered-worker-b", "Failed"),
      ],
      published: undefined,
      reason: "BuildFailed",
    },
  ])("no machine is given anything: $what", ({ builds, published: named, reason }) => {
    expect(target(pool(), { config: config(named), builds }).awaits?.reason).toBe(reason);
  });

  test("a pool that opted in and has no MachineOSConfig yet waits, one that says no is on the stock OS whatever there is [config-image-pair-2]", () => {
    expect(target(pool("r", { [annotations.layeringEnabled]: "" }), {}).awaits?.reason).toBe("WaitingForBuild");
    const said = { config: config(published), builds: [build("worker-1", "rendered-worker-b", "Succeeded", full)] };
    for (const value of ["false", "False", "0", "no", "off", "disabled"]) {
      expect(target(pool("rendered-worker-b", { [annotations.layeringEnabled]: value }), said)).toEqual(stockTarget);
      expect(
        target(
          pool(
            "rendered-worker-b",
            { [annotations.layeringEnabled]: "true" },
            { [annotations.layeringEnabled]: value },
          ),
          said,
        ),
      ).toEqual(stockTarget);
    }
    expect(target(pool(), {})).toEqual(stockTarget);
  });

  test("the deletion of a user's MachineOSConfig takes effect after the grace, that of one that was made for a switch at once", () => {
    const builds = [build("worker-1", "rendered-worker-b", "Succeeded", full)];
    const leaving = config(published, { deletionTimestamp: at });
    expect(target(pool(), { config: leaving, builds }, now + 59_000).awaits?.reason).toBe("OptOutGrace");
    expect(target(pool(), { config: leaving, builds }, now + 60_000)).toEqual(stockTarget);
    // When it is gone, the pool says how long.
    const noted = pool("rendered-worker-b", { [annotations.optOutAfter]: "2030-01-01T00:01:00Z" });
    expect(target(noted, {}, now + 59_000).awaits?.reason).toBe("OptOutGrace");
    expect(target(noted, {}, now + 60_000)).toEqual(stockTarget);
    expect(
      target(pool(), {
        config: config(published, { deletionTimestamp: at, annotations: { [annotations.optInSource]: "PoolLabel" } }),
        builds,
      }),
    ).toEqual(stockTarget);
  });
});

test("a node has one image under two names, and four annotations change together", () => {
  const notes = (desired?: string, older?: string) => ({
    ...(desired === undefined ? {} : { [annotations.desiredImage]: desired }),
    ...(older === undefined ? {} : { [annotations.desiredOSImage]: older }),
  });
  const conflict = { verdict: "conflicting", image: "a", older: "b" } as const;
  expect(
    [{}, notes("a"), notes(undefined, "b"), notes("a", "a"), notes("a", "b"), notes("", "b")].map((has) =>
      namedImage(has, "desired"),
    ),
  ).toEqual([
    { verdict: "none" },
    { verdict: "image", image: "a" },
    { verdict: "image", image: "b" },
    { verdict: "image", image: "a" },
    conflict,
    { verdict: "image", image: "b" },
  ]);
  // A conflict equals no image, and keeps both in use.
  expect([imageText({ verdict: "none" }), imageText({ verdict: "image", image: "a" }), imageText(conflict)]).toEqual([
    "",
    "a",
    "a or b",
  ]);
  expect(imagesNamed(conflict)).toEqual(["a", "b"]);
  const given = imageAnnotations({ image: image("a"), content: "full" }, { metadata: { name: "n" } });
  expect(given).toEqual({
    [annotations.desiredImage]: image("a"),
    [annotations.desiredOSImage]: image("a"),
    [annotations.desiredImageContent]: "full",
  });
  const taken = imageAnnotations(stockTarget, {
    metadata: { name: "n", annotations: { ...(given as Record<string, string>) } },
  });
  expect(taken).toEqual({
    [annotations.desiredImage]: null,
    [annotations.desiredOSImage]: null,
    [annotations.desiredImageContent]: null,
  });
  expect(imageAnnotations(stockTarget, { metadata: { name: "n" } })).toEqual({});
});

test("a pool's switch, its MachineOSConfig and the cluster's default say whether images are wanted at all", () => {
  const named = (name: string, created: string, more: object = {}) =>
    ({
      metadata: { name, creationTimestamp: created, ...more },
      spec: { machineConfigPool: { name: "worker" } },
    }) as unknown as MachineOSConfig;
  expect(switchOf(pool("r", {}, { [annotations.layeringEnabled]: "" }))).toBe(true);
  expect(switchOf(pool())).toBeUndefined();
  expect(
    machineOSConfigOf("worker", [named("b", "2029-01-02T00:00:00Z"), named("a", "2029-01-01T00:00:00Z")])?.metadata
      .name,
  ).toBe("a");
  expect(
    machineOSConfigOf("worker", [named("a", "2029-01-01T00:00:00Z"), named("worker", "2029-01-02T00:00:00Z")])?.metadata
      .name,
  ).toBe("worker");
  expect(machineOSConfigOf("infra", [named("a", at)])).toBeUndefined();
  expect(wantsImages([pool()], [], { defaultOptIn: false })).toBe(false);
  expect(wantsImages([pool()], [], { defaultOptIn: true })).toBe(true);
  expect(
    wantsImages([pool("r", { [annotations.layeringEnabled]: "off" })], [named("worker", at)], { defaultOptIn: true }),
  ).toBe(false);
  expect(wantsImages([pool()], [named("worker", at)], { defaultOptIn: false })).toBe(true);
  expect(wantsImages([pool()], [named("worker", at, { deletionTimestamp: at })], { defaultOptIn: false })).toBe(false);
});
