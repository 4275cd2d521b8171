import { describe, expect, test } from "vitest";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { causeOf, changedSources } from "../config/changed-sources.ts";
import { owedLines, poolTurns, rolloutBegins } from "./pool-reports.ts";
import type { PoolStatusFields } from "./pool-status.ts";

const status = (
  conditions: Readonly<Record<string, readonly [string, string]>>,
  configuration = "rendered-worker-a",
  machineCount = 3,
): PoolStatusFields =>
  ({
    configuration: { name: configuration },
    machineCount,
    conditions: Object.entries(conditions).map(([type, [is, reason]]) => ({
      type,
      status: is,
      reason,
      message: `${type} ${reason}`,
    })),
  }) as PoolStatusFields;
const pool = (before: PoolStatusFields | undefined, target = "rendered-worker-b"): MachineConfigPool =>
  ({
    apiVersion: MachineConfigPool.apiVersion,
    kind: "MachineConfigPool",
    metadata: { name: "worker" },
    spec: { configuration: { name: target } },
    ...(before === undefined ? {} : { status: before }),
  }) as MachineConfigPool;
const rest = { Updated: ["True", "x"], Updating: ["False", "NothingToDo"], NodeDegraded: ["False", ""] } as const;

describe("what the book of a pool says about a change of its status", () => {
  test.for([
    { title: "nothing where nothing turns", before: rest, after: rest, says: [] },
    {
      title: "a roll-out begins",
      before: rest,
      after: { ...rest, Updating: ["True", "RollingOut"] },
      says: ["Rollout Begun begin TargetChanged"],
    },
    {
      title: "a paused pool does not progress",
      before: rest,
      after: { ...rest, Updating: ["False", "Paused"] },
      says: ["Paused Paused begin PoolPaused"],
    },
    {
      title: "and goes on",
      before: { ...rest, Updating: ["False", "Paused"] },
      after: { ...rest, Updating: ["True", "RollingOut"] },
      says: ["Paused Ended end PoolResumed", "Rollout Begun begin TargetChanged"],
    },
    {
      title: "a target is quarantined",
      before: { ...rest, Updating: ["True", "RollingOut"] },
      after: { ...rest, Updating: ["False", "RolloutBlocked"] },
      says: ["Blocked Blocked begin TargetQuarantined"],
    },
    {
      title: "a machine fails, and is well again",
      before: { ...rest, NodeDegraded: ["True", ""] },
      after: rest,
      says: ["Degraded Ended end Recovered"],
    },
  ] as const)("$title", ({ before, after, says }) => {
    expect(
      poolTurns(pool(status(before)), status(after)).map(
        ({ chapter, path, mark, reason }) => `${chapter} ${path} ${mark} ${reason}`,
      ),
    ).toEqual(says);
  });

  test("the end of a roll-out names both ends of it; a pool that is new says so", () => {
    expect(poolTurns(pool(status(rest)), status(rest, "rendered-worker-b"))).toMatchObject([
      {
        chapter: "Rollout",
        run: "rendered-worker-b",
        path: "Finished",
        mark: "end",
        data: { from: "rendered-worker-a", to: "rendered-worker-b", machines: 3 },
      },
    ]);
    expect(poolTurns(pool(undefined), status({}, ""))).toMatchObject([{ chapter: "Created" }]);
  });
});

describe("what the book of a pool misses after a process ended before it sent its lines", () => {
  const [a, b] = ["rendered-worker-a", "rendered-worker-b"];
  const rolling = { ...rest, Updated: ["False", ""], Updating: ["True", "RollingOut"] } as const;
  test.for([
    { title: "nothing where nothing is open", is: status(rest, b), open: [], says: [] },
    {
      title: "nothing where the status agrees",
      is: status({ ...rolling, NodeDegraded: ["True", ""] }, a),
      open: [
        { chapter: "Rollout", run: b, from: a },
        { chapter: "Degraded", run: "", from: "" },
      ],
      says: [],
    },
    {
      title: "the end of a roll-out",
      is: status(rest, b),
      open: [{ chapter: "Rollout", run: b, from: a }],
      says: [`Rollout ${b} Finished end`],
    },
    {
      title: "a whole roll-out after another one",
      is: status(rest, b),
      open: [{ chapter: "Rollout", run: a, from: "rendered-worker-0" }],
      says: [`Rollout ${b} Begun begin`, `Rollout ${b} Finished end`],
    },
    {
      title: "the begin of a roll-out that came upon another one",
      is: status(rolling, "rendered-worker-0"),
      open: [{ chapter: "Rollout", run: a, from: "rendered-worker-0" }],
      says: [`Rollout ${b} Begun begin`],
    },
    {
      title: "the ends of a pause, a quarantine and a failure",
      is: status(rolling, a),
      open: [
        ...["Paused", "Blocked", "Degraded"].map((chapter) => ({ chapter, run: "", from: "" })),
        { chapter: "Rollout", run: b, from: a },
      ],
      says: ["Paused  Ended end", "Blocked  Ended end", "Degraded  Ended end"],
    },
    {
      title: "the end of a roll-out whose target was withdrawn while some machines had it",
      is: status(rolling, b),
      open: [{ chapter: "Rollout", run: a, from: b }],
      says: [`Rollout ${a} Finished end`],
    },
    {
      title: "the begin of a roll-out",
      is: status(rolling, a),
      open: [],
      says: [`Rollout ${b} Begun begin`],
    },
    {
      title: "the begin of a pause and of a failure that it misses",
      is: status({ ...rolling, Updating: ["False", "Paused"], NodeDegraded: ["True", ""] }, a),
      open: [],
      says: ["Paused  Paused begin", "Degraded  Degraded begin"],
    },
  ])("$title [core-pool-reports-1]", ({ is, open, says }) => {
    expect(
      owedLines(pool(is), open).map(({ chapter, run = "", path, mark }) => `${chapter} ${run} ${path} ${mark}`),
    ).toEqual(says);
  });
});

test("a roll-out names the MachineConfigs that brought it, and who wrote them", () => {
  const configs: Record<string, Partial<MachineConfig["metadata"]>> = {
    "rendered-worker-a": { creationTimestamp: "2026-01-01T00:00:00Z" },
    "50-new": { managedFields: [{ manager: "kubectl-create", time: "2026-01-02T00:00:00Z" }] },
    "60-old": {
      managedFields: [
        { manager: "argocd", time: "2025-12-31T00:00:00Z" },
        { manager: "status-writer", subresource: "status", time: "2026-02-01T00:00:00Z" },
      ],
    },
    "70-edited": { managedFields: [{ manager: "kubectl-edit", time: "2026-01-01T12:00:00Z" }] },
  };
  const sources = (...names: string[]) => names.map((name) => ({ name }));
  const changed = changedSources(
    {
      ...pool(undefined),
      status: { configuration: { name: "rendered-worker-a", source: sources("60-old", "70-edited", "80-gone") } },
      spec: { configuration: { name: "rendered-worker-b", source: sources("50-new", "60-old", "70-edited") } },
    } as unknown as MachineConfigPool,
    (name) => (configs[name] === undefined ? undefined : ({ metadata: { name, ...configs[name] } } as MachineConfig)),
  );
  expect(causeOf(changed)).toEqual({
    cause: "MachineConfig 50-new added, 70-edited changed, 80-gone taken away",
    by: "kubectl-create, kubectl-edit",
  });
  expect(rolloutBegins(pool(status(rest)), causeOf(changed))).toMatchObject({
    path: "Begun",
    data: {
      from: "rendered-worker-a",
      to: "rendered-worker-b",
      cause: expect.stringContaining("50-new added") as string,
    },
  });
  expect(causeOf([])).toEqual({});
});
