import type { ClusterOperator } from "../../src/api/foreign/cluster-operator.ts";
import type { Node, Pod } from "../../src/api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import type { MachineOSBuild } from "../../src/api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../src/api/kinds/machine-os-config.ts";
import { annotations } from "../../src/api/names.ts";
import type { MachineConfiguration } from "../../src/api/kinds/machine-configuration.ts";
import { bookKindOf } from "../../src/api/books/report-table.ts";
import type { Chapter } from "../../src/api/books/machine-state-chapter.ts";
import { type Past, pastOf } from "../../src/core/books/past.ts";
import { clusterMetrics, type MetricFamily } from "../../src/core/metrics/metrics.ts";
import { StateMeter } from "../../src/core/metrics/state-metrics.ts";
import { clusterOperatorConditions } from "../../src/core/operator/cluster-operator-status.ts";
import { type Facts, factsOf } from "../../src/core/pool/pool-queries.ts";
import { clusterStatus } from "../../src/core/preview/cluster-status.ts";
import { explainNode, explainPool } from "../../src/core/preview/explain.ts";
import { type Explanation, explanationText } from "../../src/core/preview/explanation.ts";
import type { AgreementSnapshot, Explained, Measured } from "./agreement.ts";

/** What one read of a cluster gives. */
export interface ReadObjects {
  /** Milliseconds since the epoch, by the cluster's clock. */
  readonly now: number;
  readonly pools: readonly MachineConfigPool[];
  readonly nodes: readonly Node[];
  readonly machineConfigNodes: readonly MachineConfigNode[];
  readonly machineConfigs: readonly MachineConfig[];
  readonly machineConfiguration?: MachineConfiguration | undefined;
  readonly machineOSConfigs?: readonly MachineOSConfig[];
  readonly machineOSBuilds?: readonly MachineOSBuild[];
  readonly daemonPods?: readonly Pod[];
  /** By book, oldest first; of pools and nodes. */
  readonly chapters: ReadonlyMap<string, readonly Omit<Chapter, "number">[]>;
  /** Where no operator runs, its conditions are computed as it would. */
  readonly clusterOperator: ClusterOperator | "as the operator would";
}

/** The samples of metric families, in one list. */
export const measuredOf = (families: readonly MetricFamily[]): readonly Measured[] =>
  families.flatMap(({ name, samples }) =>
    samples.map(({ suffix = "", ...sample }) => ({ ...sample, name: `${name}${suffix}` })),
  );

/** What users are shown of a cluster from one read: every form of it, by the code that makes it for them. */
export function snapshotOf(
  objects: ReadObjects,
  { explains = true }: { readonly explains?: boolean } = {},
): AgreementSnapshot {
  const { now, pools, nodes, machineConfigNodes, chapters } = objects;
  const facts = factsOf(objects, now);
  const clusterOperator =
    objects.clusterOperator === "as the operator would" ? operatorAsItWould(facts, now) : objects.clusterOperator;
  return {
    now,
    pools,
    nodes,
    machineConfigNodes,
    clusterOperator,
    status: clusterStatus({
      pools,
      nodes,
      machineConfigNodes,
      clusterOperators: [clusterOperator],
      machineOSConfigs: objects.machineOSConfigs ?? [],
      machineOSBuilds: objects.machineOSBuilds ?? [],
      now,
    }),
    explained: explains ? explanationsOf(facts, chapters) : undefined,
    chapters,
    metrics: measuredOf([
      ...clusterMetrics({ facts, machineConfigNodes, machineConfiguration: objects.machineConfiguration }),
      ...new StateMeter().families(now, storedChapters(chapters), []),
    ]),
    imagePools: new Set([
      ...(objects.machineOSConfigs ?? []).map(({ spec }) => spec.machineConfigPool.name),
      ...pools.flatMap(({ metadata }) =>
        metadata.labels?.[annotations.layeringEnabled] === undefined ? [] : [metadata.name],
      ),
    ]),
  };
}

function operatorAsItWould(cluster: Facts, now: number): ClusterOperator {
  const version = "1";
  return {
    apiVersion: "config.openshift.io/v1",
    kind: "ClusterOperator",
    metadata: { name: "machine-config" },
    spec: {},
    status: {
      conditions: clusterOperatorConditions({ version, reached: version, outcomes: [], cluster }, [], now),
      versions: [{ name: "operator", version }],
    },
  };
}

function* storedChapters(chapters: ReadObjects["chapters"]) {
  for (const [book, list] of chapters)
    for (const { chapter, state, pool = "", startedAt } of list)
      yield { kind: bookKindOf(book) ?? "", chapter, state, pool, startedAt, bytes: 1 };
}

/** As programs get it: what JSON leaves out is not there. */
const bothForms = (explanation: Explanation): Explained => ({
  json: JSON.parse(JSON.stringify(explanation)) as Explanation,
  text: explanationText(explanation),
});

function explanationsOf(facts: Facts, chapters: ReadObjects["chapters"]): readonly Explained[] {
  const of = (book: string) => (chapters.get(book) ?? []).map((chapter, index) => ({ ...chapter, number: index + 1 }));
  return facts.members.pools().flatMap((pool): readonly Explained[] => {
    const { name } = pool.metadata;
    const machines = [...facts.members.members(name).all()].map((member) => member.name);
    const past: Past = pastOf(
      name,
      machines.flatMap((machine) => of(`node/${machine}`).filter(({ chapter }) => chapter === "Update")),
      of(`pool/${name}`),
    );
    const found = [
      explainPool(facts, name, past),
      ...machines.map((machine) =>
        explainNode(facts, machine, {
          past,
          chapters: of(`node/${machine}`).map((chapter) => ({ ...chapter, kept: true })),
        }),
      ),
    ];
    return found.flatMap((explanation) => (explanation === undefined ? [] : [bothForms(explanation)]));
  });
}
