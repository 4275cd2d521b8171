import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { anyObject, labelSelector, looseConditionList, oneOf } from "../schema/schema.ts";

export const KubeletConfig = defineResource({
  kind: "KubeletConfig",
  plural: "kubeletconfigs",
  version: "v1",
  scope: "Cluster",
  description: "Kubelet settings for the machines of the selected pools.",
  spec: Type.Object({
    machineConfigPoolSelector: Type.Optional(labelSelector("Which pools the settings are for.")),
    kubeletConfig: Type.Optional(
      anyObject({ description: "Fields of KubeletConfiguration kubelet.config.k8s.io/v1beta1.", nullable: true }),
    ),
    autoSizingReserved: Type.Optional(
      Type.Boolean({ description: "Size system-reserved from the machine; excludes systemReserved." }),
    ),
    logLevel: Type.Optional(Type.Integer({ format: "int32", minimum: 0, maximum: 10 })),
    tlsSecurityProfile: Type.Optional(anyObject()),
    systemGomaxprocsBehavior: Type.Optional(oneOf(["Autosize", "Disabled"])),
  }),
  status: Type.Object({
    observedGeneration: Type.Optional(Type.Integer()),
    conditions: Type.Optional(looseConditionList()),
  }),
});
export type KubeletConfig = ResourceOf<typeof KubeletConfig>;
