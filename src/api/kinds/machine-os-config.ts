import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { conditionList, dnsName, listMap, oneOf } from "../schema/schema.ts";

/**
 * A reference with a sha256 digest. Unlike openshift/api (main), this accepts nested repositories and loopback
 * registries.
 */
export const digestReference = () =>
  Type.String({ minLength: 1, maxLength: 447, pattern: "^[^@]+@sha256:[a-f0-9]{64}$" });
/** A repository with a tag. */
export const tagReference = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 447,
    pattern:
      "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$",
    description,
  });
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
    imageBuilder: Type.Object({ imageBuilderType: oneOf(["Job"]) }, { description: "What makes the image." }),
    baseImagePullSecret: Type.Optional(
      named("Secret to pull the base image with; the cluster's own pull secret when absent."),
    ),
    renderedImagePushSecret: named("Secret to push the image with."),
    renderedImagePushSpec: tagReference(
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
            description: "What is built on the base image, as a Containerfile.",
          }),
        }),
        { maxItems: 4 },
      ),
    ),
  }),
  status: Type.Object({
    conditions: Type.Optional(conditionList(16)),
    observedGeneration: Type.Optional(Type.Integer({ minimum: 0 })),
    currentImagePullSpec: Type.Optional(digestReference()),
    machineOSBuild: Type.Optional(
      Type.Object(
        {
          group: Type.String({ maxLength: 253 }),
          resource: Type.String({ minLength: 1, maxLength: 63 }),
          name: dnsName(),
          namespace: Type.Optional(Type.String({ maxLength: 63 })),
        },
        { description: "Build that the image is from." },
      ),
    ),
  }),
  rules: [
    {
      rule: "self.metadata.name == self.spec.machineConfigPool.name",
      message: "a MachineOSConfig carries the name of its pool",
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
      description: "What opted the pool in, where no MachineOSConfig of a user did.",
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
