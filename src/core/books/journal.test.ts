import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JournalLine } from "../../api/books/journal-line.ts";
import { MachineStateJournal } from "../../api/books/machine-state-journal.ts";
import {
  admittedLines,
  appendLines,
  diskLineBytes,
  lineOf,
  numberAfter,
  objectLineBytes,
  ringLimits,
} from "./journal.ts";

const writer = { component: "daemon", instance: "worker-0", node: "worker-0" };
const line = (seq: number, more: Partial<JournalLine> = {}): JournalLine => ({
  v: 1,
  writer,
  boot: "boot-1",
  seq,
  at: 1000 + seq,
  mono: seq,
  book: "node/worker-0",
  chapter: "Update",
  run: "rendered-a",
  path: "Prepared",
  mark: "end",
  level: "boundary",
  reason: "Planned",
  msg: `line ${seq}`,
  via: "told",
  ...more,
});
const empty = { lines: [], last: [] };
const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length;

/** What the API server makes of it. */
function patched(
  spec: MachineStateJournal["spec"],
  operations: NonNullable<ReturnType<typeof appendLines>>["operations"],
): MachineStateJournal["spec"] {
  const object = structuredClone(spec);
  for (const { op, path, value } of operations) {
    if (path === "/spec/lines/0" && op === "remove") object.lines.shift();
    else if (path === "/spec/lines/-") object.lines.push(value as JournalLine);
    else if (path === "/spec/last") object.last = [...(value as typeof object.last)];
    else throw new Error(`${op} ${path}`);
  }
  return object;
}

describe("a line", () => {
  test("is numbered so that a missing boundary line is missed, and others are not", () => {
    expect(
      [{ seq: 3 }, { seq: 3, sub: 2 }].map((last) => [numberAfter(last, "boundary"), numberAfter(last, "debug")]),
    ).toEqual([
      [{ seq: 4 }, { seq: 3, sub: 1 }],
      [{ seq: 4 }, { seq: 3, sub: 3 }],
    ]);
  });

  test("is never longer on disk than 2 KiB, whatever it says", () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 4000, unit: "grapheme" }),
        fc.dictionary(fc.string({ maxLength: 20 }), fc.string({ maxLength: 3000 }), { maxKeys: 30 }),
        (message, data) => {
          const made = lineOf(
            {
              book: "node/a",
              chapter: "Update",
              path: "Prepared",
              mark: "end",
              level: "boundary",
              reason: "Planned",
              message,
              data,
            },
            { writer, boot: "b", number: { seq: 1 }, at: 1, mono: 1 },
          );
          expect(bytes(made)).toBeLessThanOrEqual(diskLineBytes);
          expect(made).toMatchObject({ book: "node/a", chapter: "Update", path: "Prepared", reason: "Planned" });
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("the ring of a journal", () => {
  test("takes each boundary line once, in order, also when it is offered again [books-journal-2]", () => {
    const first = appendLines(undefined, [line(1), line(1, { level: "progress", sub: 1 }), line(2)]);
    expect(first?.spec.lines.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(appendLines(first?.spec, [line(1), line(2)])).toBeUndefined();
    expect(appendLines(first?.spec, [line(2), line(3)])?.spec.lines.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  test("knows the lines of an earlier boot still when a later one has spoken [books-journal-3]", () => {
    const both = appendLines(undefined, [line(1), line(2), line(1, { boot: "boot-2" })]);
    expect(appendLines(both?.spec, [line(2), line(1, { boot: "boot-2" })])).toBeUndefined();
  });

  test("holds 200 lines and 128 KiB, sends new lines only, and stays the same as its patch [books-journal-4]", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 90 }), fc.integer({ min: 0, max: 3000 })), {
          minLength: 1,
          maxLength: 8,
        }),
        (batches) => {
          let spec: MachineStateJournal["spec"] = empty;
          let seq = 0;
          for (const [count, length] of batches) {
            const lines = Array.from({ length: count }, () => line((seq += 1), { msg: "x".repeat(length) }));
            const append = appendLines(spec, lines);
            expect(append?.added).toBe(count);
            expect(patched(spec, append?.operations ?? [])).toEqual(append?.spec);
            spec = append?.spec ?? spec;
            expect(spec.lines.length).toBeLessThanOrEqual(ringLimits.lines);
            expect(bytes(spec)).toBeLessThanOrEqual(128 * 1024);
            expect(spec.lines.at(-1)?.seq).toBe(seq);
            expect(spec.lines.every((each) => bytes(each) <= objectLineBytes)).toBe(true);
            expect(spec.last).toEqual([{ component: "daemon", instance: "worker-0", boot: "boot-1", seq }]);
          }
        },
      ),
      { numRuns: 30 },
    );
  });
});

test("a node's journal contains lines about that node only [books-journal-1]", () => {
  const journal = (name: string) => ({
    metadata: { name },
    spec: { lines: [line(1), line(2, { book: "node/worker-1" }), line(3, { book: "pool/worker" })], last: [] },
  });
  expect(admittedLines(journal("node-worker-0"))).toMatchObject({ lines: [{ seq: 1 }], foreign: 2 });
  expect(admittedLines(journal("controller"))).toMatchObject({
    lines: [{ seq: 1 }, { seq: 2 }, { seq: 3 }],
    foreign: 0,
  });
});

test.for<{ readonly what: string; readonly more: Partial<JournalLine> }>([
  { what: "of another component", more: { writer: { component: "controller", instance: "worker-0" } } },
  { what: "of another machine's daemon", more: { writer: { component: "daemon", instance: "worker-1" } } },
  { what: "with a time that no calendar has", more: { at: 9_000_000_000_000_000 } },
  { what: "with a number that is not exact", more: { mono: 2 ** 60 } },
  { what: "of a chapter that no label can name", more: { chapter: "Up date" } },
  {
    what: "with more details than a daemon writes",
    more: { data: Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`k${index}`, ""])) },
  },
  {
    what: "that is too long",
    more: { data: { a: "x".repeat(1024), b: "y".repeat(1024), c: "z".repeat(1024), d: "x".repeat(1024) } },
  },
])("a node's journal contains no line $what [books-journal-5]", ({ more }) => {
  const journal = (name: string) => ({ metadata: { name }, spec: { lines: [line(1), line(2, more)], last: [] } });
  expect(admittedLines(journal("node-worker-0"))).toMatchObject({ lines: [{ seq: 1 }], foreign: 1 });
  expect(admittedLines(journal("controller")).foreign).toBe(0);
});

test("a line that repeats what a machine wrote is one that a journal takes [books-journal-6]", () => {
  const long = "x".repeat(250_000);
  const made = lineOf(
    {
      book: "node/worker-0",
      chapter: "Update",
      run: long,
      path: `Node/${"n".repeat(253)}` as "Requested",
      mark: "begin",
      level: "boundary",
      reason: "TargetSet",
      message: long,
      data: { from: long, to: long },
    },
    { writer, boot: "boot-1", number: { seq: 1 }, at: 1, mono: 1 },
  );
  const spec = appendLines(undefined, [made])?.spec ?? empty;
  expect(spec.lines).toHaveLength(1);
  expect(
    MachineStateJournal.is({
      apiVersion: MachineStateJournal.apiVersion,
      kind: "MachineStateJournal",
      metadata: { name: "controller" },
      spec,
    }),
  ).toBe(true);
});

test("a journal is as its kind says", () => {
  const spec =
    appendLines(undefined, [
      line(1, {
        data: { a: "b" },
        refs: [{ kind: "Node", name: "worker-0" }],
        next: { action: "look", actor: "administrator" },
      }),
    ])?.spec ?? empty;
  expect(
    MachineStateJournal.is({
      apiVersion: MachineStateJournal.apiVersion,
      kind: "MachineStateJournal",
      metadata: { name: "node-worker-0" },
      spec,
    }),
  ).toBe(true);
});
