import { describe, expect, test } from "vitest";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import { machineConfigurationStatus } from "./machine-configuration-status.ts";

const now = Date.UTC(2030, 0, 1);
const settings = (
  spec: Partial<MachineConfiguration["spec"]> = {},
  more: Partial<MachineConfiguration> = {},
): MachineConfiguration => ({
  apiVersion: "operator.openshift.io/v1",
  kind: "MachineConfiguration",
  metadata: { name: "cluster", generation: 3 },
  spec: { managementState: "Managed", ...spec } as MachineConfiguration["spec"],
  ...more,
});

describe("the settings in force", () => {
  test("have the default policies, no managed boot images and no enforced skew [operator-machine-configuration-status-1]", () => {
    const status = machineConfigurationStatus(settings(), now);
    expect(status).toMatchObject({
      observedGeneration: 3,
      managedBootImagesStatus: {
        machineManagers: [{ resource: "machinesets", apiGroup: "machine.openshift.io", selection: { mode: "None" } }],
      },
      bootImageSkewEnforcementStatus: { mode: "None" },
    });
    expect(status.nodeDisruptionPolicyStatus?.clusterPolicies?.sshkey).toEqual({ actions: [{ type: "None" }] });
    expect(status.conditions).toEqual([
      {
        type: "BootImageUpdateProgressing",
        status: "False",
        reason: "NA",
        message: "",
        lastTransitionTime: "2030-01-01T00:00:00Z",
      },
      {
        type: "BootImageUpdateDegraded",
        status: "False",
        reason: "NA",
        message: "",
        lastTransitionTime: "2030-01-01T00:00:00Z",
      },
      {
        type: "ConfigServerInsecure",
        status: "False",
        reason: "CredentialsRequired",
        message: "",
        lastTransitionTime: "2030-01-01T00:00:00Z",
      },
    ]);
  });

  test("a skew that the administrator states by hand is the one in force [operator-machine-configuration-status-2]", () => {
    const manual = { mode: "OCPVersion", ocpVersion: "4.18.0" } as const;
    expect(
      machineConfigurationStatus(settings({ bootImageSkewEnforcement: { mode: "Manual", manual } }), now)
        .bootImageSkewEnforcementStatus,
    ).toEqual({ mode: "Manual", manual });
    expect(
      machineConfigurationStatus(settings({ bootImageSkewEnforcement: { mode: "None" } }), now)
        .bootImageSkewEnforcementStatus,
    ).toEqual({ mode: "None" });
  });

  test.for([
    {
      title: "all",
      machineManagers: [{ resource: "machinesets", apiGroup: "machine.openshift.io", selection: { mode: "All" } }],
      degraded: "True",
    },
    {
      title: "none",
      machineManagers: [{ resource: "machinesets", apiGroup: "machine.openshift.io", selection: { mode: "None" } }],
      degraded: "False",
    },
    { title: "an empty list", machineManagers: [], degraded: "False" },
  ] as const)(
    "boot images: a request for $title gets a condition [operator-machine-configuration-status-3]",
    ({ machineManagers, degraded }) => {
      const status = machineConfigurationStatus(
        settings({ managedBootImages: { machineManagers: [...machineManagers] } }),
        now,
      );
      const told = conditionOf(status.conditions, "BootImageUpdateDegraded");
      expect(told?.status).toBe(degraded);
      expect(told?.message).toBe(
        degraded === "True"
          ? "boot images of machinesets.machine.openshift.io are not managed on this cluster; set their selection mode to None"
          : "",
      );
      expect(status.managedBootImagesStatus).toEqual({
        machineManagers: [{ resource: "machinesets", apiGroup: "machine.openshift.io", selection: { mode: "None" } }],
      });
    },
  );

  test.for([
    { title: "nothing", asked: undefined, is: "All" },
    { title: "All", asked: "All", is: "All" },
    { title: "None", asked: "None", is: "None" },
  ] as const)(
    "boot images: where MachineSets can follow the release, $title that is written means $is, and the conditions are the controller's [operator-machine-configuration-status-7]",
    ({ asked, is }) => {
      const machineSets = (mode: "All" | "None") => ({
        resource: "machinesets" as const,
        apiGroup: "machine.openshift.io" as const,
        selection: { mode },
      });
      const spec = asked === undefined ? {} : { managedBootImages: { machineManagers: [machineSets(asked)] } };
      const api = { platform: "AWS", hasMachineSets: true };
      const first = machineConfigurationStatus(settings(spec), now, api);
      expect(first.managedBootImagesStatus).toEqual({ machineManagers: [machineSets(is)] });
      expect(conditionOf(first.conditions, "BootImageUpdateDegraded")).toMatchObject({ status: "False", reason: "NA" });
      const ofController = {
        type: "BootImageUpdateDegraded",
        status: "True",
        reason: "Failing",
        message: "m",
        lastTransitionTime: "2029-01-01T00:00:00Z",
      } as const;
      const before = settings(spec, { status: { conditions: [ofController] } });
      expect(machineConfigurationStatus(before, now, api).conditions).toContainEqual(ofController);
      // Without MachineSets, nothing keeps it up to date.
      expect(
        conditionOf(machineConfigurationStatus(before, now).conditions, "BootImageUpdateDegraded")?.reason,
      ).not.toBe("Failing");
    },
  );

  test.for([
    { title: "nothing that is said", annotation: undefined, status: "False", reason: "CredentialsRequired", says: [] },
    { title: "required", annotation: "required", status: "False", reason: "CredentialsRequired", says: [] },
    {
      title: "insecure",
      annotation: "insecure",
      status: "True",
      reason: "CompatibilityMode",
      says: ["secrets", "mco token create", annotations.configServerAccess],
    },
    {
      title: "an unknown word",
      annotation: "open",
      status: "False",
      reason: "NotUnderstood",
      says: ['"open"', "write required or insecure", "has to show a credential"],
    },
  ])(
    "the config server's mode: $title [operator-machine-configuration-status-4]",
    ({ annotation, status, reason, says }) => {
      const metadata = {
        name: "cluster",
        generation: 3,
        ...(annotation === undefined ? {} : { annotations: { [annotations.configServerAccess]: annotation } }),
      };
      const first = machineConfigurationStatus(settings({}, { metadata }), now);
      const told = conditionOf(first.conditions, "ConfigServerInsecure");
      expect(told).toMatchObject({ status, reason });
      if (says.length === 0) expect(told?.message).toBe("");
      for (const words of says) expect(told?.message).toContain(words);
      expect(machineConfigurationStatus(settings({}, { metadata, status: first }), now + 60_000)).toEqual(first);
    },
  );

  test("leave conditions of others alone, wherever they stand in the list [operator-machine-configuration-status-5]", () => {
    const health = {
      type: "DaemonsHealthy",
      status: "True" as const,
      reason: "AsExpected",
      message: "3 of 3",
      lastTransitionTime: "2029-01-01T00:00:00Z",
    };
    const [progressing, degraded] = machineConfigurationStatus(settings(), now).conditions ?? [];
    if (progressing === undefined || degraded === undefined) throw new Error("there are two");
    for (const conditions of [[health], [progressing, health, degraded], [degraded, health]]) {
      const after = machineConfigurationStatus(settings({}, { status: { conditions } }), now + 60_000);
      expect(after.conditions?.filter(({ type }) => type === health.type)).toEqual([health]);
      expect(after.conditions).toHaveLength(4);
      expect(machineConfigurationStatus(settings({}, { status: after }), now + 120_000)).toEqual(after);
    }
  });

  test("say the same again later, times included [operator-machine-configuration-status-6]", () => {
    const first = machineConfigurationStatus(settings(), now);
    expect(machineConfigurationStatus(settings({}, { status: first }), now + 60_000)).toEqual(first);
  });
});
