import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { atomicList, dateTime, dnsName } from "../schema/schema.ts";

/** Addresses of one machine; more are a mistake, or an attempt to collect those of others. */
export const maxMachineAddresses = 16;

/** Certificates of one machine: it uses one, and another one while it renews it. */
export const mostCertificates = 8;

/** Certificates of machines that had a name before; one that renews as kubelets do has two at a time. */
export const mostFormerCertificates = 64;

export const NodeBinding = defineResource({
  kind: "NodeBinding",
  plural: "nodebindings",
  version: "v1alpha1",
  scope: "Cluster",
  shortNames: ["nb"],
  description:
    "Binds the name of a node to one public key and one pool while a certificate for it is good. The controller writes it when it approves a certificate; kubelets and joining accounts cannot. Deleting it frees the name, and so does deleting the Node; after that the machine of the key may still come back. Setting revoked frees the name for good.",
  spec: Type.Object({
    pool: dnsName({ description: "Pool that the machine joined." }),
    publicKey: Type.String({
      pattern: "^[0-9a-f]{64}$",
      description: "SHA-256 of the public key (SubjectPublicKeyInfo) that the name belongs to, in hexadecimal digits.",
    }),
    expiresAt: dateTime({
      description: "When the last certificate ends of the machine that has the name, whichever of its keys it is for.",
    }),
    certificates: Type.Optional(
      atomicList(Type.String({ pattern: "^[0-9a-f]{64}$" }), {
        maxItems: mostCertificates,
        description:
          "SHA-256 of the last client certificates that were issued for that key, and for its keys before, in hexadecimal digits.",
      }),
    ),
    formerExpiresAt: Type.Optional(
      dateTime({
        description:
          "When the last certificate ends of another machine that had this name before. Until then, requests of the Node wait unless they are sent with one of the listed certificates. Removing it ends this.",
      }),
    ),
    formerCertificates: Type.Optional(
      atomicList(
        Type.Object({
          sha256: Type.String({
            pattern: "^[0-9a-f]{64}$",
            description: "SHA-256 of the certificate, in hexadecimal digits.",
          }),
          expiresAt: dateTime({ description: "When it has ended at the latest." }),
        }),
        {
          maxItems: mostFormerCertificates,
          description:
            "Client certificates of other machines that had this name before, until they end. Requests of the Node that are sent with one of these are refused, also after this object was deleted. Moving one to certificates ends this for it.",
        },
      ),
    ),
    exclusive: Type.Optional(
      Type.Boolean({
        description:
          "Another machine had this name before. Until formerExpiresAt, requests of the Node are refused unless they are sent with one of the listed certificates. Removing it, or formerExpiresAt, ends this.",
      }),
    ),
    joinedAt: Type.Optional(
      dateTime({ description: "When the machine joined that has the name; absent: when this object was created." }),
    ),
    place: Type.Optional(dnsName({ description: "JoinPlace that the machine took." })),
    nodeUID: Type.Optional(
      Type.String({ maxLength: 64, description: "UID of the machine's Node, once it has registered." }),
    ),
    lastPool: Type.Optional(
      Type.String({
        maxLength: 253,
        description: "Pool that the Node was last seen in; empty: its labels were taken away, and it is in none.",
      }),
    ),
    releasedAt: Type.Optional(
      dateTime({
        description:
          "When the Node was deleted. From then on the name is free, and the machine of this key may register by it again.",
      }),
    ),
    revoked: Type.Optional(
      Type.Boolean({
        description:
          "An administrator released the name (mco node release). It is free, and requests of the Node by the certificate of this key wait. Another machine that takes the name ends this.",
      }),
    ),
    addresses: Type.Optional(
      atomicList(Type.String({ maxLength: 253 }), {
        maxItems: maxMachineAddresses,
        description:
          "Addresses and host names that the node may serve under: where the machine fetched its configuration from, those that its token names, its own name if its token names it, and those that an administrator adds.",
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
