import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, machineConfigNodeConditions } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { type Facts, poolFacts } from "../pool/pool-queries.ts";
import { drainReasons } from "../pool/drain-step.ts";
import { configServerAccess } from "../join/config-server.ts";

/** One metric with its values: a line each. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter" | "summary" | "histogram";
  /** Every label that its samples may carry. */
  readonly labels: readonly string[];
  readonly samples: readonly Sample[];
}

export interface Sample {
  /** Put behind the family's name: `_count`, `_sum`, `_bucket`. */
  readonly suffix?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * Text of the Prometheus exposition format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
 */
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

/** What the metrics of a cluster are made from. */
export interface MetricFacts {
  readonly facts: Facts;
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly machineConfiguration: MachineConfiguration | undefined;
}

/** Seconds since the epoch; 0 for a time that is not known. */
const secondsOf = (time: string): number => (time === "" ? 0 : Math.floor(Date.parse(time) / 1000));

/**
 * The state of pools and machines as metrics. Names and labels of those that begin with `mcc_`, of
 * `os_image_url_override`, of `mco_state` and of the four counts are the reference's (openshift/machine-config-operator
 * pkg/controller/common/metrics.go, main). They describe the present: a deleted machine or pool leaves no sample.
 */
export function clusterMetrics(view: MetricFacts): readonly MetricFamily[] {
  return [...countMetrics(view.facts), ...warningMetrics(view), ...phaseMetrics(view.facts)];
}

const gauge = (name: string, help: string, labels: readonly string[], samples: readonly Sample[]): MetricFamily => ({
  name,
  help,
  type: "gauge",
  labels,
  samples,
});

const perPool = (
  { members }: Facts,
  name: string,
  help: string,
  valueOf: (pool: MachineConfigPool) => number,
): MetricFamily =>
  gauge(
    name,
    help,
    ["pool"],
    members.pools().map((pool) => ({ labels: { pool: pool.metadata.name }, value: valueOf(pool) })),
  );

const membersOf = ({ members }: Facts, pool: MachineConfigPool) => [...members.members(pool.metadata.name).all()];

function countMetrics(facts: Facts): readonly MetricFamily[] {
  return [
    perPool(facts, "mco_machine_count", "Machines of the pool.", ({ status }) => status?.machineCount ?? 0),
    perPool(
      facts,
      "mco_updated_machine_count",
      "Machines of the pool that have its configuration.",
      ({ status }) => status?.updatedMachineCount ?? 0,
    ),
    perPool(
      facts,
      "mco_degraded_machine_count",
      "Machines of the pool that cannot go on without help.",
      ({ status }) => status?.degradedMachineCount ?? 0,
    ),
    perPool(
      facts,
      "mco_unavailable_machine_count",
      "Machines of the pool that are out of service.",
      ({ status }) => status?.unavailableMachineCount ?? 0,
    ),
    gauge(
      "mco_state",
      "One for each machine that is there: what its daemon says and which phase of an update it is in; the value is when it got there, in seconds since the epoch, 0 when that is not known.",
      ["node", "pool", "state", "reason"],
      facts.members.pools().flatMap((pool) =>
        membersOf(facts, pool).map(({ name, state, phase, since }) => ({
          labels: { node: name, pool: pool.metadata.name, state, reason: phase },
          value: secondsOf(since),
        })),
      ),
    ),
  ];
}

/** What an administrator may have to look at. */
function warningMetrics({ facts, machineConfigNodes, machineConfiguration }: MetricFacts): readonly MetricFamily[] {
  const drainIsLate = ({ status }: MachineConfigNode) =>
    conditionOf(status?.conditions, machineConfigNodeConditions.drained)?.reason === drainReasons.late;
  const isOverridden = (pool: MachineConfigPool) =>
    facts.machineConfig(pool.spec.configuration?.name ?? "")?.metadata.annotations?.[
      annotations.osImageURLOverridden
    ] === "true";
  const skew = (
    machineConfiguration?.spec as { readonly bootImageSkewEnforcement?: { readonly mode?: string } } | undefined
  )?.bootImageSkewEnforcement?.mode;
  const alsoSelected = [...facts.members.controlPlane.keys()].filter((name) => {
    const membership = facts.members.node(name)?.membership;
    return membership?.verdict === "member" && membership.masterAndCustom;
  });
  return [
    gauge(
      "mcc_drain_err",
      "1 for a machine whose drain has passed its pool's deadline.",
      ["node"],
      machineConfigNodes.filter(drainIsLate).map(({ metadata }) => ({ labels: { node: metadata.name }, value: 1 })),
    ),
    gauge(
      "mcc_pool_alert",
      "1 for a machine of the control plane that a custom pool selects too; it stays in the pool of the control plane.",
      ["node"],
      alsoSelected.map((node) => ({ labels: { node }, value: 1 })),
    ),
    perPool(
      facts,
      "os_image_url_override",
      "1 for a pool whose OS image a MachineConfig has chosen in place of the release's.",
      (pool) => (isOverridden(pool) ? 1 : 0),
    ),
    gauge(
      "mcc_boot_image_skew_enforcement_none",
      "1 when the MachineConfiguration disables checks of the age of boot images.",
      [],
      [{ labels: {}, value: skew === "None" ? 1 : 0 }],
    ),
    gauge(
      "mcc_insecure_access",
      "1 while the MachineConfiguration has the config server give configurations to every client.",
      [],
      [{ labels: {}, value: configServerAccess(machineConfiguration).access === "insecure" ? 1 : 0 }],
    ),
    perPool(
      facts,
      "mco_silent_machines",
      "Machines of the pool whose daemon's pod is not ready though their kubelet works.",
      (pool) => facts.members.members(pool.metadata.name).silent.size,
    ),
    perPool(facts, "mco_pool_paused", "1 for a pool that is paused.", ({ spec }) => (spec.paused === true ? 1 : 0)),
    gauge(
      "mco_state_mismatch",
      "1 for a machine whose node annotations and MachineConfigNode have said different things for longer than writing both takes.",
      ["node"],
      [...facts.members.contradictions(facts.now).keys()].sort().map((node) => ({ labels: { node }, value: 1 })),
    ),
  ];
}

function phaseMetrics(facts: Facts): readonly MetricFamily[] {
  const pools = facts.members.pools();
  const counted = (pool: string, label: string, words: readonly string[]): readonly Sample[] => {
    const counts = new Map<string, number>();
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    return [...counts].map(([word, value]) => ({ labels: { pool, [label]: word }, value }));
  };
  return [
    gauge(
      "mco_node_phase",
      "Machines of a pool by the phase of their update.",
      ["pool", "phase"],
      pools.flatMap((pool) =>
        counted(
          pool.metadata.name,
          "phase",
          membersOf(facts, pool).map(({ phase }) => phase),
        ),
      ),
    ),
    gauge(
      "mco_waiting_machines",
      "Machines of a pool that should get its target and do not get it now, by why; the pool's condition Updating says it in words.",
      ["pool", "reason"],
      pools.flatMap((pool) =>
        (poolFacts(facts, pool.metadata.name)?.selection.waits ?? []).reduce<Sample[]>(addUp(pool.metadata.name), []),
      ),
    ),
  ];
}

/** Several waits may have one reason, with different messages. */
const addUp =
  (pool: string) =>
  (sums: Sample[], { reason, count }: { readonly reason: string; readonly count: number }): Sample[] => {
    const before = sums.find(({ labels }) => labels["reason"] === reason);
    return [...sums.filter((sum) => sum !== before), { labels: { pool, reason }, value: (before?.value ?? 0) + count }];
  };
