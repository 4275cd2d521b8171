import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { imageByDigest, imageByTag } from "../schema/image-names.ts";
import { conditionList, dateTime, dnsLabel, dnsName, listMap, resourceName } from "../schema/schema.ts";

const objectRef = () =>
  Type.Object({
    group: dnsName(),
    resource: resourceName(),
    namespace: Type.Optional(dnsLabel()),
    name: dnsName(),
  });
const column = (type: string) =>
  ({
    name: type,
    type: "string",
    jsonPath: `.status.conditions[?(@.type=="${type}")].status`,
    description: `Status of the condition ${type}.`,
  }) as const;
const writtenOnce = (field: string) =>
  dateTime({ "x-kubernetes-validations": [{ rule: "self == oldSelf", message: `${field} is written once` }] });

/** Source of names and rules: openshift/api machineconfiguration/v1/types_machineosbuild.go (master). */
export const MachineOSBuild = defineResource({
  kind: "MachineOSBuild",
  plural: "machineosbuilds",
  version: "v1",
  scope: "Cluster",
  description: "One image of a pool's configuration: how it is made, and what came of it.",
  spec: Type.Object(
    {
      machineConfig: Type.Object(
        { name: dnsName({ minLength: 10 }) },
        { description: "Rendered configuration that the image is for." },
      ),
      machineOSConfig: Type.Object({ name: dnsName() }, { description: "The MachineOSConfig whose image is built." }),
      renderedImagePushSpec: imageByTag("Where the image is pushed to."),
    },
    {
      "x-kubernetes-validations": [
        {
          rule: "self == oldSelf",
          message: "the spec of a MachineOSBuild never changes: another image is another build",
        },
      ],
    },
  ),
  status: Type.Object(
    {
      conditions: Type.Optional(
        conditionList({
          maxItems: 8,
          "x-kubernetes-validations": [
            {
              rule: "!oldSelf.exists(c, c.status == 'True' && c.type in ['Succeeded', 'Failed', 'Interrupted']) || self == oldSelf",
              message: "a build that has ended stays as it ended",
            },
          ],
        }),
      ),
      builder: Type.Optional(
        Type.Object(
          { imageBuilderType: Type.String(), job: Type.Optional(objectRef()) },
          {
            "x-kubernetes-validations": [
              {
                rule: "(self.imageBuilderType == 'Job') == has(self.job)",
                message: "job goes with imageBuilderType Job, and only with it",
              },
            ],
          },
        ),
      ),
      relatedObjects: Type.Optional(listMap(["name", "resource"], objectRef(), { maxItems: 10 })),
      buildStart: Type.Optional(writtenOnce("buildStart")),
      buildEnd: Type.Optional(writtenOnce("buildEnd")),
      digestedImagePushSpec: Type.Optional(imageByDigest()),
    },
    {
      "x-kubernetes-validations": [
        {
          rule: "!has(self.buildEnd) || (has(self.buildStart) && self.buildStart < self.buildEnd)",
          message: "buildEnd is after buildStart",
        },
      ],
    },
  ),
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
      description: "Phase and result of the build.",
      priority: 1,
    },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
  ],
});
export type MachineOSBuild = ResourceOf<typeof MachineOSBuild>;
