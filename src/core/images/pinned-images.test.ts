import { describe, expect, test } from "vitest";
import { pinnedImageConditions } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { PinAnswer, PinGrant } from "./pin-grant.ts";
import {
  type PinPlan,
  type PinRecord,
  type PinView,
  type PinnedSet,
  decidePins,
  emptyPinRecord,
  forecastPins,
  parsePinRecord,
  pinAnswerOf,
  pinDropIn,
  pinFailureText,
  pinRecordText,
} from "./pinned-images.ts";
import { type PinReport, pausedConditions, pinnedStatus, withoutFalling } from "./pinned-status.ts";

const set = (name: string, generation = 1, uid = `uid-${name}`): PinnedSet => ({
  name,
  uid,
  generation,
  images: [`r.example.com/${name}@sha256:${"0".repeat(64)}`],
});
const [a, b] = [set("a"), set("b")];
const version = ({ name, uid, generation }: PinnedSet) => ({ name, uid, generation });
const grant = (...sets: readonly PinnedSet[]): PinGrant => ({ number: 2, at: 0, failures: 0, sets: sets.map(version) });
const answer = (is: PinAnswer["is"], of = 2): PinAnswer => ({ of, is });
const record = (...sets: readonly PinnedSet[]): PinRecord => ({ sets, reloadOwed: false });

describe("what a machine does about its pinned images", () => {
  const rows: readonly { readonly title: string; readonly view: Partial<PinView>; readonly plan: PinPlan }[] = [
    { title: "nothing was ever granted", view: {}, plan: { case: "nothing" } },
    {
      title: "all is as it was answered",
      view: { grant: grant(a), answer: answer("done"), record: record(a) },
      plan: { case: "nothing" },
    },
    { title: "a grant is new", view: { grant: grant(a) }, plan: { case: "fetch", grant: grant(a) } },
    {
      title: "an answer is of an older grant",
      view: { grant: grant(a), answer: answer("done", 1) },
      plan: { case: "fetch", grant: grant(a) },
    },
    {
      title: "an update is under way",
      view: { grant: grant(a), busy: true },
      plan: { case: "postpone", answer: answer("unfinished") },
    },
    {
      title: "an update is under way, and the answer is given",
      view: { grant: grant(a), busy: true, answer: answer("unfinished") },
      plan: { case: "nothing" },
    },
    {
      title: "all is there already, and only the answer is missing",
      view: { grant: grant(a), record: record(a), busy: true },
      plan: { case: "keep", sets: [a], answer: answer("done") },
    },
    {
      title: "a set leaves",
      view: { grant: grant(b), record: record(a, b) },
      plan: { case: "keep", sets: [b], answer: answer("done") },
    },
    {
      title: "a set leaves, and another one is new",
      view: { grant: grant(b), record: record(a) },
      plan: { case: "fetch", grant: grant(b) },
    },
    {
      title: "the grant is gone",
      view: { record: record(a) },
      plan: { case: "keep", sets: [], answer: undefined },
    },
    {
      title: "the list is not what it should be",
      view: { grant: grant(a), answer: answer("done"), record: record(a), listed: false },
      plan: { case: "keep", sets: [a], answer: undefined },
    },
    {
      title: "the engine has not read the list",
      view: { grant: grant(a), answer: answer("failed"), record: { sets: [a], reloadOwed: true } },
      plan: { case: "keep", sets: [a], answer: undefined },
    },
    {
      title: "an image is gone",
      view: { grant: grant(a), answer: answer("done"), record: record(a), lost: a.images },
      plan: { case: "postpone", answer: answer("unfinished") },
    },
    {
      title: "an image is gone, and its turn has come",
      view: { grant: grant(a), answer: answer("unfinished", 1), record: record(a), lost: a.images },
      plan: { case: "fetch", grant: grant(a) },
    },
    {
      title: "a set was created again",
      view: { grant: grant(set("a", 1, "new")), record: record(a) },
      plan: { case: "fetch", grant: grant(set("a", 1, "new")) },
    },
  ];
  test.for(rows)("$title [pinned-images-core-1]", ({ view, plan }) => {
    const nothing: PinView = {
      grant: undefined,
      answer: undefined,
      record: emptyPinRecord,
      listed: true,
      busy: false,
      lost: [],
    };
    expect(decidePins({ ...nothing, ...view })).toEqual(plan);
  });
});

test("the list is TOML with each image once, sorted; without images there is none [pinned-images-core-2]", () => {
  expect(pinDropIn(["x@sha256:1", "y@sha256:2"])).toBe(
    '# Written by machine-config-daemon: the PinnedImageSets of this machine\'s pool.\n[crio.image]\npinned_images = [\n  "x@sha256:1",\n  "y@sha256:2",\n]\n',
  );
  expect(pinDropIn([])).toBeUndefined();
});

test.for([
  {
    title: "a layer counts once",
    layers: [1, 1, 2],
    free: 1000,
    verdict: { verdict: "fits", fetchBytes: 300, needBytes: 610 },
  },
  { title: "just enough", layers: [1], free: 210, verdict: { verdict: "fits", fetchBytes: 100, needBytes: 210 } },
  {
    title: "one byte too few",
    layers: [1],
    free: 209,
    verdict: { verdict: "short", fetchBytes: 100, needBytes: 210, freeBytes: 209 },
  },
  {
    title: "nothing to fetch needs no reserve",
    layers: [],
    free: 0,
    verdict: { verdict: "fits", fetchBytes: 0, needBytes: 0 },
  },
])("a forecast: $title [pinned-images-core-3]", ({ layers, free, verdict }) => {
  const given = layers.map((digest) => ({ digest: `sha256:${digest}`, sizeBytes: digest * 100 }));
  expect(forecastPins(given, { freeBytes: free, reserveBytes: 10 })).toEqual(verdict);
  expect(forecastPins(given, undefined).verdict).toBe("fits");
});

test("a record is read as it was written; one that cannot be read has the list written again [pinned-images-core-4]", () => {
  expect(parsePinRecord(pinRecordText(record(a, b)))).toEqual(record(a, b));
  expect(parsePinRecord(undefined)).toEqual(emptyPinRecord);
  for (const text of ["", "{", "null", "[]", '{"v":2,"sets":[]}', '{"v":1,"sets":[{}]}', '{"v":1,"sets":[null]}'])
    expect(parsePinRecord(text)).toEqual({ sets: [], reloadOwed: true });
});

describe("what a machine reports", () => {
  const failure = { set: "a", index: 3, image: "x@sha256:1", code: "MCO_IMAGE_ABSENT", problem: "no" };
  const report = (also: Partial<PinReport> = {}): PinReport => ({
    grant: grant(a, b),
    complete: [],
    failures: [],
    underWay: undefined,
    ...also,
  });

  test("a failure names field, image and code; many are cut to the first ones [pinned-images-core-5]", () => {
    expect(pinAnswerOf(grant(a), [failure])).toEqual({
      of: 2,
      is: "failed",
      set: "a",
      field: "spec.pinnedImages[3].name",
      code: "MCO_IMAGE_ABSENT",
      problem: "x@sha256:1: no",
    });
    const many = Array.from({ length: 500 }, (_, index) => ({ ...failure, index, problem: "x".repeat(9999) }));
    expect(pinFailureText(many)).toMatch(/and 495 more$/);
    expect(pinFailureText(many).length).toBeLessThan(4096);
  });

  test("nothing changes where the status says it already [pinned-images-core-6]", () => {
    const first = pinnedStatus(undefined, report({ complete: [a, b] }), 0);
    expect(pinnedStatus(first, report({ complete: [a, b] }), 9000)).toBeUndefined();
  });

  test("while a failed machine tries again, its failure stands until it has the images [pinned-images-core-7]", () => {
    const failed = pinnedStatus(undefined, report({ complete: [b], failures: [failure] }), 0);
    const again = pinnedStatus(failed, report({ complete: [b], underWay: { images: 2, present: 1 } }), 1000);
    const is = (of: typeof failed, type: string) => conditionOf(of?.conditions, type)?.status;
    expect([is(again, pinnedImageConditions.progressing), is(again, pinnedImageConditions.degraded)]).toEqual([
      "True",
      "True",
    ]);
    expect(again?.pinnedImageSets?.[0]).toMatchObject({ lastFailedGeneration: 1 });
    const whole = pinnedStatus(again, report({ complete: [a, b] }), 2000);
    expect([is(whole, pinnedImageConditions.progressing), is(whole, pinnedImageConditions.degraded)]).toEqual([
      "False",
      "False",
    ]);
    expect(whole?.pinnedImageSets?.[0]).toEqual({ name: "a", desiredGeneration: 1, currentGeneration: 1 });
  });

  test("a turn that ends early says that the rest waits; nothing is said where nothing went on [pinned-images-core-8]", () => {
    const working = pinnedStatus(undefined, report({ underWay: { images: 2, present: 1 } }), 0);
    const paused = pausedConditions(working?.conditions ?? [], 1000);
    expect(conditionOf(paused, pinnedImageConditions.progressing)).toMatchObject({
      status: "False",
      reason: "AwaitsTurn",
      message: "1 of 2 images are on the machine",
    });
    expect(pausedConditions(paused ?? [], 2000)).toBeUndefined();
  });

  test("an entry whose generations fall leaves before it comes again [pinned-images-core-9]", () => {
    const before = pinnedStatus(undefined, report({ grant: grant(set("a", 7), b), complete: [set("a", 7), b] }), 0);
    const after = pinnedStatus(before, report({ grant: grant(set("a", 1, "new"), b), complete: [b] }), 0);
    expect(withoutFalling(before, after ?? {})?.map(({ name }) => name)).toEqual(["b"]);
    expect(withoutFalling(after, before ?? {})).toBeUndefined();
    expect(after?.pinnedImageSets?.[0]).toEqual({ name: "a", desiredGeneration: 1 });
  });
});
