import { describe, expect, test } from "vitest";
import type { Node } from "../../src/api/foreign/kubernetes.ts";
import { annotations, labels } from "../../src/api/names.ts";
import { fieldOfLabel, kubeletMaySet, nodeFields } from "../../src/core/pool/node-fields.ts";
import { trimNode } from "../../src/core/pool/trim.ts";
import { sourceFiles } from "./source-files.ts";

const rows = nodeFields.map(({ field }) => field);
const time = "2026-01-01T00:00:00Z";

/** A Node with everything that a Node can have, and with keys that nobody reads. */
const everything = {
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name: "worker-0",
    generateName: "worker-",
    uid: "u",
    resourceVersion: "1",
    generation: 1,
    selfLink: "/api/v1/nodes/worker-0",
    creationTimestamp: time,
    deletionTimestamp: time,
    deletionGracePeriodSeconds: 1,
    finalizers: ["x/y"],
    ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "p", uid: "u" }],
    managedFields: [{ manager: "kubelet" }],
    labels: Object.fromEntries(
      [
        ...Object.values(labels),
        "node.openshift.io/os_id",
        "node-restriction.kubernetes.io/tenant",
        "node-role.kubernetes.io/infra",
        "example.com/gpu",
      ].map((key) => [key, ""]),
    ),
    annotations: Object.fromEntries(
      [...Object.values(annotations), "machine.openshift.io/machine", "csi.volume.kubernetes.io/nodeid"].map((key) => [
        key,
        "x",
      ]),
    ),
  },
  spec: {
    unschedulable: true,
    taints: [{ key: "k", effect: "NoSchedule" }],
    podCIDR: "10.0.0.0/24",
    podCIDRs: ["10.0.0.0/24"],
    providerID: "p",
    externalID: "e",
    configSource: { configMap: {} },
  },
  status: {
    capacity: { cpu: "1" },
    allocatable: { cpu: "1" },
    phase: "Running",
    conditions: ["Ready", "DiskPressure", "NetworkUnavailable", "MemoryPressure", "PIDPressure", "Other"].map(
      (type) => ({
        type,
        status: "True",
        reason: "r",
        message: "m",
        lastTransitionTime: time,
        lastHeartbeatTime: time,
      }),
    ),
    addresses: [{ type: "InternalIP", address: "10.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    nodeInfo: { architecture: "amd64" },
    images: [{ names: ["a"] }],
    volumesInUse: ["v"],
    volumesAttached: [{ name: "v", devicePath: "d" }],
    config: { error: "e" },
    features: {},
    runtimeHandlers: [{ name: "r" }],
    declaredFeatures: ["f"],
  },
} as unknown as Node;

/** The rows of all that a Node holds; what has none is named by its path. */
function rowsIn({ metadata, spec, status, ...more }: Node): readonly string[] {
  const { labels: has = {}, annotations: notes = {}, ...meta } = metadata;
  const { conditions = [], ...rest } = status ?? {};
  return [
    ...Object.keys(more).filter((key) => key !== "apiVersion" && key !== "kind"),
    ...Object.keys(meta).map((key) => `metadata.${key}`),
    ...Object.keys(has).map(fieldOfLabel),
    ...Object.keys(notes).map((key) => `metadata.annotations[${key}]`),
    ...Object.keys(spec ?? {}).map((key) => `spec.${key}`),
    ...conditions.map(({ type }) => `status.conditions[${type}]`),
    ...Object.keys(rest).map((key) => `status.${key}`),
  ];
}

describe("fields of Nodes that components read", () => {
  test("a field without a row is not there, and every row is [guards-node-fields-1]", () => {
    expect([...new Set(rowsIn(trimNode(everything)))].sort()).toEqual([...rows].sort());
    expect(new Set(rows).size).toBe(rows.length);
    expect(rowsIn(everything).filter((field) => !rows.includes(field)).length).toBeGreaterThan(30);
  });

  test("what root on a machine can write decides about that machine alone, but for rows with their limit [guards-node-fields-2]", () => {
    const reaching = nodeFields.flatMap(({ field, trust }) =>
      trust.forged !== "no" && trust.reaches === "others" ? [field] : [],
    );
    // Another row needs a limit that a test shows, in docs/threat-model.md.
    expect(reaching).toEqual([
      "metadata.labels[kubernetes.io/arch]",
      "metadata.labels[node.openshift.io/os_id]",
      "metadata.labels[topology.kubernetes.io/zone]",
      `metadata.annotations[${annotations.pinnedImageSets}]`,
      "status.addresses",
    ]);
  });

  test("a row says that a kubelet can write what NodeRestriction and the own-node policy let it write [guards-node-fields-3]", () => {
    const forgeable = ({ field }: (typeof nodeFields)[number]): "yes" | "registering" | "no" => {
      const [, key] = /^metadata\.labels\[(.*)\]$/.exec(field) ?? [];
      if (key !== undefined) {
        if (key.startsWith("any other")) return key === "any other" ? "yes" : "no";
        return kubeletMaySet(key) ? "yes" : "no";
      }
      if (field.startsWith("metadata.annotations[") || field.startsWith("status.")) return "yes";
      if (field === "spec.taints") return "registering";
      return field.startsWith("spec.") ? "yes" : "no";
    };
    expect(nodeFields.map((row) => [row.field, row.trust.forged])).toEqual(
      nodeFields.map((row) => [row.field, forgeable(row)]),
    );
    const may = [
      "example.com/a",
      "node.kubernetes.io/a",
      "kubelet.kubernetes.io/a",
      "topology.kubernetes.io/zone",
      "a",
    ];
    const mayNot = ["node-role.kubernetes.io/a", "node-restriction.kubernetes.io/a", "x.k8s.io/a", "k8s.io/a"];
    expect([...may, ...mayNot].filter(kubeletMaySet)).toEqual(may);
  });

  test("an annotation of nodes has a row, unless only the machine itself reads it [guards-node-fields-4]", () => {
    const names = sourceFiles().find(({ path }) => path === "src/api/names.ts")?.text ?? "";
    const ofNodes = names.slice(
      names.indexOf("// on nodes"),
      names.indexOf("// on MachineConfigs and ControllerConfig"),
    );
    const keys = [...ofNodes.matchAll(/^ {2}(\w+): `/gm)].map(
      ([, name]) => annotations[name as keyof typeof annotations],
    );
    expect(keys.length).toBeGreaterThan(20);
    expect(keys.filter((key) => !rows.includes(`metadata.annotations[${key}]`))).toEqual([
      annotations.driftPolicy,
      annotations.finaliseFailure,
    ]);
  });
});

/**
 * What is no part of a component with more rights than one machine has: what people run, the parts of the one-machine cluster,
 * the daemon, which reads its own Node, and the definition of the kind. A component may call a function of any other folder.
 */
const elsewhere = /^src\/(cli|standin|daemon|console)\/|^src\/api\/foreign\//;

/** A use of the kind that reads no Node from the API server, or reads it by the table. */
const reads: readonly RegExp[] = [
  /\.of\(kubernetes\.Node\b/,
  /kubernetes\.Node\.kind\b/,
  // A watch, a list, and their like.
  /resource: kubernetes\.Node,\s+keep: trimNode,/,
  /\b(watch|list<Node>|list)\(\s*kubernetes\.Node,[^;]*?\bkeep: trimNode\b/,
];

/** Other uses, each with its reason. */
const others: Readonly<Record<string, { readonly uses: number; readonly why: string }>> = {
  "src/controller/update-node.ts": { uses: 1, why: "trims each version, and the result" },
  "src/controller/node-writes.ts": {
    uses: 2,
    why: "trims the answer of its patch, and the version that its patch may have made",
  },
  "src/controller/binding-controller.ts": { uses: 1, why: "a patch, whose answer it does not read" },
  "src/controller/pinned-image-slots-controller.ts": { uses: 1, why: "a patch, whose answer it does not read" },
  "src/controller/node-controller.ts": { uses: 1, why: "asks the watch itself how old it is" },
  "src/operator/tasks/machine-config-nodes.ts": { uses: 1, why: "reads the uid of the Node that is there now" },
};

describe("components read Nodes by the table", () => {
  /** Uses of the kind that no pattern explains, as `path: text`. */
  const unexplained = (path: string, text: string) =>
    [...text.matchAll(/kubernetes\.Node\b(?!\w)/g)].flatMap(({ index }) => {
      const around = text.slice(Math.max(0, index - 80), index + 240);
      const at = index - Math.max(0, index - 80);
      const isExplained = reads.some((pattern) =>
        [...around.matchAll(new RegExp(pattern, "g"))].some(
          (match) => match.index <= at && at < match.index + match[0].length,
        ),
      );
      return isExplained ? [] : [path];
    });

  /** Ways to the definition of the kind that {@link unexplained} does not see: other names of it, and definitions of one's own. */
  const byOtherWays = (code: string, text: string): readonly string[] => {
    const withoutImports = code.replaceAll(/^(import|export)\b[^;]*?\bfrom\b/gm, "");
    return [
      ...(code.match(/\bkubernetes as \w+/g) ?? []),
      ...(withoutImports.match(/\{[^{}]*\bNode\b[^{}]*\} = kubernetes\b/g) ?? []),
      ...(withoutImports.match(
        /(?<!\}) = kubernetes\b(?!\.)|[(,]\s*kubernetes\s*[),]|\.\.\.kubernetes\b|\bkubernetes\[/g,
      ) ?? []),
      ...(text.match(/\/api\/v1\/nodes\b|\/nodes\/\$\{|"Node",\s*"nodes"/g) ?? []),
    ];
  };

  test("every watch, list and read of Nodes keeps rows alone [guards-node-fields-5]", () => {
    const files = sourceFiles().filter(({ path }) => !elsewhere.test(path));
    const found = files.flatMap(({ path, code }) => unexplained(path, code));
    const count = (path: string) => found.filter((each) => each === path).length;
    expect([...new Set(found)].filter((path) => count(path) > (others[path]?.uses ?? 0))).toEqual([]);
    // By another way than the definition of the kind, no Node is read.
    expect(files.flatMap(({ path, code, text }) => byOtherWays(code, text).map((way) => `${path}: ${way}`))).toEqual(
      [],
    );
  });

  test("a definition that is taken by another name, or made again, is found", () => {
    const finds = [
      "const { Node: nodes } = kubernetes;",
      "const {\n  Pod,\n  Node,\n} = kubernetes;",
      'import { kubernetes as k8s } from "../api/foreign/kubernetes.ts";',
      'kube.get(kubernetes["Node"], { name })',
      "kube.get(kubernetes[kind], { name })",
      "const all = Object.values(kubernetes);",
      "const k8s = kubernetes;",
      "read(kubernetes)",
      "const kinds = { ...kubernetes };",
      "kube.request({ target: `/api/v1/nodes/${name}` })",
      'resource<Node>("v1", "Node", "nodes", "Cluster")',
    ];
    const leaves = [
      'import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";',
      'import {\n  type Node,\n  kubernetes,\n} from "../api/foreign/kubernetes.ts";',
      "const { Pod, NodeList } = kubernetes;",
      "kube.get(kubernetes.Pod, { name })",
    ];
    expect(finds.filter((text) => byOtherWays(text, text).length === 0)).toEqual([]);
    expect(leaves.filter((text) => byOtherWays(text, text).length > 0)).toEqual([]);
  });

  test("the rule finds what it looks for, and nothing else", () => {
    const finds = [
      "watching({ resource: kubernetes.Node, concerns })",
      "watching({\n  resource: kubernetes.Node,\n  keep: trimPod,\n  concerns,\n})",
      "new WatchCache({ kube, resource: kubernetes.Node })",
      "await kube.get(kubernetes.Node, { name })",
      "(await kube.list(kubernetes.Node, {}, { signal })).items;",
    ];
    const leaves = [
      "caches.of(kubernetes.Node).list()",
      "watching({\n  resource: kubernetes.Node,\n  keep: trimNode,\n  concerns,\n})",
      "watch(kubernetes.Node, { keep: trimNode });",
      "await kube.list<Node>(\n  kubernetes.Node,\n  { labelSelector },\n  { signal, keep: trimNode },\n);",
    ];
    expect(finds.filter((text) => unexplained("x", text).length === 0)).toEqual([]);
    expect(leaves.filter((text) => unexplained("x", text).length > 0)).toEqual([]);
  });
});
