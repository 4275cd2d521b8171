import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JournalLine } from "../../api/books/journal-line.ts";
import { MachineStateChapter } from "../../api/books/machine-state-chapter.ts";
import { LineWriter, morning, toldUpdate } from "../../../test/support/line-writer.ts";
import {
  BookKeeper,
  type ChapterChange,
  bookObjectName,
  chapterObjectName,
  healthWord,
  settleMs,
} from "./book-keeper.ts";
import { foldBook } from "./fold-book.ts";

const book = "node/worker-0";
const update = { book, chapter: "Update", run: "rendered-worker-b" } as const;
type Chapter = ChapterChange["chapter"];

/** A store of chapters that counts what is written and refuses what the API server refuses. */
class BookObjects {
  readonly chapters = new Map<number, Chapter>();
  writes = 0;

  keep(keeper: BookKeeper, now: number, survives: () => boolean = () => true): void {
    for (const change of keeper.look(now, "worker")) {
      const before = this.chapters.get(change.chapter.number);
      expect(change.isNew).toBe(before === undefined);
      expect(before?.state).not.toBe("Closed");
      expect(before?.chapter ?? change.chapter.chapter).toBe(change.chapter.chapter);
      this.chapters.set(change.chapter.number, structuredClone(change.chapter));
      this.writes += 1;
      if (!survives()) return;
      keeper.written(change);
    }
  }

  kept(counters: Readonly<Record<string, number>> = {}) {
    return { chapters: [...this.chapters.values()], through: [], lastNumber: 0, counters };
  }
}

describe("one update", () => {
  test("is written when it opens and when it closes, and says the same as a fold of everything [books-book-keeper-2]", () => {
    const { lines } = toldUpdate();
    const bookObjects = new BookObjects();
    const keeper = new BookKeeper(book);
    for (const line of lines.toSorted((a, b) => a.at - b.at)) {
      keeper.take([line], line.at);
      bookObjects.keep(keeper, line.at);
    }
    expect(bookObjects.writes).toBe(2);
    const [chapter] = foldBook(book, lines, { now: morning + 600_000, pool: "worker" });
    expect([...bookObjects.chapters.values()]).toEqual([{ ...chapter, number: 1 }]);
    expect([keeper.isAtRest, keeper.counters]).toEqual([true, { chapters: 1, "Update/Succeeded": 1 }]);
  });

  test("waits for what others have to say of it, and not for ever", () => {
    const { daemon, controller } = toldUpdate();
    const end = morning + 124_000;
    const silent = new BookKeeper(book);
    silent.take(daemon.lines, end);
    expect(silent.look(end)).toMatchObject([{ do: "open", chapter: { state: "Open" } }]);
    expect(silent.nextLook(end)).toBe(settleMs);
    expect(silent.look(end + settleMs)).toMatchObject([
      { do: "close", chapter: { state: "Closed", outcome: "Succeeded" } },
    ]);

    const told = new BookKeeper(book);
    told.take(daemon.lines, end);
    told.take(controller.lines, end + 5000);
    expect(told.look(end + 5000)).toMatchObject([
      {
        do: "close",
        isNew: true,
        chapter: { sections: expect.arrayContaining([expect.objectContaining({ path: "Requested" })]) as unknown },
      },
    ]);
  });

  test("waits for the daemon's own last words when its end is only seen", () => {
    const { daemon, controller } = toldUpdate();
    const end = morning + 124_000;
    const onlooker = new LineWriter("state", "nodes", "pod-9");
    const over = {
      ...onlooker.at(124, { ...update, path: "Updated", mark: "end", reason: "Succeeded" }),
      via: "seen" as const,
    };
    const keeper = new BookKeeper(book);
    keeper.take([...controller.lines, ...daemon.lines.slice(0, 8), over], end);
    expect(keeper.look(end)).toMatchObject([{ do: "open" }]);
    keeper.take(daemon.lines, end + 1000);
    expect(keeper.look(end + 1000)).toMatchObject([
      {
        do: "close",
        chapter: {
          confidence: "Told",
          sections: expect.arrayContaining([expect.objectContaining({ path: "Resumed" })]) as unknown,
        },
      },
    ]);
  });

  test("is not opened again by a line that comes when it is closed", () => {
    const { daemon, controller } = toldUpdate();
    const bookObjects = new BookObjects();
    const keeper = new BookKeeper(book);
    keeper.take(daemon.lines, morning);
    bookObjects.keep(keeper, morning + settleMs);
    keeper.take(controller.lines, morning + 200_000);
    bookObjects.keep(keeper, morning + 200_000);
    bookObjects.keep(keeper, morning + 900_000);
    expect(bookObjects.writes).toBe(1);
    const drift = new LineWriter("daemon", "worker-0", "boot-2");
    for (let index = 0; index < 20; index += 1)
      drift.at(300, { book, chapter: "Drift", path: "Detected", mark: "begin", reason: "ConfigDrift" });
    keeper.take(drift.lines.slice(-1), morning + 300_000);
    bookObjects.keep(keeper, morning + 300_000);
    expect([...bookObjects.chapters.values()].map(({ number, chapter, state }) => [number, chapter, state])).toEqual([
      [1, "Update", "Closed"],
      [2, "Drift", "Open"],
    ]);
    expect(bookObjects.chapters.get(2)?.entries.filter(({ late }) => late === "Update 1")).toHaveLength(
      controller.lines.length,
    );
  });
});

test("what came late stands in one chapter only, however often the journal offers it and whoever keeps the book", () => {
  const bookObjects = new BookObjects();
  let keeper = new BookKeeper("cluster");
  const [operator, controller] = [new LineWriter("operator", "o", "pod-1"), new LineWriter("controller", "c", "pod-2")];
  const life = { book: "cluster", chapter: "Operator" } as const;
  operator.at(0, { ...life, run: "a", path: "Start", mark: "begin", reason: "Started" });
  operator.at(10, { ...life, run: "b", path: "Start", mark: "begin", reason: "Started" });
  const look = (now: number) => {
    keeper.take([...operator.lines, ...controller.lines], now);
    bookObjects.keep(keeper, now);
  };
  look(morning + 10_000);
  operator.at(11, { ...life, run: "a", path: "Lead", mark: "end", reason: "Stopped" } as never);
  for (let round = 0; round < 4; round += 1) {
    controller.at(20 + round, {
      book: "cluster",
      chapter: "Controller",
      run: `c${round}`,
      path: "Start",
      mark: "begin",
      reason: "Started",
    });
    look(morning + (20 + round) * 1000);
    if (round === 2) keeper = new BookKeeper("cluster", bookObjects.kept());
  }
  operator.at(40, { ...life, run: "b", path: "Start", mark: "end", reason: "Stopped" });
  look(morning + 40_000);
  expect(
    [...bookObjects.chapters.values()].flatMap(({ number, entries }) =>
      entries.flatMap(({ late }) => (late === undefined ? [] : [`${number} ${late}`])),
    ),
  ).toEqual(["2 Operator 1"]);
});

test("the same target again, after another one, is another chapter", () => {
  const bookObjects = new BookObjects();
  const keeper = new BookKeeper(book);
  const first = toldUpdate({ run: "rendered-worker-b" });
  const writers = { daemon: first.daemon, controller: first.controller };
  const second = toldUpdate({ run: "rendered-worker-c", startSeconds: 1000, boot: "boot-3", ...writers });
  const third = toldUpdate({ run: "rendered-worker-b", startSeconds: 2000, boot: "boot-4", ...writers });
  for (const { lines } of [first, second, third]) {
    keeper.take(lines, lines.at(-1)?.at ?? 0);
    bookObjects.keep(keeper, (lines.at(-1)?.at ?? 0) + settleMs);
  }
  expect(
    [...bookObjects.chapters.values()].map(({ number, run, outcome, startedAt }) => [number, run, outcome, startedAt]),
  ).toEqual([
    [1, "rendered-worker-b", "Succeeded", "2026-01-02T10:00:00Z"],
    [2, "rendered-worker-c", "Succeeded", "2026-01-02T10:16:40Z"],
    [3, "rendered-worker-b", "Succeeded", "2026-01-02T10:33:20Z"],
  ]);
});

test("a writer that vanished and speaks again is two more writes, and one chapter", () => {
  const daemon = new LineWriter("daemon", "worker-0");
  const bookObjects = new BookObjects();
  const keeper = new BookKeeper(book);
  keeper.take([daemon.at(0, { ...update, path: "Prepared", mark: "end", reason: "Planned" })], morning);
  bookObjects.keep(keeper, morning);
  bookObjects.keep(keeper, morning + 3_700_000);
  expect(bookObjects.chapters.get(1)?.state).toBe("Abandoned");
  keeper.take(
    [daemon.at(7200, { ...update, path: "Executed/Files", mark: "begin", reason: "Writing" })],
    morning + 7_200_000,
  );
  bookObjects.keep(keeper, morning + 7_200_000);
  expect([bookObjects.chapters.get(1)?.state, bookObjects.chapters.size, bookObjects.writes]).toEqual(["Open", 1, 3]);
});

test("lines that are known to be lost are counted in the chapter that was open", () => {
  const daemon = new LineWriter("daemon", "worker-0");
  const keeper = new BookKeeper(book);
  const bookObjects = new BookObjects();
  keeper.take([daemon.at(0, { ...update, path: "Prepared", mark: "end", reason: "Planned" })], morning);
  bookObjects.keep(keeper, morning);
  keeper.miss(7);
  keeper.take([daemon.at(90, { ...update, path: "Updated", mark: "end", reason: "Succeeded" })], morning + 90_000);
  bookObjects.keep(keeper, morning + 90_000 + settleMs);
  expect(bookObjects.chapters.get(1)).toMatchObject({ state: "Closed", missed: 7 });
});

test("whenever the keeper ends and another goes on, no line is lost or told twice, and closed chapters stay as they are [books-book-keeper-1]", () => {
  const writers = {
    daemon: new LineWriter("daemon", "worker-0"),
    controller: new LineWriter("controller", "c", "pod-1"),
  };
  const all: JournalLine[] = [1, 2, 3]
    .flatMap((turn) => [
      ...toldUpdate({ run: `rendered-worker-${turn}`, startSeconds: turn * 1000, boot: `boot-${turn + 1}`, ...writers })
        .lines,
    ])
    .toSorted((a, b) => a.at - b.at);
  fc.assert(
    fc.property(
      fc.array(
        fc.record({ take: fc.integer({ min: 1, max: 9 }), dies: fc.constantFrom("no", "no", "between", "afterWrite") }),
        { minLength: 5, maxLength: 40 },
      ),
      (steps) => {
        const bookObjects = new BookObjects();
        let keeper = new BookKeeper(book, bookObjects.kept());
        let told = 0;
        const ring = () => all.slice(Math.max(0, told - 60), told);
        for (const { take, dies } of [...steps, { take: all.length, dies: "no" as const }]) {
          told = Math.min(all.length, told + take);
          const now = (all[told - 1]?.at ?? morning) + 100;
          keeper.take(ring(), now);
          bookObjects.keep(keeper, now, () => dies !== "afterWrite");
          if (dies !== "no") keeper = new BookKeeper(book, bookObjects.kept());
        }
        keeper.take(ring(), morning + 9_000_000);
        bookObjects.keep(keeper, morning + 9_000_000 + settleMs);
        const chapters = [...bookObjects.chapters.values()].sort((a, b) => a.number - b.number);
        expect(chapters.map(({ run, state, outcome }) => [run, state, outcome])).toEqual(
          [1, 2, 3].map((turn) => [`rendered-worker-${turn}`, "Closed", "Succeeded"]),
        );
        expect(chapters.map(({ entries }) => entries.length)).toEqual([1, 2, 3].map(() => all.length / 3));
        for (const spec of chapters)
          expect(
            MachineStateChapter.is({
              apiVersion: MachineStateChapter.apiVersion,
              kind: "MachineStateChapter",
              metadata: { name: "x" },
              spec,
            }),
          ).toBe(true);
      },
    ),
    { numRuns: 60 },
  );
});

test("names of objects are names, however long the subject's is", () => {
  expect([bookObjectName("cluster"), chapterObjectName("node/worker-0", 42)]).toEqual([
    "cluster",
    "node.worker-0.000042",
  ]);
  const [a, b] = ["a", "b"].map((end) => chapterObjectName(`build/${"x".repeat(252)}${end}`, 1));
  expect(a?.length).toBeLessThanOrEqual(253);
  expect(a).not.toBe(b);
});

test("the word for how something is names the worst that is open, then what did not end well", () => {
  const chapter = (number: number, kind: string, state: Chapter["state"], outcome?: Chapter["outcome"]) => ({
    number,
    chapter: kind,
    state,
    ...(outcome === undefined ? {} : { outcome }),
  });
  expect(healthWord([])).toBe("Idle");
  expect(healthWord([chapter(1, "Degraded", "Open"), chapter(2, "Update", "Open")])).toBe("Degraded");
  expect(healthWord([chapter(1, "Update", "Open")])).toBe("Update");
  expect(healthWord([chapter(1, "Update", "Closed", "Succeeded")])).toBe("Idle");
  expect(healthWord([chapter(1, "Update", "Closed", "RolledBack")])).toBe("UpdateRolledBack");
});
