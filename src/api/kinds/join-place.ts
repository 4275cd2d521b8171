import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { atomicList, dateTime, dnsName } from "../schema/schema.ts";
import { maxMachineAddresses } from "./node-binding.ts";

export const JoinPlace = defineResource({
  kind: "JoinPlace",
  plural: "joinplaces",
  version: "v1alpha1",
  scope: "Cluster",
  description:
    "Room for one new node in a pool. The config server makes one for each configuration that it serves; the controller takes it when it approves the first certificate of a name.",
  spec: Type.Object({
    pool: dnsName({ description: "Pool whose configuration was served." }),
    node: Type.Optional(dnsName({ description: "The only name that may take it: that of the token." })),
    token: Type.Optional(dnsName({ description: "ProvisioningToken that was used." })),
    addresses: Type.Optional(
      atomicList(Type.String({ maxLength: 64 }), {
        maxItems: maxMachineAddresses,
        description: "Where the configuration was fetched from, and the addresses that the token names.",
      }),
    ),
    expiresAt: dateTime({ description: "When it ends, taken or not." }),
  }),
  rules: [{ rule: "self.spec == oldSelf.spec", message: "the spec of a JoinPlace never changes" }],
  columns: [
    { name: "Pool", type: "string", jsonPath: ".spec.pool", description: "Pool whose configuration was served." },
    { name: "Node", type: "string", jsonPath: ".spec.node", description: "The only name that may take it." },
    { name: "Addresses", type: "string", jsonPath: ".spec.addresses", description: "Where it was fetched from." },
    { name: "Expires", type: "string", jsonPath: ".spec.expiresAt", description: "When it ends." },
  ],
});
export type JoinPlace = ResourceOf<typeof JoinPlace>;
