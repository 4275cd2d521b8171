import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { annotations } from "../names.ts";
import { anyObject, atomicList } from "../schema/schema.ts";

/** The path of an annotation in the JSONPath dialect of printer columns. */
export const annotationPath = (key: string) => `.metadata.annotations['${key.replaceAll(".", "\\.")}']`;

export const MachineConfig = defineResource({
  kind: "MachineConfig",
  plural: "machineconfigs",
  version: "v1",
  scope: "Cluster",
  shortNames: ["mc"],
  description:
    "A part of what machines should be: files, units, users, kernel arguments, OS image. Pools select MachineConfigs by label and merge them.",
  spec: Type.Object(
    {
      osImageURL: Type.Optional(
        Type.String({ description: "Container reference of the operating system; overrides the cluster's." }),
      ),
      baseOSExtensionsContainerImage: Type.Optional(
        Type.String({ description: "Container with extension packages; overrides the cluster's." }),
      ),
      config: Type.Optional(anyObject({ description: "Ignition config, spec 2.x or 3.0 to 3.5.", nullable: true })),
      kernelArguments: Type.Optional(
        Type.Unsafe<string[] | null>({
          ...atomicList(Type.String()),
          nullable: true,
          description: "Arguments to append to the kernel's command line.",
        }),
      ),
      extensions: Type.Optional(
        Type.Unsafe<string[] | null>({
          ...atomicList(Type.String()),
          nullable: true,
          description: "Additional features by name, for example usbguard.",
        }),
      ),
      fips: Type.Optional(Type.Boolean({ description: "FIPS mode; cannot change after installation." })),
      kernelType: Type.Optional(Type.String({ description: "default, realtime or 64k-pages." })),
    },
    { description: "The part of a machine's configuration that this MachineConfig contributes." },
  ),
  specRequired: false,
  columns: [
    {
      name: "GeneratedByController",
      type: "string",
      jsonPath: annotationPath(annotations.generatedByController),
      description: "Version of the controller that generated it; empty when a person wrote it.",
    },
    {
      name: "IgnitionVersion",
      type: "string",
      jsonPath: ".spec.config.ignition.version",
      description: "Spec version of the Ignition config.",
    },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
  ],
});
export type MachineConfig = ResourceOf<typeof MachineConfig>;
export type MachineConfigSpec = MachineConfig["spec"];
