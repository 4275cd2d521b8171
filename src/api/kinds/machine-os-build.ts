import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { digestReference, tagReference } from "./machine-os-config.ts";
import { conditionList, dateTime, dnsName, listMap, oneOf } from "../schema/schema.ts";

const objectRef = () =>
  Type.Object({
    group: Type.String({ maxLength: 253 }),
    resource: Type.String({ minLength: 1, maxLength: 63 }),
    namespace: Type.Optional(Type.String({ maxLength: 63 })),
    name: Type.String({ minLength: 1, maxLength: 253 }),
  });
const column = (type: string) =>
  ({
    name: type,
    type: "string",
    jsonPath: `.status.conditions[?(@.type=="${type}")].status`,
    description: `Status of the condition ${type}.`,
  }) as const;
const onceWritten = (field: string) => ({
  rule: `!has(oldSelf.status) || !has(oldSelf.status.${field}) || (has(self.status) && has(self.status.${field}) && self.status.${field} == oldSelf.status.${field})`,
  message: `${field} is written once`,
});

/** Source of names and rules: openshift/api machineconfiguration/v1/types_machineosbuild.go (master). */
export const MachineOSBuild = defineResource({
  kind: "MachineOSBuild",
  plural: "machineosbuilds",
  version: "v1",
  scope: "Cluster",
  description: "One image of a pool's configuration: how it is made, and what came of it.",
  spec: Type.Object({
    machineConfig: Type.Object(
      { name: Type.String({ minLength: 10, maxLength: 253 }) },
      { description: "Rendered configuration that the image is for." },
    ),
    machineOSConfig: Type.Object({ name: dnsName() }, { description: "What goes into the image." }),
    renderedImagePushSpec: tagReference("Where the image is pushed to."),
  }),
  status: Type.Object({
    conditions: Type.Optional(conditionList(8)),
    builder: Type.Optional(Type.Object({ imageBuilderType: oneOf(["Job"]), job: Type.Optional(objectRef()) })),
    relatedObjects: Type.Optional(listMap(["name", "resource"], objectRef(), { maxItems: 10 })),
    buildStart: Type.Optional(dateTime()),
    buildEnd: Type.Optional(dateTime()),
    digestedImagePushSpec: Type.Optional(digestReference()),
  }),
  rules: [
    {
      rule: "self.spec == oldSelf.spec",
      message: "the spec of a MachineOSBuild never changes: another image is another build",
    },
    {
      rule: "!has(oldSelf.status) || !has(oldSelf.status.conditions) || !oldSelf.status.conditions.exists(c, c.status == 'True' && c.type in ['Succeeded', 'Failed', 'Interrupted']) || (has(self.status) && has(self.status.conditions) && self.status.conditions == oldSelf.status.conditions)",
      message: "a build that has ended stays as it ended",
    },
    onceWritten("buildStart"),
    onceWritten("buildEnd"),
    {
      rule: "!has(self.status) || !has(self.status.buildEnd) || (has(self.status.buildStart) && self.status.buildStart < self.status.buildEnd)",
      message: "buildEnd is after buildStart",
    },
  ],
  columns: [
    column("Prepared"),
    column("Building"),
    column("Succeeded"),
    column("Interrupted"),
    column("Failed"),
    {
      name: "Strategy",
      type: "string",
      jsonPath: ".metadata.annotations['machineconfiguration\\.openshift\\.io/build-strategy']",
      description: "How the image is made.",
      priority: 1,
    },
    {
      name: "Image",
      type: "string",
      jsonPath: ".status.digestedImagePushSpec",
      description: "What came of it.",
      priority: 1,
    },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
  ],
});
export type MachineOSBuild = ResourceOf<typeof MachineOSBuild>;
