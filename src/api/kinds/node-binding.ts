import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { atomicList, dateTime, dnsName } from "../schema/schema.ts";

/** Addresses of one machine; more are a mistake, or an attempt to collect those of others. */
export const maxMachineAddresses = 16;

export const NodeBinding = defineResource({
  kind: "NodeBinding",
  plural: "nodebindings",
  version: "v1alpha1",
  scope: "Cluster",
  shortNames: ["nb"],
  description:
    "Binds the name of a node to one public key and one pool while a certificate for it is good. The controller writes it when it approves a certificate; kubelets and joining accounts cannot. Deleting it frees the name, and so does deleting the Node.",
  spec: Type.Object({
    pool: dnsName({ description: "Pool that the machine joined." }),
    publicKey: Type.String({
      pattern: "^[0-9a-f]{64}$",
      description: "SHA-256 of the public key (SubjectPublicKeyInfo) that the name belongs to, in hexadecimal digits.",
    }),
    expiresAt: dateTime({ description: "When the last certificate for that key ends." }),
    place: Type.Optional(dnsName({ description: "JoinPlace that the machine took." })),
    nodeUID: Type.Optional(
      Type.String({ maxLength: 64, description: "UID of the machine's Node, once it has registered." }),
    ),
    addresses: Type.Optional(
      atomicList(Type.String({ maxLength: 64 }), {
        maxItems: maxMachineAddresses,
        description:
          "Addresses that the node may serve under: where the machine fetched its configuration from, those that its token names, and those that an administrator adds.",
      }),
    ),
  }),
  columns: [
    { name: "Pool", type: "string", jsonPath: ".spec.pool", description: "Pool that the machine joined." },
    { name: "Expires", type: "string", jsonPath: ".spec.expiresAt", description: "When its last certificate ends." },
    {
      name: "Addresses",
      type: "string",
      jsonPath: ".spec.addresses",
      description: "Addresses that it may serve under.",
    },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
  ],
});
export type NodeBinding = ResourceOf<typeof NodeBinding>;
