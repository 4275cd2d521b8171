import Type, { type TSchema } from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { operatorGroup } from "../names.ts";
import {
  anyObject,
  atomicList,
  conditionList,
  int32,
  int64,
  labelSelector,
  listMap,
  oneOf,
  setOf,
} from "../schema/schema.ts";

const unitTypes = "service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope";
/** Beyond the reference, a name may have an instance: `getty@tty1.service`. */
const unitName = () =>
  Type.String({
    maxLength: 255,
    "x-kubernetes-validations": [
      {
        rule: `self.matches('[.](${unitTypes})$')`,
        message: `must end with the type of a unit: .${unitTypes.replaceAll("|", ", .")}`,
      },
      {
        rule: "self.matches('^[a-zA-Z0-9:._\\\\\\\\-]+(@[a-zA-Z0-9:._\\\\\\\\-]*)?[.].')",
        message: "must begin with a name of letters, digits and :, -, _, ., \\",
      },
    ],
  });

const goesWith = (field: "reload" | "restart", type: string) => ({
  rule: `(self.type == '${type}') == has(self.${field})`,
  message: `${field} goes with an action of type ${type}, and only with it`,
});

const mustBeAlone = (type: string) => ({
  rule: `!self.exists(a, a.type == '${type}') || size(self) == 1`,
  message: `${type} must be the only action`,
});

const actions = <Types extends readonly string[]>(types: Types) =>
  atomicList(
    Type.Object(
      {
        type: oneOf(types),
        reload: Type.Optional(Type.Object({ serviceName: unitName() })),
        restart: Type.Optional(Type.Object({ serviceName: unitName() })),
      },
      { "x-kubernetes-validations": [goesWith("reload", "Reload"), goesWith("restart", "Restart")] },
    ),
    { maxItems: 10, "x-kubernetes-validations": [mustBeAlone("Reboot"), mustBeAlone("None")] },
  );

const policies = <Types extends readonly string[]>(types: Types, maxItems: number) => ({
  files: Type.Optional(listMap(["path"], Type.Object({ path: Type.String(), actions: actions(types) }), { maxItems })),
  units: Type.Optional(listMap(["name"], Type.Object({ name: unitName(), actions: actions(types) }), { maxItems })),
  sshkey: Type.Optional(Type.Object({ actions: actions(types) })),
});

const userActions = ["Reboot", "Drain", "Reload", "Restart", "DaemonReload", "None"] as const;
const statusActions = [...userActions, "Special"] as const;

/** Fields of every operator's kind. Source: openshift/api operator/v1/types.go (master). */
const operatorSpec: Record<"managementState" | "logLevel" | "operatorLogLevel", TSchema> = {
  managementState: Type.Optional(Type.String({ pattern: "^(Managed|Unmanaged|Force|Removed)$" })),
  logLevel: Type.Optional(oneOf(["", "Normal", "Debug", "Trace", "TraceAll"], { default: "Normal" })),
  operatorLogLevel: Type.Optional(oneOf(["", "Normal", "Debug", "Trace", "TraceAll"], { default: "Normal" })),
};
/** Those that this suite stores, and does not read. */
const unreadOperatorSpec = {
  unsupportedConfigOverrides: Type.Optional(anyObject({ nullable: true })),
  observedConfig: Type.Optional(anyObject({ nullable: true })),
  forceRedeploymentReason: Type.Optional(Type.String()),
  failedRevisionLimit: Type.Optional(int32()),
  succeededRevisionLimit: Type.Optional(int32()),
};

/** A field that is there exactly where the mode says so. */
const onlyWhere = (field: string, mode: string, discriminator = "mode") => ({
  rule: `(self.${discriminator} == '${mode}') == has(self.${field})`,
  message: `${field} goes with ${discriminator} ${mode}, and only with it`,
});

const managedBootImages = (description: string) =>
  Type.Object(
    {
      machineManagers: Type.Optional(
        listMap(
          ["resource", "apiGroup"],
          Type.Object(
            {
              resource: oneOf(["machinesets", "controlplanemachinesets"]),
              apiGroup: oneOf(["machine.openshift.io"]),
              selection: Type.Object(
                {
                  mode: oneOf(["All", "Partial", "None"]),
                  partial: Type.Optional(
                    Type.Object({ machineResourceSelector: labelSelector("Which of them are updated.") }),
                  ),
                },
                { "x-kubernetes-validations": [onlyWhere("partial", "Partial")] },
              ),
            },
            {
              "x-kubernetes-validations": [
                {
                  rule: "self.resource != 'controlplanemachinesets' || self.selection.mode != 'Partial'",
                  message: "the mode of controlplanemachinesets must be All or None",
                },
              ],
            },
          ),
          { maxItems: 5 },
        ),
      ),
    },
    { description },
  );

const ocpVersion = () =>
  Type.String({
    minLength: 5,
    maxLength: 10,
    "x-kubernetes-validations": [
      { rule: "self.matches('^[0-9]+[.][0-9]+[.][0-9]+$')", message: "must be three numbers, such as 4.18.2" },
    ],
  });
const rhcosVersion = () =>
  Type.String({
    minLength: 14,
    maxLength: 21,
    "x-kubernetes-validations": [
      {
        rule: "self.matches('^[0-9]+[.][0-9]+[.]([0-9]{8}|[0-9]{12})-[0-9]+$')",
        message: "must be MAJOR.MINOR.DATE-BUILD, with a date of 8 or 12 digits, such as 418.94.202411201433-0",
      },
    ],
  });
const manualBootImage = () =>
  Type.Object(
    {
      mode: oneOf(["OCPVersion", "RHCOSVersion"]),
      ocpVersion: Type.Optional(ocpVersion()),
      rhcosVersion: Type.Optional(rhcosVersion()),
    },
    {
      "x-kubernetes-validations": [onlyWhere("ocpVersion", "OCPVersion"), onlyWhere("rhcosVersion", "RHCOSVersion")],
    },
  );

/** A rule of the whole object for clusters whose boot images the suite keeps recent by itself. */
const whileAutomatic = (rule: string, message: string) => ({
  rule: `!has(self.status) || !has(self.status.bootImageSkewEnforcementStatus) || self.status.bootImageSkewEnforcementStatus.mode != 'Automatic' || ${rule}`,
  message: `while status.bootImageSkewEnforcementStatus.mode is Automatic, ${message}`,
});
const machineSetsAmong = (managers: string, more = "") =>
  `${managers}.exists(m, m.resource == 'machinesets' && m.apiGroup == 'machine.openshift.io'${more})`;
const managersIn = (field: string) =>
  `has(self.${field.split(".")[0]}) && has(self.${field}) && has(self.${field}.machineManagers)`;
const managers = "self.spec.managedBootImages.machineManagers";
const statusManagers = "self.status.managedBootImagesStatus.machineManagers";

/** A column for one field of the condition of a type; `wide`: only with `-o wide`. */
const conditionColumn = (
  name: string,
  type: string,
  description: string,
  { field = "status", wide = false }: { readonly field?: string; readonly wide?: boolean } = {},
) => ({
  name,
  type: field === "lastTransitionTime" ? ("date" as const) : ("string" as const),
  jsonPath: `.status.conditions[?(@.type=="${type}")].${field}`,
  description,
  ...(wide ? { priority: 1 } : {}),
});

export const MachineConfiguration = defineResource({
  kind: "MachineConfiguration",
  plural: "machineconfigurations",
  group: operatorGroup,
  version: "v1",
  scope: "Cluster",
  description:
    "Settings of the suite itself: above all, which changes of a machine's configuration disrupt it and how.",
  spec: Type.Object({
    ...operatorSpec,
    ...unreadOperatorSpec,
    nodeDisruptionPolicy: Type.Optional(
      Type.Object(policies(userActions, 50), {
        description:
          "Actions on a machine after a change of a file, a unit or the SSH keys. A change that no policy names reboots the machine.",
      }),
    ),
    managedBootImages: Type.Optional(
      managedBootImages("Which machine sets get the release's boot image. Absent: what the platform does by default."),
    ),
    irreconcilableValidationOverrides: Type.Optional(
      Type.Object(
        {
          storage: Type.Optional(setOf(oneOf(["Disks", "FileSystems", "Raid"]), { minItems: 1, maxItems: 3 })),
        },
        {
          minProperties: 1,
          description: "Changes that are accepted although machines that are installed keep what they have.",
        },
      ),
    ),
    bootImageSkewEnforcement: Type.Optional(
      Type.Object(
        { mode: oneOf(["Manual", "None"]), manual: Type.Optional(manualBootImage()) },
        {
          description: "How old boot images may be where the suite does not update them.",
          "x-kubernetes-validations": [onlyWhere("manual", "Manual")],
        },
      ),
    ),
  }),
  status: Type.Object({
    observedGeneration: Type.Optional(int64()),
    conditions: Type.Optional(conditionList()),
    nodeDisruptionPolicyStatus: Type.Optional(
      Type.Object({ clusterPolicies: Type.Optional(Type.Object(policies(statusActions, 100))) }),
    ),
    managedBootImagesStatus: Type.Optional(managedBootImages("Which machine sets get the release's boot image.")),
    bootImageSkewEnforcementStatus: Type.Optional(
      Type.Object(
        {
          mode: oneOf(["Automatic", "Manual", "None"]),
          automatic: Type.Optional(
            Type.Object(
              { ocpVersion: Type.Optional(ocpVersion()), rhcosVersion: Type.Optional(rhcosVersion()) },
              { minProperties: 1 },
            ),
          ),
          manual: Type.Optional(manualBootImage()),
        },
        { "x-kubernetes-validations": [onlyWhere("automatic", "Automatic"), onlyWhere("manual", "Manual")] },
      ),
    ),
  }),
  columns: [
    conditionColumn("Healthy", "Healthy", "Whether every part of the suite is well."),
    conditionColumn("Operator", "OperatorHealthy", "Whether the operator is well."),
    conditionColumn("Controller", "ControllerHealthy", "Whether the controller is well."),
    conditionColumn("Daemons", "DaemonsHealthy", "Whether the daemons of all machines are well."),
    conditionColumn("Server", "ServerHealthy", "Whether the config server is well.", { wide: true }),
    conditionColumn("Builder", "BuilderHealthy", "Whether the builder of images is well.", { wide: true }),
    conditionColumn("StateKeeping", "StateKeeping", "Whether the books are kept."),
    conditionColumn("Reason", "Healthy", "Reason of the worst part.", { field: "reason" }),
    conditionColumn("Since", "Healthy", "Time since the suite became well or unwell.", { field: "lastTransitionTime" }),
    conditionColumn("Error", "Healthy", "The problem of the worst part; empty: none.", { field: "message" }),
    {
      name: "Age",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
      description: "Time since creation.",
      priority: 1,
    },
  ],
  // That there is one, named cluster, is what an admission policy says: the definition takes any name, as the
  // reference's does.
  rules: [
    whileAutomatic(
      "(has(self.spec) && has(self.spec.managedBootImages)) || has(self.status.managedBootImagesStatus)",
      "boot images must be managed: set spec.managedBootImages",
    ),
    whileAutomatic(
      `!(${managersIn("spec.managedBootImages")}) || size(${managers}) > 0`,
      "spec.managedBootImages.machineManagers must not be empty",
    ),
    whileAutomatic(
      `!(${managersIn("spec.managedBootImages")}) || !${machineSetsAmong(managers)} || ${machineSetsAmong(managers, " && m.selection.mode == 'All'")}`,
      "the mode of machinesets in spec.managedBootImages must be All",
    ),
    whileAutomatic(
      `!(${managersIn("status.managedBootImagesStatus")}) || ${machineSetsAmong(statusManagers, " && m.selection.mode == 'All'")}`,
      "status.managedBootImagesStatus must have machinesets with mode All",
    ),
  ],
});
export type MachineConfiguration = ResourceOf<typeof MachineConfiguration>;
/** Policies for files, units and SSH keys, both as users write them and as the effective ones are published. */
export type ClusterPolicies = NonNullable<
  NonNullable<NonNullable<MachineConfiguration["status"]>["nodeDisruptionPolicyStatus"]>["clusterPolicies"]
>;
