import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { imageByDigest, imageByTag } from "../schema/image-names.ts";
import { conditionList, dnsLabel, dnsName, int64, listMap, neverFalls, oneOf, resourceName } from "../schema/schema.ts";

const named = (description: string) => Type.Object({ name: dnsName() }, { description });

export const containerfileArchitectures = ["ARM64", "AMD64", "PPC64LE", "S390X", "NoArch"] as const;

/** Source of names and limits: openshift/api machineconfiguration/v1/types_machineosconfig.go (master). */
export const MachineOSConfig = defineResource({
  kind: "MachineOSConfig",
  plural: "machineosconfigs",
  version: "v1",
  scope: "Cluster",
  description:
    "A pool whose machines boot images that are built on the cluster: what goes into them, and where they are kept.",
  spec: Type.Object({
    machineConfigPool: named("Pool whose machines boot the image."),
    imageBuilder: Type.Object(
      { imageBuilderType: oneOf(["Job"]) },
      { description: "The kind of builder that makes the image." },
    ),
    baseImagePullSecret: Type.Optional(
      named("Secret to pull the base image with; the cluster's own pull secret when absent."),
    ),
    renderedImagePushSecret: named("Secret to push the image with."),
    renderedImagePushSpec: imageByTag(
      "Repository that the image is kept in; its tag is replaced by the name of the build.",
    ),
    containerFile: Type.Optional(
      listMap(
        ["containerfileArch"],
        Type.Object({
          containerfileArch: oneOf(containerfileArchitectures, {
            default: "NoArch",
            description: "Architecture that the text is for.",
          }),
          content: Type.String({
            maxLength: 4096,
            description: "A Containerfile whose steps are run on the base image.",
          }),
        }),
        { maxItems: 4 },
      ),
    ),
  }),
  status: Type.Object({
    conditions: Type.Optional(conditionList()),
    observedGeneration: Type.Optional(int64({ minimum: 0, ...neverFalls("observedGeneration") })),
    currentImagePullSpec: Type.Optional(imageByDigest()),
    machineOSBuild: Type.Optional(
      Type.Object(
        {
          group: dnsName(),
          resource: resourceName(),
          name: dnsName(),
          namespace: Type.Optional(dnsLabel()),
        },
        { description: "Build that the image is from." },
      ),
    ),
  }),
  rules: [
    {
      rule: "self.metadata.name == self.spec.machineConfigPool.name || (oldSelf.hasValue() && oldSelf.value().spec.machineConfigPool.name == self.spec.machineConfigPool.name)",
      message: "a MachineOSConfig carries the name of its pool",
      optionalOldSelf: true,
    },
  ],
  columns: [
    {
      name: "Pool",
      type: "string",
      jsonPath: ".spec.machineConfigPool.name",
      description: "Pool whose machines boot the image.",
    },
    {
      name: "Source",
      type: "string",
      jsonPath: ".metadata.annotations['machineconfiguration\\.openshift\\.io/opt-in-source']",
      description: "The label or annotation that opted the pool in, where no MachineOSConfig of a user did.",
    },
    {
      name: "Inputs",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="InputsValid")].status',
      description: "Whether an image can be made from the inputs.",
    },
    {
      name: "Image",
      type: "string",
      jsonPath: ".status.currentImagePullSpec",
      description: "Image that is rolled out.",
      priority: 1,
    },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
  ],
});
export type MachineOSConfig = ResourceOf<typeof MachineOSConfig>;
