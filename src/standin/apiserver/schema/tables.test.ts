import { describe, expect, test } from "vitest";
import type { KubeObject } from "./contract.ts";
import { compileJsonPath } from "./json-path.ts";
import { builtinTable, customTable, humanDuration } from "./tables.ts";

const now = Date.parse("2026-01-02T00:00:00Z");
const made = "2026-01-01T23:55:00Z";
function row(
  kind: string,
  object: Record<string, unknown>,
  metadata: Record<string, unknown> = {},
): readonly unknown[] {
  return builtinTable(kind).row(
    { apiVersion: "v1", kind, metadata: { name: "x", creationTimestamp: made, ...metadata }, ...object } as KubeObject,
    now,
  );
}

test.for([
  [0, "0s"],
  [119, "119s"],
  [120, "2m"],
  [150, "2m30s"],
  [600, "10m"],
  [10_800, "3h"],
  [11_100, "3h5m"],
  [28_800, "8h"],
  [172_800, "2d"],
  [180_000, "2d2h"],
  [86_400 * 10, "10d"],
  [86_400 * 800, "2y70d"],
  [86_400 * 3000, "8y"],
] as const)("%i seconds are %s", ([seconds, text]) => {
  expect(humanDuration(seconds * 1000)).toBe(text);
});

describe("built-in tables", () => {
  test.for<[string, string, Record<string, unknown>, Record<string, unknown>, readonly unknown[]]>([
    [
      "a running pod",
      "Pod",
      {
        spec: { nodeName: "n1", containers: [{ name: "a" }, { name: "b" }] },
        status: {
          phase: "Running",
          podIP: "10.0.0.1",
          containerStatuses: [
            {
              name: "a",
              ready: true,
              restartCount: 2,
              state: { running: {} },
              lastState: { terminated: { finishedAt: "2026-01-01T23:59:00Z" } },
            },
            { name: "b", ready: false, restartCount: 0, state: { waiting: { reason: "CrashLoopBackOff" } } },
          ],
        },
      },
      {},
      ["x", "1/2", "CrashLoopBackOff", "2 (60s ago)", "5m", "10.0.0.1", "n1", "<none>", "<none>"],
    ],
    [
      "a pod that goes",
      "Pod",
      { spec: { containers: [{}] }, status: { phase: "Running" } },
      { deletionTimestamp: made },
      ["x", "0/1", "Terminating", "0", "5m", "<none>", "<none>", "<none>", "<none>"],
    ],
    [
      "a pod that initializes",
      "Pod",
      {
        spec: { containers: [{}], initContainers: [{}, {}] },
        status: {
          phase: "Pending",
          initContainerStatuses: [{ state: { terminated: { exitCode: 0 } } }, { state: { running: {} } }],
        },
      },
      {},
      ["x", "0/1", "Init:1/2", "0", "5m", "<none>", "<none>", "<none>", "<none>"],
    ],
    [
      "a cordoned node",
      "Node",
      {
        spec: { unschedulable: true },
        status: {
          conditions: [{ type: "Ready", status: "True" }],
          nodeInfo: { kubeletVersion: "v1", osImage: "OS" },
          addresses: [{ type: "InternalIP", address: "1.2.3.4" }],
        },
      },
      { labels: { "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/infra": "" } },
      [
        "x",
        "Ready,SchedulingDisabled",
        "infra,worker",
        "5m",
        "v1",
        "1.2.3.4",
        "<none>",
        "OS",
        "<unknown>",
        "<unknown>",
      ],
    ],
    [
      "a deployment",
      "Deployment",
      {
        spec: {
          replicas: 3,
          selector: { matchLabels: { a: "b" } },
          template: { spec: { containers: [{ name: "c", image: "i" }] } },
        },
        status: { readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1 },
      },
      {},
      ["x", "1/3", 2, 1, "5m", "c", "i", "a=b"],
    ],
    [
      "a finished job",
      "Job",
      {
        spec: { completions: 1, parallelism: 1, selector: {} },
        status: {
          succeeded: 1,
          startTime: made,
          completionTime: "2026-01-01T23:55:10Z",
          conditions: [{ type: "Complete", status: "True" }],
        },
      },
      {},
      ["x", "Complete", "1/1", "10s", "5m", "", "", "<none>"],
    ],
    [
      "an event",
      "Event",
      {
        involvedObject: { kind: "Pod", name: "p" },
        reason: "Started",
        type: "Normal",
        message: "Started it\n",
        firstTimestamp: made,
        lastTimestamp: "2026-01-01T23:59:00Z",
        count: 3,
        source: { component: "kubelet", host: "n" },
      },
      {},
      ["60s", "Normal", "Started", "pod/p", "", "kubelet, n", "Started it", "5m", 3, "x"],
    ],
    ["a secret", "Secret", { type: "Opaque", data: { a: "", b: "" } }, {}, ["x", "Opaque", 2, "5m"]],
    [
      "a disruption budget",
      "PodDisruptionBudget",
      { spec: { minAvailable: "50%" }, status: { disruptionsAllowed: 1 } },
      {},
      ["x", "50%", "N/A", 1, "5m"],
    ],
    [
      "a role binding",
      "RoleBinding",
      {
        roleRef: { kind: "Role", name: "r" },
        subjects: [
          { kind: "ServiceAccount", namespace: "n", name: "s" },
          { kind: "User", name: "u" },
        ],
      },
      {},
      ["x", "Role/r", "5m", "u", "", "n/s"],
    ],
    [
      "a signing request",
      "CertificateSigningRequest",
      { spec: { signerName: "s", username: "u" }, status: { conditions: [{ type: "Approved" }], certificate: "x" } },
      {},
      ["x", "5m", "s", "u", "<none>", "Approved,Issued"],
    ],
    [
      "a service",
      "Service",
      { spec: { type: "ClusterIP", clusterIP: "None", ports: [{ port: 80, protocol: "TCP" }], selector: { a: "b" } } },
      {},
      ["x", "ClusterIP", "None", "<none>", "80/TCP", "5m", "a=b"],
    ],
    ["a custom resource definition", "CustomResourceDefinition", {}, {}, ["x", made]],
  ])("%s", ([, kind, object, metadata, cells]) => {
    expect(row(kind, object, metadata)).toEqual(cells);
    expect(builtinTable(kind).columns).toHaveLength(cells.length);
  });
});

describe("custom tables", () => {
  const table = customTable([
    { name: "Updated", type: "string", jsonPath: '.status.conditions[?(@.type=="Updated")].status' },
    { name: "Count", type: "integer", jsonPath: ".status.count", priority: 1 },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ]);
  test("read their paths", () => {
    const object = {
      apiVersion: "x/v1",
      kind: "X",
      metadata: { name: "p", creationTimestamp: made },
      status: {
        conditions: [
          { type: "Other", status: "False" },
          { type: "Updated", status: "True" },
        ],
        count: 3,
      },
    };
    expect(table.row(object, now)).toEqual(["p", "True", 3, "5m"]);
    expect(table.row({ apiVersion: "x/v1", kind: "X", metadata: { name: "p" } }, now)).toEqual(["p", null, null, null]);
    expect(table.columns.map(({ name, priority }) => `${name}${priority}`)).toEqual([
      "Name0",
      "Updated0",
      "Count1",
      "Age0",
    ]);
  });
  test("show the age where no columns are given", () => {
    expect(customTable(undefined).columns.map(({ name }) => name)).toEqual(["Name", "Age"]);
  });
});

test.for<[string, unknown]>([
  [".a.b", 1],
  ["{.a.b}", 1],
  [".a['b']", 1],
  [".l[0].n", "x"],
  [".l[-1].n", "y"],
  [".l[*].n", "x"],
  [".l[1:].n", "y"],
  ['.l[?(@.n=="y")].v', 2],
  [".l[?(@.v>1)].n", "y"],
  [".l[?(@.w)].n", "y"],
  ["..n", "x"],
  ["..l..n", "x"],
  ["..w", null],
  [".a\\.b", "dot"],
  [".none.at.all", undefined],
  ["..none..at", undefined],
])("path %s gives %s first", ([path, found]) => {
  const compiled = compileJsonPath(path);
  expect(
    compiled.verdict === "compiled" &&
      compiled.first({
        a: { b: 1 },
        "a.b": "dot",
        l: [
          { n: "x", v: 1 },
          { n: "y", v: 2, w: null },
        ],
      }),
  ).toEqual(found);
});

/** `value` below so many fields `a`. */
const nested = (depth: number, value: unknown): unknown =>
  Array.from({ length: depth }).reduce<unknown>((inner) => ({ a: inner }), value);

/** Counts reads of the fields of an object, and of those below. */
function counted(root: unknown): { readonly object: unknown; readonly reads: () => number } {
  let reads = 0;
  const known = new Map<object, unknown>();
  const wrap = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    const proxy =
      known.get(value) ??
      new Proxy(value, {
        get(target, key): unknown {
          reads += 1;
          return wrap(Reflect.get(target, key));
        },
      });
    known.set(value, proxy);
    return proxy;
  };
  return { object: wrap(root), reads: () => reads };
}

test("recursive descent below recursive descent visits a value once [apiserver-json-path-1]", () => {
  const compiled = compileJsonPath("..a..a..a..a..a..a..a..none");
  const { object, reads } = counted(nested(60, 1));
  expect(compiled.verdict === "compiled" && compiled.first(object)).toBeUndefined();
  // A step reads a field of each value twice: by its name, and among all.
  expect(reads()).toBeLessThan(60 * 8 * 3);
});

test("recursive descent below recursive descent finds what is there once [apiserver-json-path-2]", () => {
  const compiled = compileJsonPath("..a..a..a..b");
  expect(compiled.verdict === "compiled" && compiled.first(nested(3, { b: "found" }))).toBe("found");
  const alone = compileJsonPath("..a..a..a..a..b");
  expect(alone.verdict === "compiled" && alone.first(nested(3, { b: "found" }))).toBeUndefined();
});

test.for(["..none", ".l[*].none", ".l[?(@.none)]", ".l[0:].none"])(
  "of a large object, %s looks at a bounded part [apiserver-json-path-3]",
  (path) => {
    const compiled = compileJsonPath(path);
    const { object, reads } = counted({ l: Array.from({ length: 20_000 }, () => ({ x: { y: 1 } })) });
    expect(compiled.verdict === "compiled" && compiled.first(object)).toBeUndefined();
    expect(reads()).toBeLessThan(60_000);
  },
);
