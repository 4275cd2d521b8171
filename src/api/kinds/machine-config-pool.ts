import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import {
  atomicList,
  dateTime,
  dnsName,
  int32,
  int64,
  intOrString,
  labelSelector,
  listMap,
  looseConditionList,
  objectReference,
  oneOf,
} from "../schema/schema.ts";

/** Source: openshift/api machineconfiguration/v1/types.go (master), PinnedImageSetRef. */
const hostLabel = "([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\\-]{0,61}[a-zA-Z0-9])";
const notMore = (part: string, whole: string) => ({
  rule: `self.${part} <= self.${whole}`,
  message: `${part} must not be more than ${whole}`,
});
const configuration = () => objectReference({ source: Type.Optional(atomicList(objectReference())) });
const conditionColumn = (type: string) =>
  ({
    name: type,
    type: "string",
    jsonPath: `.status.conditions[?(@.type=="${type}")].status`,
    description: `Status of the condition ${type}.`,
  }) as const;
const countColumn = (name: string, field: string, description: string) =>
  ({ name, type: "integer", jsonPath: `.status.${field}`, description }) as const;

export const MachineConfigPool = defineResource({
  kind: "MachineConfigPool",
  plural: "machineconfigpools",
  version: "v1",
  scope: "Cluster",
  shortNames: ["mcp"],
  description: "A pool of machines that share one configuration, merged from the MachineConfigs that the pool selects.",
  spec: Type.Object({
    machineConfigSelector: Type.Optional(labelSelector("Which MachineConfigs are merged for this pool.")),
    nodeSelector: Type.Optional(labelSelector("Which nodes belong to this pool.")),
    paused: Type.Optional(
      Type.Boolean({ description: "Stops disruption: machines keep their configuration, the pool still renders." }),
    ),
    maxUnavailable: Type.Optional(
      intOrString({
        description: "How many machines may be unavailable at once, a number or a percentage; 1 when absent.",
      }),
    ),
    configuration: Type.Optional(configuration()),
    pinnedImageSets: Type.Optional(
      listMap(
        ["name"],
        Type.Object({
          name: Type.String({ minLength: 1, maxLength: 253, pattern: `^${hostLabel}(\\.${hostLabel})*$` }),
        }),
        { maxItems: 100 },
      ),
    ),
    osImageStream: Type.Optional(Type.Object({ name: dnsName() })),
  }),
  status: Type.Object({
    observedGeneration: Type.Optional(int64()),
    configuration: Type.Optional(configuration()),
    machineCount: Type.Optional(int32()),
    updatedMachineCount: Type.Optional(int32()),
    readyMachineCount: Type.Optional(int32()),
    unavailableMachineCount: Type.Optional(int32()),
    degradedMachineCount: Type.Optional(int32()),
    conditions: Type.Optional(looseConditionList()),
    certExpirys: Type.Optional(
      atomicList(Type.Object({ bundle: Type.String(), subject: Type.String(), expiry: Type.Optional(dateTime()) })),
    ),
    poolSynchronizersStatus: Type.Optional(
      listMap(
        ["poolSynchronizerType"],
        Type.Object(
          {
            poolSynchronizerType: oneOf(["PinnedImageSets"]),
            machineCount: int64({ minimum: 0 }),
            updatedMachineCount: int64({ minimum: 0 }),
            readyMachineCount: int64({ minimum: 0 }),
            unavailableMachineCount: int64({ minimum: 0 }),
            availableMachineCount: int64({ minimum: 0 }),
            observedGeneration: Type.Optional(
              int64({
                minimum: 0,
                "x-kubernetes-validations": [
                  { rule: "self >= oldSelf || self == 0", message: "observedGeneration must not fall, but to 0" },
                ],
              }),
            ),
          },
          {
            "x-kubernetes-validations": [
              notMore("updatedMachineCount", "machineCount"),
              notMore("availableMachineCount", "machineCount"),
              notMore("unavailableMachineCount", "machineCount"),
              notMore("readyMachineCount", "machineCount"),
              notMore("readyMachineCount", "availableMachineCount"),
            ],
          },
        ),
      ),
    ),
    osImageStream: Type.Optional(Type.Object({ name: dnsName() })),
  }),
  columns: [
    {
      name: "Config",
      type: "string",
      jsonPath: ".status.configuration.name",
      description: "Rendered configuration that every machine of the pool has.",
    },
    conditionColumn("Updated"),
    conditionColumn("Updating"),
    conditionColumn("Degraded"),
    countColumn("MachineCount", "machineCount", "Machines in the pool."),
    countColumn("ReadyMachineCount", "readyMachineCount", "Machines that have the target and are ready."),
    countColumn("UpdatedMachineCount", "updatedMachineCount", "Machines that have the target."),
    countColumn("DegradedMachineCount", "degradedMachineCount", "Machines that report a failure."),
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
  ],
});
export type MachineConfigPool = ResourceOf<typeof MachineConfigPool>;
