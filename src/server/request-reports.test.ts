import { servedOutcome } from "../../test/support/server-harness.ts";
import { expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import { silentLogger } from "../ports/logger.ts";
import { memoryJournal } from "../ports/journal.ts";
import type { RequestOutcome } from "./answer-request.ts";
import { RequestReports } from "./request-reports.ts";
import { createReport } from "../kube/report.ts";

const refused: RequestOutcome = {
  ...servedOutcome,
  is: "refused",
  status: 401,
  reason: "Unauthorized",
  config: "",
  version: "",
};

function harness(chapter: "Server" | "Bootstrap" = "Server") {
  const kernel = new Kernel(1);
  const journal = memoryJournal();
  const writer = new RequestReports({
    clock: kernel.clock,
    report: createReport({ journal, log: silentLogger }),
    log: silentLogger,
    run: "server-1",
    chapter,
    isPool: (pool) => pool === "worker",
  });
  const pass = (minutes: number) => {
    kernel.schedule(minutes * 60_000, "passed", () => undefined);
    return kernel.run({ until: () => false, maxMs: minutes * 60_000 });
  };
  return { writer, journal, pass };
}

test("each answer is a line that names client and content; a flood of answers becomes a count [server-tell-requests-1]", async () => {
  const { writer, journal, pass } = harness();
  for (let index = 0; index < 1000; index += 1) writer.report({ ...servedOutcome, requester: `192.0.2.${index}` });
  expect(journal.lines.length).toBe(150);
  expect(journal.lines[0]).toMatchObject({
    book: "cluster",
    chapter: "Server",
    run: "server-1",
    path: "Served/worker",
    reason: "Served",
    level: "boundary",
    data: {
      requester: "192.0.2.0",
      pool: "worker",
      config: "rendered-worker-1",
      version: "3.4.0",
      sizeBytes: 10,
      durationMs: 5,
    },
  });
  await pass(2);
  expect(journal.lines.slice(150).map(({ path, data }) => [path, data?.["machines"], data?.["requester"]])).toEqual([
    ["Served/worker", 850, undefined],
  ]);
  writer.report(servedOutcome);
  expect(journal.lines.at(-1)?.data).toMatchObject({ requester: "192.0.2.1" });
});

test("repeated refusals are reported less and less often, and all are counted [server-tell-requests-2]", async () => {
  const { writer, journal, pass } = harness();
  let sent = 0;
  for (let minute = 0; minute < 24 * 60; minute += 1) {
    for (let turn = 0; turn < 10; turn += 1) {
      writer.report(refused);
      sent += 1;
    }
    await pass(1);
  }
  writer.stop();
  expect(journal.lines.length).toBeLessThan(35);
  expect(journal.lines.reduce((sum, { data }) => sum + Number(data?.["requests"]), 0)).toBe(sent);
});

test("the pool names of unauthenticated requests are not repeated, but count as one [server-tell-requests-4]", () => {
  const { writer, journal } = harness();
  for (let index = 0; index < 500; index += 1) writer.report({ ...refused, pool: `guess-${index}` });
  expect(journal.lines.map(({ path }) => path)).toEqual(["Served/-"]);
  expect(JSON.stringify(journal.lines)).not.toContain("guess");
  // A chapter would have "-" as its pool.
  expect(journal.lines[0]?.data).not.toHaveProperty("pool");
});

test("probes and unchanged answers are not reported", () => {
  const { writer, journal } = harness();
  for (const is of ["health", "notModified", "described"] as const) writer.report({ ...servedOutcome, is });
  expect(journal.lines).toEqual([]);
});

test("the bootstrap's lines are of one chapter, and begin the book of the machine that the token names [server-tell-requests-3]", () => {
  const { writer, journal } = harness("Bootstrap");
  const master = { ...servedOutcome, pool: "worker", config: "rendered-master-1" };
  writer.report({ ...master, node: "master-0" });
  writer.report(master);
  expect(journal.lines.map(({ book, chapter, path, mark }) => `${book} ${chapter} ${path} ${mark}`)).toEqual([
    "node/master-0 Bootstrap Served end",
    "cluster Bootstrap Served/worker end",
    "cluster Bootstrap Served/worker end",
  ]);
  // All programs of a bootstrap share the chapter: a run of its own would be another one.
  expect(journal.lines.some(({ run }) => run !== undefined)).toBe(false);
  expect(journal.lines.map(({ data }) => data?.["node"])).toEqual(["master-0", "master-0", undefined]);
});

test("what a request says of its machine's boot image is in the line, and nothing where it says none [server-tell-requests-7]", () => {
  const { writer, journal } = harness();
  writer.report({ ...servedOutcome, ignition: "2.15" });
  writer.report(servedOutcome);
  expect(journal.lines.map(({ message, data }) => [message, data?.["ignition"]])).toEqual([
    [expect.stringMatching(/; its boot image has Ignition 2\.15, as it says$/), "2.15"],
    [expect.stringMatching(/ms$/), undefined],
  ]);
});
