import { describe, expect, test } from "vitest";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfiguration } from "../../src/api/kinds/machine-configuration.ts";
import { objects } from "../../src/api/names.ts";
import { type Change, describeConsequence } from "../../src/core/config/change.ts";
import { classifyAsReference, legacyActionOf } from "../../src/core/config/classify-as-reference.ts";
import { missingExtensions, packagesOf } from "../../src/core/machine/deployment.ts";
import { diffConfigs } from "../../src/core/config/diff-configs.ts";
import { consequencesOf, defaultPolicies } from "../../src/core/config/disruption-policy.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";
import { MachineHarness } from "../support/machine-harness.ts";

const file = (path: string): Change => ({ kind: "file", path, op: "update" });
const unit = (name: string): Change => ({ kind: "unit", name, op: "update", parts: ["contents"] });
const actionsFor = (...changes: readonly Change[]) =>
  consequencesOf(changes, defaultPolicies).actions.map(describeConsequence);

describe("without a policy of the user", () => {
  test.for<{ title: string; change: Change; actions: string[] }>([
    { title: "the kubelet's pull secret", change: file("/var/lib/kubelet/config.json"), actions: ["nothing"] },
    {
      title: "the key of image signatures",
      change: file("/etc/machine-config-daemon/no-reboot/containers-gpg.pub"),
      actions: ["reload crio.service"],
    },
    { title: "the signature policy", change: file("/etc/containers/policy.json"), actions: ["reload crio.service"] },
    {
      title: "signature stores of registries",
      change: file("/etc/containers/registries.d/a.yaml"),
      actions: ["reload crio.service"],
    },
    { title: "crio's policies", change: file("/etc/crio/policies/ns.json"), actions: ["reload crio.service"] },
    { title: "network states", change: file("/etc/nmstate/openshift/br-ex.yml"), actions: ["nothing"] },
    {
      title: "the user's certificate authorities",
      change: file("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt"),
      actions: ["restart coreos-update-ca-trust.service", "restart crio.service"],
    },
    {
      title: "credential providers",
      change: file("/etc/kubernetes/credential-providers/ecr.yaml"),
      actions: ["restart kubelet.service"],
    },
    {
      title: "their drop-in of the kubelet",
      change: file("/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf"),
      actions: ["systemctl daemon-reload", "restart kubelet.service"],
    },
    {
      title: "the local registry's folder",
      change: file("/etc/iri-registry/x"),
      actions: ["restart iri-registry.service"],
    },
    {
      title: "the local registry's loader",
      change: file("/usr/local/bin/load-registry-image.sh"),
      actions: ["restart iri-registry.service"],
    },
    {
      title: "the local registry's authority",
      change: file("/etc/pki/ca-trust/source/anchors/iri-root-ca.crt"),
      actions: ["restart coreos-update-ca-trust.service"],
    },
    {
      title: "the local registry's unit",
      change: unit("iri-registry.service"),
      actions: ["systemctl daemon-reload", "restart iri-registry.service"],
    },
    { title: "SSH keys", change: { kind: "sshKeys", user: "core", op: "update" }, actions: ["nothing"] },
    { title: "a password", change: { kind: "password", user: "core", op: "update" }, actions: ["nothing"] },
    { title: "the kubelet's authority", change: file("/etc/kubernetes/kubelet-ca.crt"), actions: ["reboot"] },
    { title: "any other file", change: file("/etc/motd"), actions: ["reboot"] },
    { title: "any other unit", change: unit("a.service"), actions: ["reboot"] },
    { title: "the system", change: { kind: "osImage", from: "a", to: "b" }, actions: ["reboot"] },
    { title: "kernel arguments", change: { kind: "kernelArguments", from: [], to: ["a"] }, actions: ["reboot"] },
    { title: "the kernel type", change: { kind: "kernelType", from: "default", to: "realtime" }, actions: ["reboot"] },
    { title: "extensions", change: { kind: "extensions", from: [], to: ["usbguard"] }, actions: ["reboot"] },
    { title: "FIPS mode", change: { kind: "fips", from: false, to: true }, actions: ["reboot"] },
  ])("$title [conformance-tables-2]", ({ change, actions }) => {
    expect(actionsFor(change)).toEqual(actions);
  });

  test("no change requires no action [conformance-tables-3]", () => {
    expect(actionsFor()).toEqual([]);
  });
});

describe("a drop-in that is a plain file", () => {
  test("counts as a file, not as its unit [conformance-tables-4]", () => {
    const policies = {
      ...defaultPolicies,
      units: [...defaultPolicies.units, { name: "a.service", actions: [{ type: "None" as const }] }],
    };
    expect(
      consequencesOf([file("/etc/systemd/system/a.service.d/10.conf")], policies).actions.map(describeConsequence),
    ).toEqual(["reboot"]);
    expect(consequencesOf([unit("a.service")], policies).actions.map(describeConsequence)).toEqual(["nothing"]);
  });
});

describe("what users cannot write as a policy", () => {
  const crio = { serviceName: "crio.service" };
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ path: `/etc/${index}`, actions: [{ type: "None" }] }));
  test.for<{ title: string; policy: object }>([
    {
      title: "Reboot beside something",
      policy: { files: [{ path: "/a", actions: [{ type: "Reboot" }, { type: "Drain" }] }] },
    },
    {
      title: "None beside something",
      policy: { files: [{ path: "/a", actions: [{ type: "None" }, { type: "Reload", reload: crio }] }] },
    },
    { title: "Special", policy: { files: [{ path: "/a", actions: [{ type: "Special" }] }] } },
    {
      title: "a service without a suffix",
      policy: { files: [{ path: "/a", actions: [{ type: "Restart", restart: { serviceName: "crio" } }] }] },
    },
    { title: "a unit without a suffix", policy: { units: [{ name: "crio", actions: [{ type: "None" }] }] } },
    { title: "more than fifty entries", policy: { files: many(51) } },
    {
      title: "more than ten actions",
      policy: {
        files: [
          {
            path: "/a",
            actions: Array.from({ length: 11 }, (_, index) => ({
              type: "Reload",
              reload: { serviceName: `a${index}.service` },
            })),
          },
        ],
      },
    },
  ])("$title [conformance-tables-5]", async ({ policy }) => {
    const harness = await MachineHarness.make();
    const write = (nodeDisruptionPolicy: object) =>
      harness.act(() =>
        harness.kube.patch(
          MachineConfiguration,
          { name: objects.machineConfiguration },
          { type: "merge", body: { spec: { nodeDisruptionPolicy } } },
        ),
      );
    await expect(write(policy)).rejects.toThrow();
    await expect(write({ files: many(50) })).resolves.toBeDefined();
  });
});

describe("the rules before policies, which this suite only compares with", () => {
  test.for<{ title: string; paths: string[]; action: string }>([
    { title: "nothing", paths: [], action: "none" },
    {
      title: "quiet files",
      paths: ["/etc/kubernetes/kubelet-ca.crt", "/var/lib/kubelet/config.json", "/etc/nmstate/openshift/a"],
      action: "none",
    },
    {
      title: "files that crio reads",
      paths: ["/etc/containers/registries.conf", "/etc/containers/policy.json", "/etc/containers/registries.d/a"],
      action: "reload crio",
    },
    {
      title: "the user's authorities, before or after",
      paths: [
        "/etc/containers/policy.json",
        "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
        "/etc/containers/registries.conf",
      ],
      action: "restart crio",
    },
    { title: "deeper paths", paths: ["/etc/containers/registries.d/a/b"], action: "reboot" },
    { title: "anything else", paths: ["/etc/containers/policy.json", "/etc/motd"], action: "reboot" },
  ])("$title [conformance-tables-6]", ({ paths, action }) => {
    expect(legacyActionOf(paths)).toBe(action);
    expect(legacyActionOf(paths.toReversed())).toBe(action);
  });
});

describe("what counts as different", () => {
  const config = (spec: object): Pick<MachineConfig, "metadata" | "spec"> => ({
    metadata: { name: "rendered" },
    spec: { config: { ignition: { version: "3.5.0" } }, ...spec },
  });
  const ignition = (parts: object) => config({ config: { ignition: { version: "3.5.0" }, ...parts } });
  const files = (...entries: readonly object[]) => ignition({ storage: { files: entries } });
  const a = { path: "/a", mode: 0o644, contents: { source: "data:,x" } };
  const b = { path: "/b", mode: 0o644, contents: { source: "data:,y" } };
  const fields = ["os", "kernelArguments", "fips", "passwd", "files", "units", "kernelType", "extensions"] as const;

  test.for<{ title: string; from: object; to: object; reference: string[]; ours: string[] }>([
    {
      title: "another image",
      from: config({ osImageURL: "a" }),
      to: config({ osImageURL: "b" }),
      reference: ["os"],
      ours: ["osImage"],
    },
    {
      title: "other kernel arguments",
      from: config({ kernelArguments: ["a"] }),
      to: config({ kernelArguments: ["b"] }),
      reference: ["kernelArguments"],
      ours: ["kernelArguments"],
    },
    {
      title: "kernel arguments in another order",
      from: config({ kernelArguments: ["a", "b"] }),
      to: config({ kernelArguments: ["b", "a"] }),
      reference: ["kernelArguments"],
      ours: [],
    },
    {
      title: "no kernel arguments, and an empty list",
      from: config({}),
      to: config({ kernelArguments: [] }),
      reference: [],
      ours: [],
    },
    { title: "FIPS mode", from: config({}), to: config({ fips: true }), reference: ["fips"], ours: ["fips"] },
    {
      title: "a key",
      from: ignition({}),
      to: ignition({ passwd: { users: [{ name: "core", sshAuthorizedKeys: ["k"] }] } }),
      reference: ["passwd"],
      ours: ["sshKeys"],
    },
    {
      title: "a password",
      from: ignition({}),
      to: ignition({ passwd: { users: [{ name: "core", passwordHash: "h" }] } }),
      reference: ["passwd"],
      ours: ["password"],
    },
    { title: "a file", from: files(a), to: files(a, b), reference: ["files"], ours: ["file"] },
    { title: "files in another order", from: files(a, b), to: files(b, a), reference: ["files"], ours: [] },
    {
      title: "contents in another spelling",
      from: files(a),
      to: files({ ...a, overwrite: true, contents: { source: encodeDataUrl("x") } }),
      reference: ["files"],
      ours: [],
    },
    {
      title: "a unit",
      from: ignition({}),
      to: ignition({ systemd: { units: [{ name: "a.service", contents: "[Service]\n" }] } }),
      reference: ["units"],
      ours: ["unit"],
    },
    {
      title: "units in another order",
      from: ignition({
        systemd: {
          units: [
            { name: "a.service", enabled: true },
            { name: "b.service", enabled: true },
          ],
        },
      }),
      to: ignition({
        systemd: {
          units: [
            { name: "b.service", enabled: true },
            { name: "a.service", enabled: true },
          ],
        },
      }),
      reference: ["units"],
      ours: [],
    },
    {
      title: "another kernel type",
      from: config({}),
      to: config({ kernelType: "realtime" }),
      reference: ["kernelType"],
      ours: ["kernelType"],
    },
    {
      title: "the default kernel by name",
      from: config({}),
      to: config({ kernelType: "default" }),
      reference: [],
      ours: [],
    },
    {
      title: "extensions",
      from: config({}),
      to: config({ extensions: ["usbguard"] }),
      reference: ["extensions"],
      ours: ["extensions"],
    },
    {
      title: "extensions in another order",
      from: config({ extensions: ["usbguard", "ipsec"] }),
      to: config({ extensions: ["ipsec", "usbguard"] }),
      reference: ["extensions"],
      ours: [],
    },
  ])("$title [conformance-tables-1]", ({ from, to, reference, ours }) => {
    const [before, after] = [from, to] as [
      Pick<MachineConfig, "metadata" | "spec">,
      Pick<MachineConfig, "metadata" | "spec">,
    ];
    const classified = classifyAsReference(before, after);
    const differs =
      classified.verdict === "classified" ? fields.filter((field) => classified.classification[field]) : [];
    expect({ reference: differs, ours: diffConfigs(before, after).map(({ kind }) => kind) }).toEqual({
      reference,
      ours,
    });
  });
});

describe("an extension", () => {
  test.for<readonly [string, readonly string[]]>([
    ["two-node-ha", ["fence-agents-all", "pacemaker", "pcs"]],
    ["ipsec", ["NetworkManager-libreswan", "libreswan", "openvswitch3.5-ipsec"]],
    ["usbguard", ["usbguard"]],
    ["kerberos", ["krb5-workstation", "libkadm5"]],
    ["kernel-devel", ["kernel-devel", "kernel-headers"]],
    ["sandboxed-containers", ["kata-containers"]],
    ["sysstat", ["sysstat"]],
  ])("%s brings its packages, and is there when they all are [conformance-tables-7]", ([name, packages]) => {
    expect(packagesOf([name])).toEqual(packages);
    expect(missingExtensions([name], packages)).toEqual([]);
    expect(missingExtensions([name], packages.slice(1))).toEqual([name]);
  });

  test("ipsec works without the package that only later systems have [conformance-tables-8]", () => {
    expect(missingExtensions(["ipsec"], ["NetworkManager-libreswan", "libreswan"])).toEqual([]);
  });
});
