import { describe, expect, test } from "vitest";
import { clockFrom } from "../ports/clock.ts";
import { silentLogger } from "../ports/logger.ts";
import { newDaemonFacts } from "./daemon-facts.ts";
import { statusHandler } from "./status-handler.ts";
import { watchKubelet } from "./watch-kubelet.ts";

const { signal } = new AbortController();

function harness() {
  const facts = newDaemonFacts();
  const time = { now: 0 };
  const handler = statusHandler({
    facts,
    clock: { monotonic: () => time.now, now: () => time.now },
    nodeName: "worker-0",
  });
  const get = async (target: string, method = "GET") => {
    const { status, body } = await handler({ method, target, headers: {} }, undefined, signal);
    return { status, body: typeof body === "string" ? body : "" };
  };
  return { facts, time, get };
}

describe("the local status endpoint of the daemon", () => {
  test("reports ready once the daemon has seen its node, and not while a step hangs", async () => {
    const { facts, time, get } = harness();
    expect((await get("/readyz")).status).toBe(503);
    facts.hasSeenNode = true;
    expect(await get("/readyz")).toEqual({ status: 200, body: "ok\n" });
    facts.lookingSince = 0;
    time.now = 44 * 60_000;
    expect((await get("/readyz")).status).toBe(200);
    time.now = 46 * 60_000;
    expect(await get("/readyz")).toEqual({ status: 503, body: "a step has taken 2760 s\n" });
  });

  test("its metrics have the reference's names, and words of a closed list instead of texts [daemon-status-handler-1]", async () => {
    const { facts, get, time } = harness();
    Object.assign(facts, {
      state: "Degraded",
      reason: "ConfigDrift",
      config: "rendered-worker-1",
      os: { name: "mco", version: "1" },
      driftSince: 5_000,
      osFailures: 2,
      rebootFailures: 1,
      boots: new Map([
        ["a", time.now - 3_600_000],
        ["b", time.now - 3_599_999],
        ["c", time.now],
      ]),
      kubeletFailures: 3,
      foreignPackages: 4,
    });
    const { body } = await get("/metrics?x=1");
    const lines = body.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(lines).toEqual([
      'mcd_host_os_and_version{os="mco",version="1"} 1',
      'mcd_state{state="Degraded",reason="ConfigDrift"} 1',
      'mcd_update_state{config="rendered-worker-1",err="ConfigDrift"} 1',
      "mcd_pivot_errors_total 2",
      "mcd_reboots_failed_total 1",
      "mcd_boots_last_hour 2",
      "mcd_kubelet_state 3",
      "mcd_config_drift 5",
      'mcd_local_unsupported_packages{node="worker-0"} 4',
    ]);
  });

  test("nothing else is answered", async () => {
    const { get } = harness();
    expect((await get("/")).status).toBe(404);
    expect((await get("/metrics", "POST")).status).toBe(405);
  });
});

test("only the answer ok counts as a healthy kubelet; failures in a row are counted", async () => {
  const facts = newDaemonFacts();
  const answers = ["ok", "starting", new Error("refused"), "ok\n", "no"];
  const seen: number[] = [];
  const ending = new AbortController();
  const clock = clockFrom({
    now: () => 0,
    monotonic: () => 0,
    after: (ms, run) => {
      // Only the pause between checks passes; deadlines never do.
      if (seen.length < answers.length && ms === 30_000) queueMicrotask(() => seen.length > 0 && run());
      return () => undefined;
    },
  });
  let index = 0;
  const check = async () => {
    seen.push(facts.kubeletFailures);
    const answer = answers[index++];
    if (index === answers.length) ending.abort(new Error("enough"));
    if (answer instanceof Error) throw answer;
    return answer ?? "";
  };
  await watchKubelet({ check, facts, clock, log: silentLogger }, ending.signal);
  expect(seen).toEqual([0, 0, 1, 2, 0]);
});
