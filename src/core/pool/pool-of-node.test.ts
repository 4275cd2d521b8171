import { expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations } from "../../api/names.ts";
import { labelsOfFirstPool, labelsOfReturn, poolOffers, poolOfNode } from "./pool-of-node.ts";

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

const first = (name: string) => ({
  [annotations.firstPivotConfig]: `rendered-${name}-0123456789abcdef0123456789abcdef`,
});
test.for<{
  title: string;
  given: ReturnType<typeof node>;
  labels: object | undefined;
  of?: readonly MachineConfigPool[];
}>([
  {
    title: "gets that pool's labels",
    given: node(["worker"], { annotations: first("infra") }),
    labels: { "role-infra": "" },
  },
  {
    title: "gets those that its expressions say for certain",
    given: node([], { annotations: first("x") }),
    of: [
      pool("x", {
        matchExpressions: [
          { key: "a", operator: "Exists" },
          { key: "b", operator: "In", values: ["1"] },
          { key: "c", operator: "In", values: ["1", "2"] },
        ],
      }),
    ],
    labels: { a: "", b: "1" },
  },
  {
    title: "gets nothing when it has them",
    given: node(["infra"], { annotations: first("infra") }),
    labels: undefined,
  },
  { title: "gets nothing for a built-in pool", given: node([], { annotations: first("worker") }), labels: undefined },
  {
    title: "gets nothing a second time",
    given: node([], { annotations: { ...first("infra"), [annotations.customPoolLabelsApplied]: "true" } }),
    labels: undefined,
  },
  { title: "gets nothing for a pool that is gone", given: node([], { annotations: first("gone") }), labels: undefined },
])("a node that booted into a custom pool first $title [pool-of-node-2]", ({ given, labels, of = pools }) => {
  expect(labelsOfFirstPool(given, of)).toEqual(labels);
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
