import { servedOutcome } from "../../test/support/server-harness.ts";
import { expect, test } from "vitest";
import { ServerMeter } from "./server-meter.ts";

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
  meter.request({ ...servedOutcome, ignition: "2.15" });
  meter.request({ ...servedOutcome, ignition: "2.15" });
  meter.request(servedOutcome);
  meter.request({ ...servedOutcome, is: "refused", status: 401, ignition: "2.9" });
  expect(ignitions(meter)).toEqual([
    { labels: { pool: "worker", ignition: "2.15" }, value: 2 },
    { labels: { pool: "worker", ignition: "" }, value: 1 },
  ]);
});

test("clients that make up versions make no endless series [server-meter-2]", () => {
  const meter = new ServerMeter(() => true);
  for (let minor = 0; minor < 900; minor += 1) meter.request({ ...servedOutcome, ignition: `9.${minor}` });
  const samples = ignitions(meter);
  expect(samples.length).toBeLessThan(250);
  expect(samples.reduce((sum, { value }) => sum + value, 0)).toBe(900);
  expect(samples).toContainEqual({ labels: { pool: "worker", ignition: "other" }, value: 700 });
});
