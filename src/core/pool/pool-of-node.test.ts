import { expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labelsOfJoin, labelsOfReturn, poolOffers, poolOfNode } from "./pool-of-node.ts";

const pool = (name: string, nodeSelector: object | undefined = { matchLabels: { [`role-${name}`]: "" } }) =>
  ({ metadata: { name }, spec: { nodeSelector } }) as MachineConfigPool;
const pools = [pool("master"), pool("worker"), pool("infra"), pool("gpu"), pool("all", {}), pool("none", undefined)];
const node = (
  roles: readonly string[],
  more: { labels?: Record<string, string>; annotations?: Record<string, string> } = {},
) => ({
  metadata: {
    name: "n",
    labels: { ...Object.fromEntries(roles.map((role) => [`role-${role}`, ""])), ...more.labels },
    annotations: more.annotations ?? {},
  },
});

test.for<{ title: string; given: ReturnType<typeof node>; is: object }>([
  { title: "worker", given: node(["worker"]), is: { verdict: "member", pool: "worker", masterAndCustom: false } },
  {
    title: "a custom pool over worker",
    given: node(["worker", "infra"]),
    is: { verdict: "member", pool: "infra", masterAndCustom: false },
  },
  {
    title: "master over worker",
    given: node(["master", "worker"]),
    is: { verdict: "member", pool: "master", masterAndCustom: false },
  },
  {
    title: "master over a custom pool, which is worth an alert",
    given: node(["master", "infra"]),
    is: { verdict: "member", pool: "master", masterAndCustom: true },
  },
  {
    title: "two custom pools: none of them",
    given: node(["infra", "gpu"]),
    is: { verdict: "ambiguous", pools: ["gpu", "infra"] },
  },
  {
    title: "no pool: an empty selector selects nothing",
    given: node([]),
    is: { verdict: "none", reason: "no pool selects it" },
  },
  {
    title: "Windows",
    given: node(["worker"], { labels: { "kubernetes.io/os": "windows" } }),
    is: { verdict: "none", reason: "Windows nodes are not managed" },
  },
])("a node belongs to $title [pool-of-node-1]", ({ given, is }) => {
  expect(poolOfNode(given, pools)).toEqual(is);
});

const rolePool = (name: string) => pool(name, { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } });
const rolePools = ["arbiter", "infra", "master", "worker"].map(rolePool);
const role = (name: string) => ({ [`node-role.kubernetes.io/${name}`]: "" });

test.for<{ title: string; record: Parameters<typeof labelsOfReturn>[1]; labels?: object; given: object | undefined }>([
  { title: "the worker role back", record: { pool: "worker", lastPool: "worker" }, given: role("worker") },
  {
    title: "the roles of a custom pool back",
    record: { pool: "infra", lastPool: "infra" },
    given: { ...role("worker"), ...role("infra") },
  },
  { title: "no role of the control plane", record: { pool: "master", lastPool: "master" }, given: undefined },
  { title: "no role of the arbiter", record: { pool: "arbiter", lastPool: "arbiter" }, given: undefined },
  { title: "nothing after a move", record: { pool: "worker", lastPool: "infra" }, given: undefined },
  { title: "nothing after its labels were taken away", record: { pool: "worker", lastPool: "" }, given: undefined },
  { title: "nothing if its last pool is unknown", record: { pool: "worker" }, given: undefined },
  { title: "nothing of a pool that is gone", record: { pool: "gone", lastPool: "gone" }, given: undefined },
  {
    title: "nothing that would put it into another pool by its own labels",
    record: { pool: "worker", lastPool: "worker" },
    labels: role("infra"),
    given: undefined,
  },
])("a machine that registers again is given $title [pool-of-node-3]", ({ record, labels: own, given }) => {
  expect(labelsOfReturn({ metadata: { name: "n", labels: { ...own } } }, record, rolePools)).toEqual(given);
});

const inZones = (name: string, values: string[], more: object[] = []) =>
  pool(name, { matchExpressions: [{ key: "zone", operator: "In", values }, ...more] });

test.for<{ title: string; pools: MachineConfigPool[]; labels?: Record<string, string>; given: object }>([
  { title: "the first of several values", pools: [inZones("x", ["b", "a"])], given: { zone: "b" } },
  { title: "none where it has one of them", pools: [inZones("x", ["b", "a"])], labels: { zone: "a" }, given: {} },
  {
    title: "one of them in place of another",
    pools: [inZones("x", ["b", "a"])],
    labels: { zone: "c" },
    given: { zone: "b" },
  },
  {
    title: "the first that another pool does not select",
    pools: [inZones("x", ["a", "b"]), inZones("other", ["a"])],
    given: { zone: "b" },
  },
  {
    title: "the first that the pool does not leave out",
    pools: [inZones("x", ["a", "b"], [{ key: "zone", operator: "NotIn", values: ["a"] }])],
    given: { zone: "b" },
  },
  {
    title: "the values that go together of two lists",
    pools: [
      inZones("x", ["a", "b"], [{ key: "size", operator: "In", values: ["s", "m"] }]),
      inZones("other", ["a", "b"], [{ key: "size", operator: "In", values: ["s"] }]),
    ],
    given: { zone: "a", size: "m" },
  },
  {
    title: "no other value of a label that is only to be there",
    pools: [pool("x", { matchExpressions: [{ key: "gpu", operator: "Exists" }] })],
    labels: { gpu: "two" },
    given: {},
  },
  {
    title: "the value of matchLabels",
    pools: [
      pool("x", {
        matchLabels: { zone: "b" },
        matchExpressions: [{ key: "zone", operator: "In", values: ["a", "b"] }],
      }),
    ],
    given: { zone: "b" },
  },
])("a machine that joins a pool is given $title [pool-of-node-5]", ({ pools: several, labels: own, given }) => {
  const [of] = several;
  if (of === undefined) throw new Error("no pool");
  const node = { metadata: { name: "n", labels: { ...own } } };
  const labels = labelsOfJoin(of, node, [...several, ...rolePools]);
  expect(labels).toEqual({ ...role("worker"), ...given });
  const joined = { metadata: { name: "n", labels: { ...own, ...labels } } };
  expect(poolOfNode(joined, [...several, ...rolePools])).toMatchObject({ verdict: "member", pool: "x" });
});

test("an unassigned node is offered each pool that labels alone put it into [pool-of-node-4]", () => {
  const several = [
    ...rolePools,
    pool("picky", { matchExpressions: [{ key: "size", operator: "NotIn", values: ["s"] }] }),
  ];
  expect(poolOffers({ metadata: { name: "n" } }, rolePools)).toEqual(
    ["arbiter", "infra", "master", "worker"].map((name) => ({
      pool: name,
      command: `kubectl label node n node-role.kubernetes.io/${name}=`,
    })),
  );
  expect(poolOffers({ metadata: { name: "n", labels: { size: "s" } } }, several)).toHaveLength(4);
  expect(poolOffers({ metadata: { name: "n", labels: { "kubernetes.io/os": "windows" } } }, rolePools)).toEqual([]);
});

test("what a selector may list costs a machine that joins its pool little [pool-of-node-6]", () => {
  const lists = (keys: number, each: number) =>
    pool("lists", {
      matchExpressions: Array.from({ length: keys }, (_, i) => ({
        key: `k${i}`,
        operator: "In",
        values: Array.from({ length: each }, (_, k) => `v${k}`),
      })),
    });
  const began = process.cpuUsage();
  expect(Object.keys(labelsOfJoin(lists(64, 64), node([]), [lists(64, 64)]))).toHaveLength(65);
  expect(Object.keys(labelsOfJoin(lists(1, 4096), node([]), [lists(1, 4096)]))).toHaveLength(2);
  // One that Kubernetes would read as well, and that nobody writes: it took eight seconds.
  expect(Object.keys(labelsOfJoin(lists(500, 2), node([]), [lists(500, 2)]))).toHaveLength(1);
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1);
});
