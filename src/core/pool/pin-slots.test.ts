import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { annotations, nodeStates } from "../../api/names.ts";
import {
  type PinAnswer,
  type PinGrant,
  type PinnedSetVersion,
  parsePinAnswer,
  parsePinGrant,
  pinAnswerText,
  pinGrantText,
  pinTurnSeconds,
} from "../images/pin-grant.ts";
import {
  type PinMachine,
  type PoolPins,
  decideSlots,
  pinMachineOf,
  pinProgress,
  pinStateOf,
  pinsAtOnce,
  retryDelayMs,
  slotSeconds,
} from "./pin-slots.ts";

const now = Date.UTC(2030, 0, 1);
const version = (name: string, generation = 1, uid = `uid-${name}`): PinnedSetVersion => ({ name, uid, generation });
const [a, b] = [version("a"), version("b")];
const grant = (sets: readonly PinnedSetVersion[], also: Partial<PinGrant> = {}): PinGrant => ({
  number: 1,
  at: now,
  failures: 0,
  sets,
  ...also,
});
const machine = (name: string, also: Partial<PinMachine> = {}): PinMachine => ({
  name,
  grant: undefined,
  answer: undefined,
  ready: true,
  updating: false,
  ...also,
});
const answer = (is: PinAnswer["is"], of = 1): PinAnswer => ({ of, is });
const pool = (name: string, wanted: readonly PinnedSetVersion[], machines: readonly PinMachine[]): PoolPins => ({
  pool: name,
  wanted,
  machines,
});
const given = (pools: readonly PoolPins[], most: number, at = now) =>
  decideSlots(pools, most, at).grants.map(({ node }) => node);

describe("what a machine has of its pool's sets", () => {
  test.for([
    { title: "nothing is wanted", of: {}, wanted: [], state: { is: "has" } },
    { title: "it was given nothing yet", of: {}, wanted: [a], state: { is: "wants", fetches: true } },
    { title: "it fetches", of: { grant: grant([a]) }, wanted: [a], state: { is: "fetching", at: now } },
    {
      title: "an answer to an older grant says nothing",
      of: { grant: grant([a], { number: 2 }), answer: answer("done") },
      wanted: [a],
      state: { is: "fetching", at: now },
    },
    { title: "it has them", of: { grant: grant([a]), answer: answer("done") }, wanted: [a], state: { is: "has" } },
    {
      title: "another generation is wanted",
      of: { grant: grant([a]), answer: answer("done") },
      wanted: [version("a", 2)],
      state: { is: "wants", fetches: true },
    },
    {
      title: "a set that was created again is another one",
      of: { grant: grant([a]), answer: answer("done") },
      wanted: [version("a", 1, "new")],
      state: { is: "wants", fetches: true },
    },
    {
      title: "a set that only leaves needs no registry",
      of: { grant: grant([a, b]), answer: answer("done") },
      wanted: [b],
      state: { is: "wants", fetches: false },
    },
    {
      title: "a set that leaves before the rest is there still needs one",
      of: { grant: grant([a, b]), answer: answer("failed") },
      wanted: [b],
      state: { is: "wants", fetches: true },
    },
    {
      title: "the time of its turn was over",
      of: { grant: grant([a], { at: now - 1000 * pinTurnSeconds }), answer: answer("unfinished") },
      wanted: [a],
      state: { is: "wants", fetches: true },
    },
    {
      title: "it failed, and waits",
      of: { grant: grant([a]), answer: answer("failed") },
      wanted: [a],
      state: { is: "failed", until: now + 60_000, answer: answer("failed") },
    },
    {
      title: "it failed, and has waited",
      of: { grant: grant([a], { at: now - 60_000 }), answer: answer("failed") },
      wanted: [a],
      state: { is: "wants", fetches: true },
    },
    {
      title: "it says nothing for too long",
      of: { grant: grant([a], { at: now - slotSeconds * 1000 - 1 }) },
      wanted: [a],
      state: { is: "silent", at: now - slotSeconds * 1000 - 1 },
    },
  ])("$title [pin-slots-1]", ({ of, wanted, state }) => {
    expect(pinStateOf(machine("m", of), wanted, now)).toEqual(state);
  });

  test("a turn ends before its slot does [pin-slots-2]", () => {
    expect(pinTurnSeconds).toBeLessThan(slotSeconds);
  });

  test("delays double from a minute to an hour [pin-slots-3]", () => {
    expect([0, 1, 2, 6, 7, 1000].map((failures) => retryDelayMs(failures) / 1000)).toEqual([
      60, 120, 240, 3600, 3600, 3600,
    ]);
  });
});

describe("which machines may fetch now", () => {
  const waiting = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, at) => machine(`${prefix}${String(at).padStart(4, "0")}`));

  test("as many as there are slots, and pools take turns [pin-slots-4]", () => {
    const pools = [pool("x", [a], waiting("x", 9)), pool("y", [a], waiting("y", 9))];
    expect(given(pools, 5)).toEqual(["x0000", "y0000", "x0001", "y0001", "x0002"]);
  });

  test("machines that fetch hold their slots; those that are not ready or silent hold none [pin-slots-5]", () => {
    const held = grant([a]);
    const machines = [
      machine("fetching", { grant: held }),
      machine("dead", { grant: held, ready: false }),
      machine("silent", { grant: grant([a], { at: now - slotSeconds * 1000 - 1 }) }),
      ...waiting("w", 5),
    ];
    expect(given([pool("x", [a], machines)], 3)).toEqual(["w0000", "w0001"]);
  });

  test("sets that only leave machines need no slot [pin-slots-6]", () => {
    const machines = [
      machine("full", { grant: grant([a]) }),
      machine("less", { grant: grant([a, b], { number: 7 }), answer: answer("done", 7) }),
    ];
    expect(decideSlots([pool("x", [a], machines)], 1, now).grants).toEqual([
      { node: "less", grant: grant([a], { number: 8 }) },
    ]);
  });

  test("a grant is read as it was written, though clocks have fractions [pin-slots-17]", () => {
    const [first] = decideSlots([pool("x", [a], [machine("m")])], 1, now + 0.25).grants;
    expect(first === undefined ? undefined : parsePinGrant(pinGrantText(first.grant))).toEqual(grant([a]));
  });

  test("a machine that is updated, or not ready, is given nothing [pin-slots-7]", () => {
    const machines = [machine("updating", { updating: true }), machine("away", { ready: false }), machine("ok")];
    expect(given([pool("x", [a], machines)], 9)).toEqual(["ok"]);
  });

  test("failures come last, wait twice as long each time, and begin again with another content [pin-slots-8]", () => {
    const at = now - 200_000;
    const failed = machine("failed", {
      grant: grant([a], { number: 3, at, failures: 1 }),
      answer: answer("failed", 3),
    });
    const fresh = machine("fresh");
    expect(given([pool("x", [a], [failed, fresh])], 1)).toEqual(["fresh"]);
    const again = decideSlots([pool("x", [a], [failed])], 1, now).grants;
    expect(again).toEqual([{ node: "failed", grant: grant([a], { number: 4, failures: 2 }) }]);
    const other = decideSlots([pool("x", [version("a", 2)], [failed])], 1, now).grants;
    expect(other[0]?.grant.failures).toBe(0);
    expect(decideSlots([pool("x", [a], [failed])], 1, at + 1).again).toBe(at + 120_000);
  });

  test("with any machines: never more slots than there are, and a controller that forgot all decides the same [pin-slots-9]", () => {
    const anyMachine = fc.record({
      name: fc.string({ minLength: 1, maxLength: 4 }),
      ready: fc.boolean(),
      updating: fc.boolean(),
      grant: fc.option(
        fc.record({
          number: fc.nat(3),
          at: fc.integer({ min: now - 4_000_000, max: now }),
          failures: fc.nat(4),
          sets: fc.subarray([a, b]),
        }),
        { nil: undefined },
      ),
      answer: fc.option(fc.record({ of: fc.nat(3), is: fc.constantFrom("done", "failed", "unfinished") } as const), {
        nil: undefined,
      }),
    });
    fc.assert(
      fc.property(
        fc.uniqueArray(anyMachine, { selector: ({ name }) => name, maxLength: 30 }),
        fc.subarray([a, b]),
        fc.integer({ min: 1, max: 8 }),
        (machines, wanted, most) => {
          const before = decideSlots([pool("x", wanted, machines)], most, now);
          const byName = new Map(before.grants.map(({ node, grant: one }) => [node, one]));
          const after = machines.map((one) => ({ ...one, grant: byName.get(one.name) ?? one.grant }));
          const fetchers = after.filter(
            (one) =>
              one.ready &&
              pinStateOf(one, wanted, now).is === "fetching" &&
              // What only leaves a machine is no fetch.
              !(
                byName.has(one.name) &&
                machines.some((old) => {
                  const state = pinStateOf(old, wanted, now);
                  return old.name === one.name && state.is === "wants" && !state.fetches;
                })
              ),
          );
          expect(fetchers.length).toBeLessThanOrEqual(Math.max(most, before.holders));
          // Nothing is given twice, and who restarts here goes on.
          const next = decideSlots([pool("x", wanted, after)], most, now);
          expect(next.grants.filter(({ node }) => byName.has(node))).toEqual([]);
        },
      ),
    );
  });

  test("5,000 machines all get their images with 20 slots, though every tenth dies with one [pin-slots-10]", () => {
    const machines = new Map(waiting("m", 5000).map((one) => [one.name, one]));
    let [at, turns, most] = [now, 0, 0];
    for (; turns < 2000; turns += 1) {
      const pools = [pool("x", [a], [...machines.values()])];
      const { grants, holders } = decideSlots(pools, 20, at);
      if (grants.length === 0 && holders === 0) break;
      most = Math.max(most, grants.length + holders);
      for (const { node, grant: one } of grants) {
        const dies = node.endsWith("7");
        machines.set(
          node,
          machine(node, { grant: one, ready: !dies, ...(dies ? {} : { answer: answer("done", one.number) }) }),
        );
      }
      at += 60_000;
    }
    expect(most).toBe(20);
    const progress = pinProgress(pool("x", [a], [...machines.values()]), at);
    expect({ turns, have: progress.have, machines: progress.machines }).toEqual({
      turns: 250,
      have: 4500,
      machines: 5000,
    });
  });
});

test.for([
  { written: undefined, most: 20, bad: false },
  { written: "1", most: 1, bad: false },
  { written: "1000", most: 1000, bad: false },
  { written: "0", most: 20, bad: true },
  { written: "1001", most: 20, bad: true },
  { written: "ten", most: 20, bad: true },
])("the limit $written means $most [pin-slots-16]", ({ written, most, bad }) => {
  const found = pinsAtOnce({
    metadata: {
      name: "cluster",
      ...(written === undefined ? {} : { annotations: { [annotations.pinnedImagesAtOnce]: written } }),
    },
  });
  expect({ most: found.most, bad: found.problem !== undefined }).toEqual({ most, bad });
});

describe("how far a pool is", () => {
  test("a machine that is tried again counts as failed until it has the images [pin-slots-11]", () => {
    const machines = [
      machine("has", { grant: grant([a]), answer: answer("done") }),
      machine("fetches", { grant: grant([a]) }),
      machine("failed", { grant: grant([a]), answer: answer("failed") }),
      machine("again", { grant: grant([a], { number: 2, failures: 1 }), answer: answer("failed") }),
      machine("corrected", { grant: grant([a], { number: 2, failures: 1 }), answer: answer("done", 2) }),
    ];
    const { failed, ...counts } = pinProgress(pool("x", [a], machines), now);
    expect(counts).toEqual({ machines: 5, have: 2, fetching: 2 });
    expect(failed.map(({ node }) => node)).toEqual(["failed", "again"]);
  });
});

describe("what is written on a Node", () => {
  test("grants and answers are read as they were written [pin-slots-12]", () => {
    const one = grant([a, b], { number: 12, failures: 3 });
    const said: PinAnswer = {
      of: 12,
      is: "failed",
      set: "a",
      field: "spec.pinnedImages[0].name",
      code: "MCO_IMAGE_ABSENT",
      problem: "no",
    };
    expect(parsePinGrant(pinGrantText(one))).toEqual(one);
    expect(parsePinAnswer(pinAnswerText(said))).toEqual(said);
  });

  test.for([
    "",
    "{",
    "[]",
    "null",
    "7",
    '{"number":1}',
    '{"number":1,"at":1,"failures":0,"sets":[{}]}',
    '{"number":1,"at":1,"failures":0,"sets":[null]}',
  ])("%s is no grant [pin-slots-13]", (text) => {
    expect(parsePinGrant(text)).toBeUndefined();
    expect(parsePinAnswer(text)).toBeUndefined();
  });

  test("long words of a machine are cut [pin-slots-14]", () => {
    const said = parsePinAnswer(JSON.stringify({ of: 1, is: "failed", problem: "x".repeat(9999) }));
    expect(said?.problem).toHaveLength(300);
  });

  test("a node's annotations say whether an update is under way [pin-slots-15]", () => {
    const of = (desired: string, state: string) =>
      pinMachineOf({
        metadata: {
          name: "m",
          annotations: {
            [annotations.currentConfig]: "c",
            [annotations.desiredConfig]: desired,
            [annotations.state]: state,
          },
        },
        status: { conditions: [{ type: "Ready", status: "True" }] },
      } as never);
    expect(
      [of("c", nodeStates.done), of("d", nodeStates.done), of("c", nodeStates.working)].map((one) => one.updating),
    ).toEqual([false, true, true]);
  });
});

describe("what root on a machine writes into its own annotations", () => {
  const has = (grantText: string | undefined, answerText: string | undefined): PinMachine =>
    pinMachineOf({
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name: "hostile",
        annotations: {
          ...(grantText === undefined ? {} : { [annotations.pinnedImageSets]: grantText }),
          ...(answerText === undefined ? {} : { [annotations.pinnedImageSetsAnswer]: answerText }),
        },
      },
      status: { conditions: [{ type: "Ready", status: "True" }] },
    });

  test.for([Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 1, 2 ** 52, -1])(
    "an answer to grant %d is no reason to grant it something in every pass [pin-slots-18]",
    (of) => {
      let hostile = { ...has(undefined, JSON.stringify({ of, is: "failed" })), ready: true, updating: false };
      let given = 0;
      for (let pass = 0; pass < 10; pass += 1) {
        const [one] = decideSlots([pool("worker", [a], [hostile, machine("z")])], 1, now + pass).grants;
        if (one?.node !== "hostile") continue;
        given += 1;
        hostile = { ...hostile, grant: parsePinGrant(pinGrantText(one.grant)) };
      }
      expect(given).toBe(1);
    },
  );

  test("a grant of a time to come holds no slot, and delays nothing [pin-slots-19]", () => {
    const at = now + 365 * 86_400_000;
    const hostile = machine("hostile", { grant: grant([a], { at }) });
    const decision = decideSlots([pool("worker", [a], [hostile, machine("z")])], 1, now);
    expect(decision.grants.map(({ node }) => node)).toEqual(["z"]);
    expect(decision.holders).toBe(0);
    expect(decision.again ?? now).toBeLessThanOrEqual(now + slotSeconds * 1000 + 1);
    const failed = machine("failed", { grant: grant([a], { at }), answer: answer("failed") });
    expect(given([pool("worker", [a], [failed])], 1)).toEqual(["failed"]);
  });

  test("a turn that is given back at once is not given again at once [pin-slots-20]", () => {
    const hostile = machine("hostile", { grant: grant([a]), answer: answer("unfinished") });
    expect(given([pool("worker", [a], [hostile])], 1, now + 1000)).toEqual([]);
    expect(given([pool("worker", [a], [hostile])], 1, now + 60_000)).toEqual(["hostile"]);
  });

  describe("and writes the times of its turns itself, after the controller gave it one", () => {
    const turns = new Map([["hostile", { at: now, sets: [a] }]]);
    const decide = (hostile: PinMachine, at: number) =>
      decideSlots([pool("worker", [a], [hostile, machine("z")])], 1, at, turns);

    test("it keeps a turn no longer for it [pin-slots-21]", () => {
      const over = now + slotSeconds * 1000 + 1;
      const hostile = machine("hostile", { grant: grant([a], { at: over }) });
      expect(decide(hostile, over - 2)).toMatchObject({ holders: 1, grants: [] });
      expect(decide(hostile, over)).toMatchObject({ holders: 0, grants: [{ node: "z" }] });
    });

    test.for([
      {
        title: "of long ago, and gives it back",
        hostile: { grant: grant([a], { at: 0 }), answer: answer("unfinished") },
      },
      {
        title: "of long ago, and says that it failed",
        hostile: { grant: grant([a], { at: 0 }), answer: answer("failed") },
      },
      { title: "of other sets", hostile: { grant: grant([b], { at: 0 }) } },
      { title: "that it removes", hostile: {} },
    ])("it is not the next one with a turn $title [pin-slots-22]", ({ hostile }) => {
      const own = machine("hostile", hostile);
      const alone = (at: number) => decideSlots([pool("worker", [a], [own])], 1, at, turns).grants;
      expect(alone(now + 59_999)).toEqual([]);
      expect(decideSlots([pool("worker", [a], [own])], 1, now, turns).again).toBe(now + 60_000);
      expect(alone(now + 60_000)).toHaveLength(1);
      // And another machine that had none, or an earlier one, goes before it.
      const other = machine("z", { grant: grant([b], { at: now - 86_400_000 }), answer: answer("done") });
      const next = decideSlots([pool("worker", [a], [own, other])], 1, now + 120_000, turns).grants;
      expect(next.map(({ node }) => node)).toEqual(["z"]);
    });

    test("it has new sets at once, as every other machine [pin-slots-23]", () => {
      const own = machine("hostile", { grant: grant([a]), answer: answer("done") });
      const { grants } = decideSlots([pool("worker", [b], [own])], 1, now + 1, turns);
      expect(grants.map(({ node }) => node)).toEqual(["hostile"]);
    });
  });
});
