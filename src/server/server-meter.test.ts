import { expect, test } from "vitest";
import type { RequestOutcome } from "./answer-request.ts";
import { ServerMeter } from "./server-meter.ts";

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
  node: "",
};
const gauges = {
  cacheBytes: 0,
  cacheEntries: 0,
  connections: 0,
  answersUnderWay: 0,
  insecure: false,
  ready: true,
  certificateEndsAt: undefined,
};
const ignitions = (meter: ServerMeter) =>
  meter.families(gauges).find(({ name }) => name === "mcs_served_ignition_total")?.samples ?? [];

test("configurations are counted by the Ignition of the boot image, and refusals are not [server-meter-1]", () => {
  const meter = new ServerMeter((pool) => pool === "worker");
  meter.request({ ...served, ignition: "2.15" });
  meter.request({ ...served, ignition: "2.15" });
  meter.request(served);
  meter.request({ ...served, is: "refused", status: 401, ignition: "2.9" });
  expect(ignitions(meter)).toEqual([
    { labels: { pool: "worker", ignition: "2.15" }, value: 2 },
    { labels: { pool: "worker", ignition: "" }, value: 1 },
  ]);
});

test("clients that make up versions make no endless series [server-meter-2]", () => {
  const meter = new ServerMeter(() => true);
  for (let minor = 0; minor < 900; minor += 1) meter.request({ ...served, ignition: `9.${minor}` });
  const samples = ignitions(meter);
  expect(samples.length).toBeLessThan(250);
  expect(samples.reduce((sum, { value }) => sum + value, 0)).toBe(900);
  expect(samples).toContainEqual({ labels: { pool: "worker", ignition: "other" }, value: 700 });
});
