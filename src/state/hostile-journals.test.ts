import { describe, expect, test } from "vitest";
import type { JournalLine } from "../api/books/journal-line.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import type { JournalEntry } from "../api/books/report-table.ts";
import { marksOf } from "../core/books/journal.ts";
import { StateHarness, patientLease } from "../../test/support/state-harness.ts";

/** Most lines of a journal object, by its kind. */
const mostLines = 256;

/** A drift that begins and ends. */
const drift = (node: string): readonly [JournalEntry, JournalEntry] => {
  const here = { book: `node/${node}`, chapter: "Drift", level: "boundary", message: "" } as const;
  return [
    { ...here, path: "Detected", mark: "begin", reason: "ConfigDrift" },
    { ...here, path: "Ended", mark: "end", reason: "DriftGone" },
  ];
};

/** Two machines; root on `worker-0` writes its journal as it likes. */
async function withHostileMachine() {
  const harness = await StateHarness.make();
  await harness.act(() => harness.node("worker-0"));
  const honest = await harness.act(() => harness.node("worker-1"));
  harness.start("state-0", patientLease);
  await harness.pass(30_000);
  let seq = 0;
  const line = (more: Partial<JournalLine> = {}): JournalLine => ({
    v: 1,
    writer: { component: "daemon", instance: "worker-0" },
    boot: "boot-1",
    seq: (seq += 1),
    at: harness.kernel.clock.now() + seq,
    mono: seq,
    book: "node/worker-0",
    chapter: "Degraded",
    path: "Failed",
    mark: "fail",
    level: "boundary",
    reason: "Failed",
    msg: "",
    via: "told",
    ...more,
  });
  return {
    harness,
    line,
    /** Replaces the journal. */
    write: (lines: readonly JournalLine[]) =>
      harness.act(() =>
        harness.kube.patch(
          MachineStateJournal,
          { name: "node-worker-0" },
          { type: "merge", body: { spec: { lines: [...lines], last: [...marksOf(lines)] } } },
        ),
      ),
    /** The book of the other machine goes on. */
    async expectOthersKept() {
      const before = (await harness.chapters("node/worker-1")).length;
      await harness.act(() => honest.report(...drift("worker-1")));
      await harness.pass(120_000);
      expect((await harness.chapters("node/worker-1")).slice(before)).toMatchObject([
        { chapter: "Drift", state: "Closed" },
      ]);
    },
  };
}

describe("root on a machine writes into its journal", () => {
  test.for([
    { what: "a time that no calendar has", lines: [{ at: 9_000_000_000_000_000 }] },
    { what: "a time before all calendars", lines: [{ at: -9_000_000_000_000_000 }] },
    { what: "a clock that goes back while the other runs on", lines: [{}, { at: 0, mono: 9_000_000_000_000_000 }] },
  ])("$what, and the books of the others are kept [hostile-journals-1]", async ({ lines }) => {
    const { write, line, expectOthersKept, harness } = await withHostileMachine();
    await write(lines.map((more) => line(more)));
    await harness.pass(60_000);
    await expectOthersKept();
    expect(await harness.condition("StateKeeping")).toMatchObject({ status: "True" });
  });

  test("what no chapter can hold, and its own book and StateKeeping do not suffer [hostile-journals-2]", async () => {
    const { write, line, harness } = await withHostileMachine();
    const long = "x".repeat(1000);
    await write([
      line({
        chapter: "Update",
        run: "r".repeat(253),
        path: "Requested",
        mark: "begin",
        data: { from: long, to: long },
      }),
      line({ chapter: "Update", path: "Updated", mark: "end", data: { fromVersion: long, by: long, cause: long } }),
      line({ chapter: "Update", run: "s".repeat(253), path: "Executed/Files", mark: "end" }),
      line({ path: "Gap", reason: "Gap", data: { lines: "1e400" } }),
      line({ path: "Gap", reason: "Gap", data: { lines: "-7" } }),
      line({ chapter: "no label!" }),
    ]);
    await harness.pass(600_000);
    await write([line({ path: "Ended", mark: "end", reason: "Recovered" })]);
    await harness.pass(600_000);
    const chapters = await harness.chapters("node/worker-0");
    expect(chapters.map(({ chapter, state }) => `${chapter} ${state}`)).toEqual([
      "Update Closed",
      "Update Open",
      "Degraded Closed",
    ]);
    expect(await harness.condition("StateKeeping")).toMatchObject({ status: "True" });
  });

  test.for([
    { what: "a chapter", lines: [{ chapter: "constructor", mark: "end" as const }] },
    { what: "a chapter that stays open", lines: [{ chapter: "toString", mark: "begin" as const }] },
    { what: "a section", lines: [{ path: "valueOf" }, { path: "hasOwnProperty/*", mark: "end" as const }] },
    {
      what: "a reason",
      lines: [{ reason: "constructor" }, { path: "Ended", mark: "fail" as const, reason: "toString" }],
    },
  ])(
    "$what by a name that every table has, and the books of the others are kept [hostile-journals-6]",
    async ({ lines }) => {
      const { write, line, expectOthersKept, harness } = await withHostileMachine();
      await write(lines.map((more) => line(more)));
      await harness.pass(60_000);
      await expectOthersKept();
      expect((await harness.chapters("node/worker-0")).length).toBeGreaterThan(0);
    },
  );

  test("a chapter in each line, and few of them are stored [hostile-journals-3]", async () => {
    const { write, line, harness, expectOthersKept } = await withHostileMachine();
    for (let round = 0; round < 8; round += 1) {
      await write(
        Array.from({ length: mostLines }, (_, index) =>
          round % 2 === 0
            ? line({ chapter: "Certificates", path: "Rotated", mark: "end" })
            : line({ chapter: `Invented${round}x${index}`, mark: "begin" }),
        ),
      );
      await harness.pass(5000);
    }
    const stored = new Set(
      harness.writes.flatMap(({ kind, name }) =>
        kind === "machinestatechapters" && name.startsWith("node.worker-0.") ? [name] : [],
      ),
    );
    expect(stored.size).toBeGreaterThan(50);
    expect(stored.size).toBeLessThan(110);
    await expectOthersKept();
  });

  test("that others were never read, and the cluster's book says so a few times [hostile-journals-4]", async () => {
    const { write, line, harness } = await withHostileMachine();
    for (let round = 1; round <= 20; round += 1) {
      await write([line({ boot: `boot-${round}`, seq: 1_000_000 })]);
      await harness.pass(2000);
    }
    const gaps = (await harness.chapters("cluster")).filter(({ reason }) => reason === "Gap");
    expect(gaps.length).toBeGreaterThan(0);
    expect(gaps.length).toBeLessThanOrEqual(3);
    expect((await harness.chapters("node/worker-0"))[0]?.missed).toBeGreaterThan(0);
  });

  test("in the name of the controller, and the controller's own lines count [hostile-journals-5]", async () => {
    const { write, line, harness } = await withHostileMachine();
    const controller = harness.component("controller");
    const forged = { writer: { component: "controller", instance: "controller-0" }, boot: controller.boot } as const;
    await write([
      line({ ...forged, chapter: "Rollback", path: "Done", mark: "end", seq: 1_000_000, msg: "forged" }),
      line({ ...forged, chapter: "Drift", path: "Detected", mark: "begin", seq: 1, msg: "forged" }),
    ]);
    await harness.pass(60_000);
    await harness.act(() => controller.report(...drift("worker-0")));
    await harness.pass(120_000);
    const chapters = await harness.chapters("node/worker-0");
    expect(chapters).toMatchObject([{ chapter: "Drift", state: "Closed" }]);
    expect(JSON.stringify(chapters)).not.toContain("forged");
  });
});
