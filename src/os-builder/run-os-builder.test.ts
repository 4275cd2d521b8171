import { expect, test } from "vitest";
import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { annotations, labels } from "../api/names.ts";
import { metricsText } from "../core/metrics/metrics.ts";
import { buildFamilies } from "./run-os-builder.ts";

test("metrics of builds: how many run, their phases, start, end, duration and retries [os-builder-metrics-1]", () => {
  const build = (
    name: string,
    phase: string,
    more: Partial<MachineOSBuild["status"]> = {},
    attempt = "1",
  ): MachineOSBuild => ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineOSBuild",
    metadata: {
      name,
      labels: { [labels.targetPool]: "worker" },
      annotations: { [annotations.buildStrategy]: "append", [annotations.buildAttempt]: attempt },
    },
    spec: {
      machineConfig: { name: "rendered-worker-1" },
      machineOSConfig: { name: "worker" },
      renderedImagePushSpec: "r/os:1",
    },
    status: {
      conditions: [
        { type: phase, status: "True", reason: "x", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" },
      ],
      ...more,
    },
  });
  const text = metricsText(
    buildFamilies(
      [
        build("a", "Succeeded", { buildStart: "2026-01-01T00:00:00Z", buildEnd: "2026-01-01T00:00:07Z" }),
        build("b", "Building", {}, "3"),
      ],
      [],
    ),
  );
  for (const line of [
    "mco_mosc_count 0",
    "ocl_active_builds 1",
    'ocl_build_state{pool="worker",build="a",state="Succeeded",strategy="append"} 1',
    'ocl_build_duration_seconds{pool="worker",build="a"} 7',
    'ocl_build_start_timestamp_seconds{pool="worker",build="a"} 1767225600',
    'ocl_build_retries_total{pool="worker",build="b"} 2',
  ])
    expect(text.split("\n")).toContain(line);
  expect(text).not.toMatch(/ocl_build_duration_seconds\{pool="worker",build="b"/);
});
