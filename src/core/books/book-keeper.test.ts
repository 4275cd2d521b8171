import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JournalLine } from "../../api/books/journal-line.ts";
import { MachineStateChapter } from "../../api/books/machine-state-chapter.ts";
import { LineWriter, morning, reportedUpdate } from "../../../test/support/line-writer.ts";
import {
  BookKeeper,
  type ChapterChange,
  bookObjectName,
  chapterObjectName,
  healthWord,
  lateLinesMs,
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
    for (const change of keeper.dueWrites(now, "worker")) {
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
    const { lines } = reportedUpdate();
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

  test("that was stored as two, by what an onlooker saw, becomes one when its writers have told of it [books-book-keeper-8]", () => {
    const next = { ...update, run: "rendered-worker-c" } as const;
    const controller = new LineWriter("controller", "c", "pod-1");
    const daemon = new LineWriter("daemon", "worker-0");
    const onlooker = new LineWriter("state", "s", "pod-2");
    controller.at(0, { ...update, path: "Requested", mark: "begin", reason: "TargetSet" });
    controller.at(0.4, { ...next, path: "Requested", mark: "begin", reason: "TargetSet" });
    // The phase is the first target's, and its time has no fractions.
    const seen = onlooker.at(0.1, { ...next, path: "Prepared", mark: "end", reason: "Planned" });
    daemon.at(0.5, { ...update, path: "Requested", mark: "end", reason: "TargetSeen" });
    daemon.at(0.6, { ...next, path: "Requested", mark: "end", reason: "TargetSeen" });
    const keeper = new BookKeeper(book);
    const bookObjects = new BookObjects();
    keeper.take([...controller.lines, { ...seen, via: "seen" }, ...daemon.lines], morning + 700);
    bookObjects.keep(keeper, morning + 700);
    expect([...bookObjects.chapters.values()].map(({ number, run }) => `${number} ${run}`)).toEqual([
      "1 rendered-worker-b",
      "2 rendered-worker-c",
      "3 rendered-worker-b",
    ]);

    daemon.at(1, { ...next, path: "Prepared", mark: "end", reason: "Planned" });
    daemon.at(2, { ...next, path: "Updated", mark: "end", reason: "Succeeded" });
    keeper.take(daemon.lines, morning + 2500);
    bookObjects.keep(keeper, morning + 2500);
    const wait = keeper.nextWriteInMs(morning + 2500) ?? expect.fail("nothing is scheduled");
    expect(wait).toBeLessThanOrEqual(lateLinesMs);
    bookObjects.keep(keeper, morning + 2500 + wait);
    bookObjects.keep(keeper, morning + 2500 + wait);
    expect(
      [...bookObjects.chapters.values()].map(({ number, run, state, outcome, entries }) =>
        [number, run, state, outcome, entries.length].join(" "),
      ),
    ).toEqual([
      "1 rendered-worker-b Closed Superseded 2",
      "2 rendered-worker-c Closed Succeeded 4",
      "3 rendered-worker-b Closed NotRequired 0",
    ]);
    expect([keeper.isAtRest, keeper.counters]).toEqual([
      true,
      { chapters: 2, "Update/Superseded": 1, "Update/Succeeded": 1 },
    ]);
  });

  test("waits for what others have to say of it, and not for ever", () => {
    const { daemon, controller } = reportedUpdate();
    const end = morning + 124_000;
    const silent = new BookKeeper(book);
    silent.take(daemon.lines, end);
    expect(silent.dueWrites(end)).toMatchObject([{ do: "open", chapter: { state: "Open" } }]);
    expect(silent.nextWriteInMs(end)).toBe(lateLinesMs);
    expect(silent.dueWrites(end + lateLinesMs)).toMatchObject([
      { do: "close", chapter: { state: "Closed", outcome: "Succeeded" } },
    ]);

    const told = new BookKeeper(book);
    told.take(daemon.lines, end);
    told.take(controller.lines, end + 5000);
    expect(told.dueWrites(end + 5000)).toMatchObject([
      {
        do: "close",
        isNew: true,
        chapter: { sections: expect.arrayContaining([expect.objectContaining({ path: "Requested" })]) as unknown },
      },
    ]);
  });

  test("waits for the daemon's own last words when its end is only seen", () => {
    const { daemon, controller } = reportedUpdate();
    const end = morning + 124_000;
    const onlooker = new LineWriter("state", "nodes", "pod-9");
    const over = {
      ...onlooker.at(124, { ...update, path: "Updated", mark: "end", reason: "Succeeded" }),
      via: "seen" as const,
    };
    const keeper = new BookKeeper(book);
    keeper.take([...controller.lines, ...daemon.lines.slice(0, 8), over], end);
    expect(keeper.dueWrites(end)).toMatchObject([{ do: "open" }]);
    keeper.take(daemon.lines, end + 1000);
    expect(keeper.dueWrites(end + 1000)).toMatchObject([
      {
        do: "close",
        chapter: {
          confidence: "Told",
          sections: expect.arrayContaining([expect.objectContaining({ path: "Resumed" })]) as unknown,
        },
      },
    ]);
  });

  test("is not reopened by a late line", () => {
    const { daemon, controller } = reportedUpdate();
    const bookObjects = new BookObjects();
    const keeper = new BookKeeper(book);
    keeper.take(daemon.lines, morning);
    bookObjects.keep(keeper, morning + lateLinesMs);
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

test("targets that follow each other faster than the machine reports leave no chapter open [books-book-keeper-3]", () => {
  const [daemon, controller] = [new LineWriter("daemon", "worker-0"), new LineWriter("controller", "c", "pod-1")];
  const bookObjects = new BookObjects();
  const keeper = new BookKeeper(book);
  const take = (seconds: number, ...lines: readonly JournalLine[]) => {
    keeper.take(lines, morning + seconds * 1000);
    bookObjects.keep(keeper, morning + seconds * 1000);
  };
  const to = (run: string) => ({ ...update, run }) as const;
  const set = (seconds: number, run: string) =>
    take(seconds, controller.at(seconds, { ...to(run), path: "Requested", mark: "begin", reason: "TargetSet" }));
  const linesOf = (seconds: number, run: string) => [
    daemon.at(seconds, { ...to(run), path: "Requested", mark: "end", reason: "TargetSeen" }),
    daemon.at(seconds + 0.1, { ...to(run), path: "Updated", mark: "end", reason: "Succeeded", outcome: "Succeeded" }),
  ];
  set(1.1, "b");
  set(1.2, "c");
  set(2.6, "d");
  // The journal of the machine arrives when it has done all of it.
  take(9, ...linesOf(1.3, "b"), ...linesOf(1.6, "c"), ...linesOf(2.7, "d"));
  expect([...bookObjects.chapters.values()].map(({ run, state, outcome }) => [run, state, outcome])).toEqual([
    ["b", "Closed", "Succeeded"],
    ["c", "Closed", "Succeeded"],
    ["d", "Closed", "Succeeded"],
  ]);
  expect(keeper.isAtRest).toBe(true);
});

test("a chapter closes after those of its kind that began before it: none is left open for good [books-book-keeper-4]", () => {
  const [daemon, controller] = [new LineWriter("daemon", "worker-0"), new LineWriter("controller", "c", "pod-1")];
  const bookObjects = new BookObjects();
  const keeper = new BookKeeper(book);
  const later = { ...update, run: "c" } as const;
  daemon.at(1, { ...update, path: "Requested", mark: "end", reason: "TargetSeen" });
  daemon.at(2, { ...update, path: "Updated", mark: "end", reason: "Succeeded", outcome: "Succeeded" });
  controller.at(3, { ...later, path: "Requested", mark: "begin", reason: "TargetSet" });
  daemon.at(4, { ...later, path: "Updated", mark: "end", reason: "Succeeded", outcome: "Succeeded" });
  keeper.take([...daemon.lines, ...controller.lines], morning + 9000);
  bookObjects.keep(keeper, morning + 9000);
  expect([...bookObjects.chapters.values()].map(({ state }) => state)).toEqual(["Open", "Open"]);
  bookObjects.keep(keeper, morning + 9000 + lateLinesMs);
  expect([...bookObjects.chapters.values()].map(({ run, state }) => [run, state])).toEqual([
    [update.run, "Closed"],
    ["c", "Closed"],
  ]);
});

test("a line that finds no chapter is no news each time that the journal repeats it [books-book-keeper-9]", () => {
  const controller = new LineWriter("controller", "c", "pod-1");
  controller.at(0, { ...update, path: "Executed/Cordoned", mark: "end", reason: "Cordoned" });
  controller.at(1, { ...update, run: "rendered-worker-c", path: "Updated", mark: "end", reason: "Superseded" });
  const keeper = new BookKeeper(book);
  const bookObjects = new BookObjects();
  const pass = (seconds: number) => {
    const isNews = keeper.take(controller.lines, morning + seconds * 1000);
    bookObjects.keep(keeper, morning + seconds * 1000);
    return isNews;
  };
  expect([2, 6, 10, 14, 18].map(pass)).toEqual([true, false, false, false, false]);
  expect(keeper.nextWriteInMs(morning + 18_000)).toBeGreaterThan(lateLinesMs);
});

test("a chapter that turned another one stays, also for a keeper that starts again [books-book-keeper-10]", () => {
  const state = new LineWriter("state", "health", "life-1");
  const health = { book: "cluster", chapter: "Controller", path: "Degraded" } as const;
  const seen = (seconds: number, mark: "fail" | "end", reason: "NotAvailable" | "Recovered") => ({
    ...state.at(seconds, { ...health, mark, reason }),
    via: "seen" as const,
  });
  const lines = [seen(1.2, "fail", "NotAvailable"), seen(1.7, "end", "Recovered")];
  const bookObjects = new BookObjects();
  const told = () => [...bookObjects.chapters.values()].map(({ state: is, outcome }) => [is, outcome].join(" ").trim());
  let keeper = new BookKeeper("cluster");
  for (const seconds of [2, 10, 60]) {
    keeper.take(lines, morning + seconds * 1000);
    bookObjects.keep(keeper, morning + seconds * 1000);
  }
  expect(told()).toEqual(["Closed Failed", "Open"]);
  keeper = new BookKeeper("cluster", bookObjects.kept());
  for (const seconds of [61, 120]) bookObjects.keep(keeper, morning + seconds * 1000);
  expect(told()).toEqual(["Closed Failed", "Open"]);
});

test.for([
  { started: 1, recovered: 1.058 },
  { started: 1.058, recovered: 1 },
  { started: 1, recovered: 1 },
])(
  "a start at $started s and a recovery seen at $recovered s are two chapters, whichever is heard first [books-book-keeper-12]",
  ({ started, recovered }) => {
    for (const isStartFirst of [true, false]) {
      const builder = new LineWriter("os-builder", "b", "pod-1");
      const state = new LineWriter("state", "health", "life-1");
      const life = { book: "cluster", chapter: "OsBuilder" } as const;
      const start = builder.at(started, { ...life, run: "b", path: "Start", mark: "begin", reason: "Started" });
      const seen = state.at(recovered, { ...life, path: "Degraded", mark: "end", reason: "Recovered" });
      const heard = isStartFirst
        ? [start, { ...seen, via: "seen" as const }]
        : [{ ...seen, via: "seen" as const }, start];
      const keeper = new BookKeeper("cluster");
      const bookObjects = new BookObjects();
      const pass = (seconds: number, lines: readonly JournalLine[]) => {
        keeper.take(lines, morning + seconds * 1000);
        bookObjects.keep(keeper, morning + seconds * 1000);
      };
      pass(2, heard.slice(0, 1));
      for (const seconds of [3, 4, 30, 60, 90]) pass(seconds, heard);
      const told = [...bookObjects.chapters.values()];
      expect(told.map(({ run }) => run).toSorted()).toEqual(["", "b"]);
      expect(told.map(({ state: is, outcome }) => outcome ?? is).toSorted()).toEqual(["Open", "Succeeded"]);
      expect(told.flatMap(({ entries }) => entries)).toHaveLength(2);
    }
  },
);

test("a keeper that starts again puts what is stored of a later boot behind the journal's lines of an earlier one [books-book-keeper-11]", () => {
  const [daemon, controller] = [new LineWriter("daemon", "worker-0"), new LineWriter("controller", "c", "pod-1")];
  const to = (run: string) => ({ ...update, run }) as const;
  const set = (seconds: number, run: string) =>
    controller.at(seconds, { ...to(run), path: "Requested", mark: "begin", reason: "TargetSet" });
  const seen = (seconds: number, run: string) =>
    daemon.at(seconds, { ...to(run), path: "Requested", mark: "end", reason: "TargetSeen" });
  const done = (seconds: number, run: string) =>
    daemon.at(seconds, { ...to(run), path: "Updated", mark: "end", reason: "Succeeded", outcome: "Succeeded" });
  const bookObjects = new BookObjects();
  const before = new BookKeeper(book);
  before.take([set(1, "b")], morning + 1000);
  bookObjects.keep(before, morning + 1000);
  seen(2, "b");
  done(3, "b");
  daemon.reboot("boot-2", 4);
  before.take([set(5, "c"), seen(6, "c")], morning + 6000);
  bookObjects.keep(before, morning + 6000);
  done(7, "c");
  const lines = [...controller.lines, ...daemon.lines];
  const after = new BookKeeper(book, bookObjects.kept());
  after.take(lines, morning + 8000);
  for (const seconds of [8, 30]) bookObjects.keep(after, morning + seconds * 1000);
  expect([...bookObjects.chapters.values()].map(({ run, outcome, skew }) => [run, outcome, skew])).toEqual([
    ["b", "Succeeded", undefined],
    ["c", "Succeeded", undefined],
  ]);
});

test("a late line is in one chapter only, however often and through whichever keeper the journal delivers it", () => {
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
  const first = reportedUpdate({ run: "rendered-worker-b" });
  const writers = { daemon: first.daemon, controller: first.controller };
  const second = reportedUpdate({ run: "rendered-worker-c", startSeconds: 1000, boot: "boot-3", ...writers });
  const third = reportedUpdate({ run: "rendered-worker-b", startSeconds: 2000, boot: "boot-4", ...writers });
  for (const { lines } of [first, second, third]) {
    keeper.take(lines, lines.at(-1)?.at ?? 0);
    bookObjects.keep(keeper, (lines.at(-1)?.at ?? 0) + lateLinesMs);
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
  bookObjects.keep(keeper, morning + 90_000 + lateLinesMs);
  expect(bookObjects.chapters.get(1)).toMatchObject({ state: "Closed", missed: 7 });
});

test("at any change of keepers, no line is lost or repeated, and closed chapters stay unchanged [books-book-keeper-1]", () => {
  const writers = {
    daemon: new LineWriter("daemon", "worker-0"),
    controller: new LineWriter("controller", "c", "pod-1"),
  };
  const all: JournalLine[] = [1, 2, 3]
    .flatMap((turn) => [
      ...reportedUpdate({
        run: `rendered-worker-${turn}`,
        startSeconds: turn * 1000,
        boot: `boot-${turn + 1}`,
        ...writers,
      }).lines,
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
        bookObjects.keep(keeper, morning + 9_000_000 + lateLinesMs);
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

describe("a machine that reports without end", () => {
  const writer = { component: "daemon", instance: "worker-0" } as const;
  const lines = (from: number, count: number, more: Partial<JournalLine> = {}): JournalLine[] =>
    Array.from({ length: count }, (_, index) => ({
      v: 1,
      writer,
      boot: "boot-1",
      seq: from + index,
      at: morning + from + index,
      mono: from + index,
      book,
      chapter: "Update",
      run: "a",
      path: from + index === 1 ? "Requested" : `Executed/${from + index}`,
      mark: from + index === 1 ? "begin" : "fail",
      level: "boundary",
      reason: "Failed",
      msg: "",
      via: "told",
      ...more,
    }));

  test("has so many lines of an open chapter in memory, and the others count as dropped [books-book-keeper-5]", () => {
    const keeper = new BookKeeper(book);
    const many = 20_000;
    for (let from = 1; from <= many; from += 256) keeper.take(lines(from, 256), morning);
    const [change, ...others] = keeper.dueWrites(morning + many);
    expect(others).toEqual([]);
    const { entries, dropped, sections } = change?.chapter ?? { entries: [], dropped: 0, sections: [] };
    // Each line has a section of its own.
    expect(sections.length).toBeLessThanOrEqual(512);
    expect(sections[0]).toMatchObject({ path: "Requested" });
    expect(entries.length + dropped).toBeGreaterThanOrEqual(many);
  });

  test("has so many lines of closed chapters in memory, and those of others come beside them [books-book-keeper-6]", () => {
    const keeper = new BookKeeper(book);
    const one = { chapter: "Certificates", run: undefined as never, path: "Rotated", mark: "end" } as const;
    for (let from = 1; from <= 5000; from += 250) keeper.take(lines(from, 250, one), morning);
    expect(keeper.dueWrites(morning + 5000).length).toBeLessThanOrEqual(2000);
    const controller = new LineWriter("controller", "controller-0", "pod-1");
    keeper.take(
      [controller.at(10, { book, chapter: "Rollback", path: "Decided", mark: "begin", reason: "WentBack" })],
      morning,
    );
    expect(keeper.dueWrites(morning + 5000).some(({ chapter }) => chapter.chapter === "Rollback")).toBe(true);
  });

  test("invents few kinds of chapters [books-book-keeper-7]", () => {
    const keeper = new BookKeeper(book);
    for (let index = 1; index <= 500; index += 1)
      keeper.take(lines(index, 1, { chapter: `Invented${index}`, mark: "begin" }), morning);
    expect(keeper.dueWrites(morning + 1000).length).toBeLessThanOrEqual(20);
  });
});
