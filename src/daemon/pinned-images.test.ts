import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { describe, expect, test } from "vitest";
import { memoryHost } from "../../test/support/hosts/memory-host.ts";
import { type MemoryPodImagesOptions, memoryPodImages } from "../../test/support/hosts/memory-pod-images.ts";
import { images as osImages } from "../../test/support/machine-harness.ts";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { Kernel } from "../../test/simulation/kernel.ts";
import { McoError } from "../api/errors.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { PinnedImageSet } from "../api/kinds/pinned-image-set.ts";
import { annotations, hostPaths, pinnedImageConditions } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { parsePinAnswer, pinGrantText, pinTurnSeconds } from "../core/images/pin-grant.ts";
import { pinDropIn } from "../core/images/pinned-images.ts";
import type { Host } from "../host/host.ts";
import type { PodImages } from "../host/pod-images.ts";
import { runControllers } from "../kube/controller.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { createEventRecorder } from "../kube/event-recorder.ts";
import { memoryJournal } from "../ports/journal.ts";
import { silentLogger } from "../ports/logger.ts";
import { concernsDaemon } from "./concerns-daemon.ts";
import { pinnedImagesController } from "./pinned-images-controller.ts";

const { signal } = new AbortController();
const name = "w0";
const image = (word: string) =>
  `registry.example.com/${word}@sha256:${bytesToHex(sha256(new TextEncoder().encode(word)))}`;
const layer = (word: string, sizeBytes = 100) => ({ digest: `sha256:${word}`, sizeBytes });
const merge = (body: object) => ({ type: "merge", body }) as const;
const registry = Object.fromEntries(["a", "b", "c"].map((word) => [image(word), [layer(word), layer("base", 1000)]]));

/** A machine without a daemon. */
async function machine(options: Partial<MemoryPodImagesOptions> = {}) {
  const kernel = new Kernel(9);
  const host = memoryHost({
    images: osImages,
    image: "os@sha256:1",
    kernelArguments: [],
    random: kernel.random,
    onReboot: () => undefined,
  });
  const { kube } = await kernel.complete(inProcessCluster(kernel), 60_000);
  const act = <T>(work: () => Promise<T>) => kernel.complete(work(), 120_000);
  await act(async () => {
    await host.units.enable("crio.service", signal);
    await host.units.restart("crio.service", signal);
    await kube.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name,
        annotations: {
          [annotations.currentConfig]: "c",
          [annotations.desiredConfig]: "c",
          [annotations.state]: "Done",
        },
      },
      spec: {},
    });
    await kube.create(MachineConfigNode, {
      apiVersion: MachineConfigNode.apiVersion,
      kind: MachineConfigNode.kind,
      metadata: { name },
      spec: { node: { name }, pool: { name: "worker" }, configVersion: { desired: "c" } },
    });
  });
  const images = memoryPodImages({ registry, ...options });
  const journal = memoryJournal();
  const ports = { clock: kernel.clock, random: kernel.random, log: silentLogger, journal };
  let number = 0;
  return {
    kernel,
    host,
    kube,
    images,
    journal,
    act,
    /** Starts a daemon's process; it ends when the test aborts it. */
    start(of: { readonly host?: Host; readonly images?: PodImages; readonly kube?: KubeClient } = {}) {
      const stopping = new AbortController();
      void runControllers(
        [pinnedImagesController({ host: of.host ?? host, images: of.images ?? images, nodeName: name })],
        { ...ports, kube: of.kube ?? kube, events: createEventRecorder({ ...ports, kube, component: "test" }) },
        stopping.signal,
      );
      return stopping;
    },
    pass: (ms: number) => kernel.run({ until: () => false, maxMs: ms }),
    set: (of: string, ...words: readonly string[]) =>
      act(() =>
        kube.apply(
          PinnedImageSet,
          {
            metadata: { name: of },
            spec: { pinnedImages: words.map((word) => ({ name: word.includes("@") ? word : image(word) })) },
          },
          { owner: "test", force: true },
        ),
      ),
    /** As the controller does: with the sets as they are now. */
    async grant(...sets: readonly string[]) {
      number += 1;
      const { items } = await act(() => kube.list(PinnedImageSet));
      const text = pinGrantText({
        number,
        at: Math.floor(kernel.clock.now()),
        failures: 0,
        sets: sets.map((of) => {
          const { uid = "", generation = 1 } = items.find(({ metadata }) => metadata.name === of)?.metadata ?? {};
          return { name: of, uid, generation };
        }),
      });
      await act(() =>
        kube.patch(
          kubernetes.Node,
          { name },
          merge({ metadata: { annotations: { [annotations.pinnedImageSets]: text } } }),
        ),
      );
    },
    async says() {
      const node = await act(() => kube.get(kubernetes.Node, { name }));
      const { status } = (await act(() => kube.get(MachineConfigNode, { name }))) ?? {};
      const of = (type: string) => {
        const found = conditionOf(status?.conditions, type);
        return found === undefined ? undefined : `${found.status} ${found.reason} ${found.message}`.trim();
      };
      return {
        answer: parsePinAnswer(node?.metadata.annotations?.[annotations.pinnedImageSetsAnswer]),
        sets: status?.pinnedImageSets,
        progressing: of(pinnedImageConditions.progressing),
        degraded: of(pinnedImageConditions.degraded),
      };
    },
    async stalled() {
      const { status } = (await act(() => kube.get(MachineConfigNode, { name }))) ?? {};
      return conditionOf(status?.conditions, "Stalled")?.status;
    },
    async list() {
      const entry = await act(() => host.files.read(hostPaths.pinnedImages, signal));
      return entry?.kind === "file" ? new TextDecoder().decode(entry.contents) : undefined;
    },
  };
}

/** Whether the engine has read the list that lies on the disk. */
const hasRead = (of: Awaited<ReturnType<typeof machine>>, text: string | undefined) =>
  of.host.seenBy("crio.service")[hostPaths.pinnedImages] ===
  (text === undefined ? undefined : bytesToHex(sha256(new TextEncoder().encode(text))));

describe("a machine with a grant", () => {
  test("fetches every image once, lists them for the engine, and says so [daemon-pins-1]", async () => {
    const one = await machine();
    const process = one.start();
    await one.set("x", "a", "b");
    await one.set("y", "b", "c");
    await one.grant("x", "y");
    await one.pass(60_000);
    const wanted = pinDropIn([image("a"), image("b"), image("c")].sort());
    expect(one.images.pulls.toSorted()).toEqual([image("a"), image("b"), image("c")].sort());
    expect(await one.list()).toBe(wanted);
    expect(hasRead(one, wanted)).toBe(true);
    expect(await one.says()).toEqual({
      answer: { of: 1, is: "done" },
      sets: [
        { name: "x", desiredGeneration: 1, currentGeneration: 1 },
        { name: "y", desiredGeneration: 1, currentGeneration: 1 },
      ],
      progressing: "False AsExpected All pinned image sets complete",
      degraded: "False AsExpected",
    });
    expect(one.journal.lines.map(({ chapter, reason }) => `${chapter} ${reason}`)).toEqual([
      "PinnedImages ImagesPinned",
    ]);
    expect(one.host.reboots).toEqual([]);
    process.abort();
  });

  test("names the image, the field and the code of a failure; what is there is pinned; a corrected set ends it [daemon-pins-2]", async () => {
    const one = await machine();
    const process = one.start();
    const wrong = image("nowhere");
    await one.set("bad", "a", wrong);
    await one.set("good", "b");
    await one.grant("bad", "good");
    await one.pass(60_000);
    const failed = await one.says();
    expect(failed.answer).toMatchObject({
      of: 1,
      is: "failed",
      set: "bad",
      field: "spec.pinnedImages[1].name",
      code: "MCO_IMAGE_ABSENT",
    });
    expect(failed.degraded).toContain(
      `True PrefetchFailed PinnedImageSet bad: spec.pinnedImages[1].name: ${wrong}: MCO_IMAGE_ABSENT`,
    );
    expect(failed.sets).toMatchObject([
      {
        name: "bad",
        desiredGeneration: 1,
        lastFailedGeneration: 1,
        lastFailedGenerationError: expect.stringContaining(wrong),
      },
      { name: "good", desiredGeneration: 1, currentGeneration: 1 },
    ]);
    expect(await one.stalled()).toBe("True");
    expect(await one.list()).toBe(pinDropIn([image("b")]));
    await one.set("bad", "a", "c");
    await one.grant("bad", "good");
    await one.pass(60_000);
    expect(await one.stalled()).toBe("False");
    const corrected = await one.says();
    expect({ ...corrected, sets: corrected.sets?.[0] }).toEqual({
      answer: { of: 2, is: "done" },
      sets: { name: "bad", desiredGeneration: 2, currentGeneration: 2 },
      progressing: "False AsExpected All pinned image sets complete",
      degraded: "False AsExpected",
    });
    process.abort();
  });

  test("begins nothing that does not fit, and names the bytes that are needed and free [daemon-pins-3]", async () => {
    const one = await machine({ space: { freeBytes: 2899, reserveBytes: 500 } });
    const process = one.start();
    await one.set("x", "a", "b");
    await one.set("y", "a");
    await one.grant("x", "y");
    await one.pass(60_000);
    expect(one.images.pulls).toEqual([]);
    // 100 + 100 + 1000 once, twice over, and the reserve.
    expect((await one.says()).degraded).toMatch(
      /MCO_IMAGE_NO_SPACE: 2 images are missing, 1200 bytes as they are sent; 2900 bytes must be free .*, and 2899 are/,
    );
    process.abort();
  });

  test("leaves the line to an update that begins, and goes on in its next turn with what is there [daemon-pins-4]", async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let isHolding = true;
    const one = await machine({
      onRequest: (of, until) =>
        of === image("b") && isHolding && one.images.pulls.includes(of)
          ? Promise.race([
              held,
              new Promise<never>((_, reject) => until.addEventListener("abort", () => reject(until.reason as Error))),
            ])
          : Promise.resolve(),
    });
    const process = one.start();
    await one.set("x", "a", "b");
    await one.grant("x");
    await one.pass(30_000);
    expect((await one.says()).progressing).toMatch(/^True ImagePrefetch/);
    await one.act(() =>
      one.kube.patch(
        kubernetes.Node,
        { name },
        merge({ metadata: { annotations: { [annotations.desiredConfig]: "d" } } }),
      ),
    );
    await one.pass(5000);
    const paused = await one.says();
    expect({ answer: paused.answer, progressing: paused.progressing?.split(" ").slice(0, 2) }).toEqual({
      answer: { of: 1, is: "unfinished" },
      progressing: ["False", "AwaitsTurn"],
    });
    // A grant in the middle of an update is given back.
    await one.grant("x");
    await one.pass(5000);
    expect((await one.says()).answer).toEqual({ of: 2, is: "unfinished" });
    isHolding = false;
    release();
    await one.act(() =>
      one.kube.patch(
        kubernetes.Node,
        { name },
        merge({ metadata: { annotations: { [annotations.desiredConfig]: "c" } } }),
      ),
    );
    await one.grant("x");
    await one.pass(30_000);
    expect((await one.says()).answer).toEqual({ of: 3, is: "done" });
    expect(one.images.pulls).toEqual([image("a"), image("b"), image("b")]);
    process.abort();
  });

  test("gives its turn back when its time is over [daemon-pins-5]", async () => {
    const one = await machine({
      onRequest: (of, until) =>
        of === image("b")
          ? new Promise<never>((_, reject) => until.addEventListener("abort", () => reject(until.reason as Error)))
          : Promise.resolve(),
    });
    const process = one.start();
    await one.set("x", "a", "b");
    await one.grant("x");
    one.kernel.schedule(pinTurnSeconds * 1000, "time", () => undefined);
    await one.pass(pinTurnSeconds * 1000 + 5000);
    expect((await one.says()).answer).toEqual({ of: 1, is: "unfinished" });
    process.abort();
  });

  test("asks an unreachable registry a few times, and no more than three images long [daemon-pins-6]", async () => {
    let requests = 0;
    const one = await machine({
      onRequest: (of) => {
        requests += 1;
        return Promise.reject(new McoError("MCO_IMAGE_UNREACHABLE", { image: of, retryable: true }));
      },
    });
    const process = one.start();
    await one.set("x", "a", "b", "c", image("d"), image("e"));
    await one.grant("x");
    await one.pass(120_000);
    const { answer, degraded } = await one.says();
    expect({ requests, answer: answer?.code }).toEqual({ requests: 9, answer: "MCO_IMAGE_UNREACHABLE" });
    expect(degraded).toContain("spec.pinnedImages[4].name");
    process.abort();
  });

  test("waits for the next grant if a set is not as this one names it [daemon-pins-7]", async () => {
    const one = await machine();
    const process = one.start();
    await one.set("x", "a");
    await one.act(() => one.kube.list(PinnedImageSet));
    const old = await one.act(() => one.kube.get(PinnedImageSet, { name: "x" }));
    await one.set("x", "b");
    const text = pinGrantText({
      number: 1,
      at: 0,
      failures: 0,
      sets: [{ name: "x", uid: old?.metadata.uid ?? "", generation: 1 }],
    });
    await one.act(() =>
      one.kube.patch(
        kubernetes.Node,
        { name },
        merge({ metadata: { annotations: { [annotations.pinnedImageSets]: text } } }),
      ),
    );
    await one.pass(60_000);
    expect([one.images.pulls, (await one.says()).answer]).toEqual([[], undefined]);
    process.abort();
  });
});

describe("a machine with pinned images", () => {
  const pinned = async () => {
    const one = await machine();
    const process = one.start();
    await one.set("x", "a");
    await one.set("y", "b");
    await one.grant("x", "y");
    await one.pass(60_000);
    return { one, process };
  };

  test("takes a set that leaves off the list, removes no image and asks no registry [daemon-pins-8]", async () => {
    const { one, process } = await pinned();
    await one.grant("y");
    await one.pass(10_000);
    expect(await one.list()).toBe(pinDropIn([image("b")]));
    expect(hasRead(one, pinDropIn([image("b")]))).toBe(true);
    expect([...one.images.stored].sort()).toEqual([image("a"), image("b")].sort());
    await one.grant();
    await one.pass(10_000);
    expect([await one.list(), hasRead(one, undefined), (await one.says()).sets]).toEqual([undefined, true, []]);
    expect(one.images.pulls).toHaveLength(2);
    process.abort();
  });

  test("keeps the old images of a set on the list until the new ones are there [daemon-pins-9]", async () => {
    const { one, process } = await pinned();
    await one.set("x", image("nowhere"));
    await one.grant("x", "y");
    await one.pass(60_000);
    expect(await one.list()).toBe(pinDropIn([image("a"), image("b")].sort()));
    expect((await one.says()).sets?.[0]).toMatchObject({
      desiredGeneration: 2,
      currentGeneration: 1,
      lastFailedGeneration: 2,
    });
    process.abort();
  });

  test("reports a set that was created again under its name from its first generation on [daemon-pins-10]", async () => {
    const { one, process } = await pinned();
    await one.set("x", "a", "c");
    await one.grant("x", "y");
    await one.pass(60_000);
    expect((await one.says()).sets?.[0]).toEqual({ name: "x", desiredGeneration: 2, currentGeneration: 2 });
    await one.act(() => one.kube.delete(PinnedImageSet, { name: "x" }));
    await one.set("x", "c");
    await one.grant("x", "y");
    await one.pass(60_000);
    expect((await one.says()).sets?.[0]).toEqual({ name: "x", desiredGeneration: 1, currentGeneration: 1 });
    process.abort();
  });

  test("corrects a list that was changed on the disk, and asks for a turn for an image that is gone [daemon-pins-11]", async () => {
    const { one, process } = await pinned();
    const wanted = await one.list();
    await one.act(() => one.host.files.remove(hostPaths.pinnedImages, signal));
    one.images.stored.delete(image("a"));
    one.kernel.schedule(3_700_000, "time", () => undefined);
    await one.pass(3_700_000);
    expect(await one.list()).toBe(wanted);
    expect((await one.says()).answer).toEqual({ of: 1, is: "unfinished" });
    await one.grant("x", "y");
    await one.pass(60_000);
    expect((await one.says()).answer).toEqual({ of: 2, is: "done" });
    expect(one.images.stored.has(image("a"))).toBe(true);
    process.abort();
  });
});

test("grants and answers are no news for the daemon's updates, whose delays they would end [daemon-pins-13]", () => {
  const node = (notes: Readonly<Record<string, string>>) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, annotations: notes },
  });
  const [bare, granted] = [
    node({}),
    node({ [annotations.pinnedImageSets]: "1", [annotations.pinnedImageSetsAnswer]: "2" }),
  ];
  expect(concernsDaemon(bare, granted, undefined)).toBe(false);
  expect(concernsDaemon(bare, node({ [annotations.desiredConfig]: "1" }), undefined)).toBe(true);
});

test("a daemon killed at any of its effects goes on: no image is fetched twice, and the engine has read the list [daemon-pins-12]", async () => {
  class Killed extends Error {}
  let effects = Infinity;
  for (let killAt = 1; killAt <= effects; killAt += 1) {
    const one = await machine();
    await one.set("x", "a", "b");
    let count = 0;
    const stopped = new AbortController();
    /** From the kill on, the process does nothing any more. */
    const mortal =
      <A extends readonly unknown[], R>(work: (...given: A) => Promise<R>) =>
      async (...given: A): Promise<R> => {
        if (count >= killAt) return new Promise<never>(() => undefined);
        count += 1;
        if (count === killAt) {
          stopped.abort(new Killed());
          return new Promise<never>(() => undefined);
        }
        return work(...given);
      };
    const host: Host = {
      ...one.host,
      ledger: { ...one.host.ledger, write: mortal(one.host.ledger.write) },
      files: { ...one.host.files, write: mortal(one.host.files.write), remove: mortal(one.host.files.remove) },
      units: { ...one.host.units, reload: mortal(one.host.units.reload) },
    };
    const patch = mortal(one.kube.patch.bind(one.kube));
    const kube = new Proxy(one.kube, {
      get: (target, key: keyof KubeClient) => (key === "patch" ? patch : target[key].bind(target)),
    });
    const process = one.start({ host, kube, images: { ...one.images, pull: mortal(one.images.pull) } });
    stopped.signal.addEventListener("abort", () => process.abort(new Killed()));
    await one.grant("x");
    await one.pass(60_000);
    process.abort(new Killed());
    if (count < killAt) effects = count;
    const next = one.start();
    await one.pass(60_000);
    const wanted = pinDropIn([image("a"), image("b")].sort());
    expect({ killAt, answer: (await one.says()).answer, list: await one.list(), read: hasRead(one, wanted) }).toEqual({
      killAt,
      answer: { of: 1, is: "done" },
      list: wanted,
      read: true,
    });
    expect(one.images.pulls.toSorted()).toEqual([image("a"), image("b")].sort());
    next.abort();
  }
  // Two pulls, two records, the list, the reload, the progress, the status and the answer.
  expect(effects).toBe(9);
});
