import { expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { annotations } from "../../api/names.ts";
import { labelsOfFirstPool, poolOfNode } from "./pool-of-node.ts";

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
    title: "nobody's: an empty selector selects nothing",
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
