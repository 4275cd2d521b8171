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
    "One machine that joins a pool. The config server makes it for each configuration that it serves, with the credential in that configuration. The controller lets in the machine whose request was sent with it, once, and notes here which one that is.",
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
    credential: Type.Optional(
      Type.String({
        maxLength: 128,
        pattern: "^JTI=.+$",
        description:
          "Id of the token in the served configuration, as the API server records it with requests that are sent with it. It is no secret.",
      }),
    ),
    expiresAt: dateTime({ description: "When it ends, taken or not." }),
  }),
  status: Type.Object({
    machine: Type.Optional(dnsName({ description: "Name of the node that joined by it. Nothing frees it again." })),
    publicKey: Type.Optional(
      Type.String({
        pattern: "^[0-9a-f]{64}$",
        description: "SHA-256 of the public key that the machine joined with, in hexadecimal digits.",
      }),
    ),
    joinedAt: Type.Optional(
      dateTime({ description: "When the machine joined. It does not join again once another one has its name." }),
    ),
  }),
  rules: [
    { rule: "self.spec == oldSelf.spec", message: "the spec of a JoinPlace never changes" },
    {
      rule: "!has(oldSelf.status) || !has(oldSelf.status.machine) || (has(self.status) && self.status == oldSelf.status)",
      message: "a JoinPlace lets in one machine: once it says which, it never changes",
    },
  ],
  columns: [
    { name: "Pool", type: "string", jsonPath: ".spec.pool", description: "Pool whose configuration was served." },
    { name: "Node", type: "string", jsonPath: ".spec.node", description: "The only name that may take it." },
    { name: "Machine", type: "string", jsonPath: ".status.machine", description: "Which node joined by it." },
    { name: "Addresses", type: "string", jsonPath: ".spec.addresses", description: "Where it was fetched from." },
    { name: "Expires", type: "string", jsonPath: ".spec.expiresAt", description: "When it ends." },
  ],
});
export type JoinPlace = ResourceOf<typeof JoinPlace>;
