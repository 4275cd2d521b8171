import type { MachineConfiguration } from "../api/machine-configuration.ts";
import { type Condition, timestampOf } from "../api/object.ts";
import { mergePolicies } from "./disruption-policy.ts";

type Status = NonNullable<MachineConfiguration["status"]>;

/** Managers of machines that can be asked for, as far as they are looked at. */
interface Manager {
  readonly resource: string;
  readonly apiGroup: string;
  readonly selection?: { readonly mode?: string };
}

interface SkewEnforcement {
  readonly mode?: string;
  readonly manual?: Readonly<Record<string, unknown>>;
}

const machineSets = { resource: "machinesets", apiGroup: "machine.openshift.io", selection: { mode: "None" } } as const;

/**
 * What is in force of the suite's settings. Boot images are kept by nobody here, so none are managed and no skew of theirs
 * is enforced unless the administrator states one by hand; who asks for more is told so in a condition. Fields and
 * defaults: openshift/machine-config-operator pkg/operator/sync.go, pkg/apihelpers/apihelpers.go (main).
 *
 * @param now milliseconds since the epoch; moves only the time of transitions.
 */
export function machineConfigurationStatus({ spec, status, metadata }: MachineConfiguration, now: number): Status {
  const asked = ((spec.managedBootImages as { machineManagers?: readonly Manager[] } | undefined)?.machineManagers ?? []).filter(({ selection }) => selection?.mode !== "None");
  const { mode, manual } = (spec.bootImageSkewEnforcement ?? {}) as SkewEnforcement;
  const message = asked.length === 0 ? "" : `boot images of ${asked.map(({ resource, apiGroup }) => `${resource}.${apiGroup}`).join(", ")} are not managed on this cluster; set their selection mode to None`;
  const before = (status?.conditions ?? []) as readonly Condition[];
  const stamp = timestampOf(now);
  const condition = (type: string, is: boolean, says: string): Condition => {
    const value = is ? "True" : "False";
    const old = before.find((other) => other.type === type);
    return { type, status: value, reason: is ? "NotSupported" : "NA", message: says, lastTransitionTime: old?.status === value ? old.lastTransitionTime : stamp };
  };
  const own = [condition("BootImageUpdateProgressing", false, ""), condition("BootImageUpdateDegraded", asked.length > 0, message)];
  return {
    ...status,
    observedGeneration: metadata.generation ?? 1,
    // The others are somebody else's: health is told there by the state process.
    conditions: [...before.map((other) => own.find(({ type }) => type === other.type) ?? other), ...own.filter(({ type }) => !before.some((other) => other.type === type))],
    nodeDisruptionPolicyStatus: { clusterPolicies: mergePolicies(spec.nodeDisruptionPolicy) as NonNullable<NonNullable<Status["nodeDisruptionPolicyStatus"]>["clusterPolicies"]> },
    managedBootImagesStatus: { machineManagers: [machineSets] },
    bootImageSkewEnforcementStatus: mode === "Manual" ? { mode, ...(manual === undefined ? {} : { manual }) } : { mode: "None" },
  };
}
