import { describe, expect, test } from "vitest";
import type { Node, Pod, PodDisruptionBudget } from "../../api/foreign/kubernetes.ts";
import { annotations, buildNamespace, labels } from "../../api/names.ts";
import { decideDrain } from "./decide-drain.ts";
import { knownBudgets } from "./disruption-budgets.ts";
import type { AskedPod, DrainCase, DrainDecision, DrainMemory, DrainView, EvictionRound } from "./drain-decision.ts";
import { planDrain } from "./plan-drain.ts";
import { defaultPoolPolicy } from "./pool-policy.ts";

const beganAt = "2030-01-01T00:00:00Z";
const now = Date.parse("2030-01-01T00:01:00Z");

const pod = (name: string, metadata: object = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name,
    namespace: "n",
    uid: name,
    labels: { app: "web" },
    ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "1", controller: true }],
    ...metadata,
  },
  spec: { containers: [] },
});
const builder = pod("builder", { namespace: buildNamespace, labels: { [labels.ephemeralBuildObject]: "" } });
const lookalike = pod("lookalike", { labels: { [labels.ephemeralBuildObject]: "" } });
const going = pod("going", { deletionTimestamp: "2030-01-01T00:00:59Z" });

const keep: PodDisruptionBudget = {
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "keep", namespace: "n" },
  spec: { selector: { matchLabels: { app: "web" } }, maxUnavailable: 1 },
  status: { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2, expectedPods: 3 },
};
const byKeep = "pod n/web by PodDisruptionBudget n/keep (allowed disruptions 0, 2 healthy of 2 needed)";

const node = (has: {
  readonly desired?: string;
  readonly applied?: string;
  readonly cordoned?: false;
  readonly began?: false;
  readonly deleted?: true;
}): Node => {
  const { desired = "drain-x", applied } = has;
  const began = JSON.stringify({ request: desired, at: beganAt, pods: 3 });
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: "w",
      ...(has.deleted === undefined ? {} : { deletionTimestamp: beganAt }),
      annotations: {
        ...(desired === "" ? {} : { [annotations.desiredDrain]: desired }),
        ...(applied === undefined ? {} : { [annotations.lastAppliedDrain]: applied }),
        ...(has.began === false ? {} : { [annotations.drainBegan]: began }),
      },
    },
    spec: has.cordoned === false ? {} : { unschedulable: true },
  };
};

const policy = (
  deadlineSeconds: number | undefined,
  afterDeadline: DrainView["pool"]["drain"]["afterDeadline"] = { do: "wait" },
): Pick<DrainView, "pool"> => ({ pool: { name: "worker", drain: { deadlineSeconds, afterDeadline } } });

const view = (more: Partial<DrainView> = {}): DrainView => ({
  node: node({}),
  now,
  monotonic: 100_000,
  pool: { name: "worker", drain: defaultPoolPolicy.drain },
  drained: undefined,
  ...more,
});
const round = (answers: readonly AskedPod[] | undefined, more: Partial<EvictionRound> = {}) => ({
  round: {
    startedAt: now,
    from: "server",
    pods: [pod("web")],
    first: undefined,
    ...(answers === undefined ? {} : { answers }),
    ...more,
  } satisfies EvictionRound,
});
const gone: AskedPod = { verdict: "gone" };
const leaving: AskedPod = { verdict: "leaving", pod: pod("web") };
const blocked: AskedPod = { verdict: "blocked", pod: pod("web"), by: "pdb", why: "no" };
const hooked: AskedPod = { verdict: "blocked", pod: pod("hooked"), by: "refused", why: "a webhook says no" };
/** Pods are left, and everything that decides about them is known. */
const left = (answers: readonly AskedPod[], more: Partial<DrainView> = {}): Partial<DrainView> => ({
  ...round(answers),
  isWatched: true,
  budgets: { known: knownBudgets([keep]), askedAt: now },
  ...more,
});
const nothing: DrainMemory = { held: undefined, reported: undefined };

const rows: readonly {
  readonly title: string;
  readonly seen: Partial<DrainView>;
  readonly memory?: DrainMemory;
  readonly decision: Pick<DrainDecision, "do"> & Readonly<Record<string, unknown>>;
}[] = [
  { title: "of a node that is gone nothing is watched", seen: { node: undefined }, decision: { do: "rest" } },
  { title: "nor of one that is being deleted", seen: { node: node({ deleted: true }) }, decision: { do: "rest" } },
  { title: "nor of one that requests nothing", seen: { node: node({ desired: "" }) }, decision: { do: "rest" } },
  {
    title: "nor of one that is drained",
    seen: { node: node({ applied: "drain-x" }), ...round(undefined) },
    decision: { do: "rest" },
  },
  {
    title: "an unknown verb is refused",
    seen: { node: node({ desired: "reboot-x" }) },
    decision: {
      do: "refuse",
      because: '"reboot-x" is no drain request: it starts with neither drain- nor uncordon-',
    },
  },
  { title: "an uncordon puts back", seen: { node: node({ desired: "uncordon-x" }) }, decision: { do: "uncordon" } },
  {
    title: "before a cordon it is asked what the drain will meet",
    seen: { node: node({ cordoned: false }) },
    decision: { do: "foresee" },
  },
  {
    title: "a failed prediction keeps no cordon back",
    seen: { node: node({ cordoned: false }), forecast: { found: undefined } },
    decision: { do: "cordon", pods: undefined, foreseen: undefined, warning: undefined },
  },
  {
    title: "without an obstacle nobody is warned",
    seen: {
      node: node({ cordoned: false }),
      forecast: { found: { plan: planDrain([pod("web"), going]), blocked: [], budgets: knownBudgets([]) } },
    },
    decision: { do: "cordon", pods: 2, foreseen: undefined, warning: undefined },
  },
  {
    title: "an obstacle that is foreseen is said before the cordon",
    seen: {
      node: node({ cordoned: false, applied: "drain-x" }),
      forecast: { found: { plan: planDrain([pod("web")]), blocked: [blocked], budgets: knownBudgets([keep]) } },
    },
    decision: {
      do: "cordon",
      because: "the node was put back into service while its drain is still needed",
      pods: 1,
      warning: {
        type: "Warning",
        message: `Before w is drained, of 1 pods: cannot be evicted now: ${byKeep}`,
      },
    },
  },
  {
    title: "pods that nothing recreates are foreseen without a warning",
    seen: {
      node: node({ cordoned: false }),
      forecast: {
        found: { plan: planDrain([pod("alone", { ownerReferences: [] })]), blocked: [], budgets: knownBudgets([]) },
      },
    },
    decision: { do: "cordon", warning: { type: "Normal", message: expect.stringContaining("n/alone") as string } },
  },
  {
    title: "the pods of a cordoned node are listed first",
    seen: {},
    decision: { do: "listPods", startedAt: now, first: undefined },
  },
  { title: "then they are evicted", seen: round(undefined), decision: { do: "evict", pods: [pod("web")] } },
  {
    title: "pods that build an image are let finish",
    seen: { node: node({}), ...round(undefined, { pods: [builder, pod("web")] }) },
    decision: { do: "evict", pods: [pod("web")] },
  },
  {
    title: "not those that anybody labels so in another namespace",
    seen: { node: node({}), ...round(undefined, { pods: [lookalike] }) },
    decision: { do: "evict", pods: [lookalike] },
  },
  {
    title: "ten minutes at most, from the beginning of the round",
    seen: round(undefined, { startedAt: Date.parse(beganAt) + 600_000, pods: [builder] }),
    decision: { do: "evict", pods: [builder] },
  },
  {
    title: "a node that looks empty to a watch is listed again, with the pods counted before",
    seen: round([gone], { startedAt: now - 1, from: "watch", pods: [pod("web")] }),
    decision: { do: "listPods", startedAt: now - 1, first: 1 },
  },
  {
    title: "a node without pods to evict is listed again too",
    seen: round(undefined, { from: "watch", pods: [] }),
    decision: { do: "listPods", first: 0 },
  },
  {
    title: "an empty node is confirmed by what the server has",
    seen: round([gone], { first: 1 }),
    decision: { do: "confirm", request: "drain-x" },
  },
  {
    title: "pods that leave are watched",
    seen: round([leaving], { from: "watch" }),
    decision: { do: "watch", byBudgets: [] },
  },
  { title: "so are budgets that block", seen: round([blocked]), decision: { do: "watch", byBudgets: [pod("web")] } },
  { title: "and only these", seen: round([hooked]), decision: { do: "watch", byBudgets: [] } },
  {
    title: "a drain that another client cordoned is noted, with the pods of the first list",
    seen: { node: node({ began: false }), ...round([leaving], { first: 4 }), isWatched: true },
    decision: { do: "begin", pods: 4 },
  },
  {
    title: "what this pass noted counts",
    seen: {
      node: node({ began: false }),
      began: { request: "drain-x", at: beganAt, pods: 9 },
      ...round([leaving]),
      isWatched: true,
    },
    decision: { do: "readBudgets", of: [], askedAt: now },
  },
  {
    title: "budgets are read before anything is said of blocked pods",
    seen: { ...round([blocked]), isWatched: true },
    decision: { do: "readBudgets", of: [blocked], askedAt: now },
  },
  {
    title: "a blocked drain waits, and says by what",
    seen: left([blocked]),
    decision: {
      do: "wait",
      because: `2 of 3 pods have left; blocked: ${byKeep}`,
      reason: "PodsBlocked",
      report: { reason: "PodsBlocked", message: `The drain of w waits: 2 of 3 pods have left; blocked: ${byKeep}` },
      writesProgress: true,
      counts: { blocked: 1, leaving: 0 },
      seconds: 5,
    },
  },
  {
    title: "pods that leave hold nothing",
    seen: left([leaving]),
    memory: { held: "PodsBlocked", reported: undefined },
    decision: {
      do: "wait",
      reason: "UpdateExecutedDrained",
      report: undefined,
      memory: expect.objectContaining({ held: undefined }) as object,
      counts: { blocked: 0, leaving: 1 },
    },
  },
  {
    title: "a pod that builds an image is a blocked one",
    seen: left([], round([], { pods: [builder] })),
    decision: {
      do: "wait",
      because: expect.stringContaining("(it builds an OS image, which is waited for, ten minutes at most)") as string,
    },
  },
  {
    title: "the drain is tried again at its deadline at the latest",
    seen: left([blocked], policy(62)),
    decision: { do: "wait", reason: "PodsBlocked", seconds: 2 },
  },
  {
    title: "a late drain says so, and waits longer",
    seen: left([blocked], policy(60)),
    decision: {
      do: "wait",
      reason: "DrainDeadlineExceeded",
      report: {
        reason: "DrainDeadlineExceeded",
        message: `The drain of w takes longer than the 60 s that its pool gives it; it continues without force: 2 of 3 pods have left; blocked: ${byKeep}`,
      },
      seconds: 30,
    },
  },
  {
    title: "whether it is late was decided before its budgets were read",
    seen: left([blocked], { ...policy(60), budgets: { known: knownBudgets([keep]), askedAt: now - 1 } }),
    decision: { do: "wait", reason: "PodsBlocked" },
  },
  {
    title: "a pool may give a late drain up",
    seen: left([blocked], policy(60, { do: "skip" })),
    decision: {
      do: "skip",
      because: `The drain of w is given up after the 60 s that its pool gives it; the node serves again and is tried again after 2030-01-01T00:06:00Z: 2 of 3 pods have left; blocked: ${byKeep}`,
      request: "drain-x",
      again: "2030-01-01T00:06:00Z",
      why: `2 of 3 pods have left; blocked: ${byKeep}`,
    },
  },
  {
    title: "or delete what it names",
    seen: left([blocked, hooked], policy(60, { do: "force", despite: ["pdb"] })),
    decision: {
      do: "force",
      pods: [
        {
          pod: pod("web"),
          message: `${byKeep} is deleted: its node has drained for 60 s, and the policy of pool worker requires it`,
        },
      ],
    },
  },
  {
    title: "after which it waits for these, and names what keeps the others",
    seen: left([blocked, hooked], {
      ...policy(60, { do: "force", despite: ["pdb"] }),
      forced: { do: "force", pods: [blocked], kept: [{ ...hooked, unnamed: ["refused"] }] },
    }),
    decision: {
      do: "wait",
      because:
        "1 of 3 pods have left; blocked: pod n/hooked (a webhook says no); leaving: n/web; 1 not forced, because of what the pool's policy does not name: refused",
      reason: "DrainDeadlineExceeded",
      report: {
        reason: "DrainDeadlineExceeded",
        message: expect.stringContaining("it overrides what the pool's policy names") as string,
      },
      counts: { blocked: 1, leaving: 1 },
      seconds: 30,
    },
  },
];

describe("decideDrain", () => {
  test.for(rows)("$title [pool-decide-drain-1]", ({ seen, memory = nothing, decision }) => {
    expect(decideDrain(view(seen), memory)).toMatchObject(decision);
  });

  test("the rows reach every decision, and each has a reason [pool-decide-drain-2]", () => {
    const every: Readonly<Record<DrainDecision["do"], true>> = {
      foresee: true,
      listPods: true,
      evict: true,
      readBudgets: true,
      cordon: true,
      watch: true,
      begin: true,
      force: true,
      rest: true,
      refuse: true,
      uncordon: true,
      confirm: true,
      skip: true,
      wait: true,
    };
    const decisions = rows.map(({ seen, memory = nothing }) => decideDrain(view(seen), memory));
    expect([...new Set(decisions.map((each) => each.do))].sort()).toEqual(Object.keys(every).sort());
    expect(decisions.filter(({ because }) => because === "")).toEqual([]);
  });
});

describe("what a drain says again", () => {
  const waits = (seen: Partial<DrainView>, memory: DrainMemory): DrainCase<"wait"> => {
    const decision = decideDrain(view(seen), memory);
    if (decision.do !== "wait") throw new Error(`it decides to ${decision.do}`);
    return decision;
  };
  const first = waits(left([blocked]), nothing);

  test("a hold is reported once by a process, and not again after another one [pool-decide-drain-3]", () => {
    expect(first.report?.reason).toBe("PodsBlocked");
    expect(waits(left([blocked]), first.memory).report).toBeUndefined();
    const shown = { drained: { status: "Unknown", reason: "PodsBlocked" } } as const;
    const next = waits(left([blocked], shown), nothing);
    expect([next.report, next.memory.held]).toEqual([undefined, "PodsBlocked"]);
    expect(waits(left([blocked], { ...shown, ...policy(60) }), first.memory).report?.reason).toBe(
      "DrainDeadlineExceeded",
    );
  });

  test("progress is written at once when the pods change, else every 15 s [pool-decide-drain-4]", () => {
    const later = (ms: number, answers: readonly AskedPod[]) =>
      waits(left(answers, { monotonic: 100_000 + ms }), first.memory);
    expect(first.writesProgress).toBe(true);
    expect([later(14_999, [blocked]).writesProgress, later(15_000, [blocked]).writesProgress]).toEqual([false, true]);
    expect(later(14_999, [blocked]).memory).toEqual(first.memory);
    expect(later(1, [blocked, hooked]).writesProgress).toBe(true);
  });

  test("a leaving pod that gets stuck is news [pool-decide-drain-5]", () => {
    const stuck = (ms: number) => left([], { ...round([], { pods: [going] }), now: now + ms });
    const { memory } = waits(stuck(0), nothing);
    expect(waits(stuck(58_000), memory).writesProgress).toBe(false);
    expect(waits(stuck(60_000), memory).writesProgress).toBe(true);
  });
});
