import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { reportReasons } from "../../api/books/report-table.ts";
import { reconcileMeter, sectionFamilies } from "../../controller/run-controller.ts";
import { alerts, metricsNamedBy } from "./alerts.ts";
import { DecisionMeter } from "./decision-meter.ts";
import { ServerMeter } from "../../server/server-meter.ts";
import { factsOf } from "../pool/pool-queries.ts";
import { daemonMetrics } from "./daemon-metrics.ts";
import { clusterMetrics } from "./metrics.ts";
import { RolloutMeter } from "./rollout-meter.ts";
import { SectionMeter } from "./section-meter.ts";
import { ServiceMeter } from "./service-meter.ts";
import { StateMeter } from "./state-metrics.ts";

const families = [
  ...reconcileMeter(() => 0).families(),
  ...clusterMetrics({
    facts: factsOf({ pools: [], nodes: [], machineConfigNodes: [] }, 0),
    machineConfigNodes: [],
    machineConfiguration: undefined,
  }),
  ...new DecisionMeter().families(),
  ...new ServerMeter(() => true).families({
    cacheBytes: 0,
    cacheEntries: 0,
    connections: 0,
    answersUnderWay: 0,
    insecure: false,
    ready: false,
    certificateEndsAt: 0,
  }),
  ...new RolloutMeter().families(0),
  ...new ServiceMeter().families(0),
  ...sectionFamilies({ sections: new SectionMeter() }, 0),
  ...new StateMeter().families(0, [], []),
  ...daemonMetrics(
    {
      state: "Done",
      reason: "",
      config: "x",
      os: { name: "", version: "" },
      driftSince: undefined,
      osFailures: 0,
      rebootFailures: 0,
      boots: new Map(),
      kubeletFailures: 0,
      foreignPackages: 0,
    },
    "a",
    0,
  ),
];
const labelsOf = (metric: string) => families.find(({ name }) => name === metric)?.labels;

describe("alerts", () => {
  test.for(alerts)("$name names metrics that there are, with labels that these have [metrics-alerts-2]", (alert) => {
    const named = metricsNamedBy(alert.expression);
    expect(named.length).toBeGreaterThan(0);
    for (const metric of named) expect(labelsOf(metric), metric).toBeDefined();
    const inSelectors = [...alert.expression.matchAll(/([a-z_]+)\{([a-z_]+)=/g)];
    for (const [, metric = "", label] of inSelectors) expect(labelsOf(metric.replace(/_bucket$/, ""))).toContain(label);
    // What a summary speaks of must be left over by its expression; `instance` is the scraper's own.
    const kept = [...(labelsOf(named[0] ?? "") ?? []), "instance"];
    for (const [, label] of alert.summary.matchAll(/\$labels\.([a-z_]+)/g)) expect(kept).toContain(label);
  });

  test.for(alerts)(
    "$name tells what it means, how to see it and what to do [metrics-alerts-3]",
    ({ summary, means, see, remedy }) => {
      for (const text of [summary, means, remedy]) expect(text).toMatch(/^[^ ].{20,}[.)]$/s);
      expect(see.length).toBeGreaterThan(0);
      for (const command of see) expect(command).toMatch(/^(kubectl|mco|journalctl) /);
    },
  );

  test("are given to the Prometheus operator, all of them with their runbook [metrics-alerts-4]", () => {
    const rule = parse(readFileSync(new URL("../../../install/monitoring/alerts.yaml", import.meta.url), "utf8")) as {
      spec: { groups: { rules: { alert: string; annotations: { runbook: string } }[] }[] };
    };
    const rules = rule.spec.groups.flatMap((group) => group.rules);
    expect(rules.map(({ alert }) => alert)).toEqual(alerts.map(({ name }) => name));
    for (const [index, { annotations }] of rules.entries())
      expect(annotations.runbook).toContain(alerts[index]?.remedy);
  });

  test("on what the closed list of reasons explains says the same as that list [metrics-alerts-5]", () => {
    for (const [name, reason] of [
      ["MCODaemonSilent", "DaemonSilent"],
      ["MCOJoinOverdue", "JoinOverdue"],
    ] as const)
      expect(alerts.find((alert) => alert.name === name)).toMatchObject({
        means: reportReasons[reason].means,
        remedy: reportReasons[reason].next,
      });
    expect(alerts.find(({ name }) => name === "MCOStateNotKept")?.remedy).toContain(reportReasons.ChildDown.next);
  });

  test("no metric is described twice or without words [metrics-alerts-1]", () => {
    expect(new Set(families.map(({ name }) => name)).size).toBe(families.length);
    for (const { name, help } of families) expect(help.length, name).toBeGreaterThan(15);
  });
});
