import fc from "fast-check";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import type { Json } from "../contract/api-target.ts";

/** One operation of a JSON patch (RFC 6902). */
export interface JsonPatchStep {
  readonly op: "add" | "remove" | "replace" | "test" | "move" | "copy";
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/**
 * A kind that operation lists are about. Domains are small, so that operations meet the same fields again and again.
 */
export interface DifferentialKind {
  readonly kind: string;
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly custom: boolean;
  readonly hasStatus: boolean;
  /** Everything but the metadata of a new object; a few are refused. */
  readonly contents: fc.Arbitrary<Json>;
  /** A part of an object, as it is applied or merged. */
  readonly fragments: fc.Arbitrary<Json>;
  readonly statuses: fc.Arbitrary<Json>;
  readonly jsonPatches: readonly JsonPatchStep[];
  /** Merge or strategic patches beyond fragments: nulls, directives, wrong types. */
  readonly oddPatches: readonly Json[];
}

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
/** A record with only the fields that have a value. */
export function sparse(fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<Json> {
  const model = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, optional(value)]));
  return fc
    .record(model)
    .map((record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)));
}
const pick = <T>(...values: readonly T[]) => fc.constantFrom(...values);

const metaPatches: readonly JsonPatchStep[] = [
  { op: "add", path: "/metadata/labels/tier", value: "b" },
  { op: "remove", path: "/metadata/labels/tier" },
  { op: "add", path: "/metadata/annotations", value: { note: "json" } },
  { op: "remove", path: "/metadata/annotations/note" },
  { op: "add", path: "/metadata/finalizers", value: ["example.com/other"] },
  { op: "remove", path: "/metadata/finalizers" },
  { op: "test", path: "/metadata/labels/tier", value: "a" },
  { op: "replace", path: "/metadata/name", value: "other" },
  { op: "move", from: "/metadata/labels/tier", path: "/metadata/labels/moved" },
  { op: "copy", from: "/metadata/name", path: "/metadata/annotations/note" },
];

const metaOdd: readonly Json[] = [
  { metadata: { labels: { tier: null } } },
  { metadata: { annotations: null } },
  { metadata: { annotations: { note: "merged", other: null } } },
  { metadata: { finalizers: null } },
  { metadata: { finalizers: ["example.com/hold"] } },
  { metadata: { labels: { tier: "not valid!" } } },
  { metadata: { name: "other" } },
  { metadata: { uid: "00000000-0000-0000-0000-000000000000" } },
  { metadata: { generation: 7 } },
  { metadata: { creationTimestamp: null } },
  { metadata: { deletionTimestamp: "2020-01-01T00:00:00Z" } },
  {
    metadata: {
      ownerReferences: [
        { apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "11111111-1111-1111-1111-111111111111" },
      ],
    },
  },
  { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "", uid: "" }] } },
  { metadata: { managedFields: [{}] } },
  { metadata: { managedFields: [] } },
  {},
];

const data = fc.dictionary(pick("x", "y"), pick("1", "2"), { maxKeys: 2 });

const configMap: DifferentialKind = {
  kind: "ConfigMap",
  apiVersion: "v1",
  plural: "configmaps",
  namespaced: true,
  custom: false,
  hasStatus: false,
  contents: sparse({ data, binaryData: pick({ z: "AAE=" }, { x: "AAE=" }), immutable: fc.boolean() }),
  fragments: sparse({ data, immutable: pick(true), binaryData: pick({ z: "AAE=" }), unknown: pick(1) }),
  statuses: fc.constant({}),
  jsonPatches: [
    { op: "add", path: "/data", value: { x: "json" } },
    { op: "replace", path: "/data/x", value: "json" },
    { op: "remove", path: "/data/y" },
    { op: "add", path: "/data/y", value: 3 },
    ...metaPatches,
  ],
  oddPatches: [
    { data: null },
    { data: { x: null } },
    { data: { x: 1 } },
    { data: { "not valid!": "1" } },
    { data: "text" },
    { $patch: "replace", data: { y: "2" } },
    { data: { $patch: "delete" } },
    { $retainKeys: ["data"], data: { x: "1" } },
    { immutable: null },
    ...metaOdd,
  ],
};

const container = (name: string) =>
  sparse({
    image: pick("example.com/one:1", "example.com/two:2", "example.com/three"),
    env: pick(
      [],
      [{ name: "A", value: "1" }],
      [
        { name: "A", value: "2" },
        { name: "B", value: "1" },
      ],
    ),
    resources: pick({ limits: { cpu: "1" } }, { requests: { memory: "1Gi" } }),
    ports: pick([{ containerPort: 80 }], [{ containerPort: 80, name: "web" }, { containerPort: 81 }]),
  }).map((rest) => ({ name, image: "example.com/one:1", ...rest }));
const containers = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(container("main")) },
  {
    weight: 3,
    arbitrary: fc.tuple(
      container("main"),
      container("side").map((one) => ({ ...one, ports: [] })),
    ),
  },
  {
    weight: 1,
    arbitrary: pick(
      [],
      [{ name: "main" }],
      [{ name: "Not Valid", image: "example.com/one:1" }],
      [{ image: "example.com/one:1" }],
    ),
  },
);
const quietPod = { automountServiceAccountToken: false };

const pod: DifferentialKind = {
  kind: "Pod",
  apiVersion: "v1",
  plural: "pods",
  namespaced: true,
  custom: false,
  hasStatus: true,
  contents: fc
    .tuple(
      containers,
      sparse({
        nodeName: pick("ghost"),
        terminationGracePeriodSeconds: pick(0, 5),
        restartPolicy: pick("Never", "Sometimes"),
        tolerations: pick([{ key: "k", operator: "Exists" }], [{ key: "k", operator: "Perhaps" }]),
        activeDeadlineSeconds: pick(100),
        nodeSelector: pick({ a: "b" }),
        volumes: pick([{ name: "v", emptyDir: {} }], [{ name: "v" }]),
        hostNetwork: pick(true),
        priority: pick(5),
      }),
    )
    .map(([list, spec]) => ({ spec: { ...quietPod, containers: list, ...spec } })),
  fragments: fc
    .tuple(
      containers,
      sparse({
        activeDeadlineSeconds: pick(50, 100),
        tolerations: pick([{ key: "k", operator: "Exists" }], [{ key: "l", operator: "Exists", effect: "NoSchedule" }]),
        restartPolicy: pick("Never"),
        nodeName: pick("ghost"),
        unknown: pick(1),
      }),
      fc.boolean(),
    )
    .map(([list, spec, withContainers]) => ({
      spec: { ...quietPod, ...(withContainers ? { containers: list } : {}), ...spec },
    })),
  statuses: sparse({
    phase: pick("Running", "Succeeded", "Failed"),
    conditions: pick(
      [{ type: "Ready", status: "True" }],
      [
        { type: "Ready", status: "False" },
        { type: "Initialized", status: "True" },
      ],
    ),
    reason: pick("Because"),
    podIP: pick("10.0.0.1"),
    podIPs: pick([{ ip: "10.0.0.1" }]),
    containerStatuses: pick([
      { name: "main", image: "i", imageID: "", ready: true, restartCount: 1, state: { running: {} } },
    ]),
    nominatedNodeName: pick("ghost"),
  }).map((status) => ({ status })),
  jsonPatches: [
    { op: "replace", path: "/spec/containers/0/image", value: "example.com/json:1" },
    { op: "replace", path: "/spec/containers/0/name", value: "renamed" },
    { op: "add", path: "/spec/tolerations/-", value: { key: "j", operator: "Exists" } },
    { op: "replace", path: "/spec/tolerations", value: [] },
    { op: "remove", path: "/spec/activeDeadlineSeconds" },
    { op: "add", path: "/spec/nodeName", value: "ghost" },
    ...metaPatches,
  ],
  oddPatches: [
    { spec: { containers: [{ name: "main", image: "example.com/strategic:1" }] } },
    { spec: { containers: [{ name: "side", $patch: "delete" }] } },
    {
      spec: {
        containers: [{ name: "side", image: "example.com/side:1" }],
        "$setElementOrder/containers": [{ name: "side" }, { name: "main" }],
      },
    },
    { spec: { tolerations: null } },
    { spec: { activeDeadlineSeconds: null } },
    { spec: { terminationGracePeriodSeconds: 1 } },
    { spec: null },
    { status: { phase: "Running" } },
    { status: { conditions: [{ type: "Ready", status: "True" }] } },
    ...metaOdd,
  ],
};

const template = fc
  .tuple(containers, pick<Json>({ app: "a" }, { app: "b" }))
  .map(([list, labels]) => ({ metadata: { labels }, spec: { containers: list } }));

const deployment: DifferentialKind = {
  kind: "Deployment",
  apiVersion: "apps/v1",
  plural: "deployments",
  namespaced: true,
  custom: false,
  hasStatus: true,
  contents: fc
    .tuple(
      template,
      sparse({
        replicas: pick(0, 2, -1),
        strategy: pick(
          { type: "Recreate" },
          { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: "50%" } },
          { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } },
          { type: "Other" },
        ),
        paused: fc.boolean(),
        minReadySeconds: pick(5),
        revisionHistoryLimit: pick(3),
        progressDeadlineSeconds: pick(1, 700),
      }),
      fc.integer({ min: 0, max: 9 }),
    )
    .map(([pods, spec, odd]) => ({
      spec: {
        ...(odd === 0 ? {} : { selector: odd === 1 ? {} : { matchLabels: { app: "a" } } }),
        template: { ...pods, metadata: odd < 3 ? pods.metadata : { labels: { app: "a" } } },
        ...spec,
      },
    })),
  fragments: fc
    .tuple(
      template,
      sparse({
        replicas: pick(1, 2),
        paused: fc.boolean(),
        strategy: pick({ type: "Recreate" }, { type: "RollingUpdate" }),
        selector: pick({ matchLabels: { app: "a" } }, { matchLabels: { app: "b" } }),
        unknown: pick("x"),
      }),
      fc.boolean(),
    )
    .map(([pods, spec, withTemplate]) => ({ spec: { ...spec, ...(withTemplate ? { template: pods } : {}) } })),
  statuses: sparse({
    replicas: pick(1, 2),
    readyReplicas: pick(1, 3),
    observedGeneration: pick(1, 2),
    conditions: pick([{ type: "Available", status: "True" }]),
    unavailableReplicas: pick(-1),
  }).map((status) => ({ status })),
  jsonPatches: [
    { op: "replace", path: "/spec/replicas", value: 4 },
    { op: "replace", path: "/spec/replicas", value: "four" },
    { op: "add", path: "/spec/template/metadata/labels/more", value: "1" },
    { op: "remove", path: "/spec/template/spec/containers/1" },
    { op: "add", path: "/spec/template/spec/containers/-", value: { name: "json", image: "example.com/json:1" } },
    { op: "replace", path: "/status/replicas", value: 4 },
    ...metaPatches,
  ],
  oddPatches: [
    { spec: { template: { spec: { containers: [{ name: "main", env: [{ name: "A", $patch: "delete" }] }] } } } },
    { spec: { template: { spec: { containers: [{ name: "new", image: "example.com/new:1" }] } } } },
    { spec: { template: { spec: { containers: [{ name: "main", ports: [{ containerPort: 80, name: "named" }] }] } } } },
    { spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } } },
    { spec: { replicas: null } },
    { spec: { replicas: "two" } },
    { spec: { strategy: null } },
    { spec: { selector: null } },
    { status: { replicas: 9 } },
    ...metaOdd,
  ],
};

const taints = pick<readonly Json[]>(
  [],
  [{ key: "k", value: "v", effect: "NoSchedule" }],
  [
    { key: "k", effect: "NoExecute" },
    { key: "l", effect: "NoSchedule" },
  ],
  [{ key: "k", effect: "Wrong" }],
  [
    { key: "k", effect: "NoSchedule" },
    { key: "k", effect: "NoSchedule", value: "w" },
  ],
);

const node: DifferentialKind = {
  kind: "Node",
  apiVersion: "v1",
  plural: "nodes",
  namespaced: false,
  custom: false,
  hasStatus: true,
  contents: sparse({
    unschedulable: fc.boolean(),
    taints,
    podCIDR: pick("10.0.0.0/24"),
    podCIDRs: pick(["10.0.0.0/24"]),
    providerID: pick("p://1", "p://2"),
  }).map((spec) => ({ spec })),
  fragments: sparse({ unschedulable: fc.boolean(), taints, providerID: pick("p://1", "p://2"), unknown: pick({}) }).map(
    (spec) => ({ spec }),
  ),
  statuses: sparse({
    capacity: pick({ cpu: "4", memory: "8Gi" }, { cpu: "4000m" }),
    allocatable: pick({ cpu: "3" }),
    conditions: pick(
      [{ type: "Ready", status: "True", reason: "r", message: "m" }],
      [
        { type: "Ready", status: "False" },
        { type: "DiskPressure", status: "False" },
      ],
    ),
    addresses: pick(
      [{ type: "InternalIP", address: "10.0.0.1" }],
      [
        { type: "InternalIP", address: "10.0.0.2" },
        { type: "Hostname", address: "h" },
      ],
    ),
    nodeInfo: pick({
      kubeletVersion: "v1.34.0",
      architecture: "amd64",
      bootID: "",
      containerRuntimeVersion: "",
      kernelVersion: "",
      kubeProxyVersion: "",
      machineID: "",
      operatingSystem: "linux",
      osImage: "",
      systemUUID: "",
    }),
  }).map((status) => ({ status })),
  jsonPatches: [
    { op: "add", path: "/spec/unschedulable", value: true },
    { op: "remove", path: "/spec/unschedulable" },
    { op: "add", path: "/spec/taints/-", value: { key: "j", effect: "NoExecute" } },
    { op: "replace", path: "/spec/taints", value: [] },
    { op: "add", path: "/status/phase", value: "Running" },
    ...metaPatches,
  ],
  oddPatches: [
    { spec: { taints: [{ key: "k", effect: "NoSchedule", value: "merged" }] } },
    { spec: { taints: [{ key: "k", $patch: "delete" }] } },
    { spec: { taints: null } },
    { spec: { unschedulable: null } },
    { status: { conditions: [{ type: "Ready", status: "Unknown" }] } },
    { status: { addresses: [{ type: "InternalIP", $patch: "delete" }] } },
    ...metaOdd,
  ],
};

const times = pick("2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.500000Z");

const lease: DifferentialKind = {
  kind: "Lease",
  apiVersion: "coordination.k8s.io/v1",
  plural: "leases",
  namespaced: true,
  custom: false,
  hasStatus: false,
  contents: sparse({
    holderIdentity: pick("x", "y", ""),
    leaseDurationSeconds: pick(15, 0),
    renewTime: times,
    acquireTime: times,
    leaseTransitions: pick(1, -1),
  }).map((spec) => ({ spec })),
  fragments: sparse({
    holderIdentity: pick("x", "y"),
    renewTime: times,
    leaseTransitions: pick(2),
    unknown: pick(true),
  }).map((spec) => ({ spec })),
  statuses: fc.constant({}),
  jsonPatches: [
    { op: "replace", path: "/spec/holderIdentity", value: "json" },
    { op: "add", path: "/spec/renewTime", value: "no time" },
    { op: "remove", path: "/spec" },
    ...metaPatches,
  ],
  oddPatches: [
    { spec: null },
    { spec: { holderIdentity: null } },
    { spec: { renewTime: "tomorrow" } },
    { spec: { leaseDurationSeconds: "15" } },
    ...metaOdd,
  ],
};

export const widgets = {
  group: "differential.example.com",
  plural: "widgets",
  /** Defaults, pruning, list maps, sets, CEL with and without the old object, nullable, unions of integer and text. */
  crd: {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.differential.example.com" },
    spec: {
      group: "differential.example.com",
      scope: "Namespaced",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          subresources: { status: {} },
          selectableFields: [{ jsonPath: ".spec.mode" }],
          schema: {
            openAPIV3Schema: {
              type: "object",
              required: ["spec"],
              properties: {
                spec: {
                  type: "object",
                  required: ["size"],
                  "x-kubernetes-validations": [
                    {
                      rule: "self.size <= 5 || self.mode == 'big'",
                      message: "only big widgets are larger than 5",
                      reason: "FieldValueForbidden",
                      fieldPath: ".size",
                    },
                    {
                      rule: "!has(oldSelf.fixed) || (has(self.fixed) && self.fixed == oldSelf.fixed)",
                      messageExpression: "'fixed stays ' + oldSelf.fixed",
                    },
                  ],
                  properties: {
                    size: { type: "integer", minimum: 1, maximum: 9 },
                    mode: { type: "string", enum: ["small", "big"], default: "small" },
                    fixed: { type: "string", maxLength: 8 },
                    limit: { "x-kubernetes-int-or-string": true },
                    nothing: { type: "string", nullable: true },
                    name: { type: "string", pattern: "^[a-z]+$" },
                    parts: {
                      type: "array",
                      "x-kubernetes-list-type": "map",
                      "x-kubernetes-list-map-keys": ["id"],
                      maxItems: 3,
                      items: {
                        type: "object",
                        required: ["id"],
                        properties: {
                          id: { type: "string" },
                          count: { type: "integer", default: 1 },
                          note: { type: "string" },
                        },
                      },
                    },
                    tags: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
                    steps: { type: "array", items: { type: "string" } },
                    atom: {
                      type: "object",
                      "x-kubernetes-map-type": "atomic",
                      additionalProperties: { type: "string" },
                    },
                    free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
                    nested: { type: "object", default: {}, properties: { on: { type: "boolean", default: true } } },
                  },
                },
                status: {
                  type: "object",
                  properties: {
                    phase: {
                      type: "string",
                      "x-kubernetes-validations": [
                        { rule: "self != 'Never' || oldSelf == 'Never'", message: "phase never becomes Never" },
                      ],
                    },
                    observedGeneration: { type: "integer" },
                    conditions: {
                      type: "array",
                      "x-kubernetes-list-type": "map",
                      "x-kubernetes-list-map-keys": ["type"],
                      items: {
                        type: "object",
                        required: ["type", "status"],
                        properties: {
                          type: { type: "string" },
                          status: { type: "string", enum: ["True", "False", "Unknown"] },
                          reason: { type: "string" },
                        },
                      },
                    },
                  },
                },
              },
            },
          },
        },
      ],
    },
  },
} as const;

const widgetSpec = {
  mode: pick("small", "big", "wrong"),
  fixed: pick("one", "two", "much too long"),
  limit: pick<unknown>(1, "10%", true),
  nothing: pick<unknown>(null, "x"),
  name: pick("abc", "ABC"),
  parts: pick<unknown>(
    [{ id: "a" }],
    [
      { id: "a", count: 2 },
      { id: "b", note: "n" },
    ],
    [{ id: "b" }, { id: "a", note: "m" }],
    [{ id: "a" }, { id: "a" }],
    [{ count: 1 }],
  ),
  tags: pick<unknown>(["t"], ["u", "t"], ["t", "t"]),
  steps: pick<unknown>(["s"], ["s", "s"]),
  atom: pick<unknown>({ p: "1" }, { p: "2", q: "1" }),
  free: pick<unknown>({ any: { thing: 1 } }, { any: [1, 2] }, {}),
  nested: pick<unknown>({}, { on: false }, { on: "yes" }, null),
  unknown: pick<unknown>(1),
};

const widget: DifferentialKind = {
  kind: "Widget",
  apiVersion: "differential.example.com/v1",
  plural: "widgets",
  namespaced: true,
  custom: true,
  hasStatus: true,
  contents: fc
    .tuple(
      fc.oneof(
        { weight: 8, arbitrary: pick<unknown>(1, 4) },
        { weight: 2, arbitrary: pick<unknown>(7, 0, "1", 1.5, undefined) },
      ),
      sparse(widgetSpec),
    )
    .map(([size, spec]) => ({ spec: { ...(size === undefined ? {} : { size }), ...spec } })),
  fragments: fc
    .tuple(sparse({ size: pick(1, 2, 7), ...widgetSpec }), fc.boolean())
    .map(([spec, other]) => ({ spec, ...(other ? {} : { other: 1 }) })),
  statuses: sparse({
    phase: pick("Ready", "Never"),
    observedGeneration: pick(1, 2),
    conditions: pick<unknown>(
      [{ type: "Ready", status: "True" }],
      [
        { type: "Ready", status: "False", reason: "r" },
        { type: "Other", status: "True" },
      ],
      [{ type: "Ready" }],
    ),
    unknown: pick(1),
  }).map((status) => ({ status })),
  jsonPatches: [
    { op: "replace", path: "/spec/size", value: 3 },
    { op: "replace", path: "/spec/size", value: 8 },
    { op: "remove", path: "/spec/size" },
    { op: "remove", path: "/spec/fixed" },
    { op: "add", path: "/spec/parts/-", value: { id: "j" } },
    { op: "add", path: "/spec/parts/0", value: { id: "a" } },
    { op: "add", path: "/spec/tags", value: ["j"] },
    { op: "add", path: "/status", value: { phase: "Patched" } },
    { op: "remove", path: "/spec" },
    ...metaPatches,
  ],
  oddPatches: [
    { spec: { mode: null } },
    { spec: { nested: null } },
    { spec: { nothing: null } },
    { spec: { parts: null } },
    { spec: { fixed: null } },
    { spec: null },
    { spec: { parts: [{ id: "a", count: "two" }] } },
    { status: { phase: "Ready" } },
    { status: { phase: "Never" } },
    { status: null },
    ...metaOdd,
  ],
};

const selector = pick<unknown>(
  { matchLabels: { role: "worker" } },
  { matchExpressions: [{ key: "role", operator: "In", values: ["worker", "infra"] }] },
  { matchExpressions: [{ key: "role", operator: "Sometimes" }] },
  {},
);

const pool: DifferentialKind = {
  kind: "MachineConfigPool",
  apiVersion: MachineConfigPool.apiVersion,
  plural: MachineConfigPool.plural,
  namespaced: false,
  custom: true,
  hasStatus: true,
  contents: sparse({
    machineConfigSelector: selector,
    nodeSelector: selector,
    paused: fc.boolean(),
    maxUnavailable: pick<unknown>(1, "50%", true),
    configuration: pick<unknown>({
      name: "rendered-a",
      source: [{ name: "00", kind: "MachineConfig", apiVersion: "v1" }],
    }),
    pinnedImageSets: pick<unknown>([{ name: "p" }], [{ name: "p" }, { name: "p" }], [{ name: "" }]),
    osImageStream: pick<unknown>({ name: "s" }, { name: "S_" }, {}),
  }).map((spec) => ({ spec })),
  fragments: sparse({
    machineConfigSelector: selector,
    paused: fc.boolean(),
    maxUnavailable: pick<unknown>(2, "10%"),
    pinnedImageSets: pick<unknown>([{ name: "q" }], [{ name: "p" }, { name: "q" }]),
    unknown: pick<unknown>({}),
  }).map((spec) => ({ spec })),
  statuses: sparse({
    machineCount: pick<unknown>(1, 2, "3"),
    configuration: pick<unknown>({ name: "rendered-a" }, { name: "rendered-b", source: [{ name: "00" }] }),
    conditions: pick<unknown>(
      [{ type: "Updated", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z", reason: "", message: "" }],
      [
        { type: "Updated", status: "False" },
        { type: "Updated", status: "True" },
      ],
    ),
    poolSynchronizersStatus: pick<unknown>([
      {
        poolSynchronizerType: "PinnedImageSets",
        machineCount: 1,
        updatedMachineCount: 1,
        readyMachineCount: 1,
        unavailableMachineCount: 0,
        availableMachineCount: -1,
      },
    ]),
    certExpirys: pick<unknown>(
      [{ bundle: "b", subject: "s", expiry: "2026-01-01T00:00:00Z" }],
      [{ bundle: "b" }],
      [{ bundle: "b", subject: "s", expiry: "soon" }],
    ),
  }).map((status) => ({ status })),
  jsonPatches: [
    { op: "add", path: "/spec/paused", value: true },
    { op: "remove", path: "/spec/paused" },
    { op: "add", path: "/spec/pinnedImageSets/-", value: { name: "j" } },
    { op: "add", path: "/status", value: { machineCount: 3 } },
    ...metaPatches,
  ],
  oddPatches: [
    { spec: { paused: null } },
    { spec: { paused: "yes" } },
    { spec: { maxUnavailable: {} } },
    { spec: { machineConfigSelector: { matchLabels: { role: null } } } },
    { spec: null },
    ...metaOdd,
  ],
};

const config: DifferentialKind = {
  kind: "MachineConfig",
  apiVersion: MachineConfig.apiVersion,
  plural: MachineConfig.plural,
  namespaced: false,
  custom: true,
  hasStatus: false,
  contents: sparse({
    spec: sparse({
      osImageURL: pick("image"),
      config: pick<unknown>({ ignition: { version: "3.4.0" } }, null, "text"),
      kernelArguments: pick<unknown>(["a=b"], null, [1]),
      extensions: pick<unknown>(["usbguard"]),
      fips: pick<unknown>(true, "true"),
      kernelType: pick("realtime"),
      unknown: pick(1),
    }),
    status: pick({}),
  }),
  fragments: sparse({
    spec: sparse({
      config: pick<unknown>({ ignition: { version: "3.5.0" } }, { storage: { files: [{ path: "/etc/a" }] } }),
      kernelArguments: pick<unknown>(["a=b", "c"], ["c"]),
      fips: pick(false),
    }),
  }),
  statuses: fc.constant({}),
  jsonPatches: [
    { op: "add", path: "/spec/kernelArguments/-", value: "j" },
    { op: "add", path: "/spec", value: { fips: false } },
    { op: "remove", path: "/spec/config" },
    { op: "add", path: "/spec/config/more", value: { a: 1 } },
    ...metaPatches,
  ],
  oddPatches: [
    { spec: { config: null } },
    { spec: { config: { ignition: { version: null } } } },
    { spec: null },
    { spec: [] },
    ...metaOdd,
  ],
};

export const differentialKinds: readonly DifferentialKind[] = [
  configMap,
  pod,
  deployment,
  node,
  lease,
  widget,
  pool,
  config,
];
/** The definitions that must be served before a list can run. */
export const customResourceManifests: readonly Json[] = [
  widgets.crd,
  { ...MachineConfigPool.crd() },
  { ...MachineConfig.crd() },
];
