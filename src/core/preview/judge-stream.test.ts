import { describe, expect, test } from "vitest";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { type ExtensionFacts, type OSImageFacts, parseExtensionPackages, parseOsRelease } from "./os-image-demands.ts";
import { forecastStream, judgeStream, onStream, streamLines } from "./judge-stream.ts";

const rendered = (spec: object, file?: { readonly path: string; readonly text: string }) => ({
  metadata: { name: "rendered-worker-1" },
  spec: {
    config: {
      ignition: { version: "3.4.0" },
      storage: {
        files: file === undefined ? [] : [{ path: file.path, contents: { source: encodeDataUrl(file.text) } }],
      },
    },
    ...spec,
  },
});
const runc = {
  path: "/etc/crio/crio.conf.d/01-ctrcfg-defaultRuntime",
  text: '[crio.runtime]\ndefault_runtime = "runc"\n',
};
const image = (osRelease: string, ...files: readonly string[]): OSImageFacts => ({
  verdict: "read",
  osRelease: parseOsRelease(osRelease),
  files: new Set(files),
});
const ten = 'ID="rhel"\nVERSION_ID="10.1"\nPRETTY_NAME="Red Hat Enterprise Linux CoreOS 10.1"\n';
const breaks = (config: Parameters<typeof judgeStream>[0], facts: OSImageFacts) =>
  judgeStream(config, facts)
    .filter(({ verdict }) => verdict === "breaks")
    .map(({ about, reason }) => `${about}: ${reason}`);

describe("another OS image", () => {
  test("breaks machines whose drop-in chooses a container runtime that it does not have [judge-stream-1]", () => {
    expect(breaks(rendered({}, runc), image(ten, "/usr/bin/crun"))).toEqual([
      expect.stringMatching(
        /^runtime: \/etc\/crio\/crio\.conf\.d\/01-ctrcfg-defaultRuntime chooses .* runc, which the OS image does not have/,
      ),
    ]);
    expect(breaks(rendered({}, runc), image(ten, "/usr/bin/runc"))).toEqual([]);
    expect(breaks(rendered({}), image(ten, "/usr/bin/crun"))).toEqual([]);
    // An image whose runtimes are elsewhere.
    expect(breaks(rendered({}, runc), image(ten))).toEqual([]);
    expect(judgeStream(rendered({}, runc), image(ten))[0]).toMatchObject({ verdict: "unknown", about: "runtime" });
  });

  test.for([
    { argument: "systemd.unified_cgroup_hierarchy=0", os: ten, is: 1 },
    { argument: "systemd.unified_cgroup_hierarchy=1", os: ten, is: 0 },
    { argument: "systemd.unified_cgroup_hierarchy=0", os: 'ID="rhel"\nVERSION_ID="9.6"\n', is: 0 },
    { argument: "systemd.unified_cgroup_hierarchy=0", os: 'ID="mco"\nVERSION_ID="10"\n', is: 0 },
  ])("$argument and $os [judge-stream-2]", ({ argument, os, is }) => {
    expect(breaks(rendered({ kernelArguments: [`quiet ${argument}`] }), image(os))).toHaveLength(is);
  });

  test("breaks machines with an extension whose packages it does not have [judge-stream-6]", () => {
    const config = rendered({ extensions: ["usbguard", "ipsec"] });
    const having = (...names: readonly string[]) => ({ verdict: "read", packages: new Set(names) }) as const;
    const about = (facts: ExtensionFacts) =>
      judgeStream(config, image(ten), { extensions: facts }).filter(({ about: one }) => one === "extension");
    expect(about(having("usbguard", "NetworkManager-libreswan", "libreswan"))).toEqual([
      {
        verdict: "breaks",
        about: "extension",
        reason:
          "the extension ipsec needs the package openvswitch3.5-ipsec, which the stream's image with extensions does not have: it cannot be installed",
        remedy: "take the extension off its MachineConfig",
      },
    ]);
    expect(about(having("usbguard", "NetworkManager-libreswan", "libreswan", "openvswitch3.5-ipsec"))).toEqual([]);
    expect(about(having()).map(({ reason }) => reason.slice(0, 69))).toEqual([
      "the extension usbguard needs the package usbguard, which the stream's",
      "the extension ipsec needs the packages NetworkManager-libreswan, libr",
    ]);
    expect(about({ verdict: "unread", problem: "no answer" })).toMatchObject([
      { verdict: "unknown", reason: expect.stringContaining("no answer") as string },
    ]);
  });

  test.for([
    { text: '{"usbguard": "1.0.0-15.el10.x86_64", "libqb": "2.0.8-2.el10.x86_64"}', is: ["usbguard", "libqb"] },
    { text: "{}", is: undefined },
    { text: "[]", is: undefined },
    { text: "{ ,", is: undefined },
    { text: undefined, is: undefined },
  ])("the list of packages $text [judge-stream-7]", ({ text, is }) => {
    const read = parseExtensionPackages(text);
    expect(read.verdict === "read" ? [...read.packages] : undefined).toEqual(is);
  });

  test.for([
    { manual: { mode: "OCPVersion", ocpVersion: "4.12.9" }, is: "of OpenShift 4.12.9" },
    { manual: { mode: "OCPVersion", ocpVersion: "4.13.0" }, is: undefined },
    { manual: { mode: "OCPVersion", ocpVersion: "5.0.1" }, is: undefined },
    { manual: { mode: "RHCOSVersion", rhcosVersion: "48.84.202109241901-0" }, is: "RHCOS 48.84.202109241901-0" },
    { manual: { mode: "RHCOSVersion", rhcosVersion: "413.92.202305021736-0" }, is: undefined },
    { manual: { mode: "RHCOSVersion", rhcosVersion: "9.0.20230101-0" }, is: "RHCOS 9.0.20230101-0" },
    { manual: { mode: "RHCOSVersion", rhcosVersion: "9.6.20250101-0" }, is: undefined },
  ] as const)("breaks machines that join from an old boot image: $manual [judge-stream-8]", ({ manual, is }) => {
    const boots = {
      apiVersion: "machineconfiguration.openshift.io/v1",
      kind: "MachineConfiguration",
      metadata: { name: "cluster" },
      spec: { bootImageSkewEnforcement: { mode: "Manual", manual } },
    };
    const findings = judgeStream(rendered({}), image(ten), { boots: boots as never });
    const lines = streamLines("rhel-10", "os", [{ pool: "worker", nodes: ["w0"], findings }]).slice(2);
    expect(lines).toEqual(
      is === undefined
        ? ["  nothing that was compared breaks a machine"]
        : [
            `  breaks machines that join later: the boot image ${is} is older than the oldest from which machines reach the stream, OpenShift 4.13 or RHCOS 9.2; let them start from a newer boot image, and then name it in spec.bootImageSkewEnforcement of MachineConfiguration cluster`,
          ],
    );
  });

  test("that cannot be read says so, and what was not compared; so do extensions and boot images [judge-stream-3]", () => {
    const findings = judgeStream(rendered({ extensions: ["usbguard"] }, runc), {
      verdict: "unread",
      problem: "no answer",
    });
    expect(findings.map(({ verdict, about }) => `${verdict} ${about}`)).toEqual([
      "unknown image",
      "unknown extension",
      "unknown bootImage",
    ]);
    expect(findings[0]?.reason).toContain("no answer");
  });

  test("that no stream has is refused with the streams there are, as is an unknown pool [judge-stream-4]", () => {
    const pool = { apiVersion: "a", kind: "MachineConfigPool", metadata: { name: "worker" }, spec: {} };
    const stream = { name: "a", osImage: "os", osExtensionsImage: "ext" };
    const objects = {
      pools: [pool],
      machineConfigs: [],
      machineConfiguration: undefined,
      controllerConfig: undefined,
      nodes: [],
      osImageStream: {
        apiVersion: "a",
        kind: "OSImageStream",
        metadata: { name: "cluster" },
        spec: { defaultStream: "a" },
        status: { defaultStream: "a", availableStreams: [stream] },
      },
    };
    expect(onStream(objects, "b", [])).toEqual({
      verdict: "refused",
      reason: "there is no OS image stream b; the streams are a",
    });
    expect(onStream(objects, "a", ["infra"])).toEqual({
      verdict: "refused",
      reason: "there is no pool infra; there are worker",
    });
    expect(onStream(objects, "a", [])).toMatchObject({ verdict: "objects", image: "os", pools: ["worker"] });
  });

  test("is forecast with each reason for which it breaks each machine [judge-stream-9]", async () => {
    const apiVersion = "machineconfiguration.openshift.io/v1";
    const role = "machineconfiguration.openshift.io/role";
    const node = (name: string) => ({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels: { "node-role.kubernetes.io/worker": "" } },
    });
    const objects = {
      pools: [
        {
          apiVersion,
          kind: "MachineConfigPool",
          metadata: { name: "worker" },
          spec: {
            machineConfigSelector: { matchLabels: { [role]: "worker" } },
            nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
          },
        },
      ],
      machineConfigs: [
        {
          apiVersion,
          kind: "MachineConfig",
          ...rendered(
            { kernelArguments: ["systemd.unified_cgroup_hierarchy=0"], extensions: ["ipsec"], kernelType: "" },
            runc,
          ),
          metadata: { name: "50-own", labels: { [role]: "worker" } },
        },
      ],
      machineConfiguration: {
        apiVersion: "operator.openshift.io/v1",
        kind: "MachineConfiguration",
        metadata: { name: "cluster" },
        spec: { bootImageSkewEnforcement: { mode: "Manual", manual: { mode: "OCPVersion", ocpVersion: "4.11.0" } } },
      },
      controllerConfig: {
        apiVersion,
        kind: "ControllerConfig",
        metadata: { name: "c" },
        spec: { baseOSContainerImage: "os@sha256:1" },
      },
      nodes: [node("w0"), node("w1")],
    } as never;
    const asked: string[] = [];
    const forecasts = await forecastStream(objects, objects, ["worker"], {
      os: image(ten, "/usr/bin/crun"),
      extensions: () => {
        asked.push("extensions");
        return Promise.resolve({ verdict: "read", packages: new Set(["usbguard"]) });
      },
    });
    const lines = streamLines("rhel-10", "os", forecasts);
    expect(asked).toEqual(["extensions"]);
    expect(lines).toEqual([
      "OS image stream rhel-10: os",
      "pool worker: w0, w1",
      expect.stringMatching(
        /^ {2}breaks w0, w1: .* chooses the container runtime runc, which the OS image does not have/,
      ),
      expect.stringMatching(
        /^ {2}breaks w0, w1: the kernel argument systemd\.unified_cgroup_hierarchy=0 asks for cgroup v1/,
      ),
      expect.stringMatching(/^ {2}breaks w0, w1: the extension ipsec needs the packages .*; take the extension off/),
      expect.stringMatching(/^ {2}breaks machines that join later: the boot image of OpenShift 4\.11\.0 is older/),
    ]);
  });

  test("is described with each machine that it breaks [judge-stream-5]", () => {
    const findings = judgeStream(rendered({}, runc), image(ten, "/usr/bin/crun"));
    expect(streamLines("rhel-10", "os", [{ pool: "worker", nodes: ["w0", "w1"], findings }]).slice(0, 3)).toEqual([
      "OS image stream rhel-10: os",
      "pool worker: w0, w1",
      expect.stringMatching(/^ {2}breaks w0, w1: .*; take defaultRuntime off the ContainerRuntimeConfig/),
    ]);
  });
});
