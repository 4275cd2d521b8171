import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { bootstrapReports } from "../../test/support/bootstrap-reports.ts";
import type { JournalEntry } from "../api/books/report-table.ts";
import { lineOf } from "../core/books/journal.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemClock, systemFiles } from "../ports/node/index.ts";
import { FileBookStore } from "./file-book-store.ts";
import { keepFolder } from "./keep-folder.ts";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

function folders() {
  const made = mkdtempSync(join(tmpdir(), "mco-keep-"));
  ends.push(() => rmSync(made, { recursive: true, force: true }));
  return { from: made, to: join(made, "books") };
}

const at = Date.now() - 60_000;
const reports = bootstrapReports();
let seq = 0;
/** The lines that a program of the bootstrap writes into its file. */
const text = (component: string, lines: readonly JournalEntry[]) =>
  lines
    .map((line) =>
      lineOf(line, {
        writer: { component, instance: "bootstrap" },
        boot: "b",
        number: { seq: (seq += 1) },
        at: at + seq * 1000,
        mono: seq * 1000,
      }),
    )
    .map((line) => `${JSON.stringify(line)}\n`)
    .join("");
const served = reports.server.filter(({ book }) => book === "cluster");
const options = (given: { readonly from: string; readonly to: string }) => ({
  ...given,
  files: systemFiles,
  clock: systemClock,
  log: silentLogger,
  version: "1.0.0",
});
const chaptersIn = async (to: string) =>
  (await (await FileBookStore.open(systemFiles, to)).list({})).map(
    ({ number, chapter, state, entries }) =>
      `${number} ${chapter} ${state} ${entries.map(({ reason }) => reason).join()}`,
  );

describe("books of a folder", () => {
  test("are made from the folder's lines, equally on every read", async () => {
    const { from, to } = folders();
    writeFileSync(join(from, "operator-b.jsonl"), text("operator", reports.operator));
    writeFileSync(join(from, "server-b.jsonl"), `${text("server", served)}this is no line\n`);
    expect(await keepFolder(options({ from, to }), new AbortController().signal)).toBe(3);
    expect(await chaptersIn(to)).toEqual(["1 Bootstrap Open ManifestsRendered,ServerUp,Served"]);
    writeFileSync(join(from, "state-b.jsonl"), text("state", reports.handOver));
    await keepFolder(options({ from, to }), new AbortController().signal);
    await keepFolder(options({ from, to }), new AbortController().signal);
    expect(await chaptersIn(to)).toEqual(["1 Bootstrap Closed ManifestsRendered,ServerUp,Served,HandedOver"]);
  });

  test("follow the lines as they are written: a line counts once it is complete", async () => {
    const { from, to } = folders();
    const stop = new AbortController();
    const whole = text("operator", reports.operator);
    const seen: string[] = [];
    const steps = [
      () => writeFileSync(join(from, "operator-b.jsonl"), whole.slice(0, 40)),
      () => appendFileSync(join(from, "operator-b.jsonl"), whole.slice(40)),
      () => writeFileSync(join(from, "state-b.jsonl"), text("state", reports.handOver)),
      () => stop.abort(),
    ];
    const clock = {
      ...systemClock,
      sleep: async () => {
        seen.push((await chaptersIn(to)).join());
        steps.shift()?.();
      },
    };
    await keepFolder({ ...options({ from, to }), clock, everyMs: 1000 }, stop.signal);
    expect(seen).toEqual([
      "",
      "",
      "1 Bootstrap Open ManifestsRendered",
      "1 Bootstrap Closed ManifestsRendered,HandedOver",
    ]);
  });
});
