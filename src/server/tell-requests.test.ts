import { expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import { silentLogger } from "../ports/logger.ts";
import { memoryScribe } from "../ports/scribe.ts";
import type { RequestOutcome } from "./answer-request.ts";
import { TellRequests } from "./tell-requests.ts";
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

function scene() {
  const kernel = new Kernel(1);
  const scribe = memoryScribe();
  const teller = new TellRequests({
    clock: kernel.clock,
    report: createReport({ scribe, log: silentLogger }),
    log: silentLogger,
    run: "server-1",
    chapter: "Server",
    isPool: (pool) => pool === "worker",
  });
  const pass = (minutes: number) => {
    kernel.schedule(minutes * 60_000, "passed", () => undefined);
    return kernel.run({ until: () => false, maxMs: minutes * 60_000 });
  };
  return { teller, scribe, pass };
}

test("each answer is a line, with who got what; more than anybody can read are a number [server-tell-requests-1]", async () => {
  const { teller, scribe, pass } = scene();
  for (let index = 0; index < 1000; index += 1) teller.tell({ ...served, requester: `192.0.2.${index}` });
  expect(scribe.lines.length).toBe(150);
  expect(scribe.lines[0]).toMatchObject({
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
  expect(scribe.lines.slice(150).map(({ path, data }) => [path, data?.["machines"], data?.["requester"]])).toEqual([
    ["Served/worker", 850, undefined],
  ]);
  teller.tell(served);
  expect(scribe.lines.at(-1)?.data).toMatchObject({ requester: "192.0.2.1" });
});

test("refusals that go on are told more and more seldom, and none of them is lost [server-tell-requests-2]", async () => {
  const { teller, scribe, pass } = scene();
  let sent = 0;
  for (let minute = 0; minute < 24 * 60; minute += 1) {
    for (let turn = 0; turn < 10; turn += 1) {
      teller.tell(refused);
      sent += 1;
    }
    await pass(1);
  }
  teller.stop();
  expect(scribe.lines.length).toBeLessThan(35);
  expect(scribe.lines.reduce((sum, { data }) => sum + Number(data?.["requests"]), 0)).toBe(sent);
});

test("what is asked for by strangers is not repeated: their pools are one", () => {
  const { teller, scribe } = scene();
  for (let index = 0; index < 500; index += 1) teller.tell({ ...refused, pool: `guess-${index}` });
  expect(scribe.lines.map(({ path }) => path)).toEqual(["Served/-"]);
  expect(JSON.stringify(scribe.lines)).not.toContain("guess");
});

test("probes and what was known already are no news", () => {
  const { teller, scribe } = scene();
  for (const is of ["health", "notModified", "described"] as const) teller.tell({ ...served, is });
  expect(scribe.lines).toEqual([]);
});
