import { describe, expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { metricsText } from "./metrics.ts";
import { RolloutMeter } from "./rollout-meter.ts";

const at = (second: number) => new Date(Date.UTC(2030, 0, 1) + second * 1000).toISOString();
const pool = (target: string, updating: readonly [string, number], updated: readonly [string, number]) =>
  ({
    metadata: { name: "worker" },
    spec: { configuration: { name: target } },
    status: {
      conditions: [
        { type: "Updating", status: updating[0], lastTransitionTime: at(updating[1]) },
        { type: "Updated", status: updated[0], lastTransitionTime: at(updated[1]) },
      ],
    },
  }) as unknown as MachineConfigPool;
const textOf = (meter: RolloutMeter, second: number) => metricsText(meter.families(Date.parse(at(second)))).split("\n");

describe("what roll-outs take", () => {
  test("lasts from the first wait to the last machine, also across a pause or a new process [metrics-rollout-meter-1]", () => {
    const meter = new RolloutMeter();
    meter.putPool("worker", pool("b", ["True", 10], ["False", 10]));
    expect(textOf(meter, 25)).toContain('mco_rollout_running_seconds{pool="worker"} 15');
    meter.putPool("worker", pool("b", ["False", 30], ["False", 10]));
    expect(textOf(meter, 40)).toContain('mco_rollout_running_seconds{pool="worker"} 30');
    meter.putPool("worker", pool("b", ["True", 50], ["False", 10]));
    meter.putPool("worker", pool("b", ["False", 70], ["True", 70]));
    const lines = textOf(meter, 80);
    for (const line of [
      'mco_rollout_seconds_count{pool="worker"} 1',
      'mco_rollout_seconds_sum{pool="worker"} 60',
      'mco_rollout_running_seconds{pool="worker"} 0',
    ])
      expect(lines).toContain(line);
    meter.putPool("worker", pool("b", ["False", 70], ["True", 70]));
    expect(textOf(meter, 90)).toContain('mco_rollout_seconds_count{pool="worker"} 1');
  });

  test("targets that a machine never went to are disruptions that were saved [metrics-rollout-meter-2]", () => {
    const meter = new RolloutMeter();
    for (const target of ["a", "b", "c", "d", "b"]) meter.putPool("worker", pool(target, ["True", 0], ["False", 0]));
    meter.retargeted("worker", "a", "b");
    expect(textOf(meter, 0)).toContain('mco_disruptions_saved_total{pool="worker"} 3');
    meter.retargeted("worker", "d", "b");
    meter.retargeted("worker", "never heard of", "d");
    meter.retargeted("nobody", "a", "b");
    expect(textOf(meter, 0)).toContain('mco_disruptions_saved_total{pool="worker"} 3');
  });

  test("of a pool that is gone nothing is said [metrics-rollout-meter-3]", () => {
    const meter = new RolloutMeter();
    meter.putPool("worker", pool("a", ["True", 0], ["False", 0]));
    meter.putPool("worker", undefined);
    expect(textOf(meter, 0).filter((line) => line.includes("worker"))).toEqual([]);
  });
});
