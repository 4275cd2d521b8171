import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { namespace } from "../../src/api/names.ts";
import { type Alert, alerts, prometheusRule } from "../../src/core/metrics/alerts.ts";
import { askPrometheusTool, prometheusFolder } from "../support/prometheus.ts";
import { temporaryFolder } from "../support/registry/pull-harness.ts";
import { type AlertCase, alertCases } from "./alert-cases.ts";

const { spec } = prometheusRule() as { readonly spec: { readonly groups: readonly object[] } };

/** A folder with the rules as Prometheus itself reads them: the spec of their object. */
async function rulesIn(folder: string): Promise<string> {
  const path = join(folder, "rules.yaml");
  await writeFile(path, stringify(spec));
  return path;
}

/** A case as promtool reads it, with each annotation word by word. */
const expectationOf = ({ name, severity, summary, means, see, remedy }: Alert, { series, moments }: AlertCase) => ({
  interval: "1m",
  input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
  alert_rule_test: moments.map(({ minute, fires, value = "" }) => ({
    eval_time: `${minute}m`,
    alertname: name,
    exp_alerts: fires.map((labels) => ({
      exp_labels: { severity, namespace, ...labels },
      exp_annotations: {
        summary: summary
          .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? "")
          .replaceAll("{{ $value }}", value),
        description: means,
        runbook: `${see.map((command) => `See: ${command}`).join("\n")}\n${remedy}`,
      },
    })),
  })),
});

test("each alert has a case [ecosystem-prometheus-1]", () => {
  expect(alertCases.map(({ alert }) => alert).toSorted()).toEqual(alerts.map(({ name }) => name).toSorted());
});

describe.skipIf(prometheusFolder() === undefined)("Prometheus", () => {
  test("reads the rules without a remark [ecosystem-prometheus-2]", async () => {
    const rules = await rulesIn(await temporaryFolder());
    const { code, text } = await askPrometheusTool("promtool", ["check", "rules", "--lint=all", "--lint-fatal", rules]);
    expect({ code, text }).toEqual({
      code: 0,
      text: expect.stringContaining(`${alerts.length} rules found`) as string,
    });
  });

  test.for(alertCases)("$alert fires for its cause, and ends with it [ecosystem-prometheus-3]", async (one) => {
    const folder = await temporaryFolder();
    await rulesIn(folder);
    const alert = alerts.find(({ name }) => name === one.alert);
    if (alert === undefined) throw new Error(`there is no alert ${one.alert}`);
    const path = join(folder, "case.yaml");
    const tests = [expectationOf(alert, one)];
    await writeFile(path, stringify({ rule_files: ["rules.yaml"], evaluation_interval: "1m", tests }));
    const { code, text } = await askPrometheusTool("promtool", ["test", "rules", path]);
    expect(code, text).toBe(0);
  });
});
