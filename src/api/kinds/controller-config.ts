import Type, { type TSchema } from "typebox";
import { controllerConfigParts as parts } from "./controller-config-parts.ts";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { atomicList, bytes, dateTime, looseConditionList, mapOf, objectReference, oneOf } from "../schema/schema.ts";

const bundleEntries = () => Type.Optional(atomicList(Type.Object({ file: Type.String(), data: bytes() })));
/** An object of OpenShift inside a ControllerConfig, with the rules of its own kind: `make openshift-kinds` writes them. */
const openShiftsOwn = (schema: object) => Type.Unsafe<Record<string, unknown> | null>(schema as TSchema);
const nullableBytes = (description: string) => Type.Unsafe<string | null>(bytes({ nullable: true, description }));

export const ControllerConfig = defineResource({
  kind: "ControllerConfig",
  plural: "controllerconfigs",
  version: "v1",
  scope: "Cluster",
  description:
    "Facts about the cluster that the controllers need: images, certificates, network. Written by the operator.",
  spec: Type.Object({
    clusterDNSIP: Type.String(),
    cloudProviderConfig: Type.String(),
    platform: Type.Optional(Type.String()),
    etcdDiscoveryDomain: Type.Optional(Type.String()),
    osImageURL: Type.Optional(Type.String()),
    kubeAPIServerServingCAData: bytes(),
    rootCAData: bytes(),
    cloudProviderCAData: nullableBytes("CA of the cloud provider."),
    additionalTrustBundle: nullableBytes("Further certificates to trust."),
    imageRegistryBundleUserData: bundleEntries(),
    imageRegistryBundleData: bundleEntries(),
    pullSecret: Type.Optional(objectReference()),
    internalRegistryPullSecret: Type.Optional(nullableBytes("Merged pull secret of the internal registry.")),
    images: mapOf(Type.String()),
    baseOSContainerImage: Type.String(),
    baseOSExtensionsContainerImage: Type.Optional(Type.String()),
    releaseImage: Type.String(),
    proxy: openShiftsOwn(parts.proxy),
    infra: openShiftsOwn(parts.infra),
    dns: openShiftsOwn(parts.dns),
    ipFamilies: oneOf(["IPv4", "IPv6", "DualStack", "DualStackIPv6Primary"]),
    networkType: Type.Optional(Type.String()),
    network: Type.Optional(openShiftsOwn(parts.network)),
    bgpVIPPeersJSON: Type.Optional(Type.String({ minLength: 1, maxLength: 65536 })),
  }),
  status: Type.Object({
    observedGeneration: Type.Optional(Type.Integer()),
    conditions: Type.Optional(looseConditionList()),
    controllerCertificates: Type.Optional(
      atomicList(
        Type.Object({
          subject: Type.String(),
          signer: Type.String(),
          bundleFile: Type.String(),
          notBefore: Type.Optional(dateTime()),
          notAfter: Type.Optional(dateTime()),
        }),
      ),
    ),
  }),
});
export type ControllerConfig = ResourceOf<typeof ControllerConfig>;
