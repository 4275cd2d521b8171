import { describe, expect, test } from "vitest";
import type { KubeObject } from "../api/schema/object.ts";
import { objectPolicies } from "../operator/admission-policies.ts";
import { judgeByPolicies } from "./judge-by-policies.ts";
import { kindsToJudge } from "./judge-manifest.ts";

const [own, config, operator] = [
  "machineconfiguration.openshift.io/v1",
  "config.openshift.io/v1",
  "operator.openshift.io/v1",
];
const object = (apiVersion: string, kind: string, name: string, more: object = {}) =>
  ({ apiVersion, kind, metadata: { name }, ...more }) as KubeObject;
const infrastructure = (type: string) =>
  object(config, "Infrastructure", "cluster", { status: { platformStatus: { type } } });
const bootImages = (resource: string) =>
  object(operator, "MachineConfiguration", "cluster", {
    spec: {
      managedBootImages: {
        machineManagers: [{ apiGroup: "machine.openshift.io", resource, selection: { mode: "All" } }],
      },
    },
  });
const annotated = (annotation: string, value: string) => ({
  ...object(operator, "MachineConfiguration", "cluster", { spec: {} }),
  metadata: { name: "cluster", annotations: { [`machineconfiguration.openshift.io/${annotation}`]: value } },
});

/** The policies for objects that people write, each with a write that it speaks of. */
const writes: Readonly<
  Record<
    string,
    readonly {
      readonly object: KubeObject;
      readonly around?: readonly KubeObject[];
      readonly field: string;
      readonly severity?: "warning";
    }[]
  >
> = {
  "custom-machine-config-pool-selector": [
    {
      object: object(own, "MachineConfigPool", "gpu", { spec: { machineConfigSelector: { matchLabels: { a: "b" } } } }),
      field: "spec.machineConfigSelector",
    },
  ],
  "machineconfigpool-osimagestream-reference-validation": [
    {
      object: object(own, "MachineConfigPool", "worker", {
        spec: {
          machineConfigSelector: { matchLabels: { "machineconfiguration.openshift.io/role": "worker" } },
          osImageStream: { name: "rhel-7" },
        },
      }),
      around: [object(own, "OSImageStream", "cluster", { status: { availableStreams: [{ name: "rhel-9" }] } })],
      field: "spec.osImageStream.name",
    },
  ],
  "machine-configuration-guards": [
    { object: object(operator, "MachineConfiguration", "other", { spec: {} }), field: "metadata.name" },
    { object: annotated("config-server-access", "perhaps"), field: "metadata.annotations" },
  ],
  "disruption-policy-without-file": ["etc/c.conf", "/", "/etc/../a", "/etc//a", "/etc/./a", "/etc/.."].map((path) => ({
    object: object(operator, "MachineConfiguration", "cluster", {
      spec: {
        nodeDisruptionPolicy: {
          files: [
            { path: "/etc/a/", actions: [] },
            { path, actions: [] },
          ],
        },
      },
    }),
    field: "spec.nodeDisruptionPolicy.files",
    severity: "warning" as const,
  })),
  "pinned-image-set-without-pool": [
    { object: object(own, "PinnedImageSet", "set", { spec: {} }), field: "metadata.labels", severity: "warning" },
  ],
  "machineosconfig-push-spec": ["OS/worker:a", "os/-a:a", "os/a__.b:a", "os:.a", `os:${"a".repeat(129)}`].map(
    (name) => ({
      object: object(own, "MachineOSConfig", "worker", {
        spec: { machineConfigPool: { name: "worker" }, renderedImagePushSpec: `registry.example.com/${name}` },
      }),
      field: "spec.renderedImagePushSpec",
      severity: "warning" as const,
    }),
  ),
  "pinned-image-names": [
    {
      object: {
        ...object(own, "PinnedImageSet", "set", {
          spec: { pinnedImages: [{ name: `q.example/a/B@sha256:${"1".repeat(64)}` }] },
        }),
      },
      field: "spec.pinnedImages",
      severity: "warning",
    },
  ],
  "managed-bootimages-platform-check": [
    { object: bootImages("machinesets"), around: [infrastructure("BareMetal")], field: "spec.managedBootImages" },
  ],
  "managed-bootimages-cpms-platform-check": [
    {
      object: bootImages("controlplanemachinesets"),
      around: [infrastructure("VSphere")],
      field: "spec.managedBootImages.machineManagers",
    },
  ],
  "internalreleaseimage-without-effect": [
    { object: object(own, "InternalReleaseImage", "cluster", { spec: {} }), field: "", severity: "warning" },
  ],
};

describe("the policies of an API server, asked by commands", () => {
  const kinds = kindsToJudge();
  const judge = (written: KubeObject, around: readonly KubeObject[], before?: KubeObject) => {
    const definition = kinds(written.apiVersion, written.kind)?.definition;
    if (definition === undefined) throw new Error(`no definition of ${written.kind}`);
    return judgeByPolicies(around)({ definition, object: written, before });
  };

  test("each that judges what people write is asked: the list is whole [judge-by-policies-1]", () => {
    // Deletions and the objects of the suite are not written in manifests.
    const judged = objectPolicies().filter((one) => {
      const rules =
        (
          one as {
            readonly spec?: {
              readonly matchConstraints?: {
                readonly resourceRules: readonly {
                  readonly operations: readonly string[];
                  readonly apiGroups: readonly string[];
                }[];
              };
            };
          }
        ).spec?.matchConstraints?.resourceRules ?? [];
      return rules.some(
        ({ operations, apiGroups }) => operations.includes("CREATE") && !apiGroups.includes("networking.k8s.io"),
      );
    });
    expect(judged.map(({ metadata }) => metadata.name).sort()).toEqual(Object.keys(writes).sort());
  });

  test.for(Object.entries(writes).flatMap(([name, list]) => list.map((write) => ({ name, ...write }))))(
    "$name says it of the field $field [judge-by-policies-2]",
    ({ object: written, around = [], field, severity = "error" }) => {
      const problems = judge(written, around);
      expect(problems.map((one) => [one.severity, one.path])).toContainEqual([severity, field]);
      expect(problems.every(({ reason }) => reason !== "" && !reason.startsWith(field === "" ? "\0" : field))).toBe(
        true,
      );
    },
  );

  test("a policy whose parameters are not known says nothing [judge-by-policies-3]", () => {
    expect(judge(bootImages("machinesets"), [])).toEqual([]);
  });

  test("what is stored already is not refused again [judge-by-policies-4]", () => {
    const [gpu] = writes["custom-machine-config-pool-selector"] ?? [];
    if (gpu === undefined) throw new Error("no pool");
    expect(judge(gpu.object, [], gpu.object)).toEqual([]);
  });
});
