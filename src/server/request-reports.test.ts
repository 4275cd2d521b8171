import { expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import { silentLogger } from "../ports/logger.ts";
import { memoryJournal } from "../ports/journal.ts";
import type { RequestOutcome } from "./answer-request.ts";
import { RequestReports } from "./request-reports.ts";
import { createReport } from "../kube/report.ts";

const served: RequestOutcome = {
  is: "served",
  status: 200,
  reason: "Served",
  requester: "192.0.2.1",
  pool: "worker",
  config: "rendered-worker-1",
  version: "3.4.0",
  sizeBytes: 10,
  durationMs: 5,
  by: "token",
};
const refused: RequestOutcome = {
  ...served,
  is: "refused",
  status: 401,
  reason: "Unauthorized",
  config: "",
  version: "",
};

function harness() {
  const kernel = new Kernel(1);
  const journal = memoryJournal();
  const writer = new RequestReports({
    clock: kernel.clock,
    report: createReport({ journal, log: silentLogger }),
    log: silentLogger,
    run: "server-1",
    chapter: "Server",
    isPool: (pool) => pool === "worker",
  });
  const pass = (minutes: number) => {
    kernel.schedule(minutes * 60_000, "passed", () => undefined);
    return kernel.run({ until: () => false, maxMs: minutes * 60_000 });
  };
  return { writer, journal, pass };
}

test("each answer is a line, with who got what; more than anybody can read are a number [server-tell-requests-1]", async () => {
  const { writer, journal, pass } = harness();
  for (let index = 0; index < 1000; index += 1) writer.tell({ ...served, requester: `192.0.2.${index}` });
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
  writer.tell(served);
  expect(journal.lines.at(-1)?.data).toMatchObject({ requester: "192.0.2.1" });
});

test("refusals that go on are told more and more seldom, and none of them is lost [server-tell-requests-2]", async () => {
  const { writer, journal, pass } = harness();
  let sent = 0;
  for (let minute = 0; minute < 24 * 60; minute += 1) {
    for (let turn = 0; turn < 10; turn += 1) {
      writer.tell(refused);
      sent += 1;
    }
    await pass(1);
  }
  writer.stop();
  expect(journal.lines.length).toBeLessThan(35);
  expect(journal.lines.reduce((sum, { data }) => sum + Number(data?.["requests"]), 0)).toBe(sent);
});

test("what is asked for by strangers is not repeated: their pools are one", () => {
  const { writer, journal } = harness();
  for (let index = 0; index < 500; index += 1) writer.tell({ ...refused, pool: `guess-${index}` });
  expect(journal.lines.map(({ path }) => path)).toEqual(["Served/-"]);
  expect(JSON.stringify(journal.lines)).not.toContain("guess");
});

test("probes and what was known already are no news", () => {
  const { writer, journal } = harness();
  for (const is of ["health", "notModified", "described"] as const) writer.tell({ ...served, is });
  expect(journal.lines).toEqual([]);
});
