import { describe, expect, test } from "vitest";
import type { ReportInput } from "../api/books/reports.ts";
import { silentLogger } from "../ports/logger.ts";
import { memoryJournal } from "../ports/journal.ts";
import type { EventNote } from "./event-recorder.ts";
import { createReport } from "./report.ts";

const pool = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name: "worker" },
};
const build = { ...pool, kind: "MachineOSBuild" };
const node = { apiVersion: "v1", kind: "Node", metadata: { name: "a" } };
const rollOut = { book: "pool/worker", chapter: "Rollout", run: "rendered-worker-1", level: "boundary" } as const;

function reported(input: ReportInput): {
  readonly lines: readonly string[];
  readonly events: readonly (EventNote & { readonly about: string })[];
  readonly logged: readonly string[];
} {
  const journal = memoryJournal();
  const events: (EventNote & { about: string })[] = [];
  const logged: string[] = [];
  const log = {
    ...silentLogger,
    warn: (fields: object) => logged.push(`warn ${JSON.stringify(fields)}`),
    debug: (fields: object) => logged.push(`debug ${JSON.stringify(fields)}`),
  };
  const recorder = {
    event: ({ kind }: { readonly kind: string }, note: EventNote) => events.push({ ...note, about: kind }),
    flush: () => Promise.resolve(),
  };
  createReport({ journal, events: recorder, log })(input);
  return {
    lines: journal.lines.map((line) => `${line.book} ${line.path} ${line.mark} ${line.reason}`),
    events,
    logged,
  };
}

describe("report", () => {
  test("one call makes a journal line, the Event of its reason, and a log line", () => {
    expect(
      reported({ about: pool, ...rollOut, path: "Canary", mark: "begin", reason: "Canary", message: "a goes first" }),
    ).toEqual({
      lines: ["pool/worker Canary begin Canary"],
      events: [{ about: "MachineConfigPool", type: "Normal", reason: "CanaryStarted", message: "a goes first" }],
      logged: [
        `debug ${JSON.stringify({ book: "pool/worker", chapter: "Rollout", path: "Canary", reason: "Canary", says: "a goes first" })}`,
      ],
    });
  });

  test("neither an Event nor a log line holds a token that a message quotes [kube-report-redact-1]", () => {
    const message = "refused abcdefgh12.k3x9q0z7m2v8b4n1c6p5w0t3r7y2u9ia";
    const { events, logged } = reported({
      about: pool,
      ...rollOut,
      path: "Canary",
      mark: "begin",
      reason: "Canary",
      message,
    });
    expect(events).toMatchObject([{ message: "refused abcdefgh12.(masked)" }]);
    expect(logged.join()).not.toContain("k3x9q0z7");
  });

  test("a reason without an Event makes none, also where an object is named", () => {
    const { lines, events } = reported({
      about: build,
      book: "build/b",
      chapter: "Published",
      path: "Published",
      mark: "end",
      level: "boundary",
      reason: "ImagePublished",
      message: "it is the image of worker",
    });
    expect(lines).toEqual(["build/b Published end ImagePublished"]);
    expect(events).toEqual([]);
  });

  test("a reason that only one chapter shows as an Event stays a line in the others", () => {
    const line = { about: build, book: "build/b", mark: "end", level: "boundary", reason: "ImageBuilt" } as const;
    const inBuilding = reported({ ...line, chapter: "Building", path: "Attempt/1", message: "an image" });
    const inVerified = reported({ ...line, chapter: "Verified", path: "Verified", message: "an image" });
    expect(inBuilding.events.map(({ reason }) => reason)).toEqual(["BuildCompleted"]);
    expect(inVerified.events).toEqual([]);
    expect(inVerified.lines).toEqual(["build/b Verified end ImageBuilt"]);
  });

  test("a line that says so makes no Event, though others of its reason do", () => {
    const { lines, events } = reported({
      about: undefined,
      book: "node/a",
      chapter: "Update",
      path: "Executed/Cordoned",
      mark: "end",
      level: "boundary",
      reason: "Cordoned",
      message: "an administrator had cordoned it already",
    });
    expect(lines).toEqual(["node/a Executed/Cordoned end Cordoned"]);
    expect(events).toEqual([]);
  });

  test("a reason that only one kind of book shows as an Event stays a line in the others", () => {
    const line = { level: "boundary", mark: "fail", reason: "WentBack", message: "it has the target before" } as const;
    const inPool = reported({ about: pool, ...rollOut, ...line, path: "Node/a" });
    const inNode = reported({ about: node, book: "node/a", chapter: "Update", ...line, path: "Updated" });
    expect(inNode.events.map(({ reason }) => reason)).toEqual(["WentBack"]);
    expect(inPool.events).toEqual([]);
    expect(inPool.lines).toEqual(["pool/worker Node/a fail WentBack"]);
  });

  test("a reason that only one section shows as an Event stays a line in the others", () => {
    const here = { about: node, book: "node/a", level: "boundary", mark: "fail", message: "it is full" } as const;
    const trouble = reported({ ...here, chapter: "Degraded", path: "Failed", reason: "UpdateFailed" });
    const section = reported({ ...here, chapter: "Update", path: "Executed/Files", reason: "UpdateFailed" });
    expect(trouble.events.map(({ reason }) => reason)).toEqual(["UpdateFailed"]);
    expect(section.events).toEqual([]);
    expect(section.lines).toEqual(["node/a Executed/Files fail UpdateFailed"]);
  });

  test("what the journal has already is shown and logged again, and not written again", () => {
    const again = {
      chapter: "Drift",
      path: "Detected",
      mark: "note",
      level: "boundary",
      reason: "ConfigDrift",
    } as const;
    const { lines, events, logged } = reported({
      about: node,
      book: "node/a",
      ...again,
      message: "/etc/motd differs",
      isWritten: true,
    });
    expect(lines).toEqual([]);
    expect(events).toEqual([
      { about: "Node", type: "Warning", reason: "ConfigDriftDetected", message: "/etc/motd differs" },
    ]);
    expect(logged).toHaveLength(1);
  });

  test("a line whose Event is not due this time is a line alone", () => {
    const line = { book: "node/a", chapter: "Drift", path: "Detected", mark: "begin", level: "boundary" } as const;
    const { lines, events } = reported({ ...line, reason: "ConfigDrift", message: "/etc/motd", about: undefined });
    expect(lines).toEqual(["node/a Detected begin ConfigDrift"]);
    expect(events).toEqual([]);
  });

  test("a notice makes an Event and a log line, and no journal line", () => {
    expect(reported({ about: pool, notice: "SelectingAll", message: "it selects everything" })).toEqual({
      lines: [],
      events: [
        { about: "MachineConfigPool", type: "Warning", reason: "SelectingAll", message: "it selects everything" },
      ],
      logged: [`warn ${JSON.stringify({ reason: "SelectingAll", says: "it selects everything" })}`],
    });
  });

  test("what makes a warning of an Event is logged as a warning, also where the section goes on", () => {
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: "a" } };
    const here = { book: "node/a", chapter: "Update", path: "Executed/Drained", level: "boundary" } as const;
    const { logged } = reported({ about: node, ...here, mark: "note", reason: "PodsBlocked", message: "it waits" });
    expect(logged[0]).toMatch(/^warn /);
  });

  test("a failure is logged as a warning", () => {
    const { logged } = reported({
      about: pool,
      ...rollOut,
      path: "Canary",
      mark: "fail",
      reason: "ProofFailed",
      message: "a failed",
    });
    expect(logged[0]).toMatch(/^warn /);
  });

  test("a reason with an Event does not compile without the object that the Event is about", () => {
    const line = { ...rollOut, path: "Canary", mark: "begin", reason: "Canary", message: "a goes first" } as const;
    // @ts-expect-error -- `about` is missing
    const input: ReportInput = line;
    expect(reported({ ...input, about: pool } as ReportInput).events).toHaveLength(1);
  });
});
