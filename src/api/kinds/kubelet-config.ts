import Type from "typebox";
import { gateKeyword } from "../feature-sets.ts";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { anyObject, atomicList, int64, labelSelector, looseConditionList, oneOf, setOf } from "../schema/schema.ts";

const emptyProfile = () => Type.Optional(Type.Unsafe<object | null>({ type: "object", nullable: true }));

/** Source: openshift/api config/v1/types_tlssecurityprofile.go (master). */
const tlsProfile = () =>
  Type.Object(
    {
      type: Type.Optional(oneOf(["Old", "Intermediate", "Modern", "Custom"])),
      old: emptyProfile(),
      intermediate: emptyProfile(),
      modern: emptyProfile(),
      custom: Type.Optional(
        Type.Unsafe<CustomTlsProfile | null>({
          ...Type.Object({
            ciphers: Type.Optional(atomicList(Type.String())),
            minTLSVersion: Type.Optional(oneOf(["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"])),
            groups: Type.Optional(
              setOf(
                oneOf([
                  "X25519",
                  "secp256r1",
                  "secp384r1",
                  "secp521r1",
                  "X25519MLKEM768",
                  "SecP256r1MLKEM768",
                  "SecP384r1MLKEM1024",
                ]),
                {
                  minItems: 1,
                  maxItems: 7,
                  description: "Groups of the key exchange.",
                  [gateKeyword]: "TLSGroupPreferences",
                },
              ),
            ),
          }),
          nullable: true,
        }),
      ),
    },
    { description: "TLS of the kubelet's own server; that of APIServer/cluster when absent." },
  );

export interface CustomTlsProfile {
  readonly ciphers?: string[];
  readonly minTLSVersion?: string;
  readonly groups?: string[];
}

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
    tlsSecurityProfile: Type.Optional(tlsProfile()),
    systemGomaxprocsBehavior: Type.Optional(oneOf(["Autosize", "Disabled"], { [gateKeyword]: "GomaxprocsInjection" })),
  }),
  status: Type.Object({
    observedGeneration: Type.Optional(int64()),
    conditions: Type.Optional(looseConditionList()),
  }),
});
export type KubeletConfig = ResourceOf<typeof KubeletConfig>;
