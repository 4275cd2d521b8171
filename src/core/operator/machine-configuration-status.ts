import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, machineConfigurationConditions } from "../../api/names.ts";
import { withTransition } from "../../api/schema/conditions.ts";
import { type Condition, conditionOf } from "../../api/schema/object.ts";
import { configServerAccess } from "../join/config-server.ts";
import { mergePolicies } from "../config/disruption-policy.ts";

type Status = NonNullable<MachineConfiguration["status"]>;

/** Managers of machines that can be asked for, as far as they are looked at. */
interface Said {
  readonly type: string;
  readonly is: boolean;
  readonly reason: string;
  /** Empty where there is nothing to say. */
  readonly says: string;
}

/** Whom the config server gives configurations, as a condition says it. */
function accessSaid(metadata: MachineConfiguration["metadata"]): Omit<Said, "type"> {
  const { access, problem } = configServerAccess({ metadata });
  if (problem !== undefined)
    return {
      is: false,
      reason: "NotUnderstood",
      says: `${problem}; until then a machine that joins has to show a credential`,
    };
  if (access === "required") return { is: false, reason: "CredentialsRequired", says: "" };
  return {
    is: true,
    reason: "CompatibilityMode",
    says: `every client that reaches the config server gets configurations with all their secrets, without a credential; give machines tokens (mco token create), then remove the annotation ${annotations.configServerAccess}`,
  };
}

const machineSets = { resource: "machinesets", apiGroup: "machine.openshift.io", selection: { mode: "None" } } as const;

/**
 * The suite's effective settings. The suite manages no boot images, and enforces no skew of theirs unless the
 * administrator states one by hand; a condition reports requests for more. Fields
 * and defaults: openshift/machine-config-operator pkg/operator/sync.go, pkg/apihelpers/apihelpers.go (main).
 *
 * @param now milliseconds since the epoch; moves only the time of transitions.
 */
export function machineConfigurationStatus({ spec, status, metadata }: MachineConfiguration, now: number): Status {
  const asked = (spec.managedBootImages?.machineManagers ?? []).filter(({ selection }) => selection.mode !== "None");
  const { mode, manual } = spec.bootImageSkewEnforcement ?? {};
  const message =
    asked.length === 0
      ? ""
      : `boot images of ${asked.map(({ resource, apiGroup }) => `${resource}.${apiGroup}`).join(", ")} are not managed on this cluster; set their selection mode to None`;
  const before = (status?.conditions ?? []) as readonly Condition[];
  const condition = ({ type, is, reason, says }: Said): Condition =>
    withTransition(conditionOf(before, type), { type, status: is ? "True" : "False", reason, message: says }, now);
  const own = [
    condition({ type: "BootImageUpdateProgressing", is: false, reason: "NA", says: "" }),
    condition({
      type: "BootImageUpdateDegraded",
      is: asked.length > 0,
      reason: asked.length > 0 ? "NotSupported" : "NA",
      says: message,
    }),
    condition({ type: machineConfigurationConditions.configServerInsecure, ...accessSaid(metadata) }),
  ];
  return {
    ...status,
    observedGeneration: metadata.generation ?? 1,
    // The other conditions belong to other writers: the state process reports health there.
    conditions: [
      ...before.map((other) => own.find(({ type }) => type === other.type) ?? other),
      ...own.filter(({ type }) => !before.some((other) => other.type === type)),
    ],
    nodeDisruptionPolicyStatus: {
      clusterPolicies: mergePolicies(spec.nodeDisruptionPolicy) as NonNullable<
        NonNullable<Status["nodeDisruptionPolicyStatus"]>["clusterPolicies"]
      >,
    },
    managedBootImagesStatus: { machineManagers: [machineSets] },
    bootImageSkewEnforcementStatus:
      mode === "Manual" ? { mode, ...(manual === undefined ? {} : { manual }) } : { mode: "None" },
  };
}
