import { anyDefinition } from "../../test/support/any-definition.ts";
import { expect, test } from "vitest";
import { installed, startOperator, until } from "../../test/support/operator-harness.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations, objects } from "../api/names.ts";
import { type Resource, conditionOf } from "../api/schema/object.ts";
import type { KubeClient } from "../kube/kube-client.ts";

const define = (kube: KubeClient, resource: Resource) =>
  kube.create(kubernetes.CustomResourceDefinition, anyDefinition(resource));

const settings = { name: objects.machineConfiguration };
const machineSets = (mode: string) => ({
  resource: "machinesets",
  apiGroup: "machine.openshift.io",
  selection: { mode },
});

test("where MachineSets can follow the release they do, with the time noted, until the administrator says otherwise [operator-boot-images-1]", async () => {
  const { kube } = await startOperator(async (admin) => {
    await define(admin, openshift.Infrastructure);
    await admin.apply(
      openshift.Infrastructure,
      { metadata: { name: "cluster" }, spec: {}, status: { platformStatus: { type: "AWS" } } } as never,
      { owner: "installer" },
    );
  });
  await installed(kube);
  const inForce = (mode: string) =>
    until(
      kube,
      MachineConfiguration,
      settings,
      ({ status }) => status?.managedBootImagesStatus?.machineManagers?.[0]?.selection.mode === mode,
    );
  expect((await inForce("None")).metadata.annotations?.[annotations.bootImagesOptedInAt]).toBeUndefined();
  await define(kube, openshift.MachineSet);
  const all = await inForce("All");
  expect(all.metadata.annotations?.[annotations.bootImagesOptedInAt]).toMatch(/^\d{4}-\d\d-\d\dT/);
  expect(conditionOf(all.status?.conditions, "BootImageUpdateDegraded")).toMatchObject({ status: "False" });
  await kube.patch(MachineConfiguration, settings, {
    type: "merge",
    body: { spec: { managedBootImages: { machineManagers: [machineSets("None")] } } },
  });
  expect((await inForce("None")).spec.managedBootImages?.machineManagers).toEqual([machineSets("None")]);
});
