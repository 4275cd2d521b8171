import { describe, expect, test } from "vitest";
import { countWork } from "../../../test/support/count-work.ts";
import type { Node, Pod, PodDisruptionBudget } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";
import { describeDrain, describeForecast } from "./describe-drain.ts";
import { knownBudgets, mayGiveWay, neverAllows, trimBudget } from "./disruption-budgets.ts";
import { drainBegan, drainSkipped, drainStep, skippedUntil } from "./drain-step.ts";
import { judgeDrain, protectionsOf } from "./judge-drain.ts";
import { type BlockedPod, planDrain, trimPod, whyStuck } from "./plan-drain.ts";
import { type Protection, defaultPoolPolicy } from "./pool-policy.ts";

const node = (has: {
  desired?: string;
  applied?: string;
  ours?: string;
  cordoned?: boolean;
}): Pick<Node, "metadata" | "spec"> => ({
  metadata: {
    name: "w",
    annotations: {
      ...(has.desired === undefined ? {} : { [annotations.desiredDrain]: has.desired }),
      ...(has.applied === undefined ? {} : { [annotations.lastAppliedDrain]: has.applied }),
      ...(has.ours === undefined ? {} : { [annotations.cordonedFor]: has.ours }),
    },
  },
  spec: has.cordoned === true ? { unschedulable: true } : {},
});

describe("drainStep", () => {
  test.for([
    { title: "without a request there is nothing to do", has: {}, step: { do: "nothing" } },
    {
      title: "a new request cordons first",
      has: { desired: "drain-x" },
      step: { do: "cordon", request: "drain-x", again: false },
    },
    {
      title: "a cordoned node is emptied",
      has: { desired: "drain-x", cordoned: true, ours: "drain-x" },
      step: { do: "evict", request: "drain-x" },
    },
    {
      title: "a foreign cordon is sufficient",
      has: { desired: "drain-x", cordoned: true },
      step: { do: "evict", request: "drain-x" },
    },
    {
      title: "a request that is carried out rests",
      has: { desired: "drain-x", applied: "drain-x", cordoned: true },
      step: { do: "nothing" },
    },
    {
      title: "a drained node that was uncordoned is cordoned and drained again",
      has: { desired: "drain-x", applied: "drain-x", ours: "drain-x" },
      step: { do: "cordon", request: "drain-x", again: true },
    },
    {
      title: "a request for another config drains again",
      has: { desired: "drain-y", applied: "drain-x", cordoned: true, ours: "drain-x" },
      step: { do: "evict", request: "drain-y" },
    },
    {
      title: "our cordon is lifted",
      has: { desired: "uncordon-x", applied: "drain-x", cordoned: true, ours: "drain-x" },
      step: { do: "uncordon", request: "uncordon-x", remedy: true },
    },
    {
      title: "a foreign cordon stays",
      has: { desired: "uncordon-x", applied: "drain-x", cordoned: true },
      step: { do: "uncordon", request: "uncordon-x", remedy: false },
    },
    {
      title: "an uncordon that is carried out rests, though an administrator cordoned since",
      has: { desired: "uncordon-x", applied: "uncordon-x", cordoned: true },
      step: { do: "nothing" },
    },
    { title: "other verbs are refused", has: { desired: "dance-x" }, step: { do: "refuse", request: "dance-x" } },
  ])("$title [pool-plan-drain-1]", ({ has, step }) => {
    expect(drainStep(node(has))).toMatchObject(step);
  });
});

const pod = (name: string, more: { metadata?: object; status?: object } = {}): Pod =>
  ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "n", ...more.metadata },
    spec: { containers: [] },
    status: { phase: "Running", ...more.status },
  }) as Pod;

describe("planDrain", () => {
  test("evicts all but pods of DaemonSets, mirror pods and ended ones, and waits for those that leave [pool-plan-drain-4]", () => {
    const plan = planDrain([
      pod("web", { metadata: { ownerReferences: [{ kind: "ReplicaSet", controller: true }] } }),
      pod("alone"),
      pod("daemon", { metadata: { ownerReferences: [{ kind: "DaemonSet", controller: true }] } }),
      pod("static", { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } }),
      pod("done", { status: { phase: "Succeeded" } }),
      pod("failed", { status: { phase: "Failed" } }),
      pod("going", { metadata: { deletionTimestamp: "2030-01-01T00:00:00Z" } }),
    ]);
    expect(plan.evict.map(({ metadata }) => metadata.name)).toEqual(["web", "alone"]);
    expect(plan.leaving.map(({ metadata }) => metadata.name)).toEqual(["going"]);
    expect(plan.staying.map(({ pod: each, why }) => `${each.metadata.name} ${why}`)).toEqual([
      "daemon DaemonSet",
      "static mirror",
      "done terminated",
      "failed terminated",
    ]);
  });
});

const owned = { ownerReferences: [{ kind: "ReplicaSet", controller: true }] };
const budget = (name: string, spec: object, status: object = {}, generation = 1): PodDisruptionBudget =>
  ({
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name, namespace: "n", generation },
    spec: { selector: { matchLabels: { app: "web" } }, ...spec },
    status: {
      observedGeneration: 1,
      disruptionsAllowed: 0,
      currentHealthy: 2,
      desiredHealthy: 2,
      expectedPods: 2,
      ...status,
    },
  }) as unknown as PodDisruptionBudget;
const blockedBy = (by: BlockedPod["by"], name: string, more: { metadata?: object; spec?: object } = {}): BlockedPod => {
  const of = pod(name, { metadata: { labels: { app: "web" }, ...owned, ...more.metadata } });
  return { pod: { ...of, spec: { containers: [], ...more.spec } } as Pod, by, why: "no" };
};
const now = Date.parse("2030-01-01T00:10:00Z");

describe("what a drain says of itself", () => {
  const plain = { pods: 0, blocked: [], leaving: [], budgets: knownBudgets([]), now };

  test("progress counts departed pods, blocked pods with their budgets, leaving pods, and pods that nothing recreates [pool-plan-drain-5]", () => {
    const message = describeDrain({
      ...plain,
      pods: 5,
      blocked: [blockedBy("pdb", "web-1")],
      leaving: [pod("b", { metadata: owned }), pod("alone")],
      budgets: knownBudgets([budget("keep", { minAvailable: 1 }, { expectedPods: 3 })]),
    });
    expect(message).toBe(
      "2 of 5 pods have left; blocked: pod n/web-1 by PodDisruptionBudget n/keep (allowed disruptions 0, 2 healthy of 2 needed); leaving: n/b, n/alone; not re-created elsewhere: n/alone",
    );
  });

  test("without the budget at hand it says what the server said; with more pods than at its beginning it counts these [pool-plan-drain-6]", () => {
    expect(describeDrain({ ...plain, blocked: [blockedBy("pdb", "web-1")] })).toBe(
      "0 of 1 pods have left; blocked: pod n/web-1 (no)",
    );
    expect(describeDrain(plain)).toBe("all pods have left");
  });

  test("two budgets on one pod are named, with what that means [pool-plan-drain-7]", () => {
    expect(
      describeDrain({
        ...plain,
        blocked: [blockedBy("pdb", "web-1")],
        budgets: knownBudgets([budget("a", {}), budget("b", {})]),
      }),
    ).toMatch(
      /by PodDisruptionBudget n\/a \(.*\) and PodDisruptionBudget n\/b \(.*\), of which the eviction API takes only one$/,
    );
  });

  test("a stuck pod is reported with its finalizers after its grace period [pool-plan-drain-8]", () => {
    const going = pod("held", {
      metadata: { ...owned, finalizers: ["example.com/wait"], deletionTimestamp: "2030-01-01T00:09:00Z" },
    });
    expect(whyStuck(going, now)).toBeUndefined();
    expect(whyStuck(going, now + 1000)).toBe("held by its finalizers example.com/wait");
    expect(describeDrain({ ...plain, leaving: [going], now: now + 1000 })).toContain(
      "leaving: n/held (stuck since 2030-01-01T00:09:00Z: held by its finalizers example.com/wait)",
    );
    expect(whyStuck(pod("lost", { metadata: { deletionTimestamp: "2030-01-01T00:00:00Z" } }), now)).toBe(
      "its kubelet does not confirm its end",
    );
  });

  test("the forecast names what would be refused, what is lost, and what may be held [pool-plan-drain-2]", () => {
    const plan = planDrain([
      pod("web-1", { metadata: { labels: { app: "web" }, ...owned } }),
      pod("alone"),
      pod("held", { metadata: { ...owned, finalizers: ["f"] } }),
    ]);
    const text = describeForecast(
      plan,
      [blockedBy("pdb", "web-1")],
      knownBudgets([budget("keep", { maxUnavailable: 0 })]),
    );
    expect(text).toBe(
      "of 3 pods: cannot be evicted now: pod n/web-1 by PodDisruptionBudget n/keep (allowed disruptions 0, 2 healthy of 2 needed; it can never allow one: its maxUnavailable is 0, so that only more replicas or another budget help); " +
        "will not be re-created elsewhere, because no controller owns them: n/alone; may be held by finalizers: n/held (f)",
    );
    expect(describeForecast(planDrain([pod("web-1", { metadata: owned })]), [], knownBudgets([]))).toBeUndefined();
  });

  test.for([
    [{ maxUnavailable: 0 }, {}, 1, "its maxUnavailable is 0"],
    [{ maxUnavailable: "0%" }, {}, 1, "its maxUnavailable is 0%"],
    [{ maxUnavailable: 1 }, {}, 1, undefined],
    [{ maxUnavailable: "10%" }, {}, 1, undefined],
    [{ minAvailable: "100%" }, {}, 1, "its minAvailable is 100%"],
    [{ minAvailable: 1 }, { expectedPods: 1 }, 1, "it wants 1 available of 1"],
    [{ minAvailable: 1 }, { expectedPods: 2 }, 1, undefined],
    [{ minAvailable: "51%" }, { expectedPods: 1 }, 1, "it wants 1 available of 1"],
    [{ minAvailable: "50%" }, { expectedPods: 2 }, 1, undefined],
    [{ minAvailable: 1 }, { expectedPods: 0 }, 1, undefined],
    // A status about an older spec proves nothing.
    [{ minAvailable: 1 }, { expectedPods: 1 }, 2, undefined],
  ] as const)(
    "a budget that can never allow a disruption: %j with %j [pool-plan-drain-3]",
    ([spec, status, generation, why]) => {
      expect(neverAllows(budget("x", spec, status, generation))).toBe(why);
    },
  );
});

describe("judgeDrain", () => {
  const policy = (afterDeadline: unknown, deadlineSeconds: number | undefined = 60) =>
    ({ deadlineSeconds, afterDeadline }) as (typeof defaultPoolPolicy)["drain"];

  test("before the deadline, and without one, nothing is done but waiting [pool-plan-drain-9]", () => {
    expect(judgeDrain(policy({ do: "skip" }), 59, [], knownBudgets([]))).toEqual({ do: "goOn", late: false });
    expect(judgeDrain(defaultPoolPolicy.drain, 1e9, [], knownBudgets([]))).toEqual({ do: "goOn", late: false });
  });

  test("after it the policy says what [pool-plan-drain-10]", () => {
    expect(judgeDrain(policy({ do: "wait" }), 60, [], knownBudgets([]))).toEqual({ do: "goOn", late: true });
    expect(judgeDrain(policy({ do: "skip" }), 60, [], knownBudgets([]))).toEqual({ do: "skip" });
  });

  test("a pod is forced only if everything that protects it is named [pool-plan-drain-11]", () => {
    const simple = blockedBy("pdb", "simple");
    const data = blockedBy("pdb", "data", { spec: { volumes: [{ name: "v", emptyDir: {} }] } });
    const alone = blockedBy("pdb", "alone", { metadata: { ownerReferences: [] } });
    const hooked = blockedBy("refused", "hooked");
    const failed = blockedBy("failed", "failed");
    const budgets = knownBudgets([budget("keep", {})]);
    const all = [simple, data, alone, hooked, failed];
    expect(all.map((each) => protectionsOf(each, budgets))).toEqual([
      ["pdb"],
      ["pdb", "emptyDir"],
      ["pdb", "unmanaged"],
      ["refused", "pdb"],
      ["failed", "pdb"],
    ]);
    const forced = (...despite: string[]) => {
      const verdict = judgeDrain(policy({ do: "force", despite }), 60, all, budgets);
      return verdict.do === "force" ? verdict.pods.map((each) => each.pod.metadata.name) : verdict;
    };
    expect(forced("pdb")).toEqual(["simple"]);
    expect(forced("pdb", "emptyDir")).toEqual(["simple", "data"]);
    expect(forced("pdb", "unmanaged")).toEqual(["simple", "alone"]);
    // A webhook is asked first: what it keeps may be kept by a budget too.
    expect(forced("refused")).toEqual([]);
    expect(forced("pdb", "refused")).toEqual(["simple", "hooked"]);
    // What the server could not answer is never forced.
    expect(forced("pdb", "refused", "unmanaged", "emptyDir")).toEqual(["simple", "data", "alone", "hooked"]);
  });
});

describe("notes on the node", () => {
  const noted = (key: string, text: string, desired = "drain-x") => ({
    metadata: { name: "w", annotations: { [annotations.desiredDrain]: desired, [key]: text } },
    spec: {},
  });

  test("a drain remembers when it began; a note about another request, or one that cannot be read, is none", () => {
    const text = JSON.stringify({ request: "drain-x", at: "2030-01-01T00:00:00Z", pods: 3 });
    expect(drainBegan(noted(annotations.drainBegan, text))).toEqual({
      request: "drain-x",
      at: "2030-01-01T00:00:00Z",
      pods: 3,
    });
    expect(drainBegan(noted(annotations.drainBegan, text, "drain-y"))).toBeUndefined();
    for (const bad of ["", "{", "null", "[]", '{"request":"drain-x","at":"soon"}'])
      expect(drainBegan(noted(annotations.drainBegan, bad))).toBeUndefined();
  });

  test.for(["+275760-09-12T00:00:00.000Z", `2030-01-01 (${"x".repeat(100_000)})`, "Jan 1 2030"])(
    "a note with a time that the controller does not write is none (%#) [pool-plan-drain-13]",
    (at) => {
      const text = JSON.stringify({ request: "drain-x", at, again: at, why: "w", pods: 1 });
      expect(drainSkipped(noted(annotations.drainSkipped, text))).toBeUndefined();
      expect(drainBegan(noted(annotations.drainBegan, text))).toBeUndefined();
    },
  );

  test("a request that was skipped rests; another one does not", () => {
    const text = JSON.stringify({
      request: "drain-x",
      at: "2030-01-01T00:00:00Z",
      again: "2030-01-01T00:10:00Z",
      why: "w",
    });
    expect(drainSkipped(noted(annotations.drainSkipped, text))?.again).toBe("2030-01-01T00:10:00Z");
    expect(drainStep(noted(annotations.drainSkipped, text))).toEqual({ do: "nothing" });
    expect(drainStep(noted(annotations.drainSkipped, text, "drain-y"))).toMatchObject({ do: "cordon" });
    expect(drainStep(noted(annotations.drainSkipped, text, "uncordon-w"))).toEqual({
      do: "uncordon",
      request: "uncordon-w",
      remedy: false,
    });
    expect(drainStep(noted(annotations.drainSkipped, "{"))).toMatchObject({ do: "cordon" });
    expect([skippedUntil(0, 60), skippedUntil(0, 3600)]).toEqual([300_000, 3_600_000]);
  });
});

test("what is kept of pods and budgets is what decisions need [pool-plan-drain-12]", () => {
  const full = {
    ...pod("web", {
      metadata: {
        ...owned,
        uid: "u",
        resourceVersion: "1",
        labels: { app: "web" },
        finalizers: ["f"],
        deletionTimestamp: "2030-01-01T00:00:00Z",
        annotations: { "kubernetes.io/config.mirror": "m", other: "x" },
        managedFields: [{}],
      },
    }),
    spec: {
      nodeName: "w",
      containers: [{ name: "c", image: "i" }],
      volumes: [
        { name: "d", emptyDir: { medium: "Memory" } },
        { name: "s", secret: {} },
      ],
    },
  } as unknown as Pod;
  const trim = trimPod(full);
  expect(JSON.stringify(trim)).not.toMatch(/other|image|managedFields|secret|Memory/);
  expect(planDrain([trim])).toMatchObject({ staying: [{ why: "mirror" }] });
  const web = { ...full, metadata: { ...full.metadata, annotations: {} } };
  expect(protectionsOf({ pod: trimPod(web), by: "pdb", why: "" }, knownBudgets([]))).toEqual(["pdb", "emptyDir"]);
  expect(whyStuck(trimPod(web), now)).toBe(whyStuck(web, now));
  const whole = budget("keep", { minAvailable: 2 }, { disruptedPods: { a: "t" }, conditions: [{}] });
  expect(trimBudget(whole).status).not.toHaveProperty("disruptedPods");
  expect(neverAllows(trimBudget(whole))).toBe(neverAllows(whole));
});

describe("disruption budgets, of which a tenant makes as many and as large ones as it likes", () => {
  const blocked = Array.from({ length: 110 }, (_, i) => blockedBy("pdb", `web-${i}`));
  const plain = { pods: 0, blocked, leaving: [], now };

  test("one with a selector that no person writes is not compared, and said to cover the pods of its namespace [pool-plan-drain-14]", () => {
    const values = Array.from({ length: 65 }, (_, i) => `v${i}`);
    const large = [
      { matchExpressions: values.map((key) => ({ key, operator: "DoesNotExist" })) },
      { matchExpressions: [{ key: "x", operator: "NotIn", values }] },
      { matchLabels: Object.fromEntries(values.map((key) => [key, "x"])) },
      { matchLabels: { app: "x".repeat(4096) } },
    ];
    for (const selector of large) {
      const kept = trimBudget(budget("large", { selector, maxUnavailable: 0 }));
      expect(JSON.stringify(kept).length).toBeLessThan(1000);
      const said = describeDrain({ ...plain, budgets: knownBudgets([kept]) });
      expect(said).toContain("by PodDisruptionBudget n/large (");
      expect(said).toContain("its selector is too large to be compared with the pod");
      expect(protectionsOf({ ...blockedBy("refused", "web"), by: "refused" }, knownBudgets([kept]))).toContain("pdb");
      expect(
        protectionsOf(blockedBy("refused", "web", { metadata: { namespace: "other" } }), knownBudgets([kept])),
      ).not.toContain("pdb");
    }
    const small = budget("small", { selector: { matchLabels: { app: "db" } } });
    expect(trimBudget(small).spec).toEqual(small.spec);
    expect(describeDrain({ ...plain, budgets: knownBudgets([trimBudget(small)]) })).not.toContain("n/small");
  });

  const many = (count: number, of: object = {}) =>
    knownBudgets(Array.from({ length: count }, (_, i) => budget(`b${i}`, { maxUnavailable: 0, ...of })));

  test("a hundred of a namespace are compared and counted, and three are named [pool-plan-drain-15]", () => {
    const said = describeDrain({ ...plain, budgets: many(100) });
    expect(said).toContain("and 97 more, of which the eviction API takes only one");
    expect(said.length).toBeLessThan(5000);
  });

  test("of a namespace with more none is compared: a drain says what the API server said, and deletes no pod that one of them may cover [pool-plan-drain-17]", async () => {
    const matchExpressions = Array.from({ length: 60 }, (_, i) => ({ key: `k${i}`, operator: "DoesNotExist" }));
    const budgets = many(4000, { selector: { matchExpressions } });
    const hooked = Array.from({ length: 500 }, (_, i) => blockedBy("refused", `web-${i}`));
    const force = (...despite: Protection[]) =>
      judgeDrain({ deadlineSeconds: 1, afterDeadline: { do: "force", despite } }, 2, hooked, budgets);
    const work = await countWork(() => {
      expect(describeDrain({ ...plain, budgets })).toContain("blocked: pod n/web-0 (no), pod n/web-1 (no)");
      expect(force("refused")).toMatchObject({ do: "force", pods: [], kept: { length: 500 } });
      expect(force("refused", "pdb")).toMatchObject({ do: "force", pods: { length: 500 } });
    });
    expect(work).toBeLessThan(50_000);
    const elsewhere = blockedBy("refused", "web", { metadata: { namespace: "other" } });
    expect(protectionsOf(elsewhere, budgets)).toEqual(["refused"]);
  });

  test("only the pods that are named are compared with them [pool-plan-drain-16]", () => {
    let compared = 0;
    const selector = {
      get matchLabels() {
        compared += 1;
        return { app: "web" };
      },
    };
    describeDrain({
      ...plain,
      budgets: knownBudgets([
        budget("b", { selector }),
        { ...budget("c", { selector }), metadata: { name: "c", namespace: "other" } },
      ]),
    });
    expect(compared).toBe(5);
  });
});

describe("a changed budget may let an eviction that was refused succeed", () => {
  const before = trimBudget(budget("keep", { maxUnavailable: 1 }));
  const counts = (status: object) => trimBudget(budget("keep", { maxUnavailable: 1 }, status));

  test.for([
    ["if it is new, as far as is known", undefined, before, true],
    ["if it is gone", before, undefined, true],
    ["if its spec changed", before, trimBudget(budget("keep", { maxUnavailable: 2 }, {}, 2)), true],
    ["if its counts are about another spec", before, counts({ observedGeneration: 2 }), true],
    ["if it allows a disruption", before, counts({ disruptionsAllowed: 1 }), true],
    ["if more pods are healthy", before, counts({ currentHealthy: 3 }), true],
    ["if fewer need be", before, counts({ desiredHealthy: 1 }), true],
    [
      "not if only its metadata changed",
      before,
      { ...before, metadata: { ...before.metadata, resourceVersion: "9" } },
      false,
    ],
    ["not if an eviction took what it allowed", counts({ disruptionsAllowed: 1 }), before, false],
    ["not if fewer pods are healthy", before, counts({ currentHealthy: 1, expectedPods: 1 }), false],
  ] as const)("%s [pool-plan-drain-18]", ([_, was, is, may]) => {
    expect(mayGiveWay(was, is)).toBe(may);
  });
});
