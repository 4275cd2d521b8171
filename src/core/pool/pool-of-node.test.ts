import { expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labelsOfReturn, poolOffers, poolOfNode } from "./pool-of-node.ts";

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
