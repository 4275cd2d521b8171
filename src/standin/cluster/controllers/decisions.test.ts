import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { DaemonSet, Node, Pod } from "../../../api/foreign/kubernetes.ts";
import { countWork } from "../../../../test/support/count-work.ts";
import { chooseNode } from "./choose-node.ts";
import { intOrPercent } from "./int-or-percent.ts";
import { mergeDifference, sameJson } from "./merge-difference.ts";
import { planDaemonSet } from "./plan-daemon-set.ts";
import { rollLimits, rollSizes, sum } from "./roll-deployment.ts";
import { templateHash } from "./template-hash.ts";

type Json = { [field: string]: Json } | Json[] | string | number | boolean;

/** RFC 7386. */
function applied(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> =
    typeof target === "object" && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = applied(result[key], value);
  }
  return result;
}

const anyJson = fc.letrec<{ value: Json; object: { [field: string]: Json } }>((tie) => ({
  object: fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value"), { maxKeys: 3, noNullPrototype: true }),
  value: fc.oneof(
    { maxDepth: 3 },
    fc.boolean(),
    fc.nat(3),
    fc.constantFrom("x", "y"),
    fc.array(tie("value"), { maxLength: 2 }),
    tie("object"),
  ),
})).object;

describe("merge differences", () => {
  test("the difference turns the first into the second, and is empty for equal values", () => {
    fc.assert(
      fc.property(anyJson, anyJson, (before, after) => {
        const difference = mergeDifference(before, after);
        if (difference === undefined) expect(before).toEqual(after);
        else expect(applied(before, difference)).toEqual(after);
        expect(sameJson(before, structuredClone(before))).toBe(true);
      }),
    );
  });

  test("present and absent values differ", () => {
    expect([sameJson(["a"], undefined), sameJson(undefined, {}), sameJson(undefined, undefined)]).toEqual([
      false,
      false,
      true,
    ]);
    expect([sameJson({ a: null }, {}), sameJson({ a: null }, { a: 1 }), sameJson({ a: 1 }, { a: null })]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

test.for([
  { value: "25%", total: 4, round: "up", is: 1 },
  { value: "25%", total: 3, round: "up", is: 1 },
  { value: "25%", total: 3, round: "down", is: 0 },
  { value: 2, total: 3, round: "down", is: 2 },
  { value: undefined, total: 3, round: "up", is: 7 },
] as const)("$value of $total, rounded $round, is $is", ({ value, total, round, is }) => {
  expect(intOrPercent(value, total, round, 7)).toBe(is);
});

test("equal templates have equal hashes, however they are written", () => {
  expect(templateHash({ a: 1, b: { c: [1, 2], d: undefined }, metadata: { creationTimestamp: null } })).toBe(
    templateHash({ metadata: {}, b: { c: [1, 2] }, a: 1 }),
  );
  expect(templateHash({ a: 1 })).not.toBe(templateHash({ a: 2 }));
  expect(templateHash({ a: 1 }, 1)).not.toBe(templateHash({ a: 1 }));
});

describe("rolling a Deployment", () => {
  const anySize = fc.nat(6).chain((wanted) => fc.nat(wanted).map((available) => ({ wanted, available })));
  const anyLimit = fc.oneof(
    fc.nat(4),
    fc.nat(100).map((percent) => `${percent}%`),
  );

  test("never exceeds the surge nor falls below the required availability", () => {
    fc.assert(
      fc.property(
        anySize,
        fc.array(anySize, { maxLength: 3 }),
        fc.nat(6),
        anyLimit,
        anyLimit,
        (current, old, desired, maxSurge, maxUnavailable) => {
          const limits = rollLimits(desired, { maxSurge, maxUnavailable });
          const next = rollSizes(current, old, limits);
          const before = current.wanted + sum(old.map(({ wanted }) => wanted));
          const after = next.current + sum(next.old);
          expect(after).toBeLessThanOrEqual(Math.max(before, desired + limits.maxSurge));
          // Whichever pods a set gives up, unavailable ones are given up first.
          const available = (size: { wanted: number; available: number }, to: number) => Math.min(size.available, to);
          const left =
            available(current, next.current) + sum(old.map((size, index) => available(size, next.old[index] ?? 0)));
          const had = current.available + sum(old.map((size) => size.available));
          if (current.wanted <= desired)
            expect(left).toBeGreaterThanOrEqual(Math.min(had, desired - limits.maxUnavailable));
          expect([next.current, ...next.old].every((size) => size >= 0)).toBe(true);
        },
      ),
    );
  });

  test("completes when every pod becomes available", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(6), { maxLength: 3 }),
        fc.nat(6),
        anyLimit,
        anyLimit,
        (sizes, desired, maxSurge, maxUnavailable) => {
          let current = 0;
          let old: readonly number[] = sizes;
          const limits = rollLimits(desired, { maxSurge, maxUnavailable });
          for (let step = 0; step < 100; step += 1)
            ({ current, old } = rollSizes(
              { wanted: current, available: current },
              old.map((wanted) => ({ wanted, available: wanted })),
              limits,
            ));
          expect({ current, old: sum(old) }).toEqual({ current: desired, old: 0 });
        },
      ),
    );
  });
});

describe("lists of a tenant's size", () => {
  const node: Node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "worker-0", labels: { "kubernetes.io/hostname": "worker-0" } },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  };
  const numbered = <T>(length: number, each: (i: number) => T): T[] => Array.from({ length }, (_, i) => each(i));
  const pod = (
    i: number,
    more: { readonly spec?: object; readonly status?: object; readonly metadata?: object } = {},
  ) =>
    ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: `p${i}`, namespace: "t", uid: `u${i}`, labels: { a: "b" }, ...more.metadata },
      spec: { containers: [], ...more.spec },
      status: more.status ?? {},
    }) as unknown as Pod;
  const repelling = (count: number, labelsOf: (i: number) => object) => ({
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: numbered(count, (i) => ({
          topologyKey: "kubernetes.io/hostname",
          labelSelector: { matchLabels: labelsOf(i) },
        })),
      },
    },
  });
  const choose = (wanted: Pod, present: readonly Pod[]) =>
    chooseNode(wanted, { nodes: [node], node: () => node, podsOn: () => present });
  const other = (i: number) => ({ x: `y${i}` });

  test("[cluster-decisions-1] pods of a DaemonSet that have no node, or leave one, are sorted out in proportion to their number", async () => {
    const set: DaemonSet = {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name: "d", namespace: "t" },
      spec: { selector: { matchLabels: { a: "b" } }, template: { spec: { containers: [] } } },
    };
    const unassigned = numbered(4000, (i) => pod(i));
    const sorted = planDaemonSet(set, "h", [node], unassigned, 0);
    expect([sorted.create, sorted.remove.length]).toEqual([["worker-0"], unassigned.length]);
    expect(await countWork(() => planDaemonSet(set, "h", [node], unassigned, 0))).toBeLessThan(50 * unassigned.length);
    const onNode = { spec: { nodeName: "worker-0" }, status: { phase: "Failed" } };
    const leaving = { ...onNode, metadata: { deletionTimestamp: "2030-01-01T00:00:00Z" } };
    const ended = numbered(4000, (i) => pod(i, i % 2 === 0 ? onNode : leaving));
    const plan = planDaemonSet(set, "h", [node], ended, 0);
    expect([plan.failed.length, plan.remove.length, plan.create]).toEqual([2000, 0, []]);
    expect(await countWork(() => planDaemonSet(set, "h", [node], ended, 0))).toBeLessThan(50 * ended.length);
  });

  test("[cluster-decisions-2] a pod whose anti-affinity nobody can compare is told so, and is not compared with others", async () => {
    const present = numbered(100, (i) => pod(i, { spec: { nodeName: "worker-0" } }));
    const wanted = pod(-1, { spec: repelling(5000, other) });
    expect(choose(wanted, present)).toEqual({
      verdict: "nowhere",
      message:
        "spec.affinity.podAntiAffinity: the required terms are more than this scheduler compares, 64 of them with 1024 labels, values and namespaces in all: use fewer, or preferred ones",
    });
    expect(await countWork(() => choose(wanted, present))).toBeLessThan(10_000);
    const wide = pod(-2, { spec: repelling(1, () => Object.fromEntries(numbered(2000, (i) => [`k${i}`, "v"]))) });
    expect(choose(wide, present).verdict).toBe("nowhere");
    // As many as are compared still decide.
    const most = pod(-3, { spec: repelling(64, (i) => (i === 63 ? { a: "b" } : other(i))) });
    expect(choose(most, present.slice(0, 1))).toMatchObject({
      verdict: "nowhere",
      message: expect.stringContaining("1 node(s) didn't match pod anti-affinity rules") as string,
    });
    expect(choose(pod(-4, { spec: repelling(64, other) }), present.slice(0, 1)).verdict).toBe("node");
  });

  test("[cluster-decisions-3] pods that their author put on a node do not make those of others expensive", async () => {
    const present = numbered(20, (i) => pod(i, { spec: { nodeName: "worker-0", ...repelling(5000, other) } }));
    expect(choose(pod(-1), present).verdict).toBe("node");
    expect(await countWork(() => choose(pod(-1), present))).toBeLessThan(2000);
    const [repelled] = [pod(0, { spec: { nodeName: "worker-0", ...repelling(1, () => ({ a: "b" })) } })];
    expect(choose(pod(-1), [repelled]).verdict).toBe("nowhere");
  });

  test("[cluster-decisions-5] a node has no label that it was not given, such as one by a word of the language", () => {
    const required = (operator: string) => ({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: "constructor", operator }] }],
          },
        },
      },
    });
    expect(choose(pod(-1, { spec: required("Exists") }), []).verdict).toBe("nowhere");
    expect(choose(pod(-1, { spec: required("DoesNotExist") }), []).verdict).toBe("node");
    const term = { topologyKey: "constructor", labelSelector: { matchLabels: { a: "b" } } };
    const repels = { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
    expect(choose(pod(-1, { spec: repels }), [pod(0, { spec: { nodeName: "worker-0" } })]).verdict).toBe("node");
  });

  test("[cluster-decisions-4] a node that tenants filled still takes the suite's pods", () => {
    const present = numbered(110, (i) => pod(i, { spec: { nodeName: "worker-0" } }));
    expect(choose(pod(-1), present)).toMatchObject({ message: expect.stringContaining("Too many pods") as string });
    expect(choose(pod(-1, { metadata: { namespace: "openshift-machine-config-operator" } }), present)).toEqual({
      verdict: "node",
      node: "worker-0",
    });
  });
});
