import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../../test/support/control-plane-harness.ts";
import { openshiftHarness } from "../../../test/support/openshift-harness.ts";
import { openshift } from "../../api/foreign/openshift.ts";
import { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels } from "../../api/names.ts";

const evil = {
  kernelArguments: ["init=/evil"],
  config: {
    ignition: { version: "3.4.0" },
    systemd: {
      units: [
        {
          name: "evil.service",
          enabled: true,
          contents: "[Service]\nExecStart=/bin/evil\n[Install]\nWantedBy=multi-user.target\n",
        },
      ],
    },
  },
};
const marked = { [annotations.generatedByController]: "x" };

/** A MachineConfig of a tenant, under a name that a controller gives. */
const squat = (harness: Harness, name: string, spec: object, has: Readonly<Record<string, string>> = {}) =>
  harness.act(() =>
    harness.kube.create(MachineConfig, {
      apiVersion: MachineConfig.apiVersion,
      kind: MachineConfig.kind,
      metadata: { name, labels: { [labels.role]: "infra" }, annotations: { ...has } },
      spec,
    }),
  );
const stored = (harness: Harness, name: string) => harness.act(() => harness.kube.get(MachineConfig, { name }));
const rendered = async (harness: Harness) => {
  const { target } = await harness.poolStatus("worker");
  return JSON.stringify((await stored(harness, target))?.spec);
};
const limits = (harness: Harness) =>
  harness.act(() =>
    harness.kube.create(KubeletConfig, {
      apiVersion: KubeletConfig.apiVersion,
      kind: KubeletConfig.kind,
      metadata: { name: "limits" },
      spec: {
        machineConfigPoolSelector: { matchLabels: { [`${labels.poolPrefix}worker`]: "" } },
        kubeletConfig: { maxPods: 100 },
      },
    }),
  );

describe("a tenant's MachineConfig under a name that a controller gives", () => {
  test.for([
    { title: "with the mark of the controller and a unit", spec: evil, has: marked },
    { title: "without the mark", spec: evil, has: {} },
    {
      title: "with the mark and kernel arguments alone",
      spec: { config: { ignition: { version: "3.4.0" } }, kernelArguments: ["init=/evil"] },
      has: marked,
    },
    {
      title: "with the mark and files alone",
      spec: {
        config: {
          ignition: { version: "3.4.0" },
          storage: { files: [{ path: "/etc/evil", contents: { source: "data:,evil" } }] },
        },
      },
      has: marked,
    },
  ])("$title reaches no machine of the other pool [generated-names-1]", async ({ spec, has }) => {
    const { harness, first } = await updatedPool(["w0"]);
    await squat(harness, "99-worker-generated-kubelet", spec, has);
    await harness.pass(3000);
    await limits(harness);
    await harness.pass(20_000);
    const text = await rendered(harness);
    expect(text).toContain("/etc/kubernetes/kubelet.conf");
    expect(text).not.toContain("evil");
    expect((await harness.poolStatus("worker")).target).not.toBe(first);
  });

  test("is replaced where the name is the controller's alone, and so is what somebody adds later [generated-names-2]", async () => {
    const harness = await openshiftHarness();
    const name = "99-worker-generated-registries";
    await squat(harness, name, evil);
    await harness.act(() =>
      harness.kube.patch(
        MachineConfig,
        { name },
        { type: "merge", body: { metadata: { labels: { "example.com/pool": "infra" } } } },
      ),
    );
    await harness.pass(3000);
    const set = {
      apiVersion: openshift.ImageDigestMirrorSet.apiVersion,
      kind: openshift.ImageDigestMirrorSet.kind,
      metadata: { name: "mirror" },
      spec: { imageDigestMirrors: [{ source: "quay.io/team", mirrors: ["mirror.example.com/team"] }] },
    };
    await harness.act(() => harness.kube.create(openshift.ImageDigestMirrorSet, set as never));
    await harness.pass(30_000);
    const made = await stored(harness, name);
    expect(made?.metadata.labels).toEqual({ [labels.role]: "worker" });
    expect(JSON.stringify(made?.spec)).toContain("registries.conf");
    expect(JSON.stringify(made?.spec)).not.toContain("evil");
    await harness.act(() => harness.kube.patch(MachineConfig, { name }, { type: "merge", body: { spec: evil } }));
    await harness.pass(30_000);
    expect((await stored(harness, name))?.spec).toEqual(made?.spec);
  });
});
