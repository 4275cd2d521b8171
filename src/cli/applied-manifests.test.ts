import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { commandLine } from "../../test/support/command-line.ts";

const typed = commandLine("mco-applied-");
const { mco } = typed;

function save(name: string, ...documents: readonly (object | string)[]): string {
  const texts = documents.map((one) => (typeof one === "string" ? one : stringify(one)));
  writeFileSync(join(typed.folder, name), texts.join("---\n"));
  return join(typed.folder, name);
}

const apiVersion = "machineconfiguration.openshift.io/v1";
const role = { "machineconfiguration.openshift.io/role": "worker" };

const machineConfig = (name: string, path: string, metadata: object = {}, more: object = {}) => ({
  apiVersion,
  kind: "MachineConfig",
  metadata: { name, labels: role, ...metadata },
  spec: {
    config: { ignition: { version: "3.4.0" }, storage: { files: [{ path, contents: { source: `data:,${name}` } }] } },
  },
  ...more,
});
const pool = (metadata: object = {}, spec: object = {}, more: object = {}) => ({
  apiVersion,
  kind: "MachineConfigPool",
  metadata: { name: "worker", labels: { "example.com/pool": "worker" }, ...metadata },
  spec: {
    machineConfigSelector: { matchLabels: role },
    nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
    ...spec,
  },
  ...more,
});
const paused = (metadata: object = {}, more: object = {}) => pool(metadata, { paused: true }, more);
const node = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "worker-0", labels: { "node-role.kubernetes.io/worker": "" } },
};
const uid = "0b0b3f0e-3d0f-4d5a-9a53-111111111111";

/** The output of the commands for a change to a small cluster, whose manifests are in files too. */
async function judge(...documents: readonly (object | string)[]) {
  const from = save("cluster.yaml", pool(), node, machineConfig("99-motd", "/etc/motd"));
  const change = save("change.yaml", ...documents);
  const plan = await mco("plan", "--from", from, "-f", change);
  return { validate: await mco("validate", change), plan, diff: await mco("diff", from, change) };
}

describe("metadata that an API server sets", () => {
  test.for([
    ["deletionTimestamp", "2020-01-01T00:00:00Z"],
    ["deletionGracePeriodSeconds", 1],
    ["uid", uid],
  ])("%s hides no new object, and mco validate warns of it [applied-manifests-1]", async ([field, value]) => {
    const metadata = { [String(field)]: value };
    const { validate, plan, diff } = await judge(
      pool(),
      node,
      machineConfig("99-motd", "/etc/motd"),
      machineConfig("99-x", "/etc/sudoers.d/x", metadata),
    );
    expect(plan.out).toContain("+ /etc/sudoers.d/x");
    expect(diff.out).toContain("/etc/sudoers.d/x");
    expect(validate.code).toBe(0);
    expect(validate.out).toContain(
      `metadata.${field}: the API server drops it of a new object, and refuses it of one where it is another; take the field out`,
    );
  });

  test("a KubeletConfig with a time of deletion counts like one without [applied-manifests-2]", async () => {
    const settings = (metadata: object) => ({
      apiVersion,
      kind: "KubeletConfig",
      metadata: { name: "k", ...metadata },
      spec: {
        machineConfigPoolSelector: { matchLabels: { "example.com/pool": "worker" } },
        kubeletConfig: { maxPods: 17 },
      },
    });
    const [hidden, seen] = [
      await judge(settings({ deletionTimestamp: "2020-01-01T00:00:00Z" })),
      await judge(settings({})),
    ];
    expect(hidden.plan.out).toBe(seen.plan.out);
    // This cluster has no configuration of kubelets that it could change.
    expect(hidden.plan.out).toContain("KubeletConfig/k: pool worker: has no base configuration");
  });

  test.for([
    ["deletionTimestamp", "2020-01-01T00:00:00Z"],
    ["uid", uid],
    ["resourceVersion", "1"],
  ])(
    "a change of a stored object with another %s is refused by mco plan [applied-manifests-3]",
    async ([field, value]) => {
      const { plan } = await judge(machineConfig("99-motd", "/etc/motd2"), paused({ [String(field)]: value }));
      expect(plan.code).toBe(1);
      expect(plan.out).toContain(
        `MachineConfigPool/worker: metadata.${field}: is "${value}", and the stored object has none: the API server refuses the change`,
      );
      expect(plan.out).not.toContain("(paused");
    },
  );

  test("a change with the uid and the version of the stored object is planned [applied-manifests-4]", async () => {
    const metadata = { uid, resourceVersion: "7", creationTimestamp: "2020-01-01T00:00:00Z" };
    const from = save("dump.yaml", pool(metadata), node, machineConfig("99-motd", "/etc/motd"));
    const change = save("change.yaml", paused(metadata), machineConfig("99-motd", "/etc/motd2"));
    const plan = await mco("plan", "--from", from, "-f", change);
    expect(plan.out).toContain("(paused: machines keep their configuration)");
    expect((await mco("validate", change)).code).toBe(0);
  });

  test("a new object with a version, and forms that no API server gives, are refused [applied-manifests-5]", async () => {
    const { plan } = await judge(machineConfig("99-new", "/etc/new", { resourceVersion: "1" }));
    expect(plan.code).toBe(1);
    expect(plan.out).toContain("metadata.resourceVersion: is set, and there is no such object");
    const { validate } = await judge(
      machineConfig("99-new", "/etc/new", { uid: "x" }),
      machineConfig("99-other", "/etc/other", { resourceVersion: "x" }),
    );
    expect(validate.code).toBe(1);
    for (const field of ["uid", "resourceVersion"])
      expect(validate.out).toContain(`metadata.${field}: has a form that no API server gives; take the field out`);
  });

  test("a status in a change decides nothing [applied-manifests-6]", async () => {
    const files = [{ path: "/etc/motd", actions: [{ type: "None" }] }];
    const status = {
      observedGeneration: 1,
      nodeDisruptionPolicyStatus: { clusterPolicies: { files, units: [], sshkey: { actions: [{ type: "None" }] } } },
    };
    const configuration = {
      apiVersion: "operator.openshift.io/v1",
      kind: "MachineConfiguration",
      metadata: { name: "cluster" },
      spec: { managementState: "Managed" },
    };
    const change = machineConfig("99-motd", "/etc/motd2");
    const without = await judge(change, configuration, pool());
    const withStatus = await judge(
      change,
      { ...configuration, status },
      pool({}, {}, { status: { configuration: { name: "rendered-worker-00000000000000000000000000000000" } } }),
    );
    expect(withStatus.plan.out).toBe(without.plan.out);
    expect(withStatus.plan.out).toContain("/etc/motd2");
  });
});

describe("metadata that an API server refuses", () => {
  const wrong: readonly (readonly [string, unknown])[] = [
    ["annotations", []],
    ["annotations", { a: null }],
    ["labels", []],
    ["labels", { a: 1 }],
    ["uid", {}],
    ["resourceVersion", 1],
    ["generateName", {}],
    ["finalizers", 1],
    ["finalizers", [null]],
    ["ownerReferences", [null]],
    ["ownerReferences", [{ apiVersion: 1, kind: "A", name: "a", uid }]],
    ["managedFields", {}],
    ["deletionTimestamp", "yesterday"],
    ["deletionTimestamp", 1],
    ["deletionGracePeriodSeconds", "x"],
    ["generation", "x"],
  ];
  test.for(wrong)(
    "%s: %j is refused, and nothing of the object is planned [applied-manifests-7]",
    async ([field, value]) => {
      const { validate, plan, diff } = await judge(
        machineConfig("99-motd", "/etc/motd2"),
        paused({ labels: role, [field]: value }),
      );
      expect(validate.code).toBe(1);
      expect(validate.out).toMatch(
        new RegExp(
          `change\\.yaml:\\d+:\\d+: error: MachineConfigPool/worker: metadata\\.${field}[^:]*: .+; correct the field, or take it out`,
        ),
      );
      expect([plan.code, diff.code]).toEqual([1, "MCO_MANIFEST_INVALID"]);
      expect(plan.out).toContain(`MachineConfigPool/worker: metadata.${field}`);
      expect(plan.out).not.toContain("(paused");
    },
  );

  test("so it is with objects of other kinds, and with those of the cluster [applied-manifests-8]", async () => {
    const configMap = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "machine-config-osimageurl", namespace: "openshift-machine-config-operator", labels: [] },
    };
    const controllerConfig = { apiVersion, kind: "ControllerConfig", metadata: { name: "a", finalizers: 1 }, spec: {} };
    for (const object of [configMap, controllerConfig]) {
      const { validate, plan } = await judge(object);
      expect([validate.code, plan.code]).toEqual([1, 1]);
      expect(validate.out).toMatch(
        /error: .*metadata\.(?:labels|finalizers): (?:json: cannot unmarshal|Invalid value)/,
      );
    }
  });
});

describe("kinds of other groups", () => {
  test.for(["v1", `${apiVersion} `, "example.com/v1", "machineconfiguration.openshift.io/v1beta1"])(
    "a MachineConfigPool of %j pauses nothing, and the plan leaves it out [applied-manifests-9]",
    async (other) => {
      const { plan } = await judge(machineConfig("99-motd", "/etc/motd2"), paused({}, { apiVersion: other }));
      expect(plan.out).not.toContain("(paused");
      expect(plan.out).toContain("drain");
      expect(plan.out).toContain(`MachineConfigPool of ${other} objects are not part of this plan`);
    },
  );

  test("a MachineConfig of another group hides none of the suite's [applied-manifests-10]", async () => {
    const evil = machineConfig("99-motd", "/etc/sudoers.d/x");
    const { plan, validate } = await judge(evil, machineConfig("99-motd", "/etc/motd", {}, { apiVersion: "v1" }));
    expect(plan.out).toContain("+ /etc/sudoers.d/x");
    expect(validate.out).not.toContain("stands in");
  });

  test("mirrors of another group are no part of a plan, which says so [applied-manifests-11]", async () => {
    const { plan } = await judge({
      apiVersion: "example.com/v1",
      kind: "ImageDigestMirrorSet",
      metadata: { name: "a" },
      spec: { imageDigestMirrors: [{ source: "a.example/x", mirrors: ["b.example/x"] }] },
    });
    expect(plan.out).toContain("ImageDigestMirrorSet of example.com/v1 objects are not part of this plan");
  });
});
