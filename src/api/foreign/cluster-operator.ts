import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { configGroup } from "../names.ts";
import { anyObject, atomicList, dateTime, listMap, oneOf } from "../schema/schema.ts";

const conditionColumn = (name: string) =>
  ({
    name,
    type: "string",
    jsonPath: `.status.conditions[?(@.type=="${name}")].status`,
    description: `Status of the condition ${name}.`,
  }) as const;

export const ClusterOperator = defineResource({
  kind: "ClusterOperator",
  plural: "clusteroperators",
  group: configGroup,
  version: "v1",
  scope: "Cluster",
  shortNames: ["co"],
  description: "How an operator of the cluster is: available, progressing, degraded, upgradeable.",
  spec: Type.Object({}),
  status: Type.Object({
    conditions: Type.Optional(
      listMap(
        ["type"],
        Type.Object({
          type: Type.String(),
          status: oneOf(["True", "False", "Unknown"]),
          reason: Type.Optional(Type.String()),
          message: Type.Optional(Type.String()),
          lastTransitionTime: dateTime(),
        }),
      ),
    ),
    versions: Type.Optional(listMap(["name"], Type.Object({ name: Type.String(), version: Type.String() }))),
    relatedObjects: Type.Optional(
      atomicList(
        Type.Object({
          group: Type.String(),
          resource: Type.String(),
          namespace: Type.Optional(Type.String()),
          name: Type.String(),
        }),
      ),
    ),
    extension: Type.Optional(Type.Unsafe<Record<string, unknown> | null>(anyObject({ nullable: true }))),
  }),
  columns: [
    {
      name: "Version",
      type: "string",
      jsonPath: '.status.versions[?(@.name=="operator")].version',
      description: "Version that the operator is at.",
    },
    conditionColumn("Available"),
    conditionColumn("Progressing"),
    conditionColumn("Degraded"),
    {
      name: "Since",
      type: "date",
      jsonPath: '.status.conditions[?(@.type=="Available")].lastTransitionTime',
      description: "Since when it is (not) available.",
    },
    {
      name: "Message",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Progressing")].message',
      description: "The operator's message about its progress.",
    },
  ],
});
export type ClusterOperator = ResourceOf<typeof ClusterOperator>;
