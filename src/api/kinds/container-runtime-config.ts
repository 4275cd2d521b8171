import Type from "typebox";
import { gateKeyword } from "../feature-sets.ts";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { atomicList, int64, intOrString, labelSelector, looseConditionList, oneOf } from "../schema/schema.ts";

/** Source: kubernetes/apimachinery pkg/api/resource/quantity.go (master). */
const number = "(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))";
const quantityPattern = `^(\\+|-)?${number}(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?${number}))?$`;

const stores = (maxItems: number) =>
  Type.Optional(
    Type.Unsafe<{ path: string }[]>({
      ...atomicList(
        Type.Object({
          path: Type.String({
            minLength: 1,
            maxLength: 256,
            pattern: "^/[a-zA-Z0-9/._-]+$",
            "x-kubernetes-validations": [{ rule: "!self.contains('//')", message: "must not contain //" }],
          }),
        }),
        { minItems: 1, maxItems },
      ),
      "x-kubernetes-validations": [
        { rule: "self.all(x, self.exists_one(y, x.path == y.path))", message: "paths must be unique" },
      ],
    }),
  );

export const ContainerRuntimeConfig = defineResource({
  kind: "ContainerRuntimeConfig",
  plural: "containerruntimeconfigs",
  version: "v1",
  scope: "Cluster",
  shortNames: ["ctrcfg"],
  description: "Container runtime settings for the machines of the selected pools.",
  spec: Type.Object({
    machineConfigPoolSelector: Type.Optional(labelSelector("Which pools the settings are for.")),
    containerRuntimeConfig: Type.Object({
      pidsLimit: Type.Optional(int64({ description: "0 or at least 20." })),
      logLevel: Type.Optional(
        Type.String({ description: "error, fatal, panic, warn, info, debug or trace; the controller refuses others." }),
      ),
      logSizeMax: Type.Optional(intOrString({ pattern: quantityPattern })),
      overlaySize: Type.Optional(intOrString({ pattern: quantityPattern })),
      defaultRuntime: Type.Optional(oneOf(["crun", "runc"])),
      additionalLayerStores: stores(5),
      additionalImageStores: stores(10),
      additionalArtifactStores: stores(10),
      containerGomaxprocsBehavior: Type.Optional(
        oneOf(["Autosize", "Disabled"], { [gateKeyword]: "GomaxprocsInjection" }),
      ),
    }),
  }),
  status: Type.Object({
    observedGeneration: Type.Optional(int64()),
    conditions: Type.Optional(looseConditionList()),
  }),
});
export type ContainerRuntimeConfig = ResourceOf<typeof ContainerRuntimeConfig>;
