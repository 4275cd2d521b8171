import { describe, expect, test } from "vitest";
import { builtinDefinitions } from "./builtin-kinds.ts";
import { typeNames, typeSchema } from "./builtin-types.ts";
import type { KubeObject, ResourceDefinition } from "../contract.ts";
import { cloneJson } from "../json-values.ts";
import { strategicMergePatch } from "../merge/patches.ts";
import { compileSchema } from "../validation/structural.ts";

function definition(kind: string): ResourceDefinition {
  const found = builtinDefinitions.find((one) => one.kind === kind);
  if (found === undefined) throw new Error(kind);
  return found;
}
/** As the engine does it: prune, default, prepare, validate. */
function admit(
  object: Record<string, unknown>,
  before?: KubeObject,
): { object: KubeObject; dropped: readonly string[]; errors: string[] } {
  const own = cloneJson(object) as unknown as KubeObject;
  const { schema, prepare, validate } = definition(own.kind);
  const compiled = compileSchema(schema);
  const dropped = compiled.prune(own);
  compiled.applyDefaults(own);
  prepare(own, before);
  return {
    object: own,
    dropped,
    errors: [...compiled.validate(own, before), ...validate(own, before, "")].map(
      (error) => `${error.field}: ${error.message}`,
    ),
  };
}

const template = { metadata: { labels: { app: "a" } }, spec: { containers: [{ name: "c", image: "i:1" }] } };
const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "d", namespace: "n" },
  spec: { selector: { matchLabels: { app: "a" } }, template },
};
const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "n" },
  spec: {
    containers: [
      {
        name: "c",
        image: "i",
        env: [
          { name: "A", value: "1" },
          { name: "A", value: "2" },
        ],
      },
    ],
  },
};

test("every type of the table can be built", () => {
  for (const name of typeNames()) expect(typeSchema(name).type).toBe("object");
});

test("kinds have distinct places", () => {
  const places = builtinDefinitions.map(({ group, plural }) => `${plural}.${group}`);
  expect(new Set(places).size).toBe(places.length);
});

describe("a Deployment", () => {
  test("gets Kubernetes' defaults", () => {
    const { object, errors } = admit(deployment);
    expect(errors).toEqual([]);
    expect(object["spec"]).toMatchObject({
      replicas: 1,
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: "25%" } },
      template: {
        spec: {
          restartPolicy: "Always",
          dnsPolicy: "ClusterFirst",
          terminationGracePeriodSeconds: 30,
          containers: [{ imagePullPolicy: "IfNotPresent", terminationMessagePath: "/dev/termination-log" }],
        },
      },
    });
  });
  test.for<[string, Record<string, unknown>, string]>([
    ["needs a selector", { template }, "spec.selector: Required value"],
    [
      "needs labels that its selector selects",
      { selector: { matchLabels: { app: "b" } }, template },
      'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`',
    ],
    [
      "restarts always",
      {
        selector: { matchLabels: { app: "a" } },
        template: { ...template, spec: { ...template.spec, restartPolicy: "Never" } },
      },
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ],
    [
      "needs containers",
      { selector: { matchLabels: { app: "a" } }, template: { ...template, spec: { containers: [] } } },
      "spec.template.spec.containers: Required value",
    ],
  ])("%s", ([, spec, error]) => {
    expect(admit({ ...deployment, spec }).errors).toContain(error);
  });
  test("keeps its selector", () => {
    const before = admit(deployment).object;
    const after = {
      ...deployment,
      spec: { selector: { matchLabels: { x: "y" } }, template: { ...template, metadata: { labels: { x: "y" } } } },
    };
    expect(admit(after, before).errors).toEqual([
      'spec.selector: Invalid value: {"matchLabels":{"x":"y"}}: field is immutable',
    ]);
  });
  test("says where a typo is", () => {
    const typo = {
      ...deployment,
      spec: {
        ...deployment.spec,
        replcas: 3,
        template: { ...template, spec: { containers: [{ name: "c", image: "i", imagePulPolicy: "Always" }] } },
      },
    };
    expect(admit(typo).dropped).toEqual(["spec.replcas", "spec.template.spec.containers[0].imagePulPolicy"]);
  });
  test("changes its generation with its spec only", () => {
    const { generationChanged } = definition("Deployment");
    const one = admit(deployment).object;
    expect(
      generationChanged(one, { ...one, status: { replicas: 1 }, metadata: { ...one.metadata, labels: { a: "b" } } }),
    ).toBe(false);
    expect(generationChanged(one, { ...one, spec: { ...(one["spec"] as object), paused: true } })).toBe(true);
  });
  test("merges containers by name in strategic patches", () => {
    const result = strategicMergePatch(
      deployment,
      { spec: { template: { spec: { containers: [{ name: "side", image: "s" }] } } } },
      definition("Deployment").schema,
    );
    expect(result.verdict === "patched" && (result.object as typeof deployment).spec.template.spec.containers).toEqual([
      { name: "side", image: "s" },
      { name: "c", image: "i:1" },
    ]);
  });
});

describe("a Pod", () => {
  test("starts Pending, with its class; equal names in env pass", () => {
    const { object, errors } = admit(pod);
    expect(errors).toEqual([]);
    expect(object["status"]).toEqual({ phase: "Pending", qosClass: "BestEffort" });
    expect(object["spec"]).toMatchObject({ enableServiceLinks: true, containers: [{ imagePullPolicy: "Always" }] });
  });
  test("may change its image, nothing else", () => {
    const { object: before } = admit(pod);
    const bound = cloneJson(before);
    (bound["spec"] as Record<string, unknown>)["nodeName"] = "n1";
    expect(admit(bound, before).errors[0]).toContain("spec: Forbidden: pod updates may not change fields other than");
    expect(admit({ ...bound, spec: { ...(bound["spec"] as object), nodeName: "n2" } }, bound).errors[0]).toContain(
      "spec: Forbidden: pod updates may not change fields other than",
    );
    const other = cloneJson(bound);
    ((other["spec"] as { containers: Record<string, unknown>[] }).containers[0] ?? {})["image"] = "other";
    expect(admit(other, bound).errors).toEqual([]);
  });
  test("needs the volumes that it mounts", () => {
    const spec = {
      containers: [{ name: "c", image: "i", volumeMounts: [{ name: "v", mountPath: "/v" }] }],
      volumes: [{ name: "w" }],
    };
    expect(admit({ ...pod, spec }).errors).toEqual(['spec.containers[0].volumeMounts[0].name: Not found: "v"']);
  });
});

test("a Secret's stringData becomes data", () => {
  const { object, errors } = admit({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s", namespace: "n" },
    stringData: { a: "hällo" },
  });
  expect(errors).toEqual([]);
  expect(object).toMatchObject({ data: { a: "aMOkbGxv" }, type: "Opaque" });
  expect(object["stringData"]).toBeUndefined();
});

test("a Namespace starts Active, labelled and with its finalizer", () => {
  const { object, errors } = admit({ apiVersion: "v1", kind: "Namespace", metadata: { name: "n" } });
  expect(errors).toEqual([]);
  expect(object).toMatchObject({
    metadata: { labels: { "kubernetes.io/metadata.name": "n" } },
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  });
  expect(admit({ apiVersion: "v1", kind: "Namespace", metadata: { name: "N_" } }).errors[0]).toContain(
    'metadata.name: Invalid value: "N_": a lowercase RFC 1123 label must consist of',
  );
});

test("a Job selects its pods by its uid", () => {
  const { object, errors } = admit({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "j", namespace: "n", uid: "u1" },
    spec: { template: { spec: { ...template.spec, restartPolicy: "Never" } } },
  });
  expect(errors).toEqual([]);
  expect(object["spec"]).toMatchObject({
    completions: 1,
    parallelism: 1,
    backoffLimit: 6,
    selector: { matchLabels: { "batch.kubernetes.io/controller-uid": "u1" } },
    template: { metadata: { labels: { "job-name": "j" } } },
  });
});

test("a binding keeps its role", () => {
  const binding = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name: "a:b", namespace: "n" },
    roleRef: { kind: "Role", name: "r" },
    subjects: [{ kind: "User", name: "u" }],
  };
  const { object, errors } = admit(binding);
  expect(errors).toEqual([]);
  expect(object).toMatchObject({
    roleRef: { apiGroup: "rbac.authorization.k8s.io" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io" }],
  });
  expect(admit({ ...binding, roleRef: { kind: "Role", name: "x" } }, object).errors[0]).toContain(
    "cannot change roleRef",
  );
});

test("a disruption budget names one bound", () => {
  const errors = admit({
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "b", namespace: "n" },
    spec: { minAvailable: 1, maxUnavailable: "x" },
  }).errors;
  expect(errors[0]).toContain("minAvailable and maxUnavailable cannot be both set");
  expect(errors).toHaveLength(2);
});

test("a webhook is called by https", () => {
  const errors = admit({
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: "w" },
    webhooks: [
      {
        name: "a.b.c",
        clientConfig: { url: "http://x" },
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        matchConditions: [{ name: "m", expression: "object.x ==" }],
      },
    ],
  }).errors;
  expect(errors[0]).toContain("'https' is the only allowed URL scheme");
  expect(errors[1]).toContain("webhooks[0].matchConditions[0].expression: Invalid value:");
});

test("an event stays with its object's namespace", () => {
  const event = {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: "e", namespace: "default" },
    involvedObject: { kind: "Node", name: "n" },
  };
  const { object, errors } = admit(event);
  expect(errors).toEqual([]);
  expect(object["involvedObject"]).toEqual({ kind: "Node", name: "n" });
  expect(admit({ ...event, metadata: { name: "e", namespace: "other" } }).errors).toEqual([
    'involvedObject.namespace: Invalid value: "": does not match event.namespace',
  ]);
});
