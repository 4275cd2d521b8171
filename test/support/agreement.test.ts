import { describe, expect, test } from "vitest";
import type { Node } from "../../src/api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { annotations, labels } from "../../src/api/names.ts";
import { phasesAtEnd, withPhases } from "../../src/core/books/update-conditions.ts";
import { foldBook } from "../../src/core/books/fold-book.ts";
import { poolStatus } from "../../src/core/pool/pool-status.ts";
import { factsOf, poolFacts } from "../../src/core/pool/pool-queries.ts";
import type { Explanation } from "../../src/core/preview/explanation.ts";
import { snapshotOf } from "./agreement-snapshot.ts";
import {
  type AgreementSnapshot,
  AgreementWatch,
  type BookChapter,
  type RuleName,
  contradictionsIn,
  describeDisagreement,
  ruleNames,
  rules,
} from "./agreement.ts";
import { morning, reportedUpdate } from "./line-writer.ts";

const now = morning + 24 * 3_600_000;
const target = (pool: string) => `rendered-${pool}-b`;

const nodeIn = (pool: string, name: string): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name,
    uid: name,
    creationTimestamp: "2026-01-01T00:00:00Z",
    labels: { [pool === "master" ? labels.masterRole : labels.workerRole]: "" },
    annotations: {
      [annotations.currentConfig]: target(pool),
      [annotations.desiredConfig]: target(pool),
      [annotations.state]: "Done",
      [annotations.desiredDrain]: `uncordon-${target(pool)}`,
      [annotations.lastAppliedDrain]: `uncordon-${target(pool)}`,
    },
  },
  spec: {},
  status: {
    conditions: [
      {
        type: "Ready",
        status: "True",
        reason: "",
        message: "",
        lastTransitionTime: "2026-01-01T00:00:00Z",
        lastHeartbeatTime: "2026-01-01T00:00:00Z",
      },
    ],
  },
});

const machineConfigNodeIn = (pool: string, name: string): MachineConfigNode => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigNode",
  metadata: { name },
  spec: { node: { name }, pool: { name: pool }, configVersion: { desired: target(pool) } },
  status: {
    conditions: [...withPhases([], phasesAtEnd(target(pool), withPhases([], [], now), { now, spans: new Map() }), now)],
    configVersion: { desired: target(pool), current: target(pool) },
  },
});

const poolNamed = (name: string): MachineConfigPool => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name, generation: 1, labels: { [labels.builtInPool]: "" } },
  spec: {
    nodeSelector: { matchLabels: { [name === "master" ? labels.masterRole : labels.workerRole]: "" } },
    machineConfigSelector: {},
    configuration: { name: target(name) },
    paused: false,
  },
});

/** A cluster at rest, of which everything says the same. */
function atRest(): AgreementSnapshot {
  const nodes = [nodeIn("master", "master-0"), nodeIn("worker", "worker-0"), nodeIn("worker", "worker-1")];
  const machineConfigNodes = [
    machineConfigNodeIn("master", "master-0"),
    machineConfigNodeIn("worker", "worker-0"),
    machineConfigNodeIn("worker", "worker-1"),
  ];
  const bare = [poolNamed("master"), poolNamed("worker")];
  const facts = factsOf({ pools: bare, nodes, machineConfigNodes }, now);
  const pools = bare.map((pool) => {
    const about = poolFacts(facts, pool.metadata.name);
    return about === undefined ? pool : { ...pool, status: poolStatus(about) };
  });
  const { lines } = reportedUpdate({ run: target("worker") });
  return snapshotOf({
    now,
    pools,
    nodes,
    machineConfigNodes,
    machineConfigs: [],
    chapters: new Map([["node/worker-0", foldBook("node/worker-0", lines, { now })]]),
    clusterOperator: "as the operator would",
  });
}

/** A copy with one object of a list changed. */
const changed = <T extends { readonly metadata: { readonly name: string } }>(
  list: readonly T[],
  name: string,
  change: (object: T) => T,
): readonly T[] => list.map((object) => (object.metadata.name === name ? change(object) : object));

const withNode =
  (has: Readonly<Record<string, string>>) =>
  (is: AgreementSnapshot): AgreementSnapshot => ({
    ...is,
    nodes: changed(is.nodes, "worker-0", (node) => ({
      ...node,
      metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, ...has } },
    })),
  });

const withPhase =
  (type: string, status: "True" | "False" | "Unknown", reason = "x") =>
  (is: AgreementSnapshot): AgreementSnapshot => ({
    ...is,
    machineConfigNodes: changed(is.machineConfigNodes, "worker-0", (object) => ({
      ...object,
      status: {
        ...object.status,
        conditions: (object.status?.conditions ?? []).map((condition) =>
          condition.type === type ? { ...condition, status, reason } : condition,
        ),
      },
    })),
  });

const withPool =
  (change: (pool: MachineConfigPool) => MachineConfigPool) =>
  (is: AgreementSnapshot): AgreementSnapshot => ({ ...is, pools: changed(is.pools, "worker", change) });

const withStatus = (more: object) =>
  withPool((pool) => ({ ...pool, status: { ...pool.status, ...more } as NonNullable<MachineConfigPool["status"]> }));

const withCondition = (type: string, status: "True" | "False", reason = "x") =>
  withPool((pool) => ({
    ...pool,
    status: {
      ...pool.status,
      conditions: (pool.status?.conditions ?? []).map((condition) =>
        condition.type === type ? { ...condition, status, reason } : condition,
      ),
    },
  }));

const withChapter =
  (chapter: Partial<BookChapter> & Pick<BookChapter, "book" | "chapter">) =>
  (is: AgreementSnapshot): AgreementSnapshot => ({
    ...is,
    chapters: new Map([
      ...is.chapters,
      [
        chapter.book,
        [{ run: target("worker"), state: "Open", sections: [], startedAt: "2026-01-02T10:00:00Z", ...chapter }],
      ],
    ]),
  });

const explaining =
  (subject: string, change: (json: Explanation) => Partial<Explanation>) =>
  (is: AgreementSnapshot): AgreementSnapshot => ({
    ...is,
    explained: (is.explained ?? []).map((each) =>
      each.json.subject === subject ? { ...each, json: { ...each.json, ...change(each.json) } } : each,
    ),
  });

const measuring =
  (name: string, labelsOf: Readonly<Record<string, string>>, value: number) =>
  (is: AgreementSnapshot): AgreementSnapshot => ({
    ...is,
    metrics: [...is.metrics.filter((each) => each.name !== name), { name, labels: labelsOf, value }],
  });

const soon = { likely: "2026-01-04T00:00:00Z", earliest: "2026-01-04T00:00:00Z", latest: "2026-01-04T00:00:00Z" };

/** For each rule what contradicts it: a program that says one thing in one place and something else in the other. */
const planted: Readonly<Record<RuleName, (is: AgreementSnapshot) => AgreementSnapshot>> = {
  membership: (is) => ({
    ...is,
    machineConfigNodes: changed(is.machineConfigNodes, "worker-0", (object) => ({
      ...object,
      spec: { ...object.spec, pool: { name: "master" } },
    })),
  }),
  "pool counts": withStatus({ updatedMachineCount: 1 }),
  "pool conditions": withCondition("Updating", "True"),
  "parts of Degraded": withCondition("Degraded", "True"),
  "pool conditions and machines": withNode({ [annotations.state]: "Degraded" }),
  "pool target": withStatus({ configuration: { name: "rendered-worker-a" } }),
  "status of pools": (is) => ({
    ...is,
    status: {
      ...is.status,
      nodes: is.status.nodes.map((node) => (node.name === "worker-0" ? { ...node, phase: "Rebooting" } : node)),
    },
  }),
  "status of the operator": (is) => ({
    ...is,
    status: {
      ...is.status,
      ...(is.status.operator === undefined ? {} : { operator: { ...is.status.operator, degraded: true } }),
    },
  }),
  "operator and pools": withCondition("NodeDegraded", "True"),
  "Updated of a machine": withPhase("Updated", "False"),
  "degraded machine": withPhase("NodeDegraded", "True"),
  "target of a machine": (is) => ({
    ...is,
    machineConfigNodes: changed(is.machineConfigNodes, "worker-0", (object) => ({
      ...object,
      spec: { ...object.spec, configVersion: { desired: "rendered-worker-a" } },
    })),
  }),
  "phases of an idle machine": withPhase("Drained", "True"),
  "open update and phases": withChapter({
    book: "node/worker-0",
    chapter: "Update",
    sections: [{ path: "Executed/Drained", startedAt: "2026-01-02T10:00:00Z", attempts: 1 }],
  }),
  "phase and open update": withPhase("RebootedNode", "Unknown"),
  "open chapters of an idle machine": withChapter({ book: "node/worker-0", chapter: "Degraded", run: "" }),
  "update that succeeded": withNode({
    [annotations.state]: "Working",
    [annotations.currentConfig]: "rendered-worker-a",
  }),
  "book of a pool": withChapter({ book: "pool/worker", chapter: "Rollout" }),
  "pool in its book": (is) =>
    withCondition(
      "NodeDegraded",
      "True",
    )(withChapter({ book: "pool/worker", chapter: "Created", state: "Closed" })(is)),
  "explain text and JSON": explaining("node/worker-0", () => ({ todo: ["correct it"] })),
  "explain and pool": explaining("pool/worker", () => ({ reason: "Paused" })),
  "explain and status": explaining("node/worker-0", () => ({ reason: "Rebooting" })),
  "nothing to do": withNode({ [annotations.state]: "Unreconcilable" }),
  estimate: explaining("pool/worker", () => ({
    likelyEnd: { likely: "2026-01-02T00:00:00Z", earliest: soon.earliest, latest: soon.latest, updates: 1 },
  })),
  "estimate and obstacle": (is) =>
    withPhase(
      "Drained",
      "Unknown",
      "PodsBlocked",
    )(
      explaining("node/worker-0", () => ({
        likelyEnd: { ...soon, updates: 1 },
        sections: [{ title: "Likely end", lines: ["soon"] }],
      }))(is),
    ),
  "machine counts in metrics": measuring("mco_updated_machine_count", { pool: "worker" }, 1),
  "pool states in metrics": measuring("mco_pool_paused", { pool: "worker" }, 1),
  "open chapters in metrics": measuring(
    "mco_open_chapter_age_seconds",
    { book_kind: "node", chapter: "Update", pool: "worker" },
    60,
  ),
};

describe("the rules of agreement", () => {
  test("a cluster at rest contradicts none of them [support-agreement-1]", () => {
    const is = atRest();
    expect(is.explained?.map(({ json }) => json.subject)).toEqual([
      "pool/master",
      "node/master-0",
      "pool/worker",
      "node/worker-0",
      "node/worker-1",
    ]);
    expect(contradictionsIn(is)).toEqual([]);
  });

  test.for(ruleNames)("%s: finds a planted contradiction [support-agreement-2]", (rule) => {
    const found = contradictionsIn(planted[rule](atRest())).filter((each) => each.rule === rule);
    expect(found).not.toEqual([]);
    for (const { subject, one, other } of found) {
      expect(subject).toMatch(/^(pool|node)\/(master|worker)|^clusteroperator\/|^books of nodes$/);
      expect(one).not.toBe(other);
    }
  });

  test("every rule says what agrees, and with how much delay [support-agreement-3]", () => {
    for (const rule of ruleNames) {
      const { pair, agrees, lagMs } = rules[rule];
      expect(pair[0]).not.toBe(pair[1]);
      expect(agrees).not.toBe("");
      expect(lagMs).toBeGreaterThanOrEqual(0);
    }
  });
});

describe("a contradiction over time", () => {
  const rule = "pool counts";
  const { lagMs } = rules[rule];
  const at = (ms: number, is: AgreementSnapshot) => ({ ...is, now: now + ms });
  const broken = planted[rule](atRest());
  const found = (watch: AgreementWatch, is: AgreementSnapshot) => watch.sample(is).filter((each) => each.rule === rule);

  test("counts once it is older than the lag, and once [support-agreement-4]", () => {
    const watch = new AgreementWatch();
    expect(found(watch, at(0, broken))).toEqual([]);
    expect(found(watch, at(lagMs, broken))).toEqual([]);
    const [one, ...more] = found(watch, at(lagMs + 1, broken));
    expect(one === undefined ? "" : describeDisagreement(one)).toBe(
      `pool counts: pool/worker: MachineConfigPool status (updatedMachineCount: 1) and annotations of Nodes (Nodes: 2) have disagreed for ${Math.round(lagMs / 1000)} s`,
    );
    expect(more).toEqual([]);
    expect(found(watch, at(lagMs + 2, broken))).toEqual([]);
    expect(watch.samples).toBe(4);
  });

  test("begins again when a sample between did not have it [support-agreement-5]", () => {
    const watch = new AgreementWatch();
    watch.sample(at(0, broken));
    watch.sample(at(lagMs, atRest()));
    expect(found(watch, at(lagMs + 1, broken))).toEqual([]);
    expect(found(watch, at(2 * lagMs + 2, broken))).toHaveLength(1);
  });

  test("of an explanation is as it was while nobody asks for one [support-agreement-7]", () => {
    const watch = new AgreementWatch();
    const explained = planted["explain and pool"](atRest());
    const { lagMs: longest } = rules["explain and pool"];
    watch.sample(at(0, explained));
    watch.sample(at(1, { ...explained, explained: undefined }));
    expect(watch.sample(at(longest + 1, explained)).map((each) => each.rule)).toContain("explain and pool");
  });

  test("counts at once where nothing may lag [support-agreement-6]", () => {
    const watch = new AgreementWatch();
    expect(watch.sample(planted["explain text and JSON"](atRest())).map((each) => each.rule)).toContain(
      "explain text and JSON",
    );
  });
});
