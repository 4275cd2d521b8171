import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations, labels } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { reasonText, reportReasons } from "../../api/books/report-table.ts";
import { type ComponentFacts, componentHealth, factsOf } from "../pool/pool-queries.ts";
import { type TaskOutcome, clusterOperatorConditions, poolsUnderWay } from "./cluster-operator-status.ts";
import {
  type HealthFacts,
  type HealthType,
  bootstrapComplete,
  healthConditions,
  healthReasonKey,
  healthTypes,
  overallHealth,
  stateKeeping,
  switchedOff,
  withTransitions,
} from "./health.ts";

const now = Date.UTC(2030, 0, 1, 12);
const version = "1.0.0";
const minutes = (count: number) => count * 60_000;
const component = (name: string, more: Partial<ComponentFacts> = {}): ComponentFacts => ({
  name,
  wanted: 1,
  ofThisVersion: 1,
  available: 1,
  observed: true,
  ...more,
});
const leader = { holder: "pod-1_controller_x", renewedAt: now - 5000 };

interface PoolSketch {
  readonly refused?: string;
  readonly machines?: number;
  readonly behind?: number;
  readonly drifted?: number;
}

function clusterOf(pools: Readonly<Record<string, PoolSketch>>) {
  const nodes: Node[] = [];
  const made = Object.entries(pools).map(([name, { refused, machines = 1, behind = 0, drifted = 0 }]) => {
    for (let index = 0; index < machines; index += 1) {
      const has = index < behind ? "rendered-0" : "rendered-1";
      nodes.push({
        apiVersion: "v1",
        kind: "Node",
        metadata: {
          name: `${name}-${index}`,
          creationTimestamp: "2029-01-01T00:00:00Z",
          labels: { [`node-role.kubernetes.io/${name}`]: "" },
          annotations: {
            [annotations.currentConfig]: has,
            [annotations.desiredConfig]: has,
            [annotations.state]: index < machines - drifted ? "Done" : "Degraded",
          },
        },
        spec: {},
        status: { conditions: [{ type: "Ready", status: "True" }] },
      });
    }
    return {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name, labels: { [labels.builtInPool]: "" } },
      spec: {
        machineConfigSelector: {},
        nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } },
        configuration: { name: "rendered-1" },
      },
      status: {
        conditions:
          refused === undefined
            ? []
            : [
                {
                  type: "RenderDegraded",
                  status: "True",
                  reason: "RenderRefused",
                  message: refused,
                  lastTransitionTime: "2030-01-01T00:00:00Z",
                },
              ],
      },
    } as MachineConfigPool;
  });
  return factsOf({ pools: made, nodes, machineConfigNodes: [] }, now);
}

const operatorSaying = (
  conditions: ClusterOperator["status"] extends (infer S) | undefined
    ? NonNullable<(S & { conditions?: unknown })["conditions"]>
    : never,
  reached = version,
): ClusterOperator =>
  ({
    apiVersion: ClusterOperator.apiVersion,
    kind: "ClusterOperator",
    metadata: { name: "machine-config" },
    spec: {},
    status: { conditions, versions: [{ name: "operator", version: reached }] },
  }) as ClusterOperator;
const report = (outcomes: readonly TaskOutcome[], cluster: HealthFacts["cluster"], reached = version) =>
  operatorSaying(clusterOperatorConditions({ version, reached, outcomes, cluster }, [], now) as never, reached);

function facts(more: Partial<HealthFacts> = {}): HealthFacts {
  const cluster = more.cluster ?? clusterOf({ worker: {} });
  return {
    version,
    cluster,
    clusterOperator: report([], cluster),
    operator: { deployment: component("machine-config-operator"), leader, failing: [] },
    controller: { deployment: component("machine-config-controller"), leader, failing: [] },
    daemons: { daemonSet: component("machine-config-daemon", { wanted: 3, ofThisVersion: 3, available: 3 }), away: [] },
    server: undefined,
    builder: undefined,
    unseen: [],
    ...more,
  };
}

const said = (given: HealthFacts, type: HealthType) => {
  const told = healthConditions(given).find((condition) => condition.type === type);
  return `${told?.status} ${told?.reason}: ${told?.message}`;
};

describe("the health of the suite's parts", () => {
  test("is fine while everything is [operator-health-1]", () => {
    expect(healthConditions(facts()).map(({ type, status, reason }) => `${type} ${status} ${reason}`)).toEqual([
      "OperatorHealthy True AsExpected",
      "ControllerHealthy True AsExpected",
      "DaemonsHealthy True AsExpected",
      "ServerHealthy True NotNeeded",
      "BuilderHealthy True NotNeeded",
      "UpdateProgressing False AsExpected",
    ]);
  });

  const controller = (more: Partial<HealthFacts["controller"]>) => ({
    controller: { deployment: component("machine-config-controller"), leader, failing: [], ...more },
  });
  const operator = (more: Partial<HealthFacts["operator"]>) => ({
    operator: { deployment: component("machine-config-operator"), leader, failing: [], ...more },
  });
  const daemons = (away: HealthFacts["daemons"]["away"], more: Partial<ComponentFacts> = {}) => ({
    daemons: {
      daemonSet: component("machine-config-daemon", {
        wanted: 3,
        ofThisVersion: 3,
        available: 3 - away.length,
        ...more,
      }),
      away,
    },
  });
  const away = (node: string, ago: number, restarts = 0) => ({
    node,
    since: new Date(now - ago).toISOString(),
    restarts,
  });
  const rows: readonly {
    readonly title: string;
    readonly more: Partial<HealthFacts>;
    readonly type: HealthType;
    readonly says: RegExp;
  }[] = [
    {
      title: "a task that fails",
      more: {
        clusterOperator: report(
          [{ task: "RBAC", kind: "failed", message: "RBAC: forbidden" }],
          clusterOf({ worker: {} }),
        ),
      },
      type: "OperatorHealthy",
      says: /^False SyncRBACFailing: .*forbidden/,
    },
    {
      title: "a task that fails, while there is no ClusterOperator",
      more: {
        clusterOperator: undefined,
        ...operator({ failing: [{ part: "RBAC", message: "forbidden" }] }),
      },
      type: "OperatorHealthy",
      says: /^False SyncRBACFailing: forbidden/,
    },
    {
      title: "an operator with an expired lease",
      more: operator({ leader: { holder: "pod-1", renewedAt: now - minutes(3) } }),
      type: "OperatorHealthy",
      says: /^False SyncStalled: .*pod-1 holds its lease and has not renewed it since 2030-01-01T11:57:00Z/,
    },
    {
      title: "settings that the operator does not look at",
      more: {
        unseen: [
          {
            by: "operator",
            part: "MachineConfiguration",
            what: "the MachineConfiguration cluster",
            since: now - minutes(11),
          },
        ],
      },
      type: "OperatorHealthy",
      says: /^False SyncStalled: the MachineConfiguration cluster has waited/,
    },
    {
      title: "settings that the operator has not looked at for a moment",
      more: {
        unseen: [
          {
            by: "operator",
            part: "MachineConfiguration",
            what: "the MachineConfiguration cluster",
            since: now - minutes(9),
          },
        ],
      },
      type: "OperatorHealthy",
      says: /^True AsExpected/,
    },
    {
      title: "an upgrade",
      more: {
        clusterOperator: report(
          [{ task: "MachineConfigDaemon", kind: "progressing", message: "2 of 3 copies" }],
          clusterOf({ worker: {} }),
          "0.9.0",
        ),
      },
      type: "OperatorHealthy",
      says: /^False VersionSkew: not everything is at 1.0.0 yet: 2 of 3 copies/,
    },
    {
      title: "no operator's pod",
      more: operator({ deployment: component("machine-config-operator", { available: 0 }) }),
      type: "OperatorHealthy",
      says: /^False NotAvailable: 1 of 1 copies of machine-config-operator/,
    },
    {
      title: "a controller that is not installed yet",
      more: controller({ deployment: undefined }),
      type: "ControllerHealthy",
      says: /^Unknown InProgress: machine-config-controller is not installed yet/,
    },
    {
      title: "an old controller",
      more: controller({ deployment: component("machine-config-controller", { ofThisVersion: 0 }) }),
      type: "ControllerHealthy",
      says: /^False VersionSkew/,
    },
    {
      title: "no leader",
      more: controller({ leader: { holder: "", renewedAt: now } }),
      type: "ControllerHealthy",
      says: /^False NoLeader: its lease has no holder/,
    },
    {
      title: "a pool that cannot be rendered",
      more: { cluster: clusterOf({ worker: { refused: "two files" } }) },
      type: "ControllerHealthy",
      says: /^False RenderFailing: pool worker cannot be rendered: two files/,
    },
    {
      title: "a child that fails",
      more: controller({ failing: [{ part: "kubelet-config", message: "it fails" }] }),
      type: "ControllerHealthy",
      says: /^False KubeletConfigFailing: it fails/,
    },
    {
      title: "an unobserved pool",
      more: { unseen: [{ by: "controller", part: "node", what: "the pool worker", since: now - minutes(6) }] },
      type: "ControllerHealthy",
      says: /^False NodeStalled: the pool worker has waited/,
    },
    {
      title: "a daemon that is not ready",
      more: daemons([away("worker-1", minutes(6))]),
      type: "DaemonsHealthy",
      says: /^False DaemonSilent: no daemon manages worker-1 \(since 2030-01-01T11:54/,
    },
    {
      title: "a briefly unready daemon",
      more: daemons([away("worker-1", minutes(4))]),
      type: "DaemonsHealthy",
      says: /^True AsExpected: 1 of 3 copies .* none of them for longer/,
    },
    {
      title: "a daemon that ends again and again",
      more: daemons([away("worker-1", minutes(6), 3)]),
      type: "DaemonsHealthy",
      says: /^False DaemonCrashLoop: .*worker-1 \(3 restarts\)/,
    },
    {
      title: "old daemons",
      more: daemons([], { ofThisVersion: 1 }),
      type: "DaemonsHealthy",
      says: /^False DaemonOldVersion: 2 of 3 copies/,
    },
    {
      title: "very many daemons that are not ready",
      more: daemons(
        Array.from({ length: 90 }, (_, index) => away(`worker-with-a-long-name-${index}.example.com`, minutes(6))),
      ),
      type: "DaemonsHealthy",
      says: /and 85 more: the daemons there are not ready; chapter Daemons of the cluster's book records the cause$/,
    },
    {
      title: "an unavailable config server",
      more: { server: { daemonSet: component("machine-config-server", { available: 0 }), certificateEnds: undefined } },
      type: "ServerHealthy",
      says: /^False ServerDown/,
    },
    {
      title: "a certificate that ends soon",
      more: {
        server: {
          daemonSet: component("machine-config-server"),
          certificateEnds: new Date(now + 6 * 86_400_000).toISOString(),
        },
      },
      type: "ServerHealthy",
      says: /^False CertExpiring/,
    },
    {
      title: "a config server that is well",
      more: {
        server: {
          daemonSet: component("machine-config-server"),
          certificateEnds: new Date(now + 8 * 86_400_000).toISOString(),
        },
      },
      type: "ServerHealthy",
      says: /^True AsExpected/,
    },
    {
      title: "a builder that is scaled to nothing",
      more: {
        builder: {
          deployment: component("machine-os-builder", { wanted: 0, available: 0, ofThisVersion: 0 }),
          stuck: undefined,
        },
      },
      type: "BuilderHealthy",
      says: /^True NotNeeded/,
    },
    {
      title: "an unavailable builder that is needed",
      more: { builder: { deployment: component("machine-os-builder", { available: 0 }), stuck: undefined } },
      type: "BuilderHealthy",
      says: /^False BuilderDown/,
    },
    {
      title: "a build that waits",
      more: {
        builder: {
          deployment: component("machine-os-builder"),
          stuck: { name: "worker-1", since: new Date(now - minutes(6)).toISOString(), message: "a Secret is missing" },
        },
      },
      type: "BuilderHealthy",
      says: /^False BuildQueueStuck/,
    },
    {
      title: "machines under way",
      more: { cluster: clusterOf({ worker: { machines: 3, behind: 2 } }) },
      type: "UpdateProgressing",
      says: /^True PoolsUpdating: pools under way: worker \(1 \(ready 1\) out of 3/,
    },
    {
      title: "machines under way, and one that has drifted",
      more: { cluster: clusterOf({ worker: { machines: 3, behind: 1, drifted: 1 } }) },
      type: "UpdateProgressing",
      says: /^True PoolsUpdating/,
    },
    {
      title: "a machine that has drifted, and nothing else",
      more: { cluster: clusterOf({ worker: { machines: 3, drifted: 1 } }) },
      type: "UpdateProgressing",
      says: /^False AsExpected: no machine is being updated/,
    },
  ];
  test.for(rows)("$title: $type says so [operator-health-2]", ({ more, type, says }) => {
    const given = facts(more);
    expect(said(given, type)).toMatch(says);
    // What is wrong with one part is said of that part.
    if (type !== "UpdateProgressing" && !("cluster" in more))
      for (const other of healthTypes) if (other !== type) expect(said(given, other)).toBe(said(facts(), other));
    for (const { message, reason } of healthConditions(given)) {
      expect(message.length).toBeLessThanOrEqual(1024);
      expect(message).not.toBe("");
      const key = healthReasonKey(reason);
      expect(key, reason).toBeDefined();
      expect(reasonText(key ?? "")).toBe(reportReasons[key ?? "None"]);
    }
  });

  test.for([
    { title: "nothing was read yet", heardAt: undefined },
    { title: "a journal without lines for longer than the limit", heardAt: now - minutes(3) },
  ])("is not known when $title [operator-health-3]", ({ heardAt }) => {
    const told = healthConditions(facts({ cluster: { ...clusterOf({ worker: {} }), heardAt } }));
    expect(told.map(({ status, reason }) => `${status} ${reason}`)).toEqual(healthTypes.map(() => "Unknown NotKnown"));
  });

  test("agrees with the ClusterOperator, which the operator makes of the same answers [operator-health-4]", () => {
    const task = fc.record({
      task: fc.constantFrom("RBAC", "ControllerConfig", "MachineConfigDaemon"),
      kind: fc.constantFrom("done", "failed", "progressing"),
      message: fc.constant("it is so"),
    }) as fc.Arbitrary<TaskOutcome>;
    const pool = fc.record(
      {
        refused: fc.option(fc.constant("two files"), { nil: undefined }),
        machines: fc.constant(2),
        behind: fc.integer({ min: 0, max: 2 }),
      },
      { requiredKeys: ["machines", "behind"] },
    );
    fc.assert(
      fc.property(
        fc.uniqueArray(task, { selector: (one) => one.task, maxLength: 3 }),
        pool,
        pool,
        fc.constantFrom(version, "0.9.0"),
        fc.integer({ min: 0, max: 3 }),
        (outcomes, master, worker, reached, ofThisVersion) => {
          const cluster = clusterOf({ master: master as PoolSketch, worker: worker as PoolSketch });
          const clusterOperator = report(outcomes, cluster, reached);
          const daemonSet = component("machine-config-daemon", { wanted: 3, ofThisVersion, available: 3 });
          const conditions = healthConditions(facts({ cluster, clusterOperator, daemons: { daemonSet, away: [] } }));
          const is = (type: HealthType) => conditions.find((condition) => condition.type === type);
          const has = (type: string) => conditionOf(clusterOperator.status?.conditions, type);
          const firstFailed = outcomes.find(({ kind }) => kind === "failed");
          const refuses = (["master", "worker"] as const).some(
            (name) => ({ master, worker })[name].refused !== undefined,
          );
          // Degraded for a task, and the operator is not healthy for that very task.
          expect(is("OperatorHealthy")?.reason === `Sync${firstFailed?.task}Failing`).toBe(firstFailed !== undefined);
          if (firstFailed !== undefined)
            expect(has("Degraded")).toMatchObject({ status: "True", reason: `${firstFailed.task}Failed` });
          // Of pools every cluster has, one that cannot be rendered degrades; the controller says it of each.
          expect(is("ControllerHealthy")?.reason === "RenderFailing").toBe(refuses);
          if (firstFailed === undefined) expect(has("Degraded")?.status).toBe(refuses ? "True" : "False");
          if (refuses) expect(has("Upgradeable")?.status).toBe("False");
          // The same pools are under way.
          const names = poolsUnderWay(cluster).map((one) => one.pool);
          expect(is("UpdateProgressing")?.status).toBe(names.length > 0 ? "True" : "False");
          if (has("Progressing")?.status === "False")
            for (const name of names) expect(has("Progressing")?.message).toContain(`${name} (`);
          for (const name of names) expect(is("UpdateProgressing")?.message).toContain(`${name} (`);
          // The operator's task waits for exactly those daemons that are not of this version.
          expect(is("DaemonsHealthy")?.reason === "DaemonOldVersion").toBe(
            componentHealth(cluster, "d", daemonSet).because.reason === "OldVersion",
          );
          if (firstFailed === undefined && has("Progressing")?.status === "False" && !refuses)
            expect(is("OperatorHealthy")?.status).toBe("True");
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("StateKeeping", () => {
  const running = { is: "running" } as const;
  const all = { nodes: running, pools: running, builds: running, health: running };
  test.for([
    { title: "everything runs", children: all, gaps: [], says: "True AsExpected: all 4 children run" },
    {
      title: "a child is down",
      children: { ...all, pools: { is: "down", since: now - 5000, why: "a bug" } as const },
      gaps: [],
      says: "False ChildPoolsDown: pools is down since 2030-01-01T11:59:55Z: a bug",
    },
    {
      title: "one is switched off",
      children: { ...all, builds: { is: "off" } as const },
      gaps: [],
      says: "False Off: switched off: builds",
    },
    {
      title: "one has not read everything",
      children: { ...all, nodes: { is: "starting" } as const },
      gaps: [],
      says: "Unknown InProgress: being started: nodes",
    },
    {
      title: "lines were missed a while ago",
      children: all,
      gaps: [{ of: "node/worker-0", message: "3 lines", at: now - minutes(59) }],
      says: "False Gap: node/worker-0: 3 lines",
    },
    {
      title: "lines were missed long ago",
      children: all,
      gaps: [{ of: "node/worker-0", message: "3 lines", at: now - minutes(61) }],
      says: "True AsExpected: all 4 children run",
    },
  ])("$title: $says", ({ children, gaps, says }) => {
    const { status, reason, message } = stateKeeping(children, gaps, now);
    expect(`${status} ${reason}: ${message}`).toBe(says);
    expect(healthReasonKey(reason)).toBeDefined();
  });
});

describe("BootstrapComplete", () => {
  test.for([
    { facts: { journal: "missing" } as const, says: "False BootstrapJournalMissing" },
    { facts: { journal: "unreadable", why: "it has no lines" } as const, says: "False BootstrapJournalMissing" },
    { facts: { journal: "there", handedOver: false, folded: true } as const, says: "False InProgress" },
    { facts: { journal: "there", handedOver: true, folded: false } as const, says: "False InProgress" },
    { facts: { journal: "there", handedOver: true, folded: true } as const, says: "True AsExpected" },
  ])("$facts.journal: $says [operator-health-5]", ({ facts: given, says }) => {
    const { status, reason } = bootstrapComplete(given);
    expect(`${status} ${reason}`).toBe(says);
  });
});

test("the time of a condition moves with its status alone, and nothing is written that is there", () => {
  const told = switchedOff(["StateKeeping"]);
  const first = withTransitions(told, [], now);
  expect(first).toMatchObject([{ status: "Unknown", reason: "Off", lastTransitionTime: "2030-01-01T12:00:00Z" }]);
  expect(withTransitions(told, first ?? [], now + 5000)).toBeUndefined();
  const reworded = withTransitions(
    [{ type: "StateKeeping", status: "Unknown", reason: "InProgress", message: "x" }],
    first ?? [],
    now + 5000,
  );
  expect(reworded?.[0]?.lastTransitionTime).toBe("2030-01-01T12:00:00Z");
  expect(
    withTransitions(
      [{ type: "StateKeeping", status: "True", reason: "AsExpected", message: "x" }],
      first ?? [],
      now + 5000,
    )?.[0]?.lastTransitionTime,
  ).toBe("2030-01-01T12:00:05Z");
});

describe("the suite as a whole", () => {
  const part = (type: string, status: "True" | "False" | "Unknown", reason = "AsExpected", message = "") => ({
    type,
    status,
    reason,
    message,
  });
  test.for([
    { title: "is well if every part is", parts: [], is: ["True", "AsExpected", ""] },
    {
      title: "is as the first part that is not well",
      parts: [
        part("StateKeeping", "False", "ChildDown", "nodes"),
        part("DaemonsHealthy", "False", "DaemonSilent", "worker-0"),
      ],
      is: ["False", "DaemonSilent", "DaemonsHealthy: worker-0"],
    },
    {
      title: "is not well if a part is not, whatever is unknown of others",
      parts: [
        part("OperatorHealthy", "Unknown", "NotKnown", "silent"),
        part("StateKeeping", "False", "Gap", "3 lines"),
      ],
      is: ["False", "Gap", "StateKeeping: 3 lines"],
    },
    {
      title: "is unknown if a part is",
      parts: [part("ControllerHealthy", "Unknown", "InProgress", "1 of 2 copies")],
      is: ["Unknown", "InProgress", "ControllerHealthy: 1 of 2 copies"],
    },
    {
      title: "is well during an update, and after a bootstrap whose journal is lost",
      parts: [part("UpdateProgressing", "False"), part("BootstrapComplete", "False", "BootstrapJournalMissing")],
      is: ["True", "AsExpected", ""],
    },
  ] as const)("$title [operator-health-overall-1]", ({ parts, is }) => {
    const well = ["OperatorHealthy", "ControllerHealthy", "DaemonsHealthy", "StateKeeping"]
      .filter((type) => !parts.some((given) => given.type === type))
      .map((type) => part(type, "True"));
    const overall = overallHealth([...well, ...parts]);
    expect([overall?.status, overall?.reason, overall?.message]).toEqual(is);
  });

  test("is not reported before a part is [operator-health-overall-2]", () => {
    expect(overallHealth([])).toBeUndefined();
  });
});
