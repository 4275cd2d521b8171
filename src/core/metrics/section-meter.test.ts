import { describe, expect, test } from "vitest";
import { LineWriter, morning, reportedUpdate } from "../../../test/support/line-writer.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";
import { Histogram } from "./histogram.ts";
import { metricsText } from "./metrics.ts";
import { SectionMeter, journalFamilies } from "./section-meter.ts";
import { ServiceMeter, unavailableCause } from "./service-meter.ts";
import { StateMeter } from "./state-metrics.ts";

const update = { book: "node/worker-0", chapter: "Update", run: `rendered-worker-${"0".repeat(32)}` } as const;
const samplesOf = (text: string, name: string) => text.split("\n").filter((line) => line.startsWith(`${name}{`));
const counted = (meter: { families(now?: number): Parameters<typeof metricsText>[0] }, name: string) =>
  samplesOf(metricsText(meter.families(0)), `${name}_count`);

test("a histogram counts what took at most so long, and says the sum and the number", () => {
  const histogram = new Histogram("x_seconds", "How long x took.", ["pool"]);
  for (const seconds of [0.5, 1, 45, 5000, -3]) histogram.observe({ pool: "worker" }, seconds);
  const text = metricsText([histogram.family()]);
  expect(text).toContain("# TYPE x_seconds histogram");
  expect(samplesOf(text, "x_seconds_bucket")).toEqual(
    [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, "+Inf"].map(
      (bound, index) => `x_seconds_bucket{pool="worker",le="${bound}"} ${index < 6 ? 3 : index < 13 ? 4 : 5}`,
    ),
  );
  expect(text).toContain('x_seconds_sum{pool="worker"} 5046.5\n');
  expect(text).toContain('x_seconds_count{pool="worker"} 5\n');
});

describe("how long steps take", () => {
  test("is measured by the reporting process, by pool and outcome [metrics-section-meter-1]", () => {
    const meter = new SectionMeter();
    const told = reportedUpdate({ run: update.run }).controller.lines;
    for (const line of told) meter.take(line, line.mono);
    const text = metricsText(meter.families());
    expect(counted(meter, "mco_section_duration_seconds")).toEqual([
      'mco_section_duration_seconds_count{book_kind="node",path="Executed/Drained",outcome="Succeeded",pool="worker"} 1',
    ]);
    expect(text).toContain(
      'mco_section_duration_seconds_sum{book_kind="node",path="Executed/Drained",outcome="Succeeded",pool="worker"} 60\n',
    );
  });

  test("counts failures apart, and what was not required not at all [metrics-section-meter-2]", () => {
    const meter = new SectionMeter();
    meter.take({ ...update, path: "Executed/ImagePulled", mark: "begin", reason: "Pulling" }, 0);
    meter.take({ ...update, path: "Executed/ImagePulled", mark: "fail", reason: "PullFailed" }, 4000);
    meter.take({ ...update, path: "Executed/OS", mark: "begin", reason: "Staging" }, 5000);
    meter.take({ ...update, path: "Executed/OS", mark: "skip", reason: "NotRequired" }, 6000);
    meter.take({ ...update, path: "Executed/OS", mark: "end", reason: "Staged" }, 7000);
    expect(counted(meter, "mco_section_duration_seconds")).toEqual([
      'mco_section_duration_seconds_count{book_kind="node",path="Executed/ImagePulled",outcome="Failed",pool="worker"} 1',
    ]);
  });

  test("has one path for all sections of a kind, so that its series do not grow with the cluster [metrics-section-meter-3]", () => {
    const meter = new SectionMeter();
    for (let index = 0; index < 50; index += 1) {
      const here = { book: "pool/worker", chapter: "Rollout", run: update.run, path: `Node/worker-${index}` };
      meter.take({ ...here, mark: "begin", reason: "NodeUpdated" }, 0);
      meter.take({ ...here, mark: "end", reason: "NodeUpdated" }, 1000);
    }
    expect(counted(meter, "mco_section_duration_seconds")).toEqual([
      'mco_section_duration_seconds_count{book_kind="pool",path="Node/*",outcome="Succeeded",pool="worker"} 50',
    ]);
  });

  test("of a reboot is measured by the restarted daemon, from its earlier reports [metrics-section-meter-4]", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    daemon.at(0, { ...update, path: "Prepared", mark: "begin", reason: "Checking" });
    daemon.at(1, { ...update, path: "Prepared", mark: "end", reason: "Planned" });
    daemon.at(10, { ...update, path: "PostAction/Rebooted", mark: "begin", reason: "RebootRequested" });
    const meter = new SectionMeter();
    meter.recall(daemon.lines, morning + 60_000, 500);
    meter.take({ ...update, path: "PostAction/Rebooted", mark: "end", reason: "Rebooted" }, 5500);
    meter.take({ ...update, path: "Prepared", mark: "end", reason: "Planned" }, 5500);
    expect(metricsText(meter.families())).toContain(
      'mco_section_duration_seconds_sum{book_kind="node",path="PostAction/Rebooted",outcome="Succeeded",pool="worker"} 55\n',
    );
    expect(counted(meter, "mco_section_duration_seconds")).toHaveLength(1);
  });

  test("begun by another process is measured from when it was observed [metrics-section-meter-5]", () => {
    const meter = new SectionMeter();
    meter.began({ ...update, path: "Complete/Uncordoned" }, 1000);
    meter.take({ ...update, path: "Complete/Uncordoned", mark: "end", reason: "Uncordoned" }, 3000);
    expect(metricsText(meter.families())).toContain(
      'path="Complete/Uncordoned",outcome="Succeeded",pool="worker"} 2\n',
    );
  });

  test("and how often two sources disagreed is counted [metrics-section-meter-6]", () => {
    const meter = new SectionMeter();
    const said = {
      book: "pool/worker",
      chapter: "Rollout",
      path: "StateMismatch",
      mark: "note",
      reason: "StateMismatch",
    } as const;
    meter.take(said, 0);
    meter.take(said, 1);
    expect(metricsText(meter.mismatchFamilies())).toContain('mco_state_mismatch_total{kind="node"} 2\n');
    expect(metricsText(journalFamilies("controller", 3))).toContain(
      'mco_journal_dropped_total{component="controller"} 3\n',
    );
  });
});

describe("how long machines take no pods", () => {
  const node = ({
    cordoned = false,
    ours = false,
    ready = true,
    since,
  }: {
    readonly cordoned?: boolean;
    readonly ours?: boolean;
    readonly ready?: boolean;
    readonly since?: string;
  }): Node =>
    ({
      metadata: { name: "a", annotations: ours ? { [annotations.cordonedFor]: "drain-x" } : {} },
      spec: {
        ...(cordoned ? { unschedulable: true } : {}),
        ...(since === undefined
          ? {}
          : { taints: [{ key: "node.kubernetes.io/unschedulable", effect: "NoSchedule", timeAdded: since }] }),
      },
      status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
    }) as unknown as Node;

  test("has a cause: its update, a cordon, or a kubelet that is not ready [metrics-section-meter-7]", () => {
    expect(
      [
        node({}),
        node({ cordoned: true, ours: true }),
        node({ cordoned: true }),
        node({ ready: false }),
        node({ ready: false, ours: true }),
      ].map(unavailableCause),
    ).toEqual([undefined, "Update", "Cordoned", "NotReady", "Update"]);
  });

  test("is from when it went until it came back, and is the update's as soon as an update is part of it [metrics-section-meter-8]", () => {
    const meter = new ServiceMeter();
    meter.putNode("a", node({ cordoned: true }), "worker", 0);
    meter.putNode("a", node({ cordoned: true, ours: true }), "worker", 10_000);
    meter.putNode("a", node({ cordoned: true, ours: true, ready: false }), "worker", 50_000);
    expect(metricsText(meter.families(60_000))).toContain(
      'mco_node_out_of_service_longest_seconds{pool="worker",cause="Update"} 60\n',
    );
    meter.putNode("a", node({}), "worker", 90_000);
    expect(metricsText(meter.families(100_000))).toContain(
      'mco_node_out_of_service_seconds_sum{pool="worker",cause="Update"} 90\n',
    );
    expect(metricsText(meter.families(100_000))).not.toContain("longest_seconds{");
  });

  test("of a machine that was unavailable before the start counts from its taint [metrics-section-meter-9]", () => {
    const meter = new ServiceMeter();
    meter.putNode("a", node({ cordoned: true, ours: true, since: "1970-01-01T00:00:10Z" }), "worker", 100_000);
    meter.putNode("a", node({}), "worker", 130_000);
    expect(metricsText(meter.families(0))).toContain(
      'mco_node_out_of_service_seconds_sum{pool="worker",cause="Update"} 120\n',
    );
  });

  test("is absent for a removed machine, and while nothing observes [metrics-section-meter-10]", () => {
    const meter = new ServiceMeter();
    meter.putNode("a", node({ cordoned: true }), "worker", 0);
    meter.putNode("a", undefined, "", 10_000);
    meter.putNode("b", node({ cordoned: true }), "worker", 0);
    meter.forget();
    meter.putNode("b", node({}), "worker", 20_000);
    expect(metricsText(meter.families(30_000))).not.toContain("{");
  });
});

describe("words that a machine chooses", () => {
  test("are not remembered in full [metrics-section-meter-11]", () => {
    const meter = new SectionMeter();
    const long = `rendered-${"x".repeat(200_000)}-${"0".repeat(32)}`;
    const line = { book: "node/w", chapter: "Update", path: "Complete/Uncordoned", reason: "Uncordoned" } as const;
    meter.began({ ...line, run: long }, 0);
    meter.take({ ...line, run: long, mark: "end" }, 5000);
    expect(JSON.stringify(meter.families()).length).toBeLessThan(20_000);
  });

  test("make so many series of its book, and the rest are one [metrics-section-meter-12]", () => {
    const meter = new StateMeter();
    for (let index = 0; index < 5000; index += 1)
      meter.closed({ book: "node/w", chapter: "Update", outcome: "Failed", reason: `Invented${index}`, pool: "p" });
    const samples = meter.families(0, [], []).find(({ name }) => name === "mco_chapters_total")?.samples ?? [];
    expect(samples.length).toBeLessThanOrEqual(2001);
    expect(samples.reduce((sum, { value }) => sum + value, 0)).toBe(5000);
  });
});
