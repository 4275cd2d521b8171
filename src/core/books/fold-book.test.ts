import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MachineStateChapter } from "../../api/books/machine-state-chapter.ts";
import { bookKinds, bookSections } from "../../api/books/report-table.ts";
import { LineWriter, bookOf, morning, toldUpdate } from "../../../test/support/line-writer.ts";
import { chapterRules } from "./chapter-rules.ts";
import { durationText, foldBook, isRepetition } from "./fold-book.ts";
import { jsonBytes } from "./journal.ts";

const book = "node/worker-0";
const update = { book, chapter: "Update", run: "rendered-worker-b" } as const;
const later = { now: morning + 600_000 };
const chaptersOf = (lines: Parameters<typeof foldBook>[1], now = later.now) => foldBook(book, lines, { now });

test("every chapter of the tables has a rule of how it ends, which names sections that it has [books-fold-book-6]", () => {
  for (const kind of bookKinds) {
    const rules = chapterRules[kind] as Record<
      string,
      { opens?: readonly string[]; closes: unknown; turns?: readonly string[]; recovers?: string }
    >;
    expect(Object.keys(rules)).toEqual(Object.keys(bookSections[kind]));
    for (const [chapter, { opens = [], closes, turns = [], recovers }] of Object.entries(rules)) {
      const sections = Object.keys((bookSections[kind] as Record<string, object>)[chapter] ?? {});
      for (const path of [
        ...opens,
        ...(Array.isArray(closes) ? (closes as string[]) : []),
        ...turns,
        ...(recovers === undefined ? [] : [recovers]),
      ])
        expect(sections, `${kind} ${chapter}`).toContain(path);
    }
  }
});

describe("an update that was told", () => {
  const { lines } = toldUpdate();
  const [chapter] = chaptersOf(lines);

  test("is one closed chapter with its cause, its ends, and how long the machine was away [books-fold-book-1]", () => {
    expect(chaptersOf(lines)).toHaveLength(1);
    expect(chapter).toMatchObject({
      book,
      chapter: "Update",
      run: "rendered-worker-b",
      pool: "worker",
      cause: { text: "MachineConfig 99-worker-ssh changed", by: "kubectl-client-side-apply" },
      from: { config: "rendered-worker-a" },
      to: { config: "rendered-worker-b" },
      startedAt: "2026-01-02T10:00:00Z",
      endedAt: "2026-01-02T10:02:04Z",
      duration: "2m04s",
      outOfServiceMs: 120_000,
      state: "Closed",
      outcome: "Succeeded",
      confidence: "Told",
      dropped: 0,
    });
    expect(chapter).not.toHaveProperty("next");
  });

  test("has its sections in the order in which they happen, each with both ends, and together no longer than the whole [books-fold-book-2]", () => {
    expect(chapter?.sections.map(({ path, durationMs, outcome }) => [path, durationMs, outcome])).toEqual([
      ["Requested", 1000, "Succeeded"],
      ["Prepared", 1000, "Succeeded"],
      ["Executed/Cordoned", 1000, "Succeeded"],
      ["Executed/Drained", 60_000, "Succeeded"],
      ["Executed/Files", 1000, "Succeeded"],
      ["PostAction/Rebooted", 56_000, "Succeeded"],
      ["Resumed", 0, "Succeeded"],
      ["Complete/Uncordoned", 1000, "Succeeded"],
      ["Updated", 0, "Succeeded"],
    ]);
    expect((chapter?.sections ?? []).reduce((sum, { durationMs = 0 }) => sum + durationMs, 0)).toBeLessThanOrEqual(
      chapter?.durationMs ?? 0,
    );
  });

  test("is as its kind says [books-fold-book-3]", () => {
    expect(
      MachineStateChapter.is({
        apiVersion: MachineStateChapter.apiVersion,
        kind: "MachineStateChapter",
        metadata: { name: "node.worker-0.000001" },
        spec: { number: 1, ...chapter },
      }),
    ).toBe(true);
  });

  test("is the same however the lines of its writers come, and however often [books-fold-book-4]", () => {
    const told = toldUpdate();
    fc.assert(
      fc.property(
        fc.shuffledSubarray([0, 1], { minLength: 2, maxLength: 2 }),
        fc.array(fc.nat(16), { maxLength: 6 }),
        (order, again) => {
          const journals = [told.daemon.lines, told.controller.lines];
          const all = [
            ...order.flatMap((index) => journals[index] ?? []),
            ...again.flatMap((index) => told.daemon.lines[index] ?? []),
          ];
          expect(chaptersOf(all)).toEqual(chaptersOf(told.lines));
        },
      ),
      { numRuns: 30 },
    );
  });

  test("says where it stands while it goes on [books-fold-book-5]", () => {
    const until = lines.filter(({ at }) => at <= morning + 30_000);
    expect(chaptersOf(until, morning + 30_000)).toMatchObject([
      {
        state: "Open",
        reason: "PodsBlocked",
        message: "default/web-1 is held by the budget default/web",
        next: expect.stringContaining("budget") as string,
      },
    ]);
    expect(chaptersOf(until, morning + 30_000)[0]?.sections.at(-1)).toEqual({
      path: "Executed/Drained",
      startedAt: "2026-01-02T10:00:03Z",
      reason: "PodsBlocked",
      message: "default/web-1 is held by the budget default/web",
      attempts: 1,
    });
  });
});

describe("chapters that do not end well", () => {
  test("a newer target closes the one under way, and opens its own", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    daemon.at(0, { ...update, path: "Prepared", mark: "begin", reason: "Checking" });
    daemon.at(1, { ...update, path: "Prepared", mark: "end", reason: "Planned" });
    daemon.at(2, { ...update, path: "Executed/Cordoned", mark: "begin", reason: "DrainRequested" });
    daemon.at(30, { ...update, run: "rendered-worker-c", path: "Prepared", mark: "begin", reason: "Checking" });
    const [first, second] = chaptersOf(daemon.lines);
    expect(first).toMatchObject({
      run: "rendered-worker-b",
      state: "Closed",
      outcome: "Superseded",
      reason: "Superseded",
      endedAt: "2026-01-02T10:00:30Z",
      durationMs: 30_000,
    });
    expect(first?.sections.at(-1)).toMatchObject({
      path: "Executed/Cordoned",
      outcome: "Superseded",
      inferred: true,
      durationMs: 28_000,
    });
    expect(second).toMatchObject({ run: "rendered-worker-c", state: "Open" });
  });

  test("that it was taken back, the machine and a controller may both tell: it is one end", () => {
    const [daemon, controller] = [new LineWriter("daemon", "worker-0"), new LineWriter("controller", "c", "pod-1")];
    controller.at(0, { ...update, path: "Requested", mark: "begin", reason: "TargetSet" });
    controller.at(5, { ...update, path: "Updated", mark: "end", outcome: "Superseded", reason: "Superseded" });
    daemon.at(6, { ...update, path: "Updated", mark: "end", outcome: "Superseded", reason: "Superseded" });
    const chapters = chaptersOf([...daemon.lines, ...controller.lines]);
    expect(chapters).toMatchObject([{ state: "Closed", outcome: "Superseded", endedAt: "2026-01-02T10:00:05Z" }]);
    expect(chapters[0]?.entries.filter(({ late }) => late !== undefined)).toEqual([]);
  });

  test("what comes for a chapter that is over is kept with the next one, and says whose it is", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    const controller = new LineWriter("controller", "c", "pod-1");
    daemon.at(0, { ...update, path: "Prepared", mark: "end", reason: "Planned" });
    daemon.at(30, { ...update, run: "rendered-worker-c", path: "Prepared", mark: "begin", reason: "Checking" });
    controller.at(31, { ...update, path: "Executed/Drained", mark: "end", reason: "Drained", message: "too late" });
    const chapters = chaptersOf([...daemon.lines, ...controller.lines]);
    expect(chapters).toHaveLength(2);
    expect(chapters[1]?.entries.at(-1)).toMatchObject({ msg: "too late", late: "Update rendered-worker-b" });
    expect(chapters[1]?.sections.map(({ path }) => path)).toEqual(["Prepared"]);
  });

  test("a daemon that ended in the middle went on: the section says both", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    daemon.at(0, { ...update, path: "Executed/Files", mark: "begin", reason: "Writing" });
    daemon.at(10, {
      ...update,
      path: "Executed/Files",
      mark: "retry",
      reason: "Interrupted",
      message: "the daemon came back",
    });
    expect(chaptersOf(daemon.lines)[0]?.sections).toMatchObject([
      { outcome: "Interrupted", attempts: 1, durationMs: 10_000 },
    ]);
    daemon.at(11, { ...update, path: "Executed/Files", mark: "begin", reason: "Writing" });
    daemon.at(12, { ...update, path: "Executed/Files", mark: "end", reason: "Written" });
    expect(chaptersOf(daemon.lines)[0]?.sections).toMatchObject([
      { outcome: "Succeeded", attempts: 2, durationMs: 12_000 },
    ]);
  });

  test("a failure is what the chapter says, until the next try is through", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    daemon.at(0, { ...update, path: "Executed/ImagePulled", mark: "begin", reason: "Pulling" });
    daemon.at(5, {
      ...update,
      path: "Executed/ImagePulled",
      mark: "fail",
      reason: "PullFailed",
      message: "registry away",
    });
    expect(chaptersOf(daemon.lines)[0]).toMatchObject({
      state: "Open",
      reason: "PullFailed",
      message: "registry away",
      next: expect.stringContaining("registry") as string,
    });
    daemon.at(15, { ...update, path: "Executed/ImagePulled", mark: "begin", reason: "Pulling" });
    daemon.at(16, { ...update, path: "Executed/ImagePulled", mark: "end", reason: "Pulled" });
    expect(chaptersOf(daemon.lines)[0]).toMatchObject({ state: "Open", reason: "Pulled" });
  });

  test("a machine that speaks with another boot id has rebooted, though nobody said so", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    daemon.at(0, { ...update, path: "PostAction/Rebooted", mark: "begin", reason: "RebootRequested" });
    daemon.reboot("boot-2", 30);
    daemon.at(50, { ...update, path: "Resumed", mark: "end", reason: "Resumed" });
    expect(chaptersOf(daemon.lines)[0]?.sections[0]).toMatchObject({
      path: "PostAction/Rebooted",
      outcome: "Succeeded",
      inferred: true,
      durationMs: 50_000,
    });
  });

  test("one that goes on by itself is abandoned after an hour of silence, and goes on when its writer speaks again", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    daemon.at(0, { ...update, path: "Prepared", mark: "end", reason: "Planned" });
    const state = (now: number) => chaptersOf(daemon.lines, now)[0]?.state;
    expect([state(morning + 3_600_000), state(morning + 3_600_001)]).toEqual(["Open", "Abandoned"]);
    daemon.at(7200, { ...update, path: "Executed/Files", mark: "begin", reason: "Writing" });
    expect(state(morning + 7_200_000)).toBe("Open");
  });

  test("what was seen from outside stands in for what nobody told, and says so", () => {
    const seen = new LineWriter("state", "state-x", "pod-9");
    seen.at(0, { ...update, path: "Requested", mark: "begin", reason: "TargetSet" });
    seen.at(60, { ...update, path: "Updated", mark: "end", reason: "Succeeded" });
    const lines = seen.lines.map((line) => ({ ...line, via: "seen" as const }));
    expect(chaptersOf(lines)).toMatchObject([{ confidence: "Observed", outcome: "Succeeded", durationMs: 60_000 }]);
  });
});

describe("clocks", () => {
  test("one that jumps back makes no duration negative and no order wrong [books-fold-book-9]", () => {
    fc.assert(
      fc.property(fc.integer({ min: -7_200_000, max: 7_200_000 }), fc.nat(15), (jump, from) => {
        const told = toldUpdate();
        const daemon = told.daemon.lines.map((line, index) => (index >= from ? { ...line, at: line.at + jump } : line));
        const [chapter] = chaptersOf([...daemon, ...told.controller.lines], morning + 20_000_000);
        expect(chapter?.durationMs).toBeGreaterThanOrEqual(0);
        for (const section of chapter?.sections ?? []) {
          expect(section.durationMs ?? 0).toBeGreaterThanOrEqual(0);
          expect(Date.parse(section.endedAt ?? "9999-01-01T00:00:00Z")).toBeGreaterThanOrEqual(
            Date.parse(section.startedAt),
          );
        }
        const seqs = (chapter?.entries ?? [])
          .filter(({ writer }) => writer.component === "daemon")
          .map(({ boot, seq }) => `${boot}/${String(seq).padStart(3, "0")}`);
        expect(seqs).toEqual(seqs.toSorted());
      }),
      { numRuns: 60 },
    );
  });

  test("an end that another clock puts before its beginning stands behind it, and the chapter says so [books-fold-book-10]", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    const controller = new LineWriter("controller", "c", "pod-1");
    controller.skewMs = -300_000;
    daemon.at(0, { ...update, path: "Executed/Cordoned", mark: "begin", reason: "DrainRequested" });
    controller.at(2, { ...update, path: "Executed/Cordoned", mark: "end", reason: "Cordoned" });
    expect(chaptersOf([...daemon.lines, ...controller.lines])).toMatchObject([
      {
        skew: true,
        startedAt: "2026-01-02T10:00:00Z",
        sections: [{ path: "Executed/Cordoned", outcome: "Succeeded", durationMs: 0 }],
      },
    ]);
  });
});

test("a machine that goes to one target twice, the first time without a drain, has a chapter for each time", () => {
  const first = new LineWriter("daemon", "worker-0", "boot-0");
  first.at(-602, { ...update, path: "Requested", mark: "end", reason: "TargetSeen" });
  for (const path of ["Executed/Cordoned", "Executed/Drained"] as const)
    first.at(-600, { ...update, path, mark: "skip", reason: "NotRequired" });
  first.at(-590, { ...update, path: "Updated", mark: "end", reason: "Succeeded" });
  const second = toldUpdate();
  expect(
    chaptersOf([...first.lines, ...second.lines]).map(({ run, state, outcome, startedAt, skew }) => ({
      run,
      state,
      outcome,
      startedAt,
      skew,
    })),
  ).toEqual([
    { run: update.run, state: "Closed", outcome: "Succeeded", startedAt: "2026-01-02T09:49:58Z", skew: undefined },
    { run: update.run, state: "Closed", outcome: "Succeeded", startedAt: "2026-01-02T10:00:00Z", skew: undefined },
  ]);
});

test("a machine that goes to one target twice, under two controllers, has a chapter for each time", () => {
  const daemon = new LineWriter("daemon", "worker-0");
  const first = toldUpdate({ daemon });
  const second = toldUpdate({
    daemon,
    startSeconds: 200,
    boot: "boot-3",
    controller: new LineWriter("controller", "machine-config-controller-y", "pod-2"),
  });
  expect(
    chaptersOf([...first.lines, ...second.lines]).map(({ state, outcome, startedAt, skew, sections }) => ({
      state,
      outcome,
      startedAt,
      skew,
      open: sections.filter(({ endedAt }) => endedAt === undefined),
    })),
  ).toEqual(
    ["2026-01-02T10:00:00Z", "2026-01-02T10:03:20Z"].map((startedAt) => ({
      state: "Closed",
      outcome: "Succeeded",
      startedAt,
      skew: undefined,
      open: [],
    })),
  );
});

describe("the life of a component", () => {
  test("is one chapter from a start or a change of health to the next", () => {
    const operator = new LineWriter("operator", "operator-x", "pod-1");
    const here = { book: "cluster", chapter: "Operator" } as const;
    operator.at(0, { ...here, path: "Start", mark: "begin", reason: "Started" });
    operator.at(10, { ...here, path: "Sync/RBAC", mark: "fail", reason: "SyncFailed", message: "forbidden" });
    operator.at(20, { ...here, path: "Degraded", mark: "fail", reason: "SyncFailing" });
    operator.at(90, { ...here, path: "Degraded", mark: "end", reason: "Recovered" });
    expect(
      foldBook("cluster", operator.lines, later).map(({ state, outcome, startedAt }) => [state, outcome, startedAt]),
    ).toEqual([
      ["Closed", "Failed", "2026-01-02T10:00:00Z"],
      ["Closed", "Failed", "2026-01-02T10:00:20Z"],
      ["Open", undefined, "2026-01-02T10:01:30Z"],
    ]);
  });
});

test("a process that ends closes its period, and another one that begins meanwhile opens its own", () => {
  const [a, b] = [new LineWriter("operator", "operator-a", "pod-1"), new LineWriter("operator", "operator-b", "pod-2")];
  const here = { book: "cluster", chapter: "Operator" } as const;
  a.at(0, { ...here, run: "a", path: "Start", mark: "begin", reason: "Started" });
  a.at(20, { ...here, run: "a", path: "Start", mark: "end", reason: "Stopped" });
  b.at(21, { ...here, run: "b", path: "Start", mark: "begin", reason: "Started" });
  b.at(25, { ...here, run: "b", path: "Sync/RBAC", mark: "fail", reason: "SyncFailed" });
  expect(
    foldBook("cluster", [...b.lines, ...a.lines], later).map(({ run, state, outcome, durationMs }) => [
      run,
      state,
      outcome,
      durationMs,
    ]),
  ).toEqual([
    ["a", "Closed", "Succeeded", 20_000],
    ["b", "Open", undefined, undefined],
  ]);
});

test("what a whole chapter is about ends with it, and nobody had to tell that", () => {
  const controller = new LineWriter("controller", "c", "pod-1");
  const here = { book: "pool/worker", chapter: "Rollout", run: "rendered-worker-b" } as const;
  controller.at(0, { ...here, path: "Begun", mark: "begin", reason: "TargetChanged" });
  controller.at(30, { ...here, path: "Node/worker-0", mark: "end", reason: "NodeUpdated" });
  controller.at(60, { ...here, path: "Finished", mark: "end", reason: "AllUpdated" });
  const [chapter] = foldBook("pool/worker", controller.lines, later);
  expect(chapter?.sections[0]).toEqual({
    path: "Begun",
    startedAt: "2026-01-02T10:00:00Z",
    endedAt: "2026-01-02T10:01:00Z",
    durationMs: 60_000,
    outcome: "Succeeded",
    reason: "TargetChanged",
    message: "",
    attempts: 1,
  });
});

test("a chapter of 10,000 lines is short enough for one object, and keeps sections, ends and failures [books-fold-book-8]", () => {
  const controller = new LineWriter("controller", "c", "pod-1");
  const here = { book: "pool/worker", chapter: "Rollout", run: "rendered-worker-b" } as const;
  controller.at(0, {
    ...here,
    path: "Begun",
    mark: "begin",
    reason: "TargetChanged",
    message: "the pool goes to rendered-worker-b",
  });
  for (let index = 0; index < 5000; index += 1) {
    const name = `worker-${index % 150}`;
    controller.at(index, {
      ...here,
      path: `Node/${name}`,
      mark: "begin",
      reason: "NodeTargeted",
      message: `${name} gets rendered-worker-b`,
    });
    if (index % 1000 === 7)
      controller.at(index, {
        ...here,
        path: `Node/${name}`,
        mark: "fail",
        reason: "NodeFailed",
        message: `${name} failed`,
      });
    else
      controller.at(index, {
        ...here,
        path: `Node/${name}`,
        mark: "end",
        reason: "NodeUpdated",
        message: `${name} has rendered-worker-b`,
      });
  }
  controller.at(5000, { ...here, path: "Finished", mark: "end", reason: "AllUpdated" });
  const [chapter, ...more] = foldBook("pool/worker", controller.lines, { now: morning + 6_000_000 });
  expect(more).toEqual([]);
  expect(jsonBytes(chapter)).toBeLessThanOrEqual(64 * 1024);
  expect(chapter?.sections).toHaveLength(152);
  expect(chapter?.entries.filter(({ mark }) => mark === "fail")).toHaveLength(5);
  expect([chapter?.entries[0]?.path, chapter?.entries.at(-1)?.path]).toEqual(["Begun", "Finished"]);
  expect((chapter?.entries.length ?? 0) + (chapter?.dropped ?? 0)).toBe(10_002);
  expect(chapter?.folded?.map(({ path, count }) => [path, count])).toEqual([["Node", chapter?.dropped]]);
});

test("whatever is told folds into chapters that their kind accepts [books-fold-book-7]", () => {
  const anyLine = fc
    .constantFrom(...bookKinds)
    .chain((kind) =>
      fc.constantFrom(
        ...Object.entries(bookSections[kind]).flatMap(([chapter, sections]) =>
          Object.entries(sections as Record<string, readonly string[]>).flatMap(([path, reasons]) =>
            reasons.map((reason) => ({ kind, chapter, path: path.replace("*", "x"), reason })),
          ),
        ),
      ),
    );
  const writer = fc.record({
    writer: fc.nat(2),
    seconds: fc.nat(5000),
    mark: fc.constantFrom("begin", "note", "end", "fail", "skip", "retry"),
    run: fc.constantFrom("a", "b", undefined),
  });
  fc.assert(
    fc.property(fc.array(fc.tuple(anyLine, writer), { maxLength: 40 }), (told) => {
      const writers = [
        new LineWriter("daemon", "worker-0"),
        new LineWriter("controller", "c", "pod-1"),
        new LineWriter("operator", "o", "pod-2"),
      ];
      for (const [{ kind, chapter, path, reason }, { writer, seconds, mark, run }] of told)
        writers[writer]?.at(seconds, {
          book: bookOf[kind],
          chapter,
          path,
          reason,
          mark,
          ...(run === undefined ? {} : { run }),
        } as never);
      for (const kind of bookKinds) {
        const chapters = foldBook(
          bookOf[kind],
          writers.flatMap(({ lines }) => lines),
          { now: morning + 9_000_000 },
        );
        for (const chapter of chapters) {
          expect(
            MachineStateChapter.is({
              apiVersion: MachineStateChapter.apiVersion,
              kind: "MachineStateChapter",
              metadata: { name: "x" },
              spec: { number: 1, ...chapter },
            }),
          ).toBe(true);
          expect(chapter.sections.every(({ durationMs = 0 }) => durationMs >= 0)).toBe(true);
        }
        const lines = writers.flatMap(({ lines: each }) => each).filter((line) => line.book === bookOf[kind]);
        const total = chapters.reduce((sum, { entries, dropped }) => sum + entries.length + dropped, 0);
        // All are there, but for those that only say again that something was superseded.
        expect(total).toBeLessThanOrEqual(lines.length);
        expect(total).toBeGreaterThanOrEqual(lines.filter((line) => !isRepetition(line)).length);
      }
    }),
    { numRuns: 100 },
  );
});

test("durations are said as people say them", () => {
  expect([5, 999, 1000, 61_000, 3_661_000, 90_000_000, 1_000_000_000].map(durationText)).toEqual([
    "5ms",
    "999ms",
    "1s",
    "1m01s",
    "1h01m",
    "25h00m",
    "11d13h",
  ]);
});
