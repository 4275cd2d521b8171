import type { MachineConfigNode } from "../api/machine-config-node.ts";
import type { MachineConfigPool } from "../api/machine-config-pool.ts";
import { machineConfigNodeConditions } from "../api/names.ts";
import { conditionOf } from "../api/object.ts";
import { drainReasons } from "./plan-drain.ts";

/** One metric with its values: a line each. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter" | "summary";
  readonly samples: readonly Sample[];
}

export interface Sample {
  /** Put behind the family's name: `_count`, `_sum`. */
  readonly suffix?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Text of the Prometheus exposition format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */
export function metricsText(families: readonly MetricFamily[]): string {
  const escape = (value: string) => value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
  return families
    .flatMap(({ name, help, type, samples }) => [
      `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
      `# TYPE ${name} ${type}`,
      ...samples.map(({ suffix = "", labels, value }) => {
        const written = Object.entries(labels).map(([label, text]) => `${label}="${escape(text)}"`);
        return `${name}${suffix}${written.length === 0 ? "" : `{${written.join(",")}}`} ${value}`;
      }),
    ])
    .map((line) => `${line}\n`)
    .join("");
}

/**
 * What pools and machines say, as figures. Names and labels of the first five are the reference's
 * (openshift/machine-config-operator pkg/controller/common/metrics.go, main).
 */
export function clusterMetrics(pools: readonly MachineConfigPool[], machines: readonly MachineConfigNode[]): readonly MetricFamily[] {
  const perPool = (name: string, help: string, valueOf: (pool: MachineConfigPool) => number): MetricFamily => ({ name, help, type: "gauge", samples: pools.map((pool) => ({ labels: { pool: pool.metadata.name }, value: valueOf(pool) })) });
  const drainIsLate = ({ status }: MachineConfigNode) => conditionOf(status?.conditions, machineConfigNodeConditions.drained)?.reason === drainReasons.late;
  return [
    perPool("mco_machine_count", "Machines of the pool.", ({ status }) => status?.machineCount ?? 0),
    perPool("mco_updated_machine_count", "Machines of the pool that have its configuration.", ({ status }) => status?.updatedMachineCount ?? 0),
    perPool("mco_degraded_machine_count", "Machines of the pool that cannot go on without help.", ({ status }) => status?.degradedMachineCount ?? 0),
    perPool("mco_unavailable_machine_count", "Machines of the pool that are out of service.", ({ status }) => status?.unavailableMachineCount ?? 0),
    { name: "mcc_drain_err", help: "1 for a machine whose drain has passed its pool's deadline.", type: "gauge", samples: machines.filter(drainIsLate).map(({ metadata }) => ({ labels: { node: metadata.name }, value: 1 })) },
    perPool("mco_pool_paused", "1 for a pool that is paused.", ({ spec }) => (spec.paused === true ? 1 : 0)),
  ];
}
