import { describe, expect, test } from "vitest";
import { Harness } from "../../test/support/control-plane-harness.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { PinnedImageSet } from "../api/kinds/pinned-image-set.ts";
import { annotations, labels, objects, poolConditions } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { type PinAnswer, parsePinGrant, pinAnswerText } from "../core/images/pin-grant.ts";
import { updatedPool } from "../../test/support/control-plane-harness.ts";

const image = (name: string) => ({ name: `registry.example.com/${name}@sha256:${"0".repeat(64)}` });
const merge = (body: object) => ({ type: "merge", body }) as const;

class Pins {
  readonly harness: Harness;
  readonly #process: AbortController;

  constructor({ harness, process }: { readonly harness: Harness; readonly process: AbortController }) {
    this.harness = harness;
    this.#process = process;
  }

  static async of(machines: readonly string[]): Promise<Pins> {
    return new Pins(await updatedPool(machines));
  }

  /** Ends the controllers; their lease runs out. */
  stop = () => this.#process.abort();

  act = <T>(work: () => Promise<T>): Promise<T> => this.harness.act(work);

  set = (name: string, role: string | undefined, ...images: readonly string[]) =>
    this.act(() =>
      this.harness.kube.create(PinnedImageSet, {
        apiVersion: PinnedImageSet.apiVersion,
        kind: PinnedImageSet.kind,
        metadata: { name, ...(role === undefined ? {} : { labels: { [labels.role]: role } }) },
        spec: { pinnedImages: images.map(image) },
      }),
    );

  names = async (pool: string) =>
    (await this.act(() => this.harness.kube.get(MachineConfigPool, { name: pool })))?.spec.pinnedImageSets?.map(
      ({ name }) => name,
    );

  grant = async (node: string) =>
    parsePinGrant(
      (await this.act(() => this.harness.kube.get(kubernetes.Node, { name: node })))?.metadata.annotations?.[
        annotations.pinnedImageSets
      ],
    );

  granted = async (nodes: readonly string[]) => {
    const found: string[] = [];
    for (const node of nodes) if ((await this.grant(node)) !== undefined) found.push(node);
    return found;
  };

  /** As the daemon of a machine does. */
  answer = async (node: string, is: PinAnswer["is"], also: Partial<PinAnswer> = {}) => {
    const of = (await this.grant(node))?.number ?? 0;
    await this.act(() =>
      this.harness.kube.patch(
        kubernetes.Node,
        { name: node },
        merge({
          metadata: { annotations: { [annotations.pinnedImageSetsAnswer]: pinAnswerText({ of, is, ...also }) } },
        }),
      ),
    );
  };

  pool = async (name: string) => {
    const pool = await this.act(() => this.harness.kube.get(MachineConfigPool, { name }));
    const condition = conditionOf(
      pool?.status?.conditions as { type: string; status?: string; reason?: string; message?: string }[] | undefined,
      poolConditions.pinnedImageSetsDegraded,
    );
    const [counts] = pool?.status?.poolSynchronizersStatus ?? [];
    return { condition, have: counts?.updatedMachineCount, machines: counts?.machineCount };
  };
}

describe("the sets of a pool", () => {
  test("are named in its spec, sorted; a set that moves by its label leaves one pool and comes to another [pinned-images-1]", async () => {
    const pins = await Pins.of(["w0"]);
    await pins.set("b", "worker", "x");
    await pins.set("a", "worker", "x");
    await pins.harness.pass(2000);
    expect(await pins.names("worker")).toEqual(["a", "b"]);
    await pins.act(() =>
      pins.harness.kube.patch(
        PinnedImageSet,
        { name: "b" },
        merge({ metadata: { labels: { [labels.role]: "master" } } }),
      ),
    );
    await pins.harness.pass(2000);
    expect([await pins.names("worker"), await pins.names("master")]).toEqual([["a"], ["b"]]);
    await pins.act(() => pins.harness.kube.delete(PinnedImageSet, { name: "a" }));
    await pins.harness.pass(2000);
    expect(await pins.names("worker")).toBeUndefined();
  });

  test("are written only when they change [pinned-images-2]", async () => {
    const pins = await Pins.of(["w0"]);
    await pins.set("a", "worker", "x");
    await pins.harness.pass(30_000);
    const before = await pins.act(() => pins.harness.kube.get(MachineConfigPool, { name: "worker" }));
    await pins.act(() =>
      pins.harness.kube.patch(PinnedImageSet, { name: "a" }, merge({ metadata: { annotations: { note: "x" } } })),
    );
    await pins.harness.pass(30_000);
    const after = await pins.act(() => pins.harness.kube.get(MachineConfigPool, { name: "worker" }));
    expect(after?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  });

  test("a set that no pool has says so in an Event, once [pinned-images-3]", async () => {
    const pins = await Pins.of(["w0"]);
    await pins.set("alone", undefined, "x");
    await pins.harness.pass(5000);
    const events = (await pins.act(() => pins.harness.kube.list(kubernetes.Event))).items.filter(
      ({ reason }) => reason === "PinnedImageSetWithoutPool",
    );
    expect(events.map(({ message, count }) => ({ message, count }))).toMatchObject([
      { message: expect.stringContaining(`${labels.role}: worker`) },
    ]);
  });
});

describe("a write that another one came before", () => {
  /** Refuses the first patch of an object that names pinned sets, as if another writer had been first. */
  const overtake = (pins: Pins, target: string): { readonly count: () => number } => {
    let refused = 0;
    pins.harness.intercept = (next) => async (request, signal) => {
      const body = typeof request.body === "string" ? request.body : new TextDecoder().decode(request.body);
      const isWrite = request.method === "PATCH" && request.target.includes(target) && body.includes("pinnedImageSets");
      if (!isWrite || refused > 0) return next(request, signal);
      refused += 1;
      const status = {
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        reason: "Conflict",
        code: 409,
        message: "x",
      };
      return { status: 409, headers: { "content-type": "application/json" }, body: JSON.stringify(status) };
    };
    return { count: () => refused };
  };

  test("is tried again: the names of a pool's sets [pinned-images-8]", async () => {
    const pins = await Pins.of(["w0"]);
    const overtaken = overtake(pins, "/machineconfigpools/worker");
    await pins.set("a", "worker", "x");
    await pins.harness.pass(5000);
    expect([overtaken.count(), await pins.names("worker")]).toEqual([1, ["a"]]);
  });

  test("is tried again: the grant of a machine [pinned-images-9]", async () => {
    const pins = await Pins.of(["w0"]);
    const overtaken = overtake(pins, "/nodes/w0");
    await pins.set("a", "worker", "x");
    await pins.harness.pass(5000);
    expect([overtaken.count(), (await pins.grant("w0"))?.number]).toEqual([1, 1]);
  });
});

describe("the turns of machines", () => {
  const oneAtOnce = (pins: Pins) =>
    pins.act(() =>
      pins.harness.kube.create(MachineConfiguration, {
        apiVersion: MachineConfiguration.apiVersion,
        kind: MachineConfiguration.kind,
        metadata: { name: objects.machineConfiguration, annotations: { [annotations.pinnedImagesAtOnce]: "1" } },
        spec: {} as never,
      }),
    );

  test("a few machines of the cluster fetch at the same time, and the next one follows an answer [pinned-images-4]", async () => {
    const machines = ["w0", "w1", "w2"];
    const pins = await Pins.of(machines);
    await oneAtOnce(pins);
    await pins.harness.pass(2000);
    await pins.set("a", "worker", "x");
    await pins.harness.pass(5000);
    expect(await pins.granted(machines)).toEqual(["w0"]);
    await pins.answer("w0", "done");
    await pins.harness.pass(5000);
    expect(await pins.granted(machines)).toEqual(["w0", "w1"]);
    await pins.answer("w1", "failed", {
      set: "a",
      field: "spec.pinnedImages[0].name",
      code: "MCO_IMAGE_ABSENT",
      problem: "no",
    });
    await pins.harness.pass(5000);
    expect(await pins.granted(machines)).toEqual(machines);
  });

  test("a controller that starts again goes on where the last one ended [pinned-images-5]", async () => {
    const pins = await Pins.of(["w0"]);
    await pins.set("a", "worker", "x");
    await pins.harness.pass(5000);
    const before = await pins.grant("w0");
    pins.stop();
    await pins.harness.pass(5000);
    pins.harness.start("another");
    await pins.harness.pass(5000);
    expect(await pins.grant("w0")).toEqual(before);
    expect(before).toMatchObject({ number: 1, failures: 0, sets: [{ name: "a", generation: 1 }] });
  });

  test("the pool says how far its machines are, and which object and field they fail by [pinned-images-6]", async () => {
    const pins = await Pins.of(["w0", "w1"]);
    await pins.set("a", "worker", "x");
    await pins.harness.pass(5000);
    await pins.answer("w0", "done");
    await pins.answer("w1", "failed", {
      set: "a",
      field: "spec.pinnedImages[0].name",
      code: "MCO_IMAGE_ABSENT",
      problem: "no such image",
    });
    await pins.harness.pass(15_000);
    expect(await pins.pool("worker")).toMatchObject({
      have: 1,
      machines: 2,
      condition: {
        status: "True",
        reason: "PrefetchFailed",
        message: expect.stringContaining(
          "PinnedImageSet a spec.pinnedImages[0].name: MCO_IMAGE_ABSENT: no such image (w1)",
        ),
      },
    });
    // A corrected set is tried at once.
    await pins.act(() =>
      pins.harness.kube.patch(PinnedImageSet, { name: "a" }, merge({ spec: { pinnedImages: [image("y")] } })),
    );
    await pins.harness.pass(5000);
    expect(await pins.grant("w1")).toMatchObject({ number: 2, failures: 0, sets: [{ generation: 2 }] });
    for (const node of ["w0", "w1"]) await pins.answer(node, "done");
    await pins.harness.pass(15_000);
    expect(await pins.pool("worker")).toMatchObject({ have: 2, condition: { status: "False", reason: "AsExpected" } });
  });

  test("a failed machine is tried again after its delay [pinned-images-7]", async () => {
    const pins = await Pins.of(["w0"]);
    await pins.set("a", "worker", "x");
    await pins.harness.pass(5000);
    await pins.answer("w0", "failed", { code: "MCO_IMAGE_UNREACHABLE" });
    await pins.harness.pass(20_000);
    expect((await pins.grant("w0"))?.number).toBe(1);
    pins.harness.kernel.schedule(60_000, "later", () => undefined);
    await pins.harness.pass(70_000);
    expect(await pins.grant("w0")).toMatchObject({ number: 2, failures: 1 });
  });

  test("a machine whose Node has no room for a turn keeps no other machine from one [pinned-images-10]", async () => {
    const pins = await Pins.of(["w0", "w1", "w2"]);
    const { harness } = pins;
    await oneAtOnce(pins);
    const { metadata } = await harness.node_("w0");
    const used = Object.entries(metadata.annotations ?? {}).reduce((sum, [a, b]) => sum + a.length + b.length, 0);
    await pins.act(() => harness.annotate("w0", { fill: "x".repeat(256 * 1024 - used - 4) }));
    await pins.set("a", "worker", "x");
    await harness.pass(30_000);
    expect(await pins.granted(["w0", "w1", "w2"])).toEqual(["w1"]);
    await pins.answer("w1", "done");
    await harness.pass(30_000);
    expect(await pins.granted(["w0", "w1", "w2"])).toEqual(["w1", "w2"]);
    expect(harness.journal.lines.filter(({ reason }) => reason === "ChildFailing")).toEqual([]);
    expect(await harness.events("MachineNotWritten")).toContainEqual(expect.stringContaining("written of w0"));
    // Once there is room, it is next.
    await pins.answer("w2", "done");
    await pins.act(() => harness.annotate("w0", { fill: null }));
    await harness.pass(120_000);
    expect(await pins.granted(["w0"])).toEqual(["w0"]);
  });

  test("a machine that takes its turn back, or writes itself another one, has one a minute [pinned-images-11]", async () => {
    const pins = await Pins.of(["w0"]);
    const { harness } = pins;
    let turns = 0;
    harness.intercept = (handler) => async (request, signal) => {
      const answer = await handler(request, signal);
      const isTurn = request.method === "PATCH" && (request.body ?? "").toString().includes('pinnedImageSets":');
      if (isTurn && request.target.includes("/nodes/w0") && answer.status < 300) turns += 1;
      return answer;
    };
    await pins.set("a", "worker", "x");
    await harness.pass(5000);
    for (let second = 0; second < 55; second += 5) {
      await pins.act(() => harness.annotate("w0", { [annotations.pinnedImageSets]: null }));
      await harness.pass(5000);
    }
    expect(turns).toBe(1);
    await harness.pass(60_000);
    expect(turns).toBe(2);
  });

  test("a machine whose Node changes faster than a turn is written keeps no other machine from one [pinned-images-12]", async () => {
    const machines = ["w0", "w1", "w2"];
    const pins = await Pins.of(machines);
    const { harness } = pins;
    await oneAtOnce(pins);
    let [isHostile, conflicts] = [true, 0];
    harness.intercept = (next) => async (request, signal) => {
      const isTurn = request.method === "PATCH" && (request.body ?? "").toString().includes('pinnedImageSets":');
      if (isHostile && isTurn && request.target.includes("/nodes/w0")) {
        conflicts += 1;
        await harness.annotate("w0", { busy: String(conflicts) });
      }
      return next(request, signal);
    };
    await pins.set("a", "worker", "x");
    await harness.pass(30_000);
    expect(await pins.granted(machines)).toEqual(["w1"]);
    await pins.answer("w1", "done");
    await harness.pass(30_000);
    expect(await pins.granted(machines)).toEqual(["w1", "w2"]);
    await pins.answer("w2", "done");
    await harness.pass(600_000);
    // The first time another writer may have been faster; after that, it has one attempt a minute.
    expect(conflicts).toBeGreaterThan(5);
    expect(conflicts).toBeLessThan(15);
    expect(harness.journal.lines.filter(({ reason }) => reason === "ChildFailing")).toEqual([]);
    expect(await harness.events("MachineNotWritten")).toContainEqual(expect.stringContaining("written of w0"));
    // Once it keeps still, it has its turn.
    isHostile = false;
    await harness.pass(120_000);
    expect(await pins.granted(["w0"])).toEqual(["w0"]);
  });

  const machines = ["w0", "w1"];

  /** One machine fetches at a time, and the first of them does. */
  async function withFirstTurn(): Promise<Pins> {
    const pins = await Pins.of(machines);
    await oneAtOnce(pins);
    await pins.set("a", "worker", "x");
    await pins.harness.pass(5000);
    return pins;
  }

  test("a machine that writes itself a turn has none for it [pinned-images-13]", async () => {
    const pins = await withFirstTurn();
    const { harness } = pins;
    expect(await pins.granted(machines)).toEqual(["w0"]);
    const own = await pins.grant("w0");
    const at = Math.floor(harness.kernel.clock.now()) + 1_400_000;
    await pins.act(() => harness.annotate("w1", { [annotations.pinnedImageSets]: JSON.stringify({ ...own, at }) }));
    await harness.pass(10_000);
    await pins.answer("w0", "done");
    await harness.pass(10_000);
    const given = await pins.grant("w1");
    expect(given?.at).toBeLessThan(at);
    expect(given).toMatchObject({ failures: 0, sets: own?.sets });
  });

  test("a turn that a machine dated later than now, before a controller began, ends with others [pinned-images-14]", async () => {
    const pins = await withFirstTurn();
    const { harness } = pins;
    const own = await pins.grant("w0");
    pins.stop();
    await harness.pass(5000);
    const at = Math.floor(harness.kernel.clock.now()) + 1_400_000;
    await pins.act(() => harness.annotate("w0", { [annotations.pinnedImageSets]: JSON.stringify({ ...own, at }) }));
    harness.start("another");
    await harness.pass(1_450_000);
    expect(await pins.granted(machines)).toEqual(["w0"]);
    await harness.pass(120_000);
    expect(await pins.granted(machines)).toEqual(machines);
  });
});
