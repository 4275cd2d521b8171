import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MachineStateChapter } from "../../api/books/machine-state-chapter.ts";
import { bookKinds, bookSections } from "../../api/books/report-table.ts";
import { LineWriter, bookOf, morning, reportedUpdate } from "../../../test/support/line-writer.ts";
import { chapterRules } from "./chapter-rules.ts";
import { closedChapter, durationText, foldBook, isRepetition } from "./fold-book.ts";
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

describe("a reported update", () => {
  const { lines } = reportedUpdate();
  const [chapter] = chaptersOf(lines);

  test("is one closed chapter with its cause, its begin and end, and the machine's downtime [books-fold-book-1]", () => {
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

  test("is the same for any order and repetition of its writers' lines [books-fold-book-4]", () => {
    const told = reportedUpdate();
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

  test("shows its progress while it is open [books-fold-book-5]", () => {
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
  test("a newer target closes the open chapter, and opens its own", () => {
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

  test("an update that the machine goes on with is not superseded by a target that was only set [books-fold-book-11]", () => {
    const [daemon, controller] = [new LineWriter("daemon", "worker-0"), new LineWriter("controller", "c", "pod-1")];
    const to = (run: string) => ({ ...update, run }) as const;
    for (const [seconds, run] of [
      [1.1, "b"],
      [1.2, "c"],
      [2.6, "d"],
    ] as const)
      controller.at(seconds, { ...to(run), path: "Requested", mark: "begin", reason: "TargetSet" });
    for (const [seconds, run] of [
      [1.3, "b"],
      [1.6, "c"],
    ] as const) {
      daemon.at(seconds, { ...to(run), path: "Requested", mark: "end", reason: "TargetSeen" });
      daemon.at(seconds, { ...to(run), path: "Prepared", mark: "begin", reason: "Checking" });
      daemon.at(seconds + 0.2, { ...to(run), path: "Updated", mark: "end", reason: "Succeeded", outcome: "Succeeded" });
    }
    daemon.at(2.7, { ...to("d"), path: "Prepared", mark: "begin", reason: "Checking" });
    expect(chaptersOf([...controller.lines, ...daemon.lines])).toMatchObject([
      { run: "b", state: "Closed", outcome: "Succeeded", endedAt: "2026-01-02T10:00:01Z" },
      { run: "c", state: "Closed", outcome: "Succeeded", endedAt: "2026-01-02T10:00:01Z" },
      { run: "d", state: "Open" },
    ]);
  });

  test("an update that the machine leaves for a newer target has ended when it did", () => {
    const [daemon, controller] = [new LineWriter("daemon", "worker-0"), new LineWriter("controller", "c", "pod-1")];
    controller.at(0, { ...update, path: "Requested", mark: "begin", reason: "TargetSet" });
    controller.at(1, { ...update, run: "c", path: "Requested", mark: "begin", reason: "TargetSet" });
    daemon.at(2, { ...update, path: "Prepared", mark: "begin", reason: "Checking" });
    daemon.at(5, { ...update, run: "c", path: "Prepared", mark: "begin", reason: "Checking" });
    expect(chaptersOf([...controller.lines, ...daemon.lines])).toMatchObject([
      { run: update.run, state: "Closed", outcome: "Superseded", endedAt: "2026-01-02T10:00:02Z" },
      { run: "c", state: "Open" },
    ]);
  });

  test("a machine that joins with what it was given meanwhile needs no update [books-fold-book-14]", () => {
    const [daemon, controller] = [new LineWriter("daemon", "worker-0"), new LineWriter("controller", "c", "pod-1")];
    const join = { book, chapter: "Join", path: "Validated", mark: "end", reason: "Validated" } as const;
    const chaptersWith = (config: string) => {
      daemon.lines.length = 0;
      daemon.at(2, { ...join, data: { config } });
      return chaptersOf([...controller.lines, ...daemon.lines]).map(({ chapter, state, outcome }) => [
        chapter,
        state,
        outcome,
      ]);
    };
    controller.at(1, { ...update, path: "Requested", mark: "begin", reason: "TargetSet" });
    expect(chaptersWith(update.run)).toEqual([
      ["Update", "Closed", "NotRequired"],
      ["Join", "Closed", "Succeeded"],
    ]);
    expect(chaptersWith("rendered-worker-a")).toContainEqual(["Update", "Open", undefined]);
  });

  test("a request that comes late, once the chapter of the joining is closed, opens none for long [books-fold-book-15]", () => {
    const [daemon, controller] = [new LineWriter("daemon", "worker-0"), new LineWriter("controller", "c", "pod-1")];
    daemon.at(2, {
      book,
      chapter: "Join",
      path: "Validated",
      mark: "end",
      reason: "Validated",
      data: { config: update.run },
    });
    const [join] = chaptersOf(daemon.lines);
    if (join === undefined) throw new Error("no chapter");
    const closed = [closedChapter({ ...join, number: 1 })];
    const late = (seconds: number) => {
      controller.lines.length = 0;
      controller.at(seconds, { ...update, path: "Requested", mark: "begin", reason: "TargetSet" });
      return foldBook(book, controller.lines, { ...later, closed }).map(({ state, outcome }) => [state, outcome]);
    };
    expect(late(1)).toEqual([["Closed", "NotRequired"]]);
    expect(late(30)).toEqual([["Open", undefined]]);
  });

  test("a withdrawal reported by the machine and by a controller is one end", () => {
    const [daemon, controller] = [new LineWriter("daemon", "worker-0"), new LineWriter("controller", "c", "pod-1")];
    controller.at(0, { ...update, path: "Requested", mark: "begin", reason: "TargetSet" });
    controller.at(5, { ...update, path: "Updated", mark: "end", outcome: "Superseded", reason: "Superseded" });
    daemon.at(6, { ...update, path: "Updated", mark: "end", outcome: "Superseded", reason: "Superseded" });
    const chapters = chaptersOf([...daemon.lines, ...controller.lines]);
    expect(chapters).toMatchObject([{ state: "Closed", outcome: "Superseded", endedAt: "2026-01-02T10:00:05Z" }]);
    expect(chapters[0]?.entries.filter(({ late }) => late !== undefined)).toEqual([]);
  });

  test("a late line of a closed chapter is kept with the next one, and marked with its origin", () => {
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

  test("a section with nothing to do did not succeed: it was not required [books-fold-book-13]", () => {
    const [daemon, controller] = [new LineWriter("daemon", "worker-0"), new LineWriter("controller", "c", "pod-1")];
    daemon.at(1, { ...update, path: "Prepared", mark: "end", reason: "Planned" });
    daemon.at(2, { ...update, path: "PostAction/Service", mark: "end", reason: "None" });
    controller.at(3, { ...update, path: "Complete/Uncordoned", mark: "end", reason: "CordonStays" });
    expect(
      chaptersOf([...daemon.lines, ...controller.lines])[0]?.sections.map(({ path, outcome }) => [path, outcome]),
    ).toEqual([
      ["Prepared", "Succeeded"],
      ["PostAction/Service", "NotRequired"],
      ["Complete/Uncordoned", "NotRequired"],
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

  test("a new boot id means a reboot, even without a report", () => {
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

  test("a self-advancing chapter is abandoned after an hour without lines, and continues with the next one", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    daemon.at(0, { ...update, path: "Prepared", mark: "end", reason: "Planned" });
    const state = (now: number) => chaptersOf(daemon.lines, now)[0]?.state;
    expect([state(morning + 3_600_000), state(morning + 3_600_001)]).toEqual(["Open", "Abandoned"]);
    daemon.at(7200, { ...update, path: "Executed/Files", mark: "begin", reason: "Writing" });
    expect(state(morning + 7_200_000)).toBe("Open");
  });

  test("observed lines replace missing reports, and are marked as observed", () => {
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
        const told = reportedUpdate();
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

  test("an end that another clock dates before its beginning is put after it, and the chapter reports that [books-fold-book-10]", () => {
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

test("what an observer saw begin later than it was answered is no clock that does not fit [books-fold-book-17]", () => {
  const daemon = new LineWriter("daemon", "worker-0");
  const observer = new LineWriter("state", "s", "pod-1");
  daemon.at(0, { ...update, path: "Requested", mark: "end", reason: "TargetSeen" });
  daemon.at(1, { ...update, path: "Executed/Files", mark: "begin", reason: "Writing" });
  const saw = observer.at(4, { ...update, path: "Requested", mark: "begin", reason: "TargetSet" });
  expect(chaptersOf([...daemon.lines, { ...saw, via: "seen" }])).toMatchObject([
    { startedAt: "2026-01-02T10:00:00Z", entries: [{ path: "Requested" }, { path: "Executed/Files" }] },
  ]);
  const [chapter] = chaptersOf([...daemon.lines, { ...saw, via: "seen" }]);
  expect(chapter?.skew).toBe(undefined);
});

describe("a target that is chosen, replaced and chosen again, while the controller's first line of it is lost", () => {
  const other = { ...update, run: "rendered-worker-other" };
  const requested = { path: "Requested", mark: "begin", reason: "TargetSet" } as const;
  const seen = { path: "Requested", mark: "end", reason: "TargetSeen" } as const;
  const writing = { path: "Executed/Files", mark: "begin", reason: "Writing" } as const;
  const written = { path: "Executed/Files", mark: "end", reason: "Written" } as const;
  const drained = { path: "Executed/Drained", mark: "end", reason: "Drained" } as const;

  test.each<{ title: string; tell: (daemon: LineWriter, controller: LineWriter) => void }>([
    {
      title: "the machine had gone on to the other one",
      tell: (daemon, controller) => {
        controller.at(40, { ...other, ...requested });
        daemon.at(45, { ...other, ...seen });
        controller.at(90, { ...update, ...requested });
      },
    },
    {
      title: "the machine was down while the other one was chosen",
      tell: (_daemon, controller) => {
        controller.at(5, { ...update, ...drained });
        controller.at(40, { ...other, ...requested });
        controller.at(50, { ...update, ...requested });
      },
    },
    {
      title: "the machine saw it again, and it is chosen a third time",
      tell: (daemon, controller) => {
        controller.at(40, { ...other, ...requested });
        daemon.at(45, { ...other, ...seen });
        controller.at(90, { ...update, ...requested });
        daemon.at(92, { ...update, ...seen });
        controller.at(100, { ...other, ...requested });
        controller.at(110, { ...update, ...requested });
      },
    },
  ])("$title: what the daemon did first stays at its time [books-fold-book-16]", ({ tell }) => {
    const daemon = new LineWriter("daemon", "worker-0");
    const controller = new LineWriter("controller", "c", "pod-1");
    daemon.at(0, { ...update, ...seen });
    daemon.at(3, { ...update, ...writing });
    daemon.at(4, { ...update, ...written });
    tell(daemon, controller);
    const chapters = chaptersOf([...daemon.lines, ...controller.lines]);
    const files = chapters.flatMap(({ run, startedAt, sections }) =>
      sections.flatMap(({ path, endedAt }) => (path === "Executed/Files" ? [`${run} ${startedAt} ${endedAt}`] : [])),
    );
    expect(files).toEqual([`${update.run} 2026-01-02T10:00:00Z 2026-01-02T10:00:04Z`]);
    expect(chapters.some(({ skew }) => skew === true)).toBe(false);
  });
});

test("a machine that gets one target twice, first without a drain, has a chapter for each update", () => {
  const first = new LineWriter("daemon", "worker-0", "boot-0");
  first.at(-602, { ...update, path: "Requested", mark: "end", reason: "TargetSeen" });
  for (const path of ["Executed/Cordoned", "Executed/Drained"] as const)
    first.at(-600, { ...update, path, mark: "skip", reason: "NotRequired" });
  first.at(-590, { ...update, path: "Updated", mark: "end", reason: "Succeeded" });
  const second = reportedUpdate();
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

test("a machine that gets one target twice, under two controllers, has a chapter for each update", () => {
  const daemon = new LineWriter("daemon", "worker-0");
  const first = reportedUpdate({ daemon });
  const second = reportedUpdate({
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

test("a chapter's open sections end with it, without a report", () => {
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
      reason: "NodeUpdated",
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

test("any sequence of reports folds into valid chapters [books-fold-book-7]", () => {
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

test("a chapter of 5,000 sections that failed is short enough for one object [books-fold-book-12]", () => {
  const daemon = new LineWriter("daemon", "worker-0");
  daemon.at(0, { ...update, path: "Requested", mark: "begin", reason: "TargetSet" });
  for (let index = 0; index < 5000; index += 1)
    daemon.at(index, {
      ...update,
      path: `Executed/${index}` as "Executed/Files",
      mark: "fail",
      reason: "Failed" as "Written",
      message: "m".repeat(1000),
    });
  const [chapter] = chaptersOf(daemon.lines);
  expect(chapter?.sections.length).toBeLessThanOrEqual(1000);
  expect(chapter?.sections[0]).toMatchObject({ path: "Requested" });
  expect(jsonBytes(chapter)).toBeLessThan(256 * 1024);
});
