import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, machineConfigurationConditions } from "../../api/names.ts";
import { withTransition } from "../../api/schema/conditions.ts";
import { type Condition, conditionOf } from "../../api/schema/object.ts";
import { configServerAccess } from "../join/config-server.ts";
import { mergePolicies } from "../config/disruption-policy.ts";
import { type MachineApi, bootImagePlatform, effectiveManagers, noMachineApi } from "./boot-image-managers.ts";
import { bootImageConditions, bootImageReasons } from "./boot-image-report.ts";
import { defined } from "../../api/schema/defined.ts";

type Status = NonNullable<MachineConfiguration["status"]>;

/** A condition before it has a time. */
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

/**
 * The suite's effective settings. Boot images of MachineSets follow the release on platforms where that is possible; elsewhere a
 * condition reports requests for it. No skew of boot images is enforced unless the administrator states one by hand. Fields
 * and defaults: openshift/machine-config-operator pkg/operator/sync.go, pkg/apihelpers/apihelpers.go (main).
 *
 * @param now milliseconds since the epoch; moves only the time of transitions. @param api the machine API of the cluster.
 */
export function machineConfigurationStatus(
  { spec, status, metadata }: MachineConfiguration,
  now: number,
  api: MachineApi = noMachineApi,
): Status {
  const { managers, unsupported } = effectiveManagers(spec.managedBootImages?.machineManagers, api);
  const { mode, manual } = spec.bootImageSkewEnforcement ?? {};
  const before = (status?.conditions ?? []) as readonly Condition[];
  const condition = ({ type, is, reason, says }: Said): Condition =>
    withTransition(conditionOf(before, type), { type, status: is ? "True" : "False", reason, message: says }, now);
  const own = [
    ...aboutBootImages(unsupported)
      // Where boot images are managed, these are the controller's, once they are there.
      .filter(({ type }) => bootImagePlatform(api) === undefined || conditionOf(before, type) === undefined)
      .map(condition),
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
    managedBootImagesStatus: { machineManagers: managers },
    bootImageSkewEnforcementStatus: mode === "Manual" ? { mode, ...defined({ manual }) } : { mode: "None" },
  };
}

/** What a cluster without managed boot images says about them. */
function aboutBootImages(unsupported: ReturnType<typeof effectiveManagers>["unsupported"]): readonly Said[] {
  const { none, unsupported: notSupported } = bootImageReasons;
  const names = unsupported.map(({ resource, apiGroup }) => `${resource}.${apiGroup}`).join(", ");
  return [
    { type: bootImageConditions.progressing, is: false, reason: none, says: "" },
    names === ""
      ? { type: bootImageConditions.degraded, is: false, reason: none, says: "" }
      : {
          type: bootImageConditions.degraded,
          is: true,
          reason: notSupported,
          says: `boot images of ${names} are not managed on this cluster; set their selection mode to None`,
        },
  ];
}
