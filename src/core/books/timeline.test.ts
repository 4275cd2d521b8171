import { describe, expect, test } from "vitest";
import { LineWriter, morning, reportedUpdate } from "../../../test/support/line-writer.ts";
import type { Chapter } from "../../api/books/machine-state-chapter.ts";
import { foldBook } from "./fold-book.ts";
import { barClasses, drawTimeline, timelineOf, timelineOfBook } from "./timeline.ts";

const now = morning + 600_000;
const moved = (chapter: Chapter, seconds: number): Chapter => {
  const later = (time: string) => new Date(Date.parse(time) + seconds * 1000).toISOString();
  return {
    ...chapter,
    startedAt: later(chapter.startedAt),
    ...(chapter.endedAt === undefined ? {} : { endedAt: later(chapter.endedAt) }),
    sections: chapter.sections.map((section) => ({
      ...section,
      startedAt: later(section.startedAt),
      ...(section.endedAt === undefined ? {} : { endedAt: later(section.endedAt) }),
    })),
  };
};
const chapters = (...told: Parameters<typeof foldBook>[1][]): readonly Chapter[] =>
  foldBook("node/worker-0", told.flat(), { now }).map((record, index) => ({ ...record, number: index + 1 }));
const [update] = chapters(reportedUpdate().lines);
if (update === undefined) throw new Error("no chapter");
const isOver = { now, width: 100 };

describe("the chart of a pool", () => {
  test("has a row for each machine, a letter for what each moment was spent on, and says what letters mean [books-timeline-1]", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    daemon.at(300, {
      book: "node/worker-0",
      chapter: "Degraded",
      path: "Failed",
      mark: "fail",
      reason: "UpdateFailed",
    });
    const books = new Map([
      ["worker-0", [update]],
      ["worker-1", [moved(update, 140)]],
      ["worker-2", chapters(daemon.lines)],
      ["worker-3", []],
    ]);
    expect(
      drawTimeline(timelineOf("pool/worker", books, { now: morning + 420_000 }), {
        ...isOver,
        now: morning + 420_000,
      }).join("\n"),
    ).toMatchInlineSnapshot(`
      "pool/worker: 2026-01-02 10:00:00Z to 10:07:00Z, 7m00s; one column is 7s

      worker-0  dddddddddRRRRRRRRRu                                            Update Succeeded in 2m04s
      worker-1                      ddddddddddRRRRRRRRu                        Update Succeeded in 2m04s
      worker-2                                             !!!!!!!!!!!!!!!!!!  Degraded, under way
      worker-3
                10:00:00                                             10:07:00

      u put back into service   d cordoned, drained   R rebooting   ! degraded, drifted, lost, gone back"
    `);
  });

  test("begins where it is asked to, and leaves out what was over by then [books-timeline-2]", () => {
    const books = new Map([
      ["worker-0", [update]],
      ["worker-1", [moved(update, 140)]],
    ]);
    const timeline = timelineOf("pool/worker", books, { now, sinceMs: 440_000 });
    expect(timeline.from).toBe(morning + 160_000);
    expect(timeline.rows.map(({ bars }) => bars.length > 0)).toEqual([false, true]);
  });

  test("begins with the newest roll-out by default, and shows other events meanwhile [books-timeline-3]", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    daemon.at(-80_000, {
      book: "node/worker-0",
      chapter: "Drift",
      path: "Detected",
      mark: "begin",
      reason: "ConfigDrift",
    });
    const older = { ...moved(update, -7200), run: "rendered-worker-a" };
    const timeline = timelineOf(
      "pool/worker",
      new Map([
        ["worker-0", [older, update]],
        ["worker-1", [older, moved(update, 140)]],
        ["worker-2", chapters(daemon.lines)],
      ]),
      { now },
    );
    expect(timeline.from).toBe(morning);
    expect(timeline.rows.map(({ state }) => state)).toEqual([
      "Update Succeeded in 2m04s",
      "Update Succeeded in 2m04s",
      "Drift, under way",
    ]);
    expect(drawTimeline(timeline, isOver).find((line) => line.startsWith("worker-2"))).toMatch(/^worker-2 {2}!+ /);
  });

  test("of 500 machines fits on a screen: neighbours in time share a row, and a machine in trouble is seen [books-timeline-4]", () => {
    const failed = {
      ...moved(update, 900),
      outcome: "Failed" as const,
      sections: moved(update, 900).sections.map((section) =>
        section.path === "Executed/Files" ? { ...section, outcome: "Failed" as const } : section,
      ),
    };
    const books = new Map(
      Array.from(
        { length: 500 },
        (_, index) =>
          [`worker-${index}`, [index === 333 ? failed : moved(update, Math.floor(index / 50) * 130)]] as const,
      ),
    );
    const lines = drawTimeline(timelineOf("pool/worker", books, { now: morning + 3_600_000 }), {
      now: morning + 3_600_000,
      width: 120,
      rows: 25,
    });
    const rows = lines.filter((line) => line.startsWith("worker-"));
    expect(rows).toHaveLength(25);
    expect(rows.every((line) => line.length <= 120)).toBe(true);
    expect(rows.filter((line) => line.includes("!"))).toHaveLength(1);
    expect(rows[0]).toMatch(/^worker-0 … worker-19 \(20\) .*20 Update Succeeded$/);
  });

  test("has colours only where it is asked for them, and then the same letters [books-timeline-5]", () => {
    const timeline = timelineOf("pool/worker", new Map([["worker-0", [update]]]), { now });
    const plain = drawTimeline(timeline, isOver);
    const coloured = drawTimeline(timeline, { ...isOver, colours: true });
    expect(plain.join("")).not.toContain("\u001b");
    expect(coloured.join("\n")).toContain(`\u001b[${barClasses.reboot.colour}mR`);
    // oxlint-disable-next-line no-control-regex
    expect(coloured.map((line) => line.replaceAll(/\u001b\[\d+m/g, ""))).toEqual(plain);
  });

  test.for([{}, { sinceMs: 3_600_000 }])(
    "has the other machines beside one that writes of a time to come, with %j [books-timeline-9]",
    (options) => {
      const others = [
        ["worker-0", [update]],
        ["worker-1", [moved(update, 140)]],
      ] as const;
      const years = (Date.parse("9999-12-30T00:00:00Z") - morning) / 1000;
      const toCome = { ...moved(update, years), run: "rendered-worker-x" };
      const open = { ...toCome, startedAt: update.startedAt, state: "Open" as const };
      const alone = timelineOf("pool/worker", new Map(others), { now, ...options });
      for (const strange of [toCome, open]) {
        const timeline = timelineOf("pool/worker", new Map([...others, ["worker-9", [strange]]]), { now, ...options });
        expect(timeline.rows.slice(0, 2)).toEqual(alone.rows);
        expect([timeline.from, timeline.to <= now + 1]).toEqual([alone.from, true]);
        expect(drawTimeline(timeline, isOver)[0]).toMatch(/^pool\/worker: 2026-01-02 10:00:00Z to 10:\d\d:\d\dZ, /);
      }
    },
  );

  test("of more sections than one call takes is drawn [books-timeline-10]", () => {
    const many = Array.from({ length: 25 }, (_, at) => moved(update, at));
    const books = new Map(Array.from({ length: 1_000 }, (_, at) => [`worker-${at}`, many] as const));
    const timeline = timelineOf("pool/worker", books, { now });
    expect(timeline.rows.reduce((sum, { bars }) => sum + bars.length, 0)).toBeGreaterThan(150_000);
    expect([timeline.from, timeline.to]).toEqual([morning, morning + 124_000 + 24_000 + 1]);
  });

  test("without chapters says so [books-timeline-6]", () => {
    expect(drawTimeline(timelineOf("pool/worker", new Map([["worker-0", []]]), { now }), isOver)).toEqual([
      "pool/worker: nothing is known of this time",
    ]);
  });
});

describe("the chart of one book", () => {
  test("has a row for each step of its last chapters, with its duration [books-timeline-7]", () => {
    expect(drawTimeline(timelineOfBook("node/worker-0", [update], { now }), { ...isOver, width: 90 }).join("\n"))
      .toMatchInlineSnapshot(`
      "node/worker-0: 2026-01-02 10:00:00Z to 10:02:04Z, 2m04s; one column is 3s

      #1 Update              dddddddddddddddddddaRRRRRRRRRRRRRRRRRu  Update Succeeded in 2m04s
        Requested            p                                       1s
        Prepared             p                                       1s
        Executed/Cordoned    d                                       1s
        Executed/Drained     dddddddddddddddddddd                    1m00s
        Executed/Files                          a                    1s
        PostAction/Rebooted                     RRRRRRRRRRRRRRRRRRR  56s
        Resumed                                                   u  0ms
        Complete/Uncordoned                                       u  1s
        Updated                                                   u  0ms
                             10:00:00                      10:02:04

      p asked for, checked   u put back into service   a files, OS   d cordoned, drained
      R rebooting"
    `);
  });

  test("extends to the present while a chapter is open [books-timeline-8]", () => {
    const open = chapters(reportedUpdate().lines.filter(({ at }) => at <= morning + 30_000));
    const timeline = timelineOfBook("node/worker-0", open, { now: morning + 90_000 });
    expect([timeline.from, timeline.to]).toEqual([morning, morning + 90_001]);
    expect(timeline.rows.at(-1)).toEqual({
      name: "  Executed/Drained",
      bars: [{ class: "drain", from: morning + 3000, to: undefined }],
      state: "under way",
    });
  });
});

test("every class has a distinct letter", () => {
  const letters = Object.values(barClasses).map(({ letter }) => letter);
  expect(new Set(letters).size).toBe(letters.length);
});
