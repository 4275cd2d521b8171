import { anyDefinition } from "../support/any-definition.ts";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { type MachineSet, openshift } from "../../src/api/foreign/openshift.ts";
import { ControllerConfig } from "../../src/api/kinds/controller-config.ts";
import { MachineConfiguration } from "../../src/api/kinds/machine-configuration.ts";
import { machineNamespace, namespace, objects } from "../../src/api/names.ts";
import { bootImageConditions } from "../../src/core/operator/boot-image-report.ts";
import { machineConfigurationStatus } from "../../src/core/operator/machine-configuration-status.ts";
import { type Harness, updatedPool } from "../support/control-plane-harness.ts";
import type { Row } from "./row.ts";

const merge = (body: object) => ({ type: "merge", body }) as const;
const set = { name: "workers", namespace: machineNamespace };
const providerSpec = (userDataSecret: string) => ({
  value: {
    disks: [{ boot: true, image: "projects/rhcos-cloud/global/images/rhcos-1" }],
    userDataSecret: { name: userDataSecret },
  },
});
const stream = { architectures: { x86_64: { images: { gcp: { project: "rhcos-cloud", name: "rhcos-2" } } } } };

/** A cluster on GCP with the boot images of its release, and one MachineSet. */
async function onGcp(userDataSecret: string): Promise<Harness> {
  const { harness } = await updatedPool([], { architecture: "amd64" });
  const { kube } = harness;
  await harness.act(async () => {
    await harness.config("50-master", "master", { "/etc/a": "1" });
    const infra = {
      apiVersion: openshift.Infrastructure.apiVersion,
      kind: openshift.Infrastructure.kind,
      spec: {},
      status: { platformStatus: { type: "GCP" } },
    };
    await kube.patch(ControllerConfig, { name: objects.controllerConfig }, merge({ spec: { infra } }));
    const settings = await kube.create(MachineConfiguration, {
      apiVersion: MachineConfiguration.apiVersion,
      kind: MachineConfiguration.kind,
      metadata: { name: objects.machineConfiguration },
      spec: { managementState: "Managed", logLevel: "Normal", operatorLogLevel: "Normal" },
    });
    // As the operator's task does.
    const status = machineConfigurationStatus(settings, harness.kernel.clock.now());
    await kube.patch(MachineConfiguration, settings.metadata, merge({ status }), { subresource: "status" });
    await kube.create(kubernetes.Namespace, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: machineNamespace },
    });
    await kube.create(kubernetes.CustomResourceDefinition, anyDefinition(openshift.MachineSet));
    await kube.create(kubernetes.ConfigMap, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: objects.bootImages, namespace },
      data: { stream: JSON.stringify(stream) },
    });
    await kube.create(openshift.MachineSet, {
      apiVersion: openshift.MachineSet.apiVersion,
      kind: openshift.MachineSet.kind,
      metadata: set,
      spec: { template: { spec: { providerSpec: providerSpec(userDataSecret) } } },
    } as MachineSet);
  });
  await harness.pass(60_000);
  return harness;
}

/** MachineSets whose boot images the controller would give, and cannot. */
export const bootImageRows: readonly Row[] = [
  {
    reasons: ["kind/MachineConfiguration"],
    title: "a MachineSet whose user data is missing keeps its boot image",
    async make() {
      const harness = await onGcp("worker-user-data");
      const template = { spec: { providerSpec: providerSpec(`worker${objects.userDataSuffix}`) } };
      return {
        harness,
        subject: "machineconfiguration",
        says: [`${bootImageConditions.degraded}: do for each of the named MachineSets what the message says behind it`],
        async remedy() {
          await harness.act(() => harness.kube.patch(openshift.MachineSet, set, merge({ spec: { template } })));
          await harness.pass(60_000);
        },
      };
    },
  },
];
