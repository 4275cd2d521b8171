import Type, { type TSchema } from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { operatorGroup } from "../names.ts";
import { anyObject, atomicList, conditionList, listMap, oneOf } from "../schema/schema.ts";

const unitName = () =>
  Type.String({
    minLength: 1,
    maxLength: 255,
    pattern:
      "^[a-zA-Z0-9:._\\\\-]+(@[a-zA-Z0-9:._\\\\-]*)?\\.(service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)$",
  });

const actions = <Types extends readonly string[]>(types: Types) =>
  Type.Unsafe<{ type: Types[number]; reload?: { serviceName: string }; restart?: { serviceName: string } }[]>({
    ...atomicList(
      Type.Object({
        type: oneOf(types),
        reload: Type.Optional(Type.Object({ serviceName: unitName() })),
        restart: Type.Optional(Type.Object({ serviceName: unitName() })),
      }),
      { maxItems: 10 },
    ),
    "x-kubernetes-validations": [
      {
        rule: "self.all(a, (a.type == 'Reload') == has(a.reload))",
        message: "reload.serviceName goes with an action of type Reload, and only with it",
      },
      {
        rule: "self.all(a, (a.type == 'Restart') == has(a.restart))",
        message: "restart.serviceName goes with an action of type Restart, and only with it",
      },
      {
        rule: "!self.exists(a, a.type == 'Reboot' || a.type == 'None') || size(self) == 1",
        message: "Reboot and None must be the only action",
      },
    ],
  });

const policies = <Types extends readonly string[]>(types: Types, maxItems: number) => ({
  files: Type.Optional(
    listMap(["path"], Type.Object({ path: Type.String({ minLength: 1 }), actions: actions(types) }), { maxItems }),
  ),
  units: Type.Optional(listMap(["name"], Type.Object({ name: unitName(), actions: actions(types) }), { maxItems })),
  sshkey: Type.Optional(Type.Object({ actions: actions(types) })),
});

const userActions = ["Reboot", "Drain", "Reload", "Restart", "DaemonReload", "None"] as const;
const statusActions = [...userActions, "Special"] as const;

const operatorSpec: Record<"managementState" | "logLevel" | "operatorLogLevel", TSchema> = {
  managementState: Type.Optional(Type.String({ pattern: "^(Managed|Unmanaged|Force|Removed)$" })),
  logLevel: Type.Optional(oneOf(["", "Normal", "Debug", "Trace", "TraceAll"], { default: "Normal" })),
  operatorLogLevel: Type.Optional(oneOf(["", "Normal", "Debug", "Trace", "TraceAll"], { default: "Normal" })),
};

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
    nodeDisruptionPolicy: Type.Optional(
      Type.Object(policies(userActions, 50), {
        description:
          "What must happen on a machine after a file, a unit or the SSH keys changed. What no policy names reboots.",
      }),
    ),
    managedBootImages: Type.Optional(anyObject()),
    irreconcilableValidationOverrides: Type.Optional(anyObject()),
    bootImageSkewEnforcement: Type.Optional(anyObject()),
  }),
  status: Type.Object({
    observedGeneration: Type.Optional(Type.Integer()),
    conditions: Type.Optional(conditionList()),
    nodeDisruptionPolicyStatus: Type.Optional(
      Type.Object({ clusterPolicies: Type.Optional(Type.Object(policies(statusActions, 100))) }),
    ),
    managedBootImagesStatus: Type.Optional(anyObject()),
    bootImageSkewEnforcementStatus: Type.Optional(anyObject()),
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
    conditionColumn("Error", "Healthy", "What is wrong with the worst part; empty: nothing.", { field: "message" }),
    {
      name: "Age",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
      description: "Time since creation.",
      priority: 1,
    },
  ],
  rules: [{ rule: "self.metadata.name == 'cluster'", message: "the one MachineConfiguration is called cluster" }],
});
export type MachineConfiguration = ResourceOf<typeof MachineConfiguration>;
/** Policies for files, units and SSH keys, both as users write them and as the effective ones are published. */
export type ClusterPolicies = NonNullable<
  NonNullable<NonNullable<MachineConfiguration["status"]>["nodeDisruptionPolicyStatus"]>["clusterPolicies"]
>;
