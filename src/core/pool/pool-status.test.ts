import { describe, expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MemberFacts } from "./member-facts.ts";
import { PoolMembers } from "./pool-members.ts";
import type { PoolFacts } from "./pool-progress.ts";
import { poolStatus, poolStatusInputs, withOverallDegraded } from "./pool-status.ts";
import { poolProgress } from "./pool-progress.ts";
import { plainPolicy, selectNodes } from "./select-nodes.ts";
import type { Past } from "../books/past.ts";
import type { RolloutPolicy } from "./rollout-holds.ts";

const now = Date.UTC(2030, 0, 1, 12);
const member = (name: string, more: Partial<MemberFacts> = {}): MemberFacts => ({
  name,
  zone: "",
  createdAt: "2029-01-01T00:00:00Z",
  controlPlane: false,
  current: "new",
  desired: "new",
  currentImage: "",
  desiredImage: "",
  state: "Done",
  reason: "",
  kubeletReady: true,
  kubeletReason: "",
  cordoned: "no",
  drainPending: false,
  phase: "Updated",
  says: "",
  saysReason: "",
  since: "",
  reported: undefined,
  skippedUntil: "",
  daemonAwaySince: "",
  refused: [],
  ...more,
});
const poolWith = (more: { spec?: object; status?: object } = {}): MachineConfigPool =>
  ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfigPool",
    metadata: { name: "worker", generation: 3 },
    spec: { configuration: { name: "new" }, ...more.spec },
    ...(more.status === undefined ? {} : { status: more.status }),
  }) as MachineConfigPool;

function factsOf(
  members: readonly MemberFacts[],
  {
    pool = poolWith(),
    irreconcilable = [],
    ambiguous = new Map(),
    at = now,
    policy = plainPolicy,
  }: {
    pool?: MachineConfigPool;
    irreconcilable?: readonly string[];
    ambiguous?: PoolFacts["ambiguous"];
    at?: number;
    policy?: RolloutPolicy;
  } = {},
): PoolFacts {
  const sorted = PoolMembers.of(pool.spec.configuration?.name ?? "", members, at);
  return {
    pool,
    members: sorted,
    selection: selectNodes(
      { paused: pool.spec.paused === true, maxUnavailable: pool.spec.maxUnavailable, quarantined: [] },
      sorted,
      policy,
      at,
    ),
    irreconcilable,
    ambiguous,
    now: at,
  };
}

function statusOf(members: readonly MemberFacts[], options: Parameters<typeof factsOf>[1] = {}) {
  const status = poolStatus(factsOf(members, options));
  const of = (type: string) => status.conditions?.find((condition) => condition.type === type);
  return {
    status,
    of,
    counts: [
      status.machineCount,
      status.updatedMachineCount,
      status.readyMachineCount,
      status.unavailableMachineCount,
      status.degradedMachineCount,
    ],
  };
}

const old = { current: "old", desired: "old" };
const underWay = { current: "old", desired: "new", state: "Working", phase: "ApplyingFiles" as const };

describe("poolStatus", () => {
  test.for<{
    title: string;
    members: MemberFacts[];
    counts: number[];
    updated: string;
    updating: string;
    degraded?: string;
  }>([
    {
      title: "all machines have the target",
      members: [member("a"), member("b")],
      counts: [2, 2, 2, 0, 0],
      updated: "True",
      updating: "False",
    },
    {
      title: "a pool without machines is updated",
      members: [],
      counts: [0, 0, 0, 0, 0],
      updated: "True",
      updating: "False",
    },
    {
      title: "one machine is under way and one waits",
      members: [member("a", underWay), member("b", old), member("c")],
      counts: [3, 1, 1, 1, 0],
      updated: "False",
      updating: "True",
    },
    {
      title: "a foreign cordon keeps the pool updated",
      members: [member("a", { cordoned: "byOthers" }), member("b")],
      counts: [2, 2, 2, 1, 0],
      updated: "True",
      updating: "False",
    },
    {
      title: "a machine that we have to put back keeps the pool updating",
      members: [member("a", { cordoned: "byUs", drainPending: true }), member("b")],
      counts: [2, 2, 1, 1, 0],
      updated: "False",
      updating: "True",
    },
    {
      title: "a machine that just joins keeps the pool updated",
      members: [member("a", { current: "", desired: "", state: "", createdAt: "2030-01-01T11:50:00Z" }), member("b")],
      counts: [2, 1, 1, 1, 0],
      updated: "True",
      updating: "False",
    },
    {
      title: "a machine that has been joining for an hour does not",
      members: [member("a", { current: "", desired: "", state: "", createdAt: "2030-01-01T11:00:00Z" }), member("b")],
      counts: [2, 1, 1, 1, 0],
      updated: "False",
      updating: "True",
    },
    {
      title: "a pool that is just being set up is not updated",
      members: [member("a", { current: "", desired: "new", state: "", createdAt: "2030-01-01T11:59:00Z" })],
      counts: [1, 0, 0, 1, 0],
      updated: "False",
      updating: "True",
    },
    {
      title: "a failing machine is degraded and not counted as unavailable",
      members: [member("a", { current: "old", desired: "new", state: "Degraded", reason: "disk full" }), member("b")],
      counts: [2, 1, 1, 0, 1],
      updated: "False",
      updating: "True",
      degraded: "True",
    },
    {
      title: "a drifted machine is degraded and unavailable",
      members: [member("a", { state: "Degraded", reason: "drift" }), member("b")],
      counts: [2, 1, 1, 1, 1],
      updated: "False",
      updating: "True",
      degraded: "True",
    },
    {
      title: "a machine whose kubelet stopped reporting has the target and is not ready",
      members: [member("a", { kubeletReady: false }), member("b")],
      counts: [2, 2, 1, 1, 0],
      updated: "True",
      updating: "False",
    },
  ])("$title [pool-status-1]", ({ members, counts, updated, updating, degraded = "False" }) => {
    const result = statusOf(members);
    expect(result.counts).toEqual(counts);
    expect([result.of("Updated")?.status, result.of("Updating")?.status, result.of("Degraded")?.status]).toEqual([
      updated,
      updating,
      degraded,
    ]);
  });

  test("status.configuration follows only when all machines have the target [pool-status-11]", () => {
    expect(statusOf([member("a"), member("b", old)]).status.configuration).toBeUndefined();
    expect(statusOf([member("a"), member("b")]).status.configuration?.name).toBe("new");
    expect(
      statusOf([member("a", old)], { pool: poolWith({ status: { configuration: { name: "old" } } }) }).status
        .configuration?.name,
    ).toBe("old");
  });

  test("the message says who has it, who gets it now, who waits and for what [pool-status-6]", () => {
    const draining = {
      phase: "Draining" as const,
      says: "1 pod cannot be evicted: default/web-1 (the budget web)",
      saysReason: "PodsBlocked",
      since: "2030-01-01T11:56:00Z",
    };
    const { of } = statusOf(
      [member("a"), member("b", { ...underWay, ...draining }), member("c", old), member("d", old)],
      { irreconcilable: ["spec.fips changed"] },
    );
    expect(of("Updating")).toMatchObject({
      reason: "MaxUnavailableReached",
      message:
        "1 of 4 updated to MachineConfig new; now: b Draining since 2030-01-01T11:56:00Z (1 pod cannot be evicted: default/web-1 (the budget web)); waiting: c, d (BudgetUsed: 1 of 1 allowed unavailable: b updating); cannot be applied to running machines: spec.fips changed",
    });
  });

  test("a paused pool says what it will not do [pool-status-7]", () => {
    const { of } = statusOf([member("a", old)], { pool: poolWith({ spec: { paused: true } }) });
    expect(of("Updated")?.status).toBe("False");
    expect(of("Updating")).toMatchObject({
      status: "False",
      reason: "Paused",
      message: "Pool is paused; will not update to MachineConfig new (0 of 1 have it)",
    });
  });

  test("degraded machines are named with what they say, at most five [pool-status-4]", () => {
    const many = ["a", "b", "c", "d", "e", "f"].map((name) =>
      member(name, { state: "Degraded", reason: `broken ${name}` }),
    );
    const { of } = statusOf(many);
    expect(of("NodeDegraded")).toMatchObject({
      status: "True",
      reason: "6 nodes are reporting degraded status on sync",
    });
    expect(of("NodeDegraded")?.message).toMatch(/^Node a is reporting: "broken a", .* and 1 more$/);
  });

  test("a render failure of another writer is kept and makes the pool degraded [pool-status-14]", () => {
    const condition = {
      type: "RenderDegraded",
      status: "True",
      reason: "RenderRefused",
      message: "bad file",
      lastTransitionTime: "2030-01-01T00:00:00Z",
    };
    const { of } = statusOf([member("a")], { pool: poolWith({ status: { conditions: [condition] } }) });
    expect(of("RenderDegraded")).toEqual(condition);
    expect(of("Degraded")).toMatchObject({ status: "True", reason: "RenderDegraded", message: "bad file" });
  });

  test("without a change of facts nothing of the status changes, and times move only with a status [pool-status-12]", () => {
    const first = statusOf([member("a"), member("b", underWay)]).status;
    const pool = poolWith({ status: first });
    const again = poolStatus(factsOf([member("a"), member("b", underWay)], { pool, at: now + 60_000 }));
    expect(again).toEqual(first);
  });

  test("a machine that says in its MachineConfigNode that it is degraded is shown once, whatever its annotations say [pool-status-3]", () => {
    const { of, counts } = statusOf([
      member("a", { reported: { updatedTo: "new", image: "", degraded: true }, says: "disk full" }),
      member("b", { state: "Degraded", reason: "no space", reported: { updatedTo: "new", image: "", degraded: true } }),
    ]);
    expect(counts[4]).toBe(2);
    expect(of("NodeDegraded")?.message).toBe('Node a is reporting: "disk full", Node b is reporting: "no space"');
  });

  test("a machine counts as updated if annotations and MachineConfigNode agree, or by annotations alone without the latter [pool-status-5]", () => {
    expect(statusOf([member("a", { reported: { updatedTo: "old", image: "", degraded: false } })]).counts[1]).toBe(0);
    expect(statusOf([member("a", { reported: { updatedTo: "new", image: "", degraded: false } })]).counts[1]).toBe(1);
    expect(statusOf([member("a")]).counts[1]).toBe(1);
  });

  test("a MachineConfigNode without conditions hides none of the machines after it [pool-status-2]", () => {
    const { counts } = statusOf([
      member("a", { reported: undefined }),
      member("b", { state: "Degraded", reported: { updatedTo: "new", image: "", degraded: true } }),
      member("c", { kubeletReady: false }),
    ]);
    expect(counts).toEqual([3, 2, 1, 2, 1]);
  });

  test("an empty pool, a paused pool that has everything, and a machine in two pools say so [pool-status-8]", () => {
    expect(statusOf([]).of("Updated")?.message).toBe("The pool has no nodes; new ones get MachineConfig new");
    expect(statusOf([member("a")], { pool: poolWith({ spec: { paused: true } }) }).of("Updated")?.message).toBe(
      "All nodes are updated with MachineConfig new; the pool is paused: it will not follow a new configuration",
    );
    expect(statusOf([], { ambiguous: new Map([["x", ["infra", "gpu"]]]) }).of("Updated")?.message).toContain(
      "x is selected by infra and gpu and so belongs to none of them",
    );
  });

  test("until when the API server's certificates on machines are good is shown, also while the pool is paused [pool-status-13]", () => {
    const certificates = [{ bundle: "KubeAPIServerServingCAData", subject: "api", expiry: "2031-01-01T00:00:00Z" }];
    const pool = poolWith({ spec: { paused: true } });
    expect(poolStatus({ ...factsOf([member("a")], { pool }), certificates }).certExpirys).toEqual(certificates);
    expect(poolStatus(factsOf([member("a")], { pool })).certExpirys).toBeUndefined();
  });

  test("unreachable machines and unready daemons are listed with their time [pool-status-10]", () => {
    const lost = member("a", {
      kubeletReady: false,
      kubeletReason: "Ready is Unknown",
      phase: "Lost",
      since: "2030-01-01T11:00:00Z",
    });
    const silent = member("b", { daemonAwaySince: "2030-01-01T11:30:00Z" });
    const { of, counts } = statusOf([lost, silent, member("c")]);
    expect(of("Updated")?.message).toBe(
      "All nodes are updated with MachineConfig new; a is out of reach since 2030-01-01T11:00:00Z (Ready is Unknown), the daemon of b is silent since 2030-01-01T11:30:00Z",
    );
    expect(counts).toEqual([3, 3, 2, 2, 0]);
  });

  test("what rendering waits for is said, though nothing is degraded by it [pool-status-9]", () => {
    const condition = {
      type: "RenderDegraded",
      status: "False",
      reason: "WaitingForControllerConfig",
      message: "the ControllerConfig is not complete",
      lastTransitionTime: "2030-01-01T00:00:00Z",
    };
    expect(
      statusOf([member("a")], { pool: poolWith({ status: { conditions: [condition] } }) }).of("Updated")?.message,
    ).toContain("; rendering waits: the ControllerConfig is not complete");
  });
});

test("a roll-out whose first machine has to stay healthy has no estimated end: updates take less [pool-status-15]", () => {
  const past: Past = {
    updates: [{ run: "new", kind: { reboots: true, drains: true }, wholeMs: 2000, sections: new Map() }],
    foreseen: new Map(),
    history: [],
  };
  const members = [member("a", { since: new Date(now - 1000).toISOString() }), member("b", old), member("c", old)];
  const estimated = (more: Partial<RolloutPolicy>) =>
    poolProgress(factsOf(members, { policy: { ...plainPolicy, ...more } }), past).eta?.whole;
  expect(estimated({})).toMatchObject({ likely: now + 4000 });
  expect(estimated({ canary: { count: 1, wellMs: 300_000 } })).toBeUndefined();
});

describe("the conditions by which others wait for a pool", () => {
  const progress = (conditions: readonly object[]) =>
    withOverallDegraded(conditions as never, now)
      .filter(({ type, status }) => (type === "Reconciling" || type === "Stalled") && status === "True")
      .map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
  const course = (updated: string, updating: string, reason: string, degraded = "False") => [
    { type: "Updated", status: updated },
    { type: "Updating", status: updating, reason, message: "as it is" },
    { type: "NodeDegraded", status: degraded, message: "a is broken" },
    { type: "Degraded", status: "False" },
  ];
  test.for([
    [course("True", "False", "NothingToDo"), []],
    [course("False", "True", "RollingOut"), ["Reconciling RollingOut: as it is"]],
    [course("False", "False", "NotRendered"), ["Reconciling NotRendered: as it is"]],
    [course("False", "False", "Paused"), ["Reconciling Paused: as it is"]],
    [course("False", "False", "CanaryFailed"), ["Stalled CanaryFailed: as it is"]],
    [course("False", "False", "MachineExcluded"), ["Stalled MachineExcluded: as it is"]],
    [course("True", "False", "NothingToDo", "True"), ["Stalled NodeDegraded: a is broken"]],
    [course("False", "True", "RollingOut", "True"), ["Stalled NodeDegraded: a is broken"]],
    [[{ type: "RegistriesDegraded", status: "True" }], []],
  ] as const)("of %j are %j [pool-status-progress-1]", ([conditions, expected]) => {
    expect(progress(conditions)).toEqual(expected);
  });

  test("come with the pool's status, and are no input of it [pool-status-progress-2]", () => {
    const status = poolStatus(factsOf([member("a", { current: "old" }), member("b")]));
    const said = new Map(status.conditions?.map((one) => [one.type, one]));
    expect([said.get("Reconciling")?.status, said.get("Stalled")?.status]).toEqual(["True", "False"]);
    expect(said.get("Reconciling")?.reason).toBe(said.get("Updating")?.reason);
    expect(poolStatusInputs(poolWith({ status }))).toEqual(
      poolStatusInputs(
        poolWith({
          status: { ...status, conditions: status.conditions?.filter(({ type }) => type === "RenderDegraded") },
        }),
      ),
    );
  });
});
